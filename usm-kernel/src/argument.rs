//! Arguments: the parameters that a kernel declares, and the values that a launch passes.
//!
//! A kernel declares a tuple of parameters, such as `(Read<f32>, Write<f32>, Value<f32>)`; its body
//! receives the views `(&[f32], &mut [f32], f32)`; a launch passes `(&array, &mut array, 2.0)`. A
//! host view ([`ReadView`](usm_core::ReadView), [`WriteView`](usm_core::WriteView)) cannot be an
//! argument.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::slice;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Kind, UninitVec, Usage, UsmVec};

use crate::atomic::AtomicElement;
#[cfg(feature = "alloc")]
use crate::error::LaunchError;
#[cfg(feature = "alloc")]
use crate::executable::Passed;

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// What a kernel may do with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Passing {
    /// Global memory, read.
    Read,
    /// Global memory, read and written by one group at a time.
    Write,
    /// Global memory without values, written.
    Output,
    /// Global memory, read and written by atomic operations.
    Atomic,
    /// A small read-only table.
    Constant,
    /// A scalar or structure by value.
    Value,
}

/// One row of a kernel's argument table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ParameterInfo {
    /// Kind of access.
    pub passing: Passing,
    /// Bytes of one element.
    pub element_bytes: usize,
}

/// A parameter in a kernel's declaration; sealed.
pub trait Parameter: Sealed {
    /// The form that is sent to the kernel.
    type Raw: Send + 'static;
    /// The form that the body receives.
    type View<'v>;
    /// The value for the kernel's check: that of a [`Value`], `()` for an array.
    type Value: Copy;
    /// The row of the argument table.
    const INFO: ParameterInfo;

    /// The value for the check.
    fn value(view: &Self::View<'_>) -> Self::Value;

    #[doc(hidden)]
    fn raw_value(raw: &Self::Raw) -> Self::Value;

    /// Elements of a view.
    fn view_len(view: &Self::View<'_>) -> usize;

    /// The same view for one group.
    fn reborrow<'s>(view: &'s mut Self::View<'_>) -> Self::View<'s>;

    #[doc(hidden)]
    fn raw_len(raw: &Self::Raw) -> usize;

    #[doc(hidden)]
    #[cfg(feature = "alloc")]
    fn passed(raw: &Self::Raw) -> Passed<'_>;

    /// # Safety
    /// The memory that `raw` names is live, initialised and not accessed in conflict for `'v`.
    #[doc(hidden)]
    unsafe fn view<'v>(raw: &'v Self::Raw) -> Self::View<'v>;
}

/// Global memory that the kernel reads: `&[T]`, passed as `&UsmVec`.
#[derive(Debug)]
pub struct Read<T>(PhantomData<T>);
/// Global memory that the kernel reads and writes: `&mut [T]`, passed as `&mut UsmVec`.
#[derive(Debug)]
pub struct Write<T>(PhantomData<T>);
/// Uninitialised global memory that the kernel fills: `&mut [MaybeUninit<T>]`, passed as `&mut
/// UninitVec`.
#[derive(Debug)]
pub struct Output<T>(PhantomData<T>);
/// Global memory that the kernel changes by atomic operations: `&[AtomicU32]` and so on, passed as
/// `&mut UsmVec`.
#[derive(Debug)]
pub struct Atomic<T>(PhantomData<T>);
/// A scalar or structure by value: `T`.
#[derive(Debug)]
pub struct Value<T>(PhantomData<T>);

/// A slice of USM memory that is sent to a kernel.
#[derive(Debug)]
pub struct RawSlice<T> {
    pointer: *mut T,
    len: usize,
}

// SAFETY: code that turns it into a view proves that no other thread accesses the memory in
// conflict.
unsafe impl<T: Send + Sync> Send for RawSlice<T> {}

impl<T> RawSlice<T> {
    /// `len` elements at `pointer`, which is aligned for `T`.
    #[must_use]
    pub const fn new(pointer: *mut T, len: usize) -> Self {
        Self { pointer, len }
    }

    /// # Safety
    /// The elements are live and initialised for `'v`, and nothing else accesses them meanwhile.
    pub(crate) unsafe fn view_mut<'v>(raw: &Self) -> &'v mut [T] {
        // SAFETY: the caller's promise; `new` was given an aligned pointer.
        unsafe { slice::from_raw_parts_mut(raw.pointer, raw.len) }
    }
}

const fn info<T>(passing: Passing) -> ParameterInfo {
    ParameterInfo { passing, element_bytes: size_of::<T>() }
}

impl<T> Sealed for Read<T> {}
impl<T: Pod + Send + Sync> Parameter for Read<T> {
    type Raw = RawSlice<T>;
    type View<'v> = &'v [T];
    type Value = ();
    const INFO: ParameterInfo = info::<T>(Passing::Read);

    fn value(_: &Self::View<'_>) {}

    fn raw_value(_: &Self::Raw) {}

    fn view_len(view: &&[T]) -> usize {
        view.len()
    }

    #[inline]
    fn reborrow<'s>(view: &'s mut &[T]) -> &'s [T] {
        view
    }

    fn raw_len(raw: &RawSlice<T>) -> usize {
        raw.len
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &RawSlice<T>) -> Passed<'_> {
        Passed::Pointer(raw.pointer as usize)
    }

    unsafe fn view(raw: &RawSlice<T>) -> &[T] {
        // SAFETY: the caller's promise; `Bind` proved alignment and length.
        unsafe { slice::from_raw_parts(raw.pointer, raw.len) }
    }
}

impl<T> Sealed for Write<T> {}
impl<T: Pod + Send + Sync> Parameter for Write<T> {
    type Raw = RawSlice<T>;
    type View<'v> = &'v mut [T];
    type Value = ();
    const INFO: ParameterInfo = info::<T>(Passing::Write);

    fn value(_: &Self::View<'_>) {}

    fn raw_value(_: &Self::Raw) {}

    fn view_len(view: &&mut [T]) -> usize {
        view.len()
    }

    #[inline]
    fn reborrow<'s>(view: &'s mut &mut [T]) -> &'s mut [T] {
        view
    }

    fn raw_len(raw: &RawSlice<T>) -> usize {
        raw.len
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &RawSlice<T>) -> Passed<'_> {
        Passed::Pointer(raw.pointer as usize)
    }

    unsafe fn view(raw: &RawSlice<T>) -> &mut [T] {
        // SAFETY: the caller's promise, which for a written argument is exclusive access.
        unsafe { RawSlice::view_mut(raw) }
    }
}

impl<T> Sealed for Output<T> {}
impl<T: Pod + Send + Sync> Parameter for Output<T> {
    type Raw = RawSlice<MaybeUninit<T>>;
    type View<'v> = &'v mut [MaybeUninit<T>];
    type Value = ();
    const INFO: ParameterInfo = info::<T>(Passing::Output);

    fn value(_: &Self::View<'_>) {}

    fn raw_value(_: &Self::Raw) {}

    fn view_len(view: &&mut [MaybeUninit<T>]) -> usize {
        view.len()
    }

    #[inline]
    fn reborrow<'s>(view: &'s mut &mut [MaybeUninit<T>]) -> &'s mut [MaybeUninit<T>] {
        view
    }

    fn raw_len(raw: &RawSlice<MaybeUninit<T>>) -> usize {
        raw.len
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &RawSlice<MaybeUninit<T>>) -> Passed<'_> {
        Passed::Pointer(raw.pointer as usize)
    }

    unsafe fn view(raw: &RawSlice<MaybeUninit<T>>) -> &mut [MaybeUninit<T>] {
        // SAFETY: the caller's promise, which for a written argument is exclusive access; any bits
        // are valid.
        unsafe { RawSlice::view_mut(raw) }
    }
}

impl<T> Sealed for Atomic<T> {}
impl<T: AtomicElement> Parameter for Atomic<T> {
    type Raw = RawSlice<T>;
    type View<'v> = &'v [T::Atomic];
    type Value = ();
    const INFO: ParameterInfo = info::<T>(Passing::Atomic);

    fn value(_: &Self::View<'_>) {}

    fn raw_value(_: &Self::Raw) {}

    fn view_len(view: &&[T::Atomic]) -> usize {
        view.len()
    }

    #[inline]
    fn reborrow<'s>(view: &'s mut &[T::Atomic]) -> &'s [T::Atomic] {
        view
    }

    fn raw_len(raw: &RawSlice<T>) -> usize {
        raw.len
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &RawSlice<T>) -> Passed<'_> {
        Passed::Pointer(raw.pointer as usize)
    }

    unsafe fn view(raw: &RawSlice<T>) -> &[T::Atomic] {
        // SAFETY: the caller's promise, which for an atomic argument is exclusive access.
        T::from_mut(unsafe { RawSlice::view_mut(raw) })
    }
}

impl<T> Sealed for Value<T> {}
impl<T: Pod + Send> Parameter for Value<T> {
    type Raw = T;
    type View<'v> = T;
    type Value = T;
    const INFO: ParameterInfo = info::<T>(Passing::Value);

    #[inline]
    fn value(view: &T) -> T {
        *view
    }

    #[inline]
    fn raw_value(raw: &T) -> T {
        *raw
    }

    fn view_len(_: &T) -> usize {
        1
    }

    #[inline]
    fn reborrow(view: &mut T) -> T {
        *view
    }

    fn raw_len(_: &T) -> usize {
        1
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &T) -> Passed<'_> {
        Passed::Value(bytemuck::bytes_of(raw))
    }

    unsafe fn view(raw: &T) -> T {
        *raw
    }
}

/// The argument that a launch passes for a parameter.
///
/// # Safety
/// For global memory [`usage`](Self::usage) names the allocation that [`raw`](Self::raw) lies in,
/// all elements are aligned and, except for [`Output`], initialised, written arguments say so, and
/// `Self` holds the borrow (`&` or `&mut`) that excludes conflicting host access while the launch
/// is submitted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for the kernel parameter `{P}`",
    label = "not an argument for `{P}`",
    note = "`Read<T>` takes `&UsmVec<T, _, _>`; `Write<T>` and `Atomic<T>` take `&mut UsmVec<T, _, _>`; `Value<T>` \
            takes a `T`; host views are never arguments"
)]
pub unsafe trait Bind<P: Parameter, B: Backend> {
    /// The form that is sent to the kernel.
    fn raw(&mut self) -> P::Raw;

    /// The allocation with its access; `None` for values.
    fn usage(&self) -> Option<(&Allocation<B>, Access)>;
}

// SAFETY: the array proves initialisation and alignment, the usage is its allocation's, and a read
// needs `&`.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Read<T>, B> for &UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_ptr().cast_mut(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Read))
    }
}

// SAFETY: as above; a write needs `&mut`.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Write<T>, B> for &mut UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: as above; the elements may be uninitialised.
unsafe impl<T: Pod + Send + Sync, K: Kind, B: Backend> Bind<Output<T>, B> for &mut UninitVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<MaybeUninit<T>> {
        RawSlice::new(self.allocation().as_ptr().cast(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: as above.
unsafe impl<T: AtomicElement, K: Kind, B: Backend> Bind<Atomic<T>, B> for &mut UsmVec<T, K, B> {
    fn raw(&mut self) -> RawSlice<T> {
        RawSlice::new(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}

// SAFETY: it refers to no memory.
unsafe impl<T: Pod + Send, B: Backend> Bind<Value<T>, B> for T {
    fn raw(&mut self) -> T {
        *self
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}

// SAFETY: it refers to no memory.
unsafe impl<B: Backend> Bind<Value<u8>, B> for bool {
    fn raw(&mut self) -> u8 {
        u8::from(*self)
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}

/// All parameters of a kernel: a tuple of one to eight [`Parameter`]s.
pub trait Signature: Sealed {
    /// The form that is sent to the kernel.
    type Raw: Send + 'static;
    /// What the body receives: a tuple of views.
    type Views<'v>;
    /// Elements of each argument, an array.
    type Lengths: AsRef<[usize]>;
    /// The values for the check: a tuple, `()` for each array.
    type Values: Copy;
    /// The argument table.
    const TABLE: &'static [ParameterInfo];

    /// The value for the check.
    fn view_values(views: &Self::Views<'_>) -> Self::Values;

    #[doc(hidden)]
    fn raw_values(raw: &Self::Raw) -> Self::Values;

    /// Elements of each view; values have one.
    fn view_lengths(views: &Self::Views<'_>) -> Self::Lengths;

    /// The same views for one group.
    fn reborrow<'s>(views: &'s mut Self::Views<'_>) -> Self::Views<'s>;

    #[doc(hidden)]
    fn raw_lengths(raw: &Self::Raw) -> Self::Lengths;

    /// Calls `receive` with each argument, in order, until it returns an error.
    #[doc(hidden)]
    #[cfg(feature = "alloc")]
    fn pass<'p>(
        raw: &'p Self::Raw,
        receive: impl FnMut(Passed<'p>) -> Result<(), LaunchError>,
    ) -> Result<(), LaunchError>;

    /// # Safety
    /// As [`Parameter::view`], for each of them.
    #[doc(hidden)]
    unsafe fn views<'v>(raw: &'v Self::Raw) -> Self::Views<'v>;
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
            type Views<'v> = ($($parameter::View<'v>,)+);
            type Lengths = [usize; $count];
            type Values = ($($parameter::Value,)+);
            const TABLE: &'static [ParameterInfo] = &[$($parameter::INFO),+];

            #[inline]
            fn view_values(views: &Self::Views<'_>) -> Self::Values {
                ($($parameter::value(&views.$index),)+)
            }

            #[inline]
            fn raw_values(raw: &Self::Raw) -> Self::Values {
                ($($parameter::raw_value(&raw.$index),)+)
            }

            fn view_lengths(views: &Self::Views<'_>) -> [usize; $count] {
                [$($parameter::view_len(&views.$index)),+]
            }

            #[inline]
            fn reborrow<'s>(views: &'s mut Self::Views<'_>) -> Self::Views<'s> {
                ($($parameter::reborrow(&mut views.$index),)+)
            }

            fn raw_lengths(raw: &Self::Raw) -> [usize; $count] {
                [$($parameter::raw_len(&raw.$index)),+]
            }

            #[cfg(feature = "alloc")]
            #[inline]
            fn pass<'p>(
                raw: &'p Self::Raw,
                mut receive: impl FnMut(Passed<'p>) -> Result<(), LaunchError>,
            ) -> Result<(), LaunchError> {
                $(receive($parameter::passed(&raw.$index))?;)+
                Ok(())
            }

            unsafe fn views<'v>(raw: &'v Self::Raw) -> Self::Views<'v> {
                ($(
                    // SAFETY: the caller's promise.
                    unsafe { $parameter::view(&raw.$index) },
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
                let mut packed = [*first; $count];
                let mut count = 1;
                for usage in usages {
                    packed[count] = *usage;
                    count += 1;
                }
                receive(&packed[..count])
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
