//! Random statements.

use usm_kernel_ir::{
    ArrayId, Binary, Collection, Expr, ExprKind, Literal, Parameter, Query, Scalar, Space, Stmt, StmtKind,
    VarId,
};

use super::{Generator, State, computed};

/// Depth of the expressions in statements.
const DEPTH: u32 = 3;

impl Generator {
    pub(super) fn stmt(&mut self, kind: StmtKind) -> Stmt {
        let place = self.place();
        Stmt::new(kind, place)
    }

    /// The linear number of an id, from the sizes of its dimensions.
    fn linear(&mut self, id: Query, size: Query) -> Expr {
        let place = self.place();
        let mut linear = Expr::query(id, 0, place);
        for dimension in 1..self.kernel.dimensions {
            let size = Expr::query(size, dimension, place);
            linear = Expr::binary(Binary::Mul, linear, size, place);
            linear = Expr::binary(Binary::Add, linear, Expr::query(id, dimension, place), place);
        }
        linear
    }

    pub(super) fn body(&mut self) {
        let mut body = Vec::new();
        self.item = self.variable("i", Scalar::U64);
        self.local = self.variable("l", Scalar::U64);
        for (variable, id, size) in
            [(self.item, Query::GlobalId, Query::GlobalSize), (self.local, Query::LocalId, Query::LocalSize)]
        {
            let linear = self.linear(id, size);
            body.push(self.stmt(StmtKind::Set(variable, linear)));
            self.known.push(variable);
            self.counters.push(variable);
        }
        if self.random.percent(30) {
            self.private(&mut body);
        }
        for place in 0..self.states.len() {
            let id = self.states[place].0;
            self.store_own(id, &mut body);
            self.states[place].1 = State::Own;
        }
        if !self.states.is_empty() {
            self.wait(&mut body);
        }
        let count = self.random.from(3, 8);
        self.block(count, 2, &mut body);
        // Writes the computed values to memory, so that the comparison sees them.
        self.gather(&mut body);
        let parameters = self.kernel.parameters.clone();
        for parameter in parameters {
            let Parameter::Array(id) = parameter else { continue };
            if self.kernel.array(id).space == Space::Write {
                self.store_own(id, &mut body);
            }
        }
        self.kernel.body = body;
    }

    /// Combines all variables into one number and writes it to the arrays.
    fn gather(&mut self, body: &mut Vec<Stmt>) {
        let place = self.place();
        let sum = self.variable("sum", Scalar::U64);
        let mut all = self.number(0);
        for variable in self.known.clone() {
            let (value, factor) = (self.of(variable), self.number(31));
            all = Expr::binary(Binary::Mul, all, factor, place);
            all = Expr::binary(Binary::Add, all, value.cast(Scalar::U64, place), place);
        }
        body.push(self.stmt(StmtKind::Set(sum, all)));
        self.known = vec![self.item, self.local, sum];
    }

    /// A private array of the item, which the item fills.
    fn private(&mut self, body: &mut Vec<Stmt>) {
        let (element, len) = (*self.random.pick(&Scalar::ALL), self.random.from(1, 5));
        let counter = self.variable("k", Scalar::U64);
        let value = self.for_element(element, 1);
        let array = self.array("private", element, Space::Private(len));
        let index = self.of(counter);
        let store = self.stmt(StmtKind::Store { array, index, value });
        let (start, end, step) = (self.number(0), self.number(len), self.number(1));
        body.push(self.stmt(StmtKind::For { variable: counter, start, end, step, body: vec![store] }));
    }

    pub(super) fn block(&mut self, count: u64, depth: u32, body: &mut Vec<Stmt>) {
        for _ in 0..count {
            self.one(depth, body);
        }
    }

    fn one(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        if self.ended.is_some() && self.random.percent(50) {
            self.loop_or_jump(depth, body);
            return;
        }
        match self.random.below(16) {
            0..=3 => self.set(body),
            4 | 5 => self.store(body),
            6 | 7 => self.change(body),
            8 if depth > 0 => self.branch(depth, body),
            9 | 10 if depth > 0 => self.count(depth, body),
            11 if depth > 0 => self.repeat(depth, body),
            12 | 13 if self.barriers && !self.divergent => self.wait(body),
            14 if self.barriers && !self.divergent => self.collect(body),
            15 if self.loops.last() == Some(&true) => {
                let condition = self.expr(Scalar::Bool, 2);
                self.jump(condition, body);
            }
            _ => self.leave(body),
        }
    }

    fn set(&mut self, body: &mut Vec<Stmt>) {
        let open: Vec<VarId> =
            self.known.iter().copied().filter(|known| !self.counters.contains(known)).collect();
        let (variable, is_new) = if open.is_empty() || self.random.percent(50) {
            let ty = self.scalar();
            (self.variable("long", ty), true)
        } else {
            (*self.random.pick(&open), false)
        };
        let value = self.expr(self.kernel.variable(variable).ty, DEPTH);
        let value = self.tame(value);
        body.push(self.stmt(StmtKind::Set(variable, value)));
        if is_new {
            self.known.push(variable);
        }
    }

    fn store_own(&mut self, array: ArrayId, body: &mut Vec<Stmt>) {
        let found = self.kernel.array(array);
        let is_local = matches!(found.space, Space::Local(_));
        let value = self.for_element(found.element, DEPTH);
        let index = self.of(if is_local { self.local } else { self.item });
        body.push(self.stmt(StmtKind::Store { array, index, value }));
    }

    /// A value for an element of this type.
    fn for_element(&mut self, element: Scalar, depth: u32) -> Expr {
        let value = self.expr(computed(element), depth);
        let (value, place) = (self.tame(value), self.place());
        if element.is_half() { value.cast(element, place) } else { value }
    }

    fn store(&mut self, body: &mut Vec<Stmt>) {
        let id = ArrayId(self.random.below(self.kernel.arrays.len() as u64) as u32);
        match self.kernel.array(id).space {
            Space::Write => self.store_own(id, body),
            Space::Local(_) => {
                let state = self.states.iter().position(|(found, _)| *found == id);
                let Some(place) = state else { return };
                match self.states[place].1 {
                    State::Own => self.store_own(id, body),
                    // All items reach this barrier.
                    State::Fresh if !self.divergent => {
                        self.store_own(id, body);
                        self.states[place].1 = State::Own;
                    }
                    _ => {}
                }
            }
            Space::Private(len) => {
                let value = self.for_element(self.kernel.array(id).element, DEPTH);
                let index = self.index(len);
                body.push(self.stmt(StmtKind::Store { array: id, index, value }));
            }
            _ => {}
        }
    }

    /// An atomic operation on global or local memory.
    fn change(&mut self, body: &mut Vec<Stmt>) {
        let mut all = self.atomics.iter().map(|(id, operation)| (*id, *operation, 3)).collect::<Vec<_>>();
        for (id, state) in &self.states {
            if let State::Atomic(operation) = state {
                all.push((*id, *operation, self.group));
            }
        }
        if all.is_empty() {
            return;
        }
        let (array, operation, len) = *self.random.pick(&all);
        let value = self.expr(self.kernel.array(array).element, 2);
        let (mut value, index) = (self.tame(value), self.index(len));
        if value.ty.is_float() {
            // Keeps the sum over all items exact.
            let (ty, place) = (value.ty, self.place());
            let eight = if ty == Scalar::F32 { Literal::f32(8.0) } else { Literal::f64(8.0) };
            value = Expr::binary(Binary::Rem, value, Expr::literal(eight, place), place);
        }
        // The old value that an item gets depends on the order, so the program does not use it.
        let old = self.random.percent(30).then(|| self.variable("old", value.ty));
        body.push(self.stmt(StmtKind::Atomic { operation, array, index, value, old }));
    }

    /// Generates a part that only some items may run, and restores the state after it.
    pub(super) fn inside(&mut self, divergent: bool, count: u64, depth: u32) -> Vec<Stmt> {
        let (known, was) = (self.known.len(), self.divergent);
        self.divergent |= divergent;
        let mut body = Vec::new();
        self.block(count, depth - 1, &mut body);
        self.divergent = was;
        self.known.truncate(known);
        body
    }

    /// A condition with the same result for all items of a group.
    pub(super) fn uniform(&mut self) -> Expr {
        let place = self.place();
        let values = self.kernel.values.len() as u64;
        if values > 0 && self.random.percent(60) {
            let id = usm_kernel_ir::ValueId(self.random.below(values) as u32);
            let ty = self.kernel.value(id).ty;
            let value = Expr { kind: ExprKind::Value(id), ty, place };
            if ty == Scalar::Bool {
                return value;
            }
            let other = Expr::literal(self.literal(ty), place);
            return Expr::binary(
                *self.random.pick(&[Binary::Lt, Binary::Ge, Binary::Ne]),
                value,
                other,
                place,
            );
        }
        let group = Expr::query(*self.random.pick(&[Query::GroupId, Query::Groups]), 0, place);
        let other = self.random.below(3);
        let other = self.number(other);
        Expr::binary(*self.random.pick(&[Binary::Lt, Binary::Eq]), group, other, place)
    }

    fn branch(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        let uniform = !self.divergent && self.random.percent(30);
        let condition = if uniform { self.uniform() } else { self.expr(Scalar::Bool, 2) };
        let count = self.random.from(1, 3);
        let before = self.states.clone();
        let then = self.inside(!uniform, count, depth);
        let after = core::mem::replace(&mut self.states, before);
        let other = if self.random.percent(50) { self.inside(!uniform, count, depth) } else { Vec::new() };
        self.join(&after);
        body.push(self.stmt(StmtKind::If { condition, then, other }));
        self.add_barrier_if_fresh(body);
    }

    /// If two branches leave an array in different states, it counts as unwritten.
    fn join(&mut self, other: &[(ArrayId, State)]) {
        for (mine, theirs) in self.states.iter_mut().zip(other) {
            if mine.1 != theirs.1 {
                mine.1 = State::Fresh;
            }
        }
    }

    /// A barrier must come before the next write, because other items may still read the array.
    fn add_barrier_if_fresh(&mut self, body: &mut Vec<Stmt>) {
        if self.barriers && !self.divergent && self.states.iter().any(|(_, state)| *state == State::Fresh) {
            body.push(self.stmt(StmtKind::Barrier { local: true, global: false }));
        }
    }

    pub(super) fn count(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        let ty = *self.random.pick(&Scalar::ALL[1..9]);
        let place = self.place();
        let (counter, ty) = match self.ended_counter() {
            Some(counter) => (counter, self.kernel.variable(counter).ty),
            None => (self.variable("for", ty), ty),
        };
        let literal = |value: u64| Expr::literal(Literal::integer(ty, value), place);
        // Sometimes near the maximum of the type, where a step overflows.
        let high = ty.max().map_or(u64::MAX, |max| max as u64);
        let (start, end, step) = match self.random.below(5) {
            0 => (high - self.random.from(1, 5), high, self.random.below(4)),
            1 => (7, 3, 1),
            _ => (self.random.below(3), self.random.from(3, 6), self.random.below(3)),
        };
        let uniform = !self.divergent && self.random.percent(50);
        let mut start = literal(start);
        if !uniform && end <= 6 && self.random.percent(50) {
            let (item, three) = (self.of(self.item), self.number(3));
            start = Expr::binary(Binary::Rem, item, three, place).cast(ty, place);
        }
        // The next iteration starts from the state at the end of the previous one.
        if uniform {
            self.rest(body);
        }
        self.loops.push(!uniform);
        self.known.push(counter);
        self.counters.push(counter);
        let count = self.random.from(1, 3);
        let entry = self.states.clone();
        let mut inner = self.inside(!uniform, count, depth);
        if uniform {
            self.back_to(&entry, &mut inner);
            self.rest_of_iteration(&mut inner);
        }
        self.known.retain(|known| *known != counter);
        self.end(counter);
        self.loops.pop();
        body.push(self.stmt(StmtKind::For {
            variable: counter,
            start,
            end: literal(end),
            step: literal(step),
            body: inner,
        }));
    }

    /// After a barrier, all written local memory is shared.
    pub(super) fn rest(&mut self, body: &mut Vec<Stmt>) {
        if !self.barriers || self.divergent || self.states.is_empty() {
            return;
        }
        for place in 0..self.states.len() {
            if self.states[place].1 == State::Fresh {
                self.store_own(self.states[place].0, body);
                self.states[place].1 = State::Own;
            }
        }
        for (_, state) in &mut self.states {
            *state = State::Shared;
        }
        body.push(self.stmt(StmtKind::Barrier { local: true, global: false }));
    }

    /// Restores at the end of an iteration the state of its start.
    pub(super) fn back_to(&mut self, entry: &[(ArrayId, State)], body: &mut Vec<Stmt>) {
        if self.states.iter().zip(entry).any(|(now, then)| now.1 != then.1) {
            self.rest(body);
        }
        if self.barriers && !self.states.is_empty() {
            body.push(self.stmt(StmtKind::Barrier { local: true, global: false }));
        }
    }

    /// A loop with a condition that becomes false.
    pub(super) fn repeat(&mut self, depth: u32, body: &mut Vec<Stmt>) {
        let place = self.place();
        let counter = self.variable("while", Scalar::U32);
        let literal = |value: u64| Expr::literal(Literal::integer(Scalar::U32, value), place);
        body.push(self.stmt(StmtKind::Set(counter, literal(0))));
        self.counters.push(counter);
        self.known.push(counter);
        let rounds = self.random.from(1, 4);
        let more = Expr::binary(Binary::Lt, self.of(counter), literal(rounds), place);
        let extra = self.expr(Scalar::Bool, 1);
        let is_plain = self.ended.is_some() && self.random.percent(60);
        let condition = if is_plain { more } else { Expr::binary(Binary::AndThen, more, extra, place) };
        let next = Expr::binary(Binary::Add, self.of(counter), literal(1), place);
        let mut inner = vec![self.stmt(StmtKind::Set(counter, next))];
        self.loops.push(true);
        let count = self.random.from(1, 3);
        inner.extend(self.inside(true, count, depth));
        self.loops.pop();
        body.push(self.stmt(StmtKind::While(condition, inner)));
    }

    /// A barrier, after which local memory changes its use.
    fn wait(&mut self, body: &mut Vec<Stmt>) {
        for place in 0..self.states.len() {
            let (id, state) = self.states[place];
            let element = self.kernel.array(id).element;
            let has_atomics = element.bits() >= 32 && element != Scalar::Bool;
            self.states[place].1 = match state {
                State::Fresh => State::Fresh,
                State::Own if has_atomics && self.random.percent(40) => {
                    State::Atomic(self.operation(element))
                }
                State::Own | State::Atomic(_) => State::Shared,
                State::Shared => State::Own,
            };
        }
        let global = self.random.percent(30);
        body.push(self.stmt(StmtKind::Barrier { local: true, global }));
    }

    fn collect(&mut self, body: &mut Vec<Stmt>) {
        let ty = self.scalar();
        let value = self.expr(ty, 2);
        let value = self.tame(value);
        let variable = self.variable("collected", ty);
        if self.random.percent(25) {
            let from = self.index(self.group + 2);
            body.push(self.stmt(StmtKind::Broadcast { variable, value, from }));
        } else {
            let all =
                [Binary::Add, Binary::Min, Binary::Max, Binary::Mul, Binary::And, Binary::Or, Binary::Xor];
            let all: Vec<Binary> = all
                .into_iter()
                .filter(|operator| operator.collects(ty) && !(ty.is_float() && *operator == Binary::Mul))
                .collect();
            let (collection, operator) = (*self.random.pick(Collection::ALL), *self.random.pick(&all));
            body.push(self.stmt(StmtKind::Collect { collection, operator, variable, value }));
        }
        // A collective is a barrier too: shared memory must not be written before the next one, and
        // own elements stay own.
        let raw = self.of(variable);
        let tamed = self.tame(raw);
        if tamed.ty.is_float() {
            body.push(self.stmt(StmtKind::Set(variable, tamed)));
        }
        self.known.push(variable);
    }

    /// Ends some items where no barrier follows.
    fn leave(&mut self, body: &mut Vec<Stmt>) {
        if self.barriers || !self.random.percent(25) {
            return;
        }
        let condition = self.expr(Scalar::Bool, 2);
        let end = self.stmt(StmtKind::Return);
        body.push(self.stmt(StmtKind::If { condition, then: vec![end], other: Vec::new() }));
    }
}
