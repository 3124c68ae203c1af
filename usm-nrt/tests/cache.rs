//! The blocks that threads keep. This test is a process of its own, whose allocator counts.
#![cfg(feature = "std")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;
use std::collections::HashSet;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use usm_nrt::{MemRef, Request};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator with a counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests that count bytes or turn the switch take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    let guard = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    usm_nrt::set_thread_cache(true);
    guard
}

fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// Number of bytes more than `before`. The test harness frees its own, too.
fn more_than(before: usize) -> usize {
    bytes().saturating_sub(before)
}

/// Maximum number of bytes that harness and threads allocate for themselves.
const SLACK: usize = 64 * 1024;

fn block(size: usize) -> MemRef {
    MemRef::allocate(Request::new(size)).unwrap()
}

/// With `debug` the runtime remembers freed addresses, in memory that is counted here.
fn remembers_the_dead() -> bool {
    cfg!(feature = "debug")
}

#[test]
fn a_thread_gets_its_own_blocks_again() {
    let _turn = turn();
    let addresses =
        |blocks: &[MemRef]| -> HashSet<usize> { blocks.iter().map(|block| block.data().addr()).collect() };
    for size in [0, 1, 31, 64, 500, 1024] {
        let blocks: Vec<MemRef> = (0..100).map(|_| block(size)).collect();
        let first = addresses(&blocks);
        assert_eq!(first.len(), 100, "live blocks are distinct");
        drop(blocks);
        let blocks: Vec<MemRef> = (0..100).map(|_| block(size)).collect();
        assert_eq!(addresses(&blocks), first, "blocks of {size} bytes");
    }
}

#[test]
fn what_a_thread_keeps_is_bounded_and_goes_with_it() {
    if remembers_the_dead() {
        return;
    }
    let _turn = turn();
    let before = bytes();
    let (kept, drained) = std::thread::spawn(move || {
        // Much more than may be kept, of every size, freed in another order than allocated.
        for round in 0..4 {
            let mut blocks: Vec<MemRef> =
                (0..5000).map(|index| block((index * 13 + round * 97) % 1024)).collect();
            assert!(bytes() > before + 2_000_000);
            while blocks.len() > 1 {
                drop(blocks.swap_remove(blocks.len() * 5 / 11));
            }
        }
        let kept = more_than(before);
        usm_nrt::drain_thread_cache();
        (kept, more_than(before))
    })
    .join()
    .unwrap();
    // The 256 KiB exclude padding and the block freed last.
    assert!((64 * 1024..400 * 1024).contains(&kept), "{kept} bytes kept");
    assert!(drained < SLACK, "{drained} bytes after draining");

    for _ in 0..20 {
        std::thread::spawn(|| drop((0..500).map(|_| block(100)).collect::<Vec<_>>())).join().unwrap();
    }
    assert!(bytes() < before + SLACK, "{} bytes left by threads that ended", more_than(before));
}

/// One thread allocates what the other frees; neither cache overflows.
#[test]
fn blocks_that_wander_do_not_pile_up() {
    if remembers_the_dead() {
        return;
    }
    let _turn = turn();
    let before = bytes();
    let (send, receive) = channel::<MemRef>();
    let (acknowledge, acknowledged) = channel::<()>();
    let consumer = std::thread::spawn(move || {
        for (count, block) in receive.into_iter().enumerate() {
            assert_eq!(block.refcount(), 1);
            drop(block);
            if count % 100 == 99 {
                acknowledge.send(()).unwrap();
            }
        }
    });
    for count in 0..50_000_usize {
        send.send(block(count % 1000)).unwrap();
        if count % 100 == 99 {
            acknowledged.recv().unwrap();
            assert!(bytes() < before + 2 * 400 * 1024, "{} bytes after {count} blocks", more_than(before));
        }
    }
    drop(send);
    consumer.join().unwrap();
    usm_nrt::drain_thread_cache();
    assert!(bytes() < before + SLACK);
}

/// Destructors of thread-local values may run after the cache was destroyed.
#[test]
fn a_block_may_outlive_what_its_thread_keeps() {
    struct Late(Option<MemRef>);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0 = None;
            drop((0..10).map(|_| block(64)).collect::<Vec<_>>());
        }
    }
    std::thread_local! {
        static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
    }
    let _turn = turn();
    let before = bytes();
    for _ in 0..50 {
        // Registered before the cache, so dropped after it.
        std::thread::spawn(|| LATE.with_borrow_mut(|late| late.0 = Some(block(64)))).join().unwrap();
    }
    assert!(bytes() < before + SLACK, "{} bytes", more_than(before));
}

/// At least once in fifty runs: at other times the harness allocates more for other tests than
/// these blocks.
#[test]
fn switched_off_nothing_is_kept() {
    let _turn = turn();
    let leaves_nothing = |_| {
        usm_nrt::set_thread_cache(true);
        let blocks: Vec<MemRef> = (0..100).map(|_| block(100)).collect();
        usm_nrt::drain_thread_cache();
        let before = bytes();
        usm_nrt::set_thread_cache(false);
        drop(blocks);
        let now = bytes();
        drop(block(100));
        now <= before - 100 * 100 && bytes() == now
    };
    assert!((0..50).any(leaves_nothing), "blocks made to be kept are freed, and so are later ones");
}

/// On at start, unless the environment or a debugging feature turns it off.
#[test]
fn the_environment_decides_at_start() {
    if let Some(expected) = std::env::var_os("USM_NRT_TEST_EXPECTED") {
        drop(block(64));
        assert_eq!(usm_nrt::thread_cache_enabled(), expected == "on");
        // The program's own choice overrides the environment.
        usm_nrt::set_thread_cache(true);
        drop(block(64));
        assert!(usm_nrt::thread_cache_enabled());
        return;
    }
    let sanitized = std::env::var_os("ASAN_OPTIONS").is_some();
    let default = if cfg!(feature = "debug") || sanitized { "off" } else { "on" };
    for (setting, expected) in [(None, default), (Some("0"), "off"), (Some("1"), default)] {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "the_environment_decides_at_start"]).env("USM_NRT_TEST_EXPECTED", expected);
        match setting {
            Some(setting) => test.env("USM_NRT_THREAD_CACHE", setting),
            None => test.env_remove("USM_NRT_THREAD_CACHE"),
        };
        let output = test.output().unwrap();
        assert!(output.status.success(), "{setting:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
