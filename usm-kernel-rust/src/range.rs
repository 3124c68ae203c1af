//! Loops over ranges, their `rev` and their `step_by`, as loops of the IR, which count upwards to
//! an end that they exclude.

use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprForLoop, ExprRange, Pat, RangeLimits, Result};
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Place, Scalar, Stmt, StmtKind, VarId};

use crate::literal;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

/// A range of the source.
struct Iterations<'r> {
    range: &'r ExprRange,
    is_closed: bool,
    step: Option<&'r Rust>,
    turn: Turn,
}

/// The direction of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Upwards,
    /// From the end, in steps from there.
    Downwards,
    /// The numbers of the steps from the start, the last one first.
    Back,
}

impl<'r> Iterations<'r> {
    fn of(mut of: &'r Rust) -> Result<Self> {
        let (mut step, mut turn, mut is_turned) = (None, Turn::Upwards, false);
        let range = loop {
            match of {
                Rust::Paren(inner) => of = &inner.expr,
                Rust::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
                    if step.is_some() {
                        return refuse(call.method.span(), "one `step_by` is enough: multiply the steps");
                    }
                    step = call.args.first();
                    of = &call.receiver;
                }
                Rust::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
                    if is_turned {
                        return refuse(call.method.span(), "the range is turned twice: leave out `rev`");
                    }
                    // Methods are met from the last one to the first one.
                    turn = if step.is_some() { Turn::Downwards } else { Turn::Back };
                    is_turned = true;
                    of = &call.receiver;
                }
                Rust::MethodCall(call) => {
                    return refuse(
                        call.method.span(),
                        "only `rev` and `step_by` are known of ranges: write a loop over a range",
                    );
                }
                Rust::Range(range) => break range,
                other => {
                    return refuse(
                        other.span(),
                        "a kernel loops over ranges: write `for i in 0..n` and index the array",
                    );
                }
            }
        };
        // Without steps both are the same.
        if step.is_none() && turn == Turn::Back {
            turn = Turn::Downwards;
        }
        Ok(Self { range, is_closed: matches!(range.limits, RangeLimits::Closed(_)), step, turn })
    }
}

/// The numbers of a range, read once before its loop.
struct Range {
    ty: Scalar,
    at: Place,
    start: Expr,
    end: Expr,
    step: Expr,
    is_closed: bool,
}

impl Range {
    fn number(&self, ty: Scalar, value: u64) -> Expr {
        Expr::literal(Literal::integer(ty, value), self.at)
    }

    /// Gives the numbers variables, because the body may change what they read.
    fn keep(&mut self, reader: &mut Reader, out: &mut Vec<Stmt>) {
        for (name, value) in [("start", &mut self.start), ("end", &mut self.end), ("step", &mut self.step)] {
            if !is_fixed(value) {
                *value = reader.keep_bound(name, value.clone(), out);
            }
        }
    }

    /// The end that the loop excludes.
    fn behind(&self) -> Expr {
        if self.is_closed { sum(self.end.clone(), self.number(self.ty, 1)) } else { self.end.clone() }
    }

    /// The last number, unless the range is empty.
    fn last(&self) -> Expr {
        if self.is_closed { self.end.clone() } else { difference(self.end.clone(), self.number(self.ty, 1)) }
    }

    /// A loop whose counter goes up while the variable goes down.
    fn downwards(self, variable: VarId, mut body: Vec<Stmt>, reader: &mut Reader) -> Stmt {
        let counter = reader.add_hidden("counter", self.ty, self.at);
        let end = self.behind();
        let down = difference(self.last(), Expr::variable(counter, self.ty, self.at));
        let value = sum(self.start.clone(), down);
        body.insert(0, Stmt::new(StmtKind::Set(variable, value), self.at));
        Stmt::new(StmtKind::For { variable: counter, start: self.start, end, step: self.step, body }, self.at)
    }

    /// A loop that counts its steps as `u64`, because the last number of the range may be the
    /// largest of its type. Over all numbers of 64 bits in steps of one it ends one step early,
    /// after centuries.
    fn in_rounds(self, turn: Turn, variable: VarId, mut body: Vec<Stmt>, reader: &mut Reader) -> Stmt {
        let (ty, at) = (self.ty, self.at);
        let one = self.number(Scalar::U64, 1);
        let compare = if self.is_closed { Binary::Le } else { Binary::Lt };
        let is_any = Expr::binary(compare, self.start.clone(), self.end.clone(), at);
        // The proof divides only what it knows to be above zero.
        let least = sum(self.start.clone(), self.number(ty, if self.is_closed { 0 } else { 1 }));
        let distance = difference(wide(larger(self.end.clone(), least), at), wide(self.start.clone(), at));
        let room = if self.is_closed { distance } else { difference(distance, one.clone()) };
        // A step of zero counts as one.
        let step = larger(wide(self.step.clone(), at), one.clone());
        let mut inner = Vec::new();
        let steps = reader.keep_bound("steps", quotient(room, step.clone()), &mut inner);
        let more = sum(steps.clone(), one.clone());
        // Of all numbers of 64 bits there is one more than a number of 64 bits can say.
        let rounds = if self.is_closed && ty.bits() == 64 { larger(steps.clone(), more) } else { more };
        let counter = reader.add_hidden("counter", Scalar::U64, at);
        let now = Expr::variable(counter, Scalar::U64, at);
        let now = if turn == Turn::Back { difference(steps, now) } else { now };
        let offset = cast(product(now, step), ty, at);
        let value = match turn {
            Turn::Downwards => difference(self.last(), offset),
            Turn::Upwards | Turn::Back => sum(self.start, offset),
        };
        body.insert(0, Stmt::new(StmtKind::Set(variable, value), at));
        let zero = Expr::literal(Literal::integer(Scalar::U64, 0), at);
        inner.push(Stmt::new(
            StmtKind::For { variable: counter, start: zero, end: rounds, step: one, body },
            at,
        ));
        Stmt::new(StmtKind::If { condition: is_any, then: inner, other: Vec::new() }, at)
    }
}

impl Reader {
    pub(crate) fn read_for(&mut self, word: &ExprForLoop, out: &mut Vec<Stmt>) -> Result<()> {
        let domain = Iterations::of(&word.expr)?;
        let (Some(start), Some(end)) = (&domain.range.start, &domain.range.end) else {
            return refuse(domain.range.span(), "a range needs a start and an end");
        };
        let mut hint = None;
        if literal::is_open(start) && literal::is_open(end) {
            match &*word.pat {
                // Nobody sees the numbers.
                Pat::Wild(_) => hint = Some(Scalar::I32),
                name => {
                    return refuse(
                        start.span(),
                        format!(
                            "the type of `{}` is open: write it, such as `0_usize` for an index",
                            name.to_token_stream()
                        ),
                    );
                }
            }
        }
        let (mut start, mut end) = self.read_pair(start, end, hint)?;
        let ty = start.ty;
        if !ty.is_integer() {
            return refuse(domain.range.span(), format!("a loop counts integers, not {ty}"));
        }
        let step = match domain.step {
            Some(step) => {
                self.read_after(&mut [&mut start, &mut end], |reader| reader.read_step(step, ty))?
            }
            None => Expr::literal(Literal::integer(ty, 1), start.place),
        };
        out.append(&mut self.before);
        let mark = self.mark();
        let at = place_of(word.for_token.span);
        let (is_plain, is_short) = (!domain.is_closed && domain.turn == Turn::Upwards, step.ty == ty);
        let is_below = !domain.is_closed || is_below_largest(&end);
        let mut range = Range { ty, at, start, end, step, is_closed: domain.is_closed };
        if !(is_short && (is_plain || domain.turn == Turn::Upwards && is_below)) {
            range.keep(self, out);
        }
        let variable = match &*word.pat {
            Pat::Ident(name) => self.variable(&name.ident, ty, false),
            Pat::Wild(wild) => self.add_hidden("_", ty, place_of(wild.span())),
            other => return refuse(other.span(), "the variable of a loop is a name"),
        };
        self.read_loop(word.label.as_ref(), out, |reader| {
            let body = reader.read_block(&word.body)?;
            reader.forget(mark);
            Ok(match domain.turn {
                Turn::Upwards if is_short && is_below => {
                    let end = range.behind();
                    Stmt::new(StmtKind::For { variable, start: range.start, end, step: range.step, body }, at)
                }
                Turn::Downwards if is_short && is_below => range.downwards(variable, body, reader),
                turn => range.in_rounds(turn, variable, body, reader),
            })
        })
    }

    /// The step of a range has its type, or that of Rust.
    fn read_step(&mut self, step: &Rust, ty: Scalar) -> Result<Expr> {
        let step_value = self.read_expr(step, Some(ty))?;
        if step_value.ty != ty && step_value.ty != Scalar::U64 {
            return refuse(
                step.span(),
                format!("a step of {} in a range of {ty}: write `as usize`", step_value.ty),
            );
        }
        let number = if let ExprKind::Literal(number) = step_value.kind { number.to_i64() } else { None };
        if number.is_some_and(|number| number < 0) {
            return refuse(
                step.span(),
                "a range counts upwards: write a step above 0, and `rev` behind the range",
            );
        }
        Ok(step_value)
    }

    /// Sets a new variable.
    fn keep_bound(&mut self, name: &str, value: Expr, out: &mut Vec<Stmt>) -> Expr {
        let (ty, at) = (value.ty, value.place);
        let variable = self.add_hidden(name, ty, at);
        out.push(Stmt::new(StmtKind::Set(variable, value), at));
        Expr::variable(variable, ty, at)
    }
}

fn cast(value: Expr, ty: Scalar, at: Place) -> Expr {
    match value.kind {
        ExprKind::Literal(number) => Expr::literal(Literal::integer(ty, number.bits), at),
        _ if value.ty == ty => value,
        _ => value.cast(ty, at),
    }
}

fn wide(value: Expr, at: Place) -> Expr {
    cast(value, Scalar::U64, at)
}

/// Whether nothing changes the value while the kernel runs.
const fn is_fixed(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Len(_) | ExprKind::Query(..))
}

const fn bits(value: &Expr) -> Option<u64> {
    match value.kind {
        ExprKind::Literal(number) => Some(number.bits),
        _ => None,
    }
}

fn sum(one: Expr, two: Expr) -> Expr {
    if bits(&one) == Some(0) { two } else { fold(Binary::Add, 0, u64::wrapping_add, one, two) }
}

fn difference(one: Expr, two: Expr) -> Expr {
    fold(Binary::Sub, 0, u64::wrapping_sub, one, two)
}

fn product(one: Expr, two: Expr) -> Expr {
    fold(Binary::Mul, 1, u64::wrapping_mul, one, two)
}

/// The divisor is above zero.
fn quotient(one: Expr, two: Expr) -> Expr {
    fold(Binary::Div, 1, u64::wrapping_div, one, two)
}

/// An operation, done at once if the reader knows both numbers. `neutral` is the right side that
/// changes nothing.
fn fold(operator: Binary, neutral: u64, of: fn(u64, u64) -> u64, one: Expr, two: Expr) -> Expr {
    let at = one.place;
    match (bits(&one), bits(&two)) {
        (_, Some(second)) if second == neutral => one,
        (Some(first), Some(second)) => Expr::literal(Literal::integer(one.ty, of(first, second)), at),
        _ => Expr::binary(operator, one, two, at),
    }
}

/// The larger one of two integers.
fn larger(one: Expr, two: Expr) -> Expr {
    let at = one.place;
    match (bits(&one), bits(&two)) {
        (Some(first), Some(second)) => {
            let is_second = if one.ty.is_signed() { (first as i64) < second as i64 } else { first < second };
            if is_second { two } else { one }
        }
        _ => Expr::binary(Binary::Max, one, two, at),
    }
}

/// Whether a value is never the largest of its type.
fn is_below_largest(value: &Expr) -> bool {
    let ty = value.ty;
    let number = |value: &Expr| bits(value).filter(|_| ty.is_integer());
    let largest = ty.max().map_or(u64::MAX, |largest| largest as u64);
    match &value.kind {
        ExprKind::Literal(number) => number.bits != largest,
        // No array has so many elements, and no range so many items.
        ExprKind::Len(_) | ExprKind::Query(..) => true,
        ExprKind::Cast(inner) => {
            let from = inner.ty;
            from.is_integer() && from.bits() < ty.bits() && (ty.is_signed() || !from.is_signed())
        }
        ExprKind::Binary { operator: Binary::Min, left: one, right: two } => {
            is_below_largest(one) || is_below_largest(two)
        }
        ExprKind::Binary { operator: Binary::Rem, right: by, .. } => {
            number(by).is_some_and(|by| (1..=largest).contains(&by))
        }
        ExprKind::Binary { operator: Binary::Div, right: by, .. } => {
            number(by).is_some_and(|by| (2..=127).contains(&by))
        }
        ExprKind::Binary { operator: Binary::And, left: one, right: two } => {
            let is_below = |value: &Expr| number(value).is_some_and(|number| number < largest);
            is_below(one) || is_below(two)
        }
        _ => false,
    }
}
