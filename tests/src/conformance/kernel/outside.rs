//! Indices outside their arrays while programs use, drop or forget the launch. Every such launch is
//! reported: by each wait for its event, or once by the first other wait.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use usm_core::history::{Operation, Record};
use usm_core::{Access, Backend, Event, Queue, QueueOrder, Shared, Strided, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Executable, IndexOutside, Launch, Programmable};

use super::{ready_in_every_format, shared};
use crate::Fixture;
use crate::programs::Random;

const LIMIT: Duration = Duration::from_secs(20);
const ITEMS: usize = 8;

/// A kernel whose index no launch proves.
#[kernel]
fn pick(index: &[u32], from: &[u32], to: &mut [u32]) {
    let i = global_id(0);
    to[i] = from[index[i] as u64];
}

/// An index from unwritten local memory.
#[kernel(group = 4)]
fn pick_by_what_nobody_wrote(from: &[u32], to: &mut [u32]) {
    #[local]
    let mut lm: [u32; 4];
    let (l, i) = (local_id(0), global_id(0));
    if from[0] == 77 {
        lm[l] = 1;
    }
    barrier(LOCAL);
    to[i] = from[lm[3 - l] as u64];
}

/// A launch in flight.
struct Launched<B: Backend> {
    index: UsmVec<u32, Shared, B>,
    to: UsmVec<u32, Shared, B>,
    event: Option<Event<B>>,
    on: usize,
    is_outside: bool,
    is_told: bool,
}

struct World<'w, B: Programmable> {
    ready: &'w Executable<pick, B, 1>,
    queues: Vec<Queue<B>>,
    from: UsmVec<u32, Shared, B>,
    launched: Vec<Launched<B>>,
    /// Launches with an index outside that only the context knows and has not reported.
    owed: usize,
}

/// Whether a result is the failure of an index outside; another failure fails the test.
fn is_outside<T>(result: &usm_core::Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(IndexOutside::of(error).map(|outside| outside.len), Some(4), "{error}");
            true
        }
    }
}

impl<B: Programmable + 'static> World<'_, B> {
    fn launch(&mut self, random: &mut Random) {
        let wrong = random.once_in(2).then(|| random.below(ITEMS));
        let indices: [u32; ITEMS] = core::array::from_fn(|item| match wrong == Some(item) {
            true => 4 + (random.number() as u32 >> 1),
            false => random.below(4) as u32,
        });
        let on = random.below(self.queues.len());
        let queue = &self.queues[on];
        let index = shared(queue, &indices);
        let mut to = shared(queue, &[99_u32; ITEMS]);
        let launch = Launch::with_range(queue, Range::new([ITEMS as u64]).expect("a range"));
        let event = launch.run_on(self.ready, pick, (&index, &self.from, &mut to)).expect("a launch");
        let event = Some(event).filter(|_| !random.once_in(3));
        self.launched.push(Launched { index, to, event, on, is_outside: wrong.is_some(), is_told: false });
    }

    /// The context reports every failure that was not reported yet.
    fn synchronize(&mut self, context: &usm_core::Context<B>) {
        let told = is_outside(&context.synchronize(LIMIT));
        let untold = self.launched.iter().filter(|launched| launched.is_outside && !launched.is_told).count();
        assert_eq!(told, untold + self.owed > 0, "{untold} untold, {} owed", self.owed);
        self.launched.iter_mut().for_each(|launched| launched.is_told = true);
        self.owed = 0;
    }

    fn step(&mut self, random: &mut Random, context: &usm_core::Context<B>) {
        let sort = random.below(9);
        if self.launched.is_empty() || sort < 2 {
            return self.launch(random);
        }
        let at = random.below(self.launched.len());
        let one = &mut self.launched[at];
        match sort {
            // The event reports it every time, and so do clones in two threads.
            2 | 3 => {
                let Some(event) = one.event.clone() else { return };
                let threads: [bool; 2] = thread::scope(|scope| {
                    let wait = |event: Event<B>| scope.spawn(move || is_outside(&event.wait_for(LIMIT)));
                    [wait(event.clone()), wait(event)].map(|thread| thread.join().expect("no panic"))
                });
                assert_eq!(threads, [one.is_outside; 2]);
                one.is_told = true;
            }
            // A view of a written array reports it; the second view does not.
            4 => {
                let told = is_outside(&one.to.read().map(drop));
                assert_eq!(told, one.is_outside && !one.is_told);
                one.is_told = true;
                let (read, index) = (one.to.read().expect("told"), one.index.read().expect("read only"));
                for (read, index) in read.iter().zip(&index[..]) {
                    // The value that an item outside writes is unspecified.
                    assert!(*index >= 4 || *read == index * 10, "{read} at {index}");
                }
            }
            // An in-order queue reports failures of its own launches.
            5 => {
                let queue = &self.queues[one.on];
                if queue.order() == QueueOrder::OutOfOrder {
                    return queue.wait().expect("tells of no launch");
                }
                let on = one.on;
                let told = is_outside(&queue.wait());
                let mut untold = 0;
                for launched in self.launched.iter_mut().filter(|launched| launched.on == on) {
                    untold += usize::from(launched.is_outside && !launched.is_told);
                    launched.is_told = true;
                }
                assert_eq!(told, untold > 0, "{untold} untold");
            }
            6 => one.event = None,
            // Arrays and event are dropped, possibly in flight. Only the context knows the failure.
            7 => {
                let gone = self.launched.swap_remove(at);
                self.owed += usize::from(gone.is_outside && !gone.is_told);
                if self.queues[gone.on].order() == QueueOrder::InOrder {
                    // Its queue would report it too.
                    self.synchronize(context);
                }
            }
            _ => self.synchronize(context),
        }
    }
}

/// Programs of launches, every second of which has an index outside.
pub fn one_source_reports_every_index_outside_once<B: Programmable + 'static>(fixture: &Fixture<'_, B>) {
    let programs = skip::cases("USM_PROGRAMS", 12);
    for ready in ready_in_every_format::<pick, B, 1>(fixture.context).into_iter().take(1) {
        if ready.function().is_none() {
            return;
        }
        fixture.context.synchronize(LIMIT).expect("nothing is left of others");
        for seed in 0..programs {
            let mut random = Random::new(seed);
            let queue = |order| fixture.context.queue(order).expect("a queue");
            let queues = vec![queue(QueueOrder::InOrder), queue(QueueOrder::OutOfOrder)];
            let from = shared(&queues[0], &[0, 10, 20, 30]);
            let mut world = World { ready: &ready, queues, from, launched: Vec::new(), owed: 0 };
            for _ in 0..30 {
                world.step(&mut random, fixture.context);
            }
            world.synchronize(fixture.context);
            fixture.context.synchronize(LIMIT).expect("once");
        }
    }
}

thread_local! {
    static IS_ANGRY: Cell<bool> = const { Cell::new(false) };
}

/// A panic about an allocation would leak it, and a driver that checks its contexts would report
/// the leak.
fn observer(record: &Record) {
    let panics = IS_ANGRY.get() && record.operation == Operation::Free;
    assert!(!panics, "the observer's panic, as planned");
}

/// An observer panics while a failure is read: the next wait reports the failure.
pub fn one_source_reports_an_index_outside_after_a_panic<B: Programmable + 'static>(
    fixture: &Fixture<'_, B>,
) {
    let context = fixture.context;
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let limit = Duration::from_secs(5);
    for ready in ready_in_every_format::<pick, B, 1>(context).into_iter().take(1) {
        if ready.function().is_none() {
            return;
        }
        context.set_wait_limit(limit);
        context.set_observer(Some(observer));
        let (from, index) = (shared(&queue, &[0, 10, 20, 30]), shared(&queue, &[7_u32; ITEMS]));
        let mut to = shared(&queue, &[99_u32; ITEMS]);
        let launch = Launch::with_range(&queue, Range::new([ITEMS as u64]).expect("a range"));
        let event = launch.run_on(&ready, pick, (&index, &from, &mut to)).expect("a launch");
        IS_ANGRY.set(true);
        let interrupted = catch_unwind(AssertUnwindSafe(|| event.wait_for(limit)));
        IS_ANGRY.set(false);
        // Another thread may have received it without a panic.
        assert!(interrupted.is_err() || is_outside(&interrupted.expect("an answer")));
        assert!(is_outside(&event.wait_for(limit)), "told to the next");
        context.synchronize(limit).expect("it was told");
        context.set_observer(None);
        context.set_wait_limit(usm_core::DEFAULT_WAIT_LIMIT);
    }
}

/// Whoever gets the bytes that such a launch wrote through a copy is told once, in place of the
/// array: with a vector that a copy owned, in another array, or in another layout.
pub fn one_source_reports_an_index_outside_with_its_copies<B: Programmable + 'static>(
    fixture: &Fixture<'_, B>,
) {
    let context = fixture.context;
    for ready in ready_in_every_format::<pick, B, 1>(context).into_iter().take(1) {
        if ready.function().is_none() {
            return;
        }
        for (order, wrong) in
            [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| [(order, 2), (order, 7)]).concat()
        {
            let queue = context.queue(order).expect("a queue");
            let (from, index) = (shared(&queue, &[0, 10, 20, 30]), shared(&queue, &[wrong; ITEMS]));
            let launched = || {
                let mut to = shared(&queue, &[99_u32; ITEMS]);
                let launch = Launch::with_range(&queue, Range::new([ITEMS as u64]).expect("a range"));
                let _ = launch.run_on(&ready, pick, (&index, &from, &mut to)).expect("a launch");
                to
            };
            let expected = wrong > 3;
            let owned = queue.copy_to_vec(vec![0; ITEMS], &launched()).expect("a copy");
            match owned.wait() {
                Ok(values) => assert_eq!((values, expected), (vec![20; ITEMS], false)),
                Err((owned, error)) => {
                    assert!(expected && is_outside::<()>(&Err(error)));
                    assert_eq!(owned.wait().expect("told").len(), ITEMS);
                }
            }
            let mut other = shared(&queue, &[0_u32; ITEMS]);
            let _ = queue.copy(&mut other, &launched()).expect("a copy");
            assert_eq!(is_outside(&other.read().map(drop)), expected, "another array");
            let _ = other.read().expect("told");
            let strided = |step| Strided::new(0, 4, &[2], step).expect("a layout");
            let (source, mut memory) = (launched(), other.into_allocation());
            let (to, from) = (strided(&[4]), strided(&[8]));
            let _ = queue.copy_strided(&mut memory, &to, source.allocation(), &from).expect("a copy");
            assert_eq!(is_outside(&memory.wait_for_host(Access::Read).map(drop)), expected, "a layout");
            drop(source);
            // Read by a copy of the program's memory.
            let mut values = [0; ITEMS];
            assert_eq!(is_outside(&queue.copy_to_slice(&mut values, &launched())), expected, "a slice");
            context.synchronize(LIMIT).expect("all were told");
        }
    }
}

/// An unwritten value does not bypass the index check.
pub fn one_source_checks_an_index_that_nobody_wrote<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    for ready in ready_in_every_format::<pick_by_what_nobody_wrote, B, 1>(fixture.context) {
        if ready.function().is_none() {
            return;
        }
        let from = shared(&queue, &[5_u32; 4]);
        let mut to = shared(&queue, &[99_u32; 8]);
        let launch = Launch::new(&queue, super::range([8], [4]));
        let event = launch.run_on(&ready, pick_by_what_nobody_wrote, (&from, &mut to)).expect("a launch");
        let outside = event.wait().is_err();
        // Inside its array, or refused, which reads as 0.
        let read = to.read().map(|view| view.to_vec()).or_else(|_| to.read().map(|view| view.to_vec()));
        for value in read.expect("told") {
            assert!(value == 5 || (outside && value == 0), "{value}");
        }
    }
}
