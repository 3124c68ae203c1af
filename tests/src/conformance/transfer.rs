//! Copies and fills: what moves, and what is refused before a driver sees it.

use usm_core::{
    AllocKind, Allocation, AnyKind, Backend, ErrorKind, Fallback, MemAdvice, Memory, MemorySource,
    MemoryType, Queue, QueueOrder, Request, UsmVec,
};

use crate::Fixture;

fn queue<B: Backend>(fixture: &Fixture<'_, B>) -> Queue<B> {
    fixture.context.queue(QueueOrder::InOrder).expect("a queue")
}

fn array<B: Backend>(queue: &Queue<B>, kind: AllocKind, values: &[u32]) -> UsmVec<u32, AnyKind, B> {
    UsmVec::from_slice_any(queue, queue.context(), kind, values).expect("an array")
}

fn allocate<B: Backend>(fixture: &Fixture<'_, B>, size: usize) -> Allocation<B> {
    fixture.context.allocate(&Request::new(AllocKind::Shared, size)).expect("memory")
}

/// Nine pairs.
pub fn every_pair_of_kinds_copies<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let values: Vec<u32> = (0..1000).collect();
    for from in AllocKind::ALL {
        for to in AllocKind::ALL {
            let source = array(&queue, from, &values);
            let mut target = array(&queue, to, &vec![7; 1000]);
            let _ = queue.copy(&mut target, &source).expect("a copy");
            assert_eq!(target.to_vec(&queue).expect("the content"), values, "{from} to {to}");
        }
    }
}

/// Byte offsets on both sides.
pub fn ranges_copy_between_offsets<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let source = array(&queue, AllocKind::Device, &[1, 2, 3, 4, 5]);
    let mut target = array(&queue, AllocKind::Device, &[0; 5]);
    // SAFETY: the source has a value, and the memory stays in its place.
    let memory = unsafe { target.allocation_mut() };
    let event = queue.copy_bytes(memory, 4, source.allocation(), 8, 12).expect("a copy");
    event.wait().expect("done");
    assert_eq!(target.to_vec(&queue).expect("the content"), [0, 3, 4, 5, 0]);
}

/// Also where offset and length overflow.
pub fn a_range_outside_is_refused_with_the_numbers<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let (mut target, source) = (allocate(fixture, 64), allocate(fixture, 32));
    let refused = queue.copy_bytes(&mut target, 0, &source, 1, 32).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 1, len: 32, size: 32 });
    let refused = queue.fill_bytes(&mut target, usize::MAX, 2, &[0]).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: usize::MAX, len: 2, size: 64 });
}

/// Some drivers report it, others corrupt memory.
pub fn overlap_inside_an_allocation_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut allocation = allocate(fixture, 64);
    let refused = queue.copy_within(&mut allocation, 8, 0, 16).expect_err("overlap");
    assert!(matches!(refused.kind, ErrorKind::Overlap { len: 16, .. }), "{refused}");
}

/// Touching is not overlapping.
pub fn neighbours_inside_an_allocation_copy<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut values = array(&queue, AllocKind::Device, &[1, 2, 0, 0]);
    // SAFETY: the source has a value, and the memory stays in its place.
    let memory = unsafe { values.allocation_mut() };
    let _ = queue.copy_within(memory, 8, 0, 8).expect("a copy");
    assert_eq!(values.to_vec(&queue).expect("the content"), [1, 2, 1, 2]);
}

/// Zero bytes: an event that completes.
pub fn an_empty_copy_is_fine<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let (mut target, source) = (allocate(fixture, 8), allocate(fixture, 8));
    queue.copy_bytes(&mut target, 8, &source, 0, 0).expect("a copy").wait().expect("done");
    queue.fill_bytes(&mut target, 8, 0, &[1]).expect("a fill").wait().expect("done");
}

/// 1, 2, 4, 8 and 16 bytes.
pub fn fills_of_every_width<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    for width in [1, 2, 4, 8, 16_u8] {
        let pattern: Vec<u8> = (1..=width).collect();
        for kind in AllocKind::ALL {
            let mut bytes =
                UsmVec::<u8, AnyKind, B>::zeroed_any(&queue, fixture.context, kind, 96).expect("an array");
            // SAFETY: a pattern has a value, and the memory stays in its place.
            let memory = unsafe { bytes.allocation_mut() };
            let _ = queue.fill_bytes(memory, 16, 64, &pattern).expect("a fill");
            let content = bytes.to_vec(&queue).expect("the content");
            assert!(content[..16].iter().chain(&content[80..]).all(|byte| *byte == 0), "{width} {kind}");
            assert!(
                content[16..80].chunks(usize::from(width)).all(|chunk| chunk == pattern),
                "{width} {kind}"
            );
        }
    }
}

/// Widths that not every driver has, and ranges that are no multiple.
pub fn odd_fill_widths_are_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut allocation = allocate(fixture, 64);
    for (pattern, len) in [(&[0_u8; 3][..], 9), (&[0; 0], 8), (&[0; 32], 64), (&[0; 4], 6)] {
        let refused = queue.fill_bytes(&mut allocation, 0, len, pattern).expect_err("odd").kind;
        assert_eq!(refused, ErrorKind::BadPattern { width: pattern.len(), len });
    }
}

/// A pattern of eight bytes at byte 4.
pub fn a_misaligned_fill_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut allocation = allocate(fixture, 64);
    let refused = queue.fill_bytes(&mut allocation, 4, 8, &[0; 8]).expect_err("misaligned").kind;
    assert_eq!(refused, ErrorKind::BadPattern { width: 8, len: 8 });
}

/// On either side of a copy.
pub fn memory_of_another_context_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut ours = allocate(fixture, 8);
    let mut theirs = fixture.other.allocate(&Request::new(AllocKind::Shared, 8)).expect("memory");
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    let refused = queue.copy_bytes(&mut ours, 0, &theirs, 0, 8).expect_err("foreign").kind;
    assert_eq!(refused, ErrorKind::WrongContext { expected, found });
    let refused = queue.fill_bytes(&mut theirs, 0, 8, &[0]).expect_err("foreign").kind;
    assert_eq!(refused, ErrorKind::WrongContext { expected, found });
}

fn buffer<B: Backend>(fixture: &Fixture<'_, B>, size: usize) -> Option<usm_core::Buffer<B>> {
    match fixture.context.allocate_memory(MemoryType::Buffer, size, 0, Fallback::Refuse) {
        Ok(Memory::Buffer(buffer)) => Some(buffer),
        Ok(Memory::Usm(allocation)) => panic!("a buffer was asked for, this is {allocation:?}"),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
            None
        }
    }
}

/// In and out of an object without an address; a backend without buffers says so.
pub fn a_buffer_round_trip<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture, 64) else { return };
    let source = array(&queue, AllocKind::Host, &[1, 2, 3, 4]);
    let mut target = array(&queue, AllocKind::Host, &[0; 4]);
    let _ = queue.write_buffer(&mut opaque, 16, source.allocation(), 4, 12).expect("a write");
    // SAFETY: the buffer has a value there, and the memory stays in its place.
    let memory = unsafe { target.allocation_mut() };
    let _ = queue.read_buffer(&opaque, 16, memory, 0, 12).expect("a read");
    let mut empty = allocate(fixture, 8);
    queue.write_buffer(&mut opaque, 64, &empty, 8, 0).expect("no bytes").wait().expect("done");
    queue.read_buffer(&opaque, 64, &mut empty, 8, 0).expect("no bytes").wait().expect("done");
    drop(opaque);
    assert_eq!(target.to_vec(&queue).expect("the content"), [2, 3, 4, 0]);
    queue.wait().expect("idle");
    assert_eq!(fixture.context.stats().of(MemoryType::Buffer).live, 0);
}

/// With the three numbers.
pub fn a_buffer_range_outside_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture, 64) else { return };
    let source = allocate(fixture, 64);
    let refused = queue.write_buffer(&mut opaque, 60, &source, 0, 8).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 60, len: 8, size: 64 });
    let device = fixture.context.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
    let refused = queue.write_buffer(&mut opaque, 0, &device, 0, 8).expect_err("no host pointer").kind;
    assert_eq!(refused, ErrorKind::NotHostAccessible { kind: AllocKind::Device });
}

/// Prefetch and advice are hints, or typed refusals.
pub fn hints_change_nothing<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let values = array(&queue, AllocKind::Shared, &[1, 2, 3]);
    let hints = [queue.prefetch(values.allocation()), queue.advise(values.allocation(), MemAdvice::Reset)];
    for hint in hints {
        match hint {
            Ok(event) => event.wait().expect("done"),
            Err(error) => assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}"),
        }
    }
    assert_eq!(values.to_vec(&queue).expect("the content"), [1, 2, 3]);
}
