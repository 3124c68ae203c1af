//! Every call of the driver fails once, while a pool grows, serves and returns memory: the answer
//! is an error or less memory, and the pool and the ledger are as before. Memory goes back to the
//! driver above a bound and before growth.

#![cfg(feature = "std")]

use core::time::Duration;

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Allocation, Context, Error, ErrorKind, MemorySource, MemoryType, Queue, QueueOrder, Request,
    Result,
};
use usm_pool::{Pool, PoolOptions, Reuse};

/// The calls of the steps that can fail.
const CALLS: [Operation; 3] = [Operation::Allocate, Operation::Fill, Operation::Copy];

struct Program {
    mock: Mock,
    context: Context<Mock>,
    queues: [Queue<Mock>; 2],
    pool: Pool<Mock>,
    held: Vec<Allocation<Mock>>,
    /// Bytes that owners have.
    live: usize,
}

type Step = fn(&mut Program) -> Result<()>;

/// Growth by segments, by less than a segment and by more; blocks that follow another queue; a full
/// pool; idle segments that go back before growth and by `trim`.
const STEPS: [Step; 10] = [
    |it| it.take(0, 1000, 64),
    |it| it.take(1, 60_000, 4096),
    |it| it.fill(0),
    |it| it.fill(1),
    |it| it.drop_first(),
    |it| it.take(1, 900, 16),
    |it| it.copy(),
    |it| it.take(0, 300_000, 1 << 16),
    |it| it.drop_first().and_then(|()| it.drop_first()),
    |it| it.take(0, 200_000, 64),
];

impl Program {
    fn new() -> Self {
        let mock = Mock::new(Progress::OnWait);
        let context = mock.context();
        context.set_wait_limit(Duration::from_secs(5));
        let queues = [QueueOrder::InOrder, QueueOrder::OutOfOrder];
        let queues = queues.map(|order| context.queue(order).expect("a queue"));
        let mut options = PoolOptions::default();
        (options.segment, options.limit) = (1 << 16, Some(1 << 19));
        let pool = Pool::with(&context, AllocKind::Shared, options);
        Self { mock, context, queues, pool, held: Vec::new(), live: 0 }
    }

    fn take(&mut self, queue: usize, size: usize, alignment: usize) -> Result<()> {
        let request = Request::new(AllocKind::Shared, size).aligned_to(alignment);
        let block = self.pool.on(&self.queues[queue]).allocate(&request)?;
        self.live += size;
        self.held.push(block);
        Ok(())
    }

    fn fill(&mut self, queue: usize) -> Result<()> {
        let len = self.held[queue].size();
        self.queues[queue].fill_bytes(&mut self.held[queue], 0, len, &[7]).map(drop)
    }

    fn copy(&mut self) -> Result<()> {
        let [first, second, ..] = &mut self.held[..] else { panic!("two blocks") };
        self.queues[0].copy_bytes(second, 0, first, 0, 900).map(drop)
    }

    fn drop_first(&mut self) -> Result<()> {
        let first = self.held.remove(0);
        self.live -= first.size();
        Ok(())
    }

    fn calls(&self, operation: Operation) -> usize {
        self.mock.calls().iter().filter(|call| call.operation == operation).count()
    }

    /// What the pool, the ledger and the driver say is one truth.
    fn check(&self, place: &str) {
        self.pool.check();
        let (stats, of_context) = (self.pool.stats(), self.context.stats());
        let live = (self.live as u64, self.held.len() as u64);
        assert_eq!((stats.live, stats.blocks), live, "{place}");
        assert_eq!((of_context.sum.current, of_context.sum.live), (self.live, self.held.len()), "{place}");
        assert_eq!((of_context.reserved, stats.misuses), (stats.reserved as usize, 0), "{place}");
        let segments = self.pool.snapshot();
        assert_eq!(segments.iter().map(|segment| segment.size).sum::<u64>(), stats.reserved, "{place}");
        assert_eq!(self.mock.live_blocks(), segments.len() + self.context.deferred_frees(), "{place}");
        assert!(stats.reserved <= 1 << 19, "{place}");
    }
}

/// Runs all steps; a step that the planned failure refuses succeeds when it is repeated.
fn run(fault: Fault, place: &str) -> bool {
    let mut program = Program::new();
    program.mock.inject(fault);
    let mut refusals = 0;
    for (number, step) in STEPS.iter().enumerate() {
        let place = format!("{place}, step {number}");
        let before = program.pool.stats();
        if let Err(refused) = step(&mut program) {
            refusals += 1;
            assert_eq!(refused.kind, fault.error.kind, "{place}");
            program.check(&place);
            let after = program.pool.stats();
            assert!(after.reserved <= before.reserved, "{place}: idle segments may have gone");
            assert_eq!((after.live, after.leaked), (before.live, before.leaked), "{place}");
            step(&mut program).unwrap_or_else(|error| panic!("{place}, again: {error}"));
        }
        program.check(&place);
    }
    assert!(refusals <= 1, "{place}: one failure is one refusal");
    let happened = program.calls(fault.operation) > fault.skip;
    program.held.clear();
    program.live = 0;
    program.context.synchronize(Duration::from_secs(5)).expect("no failure");
    program.pool.trim(0);
    program.check(place);
    assert_eq!(program.pool.stats().reserved, 0, "{place}");
    let Program { mock, context, queues, pool, .. } = program;
    drop((queues, pool, context));
    assert_eq!((mock.live_blocks(), mock.violations()), (0, vec![]), "{place}");
    happened
}

#[test]
fn every_call_of_the_driver_may_fail_and_leaves_the_numbers() {
    let memory_type = MemoryType::UsmShared;
    let shortage = Error::from(ErrorKind::OutOfMemory { memory_type, requested: 1 });
    let broken = Error::from(ErrorKind::Native { operation: "a planned failure" }).with_native(-7);
    let mut failures = 0;
    for (operation, error) in CALLS.into_iter().flat_map(|call| [(call, shortage), (call, broken)]) {
        let mut skip = 0;
        while run(
            Fault { operation, skip, error, late: false },
            &format!("{operation:?} {skip}: {:?}", error.kind),
        ) {
            skip += 1;
            failures += 1;
        }
    }
    assert!(failures >= 12, "{failures}: growth calls three times, and so does work");
}

/// What the device lacks may be what pending work holds: then the request waits for that work.
#[test]
fn a_shortage_of_the_device_waits_for_the_work_that_holds_its_memory() {
    for reuse in [Reuse::Follow, Reuse::Ready] {
        let mock = Mock::new(Progress::OnWait).with_device(|info| info.global_mem_size = 8 << 20);
        let context = mock.context();
        context.set_wait_limit(Duration::from_secs(5));
        let queues = [(); 2].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
        let mut options = PoolOptions::default();
        options.reuse = reuse;
        let pool = Pool::with(&context, AllocKind::Shared, options);
        // Two segments, so that no block has room for the request.
        let take = |size| pool.allocate(&Request::new(AllocKind::Shared, size));
        let mut blocks = [(); 2].map(|()| take(4 << 20).expect("memory"));
        for (queue, block) in queues.iter().zip(&mut blocks) {
            let _ = queue.fill_bytes(block, 0, 4 << 20, &[7]).expect("a fill");
        }
        drop(blocks);
        let stats = pool.stats();
        assert_eq!((stats.reserved, stats.pending), (8 << 20, 8 << 20));
        let outcome = take(6 << 20);
        match reuse {
            Reuse::Follow => assert_eq!(outcome.expect("after the work").size(), 6 << 20),
            Reuse::Ready => {
                let refused = outcome.expect_err("it never waits").kind;
                assert!(matches!(refused, ErrorKind::OverMemory { .. }), "{refused}");
            }
        }
        pool.check();
        assert_eq!((pool.stats().live, pool.stats().misuses, mock.violations()), (0, 0, vec![]));
    }
}

/// A pool of segments of 64 KiB, three of which one block each has filled and left.
fn three_segments(mock: &Mock, keep: Option<usize>) -> Pool<Mock> {
    let mut options = PoolOptions::default();
    (options.segment, options.keep) = (1 << 16, keep);
    let pool = Pool::with(&mock.context(), AllocKind::Shared, options);
    let blocks = [(); 3].map(|()| pool.allocate(&Request::new(AllocKind::Shared, 1 << 16)).expect("memory"));
    assert_eq!((pool.stats().reserved, mock.live_blocks()), (3 << 16, 3));
    drop(blocks);
    pool
}

#[test]
fn segments_above_keep_go_back_with_their_last_block() {
    for (keep, stays) in [(None, 3), (Some(1 << 20), 3), (Some(2 << 16), 2), (Some(2), 0), (Some(0), 0)] {
        let mock = Mock::new(Progress::Immediate);
        let pool = three_segments(&mock, keep);
        assert_eq!((pool.stats().reserved, mock.live_blocks()), (stays << 16, stays as usize), "{keep:?}");
        pool.check();
    }
}

#[test]
fn segments_without_owners_go_back_before_the_pool_grows() {
    let mock = Mock::new(Progress::Immediate);
    let pool = three_segments(&mock, None);
    let held = pool.allocate(&Request::new(AllocKind::Shared, 1000)).expect("of a segment");
    let before = mock.calls().len();
    let large = pool.allocate(&Request::new(AllocKind::Shared, 1 << 20)).expect("memory");
    let calls: Vec<_> = mock.calls()[before..].iter().map(|call| call.operation).collect();
    assert_eq!(calls, [Operation::Free, Operation::Free, Operation::Allocate]);
    assert_eq!(mock.live_blocks(), 2);
    assert_eq!(pool.stats().reserved - (1 << 16), large.size().next_multiple_of(2 << 20) as u64);
    drop((held, large));
    pool.check();
}

/// A shortage takes less memory, down to the request, and each size may fail.
#[test]
fn growth_goes_down_to_the_request_while_the_driver_is_short() {
    for failing in 0..=5 {
        let mock = Mock::new(Progress::Immediate);
        let context = mock.context();
        let mut options = PoolOptions::default();
        options.segment = 1 << 16;
        let pool = Pool::with(&context, AllocKind::Shared, options);
        let shortage = ErrorKind::OutOfMemory { memory_type: MemoryType::UsmShared, requested: 1 };
        for _ in 0..failing {
            let error = shortage.into();
            mock.inject(Fault { operation: Operation::Allocate, skip: 0, error, late: false });
        }
        // 64, 32, 16, 8 KiB; then the request of 5,000 bytes, rounded to blocks.
        let outcome = pool.allocate(&Request::new(AllocKind::Shared, 5000));
        let reserved = pool.stats().reserved;
        match failing {
            0..=3 => assert_eq!(reserved, 1 << (16 - failing)),
            4 => assert!((5000..5200).contains(&reserved), "{reserved}"),
            _ => assert_eq!(outcome.as_ref().expect_err("short").kind, shortage),
        }
        assert_eq!(outcome.is_ok(), failing < 5);
        drop(outcome);
        pool.trim(0);
        pool.check();
        assert_eq!((pool.stats().reserved, mock.live_blocks()), (0, 0));
    }
}
