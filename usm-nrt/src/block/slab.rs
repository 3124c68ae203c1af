//! Small blocks of an installed allocator that asked for it ([`crate::set_kept_allocator`]): carved out of slabs of 64 KiB, and
//! kept by the threads that free them (`local/shelf.rs`).
//!
//! ```text
//! slab: | Slab | Prefix, 16 bytes | block | Prefix | block | ...
//! ```
//! A block's prefix says how far it is from its slab and of which installation it is. Blocks that no thread keeps hang in their
//! slab; a slab that has all of its blocks goes back to the allocator, unless it is the last of its class and still in use.

use core::ptr::{self, NonNull};

use spin::Mutex;

use super::class::class_for;
use super::{PREFIX, Prefix, prefix_of};
use crate::allocator;
use crate::local::{self, CLASSES, Chain, Node, class_size};
use crate::system::{self, Switches};

/// Bytes of a slab, asked of the allocator: with what a source puts before its blocks no more than 64 KiB.
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
    base: *mut u8,
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
    free: *mut Node,
    previous: *mut Slab,
    next: *mut Slab,
}

const HEAD: usize = size_of::<Slab>();
const _: () = assert!(HEAD % ALIGN == 0 && SLAB < (1 << Prefix::SLAB_LEAD_BITS));

pub(crate) struct Central {
    /// Counts installations; this is that of the slabs in the lists.
    generation: u32,
    /// Slabs that have blocks, of each class.
    lists: [*mut Slab; CLASSES + 1],
    /// Slabs that there are.
    slabs: usize,
    /// Blocks that are not in their slabs.
    out: usize,
}

// SAFETY: slabs belong to whoever has the lock.
unsafe impl Send for Central {}

pub(crate) static CENTRAL: Mutex<Central> =
    Mutex::new(Central { generation: 0, lists: [ptr::null_mut(); CLASSES + 1], slabs: 0, out: 0 });

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

/// A small block; `None` when it is not one, or nothing is kept, or there is no memory: then the allocator itself may have some.
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
    // SAFETY: behind the prefix.
    kept.map(|kept| unsafe { kept.cast::<u8>().add(PREFIX) })
}

/// Frees a block of a slab.
///
/// # Safety
/// As for [`super::free`]; the prefix is the block's and says a class and an allocator.
pub(super) unsafe fn free(block: NonNull<u8>, prefix: Prefix, switches: Switches) {
    // SAFETY: the prefix lies before every block.
    let kept = unsafe { block.sub(PREFIX) }.cast::<Node>();
    if switches.is_slabbed() {
        if let Some(shelf) = local::shelf() {
            let back = shelf.put(prefix.class(), kept, prefix.generation());
            if back.count != 0 {
                give_back(back);
            }
            return;
        }
    }
    let mut back = Chain::EMPTY;
    back.push(kept);
    give_back(back);
}

/// Some blocks of a class out of a slab, and the installation that they are of. `None` when `allocator` is not the installed one any more: a slab
/// of it would be taken for one of the next.
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
    let mut slab = central.lists[usize::from(class)];
    if slab.is_null() {
        // Without the lock: the allocator may take long, and call whom it likes.
        drop(central);
        slab = make(class, allocator, generation)?.as_ptr();
        central = CENTRAL.lock();
        central.slabs += 1;
        if central.generation == generation {
            central.list(slab);
        }
    }
    let mut taken = Chain::EMPTY;
    while taken.count < wanted {
        // SAFETY: a slab that has blocks, under the lock.
        let Some(node) = (unsafe { pop(slab) }) else { break };
        taken.push(node);
    }
    central.out += taken.count;
    // SAFETY: a slab of the list, or the one made above.
    if unsafe { (*slab).home == 0 && (*slab).listed } {
        central.unlist(slab);
    }
    Some((taken, generation))
}

/// Blocks go home; slabs that have all of theirs go back to their allocator.
#[cold]
#[inline(never)]
pub(crate) fn give_back(mut blocks: Chain) {
    if blocks.count == 0 {
        return;
    }
    let mut empty = Empty(ptr::null_mut());
    let mut central = CENTRAL.lock();
    central.out -= blocks.count;
    while let Some(node) = blocks.pop() {
        // SAFETY: a block of a slab, which is there while one of its blocks is not at home.
        let slab = unsafe { push(node) };
        // SAFETY: as above, under the lock.
        let (current, listed) = unsafe { ((*slab).generation == central.generation, (*slab).listed) };
        if current && !listed {
            central.list(slab);
        }
        // SAFETY: as above.
        let is_full = unsafe { (*slab).home == (*slab).capacity };
        if is_full && !(current && central.is_last(slab)) {
            central.remove(slab, &mut empty);
        }
    }
    drop(central);
    empty.free();
}

impl Central {
    fn list(&mut self, slab: *mut Slab) {
        // SAFETY: a slab that nobody has listed, under the lock.
        let list = &mut self.lists[usize::from(unsafe { (*slab).class })];
        // SAFETY: as above.
        unsafe { ((*slab).previous, (*slab).next, (*slab).listed) = (ptr::null_mut(), *list, true) };
        if !list.is_null() {
            // SAFETY: a slab of the list.
            unsafe { (**list).previous = slab };
        }
        *list = slab;
    }

    fn unlist(&mut self, slab: *mut Slab) {
        // SAFETY: a slab of the list, under the lock.
        let (class, previous, next) = unsafe { ((*slab).class, (*slab).previous, (*slab).next) };
        if previous.is_null() {
            self.lists[usize::from(class)] = next;
        } else {
            // SAFETY: its neighbour.
            unsafe { (*previous).next = next };
        }
        if !next.is_null() {
            // SAFETY: its neighbour.
            unsafe { (*next).previous = previous };
        }
        // SAFETY: as above.
        unsafe { (*slab).listed = false };
    }

    /// Whether the list has no other.
    fn is_last(&self, slab: *mut Slab) -> bool {
        // SAFETY: a slab that is there, under the lock.
        unsafe { (*slab).listed && (*slab).previous.is_null() && (*slab).next.is_null() }
    }

    fn remove(&mut self, slab: *mut Slab, empty: &mut Empty) {
        // SAFETY: a slab that is there, under the lock.
        if unsafe { (*slab).listed } {
            self.unlist(slab);
        }
        self.slabs -= 1;
        // SAFETY: all of its blocks are here, and no list knows it: it is ours.
        unsafe { (*slab).next = empty.0 };
        empty.0 = slab;
    }

    /// Slabs of an installation that has ended hang nowhere; they go when their last block comes home.
    fn forget_lists(&mut self) -> Empty {
        let mut empty = Empty(ptr::null_mut());
        for class in 1..=CLASSES {
            while let Some(slab) = NonNull::new(self.lists[class]) {
                let slab = slab.as_ptr();
                self.unlist(slab);
                // SAFETY: a slab that is there, under the lock.
                if unsafe { (*slab).home == (*slab).capacity } {
                    self.remove(slab, &mut empty);
                }
            }
        }
        empty
    }
}

/// Slabs that nobody uses, hanging together.
struct Empty(*mut Slab);

impl Empty {
    /// Back to their allocator: without the lock, because it may take long, and call whom it likes.
    fn free(&mut self) {
        while let Some(slab) = NonNull::new(self.0) {
            // SAFETY: ours alone.
            let (base, next, number) =
                unsafe { ((*slab.as_ptr()).base, (*slab.as_ptr()).next, (*slab.as_ptr()).allocator) };
            self.0 = next;
            if let Some(base) = NonNull::new(base) {
                // SAFETY: what that allocator gave for the slab, once.
                unsafe { super::installed::free(number, base) };
            }
        }
    }
}

/// A slab that has all of its blocks and hangs nowhere.
fn make(class: u8, allocator: u8, generation: u32) -> Option<NonNull<Slab>> {
    let functions = allocator::installed(allocator)?;
    // SAFETY: the allocator's own function with its own opaque pointer.
    let base = NonNull::new(unsafe { functions.malloc?(SLAB, functions.opaque) }.cast::<u8>())?;
    let shift = base.addr().get().wrapping_neg() & (ALIGN - 1);
    let capacity = ((SLAB - shift - HEAD) / class_size(class)) as u32;
    // SAFETY: inside the slab.
    let slab = unsafe { base.add(shift) }.cast::<Slab>();
    let header = Slab {
        base: base.as_ptr(),
        capacity,
        generation,
        class,
        allocator,
        listed: false,
        home: capacity,
        carved: 0,
        free: ptr::null_mut(),
        previous: ptr::null_mut(),
        next: ptr::null_mut(),
    };
    // SAFETY: aligned room at the begin of the slab.
    unsafe { slab.write(header) };
    Some(slab)
}

/// # Safety
/// `slab` is there, and the lock is held.
unsafe fn pop(slab: *mut Slab) -> Option<NonNull<Node>> {
    // SAFETY: as the caller promises.
    let header = unsafe { &mut *slab };
    header.home = header.home.checked_sub(1)?;
    if let Some(node) = NonNull::new(header.free) {
        // SAFETY: a free block is a node.
        header.free = unsafe { (*node.as_ptr()).next };
        return Some(node);
    }
    let size = class_size(header.class);
    let distance = HEAD + header.carved as usize * size;
    header.carved += 1;
    let prefix =
        Prefix::slabbed(distance + PREFIX, size - PREFIX, header.class, header.allocator, header.generation);
    // SAFETY: `carved < capacity`, because blocks that are at home and not free were never carved.
    let kept = unsafe { NonNull::new(slab)?.cast::<u8>().add(distance) };
    // SAFETY: the first bytes of a block that nobody has, aligned like the slab.
    unsafe { kept.cast::<Prefix>().write(prefix) };
    Some(kept.cast())
}

/// The block's slab, which has it back.
///
/// # Safety
/// `node` is a block of a slab that is not at home, and the lock is held.
unsafe fn push(node: NonNull<Node>) -> *mut Slab {
    // SAFETY: behind the prefix.
    let block = unsafe { node.cast::<u8>().add(PREFIX) };
    // SAFETY: keeping a block leaves its prefix alone.
    let lead = unsafe { prefix_of(block) }.slab_lead();
    // SAFETY: the distance that it was carved at.
    let slab = unsafe { block.sub(lead) }.cast::<Slab>().as_ptr();
    // SAFETY: as the caller promises.
    let header = unsafe { &mut *slab };
    // SAFETY: the block holds a node, and belongs to the slab now.
    unsafe { (*node.as_ptr()).next = header.free };
    header.free = node.as_ptr();
    header.home += 1;
    slab
}
