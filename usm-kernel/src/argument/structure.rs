//! Arrays of structures, which kernels take as rows of numbers.

use core::marker::PhantomData;
use core::slice;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Kind, UsmVec};

#[cfg(feature = "alloc")]
use super::RawArgument;
use super::parameter::array_items;
use super::{Bind, Parameter, ParameterInfo, ParameterKind, RawSlice, Sealed};
use crate::sharing::{Exclusive, Sharing};

/// A structure of numbers, an element of arrays that kernels take. The derive macro of this name
/// implements it.
pub trait Structure: Pod + Send + Sync {
    /// The type of all fields; `u8` if they have several.
    type Field: Pod + Send + Sync;
    /// Its name. A kernel that is compiled at run time compares it with the name in the text.
    const NAME: &'static str;
    /// The names of the fields, in their order.
    const FIELDS: &'static [&'static str];
    /// The types of the fields, such as `"f32"`; of one type none.
    const TYPES: &'static [&'static str] = &[];
}

/// Global memory of structures that the kernel reads: `&[S]`, passed as `&UsmVec`. The body gets
/// their fields, one after the other.
#[derive(Debug)]
pub struct ReadFields<S>(PhantomData<S>);
/// Global memory of structures that the kernel reads and writes: `&mut [S]`, passed as `&mut
/// UsmVec`. The body gets their fields, one after the other.
#[derive(Debug)]
pub struct WriteFields<S>(PhantomData<S>);

/// The number of fields of a structure. No program is compiled that asks for it of a structure
/// which is anything else than its fields: this is the only place that compares them.
///
/// ```
/// use usm_kernel::generated::{bytemuck, field_count};
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Point([f32; 3]);
/// // SAFETY: three numbers.
/// unsafe impl bytemuck::Zeroable for Point {}
/// // SAFETY: as above.
/// unsafe impl bytemuck::Pod for Point {}
/// impl usm_kernel::Structure for Point {
///     type Field = f32;
///     const NAME: &'static str = "Point";
///     const FIELDS: &'static [&'static str] = &["x", "y", "z"];
/// }
/// let _ = field_count::<Point>();
/// ```
///
/// ```compile_fail
/// use usm_kernel::generated::{bytemuck, field_count};
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Point([f32; 3]);
/// // SAFETY: three numbers.
/// unsafe impl bytemuck::Zeroable for Point {}
/// // SAFETY: as above.
/// unsafe impl bytemuck::Pod for Point {}
/// impl usm_kernel::Structure for Point {
///     type Field = f32;
///     const NAME: &'static str = "Point";
///     const FIELDS: &'static [&'static str] = &["x", "y"]; // 8 bytes of 12
/// }
/// let _ = field_count::<Point>();
/// ```
#[must_use]
pub const fn field_count<S: Structure>() -> usize {
    const {
        assert!(
            size_of::<S>() == size_of::<S::Field>() * S::FIELDS.len()
                && align_of::<S>() == align_of::<S::Field>(),
            "a structure of kernels has the bytes of its fields and no others"
        );
        S::FIELDS.len()
    }
}

/// The fields of a structure.
struct Fields<S>(PhantomData<S>);

impl<S: Structure> Fields<S> {
    const fn info(kind: ParameterKind) -> ParameterInfo {
        ParameterInfo { kind, element_bytes: size_of::<S::Field>() }
    }

    const fn slice(first: *mut S, structures: usize) -> RawSlice<S::Field> {
        // The bytes of the structures are no more than a machine has.
        RawSlice::new(first.cast(), structures * field_count::<S>())
    }
}

impl<S> Sealed for ReadFields<S> {}
impl<S: Structure> Parameter for ReadFields<S> {
    type Raw = RawSlice<S::Field>;
    type View<'v, F: Sharing> = &'v [S::Field];
    type Form = &'static [S::Field];
    const INFO: ParameterInfo = Fields::<S>::info(ParameterKind::Read);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        view
    }

    unsafe fn view<F: Sharing>(raw: &RawSlice<S::Field>) -> &[S::Field] {
        // SAFETY: the caller's promise; `Bind` proved alignment and length.
        unsafe { slice::from_raw_parts(raw.pointer, raw.len) }
    }
}

impl<S> Sealed for WriteFields<S> {}
impl<S: Structure> Parameter for WriteFields<S> {
    type Raw = RawSlice<S::Field>;
    type View<'v, F: Sharing> = F::Array<'v, S::Field>;
    type Form = &'static mut [S::Field];
    const INFO: ParameterInfo = Fields::<S>::info(ParameterKind::Write);

    array_items!();

    #[inline]
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F> {
        F::reborrow(view)
    }

    unsafe fn view<'v, F: Sharing>(raw: &'v RawSlice<S::Field>) -> F::Array<'v, S::Field> {
        // SAFETY: the caller's promise.
        unsafe { F::array(raw) }
    }
}

// SAFETY: the allocation holds the structures, each of which is its fields, initialised because
// they are; `field_count` compares size and alignment.
unsafe impl<S: Structure, K: Kind, B: Backend> Bind<ReadFields<S>, B> for &UsmVec<S, K, B> {
    fn raw(&mut self) -> RawSlice<S::Field> {
        Fields::<S>::slice(self.as_ptr().cast_mut(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Read))
    }
}

// SAFETY: as above; a write needs `&mut`, and all bits are a valid field and a valid structure.
unsafe impl<S: Structure, K: Kind, B: Backend> Bind<WriteFields<S>, B> for &mut UsmVec<S, K, B> {
    fn raw(&mut self) -> RawSlice<S::Field> {
        Fields::<S>::slice(self.as_mut_ptr(), self.len())
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation(), Access::Write))
    }
}
