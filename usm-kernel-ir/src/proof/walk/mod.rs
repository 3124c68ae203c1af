//! Walks a kernel once and records every index.

mod arithmetic;
mod condition;
mod interval;
mod loops;
mod needs;
mod value;

use alloc::vec;
use alloc::vec::Vec;

use super::claim::{Bound, Claims, Condition};
use super::linear::{Atom, Linear};
use super::number::Number;
use super::race;
use crate::error::Refusal;
use crate::kernel::{ArrayId, Expr, Kernel, Place, Space, Stmt, StmtKind, VarId};
use crate::scalar::Scalar;
use crate::uniform::Uniformity;
use crate::verify::leaves;

pub(super) use needs::{Interval, Needs};

/// Maximum nesting of loops with barriers: each is walked twice.
const NESTED: u32 = 4;
/// Maximum number of accesses that are compared in pairs.
const ACCESSES: usize = 512;

/// Maximum number of nodes of a value and its conditions. A longer one counts as unknown, so that
/// no proof takes long.
const NODES: u32 = 2048;
/// Maximum number of expressions that are looked at again, for what conditions imply.
const AGAIN: u32 = 1 << 16;

/// The facts about an [`Atom::Other`].
#[derive(Clone, Debug)]
pub(super) struct Info {
    /// The type whose value the quantity is. `None` if it equals a value only up to multiples of
    /// the type's range.
    pub(super) ty: Option<Scalar>,
    pub(super) low: Option<Number>,
    pub(super) high: Option<Number>,
    /// The same for all items of a group between two barriers.
    pub(super) shared: bool,
    /// The start plus a non-negative multiple of the step.
    pub(super) steps: Option<(Linear, Number)>,
}

/// A sum that is not negative if the conditions hold.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) sum: Linear,
    pub(super) needs: Needs,
}

/// A value: its sum, correct up to multiples of the type's range, if the conditions hold.
#[derive(Clone, Debug)]
struct Facts {
    sum: Linear,
    needs: Needs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

/// An access to an array that several items can access.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) array: ArrayId,
    pub(super) kind: Kind,
    pub(super) index: Linear,
    pub(super) needs: Needs,
    pub(super) guards: Vec<Guard>,
    pub(super) place: Place,
}

#[derive(Clone)]
struct State {
    variables: Vec<Option<Facts>>,
    guards: Vec<Guard>,
    /// Accesses since the last barrier.
    open: Vec<usize>,
}

/// Accesses since the last barrier where a loop is left, and where its next round begins early.
#[derive(Default)]
struct Jumps {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

pub(super) struct Walker<'k> {
    pub(super) kernel: &'k Kernel,
    uniformity: Uniformity,
    pub(super) infos: Vec<Info>,
    pub(super) accesses: Vec<Access>,
    /// Pairs of accesses between two barriers.
    pub(super) pairs: Vec<(usize, usize)>,
    bounds: Vec<Bound>,
    /// Enclosing loops without barriers, in which items may be in different rounds.
    free: u32,
    depth: u32,
    /// The jumps of the enclosing loops.
    jumps: Vec<Jumps>,
    recording: bool,
    /// Expressions that may still be looked at again.
    left: u32,
    /// Number of enclosing loops that are walked for the second time.
    again: u32,
    too_many: Option<Place>,
}

/// The claims that a launch of a verified kernel must check.
///
/// # Errors
/// Accesses of two items that conflict in every launch, or that no launch can decide; both places.
pub fn claims(kernel: &Kernel) -> Result<Claims, Refusal> {
    if kernel.trusted {
        return Ok(Claims::default());
    }
    let mut claims = claims_as_is(kernel)?;
    let mut arrays = kernel.unordered.clone();
    while claims.unordered.iter().any(|array| !arrays.contains(array)) {
        // What one item reads from such an array is not what another one reads.
        arrays.clone_from(&claims.unordered);
        let variant = Kernel { unordered: arrays.clone(), ..kernel.clone() };
        let meet = Uniformity::of(&variant).barriers(&variant).is_ok();
        if let Some(race) = claims.races.iter().find(|race| !meet && arrays.contains(&race.array)) {
            return Err(race::refusal(kernel, race.array, race.write, race.other));
        }
        claims = claims_as_is(&variant)?;
    }
    Ok(claims)
}

fn claims_as_is(kernel: &Kernel) -> Result<Claims, Refusal> {
    let mut walker = walk(kernel);
    if let Some(place) = walker.too_many {
        return Err(Refusal::new(place, race::TOO_MANY));
    }
    let (races, arrays) = race::races(&mut walker)?;
    Ok(Claims { bounds: walker.bounds, races, unordered: arrays })
}

/// [`claims`] for indices only, which can be proven of kernels with races too.
#[must_use]
pub fn bounds(kernel: &Kernel) -> Claims {
    Claims { bounds: walk(kernel).bounds, ..Claims::default() }
}

fn walk(kernel: &Kernel) -> Walker<'_> {
    let mut walker = Walker {
        kernel,
        uniformity: Uniformity::of(kernel),
        infos: Vec::new(),
        accesses: Vec::new(),
        pairs: Vec::new(),
        bounds: Vec::new(),
        free: 0,
        depth: 0,
        jumps: Vec::new(),
        recording: true,
        left: AGAIN,
        again: 0,
        too_many: None,
    };
    let mut state =
        State { variables: vec![None; kernel.variables.len()], guards: Vec::new(), open: Vec::new() };
    walker.block(&kernel.body, &mut state);
    walker.close(&mut state);
    walker
}

impl Walker<'_> {
    pub(super) fn fresh(&mut self, mut info: Info) -> Atom {
        let is_short = |number: &Number| number.counts(&mut NODES.clone());
        (info.low, info.high) = (info.low.filter(is_short), info.high.filter(is_short));
        self.infos.push(info);
        Atom::Other(self.infos.len() as u32 - 1, false)
    }

    fn block(&mut self, body: &[Stmt], state: &mut State) {
        for stmt in body {
            self.stmt(stmt, state);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let facts = self.value(value, state);
                state.variables[variable.0 as usize] = Some(facts);
            }
            StmtKind::Store { array, index, value } => {
                let _ = self.value(value, state);
                let index = self.value(index, state);
                self.access(*array, Kind::Write, index, stmt.place, state);
            }
            StmtKind::Atomic { array, index, value, old, .. } => {
                let _ = self.value(value, state);
                let index = self.value(index, state);
                self.access(*array, Kind::Atomic, index, stmt.place, state);
                if let Some(old) = old {
                    state.variables[old.0 as usize] = None;
                }
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                for value in [expected, new] {
                    let _ = self.value(value, state);
                }
                let index = self.value(index, state);
                self.access(*array, Kind::Atomic, index, stmt.place, state);
                if let Some(old) = old {
                    state.variables[old.0 as usize] = None;
                }
            }
            StmtKind::Collect { variable, value, .. } => {
                let _ = self.value(value, state);
                state.variables[variable.0 as usize] = None;
                self.close(state);
            }
            StmtKind::Broadcast { variable, value, from } => {
                let _ = (self.value(value, state), self.value(from, state));
                state.variables[variable.0 as usize] = None;
                self.close(state);
            }
            StmtKind::If { condition, then, other } => self.branch(condition, then, other, state),
            StmtKind::While(condition, body) => {
                let mut behind = Vec::new();
                self.rounds(stmt, body, state, &mut |walker, before, state| {
                    behind = walker.count(body, before, condition, state);
                    let _ = walker.value(condition, state);
                    walker.assume(condition, true, state);
                });
                for (variable, facts) in behind {
                    state.variables[variable.0 as usize] = Some(facts);
                }
            }
            StmtKind::For { variable, start, end, step, body } => {
                let (start, end, step) =
                    (self.value(start, state), self.value(end, state), self.value(step, state));
                let ty = self.kernel.variable(*variable).ty;
                self.rounds(stmt, body, state, &mut |walker, _, state| {
                    walker.count_up(*variable, ty, [&start, &end, &step], state);
                });
            }
            // Accesses to global memory are compared whatever lies between.
            StmtKind::Barrier { local: true, .. } => self.close(state),
            StmtKind::Break => {
                if let Some(jumps) = self.jumps.last_mut() {
                    add_to(&mut jumps.breaks, &state.open);
                }
            }
            StmtKind::Continue => {
                if let Some(jumps) = self.jumps.last_mut() {
                    add_to(&mut jumps.continues, &state.open);
                }
            }
            StmtKind::Barrier { .. } | StmtKind::Return | StmtKind::Fence { .. } => {}
        }
    }

    fn close(&mut self, state: &mut State) {
        let open = core::mem::take(&mut state.open);
        for (place, one) in open.iter().enumerate() {
            for two in &open[place..] {
                let pair = (*one.min(two), *one.max(two));
                self.pairs.push(pair);
            }
        }
    }

    fn branch(&mut self, condition: &Expr, then: &[Stmt], other: &[Stmt], state: &mut State) {
        let _ = self.value(condition, state);
        let guards = state.guards.len();
        let mut one = state.clone();
        self.assume(condition, true, &mut one);
        self.block(then, &mut one);
        let mut two = state.clone();
        self.assume(condition, false, &mut two);
        self.block(other, &mut two);
        let mut open = one.open.clone();
        add_to(&mut open, &two.open);
        match (leaves(then), leaves(other)) {
            (true, false) => *state = two,
            (false, true) => *state = one,
            _ => {
                let mut set = Vec::new();
                find_assigned(then, &mut set);
                find_assigned(other, &mut set);
                for variable in set {
                    let place = variable.0 as usize;
                    let both = (one.variables[place].take(), two.variables[place].take());
                    state.variables[place] = match both {
                        (Some(one), Some(two)) if one.sum == two.sum => {
                            Some(Facts { needs: one.needs.and(&two.needs), sum: one.sum })
                        }
                        (Some(first), Some(second)) => {
                            self.union_of_intervals(variable, (first, &one.guards), (second, &two.guards))
                        }
                        _ => None,
                    };
                }
                state.guards.truncate(guards);
            }
        }
        state.open = open;
    }

    fn union_of_intervals(
        &mut self,
        variable: VarId,
        one: (Facts, &[Guard]),
        two: (Facts, &[Guard]),
    ) -> Option<Facts> {
        let ty = self.kernel.variable(variable).ty;
        let is_exact = self.is_exact(&one.0, ty, one.1) && self.is_exact(&two.0, ty, two.1);
        let mut needs = one.0.needs.and(&two.0.needs);
        let first = self.interval(&one.0.sum, one.1).ends(&mut needs);
        let second = self.interval(&two.0.sum, two.1).ends(&mut needs);
        let [low, high] = hull(first, second);
        let shared = self.uniformity.is_uniform(variable) && self.free == 0;
        let atom = self.fresh(Info { ty: is_exact.then_some(ty), low, high, shared, steps: None });
        Some(Facts { sum: Linear::atom(atom), needs })
    }

    fn access(&mut self, array: ArrayId, kind: Kind, index: Facts, place: Place, state: &mut State) {
        if !self.recording {
            return;
        }
        let mut needs = index.needs.clone();
        let [low, high] = self.interval(&index.sum, &state.guards).ends(&mut needs);
        let len = self.len(array);
        let conditions = low.zip(high).zip(len).map(|((low, high), (len, exact))| {
            needs.add(&exact);
            needs.push(Condition::AtMost(Number::ZERO, low));
            needs.push(Condition::AtMost(high, len.sub(Number::ONE)));
            needs.unknown().into_conditions()
        });
        let bound = Bound { array, place, conditions };
        if bound.conditions.as_ref().is_none_or(|conditions| !conditions.is_empty())
            && !self.bounds.contains(&bound)
        {
            self.bounds.push(bound);
        }
        if !matches!(self.kernel.array(array).space, Space::Write | Space::Atomic | Space::Local(_)) {
            return;
        }
        // For an array that all groups access, each access meets all others, whatever lies between.
        // The first walk stands for all rounds.
        if self.again > 0 && !matches!(self.kernel.array(array).space, Space::Local(_)) {
            return;
        }
        if self.accesses.len() >= ACCESSES {
            self.too_many = self.too_many.or(Some(place));
            return;
        }
        state.open.push(self.accesses.len());
        let Facts { sum: index, needs } = index;
        self.accesses.push(Access { array, kind, index, needs, guards: state.guards.clone(), place });
    }

    /// The number of elements of an array, if the conditions hold.
    fn len(&mut self, array: ArrayId) -> Option<(Number, Needs)> {
        let plain = |number| Some((number, Needs::none()));
        match &self.kernel.array(array).space {
            Space::Read | Space::Write | Space::Atomic => plain(Number::Len(array)),
            Space::Constant(len) | Space::Private(len) => plain(Number::Constant(i64::try_from(*len).ok()?)),
            Space::Local(len) | Space::Extent(len) => {
                let mut state = State { variables: Vec::new(), guards: Vec::new(), open: Vec::new() };
                let facts = self.value(len, &mut state);
                // A length that wraps differs from its sum.
                let exact = self.exact(&facts, Scalar::U64, &[])?;
                Some((facts.sum.as_number().cloned()?, exact))
            }
        }
    }
}

/// The least and the greatest value of two intervals.
pub(super) fn hull(
    [low, high]: [Option<Number>; 2],
    [least, most]: [Option<Number>; 2],
) -> [Option<Number>; 2] {
    [low.zip(least).map(|(one, two)| one.min(two)), high.zip(most).map(|(one, two)| one.max(two))]
}

/// Adds the accesses that are not in a list yet.
fn add_to(open: &mut Vec<usize>, more: &[usize]) {
    let fresh: Vec<usize> = more.iter().copied().filter(|access| !open.contains(access)).collect();
    open.extend(fresh);
}

/// The conditions that do not hold for every launch.
pub(super) fn unknown(mut conditions: Vec<Condition>) -> Vec<Condition> {
    let mut rest: Vec<Condition> = Vec::new();
    conditions.retain(|one| one.known() != Some(true));
    for one in conditions {
        if !rest.contains(&one) {
            rest.push(one);
        }
    }
    rest
}

/// The variables that a block sets.
fn find_assigned(body: &[Stmt], set: &mut Vec<VarId>) {
    for stmt in body {
        if let Some(variable) = stmt.sets() {
            if !set.contains(&variable) {
                set.push(variable);
            }
        }
        for block in stmt.blocks() {
            find_assigned(block, set);
        }
    }
}
