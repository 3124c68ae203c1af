//! The invariants of every kernel, from any front end. All code that reads kernels relies on them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::error::Refusal;
use crate::kernel::{
    ArrayId, Atomic, Expr, ExprKind, Kernel, Parameter, Query, Space, Stmt, StmtKind, ValueId, VarId,
};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};
use crate::structure::Structure;
use crate::text::DEPTH;
use crate::uniform::Uniformity;

/// Maximum number of elements of a private array, which lies on the host's stack.
const PRIVATE: u64 = 4096;
/// Maximum size in bytes of a table in constant memory: every device has this much.
const CONSTANT: u64 = 64 * 1024;

/// Checks a kernel: types, positions, that variables have a value at every read, and that all items
/// reach every barrier.
///
/// # Errors
/// The first fault, with its place.
pub fn verify(kernel: &Kernel) -> Result<(), Refusal> {
    verify_items(kernel)?;
    Uniformity::of(kernel).barriers(kernel)
}

/// [`verify`] without the check that all items of a group reach its barriers.
pub(crate) fn verify_items(kernel: &Kernel) -> Result<(), Refusal> {
    let checker = Checker { kernel };
    checker.head()?;
    let mut known = vec![false; kernel.variables.len()];
    checker.block(&kernel.body, &mut known, 0, 0)
}

struct Checker<'k> {
    kernel: &'k Kernel,
}

impl Checker<'_> {
    fn head(&self) -> Result<(), Refusal> {
        let kernel = self.kernel;
        let refuse = |message| Err(Refusal::new(kernel.place, message));
        // It becomes a name in Rust, in any script, and part of a comment in C.
        let of_word = |c: char| match c.is_ascii() {
            true => c == '_' || c.is_ascii_alphanumeric(),
            false => !c.is_control() && !c.is_whitespace(),
        };
        if !kernel.name.chars().all(of_word) {
            return refuse(format!("{:?} is no name for a kernel", kernel.name));
        }
        if !(1..=3).contains(&kernel.dimensions) {
            return refuse(format!("{} dimensions; a range has 1, 2 or 3", kernel.dimensions));
        }
        if let Some(group) = &kernel.group {
            if group.len() != usize::from(kernel.dimensions) {
                return refuse(format!(
                    "a group of {} sizes for {} dimensions",
                    group.len(),
                    kernel.dimensions
                ));
            }
            if group
                .iter()
                .try_fold(1_u64, |all, size| all.checked_mul((*size).max(1)))
                .is_none_or(|all| all > 1 << 31)
            {
                return refuse("a group of more than 2147483648 items".into());
            }
        }
        let mut seen = vec![false; kernel.arrays.len()];
        let mut values = vec![false; kernel.values.len()];
        for parameter in &kernel.parameters {
            let fresh = match parameter {
                Parameter::Array(id) => kernel.arrays.get(id.0 as usize).is_some_and(|array| {
                    array.space.is_parameter() && !core::mem::replace(&mut seen[id.0 as usize], true)
                }),
                Parameter::Value(id) => {
                    values.get_mut(id.0 as usize).is_some_and(|seen| !core::mem::replace(seen, true))
                }
            };
            if !fresh {
                return refuse("a parameter that is none, or is twice there".into());
            }
        }
        let mut of_structures = BTreeSet::new();
        let mut fields_seen = BTreeSet::new();
        for (parameter, structure) in &kernel.structures {
            let Structure { name, fields } = structure;
            match parameter {
                Parameter::Array(array) => {
                    let is_parameter = seen.get(array.0 as usize).copied().unwrap_or(false);
                    let arrays = kernel.columns(*array).map(|(_, arrays)| arrays).unwrap_or_default();
                    let is_column = |(id, ty): (&ArrayId, Scalar)| {
                        let (first, found) = (kernel.array(*array), kernel.array(*id));
                        found.element == ty && found.space == first.space && of_structures.insert(id.0)
                    };
                    let columns = structure.columns();
                    let fits = is_parameter && arrays.len() == columns.len();
                    if !fits || !arrays.iter().zip(columns).all(is_column) {
                        return refuse(format!(
                            "structures `{name}` in an array that is no parameter, or has others"
                        ));
                    }
                }
                Parameter::Value(first) => {
                    let values = kernel.fields(*first).map(|(_, values)| values).unwrap_or_default();
                    let is_field = |(id, (_, ty)): (&ValueId, &(String, Scalar))| {
                        let found = kernel.value(*id);
                        found.ty == *ty && !found.is_size && fields_seen.insert(id.0)
                    };
                    if values.len() != fields.len() || !values.iter().zip(fields).all(is_field) {
                        return refuse(format!("a structure `{name}` whose fields are no values in a row"));
                    }
                }
            }
            // They become names in Rust, where `r#type` is one.
            let is_name = |name: &String| {
                let word = name.strip_prefix("r#").unwrap_or(name);
                !word.is_empty() && word.chars().all(of_word)
            };
            let mut names = fields.iter().map(|(name, _)| name).chain([name]);
            if fields.is_empty() || structure.padded().is_some() || !names.all(is_name) {
                return refuse(format!("{name:?} with the fields {fields:?} is no structure"));
            }
        }
        if values.contains(&false) {
            return refuse("a scalar that is no parameter".into());
        }
        if let Some(size) = kernel.values.iter().find(|value| value.is_size && value.ty != Scalar::U64) {
            return Err(Refusal::new(size.place, format!("a usize is a u64 here, not {}", size.ty)));
        }
        for (array, seen) in kernel.arrays.iter().zip(seen) {
            if array.space.is_parameter() != seen {
                return Err(Refusal::new(array.place, "an array in global memory that is no parameter"));
            }
            match &array.space {
                Space::Constant(len) if len.saturating_mul(array.element.bytes()) > CONSTANT => {
                    let bytes = len.saturating_mul(array.element.bytes());
                    return Err(Refusal::new(
                        array.place,
                        format!("{bytes} bytes of constant memory, {CONSTANT} are allowed"),
                    ));
                }
                Space::Private(len) if *len > PRIVATE => {
                    return Err(Refusal::new(
                        array.place,
                        format!("{len} elements of private memory, {PRIVATE} are allowed"),
                    ));
                }
                Space::Atomic if !is_atomic(array.element) => {
                    return Err(Refusal::new(
                        array.place,
                        format!(
                            "atomic operations on {}: only i32, u32, i64, u64, f32 and f64 have them",
                            array.element
                        ),
                    ));
                }
                Space::Extent(_) if array.element != Scalar::U64 => {
                    return Err(Refusal::new(
                        array.place,
                        format!("the elements of an extent are u64, not {}", array.element),
                    ));
                }
                Space::Local(len) => self.length(len, false)?,
                Space::Extent(len) => self.length(len, true)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The length of an array, which is known before any item runs. That of an extent may follow
    /// from lengths of parameters.
    fn length(&self, len: &Expr, of_extent: bool) -> Result<(), Refusal> {
        self.expr(len, &[], 0)?;
        let mut wrong = (len.ty != Scalar::U64).then_some(len.place);
        len.for_each(&mut |expr| {
            let known = match expr.kind {
                ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Cast(_) | ExprKind::Binary { .. } => {
                    true
                }
                ExprKind::Query(query, _) => {
                    matches!(query, Query::GlobalSize | Query::LocalSize | Query::Groups)
                }
                ExprKind::Len(array) => {
                    let array = self.kernel.arrays.get(array.0 as usize);
                    of_extent && array.is_some_and(|array| array.space.is_parameter())
                }
                _ => false,
            };
            if !known {
                wrong = wrong.or(Some(expr.place));
            }
        });
        match wrong {
            None => Ok(()),
            Some(place) => Err(Refusal::new(
                place,
                "the length of a local array or an extent is a u64 of literals, sizes and scalar parameters",
            )),
        }
    }

    fn block(&self, body: &[Stmt], known: &mut [bool], loops: usize, depth: usize) -> Result<(), Refusal> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, known, loops, depth))
    }

    fn stmt(&self, stmt: &Stmt, known: &mut [bool], loops: usize, depth: usize) -> Result<(), Refusal> {
        let refuse = |message| Err(Refusal::new(stmt.place, message));
        if depth >= DEPTH {
            return refuse(format!("more than {DEPTH} nested statements"));
        }
        let mut failed = Ok(());
        stmt.for_each_expr(&mut |expr| {
            if failed.is_ok() {
                failed = self.expr(expr, known, depth);
            }
        });
        failed?;
        let set = stmt.sets().map(|variable| self.variable(variable, stmt)).transpose()?;
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                self.same(value, self.kernel.variable(*variable).ty)?;
                known[variable.0 as usize] = true;
            }
            StmtKind::Store { array, index, value } => {
                let Some(to) = self.kernel.arrays.get(array.0 as usize) else {
                    return refuse("no such array".into());
                };
                match to.space {
                    Space::Read | Space::Constant(_) | Space::Extent(_) => {
                        return refuse(format!("`{}` is only read: take `&mut [{}]`", to.name, to.element));
                    }
                    Space::Atomic => {
                        return refuse(format!("`{}` is atomic: write it by an atomic operation", to.name));
                    }
                    Space::Write | Space::Local(_) | Space::Private(_) => {}
                }
                self.same(index, Scalar::U64)?;
                self.same(value, to.element)?;
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let element = self.atomic(*array, operation.name(), stmt, set)?;
                let of_bits = matches!(operation, Atomic::And | Atomic::Or | Atomic::Xor);
                if of_bits && element.is_float() {
                    return refuse(format!(
                        "atomic {} on {element}: only integers have it",
                        operation.name()
                    ));
                }
                self.same(index, Scalar::U64)?;
                self.same(value, element)?;
                old.iter().for_each(|old| known[old.0 as usize] = true);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let element = self.atomic(*array, "compare-exchange", stmt, set)?;
                self.same(index, Scalar::U64)?;
                self.same(expected, element)?;
                self.same(new, element)?;
                old.iter().for_each(|old| known[old.0 as usize] = true);
            }
            StmtKind::Collect { operator, variable, value, .. } => {
                let ty = self.kernel.variable(*variable).ty;
                self.same(value, ty)?;
                if !operator.collects(ty) {
                    return refuse(format!("{ty} is not collected by `{}`", operator.name()));
                }
                known[variable.0 as usize] = true;
            }
            StmtKind::Broadcast { variable, value, from } => {
                self.same(value, self.kernel.variable(*variable).ty)?;
                self.same(from, Scalar::U64)?;
                known[variable.0 as usize] = true;
            }
            StmtKind::If { condition, then, other } => {
                self.same(condition, Scalar::Bool)?;
                let (mut one, mut two) = (known.to_vec(), known.to_vec());
                self.block(then, &mut one, loops, depth + 1)?;
                self.block(other, &mut two, loops, depth + 1)?;
                // The following statements run only after a branch that does not leave.
                for (known, (one, two)) in known.iter_mut().zip(one.into_iter().zip(two)) {
                    *known = (one || leaves(then)) && (two || leaves(other));
                }
            }
            StmtKind::While(condition, body) => {
                self.same(condition, Scalar::Bool)?;
                self.block(body, &mut known.to_vec(), loops + 1, depth + 1)?;
            }
            StmtKind::For { variable, start, end, step, body } => {
                let ty = self.kernel.variable(*variable).ty;
                if !ty.is_integer() {
                    return refuse(format!("a loop over {ty}: only integers are counted"));
                }
                for bound in [start, end, step] {
                    self.same(bound, ty)?;
                }
                let mut inside = known.to_vec();
                inside[variable.0 as usize] = true;
                if let Some(place) = sets_inside(body, *variable) {
                    return Err(Refusal::with(
                        place,
                        stmt.place,
                        "the variable of a loop is set inside of it",
                    ));
                }
                self.block(body, &mut inside, loops + 1, depth + 1)?;
            }
            StmtKind::Break | StmtKind::Continue if loops == 0 => {
                return refuse("`break` and `continue` need a loop".into());
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Barrier { .. }
            | StmtKind::Fence { .. } => {}
        }
        Ok(())
    }

    /// The elements of an array that an atomic operation changes; `old` is the type of the variable
    /// for the old value.
    fn atomic(
        &self,
        array: ArrayId,
        name: &str,
        stmt: &Stmt,
        old: Option<Scalar>,
    ) -> Result<Scalar, Refusal> {
        let refuse = |message| Err(Refusal::new(stmt.place, message));
        let Some(to) = self.kernel.arrays.get(array.0 as usize) else {
            return refuse("no such array".into());
        };
        let element = to.element;
        if !matches!(to.space, Space::Atomic | Space::Local(_)) {
            return refuse(format!("`{}` is not atomic: take `&[Atomic<{element}>]`", to.name));
        }
        if !is_atomic(element) {
            return refuse(format!(
                "atomic {name} on {element}: only i32, u32, i64, u64, f32 and f64 have it"
            ));
        }
        match old.filter(|ty| *ty != element) {
            Some(ty) => refuse(format!("the old value is {element}, not {ty}")),
            None => Ok(element),
        }
    }

    fn variable(&self, variable: VarId, stmt: &Stmt) -> Result<Scalar, Refusal> {
        let found = self.kernel.variables.get(variable.0 as usize);
        found.map(|variable| variable.ty).ok_or_else(|| Refusal::new(stmt.place, "no such variable"))
    }

    fn same(&self, expr: &Expr, ty: Scalar) -> Result<(), Refusal> {
        if expr.ty == ty {
            return Ok(());
        }
        Err(Refusal::new(expr.place, format!("{} where {ty} is needed: write `as {ty}`", expr.ty)))
    }

    fn expr(&self, expr: &Expr, known: &[bool], depth: usize) -> Result<(), Refusal> {
        let refuse = |message| Err(Refusal::new(expr.place, message));
        if depth >= DEPTH {
            return refuse(format!("more than {DEPTH} nested expressions"));
        }
        expr.operands().into_iter().try_for_each(|operand| self.expr(operand, known, depth + 1))?;
        let kernel = self.kernel;
        let ty = match &expr.kind {
            ExprKind::Literal(literal) if *literal != Literal::integer(literal.ty, literal.bits) => {
                return refuse(format!("a literal of {} with the bits {:#x}", literal.ty, literal.bits));
            }
            ExprKind::Literal(literal) => literal.ty,
            ExprKind::Variable(variable) => {
                let Some(found) = kernel.variables.get(variable.0 as usize) else {
                    return refuse("no such variable".into());
                };
                if !known.get(variable.0 as usize).copied().unwrap_or(false) {
                    return refuse(format!("`{}` may have no value here", found.name));
                }
                found.ty
            }
            ExprKind::Value(value) => match kernel.values.get(value.0 as usize) {
                Some(value) => value.ty,
                None => return refuse("no such parameter".into()),
            },
            ExprKind::Len(array) => match kernel.arrays.get(array.0 as usize) {
                Some(_) => Scalar::U64,
                None => return refuse("no such array".into()),
            },
            ExprKind::Query(_, dimension) if *dimension >= kernel.dimensions => {
                return refuse(format!("dimension {dimension}, the kernel has {}", kernel.dimensions));
            }
            ExprKind::Query(..) => Scalar::U64,
            ExprKind::Load(array, index) => {
                let Some(array) = kernel.arrays.get(array.0 as usize) else {
                    return refuse("no such array".into());
                };
                self.same(index, Scalar::U64)?;
                array.element
            }
            ExprKind::Unary(operator, operand) if !operator.takes(operand.ty) => {
                return refuse(format!("{} has no `{}`", operand.ty, operator.name()));
            }
            ExprKind::Unary(_, operand) => operand.ty,
            ExprKind::Binary { operator, left, right } => {
                if !operator.takes(left.ty) {
                    return refuse(format!("{} has no `{}`", left.ty, operator.name()));
                }
                let shifts = matches!(operator, Binary::Shl | Binary::Shr);
                if shifts && right.ty.is_integer() {
                    left.ty
                } else {
                    self.same(right, left.ty)?;
                    if operator.compares() { Scalar::Bool } else { left.ty }
                }
            }
            ExprKind::Cast(operand) => {
                if expr.ty == Scalar::Bool && operand.ty != Scalar::Bool {
                    return refuse("a number is no bool: write `!= 0`".into());
                }
                let half = [operand.ty, expr.ty].into_iter().find(|ty| ty.is_half());
                if let Some(half) = half.filter(|_| operand.ty != expr.ty) {
                    if ![operand.ty, expr.ty].contains(&Scalar::F32) {
                        return refuse(format!(
                            "{} as {}: a {half} is converted by f32",
                            operand.ty, expr.ty
                        ));
                    }
                }
                if operand.ty == Scalar::Bool && expr.ty.is_float() {
                    return refuse("a bool is no floating point number: write `if`".into());
                }
                expr.ty
            }
            ExprKind::Bits(operand) => {
                let is_number = |ty: Scalar| ty.is_float() || ty.is_half();
                let (from, to) = (operand.ty, expr.ty);
                let fits = |number: Scalar, word: Scalar| is_number(number) && word == number.unsigned();
                if !fits(from, to) && !fits(to, from) {
                    return refuse(format!("the bits of {from} are no {to}"));
                }
                to
            }
            ExprKind::Select { condition, then, other } => {
                self.same(condition, Scalar::Bool)?;
                self.same(other, then.ty)?;
                then.ty
            }
            ExprKind::Math(function, arguments) => {
                if arguments.len() != function.arguments() {
                    return refuse(format!(
                        "`{}` has {} arguments, {} are given",
                        function.name(),
                        function.arguments(),
                        arguments.len()
                    ));
                }
                let ty = arguments[0].ty;
                if !function.takes(ty) {
                    let types = if function.counts() { "u32 and u64" } else { "floating point numbers" };
                    return refuse(format!("`{}` of {ty}: only {types} have it", function.name()));
                }
                arguments.iter().try_for_each(|argument| self.same(argument, ty))?;
                ty
            }
        };
        if ty == expr.ty { Ok(()) } else { refuse(format!("{} that says it is {}", ty, expr.ty)) }
    }
}

const fn is_atomic(element: Scalar) -> bool {
    matches!(element, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64)
}

/// Whether the statements behind the block never run after it.
pub(crate) fn leaves(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return => true,
        StmtKind::If { then, other, .. } => leaves(then) && leaves(other),
        _ => false,
    })
}

fn sets_inside(body: &[Stmt], variable: VarId) -> Option<crate::kernel::Place> {
    body.iter().find_map(|stmt| {
        if stmt.sets() == Some(variable) {
            return Some(stmt.place);
        }
        stmt.blocks().into_iter().find_map(|block| sets_inside(block, variable))
    })
}
