//! Devices that lack kinds of memory. Memory that the host cannot access is staged in another kind,
//! or refused by name.

use usm_core::backend::mock::{Mock, Progress};
use usm_core::{
    AccessFlags, AllocKind, Allocation, Context, Device, ErrorKind, Fallback, Host, Memory, MemorySource,
    MemoryType, Queue, QueueOrder, Request, Strided, UsmVec,
};
use usm_tests::Fixture;
use usm_tests::conformance::strided;
use usm_tests::counting::without_larger_blocks;

/// A device with shared and device memory.
fn without_host_memory(progress: Progress) -> Mock {
    Mock::new(progress).with_device(|info| info.capabilities.host = AccessFlags::empty())
}

/// A device with device memory only.
fn with_only_device_memory() -> Mock {
    without_host_memory(Progress::OnWait).with_device(|info| info.capabilities.shared = AccessFlags::empty())
}

#[test]
fn strided_copies_need_no_host_memory_of_the_device() {
    for progress in [Progress::Immediate, Progress::OnWait] {
        let mock = without_host_memory(progress);
        let (context, other) = (mock.context(), mock.context());
        let fixture = Fixture { context: &context, other: &other, separate: true, failing: None };
        assert_eq!(fixture.kinds(), [AllocKind::Device, AllocKind::Shared]);
        strided::strided_copies_agree_with_the_reference(&fixture);
        strided::large_layouts_copy_in_every_way(&fixture);
        strided::an_array_is_reversed_in_place(&fixture);
        strided::layouts_that_do_not_fit_are_refused(&fixture);
        assert_eq!(mock.violations(), []);
    }
}

#[test]
fn arrays_need_no_host_memory_of_the_device() {
    let context = without_host_memory(Progress::OnWait).context();
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let array = UsmVec::<u32, Device, Mock>::from_slice(&queue, &[1, 2, 3]).expect("an array");
    assert_eq!(array.to_vec(&queue).expect("its content"), [1, 2, 3]);
    let refused = UsmVec::<u32, Host, Mock>::zeroed(&queue, 3).expect_err("no such memory").kind;
    assert_eq!(refused, ErrorKind::Unsupported { operation: "this kind of memory on this device" });
    assert_eq!(context.stats().sum.live, 1);
}

/// 40 rows of 3 bytes, 7 bytes apart, twice: too many for paths without staging, and small enough
/// for staging.
const ROWS: [usize; 3] = [2, 40, 3];

fn memory(context: &Context<Mock>) -> Allocation<Mock> {
    context.allocate(&Request::new(AllocKind::Device, 600)).expect("device memory")
}

/// The device's content: the mock's device memory lies in this process.
fn content(queue: &Queue<Mock>, allocation: &Allocation<Mock>) -> Vec<u8> {
    queue.wait().expect("idle");
    // SAFETY: live memory of that size, initialised, and the only queue is idle.
    unsafe { core::slice::from_raw_parts(allocation.as_ptr(), allocation.size()) }.to_vec()
}

#[test]
fn strided_copies_are_equal_with_device_memory_only() {
    let mock = with_only_device_memory();
    let context = mock.context();
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = context.queue(order).expect("a queue");
        let (mut dst, mut src) = (memory(&context), memory(&context));
        let _ = queue.fill_bytes(&mut dst, 0, 600, &[0]).expect("a fill");
        for byte in 0..150_u32 {
            let _ = queue.fill_bytes(&mut src, 4 * byte as usize, 4, &byte.to_le_bytes()).expect("a fill");
        }
        let numbers = content(&queue, &src);
        let strides = ([290, 7, 1], [200, 5, 1]);
        let to = Strided::new(5, 1, &ROWS, &strides.0).expect("a layout");
        let from = Strided::new(2, 1, &ROWS, &strides.1).expect("a layout");
        let place = |offset: usize, strides: [isize; 3], index: [usize; 3]| {
            offset + strides.iter().zip(index).map(|(stride, at)| *stride as usize * at).sum::<usize>()
        };
        let mut expected = vec![0; 600];
        for index in 0..2 * 40 * 3 {
            let index = [index / 120, index / 3 % 40, index % 3];
            expected[place(5, strides.0, index)] = numbers[place(2, strides.1, index)];
        }
        let _ = queue.copy_strided(&mut dst, &to, &src, &from).expect("a copy");
        assert_eq!(content(&queue, &dst), expected, "{order:?}");

        let (to, from) = (Strided::new(0, 1, &[600], &[1]), Strided::new(599, 1, &[600], &[-1]));
        let (to, from) = (to.expect("a layout"), from.expect("a layout"));
        let _ = queue.copy_strided_within(&mut src, &to, &from).expect("a copy");
        let reversed: Vec<u8> = numbers.into_iter().rev().collect();
        assert_eq!(content(&queue, &src), reversed, "{order:?}");
    }
    assert_eq!(mock.violations(), []);
}

#[test]
fn host_data_need_no_other_memory_of_the_device() {
    let context = with_only_device_memory().context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let array = UsmVec::<u32, Device, Mock>::from_slice(&queue, &[1, 2, 3]).expect("an array");
    assert_eq!(array.to_vec(&queue).expect("its content"), [1, 2, 3]);
    assert_eq!(context.stats().sum.count, 1, "the device allocated the array only");
}

/// Room for everything except the staging memory.
#[test]
fn a_process_without_memory_for_staging_gets_an_error() {
    const BYTES: usize = 1 << 16;
    let context = Mock::new(Progress::OnWait).context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let buffer = context.allocate_memory(MemoryType::Buffer, BYTES, 0, Fallback::Refuse);
    let Memory::Buffer(mut buffer) = buffer.expect("a buffer") else { panic!("a buffer was asked for") };
    let mut memory = context.allocate(&Request::new(AllocKind::Device, BYTES)).expect("device memory");
    let (to, from) = (Strided::new(0, 1, &[BYTES], &[1]), Strided::new(BYTES - 1, 1, &[BYTES], &[-1]));
    let (to, from) = (to.expect("a layout"), from.expect("a layout"));
    let mut bytes = vec![7; BYTES];
    queue.write_buffer_from(&mut buffer, 0, &bytes).expect("a write").wait().expect("done");
    let _ = queue.fill_bytes(&mut memory, 0, BYTES, &[7]).expect("a fill");
    bytes.fill(9);
    let stats = context.stats();
    let expected = ErrorKind::OutOfMemory { memory_type: MemoryType::UsmHost, requested: BYTES as u64 };
    let refusals = without_larger_blocks(BYTES - 1, || {
        [
            queue.write_buffer_from(&mut buffer, 0, &bytes).map(drop),
            queue.read_buffer_to(&buffer, 0, &mut bytes),
            queue.copy_strided_within(&mut memory, &to, &from).map(drop),
        ]
    });
    for refused in refusals {
        let refused = refused.expect_err("no memory");
        assert_eq!((refused.kind, refused.backend), (expected, Some(context.info().backend)));
    }
    assert!(bytes.iter().all(|byte| *byte == 9), "nothing was read");
    assert_eq!(context.stats(), stats);
    queue.read_buffer_to(&buffer, 0, &mut bytes).expect("there is memory again");
    assert!(bytes.iter().all(|byte| *byte == 7), "nothing was written");
}
