//! A piece of a phase: loops over the items with conditions on ids as bounds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Writer;
use super::names::{sets_count, stored, zero_stored};
use crate::kernel::{ArrayId, Expr, ExprKind, Query, Space, Stmt, StmtKind, VarId, for_each};
use crate::operator::Binary;
use crate::phase::{Home, definition, needed};

/// Maximum number of statements of a piece that is written twice.
const TWICE: usize = 8;

impl Writer<'_> {
    /// Writes a piece. `unless_whole` is a piece before it that changes nothing if the bounds cover
    /// the group.
    pub(super) fn write_statements(&mut self, body: &[&Stmt], unless_whole: Option<&[&Stmt]>) {
        let d = self.kernel.dimensions;
        let (narrow, prelude, rest) = self.narrowed(body);
        let sizes = self.usual_sizes(&narrow, &rest, body);
        if let (Some(before), None) = (unless_whole, &sizes) {
            self.write_statements(before, None);
        }
        self.line("{");
        for bound in &narrow {
            if let Some(shift) = &bound.shift {
                let (dimension, size) = (bound.dimension, format!("__local_size_{}", bound.dimension));
                let base = if bound.is_global { format!("__base_{dimension}") } else { "0".into() };
                // A sum that wraps is no bound; all items then test their condition.
                self.line(&format!(
                    "let __fits_{}: bool = u64::checked_add({shift}, u64::saturating_add({base}, {size})).is_some();",
                    bound.number
                ));
            }
        }
        let mut whole: Vec<String> = Vec::new();
        for dimension in 0..d {
            self.line(&format!("let (mut __from, mut __to): (u64, u64) = (0, __local_size_{dimension});"));
            for bound in narrow.iter().filter(|bound| bound.dimension == dimension) {
                let base = if bound.is_global {
                    format!(".saturating_sub(__base_{dimension})")
                } else {
                    String::new()
                };
                let limit = &bound.limit;
                let line = match (bound.is_low, &bound.shift) {
                    (true, _) => {
                        format!(
                            "__from = {};",
                            super::extreme(false, "u64", "__from", &format!("({limit}){base}"))
                        )
                    }
                    (false, None) => {
                        format!(
                            "__to = {};",
                            super::extreme(true, "u64", "__to", &format!("({limit}){base}"))
                        )
                    }
                    (false, Some(shift)) => {
                        let limit = format!("({limit}).saturating_sub({shift}){base}");
                        let least = super::extreme(true, "u64", "__to", &limit);
                        whole.push(format!("__fits_{}", bound.number));
                        format!("if __fits_{} {{ __to = {least}; }}", bound.number)
                    }
                };
                self.line(&line);
            }
            self.line(&format!("let __axis_{dimension} = __group.axis(__from, __to);"));
            if sizes.is_some() {
                whole.push(format!("__whole_{dimension}"));
                self.line(&format!(
                    "let __whole_{dimension}: bool = __from == 0 && __to == __local_size_{dimension};"
                ));
            }
        }
        match sizes {
            Some(sizes) => {
                let whole = whole.join(" && ");
                if let Some(before) = unless_whole {
                    self.line(&format!("if !({whole}) {{"));
                    self.write_statements(before, None);
                    self.line("}");
                }
                // With debug assertions, the compiler makes these loops once instead of twice.
                let block = self.labels;
                self.labels += 1;
                self.line(&format!("'whole_{block}: {{\n#[cfg(not(debug_assertions))]\nif {whole} {{"));
                for (dimension, size) in sizes.iter().enumerate() {
                    self.line(&format!("let __axis_{dimension} = __group.axis(0, {size});"));
                }
                self.nest(body, &prelude, &rest);
                self.line(&format!("break 'whole_{block};\n}}"));
                self.nest(body, &prelude, &rest);
                self.line("}");
            }
            None => self.nest(body, &prelude, &rest),
        }
        self.line("}");
    }

    /// The sizes of the group, if it has short rows and the bounds of a piece concern the edges of
    /// the range. Most groups are then inside; with constant bounds, a row is a few vectors.
    fn usual_sizes(&self, narrow: &[Bound], rest: &Rest<'_>, body: &[&Stmt]) -> Option<Vec<u64>> {
        // The launch may give a kernel without groups the whole range as one.
        let group = self.kernel.group.as_ref().filter(|_| self.kernel.needs_groups())?;
        let sizes = Some(group).filter(|group| group.len() > 1 && !group.contains(&0))?;
        let at_edges = |bound: &Bound| bound.is_global || bound.shift.is_some();
        let Rest::If(conditions, _) = rest else { return None };
        let mut statements = 0;
        for stmt in body {
            for_each(core::slice::from_ref(*stmt), &mut |_| statements += 1, &mut |_| ());
        }
        let suits = self.row_width().is_some()
            && statements <= TWICE
            && !narrow.is_empty()
            && narrow.iter().all(at_edges)
            && conditions.iter().all(|(_, fits)| fits.is_some());
        suits.then(|| sizes.clone())
    }

    /// Loops over the items of a piece.
    fn nest(&mut self, body: &[&Stmt], prelude: &[&Stmt], rest: &Rest<'_>) {
        let kernel = self.kernel;
        let d = kernel.dimensions;
        let mut starts = Vec::new();
        for dimension in 0..d {
            let label = if dimension + 1 == d { format!("'item_{}: ", self.labels) } else { String::new() };
            self.line(&format!("{label}for __local_id_{dimension} in (&__axis_{dimension}).again() {{"));
            starts.push(self.text.len());
        }
        self.declare(body, &[]);
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            if let Space::Private(len) = array.space {
                if !self.is_kept(id) {
                    let element = array.element;
                    self.line(&format!(
                        "let mut __a{index}: [{}; {len}] = [{}; {len}];",
                        stored(element),
                        zero_stored(element)
                    ));
                }
            }
        }
        let label = self.labels;
        self.labels += 1;
        for stmt in prelude {
            self.stmt(stmt, label);
        }
        match rest {
            Rest::All(rest) => rest.iter().for_each(|stmt| self.stmt(stmt, label)),
            Rest::If(conditions, then) => {
                let conditions: Vec<String> = conditions
                    .iter()
                    .map(|(condition, fits)| match fits {
                        Some(number) => format!("(__fits_{number} || {})", self.expr(condition)),
                        None => self.expr(condition),
                    })
                    .collect();
                if !conditions.is_empty() {
                    self.line(&format!("if {} {{", conditions.join(" && ")));
                }
                for stmt in then {
                    self.stmt(stmt, label);
                }
                if !conditions.is_empty() {
                    self.line("}");
                }
            }
        }
        for (dimension, start) in starts.into_iter().enumerate().rev() {
            let id = format!("__base_{dimension}.wrapping_add(__local_id_{dimension})");
            let mut declarations = alloc::vec![(format!("__global_id_{dimension}"), "u64", id)];
            if dimension + 1 == usize::from(d) {
                declarations.push(("__item".into(), "usize", format!("({}) as usize", self.linear())));
            }
            self.declare_used(start, &declarations);
        }
        for _ in 0..d {
            self.line("}");
        }
    }

    /// Linear position of the item in its group, the last dimension fastest.
    pub(super) fn linear(&self) -> String {
        (1..self.kernel.dimensions).fold("__local_id_0".to_string(), |all, dimension| {
            format!("({all}) * __local_size_{dimension} + __local_id_{dimension}")
        })
    }

    pub(super) fn add_recomputed(&self, id: VarId, set_here: &[VarId], again: &mut Vec<VarId>) {
        if self.phases.homes[id.0 as usize] != Home::Again || set_here.contains(&id) || again.contains(&id) {
            return;
        }
        needed(self.kernel, &self.phases.homes, id, again);
        again.retain(|id| self.phases.homes[id.0 as usize] == Home::Again);
    }

    /// Removes conditions on ids from a phase and makes them bounds of its loops.
    pub(super) fn narrowed<'s>(&mut self, body: &[&'s Stmt]) -> (Vec<Bound>, Vec<&'s Stmt>, Rest<'s>) {
        let mut bounds = Vec::new();
        let mut prelude = Vec::new();
        let mut rest = body;
        while let Some((first, others)) = rest.split_first() {
            match &first.kind {
                StmtKind::Set(id, value)
                    if is_place(value) || self.phases.homes[id.0 as usize] == Home::Again =>
                {
                    prelude.push(*first);
                }
                StmtKind::If { condition, then, other }
                    if other.is_empty() && matches!(then[..], [Stmt { kind: StmtKind::Return, .. }]) =>
                {
                    match self.bound(condition, false) {
                        Some(bound) => bounds.push(bound),
                        None => break,
                    }
                }
                StmtKind::If { condition, then, other } if other.is_empty() && others.is_empty() => {
                    let mut conditions = Vec::new();
                    self.conjunction(condition, &mut bounds, &mut conditions);
                    return (bounds, prelude, Rest::If(conditions, then.iter().collect()));
                }
                _ => break,
            }
            rest = others;
        }
        (bounds, prelude, Rest::All(rest.to_vec()))
    }

    pub(super) fn conjunction<'s>(
        &mut self,
        condition: &'s Expr,
        bounds: &mut Vec<Bound>,
        others: &mut Vec<(&'s Expr, Option<usize>)>,
    ) {
        if let ExprKind::Binary { operator: Binary::AndThen, left, right } = &condition.kind {
            self.conjunction(left, bounds, others);
            self.conjunction(right, bounds, others);
            return;
        }
        if let ExprKind::Binary { operator: Binary::Eq, left, right } = &condition.kind {
            // Equal means neither above nor below.
            let [low, high] = [Binary::Ge, Binary::Le].map(|operator| {
                self.bound(
                    &Expr::binary(operator, (**left).clone(), (**right).clone(), condition.place),
                    true,
                )
            });
            if let (Some(low), Some(high)) = (low, high) {
                bounds.extend([low, high]);
                return;
            }
        }
        // A condition behind a remaining one may be evaluated only if that one is true. Bounds read
        // no memory.
        match self.bound(condition, true) {
            Some(mut bound) => {
                bound.number = bounds.len();
                if bound.shift.is_some() {
                    others.push((condition, Some(bound.number)));
                }
                bounds.push(bound);
            }
            None => others.push((condition, None)),
        }
    }

    /// A comparison of an id, or of an id and a number, with a value that is the same for all items
    /// and reads no memory.
    pub(super) fn bound(&mut self, condition: &Expr, truth: bool) -> Option<Bound> {
        let ExprKind::Binary { operator, left, right } = &condition.kind else { return None };
        let (id, limit, flipped) = match (self.place_of(left), self.place_of(right)) {
            (Some(id), None) => (id, right, false),
            (None, Some(id)) => (id, left, true),
            (None, None) if truth && *operator == Binary::Lt => {
                let (id, shift) = self.shifted(left)?;
                if !self.is_of_launch(right) {
                    return None;
                }
                let (limit, shift) = (self.expr(right), Some(self.expr(&shift)));
                let (is_global, dimension) = id;
                return Some(Bound { dimension, is_low: false, limit, is_global, shift, number: 0 });
            }
            _ => return None,
        };
        if !self.is_of_launch(limit) {
            return None;
        }
        let operator = if truth { *operator } else { operator.negated()? };
        let operator = if flipped { operator.mirrored() } else { operator };
        if !matches!(operator, Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge) {
            return None;
        }
        let limit = self.expr(limit);
        let (is_global, dimension) = id;
        let is_low = matches!(operator, Binary::Gt | Binary::Ge);
        let limit = match operator {
            Binary::Le | Binary::Gt => format!("u64::saturating_add({limit}, 1)"),
            _ => limit,
        };
        Some(Bound { dimension, is_low, limit, is_global, shift: None, number: 0 })
    }

    /// An id and a number that is the same for all items.
    pub(super) fn shifted(&self, sum: &Expr) -> Option<((bool, u8), Expr)> {
        let ExprKind::Binary { operator: Binary::Add, left: one, right: two } = &sum.kind else {
            return None;
        };
        let (id, shift) = match (self.place_of(one), self.place_of(two)) {
            (Some(id), None) => (id, two),
            (None, Some(id)) => (id, one),
            _ => return None,
        };
        self.is_of_launch(shift).then(|| (id, (**shift).clone()))
    }

    /// The id of an expression: whether it is the global one, and its dimension.
    pub(super) fn place_of(&self, expr: &Expr) -> Option<(bool, u8)> {
        match &expr.kind {
            ExprKind::Query(Query::GlobalId, dimension) => Some((true, *dimension)),
            ExprKind::Query(Query::LocalId, dimension) => Some((false, *dimension)),
            ExprKind::Variable(id) if sets_count(&self.kernel.body, *id) == 1 => {
                let value = definition(&self.kernel.body, *id)?;
                if matches!(value.kind, ExprKind::Query(..)) { self.place_of(value) } else { None }
            }
            _ => None,
        }
    }

    pub(super) fn is_of_launch(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Load(..) | ExprKind::Query(Query::LocalId | Query::GlobalId, _) => false,
            ExprKind::Variable(id) => self.phases.homes[id.0 as usize] == Home::Group,
            _ => expr.operands().into_iter().all(|operand| self.is_of_launch(operand)),
        }
    }
}

/// A bound of a phase's loops.
pub(super) struct Bound {
    dimension: u8,
    /// Whether it is a lower bound.
    is_low: bool,
    limit: String,
    /// Whether it limits the global id.
    is_global: bool,
    /// The id plus this number is below the limit.
    shift: Option<String>,
    /// Its number in the piece.
    number: usize,
}

/// The rest of a phase.
pub(super) enum Rest<'s> {
    All(Vec<&'s Stmt>),
    If(Vec<(&'s Expr, Option<usize>)>, Vec<&'s Stmt>),
}

fn is_place(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Query(..))
}
