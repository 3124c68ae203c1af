//! The faults of a code generator, planted at every place of a kernel that can have them.

use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::{
    Argument, Array, Binary, Expr, ExprKind, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter,
    Scalar, Space, Stmt, StmtKind,
};

use crate::generate::{Given, Program, long_program, program};

/// Plants a fault at each possible place. Returns the number of places.
pub type Plant = fn(&mut Kernel) -> usize;

/// The targets that must see a fault by its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Every target, whatever the order of its items.
    Always,
    /// Every target, if a group has more items than the target runs at once.
    BehindOthers,
    /// Only a target that runs items at the same time. The proof sees it everywhere.
    AtOnce,
}

impl Shows {
    /// Whether a target that saw so many of all programs saw enough of them. Without a barrier a
    /// target may still run the items of some programs in a right order.
    #[must_use]
    pub const fn suffices(self, seen: usize, all: usize) -> bool {
        match self {
            Self::Always => seen == all,
            Self::BehindOthers => seen * 2 >= all,
            Self::AtOnce => seen > 0,
        }
    }
}

/// The faults.
pub const FAULTS: [(&str, Plant, Shows); 5] = [
    ("a dropped barrier", dropped_barriers, Shows::BehindOthers),
    ("a swapped dimension", swapped_dimensions, Shows::Always),
    ("a division that rounds down", other_division, Shows::Always),
    ("a plain sum for an atomic one", plain_atomics, Shows::AtOnce),
    ("an index one too far", increment_indices, Shows::Always),
];

/// The maximum number of statements, far above the need of any program.
const STEPS: u64 = 1 << 20;

/// A program, and the same with a fault and one more element in each array.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Without the fault.
    pub right: Program,
    /// With the fault.
    pub wrong: Program,
}

/// At most `most` programs with a fault that shows, from a seed on, without those that `leave_out`
/// names. A target can run them: the interpreter finds no index outside. Its results differ, in
/// each of three orders, from those without the fault. A plain sum for an atomic one differs in no
/// order, so there two items must meet in an element.
pub fn planted(
    (_, plant, shows): (&str, Plant, Shows),
    first: u64,
    most: usize,
    leave_out: &[&str],
) -> Vec<Planted> {
    // Without a barrier, items that run at once may still do right: the group must be longer.
    let make = if shows == Shows::BehindOthers { long_program } else { program };
    let programs = (first..first + 800).map(make).filter_map(|right| {
        let mut wrong = right.clone();
        if leave_out.contains(&right.kernel.name.as_str()) || plant(&mut wrong.kernel) == 0 {
            return None;
        }
        for (given, parameter) in wrong.arguments.iter_mut().zip(&right.kernel.parameters) {
            if let (Given::Array(bytes), Parameter::Array(id)) = (given, parameter) {
                bytes.extend((0..right.kernel.array(*id).element.bytes()).map(|_| 0x35));
            }
        }
        let planted = Planted { right, wrong };
        planted.shows(shows).then_some(planted)
    });
    programs.take(most).collect()
}

/// At most `most` programs, from a seed on, that read local or private memory which nobody wrote:
/// they lack some of their writes. With zeros in such memory their results are the same in each of
/// three orders.
pub fn forgetful(first: u64, most: usize) -> Vec<Program> {
    let programs =
        (first..first + 800).map(|seed| if seed % 2 == 0 { program(seed) } else { long_program(seed) });
    let lacking = programs.flat_map(|whole| {
        let variants = (0..own_stores(&whole.kernel)).map(move |number| {
            let mut program = whole.clone();
            drop_own_store(&mut program.kernel, number);
            program
        });
        // One of each, so that a small sample has many programs.
        variants.filter(reads_unwritten).take(1).collect::<Vec<_>>()
    });
    let same_in_every_order = |program: &Program| {
        let run = |order| interpreter(program, order)?.unwatched().run().ok();
        let Some(found) = run(Order::Forwards) else { return false };
        [Order::Backwards, Order::Shuffled(5)]
            .into_iter()
            .all(|order| run(order).is_some_and(|other| alike(program, &found, &other)))
    };
    lacking.filter(same_in_every_order).take(most).collect()
}

/// The results of a program, with zeros in memory that nobody wrote.
#[must_use]
pub fn with_zeros(program: &Program) -> Vec<Vec<u8>> {
    let run = interpreter(program, Order::Forwards).map(|run| run.unwatched().run());
    run.and_then(Result::ok).unwrap_or_default()
}

/// The name of an array that is read before it is written.
#[must_use]
pub fn unwritten(program: &Program) -> Option<String> {
    match interpreter(program, Order::Forwards)?.run() {
        Err(Fault::Unwritten { array, .. }) => Some(array),
        _ => None,
    }
}

fn reads_unwritten(program: &Program) -> bool {
    unwritten(program).is_some()
}

/// Number of statements that write local or private memory.
#[must_use]
pub fn own_stores(kernel: &Kernel) -> usize {
    drop_own_store(&mut kernel.clone(), usize::MAX)
}

/// Drops the statement with this number that writes local or private memory. Returns their number.
pub fn drop_own_store(kernel: &mut Kernel, number: usize) -> usize {
    fn block(body: &mut Vec<Stmt>, own: &[bool], number: usize, seen: &mut usize) {
        body.retain(|stmt| {
            let StmtKind::Store { array, .. } = stmt.kind else { return true };
            if !own[array.0 as usize] {
                return true;
            }
            *seen += 1;
            *seen - 1 != number
        });
        let _ = inner(body, &mut |body| {
            block(body, own, number, seen);
            0
        });
    }
    let is_own = |array: &Array| matches!(array.space, Space::Local(_) | Space::Private(_));
    let own: Vec<bool> = kernel.arrays.iter().map(is_own).collect();
    let mut seen = 0;
    block(&mut kernel.body, &own, number, &mut seen);
    seen
}

impl Planted {
    fn shows(&self, shows: Shows) -> bool {
        if shows == Shows::AtOnce {
            let run = interpreter(&self.wrong, Order::Backwards).map(Interpreter::run);
            return matches!(run, Some(Err(Fault::Race { .. })));
        }
        let run = |program, order| interpreter(program, order)?.unwatched().run().ok();
        let Some(right) = run(&self.right, Order::Forwards) else { return false };
        // With fewer items than a vector has, a processor may run all of them at once.
        let rows = self.wrong.local.last().is_some_and(|row| *row > 16);
        (shows == Shows::Always || rows)
            && [Order::Forwards, Order::Backwards, Order::Shuffled(5)].into_iter().all(|order| {
                run(&self.wrong, order).is_some_and(|mut found| {
                    self.cut(&mut found);
                    !alike(&self.right, &right, &found)
                })
            })
    }

    /// Takes the additional elements away.
    pub fn cut(&self, found: &mut [Vec<u8>]) {
        let arrays = self.right.arguments.iter().filter_map(|given| match given {
            Given::Array(bytes) => Some(bytes.len()),
            Given::Value(_) => None,
        });
        for (len, found) in arrays.zip(found) {
            found.truncate(len);
        }
    }

    /// Whether the proof accepts the launch without the fault, and refuses it with the fault.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let accepts = |program: &Program| {
            let Ok(claims) = claims(&program.kernel) else { return false };
            let (mut lengths, mut values) = (vec![0; program.kernel.arrays.len()], Vec::new());
            for (parameter, given) in program.kernel.parameters.iter().zip(&program.arguments) {
                match (parameter, given) {
                    (Parameter::Array(id), Given::Array(bytes)) => {
                        let element = program.kernel.array(*id).element.bytes();
                        lengths[id.0 as usize] = bytes.len() as u64 / element;
                    }
                    (_, Given::Value(value)) => values.push(*value),
                    _ => {}
                }
            }
            let Program { global, local, .. } = program;
            claims.race(&Shape { global, local, lengths: &lengths, values: &values }).is_none()
        };
        accepts(&self.right) && !accepts(&self.wrong)
    }
}

fn interpreter(program: &Program, order: Order) -> Option<Interpreter<'_>> {
    let Program { kernel, global, local, arguments } = program;
    let arguments: Vec<Argument<'_>> = arguments.iter().map(Given::argument).collect();
    let input = Input::new(kernel, global, local, &arguments).ok()?;
    Some(Interpreter::new(kernel, input, order, STEPS))
}

/// Whether all elements are equal; all NaNs are, and so are both zeros.
fn alike(program: &Program, one: &[Vec<u8>], two: &[Vec<u8>]) -> bool {
    let arrays = program.kernel.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Array(id) => Some(program.kernel.array(*id).element),
        Parameter::Value(_) => None,
    });
    arrays.zip(one.iter().zip(two)).all(|(element, (one, two))| {
        let width = element.bytes() as usize;
        let both =
            |(one, two)| equal(Literal::from_ne_bytes(element, one), Literal::from_ne_bytes(element, two));
        one.len() == two.len() && one.chunks(width).zip(two.chunks(width)).all(both)
    })
}

/// Whether two elements are equal; all NaNs are, and so are both zeros.
#[must_use]
pub fn equal(one: Literal, two: Literal) -> bool {
    let value = |literal: Literal| match literal.ty {
        Scalar::F32 => f64::from(literal.to_f32()),
        Scalar::F64 => literal.to_f64(),
        Scalar::Bf16 => f64::from(f32::from_bits((literal.bits as u32) << 16)),
        // Their bits without the sign are in the order of the numbers.
        _ if literal.bits & 0x7fff > 0x7c00 => f64::NAN,
        _ => (literal.bits & 0x7fff) as f64 * if literal.bits >> 15 == 0 { 1.0 } else { -1.0 },
    };
    one == two
        || ((one.ty.is_float() || one.ty.is_half())
            && (value(one) == value(two) || (value(one).is_nan() && value(two).is_nan())))
}

fn dropped_barriers(kernel: &mut Kernel) -> usize {
    fn block(body: &mut Vec<Stmt>) -> usize {
        let before = body.len();
        body.retain(|stmt| !matches!(stmt.kind, StmtKind::Barrier { .. }));
        let dropped = before - body.len();
        dropped + inner(body, &mut block)
    }
    block(&mut kernel.body)
}

fn inner(body: &mut [Stmt], change: &mut dyn FnMut(&mut Vec<Stmt>) -> usize) -> usize {
    let mut count = 0;
    for stmt in body {
        count += match &mut stmt.kind {
            StmtKind::If { then, other, .. } => change(then) + change(other),
            StmtKind::While(_, body) | StmtKind::For { body, .. } => change(body),
            _ => 0,
        };
    }
    count
}

fn swapped_dimensions(kernel: &mut Kernel) -> usize {
    let last = kernel.dimensions - 1;
    each(&mut kernel.body, &mut |expr| match &mut expr.kind {
        ExprKind::Query(_, dimension) if last > 0 && *dimension * 2 != last => {
            *dimension = last - *dimension;
            1
        }
        _ => 0,
    })
}

fn other_division(kernel: &mut Kernel) -> usize {
    each(&mut kernel.body, &mut |expr| {
        let ExprKind::Binary { operator: Binary::Div, left: one, right: two } = &expr.kind else { return 0 };
        if !expr.ty.is_signed() {
            return 0;
        }
        // Subtracts one if remainder and divisor have different signs.
        let (place, ty) = (expr.place, expr.ty);
        let binary = |operator, one, two| Expr::binary(operator, one, two, place);
        let zero = || Expr::literal(Literal::integer(ty, 0), place);
        let rest = binary(Binary::Rem, (**one).clone(), (**two).clone());
        let differs = binary(Binary::Xor, rest.clone(), (**two).clone());
        let down =
            binary(Binary::AndThen, binary(Binary::Ne, rest, zero()), binary(Binary::Lt, differs, zero()));
        let by = down.cast(ty, place);
        *expr = binary(Binary::Sub, expr.clone(), by);
        1
    })
}

fn plain_atomics(kernel: &mut Kernel) -> usize {
    fn block(body: &mut [Stmt], kernel: &Kernel, changed: &mut Vec<usize>) -> usize {
        for stmt in body.iter_mut() {
            if let StmtKind::Atomic { operation: usm_kernel_ir::Atomic::Add, array, index, value, .. } =
                &stmt.kind
            {
                let element = kernel.array(*array).element;
                let old = Expr::load(*array, element, index.clone(), stmt.place);
                let sum = Expr::binary(Binary::Add, old, value.clone(), stmt.place);
                changed.push(array.0 as usize);
                stmt.kind = StmtKind::Store { array: *array, index: index.clone(), value: sum };
            }
        }
        inner(body, &mut |body| block(body, kernel, changed))
    }
    let (mut body, mut changed) = (core::mem::take(&mut kernel.body), Vec::new());
    block(&mut body, kernel, &mut changed);
    kernel.body = body;
    for array in &changed {
        if kernel.arrays[*array].space == Space::Atomic {
            kernel.arrays[*array].space = Space::Write;
        }
    }
    changed.len()
}

fn increment_indices(kernel: &mut Kernel) -> usize {
    each(&mut kernel.body, &mut |expr| {
        let ExprKind::Load(_, index) = &mut expr.kind else { return 0 };
        let place = index.place;
        let one = Expr::literal(Literal::integer(Scalar::U64, 1), place);
        **index = Expr::binary(Binary::Add, (**index).clone(), one, place);
        1
    })
}

/// Changes every expression, inner ones first. Returns the sum of the results of `change`.
fn each(body: &mut [Stmt], change: &mut dyn FnMut(&mut Expr) -> usize) -> usize {
    fn within(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr) -> usize) -> usize {
        let mut count = 0;
        match &mut expr.kind {
            ExprKind::Load(_, one) | ExprKind::Unary(_, one) | ExprKind::Cast(one) | ExprKind::Bits(one) => {
                count += within(one, change);
            }
            ExprKind::Binary { left: one, right: two, .. } => {
                count += within(one, change) + within(two, change)
            }
            ExprKind::Select { condition, then, other } => {
                for operand in [condition, then, other] {
                    count += within(operand, change);
                }
            }
            ExprKind::Math(_, all) => count += all.iter_mut().map(|one| within(one, change)).sum::<usize>(),
            _ => {}
        }
        count + change(expr)
    }
    let mut count = 0;
    for stmt in body {
        let mut all: Vec<&mut Expr> = Vec::new();
        let mut blocks: Vec<&mut Vec<Stmt>> = Vec::new();
        match &mut stmt.kind {
            StmtKind::Set(_, value) | StmtKind::Collect { value, .. } => all.push(value),
            StmtKind::Store { index: one, value: two, .. }
            | StmtKind::Atomic { index: one, value: two, .. }
            | StmtKind::Broadcast { value: one, from: two, .. } => all.extend([one, two]),
            StmtKind::If { condition, then, other } => {
                all.push(condition);
                blocks.extend([then, other]);
            }
            StmtKind::While(condition, body) => {
                all.push(condition);
                blocks.push(body);
            }
            StmtKind::For { start, end, step, body, .. } => {
                all.extend([start, end, step]);
                blocks.push(body);
            }
            _ => {}
        }
        count += all.into_iter().map(|expr| within(expr, change)).sum::<usize>();
        for body in blocks {
            count += each(body, change);
        }
    }
    count
}
