//! Caches of threads on a system without a barrier in all threads. A process of its own, because
//! the choice is one for the process.

#![cfg(feature = "std")]

use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, ErrorKind, MemorySource, Request};
use usm_pool::{Pool, PoolOptions};

/// Sets the process's choice, which the tests of this file have one after the other.
struct NoBarrier {
    _turn: MutexGuard<'static, ()>,
}

impl NoBarrier {
    fn turn() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        Self { _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    fn set(&self, value: bool) {
        usm_pool::pool::set_no_barrier(value);
    }
}

impl Drop for NoBarrier {
    fn drop(&mut self) {
        self.set(false);
    }
}

fn request(size: usize) -> Request {
    Request::new(AllocKind::Shared, size)
}

/// As on systems without a barrier in all threads: a thread gives its blocks back at its next call.
#[test]
fn a_thread_answers_at_its_next_call_where_there_is_no_barrier() {
    let choice = NoBarrier::turn();
    let context = HostHeap::new().context();
    let mut options = PoolOptions::default();
    options.limit = Some(1 << 16);
    let pool = Pool::with(&context, AllocKind::Shared, options);
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel::<()>();
    std::thread::scope(|scope| {
        let pool = &pool;
        scope.spawn(move || {
            drop(pool.allocate(&request(40_000)).expect("memory"));
            for () in asked {
                drop(pool.allocate(&request(64)).expect("memory"));
                answer.send(()).expect("a receiver");
            }
        });
        ask.send(()).expect("a thread");
        answered.recv().expect("an answer");
        choice.set(true);
        let refused = pool.allocate(&request(1 << 16));
        choice.set(false);
        let refused = refused.expect_err("the other thread has it");
        assert!(matches!(refused.kind, ErrorKind::PoolExhausted { live: 0, .. }), "{refused}");
        ask.send(()).expect("a thread");
        answered.recv().expect("an answer");
        drop(ask);
    });
    drop(pool.allocate(&request(1 << 16)).expect("all of it"));
    pool.check();
}

/// A thread that keeps blocks of a pool whose last handle goes, and then returns one more or ends.
fn ends_after(frees: bool) {
    let choice = NoBarrier::turn();
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel::<()>();
    let shared = pool.clone();
    let thread = std::thread::spawn(move || {
        let held = frees.then(|| shared.allocate(&request(64)).expect("memory"));
        drop(shared.allocate(&request(64)).expect("memory"));
        drop(shared);
        answer.send(()).expect("a receiver");
        asked.recv().expect("a question");
        drop(held);
        answer.send(()).expect("a receiver");
        // It lives on until the main thread has looked.
        let _ = asked.recv();
    });
    answered.recv().expect("an answer");
    choice.set(true);
    drop(pool);
    ask.send(()).expect("a thread");
    answered.recv().expect("an answer");
    if frees {
        assert_eq!(context.stats().reserved, 0, "the pool ends with its last block");
    }
    drop(ask);
    thread.join().expect("a thread");
    choice.set(false);
    assert_eq!(context.stats().reserved, 0, "the pool ends with its last thread");
}

#[test]
fn a_closed_pool_ends_when_a_thread_with_blocks_of_it_ends() {
    ends_after(false);
}

#[test]
fn a_closed_pool_ends_when_a_thread_returns_its_last_block() {
    ends_after(true);
}
