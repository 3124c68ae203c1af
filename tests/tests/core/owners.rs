//! Owners of foreign memory that use the context which drops them: they allocate, submit, wait,
//! import more memory, panic. Each owner is dropped once, after the work that uses its memory, and
//! no memory leaks.
//!
//! `USM_PROGRAMS` is the number of programs, `USM_PROGRAMS_FROM` the first seed.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use usm_core::backend::Block;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{
    AllocKind, Allocation, Context, Device, Event, EventStatus, MemorySource, Queue, QueueOrder, Request,
    UsmVec,
};
use usm_tests::planned;
use usm_tests::programs::{Random, number_in};

const BYTES: usize = 64;
const LIMIT: Duration = Duration::from_secs(5);

/// The state that all owners of a program share.
#[derive(Default)]
struct Shared {
    live: AtomicUsize,
    dropped: AtomicUsize,
    kept: Mutex<Kept>,
}

/// Objects that owners keep past their drop.
#[derive(Default)]
struct Kept {
    arrays: Vec<UsmVec<u32, Device, Mock>>,
    imports: Vec<Allocation<Mock>>,
}

/// An owner whose drop uses the context.
struct Owner {
    memory: Box<[u8]>,
    context: Context<Mock>,
    queue: Queue<Mock>,
    shared: Arc<Shared>,
    /// The last operation on the memory.
    last: Arc<Mutex<Option<Event<Mock>>>>,
    random: Random,
    /// How many owners may be made from within each other's drops.
    depth: usize,
}

type Last = Arc<Mutex<Option<Event<Mock>>>>;

fn import(
    context: &Context<Mock>,
    queue: &Queue<Mock>,
    shared: &Arc<Shared>,
    seed: u64,
    depth: usize,
) -> (Allocation<Mock>, Last) {
    shared.live.fetch_add(1, Ordering::Relaxed);
    let last = Last::default();
    let mut owner = Owner {
        memory: vec![1; BYTES].into(),
        context: context.clone(),
        queue: queue.clone(),
        shared: Arc::clone(shared),
        last: Arc::clone(&last),
        random: Random::new(seed),
        depth,
    };
    let pointer = NonNull::new(owner.memory.as_mut_ptr()).expect("a box");
    let block = Block { pointer, size: BYTES, alignment: 1, kind: AllocKind::Host };
    // SAFETY: the owner's memory, which the mock treats as any other.
    (unsafe { Allocation::foreign(context.clone(), block, Box::new(owner)) }, last)
}

fn fill(queue: &Queue<Mock>, (memory, last): &mut (Allocation<Mock>, Last), value: u8) {
    let event = queue.fill_bytes(memory, 0, BYTES, &[value]).expect("a fill");
    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
}

impl Drop for Owner {
    fn drop(&mut self) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert!(last.is_none_or(|event| event.status() == Ok(EventStatus::Complete)), "work is pending");
        assert!(self.memory.iter().all(|byte| *byte == self.memory[0]), "nothing else was written here");
        self.shared.live.fetch_sub(1, Ordering::Relaxed);
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        let kept = || self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match self.random.below(8) {
            0 => drop(self.context.allocate(&Request::new(AllocKind::Device, 100))),
            1 => {
                let mut array = UsmVec::<u32, Device, Mock>::zeroed(&self.queue, 50).expect("memory");
                let _ = self.queue.fill(&mut array, 7).expect("a fill");
                kept().arrays.push(array);
            }
            2 => {
                let arrays = core::mem::take(&mut kept().arrays);
                for array in &arrays {
                    assert_eq!(array.to_vec(&self.queue).expect("a read").len(), 50);
                }
            }
            3 => self.context.synchronize(LIMIT).expect("no failure"),
            4 => self.context.collect(),
            5 if self.depth > 0 => {
                let seed = self.random.number();
                let mut more = import(&self.context, &self.queue, &self.shared, seed, self.depth - 1);
                fill(&self.queue, &mut more, 3);
            }
            6 if self.depth > 0 => {
                let seed = self.random.number();
                let mut more = import(&self.context, &self.queue, &self.shared, seed, self.depth - 1);
                fill(&self.queue, &mut more, 4);
                kept().imports.push(more.0);
            }
            7 if !std::thread::panicking() => planned::panic(),
            _ => {
                let gone = core::mem::take(&mut *kept());
                drop(gone);
            }
        }
    }
}

fn step(random: &mut Random, context: &Context<Mock>, queues: &[Queue<Mock>; 2], shared: &Arc<Shared>) {
    let queue = &queues[random.below(2)];
    match random.below(5) {
        0 | 1 => {
            let mut memory = import(context, queue, shared, random.number(), 3);
            for _ in 0..random.below(3) {
                fill(&queues[random.below(2)], &mut memory, random.number() as u8);
            }
            if random.once_in(3) {
                shared.kept.lock().unwrap_or_else(PoisonError::into_inner).imports.push(memory.0);
            }
        }
        2 => drop(context.allocate(&Request::new(AllocKind::Shared, 30)).expect("memory")),
        3 => {
            let gone = core::mem::take(&mut *shared.kept.lock().unwrap_or_else(PoisonError::into_inner));
            drop(gone);
        }
        _ => queue.wait().expect("no failure"),
    }
}

#[test]
fn owners_that_use_their_context_are_dropped_once() {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 90));
    let (mut panics, mut dropped) = (0, 0);
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let mock = Mock::new(if random.once_in(3) { Progress::Immediate } else { Progress::OnWait });
        mock.seed(seed);
        let context = mock.context();
        let queue = |order| context.queue(order).expect("a queue");
        let queues = [queue(QueueOrder::InOrder), queue(QueueOrder::OutOfOrder)];
        let shared = Arc::new(Shared::default());
        let mut guarded = |work: &mut dyn FnMut()| {
            panics += usize::from(planned::panicked(format_args!("seed {seed}"), work));
        };
        for _ in 0..40 {
            guarded(&mut || step(&mut random, &context, &queues, &shared));
        }
        // A dropped owner may keep more owners, and each may panic.
        let empty = || {
            let kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.arrays.is_empty() && kept.imports.is_empty() && context.deferred_frees() == 0
        };
        for _ in 0..1000 {
            if empty() {
                break;
            }
            guarded(&mut || {
                let gone = core::mem::take(&mut *shared.kept.lock().unwrap_or_else(PoisonError::into_inner));
                drop(gone);
            });
            guarded(&mut || context.synchronize(LIMIT).expect("no failure"));
        }
        assert!(empty(), "seed {seed}");
        assert_eq!(shared.live.load(Ordering::Relaxed), 0, "seed {seed}");
        dropped += shared.dropped.load(Ordering::Relaxed);
        let stats = context.stats();
        assert_eq!((stats.sum.live, stats.leaked), (0, 0), "seed {seed}: {stats:?}");
        assert_eq!(mock.violations(), [], "seed {seed}");
        drop((queues, context, shared));
        assert_eq!((mock.live_blocks(), mock.contexts()), (0, 0), "seed {seed}");
    }
    assert!(panics as u64 >= count && dropped as u64 > 10 * count, "{panics} {dropped}");
}
