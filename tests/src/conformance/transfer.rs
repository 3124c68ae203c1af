//! Copies and fills: their effect, and refusals before the driver is called.

use usm_core::{
    AllocKind, Allocation, AnyKind, Backend, Context, ErrorKind, Event, Fallback, MemAdvice, Memory,
    MemorySource, MemoryType, Queue, QueueOrder, Request, Strided, UsmVec,
};

use crate::{Fixture, skip};

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

/// Also if offset plus length overflows.
pub fn a_range_outside_is_refused_with_the_numbers<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let (mut target, source) = (allocate(fixture, 64), allocate(fixture, 32));
    let refused = queue.copy_bytes(&mut target, 0, &source, 1, 32).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 1, len: 32, size: 32 });
    let refused = queue.fill_bytes(&mut target, usize::MAX, 2, &[0]).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: usize::MAX, len: 2, size: 64 });
}

/// Some drivers report it, others corrupt memory. Every distance in both directions, and a range
/// onto itself.
pub fn overlap_inside_an_allocation_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut allocation = allocate(fixture, 64);
    for (to, from) in (0..16).flat_map(|distance| [(16 + distance, 16), (16, 16 + distance)]) {
        let (dst, src) = (allocation.as_ptr() as usize + to, allocation.as_ptr() as usize + from);
        let refused = queue.copy_within(&mut allocation, to, from, 16).expect_err("overlap");
        assert_eq!(refused.kind, ErrorKind::Overlap { dst, src, len: 16 }, "{refused}");
    }
    // The same memory with another owner.
    let block = *allocation.block();
    // SAFETY: `allocation` outlives it, and nothing runs.
    let mut alias = unsafe { Allocation::foreign(fixture.context.clone(), block, Box::new(())) };
    let refused = queue.copy_bytes(&mut alias, 0, &allocation, 8, 16).expect_err("overlap");
    assert!(matches!(refused.kind, ErrorKind::Overlap { len: 16, .. }), "{refused}");
}

/// Adjacent ranges do not overlap.
pub fn neighbours_inside_an_allocation_copy<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let mut values = array(&queue, AllocKind::Device, &[1, 2, 0, 0]);
    // SAFETY: the source has a value, and the memory stays in its place.
    let memory = unsafe { values.allocation_mut() };
    let _ = queue.copy_within(memory, 8, 0, 8).expect("a copy");
    assert_eq!(values.to_vec(&queue).expect("the content"), [1, 2, 1, 2]);
}

/// Zero bytes at every offset up to the end: the event completes and no memory changes. Beyond the
/// end they are refused.
pub fn no_bytes_are_fine_in_every_operation<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let done = |event: usm_core::Result<Event<B>>| event.expect("nothing to do").wait().expect("done");
    for kind in AllocKind::ALL {
        let source = array(&queue, kind, &[1, 2]);
        let mut target = array(&queue, kind, &[3, 4]);
        // SAFETY: nothing is written.
        let memory = unsafe { target.allocation_mut() };
        for place in [0, 3, 8] {
            done(queue.copy_bytes(memory, place, source.allocation(), 8 - place, 0));
            done(queue.copy_within(memory, place, place, 0));
            done(queue.fill_bytes(memory, 0, 0, &[1, 2, 3, 4]));
            done(queue.fill_bytes(memory, place, 0, &[1]));
            let nothing = Strided::new(place, 4, &[3, 0], &[4, 4]).expect("a layout");
            done(queue.copy_strided(memory, &nothing, source.allocation(), &nothing));
            done(queue.copy_strided_within(memory, &nothing, &nothing));
        }
        let outside = ErrorKind::OutOfBounds { offset: 9, len: 0, size: 8 };
        let refused = |event: usm_core::Result<Event<B>>| event.map(drop).expect_err("outside").kind;
        assert_eq!(refused(queue.copy_bytes(memory, 9, source.allocation(), 0, 0)), outside);
        assert_eq!(refused(queue.copy_bytes(memory, 0, source.allocation(), 9, 0)), outside);
        assert_eq!(refused(queue.copy_within(memory, 9, 0, 0)), outside);
        assert_eq!(refused(queue.copy_within(memory, 0, 9, 0)), outside);
        assert_eq!(refused(queue.fill_bytes(memory, 9, 0, &[1])), outside);
        assert_eq!(target.to_vec(&queue).expect("the content"), [3, 4], "{kind}");
        let (mut none, nobody) = (array(&queue, kind, &[]), array(&queue, kind, &[]));
        done(queue.copy(&mut none, &nobody));
        done(queue.fill(&mut none, 7));
        assert_eq!(none.to_vec(&queue).expect("the content"), []);
    }
}

/// One byte past the end, and an overflowing sum, are refused by every operation that takes a
/// range.
pub fn one_byte_too_many_is_refused_by_every_operation<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let (mut memory, source) = (allocate(fixture, 8), allocate(fixture, 8));
    let refused = |event: usm_core::Result<Event<B>>| event.map(drop).expect_err("outside").kind;
    for (offset, len) in [(1, 8), (8, 1), (0, 9), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)]
    {
        let outside = ErrorKind::OutOfBounds { offset, len, size: 8 };
        if len <= 8 {
            assert_eq!(refused(queue.copy_bytes(&mut memory, 0, &source, offset, len)), outside);
            assert_eq!(refused(queue.copy_within(&mut memory, 0, offset, len)), outside);
        }
        assert_eq!(refused(queue.copy_bytes(&mut memory, offset, &source, 0, len)), outside);
        assert_eq!(refused(queue.copy_within(&mut memory, offset, 0, len)), outside);
        assert_eq!(refused(queue.fill_bytes(&mut memory, offset, len, &[1])), outside);
    }
    let inside = Strided::new(0, 1, &[8], &[1]).expect("a layout");
    let beyond = Strided::new(1, 1, &[8], &[1]).expect("a layout");
    let outside = ErrorKind::OutOfBounds { offset: 1, len: 8, size: 8 };
    assert_eq!(refused(queue.copy_strided(&mut memory, &beyond, &source, &inside)), outside);
    assert_eq!(refused(queue.copy_strided(&mut memory, &inside, &source, &beyond)), outside);
    assert_eq!(refused(queue.copy_strided_within(&mut memory, &beyond, &inside)), outside);
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

/// The rule: 1, 2, 4, 8 or 16 bytes that divide the range and the address. Drivers accept more, or
/// less, or fill something else.
pub fn fills_follow_one_rule<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    for kind in AllocKind::ALL {
        let mut expected = [0_u8; 96];
        let mut bytes = UsmVec::<u8, AnyKind, B>::from_slice_any(&queue, fixture.context, kind, &expected)
            .expect("an array");
        assert_eq!(bytes.as_ptr() as usize % 16, 0);
        // SAFETY: a pattern has a value, and the memory stays in its place.
        let memory = unsafe { bytes.allocation_mut() };
        for width in (0..=18).chain([32, 64, 96]) {
            let pattern: Vec<u8> = (0..width).map(|index| (width + index) as u8).collect();
            for (offset, len) in
                [(0, 96), (0, 48), (0, 50), (1, 48), (2, 48), (4, 48), (8, 48), (16, 48), (32, 16)]
            {
                // Another pattern at each offset: the same pattern would hide a wrong place.
                let pattern: Vec<u8> = pattern.iter().map(|byte| byte.wrapping_add(offset as u8)).collect();
                let suits = [1, 2, 4, 8, 16].contains(&width) && len % width == 0 && offset % width == 0;
                match queue.fill_bytes(memory, offset, len, &pattern) {
                    Ok(_) => {
                        assert!(suits, "{width} bytes at {offset} over {len}");
                        for (byte, value) in
                            expected[offset..offset + len].iter_mut().zip(pattern.iter().cycle())
                        {
                            *byte = *value;
                        }
                    }
                    Err(error) => {
                        assert!(!suits, "{width} bytes at {offset} over {len}: {error}");
                        assert_eq!(error.kind, ErrorKind::BadPattern { width, len });
                    }
                }
            }
        }
        assert_eq!(bytes.to_vec(&queue).expect("the content"), expected, "{kind}");
    }
}

/// An opaque buffer, or `None` after a report if the backend has none.
pub(super) fn buffer<B: Backend>(context: &Context<B>, size: usize) -> Option<usm_core::Buffer<B>> {
    match context.allocate_memory(MemoryType::Buffer, size, 0, Fallback::Refuse) {
        Ok(Memory::Buffer(buffer)) => Some(buffer),
        Ok(Memory::Usm(allocation)) => panic!("a buffer was asked for, this is {allocation:?}"),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
            skip::limit(context.info().backend, "there are no buffers");
            None
        }
    }
}

/// Writes and reads an object without an address. A backend without buffers says so.
pub fn a_buffer_round_trip<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture.context, 64) else { return };
    let source = array(&queue, AllocKind::Host, &[1, 2, 3, 4]);
    let mut target = array(&queue, AllocKind::Host, &[0; 4]);
    let _ = queue.write_buffer(&mut opaque, 16, &source, 4, 12).expect("a write");
    // SAFETY: the buffer has a value there, and the memory stays in its place.
    let memory = unsafe { target.allocation_mut() };
    let _ = queue.read_buffer(&opaque, 16, memory, 0, 12).expect("a read");
    let mut empty = allocate(fixture, 8);
    queue.write_buffer(&mut opaque, 64, &source, 16, 0).expect("no bytes").wait().expect("done");
    queue.read_buffer(&opaque, 64, &mut empty, 8, 0).expect("no bytes").wait().expect("done");
    drop(opaque);
    assert_eq!(target.to_vec(&queue).expect("the content"), [2, 3, 4, 0]);
    queue.wait().expect("idle");
    assert_eq!(fixture.context.stats().of(MemoryType::Buffer).live, 0);
}

/// The caller's bytes are free at once, before the copies run.
pub fn a_buffer_and_bytes_of_the_program<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture.context, 4096) else { return };
    let mut bytes = vec![1_u8; 4096];
    for round in 2..10_u8 {
        let _ = queue.write_buffer_from(&mut opaque, 0, &bytes).expect("a write");
        bytes.fill(round);
        let _ = queue.write_buffer_from(&mut opaque, 1, &bytes[..4094]).expect("a write");
        bytes.fill(0);
        queue.read_buffer_to(&opaque, 0, &mut bytes).expect("a read");
        assert_eq!(
            (bytes[0], bytes[4095]),
            (if round == 2 { 1 } else { 99 }, if round == 2 { 1 } else { 99 })
        );
        assert!(bytes[1..4095].iter().all(|byte| *byte == round));
        bytes.fill(99);
    }
    queue.write_buffer_from(&mut opaque, 4096, &[]).expect("no bytes").wait().expect("done");
    queue.read_buffer_to(&opaque, 4096, &mut []).expect("no bytes");
    let refused = queue.write_buffer_from(&mut opaque, 4090, &[0; 8]).map(drop).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 4090, len: 8, size: 4096 });
    let refused = queue.read_buffer_to(&opaque, 4090, &mut [7; 8]).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 4090, len: 8, size: 4096 });
}

/// The rule of USM fills applies to the buffer offset. Bytes outside the range keep their value.
pub fn buffers_are_filled_by_the_same_rule<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture.context, 96) else { return };
    let mut expected = [0xAA_u8; 96];
    let _ = queue.write_buffer_from(&mut opaque, 0, &expected).expect("a write");
    for width in (0..=18).chain([32, 64, 96, 128]) {
        let pattern: Vec<u8> = (0..width).map(|index| (width + index) as u8).collect();
        for (offset, len) in
            [(0, 96), (96, 0), (0, 48), (0, 50), (1, 48), (2, 48), (4, 48), (8, 48), (16, 48), (32, 16)]
        {
            // Another pattern at each offset: the same pattern would hide a wrong place.
            let pattern: Vec<u8> = pattern.iter().map(|byte| byte.wrapping_add(offset as u8)).collect();
            let suits = [1, 2, 4, 8, 16].contains(&width) && len % width == 0 && offset % width == 0;
            match queue.fill_buffer(&mut opaque, offset, len, &pattern) {
                Ok(_) => {
                    assert!(suits, "{width} bytes at {offset} over {len}");
                    let range = expected[offset..offset + len].iter_mut();
                    range.zip(pattern.iter().cycle()).for_each(|(byte, value)| *byte = *value);
                }
                Err(error) => {
                    assert!(!suits, "{width} bytes at {offset} over {len}: {error}");
                    assert_eq!(error.kind, ErrorKind::BadPattern { width, len });
                }
            }
        }
        let mut found = [0; 96];
        queue.read_buffer_to(&opaque, 0, &mut found).expect("a read");
        assert_eq!(found, expected, "{width}");
    }
    for (offset, len) in [(1, 96), (96, 1), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
        let refused = queue.fill_buffer(&mut opaque, offset, len, &[1]).map(drop).expect_err("outside").kind;
        assert_eq!(refused, ErrorKind::OutOfBounds { offset, len, size: 96 });
    }
}

/// Between buffers and inside one; adjacent ranges do not overlap. Each copy waits for the writer
/// of its source.
pub fn buffers_are_copied_between_and_within<B: Backend>(fixture: &Fixture<'_, B>) {
    let values: Vec<u8> = (0..64).collect();
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        let queue = fixture.context.queue(order).expect("a queue");
        let (Some(mut one), Some(mut two)) = (buffer(fixture.context, 64), buffer(fixture.context, 100))
        else {
            return;
        };
        let _ = queue.write_buffer_from(&mut one, 0, &values).expect("a write");
        let _ = queue.fill_buffer(&mut two, 0, 100, &[9, 8, 7, 6]).expect("a fill");
        let _ = queue.copy_buffer(&mut two, 33, &one, 1, 63).expect("a copy");
        let _ = queue.copy_buffer_within(&mut two, 0, 33, 33).expect("a copy to the neighbour before");
        let _ = queue.copy_buffer_within(&mut two, 66, 33, 33).expect("a copy to the neighbour behind");
        let _ = queue.copy_buffer(&mut one, 0, &two, 99, 1).expect("a copy");
        // The copy keeps the source alive.
        let mut found = [0; 100];
        queue.read_buffer_to(&two, 0, &mut found).expect("a read");
        drop(two);
        let row: Vec<u8> = (1..34).collect();
        let expected = [&row[..], &row[..], &row[..], &[6]].concat();
        assert_eq!(found[..], expected);
        queue.read_buffer_to(&one, 0, &mut found[..64]).expect("a read");
        assert_eq!((found[0], &found[1..64]), (6, &values[1..]));
    }
}

/// Overlap, ranges outside either buffer, no bytes.
pub fn buffer_copies_are_checked<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let (Some(mut one), Some(mut two)) = (buffer(fixture.context, 64), buffer(fixture.context, 32)) else {
        return;
    };
    let values: Vec<u8> = (0..64).collect();
    let _ = queue.write_buffer_from(&mut one, 0, &values).expect("a write");
    let refused = |event: usm_core::Result<Event<B>>| event.map(drop).expect_err("refused").kind;
    for (dst, src) in (0..16).flat_map(|distance| [(16 + distance, 16), (16, 16 + distance)]) {
        let overlap = ErrorKind::Overlap { dst, src, len: 16 };
        assert_eq!(refused(queue.copy_buffer_within(&mut one, dst, src, 16)), overlap);
    }
    for (offset, len) in
        [(1, 32), (32, 1), (0, 33), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)]
    {
        let outside = ErrorKind::OutOfBounds { offset, len, size: 32 };
        assert_eq!(refused(queue.copy_buffer(&mut two, offset, &one, 0, len)), outside);
        assert_eq!(refused(queue.copy_buffer_within(&mut two, offset, 0, len)), outside);
        if len <= 32 {
            assert_eq!(refused(queue.copy_buffer(&mut one, 0, &two, offset, len)), outside);
            assert_eq!(refused(queue.copy_buffer_within(&mut two, 0, offset, len)), outside);
        }
    }
    let done = |event: usm_core::Result<Event<B>>| event.expect("nothing to do").wait().expect("done");
    done(queue.copy_buffer(&mut two, 32, &one, 64, 0));
    done(queue.copy_buffer_within(&mut two, 32, 32, 0));
    let mut found = [0; 64];
    queue.read_buffer_to(&one, 0, &mut found).expect("a read");
    assert_eq!(found[..], values, "a refused copy has not started");
}

/// The error has the three numbers.
pub fn a_buffer_range_outside_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    let Some(mut opaque) = buffer(fixture.context, 64) else { return };
    let source = array(&queue, AllocKind::Shared, &[1; 16]);
    let refused = queue.write_buffer(&mut opaque, 60, &source, 0, 8).expect_err("outside").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 60, len: 8, size: 64 });
    // An array's memory may be larger than its elements; the bytes after them are uninitialised.
    let whole = allocate(fixture, 64);
    // SAFETY: the elements are never read.
    let short = unsafe { UsmVec::<u32, AnyKind, B>::from_allocation(whole, 2) }.expect("an array");
    let refused = queue.write_buffer(&mut opaque, 0, &short, 4, 8).expect_err("behind the elements").kind;
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 4, len: 8, size: 8 });
    let device = array(&queue, AllocKind::Device, &[1; 16]);
    let refused = queue.write_buffer(&mut opaque, 0, &device, 0, 8).expect_err("no host pointer").kind;
    assert_eq!(refused, ErrorKind::NotHostAccessible { kind: AllocKind::Device });
}

/// Even if the memory held another block before. A partial copy, by any path, leaves the rest zero.
pub fn a_buffer_is_zero_before_anybody_writes_it<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    for size in [1, 24, 4096, 65_537, 1 << 18] {
        let mut found = vec![7_u8; size];
        for round in 0..4 {
            let Some(mut opaque) = buffer(fixture.context, size) else { return };
            queue.read_buffer_to(&opaque, 0, &mut found).expect("a read");
            let dirty = found.iter().position(|byte| *byte != 0);
            assert_eq!(dirty, None, "buffer {round} of {size} bytes");
            let part = size / 3;
            let _ = queue.fill_buffer(&mut opaque, 0, part, &[0xEE]).expect("a fill");
            let Some(mut other) = buffer(fixture.context, size) else { return };
            let _ = queue.copy_buffer(&mut other, part, &opaque, 0, size - part).expect("a copy");
            queue.read_buffer_to(&other, 0, &mut found).expect("a read");
            assert!(found[..part].iter().chain(&found[2 * part..]).all(|byte| *byte == 0), "{size} bytes");
            assert!(found[part..2 * part].iter().all(|byte| *byte == 0xEE), "{size} bytes");
            // The next allocation may reuse nonzero memory.
            let _ = queue.fill_buffer(&mut other, 0, size, &[0xEE]).expect("a fill");
            let _ = queue.fill_buffer(&mut opaque, 0, size, &[0xEE]).expect("a fill");
            drop(UsmVec::<u8, AnyKind, B>::from_slice_any(
                &queue,
                fixture.context,
                AllocKind::Host,
                &vec![0xEE; size],
            ));
            queue.wait().expect("idle");
        }
    }
}

/// Prefetch and every advice, on memory of every kind: accepted or refused with a typed error.
/// Content never changes.
pub fn hints_change_nothing<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture);
    for kind in AllocKind::ALL {
        let values = array(&queue, kind, &[1, 2, 3]);
        let advice =
            [MemAdvice::ReadMostly, MemAdvice::PreferDevice, MemAdvice::PreferHost, MemAdvice::Reset];
        let hints = advice.map(|advice| queue.advise(values.allocation(), advice));
        for hint in hints.into_iter().chain([queue.prefetch(values.allocation())]) {
            match hint {
                Ok(event) => event.wait().expect("done"),
                Err(error) => assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}"),
            }
        }
        assert_eq!(values.to_vec(&queue).expect("the content"), [1, 2, 3], "{kind}");
    }
}
