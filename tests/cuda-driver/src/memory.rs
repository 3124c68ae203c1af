//! Allocations: page-locked memory of the host, memory of a device, and managed memory.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;

use crate::arena::{Arena, Views};
use crate::code::{Answer, ILLEGAL_ADDRESS, INVALID_VALUE, OUT_OF_MEMORY};
use crate::pool::CHUNK;
use crate::state::State;

/// Size of the address space for all device memory, and for all managed memory. Race detectors
/// shadow all of it.
const SPACE: usize = 1 << 30;
/// Device blocks start at multiples of this, as on GPUs; managed blocks have whole pages.
const GRANULE: usize = 512;
const PAGE: usize = 4096;
/// Alignment of page-locked memory.
const HOST_ALIGNMENT: usize = 256;

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Device,
    Managed,
}

/// Where an allocation's bytes come from and how they are freed.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A plain call, which takes effect at once.
    Plain,
    /// A pool, in stream order. The allocation exists from command `born` on.
    Pool { pool: usize, born: u64 },
    /// Another process.
    Opened(Views),
}

/// A live allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) kind: Kind,
    pub(crate) device: usize,
    pub(crate) context: usize,
    /// The requested size in bytes.
    pub(crate) size: usize,
    pub(crate) id: u64,
    pub(crate) origin: Origin,
    /// The stream in whose order it is to be freed.
    pub(crate) dying: Option<usize>,
}

impl Allocation {
    /// The pool that it belongs to.
    pub(crate) fn pool(&self) -> Option<usize> {
        if let Origin::Pool { pool, .. } = self.origin { Some(pool) } else { None }
    }
}

/// The address spaces of the process.
#[derive(Debug)]
pub(crate) struct Spaces {
    pub(crate) device: Arena,
    /// Device memory of pools, with whole pages.
    pub(crate) pooled: Arena,
    pub(crate) managed: Arena,
}

impl Spaces {
    pub(crate) fn new() -> Option<Self> {
        let (device, pooled) = (Arena::new(SPACE, GRANULE, false)?, Arena::new(SPACE, CHUNK, false)?);
        Some(Self { device, pooled, managed: Arena::new(SPACE, PAGE, true)? })
    }

    fn of(&mut self, kind: Kind) -> Option<&mut Arena> {
        match kind {
            Kind::Host => None,
            Kind::Device => Some(&mut self.device),
            Kind::Managed => Some(&mut self.managed),
        }
    }
}

fn host_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, HOST_ALIGNMENT).ok()
}

impl State {
    /// Allocates in a context, at once or in the order of a stream.
    pub(crate) fn allocate(
        &mut self,
        context: usize,
        kind: Kind,
        size: usize,
        origin: Origin,
    ) -> Answer<usize> {
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        let mut device = self.context(context)?.device;
        let address = match (&origin, self.spaces.of(kind)) {
            (Origin::Pool { pool, .. }, _) => {
                // The pool may belong to another device than the stream.
                device = self.pool(*pool)?.device;
                Some(self.take_of_pool(*pool, size)?)
            }
            (_, None) => {
                self.has_room(kind, device, size)?;
                host_layout(size).and_then(|layout| {
                    // SAFETY: the size is not zero.
                    let block = unsafe { alloc(layout) } as usize;
                    (block != 0).then_some(block)
                })
            }
            _ => {
                self.has_room(kind, device, size)?;
                self.spaces.of(kind).and_then(|arena| arena.take(size))
            }
        };
        let address = address.ok_or(OUT_OF_MEMORY)?;
        if kind == Kind::Managed && self.devices[device].works {
            self.spaces.managed.reachable(address, size, false);
        }
        let id = self.number() as u64;
        self.allocations.insert(address, Allocation { kind, device, context, size, id, origin, dying: None });
        Ok(address)
    }

    /// Bytes that a device has in use of a kind of memory. Memory that pools keep counts as used.
    pub(crate) fn used(&self, kind: Kind, device: usize) -> usize {
        let counts = |live: &&Allocation| live.kind == kind && live.device == device && live.pool().is_none();
        let plain: usize = self.allocations.values().filter(counts).map(|live| live.size).sum();
        if kind == Kind::Device { plain + self.pooled(device) } else { plain }
    }

    /// Whether a device has that many bytes left.
    pub(crate) fn has_room(&self, kind: Kind, device: usize, bytes: usize) -> Answer {
        let sum = self.used(kind, device).checked_add(bytes);
        if sum.is_some_and(|sum| sum <= self.settings.memory) { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    /// Frees the allocation at an address, by the function for host memory or for other memory.
    pub(crate) fn free(&mut self, address: usize, host: bool) -> Answer {
        match self.allocations.get(&address) {
            Some(live) if (live.kind == Kind::Host) == host && !matches!(live.origin, Origin::Opened(_)) => {}
            _ => {
                self.misuse(format_args!("nothing is freed at {address:#x}"));
                return Err(INVALID_VALUE);
            }
        }
        self.release(address);
        Ok(())
    }

    /// Removes an allocation from the table and frees its memory, unless a command in flight uses
    /// it.
    pub(crate) fn release(&mut self, address: usize) {
        let size = self.allocations.get(&address).map_or(0, |live| live.size);
        let used = self.is_used(address, size);
        let Some(live) = self.allocations.remove(&address) else { return };
        if used {
            // A command in flight still uses the memory, so free is a misuse here.
            return self.misuse(format_args!("{size} bytes at {address:#x} are freed in flight"));
        }
        if live.kind == Kind::Managed {
            self.spaces.managed.reachable(address, size, true);
        }
        if let Origin::Pool { pool, .. } = live.origin {
            return self.give_to_pool(pool, address, &live);
        }
        match (live.origin, self.spaces.of(live.kind)) {
            (Origin::Opened(views), _) => drop(views),
            (_, Some(arena)) => arena.give(address, size),
            (_, None) => {
                let Some(layout) = host_layout(size) else { return };
                // SAFETY: allocated with this layout, and no longer in the table.
                unsafe { dealloc(address as *mut u8, layout) };
            }
        }
    }

    /// The allocation that contains an address, and its start.
    pub(crate) fn lookup(&self, address: usize) -> Option<(usize, &Allocation)> {
        let (base, live) = self.allocations.range(..=address).next_back()?;
        (address - base < live.size).then_some((*base, live))
    }

    /// The driver's own address of memory that an operation accesses: inside one allocation, or
    /// pageable.
    pub(crate) fn resolve(&self, address: usize, bytes: usize) -> Answer<usize> {
        if bytes == 0 {
            return Ok(address);
        }
        match self.lookup(address) {
            Some((base, live)) if bytes <= live.size - (address - base) => Ok(self.own(live, address)),
            Some(_) => Err(ILLEGAL_ADDRESS),
            None if self.is_allocation(address) => Err(ILLEGAL_ADDRESS),
            // Pageable memory of the program.
            None => Ok(address),
        }
    }

    /// The driver's own address of a byte of an allocation.
    pub(crate) fn own(&self, live: &Allocation, address: usize) -> usize {
        match (&live.origin, live.kind) {
            (Origin::Opened(views), _) => views.own(address),
            (Origin::Pool { .. }, _) => self.spaces.pooled.views.own(address),
            (_, Kind::Device) => self.spaces.device.views.own(address),
            (_, Kind::Managed) => self.spaces.managed.views.own(address),
            (_, Kind::Host) => address,
        }
    }

    /// Whether an arena of this driver contains an address.
    fn is_allocation(&self, address: usize) -> bool {
        [&self.spaces.device, &self.spaces.pooled, &self.spaces.managed]
            .iter()
            .any(|arena| arena.views.contains(address))
    }
}
