//! Pools: reserve memory in chunks, allocate it in stream order, and keep it until a trim or a
//! synchronisation.

use alloc::collections::BTreeMap;

use crate::code::{Answer, INVALID_HANDLE, OUT_OF_MEMORY};
use crate::memory::{Allocation, Kind};
use crate::state::State;

/// Chunks have multiples of this size and whole pages.
pub(crate) const CHUNK: usize = 1 << 14;
/// Blocks of a pool start at multiples of this.
const GRANULE: usize = 512;
/// The default pool of the first device.
const FIRST: usize = 0x9001_0000;

/// A pool of a device.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// Maximum bytes to reserve.
    max: usize,
    /// Bytes that the pool keeps at a synchronisation.
    pub(crate) threshold: u64,
    /// The reserved chunks: start to bytes.
    chunks: BTreeMap<usize, usize>,
    /// The free ranges: start to bytes, each within one chunk.
    free: BTreeMap<usize, usize>,
    /// Blocks freed in stream order of a context, where the host has not yet seen the free
    /// complete.
    unseen: Vec<(usize, usize)>,
    /// The handle was destroyed; the pool ends with its last block.
    pub(crate) destroyed: bool,
}

/// The handle of a device's default pool.
pub(crate) fn default_of(device: usize) -> usize {
    FIRST + 16 * device
}

/// The bytes that a block occupies.
fn room(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(GRANULE)
}

impl Pool {
    pub(crate) fn new(device: usize, max: usize) -> Self {
        let (chunks, free) = (BTreeMap::new(), BTreeMap::new());
        let max = if max == 0 { usize::MAX } else { max };
        Self { device, max, threshold: 0, chunks, free, unseen: Vec::new(), destroyed: false }
    }

    pub(crate) fn reserved(&self) -> usize {
        self.chunks.values().sum()
    }

    /// Takes a block from a reserved chunk.
    fn take(&mut self, room: usize) -> Option<usize> {
        let found = self.free.iter().find(|(_, free)| **free >= room);
        let (address, free) = found.map(|(address, free)| (*address, *free))?;
        self.free.remove(&address);
        if free > room {
            self.free.insert(address + room, free - room);
        }
        self.unseen.retain(|(_, at)| !(address..address + room).contains(at));
        Some(address)
    }

    /// Returns a range to the free ones.
    fn give(&mut self, address: usize, mut room: usize) {
        let mut start = address;
        if let Some((before, free)) = self.free.range(..address).next_back().map(|(at, free)| (*at, *free)) {
            if before + free == address && !self.chunks.contains_key(&address) {
                (start, room) = (before, free + room);
            }
        }
        let end = start + room;
        if !self.chunks.contains_key(&end) {
            room += self.free.remove(&end).unwrap_or(0);
        }
        self.free.insert(start, room);
    }

    /// A chunk without blocks, as far as the host knows.
    fn idle(&self) -> Option<(usize, usize)> {
        let idle = |(start, bytes): &(&usize, &usize)| {
            self.free.get(start) == Some(bytes)
                && !self.unseen.iter().any(|(_, at)| (**start..**start + **bytes).contains(at))
        };
        self.chunks.iter().rfind(idle).map(|(start, bytes)| (*start, *bytes))
    }
}

impl State {
    /// The pool of a handle.
    pub(crate) fn pool(&mut self, handle: usize) -> Answer<&mut Pool> {
        let device = handle.wrapping_sub(FIRST) / 16;
        if device < self.devices.len() && default_of(device) == handle {
            return Ok(self.pools.entry(handle).or_insert_with(|| Pool::new(device, 0)));
        }
        self.pools.get_mut(&handle).filter(|pool| !pool.destroyed).ok_or(INVALID_HANDLE)
    }

    /// Bytes of a device's memory that pools have reserved.
    pub(crate) fn pooled(&self, device: usize) -> usize {
        self.pools.values().filter(|pool| pool.device == device).map(Pool::reserved).sum()
    }

    /// Takes memory of a pool, from its chunks or from a new one.
    pub(crate) fn take_of_pool(&mut self, handle: usize, bytes: usize) -> Answer<usize> {
        let room = room(bytes).ok_or(OUT_OF_MEMORY)?;
        let pool = self.pool(handle)?;
        let (device, max, reserved) = (pool.device, pool.max, pool.reserved());
        let found = pool.take(room);
        let address = match found {
            Some(address) => address,
            None => {
                let chunk = room.checked_next_multiple_of(CHUNK).ok_or(OUT_OF_MEMORY)?;
                if reserved.checked_add(chunk).is_none_or(|sum| sum > max) {
                    return Err(OUT_OF_MEMORY);
                }
                self.has_room(Kind::Device, device, chunk)?;
                // One byte less: the arena keeps a free byte between two blocks.
                let start = self.spaces.pooled.take(chunk - 1).ok_or(OUT_OF_MEMORY)?;
                let pool = self.pool(handle)?;
                pool.chunks.insert(start, chunk);
                pool.free.insert(start, chunk);
                pool.take(room).ok_or(OUT_OF_MEMORY)?
            }
        };
        self.spaces.pooled.fresh(address, bytes);
        Ok(address)
    }

    /// Takes a block of a pool back.
    pub(crate) fn give_to_pool(&mut self, handle: usize, address: usize, live: &Allocation) {
        self.spaces.pooled.freed(address, live.size);
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        pool.give(address, room(live.size).unwrap_or(live.size));
        if live.dying.is_some() {
            pool.unseen.push((live.context, address));
        }
        let destroyed = pool.destroyed;
        if destroyed {
            self.end_pool(handle);
        }
    }

    /// Releases chunks without blocks until the pool has at most `keep` bytes.
    pub(crate) fn trim_pool(&mut self, handle: usize, keep: usize) {
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        while pool.reserved() > keep {
            let Some((start, bytes)) = pool.idle() else { return };
            // Keep at least `keep` bytes.
            if pool.reserved() - bytes < keep {
                return;
            }
            pool.chunks.remove(&start);
            pool.free.remove(&start);
            self.spaces.pooled.give(start, bytes - 1);
        }
    }

    /// Removes a destroyed pool once none of its memory is in use.
    pub(crate) fn end_pool(&mut self, handle: usize) {
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        pool.unseen.clear();
        self.trim_pool(handle, 0);
        if self.pools.get(&handle).is_some_and(|pool| pool.destroyed && pool.chunks.is_empty()) {
            self.pools.remove(&handle);
        }
    }

    /// The host has seen that work of a context is complete. If it waited for all of it, pools
    /// release memory above their threshold.
    pub(crate) fn seen(&mut self, context: usize, waited: bool) {
        for pool in self.pools.values_mut() {
            pool.unseen.retain(|(of, _)| *of != context);
        }
        let Some(device) = self.contexts.get(&context).map(|found| found.device).filter(|_| waited) else {
            return;
        };
        let of_device = self.pools.iter().filter(|(_, pool)| pool.device == device);
        let handles: Vec<(usize, u64)> = of_device.map(|(handle, pool)| (*handle, pool.threshold)).collect();
        for (handle, threshold) in handles {
            self.trim_pool(handle, usize::try_from(threshold).unwrap_or(usize::MAX));
        }
    }
}
