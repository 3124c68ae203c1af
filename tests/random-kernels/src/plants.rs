//! The faults of a code generator, planted at every place of a kernel that can have them.

use usm_kernel_ir::{Binary, Expr, ExprKind, Kernel, Literal, Scalar, Space, Stmt, StmtKind};

/// Plants a fault at each possible place. Returns the number of places.
pub(crate) type Plant = fn(&mut Kernel) -> usize;

pub(crate) const FAULTS: [(&str, Plant); 5] = [
    ("a dropped barrier", dropped_barriers),
    ("a swapped dimension", swapped_dimensions),
    ("a division that rounds down", other_division),
    ("a plain sum for an atomic one", plain_atomics),
    ("an index one too far", increment_indices),
];

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
            StmtKind::If(_, then, other) => change(then) + change(other),
            StmtKind::While(_, body) | StmtKind::For(.., body) => change(body),
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
        let ExprKind::Binary(Binary::Div, one, two) = &expr.kind else { return 0 };
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
            if let StmtKind::Atomic(usm_kernel_ir::Atomic::Add, array, index, value, _) = &stmt.kind {
                let element = kernel.array(*array).element;
                let old = Expr::load(*array, element, index.clone(), stmt.place);
                let sum = Expr::binary(Binary::Add, old, value.clone(), stmt.place);
                changed.push(array.0 as usize);
                stmt.kind = StmtKind::Store(*array, index.clone(), sum);
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
            ExprKind::Load(_, one) | ExprKind::Unary(_, one) | ExprKind::Cast(one) => {
                count += within(one, change);
            }
            ExprKind::Binary(_, one, two) => count += within(one, change) + within(two, change),
            ExprKind::Select(one, two, three) => {
                for operand in [one, two, three] {
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
            StmtKind::Set(_, value) | StmtKind::Collect(.., value) => all.push(value),
            StmtKind::Store(_, one, two)
            | StmtKind::Atomic(_, _, one, two, _)
            | StmtKind::Broadcast(_, one, two) => all.extend([one, two]),
            StmtKind::If(condition, then, other) => {
                all.push(condition);
                blocks.extend([then, other]);
            }
            StmtKind::While(condition, body) => {
                all.push(condition);
                blocks.push(body);
            }
            StmtKind::For(_, start, end, step, body) => {
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
