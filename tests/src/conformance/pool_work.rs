//! Work on blocks of a pool: every operation does what it does on memory of the context.

use usm_core::{
    AllocKind, Allocation, AnyKind, Backend, Device, ErrorKind, MemAdvice, MemorySource, Queue, QueueOrder,
    Request, Shared, UsmVec,
};
use usm_kernel::sample::{saxpy, saxpy_plain};
use usm_kernel::{Launch, Programmable, Range};
use usm_pool::{Pool, PoolOptions};

use super::contexts::between_views;
use super::kernel::ready_in_every_format;
use crate::Fixture;

/// A pool of one small segment, so that blocks are reused while work is in flight, and a block that
/// keeps the others off the beginning of the segment.
fn pool<B: Backend + 'static>(fixture: &Fixture<'_, B>, kind: AllocKind) -> (Pool<B>, Allocation<B>) {
    let mut options = PoolOptions::default();
    (options.segment, options.limit) = (1 << 16, Some(1 << 16));
    let pool = Pool::with(fixture.context, kind, options);
    let first = pool.allocate(&Request::new(kind, 100)).expect("a block");
    (pool, first)
}

fn queue<B: Backend>(fixture: &Fixture<'_, B>, order: QueueOrder) -> Queue<B> {
    fixture.context.queue(order).expect("a queue")
}

type Bytes<B> = UsmVec<u8, AnyKind, B>;

/// Copies between all kinds and offsets, fills of all widths, hints.
pub fn every_operation_works_on_pooled_blocks<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let pools: Vec<_> = fixture.kinds().into_iter().map(|kind| (kind, pool(fixture, kind))).collect();
    let values: Vec<u8> = (0..240).collect();
    let array = |(kind, (pool, _)): &(AllocKind, (Pool<B>, Allocation<B>)), values: &[u8]| -> Bytes<B> {
        UsmVec::from_slice_any(&queue, &pool.on(&queue), *kind, values).expect("an array")
    };
    for from in &pools {
        for to in &pools {
            let (source, mut target) = (array(from, &values), array(to, &[7; 240]));
            // SAFETY: the source has a value, and the memory stays in its place.
            let memory = unsafe { target.allocation_mut() };
            let _ = queue.copy_bytes(memory, 40, source.allocation(), 10, 100).expect("a copy");
            let expected = [&[7; 40][..], &values[10..110], &[7; 100]].concat();
            assert_eq!(target.to_vec(&queue).expect("the content"), expected, "{} to {}", from.0, to.0);
        }
        for width in [1, 2, 4, 8, 16_u8] {
            let pattern: Vec<u8> = (1..=width).collect();
            let mut bytes = array(from, &[0; 96]);
            // SAFETY: a pattern has a value, and the memory stays in its place.
            let memory = unsafe { bytes.allocation_mut() };
            let _ = queue.fill_bytes(memory, 16, 64, &pattern).expect("a fill");
            let content = bytes.to_vec(&queue).expect("the content");
            assert!(content[16..80].chunks(usize::from(width)).all(|chunk| chunk == pattern), "{width}");
            assert!(content[..16].iter().chain(&content[80..]).all(|byte| *byte == 0), "{width}");
        }
        let hinted = array(from, &values);
        for hint in [
            queue.advise(hinted.allocation(), MemAdvice::ReadMostly),
            queue.advise(hinted.allocation(), MemAdvice::Reset),
            queue.prefetch(hinted.allocation()),
        ] {
            match hint {
                Ok(event) => event.wait().expect("done"),
                Err(error) => assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}"),
            }
        }
        assert_eq!(hinted.to_vec(&queue).expect("the content"), values);
    }
    for (_, (pool, _)) in &pools {
        pool.check();
        assert_eq!((pool.stats().live, pool.stats().reserved), (100, 1 << 16), "no growth");
    }
}

/// Random fills, copies, drops and reads on two queues, beside a plain model of the bytes.
pub fn random_work_on_pooled_blocks_is_the_plain_one<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let mut state = 5_u64;
    let mut below = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % limit as u64) as usize
    };
    let queues = [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| queue(fixture, order));
    let pools: Vec<_> = fixture.kinds().into_iter().map(|kind| (kind, pool(fixture, kind))).collect();
    let mut arrays: Vec<(Bytes<B>, Vec<u8>)> = Vec::new();
    for step in 0..200 {
        let queue = &queues[below(2)];
        match below(6) {
            0 | 1 if arrays.len() < 20 => {
                let (kind, (pool, _)) = &pools[below(pools.len())];
                let (len, value) = (1 + below(3000), step as u8);
                let made = UsmVec::zeroed_any(queue, &pool.on(queue), *kind, len);
                let mut array: Bytes<B> = made.expect("the pool waits for what is in flight");
                let _ = queue.fill(&mut array, value).expect("a fill");
                arrays.push((array, vec![value; len]));
            }
            2 if !arrays.is_empty() => drop(arrays.swap_remove(below(arrays.len()))),
            3 if arrays.len() > 1 => {
                let (source, bytes) = arrays.swap_remove(below(arrays.len()));
                let target = below(arrays.len());
                let (target, expected) = &mut arrays[target];
                let len = 1 + below(bytes.len().min(expected.len()));
                // SAFETY: the source has a value, and the memory stays in its place.
                let memory = unsafe { target.allocation_mut() };
                let _ = queue.copy_bytes(memory, 0, source.allocation(), 0, len).expect("a copy");
                expected[..len].copy_from_slice(&bytes[..len]);
                // Half of the sources go while their copy is in flight.
                if below(2) == 0 {
                    arrays.push((source, bytes));
                }
            }
            4 if !arrays.is_empty() => {
                let (array, expected) = &arrays[below(arrays.len())];
                assert_eq!(array.to_vec(queue).expect("the content"), *expected, "step {step}");
            }
            _ => pools.iter().for_each(|(_, (pool, _))| pool.check()),
        }
    }
    for (array, expected) in &arrays {
        assert_eq!(array.to_vec(&queues[0]).expect("the content"), *expected);
    }
}

/// Threads allocate, write and free blocks of one pool, which other threads free too.
pub fn threads_draw_from_one_pool<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let (pool, _first) = pool(fixture, AllocKind::Shared);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..3_u32 {
            let pool = &pool;
            threads.push(scope.spawn(move || {
                let queue = queue(fixture, QueueOrder::InOrder);
                let mut last = Vec::new();
                for round in 0..30_u32 {
                    let len = 1 + (round as usize * 37 + thread as usize * 11) % 700;
                    let values = vec![thread * 1000 + round; len];
                    let mut array = loop {
                        // A view of another thread may forbid the copy of the values.
                        match UsmVec::<u32, Shared, B>::zeroed_in(&queue, &pool.on(&queue), len) {
                            Ok(array) => break array,
                            Err(error) => {
                                assert!(matches!(error.kind, ErrorKind::HostViewLive { .. }), "{error}");
                                std::thread::yield_now();
                            }
                        }
                    };
                    between_views(|| queue.fill(&mut array, values[0]));
                    assert_eq!(array.read().expect("a view")[..], values, "{thread} {round}");
                    last = vec![array];
                }
                last
            }));
        }
        // Freed by this thread.
        threads
            .into_iter()
            .for_each(|thread| drop(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
    });
    pool.check();
    assert_eq!((pool.stats().live, pool.stats().misuses), (100, 0));
}

/// The block of failed work is nobody's; other blocks and queues go on.
pub fn a_failure_stays_with_the_blocks_of_its_queue<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let Some(failing) = fixture.failing else { return };
    let (pool, _first) = pool(fixture, AllocKind::Device);
    let [broken, whole] = [(); 2].map(|()| queue(fixture, QueueOrder::InOrder));
    let (event, fail) = failing(&broken);
    let request = Request::new(AllocKind::Device, 5000);
    let mut block = pool.on(&broken).allocate(&request).expect("a block");
    let behind = broken.fill_bytes(&mut block, 0, 5000, &[1]);
    fail();
    event.wait().expect_err("it failed");
    if let Ok(behind) = &behind {
        behind.wait().expect_err("it follows a failure");
    }
    let address = block.as_ptr();
    drop((block, behind));
    for value in 1..10_u8 {
        let mut array =
            UsmVec::<u8, Device, B>::zeroed_in(&whole, &pool.on(&whole), 5000).expect("another block");
        let _ = whole.fill(&mut array, value).expect("a fill");
        assert_eq!(array.to_vec(&whole).expect("the content"), [value; 5000]);
        // The submission may have been refused: then nothing touches the bytes.
        assert!(array.as_ptr().cast() != address.cast_const() || pool.stats().leaked == 0);
    }
    pool.check();
    let _planned = fixture.context.synchronize(core::time::Duration::from_secs(60));
}

/// A handle names the block, wherever it lies in its segment, where memory of the context has one.
pub fn pooled_blocks_are_exported_as_memory_of_the_context<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    for kind in fixture.kinds() {
        let (pool, _first) = pool(fixture, kind);
        let request = Request::new(kind, 4000);
        let own = fixture.context.allocate(&request).expect("memory").export_ipc();
        let of_pool = pool.allocate(&request).expect("a block").export_ipc();
        match (&own, &of_pool) {
            (Ok(own), Ok(of_pool)) => {
                assert_eq!((of_pool.kind(), of_pool.size()), (own.kind(), own.size()));
            }
            (Err(own), Err(of_pool)) => assert_eq!(of_pool.kind, own.kind),
            _ => panic!("{kind}: {own:?}, {of_pool:?}"),
        }
    }
}

/// A kernel over pooled arrays, whose blocks later launches reuse.
pub fn kernels_run_on_pooled_blocks<B: Programmable + 'static>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<saxpy, B, 1>(fixture.context) {
        let (pool, _first) = pool(fixture, AllocKind::Shared);
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for count in [1, 251, 1024] {
            let x: Vec<f32> = (0..count).map(|i| (i % 17) as f32).collect();
            let mut expected = vec![1.0; count];
            let array = |values: &[f32]| {
                UsmVec::<f32, Shared, B>::from_slice_in(&queue, &pool.on(&queue), values).expect("an array")
            };
            let (device_x, mut y) = (array(&x), array(&expected));
            let whole = Range::new([count as u64]).expect("a range");
            let _ = Launch::with_range(&queue, whole)
                .run_on(&ready, saxpy, (0.5, &device_x, &mut y))
                .expect("a launch");
            drop(device_x);
            saxpy_plain(0.5, &x, &mut expected);
            assert_eq!(y.read().expect("a view")[..], expected, "{count}");
        }
        pool.check();
    }
}
