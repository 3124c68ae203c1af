//! Two threads that allocate at once, and blocks that another thread frees.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, MemorySource};
use usm_pool::Pool;

use super::pair::{PEER, peer, peer_pair, request, units};
use crate::cpu_time::{keep, medians};
use crate::pairs::Clock;
use crate::row::{Row, median};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = two_threads();
    rows.extend(other_thread());
    rows
}

/// Medians of nanoseconds of a pair: of one thread, and of two whose batches begin together, of the
/// rounds in which both ran at once for most of the time, as far as the machine let them.
fn one_and_two(pair: impl Fn() + Sync) -> (f64, f64) {
    const ROUNDS: usize = 101;
    const PAIRS: u32 = 4000;
    let batch = || {
        let (start, begin) = (Clock::Thread.now(), Clock::Wall.now());
        (0..PAIRS).for_each(|_| pair());
        let time = (Clock::Thread.now() - start) as f64 / f64::from(PAIRS);
        (time, begin..Clock::Wall.now())
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (begin, end) = (SpinBarrier::default(), SpinBarrier::default());
    let of_other = Mutex::new(0..0);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            for round in 1..=ROUNDS {
                begin.meet(round);
                let (_, span) = batch();
                *of_other.lock().expect("no panic") = span;
                end.meet(round);
            }
        });
        for round in 1..=ROUNDS {
            one.push(batch().0);
            begin.meet(round);
            let (time, ours) = batch();
            end.meet(round);
            let theirs = of_other.lock().expect("no panic").clone();
            let common = ours.end.min(theirs.end).saturating_sub(ours.start.max(theirs.start));
            two.push((common as f64 / (ours.end - ours.start) as f64, time));
        }
        other.join().expect("no panic");
    });
    // The half of the rounds that met for longest.
    two.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    two.truncate(ROUNDS / 2);
    let mut two: Vec<f64> = two.into_iter().map(|(_, time)| time).collect();
    (median(&mut one), median(&mut two))
}

/// Where two threads wait for each other without sleep: waking one takes longer than a batch.
#[derive(Default)]
struct SpinBarrier(AtomicUsize);

impl SpinBarrier {
    fn meet(&self, round: usize) {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < 2 * round {
            thread::yield_now();
        }
    }
}

fn two_threads() -> Vec<Row> {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let request = request(4096);
    let (one, two) = one_and_two(|| keep(pool.allocate(&request).expect("memory")));
    let (plain_one, plain_two) = one_and_two(|| keep(context.allocate(&request).expect("memory")));
    let other = peer(4 << 30);
    let (peer_one, peer_two) = one_and_two(|| peer_pair(&other, 4096));
    vec![
        Row::new("two threads at once, 4096 B: pool", "one thread", "ns", two, one),
        Row::new("two threads at once, 4096 B: context", "one thread", "ns", plain_two, plain_one),
        Row::new("two threads at once, 4096 B: offset-alloc.", "one thread", "ns", peer_two, peer_one),
    ]
}

/// Blocks that one thread allocates and another frees: CPU time of both for a block.
fn other_thread() -> Vec<Row> {
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let request = request(4096);
    let other = peer(4 << 30);
    let allocate = || other.lock().expect("no panic").allocate(units(4096)).expect("room");
    let free = |block| other.lock().expect("no panic").free(block);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        ours.push(passed_on(&|| pool.allocate(&request).expect("memory"), &drop));
        theirs.push(passed_on(&allocate, &free));
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    let pair = medians(&mut [(PEER, &mut || peer_pair(&other, 4096))])[0];
    let case = "freed on another thread, 4096 B";
    vec![
        Row::new(case, "offset-alloc., the same", "ns", ours, theirs),
        Row::new(case, "its pair on one thread", "ns", ours, pair),
    ]
}

/// Nanoseconds of both threads for a block that one allocates and the other frees.
fn passed_on<T: Send>(allocate: &dyn Fn() -> T, free: &(dyn Fn(T) + Sync)) -> f64 {
    const BLOCKS: u32 = 100_000;
    // Batches, because the channel itself costs more than a block.
    let (sender, receiver) = sync_channel::<Vec<T>>(16);
    let time = thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let mut time = 0;
            for batch in receiver {
                let start = Clock::Thread.now();
                batch.into_iter().for_each(free);
                time += Clock::Thread.now() - start;
            }
            time
        });
        let mut time = 0;
        for _ in 0..BLOCKS / 100 {
            let mut batch = Vec::with_capacity(100);
            let start = Clock::Thread.now();
            batch.extend((0..100).map(|_| allocate()));
            time += Clock::Thread.now() - start;
            sender.send(batch).expect("a receiver");
        }
        drop(sender);
        time + worker.join().expect("no panic")
    });
    time as f64 / f64::from(BLOCKS)
}
