//! Goes through a kernel once and notes what each index is.

use alloc::vec;
use alloc::vec::Vec;

use super::claim::{Bound, Claims, Condition};
use super::linear::{Atom, Linear};
use super::number::Number;
use super::race;
use crate::error::Refusal;
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind, VarId};
use crate::operator::{Binary, Unary};
use crate::scalar::Scalar;
use crate::uniform::Uniformity;
use crate::verify::leaves;

/// Loops with barriers in each other: each is gone through twice.
const NESTED: u32 = 4;
/// Accesses that are looked at in pairs.
const ACCESSES: usize = 512;

/// What is known of an [`Atom::Other`].
#[derive(Clone, Debug)]
pub(super) struct Info {
    pub(super) low: Option<Number>,
    pub(super) high: Option<Number>,
    /// The same for all items of a group between two barriers.
    pub(super) shared: bool,
    /// It is the start and a multiple of the step from zero up.
    pub(super) steps: Option<(Linear, Number)>,
}

/// A sum that is known not to be negative, where the conditions hold.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) sum: Linear,
    pub(super) requires: Vec<Condition>,
}

/// A value: its sum, which is right up to multiples of the type's range, where the conditions hold.
#[derive(Clone, Debug)]
struct Known {
    sum: Linear,
    requires: Vec<Condition>,
}

/// A least and a greatest value, where the conditions hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    pub(super) low: Option<Number>,
    pub(super) high: Option<Number>,
    pub(super) requires: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

/// An access to an array that several items reach.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) array: ArrayId,
    pub(super) kind: Kind,
    pub(super) index: Linear,
    pub(super) requires: Vec<Condition>,
    pub(super) guards: Vec<Guard>,
    pub(super) place: Place,
}

#[derive(Clone)]
struct State {
    variables: Vec<Option<Known>>,
    guards: Vec<Guard>,
    /// Accesses since the last barrier.
    open: Vec<usize>,
}

pub(super) struct Walker<'k> {
    pub(super) kernel: &'k Kernel,
    uniformity: Uniformity,
    pub(super) infos: Vec<Info>,
    pub(super) accesses: Vec<Access>,
    /// Pairs of accesses between two barriers.
    pub(super) pairs: Vec<(usize, usize)>,
    bounds: Vec<Bound>,
    /// Loops without barriers around, inside of which items may be in different rounds.
    free: u32,
    nested: u32,
    recording: bool,
    too_many: Option<Place>,
}

/// What a launch of a verified kernel has to find true.
///
/// # Errors
/// Accesses of two items that meet in every launch, or of which no launch can tell; both places.
pub fn claims(kernel: &Kernel) -> Result<Claims, Refusal> {
    if kernel.trusted {
        return Ok(Claims::default());
    }
    let mut walker = Walker {
        kernel,
        uniformity: Uniformity::of(kernel),
        infos: Vec::new(),
        accesses: Vec::new(),
        pairs: Vec::new(),
        bounds: Vec::new(),
        free: 0,
        nested: 0,
        recording: true,
        too_many: None,
    };
    let mut state =
        State { variables: vec![None; kernel.variables.len()], guards: Vec::new(), open: Vec::new() };
    walker.block(&kernel.body, &mut state);
    walker.close(&mut state);
    if let Some(place) = walker.too_many {
        return Err(Refusal::new(
            place,
            "too many accesses, or barriers in too many loops, to look at in pairs",
        ));
    }
    let races = race::races(&mut walker)?;
    Ok(Claims { bounds: walker.bounds, races })
}

impl Walker<'_> {
    pub(super) fn fresh(&mut self, info: Info) -> Atom {
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
                let known = self.value(value, state);
                state.variables[variable.0 as usize] = Some(known);
            }
            StmtKind::Store(array, index, value) => {
                let _ = self.value(value, state);
                let index = self.value(index, state);
                self.access(*array, Kind::Write, index, stmt.place, state);
            }
            StmtKind::Atomic(_, array, index, value, old) => {
                let _ = self.value(value, state);
                let index = self.value(index, state);
                self.access(*array, Kind::Atomic, index, stmt.place, state);
                if let Some(old) = old {
                    state.variables[old.0 as usize] = None;
                }
            }
            StmtKind::CompareExchange(array, index, values, old) => {
                for value in values {
                    let _ = self.value(value, state);
                }
                let index = self.value(index, state);
                self.access(*array, Kind::Atomic, index, stmt.place, state);
                if let Some(old) = old {
                    state.variables[old.0 as usize] = None;
                }
            }
            StmtKind::Collect(_, _, variable, value) => {
                let _ = self.value(value, state);
                state.variables[variable.0 as usize] = None;
                self.close(state);
            }
            StmtKind::Broadcast(variable, value, from) => {
                let _ = (self.value(value, state), self.value(from, state));
                state.variables[variable.0 as usize] = None;
                self.close(state);
            }
            StmtKind::If(condition, then, other) => self.branch(condition, then, other, state),
            StmtKind::While(condition, body) => {
                self.rounds(stmt, body, state, &mut |walker, before, state| {
                    walker.count(body, before, condition, state);
                    let _ = walker.value(condition, state);
                    walker.assume(condition, true, state);
                });
            }
            StmtKind::For(variable, start, end, step, body) => {
                let (start, end, step) =
                    (self.value(start, state), self.value(end, state), self.value(step, state));
                let ty = self.kernel.variable(*variable).ty;
                self.rounds(stmt, body, state, &mut |walker, _, state| {
                    walker.count_up(*variable, ty, [&start, &end, &step], state);
                });
            }
            StmtKind::Barrier { .. } => self.close(state),
            StmtKind::Break | StmtKind::Continue | StmtKind::Return | StmtKind::Fence { .. } => {}
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
        open.extend(two.open.iter().copied().filter(|access| !one.open.contains(access)));
        match (leaves(then), leaves(other)) {
            (true, false) => *state = two,
            (false, true) => *state = one,
            _ => {
                let mut set = Vec::new();
                assigned(then, &mut set);
                assigned(other, &mut set);
                for variable in set {
                    let place = variable.0 as usize;
                    let both = (one.variables[place].take(), two.variables[place].take());
                    state.variables[place] = match both {
                        (Some(one), Some(two)) if one.sum == two.sum => {
                            Some(Known { requires: [one.requires, two.requires].concat(), ..one })
                        }
                        (Some(first), Some(second)) => {
                            self.hull(variable, (first, &one.guards), (second, &two.guards))
                        }
                        _ => None,
                    };
                }
                state.guards.truncate(guards);
            }
        }
        state.open = open;
    }

    fn hull(&mut self, variable: VarId, one: (Known, &[Guard]), two: (Known, &[Guard])) -> Option<Known> {
        let (first, second) = (self.interval(&one.0.sum, one.1), self.interval(&two.0.sum, two.1));
        let low = first.low.zip(second.low).map(|(one, two)| one.min(two));
        let high = first.high.zip(second.high).map(|(one, two)| one.max(two));
        let requires = [one.0.requires, two.0.requires, first.requires, second.requires].concat();
        let shared = self.uniformity.is_uniform(variable) && self.free == 0;
        let atom = self.fresh(Info { low, high, shared, steps: None });
        Some(Known { sum: Linear::atom(atom), requires })
    }

    /// The rounds of a loop, whose variables `enter` gives what is known of them. With barriers
    /// inside, twice, so that what follows the last barrier meets what precedes the first.
    fn rounds(
        &mut self,
        stmt: &Stmt,
        body: &[Stmt],
        state: &mut State,
        enter: &mut dyn FnMut(&mut Self, &State, &mut State),
    ) {
        let barriers = stmt.has_barrier();
        let mut set = Vec::new();
        assigned(body, &mut set);
        let before = state.clone();
        self.nested += u32::from(barriers);
        self.free += u32::from(!barriers);
        if self.nested > NESTED {
            self.too_many = self.too_many.or(Some(stmt.place));
        } else {
            for _ in 0..=u32::from(barriers) {
                for variable in &set {
                    state.variables[variable.0 as usize] = None;
                }
                enter(self, &before, state);
                self.block(body, state);
                state.guards.clone_from(&before.guards);
            }
        }
        self.nested -= u32::from(barriers);
        self.free -= u32::from(!barriers);
        for variable in &set {
            state.variables[variable.0 as usize] = None;
        }
        let skipped = before.open.iter().filter(|access| !state.open.contains(access));
        let skipped: Vec<_> = skipped.copied().collect();
        state.open.extend(skipped);
    }

    /// What is known of the variables that a `while` loop changes: those that only grow by a step,
    /// or only shrink.
    fn count(&mut self, body: &[Stmt], before: &State, condition: &Expr, state: &mut State) {
        let mut set = Vec::new();
        assigned(body, &mut set);
        let mut counted = Vec::new();
        for variable in set {
            let mut updates = Vec::new();
            updates_of(body, variable, &mut updates);
            let (Some(start), [Some(value)]) = (&before.variables[variable.0 as usize], &updates[..]) else {
                continue;
            };
            let ExprKind::Binary(operator, left, right) = &value.kind else { continue };
            if !matches!(left.kind, ExprKind::Variable(found) if found == variable) || !value.ty.is_integer()
            {
                continue;
            }
            let is_literal = |least: i64| matches!(right.kind, ExprKind::Literal(literal) if literal.to_i64().is_some_and(|value| value >= least));
            let interval = self.interval(&start.sum, &before.guards);
            let exact = self.exact(start, value.ty, &before.guards);
            let Some(mut requires) = exact else { continue };
            let is_unsigned = !value.ty.is_signed();
            let shared = self.uniformity.is_uniform(variable) && self.free == 0;
            let (low, high, steps) = match operator {
                Binary::Div | Binary::Shr if is_unsigned && is_literal(0) => {
                    (Some(Number::ZERO), interval.high, None)
                }
                Binary::Add => {
                    self.recording = false;
                    let step = self.value(right, state);
                    self.recording = true;
                    let Some(step) =
                        step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0))
                    else {
                        continue;
                    };
                    counted.push((variable, step.clone(), value.ty));
                    (interval.low, None, Some((start.sum.clone(), step.clone())))
                }
                _ => continue,
            };
            requires.extend(interval.requires);
            let atom = self.fresh(Info { low, high, shared, steps });
            state.variables[variable.0 as usize] = Some(Known { sum: Linear::atom(atom), requires });
        }
        // What grows stays in its type's range only where the condition of the loop stops it.
        for (variable, step, ty) in counted {
            let mut inside = state.clone();
            self.assume(condition, true, &mut inside);
            let Some(known) = &state.variables[variable.0 as usize] else { continue };
            let interval = self.interval(&known.sum, &inside.guards);
            let kept = interval.high.map(|high| {
                let limit = Number::Constant(ty.max().unwrap_or(i64::MAX));
                let mut requires = [known.requires.clone(), interval.requires].concat();
                requires.push(Condition::AtMost(high.add(step), limit));
                Known { sum: known.sum.clone(), requires }
            });
            state.variables[variable.0 as usize] = kept;
        }
    }

    /// The variable of a counting loop.
    fn count_up(&mut self, variable: VarId, ty: Scalar, [start, end, step]: [&Known; 3], state: &mut State) {
        let (first, last) =
            (self.interval(&start.sum, &state.guards), self.interval(&end.sum, &state.guards));
        let exact = (self.exact(start, ty, &state.guards), self.exact(end, ty, &state.guards));
        let (Some(one), Some(two)) = exact else {
            state.variables[variable.0 as usize] = None;
            return;
        };
        let requires = [one, two, first.requires.clone(), last.requires].concat();
        let steps = step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0));
        let steps = steps.filter(|_| step.requires.is_empty()).map(|step| (start.sum.clone(), step.clone()));
        let shared = self.uniformity.is_uniform(variable) && self.free == 0;
        let high = last.high.map(|high| high.sub(Number::ONE));
        let atom = self.fresh(Info { low: first.low, high, shared, steps });
        let sum = Linear::atom(atom);
        let one = Linear::number(Number::ONE);
        state.guards.push(Guard { sum: sum.sub(&start.sum), requires: requires.clone() });
        state.guards.push(Guard { sum: end.sum.sub(&sum).sub(&one), requires: requires.clone() });
        state.variables[variable.0 as usize] = Some(Known { sum, requires });
    }

    fn access(&mut self, array: ArrayId, kind: Kind, index: Known, place: Place, state: &mut State) {
        if !self.recording {
            return;
        }
        let interval = self.interval(&index.sum, &state.guards);
        let len = self.len(array);
        let conditions = interval.low.zip(interval.high).zip(len).map(|((low, high), (len, requires))| {
            let mut all = [index.requires.clone(), interval.requires, requires].concat();
            all.push(Condition::AtMost(Number::ZERO, low));
            all.push(Condition::AtMost(high, len.sub(Number::ONE)));
            unknown(all)
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
        if self.accesses.len() >= ACCESSES {
            self.too_many = self.too_many.or(Some(place));
            return;
        }
        state.open.push(self.accesses.len());
        let Known { sum: index, requires } = index;
        self.accesses.push(Access { array, kind, index, requires, guards: state.guards.clone(), place });
    }

    /// Elements of an array, where the conditions hold.
    fn len(&mut self, array: ArrayId) -> Option<(Number, Vec<Condition>)> {
        let plain = |number| Some((number, Vec::new()));
        match &self.kernel.array(array).space {
            Space::Read | Space::Write | Space::Atomic => plain(Number::Len(array)),
            Space::Constant(len) | Space::Private(len) => plain(Number::Constant(i64::try_from(*len).ok()?)),
            Space::Local(len) => {
                let mut state = State { variables: Vec::new(), guards: Vec::new(), open: Vec::new() };
                let known = self.value(len, &mut state);
                // A length that wraps is another one than the sum says.
                let exact = self.exact(&known, Scalar::U64, &[])?;
                Some((known.sum.as_number().cloned()?, exact))
            }
        }
    }

    /// What is known of an integer; of others nothing is asked. Notes the loads on the way.
    fn value(&mut self, expr: &Expr, state: &mut State) -> Known {
        let plain = |sum| Known { sum, requires: Vec::new() };
        match &expr.kind {
            ExprKind::Literal(literal) => match literal.to_i64() {
                Some(value) => plain(Linear::number(Number::Constant(value))),
                None => self.unknown_of(expr, None, None, Vec::new()),
            },
            ExprKind::Variable(variable) => match &state.variables[variable.0 as usize] {
                Some(known) if expr.ty.is_integer() => known.clone(),
                _ => {
                    let known = self.unknown_of(expr, None, None, Vec::new());
                    state.variables[variable.0 as usize] = Some(known.clone());
                    known
                }
            },
            ExprKind::Value(value) if expr.ty.is_integer() => {
                let number = Number::Value(*value);
                // An unsigned one is never below zero, which its node does not say.
                plain(Linear::number(if expr.ty.is_signed() { number } else { number.max(Number::ZERO) }))
            }
            ExprKind::Len(array) => match self.len(*array) {
                Some((len, requires)) => Known { sum: Linear::number(len), requires },
                None => self.unknown_of(expr, None, None, Vec::new()),
            },
            ExprKind::Query(query, dimension) => {
                let dimension = *dimension;
                plain(match query {
                    Query::GlobalId => Linear::atom(Atom::Global(dimension)),
                    Query::LocalId => Linear::atom(Atom::Local(dimension)),
                    Query::GroupId => Linear::atom(Atom::Group(dimension)),
                    Query::GlobalSize => Linear::number(Number::GlobalSize(dimension)),
                    Query::LocalSize => Linear::number(self.local_size(dimension)),
                    Query::Groups => Linear::number(Number::Groups(dimension)),
                })
            }
            ExprKind::Load(array, index) => {
                let index = self.value(index, state);
                let kind =
                    if self.kernel.array(*array).space == Space::Atomic { Kind::Atomic } else { Kind::Read };
                self.access(*array, kind, index, expr.place, state);
                self.unknown_of(expr, None, None, Vec::new())
            }
            ExprKind::Unary(operator, operand) => {
                let known = self.value(operand, state);
                match operator {
                    Unary::Neg if expr.ty.is_integer() => {
                        Known { sum: known.sum.scale(&Number::Constant(-1)), requires: known.requires }
                    }
                    _ => self.unknown_of(expr, None, None, Vec::new()),
                }
            }
            ExprKind::Binary(operator, left, right) => {
                let one = self.value(left, state);
                let guards = state.guards.len();
                match operator {
                    Binary::AndThen => self.assume(left, true, state),
                    Binary::OrElse => self.assume(left, false, state),
                    _ => {}
                }
                let two = self.value(right, state);
                state.guards.truncate(guards);
                if !expr.ty.is_integer() || !left.ty.is_integer() {
                    return self.unknown_of(expr, None, None, Vec::new());
                }
                self.arithmetic(expr, *operator, (one, left.ty), (two, right.ty), state)
            }
            ExprKind::Cast(operand) => {
                let known = self.value(operand, state);
                if !operand.ty.is_integer() || !expr.ty.is_integer() {
                    return self.unknown_of(expr, None, None, Vec::new());
                }
                if operand.ty.bits() >= expr.ty.bits() {
                    return known;
                }
                match self.exact(&known, operand.ty, &state.guards) {
                    Some(requires) => Known { sum: known.sum, requires },
                    None => {
                        let low = Some(Number::Constant(operand.ty.min()));
                        let high = operand.ty.max().map(Number::Constant);
                        self.unknown_of(expr, low, high, Vec::new())
                    }
                }
            }
            ExprKind::Select(condition, one, two) => {
                let _ = self.value(condition, state);
                let guards = state.guards.len();
                self.assume(condition, true, state);
                let one = self.value(one, state);
                let first = self.interval(&one.sum, &state.guards);
                state.guards.truncate(guards);
                self.assume(condition, false, state);
                let two = self.value(two, state);
                let second = self.interval(&two.sum, &state.guards);
                state.guards.truncate(guards);
                let low = first.low.zip(second.low).map(|(one, two)| one.min(two));
                let high = first.high.zip(second.high).map(|(one, two)| one.max(two));
                let requires = [one.requires, two.requires, first.requires, second.requires].concat();
                self.unknown_of(expr, low, high, requires)
            }
            ExprKind::Math(_, arguments) => {
                for argument in arguments {
                    let _ = self.value(argument, state);
                }
                self.unknown_of(expr, None, None, Vec::new())
            }
            ExprKind::Value(_) => self.unknown_of(expr, None, None, Vec::new()),
        }
    }

    /// A value of which nothing but limits is known.
    fn unknown_of(
        &mut self,
        expr: &Expr,
        low: Option<Number>,
        high: Option<Number>,
        requires: Vec<Condition>,
    ) -> Known {
        let shared = self.uniformity.varies(self.kernel, expr).is_none() && self.free == 0;
        let low = low.or(Some(Number::Constant(expr.ty.min())));
        let high = high.or(expr.ty.max().map(Number::Constant));
        let atom = self.fresh(Info { low, high, shared, steps: None });
        Known { sum: Linear::atom(atom), requires }
    }

    fn arithmetic(
        &mut self,
        expr: &Expr,
        operator: Binary,
        (one, one_ty): (Known, Scalar),
        (two, two_ty): (Known, Scalar),
        state: &State,
    ) -> Known {
        let joined = || [one.requires.clone(), two.requires.clone()].concat();
        let power = |by: &Known| {
            let bits = by.sum.as_number()?.constant()?;
            (0..i64::from(expr.ty.bits()).min(62)).contains(&bits).then(|| Number::Constant(1 << bits))
        };
        match operator {
            Binary::Add => return Known { sum: one.sum.add(&two.sum), requires: joined() },
            Binary::Sub => return Known { sum: one.sum.sub(&two.sum), requires: joined() },
            Binary::Mul => {
                if let Some(by) = two.sum.as_number() {
                    return Known { sum: one.sum.scale(by), requires: joined() };
                }
                if let Some(by) = one.sum.as_number() {
                    return Known { sum: two.sum.scale(by), requires: joined() };
                }
            }
            Binary::Shl => {
                if let Some(by) = power(&two) {
                    return Known { sum: one.sum.scale(&by), requires: joined() };
                }
            }
            _ => {}
        }
        // The rest needs the values themselves, which have not wrapped.
        let exact = (self.exact(&one, one_ty, &state.guards), self.exact(&two, two_ty, &state.guards));
        let (Some(first), Some(second)) = exact else { return self.unknown_of(expr, None, None, Vec::new()) };
        let (left, right) = (self.interval(&one.sum, &state.guards), self.interval(&two.sum, &state.guards));
        let requires = [first, second, left.requires, right.requires].concat();
        let natural =
            |low: &Option<Number>| low.as_ref().and_then(Number::least).is_some_and(|least| least >= 0);
        let positive =
            |low: &Option<Number>| low.as_ref().and_then(Number::least).is_some_and(|least| least >= 1);
        let (low, high) = match operator {
            Binary::Mul if natural(&left.low) && natural(&right.low) => (
                left.low.zip(right.low).map(|(one, two)| one.mul(two)),
                left.high.zip(right.high).map(|(one, two)| one.mul(two)),
            ),
            Binary::Div if natural(&left.low) && natural(&right.low) => {
                if let (Some(value), Some(by)) = (one.sum.as_number(), two.sum.as_number()) {
                    if by.least().is_some_and(|least| least >= 1) {
                        return Known { sum: Linear::number(value.clone().div(by.clone())), requires };
                    }
                }
                let by = if positive(&right.low) { right.low } else { None };
                (Some(Number::ZERO), left.high.map(|high| high.div(by.unwrap_or(Number::ONE))))
            }
            Binary::Shr if natural(&left.low) => {
                if let (Some(value), Some(by)) = (one.sum.as_number(), power(&two)) {
                    return Known { sum: Linear::number(value.clone().div(by)), requires };
                }
                (Some(Number::ZERO), left.high.map(|high| high.div(power(&two).unwrap_or(Number::ONE))))
            }
            Binary::Rem if natural(&left.low) && natural(&right.low) => {
                let below = right.high.map(|high| high.sub(Number::ONE).max(Number::ZERO));
                let high = match (left.high, below) {
                    (Some(one), Some(two)) => Some(one.min(two)),
                    (one, two) => one.or(two),
                };
                (Some(Number::ZERO), high)
            }
            Binary::And if natural(&left.low) || natural(&right.low) => {
                let high = match (natural(&left.low), natural(&right.low)) {
                    (true, true) => match (left.high, right.high) {
                        (Some(one), Some(two)) => Some(one.min(two)),
                        (one, two) => one.or(two),
                    },
                    (true, false) => left.high,
                    _ => right.high,
                };
                (Some(Number::ZERO), high)
            }
            Binary::Min => {
                if let (Some(one), Some(two)) = (one.sum.as_number(), two.sum.as_number()) {
                    return Known { sum: Linear::number(one.clone().min(two.clone())), requires };
                }
                let high = match (left.high, right.high) {
                    (Some(one), Some(two)) => Some(one.min(two)),
                    (one, two) => one.or(two),
                };
                (left.low.zip(right.low).map(|(one, two)| one.min(two)), high)
            }
            Binary::Max => {
                if let (Some(one), Some(two)) = (one.sum.as_number(), two.sum.as_number()) {
                    return Known { sum: Linear::number(one.clone().max(two.clone())), requires };
                }
                let low = match (left.low, right.low) {
                    (Some(one), Some(two)) => Some(one.max(two)),
                    (one, two) => one.or(two),
                };
                (low, left.high.zip(right.high).map(|(one, two)| one.max(two)))
            }
            _ => return self.unknown_of(expr, None, None, Vec::new()),
        };
        self.unknown_of(expr, low, high, requires)
    }

    /// What has to hold so that a value of this type is its sum, not wrapped; nothing where that
    /// cannot be said.
    fn exact(&self, known: &Known, ty: Scalar, guards: &[Guard]) -> Option<Vec<Condition>> {
        let mut requires = known.requires.clone();
        if let ([(_, weight)], Number::Constant(0)) = (&known.sum.terms[..], &known.sum.constant) {
            if *weight == Number::ONE {
                return Some(requires);
            }
        }
        let interval = self.interval(&known.sum, guards);
        requires.extend(interval.requires);
        requires.push(Condition::AtMost(Number::Constant(ty.min()), interval.low?));
        requires.push(Condition::AtMost(interval.high?, Number::Constant(ty.max().unwrap_or(i64::MAX))));
        Some(unknown(requires))
    }

    /// Takes a condition for true, or false: what it says of integers.
    fn assume(&mut self, condition: &Expr, truth: bool, state: &mut State) {
        let recording = core::mem::replace(&mut self.recording, false);
        self.assume_all(condition, truth, state);
        self.recording = recording;
    }

    fn assume_all(&mut self, condition: &Expr, truth: bool, state: &mut State) {
        match &condition.kind {
            ExprKind::Unary(Unary::Not, inner) => self.assume_all(inner, !truth, state),
            ExprKind::Binary(Binary::AndThen | Binary::And, left, right) if truth => {
                self.assume_all(left, true, state);
                self.assume_all(right, true, state);
            }
            ExprKind::Binary(Binary::OrElse | Binary::Or, left, right) if !truth => {
                self.assume_all(left, false, state);
                self.assume_all(right, false, state);
            }
            ExprKind::Binary(operator, left, right) if left.ty.is_integer() && operator.compares() => {
                let (one, two) = (self.value(left, state), self.value(right, state));
                let exact =
                    (self.exact(&one, left.ty, &state.guards), self.exact(&two, left.ty, &state.guards));
                let (Some(first), Some(second)) = exact else { return };
                let requires = [first, second].concat();
                let mut below = |low: &Known, high: &Known, by: i64| {
                    let sum = high.sum.sub(&low.sum).add(&Linear::number(Number::Constant(-by)));
                    state.guards.push(Guard { sum, requires: requires.clone() });
                };
                match (operator, truth) {
                    (Binary::Lt, true) | (Binary::Ge, false) => below(&one, &two, 1),
                    (Binary::Le, true) | (Binary::Gt, false) => below(&one, &two, 0),
                    (Binary::Gt, true) | (Binary::Le, false) => below(&two, &one, 1),
                    (Binary::Ge, true) | (Binary::Lt, false) => below(&two, &one, 0),
                    (Binary::Eq, true) | (Binary::Ne, false) => {
                        below(&one, &two, 0);
                        below(&two, &one, 0);
                    }
                    (Binary::Ne, true) | (Binary::Eq, false) => {
                        // Of unsigned numbers: not zero is above zero.
                        let zero = |known: &Known| known.sum.as_number() == Some(&Number::ZERO);
                        if !left.ty.is_signed() && zero(&two) {
                            below(&two, &one, 1);
                        } else if !left.ty.is_signed() && zero(&one) {
                            below(&one, &two, 1);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Items of a group, which the kernel may say itself.
    pub(super) fn local_size(&self, dimension: u8) -> Number {
        let said = self.kernel.group.as_ref().and_then(|group| group.get(usize::from(dimension)));
        match said.and_then(|size| i64::try_from(*size).ok()) {
            Some(size) if size > 0 => Number::Constant(size),
            _ => Number::LocalSize(dimension),
        }
    }

    /// The values of an atom, whatever the guards say.
    pub(super) fn limits(&self, atom: Atom) -> (Option<Number>, Option<Number>) {
        let below = |size: Number| (Some(Number::ZERO), Some(size.sub(Number::ONE)));
        match atom {
            Atom::Global(dimension) => below(Number::GlobalSize(dimension)),
            Atom::Local(dimension) => below(self.local_size(dimension)),
            Atom::Group(dimension) => below(Number::Groups(dimension)),
            Atom::Other(number, _) => {
                let info = &self.infos[number as usize];
                (info.low.clone(), info.high.clone())
            }
        }
    }

    /// The values of a sum by the limits of its atoms alone.
    fn plain(
        &self,
        sum: &Linear,
        limits: &dyn Fn(Atom) -> (Option<Number>, Option<Number>),
    ) -> [Option<Number>; 2] {
        let mut low = Some(sum.constant.clone());
        let mut high = Some(sum.constant.clone());
        for (atom, weight) in &sum.terms {
            let (least, most) = limits(*atom);
            let times = |end: &Option<Number>| end.clone().map(|end| end.mul(weight.clone()));
            let (one, two) = (times(&least), times(&most));
            let (least, most) = if weight.least().is_some_and(|least| least >= 0) {
                (one, two)
            } else if weight.constant().is_some()
                || weight.clone().neg().least().is_some_and(|least| least >= 0)
            {
                (two, one)
            } else {
                let both = one.zip(two);
                (both.clone().map(|(one, two)| one.min(two)), both.map(|(one, two)| one.max(two)))
            };
            low = low.zip(least).map(|(sum, next)| sum.add(next));
            high = high.zip(most).map(|(sum, next)| sum.add(next));
        }
        [low, high]
    }

    /// The values of a sum where the guards hold.
    pub(super) fn interval(&self, sum: &Linear, guards: &[Guard]) -> Interval {
        let mut requires: Vec<Condition> = Vec::new();
        let mut using = |guard: &Guard| {
            for one in &guard.requires {
                if !requires.contains(one) {
                    requires.push(one.clone());
                }
            }
        };
        let limits = |atom: Atom| self.limits(atom);
        let mut narrowed: Vec<(Atom, Option<Number>, Option<Number>)> = Vec::new();
        for (atom, _) in &sum.terms {
            let (mut least, mut most) = self.limits(*atom);
            for guard in guards {
                let weight = guard.sum.weight(*atom).constant();
                let mut rest = guard.sum.clone();
                rest.terms.retain(|(found, _)| found != atom);
                match weight {
                    // rest - atom >= 0
                    Some(-1) => {
                        if let [_, Some(high)] = self.plain(&rest, &limits) {
                            using(guard);
                            most = Some(match most {
                                Some(most) => most.min(high),
                                None => high,
                            });
                        }
                    }
                    // atom + rest >= 0
                    Some(1) => {
                        if let [_, Some(high)] = self.plain(&rest, &limits) {
                            let low = high.neg();
                            if low.constant().is_some_and(|low| low <= 0) && least.is_some() {
                                continue;
                            }
                            using(guard);
                            least = Some(match least {
                                Some(least) => least.max(low),
                                None => low,
                            });
                        }
                    }
                    _ => {}
                }
            }
            narrowed.push((*atom, least, most));
        }
        let within = |atom: Atom| {
            let found = narrowed.iter().find(|(found, ..)| *found == atom);
            found.map_or_else(|| self.limits(atom), |(_, least, most)| (least.clone(), most.clone()))
        };
        let [mut low, mut high] = self.plain(sum, &within);
        // Guards over several atoms: a sum is at most itself and something that is not negative.
        for guard in guards {
            // As many times the guard as cancels one of its atoms.
            let found = guard.sum.terms.iter().find_map(|(atom, weight)| {
                let (own, weight) =
                    (sum.weight(*atom), weight.constant().filter(|weight| weight.abs() == 1)?);
                (own != Number::ZERO).then_some((own, weight))
            });
            let Some((own, weight)) = found else { continue };
            let (times, is_above) = match (own.constant(), own.least()) {
                (Some(own), _) if own < 0 => (Number::Constant(-own), weight == 1),
                (_, Some(least)) if least >= 0 => (own, weight == -1),
                _ => continue,
            };
            let scaled = guard.sum.scale(&times);
            let (other, open) =
                if is_above { (sum.add(&scaled), high.is_none()) } else { (sum.sub(&scaled), low.is_none()) };
            if other.terms.len() > sum.terms.len() || (other.terms.len() == sum.terms.len() && !open) {
                continue;
            }
            let [least, most] = self.plain(&other, &within);
            if is_above {
                if let Some(found) = most {
                    using(guard);
                    high = Some(match high {
                        Some(high) => high.min(found),
                        None => found,
                    });
                }
            } else if let Some(found) = least {
                using(guard);
                low = Some(match low {
                    Some(low) => low.max(found),
                    None => found,
                });
            }
        }
        Interval { low, high, requires: unknown(requires) }
    }
}

/// The conditions that are not known without a launch.
pub(super) fn unknown(mut conditions: Vec<Condition>) -> Vec<Condition> {
    let mut kept: Vec<Condition> = Vec::new();
    conditions.retain(|one| one.known() != Some(true));
    for one in conditions {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// The variables that a block sets.
fn assigned(body: &[Stmt], set: &mut Vec<VarId>) {
    for stmt in body {
        if let Some(variable) = stmt.sets() {
            if !set.contains(&variable) {
                set.push(variable);
            }
        }
        for block in stmt.blocks() {
            assigned(block, set);
        }
    }
}

/// What a block sets a variable to; nothing where it does otherwise than by a value.
fn updates_of<'s>(body: &'s [Stmt], variable: VarId, updates: &mut Vec<Option<&'s Expr>>) {
    for stmt in body {
        if stmt.sets() == Some(variable) {
            updates.push(match &stmt.kind {
                StmtKind::Set(_, value) => Some(value),
                _ => None,
            });
        }
        for block in stmt.blocks() {
            updates_of(block, variable, updates);
        }
    }
}
