//! Allocators that come from outside.

use core::ffi::c_void;

/// `malloc` of an external allocator: `size` bytes, or null. C99 rules, also for size 0.
pub type MallocFn = unsafe extern "C" fn(size: usize, opaque: *mut c_void) -> *mut c_void;
/// `realloc` of an external allocator. C99 rules.
pub type ReallocFn =
    unsafe extern "C" fn(ptr: *mut c_void, new_size: usize, opaque: *mut c_void) -> *mut c_void;
/// `free` of an external allocator.
pub type FreeFn = unsafe extern "C" fn(ptr: *mut c_void, opaque: *mut c_void);

/// Where a block's memory comes from: the C struct `NRT_ExternalAllocator`, field for field.
///
/// A block keeps the *address* of its allocator and frees through it, so an allocator must outlive
/// every block that came from it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalAllocator {
    /// Allocates; a missing function refuses every request.
    pub malloc: Option<MallocFn>,
    /// Resizes; optional, and may refuse with null: then a payload is moved by `malloc` and `free`.
    pub realloc: Option<ReallocFn>,
    /// Frees; without it nothing is allocated either, because it could never be given back.
    pub free: Option<FreeFn>,
    /// Handed to the three functions.
    pub opaque: *mut c_void,
}

impl ExternalAllocator {
    /// Whether both have the same functions and the same `opaque`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let addresses = |allocator: &Self| {
            (
                allocator.malloc.map(|malloc| malloc as usize),
                allocator.realloc.map(|realloc| realloc as usize),
                allocator.free.map(|free| free as usize),
                allocator.opaque.addr(),
            )
        };
        addresses(self) == addresses(other)
    }
}

// SAFETY: the struct is plain data; the duty that the functions may be called from any thread with
// `opaque` is the caller's, stated at every function that takes an allocator.
unsafe impl Send for ExternalAllocator {}
// SAFETY: as above; nothing here is mutated through a shared reference.
unsafe impl Sync for ExternalAllocator {}

const _: () = {
    let word = size_of::<usize>();
    assert!(size_of::<ExternalAllocator>() == 4 * word);
    assert!(core::mem::offset_of!(ExternalAllocator, malloc) == 0);
    assert!(core::mem::offset_of!(ExternalAllocator, realloc) == word);
    assert!(core::mem::offset_of!(ExternalAllocator, free) == 2 * word);
    assert!(core::mem::offset_of!(ExternalAllocator, opaque) == 3 * word);
};
