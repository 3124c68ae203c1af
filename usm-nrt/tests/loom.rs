//! Models under all interleavings of the reference count, symbol slots, the threads' counters, and
//! taking another thread's blocks: `cargo xtask loom`.
#![cfg(loom)]

use core::ptr::NonNull;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use usm_core::per_thread::{Claim, Claims, Turn, take_all};
use usm_nrt::{Counters, Event, RefCount, Release, Slot, SlotTable};

fn place<T>(claim: Claim<T>) -> Option<NonNull<Claim<T>>> {
    Some(NonNull::from(Box::leak(Box::new(claim))))
}

/// The counters of all threads.
type Shards = Claims<Counters>;

/// A counted block: the last release reads all other threads' writes.
struct Block {
    count: RefCount,
    data: [UnsafeCell<u32>; 2],
    destroyed: UnsafeCell<u32>,
}

// SAFETY: the model checks the accesses.
unsafe impl Sync for Block {}
// SAFETY: as above.
unsafe impl Send for Block {}

impl Block {
    fn release(&self) {
        if self.count.release() == Release::Last {
            // SAFETY: loom fails the model if an access is not ordered before this.
            self.destroyed.with_mut(|destroyed| unsafe { *destroyed += 1 });
            for cell in &self.data {
                // SAFETY: as above.
                cell.with(|value| assert_eq!(unsafe { *value }, 1));
            }
        }
    }
}

#[test]
fn the_last_release_sees_everything_once() {
    loom::model(|| {
        let block = Arc::new(Block {
            count: RefCount::one(),
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
            destroyed: UnsafeCell::new(0),
        });
        assert!(block.count.acquire());
        let other = Arc::clone(&block);
        let thread = thread::spawn(move || {
            // SAFETY: each thread writes a cell of its own.
            other.data[1].with_mut(|value| unsafe { *value = 1 });
            other.release();
        });
        // SAFETY: each thread writes a cell of its own.
        block.data[0].with_mut(|value| unsafe { *value = 1 });
        block.release();
        thread.join().unwrap();
        // SAFETY: all threads have ended.
        block.destroyed.with(|destroyed| assert_eq!(unsafe { *destroyed }, 1));
        assert_eq!(block.count.get(), 0);
    });
}

#[test]
fn a_borrower_may_acquire_while_the_owner_releases() {
    loom::model(|| {
        let count = Arc::new(RefCount::one());
        assert!(count.acquire());
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || {
            assert!(other.acquire());
            let first = other.release();
            let second = other.release();
            assert_ne!(first, Release::Last);
            second == Release::Last
        });
        let ours = count.release() == Release::Last;
        assert!(thread.join().unwrap() != ours, "exactly one release is the last");
    });
}

#[test]
fn who_sees_a_symbol_sees_its_code() {
    loom::model(|| {
        let (abort, code) = (NonNull::<u8>::dangling().cast(), NonNull::<u64>::dangling().cast());
        let shared = Arc::new((Slot::new(abort), UnsafeCell::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // SAFETY: written before the symbol is published, read only after.
            other.1.with_mut(|code| unsafe { *code = 7 });
            other.0.publish(abort, code).unwrap();
        });
        if shared.0.get() == code {
            // SAFETY: loom fails the model if the write above is not ordered before this.
            shared.1.with(|code| assert_eq!(unsafe { *code }, 7));
        }
        thread.join().unwrap();
        assert_eq!(shared.0.publish(abort, abort), Err(code), "published once");
    });
}

#[test]
fn of_three_releases_one_is_the_last() {
    loom::model(|| {
        let count = Arc::new(RefCount::one());
        assert!(count.acquire() && count.acquire());
        let threads = [(); 2].map(|()| {
            let count = Arc::clone(&count);
            thread::spawn(move || count.release() == Release::Last)
        });
        let ours = count.release() == Release::Last;
        let last = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|last| *last).count();
        assert_eq!(last + usize::from(ours), 1);
        assert_eq!(count.get(), 0);
    });
}

/// Two compilers define the same function at the same time, and a third thread calls it.
#[test]
fn one_of_two_definitions_stays() {
    loom::model(|| {
        let address = |value: usize| NonNull::new(core::ptr::without_provenance_mut(value)).unwrap();
        let (abort, codes) = (address(1), [address(2), address(3)]);
        let table = Arc::new(SlotTable::new(abort));
        let resolving = Arc::clone(&table);
        let other = thread::spawn(move || resolving.resolve("f", codes[1]).is_ok());
        let calling = Arc::clone(&table);
        let caller = thread::spawn(move || {
            let slot = calling.slot("f").unwrap();
            let (first, second) = (slot.get(), slot.get());
            assert!(first == abort || first == second, "a definition does not change any more");
            core::ptr::from_ref(slot).addr()
        });
        let ours = table.resolve("f", codes[0]).is_ok();
        let theirs = other.join().unwrap();
        assert!(ours != theirs, "exactly one definition is accepted");
        assert_eq!(table.slot("f").unwrap().get(), codes[usize::from(theirs)]);
        assert!(table.is_resolved("f") && table.unresolved().next().is_none());
        assert_eq!(
            caller.join().unwrap(),
            core::ptr::from_ref(table.slot("f").unwrap()).addr(),
            "slots do not move"
        );
    });
}

/// A thread that counts once and ends.
fn live_for_one_count(shards: &Shards) {
    let shard = shards.claim(Counters::new, place).unwrap();
    shard.add_owned(Event::Alloc);
    shard.give_up();
}

fn counted(shards: &Shards) -> (usize, usize) {
    let (mut sum, mut sets) = ([0; 4], 0);
    for counters in shards.iter() {
        counters.add_to(&mut sum);
        sets += 1;
    }
    (sum[0], sets)
}

/// Threads begin and end. A thread that gets the counters of an ended one continues its counts, and
/// a concurrent reader never sees too much.
#[test]
fn no_count_is_lost_when_threads_come_and_go() {
    loom::model(|| {
        let shards = Arc::new(Shards::new());
        let threads = [(); 2].map(|()| {
            let shards = Arc::clone(&shards);
            thread::spawn(move || live_for_one_count(&shards))
        });
        let (early, sets) = counted(&shards);
        assert!(early <= 2 && sets <= 2);
        for thread in threads {
            thread.join().unwrap();
        }
        live_for_one_count(&shards);
        let (all, sets) = counted(&shards);
        assert_eq!(all, 3);
        assert!((1..=2).contains(&sets), "{sets} sets of counters for two threads at once");
    });
}

/// Counts are plain stores: two threads must never share a set of counters.
#[test]
fn threads_at_the_same_time_have_counters_of_their_own() {
    loom::model(|| {
        let shards = Arc::new(Shards::new());
        let first = shards.claim(Counters::new, place).unwrap();
        first.give_up();
        let claims = [(); 2].map(|()| {
            let shards = Arc::clone(&shards);
            thread::spawn(move || core::ptr::from_ref(shards.claim(Counters::new, place).unwrap()).addr())
        });
        let [one, two] = claims.map(|thread| thread.join().unwrap());
        assert_ne!(one, two);
        assert_eq!(counted(&shards), (0, 2), "and the set that lay there was taken");
    });
}

/// The kept blocks of a thread, and the turn on them.
struct Kept {
    turn: Turn,
    blocks: UnsafeCell<u32>,
}

// SAFETY: the model checks the accesses.
unsafe impl Sync for Kept {}
// SAFETY: as above.
unsafe impl Send for Kept {}

impl Kept {
    fn new() -> Self {
        Self { turn: Turn::new(), blocks: UnsafeCell::new(0) }
    }

    /// The owner keeps a block of installation 0; returns whether it was open.
    fn keep(&self, installation: &AtomicUsize) -> bool {
        if !self.turn.enter() {
            return false;
        }
        let current = installation.load(Ordering::Relaxed) == 0;
        // Blocks of the next installation reach this too; they are not counted.
        // SAFETY: loom fails the model if another thread accesses it.
        self.blocks.with_mut(|blocks| unsafe { *blocks += u32::from(current) });
        self.turn.leave();
        current
    }

    fn left(&self) -> u32 {
        // SAFETY: all threads have ended.
        self.blocks.with(|blocks| unsafe { *blocks })
    }
}

/// Another thread takes the blocks once. The barrier in all threads orders the owner; here each
/// side has its own fence. Returns from how many threads it took blocks, and their sum.
fn clear(shelves: &Claims<Kept>, installation: &AtomicUsize) -> (usize, u32) {
    installation.store(1, Ordering::Relaxed);
    let (mut count, mut taken) = (0, 0);
    let barrier = || {
        loom::sync::atomic::fence(Ordering::SeqCst);
        true
    };
    take_all(
        shelves,
        |_| true,
        |kept| &kept.turn,
        barrier,
        |kept| {
            count += 1;
            // SAFETY: loom fails the model if another thread accesses it.
            taken += kept.blocks.with_mut(|blocks| unsafe { core::mem::take(&mut *blocks) });
        },
    );
    (count, taken)
}

/// No two threads access the blocks at once, and none is lost. No block of an ended installation
/// reaches a cleared shelf.
#[test]
fn what_a_thread_keeps_is_taken_whole_or_not_at_all() {
    loom::model(|| {
        let all = Arc::new((Claims::new(), AtomicUsize::new(0)));
        let kept = all.0.claim(Kept::new, place).unwrap();
        let owner = {
            let all = Arc::clone(&all);
            thread::spawn(move || (0..2).filter(|_| kept.keep(&all.1)).count() as u32)
        };
        let (count, taken) = clear(&all.0, &all.1);
        let put = owner.join().unwrap();
        assert_eq!(taken + kept.left(), put);
        assert!(count == 0 || kept.left() == 0, "cleared, and kept on");
    });
}

/// A thread that begins meanwhile was not closed, so its blocks are left alone.
#[test]
fn what_a_thread_begins_to_keep_meanwhile_is_not_touched() {
    loom::model(|| {
        let all = Arc::new((Claims::new(), AtomicUsize::new(0)));
        let owner = {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let kept = all.0.claim(Kept::new, place).unwrap();
                (kept, u32::from(kept.keep(&all.1)))
            })
        };
        let (_, taken) = clear(&all.0, &all.1);
        let (kept, put) = owner.join().unwrap();
        assert_eq!(taken + kept.left(), put);
    });
}
