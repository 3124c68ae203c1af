//! Facts about the variables of loops.

use alloc::vec::Vec;

use super::{Guard, Info, Jumps, Known, NESTED, State, Walker, add_to, assigned};
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId};
use crate::operator::Binary;
use crate::proof::claim::Condition;
use crate::proof::linear::Linear;
use crate::proof::number::Number;
use crate::scalar::Scalar;

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
        assigned(body, &mut set);
        let before = state.clone();
        let mut heads = Vec::new();
        self.jumps.push(Jumps::default());
        self.nested += u32::from(barriers);
        self.free += u32::from(!barriers);
        if self.nested > NESTED {
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
        self.nested -= u32::from(barriers);
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
    /// only shrink.
    pub(super) fn count(&mut self, body: &[Stmt], before: &State, condition: &Expr, state: &mut State) {
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
                    let Some(exact) = self.exact(&step, value.ty, &state.guards) else { continue };
                    let Some(step) =
                        step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0))
                    else {
                        continue;
                    };
                    requires.extend(exact);
                    counted.push((variable, step.clone(), value.ty));
                    (interval.low, None, Some((start.sum.clone(), step.clone())))
                }
                _ => continue,
            };
            requires.extend(interval.requires);
            let atom = self.fresh(Info { ty: Some(value.ty), low, high, shared, steps });
            state.variables[variable.0 as usize] = Some(Known { sum: Linear::atom(atom), requires });
        }
        // A growing variable stays in its type's range only if the loop's condition stops it.
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

    /// Facts about the variable of a counting loop.
    pub(super) fn count_up(
        &mut self,
        variable: VarId,
        ty: Scalar,
        [start, end, step]: [&Known; 3],
        state: &mut State,
    ) {
        let (first, last) =
            (self.interval(&start.sum, &state.guards), self.interval(&end.sum, &state.guards));
        let exact = (self.exact(start, ty, &state.guards), self.exact(end, ty, &state.guards));
        let (Some(one), Some(two)) = exact else {
            state.variables[variable.0 as usize] = None;
            return;
        };
        let mut requires = [one, two, first.requires.clone(), last.requires].concat();
        let number = step.sum.as_number().filter(|step| step.least().is_some_and(|least| least > 0));
        let number = number.filter(|_| step.requires.is_empty());
        let steps = number.zip(self.exact(step, ty, &state.guards)).map(|(number, exact)| {
            requires.extend(exact);
            (start.sum.clone(), number.clone())
        });
        let shared = self.uniformity.is_uniform(variable) && self.free == 0;
        let high = last.high.map(|high| high.sub(Number::ONE));
        let atom = self.fresh(Info { ty: Some(ty), low: first.low, high, shared, steps });
        let sum = Linear::atom(atom);
        let one = Linear::number(Number::ONE);
        state.guards.push(Guard { sum: sum.sub(&start.sum), requires: requires.clone() });
        state.guards.push(Guard { sum: end.sum.sub(&sum).sub(&one), requires: requires.clone() });
        state.variables[variable.0 as usize] = Some(Known { sum, requires });
    }
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
        if matches!(stmt.kind, StmtKind::While(..) | StmtKind::For(..)) {
            updates[before..].fill(None);
        }
    }
}
