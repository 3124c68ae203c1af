//! Random programs over a simulated device whose queues finish in any order, hang, and fail midway,
//! with views of the host in between. `USM_OPERATIONS` asks for another number of operations.

#![cfg(feature = "std")]

use core::time::Duration;

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Context, Error, ErrorKind, MemorySource, Queue, QueueOrder, Request, Shared, UsmVec,
};
use usm_pool::{Pool, PoolOptions, Reuse};

/// Operations of one program.
const LENGTH: u64 = 400;
/// The code of planned failures.
const PLANNED: i64 = -77;
/// The queue that no failure is planned for, and whose arrays no other queue uses.
const WHOLE: usize = 0;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

struct Array {
    memory: UsmVec<u32, Shared, Mock>,
    value: u32,
    /// The first queue.
    queue: usize,
}

/// What the programs met, so that none of it is missing.
#[derive(Debug, Default)]
struct Seen {
    planned: u64,
    /// Submissions that were refused because of an earlier owner.
    refused: u64,
    exhausted: u64,
    timeouts: u64,
    values: u64,
    waits: u64,
    leaked: u64,
    /// Programs that followed work which failed later.
    taken_along: u64,
}

struct Program {
    random: Random,
    mock: Mock,
    context: Context<Mock>,
    queues: Vec<Queue<Mock>>,
    pool: Pool<Mock>,
    reuse: Reuse,
    arrays: Vec<Array>,
    /// Blocks of the context that failed work may still touch.
    failed: usize,
    place: String,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mock = Mock::new(Progress::Manual);
        mock.seed(seed);
        let context = mock.context();
        // A wait that cannot end is a refusal, and no pause of the test.
        context.set_wait_limit(Duration::ZERO);
        let reuse = [Reuse::Follow, Reuse::Ready][(seed % 2) as usize];
        let mut options = PoolOptions::default();
        (options.segment, options.reuse) = (1 << 14, reuse);
        options.limit = (seed % 3 > 0).then_some(1 << 16);
        options.keep = (seed % 5 == 0).then_some(1 << 15);
        let pool = Pool::with(&context, AllocKind::Shared, options);
        let orders = [QueueOrder::InOrder, QueueOrder::InOrder, QueueOrder::OutOfOrder];
        let queues = orders.map(|order| context.queue(order).expect("a queue")).into();
        let (random, arrays) = (Random(seed), Vec::new());
        let place = format!("program {seed}");
        Self { random, mock, context, queues, pool, reuse, arrays, failed: 0, place }
    }

    /// Whether a queue, or an array of it, may answer with this error.
    fn expect(&self, error: &Error, queue: usize, seen: &mut Seen) {
        let place = &self.place;
        // Only who follows another queue's unfinished work may meet its failure.
        let follows = queue != WHOLE || self.pool.stats().waits > 0;
        match error.kind {
            ErrorKind::PoolExhausted { .. } => seen.exhausted += 1,
            ErrorKind::Timeout { .. } => seen.timeouts += 1,
            ErrorKind::EarlierOwnerFailed => {
                assert!(follows, "{place}: {error}");
                seen.refused += 1;
            }
            _ => {
                assert_eq!(error.native, Some(PLANNED), "{place}: {error}");
                assert!(follows, "{place}: a failure of another queue: {error}");
            }
        }
    }

    fn allocate(&mut self, queue: usize, seen: &mut Seen) {
        let (len, value) = (1 + self.random.below(900), self.random.below(1 << 30) as u32);
        let of_queue = self.random.below(4) > 0;
        let source = if of_queue { self.pool.on(&self.queues[queue]) } else { self.pool.clone() };
        let made = UsmVec::zeroed_in(&self.queues[queue], &source, len)
            .and_then(|mut memory| self.queues[queue].fill(&mut memory, value).map(|_| memory));
        match made {
            Ok(memory) => self.arrays.push(Array { memory, value, queue }),
            Err(error) => self.expect(&error, queue, seen),
        }
    }

    /// A block whose first work comes some time after it was given.
    fn touch(&mut self, queue: usize, seen: &mut Seen) {
        let request = Request::new(AllocKind::Shared, 1 + self.random.below(3000));
        let outcome = self.pool.on(&self.queues[queue]).allocate(&request).and_then(|mut block| {
            (0..self.random.below(20)).for_each(|_| _ = self.mock.step());
            self.queues[queue].fill_bytes(&mut block, 0, request.size, &[9]).map(drop)
        });
        if let Err(error) = outcome {
            self.expect(&error, queue, seen);
        }
    }

    /// A copy between two arrays of one group: those of the whole queue, and all others.
    fn copy(&mut self, queue: usize, seen: &mut Seen) {
        let mut one_group =
            self.arrays.iter().enumerate().filter(|(_, array)| (array.queue == WHOLE) == (queue == WHOLE));
        let len = self.arrays.len();
        let skip = self.random.0 as usize % len.max(1);
        let Some((source, _)) = one_group.nth(skip % 3) else { return };
        let source = self.arrays.swap_remove(source);
        let fits = |array: &&mut Array| {
            (array.queue == WHOLE) == (queue == WHOLE) && array.memory.len() == source.memory.len()
        };
        let mut outcome = Ok(());
        if let Some(target) = self.arrays.iter_mut().find(fits) {
            outcome = self.queues[queue].copy(&mut target.memory, &source.memory).map(drop);
            if outcome.is_ok() {
                target.value = source.value;
            }
        }
        self.arrays.push(source);
        if let Err(error) = outcome {
            self.expect(&error, queue, seen);
        }
    }

    /// A view of the host: its owner's values or an error, never anybody else's.
    fn look(&mut self, seen: &mut Seen) {
        if self.arrays.is_empty() {
            return;
        }
        let at = self.random.below(self.arrays.len());
        let writes = self.random.below(3) == 0;
        let new = self.random.below(1 << 30) as u32;
        let Array { memory, value, queue } = &mut self.arrays[at];
        let (queue, outcome) = (
            *queue,
            if writes {
                memory.write().map(|mut view| {
                    assert!(view.iter().all(|found| found == value), "{}", self.place);
                    view.fill(new);
                    *value = new;
                })
            } else {
                memory.read().map(|view| assert!(view.iter().all(|found| found == value), "{}", self.place))
            },
        );
        match outcome {
            Ok(()) => seen.values += 1,
            Err(error) => self.expect(&error, queue, seen),
        }
    }

    /// The next operation of a queue fails when it runs: one on memory of the pool.
    fn fail(&mut self, queue: usize, seen: &mut Seen) {
        let error = Error::from(ErrorKind::Native { operation: "a fill" }).with_native(PLANNED);
        self.mock.inject(Fault { operation: Operation::Fill, skip: 0, error, late: true });
        let fills =
            |mock: &Mock| mock.calls().iter().filter(|call| call.operation == Operation::Fill).count();
        let before = fills(&self.mock);
        self.allocate(queue, seen);
        if fills(&self.mock) == before {
            // Refused before it was submitted: the failure meets memory of the context.
            let mut plain = self.context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
            let _ = self.queues[queue].fill_bytes(&mut plain, 0, 64, &[1]).expect("a fill");
            self.failed += 1;
        }
        seen.planned += 1;
    }

    fn step(&mut self, seen: &mut Seen) {
        let queue = self.random.below(self.queues.len());
        match self.random.below(40) {
            0..=9 => self.allocate(queue, seen),
            10 | 11 => self.touch(queue, seen),
            12..=19 if !self.arrays.is_empty() => {
                drop(self.arrays.swap_remove(self.random.below(self.arrays.len())));
            }
            20..=23 => self.copy(queue, seen),
            24..=27 => self.look(seen),
            28..=34 => (0..=self.random.below(6)).for_each(|_| _ = self.mock.step()),
            35 if queue != WHOLE => self.fail(queue, seen),
            36 if queue != WHOLE => {
                self.mock.hang(self.queues[queue].raw(), self.random.below(2) == 0);
            }
            37 => _ = self.pool.trim(self.random.below(1 << 16) as u64),
            38 if queue != WHOLE => {
                // A failed in-order queue stays failed: a program makes a new one.
                self.mock.hang(self.queues[queue].raw(), false);
                let order = [QueueOrder::InOrder, QueueOrder::OutOfOrder][self.random.below(2)];
                self.queues[queue] = self.context.queue(order).expect("a queue");
            }
            39 => self.pool.check(),
            _ => {}
        }
    }

    /// In any order: pool, queues, arrays. Nothing of the pool stays but what failed work may still
    /// touch.
    fn end(mut self, seen: &mut Seen) {
        let place = self.place.clone();
        self.pool.check();
        let stats = self.pool.stats();
        (seen.waits, seen.leaked) = (seen.waits + stats.waits, seen.leaked + stats.leaked);
        assert_eq!(stats.misuses, 0, "{place}");
        if self.reuse == Reuse::Ready {
            assert_eq!(stats.waits, 0, "{place}");
        }
        self.queues.iter().for_each(|queue| self.mock.hang(queue.raw(), false));
        let Self { random, mock, context, queues, pool, arrays, failed, .. } = &mut self;
        let whole = queues.swap_remove(WHOLE);
        let mut plain = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
        let last = whole.fill_bytes(&mut plain, 0, 64, &[1]).expect("a fill");
        mock.finish();
        if let Err(error) = last.status() {
            assert!(stats.waits > 0, "{place}: {error}");
            seen.taken_along += 1;
            *failed += 1;
        }
        drop((plain, last));
        match random.below(3) {
            0 => arrays.clear(),
            1 => queues.clear(),
            _ => {}
        }
        let _planned = context.synchronize(Duration::ZERO);
        context.collect();
        let (mock, context, failed) = (mock.clone(), context.clone(), *failed);
        drop((whole, core::mem::take(arrays), core::mem::take(queues)));
        assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0), "{place}");
        drop(self);
        context.collect();
        assert_eq!(context.stats().sum.live, failed, "{place}");
        // Segments with bytes that failed work may still touch.
        assert_eq!(mock.live_blocks(), context.deferred_frees() + context.stats().leaked, "{place}");
        drop(context);
        assert_eq!(mock.violations(), [], "{place}");
    }
}

#[test]
fn every_read_sees_its_own_owners_bytes_while_queues_hang_and_fail() {
    let operations = skip::cases("USM_OPERATIONS", 20_000);
    let mut seen = Seen::default();
    for seed in 0..operations.div_ceil(LENGTH) {
        let mut program = Program::new(seed);
        for step in 0..LENGTH {
            program.place = format!("program {seed}, step {step}");
            program.step(&mut seen);
        }
        program.end(&mut seen);
    }
    println!("{operations} operations: {seen:?}");
    let Seen { planned, refused, exhausted, timeouts, values, waits, leaked, taken_along } = seen;
    for count in [planned, refused, exhausted, timeouts, values, waits, leaked, taken_along] {
        assert!(count > 0, "{seen:?}");
    }
}

/// A failure spreads to another queue only by an event that this queue waits for already.
#[test]
fn who_follows_work_that_fails_later_fails_too_and_who_asks_later_is_refused() {
    for follows in [true, false] {
        let mock = Mock::new(Progress::Manual);
        let context = mock.context();
        context.set_wait_limit(Duration::ZERO);
        let [broken, whole] = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
        let mut options = PoolOptions::default();
        options.limit = Some(1 << 12);
        let pool = Pool::with(&context, AllocKind::Shared, options);
        let request = Request::new(AllocKind::Shared, 1 << 12);
        let error = Error::from(ErrorKind::Native { operation: "a fill" }).with_native(PLANNED);
        mock.inject(Fault { operation: Operation::Fill, skip: 0, error, late: true });
        let mut block = pool.on(&broken).allocate(&request).expect("memory");
        let _ = broken.fill_bytes(&mut block, 0, 64, &[1]).expect("a fill that fails later");
        drop(block);
        let mut block = pool.on(&whole).allocate(&request).expect("the block that waits");
        if !follows {
            mock.finish();
        }
        let after = whole.fill_bytes(&mut block, 0, 64, &[2]);
        mock.finish();
        let mut plain = context.allocate(&request).expect("memory");
        let last = whole.fill_bytes(&mut plain, 0, 64, &[3]).expect("a fill");
        mock.finish();
        match after {
            Ok(event) => assert_eq!(
                (follows, event.status().map_err(|error| error.native)),
                (true, Err(Some(PLANNED)))
            ),
            Err(error) => assert_eq!((follows, error.kind), (false, ErrorKind::EarlierOwnerFailed)),
        }
        assert_eq!(last.status().is_err(), follows, "the queue itself");
        assert_eq!(mock.violations(), []);
    }
}

/// The host would have to wait for the queue's own work.
#[test]
fn zeros_in_bytes_that_work_still_uses_are_written_by_the_device() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    context.set_wait_limit(Duration::ZERO);
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let pool = Pool::new(&context, AllocKind::Shared);
    let mut first = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &pool.on(&queue), 64).expect("memory");
    let _ = queue.fill(&mut first, 7).expect("a fill");
    let address = first.as_ptr();
    drop(first);
    let second = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &pool.on(&queue), 64).expect("no wait");
    assert_eq!(second.as_ptr(), address);
    mock.finish();
    assert_eq!(second.read().expect("a view")[..], [0; 64]);
    assert_eq!(mock.violations(), []);
}
