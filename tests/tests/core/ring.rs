//! Copies through the ring of pinned blocks: what the program gets back, what is counted, and what
//! a failure says.

use core::num::NonZeroUsize;
use std::sync::Mutex;

use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{
    AllocKind, Context, Device, Error, ErrorKind, Host, MemorySource, Partial, Queue, QueueOrder, Request,
    UsmVec,
};

/// More than all blocks of the ring hold at once.
const LARGE: usize = (9 << 20) + 13;

/// A context with a queue, on a machine with several threads.
fn context(progress: Progress) -> (Mock, Context<Mock>, Queue<Mock>) {
    usm_core::threads::set(NonZeroUsize::new(4).expect("four")).expect("a number of threads");
    let mock = Mock::new(progress);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    (mock, context, queue)
}

fn numbers(len: usize) -> Vec<u8> {
    // A prime number of bytes, so that no two parts are equal.
    let block: Vec<u8> = (0..65_521_usize).map(|at| (at.wrapping_mul(0x9E37_79B1) >> 13) as u8).collect();
    block.repeat(len / block.len() + 1)[..len].to_vec()
}

fn fault(operation: Operation, skip: usize, late: bool) -> Fault {
    let error = Error::from(ErrorKind::Native { operation: "the driver's call" }).with_native(-5);
    Fault { operation, skip, error, late }
}

/// Allocations of pinned memory that fail from now on.
fn without_memory(mock: &Mock, calls: usize) {
    for _ in 0..calls {
        let memory_type = usm_core::MemoryType::UsmHost;
        let error = ErrorKind::OutOfMemory { memory_type, requested: 1 }.into();
        mock.inject(Fault { operation: Operation::Allocate, skip: 0, error, late: false });
    }
}

#[test]
fn copies_of_any_length_arrive_whole() {
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let (mock, context, _) = context(Progress::OnWait);
        let queue = context.queue(order).expect("a queue");
        let ring = 4 << 20;
        for len in [0, 1, 7919, ring - 1, ring, ring + 1, 1_299_709, LARGE] {
            let values = numbers(len);
            let mut array = UsmVec::<u8, Device, Mock>::zeroed(&queue, len).expect("an array");
            queue.copy_from_slice(&mut array, &values).expect("a copy").wait().expect("complete");
            assert!(array.to_vec(&queue).expect("a vector") == values, "{len} bytes, {order:?}");
            let mut slice = vec![0; len];
            queue.copy_to_slice(&mut slice, &array).expect("a copy");
            assert!(slice == values, "{len} bytes, {order:?}");
        }
        assert!(context.stats().ring.count > 0, "large copies go through the ring");
        assert_eq!(mock.violations(), []);
    }
}

/// Both ways by offsets that differ: a copy that forgot its own both ways would arrive whole.
#[test]
fn a_copy_to_the_middle_leaves_the_bytes_around_it() {
    const START: usize = 1_234_567;
    let (mock, context, queue) = context(Progress::OnWait);
    let block = context.allocate(&Request::new(AllocKind::Device, LARGE)).expect("memory");
    let (mut expected, part) = (numbers(LARGE), vec![7; 5 << 20]);
    for (start, bytes) in [(0, &expected), (START, &part)] {
        // SAFETY: the bytes live and stay as they are; this thread alone uses the block.
        unsafe { queue.write_bytes_from(&block, start, bytes.as_ptr(), bytes.len()) }.expect("a copy");
    }
    expected[START..][..part.len()].copy_from_slice(&part);
    for (start, len) in [(0, LARGE), (START - 3, part.len() + 9)] {
        let mut read = vec![0; len];
        // SAFETY: live bytes of this function; no work writes the block.
        unsafe { queue.read_bytes_to(read.as_mut_ptr(), &block, start, len) }.expect("a copy");
        assert!(read == expected[start..][..len], "{len} bytes from {start} on");
    }
    assert!(context.stats().ring.count > 0, "large copies go through the ring");
    assert_eq!(mock.violations(), []);
}

#[test]
fn a_slice_has_been_read_when_the_call_returns() {
    let (mock, context, queue) = context(Progress::OnWait);
    for len in [100, LARGE] {
        let (values, mut slice) = (numbers(len), numbers(len));
        let mut array = UsmVec::<u8, Device, Mock>::zeroed(&queue, len).expect("an array");
        let event = queue.copy_from_slice(&mut array, &slice).expect("a copy");
        slice.fill(0);
        drop(slice);
        event.wait().expect("complete");
        assert!(array.to_vec(&queue).expect("a vector") == values, "{len} bytes");
    }
    drop((queue, context));
    assert_eq!((mock.violations(), mock.live_blocks()), (vec![], 0));
}

/// A copy that nothing waits for is in flight in the blocks of the ring, which the next copy uses.
#[test]
fn a_block_is_not_filled_while_the_device_reads_it() {
    let (mock, _context, queue) = context(Progress::OnWait);
    let len = 5 << 20;
    let mut arrays = Vec::new();
    for number in 0..5_u8 {
        let array = UsmVec::<u8, Device, Mock>::uninit(&queue, len).expect("memory");
        let array = array.write_from_slice(&queue, &vec![number; len]).expect("a copy");
        arrays.push(array);
    }
    for (number, array) in arrays.iter().enumerate() {
        assert!(array.to_vec(&queue).expect("a vector") == vec![number as u8; len]);
    }
    assert_eq!(mock.violations(), []);
}

#[test]
fn the_ring_is_counted_apart_and_given_back() {
    let (mock, context, queue) = context(Progress::OnWait);
    let values = numbers(LARGE);
    let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &values).expect("an array");
    let stats = context.stats();
    assert_eq!((stats.sum.current, stats.sum.count), (LARGE, 1));
    assert!(stats.ring.current > 0);
    assert_eq!(stats.ring.live, mock.live_blocks() - 1);
    assert_eq!(context.blocks().len(), 1, "nobody asked for the blocks of the ring");
    assert!(stats.to_string().contains("\nring "), "{stats}");
    assert_eq!(context.device_stats().ring.current, stats.ring.current);

    queue.wait().expect("idle");
    assert_eq!(context.trim(), stats.ring.current);
    assert_eq!((context.stats().ring.current, context.trim(), mock.live_blocks()), (0, 0, 1));
    assert_eq!(context.stats().ring.peak, stats.ring.peak);
    context.reset_peak();
    assert_eq!(context.stats().ring.peak, 0);
    assert!(array.to_vec(&queue).expect("a vector") == values, "the next copy makes new blocks");
    assert_eq!(context.stats().sum.count, 1);
    drop((array, queue, context));
    assert_eq!((mock.violations(), mock.live_blocks(), mock.contexts()), (vec![], 0, 0));
}

/// The blocks that a copy in flight uses are freed after it.
#[test]
fn a_trim_frees_no_block_in_use() {
    let (mock, context, queue) = context(Progress::Manual);
    let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &numbers(4 << 20)).expect("an array");
    assert!(mock.queued() > 0);
    assert!(context.trim() > 0);
    mock.finish();
    context.collect();
    assert_eq!((context.stats().ring.current, mock.violations()), (0, vec![]));
    drop(array);
}

#[test]
fn an_allocation_without_memory_takes_that_of_the_ring() {
    let (mock, context, queue) = context(Progress::OnWait);
    let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &numbers(LARGE)).expect("an array");
    queue.wait().expect("idle");
    assert!(context.stats().ring.current > 0);
    without_memory(&mock, 1);
    let host = context.allocate(&Request::new(AllocKind::Host, 4096)).expect("the second attempt");
    assert_eq!(context.stats().ring.current, 0);
    // Without a ring there is nothing to give back, and the error is the first attempt's.
    without_memory(&mock, 1);
    let refused = context.allocate(&Request::new(AllocKind::Host, 4096)).expect_err("no memory");
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { .. }));
    drop((array, host));
}

#[test]
fn without_pinned_memory_copies_go_as_before_and_are_counted() {
    let (mock, context, queue) = context(Progress::OnWait);
    let values = numbers(LARGE);
    let mut array = UsmVec::<u8, Device, Mock>::zeroed(&queue, LARGE).expect("an array");
    for copies in 1..=2 {
        without_memory(&mock, 1);
        queue.copy_from_slice(&mut array, &values).expect("a copy").wait().expect("complete");
        let stats = context.stats();
        assert_eq!((stats.ring_refusals, stats.ring.count), (copies, 0));
    }
    without_memory(&mock, 1);
    assert!(array.to_vec(&queue).expect("a vector") == values);
    // Two blocks are enough, for fewer threads.
    mock.inject(Fault { skip: 2, ..fault(Operation::Allocate, 0, false) });
    array = UsmVec::from_slice(&queue, &values).expect("an array");
    assert_eq!((context.stats().ring.count, context.stats().ring_refusals), (1, 4));
    assert!(array.to_vec(&queue).expect("a vector") == values);
    assert_eq!(mock.violations(), []);
}

/// A copy that fails anywhere says how much was copied, loses no block, and the next one succeeds.
#[test]
fn a_failed_copy_says_how_much_was_copied() {
    let (mut partly, whole) = (0, numbers(LARGE));
    for (skip, late) in (0..10).step_by(2).flat_map(|skip| [(skip, false), (skip, true)]) {
        let (mock, context, queue) = context(Progress::OnWait);
        let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &whole).expect("an array");
        queue.wait().expect("idle");
        let mut target = vec![0; LARGE];
        mock.inject(fault(Operation::Copy, skip, late));
        let failed = queue.copy_to_slice(&mut target, &array).expect_err("injected");
        let Some(Partial { copied, len }) = failed.partial else { panic!("{failed}: no number of bytes") };
        let len = len.get();
        assert_eq!((failed.native, len), (Some(-5), LARGE as u64));
        assert!(copied < len, "{failed}");
        assert!(failed.to_string().contains(&format!("; {copied} of {len} bytes were copied")), "{failed}");
        let chunks = target.chunks(256 << 10).zip(whole.chunks(256 << 10));
        let arrived: usize = chunks.filter(|(one, other)| one == other).map(|(one, _)| one.len()).sum();
        assert!(arrived as u64 >= copied, "{arrived} bytes arrived, {failed}");
        partly += usize::from(copied > 0);
        drop((array, queue, context));
        assert_eq!(mock.violations(), []);
    }
    assert!(partly > 0, "some copies fail in the middle");
}

#[test]
fn threads_that_copy_at_once_have_blocks_of_their_own() {
    let (mock, context, _) = context(Progress::OnWait);
    let outcomes = Mutex::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4_u8 {
            let (context, outcomes) = (&context, &outcomes);
            scope.spawn(move || {
                let queue = context.queue(QueueOrder::InOrder).expect("a queue");
                for len in [4 << 20, (5 << 20) + 1] {
                    let values = vec![seed; len];
                    let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &values).expect("an array");
                    assert!(array.to_vec(&queue).expect("a vector") == values);
                    *outcomes.lock().expect("no panic") += 1;
                }
            });
        }
    });
    assert_eq!(outcomes.into_inner().expect("no panic"), 8);
    drop(context);
    assert_eq!((mock.violations(), mock.live_blocks()), (vec![], 0));
}

#[test]
fn a_vector_is_read_into_its_own_memory() {
    let (_mock, _context, queue) = context(Progress::OnWait);
    for len in [1000, 4 << 20] {
        let array = UsmVec::<u8, Device, Mock>::from_slice(&queue, &numbers(len)).expect("an array");
        let mut values = Vec::with_capacity(len + 5);
        values.push(1);
        let address = values.as_ptr();
        queue.read_into(&mut values, &array).expect("a copy");
        assert!(values == numbers(len));
        assert_eq!(values.as_ptr(), address);
    }
}

#[test]
fn a_copy_that_owns_a_vector_gives_it_back() {
    let (mock, context, queue) = context(Progress::OnWait);
    for len in [0, 1, 7919, 1 << 20] {
        let values = numbers(len);
        let address = values.as_ptr();
        let mut array = UsmVec::<u8, Device, Mock>::zeroed(&queue, len).expect("an array");
        let sent = queue.copy_from_vec(&mut array, values).expect("a copy");
        let values = sent.wait().expect("complete");
        assert_eq!((values.as_ptr(), values.len()), (address, len));
        let received = queue.copy_to_vec(vec![0; len], &array).expect("a copy");
        assert!(received.wait().expect("complete") == values);
    }
    let mut array = UsmVec::<u8, Device, Mock>::zeroed(&queue, 3).expect("an array");
    let (values, error) = queue.copy_from_vec(&mut array, vec![1, 2]).expect_err("another length");
    assert_eq!((values, error.kind), (vec![1, 2], ErrorKind::LengthMismatch { expected: 3, found: 2 }));
    mock.inject(fault(Operation::Copy, 0, false));
    let (values, error) = queue.copy_from_vec(&mut array, vec![1, 2, 3]).expect_err("injected");
    assert_eq!((values, error.native), (vec![1, 2, 3], Some(-5)));
    // Forgotten and dropped copies keep their vectors until they are complete.
    core::mem::forget(queue.copy_from_vec(&mut array, vec![4, 5, 6]).expect("a copy"));
    drop(queue.copy_from_vec(&mut array, vec![7, 8, 9]).expect("a copy"));
    assert_eq!(array.to_vec(&queue).expect("a vector"), [7, 8, 9]);
    context.collect();
    assert_eq!((mock.violations(), context.deferred_frees()), (vec![], 0));
}

#[test]
fn a_copy_that_ran_out_of_time_keeps_its_vector() {
    let (mock, context, queue) = context(Progress::Manual);
    let array = UsmVec::<u8, Host, Mock>::from_slice(&queue, &[1, 2, 3]).expect("an array");
    context.set_wait_limit(core::time::Duration::from_millis(1));
    let copy = queue.copy_to_vec(vec![0; 3], &array).expect("a copy");
    let (copy, error) = copy.wait().expect_err("nothing runs");
    assert_eq!(error.kind, ErrorKind::Timeout { limit_ms: 1 });
    mock.finish();
    assert_eq!(copy.wait().expect("complete"), [1, 2, 3]);
}
