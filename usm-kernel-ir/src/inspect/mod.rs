//! Decides whether items of a launch race, and whether indices are inside, by running its index
//! arithmetic, without memory.
//!
//! [`proof`](crate::proof) derives conditions once for all launches. Where they do not decide a
//! launch, an inspection does: all items compute the indices of the arrays in question, and each
//! access is recorded in a word of its element. It takes up to [`MOST_ACCESSES`] accesses. Indices
//! must not follow from the contents of arrays. Conditions may, and then count as true and as
//! false.

mod lanes;
mod plan;
mod record;
mod run;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::interpret::{Deed, Site};
use crate::kernel::{ArrayId, ExprKind, Kernel, Place, Space, ValueId};
use crate::proof::{Claims, Shape};
use plan::{Plan, Targets};

/// The most accesses of an inspection, and the most elements of the arrays in question.
pub const MOST_ACCESSES: u64 = 1 << 26;
/// The most nodes that all items together compute: some seconds.
pub const MOST_STEPS: u64 = 1 << 31;

/// An element that two items access, without a barrier between; at least one writes it, and not
/// both accesses are atomic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The array.
    pub array: ArrayId,
    /// The element.
    pub index: u64,
    /// The two accesses.
    pub accesses: [(Site, Deed); 2],
}

/// The reason why an inspection decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The index of this access follows from the contents of an array, or from floating point
    /// numbers.
    Memory(Place),
    /// A barrier here stands under a condition that follows from memory, or items part at it.
    Barrier(Place),
    /// More items, accesses, elements or steps than an inspection takes.
    Long,
    /// Two items access one element if conditions that follow from memory are true.
    Possible(Box<Clash>),
}

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No two items race.
    Free,
    /// Two items race.
    Race(Box<Clash>),
    /// Nobody knows.
    Undecided(Doubt),
}

impl Clash {
    /// The race in words. `element` names an element of an array, such as by all its indices.
    #[must_use]
    pub fn say(&self, kernel: &Kernel, element: &dyn Fn(ArrayId, u64) -> String) -> String {
        let [(one, did), (two, does)] = &self.accesses;
        alloc::format!(
            "work-item {} {} element {} of `{}` at {}, and work-item {} {} it at {}",
            one.item,
            did.verb(),
            element(self.array, self.index),
            kernel.array(self.array).name,
            one.located,
            two.item,
            does.verb(),
            two.located
        )
    }
}

impl Doubt {
    /// The reason in words. `element` names an element of an array.
    #[must_use]
    pub fn say(&self, kernel: &Kernel, element: &dyn Fn(ArrayId, u64) -> String) -> String {
        match self {
            Self::Memory(place) => {
                alloc::format!("the index at {} follows from the contents of an array", kernel.locate(*place))
            }
            Self::Barrier(place) => {
                alloc::format!("a condition around the barrier at {} is not known", kernel.locate(*place))
            }
            Self::Long => "the launch is too large for an inspection".into(),
            Self::Possible(clash) => alloc::format!(
                "{}, if the contents of the arrays make the conditions there true",
                clash.say(kernel, element)
            ),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Race(_) => "race",
            Self::Undecided(_) => "undecided",
        })
    }
}

/// Decides whether the accesses of these arrays race in a launch, and nothing about other arrays.
/// `steps` limits the nodes that all items together compute, and the accesses.
#[must_use]
pub fn inspect(kernel: &Kernel, arrays: &[ArrayId], shape: &Shape<'_>, steps: u64) -> Verdict {
    match Plan::new(kernel, Targets::Order(arrays)) {
        Ok(plan) => run::run(kernel, &plan, arrays, shape, steps),
        Err(doubt) => Verdict::Undecided(doubt),
    }
}

/// A race of two accesses to this array that the launch surely has, because neither indices nor
/// conditions of these follow from memory.
pub(crate) fn sure_race(kernel: &Kernel, array: ArrayId, shape: &Shape<'_>, steps: u64) -> Option<Clash> {
    let plan = sure_plan(kernel, &[array])?;
    match run::run(kernel, &plan, &[array], shape, steps) {
        Verdict::Race(clash) => Some(*clash),
        _ => None,
    }
}

/// The plan for the accesses that all launches have; `None` without any.
fn sure_plan(kernel: &Kernel, arrays: &[ArrayId]) -> Option<Plan> {
    let plan = Plan::new(kernel, Targets::Sure(arrays)).ok()?;
    let mut some = false;
    plan.for_each_touch(&mut |_| some = true);
    some.then_some(plan)
}

/// Whether an index of this array follows from the contents of arrays or from floating point
/// numbers, so that no inspection decides which elements items access.
pub(crate) fn follows_from_memory(kernel: &Kernel, array: ArrayId) -> bool {
    matches!(Plan::new(kernel, Targets::Order(&[array])), Err(Doubt::Memory(_)))
}

/// A kernel with its claims, and the latest answers about its launches.
///
/// Answers are kept by range, and by the lengths and scalars that indices follow from.
#[derive(Clone, Debug)]
pub struct Inspector {
    kernel: Kernel,
    claims: Claims,
    orders: Vec<OpenQuestion<Vec<ArrayId>, Verdict>>,
    bounds: Vec<OpenQuestion<Vec<usize>, Vec<usize>>>,
}

/// Answers that an [`Inspector`] keeps for each set of accesses.
const KEPT: usize = 16;

/// A question about some accesses, their plan, and answers for launches, the latest one last.
#[derive(Clone, Debug)]
struct OpenQuestion<Q, A> {
    question: Q,
    plan: Result<Plan, Doubt>,
    /// The plan for the accesses that all launches have, of an unordered array.
    sure: Option<Plan>,
    /// The numbers that the plans read.
    lengths: Vec<ArrayId>,
    values: Vec<ValueId>,
    answers: Vec<(Vec<u64>, A)>,
    /// Launches that were asked about without an inspection.
    asked: Vec<Vec<u64>>,
}

impl Inspector {
    /// For launches of a verified kernel with these claims.
    #[must_use]
    pub const fn new(kernel: Kernel, claims: Claims) -> Self {
        Self { kernel, claims, orders: Vec::new(), bounds: Vec::new() }
    }

    /// The kernel.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The verdict about the order of a launch's items: of the claims, or of an inspection.
    #[must_use]
    pub fn verdict(&mut self, shape: &Shape<'_>) -> Verdict {
        self.order(shape, true).unwrap_or(Verdict::Undecided(Doubt::Long))
    }

    /// As [`verdict`](Self::verdict), but `None` where the first inspection of a launch would take
    /// place: it may take longer than the launch, so it pays only from the second time on.
    #[must_use]
    pub fn verdict_if_repeated(&mut self, shape: &Shape<'_>) -> Option<Verdict> {
        self.order(shape, false)
    }

    fn order(&mut self, shape: &Shape<'_>, first: bool) -> Option<Verdict> {
        let mut verdict = Verdict::Free;
        for arrays in self.questions(shape) {
            let next = self.order_of(arrays, shape, first)?;
            match (&next, &verdict) {
                (Verdict::Race(_), _) => return Some(next),
                (Verdict::Undecided(_), Verdict::Free) => verdict = next,
                _ => {}
            }
        }
        Some(verdict)
    }

    /// The arrays of a launch that conditions leave open, as questions to inspections. What is
    /// unknown about an unordered array must not hide what is known about another one.
    fn questions(&self, shape: &Shape<'_>) -> Vec<Vec<ArrayId>> {
        let (candidates, others): (Vec<ArrayId>, Vec<ArrayId>) =
            self.claims.open_arrays(shape).into_iter().partition(|array| self.is_unordered(*array));
        let others = Some(others).filter(|others| !others.is_empty());
        others.into_iter().chain(candidates.into_iter().map(|array| Vec::from([array]))).collect()
    }

    fn is_unordered(&self, array: ArrayId) -> bool {
        self.claims.unordered.contains(&array)
    }

    fn order_of(&mut self, arrays: Vec<ArrayId>, shape: &Shape<'_>, first: bool) -> Option<Verdict> {
        let kernel = &self.kernel;
        let at = match self.orders.iter().position(|answer| answer.question == arrays) {
            Some(at) => at,
            None => {
                let plan = Plan::new(kernel, Targets::Order(&arrays));
                let is_unordered = arrays.iter().all(|array| self.claims.unordered.contains(array));
                let sure = is_unordered.then(|| sure_plan(kernel, &arrays)).flatten();
                self.orders.push(OpenQuestion::new(kernel, (arrays.clone(), &arrays), plan, sure));
                self.orders.len() - 1
            }
        };
        let run = |answer: &OpenQuestion<Vec<ArrayId>, Verdict>| {
            let run_plan = |plan| run::run(kernel, plan, &answer.question, shape, MOST_STEPS);
            let verdict = match &answer.plan {
                Ok(plan) => run_plan(plan),
                Err(doubt) => Verdict::Undecided(doubt.clone()),
            };
            // What memory decides must not hide a race that it does not.
            let is_of_memory = matches!(verdict, Verdict::Undecided(Doubt::Memory(_) | Doubt::Possible(_)));
            let sure = answer.sure.as_ref().filter(|_| is_of_memory).map(run_plan);
            sure.filter(|sure| matches!(sure, Verdict::Race(_))).unwrap_or(verdict)
        };
        self.orders[at].answer(shape, first, run)
    }

    /// Whether the launch is unordered: nothing is known about [arrays](Claims::unordered) whose
    /// indices or conditions follow from memory, and no items race on others.
    #[must_use]
    pub fn is_launch_unordered(&mut self, shape: &Shape<'_>) -> bool {
        let mut is = false;
        for arrays in self.questions(shape) {
            let is_open = arrays.iter().all(|array| self.is_unordered(*array));
            match self.order_of(arrays, shape, true) {
                Some(Verdict::Free) => {}
                Some(Verdict::Undecided(_)) if is_open => is = true,
                _ => return false,
            }
        }
        is
    }

    /// The bounds among the claims, by position, that neither the conditions nor an inspection show
    /// to be inside. Without `first`, the first inspection of a launch does not take place, as of
    /// [`verdict_if_repeated`](Self::verdict_if_repeated).
    #[must_use]
    pub fn open_bounds(&mut self, shape: &Shape<'_>, first: bool) -> Vec<usize> {
        let mut open: Vec<usize> = Vec::new();
        if !shape.global.contains(&0) {
            let bounds = self.claims.bounds.iter().enumerate();
            open.extend(bounds.filter(|(_, bound)| !bound.holds(shape)).map(|(place, _)| place));
        }
        if open.is_empty() {
            return open;
        }
        let (kernel, claims) = (&self.kernel, &self.claims);
        let target = |place: &usize| (claims.bounds[*place].array, claims.bounds[*place].place);
        let at = match self.bounds.iter().position(|answer| answer.question == open) {
            Some(at) => at,
            None => {
                let targets: Vec<_> = open.iter().map(target).collect();
                let arrays: Vec<ArrayId> = targets.iter().map(|(array, _)| *array).collect();
                let plan = Plan::new(kernel, Targets::Bounds(&targets));
                self.bounds.push(OpenQuestion::new(kernel, (open.clone(), &arrays), plan, None));
                self.bounds.len() - 1
            }
        };
        // Nothing is gained where all follow from memory.
        let knows_some = |plan: &Plan| {
            let mut some = false;
            plan.for_each_touch(&mut |_| some = true);
            some
        };
        if !self.bounds[at].plan.as_ref().is_ok_and(knows_some) {
            return open;
        }
        let run = |OpenQuestion { question: open, plan, .. }: &OpenQuestion<Vec<usize>, Vec<usize>>| {
            let outside = |plan| run::outside(kernel, plan, shape, MOST_STEPS);
            match plan.as_ref().ok().and_then(|plan| Some((plan, outside(plan)?))) {
                Some((plan, outside)) => {
                    let is_open = |place: &&usize| {
                        let target = target(place);
                        plan.unknowns.contains(&target) || outside.contains(&target)
                    };
                    open.iter().filter(is_open).copied().collect()
                }
                None => open.clone(),
            }
        };
        self.bounds[at].answer(shape, first, run).unwrap_or(open)
    }
}

impl<Q, A: Clone> OpenQuestion<Q, A> {
    fn new(
        kernel: &Kernel,
        (question, arrays): (Q, &[ArrayId]),
        plan: Result<Plan, Doubt>,
        sure: Option<Plan>,
    ) -> Self {
        let (mut lengths, mut values) = (arrays.to_vec(), Vec::new());
        let mut note = |expr: &crate::Expr| match expr.kind {
            ExprKind::Len(array) if !lengths.contains(&array) => lengths.push(array),
            ExprKind::Value(value) if !values.contains(&value) => values.push(value),
            _ => {}
        };
        for plan in plan.iter().chain(&sure) {
            plan.for_each(&mut note);
        }
        // The lengths of these arrays follow from sizes and scalars.
        for array in &kernel.arrays {
            if let Space::Local(len) | Space::Extent(len) = &array.space {
                len.for_each(&mut note);
            }
        }
        Self { question, plan, sure, lengths, values, answers: Vec::new(), asked: Vec::new() }
    }

    fn answer(&mut self, shape: &Shape<'_>, first: bool, run: impl FnOnce(&Self) -> A) -> Option<A> {
        let lengths = self.lengths.iter().map(|id| shape.lengths.get(id.0 as usize).copied());
        let values = self.values.iter().map(|id| shape.values.get(id.0 as usize).map(|value| value.bits));
        let counts = [shape.global.len() as u64, shape.local.len() as u64].map(Some).into_iter();
        let sizes = counts.chain(shape.global.iter().chain(shape.local).map(|size| Some(*size)));
        let key: Vec<u64> = sizes.chain(lengths).chain(values).map(Option::unwrap_or_default).collect();
        if let Some(at) = self.answers.iter().position(|(other, _)| *other == key) {
            let entry = self.answers.remove(at);
            let answer = entry.1.clone();
            self.answers.push(entry);
            return Some(answer);
        }
        if !first && !self.asked.contains(&key) {
            if self.asked.len() >= KEPT {
                self.asked.remove(0);
            }
            self.asked.push(key);
            return None;
        }
        let answer = run(self);
        if self.answers.len() >= KEPT {
            self.answers.remove(0);
        }
        self.answers.push((key, answer.clone()));
        Some(answer)
    }
}
