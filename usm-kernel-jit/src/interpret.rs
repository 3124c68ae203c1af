//! Launches by the interpreter: where there is no compiler, and to check one.

use std::borrow::Cow;

use usm_kernel_ir::{
    self as ir, Argument, ArrayId, CheckError, Expr, Input, Interpreter, Kernel, Literal, Order, Scalar,
    Space, Stmt, StmtKind, VarId, Variable,
};

use crate::program::Program;

/// The most statements of a checked launch in one order, for all items: about a minute.
const STEPS: u64 = 1 << 30;

impl Program {
    /// Interprets a launch on copies of its arrays, and returns their contents after it, in the
    /// order of the parameters; nothing for scalars. `None` if `go_on`, called every few
    /// milliseconds, returned false. `local` has as many sizes as `global`. With `zeros` private
    /// arrays start as zeros.
    ///
    /// # Errors
    /// [`CheckError`]: arguments that do not fit, or a fault of the items. It looks for no race.
    pub fn interpret(
        &self,
        (global, local): (&[u64], &[u64]),
        arguments: &[Argument<'_>],
        zeros: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, CheckError> {
        let kernel = self.interpreted(zeros);
        let input = Input::new(&kernel, global, local, arguments).map_err(CheckError::Input)?;
        let run = Interpreter::new(&kernel, input, Order::Forwards, u64::MAX).unwatched();
        let mut after = run.run_while(go_on).map_err(CheckError::Fault)?;
        if let Some(after) = &mut after {
            kernel.join_columns(after);
        }
        Ok(after)
    }

    /// Interprets a launch in three orders of items and looks for faults: see
    /// [`check`](usm_kernel_ir::check()). With `zeros` private arrays start as zeros.
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn check(
        &self,
        (global, local): (&[u64], &[u64]),
        arguments: &[Argument<'_>],
        zeros: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), CheckError> {
        let kernel = self.interpreted(zeros);
        ir::check_while(&kernel, global, local, arguments, STEPS, go_on)
    }

    fn interpreted(&self, zeros: bool) -> Cow<'_, Kernel> {
        if zeros { with_private_zeros(self.kernel()) } else { Cow::Borrowed(self.kernel()) }
    }
}

/// The kernel with private arrays that an item sets to zero first; to nodes they have no value.
fn with_private_zeros(kernel: &Kernel) -> Cow<'_, Kernel> {
    let mut zeroed = Cow::Borrowed(kernel);
    for (number, array) in kernel.arrays.iter().enumerate() {
        let Space::Private(len) = array.space else { continue };
        let place = array.place;
        let literal = |ty, value| Expr::literal(Literal::integer(ty, value), place);
        let zeroed = zeroed.to_mut();
        zeroed.variables.push(Variable { name: array.name.clone(), ty: Scalar::U64, place });
        let index = VarId(zeroed.variables.len() as u32 - 1);
        let (array, none) = (ArrayId(number as u32), literal(array.element, 0));
        let store = StmtKind::Store(array, Expr::variable(index, Scalar::U64, place), none);
        let [start, end, step] = [0, len, 1].map(|value| literal(Scalar::U64, value));
        let fill = StmtKind::For(index, start, end, step, vec![Stmt::new(store, place)]);
        zeroed.body.insert(0, Stmt::new(fill, place));
    }
    zeroed
}
