//! Structures by value. Devices get an argument for each field.

use core::marker::PhantomData;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend};

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::parameter::value_items;
use super::{Bind, Parameter, ParameterInfo, ParameterKind, Sealed, Structure};
use crate::sharing::Sharing;

/// A structure by value, passed as it is. `T` is the tuple of the types of its fields.
#[derive(Debug)]
pub struct Fields<S, T>(PhantomData<(S, T)>);

/// The types of the fields of a structure: a tuple of one to sixteen.
pub trait FieldTypes: Sealed + Copy + Send + Sync + 'static {
    /// The bytes of each field.
    const SIZES: &'static [usize];

    /// Writes the bytes of each field, one after the other, to the start of `bytes`.
    #[doc(hidden)]
    fn write_bytes(&self, bytes: &mut [u8]);
}

macro_rules! field_types {
    ($first:ident $($ty:ident)*) => {
        impl<$first: Pod + Send + Sync, $($ty: Pod + Send + Sync),*> FieldTypes for ($first, $($ty,)*) {
            const SIZES: &'static [usize] = &[size_of::<$first>(), $(size_of::<$ty>()),*];

            #[allow(non_snake_case, reason = "each variable has the name of its type")]
            fn write_bytes(&self, bytes: &mut [u8]) {
                let ($first, $($ty,)*) = self;
                let fields = [bytemuck::bytes_of($first), $(bytemuck::bytes_of($ty)),*];
                let mut rest = bytes;
                for field in fields {
                    let (own, others) = rest.split_at_mut(field.len());
                    own.copy_from_slice(field);
                    rest = others;
                }
            }
        }
        field_types!($($ty)*);
    };
    () => {};
}

field_types!(T0 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T14 T15);

/// The bytes of all fields.
pub(super) const fn byte_count<T: FieldTypes>() -> usize {
    let (mut bytes, mut number) = (0, 0);
    while number < T::SIZES.len() {
        bytes += T::SIZES[number];
        number += 1;
    }
    bytes
}

/// The bytes of each field of a structure, which has no others.
const fn sizes<S: Structure, T: FieldTypes>() -> &'static [usize] {
    const {
        assert!(
            byte_count::<T>() == size_of::<S>(),
            "a structure of kernels has the bytes of its fields and no others"
        );
        T::SIZES
    }
}

impl<S, T> Sealed for Fields<S, T> {}
impl<S: Structure, T: FieldTypes> Parameter for Fields<S, T> {
    type Form = (T,);
    value_items!(S);

    #[cfg(feature = "alloc")]
    fn passed(raw: &S) -> RawArgument<'_> {
        RawArgument::Fields(bytemuck::bytes_of(raw), sizes::<S, T>())
    }
}

// SAFETY: it refers to no memory.
unsafe impl<S: Structure, T: FieldTypes, B: Backend> Bind<Fields<S, T>, B> for S {
    fn raw(&mut self) -> S {
        let _ = sizes::<S, T>();
        *self
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}
