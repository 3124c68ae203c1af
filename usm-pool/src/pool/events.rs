//! What a thread did with blocks of a pool, noted for the history of the context.
//!
//! A thread notes events in its own list, without a lock. The list is emptied into the history with
//! the history's lock held, by whoever reads the history, or by the thread itself once it is full
//! or the thread serves another pool.

use alloc::boxed::Box;
use core::array;

use usm_core::MemoryType;
use usm_core::history::Operation;
use usm_core::segment::Event;

use super::table::Num64;
use crate::sync::atomics::{AtomicUsize, Ordering, fence};

/// Events of a list.
const LENGTH: usize = 64;

/// What [`Event`] says, in words that a reader may see while nobody writes them.
struct Noted {
    number: Num64,
    /// Twice the time, and 1 more for a free.
    time: Num64,
    address: Num64,
    bytes: Num64,
}

impl Noted {
    fn new() -> Self {
        Self { number: Num64::new(0), time: Num64::new(0), address: Num64::new(0), bytes: Num64::new(0) }
    }

    fn event(&self, memory_type: MemoryType) -> Event {
        let time = self.time.get();
        let operation = if time & 1 == 0 { Operation::Allocate } else { Operation::Free };
        let stamp = (self.number.get() as usize, time >> 1);
        Event::new(operation, memory_type, stamp, (self.address.get() as usize, self.bytes.get() as usize))
    }
}

/// The list of one cache. Its thread adds, whoever holds the history's lock removes.
pub(super) struct Events {
    /// The number of the pool whose events these are; 0 of none. The thread sets it while it is 0,
    /// whoever holds the history's lock resets it.
    pool: Num64,
    /// Events ever noted, and ever taken.
    noted: AtomicUsize,
    taken: AtomicUsize,
    list: spin::Once<Box<[Noted; LENGTH]>>,
}

impl Events {
    pub(super) fn new() -> Self {
        let (noted, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { pool: Num64::new(0), noted, taken, list: spin::Once::new() }
    }

    /// Whether these are events of the pool.
    #[inline(always)]
    pub(super) fn are_of(&self, pool: u64) -> bool {
        self.pool.get() == pool
    }

    /// Whether the thread of the list can note an event of the pool now.
    #[inline(always)]
    pub(super) fn has_room(&self, pool: u64) -> bool {
        // The order: what was taken was read, and may be overwritten.
        let taken = self.taken.load(Ordering::Acquire);
        self.are_of(pool) && self.noted.load(Ordering::Relaxed).wrapping_sub(taken) < LENGTH
    }

    /// Makes the list the pool's, unless another pool's events are in it. Only the thread of the
    /// list calls this.
    #[cold]
    pub(super) fn open(&self, pool: u64) {
        if self.pool.get() == 0 {
            // What `end` took is taken for whoever takes next.
            fence(Ordering::Acquire);
            let _ = self.list.call_once(|| Box::new(array::from_fn(|_| Noted::new())));
            self.pool.set(pool);
        }
    }

    /// Adds an event, for which there is room. Only the thread of the list calls this.
    #[inline(always)]
    pub(super) fn note(&self, (number, time): (usize, u64), address: u64, bytes: u64, frees: bool) {
        let at = self.noted.load(Ordering::Relaxed);
        if let Some(list) = self.list.get() {
            let noted = &list[at % LENGTH];
            noted.number.set(number as u64);
            noted.time.set(time << 1 | u64::from(frees));
            noted.address.set(address);
            noted.bytes.set(bytes);
            self.noted.store(at.wrapping_add(1), Ordering::Release);
        }
    }

    /// Takes the events of a pool. The caller holds the lock of the history.
    pub(super) fn take(&self, pool: u64, memory_type: MemoryType, give: &mut dyn FnMut(&[Event])) {
        let Some(list) = self.list.get().filter(|_| self.are_of(pool)) else { return };
        let end = self.noted.load(Ordering::Acquire);
        let begin = self.taken.load(Ordering::Relaxed);
        // Those from the end on may be in the making, and are not passed on.
        let all: [Event; LENGTH] =
            array::from_fn(|at| list[begin.wrapping_add(at) % LENGTH].event(memory_type));
        give(&all[..end.wrapping_sub(begin).min(LENGTH)]);
        self.taken.store(end, Ordering::Release);
    }

    /// The same for the last time.
    pub(super) fn end(&self, pool: u64, memory_type: MemoryType, give: &mut dyn FnMut(&[Event])) {
        if self.are_of(pool) {
            self.take(pool, memory_type, give);
            fence(Ordering::Release);
            self.pool.set(0);
        }
    }
}
