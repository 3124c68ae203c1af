//! Blocks of the built-in allocator: Rust's global allocator behind a `malloc`-shaped door.
//!
//! ```text
//! base                 block (what callers hold)      data
//! | padding | Prefix 16 | head bytes (0 or MemInfo 48) | size bytes
//! ```
//! The prefix remembers the layout, so that `free` needs no size. With a MemInfo in front of it, data
//! starts 64 bytes after the base: on a cache line of its own whenever the base is 64-byte aligned.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use raw::{alloc, dealloc, realloc};

use crate::allocator;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::local;
use crate::system;
use crate::track;

/// Where memory comes from: the global allocator, which the program that links this crate chooses. In the C library
/// nobody can choose another than the system's, so it is called without the doors in between.
#[cfg(not(all(usm_nrt_export, feature = "std")))]
mod raw {
    pub(super) use alloc::alloc::{alloc, dealloc, realloc};
}
#[cfg(all(usm_nrt_export, feature = "std"))]
mod raw {
    use core::alloc::{GlobalAlloc, Layout};
    use std::alloc::System;

    /// # Safety
    /// The layout is not empty.
    #[inline(always)]
    pub(super) unsafe fn alloc(layout: Layout) -> *mut u8 {
        // SAFETY: same contract.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// `base` came from [`alloc`] with this layout, and is freed once.
    #[inline(always)]
    pub(super) unsafe fn dealloc(base: *mut u8, layout: Layout) {
        // SAFETY: same contract.
        unsafe { System.dealloc(base, layout) }
    }

    /// # Safety
    /// As [`dealloc`]; `size` is not zero and fits with the alignment.
    pub(super) unsafe fn realloc(base: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: same contract.
        unsafe { System.realloc(base, layout, size) }
    }
}

/// Alignment of every block, in bytes; what C code expects of `malloc`.
pub(crate) const MIN_ALIGN: usize = 16;
/// Alignment of a cached block, in bytes: a cache line.
const CLASS_ALIGN: usize = 64;
/// Largest supported alignment, in bytes; `unsigned` in C holds no larger power of two.
const MAX_ALIGN: usize = 1 << 31;

/// What lies before every block. Two words, each written and read whole, so that a read right after the
/// write is served from the store buffer; blocks are aligned to 16, the type is not, so that it travels in registers.
#[repr(C)]
#[derive(Clone, Copy)]
struct Prefix {
    /// Bytes from base to end, as given to the global allocator.
    total: usize,
    /// See [`Prefix::new`].
    packed: u64,
}

impl Prefix {
    /// `lead`: bytes from base to the block, at most `MAX_ALIGN` and a little; `align`: the alignment given to the
    /// global allocator; `class`: the size class of the thread cache, 0 for none.
    #[inline]
    const fn new(total: usize, lead: usize, align: usize, class: u8) -> Self {
        Self { total, packed: lead as u64 | (align.trailing_zeros() as u64) << 40 | (class as u64) << 48 }
    }

    /// A block of an installed allocator.
    const fn installed(total: usize, lead: usize, allocator: u8) -> Self {
        Self { total, packed: lead as u64 | (allocator as u64) << 56 }
    }

    /// What all blocks have that are aligned to 16 and neither kept nor from elsewhere.
    const USUAL: u64 = Self::new(0, PREFIX, MIN_ALIGN, 0).packed;

    /// Whether the block goes straight back to the global allocator.
    #[inline]
    const fn is_plain(self) -> bool {
        self.packed >> 48 == 0
    }

    /// The number of the installed allocator, 0 for the global one.
    #[inline]
    const fn allocator(self) -> u8 {
        (self.packed >> 56) as u8
    }

    #[inline]
    const fn lead(self) -> usize {
        (self.packed & 0xFF_FFFF_FFFF) as usize
    }

    #[inline]
    const fn align(self) -> usize {
        1 << ((self.packed >> 40) & 0xFF)
    }

    #[inline]
    const fn class(self) -> u8 {
        (self.packed >> 48) as u8
    }
}

pub(crate) const PREFIX: usize = size_of::<Prefix>();
const _: () = assert!(PREFIX == MIN_ALIGN);

/// The built-in allocator in the shape of an external one. Every block of this runtime carries its
/// address, so that any other NRT (Numba's own included) frees the block through it.
pub static BUILTIN: ExternalAllocator = ExternalAllocator {
    malloc: Some(builtin_malloc),
    realloc: Some(builtin_realloc),
    free: Some(builtin_free),
    opaque: ptr::null_mut(),
};

unsafe extern "C" fn builtin_malloc(size: usize, _: *mut c_void) -> *mut c_void {
    allocate(0, size, MIN_ALIGN).map_or(ptr::null_mut(), |block| block.as_ptr().cast())
}

unsafe extern "C" fn builtin_realloc(block: *mut c_void, size: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: the caller passes null or a block of this allocator (contract of `realloc`).
    unsafe { reallocate(block.cast(), size) }.map_or(ptr::null_mut(), |block| block.as_ptr().cast())
}

unsafe extern "C" fn builtin_free(block: *mut c_void, _: *mut c_void) {
    if let Some(block) = NonNull::new(block.cast::<u8>()) {
        // This runtime frees its blocks without a detour, so that is another one which destroyed a header.
        track::left(block.cast());
        // SAFETY: the caller passes a block of this allocator, once (contract of `free`).
        unsafe { free(block) }
    }
}

/// Largest size, in bytes, that [`allocate_near`] and [`allocate_cached`] may be asked for: prefix, head and padding
/// always fit.
pub(crate) const MAX_NEAR_SIZE: usize = isize::MAX as usize - 1024;

/// A block with `head` bytes in front of `size` bytes of data; the data is aligned to `align`, the block
/// to 16 bytes no less: `block + head` is the data. `head` is a small multiple of 16.
pub(crate) fn allocate(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    if !align.is_power_of_two() {
        return Err(Error::InvalidAlignment { align });
    }
    if align > MAX_ALIGN {
        return Err(Error::SizeOverflow { size, align });
    }
    let align = align.max(MIN_ALIGN);
    let switches = system::switches();
    if switches.allocator() != 0 {
        return allocate_installed(switches.allocator(), head, size, align);
    }
    if align > CLASS_ALIGN {
        return allocate_far(head, size, align);
    }
    if size > MAX_NEAR_SIZE {
        return Err(Error::SizeOverflow { size, align });
    }
    let block = match class_for(head, size, align) {
        Some(class) if switches.is_cached() => {
            allocate_cached(head, size, align).or_else(|| allocate_class(class))
        }
        _ => allocate_near(head, size, align),
    };
    block.ok_or(Error::OutOfMemory { size })
}

/// [`allocate`] from the global allocator for alignments of 16 to 64 and sizes up to [`MAX_NEAR_SIZE`]; `None` when it
/// has no memory.
#[inline(always)]
pub(crate) fn allocate_near(head: usize, size: usize, align: usize) -> Option<NonNull<u8>> {
    debug_assert!((MIN_ALIGN..=CLASS_ALIGN).contains(&align) && size <= MAX_NEAR_SIZE);
    let data = data_offset(head, align);
    // Above 16 bytes the system allocator takes a slow path; up to a cache line, padding is cheaper.
    let total = data + size + (align - MIN_ALIGN);
    // SAFETY: a power of two, and at most `isize::MAX` because the size is no larger than MAX_NEAR_SIZE.
    let layout = unsafe { Layout::from_size_align_unchecked(total, MIN_ALIGN) };
    // SAFETY: the layout is not empty: it holds at least the prefix.
    let base = NonNull::new(unsafe { alloc(layout) })?;
    // The allocator's alignment is known, but not to the compiler.
    let shift = if align == MIN_ALIGN { 0 } else { base.addr().get().wrapping_neg() & (align - 1) };
    let lead = data - head + shift;
    // SAFETY: `lead >= PREFIX` and `lead + head + size <= total`, because the shift is at most the padding.
    Some(unsafe { place(base, Prefix::new(total, lead, MIN_ALIGN, 0)) })
}

/// [`allocate`] for alignments above 64.
fn allocate_far(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let overflow = Error::SizeOverflow { size, align };
    let data = data_offset(head, align);
    let total = data.checked_add(size).ok_or(overflow)?;
    let layout = Layout::from_size_align(total, align).map_err(|_| overflow)?;
    // SAFETY: the layout is not empty: it holds at least the prefix.
    let base = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::OutOfMemory { size })?;
    // SAFETY: `PREFIX <= data - head`, and the data ends with the block.
    Ok(unsafe { place(base, Prefix::new(total, data - head, align, 0)) })
}

/// Bytes from an aligned base to the data. At most MAX_ALIGN + 64: no overflow.
#[inline(always)]
const fn data_offset(head: usize, align: usize) -> usize {
    (PREFIX + head + align - 1) & !(align - 1)
}

/// The class that holds such a block. All blocks of a class start right behind the prefix, so that they have one
/// prefix for ever.
#[inline(always)]
fn class_for(head: usize, size: usize, align: usize) -> Option<u8> {
    let data = data_offset(head, align);
    if data - head == PREFIX { local::class_of(data + size) } else { None }
}

/// A block that this thread holds back; alignments and sizes as for [`allocate_near`].
#[inline(always)]
pub(crate) fn allocate_cached(head: usize, size: usize, align: usize) -> Option<NonNull<u8>> {
    let base = local::take(class_for(head, size, align)?)?;
    // SAFETY: behind the prefix that the block has had since it was made.
    Some(unsafe { base.add(PREFIX) })
}

/// A fresh block of a class; `None` when there is no memory.
#[cold]
fn allocate_class(class: u8) -> Option<NonNull<u8>> {
    let total = local::class_size(class);
    let layout = Layout::from_size_align(total, CLASS_ALIGN).ok()?;
    // SAFETY: a class is never empty.
    let base = NonNull::new(unsafe { alloc(layout) })?;
    // SAFETY: a class has room for more than the prefix; its base is aligned to a cache line.
    Some(unsafe { place(base, Prefix::new(total, PREFIX, CLASS_ALIGN, class)) })
}

/// Writes the prefix and returns the block behind it.
///
/// # Safety
/// `base` has `prefix.total` writable bytes and `PREFIX <= lead <= total`; `base + lead` is a multiple of 16.
#[inline]
unsafe fn place(base: NonNull<u8>, prefix: Prefix) -> NonNull<u8> {
    // SAFETY: inside the block, as the caller promises.
    let block = unsafe { base.add(prefix.lead()) };
    // SAFETY: the 16 bytes before the block belong to it and are aligned to 16.
    let slot = unsafe { block.sub(PREFIX) }.cast::<Prefix>();
    // SAFETY: writable, as the caller promises.
    unsafe { slot.write(prefix) };
    block
}

/// # Safety
/// `block` is a live block of this module.
#[inline(always)]
unsafe fn prefix_of(block: NonNull<u8>) -> Prefix {
    // SAFETY: the prefix lies before every block.
    let slot = unsafe { block.sub(PREFIX) }.cast::<Prefix>().as_ptr();
    // Word by word, as it was written: a wider read right after the writes would wait for both to reach the cache.
    // SAFETY: `place` wrote it.
    let (total, packed) = unsafe { ((*slot).total, (*slot).packed) };
    Prefix { total, packed }
}

/// Frees a block.
///
/// # Safety
/// `block` came from this module and is freed once.
#[inline(always)]
pub(crate) unsafe fn free(block: NonNull<u8>) {
    // SAFETY: the block is live.
    let prefix = unsafe { prefix_of(block) };
    if prefix.packed == Prefix::USUAL {
        // A guess of the processor instead of a sum with what was just loaded: freeing need not wait for it.
        // SAFETY: the distance that the usual prefix says.
        let base = unsafe { block.sub(PREFIX) };
        // SAFETY: the layout that the block was allocated with, valid then.
        return unsafe { release(base, Prefix { total: prefix.total, packed: Prefix::USUAL }) };
    }
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(prefix.lead()) };
    if !prefix.is_plain() {
        // SAFETY: base and prefix of a live block.
        return unsafe { free_special(base, prefix) };
    }
    // SAFETY: the layout that the block was allocated with, valid then.
    unsafe { release(base, prefix) }
}

/// [`free`] of a block that may be kept, or that came from elsewhere. Each case ends in a jump, so that none pays for the
/// registers of another.
///
/// # Safety
/// `base` and `prefix` are of a live block, freed once.
#[inline(never)]
unsafe fn free_special(base: NonNull<u8>, prefix: Prefix) {
    if prefix.allocator() == 0 && local::put(prefix.class(), base) {
        return;
    }
    // SAFETY: same contract.
    unsafe { free_rest(base, prefix) }
}

/// # Safety
/// As for [`free_special`].
#[cold]
#[inline(never)]
unsafe fn free_rest(base: NonNull<u8>, prefix: Prefix) {
    if prefix.allocator() != 0 {
        // SAFETY: the base of a block of that allocator.
        unsafe { free_installed(prefix.allocator(), base) }
    } else if !local::put_first(prefix.class(), base) {
        // SAFETY: the layout that the block was allocated with, valid then.
        unsafe { release(base, prefix) }
    }
}

/// Gives a base back to the global allocator.
///
/// # Safety
/// `base` was allocated with the size and alignment of `prefix`.
#[inline(always)]
unsafe fn release(base: NonNull<u8>, prefix: Prefix) {
    // SAFETY: size and alignment made a valid layout at allocation.
    let layout = unsafe { Layout::from_size_align_unchecked(prefix.total, prefix.align()) };
    // SAFETY: same layout as at allocation.
    unsafe { dealloc(base.as_ptr(), layout) }
}

/// Gives an unused base of a class back to the global allocator.
///
/// # Safety
/// `base` is of class `class` and owned by the caller.
#[cfg(feature = "std")]
pub(crate) unsafe fn release_class(class: u8, base: NonNull<u8>) {
    // SAFETY: the size and alignment that `allocate_class` uses.
    let layout = unsafe { Layout::from_size_align_unchecked(local::class_size(class), CLASS_ALIGN) };
    // SAFETY: same layout as at allocation.
    unsafe { dealloc(base.as_ptr(), layout) }
}

/// Resizes a head-less block of alignment 16, or allocates when `block` is null. On failure the old block
/// is untouched.
///
/// # Safety
/// `block` is null or came from `allocate(0, _, 16)`; after success it is gone.
pub(crate) unsafe fn reallocate(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(block) = NonNull::new(block) else {
        return allocate(0, size, MIN_ALIGN);
    };
    // SAFETY: the block is live.
    let mut prefix = unsafe { prefix_of(block) };
    let lead = prefix.lead();
    let overflow = Error::SizeOverflow { size, align: MIN_ALIGN };
    let total = lead.checked_add(size).ok_or(overflow)?;
    if prefix.allocator() != 0 {
        // SAFETY: same contract.
        return unsafe { reallocate_installed(block, prefix, size) };
    }
    if prefix.class() != 0 {
        if total <= prefix.total {
            return Ok(block);
        }
        let new = allocate(0, size, MIN_ALIGN)?;
        // SAFETY: both blocks are live and distinct; the old one has `total - lead` bytes, the new one more.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), prefix.total - lead) };
        // SAFETY: ours, and the caller gives it up.
        unsafe { free(block) };
        return Ok(new);
    }
    let align = prefix.align();
    Layout::from_size_align(total, align).map_err(|_| overflow)?;
    // SAFETY: valid at allocation.
    let old = unsafe { Layout::from_size_align_unchecked(prefix.total, align) };
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(lead) };
    // SAFETY: same base and layout as at allocation; the new size is not zero and was just checked.
    let base =
        NonNull::new(unsafe { realloc(base.as_ptr(), old, total) }).ok_or(Error::OutOfMemory { size })?;
    prefix.total = total;
    // SAFETY: `total >= lead >= PREFIX`; the base keeps its alignment, so `lead` keeps its meaning.
    Ok(unsafe { place(base, prefix) })
}

/// [`allocate`] from an installed allocator, whose blocks may be aligned to anything.
#[cold]
#[inline(never)]
fn allocate_installed(allocator: u8, head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let total = installed_total(head, size, align)?;
    let functions = allocator::installed(allocator).ok_or(Error::IncompleteAllocator)?;
    let malloc = functions.malloc.ok_or(Error::IncompleteAllocator)?;
    // SAFETY: the allocator's own function with its own opaque pointer.
    let base = unsafe { malloc(total, functions.opaque) };
    let base = NonNull::new(base.cast::<u8>()).ok_or(Error::OutOfMemory { size })?;
    let prefix = Prefix::installed(total, installed_lead(base, head, align), allocator);
    // SAFETY: `total` has room for the prefix, the head, the data and the padding up to its alignment.
    Ok(unsafe { place(base, prefix) })
}

/// Bytes that hold prefix, head and data however the allocator aligns them.
fn installed_total(head: usize, size: usize, align: usize) -> Result<usize, Error> {
    let overflow = Error::SizeOverflow { size, align };
    let total = size.checked_add(PREFIX + head + align - 1).ok_or(overflow)?;
    if total > isize::MAX as usize { Err(overflow) } else { Ok(total) }
}

/// Bytes from the base to the block, so that the data behind the head is aligned.
fn installed_lead(base: NonNull<u8>, head: usize, align: usize) -> usize {
    let unaligned = base.addr().get() + PREFIX + head;
    PREFIX + (unaligned.wrapping_neg() & (align - 1))
}

/// # Safety
/// `base` came from that allocator and is freed once.
unsafe fn free_installed(allocator: u8, base: NonNull<u8>) {
    let Some(functions) = allocator::installed(allocator) else { return };
    if let Some(free) = functions.free {
        // SAFETY: the allocator's own function, with its block and its opaque pointer.
        unsafe { free(base.as_ptr().cast(), functions.opaque) }
    }
}

/// [`reallocate`] of a block of an installed allocator; it stays with that one.
///
/// # Safety
/// As there; `prefix` is the block's.
unsafe fn reallocate_installed(
    block: NonNull<u8>,
    prefix: Prefix,
    size: usize,
) -> Result<NonNull<u8>, Error> {
    let (allocator, lead) = (prefix.allocator(), prefix.lead());
    let total = installed_total(0, size, MIN_ALIGN)?;
    let kept = (prefix.total - lead).min(size);
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(lead) };
    let functions = allocator::installed(allocator).ok_or(Error::IncompleteAllocator)?;
    let resized = functions.realloc.and_then(|realloc| {
        // SAFETY: the allocator's own function, with its block and its opaque pointer.
        NonNull::new(unsafe { realloc(base.as_ptr().cast(), total, functions.opaque) }.cast::<u8>())
    });
    let Some(base) = resized else {
        // No function for it, or one that refuses: by hand.
        let new = allocate_installed(allocator, 0, size, MIN_ALIGN)?;
        // SAFETY: both blocks are live and distinct, and hold `kept` bytes.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), kept) };
        // SAFETY: ours, and the caller gives it up.
        unsafe { free(block) };
        return Ok(new);
    };
    let moved = installed_lead(base, 0, MIN_ALIGN);
    if moved != lead {
        // SAFETY: the contents came along to their old distance from the base.
        let from = unsafe { base.add(lead) };
        // SAFETY: inside the block: `moved < PREFIX + MIN_ALIGN`.
        let to = unsafe { base.add(moved) };
        // SAFETY: `kept` bytes lie inside the block at both distances.
        unsafe { ptr::copy(from.as_ptr(), to.as_ptr(), kept) };
    }
    // SAFETY: `total` has room for the prefix, the data and the padding up to its alignment.
    Ok(unsafe { place(base, Prefix::installed(total, moved, allocator)) })
}

/// The installed allocator that a block came from, if it did not come from the global one.
///
/// # Safety
/// `block` is a live block of this module.
pub(crate) unsafe fn allocator_of(block: NonNull<u8>) -> Option<&'static ExternalAllocator> {
    // SAFETY: as the caller promises.
    allocator::installed(unsafe { prefix_of(block) }.allocator())
}
