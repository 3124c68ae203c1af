//! How values differ between neighbours of a row, and whether sixteen items can run at once.

use usm_kernel_ir::{
    Binary, Expr, ExprKind, Home, Kernel, Query, Space, Stmt, StmtKind, Unary, VarId, definition,
};

use crate::machine::variables::name_variables;

/// How a value differs between the items of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// It is equal for all items.
    One,
    /// It grows by this much between neighbours; sums wrap.
    Line(i64),
    Many,
}

impl Shape {
    /// The shape that covers both.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (one, two) if one == two => one,
            (Self::One, Self::Line(step)) | (Self::Line(step), Self::One) => Self::Line(step),
            _ => Self::Many,
        }
    }
}

/// Shapes of the variables of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Shapes(pub(crate) Vec<Shape>);

/// Maximum step: sums of a few do not wrap.
const LONGEST: u64 = 1 << 40;

fn line(step: Option<i64>) -> Shape {
    match step {
        Some(0) => Shape::One,
        Some(step) if step.unsigned_abs() < LONGEST => Shape::Line(step),
        _ => Shape::Many,
    }
}

impl Shapes {
    /// The shape of an expression.
    pub(crate) fn of(&self, kernel: &Kernel, expr: &Expr) -> Shape {
        let of = |expr: &Expr| self.of(kernel, expr);
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Len(_) => Shape::One,
            ExprKind::Variable(variable) => self.0[variable.0 as usize],
            ExprKind::Query(Query::GlobalId | Query::LocalId, dimension)
                if *dimension + 1 == kernel.dimensions =>
            {
                Shape::Line(1)
            }
            ExprKind::Query(..) => Shape::One,
            ExprKind::Unary(Unary::Neg, operand) if expr.ty.is_integer() => match of(operand) {
                Shape::Line(step) => line(step.checked_neg()),
                other => other,
            },
            ExprKind::Cast(operand) if expr.ty.is_integer() && operand.ty.is_integer() => match of(operand) {
                // A truncated value wraps like the original; an extended one does not.
                Shape::Line(_) if expr.ty.bits() > operand.ty.bits() => Shape::Many,
                other => other,
            },
            ExprKind::Binary { operator, left, right } if left.ty.is_integer() => {
                let (one, two) = (of(left), of(right));
                match (operator, one, two) {
                    (_, Shape::One, Shape::One) => Shape::One,
                    (Binary::Add, Shape::Line(step), Shape::One)
                    | (Binary::Add, Shape::One, Shape::Line(step))
                    | (Binary::Sub, Shape::Line(step), Shape::One) => Shape::Line(step),
                    (Binary::Sub, Shape::One, Shape::Line(step)) => line(step.checked_neg()),
                    (Binary::Add, Shape::Line(one), Shape::Line(two)) => line(one.checked_add(two)),
                    (Binary::Sub, Shape::Line(one), Shape::Line(two)) => line(one.checked_sub(two)),
                    (Binary::Mul, Shape::Line(step), Shape::One) => times(step, right),
                    (Binary::Mul, Shape::One, Shape::Line(step)) => times(step, left),
                    _ => Shape::Many,
                }
            }
            _ => {
                let is_one = expr.operands().into_iter().all(|operand| of(operand) == Shape::One);
                if is_one { Shape::One } else { Shape::Many }
            }
        }
    }

    /// The shapes for a phase, if its items can run together.
    pub(crate) fn plan(kernel: &Kernel, homes: &[Home], used: &[VarId], body: &[&Stmt]) -> Option<Self> {
        let mut planner = Planner {
            kernel,
            shapes: Self(vec![Shape::One; kernel.variables.len()]),
            sets: vec![0; kernel.variables.len()],
            total: vec![0; kernel.variables.len()],
            is_changed: true,
        };
        let (mut reads, mut sets) = (Vec::new(), Vec::new());
        body.iter().for_each(|stmt| name_variables(stmt, &mut reads, &mut sets));
        sets.iter().for_each(|variable| planner.sets[variable.0 as usize] += 1);
        reads.iter().chain(&sets).for_each(|variable| planner.total[variable.0 as usize] += 1);
        for variable in used {
            if homes.get(variable.0 as usize) == Some(&Home::Kept) {
                planner.shapes.0[variable.0 as usize] = Shape::Many;
            }
        }
        while core::mem::take(&mut planner.is_changed) {
            for variable in used {
                if homes.get(variable.0 as usize) == Some(&Home::Again) {
                    let shape = planner.shapes.of(kernel, definition(&kernel.body, *variable)?);
                    planner.widen_shape(*variable, shape);
                }
            }
            for stmt in body {
                planner.stmt(stmt);
            }
        }
        let mut rows = used.iter().any(|variable| homes.get(variable.0 as usize) == Some(&Home::Kept));
        let goes =
            body.iter().all(|stmt| !leaves_phase(stmt) && planner.runs_together(stmt, false, &mut rows));
        (goes && rows).then_some(planner.shapes)
    }
}

/// Whether an item may end the phase before the others, by continuing a loop of the group.
fn leaves_phase(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(leaves_phase),
        _ => false,
    }
}

fn times(step: i64, factor: &Expr) -> Shape {
    match &factor.kind {
        ExprKind::Literal(literal) => line(step.checked_mul(literal.bits as i64)),
        ExprKind::Cast(operand) if operand.ty.is_integer() && factor.ty.bits() >= operand.ty.bits() => {
            times(step, operand)
        }
        _ => Shape::Many,
    }
}

struct Planner<'k> {
    kernel: &'k Kernel,
    shapes: Shapes,
    /// The number of times that the phase sets each variable, and names it.
    sets: Vec<u32>,
    total: Vec<u32>,
    is_changed: bool,
}

impl Planner<'_> {
    fn widen_shape(&mut self, variable: VarId, shape: Shape) {
        let place = variable.0 as usize;
        let mut shape = self.shapes.0[place].join(shape);
        if self.sets[place] > 1 && matches!(shape, Shape::Line(_)) {
            shape = Shape::Many;
        }
        self.is_changed |= self.shapes.0[place] != shape;
        self.shapes.0[place] = shape;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let shape = self.shapes.of(self.kernel, value);
                self.widen_shape(*variable, shape);
            }
            StmtKind::Atomic { old: Some(old), .. } | StmtKind::CompareExchange { old: Some(old), .. } => {
                self.widen_shape(*old, Shape::Many);
            }
            StmtKind::If { condition, .. } if self.shapes.of(self.kernel, condition) != Shape::One => {
                // A variable that only some items set differs, unless no item reads it afterwards.
                let (mut reads, mut sets) = (Vec::new(), Vec::new());
                name_variables(stmt, &mut reads, &mut sets);
                for variable in &sets {
                    let uses = reads.iter().chain(&sets).filter(|other| *other == variable).count();
                    if uses < self.total[variable.0 as usize] as usize {
                        self.widen_shape(*variable, Shape::Many);
                    }
                }
            }
            _ => {}
        }
        for block in stmt.blocks() {
            block.iter().for_each(|stmt| self.stmt(stmt));
        }
    }

    /// Whether the items can run a statement together. `diverges` means under a condition within
    /// the innermost loop that they decide differently. Records accesses to rows of elements.
    fn runs_together(&self, stmt: &Stmt, diverges: bool, rows: &mut bool) -> bool {
        let is_one = |expr: &Expr| self.shapes.of(self.kernel, expr) == Shape::One;
        let mut goes = true;
        stmt.for_each_expr(&mut |expr| goes &= self.evaluates(expr, rows));
        let mut block =
            |block: &[Stmt], diverges| block.iter().all(|stmt| self.runs_together(stmt, diverges, rows));
        goes && match &stmt.kind {
            StmtKind::Set(..) | StmtKind::Fence { .. } | StmtKind::Barrier { .. } => true,
            StmtKind::Store { array, index, .. } => {
                let shape = self.shapes.of(self.kernel, index);
                *rows |= matches!(shape, Shape::Line(1 | -1));
                !matches!(self.kernel.array(*array).space, Space::Private(_))
            }
            StmtKind::If { condition, then, other } => {
                let diverges = diverges || !is_one(condition);
                block(then, diverges) && block(other, diverges)
            }
            StmtKind::While(condition, body) => is_one(condition) && block(body, false),
            StmtKind::For { variable, start, end, step, body } => {
                let counter = self.shapes.0[variable.0 as usize];
                counter == Shape::One && is_one(start) && is_one(end) && is_one(step) && block(body, false)
            }
            StmtKind::Break | StmtKind::Continue => !diverges,
            StmtKind::Atomic { array, index, .. } | StmtKind::CompareExchange { array, index, .. } => {
                let shape = self.shapes.of(self.kernel, index);
                *rows |= matches!(shape, Shape::Line(1 | -1));
                !matches!(self.kernel.array(*array).space, Space::Private(_))
            }
            StmtKind::Return | StmtKind::Collect { .. } | StmtKind::Broadcast { .. } => false,
        }
    }

    fn evaluates(&self, expr: &Expr, rows: &mut bool) -> bool {
        let shape = |expr: &Expr| self.shapes.of(self.kernel, expr);
        if shape(expr) != Shape::Many {
            return !touches_private(self.kernel, expr);
        }
        let own = match &expr.kind {
            ExprKind::Load(array, index) => {
                *rows |= matches!(shape(index), Shape::Line(1 | -1));
                !matches!(self.kernel.array(*array).space, Space::Private(_))
            }
            // All operands are evaluated, so none may access memory that only some items may
            // access.
            ExprKind::Binary { operator: Binary::AndThen | Binary::OrElse, right, .. } => !has_load(right),
            ExprKind::Select { then, other, .. } => !has_load(then) && !has_load(other),
            _ => true,
        };
        own && expr.operands().into_iter().all(|operand| self.evaluates(operand, rows))
    }
}

fn has_load(expr: &Expr) -> bool {
    let mut has_load = false;
    expr.for_each(&mut |expr| has_load |= matches!(expr.kind, ExprKind::Load(..)));
    has_load
}

fn touches_private(kernel: &Kernel, expr: &Expr) -> bool {
    let mut has_atomic = false;
    expr.for_each(&mut |expr| {
        has_atomic |= matches!(expr.kind, ExprKind::Load(array, _)
            if matches!(kernel.array(array).space, Space::Private(_)));
    });
    has_atomic
}
