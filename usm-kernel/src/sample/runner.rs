//! How a sample of several launches runs each of them: by the host body, or on the device of its
//! executable.

use usm_core::{Backend, Event};

use crate::argument::Arguments;
use crate::backend::Programmable;
use crate::error::LaunchError;
use crate::executable::{DeviceCode, Executable};
use crate::kernel::Kernel;
use crate::launch::Launch;

/// Runs launches of one kernel.
pub(super) trait Runner<K: Kernel<1>, B: Backend>: Copy {
    fn run<A: Arguments<K::Arguments, B>>(
        self,
        launch: Launch<'_, B, 1>,
        kernel: K,
        arguments: A,
    ) -> Result<Event<B>, LaunchError>;
}

/// By the host body.
#[derive(Clone, Copy)]
pub(super) struct OnHost;

impl<K: Kernel<1>, B: Backend> Runner<K, B> for OnHost {
    fn run<A: Arguments<K::Arguments, B>>(
        self,
        launch: Launch<'_, B, 1>,
        kernel: K,
        arguments: A,
    ) -> Result<Event<B>, LaunchError> {
        launch.run(kernel, arguments)
    }
}

impl<K: DeviceCode<1>, B: Programmable> Runner<K, B> for &Executable<K, B, 1> {
    fn run<A: Arguments<K::Arguments, B>>(
        self,
        launch: Launch<'_, B, 1>,
        kernel: K,
        arguments: A,
    ) -> Result<Event<B>, LaunchError> {
        launch.run_on(self, kernel, arguments)
    }
}
