//! Loops: round by round where all bounds are known, otherwise once for all rounds.

use alloc::rc::Rc;

use super::state::State;
use super::value::Word;
use super::{BUDGET, Walker};
use crate::interpret::{is_less, next_of_loop};
use crate::kernel::{Expr, Stmt, StmtKind, VarId, for_each};

/// Maximum number of rounds that are walked one by one.
const ROUNDS: usize = 4096;

impl Walker<'_> {
    /// A round of a loop that may run any number of times. What it writes may not happen; what was
    /// written before its first round was written before each.
    fn round(&mut self, condition: Option<&Expr>, body: &[Stmt], variable: Option<VarId>, state: &mut State) {
        let mut set: alloc::vec::Vec<VarId> = variable.into_iter().collect();
        for_each(body, &mut |stmt| set.extend(stmt.sets()), &mut |_| ());
        set.into_iter().for_each(|variable| state.set(variable, Word::Unknown, None));
        self.spend((state.size() * self.items()) as u64);
        let mut inside = state.clone();
        if let Some(condition) = condition {
            let mask = Rc::clone(&state.mask);
            let word = self.value(condition, state, &mask);
            inside.mask = super::value::narrow(&mask, &word, 1);
        }
        self.block(body, &mut inside);
    }

    pub(super) fn repeat(&mut self, condition: &Expr, body: &[Stmt], state: &mut State) {
        self.round(Some(condition), body, None, state);
    }

    pub(super) fn count(&mut self, variable: VarId, bounds: [&Expr; 3], body: &[Stmt], state: &mut State) {
        let mask = Rc::clone(&state.mask);
        let [start, end, step] = bounds.map(|bound| self.value(bound, state, &mask));
        let covers = self.covers(variable, bounds, body, state);
        let is_known = |word: &Word| {
            mask.iter().enumerate().all(|(item, is_active)| !is_active || word.at(item).is_some())
        };
        let counts = [&start, &end, &step].into_iter().all(is_known) && !jumps(body);
        if !(counts && self.rounds(variable, [start, end, step], body, state)) {
            self.round(None, body, Some(variable), state);
        }
        for cover in covers {
            let full = &mut state.full[cover.array];
            full.own |= cover.own;
            full.part = true;
        }
    }

    /// Walks a loop round by round; false if rounds are left.
    fn rounds(
        &mut self,
        variable: VarId,
        [start, end, step]: [Word; 3],
        body: &[Stmt],
        state: &mut State,
    ) -> bool {
        let ty = self.kernel.variable(variable).ty;
        let all = Rc::clone(&state.mask);
        let mut at = start;
        for _ in 0..ROUNDS {
            let goes_on = |item: usize, is_active: bool| match (at.at(item), end.at(item)) {
                (Some(at), Some(end)) => is_active && is_less(ty, at, end),
                _ => false,
            };
            let mask: Rc<[bool]> =
                all.iter().enumerate().map(|(item, is_active)| goes_on(item, *is_active)).collect();
            if !mask.contains(&true) {
                state.mask = all;
                return true;
            }
            if self.left < BUDGET / 2 {
                break;
            }
            state.mask = Rc::clone(&mask);
            state.set(variable, at.clone(), None);
            self.block(body, state);
            at = Word::each(&mask, |item, is_active| {
                let (at, end, step) = (at.at(item)?, end.at(item)?, step.at(item)?);
                is_active.then(|| next_of_loop(ty, at, end, step)).flatten()
            });
        }
        state.mask = all;
        false
    }
}

/// Whether a loop's body may leave a round before its end, or the kernel.
pub(super) fn jumps(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return => true,
        StmtKind::If { then, other, .. } => jumps(then) || jumps(other),
        StmtKind::While(_, body) | StmtKind::For { body, .. } => returns(body),
        _ => false,
    })
}

fn returns(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Return) || stmt.blocks().into_iter().any(returns))
}
