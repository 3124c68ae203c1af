//! The parameters that a kernel may declare.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::slice;

use bytemuck::Pod;

#[cfg(feature = "alloc")]
use super::Passed;
use super::{Parameter, ParameterInfo, Passing, RawSlice, Sealed};
use crate::atomic::AtomicElement;

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

const fn info<T>(passing: Passing) -> ParameterInfo {
    ParameterInfo { passing, element_bytes: size_of::<T>() }
}

/// The properties that all arrays have in common.
macro_rules! array_items {
    () => {
        type Value = ();

        fn value(_: &Self::View<'_>) {}

        fn raw_value(_: &Self::Raw) {}

        fn view_len(view: &Self::View<'_>) -> usize {
            view.len()
        }

        #[inline]
        fn reborrow<'s>(view: &'s mut Self::View<'_>) -> Self::View<'s> {
            view
        }

        fn raw_len(raw: &Self::Raw) -> usize {
            raw.len
        }

        #[cfg(feature = "alloc")]
        fn passed(raw: &Self::Raw) -> Passed<'_> {
            Passed::Pointer(raw.pointer as usize)
        }
    };
}

impl<T> Sealed for Read<T> {}
impl<T: Pod + Send + Sync> Parameter for Read<T> {
    type Raw = RawSlice<T>;
    type View<'v> = &'v [T];
    type Form = &'static [T];
    const INFO: ParameterInfo = info::<T>(Passing::Read);

    array_items!();

    unsafe fn view(raw: &RawSlice<T>) -> &[T] {
        // SAFETY: the caller's promise; `Bind` proved alignment and length.
        unsafe { slice::from_raw_parts(raw.pointer, raw.len) }
    }
}

impl<T> Sealed for Write<T> {}
impl<T: Pod + Send + Sync> Parameter for Write<T> {
    type Raw = RawSlice<T>;
    type View<'v> = &'v mut [T];
    type Form = &'static mut [T];
    const INFO: ParameterInfo = info::<T>(Passing::Write);

    array_items!();

    unsafe fn view(raw: &RawSlice<T>) -> &mut [T] {
        // SAFETY: the caller's promise, which for a written argument is exclusive access.
        unsafe { RawSlice::view_mut(raw) }
    }
}

impl<T> Sealed for Output<T> {}
impl<T: Pod + Send + Sync> Parameter for Output<T> {
    type Raw = RawSlice<MaybeUninit<T>>;
    type View<'v> = &'v mut [MaybeUninit<T>];
    type Form = &'static mut [MaybeUninit<T>];
    const INFO: ParameterInfo = info::<T>(Passing::Output);

    array_items!();

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
    type Form = *mut [T];
    const INFO: ParameterInfo = info::<T>(Passing::Atomic);

    array_items!();

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
    type Form = T;
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
