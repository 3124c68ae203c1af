//! Loops that items leave alone or together, and counters that several loops have.

use usm_kernel_ir::{Binary, Expr, Literal, Scalar, Stmt, StmtKind, VarId};

use super::Generator;

impl Generator {
    /// Leaves the innermost loop or its iteration, under a condition.
    pub(super) fn jump(&mut self, condition: Expr, body: &mut Vec<Stmt>) {
        let way = self.random.percent(50);
        let leave = self.stmt(if way { StmtKind::Break } else { StmtKind::Continue });
        body.push(self.stmt(StmtKind::If { condition, then: vec![leave], other: Vec::new() }));
    }

    /// A statement of programs that have many loops and jumps.
    pub(super) fn loop_or_jump(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        match (self.random.below(13), self.loops.last()) {
            (0..=2, _) if depth > 0 => self.count(depth, body),
            (3, _) if depth > 0 => self.repeat(depth, body),
            (4 | 5, _) if depth > 0 && !self.divergent => self.repeat_together(depth, body),
            (6, _) if !self.divergent => {
                body.push(self.stmt(StmtKind::Barrier { local: true, global: true }));
            }
            (7, _) => self.set_ended(body),
            (10..=12, _) => self.set_common(body),
            (8 | 9, Some(true)) => {
                // At one item, or at many.
                let condition = match self.random.percent(70) {
                    true => self.at_one_item(),
                    false => self.expr(Scalar::Bool, 2),
                };
                self.jump(condition, body);
            }
            // Items that read local memory in another state would have to wait first.
            (8 | 9, Some(false)) if !self.divergent && self.states.is_empty() => {
                let condition = self.uniform();
                self.jump(condition, body);
            }
            _ => {}
        }
    }

    /// Whether a counter that the item knows has the number of the item in its group.
    fn at_one_item(&mut self) -> Expr {
        let place = self.place();
        let active: Vec<VarId> =
            self.counters.iter().copied().filter(|one| self.known.contains(one)).collect();
        let one = *self.random.pick(&active);
        let (counter, item) = (self.of(one).cast(Scalar::U64, place), self.of(self.local));
        let three = self.number(3);
        let item = Expr::binary(Binary::Rem, item, three, place);
        Expr::binary(*self.random.pick(&[Binary::Eq, Binary::Eq, Binary::Gt]), counter, item, place)
    }

    /// Sometimes the counter of a loop that ended, for another one.
    pub(super) fn ended_counter(&mut self) -> Option<VarId> {
        let ended = self.ended.as_ref()?;
        if ended.is_empty() || self.random.percent(30) {
            return None;
        }
        let place = self.random.below(ended.len() as u64) as usize;
        self.ended.as_mut().map(|ended| ended.swap_remove(place))
    }

    /// Notes the end of a counter's loop.
    pub(super) fn end(&mut self, counter: VarId) {
        if let Some(ended) = &mut self.ended {
            ended.push(counter);
        }
    }

    /// Makes a variable of the counter of a loop that ended.
    fn set_ended(&mut self, body: &mut Vec<Stmt>) {
        let Some(variable) = self.ended_counter() else { return };
        let value = self.expr(self.kernel.variable(variable).ty, 2);
        let value = self.tame(value);
        body.push(self.stmt(StmtKind::Set(variable, value)));
        self.known.push(variable);
        self.counters.retain(|counter| *counter != variable);
    }

    /// Sets a variable to a number that all items have in common, if they come here.
    fn set_common(&mut self, body: &mut Vec<Stmt>) {
        let place = self.place();
        let mut sources: Vec<VarId> = self.counters.clone();
        sources.retain(|one| self.known.contains(one) && ![self.item, self.local].contains(one));
        let value = match sources.is_empty() || self.random.percent(30) {
            true => self.number(self.line.into()),
            false => {
                let source = *self.random.pick(&sources);
                self.of(source).cast(Scalar::U64, place)
            }
        };
        let mut open = self.known.clone();
        open.retain(|one| !self.counters.contains(one) && self.kernel.variable(*one).ty == Scalar::U64);
        let variable = if open.is_empty() || self.random.percent(30) {
            let variable = self.variable("common", Scalar::U64);
            self.known.push(variable);
            variable
        } else {
            *self.random.pick(&open)
        };
        body.push(self.stmt(StmtKind::Set(variable, value)));
    }

    /// The end of an iteration of the group, which items leave out alone: no barrier follows.
    pub(super) fn rest_of_iteration(&mut self, body: &mut Vec<Stmt>) {
        if self.ended.is_none() || !self.states.is_empty() || self.random.percent(40) {
            return;
        }
        let (known, was) = (self.known.len(), core::mem::replace(&mut self.divergent, true));
        let (condition, leave) = (self.at_one_item(), self.stmt(StmtKind::Continue));
        let mut inner = Vec::new();
        inner.push(self.stmt(StmtKind::If { condition, then: vec![leave], other: Vec::new() }));
        self.block(2, 0, &mut inner);
        self.known.truncate(known);
        if self.random.percent(50) {
            let condition = self.uniform();
            body.push(self.stmt(StmtKind::If { condition, then: inner, other: Vec::new() }));
        } else {
            body.append(&mut inner);
        }
        self.block(2, 0, body);
        self.known.truncate(known);
        self.divergent = was;
    }

    /// A loop of the whole group with a condition.
    fn repeat_together(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        let place = self.place();
        let counter = self.variable("together", Scalar::U32);
        let literal = |value: u64| Expr::literal(Literal::integer(Scalar::U32, value), place);
        body.push(self.stmt(StmtKind::Set(counter, literal(0))));
        self.rest(body);
        let more = Expr::binary(Binary::Lt, self.of(counter), literal(self.random.from(1, 4)), place);
        let condition = match self.random.percent(30) {
            true => Expr::binary(Binary::AndThen, more, self.uniform(), place),
            false => more,
        };
        self.counters.push(counter);
        self.known.push(counter);
        let next = Expr::binary(Binary::Add, self.of(counter), literal(1), place);
        let mut inner = vec![self.stmt(StmtKind::Set(counter, next))];
        self.loops.push(false);
        let (count, entry) = (self.random.from(1, 3), self.states.clone());
        inner.extend(self.inside(false, count, depth));
        self.back_to(&entry, &mut inner);
        self.rest_of_iteration(&mut inner);
        self.loops.pop();
        body.push(self.stmt(StmtKind::While(condition, inner)));
    }
}
