//! Copies and fills of typed arrays.

use crate::Element;

use super::UsmVec;
use crate::access::Access;
use crate::backend::Backend;
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::kind::{AnyKind, Kind};
use crate::queue::Queue;

impl<B: Backend> Queue<B> {
    /// Copies all elements of `src` to `dst`, between any two kinds.
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

    /// Copies `values` into `array`, whatever its kind. The caller may change `values` as soon as
    /// this returns: copies to device memory go through host memory of the context (shared memory
    /// on a device without host memory), so a late copy never reads the caller's slice.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and those of allocation, wait and copy.
    /// [`ErrorKind::Unsupported`] for device memory on a device with neither host nor shared
    /// memory.
    pub fn write_from_slice<T: Element, K: Kind>(
        &self,
        array: &mut UsmVec<T, K, B>,
        values: &[T],
    ) -> Result<()> {
        same_length(array.len, values.len())?;
        if array.kind().is_host_accessible() {
            let to = array.as_mut_ptr();
            let _guard = array.allocation.host_guard(Access::Write)?;
            // This makes no slice of the array, whose elements may be uninitialised. SAFETY: both
            // sides have the same length. The block is live, host accessible and exclusively
            // borrowed, so `values` lies elsewhere. The guard waited for all uses and keeps the
            // device away where it must.
            unsafe { to.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
            return Ok(());
        }
        if values.is_empty() {
            return Ok(());
        }
        let (context, kind) = (self.context(), self.context().staging()?);
        let staging = UsmVec::<T, AnyKind, B>::from_slice_any(self, context, kind, values)?;
        // The array remembers the copy; the staging memory is freed after it.
        let _ = self.copy(array, &staging)?;
        Ok(())
    }

    /// Copies `array` into `values`, whatever its kind, and waits for it.
    ///
    /// # Errors
    /// As [`write_from_slice`](Self::write_from_slice).
    pub fn read_to_slice<T: Element, K: Kind>(
        &self,
        values: &mut [T],
        array: &UsmVec<T, K, B>,
    ) -> Result<()> {
        same_length(values.len(), array.len)?;
        if array.kind().is_host_accessible() {
            values.copy_from_slice(&array.host_slice()?);
            return Ok(());
        }
        if values.is_empty() {
            return Ok(());
        }
        #[cfg(feature = "alloc")]
        let unreported = array.allocation.unreported(Access::Read);
        let kind = self.context().staging()?;
        let staging = UsmVec::<T, AnyKind, B>::allocate(self.context(), kind, array.len)?;
        let (staging, _) = staging.copy_from(self, array)?;
        values.copy_from_slice(&staging.host_slice()?);
        #[cfg(feature = "alloc")]
        crate::index_record::report(self.context(), &unreported, self.context().shared().wait_limit())?;
        Ok(())
    }
}

fn same_length(expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(ErrorKind::LengthMismatch { expected, found }.into()) }
}
