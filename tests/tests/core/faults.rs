//! A failing driver: every failure is an error with its code, and no memory is lost or freed twice.

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Allocation, Buffer, Context, Device, Error, ErrorKind, EventStatus, Fallback, Host, Memory,
    MemorySource, MemoryType, Queue, QueueOrder, Request, Shared, UsmVec,
};
use usm_tests::programs::{Random, number_in};

fn fault(operation: Operation, late: bool) -> Fault {
    let error = Error::from(ErrorKind::Native { operation: "the driver's call" }).with_native(-5);
    Fault { operation, skip: 0, error, late }
}

#[test]
fn every_call_passes_the_native_code_on() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");

    mock.inject(fault(Operation::Allocate, false));
    let error = context.allocate(&Request::new(AllocKind::Host, 8)).expect_err("injected");
    assert_eq!(error.to_string(), "mock: the driver's call failed (native code -5)");
    mock.inject(fault(Operation::Fill, false));
    assert_eq!(queue.fill(&mut array, 1).expect_err("injected").native, Some(-5));
    mock.inject(fault(Operation::Query, false));
    assert_eq!(context.query_runtime(1).expect_err("injected").native, Some(-5));
    mock.inject(fault(Operation::CreateQueue, false));
    assert!(context.queue(QueueOrder::InOrder).is_err());

    let _ = queue.fill(&mut array, 3).expect("the fault was for one call");
    assert_eq!(array.read().expect("a view")[..], [3; 4]);
}

/// The first, second, ... call of each kind fails. The array then has its old or its intended
/// content.
#[test]
fn a_round_trip_with_a_fault_anywhere_loses_nothing() {
    for operation in [Operation::Allocate, Operation::Copy, Operation::Fill] {
        for (skip, late) in (0..4).flat_map(|skip| [(skip, false), (skip, true)]) {
            let mock = Mock::new(Progress::OnWait);
            let context = mock.context();
            let queue = context.queue(QueueOrder::InOrder).expect("a queue");
            mock.inject(Fault { skip, ..fault(operation, late) });
            let outcome = (|| -> usm_core::Result<Vec<u32>> {
                let input = UsmVec::<u32, Host, Mock>::from_slice(&queue, &[1, 2, 3])?;
                let mut device = UsmVec::<u32, Device, Mock>::zeroed(&queue, 3)?;
                let _ = queue.copy(&mut device, &input)?;
                device.to_vec(&queue)
            })();
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3]),
                Err(error) => assert_eq!(error.native, Some(-5), "{operation:?} {skip} {late}"),
            }
            drop(queue);
            drop(context);
            assert_eq!(mock.violations(), []);
        }
    }
}

#[test]
fn work_that_fails_late_fails_its_event_and_what_depends_on_it() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let mut source = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let mut target = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    mock.inject(fault(Operation::Fill, true));
    let filled = queue.fill(&mut source, 1).expect("submitted");
    let copied = queue.copy(&mut target, &source).expect("submitted");
    assert_eq!(filled.status().expect("not yet"), EventStatus::Pending);
    mock.finish();
    assert_eq!(filled.status().expect_err("it failed").native, Some(-5));
    assert_eq!(copied.wait().expect_err("poisoned").native, Some(-5));
    assert_eq!(target.read().expect_err("the content is unknown").native, Some(-5));
}

#[test]
fn a_lost_device_ends_every_wait() {
    let mock = Mock::new(Progress::OnWait);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = UsmVec::<u32, Shared, Mock>::zeroed(&queue, 4).expect("memory");
    let event = queue.fill(&mut array, 1).expect("submitted");
    mock.lose_device();
    assert_eq!(event.wait().expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(array.read().expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(queue.fill(&mut array, 2).expect_err("lost").kind, ErrorKind::DeviceLost);
    assert_eq!(queue.wait().expect_err("lost").kind, ErrorKind::DeviceLost);
    // The device may still access the memory, so it is leaked, not freed.
    drop((array, queue));
    assert_eq!(context.deferred_frees(), 1);
    drop(context);
    assert_eq!((mock.live_blocks(), mock.violations()), (1, vec![]));
}

#[test]
fn a_context_that_cannot_be_made_is_an_error() {
    let mock = Mock::default();
    mock.inject(fault(Operation::CreateContext, false));
    let mut first = None;
    usm_core::Backend::for_each_device(&mock, &mut |device| first = Some(device)).expect("devices");
    let device = first.expect("one device");
    assert_eq!(Context::new(&mock, &device).expect_err("injected").native, Some(-5));
    assert_eq!(Context::new(&mock, &device).expect("once").stats().of(MemoryType::UsmHost).count, 0);
}

/// Objects of one context.
struct Objects {
    blocks: Vec<Allocation<Mock>>,
    buffers: Vec<Buffer<Mock>>,
    queues: Vec<Queue<Mock>>,
    context: Context<Mock>,
}

impl Objects {
    fn new(context: Context<Mock>) -> Self {
        let orders = [QueueOrder::InOrder, QueueOrder::OutOfOrder];
        let queues = orders.into_iter().filter_map(|order| context.queue(order).ok()).collect();
        Self { blocks: Vec::new(), buffers: Vec::new(), queues, context }
    }

    /// Any call may fail.
    fn step(&mut self, random: &mut Random) -> Option<()> {
        let queue = self.queues.get(random.below(2))?;
        match random.below(9) {
            0 => {
                let kind = random.of(&[AllocKind::Device, AllocKind::Shared, AllocKind::Host]);
                self.blocks.push(self.context.allocate(&Request::new(kind, 64)).ok()?);
            }
            1 => self.blocks.push(queue.allocate(&Request::new(AllocKind::Device, 64)).ok()?),
            2 => match self.context.allocate_memory(MemoryType::Buffer, 64, 0, Fallback::Refuse).ok()? {
                Memory::Buffer(buffer) => self.buffers.push(buffer),
                Memory::Usm(block) => self.blocks.push(block),
            },
            3 if self.blocks.len() > 1 => {
                let mut to = self.blocks.swap_remove(random.below(self.blocks.len()));
                let from = &self.blocks[random.below(self.blocks.len())];
                let _ = queue.copy_bytes(&mut to, 0, from, 0, 64);
                self.blocks.push(to);
            }
            4 if !self.buffers.is_empty() => {
                let last = self.buffers.len() - 1;
                let _ = queue.fill_buffer(&mut self.buffers[last], 0, 64, &[1]);
            }
            5 if !self.blocks.is_empty() => {
                drop(self.blocks.swap_remove(random.below(self.blocks.len())));
            }
            6 => drop(self.buffers.pop()),
            // Through memory of the driver: leaked memory of the process counts as leaked too.
            7 => {
                let near = UsmVec::<u32, Host, Mock>::from_slice(queue, &[1; 9]).ok()?;
                let far = UsmVec::<u32, Device, Mock>::uninit(queue.context(), 9).ok()?;
                let (far, _) = far.copy_from(queue, &near).ok()?;
                let back = UsmVec::<u32, Host, Mock>::uninit(queue.context(), 9).ok()?;
                drop(back.copy_from(queue, &far).ok()?.0.to_vec(queue));
            }
            8 => self.context.collect(),
            _ => {}
        }
        Some(())
    }
}

/// A block whose work failed is never freed. After the end of its context the
/// device's statistics count each block that the driver still has as leaked.
#[test]
fn blocks_of_failed_work_stay_counted_after_their_context() {
    let (first, count) = (number_in("USM_PROGRAMS_FROM", 0), number_in("USM_PROGRAMS", 400));
    let mut leaked = 0;
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let progress = random.of(&[Progress::Immediate, Progress::OnWait, Progress::Manual]);
        let mock = Mock::new(progress);
        let mock = if random.once_in(3) { mock.without_queue_memory() } else { mock };
        mock.seed(seed);
        let idle = mock.context();
        let mut contexts = [mock.context(), mock.context()].map(Objects::new);
        let limit = core::time::Duration::from_millis(1);
        contexts.iter().for_each(|objects| objects.context.set_wait_limit(limit));
        for _ in 0..random.below(6) {
            use Operation::{Allocate, AllocateInOrder, Barrier, Copy, Fill, FreeInOrder};
            let operation =
                random.of(&[Allocate, AllocateInOrder, FreeInOrder, FreeInOrder, Copy, Copy, Fill, Barrier]);
            mock.inject(Fault {
                skip: random.below(8),
                ..fault(operation, operation != Allocate && random.once_in(2))
            });
        }
        for _ in 0..30 {
            let _ = contexts[usize::from(random.once_in(2))].step(&mut random);
            if random.once_in(4) {
                mock.step();
            }
        }
        if random.once_in(8) {
            mock.lose_device();
        }
        drop(contexts);
        let stats = idle.device_stats();
        assert_eq!(mock.violations(), [], "seed {seed}");
        assert_eq!(stats.leaked, mock.live_blocks(), "seed {seed}, {progress:?}: {stats:?}");
        assert!(stats.sum.live <= stats.leaked, "seed {seed}, {progress:?}: {stats:?}");
        leaked += stats.leaked;
    }
    assert!(leaked as u64 > count / 4, "{leaked}");
}
