//! Address space with two views of the same bytes. The program gets addresses of the first view,
//! which can be closed to the host. The driver reads and writes through the second.

use alloc::collections::BTreeMap;
use core::ptr;

/// Number of bytes at either end of a block that get the pattern of fresh or freed memory.
const PATTERNED: usize = 1 << 16;
/// The byte pattern of fresh memory.
const FRESH: u8 = 0xA5;
/// The byte pattern of freed memory.
const FREED: u8 = 0xDD;

/// Two views of a file in memory, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Views {
    /// Start of the view for the program.
    pub(crate) seen: usize,
    /// Start of the view for the driver.
    pub(crate) own: usize,
    bytes: usize,
}

impl Views {
    /// Maps `bytes` bytes of `file` from `offset` on.
    pub(crate) fn of(file: i32, offset: usize, bytes: usize, reachable: bool) -> Option<Self> {
        let map = |protection| {
            let offset = i64::try_from(offset).ok()?;
            // SAFETY: a new mapping at an address of the system's choice.
            let view = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    bytes,
                    protection,
                    libc::MAP_SHARED | libc::MAP_NORESERVE,
                    file,
                    offset,
                )
            };
            (view != libc::MAP_FAILED).then_some(view as usize)
        };
        let all = libc::PROT_READ | libc::PROT_WRITE;
        let seen = map(if reachable { all } else { libc::PROT_NONE })?;
        let own = map(all)?;
        Some(Self { seen, own, bytes })
    }

    /// Whether the program's view contains an address.
    pub(crate) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.seen) < self.bytes
    }

    /// The driver's address of the same byte.
    pub(crate) fn own(&self, address: usize) -> usize {
        address - self.seen + self.own
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        for view in [self.seen, self.own] {
            // SAFETY: mapped above with this size, unmapped once.
            unsafe { libc::munmap(view as *mut libc::c_void, self.bytes) };
        }
    }
}

/// Blocks of one kind of memory.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) views: Views,
    /// The file in memory, which other processes open too.
    pub(crate) file: i32,
    /// Bytes that are free from each offset on.
    free: BTreeMap<usize, usize>,
    /// Blocks start at multiples of this, with at least one free byte between two blocks.
    granule: usize,
}

impl Arena {
    /// An arena of `bytes` bytes with blocks at multiples of `granule`. The system adds pages at
    /// the first write.
    pub(crate) fn new(bytes: usize, granule: usize, reachable: bool) -> Option<Self> {
        // SAFETY: a name that ends with a zero.
        let file = unsafe { libc::memfd_create(c"usm-cuda-driver".as_ptr(), libc::MFD_CLOEXEC) };
        let length = i64::try_from(bytes).ok()?;
        // SAFETY: the file was just made, if it was.
        if file < 0 || unsafe { libc::ftruncate(file, length) } != 0 {
            return None;
        }
        let views = Views::of(file, 0, bytes, reachable)?;
        Some(Self { views, file, free: BTreeMap::from([(0, bytes)]), granule })
    }

    /// Takes a block and fills it with the fresh pattern.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
        let room = self.room(bytes)?;
        let (offset, free) =
            self.free.iter().find(|(_, free)| **free >= room).map(|(at, free)| (*at, *free))?;
        self.free.remove(&offset);
        if free > room {
            self.free.insert(offset + room, free - room);
        }
        let address = self.views.seen + offset;
        self.pattern(address, bytes, FRESH);
        Some(address)
    }

    /// Takes a block back.
    pub(crate) fn give(&mut self, address: usize, bytes: usize) {
        self.pattern(address, bytes, FREED);
        let (mut offset, mut room) = (address - self.views.seen, self.room(bytes).unwrap_or(bytes));
        if bytes > 2 * PATTERNED {
            let (from, len) = ((offset + PATTERNED) as i64, (bytes - 2 * PATTERNED) as i64);
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: an unused range of the arena's own file. If the call fails, the pages stay.
            unsafe { libc::fallocate(self.file, mode, from, len) };
        }
        if let Some((before, free)) = self.free.range(..offset).next_back().map(|(at, free)| (*at, *free)) {
            if before + free == offset {
                (offset, room) = (before, free + room);
            }
        }
        if let Some(after) = self.free.remove(&(offset + room)) {
            room += after;
        }
        self.free.insert(offset, room);
    }

    /// The bytes that a block occupies.
    fn room(&self, bytes: usize) -> Option<usize> {
        Some(bytes.checked_add(self.granule)? / self.granule * self.granule)
    }

    /// Opens or closes a block to the host, if blocks have pages of their own.
    pub(crate) fn reachable(&self, address: usize, bytes: usize, on: bool) {
        let protection = if on { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        // SAFETY: a block of the program's view, which the driver does not use.
        unsafe { libc::mprotect(address as *mut libc::c_void, bytes, protection) };
    }

    /// Writes the fresh pattern to a part of a block.
    pub(crate) fn fresh(&self, address: usize, bytes: usize) {
        self.pattern(address, bytes, FRESH);
    }

    /// Writes the freed pattern to a part of a block.
    pub(crate) fn freed(&self, address: usize, bytes: usize) {
        self.pattern(address, bytes, FREED);
    }

    fn pattern(&self, address: usize, bytes: usize, value: u8) {
        let own = self.views.own(address);
        let (head, tail) = (bytes.min(PATTERNED), bytes.saturating_sub(PATTERNED).min(PATTERNED));
        for (start, len) in [(own, head), (own + bytes - tail, tail)] {
            // SAFETY: an unused range inside a block of this arena.
            unsafe { ptr::write_bytes(start as *mut u8, value, len) };
        }
    }
}
