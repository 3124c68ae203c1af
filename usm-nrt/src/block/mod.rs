//! Blocks of the built-in allocator: Rust's global allocator behind a `malloc`-shaped door.
//!
//! ```text
//! base                 block (what callers hold)      data
//! | padding | Prefix 16 | head bytes (0 or MemInfo 48) | size bytes
//! ```
//! The prefix remembers the layout, so that `free` needs no size. With a MemInfo in front of it, data
//! starts 64 bytes after the base. Small blocks are of a class (`class.rs`) and kept for their next owner.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

mod class;
mod installed;
mod raw;
#[cfg(feature = "std")]
mod slab;

#[cfg(feature = "std")]
pub(crate) use class::free_kept;
pub(crate) use class::{allocate_counted, class_for, keep_counted};
use raw::{alloc, dealloc, realloc};
#[cfg(feature = "std")]
pub(crate) use slab::{begin_generation, counts as kept_counts, give_back, prepare_for_forks};
use usm_core::AllocKind;

use crate::allocator;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::local;
use crate::meminfo::MemInfo;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::stats::{Event, count};
use crate::system::{self, Switches};
use crate::track;

/// Alignment of every block, in bytes; what C code expects of `malloc`.
pub(crate) const MIN_ALIGN: usize = 16;
/// Largest alignment, in bytes, that padding makes; the system allocator makes larger ones.
pub(crate) const NEAR_ALIGN: usize = 64;
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

    /// A block of a slab: `lead` bytes from there, `size` bytes up to its end.
    #[cfg(feature = "std")]
    const fn slabbed(lead: usize, size: usize, class: u8, allocator: u8, generation: u32) -> Self {
        let place = lead as u64 | (generation as u64) << Self::SLAB_LEAD_BITS;
        Self { total: lead + size, packed: place | (class as u64) << 48 | (allocator as u64) << 56 }
    }

    /// Of the 40 bits that say where another block begins.
    const SLAB_LEAD_BITS: u32 = 20;
    #[cfg(feature = "std")]
    const MAX_GENERATION: u32 = (1 << 20) - 1;

    /// Bytes from the slab to a block of it.
    const fn slab_lead(self) -> usize {
        (self.packed & ((1 << Self::SLAB_LEAD_BITS) - 1)) as usize
    }

    /// The installation that a block of a slab is of.
    #[cfg(feature = "std")]
    const fn generation(self) -> u32 {
        (self.packed >> Self::SLAB_LEAD_BITS) as u32 & Self::MAX_GENERATION
    }

    /// Whether the block is one of a slab.
    const fn is_slabbed(self) -> bool {
        cfg!(feature = "std") && self.allocator() != 0 && self.class() != 0
    }

    /// What all blocks have that are aligned to 16 and neither kept nor from elsewhere.
    const USUAL: u64 = Self::new(0, PREFIX, MIN_ALIGN, 0).packed;

    /// Whether the block may be kept for its next owner: a class, and no installed allocator.
    #[inline]
    const fn is_of_class(self) -> bool {
        (self.packed >> 48).wrapping_sub(1) < 0xFF
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

    /// Bytes from the block to its end.
    const fn room(self) -> usize {
        self.total - if self.is_slabbed() { self.slab_lead() } else { self.lead() }
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
    let Ok(block) = allocate_plain(size) else { return ptr::null_mut() };
    count([Event::Alloc]);
    block.as_ptr().cast()
}

unsafe extern "C" fn builtin_realloc(block: *mut c_void, size: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: the caller passes null or a block of this allocator (contract of `realloc`).
    let Ok(new) = (unsafe { reallocate_plain(block.cast(), size) }) else { return ptr::null_mut() };
    if block.is_null() {
        count([Event::Alloc]);
    }
    new.as_ptr().cast()
}

unsafe extern "C" fn builtin_free(block: *mut c_void, _: *mut c_void) {
    if let Some(block) = NonNull::new(block.cast::<u8>()) {
        // SAFETY: a live block, as the caller promises.
        if unsafe { has_head(block) } {
            // This runtime frees its blocks without a detour, so that is another one which destroyed a header.
            track::left(block.cast());
        } else {
            count([Event::Free]);
            track::freed(block);
        }
        // SAFETY: the caller passes a block of this allocator, once (contract of `free`).
        unsafe { free(block) }
    }
}

/// Where a header that lies at the begin of a block names its allocator.
const NAMED_AT: usize = core::mem::offset_of!(MemInfo, external_allocator);

/// Whether a header lies in a block that somebody frees by the allocator that it names: only then it is [`BUILTIN`]'s address that is
/// found there. A bit in the prefix would not do, because blocks that threads keep serve with and without a header.
///
/// # Safety
/// `block` is a live block of this module.
unsafe fn has_head(block: NonNull<u8>) -> bool {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() < size_of::<MemInfo>() {
        return false;
    }
    // SAFETY: inside the block, and written: by a header, or by `forget_head`.
    let named = unsafe { block.add(NAMED_AT).cast::<*const ExternalAllocator>().read() };
    ptr::eq(named, &raw const BUILTIN)
}

/// Whoever had a fresh block before may have had a header in it.
///
/// # Safety
/// `block` is a live block of this module, of whose bytes from `NAMED_AT` on nobody has written any.
unsafe fn forget_head(block: NonNull<u8>) {
    // SAFETY: as the caller promises.
    if unsafe { prefix_of(block) }.room() >= size_of::<MemInfo>() {
        // SAFETY: inside the block.
        unsafe { block.add(NAMED_AT).cast::<*const ExternalAllocator>().write(ptr::null()) };
    }
}

/// A block for somebody outside, without a head.
pub(crate) fn allocate_plain(size: usize) -> Result<NonNull<u8>, Error> {
    let block = allocate(0, size, MIN_ALIGN)?;
    // SAFETY: just made.
    unsafe { forget_head(block) };
    Ok(block)
}

/// [`reallocate`] of such a block.
///
/// # Safety
/// As there.
pub(crate) unsafe fn reallocate_plain(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(old) = NonNull::new(block) else { return allocate_plain(size) };
    #[cfg(feature = "debug")]
    misuse::check_block(old, "reallocate");
    // SAFETY: a live block.
    let was_small = unsafe { prefix_of(old) }.room() < size_of::<MemInfo>();
    track::freed(old);
    // SAFETY: same contract.
    let new = unsafe { reallocate(block, size) }?;
    if was_small {
        // SAFETY: what lies there is new.
        unsafe { forget_head(new) };
    }
    Ok(new)
}

/// Largest size, in bytes, that [`allocate_near`] may be asked for: prefix, head and padding always fit.
pub(crate) const MAX_NEAR_SIZE: usize = isize::MAX as usize - 1024;

/// A block with `head` bytes in front of `size` bytes of data; the data is aligned to `align`, the block
/// to 16 bytes no less: `block + head` is the data. `head` is a small multiple of 16.
pub(crate) fn allocate(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    let block = allocate_any(head, size, align)?;
    #[cfg(feature = "debug")]
    misuse::born(block);
    Ok(block)
}

fn allocate_any(head: usize, size: usize, align: usize) -> Result<NonNull<u8>, Error> {
    if !align.is_power_of_two() {
        return Err(Error::InvalidAlignment { align });
    }
    if align > MAX_ALIGN {
        return Err(Error::SizeOverflow { size, align });
    }
    let align = align.max(MIN_ALIGN);
    let switches = system::switches();
    if switches.allocator() != 0 {
        let made = installed::allocate_small_or_large(head, size, align, switches);
        if made.is_err() && system::switches().allocator() != switches.allocator() {
            // Given up at this moment: what comes now comes from the next one.
            return allocate_any(head, size, align);
        }
        return made;
    }
    allocate_own(head, size, align, switches)
}

/// [`allocate`] of what does not come from an installed allocator; `align` is a power of two from `MIN_ALIGN` to `MAX_ALIGN`.
fn allocate_own(head: usize, size: usize, align: usize, switches: Switches) -> Result<NonNull<u8>, Error> {
    if align > NEAR_ALIGN {
        return allocate_far(head, size, align);
    }
    if size > MAX_NEAR_SIZE {
        return Err(Error::SizeOverflow { size, align });
    }
    let class = if switches.is_cached() { class::class_for(head, size, align) } else { None };
    let block = match class.zip(class.and_then(|_| local::keeper())) {
        Some((class, keeper)) => class::allocate(class, keeper),
        None => allocate_near(head, size, align),
    };
    block.ok_or(Error::OutOfMemory { size })
}

/// [`allocate`] from the global allocator for alignments of 16 to 64 and sizes up to [`MAX_NEAR_SIZE`]; `None` when it
/// has no memory.
#[inline(always)]
pub(crate) fn allocate_near(head: usize, size: usize, align: usize) -> Option<NonNull<u8>> {
    debug_assert!((MIN_ALIGN..=NEAR_ALIGN).contains(&align) && size <= MAX_NEAR_SIZE);
    let data = data_offset(head, align);
    // Above 16 bytes the system allocator takes a slow path (100 ns instead of 8); up to a cache line, padding is cheaper.
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
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>) {
    // SAFETY: same contract.
    unsafe { free_with(block, system::switches()) }
}

/// [`free`] by somebody who has looked at the switches.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn free_with(block: NonNull<u8>, switches: Switches) {
    #[cfg(feature = "debug")]
    misuse::died(block, "free");
    // SAFETY: the block is live.
    let prefix = unsafe { prefix_of(block) };
    if prefix.is_of_class() {
        // SAFETY: a block of a class, which the caller gives up.
        return unsafe { class::free(block, prefix, switches) };
    }
    if prefix.packed == Prefix::USUAL {
        // A guess of the processor instead of a sum with what was just loaded: freeing need not wait for it.
        // SAFETY: the distance that the usual prefix says.
        let base = unsafe { block.sub(PREFIX) };
        // SAFETY: the layout that the block was allocated with, valid then.
        return unsafe { release(base, Prefix { total: prefix.total, packed: Prefix::USUAL }) };
    }
    // SAFETY: same contract.
    unsafe { free_unusual(block, prefix, switches) }
}

/// [`free_with`] of a block with an alignment of its own, or from elsewhere. Behind a call, so that nobody else pays for its
/// registers.
///
/// # Safety
/// As for [`free`]; the prefix is the block's.
#[inline(never)]
unsafe fn free_unusual(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    #[cfg(feature = "std")]
    if prefix.is_slabbed() {
        // SAFETY: same contract.
        return unsafe { slab::free(block, prefix, switches) };
    }
    #[cfg(not(feature = "std"))]
    let _ = switches;
    // SAFETY: `lead` is the distance from the base.
    let base = unsafe { block.sub(prefix.lead()) };
    if prefix.allocator() != 0 {
        // SAFETY: the base of a block of that allocator.
        unsafe { installed::free(prefix.allocator(), base) }
    } else {
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

/// Resizes a head-less block of alignment 16, or allocates when `block` is null. On failure the old block
/// is untouched.
///
/// # Safety
/// `block` is null or came from `allocate(0, _, 16)`; after success it is gone.
pub(crate) unsafe fn reallocate(block: *mut u8, size: usize) -> Result<NonNull<u8>, Error> {
    let Some(block) = NonNull::new(block) else {
        return allocate(0, size, MIN_ALIGN);
    };
    #[cfg(feature = "debug")]
    misuse::check_block(block, "reallocate");
    // SAFETY: same contract.
    let new = unsafe { reallocate_any(block, size) };
    #[cfg(feature = "debug")]
    misuse::born(*new.as_ref().unwrap_or(&block));
    new
}

/// # Safety
/// As [`reallocate`].
unsafe fn reallocate_any(block: NonNull<u8>, size: usize) -> Result<NonNull<u8>, Error> {
    // SAFETY: the block is live.
    let mut prefix = unsafe { prefix_of(block) };
    if prefix.allocator() != 0 {
        // SAFETY: same contract.
        return unsafe { installed::reallocate(block, prefix, size) };
    }
    let lead = prefix.lead();
    let overflow = Error::SizeOverflow { size, align: MIN_ALIGN };
    let total = lead.checked_add(size).ok_or(overflow)?;
    if prefix.class() != 0 {
        if total <= prefix.total {
            return Ok(block);
        }
        // Where it began, whatever is installed meanwhile.
        let new = allocate_own(0, size, MIN_ALIGN, system::switches())?;
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
    // Before it: afterwards the address may be somebody's. Whoever calls this knows what became of it.
    #[cfg(feature = "debug")]
    misuse::died(block, "reallocate");
    // SAFETY: same base and layout as at allocation; the new size is not zero and was just checked.
    let base =
        NonNull::new(unsafe { realloc(base.as_ptr(), old, total) }).ok_or(Error::OutOfMemory { size })?;
    prefix.total = total;
    // SAFETY: `total >= lead >= PREFIX`; the base keeps its alignment, so `lead` keeps its meaning.
    Ok(unsafe { place(base, prefix) })
}

/// The kind of the installed allocator that a block came from, if it did not come from the global one.
///
/// # Safety
/// `block` is a live block of this module.
pub(crate) unsafe fn kind_of(block: NonNull<u8>) -> Option<AllocKind> {
    // SAFETY: as the caller promises.
    allocator::kind_of(unsafe { prefix_of(block) }.allocator())
}
