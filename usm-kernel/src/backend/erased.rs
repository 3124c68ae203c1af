//! [`Dyn`]: whatever runtime was chosen at run time. A bound module knows its backend, so that a launch needs no match.

use alloc::sync::Arc;
use core::ffi::CStr;
use core::fmt::{self, Debug};

use usm_core::ErrorKind;
use usm_core::backend::ContextOps;
use usm_core::backend::{Dyn, DynContext, DynEvent, DynQueue};

use super::{Grid, Programmable, Slot};
use crate::module::{BuildError, Code, Formats, FunctionInfo};

/// A module of a backend chosen at run time.
#[derive(Clone, Debug)]
pub struct DynModule(Arc<dyn ErasedModule>);

/// A function of a [`DynModule`].
#[derive(Clone, Debug)]
pub struct DynFunction(Arc<dyn ErasedFunction>);

trait ErasedModule: Debug + Send + Sync {
    fn function(&self, name: &CStr) -> Result<(DynFunction, FunctionInfo), BuildError>;
}

trait ErasedFunction: Debug + Send + Sync {
    /// # Safety
    /// As [`Programmable::launch`].
    unsafe fn launch(
        &self,
        queue: &DynQueue,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[DynEvent],
    ) -> usm_core::Result<DynEvent>;
}

#[cfg_attr(
    not(any(feature = "opencl", feature = "cuda", feature = "dpctl", feature = "level-zero")),
    allow(dead_code, reason = "no backend takes code")
)]
struct ModuleOf<B: Programmable>(B::Module);
#[cfg_attr(
    not(any(feature = "opencl", feature = "cuda", feature = "dpctl", feature = "level-zero")),
    allow(dead_code, reason = "no backend takes code")
)]
struct FunctionOf<B: Programmable>(B::Function);

impl<B: Programmable> Debug for ModuleOf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<B: Programmable> Debug for FunctionOf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<B: Programmable + 'static> ErasedModule for ModuleOf<B> {
    fn function(&self, name: &CStr) -> Result<(DynFunction, FunctionInfo), BuildError> {
        let (function, info) = B::function(&self.0, name)?;
        Ok((DynFunction(Arc::new(FunctionOf::<B>(function))), info))
    }
}

impl<B: Programmable + 'static> ErasedFunction for FunctionOf<B> {
    unsafe fn launch(
        &self,
        queue: &DynQueue,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[DynEvent],
    ) -> usm_core::Result<DynEvent> {
        let other = |operation| usm_core::Error::from(ErrorKind::Unsupported { operation });
        let queue = queue.downcast_ref::<B::Queue>();
        let queue = queue.ok_or_else(|| other("a function on a queue of another backend"))?;
        let after = after
            .iter()
            .map(|event| event.downcast_ref::<B::Event>().cloned())
            .collect::<Option<alloc::vec::Vec<_>>>()
            .ok_or_else(|| other("waiting for an event of another backend"))?;
        // SAFETY: the caller's promise; queue and events are the bound backend's.
        let event = unsafe { B::launch(queue, &self.0, grid, arguments, &after) }?;
        Ok(DynEvent::erase::<B>(event))
    }
}

/// Asks the backend that a context belongs to; `$absent` where it takes no code.
macro_rules! with_backend {
    ($context:ident, $native:ident, $backend:ident => $answer:expr, else $absent:expr) => {{
        #[cfg(feature = "opencl")]
        {
            type $backend = usm_core::backend::opencl::OpenCl;
            if let Some($native) = $context.downcast_ref::<<$backend as usm_core::Backend>::Context>() {
                return $answer;
            }
        }
        #[cfg(feature = "level-zero")]
        {
            type $backend = usm_core::backend::level_zero::LevelZero;
            if let Some($native) = $context.downcast_ref::<<$backend as usm_core::Backend>::Context>() {
                return $answer;
            }
        }
        #[cfg(feature = "cuda")]
        {
            type $backend = usm_core::backend::cuda::Cuda;
            if let Some($native) = $context.downcast_ref::<<$backend as usm_core::Backend>::Context>() {
                return $answer;
            }
        }
        #[cfg(feature = "dpctl")]
        {
            type $backend = usm_core::backend::dpctl::Dpctl;
            if let Some($native) = $context.downcast_ref::<<$backend as usm_core::Backend>::Context>() {
                return $answer;
            }
        }
        $absent
    }};
}

// SAFETY: every call goes to the bound backend, which keeps the promise.
unsafe impl Programmable for Dyn {
    type Module = DynModule;
    type Function = DynFunction;

    fn formats(context: &DynContext) -> Formats {
        let _ = context;
        with_backend!(context, native, Bound => Bound::formats(native), else Formats::empty())
    }

    fn build(context: &DynContext, code: &Code<'_>, options: &str) -> Result<DynModule, BuildError> {
        let _ = options;
        with_backend!(
            context, native, Bound => Ok(DynModule(Arc::new(ModuleOf::<Bound>(Bound::build(native, code, options)?)))),
            else Err(BuildError::Format {
                given: code.format(),
                taken: Formats::empty(),
                backend: context.shared().info().backend,
            })
        )
    }

    fn function(module: &DynModule, name: &CStr) -> Result<(DynFunction, FunctionInfo), BuildError> {
        module.0.function(name)
    }

    unsafe fn launch(
        queue: &DynQueue,
        function: &DynFunction,
        grid: &Grid,
        arguments: &[Slot<'_>],
        after: &[DynEvent],
    ) -> usm_core::Result<DynEvent> {
        // SAFETY: the caller's promise.
        unsafe { function.0.launch(queue, grid, arguments, after) }
    }
}
