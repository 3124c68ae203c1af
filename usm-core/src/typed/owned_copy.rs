//! Copies that own the program's end until they are complete.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;

use super::UsmVec;
use super::copy::same_length;
use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, Block};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::kind::Kind;
use crate::queue::Queue;
use crate::{AllocKind, Element};

/// A copy in flight with the vector that it reads or writes. [`wait`](Self::wait) gives the vector
/// back. Dropped or forgotten, it lives until the copy is complete.
#[must_use = "`wait` gives the vector back"]
pub struct OwnedCopy<T, B: Backend> {
    event: Event<B>,
    values: Values<T, B>,
}

enum Values<T, B: Backend> {
    /// The vector is the owner of the allocation's memory.
    InUse(Allocation<B>),
    /// Nothing uses a vector without bytes.
    Empty(Vec<T>),
}

impl<T, B: Backend> fmt::Debug for OwnedCopy<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedCopy").field("event", &self.event).finish_non_exhaustive()
    }
}

impl<T: Element + Send + Sync, B: Backend> OwnedCopy<T, B> {
    /// The event of the copy, for work that follows it.
    pub fn event(&self) -> &Event<B> {
        &self.event
    }

    /// Waits for the copy, and returns the vector.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) or the failure of the copy, with the copy:
    /// the device may still use the vector.
    pub fn wait(self) -> Result<Vec<T>, (Self, Error)> {
        let allocation = match self.values {
            Values::Empty(values) => return Ok(values),
            Values::InUse(allocation) => allocation,
        };
        let outcome = self.event.wait().and_then(|()| allocation.wait_for_uses(Access::Write));
        let failure =
            |allocation, error| (Self { event: self.event, values: Values::InUse(allocation) }, error);
        match outcome {
            Ok(()) => allocation.into_owner::<Vec<T>>().map_err(|allocation| {
                // The vector is put in where the copy is made, and taken out here only.
                let error = Error::from(crate::ErrorKind::Unsupported { operation: "a second owner" });
                failure(allocation, error)
            }),
            Err(error) => Err(failure(allocation, error)),
        }
    }
}

impl<B: Backend> Queue<B> {
    /// Copies a vector into `array` without waiting. The copy owns the vector, and gives it back
    /// once it is complete.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`](crate::ErrorKind::LengthMismatch) and every error of
    /// [`submit`](Self::submit), with the vector.
    pub fn copy_from_vec<T: Element + Send + Sync, K: Kind>(
        &self,
        array: &mut UsmVec<T, K, B>,
        values: Vec<T>,
    ) -> Result<OwnedCopy<T, B>, (Vec<T>, Error)> {
        let (len, bytes) = (array.len, array.bytes());
        self.copy_owned(len, bytes, values, |values| {
            self.copy_bytes(&mut array.allocation, 0, values, 0, bytes)
        })
    }

    /// Copies `array` into a vector of its length without waiting. The copy owns the vector, and
    /// gives it back once it is complete.
    ///
    /// # Errors
    /// As [`copy_from_vec`](Self::copy_from_vec).
    pub fn copy_to_vec<T: Element + Send + Sync, K: Kind>(
        &self,
        values: Vec<T>,
        array: &UsmVec<T, K, B>,
    ) -> Result<OwnedCopy<T, B>, (Vec<T>, Error)> {
        let bytes = array.bytes();
        self.copy_owned(array.len, bytes, values, |values| {
            self.copy_bytes(values, 0, &array.allocation, 0, bytes)
        })
    }

    fn copy_owned<T: Element + Send + Sync>(
        &self,
        len: usize,
        bytes: usize,
        mut values: Vec<T>,
        copy: impl FnOnce(&mut Allocation<B>) -> Result<Event<B>>,
    ) -> Result<OwnedCopy<T, B>, (Vec<T>, Error)> {
        if let Err(error) = same_length(len, values.len()) {
            return Err((values, error));
        }
        let pointer = match NonNull::new(values.as_mut_ptr().cast::<u8>()) {
            Some(pointer) if bytes > 0 => pointer,
            _ => {
                let event = match self.barrier(&[]) {
                    Ok(event) => event,
                    Err(error) => return Err((values, error)),
                };
                return Ok(OwnedCopy { event, values: Values::Empty(values) });
            }
        };
        let block = Block { pointer, size: bytes, alignment: align_of::<T>(), kind: AllocKind::Host };
        // SAFETY: the vector owns the bytes, which keep their place when it moves. They are an end
        // of one copy only, which every runtime takes for host memory.
        let mut memory = unsafe { Allocation::foreign(self.context().clone(), block, Box::new(values)) };
        match copy(&mut memory) {
            Ok(event) => Ok(OwnedCopy { event, values: Values::InUse(memory) }),
            // Nothing was submitted.
            Err(error) => Err((memory.into_owner::<Vec<T>>().unwrap_or_default(), error)),
        }
    }
}
