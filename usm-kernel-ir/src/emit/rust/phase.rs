//! Phases, and their division into pieces.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::Writer;
use super::names::{rust_type, sets_of, variables_of, zero, zero_stored};
use crate::kernel::{ArrayId, Expr, ExprKind, Space, Stmt, StmtKind, VarId, for_each};
use crate::phase::{Home, Part, definition, is_of_row, needed};

impl Writer<'_> {
    pub(super) fn parts(&mut self, parts: &[Part<'_>]) {
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::While(..) if self.rounds(parts, at) => {}
                Part::Items(body) => self.items(body),
                Part::Set(variable, value) => {
                    let line = format!("{} = {};", self.variable(*variable), self.expr(value));
                    self.line(&line);
                }
                Part::If(condition, then, other) => {
                    let condition = self.expr(condition);
                    self.line(&format!("if {condition} {{"));
                    self.parts(then);
                    self.line("} else {");
                    self.parts(other);
                    self.line("}");
                }
                Part::While(condition, body) => {
                    let condition = self.expr(condition);
                    self.line(&format!("while {condition} {{"));
                    self.parts(body);
                    self.line("}");
                }
                Part::For(variable, [start, end, step], body) => {
                    self.begin_counting(*variable, [start, end, step]);
                    self.parts(body);
                    self.line("}");
                }
                Part::Break => self.line("break;"),
                Part::Continue => self.line("continue;"),
                Part::Return => self.line("return;"),
            }
        }
    }

    /// Writes the head of a counting loop.
    pub(super) fn begin_counting(&mut self, variable: VarId, [start, end, step]: [&Expr; 3]) {
        let ty = rust_type(self.kernel.variable(variable).ty);
        let (name, start, end) = (self.variable(variable), self.expr(start), self.expr(end));
        if matches!(step.kind, ExprKind::Literal(literal) if literal.bits <= 1) {
            self.line(&format!("for __count in ({start} as {ty})..({end} as {ty}) {{ {name} = __count;"));
        } else {
            let (step, unsigned) = (self.expr(step), self.kernel.variable(variable).ty.unsigned().name());
            self.line(&format!(
                "for __count in __group.every(({start} as {ty})..({end} as {ty}), {step} as {unsigned} as usize) {{ {name} = __count;"
            ));
        }
    }

    /// Writes a phase in pieces that compile to plain loops.
    pub(super) fn items(&mut self, body: &[&Stmt]) {
        let body = plain_stores(body);
        let pieces = self.pieces(&body);
        let mut at = 0;
        while let Some(piece) = pieces.get(at) {
            at += 1;
            if let Some(next) = pieces.get(at).filter(|next| is_overwritten(piece, next)) {
                self.write_statements(next, Some(piece));
                at += 1;
            } else if !self.rows(piece) {
                self.write_statements(piece, None);
            }
        }
    }

    /// Divides a phase before and behind conditions that become bounds of its loops, and loops that
    /// surround the loops over items. All items run through a piece before the next one. The items
    /// may run in this order.
    pub(super) fn pieces<'s>(&mut self, body: &'s [Stmt]) -> Vec<Vec<&'s Stmt>> {
        let mut leaves = false;
        for_each(
            body,
            &mut |stmt| {
                leaves |= matches!(stmt.kind, StmtKind::Return);
            },
            &mut |_| (),
        );
        leaves |= body.iter().any(leaves_item);
        if leaves {
            return vec![body.iter().collect()];
        }
        let mut pieces: Vec<Vec<&Stmt>> = Vec::new();
        let mut was_cut = true;
        for stmt in body {
            let cuts = self.is_guarded(stmt) || self.surrounds_rows(stmt);
            match pieces.last_mut() {
                Some(last) if !cuts && !was_cut => last.push(stmt),
                _ => pieces.push(vec![stmt]),
            }
            was_cut = cuts;
        }
        // A value that lives in one phase cannot be stored between two pieces.
        let mut index = 0;
        while index < pieces.len() {
            let own = |piece: &[&Stmt]| -> Vec<VarId> {
                let is_own = |id: &VarId| self.phases.homes[id.0 as usize] == Home::Phase;
                variables_of(piece).into_iter().filter(is_own).collect()
            };
            let (variables, arrays) = (own(&pieces[index]), self.private_arrays(&pieces[index]));
            let last = (index + 1..pieces.len()).rev().find(|other| {
                own(&pieces[*other]).iter().any(|id| variables.contains(id))
                    || self.private_arrays(&pieces[*other]).iter().any(|id| arrays.contains(id))
            });
            match last {
                Some(last) => {
                    let later_pieces = pieces.drain(index + 1..=last).flatten().collect::<Vec<_>>();
                    pieces[index].extend(later_pieces);
                    index = 0;
                }
                None => index += 1,
            }
        }
        // A piece that only computes ids has no effect.
        pieces.retain(|piece| {
            let is_pure = |stmt: &&Stmt| match stmt.kind {
                StmtKind::Set(id, _) => self.phases.homes[id.0 as usize] == Home::Again,
                _ => false,
            };
            !piece.iter().all(is_pure)
        });
        pieces
    }

    /// Private arrays that live in this phase only.
    pub(super) fn private_arrays(&self, body: &[&Stmt]) -> Vec<ArrayId> {
        let mut arrays = Vec::new();
        for stmt in body {
            let stmts = core::slice::from_ref(*stmt);
            for_each(
                stmts,
                &mut |stmt| {
                    if let StmtKind::Store { array, .. } = stmt.kind {
                        arrays.push(array);
                    }
                },
                &mut |_| (),
            );
            for_each(stmts, &mut |_| (), &mut |expr| {
                if let ExprKind::Load(array, _) = expr.kind {
                    arrays.push(array);
                }
            });
        }
        arrays.retain(|id| matches!(self.kernel.array(*id).space, Space::Private(_)) && !self.is_kept(*id));
        arrays
    }

    /// Whether a statement is under conditions that become bounds.
    fn is_guarded(&self, stmt: &Stmt) -> bool {
        !self.guards(&[stmt]).bounds.is_empty()
    }

    /// Whether a loop may surround the loop over the last dimension: its bounds are the same for a
    /// row of items, and values that its rounds change live across phases anyway.
    pub(super) fn surrounds_rows(&self, stmt: &Stmt) -> bool {
        let StmtKind::For { variable, start, end, step, body } = &stmt.kind else { return false };
        let plain = |stmt: &Stmt| match stmt.kind {
            StmtKind::Set(id, _) => self.phases.homes[id.0 as usize] != Home::Group,
            StmtKind::Store { .. } => true,
            _ => false,
        };
        let sums = body.iter().any(|stmt| {
            matches!(stmt.kind, StmtKind::Set(id, _) if self.phases.homes[id.0 as usize] == Home::Kept)
        });
        let mut private = false;
        let mut note = |id: ArrayId| private |= matches!(self.kernel.array(id).space, Space::Private(_));
        for_each(
            body,
            &mut |stmt| {
                if let StmtKind::Store { array, .. } = stmt.kind {
                    note(array);
                }
            },
            &mut |_| (),
        );
        for_each(body, &mut |_| (), &mut |expr| {
            if let ExprKind::Load(array, _) = expr.kind {
                note(array);
            }
        });
        let home = self.phases.homes[variable.0 as usize];
        let is_same = [start, end, step].into_iter().all(|bound| is_of_row(self.kernel, &self.of_row, bound));
        !private
            && home == Home::Phase
            && sums
            && is_same
            && body.iter().all(plain)
            && self.row_width().is_some()
    }

    /// Number of items in a row, if the kernel states it and registers can hold them.
    pub(super) fn row_width(&self) -> Option<u64> {
        let width = *self.kernel.group.as_ref()?.last()?;
        (1..=64).contains(&width).then_some(width)
    }

    /// A piece that is one loop with sums: for each row its rounds, and in each round the items.
    /// Their sums lie in an array that the compiler keeps in registers.
    pub(super) fn rows(&mut self, piece: &[&Stmt]) -> bool {
        let [stmt] = piece else { return false };
        let StmtKind::For { variable, start, end, step, body } = &stmt.kind else { return false };
        let Some(width) = self.row_width().filter(|_| self.surrounds_rows(stmt)) else { return false };
        let (kernel, last) = (self.kernel, self.kernel.dimensions - 1);
        self.line("{");
        self.line(&format!("let __axis_{last} = __group.axis(0, {width});"));
        for dimension in 0..last {
            let (size, base) = (self.local_size(dimension), self.base(dimension));
            self.line(&format!("for __local_id_{dimension} in __group.axis(0, {size}) {{"));
            self.line(&format!(
                "let __global_id_{dimension}: u64 = {base}.wrapping_add(__local_id_{dimension});"
            ));
        }
        self.line(&format!("let __local_id_{last}: u64 = 0;"));
        let row = self.linear();
        self.line(&format!("let __row: usize = ({row}) as usize;"));
        let mut sums: Vec<VarId> = variables_of(piece);
        sums.retain(|id| self.phases.homes[id.0 as usize] == Home::Kept);
        for id in &sums {
            let name = self.variable(*id);
            self.line(&format!(
                "let mut __row_{name} = [{}; {width}];\n<[_]>::copy_from_slice(&mut __row_{name}[..], &__kept_{name}[__row..][..{width}]);",
                zero_stored(kernel.variable(*id).ty)
            ));
        }
        self.declare_again(&[start, end, step]);
        let ty = kernel.variable(*variable).ty;
        self.line(&format!("let mut {}: {} = {};", self.variable(*variable), rust_type(ty), zero(ty)));
        self.begin_counting(*variable, [start, end, step]);
        self.line(&format!("for __local_id_{last} in (&__axis_{last}).again() {{"));
        let base = self.base(last);
        self.line(&format!(
            "let __global_id_{last}: u64 = {base}.wrapping_add(__local_id_{last});\nlet __item: usize = __local_id_{last} as usize;"
        ));
        let inner: Vec<&Stmt> = body.iter().collect();
        self.declare(&inner, &[*variable]);
        self.rows.clone_from(&sums);
        for stmt in inner {
            self.stmt(stmt, 0);
        }
        self.rows.clear();
        self.forget_ids();
        self.line("}\n}");
        for id in &sums {
            let name = self.variable(*id);
            self.line(&format!(
                "<[_]>::copy_from_slice(&mut __kept_{name}[__row..][..{width}], &__row_{name}[..]);"
            ));
        }
        for _ in 0..last {
            self.line("}");
        }
        self.line("}");
        true
    }

    /// Variables that depend on ids only, for expressions that are evaluated once for each row.
    pub(super) fn declare_again(&mut self, exprs: &[&Expr]) {
        let mut used = Vec::new();
        for expr in exprs {
            expr.for_each(&mut |expr| {
                if let ExprKind::Variable(id) = expr.kind {
                    used.push(id);
                }
            });
        }
        let mut definitions = Vec::new();
        for id in used {
            self.add_recomputed(id, &[], &mut definitions);
        }
        for id in definitions {
            let ty = self.kernel.variable(id).ty;
            if let Some(value) = definition(&self.kernel.body, id) {
                let line = format!("let {}: {} = {};", self.variable(id), rust_type(ty), self.expr(value));
                self.line(&line);
            }
        }
    }

    /// Declares the variables of a piece, except the known ones, and recomputes those that other
    /// pieces set.
    pub(super) fn declare(&mut self, body: &[&Stmt], defined_before: &[VarId]) {
        let kernel = self.kernel;
        let mut used = variables_of(body);
        used.retain(|id| !defined_before.contains(id));
        for id in &used {
            let ty = kernel.variable(*id).ty;
            match self.phases.homes[id.0 as usize] {
                Home::Group | Home::Kept => {}
                Home::Phase | Home::Again => {
                    let name = self.variable(*id);
                    self.line(&format!("let mut {name}: {} = {};", rust_type(ty), zero(ty)));
                }
            }
        }
        // Values from other phases are recomputed in the order of the variables.
        let set_here = sets_of(body);
        let mut definitions = Vec::new();
        for id in &used {
            self.add_recomputed(*id, &set_here, &mut definitions);
        }
        let others: Vec<VarId> = definitions.iter().copied().filter(|id| !used.contains(id)).collect();
        for id in others {
            let ty = kernel.variable(id).ty;
            let name = self.variable(id);
            self.line(&format!("let mut {name}: {} = {};", rust_type(ty), zero(ty)));
        }
        for id in definitions {
            if let Some(value) = definition(&kernel.body, id) {
                let line = format!("{} = {};", self.variable(id), self.expr(value));
                self.line(&line);
            }
        }
    }

    /// Adds a variable that another piece sets, after those that its recomputation reads.
    fn add_recomputed(&self, id: VarId, set_here: &[VarId], definitions: &mut Vec<VarId>) {
        if self.phases.homes[id.0 as usize] != Home::Again
            || set_here.contains(&id)
            || definitions.contains(&id)
        {
            return;
        }
        needed(self.kernel, &self.phases.homes, id, definitions);
        definitions.retain(|id| self.phases.homes[id.0 as usize] == Home::Again);
    }
}

/// Rewrites a store of one of two values, one of them a literal, as a store of the literal and a
/// conditional store of the other.
fn plain_stores(body: &[&Stmt]) -> Vec<Stmt> {
    let mut out = Vec::new();
    for stmt in body {
        if let StmtKind::Store { array, index, value } = &stmt.kind {
            if let ExprKind::Select { condition, then, other } = &value.kind {
                let reads = [index, value].into_iter().any(|part| reads(part, *array));
                if matches!(other.kind, ExprKind::Literal(_)) && !reads {
                    let store = |value: &Expr| {
                        Stmt::new(
                            StmtKind::Store { array: *array, index: index.clone(), value: value.clone() },
                            stmt.place,
                        )
                    };
                    out.push(store(other));
                    let then = vec![store(then)];
                    out.push(Stmt::new(
                        StmtKind::If { condition: (**condition).clone(), then, other: Vec::new() },
                        stmt.place,
                    ));
                    continue;
                }
            }
        }
        out.push((*stmt).clone());
    }
    out
}

/// Whether a piece only stores what the next one overwrites where its conditions hold, as
/// [`plain_stores`] writes them.
fn is_overwritten(piece: &[&Stmt], next: &[&Stmt]) -> bool {
    let ([one], [two]) = (piece, next) else { return false };
    let (StmtKind::Store { array, index, .. }, StmtKind::If { then, other, .. }) = (&one.kind, &two.kind)
    else {
        return false;
    };
    let [Stmt { kind: StmtKind::Store { array: target, index: same, value }, place }] = then.as_slice()
    else {
        return false;
    };
    other.is_empty()
        && (array, index, one.place) == (target, same, *place)
        && !reads(index, *array)
        && !reads(value, *array)
}

/// Whether an expression reads an element of an array.
fn reads(expr: &Expr, array: ArrayId) -> bool {
    let mut reads = false;
    expr.for_each(&mut |expr| reads |= matches!(expr.kind, ExprKind::Load(found, _) if found == array));
    reads
}

/// Whether a statement continues the loop that the group runs.
fn leaves_item(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, other, .. } => then.iter().chain(other).any(leaves_item),
        _ => false,
    }
}
