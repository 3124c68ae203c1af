//! An allocator whose small blocks are carved out of slabs and kept by threads. The whole program
//! has one allocator, so the tests of this file take turns.
#![cfg(all(feature = "std", not(miri)))]
#![allow(clippy::std_instead_of_alloc, reason = "tests have std")]

extern crate alloc;

use alloc::alloc::{alloc, dealloc};
use alloc::sync::Arc;
use core::alloc::Layout;
use core::ffi::c_void;
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;
use usm_core::AllocKind;
use usm_core::backend::host::HostHeap;
use usm_nrt::{
    Error, ExternalAllocator, KeptCounts, MemRef, Request, SourceAllocator, drain_thread_cache, kept_counts,
    live_blocks, set_allocator, set_kept_allocator, set_thread_cache, set_tracking,
};

/// Restores the global allocator at the end of a test, also of a failed one.
struct Turn(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Drop for Turn {
    fn drop(&mut self) {
        set_tracking(false);
        uninstall();
    }
}

fn turn() -> Turn {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = Turn(TURN.lock().unwrap_or_else(PoisonError::into_inner));
    // Also under a sanitizer: kept blocks are not accessed after their release in these tests.
    set_thread_cache(true);
    turn
}

/// An allocator that counts its calls.
struct CountingAllocator {
    live: AtomicIsize,
    asked: AtomicUsize,
    /// Distance of each address from the allocator's own, below 16.
    shift: AtomicUsize,
    /// Whether requests are refused from now on.
    refuses: core::sync::atomic::AtomicBool,
}

impl CountingAllocator {
    const fn new() -> Self {
        Self {
            live: AtomicIsize::new(0),
            asked: AtomicUsize::new(0),
            shift: AtomicUsize::new(0),
            refuses: core::sync::atomic::AtomicBool::new(false),
        }
    }

    fn live(&self) -> isize {
        self.live.load(Ordering::SeqCst)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn functions(&'static self) -> ExternalAllocator {
        let opaque = core::ptr::from_ref(self).cast_mut().cast();
        ExternalAllocator { malloc: Some(malloc), realloc: None, free: Some(free), opaque }
    }
}

const ROOM: usize = 32;

unsafe extern "C" fn malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: `opaque` is a test's static allocator.
    let allocator = unsafe { &*opaque.cast::<CountingAllocator>() };
    let Ok(layout) = Layout::from_size_align(size.saturating_add(ROOM), 16) else {
        return core::ptr::null_mut();
    };
    if allocator.refuses.load(Ordering::SeqCst) {
        return core::ptr::null_mut();
    }
    allocator.live.fetch_add(1, Ordering::SeqCst);
    allocator.asked.fetch_add(1, Ordering::SeqCst);
    let shift = allocator.shift.load(Ordering::Relaxed);
    // SAFETY: not empty.
    let base = unsafe { alloc(layout) };
    // SAFETY: inside the block, which has room for the word.
    let block = unsafe { base.add(16 + shift) };
    // SAFETY: as above.
    unsafe { block.sub(8).cast::<u64>().write_unaligned((size as u64) << 8 | shift as u64) };
    block.cast()
}

unsafe extern "C" fn free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: `opaque` is a test's static allocator.
    unsafe { &*opaque.cast::<CountingAllocator>() }.live.fetch_sub(1, Ordering::SeqCst);
    let block = block.cast::<u8>();
    // SAFETY: written by `malloc`.
    let word = unsafe { block.sub(8).cast::<u64>().read_unaligned() };
    // SAFETY: a valid layout at allocation.
    let layout = unsafe { Layout::from_size_align_unchecked((word >> 8) as usize + ROOM, 16) };
    // SAFETY: the distance to the base.
    let base = unsafe { block.sub(16 + (word & 0xFF) as usize) };
    // SAFETY: allocated with that layout.
    unsafe { dealloc(base, layout) };
}

fn install(allocator: &'static CountingAllocator) {
    // SAFETY: the allocator and its functions are static.
    unsafe { set_kept_allocator(&allocator.functions()) }.unwrap();
}

fn uninstall() {
    // SAFETY: no functions.
    unsafe { set_allocator(None) }.unwrap();
}

fn block(size: usize) -> MemRef {
    MemRef::allocate(Request::new(size).align(32)).unwrap()
}

#[test]
fn blocks_in_a_loop_ask_for_one_slab() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    for _ in 0..10_000 {
        let (array, list) = (block(100), MemRef::new_varsize(64).unwrap());
        assert_eq!(array.data().addr() % 32, 0);
        drop((array, list));
    }
    // The array, the header of the list, and its payload: three sizes.
    assert_eq!((ALLOCATOR.asked(), kept_counts().live), (3, 0));
    uninstall();
    assert_eq!((ALLOCATOR.live(), kept_counts()), (0, KeptCounts { slabs: 0, live: 0 }));
}

#[test]
fn blocks_that_live_at_once_share_slabs_and_nothing_else() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    let blocks: Vec<MemRef> = (0..5000).map(|index| block(index % 1025)).collect();
    assert_eq!(kept_counts().live, 5000);
    assert!(ALLOCATOR.asked() < 200, "{} requests for 5000 blocks", ALLOCATOR.asked());
    let mut ends: Vec<(usize, usize)> = blocks
        .iter()
        .map(|block| (block.as_ptr().addr().get(), block.data().addr() + block.size()))
        .collect();
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "no two overlap");
    // A block larger than every class is requested individually.
    let asked = ALLOCATOR.asked();
    let (large, aligned) = (block(1025), MemRef::allocate(Request::new(10).align(64)).unwrap());
    assert_eq!((ALLOCATOR.asked() - asked, aligned.data().addr() % 64), (2, 0));
    drop((blocks, large, aligned));
    uninstall();
    assert_eq!(ALLOCATOR.live(), 0);
}

/// Memory that the program no longer needs is returned.
#[test]
fn slabs_go_back_while_the_allocator_stays() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    let blocks: Vec<MemRef> = (0..50_000).map(|_| block(100)).collect();
    let most = ALLOCATOR.live();
    assert!(most > 100);
    drop(blocks);
    drain_thread_cache();
    assert_eq!(
        (ALLOCATOR.live(), kept_counts()),
        (1, KeptCounts { slabs: 1, live: 0 }),
        "the last one of a size stays"
    );
    drop(block(100));
    assert_eq!(ALLOCATOR.live(), 1, "and is used");
}

#[test]
fn what_threads_keep_comes_back_although_they_sleep() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    let (wake, sleep) = channel::<()>();
    let sleep = Arc::new(Mutex::new(sleep));
    let (ready, all_ready) = channel::<()>();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (sleep, ready) = (sleep.clone(), ready.clone());
            std::thread::spawn(move || {
                drop((0..1000).map(block).collect::<Vec<_>>());
                ready.send(()).unwrap();
                sleep.lock().unwrap().recv().unwrap();
                // Continues with the heap.
                let size = block(50).size();
                assert_eq!(size, 50);
            })
        })
        .collect();
    threads.iter().for_each(|_| all_ready.recv().unwrap());
    assert!(ALLOCATOR.live() > 0 && kept_counts().live == 0);
    uninstall();
    if cfg!(target_os = "linux") {
        assert_eq!((ALLOCATOR.live(), kept_counts().slabs), (0, 0));
    }
    threads.iter().for_each(|_| wake.send(()).unwrap());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((ALLOCATOR.live(), kept_counts()), (0, KeptCounts { slabs: 0, live: 0 }));
}

/// An owner may be using its blocks while they are taken.
#[test]
fn threads_at_work_lose_nothing_when_the_allocator_is_exchanged() {
    static ALLOCATOR: [CountingAllocator; 2] = [CountingAllocator::new(), CountingAllocator::new()];
    let _turn = turn();
    static STOP: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);
    // Not a scope, which would end before its threads return their kept blocks.
    let threads: Vec<_> = (0..3_usize)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut held: Vec<(MemRef, u8)> = Vec::new();
                let mut step = seed;
                while !STOP.load(Ordering::Relaxed) || step < 20_000 {
                    step += 1;
                    let size = step * 37 % 1100;
                    let new = block(size);
                    // SAFETY: `size` bytes of this thread.
                    unsafe { new.data().cast::<u8>().write_bytes(step as u8, size) };
                    held.push((new, step as u8));
                    if held.len() > 50 {
                        let (old, byte) = held.swap_remove(step * 5 % 50);
                        // SAFETY: written above.
                        let bytes =
                            unsafe { core::slice::from_raw_parts(old.data().cast::<u8>(), old.size()) };
                        assert!(bytes.iter().all(|&found| found == byte));
                    }
                }
            })
        })
        .collect();
    for round in 0..200 {
        match round % 3 {
            2 => uninstall(),
            which => install(&ALLOCATOR[which]),
        }
        std::thread::yield_now();
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    uninstall();
    assert_eq!(
        (ALLOCATOR[0].live(), ALLOCATOR[1].live(), kept_counts()),
        (0, 0, KeptCounts { slabs: 0, live: 0 })
    );
}

#[test]
fn live_blocks_outlast_the_allocator_they_came_from() {
    static FIRST: CountingAllocator = CountingAllocator::new();
    static SECOND: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&FIRST);
    let (old, list) = (block(100), MemRef::new_varsize(100).unwrap());
    drop((0..100).map(|_| block(100)).collect::<Vec<_>>());
    install(&SECOND);
    assert_eq!(
        (FIRST.live(), kept_counts().live),
        (3, 3),
        "a slab each for the array, the list's header and its payload"
    );
    let new = block(100);
    assert_eq!((SECOND.live(), FIRST.live()), (1, 3));
    // SAFETY: only this thread uses it.
    unsafe { list.data().cast::<u8>().write_bytes(7, 40) };
    // SAFETY: as above.
    unsafe { list.varsize_realloc(2000) }.unwrap();
    // SAFETY: as above; the first bytes were copied.
    let moved = unsafe { core::slice::from_raw_parts(list.data().cast::<u8>(), 40) };
    assert!(moved.iter().all(|&byte| byte == 7));
    assert_eq!((SECOND.live(), FIRST.live()), (1, 3), "a payload stays with the allocator it began with");
    drop((old, list));
    assert_eq!(FIRST.live(), 0);
    uninstall();
    assert_eq!(SECOND.live(), 1);
    drop(new);
    assert_eq!(SECOND.live(), 0);
}

/// Blocks that move between threads do not accumulate.
#[test]
fn blocks_that_wander_do_not_pile_up() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    let (send, receive) = channel::<MemRef>();
    let (acknowledge, acknowledged) = channel::<()>();
    let consumer = std::thread::spawn(move || {
        for (count, block) in receive.into_iter().enumerate() {
            drop(block);
            if count % 100 == 99 {
                acknowledge.send(()).unwrap();
            }
        }
    });
    let mut most = 0;
    for count in 0..50_000_usize {
        send.send(block(count % 1000)).unwrap();
        if count % 100 == 99 {
            acknowledged.recv().unwrap();
            most = most.max(ALLOCATOR.live());
        }
    }
    drop(send);
    consumer.join().unwrap();
    // One slab of each of the 33 sizes, and twice 256 KiB.
    assert!(most < 33 + 2 * 8 + 8, "{most} slabs");
    uninstall();
    assert_eq!(ALLOCATOR.live(), 0);
}

#[test]
fn switched_off_or_watched_every_block_is_asked_for() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    let kept = block(100);
    set_thread_cache(false);
    let (first, second) = (block(100), block(100));
    assert_eq!((ALLOCATOR.live(), kept_counts().live), (3, 1));
    drop((first, second, kept));
    assert_eq!(kept_counts().live, 0);
    set_thread_cache(true);
    drain_thread_cache();
    set_tracking(true);
    let live = ALLOCATOR.live();
    let watched = block(100);
    assert_eq!(ALLOCATOR.live(), live + 1);
    let report = live_blocks().unwrap();
    assert_eq!((report.len(), report[0].size, report[0].refcount), (1, 100, 1));
    drop(watched);
    assert_eq!((ALLOCATOR.live(), live_blocks().unwrap().len()), (live, 0));
    set_tracking(false);
    uninstall();
    assert_eq!(ALLOCATOR.live(), 0);
}

#[test]
fn an_allocator_that_refuses_gives_an_error_and_then_goes_on() {
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();
    let _turn = turn();
    install(&ALLOCATOR);
    ALLOCATOR.refuses.store(true, Ordering::SeqCst);
    assert_eq!(MemRef::allocate(Request::new(100)).unwrap_err(), Error::OutOfMemory { size: 100 });
    assert_eq!(MemRef::new_varsize(100).unwrap_err(), Error::OutOfMemory { size: 100 });
    ALLOCATOR.refuses.store(false, Ordering::SeqCst);
    let list = MemRef::new_varsize(100).unwrap();
    ALLOCATOR.refuses.store(true, Ordering::SeqCst);
    let before = list.data();
    // SAFETY: only this thread uses it.
    assert!(unsafe { list.varsize_realloc(5000) }.is_err());
    assert_eq!(list.data(), before);
    assert!(MemRef::new_varsize(100).is_ok(), "of slabs that are there");
    drop(list);
    ALLOCATOR.refuses.store(false, Ordering::SeqCst);
    for incomplete in [
        ExternalAllocator { malloc: None, ..ALLOCATOR.functions() },
        ExternalAllocator { free: None, ..ALLOCATOR.functions() },
    ] {
        // SAFETY: the call refuses the functions.
        assert_eq!(unsafe { set_kept_allocator(&incomplete) }, Err(Error::IncompleteAllocator));
    }
    uninstall();
    assert_eq!(ALLOCATOR.live(), 0);
}

#[test]
fn small_blocks_of_a_source_know_their_kind_and_keep_it_alive() {
    let _turn = turn();
    let context = HostHeap::new().context();
    let source = SourceAllocator::new(context.clone(), AllocKind::Shared).unwrap();
    // SAFETY: the slabs keep the source alive.
    unsafe { set_kept_allocator(source.as_table().as_ref()) }.unwrap();
    let blocks: Vec<MemRef> = (0..100).map(|_| block(64)).collect();
    assert!(blocks.iter().all(|block| block.kind() == AllocKind::Shared));
    assert_eq!((context.stats().sum.current, context.stats().sum.live), (64 * 1024, 1));
    uninstall();
    drop(source);
    assert_eq!(blocks[99].kind(), AllocKind::Shared);
    drop(blocks);
    assert_eq!(context.stats().sum.current, 0);
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize, u32),
    MakeList(usize),
    Resize(usize, usize),
    Free(usize),
    Install(bool),
    Uninstall,
    Cache(bool),
    Drain,
    Elsewhere(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_usize..1200, 0_u32..8).prop_map(|(size, align)| Step::Make(size, align)),
        4 => (0_usize..1200).prop_map(Step::MakeList),
        4 => (any::<usize>(), 0_usize..3000).prop_map(|(which, size)| Step::Resize(which, size)),
        8 => any::<usize>().prop_map(Step::Free),
        1 => any::<bool>().prop_map(Step::Install),
        1 => Just(Step::Uninstall),
        1 => any::<bool>().prop_map(Step::Cache),
        1 => Just(Step::Drain),
        1 => any::<usize>().prop_map(Step::Elsewhere),
    ]
}

struct Held {
    block: MemRef,
    size: usize,
    byte: u8,
    is_list: bool,
}

impl Held {
    fn fill(&self) {
        // SAFETY: `size` bytes that only this thread uses.
        unsafe { self.block.data().cast::<u8>().write_bytes(self.byte, self.size) };
    }

    fn is_whole(&self, size: usize) -> bool {
        // SAFETY: initialised before.
        let bytes = unsafe { core::slice::from_raw_parts(self.block.data().cast::<u8>(), size) };
        bytes.iter().all(|&byte| byte == self.byte)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Data is aligned and keeps its content, and all memory is returned, for any order of
    /// installing, keeping, moving and freeing on other threads.
    #[test]
    fn blocks_are_whole_and_go_back(steps in prop::collection::vec(step(), 1..150), shift in 0_usize..16) {
        static ALLOCATOR: [CountingAllocator; 2] = [CountingAllocator::new(), CountingAllocator::new()];
        let _turn = turn();
        ALLOCATOR.iter().for_each(|allocator| allocator.shift.store(shift, Ordering::Relaxed));
        let mut held: Vec<Held> = Vec::new();
        for (index, step) in steps.into_iter().enumerate() {
            let byte = index as u8;
            match step {
                Step::Make(size, align) => {
                    let align = 1 << align;
                    let block = MemRef::allocate(Request::new(size).align(align)).unwrap();
                    prop_assert_eq!(block.data().addr() % align, 0);
                    held.push(Held { block, size, byte, is_list: false });
                    held[held.len() - 1].fill();
                }
                Step::MakeList(size) => {
                    let block = MemRef::new_varsize(size).unwrap();
                    held.push(Held { block, size, byte, is_list: true });
                    held[held.len() - 1].fill();
                }
                Step::Resize(which, size) if !held.is_empty() => {
                    let count = held.len();
                    let one = &mut held[which % count];
                    if one.is_list {
                        // SAFETY: only this thread uses it.
                        unsafe { one.block.varsize_realloc(size) }.unwrap();
                        prop_assert!(one.is_whole(size.min(one.size)));
                        one.size = size;
                        one.fill();
                    }
                }
                Step::Free(which) if !held.is_empty() => {
                    let one = held.swap_remove(which % held.len());
                    prop_assert!(one.is_whole(one.size));
                }
                Step::Elsewhere(which) if !held.is_empty() => {
                    let one = held.swap_remove(which % held.len());
                    prop_assert!(std::thread::spawn(move || one.is_whole(one.size)).join().unwrap());
                }
                Step::Install(which) => install(&ALLOCATOR[usize::from(which)]),
                Step::Uninstall => uninstall(),
                Step::Cache(on) => set_thread_cache(on),
                Step::Drain => drain_thread_cache(),
                _ => {}
            }
        }
        let addresses: HashSet<usize> = held.iter().map(|one| one.block.as_ptr().addr().get()).collect();
        prop_assert_eq!(addresses.len(), held.len());
        prop_assert!(held.iter().all(|one| one.is_whole(one.size)));
        held.clear();
        set_thread_cache(true);
        uninstall();
        prop_assert_eq!((ALLOCATOR[0].live(), ALLOCATOR[1].live()), (0, 0));
        prop_assert_eq!(kept_counts(), KeptCounts { slabs: 0, live: 0 });
    }
}
