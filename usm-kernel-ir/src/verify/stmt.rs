//! Statements.

use alloc::format;

use super::{Checker, is_atomic, leaves};
use crate::error::Refusal;
use crate::kernel::{ArrayId, Atomic, Expr, Place, Space, Stmt, StmtKind, VarId};
use crate::scalar::Scalar;
use crate::text::DEPTH;

impl Checker<'_> {
    pub(super) fn stmt(
        &self,
        stmt: &Stmt,
        has_value: &mut [bool],
        loops: usize,
        depth: usize,
    ) -> Result<(), Refusal> {
        let refuse = |message| Err(Refusal::new(stmt.place, message));
        if depth >= DEPTH {
            return refuse(format!("more than {DEPTH} nested statements"));
        }
        let mut result = Ok(());
        stmt.for_each_expr(&mut |expr| {
            if result.is_ok() {
                result = self.expr(expr, has_value, depth);
            }
        });
        result?;
        let set = stmt.sets().map(|variable| self.variable(variable, stmt)).transpose()?;
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                self.same(value, self.kernel.variable(*variable).ty)?;
                has_value[variable.0 as usize] = true;
            }
            StmtKind::Store { array, index, value } => self.store(stmt, *array, [index, value])?,
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
                old.iter().for_each(|old| has_value[old.0 as usize] = true);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let element = self.atomic(*array, "compare-exchange", stmt, set)?;
                self.same(index, Scalar::U64)?;
                self.same(expected, element)?;
                self.same(new, element)?;
                old.iter().for_each(|old| has_value[old.0 as usize] = true);
            }
            StmtKind::Collect { operator, variable, value, .. } => {
                let ty = self.kernel.variable(*variable).ty;
                self.same(value, ty)?;
                if !operator.collects(ty) {
                    return refuse(format!("{ty} is not collected by `{}`", operator.name()));
                }
                has_value[variable.0 as usize] = true;
            }
            StmtKind::Broadcast { variable, value, from } => {
                self.same(value, self.kernel.variable(*variable).ty)?;
                self.same(from, Scalar::U64)?;
                has_value[variable.0 as usize] = true;
            }
            StmtKind::If { condition, then, other } => {
                self.same(condition, Scalar::Bool)?;
                self.branches([then, other], has_value, loops, depth)?;
            }
            StmtKind::While(condition, body) => {
                self.same(condition, Scalar::Bool)?;
                self.block(body, &mut has_value.to_vec(), loops + 1, depth + 1)?;
            }
            StmtKind::For { .. } => self.check_for(stmt, has_value, loops, depth)?,
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

    fn store(&self, stmt: &Stmt, array: ArrayId, [index, value]: [&Expr; 2]) -> Result<(), Refusal> {
        let refuse = |message| Err(Refusal::new(stmt.place, message));
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
        self.same(value, to.element)
    }

    fn branches(
        &self,
        [then, other]: [&[Stmt]; 2],
        has_value: &mut [bool],
        loops: usize,
        depth: usize,
    ) -> Result<(), Refusal> {
        let (mut one, mut two) = (has_value.to_vec(), has_value.to_vec());
        self.block(then, &mut one, loops, depth + 1)?;
        self.block(other, &mut two, loops, depth + 1)?;
        // The following statements run only after a branch that does not leave.
        for (has_value, (one, two)) in has_value.iter_mut().zip(one.into_iter().zip(two)) {
            *has_value = (one || leaves(then)) && (two || leaves(other));
        }
        Ok(())
    }

    fn check_for(&self, stmt: &Stmt, has_value: &[bool], loops: usize, depth: usize) -> Result<(), Refusal> {
        let StmtKind::For { variable, start, end, step, body } = &stmt.kind else { return Ok(()) };
        let ty = self.kernel.variable(*variable).ty;
        if !ty.is_integer() {
            return Err(Refusal::new(stmt.place, format!("a loop over {ty}: only integers are counted")));
        }
        for bound in [start, end, step] {
            self.same(bound, ty)?;
        }
        let mut inside = has_value.to_vec();
        inside[variable.0 as usize] = true;
        if let Some(place) = sets_inside(body, *variable) {
            return Err(Refusal::with(place, stmt.place, "the variable of a loop is set inside of it"));
        }
        self.block(body, &mut inside, loops + 1, depth + 1)
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
        let declaration = self.kernel.variables.get(variable.0 as usize);
        declaration.map(|variable| variable.ty).ok_or_else(|| Refusal::new(stmt.place, "no such variable"))
    }
}

fn sets_inside(body: &[Stmt], variable: VarId) -> Option<Place> {
    body.iter().find_map(|stmt| {
        if stmt.sets() == Some(variable) {
            return Some(stmt.place);
        }
        stmt.blocks().into_iter().find_map(|block| sets_inside(block, variable))
    })
}
