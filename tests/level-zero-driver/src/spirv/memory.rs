//! The memory that a launch may access.

use core::cell::Cell;

use super::Fault;

/// Sorted ranges of addresses. One of them must contain an access.
#[derive(Debug, Default)]
pub(super) struct Regions {
    ranges: Vec<(u64, u64)>,
    /// The range of the last access, which the next one often uses too.
    last: Cell<usize>,
}

impl Regions {
    /// Builds from disjoint ranges of start and bytes.
    pub(super) fn new(ranges: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut ranges: Vec<(u64, u64)> =
            ranges.map(|(start, bytes)| (start as u64, start as u64 + bytes as u64)).collect();
        ranges.sort_unstable();
        Self { ranges, last: Cell::new(0) }
    }

    /// Whether a range contains an access.
    fn contains(&self, address: u64, bytes: u64) -> bool {
        let inside = |(start, end): (u64, u64)| address >= start && address < end && end - address >= bytes;
        if self.ranges.get(self.last.get()).is_some_and(|range| inside(*range)) {
            return true;
        }
        let place = self.ranges.partition_point(|(start, _)| *start <= address).wrapping_sub(1);
        self.last.set(place);
        self.ranges.get(place).is_some_and(|range| inside(*range))
    }
}

/// The memory that one work-item can access.
#[derive(Debug)]
pub(super) struct Reach<'m> {
    pub(super) regions: &'m Regions,
    /// The item's private memory.
    pub(super) private: (u64, u64),
}

impl Reach<'_> {
    fn check(&self, address: u64, bytes: usize, alignment: u32, what: &str) -> Result<(), Fault> {
        let bytes = bytes as u64;
        if address % u64::from(alignment.max(1)) != 0 {
            return Err(format!(
                "{what} of {bytes} bytes at {address:#x}, which is not aligned to {alignment}"
            ));
        }
        let inside = |(start, end): (u64, u64)| address >= start && address < end && end - address >= bytes;
        if inside(self.private) || self.regions.contains(address, bytes) {
            return Ok(());
        }
        Err(format!("{what} of {bytes} bytes at {address:#x}, which is no memory of this launch"))
    }

    /// Reads up to eight bytes as a number.
    pub(super) fn load(&self, address: u64, bytes: usize, alignment: u32) -> Result<u64, Fault> {
        self.check(address, bytes, alignment, "a read")?;
        // SAFETY: the caller of the launch keeps this memory until it completes, or the group owns
        // it.
        let value = unsafe {
            match bytes {
                1 => u64::from((address as *const u8).read()),
                2 => u64::from((address as *const u16).read_unaligned()),
                4 => u64::from((address as *const u32).read_unaligned()),
                _ => (address as *const u64).read_unaligned(),
            }
        };
        Ok(value)
    }

    /// Writes the low bytes of a number.
    pub(super) fn store(&self, address: u64, bytes: usize, alignment: u32, value: u64) -> Result<(), Fault> {
        self.check(address, bytes, alignment, "a write")?;
        // SAFETY: as above.
        unsafe {
            match bytes {
                1 => (address as *mut u8).write(value as u8),
                2 => (address as *mut u16).write_unaligned(value as u16),
                4 => (address as *mut u32).write_unaligned(value as u32),
                _ => (address as *mut u64).write_unaligned(value),
            }
        }
        Ok(())
    }
}
