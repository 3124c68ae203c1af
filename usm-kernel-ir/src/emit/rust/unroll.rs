//! A loop of the group with a few known rounds, as a function that is called once a round with the
//! loop's number. Its bounds are then constants, and the compiler keeps local arrays in registers.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::names::{rust_literal, rust_type};
use super::{Writer, is_written, signature};
use crate::interpret::{cast, compute, unary};
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId, for_each};
use crate::phase::{Home, Part};
use crate::scalar::Literal;

/// Maximum number of rounds and of a round's statements: the compiler makes code of each round.
const ROUNDS: usize = 16;
const STATEMENTS: usize = 16;
/// Maximum number of items, which bounds the code of a phase.
const ITEMS: u64 = 1024;

impl Writer<'_> {
    /// Writes the loop at this position of its parts, if its rounds are known.
    pub(super) fn rounds(&mut self, parts: &[Part<'_>], at: usize) -> bool {
        let Some((variable, numbers, body)) = self.known_rounds(parts, at) else { return false };
        let kernel = self.kernel;
        let ty = kernel.variable(variable).ty;
        let name = self.variable(variable);
        // A round gets the body's parameters, and the numbers of the group that it reads.
        let mut parameters = self.parameters.clone();
        for (index, home) in self.phases.homes.iter().enumerate() {
            let id = VarId(index as u32);
            if *home == Home::Group && id != variable && mentions(body, id) > 0 {
                parameters.push((self.variable(id), rust_type(kernel.variable(id).ty).to_string()));
            }
        }
        let names = parameters.iter().map(|(name, ty)| match ty.as_str() {
            "usize" => format!("{name} as usize, "),
            ty if is_written(ty) => format!("F::reborrow(&mut {name}), "),
            _ => format!("{name}, "),
        });
        let names: String = names.collect();
        // Without optimization, each call that is inlined only adds code.
        self.line("{\n#[cfg_attr(not(debug_assertions), inline(always))]");
        let (path, d) = (self.path, kernel.dimensions);
        self.line(&format!(
            "fn __round<const PROVEN: bool, O: {path}::Order, F: {path}::generated::Sharing>({name}: {}, __group: &{path}::Group<'_, {}, {d}, O>, {}) {{",
            ty.name(),
            self.launch_type,
            signature(&parameters)
        ));
        let at = self.text.len();
        let outside = self.begin_function();
        if let Some(items) = self.constant_items() {
            let own = self.of_a_round(body);
            let array =
                |id: &VarId| (format!("__kept_{}", self.variable(*id)), kernel.variable(*id).ty, items);
            self.own_arrays(own.iter().map(array).collect::<Vec<_>>());
        }
        self.parts(body);
        self.head(at);
        self.end_function(outside);
        self.line("}");
        let (last, rounds) = numbers.split_last().map_or((0, &[][..]), |(last, rounds)| (*last, rounds));
        let literal = |bits| rust_literal(Literal { ty, bits });
        for number in rounds {
            self.line(&format!("__round::<PROVEN, O, F>({}, __group, {names});", literal(*number)));
        }
        self.line(&format!("{name} = {};\n}}", literal(last)));
        true
    }

    /// The variable of such a loop, its value in each round and behind the loop, and the parts of a
    /// round without the last one, which sets the variable.
    fn known_rounds<'p, 'k>(
        &self,
        parts: &'p [Part<'k>],
        at: usize,
    ) -> Option<(VarId, Vec<u64>, &'p [Part<'k>])> {
        let Part::While(condition, round) = &parts[at] else { return None };
        let (Part::Set(variable, next), body) = round.split_last()? else { return None };
        self.constant_items().filter(|items| *items <= ITEMS)?;
        let only_items = |part: &Part<'_>| matches!(part, Part::Items(_));
        let mut statements = 0;
        for stmt in statements_of(body) {
            for_each(core::slice::from_ref(stmt), &mut |_| statements += 1, &mut |_| ());
        }
        if !body.iter().all(only_items) || statements > STATEMENTS {
            return None;
        }
        // Phases set no number of the group.
        let start = parts[..at].iter().rev().find(|part| !only_items(part));
        let Some(Part::Set(first, Expr { kind: ExprKind::Literal(literal), .. })) = start else {
            return None;
        };
        if first != variable {
            return None;
        }
        let mut numbers = alloc::vec![literal.bits];
        while evaluate(condition, *variable, *numbers.last()?)? != 0 {
            if numbers.len() > ROUNDS {
                return None;
            }
            numbers.push(evaluate(next, *variable, *numbers.last()?)?);
        }
        Some((*variable, numbers, body))
    }

    /// The number of items in a group, if the kernel states it.
    pub(super) fn constant_items(&self) -> Option<u64> {
        let group = self.kernel.group.as_ref().filter(|group| !group.contains(&0))?;
        Some(group.iter().fold(1, |all, size| all.saturating_mul(*size)))
    }

    /// Kept variables that live in one round only: no other statement mentions them, and each item
    /// sets them first.
    fn of_a_round(&self, body: &[Part<'_>]) -> Vec<VarId> {
        let all = (0..self.kernel.variables.len() as u32).map(VarId);
        let mut variables: Vec<VarId> =
            all.filter(|id| self.phases.homes[id.0 as usize] == Home::Kept).collect();
        variables.retain(|id| {
            let mut everywhere = 0;
            count(&self.kernel.body, *id, &mut everywhere);
            everywhere == mentions(body, *id) && is_set_first(body, *id)
        });
        variables
    }
}

/// Whether each item sets the variable before any other use.
fn is_set_first(body: &[Part<'_>], id: VarId) -> bool {
    for stmt in statements_of(body) {
        if let StmtKind::Set(variable, value) = &stmt.kind {
            let mut reads = false;
            value.for_each(&mut |expr| reads |= matches!(expr.kind, ExprKind::Variable(read) if read == id));
            if *variable == id || reads {
                return !reads;
            }
            continue;
        }
        let mut uses = 0;
        count(core::slice::from_ref(stmt), id, &mut uses);
        let mut leaves = false;
        for_each(
            core::slice::from_ref(stmt),
            &mut |stmt| {
                leaves |= matches!(stmt.kind, StmtKind::Return | StmtKind::Break | StmtKind::Continue)
            },
            &mut |_| (),
        );
        if uses > 0 || leaves {
            return false;
        }
    }
    false
}

fn statements_of<'p>(body: &'p [Part<'_>]) -> impl Iterator<Item = &'p Stmt> {
    body.iter()
        .flat_map(|part| match part {
            Part::Items(stmts) => stmts.as_slice(),
            _ => &[],
        })
        .copied()
}

/// How often the phases set or read a variable.
fn mentions(body: &[Part<'_>], id: VarId) -> usize {
    let mut total = 0;
    statements_of(body).for_each(|stmt| count(core::slice::from_ref(stmt), id, &mut total));
    total
}

fn count(body: &[Stmt], id: VarId, total: &mut usize) {
    for_each(body, &mut |stmt| *total += usize::from(stmt.sets() == Some(id)), &mut |_| ());
    for_each(body, &mut |_| (), &mut |expr| {
        *total += usize::from(matches!(expr.kind, ExprKind::Variable(read) if read == id));
    });
}

/// The bits of an expression of integer literals and one variable.
fn evaluate(expr: &Expr, variable: VarId, value: u64) -> Option<u64> {
    let integers = |exprs: &[&Expr]| exprs.iter().all(|expr| !expr.ty.is_float());
    match &expr.kind {
        ExprKind::Literal(literal) => Some(literal.bits),
        ExprKind::Variable(id) if *id == variable => Some(value),
        ExprKind::Unary(operator, one) if integers(&[expr, one]) => {
            Some(unary(*operator, expr.ty, evaluate(one, variable, value)?))
        }
        ExprKind::Binary { operator, left: one, right: two } if integers(&[expr, one, two]) => {
            let (left, right) = (evaluate(one, variable, value)?, evaluate(two, variable, value)?);
            Some(compute(*operator, one.ty, left, right))
        }
        ExprKind::Cast(one) if integers(&[expr, one]) => {
            Some(cast(one.ty, expr.ty, evaluate(one, variable, value)?))
        }
        _ => None,
    }
}
