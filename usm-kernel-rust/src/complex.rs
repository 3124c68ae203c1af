//! Complex numbers: structures of two floats that every kernel knows. Their operators and methods
//! become operators on floats, the same operations as those of usm-python's compiler.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{BinOp, Expr as Rust, ExprBinary, ExprMethodCall, Result, Type, UnOp};
use usm_kernel_ir::{ArrayId, Binary, Expr, Math, Place, Scalar, Stmt, StmtKind, Structure, Unary};

use crate::ahead::of_value;
use crate::expression::typed;
use crate::number::With;
use crate::scope::{Meaning, Scope, refuse};
use crate::signature::place_of;
use crate::structure;
use crate::tuple;

const NAMES: [(&str, Scalar); 2] = [("Complex32", Scalar::F32), ("Complex64", Scalar::F64)];

/// A type of complex numbers: the number of its structure, its name, and the type of its parts.
type Kind = (usize, &'static str, Scalar);

/// The structures of complex numbers, which stand behind those of a module.
pub(crate) fn structures() -> impl Iterator<Item = Structure> {
    NAMES.into_iter().map(|(name, part)| Structure {
        name: name.into(),
        fields: vec![("re".into(), part), ("im".into(), part)],
    })
}

/// Whether a type has the name of complex numbers.
pub(crate) fn is_named(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if NAMES.iter().any(|(name, _)| path.path.is_ident(name)))
}

fn kind(number: usize, scope: &Scope) -> Option<Kind> {
    let first = scope.neighbours.structures.len().checked_sub(NAMES.len())?;
    let (name, part) = NAMES.get(number.checked_sub(first)?)?;
    Some((number, name, *part))
}

/// The type of a text that is a complex number; `None` for other values.
pub(crate) fn of(value: &Rust, scope: &Scope) -> Option<Kind> {
    kind(of_value(value, scope)?, scope)
}

/// As [`of`], of what only complex numbers have: operators, methods and `new`.
pub(crate) fn made(value: &Rust, scope: &Scope) -> Option<Kind> {
    match value {
        Rust::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => of(&unary.expr, scope),
        Rust::Binary(binary) if is_arithmetic(&binary.op) => {
            of(&binary.left, scope).or_else(|| of(&binary.right, scope))
        }
        // Those that are unknown are refused as what they are.
        Rust::MethodCall(call) if call.method != "norm" && call.method != "norm_sqr" => {
            of(&call.receiver, scope)
        }
        Rust::Call(call) => {
            let Rust::Path(path) = &*call.func else { return None };
            let names: Vec<_> = path.path.segments.iter().map(|segment| &segment.ident).collect();
            match &names[..] {
                [ty, name] if *name == "new" => {
                    kind(structure::of_path(&(*ty).clone().into(), scope)?, scope)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the result of an operator has its operands' type.
const fn is_arithmetic(operator: &BinOp) -> bool {
    use BinOp::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};
    matches!(
        operator,
        Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | BitAnd(_) | BitOr(_) | BitXor(_) | Shl(_) | Shr(_)
    )
}

/// Refuses a value where this structure is needed.
pub(crate) fn refuse_other<T>(value: &Rust, needed: usize, scope: &Scope) -> Result<T> {
    let message = match (kind(needed, scope), of(value, scope)) {
        (None, _) => {
            let name = &scope.neighbours.structures[needed].name;
            format!("a `{name}` is needed here: an element, a variable or `{name} {{ .. }}`")
        }
        (Some((_, name, part)), Some((_, found, _))) => {
            format!("`{found}` where `{name}` is needed: write `{name}::new(z.re as {part}, z.im as {part})`")
        }
        (Some((_, name, _)), None) => {
            format!("a `{name}` is needed here: write `{name}::new(x, 0.0)` of a real number `x`")
        }
    };
    refuse(value.span(), message)
}

fn refuse_operation<T>(at: Span, what: &str, (_, name, _): Kind) -> Result<T> {
    refuse(
        at,
        format!(
            "{what}: a `{name}` has `+`, `-`, `*`, `/`, `==`, `!=`, `conj`, `norm` and `norm_sqr`; compute others with its `re` and `im`"
        ),
    )
}

/// Reads the parts of what [`made`] knows.
pub(crate) fn parts(value: &Rust, of: Kind, scope: &mut Scope) -> Result<Vec<Expr>> {
    match value {
        Rust::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            let found = tuple::parts(&unary.expr, &[], scope)?;
            Ok(found.into_iter().map(negative).collect())
        }
        Rust::Binary(binary) => {
            let Some(operator) = operator(&binary.op) else {
                return refuse_operation(binary.op.span(), "no such operator", of);
            };
            let (one, two) = operands(binary, of, scope)?;
            Ok(arithmetic(operator, one, two, place_of(binary.op.span()), scope))
        }
        Rust::MethodCall(call) if call.method == "conj" && call.args.is_empty() => {
            let mut found = tuple::parts(&call.receiver, &[], scope)?;
            let im = found.pop().map(negative);
            found.extend(im);
            Ok(found)
        }
        Rust::Call(call) if call.args.len() == 2 => {
            let mut re = typed(&call.args[0], of.2, scope)?;
            let im = scope.read_after(&mut [&mut re], |scope| typed(&call.args[1], of.2, scope))?;
            Ok(vec![re, im])
        }
        Rust::MethodCall(call) => {
            refuse_operation(call.method.span(), &format!("no such `{}`", call.method), of)
        }
        Rust::Call(call) => refuse(call.span(), format!("write `{}::new(re, im)`", of.1)),
        other => refuse_operation(other.span(), "no such operator", of),
    }
}

const fn operator(operator: &BinOp) -> Option<Binary> {
    Some(match operator {
        BinOp::Add(_) => Binary::Add,
        BinOp::Sub(_) => Binary::Sub,
        BinOp::Mul(_) => Binary::Mul,
        BinOp::Div(_) => Binary::Div,
        _ => return None,
    })
}

/// Reads two operands: the two parts of a complex number, or a real number.
fn operands(binary: &ExprBinary, of: Kind, scope: &mut Scope) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let mut one = operand(&binary.left, of, scope)?;
    let mut earlier: Vec<&mut Expr> = one.iter_mut().collect();
    let two = scope.read_after(&mut earlier, |scope| operand(&binary.right, of, scope))?;
    Ok((one, two))
}

fn operand(value: &Rust, (number, _, part): Kind, scope: &mut Scope) -> Result<Vec<Expr>> {
    match of_value(value, scope) {
        None => Ok(vec![typed(value, part, scope)?]),
        Some(found) if found == number => both(value, number, scope),
        Some(_) => refuse_other(value, number, scope),
    }
}

/// Reads the two parts of a complex number.
fn both(value: &Rust, number: usize, scope: &mut Scope) -> Result<Vec<Expr>> {
    let found = tuple::parts(value, &[], scope)?;
    if found.len() == 2 { Ok(found) } else { refuse_other(value, number, scope) }
}

fn negative(part: Expr) -> Expr {
    let at = part.place;
    Expr::unary(Unary::Neg, part, at)
}

/// An operator on two numbers, one of which may be real.
fn arithmetic(operator: Binary, one: Vec<Expr>, two: Vec<Expr>, at: Place, scope: &mut Scope) -> Vec<Expr> {
    let with = With { ty: one[0].ty, at };
    let keep = |part| with.reused(part, "complex", scope);
    // A sum reads each part once.
    let (mut one, mut two): (Vec<Expr>, Vec<Expr>) = match operator {
        Binary::Add | Binary::Sub => (one, two),
        _ => {
            let mut all: Vec<Expr> = one.iter().chain(&two).cloned().map(keep).collect();
            let two = all.split_off(one.len());
            (all, two)
        }
    };
    let multiply = |a: &Expr, b: &Expr| with.two(Binary::Mul, a.clone(), b.clone());
    if let (Binary::Mul, [real]) = (operator, &one[..]) {
        return two.iter().map(|part| multiply(real, part)).collect();
    }
    if one.len() == 1 {
        one.push(with.zero());
    }
    if let [real] = &two[..] {
        let by = match operator {
            Binary::Mul => real.clone(),
            Binary::Div => with.reused(with.two(Binary::Div, with.one(), real.clone()), "complex", scope),
            _ => {
                let re = with.two(operator, one.remove(0), two.remove(0));
                one.insert(0, re);
                return one;
            }
        };
        return one.iter().map(|part| multiply(part, &by)).collect();
    }
    match operator {
        Binary::Mul => {
            let re = with.sub(multiply(&one[0], &two[0]), multiply(&one[1], &two[1]));
            vec![re, with.two(Binary::Add, multiply(&one[0], &two[1]), multiply(&one[1], &two[0]))]
        }
        Binary::Div => quotient(&one, &two, with, scope),
        _ => one.into_iter().zip(two).map(|(a, b)| with.two(operator, a, b)).collect(),
    }
}

/// A quotient by Smith's steps, which keep squares from overflowing.
fn quotient(one: &[Expr], two: &[Expr], with: With, scope: &mut Scope) -> Vec<Expr> {
    let mut keep = |value| with.reused(value, "quotient", scope);
    let add = |a: Expr, b: Expr| with.two(Binary::Add, a, b);
    let multiply = |a: &Expr, b: &Expr| with.two(Binary::Mul, a.clone(), b.clone());
    let size = |part: &Expr| with.math(Math::Abs, vec![part.clone()]);
    let is_re = keep(Expr::binary(Binary::Ge, size(&two[0]), size(&two[1]), with.at));
    let choose = |a: &Expr, b: &Expr| with.select(is_re.clone(), a.clone(), b.clone());
    let (large, small) = (keep(choose(&two[0], &two[1])), keep(choose(&two[1], &two[0])));
    let (first, second) = (keep(choose(&one[0], &one[1])), keep(choose(&one[1], &one[0])));
    let is_zero = Expr::binary(Binary::Eq, large.clone(), with.zero(), with.at);
    let ratio = with.two(Binary::Div, small.clone(), large.clone());
    let ratio = keep(with.select(is_zero, with.zero(), ratio));
    let scale = keep(with.two(Binary::Div, with.one(), add(large, multiply(&small, &ratio))));
    let re = multiply(&add(first.clone(), multiply(&second, &ratio)), &scale);
    let im = keep(multiply(&with.sub(second, multiply(&first, &ratio)), &scale));
    vec![re, choose(&im, &negative(im.clone()))]
}

/// Reads an operator whose operands may be complex: a comparison. `None` if none is complex.
pub(crate) fn compare(binary: &ExprBinary, operator: Binary, scope: &mut Scope) -> Result<Option<Expr>> {
    let (one, two) = (of(&binary.left, scope), of(&binary.right, scope));
    let Some(of) = one.or(two) else { return Ok(None) };
    let at = binary.op.span();
    let both = match operator {
        Binary::Eq => Binary::And,
        Binary::Ne => Binary::Or,
        Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => {
            return refuse(
                at,
                "complex numbers have no order: compare `.re`, `.im`, `.norm()` or `.norm_sqr()`",
            );
        }
        _ if self::operator(&binary.op).is_some() => {
            return structure::refuse_number(binary.span(), of.0, scope);
        }
        _ => return refuse_operation(at, "no such operator", of),
    };
    if let Some(real) = [(one, &binary.left), (two, &binary.right)].into_iter().find(|(of, _)| of.is_none()) {
        return refuse_other(real.1, of.0, scope);
    }
    let (one, two) = operands(binary, of, scope)?;
    let at = place_of(at);
    let same = one.into_iter().zip(two).map(|(a, b)| Expr::binary(operator, a, b, at));
    Ok(same.reduce(|re, im| Expr::binary(both, re, im, at)))
}

/// Reads a method of a complex number that gives a real one.
pub(crate) fn method(call: &ExprMethodCall, of: Kind, scope: &mut Scope) -> Result<Expr> {
    let name = &call.method;
    if name == "conj" {
        return structure::refuse_number(call.span(), of.0, scope);
    }
    if !call.args.is_empty() || (name != "norm" && name != "norm_sqr") {
        return refuse_operation(name.span(), &format!("no such `{name}`"), of);
    }
    let with = With { ty: of.2, at: place_of(call.method.span()) };
    let found = both(&call.receiver, of.0, scope)?;
    if name == "norm" {
        return Ok(with.math(Math::Hypot, found));
    }
    let mut square = |part: &Expr| {
        let part = with.reused(part.clone(), "complex", scope);
        with.two(Binary::Mul, part.clone(), part)
    };
    let (re, im) = (square(&found[0]), square(&found[1]));
    Ok(with.two(Binary::Add, re, im))
}

/// A place of a complex number: variables, or elements.
enum Part {
    Variable(usm_kernel_ir::VarId),
    Element(ArrayId, Expr),
}

/// Reads `z += w` and its like. As Rust does with operators that are no numbers', it reads the
/// place first.
pub(crate) fn update(
    binary: &ExprBinary,
    operator: Binary,
    of: Kind,
    scope: &mut Scope,
    out: &mut Vec<Stmt>,
) -> Result<()> {
    let (left, at) = (&*binary.left, place_of(binary.op.span()));
    if !matches!(operator, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div) {
        return refuse_operation(binary.op.span(), "no such operator", of);
    }
    let places: Vec<Part> = match left {
        element if structure::is_element(element, scope) => {
            let places = structure::written_places(element, scope)?;
            places.into_iter().map(|(array, index)| Part::Element(array, index)).collect()
        }
        Rust::Path(path) => match path.path.get_ident().map(|name| scope.find(name)).transpose()? {
            Some(Meaning::Tuple(number)) if scope.tuples[number].1 => {
                scope.tuples[number].0.iter().map(|id| Part::Variable(*id)).collect()
            }
            _ => return refuse(left.span(), "this tuple or structure is set once: write `let mut`"),
        },
        other => return refuse(other.span(), "only variables and elements are assigned"),
    };
    let two = operand(&binary.right, of, scope)?;
    let one = places.iter().map(|part| match part {
        Part::Variable(id) => Expr::variable(*id, of.2, at),
        Part::Element(array, index) => Expr::load(*array, of.2, index.clone(), index.place),
    });
    let found = arithmetic(operator, one.collect(), two, at, scope);
    let found: Vec<Expr> = found.into_iter().map(|part| tuple::keep(part, scope)).collect();
    out.append(&mut scope.before);
    for (part, value) in places.into_iter().zip(found) {
        let (kind, at) = match part {
            Part::Variable(id) => (StmtKind::Set(id, value), at),
            Part::Element(array, index) => {
                let at = index.place;
                (StmtKind::Store { array, index, value }, at)
            }
        };
        out.push(Stmt::new(kind, at));
    }
    Ok(())
}
