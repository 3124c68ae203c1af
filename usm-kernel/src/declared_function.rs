//! Functions with a declared signature.

use core::fmt;
use core::marker::PhantomData;

use usm_core::{Event, Name, Usage};

use crate::argument::{Arguments, Signature};
use crate::backend::Programmable;
use crate::call::matches;
use crate::error::{ArgumentError, LaunchError};
use crate::executable::TypedCall;
use crate::kernel::LocalLengths;
use crate::launch::Launch;
use crate::local::LocalSignature;
use crate::module::{BuildError, Function};
use crate::order::Order;
use crate::range::NdRange;

/// Refuses ranges and lengths (elements of each argument and of each local array) for which the
/// code would access memory outside its arrays.
pub type Check<L, const D: usize> = fn(&NdRange<D>, &[usize], &LocalLengths<L>) -> Result<(), ArgumentError>;

/// A function with a declared signature: parameters `S`, then local arrays `L`. The declaration is
/// `unsafe`; launching it is safe.
///
/// ```no_run
/// use usm_core::backend::Dyn;
/// use usm_core::{Context, Device, QueueOrder, UsmVec};
/// use usm_kernel::{ArgumentError, Code, DeclaredFunction, Launch, Local, Module, NdRange, Write};
///
/// # fn on(context: &Context<Dyn>) -> Result<(), Box<dyn std::error::Error>> {
/// let source = "__kernel void reverse(__global float *a, __local float *lm) {
///     lm[get_local_id(0)] = a[get_global_id(0)];
///     barrier(CLK_LOCAL_MEM_FENCE);
///     a[get_global_id(0)] = lm[get_local_size(0) - 1 - get_local_id(0)];
/// }";
/// let function = Module::build(context, Code::OpenClC(source))?.function("reverse")?;
/// // SAFETY: each item changes its own element of both arrays, which have as many as there are items, in all and in a group.
/// let reverse = unsafe {
///     DeclaredFunction::<(Write<f32>,), (Local<f32>,), Dyn, 1>::new(&function, |range, lengths, locals| {
///         ArgumentError::at_least(lengths, 0, range.global().items())?;
///         ArgumentError::local_at_least(locals, 0, range.local().items())
///     })?
/// };
///
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &[1.0; 64])?;
/// let _ = Launch::new(&queue, NdRange::new([64], [16])?).declared(&reverse, (&mut a,), [16])?;
/// # Ok(())
/// # }
/// ```
pub struct DeclaredFunction<S, L: LocalSignature, B: Programmable, const D: usize> {
    function: Function<B>,
    check: Check<L, D>,
    /// Whether the function's parameters are known to match the signature. Otherwise a launch
    /// compares them and reports a difference.
    is_matched: bool,
    signature: PhantomData<fn() -> (S, L)>,
}

impl<S, L: LocalSignature, B: Programmable, const D: usize> Clone for DeclaredFunction<S, L, B, D> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), ..*self }
    }
}

impl<S, L: LocalSignature, B: Programmable, const D: usize> fmt::Debug for DeclaredFunction<S, L, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredFunction").field("function", &self.function).finish()
    }
}

impl<S: Signature, L: LocalSignature, B: Programmable, const D: usize> DeclaredFunction<S, L, B, D> {
    /// Declares the signature of `function`: `S` as the parameters of a
    /// [`DeviceCode`](crate::DeviceCode), without numbers, then the local arrays of `L`.
    ///
    /// # Safety
    /// For every range and all lengths of arguments and local arrays that `check` accepts, the code
    /// stays inside its arrays and its local memory, has no data race, ends, touches no other USM
    /// memory, writes only arrays that are declared as written, and writes no uninitialised value
    /// to a [`Write`](crate::Write) array: its values depend on no element of an
    /// [`Output`](crate::Output) array or of local memory that it has not written before. Without
    /// local arrays it may be launched [over items](Launch::with_range): `check` then gets one
    /// group, and the device chooses its own groups.
    ///
    /// # Errors
    /// [`BuildError::Signature`] with both counts, if the runtime knows the function's.
    pub unsafe fn new(function: &Function<B>, check: Check<L, D>) -> Result<Self, BuildError> {
        let found = S::TABLE.len() + L::LOCALS;
        if let Some(expected) = function.info().parameters.as_ref().map(alloc::vec::Vec::len) {
            if expected != found {
                return Err(BuildError::Signature { function: function.name().into(), expected, found });
            }
        }
        let is_checked = matches::<S, L, B>(function);
        Ok(Self { function: function.clone(), check, is_matched: is_checked, signature: PhantomData })
    }

    /// The function.
    #[must_use]
    pub fn function(&self) -> &Function<B> {
        &self.function
    }

    #[cold]
    fn argument_error(&self, error: ArgumentError) -> LaunchError {
        LaunchError::Argument { kernel: Name::new(self.function.name()), error }
    }
}

impl<B: Programmable, const D: usize, O: Order> Launch<'_, B, D, O> {
    /// Launches a function with a declared signature. `locals` has the length of each local array,
    /// in elements.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing runs then.
    pub fn declared<S: Signature, L: LocalSignature, A: Arguments<S, B>>(
        self,
        function: &DeclaredFunction<S, L, B, D>,
        mut arguments: A,
        locals: LocalLengths<L>,
    ) -> Result<Event<B>, LaunchError> {
        let space = self.space();
        let raw = arguments.raw();
        if let Err(error) = (function.check)(space.range, S::raw_lengths(&raw).as_ref(), &locals) {
            return Err(function.argument_error(error));
        }
        let mut call = TypedCall::new(space.queue);
        call.arguments::<S>(&raw)?;
        call.locals::<L>(&locals)?;
        let submit = |usages: &[Usage<'_, B>]| {
            // SAFETY: the caller of `DeclaredFunction::new` promised that the code stays in its
            // arrays and has no race if `check` accepts; a `&mut` usage excludes all others of the
            // same array.
            unsafe { call.submit(&space, &function.function, usages, function.is_matched) }
        };
        arguments.with_usages(submit)
    }
}
