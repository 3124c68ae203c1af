//! Complex numbers: structures of two floats that every kernel knows. Their operators and methods
//! become operators on floats, the same operations as those of usm-python's compiler.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{BinOp, Expr as Rust, ExprBinary, ExprMethodCall, Result, UnOp};
use usm_kernel_ir::{ArrayId, Binary, Expr, Math, Place, Scalar, Stmt, StmtKind, Unary};

use crate::meaning::Meaning;
use crate::module::COMPLEX;
use crate::number::With;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

/// A type of complex numbers: the number of its structure, its name, and the type of its parts.
type Kind = (usize, &'static str, Scalar);

/// A place of a complex number: variables, or elements.
enum Part {
    Variable(usm_kernel_ir::VarId),
    Element(ArrayId, Expr),
}

impl Reader {
    fn complex_kind(&self, number: usize) -> Option<Kind> {
        let first = self.neighbours.structures.len().checked_sub(COMPLEX.len())?;
        let (name, part) = COMPLEX.get(number.checked_sub(first)?)?;
        Some((number, name, *part))
    }

    /// The type of a text that is a complex number; `None` for other values.
    pub(crate) fn complex_type(&self, value: &Rust) -> Option<Kind> {
        self.complex_kind(self.structure_of_value(value)?)
    }

    /// As [`complex_type`](Self::complex_type), of what only complex numbers have: operators,
    /// methods and `new`.
    pub(crate) fn complex_result(&self, value: &Rust) -> Option<Kind> {
        match value {
            Rust::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => self.complex_type(&unary.expr),
            Rust::Binary(binary) if is_arithmetic(&binary.op) => {
                self.complex_type(&binary.left).or_else(|| self.complex_type(&binary.right))
            }
            // Those that are unknown are refused as what they are.
            Rust::MethodCall(call) if call.method != "norm" && call.method != "norm_sqr" => {
                self.complex_type(&call.receiver)
            }
            Rust::Call(call) => {
                let Rust::Path(path) = &*call.func else { return None };
                let names: Vec<_> = path.path.segments.iter().map(|segment| &segment.ident).collect();
                match &names[..] {
                    [ty, name] if *name == "new" => {
                        self.complex_kind(self.structure_of_path(&(*ty).clone().into())?)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Refuses a value where this structure is needed.
    pub(crate) fn refuse_other_structure<T>(&self, value: &Rust, expected: usize) -> Result<T> {
        let message = match (self.complex_kind(expected), self.complex_type(value)) {
            (None, _) => {
                let name = &self.neighbours.structures[expected].name;
                format!("a `{name}` is needed here: an element, a variable or `{name} {{ .. }}`")
            }
            (Some((_, name, part)), Some((_, own_name, _))) => {
                format!(
                    "`{own_name}` where `{name}` is needed: write `{name}::new(z.re as {part}, z.im as {part})`"
                )
            }
            (Some((_, name, _)), None) => {
                format!("a `{name}` is needed here: write `{name}::new(x, 0.0)` of a real number `x`")
            }
        };
        refuse(value.span(), message)
    }

    /// Reads the parts of what [`complex_result`](Self::complex_result) knows.
    pub(crate) fn complex_parts(&mut self, value: &Rust, of: Kind) -> Result<Vec<Expr>> {
        match value {
            Rust::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                let parts = self.tuple_parts(&unary.expr, &[])?;
                Ok(parts.into_iter().map(negative).collect())
            }
            Rust::Binary(binary) => {
                let Some(operator) = operator(&binary.op) else {
                    return refuse_operation(binary.op.span(), "no such operator", of);
                };
                let (one, two) = self.complex_operands(binary, of)?;
                Ok(self.complex_arithmetic(operator, one, two, place_of(binary.op.span())))
            }
            Rust::MethodCall(call) if call.method == "conj" && call.args.is_empty() => {
                let mut parts = self.tuple_parts(&call.receiver, &[])?;
                let im = parts.pop().map(negative);
                parts.extend(im);
                Ok(parts)
            }
            Rust::Call(call) if call.args.len() == 2 => {
                let mut re = self.read_typed(&call.args[0], of.2)?;
                let im = self.read_after(&mut [&mut re], |reader| reader.read_typed(&call.args[1], of.2))?;
                Ok(vec![re, im])
            }
            Rust::MethodCall(call) => {
                refuse_operation(call.method.span(), &format!("no such `{}`", call.method), of)
            }
            Rust::Call(call) => refuse(call.span(), format!("write `{}::new(re, im)`", of.1)),
            other => refuse_operation(other.span(), "no such operator", of),
        }
    }

    /// Reads two operands: the two parts of a complex number, or a real number.
    fn complex_operands(&mut self, binary: &ExprBinary, of: Kind) -> Result<(Vec<Expr>, Vec<Expr>)> {
        let mut one = self.complex_operand(&binary.left, of)?;
        let mut earlier: Vec<&mut Expr> = one.iter_mut().collect();
        let two = self.read_after(&mut earlier, |reader| reader.complex_operand(&binary.right, of))?;
        Ok((one, two))
    }

    fn complex_operand(&mut self, value: &Rust, (number, _, part): Kind) -> Result<Vec<Expr>> {
        match self.structure_of_value(value) {
            None => Ok(vec![self.read_typed(value, part)?]),
            Some(of) if of == number => self.both_parts(value, number),
            Some(_) => self.refuse_other_structure(value, number),
        }
    }

    /// Reads the two parts of a complex number.
    fn both_parts(&mut self, value: &Rust, number: usize) -> Result<Vec<Expr>> {
        let parts = self.tuple_parts(value, &[])?;
        if parts.len() == 2 { Ok(parts) } else { self.refuse_other_structure(value, number) }
    }

    /// An operator on two numbers, one of which may be real.
    fn complex_arithmetic(
        &mut self,
        operator: Binary,
        one: Vec<Expr>,
        two: Vec<Expr>,
        at: Place,
    ) -> Vec<Expr> {
        let with = With { ty: one[0].ty, at };
        let keep = |part| with.reuse(part, "complex", self);
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
                Binary::Div => with.reuse(with.two(Binary::Div, with.one(), real.clone()), "complex", self),
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
            Binary::Div => self.complex_quotient(&one, &two, with),
            _ => one.into_iter().zip(two).map(|(a, b)| with.two(operator, a, b)).collect(),
        }
    }

    /// A quotient by Smith's steps, which keep squares from overflowing.
    fn complex_quotient(&mut self, one: &[Expr], two: &[Expr], with: With) -> Vec<Expr> {
        let mut keep = |value| with.reuse(value, "quotient", self);
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
    pub(crate) fn compare_complex(&mut self, binary: &ExprBinary, operator: Binary) -> Result<Option<Expr>> {
        let (one, two) = (self.complex_type(&binary.left), self.complex_type(&binary.right));
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
                return self.refuse_number(binary.span(), of.0);
            }
            _ => return refuse_operation(at, "no such operator", of),
        };
        if let Some(real) =
            [(one, &binary.left), (two, &binary.right)].into_iter().find(|(of, _)| of.is_none())
        {
            return self.refuse_other_structure(real.1, of.0);
        }
        let (one, two) = self.complex_operands(binary, of)?;
        let at = place_of(at);
        let same = one.into_iter().zip(two).map(|(a, b)| Expr::binary(operator, a, b, at));
        Ok(same.reduce(|re, im| Expr::binary(both, re, im, at)))
    }

    /// Reads a method of a complex number that gives a real one.
    pub(crate) fn read_complex_method(&mut self, call: &ExprMethodCall, of: Kind) -> Result<Expr> {
        let name = &call.method;
        if name == "conj" {
            return self.refuse_number(call.span(), of.0);
        }
        if !call.args.is_empty() || (name != "norm" && name != "norm_sqr") {
            return refuse_operation(name.span(), &format!("no such `{name}`"), of);
        }
        let with = With { ty: of.2, at: place_of(call.method.span()) };
        let parts = self.both_parts(&call.receiver, of.0)?;
        if name == "norm" {
            return Ok(with.math(Math::Hypot, parts));
        }
        let mut square = |part: &Expr| {
            let part = with.reuse(part.clone(), "complex", self);
            with.two(Binary::Mul, part.clone(), part)
        };
        let (re, im) = (square(&parts[0]), square(&parts[1]));
        Ok(with.two(Binary::Add, re, im))
    }

    /// Reads `z += w` and its like. As Rust does with operators that are no numbers', it reads the
    /// place first.
    pub(crate) fn update_complex(
        &mut self,
        binary: &ExprBinary,
        operator: Binary,
        of: Kind,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let (left, at) = (&*binary.left, place_of(binary.op.span()));
        if !matches!(operator, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div) {
            return refuse_operation(binary.op.span(), "no such operator", of);
        }
        let places: Vec<Part> = match left {
            element if self.is_structure_element(element) => {
                let places = self.writable_places(element)?;
                places.into_iter().map(|(array, index)| Part::Element(array, index)).collect()
            }
            Rust::Path(path) => match path.path.get_ident().map(|name| self.find(name)).transpose()? {
                Some(Meaning::Tuple(number)) if self.tuples[number].1 => {
                    self.tuples[number].0.iter().map(|id| Part::Variable(*id)).collect()
                }
                _ => return refuse(left.span(), "this tuple or structure is set once: write `let mut`"),
            },
            other => return refuse(other.span(), "only variables and elements are assigned"),
        };
        let two = self.complex_operand(&binary.right, of)?;
        let one = places.iter().map(|part| match part {
            Part::Variable(id) => Expr::variable(*id, of.2, at),
            Part::Element(array, index) => Expr::load(*array, of.2, index.clone(), index.place),
        });
        let parts = self.complex_arithmetic(operator, one.collect(), two, at);
        let parts: Vec<Expr> = parts.into_iter().map(|part| self.keep_part(part)).collect();
        out.append(&mut self.before);
        for (part, value) in places.into_iter().zip(parts) {
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
}

/// Whether the result of an operator has its operands' type.
const fn is_arithmetic(operator: &BinOp) -> bool {
    use BinOp::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};
    matches!(
        operator,
        Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | BitAnd(_) | BitOr(_) | BitXor(_) | Shl(_) | Shr(_)
    )
}

fn refuse_operation<T>(at: Span, what: &str, (_, name, _): Kind) -> Result<T> {
    refuse(
        at,
        format!(
            "{what}: a `{name}` has `+`, `-`, `*`, `/`, `==`, `!=`, `conj`, `norm` and `norm_sqr`; compute others with its `re` and `im`"
        ),
    )
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

fn negative(part: Expr) -> Expr {
    let at = part.place;
    Expr::unary(Unary::Neg, part, at)
}
