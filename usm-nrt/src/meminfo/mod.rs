//! The 48-byte block header, compatible with Numba's: its fields here, how it is made in `make.rs`,
//! its life and end in `count.rs`.

mod count;
mod make;
mod request;

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub use request::Request;
use usm_core::AllocKind;

use crate::block::{self, BUILTIN};
use crate::destructor::{self, Dtor, Owned, Owner};
use crate::external::ExternalAllocator;
use crate::refcount::RefCount;
use crate::source;

/// Header of a reference-counted block: the C struct `MemInfo`, field for field, also for code that
/// a compiler inlined (count at offset 0, data pointer at offset 24 on 64-bit targets).
///
/// Data pointer and size change only in varsize blocks; they are atomics so that a concurrent
/// reader sees an old or a new value, never a torn one.
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

/// Bytes of the header.
pub(crate) const HEADER: usize = size_of::<MemInfo>();
/// The same rounded up to the built-in allocator's alignment.
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

// SAFETY: the count is atomic, the destructor may run on any thread (contract of every
// constructor), and the header itself gives no access to the data.
unsafe impl Send for MemInfo {}
// SAFETY: as above.
unsafe impl Sync for MemInfo {}

impl MemInfo {
    /// A header value with one reference.
    ///
    /// # Safety
    /// `dtor` may be called once, on any thread, with `data`, `size` and `dtor_info`.
    /// `external_allocator` is null (the header lies in a block of the built-in allocator) or will
    /// free the header's address.
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

    /// References at this moment.
    #[inline]
    pub fn refcount(&self) -> usize {
        self.refct.get()
    }

    /// The data pointer, or null.
    #[inline]
    pub fn data(&self) -> *mut c_void {
        self.data.load(Ordering::Relaxed)
    }

    /// Bytes at the data pointer; 0 when the runtime did not allocate them and was not told.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// The allocator that will free this header; null means the built-in one of whoever releases
    /// last.
    #[inline]
    pub fn external_allocator(&self) -> *mut ExternalAllocator {
        self.external_allocator.load(Ordering::Relaxed)
    }

    /// The kind that the allocator of the data is known to give.
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
        // SAFETY: a payload of a varsize block, or a header in front of its data: both of the
        // built-in allocator.
        unsafe { block::kind_of(block) }
    }

    /// Who keeps the data alive, when that is written down; a copy of the record.
    pub fn owner(&self) -> Option<Owner> {
        self.owned().map(|owned| owned.owner)
    }

    /// The whole record, when there is one.
    pub(crate) fn owned(&self) -> Option<Owned> {
        if destructor::is(self.dtor, destructor::drop_owner) {
            // SAFETY: blocks with this destructor keep such a record there until they are
            // destroyed.
            return Some(unsafe { self.dtor_info.cast::<Owned>().read() });
        }
        None
    }

    /// The info pointer given with the destructor.
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
        destructor::is(self.dtor, crate::varsize::varsize_dtor)
    }
}
