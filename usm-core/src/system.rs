//! System USM: memory of the program's own allocator that the device can access directly.
//!
//! SYCL's `usm_system_allocations`, OpenCL's shared system memory, CUDA's pageable memory access
//! (HMM, ATS). The memory follows the rule of USM host memory and so has that kind; a runtime's
//! pointer query does not know it.

use alloc::boxed::Box;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::Element;

use crate::access::{Access, AccessFlags};
use crate::allocation::Allocation;
use crate::backend::{Backend, Block};
use crate::error::{Error, ErrorKind, Result};
use crate::kind::Host;
use crate::typed::UsmVec;
use crate::{AllocKind, Context};

/// A box that other code writes through its address; no reference to it exists meanwhile.
struct SystemBox<T>(NonNull<[T]>);

// SAFETY: it owns its elements as the box does.
unsafe impl<T: Send> Send for SystemBox<T> {}
// SAFETY: a shared reference to it gives no access to the elements.
unsafe impl<T: Sync> Sync for SystemBox<T> {}

impl<T> SystemBox<T> {
    fn new(elements: Box<[T]>) -> Self {
        Self(NonNull::from(Box::leak(elements)))
    }

    fn into_box(self) -> Box<[T]> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `new` leaked this box, and only this value, which ends here, turns it back into a
        // box.
        unsafe { Box::from_raw(this.0.as_ptr()) }
    }
}

impl<T> Drop for SystemBox<T> {
    fn drop(&mut self) {
        // SAFETY: as in `into_box`, which does not drop the value.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T: Element + Send + Sync, B: Backend> UsmVec<T, Host, B> {
    /// Takes memory of the program's allocator as an array without copying it: copies, fills and
    /// kernels of the device use it in place. The ledger and the limits do not count it, and
    /// [`Context::query`] returns `Unknown`, because it is not the runtime's memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the device cannot access such memory concurrently with the
    /// host ([`Capabilities::system`]), [`ErrorKind::ZeroSize`] for no elements. The error has the
    /// elements.
    ///
    /// [`Capabilities::system`]: crate::Capabilities::system
    pub fn from_system(context: &Context<B>, elements: Box<[T]>) -> Result<Self, (Box<[T]>, Error)> {
        if !context.info().capabilities.system.contains(AccessFlags::ACCESS | AccessFlags::CONCURRENT) {
            let operation = "memory of the system's allocator on this device";
            return Err((elements, ErrorKind::Unsupported { operation }.into()));
        }
        let (len, size) = (elements.len(), size_of_val::<[T]>(&elements));
        if size == 0 {
            return Err((elements, ErrorKind::ZeroSize.into()));
        }
        let owner = SystemBox::new(elements);
        let block =
            Block { pointer: owner.0.cast(), size, alignment: align_of::<T>(), kind: AllocKind::Host };
        // SAFETY: the device can access the memory like host memory, the box keeps it alive, and no
        // other code has it.
        let allocation = unsafe { Allocation::foreign(context.clone(), block, Box::new(owner)) };
        // SAFETY: the box's elements are initialised, and `Pod` keeps them so whatever is written.
        unsafe { Self::from_allocation(allocation, len) }
            .map_err(|_| unreachable!("a box of `T` holds its elements, aligned"))
    }

    /// The memory that [`from_system`](Self::from_system) took, after every operation that uses it.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] at the context's wait limit, the failure of an operation that used
    /// it, [`ErrorKind::WrongKind`] if the memory is the runtime's or was taken with another
    /// element type. The error has the array.
    pub fn into_system(self) -> Result<Box<[T]>, (Self, Error)> {
        if let Err(error) = self.allocation().wait_for_uses(Access::Write) {
            return Err((self, error));
        }
        let len = self.len();
        match self.into_allocation().into_owner::<SystemBox<T>>() {
            Ok(owner) => Ok(owner.into_box()),
            Err(allocation) => {
                // SAFETY: it was an array of that length just before.
                let array = unsafe { Self::from_allocation(allocation, len) }
                    .unwrap_or_else(|_| unreachable!("the allocation held the array"));
                let kind = ErrorKind::WrongKind { expected: AllocKind::Unknown, found: AllocKind::Host };
                Err((array, kind.into()))
            }
        }
    }
}
