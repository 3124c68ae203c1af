//! Facts about the variables of loops.

use alloc::vec::Vec;

use super::{Facts, Guard, Info, Jumps, NESTED, NODES, Needs, State, Walker, add_to, find_assigned};
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId};
use crate::operator::Binary;
use crate::proof::claim::Condition;
use crate::proof::linear::{Atom, Linear};
use crate::proof::number::Number;
use crate::scalar::Scalar;

/// A variable that only grows in a loop, or only shrinks: a start and steps.
struct Counter {
    variable: VarId,
    ty: Scalar,
    /// Its value at the begin of a round, as long as it has not wrapped.
    atom: Atom,
    step: Number,
    /// The least value of the start, if it shrinks.
    shrinks_from: Option<Option<Number>>,
    /// What the start and the step rest on.
    needs: Needs,
}

impl Walker<'_> {
    /// Walks the rounds of a loop; `enter` adds the facts about its variables. A loop with barriers
    /// is walked twice, so that accesses behind its last barrier meet those before the first.
    pub(super) fn rounds(
        &mut self,
        stmt: &Stmt,
        body: &[Stmt],
        state: &mut State,
        enter: &mut dyn FnMut(&mut Self, &State, &mut State),
    ) {
        let barriers = stmt.has_barrier();
        let mut set = Vec::new();
        find_assigned(body, &mut set);
        let before = state.clone();
        let mut heads = Vec::new();
        self.jumps.push(Jumps::default());
        self.depth += u32::from(barriers);
        self.free += u32::from(!barriers);
        if self.depth > NESTED {
            self.too_many = self.too_many.or(Some(stmt.place));
        } else {
            for time in 0..=u32::from(barriers) {
                self.again += time;
                for variable in &set {
                    state.variables[variable.0 as usize] = None;
                }
                let head = self.accesses.len();
                enter(self, &before, state);
                // The last test of the condition is followed by the statements behind the loop.
                heads = (head..self.accesses.len()).collect();
                self.block(body, state);
                if let Some(jumps) = self.jumps.last() {
                    add_to(&mut state.open, &jumps.continues);
                }
                state.guards.clone_from(&before.guards);
                self.again -= time;
            }
        }
        self.depth -= u32::from(barriers);
        self.free -= u32::from(!barriers);
        for variable in &set {
            state.variables[variable.0 as usize] = None;
        }
        let jumps = self.jumps.pop().unwrap_or_default();
        for more in [&before.open, &jumps.breaks, &heads] {
            add_to(&mut state.open, more);
        }
    }

    /// Facts about the variables that a `while` loop changes: those that only grow by a step, or
    /// only shrink. Returns what is known of those that shrink behind the loop, if nothing but its
    /// condition ends it.
    ///
    /// Such a variable stays in its type's range only if the loop's condition stops it, and the
    /// bound that follows from the condition may rest on others. All are assumed
    /// not to wrap, each bound remembers which of these assumptions it uses, and a variable's facts
    /// need the conditions of all that its bound uses, directly or through others. This suffices,
    /// by induction over the rounds: let a set of variables contain with each one those that its
    /// bound uses, and let their conditions hold. Where a round begins with all of them unwrapped
    /// and the condition is true, each bound holds, so no step of this round wraps; each variable
    /// has one step in a round at most. The first round begins with their starts, which are exact.
    ///
    /// So what shrinks is never below the least value of its start, or below a step less than the
    /// bound: each later round begins with what a step of a round with a true condition left.
    pub(super) fn count(
        &mut self,
        body: &[Stmt],
        before: &State,
        condition: &Expr,
        state: &mut State,
    ) -> Vec<(VarId, Facts)> {
        let mut counters = self.find_changing(body, before, state);
        let mut bounds: Vec<Option<(Number, Needs)>> = Vec::new();
        while !counters.is_empty() {
            let mut inside = state.clone();
            for (number, one) in counters.iter().enumerate() {
                let needs = one.needs.clone().and(&Needs::counter(number));
                let facts = Facts { sum: Linear::atom(one.atom), needs };
                inside.variables[one.variable.0 as usize] = Some(facts);
            }
            self.assume(condition, true, &mut inside);
            bounds = counters.iter().map(|one| self.bound_of(one, &inside.guards)).collect();
            let has_none = |number: &usize| bounds[*number].is_none();
            let is_lost = |(_, bound): &(Number, Needs)| {
                (0..counters.len()).filter(has_none).any(|one| bound.assumes(one))
            };
            if !bounds.iter().flatten().any(is_lost) {
                break;
            }
            // Without the lost ones the others may have other bounds.
            let mut flags = bounds.iter().map(Option::is_some);
            counters.retain(|_| flags.next().unwrap_or(false));
        }
        let mut behind = Vec::new();
        for (number, one) in counters.iter().enumerate() {
            let (mut needs, mut count) = (Needs::counter(number), 0);
            while let Some(next) =
                (0..counters.len()).find(|next| needs.assumes(*next) && count >> next & 1 == 0)
            {
                count |= 1_u64 << next;
                needs.add_new(&counters[next].needs);
                if let Some((_, bound)) = &bounds[next] {
                    needs.add_new(bound);
                }
            }
            let Some((end, _)) = &bounds[number] else { continue };
            let needs = needs.without_assumptions();
            if let (Some(start), Atom::Other(atom, _)) = (&one.shrinks_from, one.atom) {
                let low = start.clone().map(|start| start.min(end.clone()));
                let is_short = |low: &Number| low.counts(&mut NODES.clone());
                self.infos[atom as usize].low = low.filter(is_short);
                if !is_left(body) {
                    let sum = Linear::atom(self.fresh(self.infos[atom as usize].clone()));
                    behind.push((one.variable, Facts { sum, needs: needs.clone() }));
                }
            }
            let facts = Facts { sum: Linear::atom(one.atom), needs };
            state.variables[one.variable.0 as usize] = Some(facts);
        }
        behind
    }

    /// What a step of a round with a true condition leaves of a counter at most, or at least if it
    /// shrinks, and what this and that the step does not wrap rest on; `None` if nothing bounds it.
    fn bound_of(&self, one: &Counter, guards: &[Guard]) -> Option<(Number, Needs)> {
        let mut needs = Needs::none();
        let [low, high] = self.interval(&Linear::atom(one.atom), guards).ends(&mut needs);
        let end = match one.shrinks_from {
            Some(_) => {
                let end = low?.sub(one.step.clone());
                needs.push(Condition::AtMost(Number::Constant(one.ty.min()), end.clone()));
                end
            }
            None => {
                let end = high?.add(one.step.clone());
                let limit = Number::Constant(one.ty.max().unwrap_or(i64::MAX));
                needs.push(Condition::AtMost(end.clone(), limit));
                end
            }
        };
        (!needs.is_impossible()).then_some((end, needs))
    }

    /// Sets the variables that quotients make smaller to what is known of them, and returns those
    /// that only grow or only shrink by a step that is the same in all rounds.
    fn find_changing(&mut self, body: &[Stmt], before: &State, state: &mut State) -> Vec<Counter> {
        let mut set = Vec::new();
        find_assigned(body, &mut set);
        let mut counters = Vec::new();
        let mut countdowns = Vec::new();
        for variable in set {
            let mut updates = Vec::new();
            updates_of(body, variable, &mut updates);
            let (Some(start), [Some(value)]) = (&before.variables[variable.0 as usize], &updates[..]) else {
                continue;
            };
            let ExprKind::Binary { operator, left, right } = &value.kind else { continue };
            if !matches!(left.kind, ExprKind::Variable(found) if found == variable) || !value.ty.is_integer()
            {
                continue;
            }
            let is_literal = |least: i64| matches!(right.kind, ExprKind::Literal(literal) if literal.to_i64().is_some_and(|value| value >= least));
            let exact = self.exact(start, value.ty, &before.guards);
            let Some(mut needs) = exact else { continue };
            let interval = self.interval(&start.sum, &before.guards);
            let is_unsigned = !value.ty.is_signed();
            let shared = self.uniformity.is_uniform(variable) && self.free == 0;
            let info = |low, high, steps| Info { ty: Some(value.ty), low, high, shared, steps };
            match operator {
                Binary::Div | Binary::Shr if is_unsigned && is_literal(0) => {
                    let [_, high] = interval.ends(&mut needs);
                    let atom = self.fresh(info(Some(Number::ZERO), high, None));
                    countdowns.push((variable, Facts { sum: Linear::atom(atom), needs }));
                }
                Binary::Add | Binary::Sub if counters.len() < Needs::COUNTERS => {
                    self.recording = false;
                    let step = self.value(right, state);
                    self.recording = true;
                    let Some(exact) = self.exact(&step, value.ty, &state.guards) else { continue };
                    let Some(step) =
                        step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0))
                    else {
                        continue;
                    };
                    needs.add(&exact);
                    let [low, high] = interval.ends(&mut needs);
                    let (atom, shrinks_from) = match operator {
                        Binary::Sub => (self.fresh(info(None, high, None)), Some(low)),
                        _ => (self.fresh(info(low, None, Some((start.sum.clone(), step.clone())))), None),
                    };
                    let (ty, step) = (value.ty, step.clone());
                    counters.push(Counter { variable, ty, atom, step, shrinks_from, needs });
                }
                _ => {}
            }
        }
        for (variable, facts) in countdowns {
            state.variables[variable.0 as usize] = Some(facts);
        }
        counters
    }

    /// Facts about the variable of a counting loop.
    pub(super) fn count_up(
        &mut self,
        variable: VarId,
        ty: Scalar,
        [start, end, step]: [&Facts; 3],
        state: &mut State,
    ) {
        let (first, last) =
            (self.interval(&start.sum, &state.guards), self.interval(&end.sum, &state.guards));
        let exact = (self.exact(start, ty, &state.guards), self.exact(end, ty, &state.guards));
        let (Some(one), Some(two)) = exact else {
            state.variables[variable.0 as usize] = None;
            return;
        };
        let mut needs = one.and(&two);
        let [low, _] = first.ends(&mut needs);
        let [_, high] = last.ends(&mut needs);
        let number = step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0));
        let number = number.filter(|_| step.needs.is_empty());
        let steps = number.zip(self.exact(step, ty, &state.guards)).map(|(number, exact)| {
            needs.add(&exact);
            (start.sum.clone(), number.clone())
        });
        let shared = self.uniformity.is_uniform(variable) && self.free == 0;
        let high = high.map(|high| high.sub(Number::ONE));
        let atom = self.fresh(Info { ty: Some(ty), low, high, shared, steps });
        let sum = Linear::atom(atom);
        let one = Linear::number(Number::ONE);
        state.guards.push(Guard { sum: sum.sub(&start.sum), needs: needs.clone() });
        state.guards.push(Guard { sum: end.sum.sub(&sum).sub(&one), needs: needs.clone() });
        state.variables[variable.0 as usize] = Some(Facts { sum, needs });
    }
}

/// Whether a `break` leaves the loop with this body.
fn is_left(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt.kind {
        StmtKind::Break => true,
        StmtKind::While(..) | StmtKind::For { .. } => false,
        _ => stmt.blocks().into_iter().any(is_left),
    })
}

/// The values that the body of a loop sets a variable to; `None` if it changes in another way, or
/// perhaps more than once in a round.
fn updates_of<'s>(body: &'s [Stmt], variable: VarId, updates: &mut Vec<Option<&'s Expr>>) {
    for stmt in body {
        if stmt.sets() == Some(variable) {
            updates.push(match &stmt.kind {
                StmtKind::Set(_, value) => Some(value),
                _ => None,
            });
        }
        let before = updates.len();
        for block in stmt.blocks() {
            updates_of(block, variable, updates);
        }
        if matches!(stmt.kind, StmtKind::While(..) | StmtKind::For { .. }) {
            updates[before..].fill(None);
        }
    }
}
