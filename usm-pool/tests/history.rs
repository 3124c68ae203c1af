//! The history of a context whose blocks come from a pool: threads note what they do in lists of
//! their own, and the history has each of their records, in order.

#![cfg(feature = "std")]
#![allow(clippy::std_instead_of_alloc, reason = "a test of threads: std is there")]

use std::collections::HashMap;
use std::sync::Barrier;

use usm_core::backend::host::HostHeap;
use usm_core::history::{Operation, Record};
use usm_core::{AllocKind, Allocation, Context, MemorySource, MemoryType, Request};
use usm_pool::Pool;

fn request(bytes: usize) -> Request {
    Request::new(AllocKind::Shared, bytes)
}

/// Panics unless each block is free when it is allocated, and live when it is freed. Returns the
/// live ones.
fn follow(records: &[Record]) -> HashMap<usize, usize> {
    let mut live = HashMap::new();
    for record in records {
        match record.operation {
            Operation::Allocate => assert_eq!(live.insert(record.address, record.bytes), None, "{record}"),
            Operation::Free => assert_eq!(live.remove(&record.address), Some(record.bytes), "{record}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(record.current, live.values().sum::<usize>(), "{record}");
        assert!(record.peak >= record.current, "{record}");
    }
    assert!(records.is_sorted_by_key(|record| record.time));
    live
}

fn of_host(context: &Context<HostHeap>, records: usize) -> Pool<HostHeap> {
    context.keep_history(records);
    Pool::new(context, AllocKind::Shared)
}

#[test]
fn records_of_several_threads_are_in_the_order_in_which_blocks_changed_hands() {
    const PAIRS: usize = 3000;
    let context = HostHeap::new().context();
    let pool = of_host(&context, 1 << 20);
    let (sender, receiver) = std::sync::mpsc::channel::<Allocation<HostHeap>>();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (pool, sender) = (pool.clone(), sender.clone());
            scope.spawn(move || {
                for at in 0..PAIRS {
                    let block = pool.allocate(&request(100 + thread * 64 + at % 1000)).expect("memory");
                    // Some are freed here, the others by the third thread.
                    if at % 3 == 0 {
                        sender.send(block).expect("a receiver");
                    }
                }
            });
        }
        drop(sender);
        receiver.iter().for_each(drop);
    });
    let direct = context.allocate(&request(10)).expect("memory");
    let records = context.history();
    assert_eq!((records.len(), context.history_lost()), (4 * PAIRS + 1, 0));
    assert_eq!(follow(&records), HashMap::from([(direct.as_ptr().addr(), 10)]));
}

#[test]
fn a_reader_sees_what_running_threads_did() {
    let context = HostHeap::new().context();
    let pool = of_host(&context, 1000);
    let (begin, end) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let block = pool.allocate(&request(100)).expect("memory");
            drop(pool.allocate(&request(200)).expect("memory"));
            drop(pool.allocate(&request(200)).expect("memory"));
            begin.wait();
            end.wait();
            drop(block);
        });
        begin.wait();
        assert_eq!((context.history().len(), context.history_lost()), (5, 0));
        end.wait();
    });
    assert_eq!(context.history().len(), 6);
    assert!(follow(&context.history()).is_empty());
}

#[test]
fn what_is_lost_is_counted_and_the_numbers_go_on() {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let _before = pool.allocate(&request(1000)).expect("memory");
    context.keep_history(10);
    let blocks: Vec<_> = (0..500).map(|_| pool.allocate(&request(100)).expect("memory")).collect();
    assert_eq!((context.history().len(), context.history_lost()), (10, 490));
    let numbers: Vec<usize> = context.history().iter().map(|record| record.current).collect();
    assert_eq!(numbers, (491..=500).map(|blocks| 1000 + 100 * blocks).collect::<Vec<_>>());
    drop(blocks);
    let last = context.history()[9];
    assert_eq!((last.operation, last.current, last.peak), (Operation::Free, 1000, 51_000));
    context.reset_peak();
    let block = pool.allocate(&request(70)).expect("memory");
    let last = context.history()[9];
    assert_eq!((last.current, last.peak, last.memory_type), (1070, 1070, MemoryType::UsmShared));
    drop(block);
    context.keep_history(0);
    drop(pool.allocate(&request(70)).expect("memory"));
    assert!(context.history().is_empty());
    context.keep_history(5);
    assert!(context.history().is_empty(), "earlier events are not kept");
    assert_eq!(context.history_lost(), 0);
}

/// The pools of one place in a thread's caches follow each other.
#[test]
fn the_records_of_a_pool_outlive_it() {
    let context = HostHeap::new().context();
    context.keep_history(1 << 16);
    let (mut last, mut count) = (None, 0);
    for _ in 0..100 {
        let pool = Pool::new(&context, AllocKind::Shared);
        for _ in 0..3 {
            drop(pool.allocate(&request(100)).expect("memory"));
            count += 2;
        }
        // Ends the pool of the round before, which was closed with a block out.
        last = Some(pool.allocate(&request(100)).expect("memory"));
        count += 2;
    }
    drop(last);
    assert_eq!((context.history().len(), context.history_lost()), (count, 0));
    assert!(follow(&context.history()).is_empty());
}

#[test]
fn the_records_of_two_contexts_do_not_mix() {
    let contexts = [HostHeap::new().context(), HostHeap::new().context()];
    for _ in 0..40 {
        let pools = [of_host(&contexts[0], 100_000), of_host(&contexts[1], 100_000)];
        for _ in 0..70 {
            drop(pools[0].allocate(&request(100)).expect("memory"));
            drop(pools[1].allocate(&request(200)).expect("memory"));
        }
    }
    for (context, bytes) in contexts.iter().zip([100, 200]) {
        assert_eq!(context.history().len(), 40 * 140);
        assert!(context.history().iter().all(|record| record.bytes == bytes));
    }
}
