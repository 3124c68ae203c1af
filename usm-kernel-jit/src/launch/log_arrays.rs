//! The hidden arrays of launches that print.

use usm_core::{Device, UsmVec};
use usm_kernel::backend::Programmable;
use usm_kernel::show_printed;

use super::Launch;
use crate::argument::{Argument, Content};
use crate::error::LaunchError;

impl<B: Programmable> Launch<'_, B> {
    /// Calls `run` with the arguments and the arrays for what the kernel prints, which is printed
    /// afterwards.
    pub(super) fn with_logs<R>(
        &self,
        arguments: &[Argument<'_, B>],
        run: impl FnOnce(&[Argument<'_, B>]) -> Result<R, LaunchError>,
    ) -> Result<R, LaunchError> {
        let kernel = self.program().kernel();
        let logs = kernel.logs();
        if logs.is_empty() {
            return run(arguments);
        }
        let zeros = |(id, length): &(_, u64)| {
            let bytes = kernel.array(*id).element.bytes().saturating_mul(*length);
            UsmVec::<u8, Device, B>::zeroed(self.queue, usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        let mut memory = logs.iter().map(zeros).collect::<Result<Vec<_>, _>>()?;
        let log = |(array, (id, _))| Argument::write_as(array, kernel.array(id).element);
        let all = arguments.iter().map(Argument::again);
        let all: Vec<_> = all.chain(memory.iter_mut().zip(logs).filter_map(log)).collect();
        let outcome = run(&all);
        drop(all);
        let contents: Result<Vec<_>, _> = memory.iter().map(|array| array.to_vec(self.queue)).collect();
        if let Ok(contents) = contents {
            show_printed(kernel, &contents);
        }
        outcome
    }

    /// Prints what an interpreted launch left in its last arrays.
    pub(super) fn show_interpreted(&self, contents: &[Vec<u8>]) {
        let kernel = self.program().kernel();
        let visible = contents.len().saturating_sub(kernel.logs().len());
        show_printed(kernel, contents.get(visible..).unwrap_or_default());
    }
}

impl<B: Programmable> Argument<'_, B> {
    /// The same argument, for the same launch.
    fn again(&self) -> Argument<'_, B> {
        Argument(match &self.0 {
            Content::Value(value) => Content::Value(*value),
            Content::Array(memory) => Content::Array(*memory),
            Content::Structure(fields, values) => Content::Structure(*fields, values.clone()),
            Content::Literals(values) => Content::Literals(values.clone()),
        })
    }
}
