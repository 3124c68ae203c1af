//! Runs sixteen neighbours of a row at once: the items of a phase do not depend on each other.
//!
//! Values equal for all items are computed once, by the code for one item. Other values are in
//! vectors of 128 bits, which all processors have. If the items decide a condition differently,
//! they run the statement one after the other.

mod memory;
mod operate;
mod shape;
mod vector;

use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Variable;
use usm_kernel_ir::{
    ArrayId, Atomic, Binary, Expr, ExprKind, Home, Place, Scalar, Stmt, StmtKind, Unary, VarId, definition,
};

use crate::machine::function::Writer;
use crate::machine::operate::integer_condition;
use crate::machine::stmt::operator;
use crate::machine::variables::name_variables;
pub(crate) use shape::{Shape, Shapes};

/// Number of items that run at once.
pub(crate) const LANES: usize = 16;

/// A value for each of the items.
#[derive(Clone, Debug)]
pub(crate) enum Lanes {
    One(Value),
    /// The first item's value, and the difference between neighbours.
    Line(Value, i64),
    Many(Vec<Value>),
}

/// The vectors of a phase.
pub(crate) struct Row {
    shapes: Shapes,
    /// For each variable of the kernel that differs between items.
    many: Vec<Option<Vec<Variable>>>,
    /// The memory of such a variable while items run one after the other.
    slots: Vec<Option<StackSlot>>,
}

impl Writer<'_> {
    /// The plan of a phase for sixteen items at once; `None` if impossible.
    pub(crate) fn row(&self, homes: &[Home], used: &[VarId], body: &[&Stmt]) -> Option<Row> {
        if !self.vectors || !self.checks_keep_order(body) {
            return None;
        }
        let shapes = Shapes::plan(self.kernel, homes, used, body)?;
        let count = self.kernel.variables.len();
        Some(Row { shapes, many: vec![None; count], slots: vec![None; count] })
    }

    /// Runs sixteen items, starting at the current one.
    pub(crate) fn run_sixteen(&mut self, row: &mut Row, used: &[VarId], sets: &[VarId], body: &[&Stmt]) {
        for variable in used {
            match self.home_of(*variable) {
                Home::Again => {
                    if let Some(value) = definition(&self.kernel.body, *variable) {
                        self.set_lanes(row, *variable, value);
                    }
                }
                Home::Kept => {
                    let (ty, address) = self.kept_place(*variable);
                    let values = self.load_row(ty, address);
                    self.give_lanes(row, *variable, values);
                }
                _ => {}
            }
        }
        for stmt in body {
            self.stmt_lanes(row, stmt);
        }
        for variable in used {
            if self.home_of(*variable) == Home::Kept && sets.contains(variable) {
                let (ty, address) = self.kept_place(*variable);
                let values = self.take_lanes(row, *variable);
                self.store_row(ty, address, &values);
            }
        }
    }

    fn block_lanes(&mut self, row: &mut Row, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt_lanes(row, stmt));
    }

    fn stmt_lanes(&mut self, row: &mut Row, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => self.set_lanes(row, *variable, value),
            StmtKind::Store { array, index, value } => {
                let (ty, value) = (value.ty, self.lanes(row, value));
                self.store_lanes(row, *array, index, ty, &value);
            }
            StmtKind::If { condition, then, other } => {
                if row.shapes.of(self.kernel, condition) == Shape::One {
                    // Separate calls, because both closures would borrow the row.
                    let blocks = self.open(condition);
                    self.block_lanes(row, then);
                    self.begin_else(blocks);
                    self.block_lanes(row, other);
                    self.close(blocks);
                } else {
                    self.branch_lanes(row, stmt, condition, [then, other]);
                }
            }
            StmtKind::While(condition, body) => {
                self.repeat(condition, |writer| writer.block_lanes(row, body));
            }
            StmtKind::For { variable, start, end, step, body } => {
                let (bounds, asks) = ([start, end, step], !stmt.is_short_loop());
                self.count_loop(*variable, bounds, asks, |writer| writer.block_lanes(row, body));
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let (index, value) = (self.lanes(row, index), self.lanes(row, value));
                self.atomic_lanes(row, *operation, (*array, stmt.place), (&index, &value), *old);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let index = self.lanes(row, index);
                let [expected, new] = [expected, new].map(|side| self.lanes(row, side));
                let ty = self.kernel.array(*array).element;
                let before = self.by_lane(ty, |writer, lane| {
                    let index = writer.lane(&index, Scalar::U64, lane);
                    let address = writer.address_at(*array, index);
                    let [expected, new] = [&expected, &new].map(|side| writer.lane(side, ty, lane));
                    writer.compare_exchange(ty, address, expected, new)
                });
                if let Some(old) = old {
                    self.give_lanes(row, *old, before);
                }
            }
            // The plan contains no others.
            _ => self.stmt(stmt),
        }
    }

    /// Runs one item after the other, unless each item has its own element.
    fn atomic_lanes(
        &mut self,
        row: &mut Row,
        operation: Atomic,
        (array, place): (ArrayId, Place),
        (index, value): (&Lanes, &Lanes),
        old: Option<VarId>,
    ) {
        let ty = self.kernel.array(array).element;
        let before = match index {
            Lanes::Line(first, 1) if !self.is_checked_at(array, place) => {
                let address = self.address_at(array, *first);
                let before = self.load_row(ty, address);
                let after = match operator(operation) {
                    Some(operator) => {
                        self.operate_lanes(operator, ty, Lanes::Many(before.clone()), value.clone())
                    }
                    None => self.spread(value.clone(), ty),
                };
                self.store_row(ty, address, &after);
                before
            }
            index => self.by_lane(ty, |writer, lane| {
                let index = writer.lane(index, Scalar::U64, lane);
                let address = writer.checked_address(array, index, place);
                let value = writer.lane(value, ty, lane);
                writer.atomic(operation, ty, address, value)
            }),
        };
        if let Some(old) = old {
            self.give_lanes(row, old, before);
        }
    }

    /// A condition that the items may decide differently.
    fn branch_lanes(&mut self, row: &mut Row, stmt: &Stmt, condition: &Expr, blocks: [&[Stmt]; 2]) {
        let [all, none] = self.decide(row, condition);
        let [then, perhaps, other, divergent, out] = [(); 5].map(|()| self.builder.create_block());
        self.builder.ins().brif(all, then, &[], perhaps, &[]);
        self.builder.switch_to_block(perhaps);
        self.builder.ins().brif(none, other, &[], divergent, &[]);
        self.builder.switch_to_block(then);
        self.block_lanes(row, blocks[0]);
        self.builder.ins().jump(out, &[]);
        self.builder.switch_to_block(other);
        self.block_lanes(row, blocks[1]);
        self.builder.ins().jump(out, &[]);
        self.builder.switch_to_block(divergent);
        self.one_by_one(row, stmt);
        self.builder.ins().jump(out, &[]);
        self.builder.switch_to_block(out);
    }

    /// Whether a condition is true for all items, and whether it is false for all. If neither is
    /// known, they may still agree.
    fn decide(&mut self, row: &mut Row, condition: &Expr) -> [Value; 2] {
        match &condition.kind {
            ExprKind::Unary(Unary::Not, operand) if operand.ty == Scalar::Bool => {
                let [all, none] = self.decide(row, operand);
                return [none, all];
            }
            ExprKind::Binary {
                operator: operator @ (Binary::AndThen | Binary::OrElse | Binary::And | Binary::Or),
                left,
                right,
            } => {
                let [[all, none], [too, neither]] = [left, right].map(|side| self.decide(row, side));
                let ins = self.builder.ins();
                return if matches!(operator, Binary::AndThen | Binary::And) {
                    [ins.band(all, too), self.builder.ins().bor(none, neither)]
                } else {
                    [ins.bor(all, too), self.builder.ins().band(none, neither)]
                };
            }
            ExprKind::Binary {
                operator: operator @ (Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge),
                left,
                right,
            } if left.ty.is_integer() => {
                let shapes = [left, right].map(|side| row.shapes.of(self.kernel, side));
                if let [Shape::Line(step), Shape::One] | [Shape::One, Shape::Line(step)] = shapes
                    && let Some(step) = short_step(step, left.ty.bits())
                {
                    return self.decided_by_ends(*operator, [left, right], shapes[0] == Shape::One, step);
                }
            }
            _ => {}
        }
        match self.lanes(row, condition) {
            Lanes::Many(masks) => {
                let both = |writer: &mut Self, and: bool| {
                    masks.iter().copied().reduce(|one, two| {
                        let ins = writer.builder.ins();
                        if and { ins.band(one, two) } else { ins.bor(one, two) }
                    })
                };
                let (all, any) =
                    (both(self, true).expect("registers"), both(self, false).expect("registers"));
                let all = self.builder.ins().vall_true(all);
                let any = self.builder.ins().vany_true(any);
                [all, self.not(any)]
            }
            Lanes::One(value) | Lanes::Line(value, _) => [value, self.not(value)],
        }
    }

    fn not(&mut self, value: Value) -> Value {
        self.unary(Unary::Not, Scalar::Bool, value)
    }

    /// A comparison with a line: the first and the last item decide it for all between, unless the
    /// line wraps.
    fn decided_by_ends(
        &mut self,
        operator: Binary,
        sides: [&Expr; 2],
        line_is_right: bool,
        step: i64,
    ) -> [Value; 2] {
        let ty = sides[0].ty;
        let [one, two] = sides.map(|side| self.expr(side));
        let first = if line_is_right { two } else { one };
        let last = self.builder.ins().iadd_imm_s(first, (LANES as i64 - 1) * step);
        let at_first = self.operate(operator, ty, one, two);
        let [left, right] = if line_is_right { [one, last] } else { [last, two] };
        let at_last = self.operate(operator, ty, left, right);
        let straight = integer_condition(if step > 0 { Binary::Ge } else { Binary::Le }, ty.is_signed());
        let straight = self.builder.ins().icmp(straight, last, first);
        let all = self.builder.ins().band(at_first, at_last);
        let any = self.builder.ins().bor(at_first, at_last);
        let none = self.not(any);
        [self.builder.ins().band(all, straight), self.builder.ins().band(none, straight)]
    }

    /// Runs a statement one item after the other.
    fn one_by_one(&mut self, row: &mut Row, stmt: &Stmt) {
        let (mut reads, mut sets) = (Vec::new(), Vec::new());
        name_variables(stmt, &mut reads, &mut sets);
        let mut variables: Vec<VarId> = reads.into_iter().chain(sets.iter().copied()).collect();
        variables.sort_unstable();
        variables.dedup();
        let mut lines = Vec::new();
        for variable in &variables {
            let place = variable.0 as usize;
            match row.shapes.0[place] {
                Shape::One => {}
                Shape::Line(step) => {
                    let base = self.builder.use_var(self.variables[place]);
                    lines.push((place, base, step));
                }
                Shape::Many => {
                    let slot = self.slot(row, *variable);
                    let values = self.take_lanes(row, *variable);
                    for (register, value) in values.into_iter().enumerate() {
                        self.builder.ins().stack_store(types::I64, value, slot, 16 * register as i32);
                    }
                }
            }
        }
        let (lid, gid, item) = (self.lid[0], self.gid[0], self.item);
        let (zero, count) = (self.number(0), self.number(LANES as i64));
        self.count(zero, count, 1, |writer, lane| {
            [writer.lid[0], writer.gid[0], writer.item] =
                [lid, gid, item].map(|first| writer.builder.ins().iadd(first, lane));
            for (place, base, step) in &lines {
                let ty = writer.builder.func.dfg.value_type(*base);
                let number = if ty == types::I64 { lane } else { writer.builder.ins().ireduce(ty, lane) };
                let more = writer.builder.ins().imul_imm_s(number, *step);
                let value = writer.builder.ins().iadd(*base, more);
                writer.builder.def_var(writer.variables[*place], value);
            }
            for variable in &variables {
                if let Some(address) = writer.lane_of(row, *variable, lane) {
                    let value = writer.load_lane(writer.kernel.variable(*variable).ty, address);
                    writer.builder.def_var(writer.variables[variable.0 as usize], value);
                }
            }
            writer.stmt(stmt);
            for variable in &sets {
                if let Some(address) = writer.lane_of(row, *variable, lane) {
                    let value = writer.builder.use_var(writer.variables[variable.0 as usize]);
                    writer.store_lane(writer.kernel.variable(*variable).ty, address, value);
                }
            }
        });
        (self.lid[0], self.gid[0], self.item) = (lid, gid, item);
        for (place, base, _) in lines {
            self.builder.def_var(self.variables[place], base);
        }
        for variable in sets {
            if let Some(slot) =
                row.slots[variable.0 as usize].filter(|_| row.shapes.0[variable.0 as usize] == Shape::Many)
            {
                let ty = vector::type_of(self.kernel.variable(variable).ty);
                let count = vector::registers(self.kernel.variable(variable).ty);
                let values = (0..count)
                    .map(|register| self.builder.ins().stack_load(types::I64, ty, slot, 16 * register as i32))
                    .collect();
                self.give_lanes(row, variable, values);
            }
        }
    }

    fn slot(&mut self, row: &mut Row, variable: VarId) -> StackSlot {
        let bytes = 16 * vector::registers(self.kernel.variable(variable).ty) as u32;
        let builder = &mut self.builder;
        *row.slots[variable.0 as usize].get_or_insert_with(|| {
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4))
        })
    }

    /// The address of an item's value of a variable that differs.
    fn lane_of(&mut self, row: &Row, variable: VarId, lane: Value) -> Option<Value> {
        let place = variable.0 as usize;
        let slot = row.slots[place].filter(|_| row.shapes.0[place] == Shape::Many)?;
        let base = self.builder.ins().stack_addr(types::I64, slot, 0);
        let bytes = vector::lane_bytes(self.kernel.variable(variable).ty);
        let offset = self.builder.ins().imul_imm_s(lane, bytes);
        Some(self.builder.ins().iadd(base, offset))
    }

    fn set_lanes(&mut self, row: &mut Row, variable: VarId, value: &Expr) {
        if row.shapes.0[variable.0 as usize] == Shape::Many {
            let values = self.lanes(row, value);
            let values = self.spread(values, value.ty);
            self.give_lanes(row, variable, values);
        } else {
            self.set(variable, value);
        }
    }

    fn give_lanes(&mut self, row: &mut Row, variable: VarId, values: Vec<Value>) {
        let ty = vector::type_of(self.kernel.variable(variable).ty);
        let builder = &mut self.builder;
        let many = row.many[variable.0 as usize]
            .get_or_insert_with(|| values.iter().map(|_| builder.declare_var(ty)).collect());
        for (register, value) in many.iter().zip(values) {
            builder.def_var(*register, value);
        }
    }

    fn take_lanes(&mut self, row: &mut Row, variable: VarId) -> Vec<Value> {
        if row.many[variable.0 as usize].is_none() {
            // The variable is unset, and no item reads it before it is set.
            let zero = self.spread_zero(self.kernel.variable(variable).ty);
            self.give_lanes(row, variable, zero);
        }
        let many = row.many[variable.0 as usize].as_ref().expect("just made");
        many.iter().map(|register| self.builder.use_var(*register)).collect()
    }
}

/// The step of a line of integers of so many bits, as a signed number of that width. `None` if
/// sixteen items may wrap more than once: then the first and the last item decide nothing.
fn short_step(step: i64, bits: u32) -> Option<i64> {
    let shift = 64 - bits;
    let step = step << shift >> shift;
    let last = i128::from(step.unsigned_abs()) * (LANES as i128 - 1);
    (last < 1 << bits).then_some(step)
}
