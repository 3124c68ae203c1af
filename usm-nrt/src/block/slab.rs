//! Small blocks of an installed allocator that asked for it ([`crate::set_kept_allocator`]): carved
//! out of slabs of 64 KiB, and kept by the threads that free them (`local/shelf.rs`).
//!
//! ```text
//! slab: | Slab | Prefix, 16 bytes | block | Prefix | block | ...
//! ```
//! A block's prefix says how far it is from its slab and of which installation it is. Blocks that
//! no thread keeps hang in their slab; a slab that has all of its blocks goes back to the
//! allocator, unless it is the last of its class and still in use.

use core::ptr::NonNull;

use spin::Mutex;

use super::class::class_for;
use super::kept::{Chain, Kept, Stack};
use super::{PREFIX, Prefix};
use crate::allocator;
use crate::local::{self, CLASSES, class_size};
use crate::system::{self, Switches};

/// Bytes of a slab, asked of the allocator: with what a source puts before its blocks no more than
/// 64 KiB.
const SLAB: usize = 64 * 1024 - 128;
/// Alignment of a slab and of what lies in it.
const ALIGN: usize = 32;
/// Bytes that a thread gets at a time.
const BATCH: usize = 8 * 1024;
/// Largest data of a block, in bytes.
const LARGEST: usize = 1024;

/// At the begin of a slab. What changes is guarded by [`CENTRAL`].
#[repr(C, align(32))]
struct Slab {
    /// What the allocator gave.
    base: NonNull<u8>,
    capacity: u32,
    generation: u32,
    class: u8,
    allocator: u8,
    /// Whether it hangs in the list of its class.
    listed: bool,
    /// Blocks that are here.
    home: u32,
    /// Blocks that were carved so far.
    carved: u32,
    free: Stack,
    previous: Option<Handle>,
    next: Option<Handle>,
}

/// A slab. It is there as long as a list has it or one of its blocks is out; [`Empty`] ends it,
/// after both.
#[derive(Clone, Copy)]
struct Handle(NonNull<Slab>);

const HEAD: usize = size_of::<Slab>();
const _: () = assert!(HEAD % ALIGN == 0 && SLAB < (1 << Prefix::SLAB_LEAD_BITS));

pub(crate) struct Central {
    /// Counts installations; this is that of the slabs in the lists.
    generation: u32,
    /// Slabs that have blocks, of each class.
    lists: [Option<Handle>; CLASSES + 1],
    /// Slabs that there are.
    slabs: usize,
    /// Blocks that are not in their slabs.
    out: usize,
}

// SAFETY: slabs belong to whoever has the lock.
unsafe impl Send for Central {}

pub(crate) static CENTRAL: Mutex<Central> =
    Mutex::new(Central { generation: 0, lists: [None; CLASSES + 1], slabs: 0, out: 0 });

/// Slabs, and blocks of them that are alive: what the allocator behind them knows nothing of.
pub(crate) fn counts() -> (usize, usize) {
    let central = CENTRAL.lock();
    let (slabs, out) = (central.slabs, central.out);
    drop(central);
    (slabs, out.saturating_sub(local::shelved()))
}

/// Another allocator, or none: what threads keep goes back, and slabs that have all their blocks.
pub(crate) fn begin_generation() {
    let mut central = CENTRAL.lock();
    // Never 0, which a fresh shelf has.
    let generation = central.generation % Prefix::MAX_GENERATION + 1;
    central.generation = generation;
    local::set_generation(generation);
    let mut empty = central.forget_lists();
    drop(central);
    empty.free();
    give_back(local::clear_all_shelves());
}

/// A small block; `None` when it is not one, or nothing is kept, or there is no memory: then the
/// allocator itself may have some.
#[inline]
pub(super) fn allocate(head: usize, size: usize, align: usize, switches: Switches) -> Option<NonNull<u8>> {
    if !switches.is_slabbed() || size > LARGEST {
        return None;
    }
    let class = class_for(head, size, align)?;
    let shelf = local::shelf()?;
    let kept = shelf.take(class).or_else(|| {
        let (mut fresh, generation) = take_home(class, switches.allocator())?;
        let first = fresh.pop();
        give_back(shelf.put_all(class, fresh, generation));
        first
    });
    kept.map(Kept::into_block)
}

/// Frees a block of a slab.
///
/// # Safety
/// As for [`super::free`]; the prefix is the block's and says a class and an allocator.
pub(super) unsafe fn free(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    // SAFETY: as the caller promises.
    let kept = unsafe { Kept::new(block) };
    if switches.is_slabbed() {
        if let Some(shelf) = local::shelf() {
            let back = shelf.put(prefix.class(), kept, prefix.generation());
            if back.len() != 0 {
                give_back(back);
            }
            return;
        }
    }
    let mut back = Chain::new();
    back.push(kept);
    give_back(back);
}

/// Some blocks of a class out of a slab, and the installation that they are of. `None` when
/// `allocator` is not the installed one any more: a slab of it would be taken for one of the next.
#[cold]
#[inline(never)]
fn take_home(class: u8, allocator: u8) -> Option<(Chain, u32)> {
    let wanted = (BATCH / class_size(class)).max(1);
    let mut central = CENTRAL.lock();
    let generation = central.generation;
    // It is exchanged before the installation begins, which takes the lock.
    if system::switches().allocator() != allocator {
        return None;
    }
    let listed = central.lists[usize::from(class)];
    let slab = match listed {
        Some(slab) => slab,
        None => {
            // Without the lock: the allocator may take long, and call whom it likes.
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
    let mut taken = Chain::new();
    while taken.len() < wanted {
        let Some(kept) = central.pop(slab) else { break };
        taken.push(kept);
    }
    central.out += taken.len();
    let &mut Slab { home, listed, .. } = central.at(slab);
    if home == 0 && listed {
        central.unlist(slab);
    }
    Some((taken, generation))
}

/// Blocks go home; slabs that have all of theirs go back to their allocator.
#[cold]
#[inline(never)]
pub(crate) fn give_back(mut blocks: Chain) {
    if blocks.len() == 0 {
        return;
    }
    let mut empty = Empty(None);
    let mut central = CENTRAL.lock();
    central.out -= blocks.len();
    while let Some(kept) = blocks.pop() {
        let slab = central.push(kept);
        let &mut Slab { generation, listed, home, capacity, .. } = central.at(slab);
        let (current, is_full) = (generation == central.generation, home == capacity);
        if current && !listed {
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
    /// What changes in a slab belongs to who has the lock.
    fn at(&mut self, slab: Handle) -> &mut Slab {
        // SAFETY: it is there while somebody has its handle; reached under the lock alone, and
        // through one reference at a time, because that borrows all slabs.
        unsafe { &mut *slab.0.as_ptr() }
    }

    /// A block of the slab, if it has one.
    fn pop(&mut self, slab: Handle) -> Option<Kept> {
        let header = self.at(slab);
        header.home = header.home.checked_sub(1)?;
        if let Some(kept) = header.free.pop() {
            return Some(kept);
        }
        let size = class_size(header.class);
        let distance = HEAD + header.carved as usize * size;
        header.carved += 1;
        let prefix = Prefix::slabbed(
            distance + PREFIX,
            size - PREFIX,
            header.class,
            header.allocator,
            header.generation,
        );
        // SAFETY: inside the slab: a block that is at home and not free was never carved, so
        // `carved` was below `capacity`.
        let start = unsafe { slab.0.cast::<u8>().add(distance) }.cast::<Prefix>();
        // SAFETY: the first bytes of a block that nobody has, aligned like the slab.
        unsafe { start.write(prefix) };
        // SAFETY: behind its prefix, inside the slab: no class is smaller than both.
        let block = unsafe { start.add(1) }.cast();
        // SAFETY: just carved, with its prefix.
        Some(unsafe { Kept::new(block) })
    }

    /// The block's slab, which has it back.
    fn push(&mut self, kept: Kept) -> Handle {
        let lead = kept.prefix().slab_lead();
        // SAFETY: the distance that it was carved at.
        let slab = Handle(unsafe { kept.block().sub(lead) }.cast());
        let header = self.at(slab);
        header.free.push(kept);
        header.home += 1;
        slab
    }

    fn list(&mut self, slab: Handle) {
        let class = usize::from(self.at(slab).class);
        let next = self.lists[class].replace(slab);
        let header = self.at(slab);
        (header.previous, header.next, header.listed) = (None, next, true);
        if let Some(next) = next {
            self.at(next).previous = Some(slab);
        }
    }

    fn unlist(&mut self, slab: Handle) {
        let header = self.at(slab);
        header.listed = false;
        let (class, previous, next) = (header.class, header.previous, header.next);
        match previous {
            None => self.lists[usize::from(class)] = next,
            Some(previous) => self.at(previous).next = next,
        }
        if let Some(next) = next {
            self.at(next).previous = previous;
        }
    }

    /// Whether the list has no other.
    fn is_last(&mut self, slab: Handle) -> bool {
        let header = self.at(slab);
        header.listed && header.previous.is_none() && header.next.is_none()
    }

    /// A slab that has all of its blocks.
    fn remove(&mut self, slab: Handle, empty: &mut Empty) {
        if self.at(slab).listed {
            self.unlist(slab);
        }
        self.slabs -= 1;
        self.at(slab).next = empty.0.replace(slab);
    }

    /// Slabs of an installation that has ended hang nowhere; they go when their last block comes
    /// home.
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

/// Slabs that nobody uses, hanging together: all of their blocks are in them, and no list knows
/// them.
struct Empty(Option<Handle>);

impl Empty {
    /// Back to their allocator: without the lock, because it may take long, and call whom it likes.
    fn free(&mut self) {
        while let Some(slab) = self.0 {
            // SAFETY: ours alone, and not used after this.
            let Slab { base, allocator, next, .. } = unsafe { slab.0.read() };
            self.0 = next;
            // SAFETY: what that allocator gave for the slab, once.
            unsafe { super::installed::free(allocator, base) };
        }
    }
}

/// A slab that has all of its blocks and hangs nowhere.
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
        listed: false,
        home: capacity,
        carved: 0,
        free: Stack::new(),
        previous: None,
        next: None,
    };
    // SAFETY: aligned room at the begin of the slab.
    unsafe { slab.write(header) };
    Some(Handle(slab))
}
