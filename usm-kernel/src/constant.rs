//! Constant memory: small tables that are fixed for a launch and that every work-item reads.

use core::marker::PhantomData;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend};

use crate::argument::{Bind, Parameter, ParameterInfo, ParameterKind, Sealed};
use crate::sharing::Sharing;

/// A table of `N` elements in constant memory: `&[T; N]`, passed as `[T; N]`. At most 64 KiB, which
/// every device supports.
#[derive(Debug)]
pub struct Constant<T, const N: usize>(PhantomData<T>);

/// Bytes of constant memory on a CUDA device, and OpenCL's guaranteed minimum.
const LIMIT: usize = 64 * 1024;

impl<T, const N: usize> Sealed for Constant<T, N> {}
impl<T: Pod + Send + Sync, const N: usize> Parameter for Constant<T, N> {
    type Raw = [T; N];
    type View<'v, F: Sharing> = &'v [T; N];
    type Value = ();
    type Form = &'static [T; N];
    const INFO: ParameterInfo = {
        assert!(size_of::<[T; N]>() <= LIMIT, "a constant table has at most 64 KiB");
        ParameterInfo { kind: ParameterKind::Constant, element_bytes: size_of::<T>() }
    };

    fn value(_: &&[T; N]) {}

    fn raw_value(_: &[T; N]) {}

    fn view_len(_: &&[T; N]) -> usize {
        N
    }

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut &[T; N]) -> &'s [T; N] {
        view
    }

    fn raw_len(_: &[T; N]) -> usize {
        N
    }

    #[cfg(feature = "alloc")]
    fn passed(raw: &[T; N]) -> crate::argument::RawArgument<'_> {
        crate::argument::RawArgument::Table(bytemuck::cast_slice(raw))
    }

    unsafe fn view<F: Sharing>(raw: &[T; N]) -> &[T; N] {
        raw
    }
}

// SAFETY: the table is passed by value, so it refers to no memory.
unsafe impl<T: Pod + Send + Sync, const N: usize, B: Backend> Bind<Constant<T, N>, B> for [T; N] {
    fn raw(&mut self) -> [T; N] {
        *self
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        None
    }
}
