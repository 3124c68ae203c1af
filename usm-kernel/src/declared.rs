//! Functions with a signature that was declared once.

use core::fmt;
use core::marker::PhantomData;

use usm_core::Event;

use crate::argument::{Arguments, Signature};
use crate::backend::Programmable;
use crate::error::{ArgumentError, LaunchError};
use crate::executable::TypedCall;
use crate::kernel::LocalLengths;
use crate::launch::Launch;
use crate::local::LocalSignature;
use crate::module::{BuildError, Function};
use crate::order::Order;
use crate::range::NdRange;

/// Refuses ranges and lengths (elements of each argument) for which the code would leave its arrays.
pub type Check<const D: usize> = fn(&NdRange<D>, &[usize]) -> Result<(), ArgumentError>;

/// A function whose signature somebody vouched for: parameters `S`, then local arrays `L`. Launching it is safe.
///
/// ```no_run
/// use usm_core::backend::Dyn;
/// use usm_core::{Context, Device, QueueOrder, UsmVec};
/// use usm_kernel::{ArgumentError, Code, Declared, Launch, Module, NdRange, Value, Write};
///
/// # fn on(context: &Context<Dyn>) -> Result<(), Box<dyn std::error::Error>> {
/// let source = "__kernel void scale(__global float *a, float by) { a[get_global_id(0)] *= by; }";
/// let function = Module::build(context, Code::OpenClC(source))?.function("scale")?;
/// // SAFETY: each item changes its own element, which is there when the array has as many elements as there are items.
/// let scale = unsafe {
///     Declared::<(Write<f32>, Value<f32>), (), Dyn, 1>::new(&function, |range, lengths| {
///         ArgumentError::at_least(lengths, 0, range.global().items())
///     })?
/// };
///
/// let queue = context.queue(QueueOrder::InOrder)?;
/// let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &[1.0; 64])?;
/// let _ = Launch::new(&queue, NdRange::new([64], [16])?).declared(&scale, (&mut a, 3.0), [])?;
/// # Ok(())
/// # }
/// ```
pub struct Declared<S, L, B: Programmable, const D: usize> {
    function: Function<B>,
    check: Check<D>,
    signature: PhantomData<fn() -> (S, L)>,
}

impl<S, L, B: Programmable, const D: usize> Clone for Declared<S, L, B, D> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), check: self.check, signature: PhantomData }
    }
}

impl<S, L, B: Programmable, const D: usize> fmt::Debug for Declared<S, L, B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("function", &self.function).finish()
    }
}

impl<S: Signature, L: LocalSignature, B: Programmable, const D: usize> Declared<S, L, B, D> {
    /// Declares the signature of `function`: `S` as the parameters of a [`DeviceCode`](crate::DeviceCode), without numbers, then
    /// the local arrays of `L`.
    ///
    /// # Safety
    /// For every range and all lengths that `check` accepts, and local arrays of any length, the code stays inside its arrays and its
    /// local memory, has no data race, ends, touches no other USM memory, writes only what is declared as written, and leaves
    /// no element of a [`Write`](crate::Write) array without a value.
    ///
    /// # Errors
    /// [`BuildError::Signature`] with both counts, where the runtime knows the function's.
    pub unsafe fn new(function: &Function<B>, check: Check<D>) -> Result<Self, BuildError> {
        let found = S::TABLE.len() + L::LOCALS;
        if let Some(needed) = function.info().parameters.as_ref().map(alloc::vec::Vec::len) {
            if needed != found {
                return Err(BuildError::Signature { function: function.name().into(), needed, found });
            }
        }
        Ok(Self { function: function.clone(), check, signature: PhantomData })
    }

    /// The function.
    #[must_use]
    pub fn function(&self) -> &Function<B> {
        &self.function
    }
}

impl<B: Programmable, const D: usize, O: Order> Launch<'_, B, D, O> {
    /// Launches a function whose signature was declared. `locals` has the length of each local array, in elements.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing has run then.
    pub fn declared<S: Signature, L: LocalSignature, A: Arguments<S, B>>(
        self,
        declared: &Declared<S, L, B, D>,
        mut arguments: A,
        locals: LocalLengths<L>,
    ) -> Result<Event<B>, LaunchError> {
        let space = self.space();
        let raw = arguments.raw();
        let refused = |error| LaunchError::Argument { kernel: "declared", error };
        (declared.check)(space.range, S::raw_lengths(&raw).as_ref()).map_err(refused)?;
        let mut call = TypedCall::new(space.queue);
        call.arguments::<S>(&raw)?;
        call.locals::<L>(&locals)?;
        arguments.with_usages(|usages| {
            // SAFETY: `Declared::new` was promised that the code keeps to its arrays and has no race where `check` accepts; a `&mut` usage
            // excludes all others of the same array.
            unsafe { call.submit(&space, &declared.function, usages) }
        })
    }
}
