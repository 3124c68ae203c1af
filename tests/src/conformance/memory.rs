//! Allocation: kinds, sizes, alignments, refusals.

use usm_core::{
    AllocKind, Allocation, Backend, Error, ErrorKind, Fallback, Memory, MemorySource, MemoryType, QueueOrder,
    Request, UsmVec,
};

use crate::{Fixture, scarce, skip};

fn allocate<B: Backend>(fixture: &Fixture<'_, B>, kind: AllocKind, size: usize) -> Allocation<B> {
    fixture.context.allocate(&Request::new(kind, size)).expect("memory for the test")
}

fn refusal<B: Backend>(fixture: &Fixture<'_, B>, request: &Request) -> ErrorKind {
    fixture.context.allocate(request).expect_err("the request is invalid").kind
}

/// A block has the requested kind and size.
pub fn each_kind_is_allocated_as_asked<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let allocation = allocate(fixture, kind, 1000);
        assert_eq!((allocation.kind(), allocation.size()), (kind, 1000));
        assert_eq!(allocation.as_ptr() as usize % Request::DEFAULT_ALIGNMENT, 0);
    }
}

/// Powers of two from 1 to 32,768: some drivers report success above 8 KiB without aligning.
pub fn every_alignment_is_honoured<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        for alignment in (0..=15).map(|power| 1_usize << power) {
            let request = Request::new(kind, 24).aligned_to(alignment);
            let allocation = fixture.context.allocate(&request).expect("a usual alignment");
            assert_eq!(allocation.as_ptr() as usize % alignment, 0, "{kind} at {alignment}");
            assert_eq!((allocation.size(), allocation.block().alignment), (24, alignment));
            let info = fixture.context.query(allocation.as_ptr().wrapping_add(23)).expect("an answer");
            assert_eq!((info.base, info.size), (allocation.as_ptr() as usize, 24), "{kind} at {alignment}");
        }
    }
}

/// Drivers disagree about zero bytes; this crate refuses them.
pub fn zero_size_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        assert_eq!(refusal(fixture, &Request::new(kind, 0)), ErrorKind::ZeroSize);
    }
}

/// Some drivers accept them and align to another value.
pub fn alignments_that_are_no_power_of_two_are_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        for alignment in [3, 6, 100, 4097, usize::MAX] {
            let refused = refusal(fixture, &Request::new(kind, 8).aligned_to(alignment));
            assert_eq!(refused, ErrorKind::BadAlignment { alignment }, "{kind}");
        }
    }
}

/// One allocation above the device's limit.
pub fn more_than_max_alloc_is_refused_with_both_numbers<B: Backend>(fixture: &Fixture<'_, B>) {
    let limit = fixture.context.info().max_alloc_size;
    let Some(size) = usize::try_from(limit).ok().and_then(|limit| limit.checked_add(1)) else { return };
    if size > isize::MAX as usize {
        return sizes_beyond_the_address_space_are_refused(fixture);
    }
    for kind in AllocKind::ALL {
        let refused = refusal(fixture, &Request::new(kind, size).aligned_to(1));
        assert_eq!(refused, ErrorKind::OverMaxAlloc { requested: limit + 1, limit });
    }
}

/// Sizes that no allocator can serve.
pub fn sizes_beyond_the_address_space_are_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    for size in [usize::MAX, isize::MAX as usize + 1, isize::MAX as usize - 3] {
        assert_eq!(refusal(fixture, &Request::new(AllocKind::Host, size)), ErrorKind::SizeOverflow);
    }
}

/// `Unknown` is the answer of a query, not a kind to allocate.
pub fn the_unknown_kind_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    assert_eq!(refusal(fixture, &Request::new(AllocKind::Unknown, 8)), ErrorKind::UnknownKind);
}

/// No byte belongs to two live blocks.
pub fn live_blocks_are_disjoint<B: Backend>(fixture: &Fixture<'_, B>) {
    let sizes = [1, 7, 64, 100, 4096, 3];
    let blocks: Vec<_> = sizes
        .iter()
        .zip(AllocKind::ALL.iter().cycle())
        .map(|(size, kind)| allocate(fixture, *kind, *size))
        .collect();
    let mut ranges: Vec<_> = blocks.iter().map(|block| (block.as_ptr() as usize, block.size())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{ranges:?}");
}

/// A region too small for two rounds at once serves them one after the other.
pub fn freed_memory_is_given_out_again<B: Backend>(fixture: &Fixture<'_, B>) {
    for _ in 0..200 {
        drop(allocate(fixture, AllocKind::Shared, 16 << 10));
    }
    assert_eq!(fixture.context.stats().sum.current, 0);
}

/// Allocates until memory runs out: an error with its numbers. The context stays usable after
/// frees.
pub fn memory_that_runs_out_is_an_error<B: Backend>(fixture: &Fixture<'_, B>) {
    let info = fixture.context.info();
    let outcome = match scarce::Memory::of(info) {
        scarce::Memory::OfTheDevice => {
            let limit = usize::try_from(info.max_alloc_size).unwrap_or(usize::MAX);
            // Takes parts where one block could be all memory.
            let parts = if info.max_alloc_size < info.global_mem_size || limit < 1 << 30 { 1 } else { 16 };
            runs_out(fixture, AllocKind::Device, limit / parts);
            if parts > 1 {
                more_than_is_free_in_order(fixture, limit);
            }
            Ok(())
        }
        scarce::Memory::OfTheProcess => scarce::in_little_room(|| {
            for kind in fixture.kinds() {
                assert!(runs_out(fixture, kind, scarce::CHUNK) > 0, "{kind}");
            }
        }),
        scarce::Memory::OfTheMachine => {
            Err("a driver's memory is the machine's, and no limit binds it".to_owned())
        }
    };
    if let Err(reason) = outcome {
        skip::limit(info.backend, format_args!("memory that runs out: {reason}"));
    }
}

/// Requests all memory in one block of a queue, of which a driver reserves a part. Driver pools are
/// not exhausted, because they return memory at any time.
fn more_than_is_free_in_order<B: Backend>(fixture: &Fixture<'_, B>, size: usize) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    match MemorySource::allocate(&queue, &Request::new(AllocKind::Device, size)) {
        Ok(all) => {
            drop(all);
            // A driver may refuse before it has the freed memory back.
            queue.wait().expect("idle");
        }
        Err(error) => expect_refusal(&error, AllocKind::Device, size, 0),
    }
    assert_eq!(fixture.context.stats().sum.current, 0);
    drop(UsmVec::<u32, usm_core::Device, B>::zeroed_in(&queue, &queue, 64).expect("an array"));
    queue.wait().expect("idle");
}

/// Checks the refusal of `size` bytes beside `used` ones: by the context's ledger, which counts all
/// contexts of the device, or by the driver.
fn expect_refusal(error: &Error, kind: AllocKind, size: usize, used: u64) {
    match error.kind {
        ErrorKind::OverMemory { requested, in_use, limit } => {
            assert!(requested == size as u64 && in_use >= used, "{requested} {in_use} {used}");
            assert!(requested + in_use > limit, "{requested} {in_use} {limit}");
        }
        ErrorKind::OutOfMemory { memory_type, requested } => {
            assert_eq!((Ok(memory_type), requested), (MemoryType::try_from(kind), size as u64));
        }
        ref other => panic!("{other}"),
    }
}

/// Holds blocks of `size` bytes until none is left. Returns their number.
fn runs_out<B: Backend>(fixture: &Fixture<'_, B>, kind: AllocKind, size: usize) -> usize {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let request = Request::new(kind, size).aligned_to(1);
    let mut held = Vec::new();
    let error = loop {
        match fixture.context.allocate(&request) {
            Ok(allocation) => held.push(allocation),
            Err(error) => break error,
        }
        assert!(held.len() < 10_000, "memory without end");
    };
    let used = (size * held.len()) as u64;
    let text = error.to_string();
    assert!(text.contains(&size.to_string()), "{text}");
    expect_refusal(&error, kind, size, used);
    expect_refusal(&fixture.context.allocate(&request).expect_err("there is none left"), kind, size, used);
    let stats = fixture.context.stats();
    assert_eq!(
        (stats.sum.live, stats.sum.current as u64),
        (held.len(), used),
        "no trace of what was refused"
    );
    let count = held.len();
    drop(held);
    // All memory is available again.
    drop(allocate(fixture, kind, (size / 4).min(1 << 20)));
    let values: Vec<u32> = (0..64).collect();
    let array = UsmVec::from_slice_any(&queue, fixture.context, kind, &values).expect("an array");
    assert_eq!(array.to_vec(&queue).expect("the content"), values);
    drop(array);
    fixture.context.collect();
    assert_eq!(fixture.context.stats().sum.current, 0);
    count
}

/// The owner frees once, whatever happens to its variable. A compile-fail test shows that the block
/// cannot be used after.
pub fn a_block_is_freed_once_by_its_owner<B: Backend>(fixture: &Fixture<'_, B>) {
    for kind in AllocKind::ALL {
        let mut slot = Some(allocate(fixture, kind, 100));
        let moved = slot.take();
        drop(slot);
        assert_eq!(fixture.context.stats().sum.live, 1, "{kind}");
        let mut boxed = Box::new(moved);
        drop(boxed.take());
        drop(boxed);
        let stats = fixture.context.stats();
        assert_eq!((stats.sum.live, stats.sum.current, stats.leaked), (0, 0, 0), "{kind}");
    }
}

/// One call allocates `cl_mem`, `usm_host`, `usm_shared` and `usm_device`.
pub fn one_call_serves_all_four_types<B: Backend>(fixture: &Fixture<'_, B>) {
    for memory_type in MemoryType::ALL {
        match fixture.context.allocate_memory(memory_type, 256, 0, Fallback::Refuse) {
            Ok(memory) => {
                assert_eq!(memory.memory_type(), memory_type);
                assert_eq!(matches!(memory, Memory::Buffer(_)), memory_type == MemoryType::Buffer);
                assert_eq!(fixture.context.stats().of(memory_type).current, 256);
            }
            Err(error) => {
                assert_eq!(memory_type, MemoryType::Buffer, "{error}");
                assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
            }
        }
        assert_eq!(fixture.context.stats().sum.current, 0);
    }
}

/// The same as for USM memory.
pub fn a_buffer_of_zero_bytes_is_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let refused = fixture.context.allocate_memory(MemoryType::Buffer, 0, 0, Fallback::Refuse);
    assert_eq!(refused.expect_err("no bytes").kind, ErrorKind::ZeroSize);
}
