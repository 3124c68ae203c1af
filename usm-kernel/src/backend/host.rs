//! The host takes no device code: it runs the host bodies of kernels.

use core::convert::Infallible;
use core::ffi::CStr;

use usm_core::backend::host::{FixedHost, HostHeap};
use usm_core::{Backend, BackendKind};

use super::{Grid, Programmable, Slot};
use crate::module::{BuildError, Code, Formats, FunctionInfo};

/// A module that cannot exist.
#[derive(Clone, Copy, Debug)]
pub struct NoModule(Infallible);

macro_rules! host {
    ($([$($generics:tt)*] $backend:ty, $kind:ident;)*) => {$(
        // SAFETY: no value of the function type exists.
        unsafe impl<$($generics)*> Programmable for $backend {
            type Module = NoModule;
            type Function = NoModule;

            fn formats(_: &Self::Context) -> Formats {
                Formats::empty()
            }

            fn build(_: &Self::Context, code: &Code<'_>, _: &str) -> Result<NoModule, BuildError> {
                let (format, formats) = (code.format(), Formats::empty());
                Err(BuildError::Format { format, formats, backend: BackendKind::$kind })
            }

            fn function(module: &NoModule, _: &CStr) -> Result<(NoModule, FunctionInfo), BuildError> {
                match module.0 {}
            }

            unsafe fn launch(
                _: &Self::Queue,
                function: &NoModule,
                _: &Grid,
                _: &[Slot<'_>],
                _: &[Self::Event],
            ) -> usm_core::Result<<Self as Backend>::Event> {
                match function.0 {}
            }
        }
    )*};
}

host! {
    [] HostHeap, Host;
    ['a, const N: usize] FixedHost<'a, N>, Host;
}
#[cfg(feature = "mock")]
host! {
    [] usm_core::backend::mock::Mock, Mock;
}
