//! Arrays of structures whose fields have several types. The body gets an array for each type, over
//! the same memory.

use core::marker::PhantomData;
use core::slice;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Kind, UsmVec};

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::{Bind, Parameter, ParameterInfo, ParameterKind, RawSlice, Sealed, Structure};
use crate::sharing::{Exclusive, SharedElement, Sharing};

/// Global memory of structures that the kernel reads: `&[S]`, passed as `&UsmVec`. `N` is the
/// number of types of the fields; devices get an argument for each.
#[derive(Debug)]
pub struct ReadColumns<S, const N: usize>(PhantomData<S>);
/// Global memory of structures that the kernel reads and writes: `&mut [S]`, passed as `&mut
/// UsmVec`.
#[derive(Debug)]
pub struct WriteColumns<S, const N: usize>(PhantomData<S>);

/// Structures that a body reads.
#[derive(Debug)]
pub struct Columns<'v, S> {
    memory: RawSlice<S>,
    structures: PhantomData<&'v [S]>,
}

/// Structures that a body writes.
#[derive(Debug)]
pub struct WrittenColumns<'v, S> {
    memory: RawSlice<S>,
    structures: PhantomData<&'v [SharedElement<S>]>,
}

/// The elements of type `T` in structures of `BYTES` bytes.
const fn elements<S: Structure, T: Pod, const BYTES: usize>(memory: &RawSlice<S>) -> (*mut T, usize) {
    const {
        assert!(
            size_of::<S>() == BYTES
                && size_of::<T>() != 0
                && BYTES % size_of::<T>() == 0
                && align_of::<S>() >= align_of::<T>(),
            "a structure of kernels has the bytes of its fields and no others"
        );
    }
    // The bytes of the structures are no more than a machine has.
    (memory.as_ptr().cast(), memory.len() * (BYTES / size_of::<T>()))
}

impl<'v, S: Structure> Columns<'v, S> {
    /// The memory as elements of a type of fields.
    #[must_use]
    pub fn column<T: Pod, const BYTES: usize>(&self) -> &'v [T] {
        let (first, len) = elements::<S, T, BYTES>(&self.memory);
        // SAFETY: only `Parameter::view` makes such a value, whose caller promises live,
        // initialised memory that nobody writes for `'v`; it is aligned for `S`, so for `T`, has as
        // many bytes, and all bits are a `T`.
        unsafe { slice::from_raw_parts(first, len) }
    }
}

impl<'v, S: Structure> WrittenColumns<'v, S> {
    /// As of [`Columns`]. Other elements of the memory are those of other columns.
    #[must_use]
    pub fn column<T: Pod, const BYTES: usize>(&self) -> &'v [SharedElement<T>] {
        let (first, len) = elements::<S, T, BYTES>(&self.memory);
        // SAFETY: as above. Other references to the memory are of such elements too, which claim
        // nothing about who accesses them; all bits are an `S`, so what is written is one.
        unsafe { slice::from_raw_parts(first.cast(), len) }
    }
}

macro_rules! column_items {
    ($passing:ident, $view:ident) => {
        type Raw = RawSlice<S>;
        type View<'v, F: Sharing> = $view<'v, S>;
        type Value = ();
        const INFO: ParameterInfo =
            ParameterInfo { kind: ParameterKind::$passing, element_bytes: size_of::<S>() };

        fn value(_: &Self::View<'_, Exclusive>) {}

        fn raw_value(_: &Self::Raw) {}

        fn view_len(view: &Self::View<'_, Exclusive>) -> usize {
            view.memory.len()
        }

        fn raw_len(raw: &Self::Raw) -> usize {
            raw.len()
        }

        #[inline]
        fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
            let memory = RawSlice::new(view.memory.as_ptr(), view.memory.len());
            $view { memory, structures: PhantomData }
        }

        #[cfg(feature = "alloc")]
        fn passed(raw: &Self::Raw) -> RawArgument<'_> {
            RawArgument::Columns(raw.as_ptr() as usize, N)
        }

        unsafe fn view<'v, F: Sharing>(raw: &'v Self::Raw) -> Self::View<'v, F> {
            $view { memory: RawSlice::new(raw.as_ptr(), raw.len()), structures: PhantomData }
        }
    };
}

impl<S, const N: usize> Sealed for ReadColumns<S, N> {}
impl<S: Structure, const N: usize> Parameter for ReadColumns<S, N> {
    type Form = (&'static [u8], [(); N]);
    column_items!(Read, Columns);
}

impl<S, const N: usize> Sealed for WriteColumns<S, N> {}
impl<S: Structure, const N: usize> Parameter for WriteColumns<S, N> {
    type Form = (&'static mut [u8], [(); N]);
    column_items!(Write, WrittenColumns);
}

// SAFETY: the allocation holds the structures, aligned and initialised.
unsafe impl<S: Structure, K: Kind, B: Backend, const N: usize> Bind<ReadColumns<S, N>, B>
    for &UsmVec<S, K, B>
{
    fn raw(&mut self) -> RawSlice<S> {
        RawSlice::new(self.as_ptr().cast_mut(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Read))
    }
}

// SAFETY: as above; a write needs `&mut`.
unsafe impl<S: Structure, K: Kind, B: Backend, const N: usize> Bind<WriteColumns<S, N>, B>
    for &mut UsmVec<S, K, B>
{
    fn raw(&mut self) -> RawSlice<S> {
        RawSlice::new(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}
