//! Observers that use the context they observe: they allocate, free, submit, wait, read the
//! statistics, replace themselves, panic. The operation that called them and the statistics stay
//! correct.
//!
//! `USM_PROGRAMS` is the number of programs, `USM_PROGRAMS_FROM` the first seed.

use core::cell::{Cell, RefCell};
use core::time::Duration;

use usm_core::backend::mock::{Mock, Progress};
use usm_core::history::{Operation, Record};
use usm_core::{
    AllocKind, Allocation, Buffer, Context, Device, Fallback, Memory, MemorySource, MemoryType, Queue,
    QueueOrder, Request, Shared, UsmVec,
};
use usm_pool::arena::Arena;
use usm_pool::{Options, Pool, Problem, plan};
use usm_tests::planned;
use usm_tests::programs::{Random, number_in};

/// The objects that the observer may use and drop.
struct Hands {
    context: Context<Mock>,
    queue: Queue<Mock>,
    arrays: Vec<UsmVec<u32, Device, Mock>>,
    sort: usize,
}

thread_local! {
    static HANDS: RefCell<Option<Hands>> = const { RefCell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

const SORTS: usize = 9;

/// Does nothing when called from within itself, because its objects are in use.
fn observer(_: &Record) {
    let Some(mut hands) = HANDS.take() else { return };
    CALLS.set(CALLS.get() + 1);
    let Hands { context, queue, arrays, sort } = &mut hands;
    match *sort {
        0 => drop(context.allocate(&Request::new(AllocKind::Device, 100))),
        1 => arrays.clear(),
        2 => {
            let mut array = UsmVec::<u32, Device, Mock>::zeroed(queue, 50).expect("memory");
            let _ = queue.fill(&mut array, 7).expect("a fill");
            arrays.push(array);
        }
        3 => {
            if let Some(array) = arrays.last() {
                assert_eq!(array.to_vec(queue).expect("a read").len(), 50);
            }
        }
        4 => context.synchronize(Duration::from_secs(5)).expect("no failure"),
        5 => {
            let stats = context.stats();
            let live: usize = context.blocks().iter().map(|block| block.size).sum();
            assert!(live <= stats.sum.current || stats.sum.current == 0, "{live} {stats:?}");
            let _ = (context.history(), context.device_stats(), context.deferred_frees());
            context.collect();
        }
        6 => {
            context.set_observer(None);
            context.keep_history(4);
            context.set_observer(Some(observer));
        }
        7 => *queue = context.queue(QueueOrder::InOrder).expect("a queue"),
        _ => {
            HANDS.set(Some(hands));
            planned::panic();
        }
    }
    HANDS.set(Some(hands));
}

/// A panic drops an array, which is freed. The observer panics about it, and the process continues.
#[test]
fn an_observer_panics_while_a_panic_drops_memory() {
    let context = Mock::new(Progress::OnWait).context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let as_planned = planned::panicked(format_args!("one observer"), || {
        let _array = UsmVec::<u32, Shared, _>::zeroed(&queue, 10).expect("memory");
        context.set_observer(Some(|_| planned::panic()));
        planned::panic()
    });
    assert!(as_planned);
    context.set_observer(None);
    assert_eq!((context.stats().sum.live, context.stats().leaked), (0, 0));
}

/// The observer of an allocation panics on every way that memory comes: what was just made has an
/// owner, which gives it back.
#[test]
fn memory_whose_observer_panics_goes_back() {
    type Way = fn(&Context<Mock>, &Queue<Mock>);
    let ways: [Way; 7] = [
        |context, _| drop(context.allocate(&Request::new(AllocKind::Device, 100))),
        |context, _| drop(context.allocate_memory(MemoryType::Buffer, 100, 0, Fallback::Refuse)),
        |_, queue| drop(MemorySource::allocate(queue, &Request::new(AllocKind::Device, 100))),
        |_, queue| drop(UsmVec::<u32, Shared, _>::zeroed(queue, 10)),
        |_, queue| drop(UsmVec::<u32, Device, _>::from_slice_in(queue, queue, &[3; 10])),
        |context, _| {
            // Too large for the way without a reservation.
            let bytes = context.info().max_alloc_size.min(1 << 24) as usize;
            drop(context.allocate(&Request::new(AllocKind::Shared, bytes)));
        },
        |context, _| {
            drop(Pool::new(context, AllocKind::Device).allocate(&Request::new(AllocKind::Device, 100)));
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let mock = Mock::new(Progress::OnWait);
            let context = mock.context();
            let queue = context.queue(order).expect("a queue");
            context.keep_history(8);
            context.set_observer(Some(|_| planned::panic()));
            assert!(planned::panicked(format_args!("way {number}"), || way(&context, &queue)));
            context.set_observer(None);
            context.synchronize(Duration::from_secs(5)).expect("no failure");
            let stats = context.stats();
            assert_eq!((stats.sum.live, stats.sum.current, stats.leaked), (0, 0, 0), "way {number}");
            let seen: Vec<_> = context.history().iter().map(|record| record.operation).collect();
            assert_eq!(seen, [Operation::Allocate, Operation::Free], "way {number}");
            drop(queue);
            assert_eq!((mock.live_blocks(), mock.violations()), (0, vec![]), "way {number}");
        }
    }
}

/// Blocks that come from a cache and go back to it too, and never a segment.
#[test]
fn an_observer_sees_blocks_of_pools_as_they_were_asked_for() {
    type Event = (Operation, usize, usize, bool);
    thread_local! {
        static SEEN: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
    }
    fn observer(record: &Record) {
        let event = (record.operation, record.address, record.bytes, record.in_pool);
        SEEN.with_borrow_mut(|seen| seen.push(event));
    }
    let context = Mock::new(Progress::OnWait).context();
    let pool = Pool::new(&context, AllocKind::Device);
    let take = |size| pool.allocate(&Request::new(AllocKind::Device, size)).expect("memory");
    // Before it is set: the block goes to the thread's cache.
    drop(take(100));
    context.set_observer(Some(observer));
    let mut expected = Vec::new();
    for size in [100, 99, 5000, 4 << 20] {
        let block = take(size);
        let address = block.block().address();
        drop(block);
        expected.extend([Operation::Allocate, Operation::Free].map(|it| (it, address, size, true)));
    }
    assert!(pool.trim(0) > 0);
    let plain = context.allocate(&Request::new(AllocKind::Device, 100)).expect("memory");
    expected.push((Operation::Allocate, plain.block().address(), 100, false));
    assert!(pool.allocate(&Request::new(AllocKind::Device, 1 << 40)).is_err());
    expected.push((Operation::Refuse, 0, 1 << 40, false));
    context.set_observer(None);
    drop(take(100));
    assert_eq!(SEEN.take(), expected);
}

/// Objects of a program with their expected content.
#[derive(Default)]
struct Program {
    arrays: Vec<(UsmVec<u32, Device, Mock>, u32)>,
    views: Vec<(UsmVec<u32, Shared, Mock>, u32)>,
    blocks: Vec<Allocation<Mock>>,
    buffers: Vec<Buffer<Mock>>,
}

impl Program {
    fn step(&mut self, random: &mut Random, context: &Context<Mock>, queue: &Queue<Mock>) {
        let value = random.number() as u32;
        match random.below(10) {
            0 => {
                let mut array = UsmVec::zeroed(queue, 20).expect("memory");
                let filled = queue.fill(&mut array, value).map(drop);
                self.arrays.push((array, if filled.is_ok() { value } else { 0 }));
            }
            1 => self.views.push((UsmVec::from_slice(queue, &[value; 9]).expect("memory"), value)),
            2 => self.blocks.push(context.allocate(&Request::new(AllocKind::Host, 300)).expect("memory")),
            3 => {
                let made = context.allocate_memory(MemoryType::Buffer, 64, 0, Fallback::Refuse);
                if let Memory::Buffer(mut buffer) = made.expect("memory") {
                    let _ = queue.fill_buffer(&mut buffer, 0, 64, &[1]).expect("a fill");
                    self.buffers.push(buffer);
                }
            }
            4 => {
                let gone = self.arrays.pop();
                drop(gone);
            }
            5 => drop((self.views.pop(), self.blocks.pop(), self.buffers.pop())),
            6 => {
                let buffers = vec![usm_pool::Buffer::new(1, 0, 1, 256).aligned(64)];
                let problem = Problem::from_buffers(buffers).expect("a problem");
                let plan = plan(&problem, &Options::default()).expect("a plan");
                let arena = Arena::new(&plan, queue, AllocKind::Device).expect("an arena");
                let array =
                    UsmVec::<u32, Device, _>::from_slice_in(queue, &arena.tensor(1).expect("free"), &[3; 64]);
                assert_eq!(array.expect("memory").to_vec(queue).expect("a read"), [3; 64]);
            }
            7 => assert!(context.allocate(&Request::new(AllocKind::Device, usize::MAX >> 2)).is_err()),
            8 => self.read(queue),
            _ => context.collect(),
        }
    }

    fn read(&self, queue: &Queue<Mock>) {
        for (array, value) in &self.arrays {
            assert_eq!(array.to_vec(queue).expect("a read"), [*value; 20]);
        }
        for (array, value) in &self.views {
            assert_eq!(array.read().expect("a view")[..], [*value; 9]);
        }
    }
}

#[test]
fn observers_that_use_their_context_leave_it_right() {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 90));
    let mut panics = 0;
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let mock = Mock::new(if random.once_in(3) { Progress::Immediate } else { Progress::OnWait });
        mock.seed(seed);
        let context = mock.context();
        let order = random.of(&[QueueOrder::InOrder, QueueOrder::OutOfOrder]);
        let queue = context.queue(order).expect("a queue");
        let hands = Hands {
            context: context.clone(),
            queue: context.queue(QueueOrder::OutOfOrder).expect("a queue"),
            arrays: Vec::new(),
            sort: (seed % SORTS as u64) as usize,
        };
        HANDS.set(Some(hands));
        context.set_observer(Some(observer));
        let mut program = Program::default();
        for _ in 0..40 {
            let step = || program.step(&mut random, &context, &queue);
            panics += usize::from(planned::panicked(format_args!("seed {seed}"), step));
        }
        context.set_observer(None);
        program.read(&queue);
        drop((program, HANDS.take()));
        context.synchronize(Duration::from_secs(5)).expect("no failure");
        let stats = context.stats();
        assert_eq!(
            (stats.sum.live, stats.sum.current, context.blocks().len()),
            (0, 0, 0),
            "seed {seed}: {stats:?}"
        );
        assert_eq!(mock.violations(), [], "seed {seed}");
        drop((queue, context));
        assert_eq!((mock.live_blocks(), stats.leaked), (0, 0), "seed {seed}: {stats:?}");
    }
    assert!(panics as u64 >= count / 9 && CALLS.get() as u64 > count, "{panics} {}", CALLS.get());
}
