//! The small blocks of an installed allocator that a thread keeps for its next ones (`block/slab.rs` carves them).
//!
//! Beside the cache of the heap's blocks, not in it: that one is never touched by another thread and pays nothing for that; these
//! must go back when the allocator is given up, whatever their threads are doing. Never freed, so that whoever gives it up may look at
//! all of them; a later thread goes on with what an ended one left.

use alloc::alloc::alloc;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::cache::Node;
use super::{CLASSES, barrier, class_size};
use crate::turn::Turn;

/// Most bytes that a shelf may hold back.
const ROOM: usize = 256 * 1024;
/// Bytes that are given back at a time.
const PART: usize = 16 * 1024;

/// What one thread keeps. Everything but the atomics belongs to whoever has the turn.
pub(crate) struct Shelf {
    turn: Turn,
    /// Which installation the blocks are of.
    generation: Cell<u32>,
    /// How many more bytes it may hold.
    room: Cell<usize>,
    /// The class that gives back next.
    next_class: Cell<usize>,
    /// The blocks of each class; none of class 0.
    lists: [Cell<*mut Node>; CLASSES + 1],
    /// How many blocks lie here.
    blocks: AtomicUsize,
    taken: AtomicBool,
    next: *const Shelf,
}

// SAFETY: cells are touched only by who has the turn: the thread that has claimed the shelf, or the one that closed it out.
// `next` is written before the shelf is published.
unsafe impl Sync for Shelf {}

/// All shelves, newest first; only ever grows.
static SHELVES: AtomicPtr<Shelf> = AtomicPtr::new(ptr::null_mut());
/// Whoever closes others out.
static CLOSING: spin::Mutex<()> = spin::Mutex::new(());

/// Blocks that hang together; the caller's to give back.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) first: *mut Node,
    pub(crate) count: usize,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self { first: ptr::null_mut(), count: 0 };

    pub(crate) fn push(&mut self, node: NonNull<Node>) {
        // SAFETY: the block holds a node, and belongs to whoever builds the chain.
        unsafe { (*node.as_ptr()).next = self.first };
        self.first = node.as_ptr();
        self.count += 1;
    }

    fn append(&mut self, mut other: Self) {
        while let Some(node) = other.pop() {
            self.push(node);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<NonNull<Node>> {
        let node = NonNull::new(self.first)?;
        // SAFETY: a block of the chain is a node.
        self.first = unsafe { (*node.as_ptr()).next };
        self.count -= 1;
        Some(node)
    }
}

impl Shelf {
    /// A shelf for the calling thread alone, until it gives it up; `None` without memory.
    pub(super) fn claim() -> Option<&'static Self> {
        if let Some(left) = all().find(|shelf| !shelf.taken.swap(true, Ordering::Acquire)) {
            return Some(left);
        }
        // SAFETY: the layout is not empty.
        let new = NonNull::new(unsafe { alloc(Layout::new::<Self>()) })?.cast::<Self>();
        let shelf = Self {
            turn: Turn::new(),
            generation: Cell::new(0),
            room: Cell::new(ROOM),
            next_class: Cell::new(0),
            lists: [const { Cell::new(ptr::null_mut()) }; CLASSES + 1],
            blocks: AtomicUsize::new(0),
            taken: AtomicBool::new(true),
            next: ptr::null(),
        };
        // SAFETY: fresh memory of that layout.
        unsafe { new.write(shelf) };
        let mut head = SHELVES.load(Ordering::Acquire);
        loop {
            // SAFETY: not published yet.
            unsafe { (*new.as_ptr()).next = head };
            match SHELVES.compare_exchange(head, new.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: initialised above, never freed.
                Ok(_) => return Some(unsafe { new.as_ref() }),
                Err(now) => head = now,
            }
        }
    }

    /// Leaves the shelf to a later thread, and what lies on it to the caller.
    pub(super) fn give_up(&self) -> Chain {
        let left = self.clear();
        self.taken.store(false, Ordering::Release);
        left
    }

    /// A block of `class` and of this installation.
    #[inline]
    pub(crate) fn take(&self, class: u8, generation: u32) -> Option<NonNull<Node>> {
        if !self.turn.enter() {
            return None;
        }
        let node = if self.generation.get() == generation { self.pop(class) } else { None };
        self.turn.leave();
        node
    }

    /// Keeps a block of `class`; what the caller is to give back for it.
    #[inline]
    pub(crate) fn put(&self, class: u8, node: NonNull<Node>, generation: u32) -> Chain {
        let mut back = Chain::EMPTY;
        if !self.turn.enter() {
            back.push(node);
            return back;
        }
        if self.generation.get() != generation {
            back = self.empty();
            self.generation.set(generation);
        }
        if self.room.get() < class_size(class) {
            self.make_room(&mut back);
        }
        self.push(class, node);
        self.turn.leave();
        back
    }

    /// [`put`](Self::put) of several.
    pub(crate) fn put_all(&self, class: u8, mut chain: Chain, generation: u32) -> Chain {
        let mut back = Chain::EMPTY;
        while let Some(node) = chain.pop() {
            back.append(self.put(class, node, generation));
        }
        back
    }

    /// Takes everything away; the owner's to call. Nothing while somebody else does so.
    pub(super) fn clear(&self) -> Chain {
        if !self.turn.enter() {
            return Chain::EMPTY;
        }
        let all = self.empty();
        self.turn.leave();
        all
    }

    #[inline(always)]
    fn pop(&self, class: u8) -> Option<NonNull<Node>> {
        let list = self.lists.get(usize::from(class))?;
        let node = NonNull::new(list.get())?;
        // SAFETY: a block on the shelf is a node.
        list.set(unsafe { (*node.as_ptr()).next });
        self.room.set(self.room.get() + class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        Some(node)
    }

    #[inline(always)]
    fn push(&self, class: u8, node: NonNull<Node>) {
        let Some(list) = self.lists.get(usize::from(class)) else { return };
        // SAFETY: the block holds a node, and belongs to the shelf.
        unsafe { (*node.as_ptr()).next = list.get() };
        list.set(node.as_ptr());
        self.room.set(self.room.get() - class_size(class));
        self.blocks.store(self.blocks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[cold]
    fn make_room(&self, back: &mut Chain) {
        while self.room.get() < PART {
            let class = self.next_class.get() % CLASSES + 1;
            match self.pop(class as u8) {
                Some(node) => back.push(node),
                None => self.next_class.set(class),
            }
        }
    }

    #[cold]
    fn empty(&self) -> Chain {
        let mut all = Chain::EMPTY;
        for class in (1..).take(CLASSES) {
            while let Some(node) = self.pop(class) {
                all.push(node);
            }
        }
        all
    }
}

fn all() -> impl Iterator<Item = &'static Shelf> {
    let mut next = SHELVES.load(Ordering::Acquire).cast_const();
    core::iter::from_fn(move || {
        // SAFETY: shelves are never freed; the list was published by the release in `claim`.
        let shelf = unsafe { next.as_ref() }?;
        next = shelf.next;
        Some(shelf)
    })
}

/// How many blocks lie on all shelves.
pub(crate) fn shelved() -> usize {
    all().map(|shelf| shelf.blocks.load(Ordering::Relaxed)).sum()
}

/// Takes from all threads what they keep: the caller's to give back. Where the system has no barrier for that, and from a thread
/// that is held up just then, nothing: those give back themselves, with their next block or at their end.
pub(crate) fn clear_all() -> Chain {
    /// Looks at a thread that is at its shelf, which takes it some instructions.
    const LOOKS: usize = 1000;
    let mut taken = Chain::EMPTY;
    // Whoever has it is about to take the same.
    let Some(_guard) = CLOSING.try_lock() else { return taken };
    all().for_each(|shelf| shelf.turn.close());
    let ordered = barrier::in_all_threads();
    for shelf in all() {
        let mut looks = 0;
        while ordered && !shelf.turn.is_idle() && looks < LOOKS {
            looks += 1;
            std::thread::yield_now();
        }
        if ordered && shelf.turn.is_idle() {
            taken.append(shelf.empty());
        }
        shelf.turn.open();
    }
    taken
}
