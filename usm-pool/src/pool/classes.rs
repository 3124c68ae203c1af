//! The classes of sizes, and the number under which an owner has a block.
//!
//! Small blocks are of a class, of which there are 32 for each power of two, so that a block serves
//! every request of its class. Large blocks serve requests of exactly their size, in lists that are
//! found by a hash.

use super::space::UNIT;

/// Classes up to [`SMALL`] bytes: one for each unit up to 32 units, then 32 for each power of two.
pub(super) const CLASSES: usize = 192;
/// The largest size of a class (bytes).
pub(super) const SMALL: u64 = 64 << 10;
/// Lists of larger sizes.
pub(super) const HASHED: usize = 64;

/// The size of the class, for small sizes, of a size in units; larger sizes stay.
#[inline(always)]
pub(super) fn rounded(size: u64) -> u64 {
    let units = size / UNIT;
    if units <= 32 || size > SMALL {
        return size;
    }
    let step = 1 << ((units - 1).ilog2() - 5);
    units.next_multiple_of(step) * UNIT
}

/// Where blocks of this size lie. Of a small size, which is that of a class, the class.
#[inline(always)]
pub(super) fn bin_of(size: u64) -> usize {
    let units = size / UNIT;
    if units <= 32 {
        return units as usize - 1;
    }
    if size <= SMALL {
        let octave = (units - 1).ilog2() - 5;
        return ((octave as usize) << 5) + ((units - 1) >> octave) as usize;
    }
    CLASSES + (units.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

/// The size of the blocks of a class.
#[cfg(any(feature = "std", test))]
#[inline(always)]
pub(super) fn size_of_class(class: usize) -> u64 {
    let octave = (class >> 5).saturating_sub(1);
    (((class - (octave << 5) + 1) as u64) << octave) * UNIT
}

/// A block's number together with its class, if it has one: the owner keeps both, so that a return
/// need not read the descriptor, which nothing else has touched for long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket(u32);

impl Ticket {
    const HAS_CLASS: u32 = 1 << 31;
    const SLOTS: u32 = 1 << 23;

    #[inline(always)]
    pub(super) fn new(slot: u32, size: u64) -> Self {
        Self::of_bin(slot, bin_of(size))
    }

    #[inline(always)]
    pub(super) fn of_bin(slot: u32, bin: usize) -> Self {
        if bin < CLASSES && slot < Self::SLOTS {
            Self(Self::HAS_CLASS | (bin as u32) << 23 | slot)
        } else {
            Self(slot)
        }
    }

    #[inline(always)]
    pub(super) const fn of_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(super) const fn slot(self) -> u32 {
        match self.0 & Self::HAS_CLASS {
            0 => self.0,
            _ => self.0 & (Self::SLOTS - 1),
        }
    }

    #[cfg(feature = "std")]
    #[inline(always)]
    pub(super) fn class(self) -> Option<usize> {
        (self.0 & Self::HAS_CLASS != 0).then_some((self.0 >> 23 & 0xFF) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_the_sizes_that_round_to_them() {
        let mut last = (0, usize::MAX);
        for units in 1..=SMALL / UNIT {
            let size = rounded(units * UNIT);
            let bin = bin_of(size);
            assert!(size >= units * UNIT && (size - units * UNIT) * 32 <= size, "{units}: {size}");
            if size == last.0 {
                assert_eq!(bin, last.1);
            } else {
                assert_eq!(bin, last.1.wrapping_add(1), "classes follow each other");
            }
            assert_eq!(size_of_class(bin), size);
            last = (size, bin);
        }
        assert_eq!(last, (SMALL, CLASSES - 1));
    }
}
