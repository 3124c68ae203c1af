//! Tuples by value. Devices get an argument for each number.

use core::marker::PhantomData;

use usm_core::{Access, Allocation, Backend};

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::fields::{FieldTypes, byte_count};
use super::{Bind, Parameter, ParameterInfo, ParameterKind, Sealed};
use crate::sharing::Sharing;

/// A tuple of numbers by value, passed as it is: `(T0, T1)`.
#[derive(Debug)]
pub struct Tuple<T>(PhantomData<T>);

/// A tuple, and the bytes of its numbers in their order. The compiler chooses the layout of the
/// tuple itself.
#[derive(Clone, Copy, Debug)]
pub struct RawTuple<T> {
    value: T,
    #[cfg(feature = "alloc")]
    bytes: [u8; MAX_BYTES],
}

/// The bytes of sixteen numbers of 64 bits.
#[cfg(feature = "alloc")]
const MAX_BYTES: usize = 128;

impl<T: FieldTypes> RawTuple<T> {
    fn new(value: T) -> Self {
        #[cfg(feature = "alloc")]
        {
            const { assert!(byte_count::<T>() <= MAX_BYTES, "a tuple of kernels has at most 128 bytes") };
            let mut bytes = [0; MAX_BYTES];
            value.write_bytes(&mut bytes);
            Self { value, bytes }
        }
        #[cfg(not(feature = "alloc"))]
        Self { value }
    }
}

impl<T> Sealed for Tuple<T> {}
impl<T: FieldTypes> Parameter for Tuple<T> {
    type Raw = RawTuple<T>;
    type View<'v, F: Sharing> = T;
    type Value = T;
    type Form = (T,);
    const INFO: ParameterInfo =
        ParameterInfo { kind: ParameterKind::Value, element_bytes: byte_count::<T>() };

    #[inline]
    fn value(view: &T) -> T {
        *view
    }

    #[inline]
    fn raw_value(raw: &RawTuple<T>) -> T {
        raw.value
    }

    fn view_len(_: &T) -> usize {
        1
    }

    #[inline]
    fn reborrow<F: Sharing>(view: &mut T) -> T {
        *view
    }

    fn raw_len(_: &RawTuple<T>) -> usize {
        1
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &RawTuple<T>) -> RawArgument<'_> {
        RawArgument::Fields(&raw.bytes[..byte_count::<T>()], T::SIZES)
    }

    unsafe fn view<F: Sharing>(raw: &RawTuple<T>) -> T {
        raw.value
    }
}

// SAFETY: it refers to no memory.
unsafe impl<T: FieldTypes, B: Backend> Bind<Tuple<T>, B> for T {
    fn raw(&mut self) -> RawTuple<T> {
        RawTuple::new(*self)
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}
