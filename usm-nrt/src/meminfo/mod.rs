//! The 48-byte block header, compatible with Numba's. This file has its fields; `make.rs` makes it;
//! `count.rs` counts and destroys it.

mod count;
mod make;
mod request;

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub use request::Request;
use usm_core::AllocKind;

use crate::block::{self, BUILTIN};
use crate::destructor::{self, Dtor, Owner, OwnerSlot};
use crate::external::ExternalAllocator;
use crate::refcount::RefCount;
use crate::source;

/// Header of a reference-counted block: the C struct `MemInfo`, field for field. Code that a
/// compiler inlined relies on it: the count is at offset 0, the data pointer at offset 24 on 64-bit
/// targets.
///
/// Data pointer and size change only in varsize blocks. They are atomics, so that a concurrent
/// reader sees an old or a new value and never a torn one.
#[derive(Debug)]
#[repr(C)]
pub struct MemInfo {
    refct: RefCount,
    dtor: Option<Dtor>,
    dtor_info: *mut c_void,
    data: AtomicPtr<c_void>,
    size: AtomicUsize,
    pub(crate) external_allocator: AtomicPtr<ExternalAllocator>,
}

/// Size of the header in bytes.
pub(crate) const HEADER: usize = size_of::<MemInfo>();
/// [`HEADER`] rounded up to the built-in allocator's alignment.
const HEADER_ROOM: usize = HEADER.next_multiple_of(block::MIN_ALIGN);

const _: () = {
    use core::mem::offset_of;
    let word = size_of::<usize>();
    assert!(size_of::<MemInfo>() == 6 * word);
    assert!(align_of::<MemInfo>() == word);
    assert!(offset_of!(MemInfo, refct) == 0);
    assert!(offset_of!(MemInfo, dtor) == word);
    assert!(offset_of!(MemInfo, dtor_info) == 2 * word);
    assert!(offset_of!(MemInfo, data) == 3 * word);
    assert!(offset_of!(MemInfo, size) == 4 * word);
    assert!(offset_of!(MemInfo, external_allocator) == 5 * word);
};

// SAFETY: the count is atomic. Any thread may run the destructor (contract of every constructor).
// The header gives no access to the data.
unsafe impl Send for MemInfo {}
// SAFETY: as above.
unsafe impl Sync for MemInfo {}

impl MemInfo {
    /// Makes a header with one reference.
    ///
    /// # Safety
    /// Any thread may call `dtor` once with `data`, `size` and `dtor_info`. `external_allocator`
    /// will free the header's address, or is null: the header then lies in a block of the built-in
    /// allocator.
    pub unsafe fn from_parts(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        dtor_info: *mut c_void,
        external_allocator: *mut ExternalAllocator,
    ) -> Self {
        Self {
            refct: RefCount::one(),
            dtor,
            dtor_info,
            data: AtomicPtr::new(data),
            size: AtomicUsize::new(size),
            external_allocator: AtomicPtr::new(external_allocator),
        }
    }

    /// The current number of references.
    #[inline]
    pub fn refcount(&self) -> usize {
        self.refct.get()
    }

    /// The data pointer, or null.
    #[inline]
    pub fn data(&self) -> *mut c_void {
        self.data.load(Ordering::Relaxed)
    }

    /// Size of the data in bytes; 0 if foreign data came without a size.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// The allocator that will free this header. Null means the built-in allocator of the runtime
    /// that releases last.
    #[inline]
    pub fn external_allocator(&self) -> *mut ExternalAllocator {
        self.external_allocator.load(Ordering::Relaxed)
    }

    /// The kind of the data's allocator, if it is known.
    pub(crate) fn allocator_kind(&self) -> Option<AllocKind> {
        let allocator = self.external_allocator();
        if !ptr::eq(allocator, &raw const BUILTIN) {
            // SAFETY: null, or it outlives its blocks (contract of `Request::allocator` and
            // `from_parts`).
            return unsafe { allocator.as_ref() }.and_then(source::kind_of);
        }
        let header = NonNull::from(self).cast::<u8>();
        let data = NonNull::new(self.data().cast::<u8>())?;
        let block = if self.is_varsize() {
            data
        } else if header.addr().get() + HEADER_ROOM == data.addr().get() {
            header
        } else {
            return None;
        };
        // SAFETY: a payload of a varsize block, or a header in front of its data. Both lie in
        // blocks of the built-in allocator.
        unsafe { block::kind_of(block) }
    }

    /// The owner of the data, if the block has an owner record; a copy of it.
    pub fn owner(&self) -> Option<Owner> {
        self.owned().map(|slot| slot.owner)
    }

    /// The whole record, if the block has one.
    pub(crate) fn owned(&self) -> Option<OwnerSlot> {
        if destructor::is_same_dtor(self.dtor, destructor::drop_owner) {
            // SAFETY: blocks with this destructor keep such a record there until they are
            // destroyed.
            return Some(unsafe { self.dtor_info.cast::<OwnerSlot>().read() });
        }
        None
    }

    /// The info pointer of the destructor.
    #[inline]
    pub fn dtor_info(&self) -> *mut c_void {
        self.dtor_info
    }

    pub(crate) fn set_data(&self, data: *mut c_void, size: usize) {
        self.data.store(data, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
    }

    /// Whether the data is a variable-size payload of this runtime.
    pub fn is_varsize(&self) -> bool {
        destructor::is_same_dtor(self.dtor, crate::varsize::varsize_dtor)
    }
}
