//! Private memory: values of one work-item that outlive a barrier.
//!
//! Inside a phase private memory is a local variable of the body. Values that an item keeps from
//! one phase to the next need storage: a kernel declares them as [`Private`], and each item has its
//! own part.

use core::marker::PhantomData;

use bytemuck::Pod;

use crate::argument::Sealed;
use crate::local::{LocalParameter, fill};
use crate::range::Item;

/// An array for each work-item, with unspecified values at the start of a group: [`PrivateArrays`].
/// Its length is that of one item. On the host the values are those of [`Local`](crate::Local).
#[derive(Debug)]
pub struct Private<T>(PhantomData<T>);

/// The private arrays of all items of a group.
#[derive(Debug)]
pub struct PrivateArrays<'v, T> {
    arrays: &'v mut [T],
    len: usize,
}

impl<'v, T> PrivateArrays<'v, T> {
    /// The arrays of all items, one after the other.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn into_slice(self) -> &'v mut [T] {
        self.arrays
    }

    /// The array of one item.
    #[inline]
    #[must_use]
    pub fn of<const D: usize>(&mut self, item: Item<'_, D>) -> &mut [T] {
        let start = item.local() * self.len;
        &mut self.arrays[start..start + self.len]
    }
}

impl<T> Sealed for Private<T> {}
impl<T: Pod> LocalParameter for Private<T> {
    type Element = T;
    type View<'v> = PrivateArrays<'v, T>;
    const IS_LOCAL: bool = false;

    fn elements(len: usize, group: usize) -> Option<usize> {
        len.checked_mul(group)
    }

    fn view(arrays: &mut [T], len: usize) -> PrivateArrays<'_, T> {
        PrivateArrays { arrays, len }
    }

    #[inline]
    fn reborrow<'s>(view: &'s mut PrivateArrays<'_, T>) -> PrivateArrays<'s, T> {
        PrivateArrays { arrays: view.arrays, len: view.len }
    }

    #[inline]
    fn prepare(view: &mut PrivateArrays<'_, T>, byte: Option<u8>) {
        fill(view.arrays, byte);
    }
}
