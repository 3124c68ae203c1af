//! Arrays as arrays of unsigned numbers of their elements' size.

use core::marker::PhantomData;

use bytemuck::Pod;
use usm_core::{Access, Allocation, Backend, Kind, UsmVec};

use super::{Bind, RawSlice, Read, Write};

/// The elements of an array that is read, as numbers of their size.
#[derive(Debug)]
pub struct Words<'a, U, B: Backend> {
    allocation: &'a Allocation<B>,
    len: usize,
    word: PhantomData<U>,
}

/// As [`Words`], of an array that is written too.
#[derive(Debug)]
pub struct WordsMut<'a, U, B: Backend> {
    words: Words<'a, U, B>,
    // The exclusive borrow of the array.
    array: PhantomData<&'a mut U>,
}

impl<'a, U: Pod, B: Backend> Words<'a, U, B> {
    pub(crate) fn of<T: Pod, K: Kind>(array: &'a UsmVec<T, K, B>) -> Self {
        const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
        Self { allocation: array.allocation(), len: array.len(), word: PhantomData }
    }

    /// Elements that are several words each; `None` where they are no words.
    pub(crate) fn parts_of<T: Pod, K: Kind>(array: &'a UsmVec<T, K, B>) -> Option<Self> {
        if size_of::<T>() % size_of::<U>() != 0 || align_of::<T>() < align_of::<U>() {
            return None;
        }
        // The bytes of the elements are no more than a machine has.
        let len = array.len() * (size_of::<T>() / size_of::<U>());
        Some(Self { allocation: array.allocation(), len, word: PhantomData })
    }

    pub(crate) const fn len(self) -> usize {
        self.len
    }
}

impl<'a, U: Pod, B: Backend> WordsMut<'a, U, B> {
    pub(crate) fn of<T: Pod, K: Kind>(array: &'a mut UsmVec<T, K, B>) -> Self {
        Self { words: Words::of(array), array: PhantomData }
    }

    /// As [`Words::parts_of`].
    pub(crate) fn parts_of<T: Pod, K: Kind>(array: &'a mut UsmVec<T, K, B>) -> Option<Self> {
        Some(Self { words: Words::parts_of(array)?, array: PhantomData })
    }
}

impl<'a, B: Backend> Words<'a, u8, B> {
    pub(crate) fn bytes_of<T: Pod, K: Kind>(array: &'a UsmVec<T, K, B>) -> Self {
        Self { allocation: array.allocation(), len: array.len() * size_of::<T>(), word: PhantomData }
    }
}

impl<'a, B: Backend> WordsMut<'a, u8, B> {
    pub(crate) fn bytes_of<T: Pod, K: Kind>(array: &'a mut UsmVec<T, K, B>) -> Self {
        Self { words: Words::bytes_of(array), array: PhantomData }
    }
}

impl<U, B: Backend> Clone for Words<'_, U, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U, B: Backend> Copy for Words<'_, U, B> {}

// SAFETY: a constructor took an array of as many initialised numbers of this size, aligned, whose
// borrow lasts as long as `self`; all bits are a number, and the usage is the array's.
unsafe impl<U: Pod + Send + Sync, B: Backend> Bind<Read<U>, B> for Words<'_, U, B> {
    fn raw(&mut self) -> RawSlice<U> {
        RawSlice::new(self.allocation.as_ptr().cast(), self.len)
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.allocation, Access::Read))
    }
}

// SAFETY: as above; the borrow was exclusive, and all bits are an element, which is `Pod`.
unsafe impl<U: Pod + Send + Sync, B: Backend> Bind<Write<U>, B> for WordsMut<'_, U, B> {
    fn raw(&mut self) -> RawSlice<U> {
        RawSlice::new(self.words.allocation.as_ptr().cast(), self.words.len)
    }

    fn usage(&self) -> Option<(&Allocation<B>, Access)> {
        Some((self.words.allocation, Access::Write))
    }
}
