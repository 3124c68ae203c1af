//! The parameters that a kernel may declare.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::slice;

use bytemuck::Pod;

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::{Parameter, ParameterInfo, ParameterKind, RawSlice, Sealed};
use crate::atomic::AtomicElement;
use crate::sharing::{Exclusive, Sharing};

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

const fn info<T>(kind: ParameterKind) -> ParameterInfo {
    ParameterInfo { kind, element_bytes: size_of::<T>() }
}

/// The properties that all arrays have in common.
macro_rules! array_items {
    () => {
        type Value = ();

        fn value(_: &Self::View<'_, Exclusive>) {}

        fn raw_value(_: &Self::Raw) {}

        fn view_len(view: &Self::View<'_, Exclusive>) -> usize {
            view.len()
        }

        fn raw_len(raw: &Self::Raw) -> usize {
            raw.len
        }

        #[cfg(feature = "alloc")]
        fn passed(raw: &Self::Raw) -> RawArgument<'_> {
            RawArgument::Pointer(raw.pointer as usize)
        }
    };
}

pub(super) use array_items;

impl<T> Sealed for Read<T> {}
impl<T: Pod + Send + Sync> Parameter for Read<T> {
    type Raw = RawSlice<T>;
    type View<'v, F: Sharing> = &'v [T];
    type Form = &'static [T];
    const INFO: ParameterInfo = info::<T>(ParameterKind::Read);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        view
    }

    unsafe fn view<F: Sharing>(raw: &RawSlice<T>) -> &[T] {
        // SAFETY: the caller's promise; `Bind` proved alignment and length.
        unsafe { slice::from_raw_parts(raw.pointer, raw.len) }
    }
}

impl<T> Sealed for Write<T> {}
impl<T: Pod + Send + Sync> Parameter for Write<T> {
    type Raw = RawSlice<T>;
    type View<'v, F: Sharing> = F::Array<'v, T>;
    type Form = &'static mut [T];
    const INFO: ParameterInfo = info::<T>(ParameterKind::Write);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        F::reborrow(view)
    }

    unsafe fn view<'v, F: Sharing>(raw: &'v RawSlice<T>) -> F::Array<'v, T> {
        // SAFETY: the caller's promise.
        unsafe { F::array(raw) }
    }
}

impl<T> Sealed for Output<T> {}
impl<T: Pod + Send + Sync> Parameter for Output<T> {
    type Raw = RawSlice<MaybeUninit<T>>;
    type View<'v, F: Sharing> = F::Array<'v, MaybeUninit<T>>;
    type Form = &'static mut [MaybeUninit<T>];
    const INFO: ParameterInfo = info::<T>(ParameterKind::Output);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        F::reborrow(view)
    }

    unsafe fn view<'v, F: Sharing>(raw: &'v RawSlice<MaybeUninit<T>>) -> F::Array<'v, MaybeUninit<T>> {
        // SAFETY: the caller's promise; any bits are valid.
        unsafe { F::array(raw) }
    }
}

impl<T> Sealed for Atomic<T> {}
impl<T: AtomicElement> Parameter for Atomic<T> {
    type Raw = RawSlice<T>;
    type View<'v, F: Sharing> = &'v [T::Atomic];
    type Form = *mut [T];
    const INFO: ParameterInfo = info::<T>(ParameterKind::Atomic);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        view
    }

    unsafe fn view<F: Sharing>(raw: &RawSlice<T>) -> &[T::Atomic] {
        // SAFETY: the caller's promise; all access to the elements is atomic meanwhile.
        unsafe { T::view(raw) }
    }
}

/// The properties that all values have in common, but for what devices get.
macro_rules! value_items {
    ($value:ident) => {
        type Raw = $value;
        type View<'v, F: Sharing> = $value;
        type Value = $value;
        const INFO: ParameterInfo =
            ParameterInfo { kind: ParameterKind::Value, element_bytes: size_of::<$value>() };

        #[inline]
        fn value(view: &$value) -> $value {
            *view
        }

        #[inline]
        fn raw_value(raw: &$value) -> $value {
            *raw
        }

        fn view_len(_: &$value) -> usize {
            1
        }

        #[inline]
        fn reborrow<F: Sharing>(view: &mut $value) -> $value {
            *view
        }

        fn raw_len(_: &$value) -> usize {
            1
        }

        unsafe fn view<F: Sharing>(raw: &$value) -> $value {
            *raw
        }
    };
}

pub(super) use value_items;

impl<T> Sealed for Value<T> {}
impl<T: Pod + Send + Sync> Parameter for Value<T> {
    type Form = T;
    value_items!(T);

    #[cfg(feature = "alloc")]
    fn passed(raw: &T) -> RawArgument<'_> {
        RawArgument::Value(bytemuck::bytes_of(raw))
    }
}
