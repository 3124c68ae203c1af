//! Allocators of the embedding program.

use core::ffi::c_void;

/// `malloc` of an external allocator: `size` bytes, or null. Follows C99, also for size 0.
pub type MallocFn = unsafe extern "C" fn(size: usize, opaque: *mut c_void) -> *mut c_void;
/// `realloc` of an external allocator. Follows C99.
pub type ReallocFn =
    unsafe extern "C" fn(ptr: *mut c_void, new_size: usize, opaque: *mut c_void) -> *mut c_void;
/// `free` of an external allocator.
pub type FreeFn = unsafe extern "C" fn(ptr: *mut c_void, opaque: *mut c_void);

/// The source of a block's memory: the C struct `NRT_ExternalAllocator`, field for field.
///
/// A block stores the *address* of its allocator and frees through it. So an allocator must outlive
/// all of its blocks.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExternalAllocator {
    /// Allocates. Without it every request is refused.
    pub malloc: Option<MallocFn>,
    /// Resizes. Optional, and may refuse with null; the payload is then moved by `malloc` and
    /// `free`.
    pub realloc: Option<ReallocFn>,
    /// Frees. Without it every request is refused, because the block could never be freed.
    pub free: Option<FreeFn>,
    /// Argument of the three functions.
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

// SAFETY: plain data. Any thread may call the functions with `opaque`: every function that takes an
// allocator demands this of its caller.
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
