//! Pools: memory that is reserved in chunks, given out in the order of streams, and kept until a
//! trim or a synchronisation.

use alloc::collections::BTreeMap;

use crate::code::{Answer, INVALID_HANDLE, OUT_OF_MEMORY};
use crate::memory::{Allocation, Kind};
use crate::state::State;

/// What a pool reserves is a multiple of this, with pages of its own.
pub(crate) const CHUNK: usize = 1 << 14;
/// Blocks of a pool start at multiples of this.
const GRANULE: usize = 512;
/// The default pool of the first device.
const FIRST: usize = 0x9001_0000;

/// A pool of a device.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// Bytes that it may reserve.
    max: usize,
    /// Bytes that it keeps when somebody synchronises.
    pub(crate) threshold: u64,
    /// What it has reserved: bytes from each address on.
    chunks: BTreeMap<usize, usize>,
    /// Bytes that are free from each address on, within one chunk.
    free: BTreeMap<usize, usize>,
    /// What was freed in the order of a stream of a context, which the host has not seen to be
    /// done.
    unseen: Vec<(usize, usize)>,
    /// Its handle is gone; it goes with its last block.
    pub(crate) destroyed: bool,
}

/// The handle of a device's default pool.
pub(crate) fn default_of(device: usize) -> usize {
    FIRST + 16 * device
}

/// What a block takes.
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

    /// Room for a block in what is reserved.
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

    /// Takes room back.
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

    /// A chunk that nothing uses, as far as the host knows.
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

    /// Bytes of the memory of a device that pools have.
    pub(crate) fn pooled(&self, device: usize) -> usize {
        self.pools.values().filter(|pool| pool.device == device).map(Pool::reserved).sum()
    }

    /// Memory of a pool, from chunks that it has or reserves.
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
                // One byte less, which the arena has between two blocks.
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

    /// Gives chunks that nothing uses back until the pool has no more than `keep` bytes.
    pub(crate) fn trim_pool(&mut self, handle: usize, keep: usize) {
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        while pool.reserved() > keep {
            let Some((start, bytes)) = pool.idle() else { return };
            // Not less than what is to be kept.
            if pool.reserved() - bytes < keep {
                return;
            }
            pool.chunks.remove(&start);
            pool.free.remove(&start);
            self.spaces.pooled.give(start, bytes - 1);
        }
    }

    /// Takes a pool away that has no handle, unless memory of it is in use.
    pub(crate) fn end_pool(&mut self, handle: usize) {
        let Some(pool) = self.pools.get_mut(&handle) else { return };
        pool.unseen.clear();
        self.trim_pool(handle, 0);
        if self.pools.get(&handle).is_some_and(|pool| pool.destroyed && pool.chunks.is_empty()) {
            self.pools.remove(&handle);
        }
    }

    /// The host has seen that something in a context is done; where it waited for that, pools keep
    /// no more than they are to.
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
