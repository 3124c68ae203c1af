//! Launches by the interpreter: where there is no compiler, and to check one.

use usm_kernel_ir::{self as ir, Argument, CheckError, Input, Interpreter, Order};

use crate::program::Program;

/// The most statements of a checked launch in one order, for all items: about a minute.
const STEPS: u64 = 1 << 30;

impl Program {
    /// Interprets a launch on copies of its arrays, and returns their contents after it, in the
    /// order of the parameters; nothing for scalars. `None` if `go_on`, called every few
    /// milliseconds, returned false. `local` has as many sizes as `global`.
    ///
    /// # Errors
    /// [`CheckError`]: arguments that do not fit, or a fault of the items. It looks for no race.
    pub fn interpret(
        &self,
        (global, local): (&[u64], &[u64]),
        arguments: &[Argument<'_>],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Vec<u8>>>, CheckError> {
        let kernel = self.kernel();
        let input = Input::new(kernel, global, local, arguments).map_err(CheckError::Input)?;
        let run = Interpreter::new(kernel, input, Order::Forwards, u64::MAX).unwatched();
        let mut after = run.run_while(go_on).map_err(CheckError::Fault)?;
        if let Some(after) = &mut after {
            kernel.join_columns(after);
        }
        Ok(after)
    }

    /// Interprets a launch in three orders of items and looks for faults: see
    /// [`check`](usm_kernel_ir::check()). With `zeros`, to read local or private memory that nobody
    /// wrote is no fault: it is zero, as in every launch.
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
        ir::check_while(self.kernel(), global, local, arguments, STEPS, zeros, go_on)
    }
}
