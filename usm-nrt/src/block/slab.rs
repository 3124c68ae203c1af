//! Small blocks of an allocator installed by [`crate::set_kept_allocator`]. They are carved out of
//! slabs of 64 KiB and kept by the threads that free them (`local/shelf.rs`).
//!
//! ```text
//! slab: | Slab | Prefix, 16 bytes | block | Prefix | block | ...
//! ```
//! A block's prefix holds its distance from the slab and the slab's generation. A block that no
//! thread keeps is listed in its slab. A slab with all of its blocks is freed, unless it is the
//! last of its class in the current generation.

use core::ptr::NonNull;

use spin::Mutex;

use super::class::class_for;
use super::free_block::{Chain, FreeBlock, Stack};
use super::{PREFIX, Prefix};
use crate::allocator;
use crate::local::{self, CLASSES, class_size};
use crate::system::{self, Switches};

/// Size of a slab in bytes. With the bytes that a source puts in front of a block it fits 64 KiB.
const SLAB: usize = 64 * 1024 - 128;
/// Alignment in bytes of a slab and its content.
const ALIGN: usize = 32;
/// Bytes that a thread takes at once.
const BATCH: usize = 8 * 1024;
/// Largest data of a block in bytes.
const LARGEST: usize = 1024;

/// The header at the start of a slab. [`CENTRAL`]'s lock guards its mutable fields.
#[repr(C, align(32))]
struct Slab {
    /// The address that the allocator returned.
    base: NonNull<u8>,
    capacity: u32,
    generation: u32,
    class: u8,
    allocator: u8,
    /// Whether the slab is in the list of its class.
    is_listed: bool,
    /// Blocks that are in the slab, not with a thread or an owner.
    home: u32,
    /// Blocks carved so far.
    carved_count: u32,
    free: Stack,
    previous: Option<Handle>,
    next: Option<Handle>,
}

/// A slab. It lives while a list holds it or one of its blocks is out. [`Empty`] frees it
/// afterwards.
#[derive(Clone, Copy)]
struct Handle(NonNull<Slab>);

const HEAD: usize = size_of::<Slab>();
const _: () = assert!(HEAD % ALIGN == 0 && SLAB < (1 << Prefix::SLAB_LEAD_BITS));

pub(crate) struct Central {
    /// Counts installations. The slabs in the lists belong to the current one.
    generation: u32,
    /// Slabs of each class that have free blocks.
    lists: [Option<Handle>; CLASSES + 1],
    /// Number of slabs.
    slabs: usize,
    /// Number of blocks outside their slabs.
    out: usize,
}

// SAFETY: slabs are accessed under the lock only.
unsafe impl Send for Central {}

pub(crate) static CENTRAL: Mutex<Central> =
    Mutex::new(Central { generation: 0, lists: [None; CLASSES + 1], slabs: 0, out: 0 });

/// Number of slabs, and of live blocks in them. The allocator behind them does not know these
/// blocks.
pub(crate) fn counts() -> (usize, usize) {
    let central = CENTRAL.lock();
    let (slabs, out) = (central.slabs, central.out);
    drop(central);
    (slabs, out.saturating_sub(local::blocks_on_shelves()))
}

/// Starts a generation after an installation: returns the blocks that threads keep, and frees
/// complete slabs.
pub(crate) fn begin_generation() {
    let mut central = CENTRAL.lock();
    // Never 0, which is a fresh shelf's generation.
    let generation = central.generation % Prefix::MAX_GENERATION + 1;
    central.generation = generation;
    local::set_generation(generation);
    let mut empty = central.forget_lists();
    drop(central);
    empty.free();
    give_back(local::clear_all_shelves());
}

/// A small block. `None` if the request is not small, nothing may be kept, or memory is short; the
/// allocator itself may still have some.
#[inline]
pub(super) fn allocate(head: usize, size: usize, align: usize, switches: Switches) -> Option<NonNull<u8>> {
    if !switches.is_slabbed() || size > LARGEST {
        return None;
    }
    let class = class_for(head, size, align)?;
    let shelf = local::shelf()?;
    let block = shelf.take(class).or_else(|| {
        let (mut fresh, generation) = take_from_slabs(class, switches.allocator())?;
        let first = fresh.pop();
        give_back(shelf.put_all(class, fresh, generation));
        first
    });
    block.map(FreeBlock::into_block)
}

/// Frees a block that lies in a slab.
///
/// # Safety
/// As for [`super::free`]; `prefix` is the block's and names a class and an allocator.
pub(super) unsafe fn free(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    // SAFETY: as the caller promises.
    let free_block = unsafe { FreeBlock::new(block) };
    if switches.is_slabbed() {
        if let Some(shelf) = local::shelf() {
            let back = shelf.put(prefix.class(), free_block, prefix.generation());
            if back.len() != 0 {
                give_back(back);
            }
            return;
        }
    }
    let mut back = Chain::new();
    back.push(free_block);
    give_back(back);
}

/// Takes some blocks of a class out of a slab, and the slab's generation. `None` if `allocator` is
/// no longer installed: its slab would be counted to the next generation.
#[cold]
#[inline(never)]
fn take_from_slabs(class: u8, allocator: u8) -> Option<(Chain, u32)> {
    let batch_len = (BATCH / class_size(class)).max(1);
    let mut central = CENTRAL.lock();
    let generation = central.generation;
    // The exchange happens before the new generation begins, which takes the lock.
    if system::switches().allocator() != allocator {
        return None;
    }
    let slabs = central.lists[usize::from(class)];
    let slab = match slabs {
        Some(slab) => slab,
        None => {
            // Without the lock: the allocator may be slow, and may call any function.
            drop(central);
            let slab = make(class, allocator, generation)?;
            central = CENTRAL.lock();
            central.slabs += 1;
            if central.generation == generation {
                central.list(slab);
            }
            slab
        }
    };
    let mut batch = Chain::new();
    while batch.len() < batch_len {
        let Some(block) = central.pop(slab) else { break };
        batch.push(block);
    }
    central.out += batch.len();
    let &mut Slab { home, is_listed, .. } = central.at(slab);
    if home == 0 && is_listed {
        central.unlist(slab);
    }
    Some((batch, generation))
}

/// Returns blocks to their slabs, and frees slabs that have all of theirs.
#[cold]
#[inline(never)]
pub(crate) fn give_back(mut blocks: Chain) {
    if blocks.len() == 0 {
        return;
    }
    let mut empty = Empty(None);
    let mut central = CENTRAL.lock();
    central.out -= blocks.len();
    while let Some(block) = blocks.pop() {
        let slab = central.push(block);
        let &mut Slab { generation, is_listed, home, capacity, .. } = central.at(slab);
        let (current, is_full) = (generation == central.generation, home == capacity);
        if current && !is_listed {
            central.list(slab);
        }
        if is_full && !(current && central.is_last(slab)) {
            central.remove(slab, &mut empty);
        }
    }
    drop(central);
    empty.free();
}

impl Central {
    /// The mutable part of a slab; `self` proves that the lock is held.
    fn at(&mut self, slab: Handle) -> &mut Slab {
        // SAFETY: the slab lives while a handle exists. It is reached under the lock only, and
        // through one reference at a time, because this method borrows all slabs.
        unsafe { &mut *slab.0.as_ptr() }
    }

    /// A block of the slab, if it has one.
    fn pop(&mut self, slab: Handle) -> Option<FreeBlock> {
        let header = self.at(slab);
        header.home = header.home.checked_sub(1)?;
        if let Some(block) = header.free.pop() {
            return Some(block);
        }
        let size = class_size(header.class);
        let distance = HEAD + header.carved_count as usize * size;
        header.carved_count += 1;
        let prefix = Prefix::slabbed(
            distance + PREFIX,
            size - PREFIX,
            header.class,
            header.allocator,
            header.generation,
        );
        // SAFETY: inside the slab. A block that is in the slab and not on its stack was never
        // carved, so `carved` was below `capacity`.
        let start = unsafe { slab.0.cast::<u8>().add(distance) }.cast::<Prefix>();
        // SAFETY: the first bytes of an unowned block, aligned as the slab is.
        unsafe { start.write(prefix) };
        // SAFETY: behind its prefix, inside the slab: no class is smaller than both.
        let block = unsafe { start.add(1) }.cast();
        // SAFETY: just carved, with its prefix.
        Some(unsafe { FreeBlock::new(block) })
    }

    /// Puts a block back and returns its slab.
    fn push(&mut self, block: FreeBlock) -> Handle {
        let lead = block.prefix().slab_lead();
        // SAFETY: the distance at which the block was carved.
        let slab = Handle(unsafe { block.block().sub(lead) }.cast());
        let header = self.at(slab);
        header.free.push(block);
        header.home += 1;
        slab
    }

    fn list(&mut self, slab: Handle) {
        let class = usize::from(self.at(slab).class);
        let next = self.lists[class].replace(slab);
        let header = self.at(slab);
        (header.previous, header.next, header.is_listed) = (None, next, true);
        if let Some(next) = next {
            self.at(next).previous = Some(slab);
        }
    }

    fn unlist(&mut self, slab: Handle) {
        let header = self.at(slab);
        header.is_listed = false;
        let (class, previous, next) = (header.class, header.previous, header.next);
        match previous {
            None => self.lists[usize::from(class)] = next,
            Some(previous) => self.at(previous).next = next,
        }
        if let Some(next) = next {
            self.at(next).previous = previous;
        }
    }

    /// Whether the slab is the only one in its list.
    fn is_last(&mut self, slab: Handle) -> bool {
        let header = self.at(slab);
        header.is_listed && header.previous.is_none() && header.next.is_none()
    }

    /// Takes a slab that has all of its blocks out of its list.
    fn remove(&mut self, slab: Handle, empty: &mut Empty) {
        if self.at(slab).is_listed {
            self.unlist(slab);
        }
        self.slabs -= 1;
        self.at(slab).next = empty.0.replace(slab);
    }

    /// Empties the lists when an installation ends. Slabs that still lack blocks are freed when
    /// their last block returns.
    fn forget_lists(&mut self) -> Empty {
        let mut empty = Empty(None);
        for class in 1..=CLASSES {
            while let Some(slab) = self.lists[class] {
                self.unlist(slab);
                let &mut Slab { home, capacity, .. } = self.at(slab);
                if home == capacity {
                    self.remove(slab, &mut empty);
                }
            }
        }
        empty
    }
}

/// A chain of unused slabs: each has all of its blocks, and no list holds it.
struct Empty(Option<Handle>);

impl Empty {
    /// Frees the slabs, without the lock: the allocator may be slow, and may call any function.
    fn free(&mut self) {
        while let Some(slab) = self.0 {
            // SAFETY: this value owns the slab and does not use it afterwards.
            let Slab { base, allocator, next, .. } = unsafe { slab.0.read() };
            self.0 = next;
            // SAFETY: the base that this allocator returned, freed once.
            unsafe { super::installed::free(allocator, base) };
        }
    }
}

/// Makes a slab that has all of its blocks and is in no list.
fn make(class: u8, allocator: u8, generation: u32) -> Option<Handle> {
    let functions = allocator::installed(allocator)?;
    let malloc = functions.malloc?;
    // SAFETY: the allocator's own function with its own opaque pointer.
    let base = NonNull::new(unsafe { malloc(SLAB, functions.opaque) }.cast::<u8>())?;
    let shift = base.addr().get().wrapping_neg() & (ALIGN - 1);
    let capacity = ((SLAB - shift - HEAD) / class_size(class)) as u32;
    // SAFETY: inside the slab.
    let slab = unsafe { base.add(shift) }.cast::<Slab>();
    let header = Slab {
        base,
        capacity,
        generation,
        class,
        allocator,
        is_listed: false,
        home: capacity,
        carved_count: 0,
        free: Stack::new(),
        previous: None,
        next: None,
    };
    // SAFETY: aligned room at the start of the slab.
    unsafe { slab.write(header) };
    Some(Handle(slab))
}
