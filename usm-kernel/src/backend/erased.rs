//! [`Dyn`]: the runtime is chosen at run time. A bound module knows its backend, so that a launch
//! needs no match.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::ffi::CStr;
use core::fmt::{self, Debug};

use usm_core::ErrorKind;
use usm_core::backend::{ContextOps, Dyn, DynContext, DynEvent, DynQueue};

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
    fn native(&self) -> Option<Vec<u8>>;
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

struct ModuleOf<B: Programmable>(B::Module);
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

    fn native(&self) -> Option<Vec<u8>> {
        B::native(&self.0)
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
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| other("waiting for an event of another backend"))?;
        // SAFETY: the caller's promise; queue and events are the bound backend's.
        let event = unsafe { B::launch(queue, &self.0, grid, arguments, &after) }?;
        Ok(DynEvent::erase::<B>(event))
    }
}

/// The functions by which [`Dyn`] uses a backend that takes code: the table that its
/// [`Backend::extension`](usm_core::Backend::extension) returns.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    formats: fn(&DynContext) -> Formats,
    build: fn(&DynContext, &Code<'_>, &str) -> Result<DynModule, BuildError>,
    build_native: fn(&DynContext, &[u8]) -> Result<DynModule, BuildError>,
}

impl Kernels {
    /// The table of `B`.
    #[must_use]
    pub const fn of<B: Programmable + 'static>() -> Self {
        Self { formats: formats::<B>, build: build::<B>, build_native: build_native::<B> }
    }

    /// The result of `B`'s [`Backend::extension`](usm_core::Backend::extension) if this table is
    /// `target`.
    #[must_use]
    pub fn extension<B: Programmable + 'static>(target: TypeId) -> Option<&'static dyn Any> {
        let table: &'static Self = const { &Self::of::<B>() };
        (target == TypeId::of::<Self>()).then_some(table as &dyn Any)
    }
}

fn formats<B: Programmable + 'static>(context: &DynContext) -> Formats {
    context.downcast_ref::<B::Context>().map_or(Formats::empty(), B::formats)
}

fn build<B: Programmable + 'static>(
    context: &DynContext,
    code: &Code<'_>,
    options: &str,
) -> Result<DynModule, BuildError> {
    match context.downcast_ref::<B::Context>() {
        Some(native) => Ok(DynModule(Arc::new(ModuleOf::<B>(B::build(native, code, options)?)))),
        None => Err(format_error(context, code)),
    }
}

fn build_native<B: Programmable + 'static>(
    context: &DynContext,
    code: &[u8],
) -> Result<DynModule, BuildError> {
    match context.downcast_ref::<B::Context>() {
        Some(native) => Ok(DynModule(Arc::new(ModuleOf::<B>(B::build_native(native, code)?)))),
        None => Err(no_compiler_error().into()),
    }
}

fn no_compiler_error() -> usm_core::Error {
    ErrorKind::Unsupported { operation: "code on a backend without a compiler" }.into()
}

fn format_error(context: &DynContext, code: &Code<'_>) -> BuildError {
    let backend = context.shared().info().backend;
    BuildError::Format { format: code.format(), formats: Formats::empty(), backend }
}

// SAFETY: every call goes to the bound backend, which keeps the promise.
unsafe impl Programmable for Dyn {
    type Module = DynModule;
    type Function = DynFunction;

    fn formats(context: &DynContext) -> Formats {
        context.extension::<Kernels>().map_or(Formats::empty(), |kernels| (kernels.formats)(context))
    }

    fn build(context: &DynContext, code: &Code<'_>, options: &str) -> Result<DynModule, BuildError> {
        match context.extension::<Kernels>() {
            Some(kernels) => (kernels.build)(context, code, options),
            None => Err(format_error(context, code)),
        }
    }

    fn native(module: &DynModule) -> Option<Vec<u8>> {
        module.0.native()
    }

    fn build_native(context: &DynContext, code: &[u8]) -> Result<DynModule, BuildError> {
        match context.extension::<Kernels>() {
            Some(kernels) => (kernels.build_native)(context, code),
            None => Err(no_compiler_error().into()),
        }
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
