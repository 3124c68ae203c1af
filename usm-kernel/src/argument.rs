//! Arguments: the parameters that a kernel declares, and the values that a launch passes.
//!
//! A kernel declares a tuple of parameters, such as `(Read<f32>, Write<f32>, Value<f32>)`; its body
//! receives the views `(&[f32], &mut [f32], f32)`; a launch passes `(&array, &mut array, 2.0)`. A
//! host view ([`ReadView`](usm_core::ReadView), [`WriteView`](usm_core::WriteView)) cannot be an
//! argument.

use core::slice;

use crate::sharing::{Exclusive, Sharing};

mod bind;
mod columns;
mod fields;
mod parameter;
mod signature;
mod structure;
mod tuple;
#[cfg(all(feature = "alloc", feature = "macros"))]
mod words;

pub use bind::Bind;
pub use columns::{Columns, ReadColumns, WriteColumns, WrittenColumns};
pub use fields::{FieldTypes, Fields};
pub use parameter::{Atomic, Output, Read, Value, Write};
pub use signature::{Arguments, Signature};
pub use structure::{ReadFields, Structure, WriteFields, field_count};
pub use tuple::Tuple;
#[cfg(all(feature = "alloc", feature = "macros"))]
pub(crate) use words::{Words, WordsMut};

mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

/// A kernel's use of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParameterKind {
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
    pub kind: ParameterKind,
    /// Bytes of one element.
    pub element_bytes: usize,
}

/// A parameter in a kernel's declaration; sealed.
pub trait Parameter: Sealed {
    /// The form that is sent to the kernel.
    type Raw: Send + Sync + 'static;
    /// The form that the body receives.
    type View<'v, F: Sharing>;
    /// The value for the kernel's check: that of a [`Value`], `()` for an array.
    type Value: Copy;
    /// The parameter in types of the language alone, which no program can redefine.
    #[doc(hidden)]
    type Form;
    /// The row of the argument table.
    const INFO: ParameterInfo;

    /// The value for the check.
    fn value(view: &Self::View<'_, Exclusive>) -> Self::Value;

    #[doc(hidden)]
    fn raw_value(raw: &Self::Raw) -> Self::Value;

    /// Elements of a view.
    fn view_len(view: &Self::View<'_, Exclusive>) -> usize;

    /// The same view for one group.
    fn reborrow<'s, F: Sharing>(view: &'s mut Self::View<'_, F>) -> Self::View<'s, F>;

    #[doc(hidden)]
    fn raw_len(raw: &Self::Raw) -> usize;

    #[doc(hidden)]
    #[cfg(feature = "alloc")]
    fn passed(raw: &Self::Raw) -> RawArgument<'_>;

    /// # Safety
    /// The memory that `raw` names is live, initialised and not accessed in conflict for `'v`; for
    /// written arrays as [`Sharing::array`] says.
    #[doc(hidden)]
    unsafe fn view<'v, F: Sharing>(raw: &'v Self::Raw) -> Self::View<'v, F>;
}

/// An argument for a device.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum RawArgument<'p> {
    /// The address of an array.
    Pointer(usize),
    /// The bytes of a value.
    Value(&'p [u8]),
    /// The bytes of a structure by value, and those of each of its fields: an argument for each.
    Fields(&'p [u8], &'static [usize]),
    /// The bytes of a table for constant memory.
    Table(&'p [u8]),
    /// The address of structures, and the number of types of their fields: an argument for each.
    Columns(usize, usize),
    /// The arrays for what a kernel of this text form prints.
    #[cfg(feature = "std")]
    Log(Option<&'static str>),
}

/// A slice of USM memory that is sent to a kernel.
#[derive(Debug)]
pub struct RawSlice<T> {
    pointer: *mut T,
    len: usize,
}

// SAFETY: code that turns it into a view proves that no other thread accesses the memory in
// conflict.
unsafe impl<T: Send + Sync> Send for RawSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for RawSlice<T> {}

impl<T> RawSlice<T> {
    /// `len` elements at `pointer`, which is aligned for `T`.
    #[must_use]
    pub const fn new(pointer: *mut T, len: usize) -> Self {
        Self { pointer, len }
    }

    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.pointer
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// # Safety
    /// The elements are live and initialised for `'v`, and nothing else accesses them meanwhile.
    pub(crate) unsafe fn view_mut<'v>(raw: &Self) -> &'v mut [T] {
        // SAFETY: the caller's promise; `new` was given an aligned pointer.
        unsafe { slice::from_raw_parts_mut(raw.pointer, raw.len) }
    }
}
