//! The prefix of every block, which says how to free it.

use core::ptr::NonNull;

use super::MIN_ALIGN;

/// The prefix of a block: two words. Each is written and read whole, so that a read right after the
/// write is served from the store buffer. Blocks are aligned to 16 bytes; this type is not, so that
/// it travels in registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    /// Bytes from base to end, as requested from the global allocator.
    pub(super) total: usize,
    /// See [`Prefix::new`].
    pub(super) word: u64,
}

impl Prefix {
    /// `lead`: bytes from the base to the block, at most `MAX_ALIGN` and a little. `align`: the
    /// alignment requested from the global allocator. `class`: the size class of the thread cache,
    /// 0 for none.
    #[inline]
    pub(super) const fn new(total: usize, lead: usize, align: usize, class: u8) -> Self {
        Self { total, word: lead as u64 | (align.trailing_zeros() as u64) << 40 | (class as u64) << 48 }
    }

    /// The prefix of a block of an installed allocator.
    pub(super) const fn installed(total: usize, lead: usize, allocator: u8) -> Self {
        Self { total, word: lead as u64 | (allocator as u64) << 56 }
    }

    /// The prefix of a block in a slab: `lead` bytes behind the slab's start, `size` bytes up to
    /// the block's end.
    #[cfg(feature = "std")]
    pub(super) const fn slabbed(lead: usize, size: usize, class: u8, allocator: u8, generation: u32) -> Self {
        let place = lead as u64 | (generation as u64) << Self::SLAB_LEAD_BITS;
        Self { total: lead + size, word: place | (class as u64) << 48 | (allocator as u64) << 56 }
    }

    /// Bits of the lead in a slab. Other blocks use 40 bits for it.
    pub(super) const SLAB_LEAD_BITS: u32 = 20;
    #[cfg(feature = "std")]
    pub(super) const MAX_GENERATION: u32 = (1 << 20) - 1;

    /// Bytes from the slab's start to the block.
    pub(super) const fn slab_lead(self) -> usize {
        (self.word & ((1 << Self::SLAB_LEAD_BITS) - 1)) as usize
    }

    /// The generation of the slab that holds the block.
    #[cfg(feature = "std")]
    pub(super) const fn generation(self) -> u32 {
        (self.word >> Self::SLAB_LEAD_BITS) as u32 & Self::MAX_GENERATION
    }

    /// Whether the block lies in a slab.
    pub(super) const fn is_slabbed(self) -> bool {
        cfg!(feature = "std") && self.allocator() != 0 && self.class() != 0
    }

    /// The packed word of every block of the global allocator that is aligned to 16 and has no
    /// class.
    pub(super) const USUAL: u64 = Self::new(0, PREFIX, MIN_ALIGN, 0).word;

    /// Whether the block may be kept for reuse: it has a class and no installed allocator.
    #[inline]
    pub(super) const fn is_of_class(self) -> bool {
        (self.word >> 48).wrapping_sub(1) < 0xFF
    }

    /// The number of the installed allocator, 0 for the global one.
    #[inline]
    pub(super) const fn allocator(self) -> u8 {
        (self.word >> 56) as u8
    }

    #[inline]
    pub(super) const fn lead(self) -> usize {
        (self.word & 0xFF_FFFF_FFFF) as usize
    }

    /// Bytes from the block to its end.
    pub(super) const fn room(self) -> usize {
        self.total - if self.is_slabbed() { self.slab_lead() } else { self.lead() }
    }

    #[inline]
    pub(super) const fn align(self) -> usize {
        1 << ((self.word >> 40) & 0xFF)
    }

    #[inline]
    pub(super) const fn class(self) -> u8 {
        (self.word >> 48) as u8
    }
}

pub(crate) const PREFIX: usize = size_of::<Prefix>();
const _: () = assert!(PREFIX == MIN_ALIGN);

/// Writes the prefix and returns the block behind it.
///
/// # Safety
/// `base` has `prefix.total` writable bytes and `PREFIX <= lead <= total`; `base + lead` is a
/// multiple of 16.
#[inline]
pub(super) unsafe fn place(base: NonNull<u8>, prefix: Prefix) -> NonNull<u8> {
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
pub(super) unsafe fn prefix_of(block: NonNull<u8>) -> Prefix {
    // SAFETY: the prefix lies before every block.
    let slot = unsafe { block.sub(PREFIX) }.cast::<Prefix>();
    // SAFETY: written when the block was made and unchanged while it lives; aligned to 16 as the
    // block is.
    let prefix = unsafe { slot.as_ref() };
    // Word by word, as it was written: a wider read right after the writes would wait until both
    // reach the cache.
    Prefix { total: prefix.total, word: prefix.word }
}
