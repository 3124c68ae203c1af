//! Tuples of parameters and of arguments.

use usm_core::{Allocation, Backend, Usage};

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::{Bind, Parameter, ParameterInfo, Sealed};
#[cfg(feature = "alloc")]
use crate::error::LaunchError;
use crate::sharing::{Exclusive, Sharing};

/// All parameters of a kernel: a tuple of one to sixteen [`Parameter`]s.
pub trait Signature: Sealed {
    /// The form that is sent to the kernel.
    type Raw: Send + Sync + 'static;
    /// The form that the body receives: a tuple of views.
    type Views<'v, F: Sharing>;
    /// Elements of each argument, an array.
    type Lengths: AsRef<[usize]>;
    /// The values for the check: a tuple, `()` for each array.
    type Values: Copy;
    /// The [`Parameter::Form`] of each parameter: a tuple.
    #[doc(hidden)]
    type Forms;
    /// The argument table.
    const TABLE: &'static [ParameterInfo];

    /// The value for the check.
    fn view_values(views: &Self::Views<'_, Exclusive>) -> Self::Values;

    #[doc(hidden)]
    fn raw_values(raw: &Self::Raw) -> Self::Values;

    /// Elements of each view; values have one.
    fn view_lengths(views: &Self::Views<'_, Exclusive>) -> Self::Lengths;

    /// The same views for one group.
    fn reborrow<'s, F: Sharing>(views: &'s mut Self::Views<'_, F>) -> Self::Views<'s, F>;

    #[doc(hidden)]
    fn raw_lengths(raw: &Self::Raw) -> Self::Lengths;

    /// Calls `receive` with each argument, in order, until it returns an error.
    #[doc(hidden)]
    #[cfg(feature = "alloc")]
    fn pass<'p>(
        raw: &'p Self::Raw,
        receive: impl FnMut(RawArgument<'p>) -> Result<(), LaunchError>,
    ) -> Result<(), LaunchError>;

    /// # Safety
    /// As [`Parameter::view`], for each parameter.
    #[doc(hidden)]
    unsafe fn views<'v, F: Sharing>(raw: &'v Self::Raw) -> Self::Views<'v, F>;
}

/// The arguments of a launch: a tuple with one [`Bind`] for each parameter of the kernel.
///
/// ```compile_fail,E0200
/// use usm_core::backend::host::HostHeap;
/// use usm_core::{Allocation, Usage};
/// use usm_kernel::argument::RawSlice;
/// use usm_kernel::{Arguments, Write};
///
/// struct AnyAddress(usize);
///
/// impl Arguments<(Write<u8>,), HostHeap> for AnyAddress {
///     fn raw(&mut self) -> (RawSlice<u8>,) {
///         (RawSlice::new(self.0 as *mut u8, 1),)
///     }
///
///     fn for_each_allocation(&self, _: impl FnMut(&Allocation<HostHeap>)) {}
///
///     fn with_usages<R>(&self, receive: impl FnOnce(&[Usage<'_, HostHeap>]) -> R) -> R {
///         receive(&[])
///     }
/// }
/// ```
///
/// # Safety
/// Every argument keeps the promise of [`Bind`]: a launch makes slices of the results of
/// [`raw`](Self::raw), and orders and keeps alive the memory that
/// [`with_usages`](Self::with_usages) names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the arguments that the kernel declares",
    label = "expected arguments for `{S}`",
    note = "arguments are a tuple, one for each parameter and in that order; of one: `(&mut array,)`, with the comma"
)]
pub unsafe trait Arguments<S: Signature, B: Backend> {
    /// The form that is sent to the kernel.
    fn raw(&mut self) -> S::Raw;

    /// Calls `visit` with each allocation, in the order of the arguments.
    fn for_each_allocation(&self, visit: impl FnMut(&Allocation<B>));

    /// Calls `receive` with the usages of the allocations.
    fn with_usages<R>(&self, receive: impl FnOnce(&[Usage<'_, B>]) -> R) -> R;
}

macro_rules! signature {
    ($count:literal: $($parameter:ident $argument:ident $index:tt),+) => {
        impl<$($parameter),+> Sealed for ($($parameter,)+) {}

        impl<$($parameter: Parameter),+> Signature for ($($parameter,)+) {
            type Raw = ($($parameter::Raw,)+);
            type Views<'v, F: Sharing> = ($($parameter::View<'v, F>,)+);
            type Lengths = [usize; $count];
            type Values = ($($parameter::Value,)+);
            type Forms = ($($parameter::Form,)+);
            const TABLE: &'static [ParameterInfo] = &[$($parameter::INFO),+];

            #[inline]
            fn view_values(views: &Self::Views<'_, Exclusive>) -> Self::Values {
                ($($parameter::value(&views.$index),)+)
            }

            #[inline]
            fn raw_values(raw: &Self::Raw) -> Self::Values {
                ($($parameter::raw_value(&raw.$index),)+)
            }

            fn view_lengths(views: &Self::Views<'_, Exclusive>) -> [usize; $count] {
                [$($parameter::view_len(&views.$index)),+]
            }

            #[inline]
            fn reborrow<'s, F: Sharing>(views: &'s mut Self::Views<'_, F>) -> Self::Views<'s, F> {
                ($($parameter::reborrow::<F>(&mut views.$index),)+)
            }

            fn raw_lengths(raw: &Self::Raw) -> [usize; $count] {
                [$($parameter::raw_len(&raw.$index)),+]
            }

            #[cfg(feature = "alloc")]
            #[inline]
            fn pass<'p>(
                raw: &'p Self::Raw,
                mut receive: impl FnMut(RawArgument<'p>) -> Result<(), LaunchError>,
            ) -> Result<(), LaunchError> {
                $(receive($parameter::passed(&raw.$index))?;)+
                Ok(())
            }

            unsafe fn views<'v, F: Sharing>(raw: &'v Self::Raw) -> Self::Views<'v, F> {
                ($(
                    // SAFETY: the caller's promise.
                    unsafe { $parameter::view::<F>(&raw.$index) },
                )+)
            }
        }

        // SAFETY: each element of the tuple keeps the promise for its parameter.
        unsafe impl<B: Backend, $($parameter: Parameter, $argument: Bind<$parameter, B>),+>
            Arguments<($($parameter,)+), B> for ($($argument,)+)
        {
            fn raw(&mut self) -> ($($parameter::Raw,)+) {
                ($(self.$index.raw(),)+)
            }

            fn for_each_allocation(&self, mut visit: impl FnMut(&Allocation<B>)) {
                $(if let Some((allocation, _)) = self.$index.usage() {
                    visit(allocation);
                })+
            }

            #[inline]
            fn with_usages<R>(&self, receive: impl FnOnce(&[Usage<'_, B>]) -> R) -> R {
                let usages =
                    [$(self.$index.usage().map(|(allocation, access)| Usage::of(allocation, access))),+];
                let mut usages = usages.iter().flatten();
                let Some(first) = usages.next() else { return receive(&[]) };
                let mut words = [*first; $count];
                let mut count = 1;
                for usage in usages {
                    words[count] = *usage;
                    count += 1;
                }
                receive(&words[..count])
            }
        }
    };
}

impl Sealed for () {}
signature!(1: P0 A0 0);
signature!(2: P0 A0 0, P1 A1 1);
signature!(3: P0 A0 0, P1 A1 1, P2 A2 2);
signature!(4: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3);
signature!(5: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4);
signature!(6: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5);
signature!(7: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6);
signature!(8: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7);
signature!(9: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8);
signature!(10: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9);
signature!(11: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10);
signature!(12: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11);
signature!(13: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12);
signature!(14: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13);
signature!(15: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13, P14 A14 14);
signature!(16: P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13, P14 A14 14, P15 A15 15);
