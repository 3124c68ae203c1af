//! Copies and fills of typed arrays.

use crate::Element;

use super::UsmVec;
use crate::backend::Backend;
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::kind::Kind;
use crate::queue::Queue;

impl<B: Backend> Queue<B> {
    /// Copies all elements of `src` to `dst`, between any two kinds. Both arrays remember the copy,
    /// so either may be dropped before it is complete.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and every error of [`submit`](Self::submit).
    pub fn copy<T: Element, K1: Kind, K2: Kind>(
        &self,
        dst: &mut UsmVec<T, K1, B>,
        src: &UsmVec<T, K2, B>,
    ) -> Result<Event<B>> {
        same_length(dst.len, src.len)?;
        self.copy_bytes(&mut dst.allocation, 0, &src.allocation, 0, src.bytes())
    }

    /// Sets every element to `value`; its width must be 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::BadPattern`], and every error of [`submit`](Self::submit).
    pub fn fill<T: Element, K: Kind>(&self, array: &mut UsmVec<T, K, B>, value: T) -> Result<Event<B>> {
        let bytes = array.bytes();
        self.fill_bytes(&mut array.allocation, 0, bytes, bytemuck::bytes_of(&value))
    }

    /// Copies `values` into `array`, whatever its kind. Returns once `values` have been read: the
    /// caller may change them at once, and the event is the rest of the copy.
    ///
    /// To a GPU, large copies go through pinned blocks of the context, which several threads fill
    /// while the driver copies ([`Stats::ring`](crate::Stats::ring)). Others are copied within the
    /// process first. Memory that the host may access is written by the host, which waits for all
    /// work on it.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and those of allocation, wait and copy.
    /// [`Error::partial`](crate::Error::partial) says what a copy in parts had done.
    pub fn copy_from_slice<T: Element, K: Kind>(
        &self,
        array: &mut UsmVec<T, K, B>,
        values: &[T],
    ) -> Result<Event<B>> {
        same_length(array.len, values.len())?;
        match self.send(&mut array.allocation, bytemuck::cast_slice(values))? {
            Some(event) => Ok(event),
            None => self.barrier(&[]),
        }
    }

    /// As [`copy_from_slice`](Self::copy_from_slice), for callers that need no event.
    ///
    /// # Errors
    /// As for that function.
    pub fn write_from_slice<T: Element, K: Kind>(
        &self,
        array: &mut UsmVec<T, K, B>,
        values: &[T],
    ) -> Result<()> {
        same_length(array.len, values.len())?;
        self.send(&mut array.allocation, bytemuck::cast_slice(values)).map(drop)
    }

    /// Copies `array` into `values`, whatever its kind, and waits for it.
    ///
    /// # Errors
    /// As [`copy_from_slice`](Self::copy_from_slice). After one of the copy itself some elements
    /// may have been copied.
    pub fn copy_to_slice<T: Element, K: Kind>(
        &self,
        values: &mut [T],
        array: &UsmVec<T, K, B>,
    ) -> Result<()> {
        same_length(values.len(), array.len)?;
        // SAFETY: as many live bytes, which are borrowed exclusively; any bits are a value.
        unsafe { self.receive(values.as_mut_ptr().cast(), &array.allocation, array.bytes()) }
    }

    /// The same as [`copy_to_slice`](Self::copy_to_slice).
    ///
    /// # Errors
    /// As for that function.
    pub fn read_to_slice<T: Element, K: Kind>(
        &self,
        values: &mut [T],
        array: &UsmVec<T, K, B>,
    ) -> Result<()> {
        self.copy_to_slice(values, array)
    }

    /// Copies `array` into `values` in place of what was there, and waits for it. The vector's
    /// memory is used again, and new memory is written once. After an error it is empty.
    ///
    /// # Errors
    /// As [`copy_to_slice`](Self::copy_to_slice); [`ErrorKind::OutOfMemory`] for the vector's.
    #[cfg(feature = "alloc")]
    pub fn read_into<T: Element, K: Kind>(
        &self,
        values: &mut alloc::vec::Vec<T>,
        array: &UsmVec<T, K, B>,
    ) -> Result<()> {
        values.clear();
        let (memory_type, requested) = (crate::MemoryType::UsmHost, array.bytes() as u64);
        let reserved = values.try_reserve_exact(array.len);
        reserved.map_err(|_| ErrorKind::OutOfMemory { memory_type, requested })?;
        // SAFETY: as many live bytes, which are borrowed exclusively.
        unsafe { self.receive(values.as_mut_ptr().cast(), &array.allocation, array.bytes()) }?;
        // SAFETY: the elements have been written, and any bits are a value.
        unsafe { values.set_len(array.len) };
        Ok(())
    }
}

pub(super) fn same_length(expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(ErrorKind::LengthMismatch { expected, found }.into()) }
}
