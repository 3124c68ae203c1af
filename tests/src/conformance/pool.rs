//! A run-time pool as the source of memory: blocks that queues reuse while earlier work is in
//! flight.

use usm_core::{
    AllocKind, Allocation, Backend, Device, ErrorKind, MemorySource, QueueOrder, Request, UsmVec,
};
use usm_pool::{Pool, PoolOptions};

use crate::Fixture;

/// Every kind, with sizes and alignments of all sorts: blocks are aligned and disjoint, and only
/// their own bytes are theirs.
pub fn a_pool_serves_every_kind<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    for kind in fixture.kinds() {
        let pool = Pool::new(fixture.context, kind);
        let mut blocks: Vec<Allocation<B>> = Vec::new();
        for (index, size) in [1, 100, 64, 4096, 5000, 300, 17].into_iter().enumerate() {
            let alignment = [1, 16, 64, 256][index % 4];
            let request = Request::new(kind, size).aligned_to(alignment);
            let block = pool.allocate(&request).expect("a block");
            let address = block.as_ptr() as usize;
            assert!(address.is_multiple_of(alignment), "{kind}: {size} bytes at {address:#x}");
            let query = |address| fixture.context.query(address as *const u8).expect("an answer");
            let inside = query(address + size - 1);
            assert_eq!((inside.kind, inside.base, inside.size), (kind, address, size));
            // Of nobody, or of the next block.
            let beyond = query(address + size);
            assert!(beyond.kind == AllocKind::Unknown || beyond.base == address + size, "{beyond:?}");
            if index % 3 == 2 {
                drop(block);
                assert_eq!(query(address).kind, AllocKind::Unknown, "a freed block of a segment");
            } else {
                blocks.push(block);
            }
        }
        let mut ranges: Vec<_> = blocks.iter().map(|block| (block.as_ptr() as usize, block.size())).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        pool.check();
        assert_eq!(pool.stats().live, blocks.iter().map(|block| block.size() as u64).sum::<u64>());
        drop(blocks);
        assert_eq!(pool.stats().live, 0);
        pool.trim(0);
        assert_eq!(pool.stats().reserved, 0, "idle segments go back");
    }
}

/// Each copy reads what the owner of its source wrote, although the bytes have their next owner,
/// of any queue, before the copy is complete.
pub fn values_survive_the_reuse_of_their_blocks<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    const LEN: usize = 500;
    for orders in [[QueueOrder::InOrder; 2], [QueueOrder::InOrder, QueueOrder::OutOfOrder]] {
        let queues = orders.map(|order| fixture.context.queue(order).expect("a queue"));
        let mut options = PoolOptions::default();
        options.segment = 1 << 14;
        options.limit = Some(1 << 14);
        let pool = Pool::with(fixture.context, AllocKind::Device, options);
        let mut copies = Vec::new();
        for value in 1..=24_u8 {
            let queue = &queues[usize::from(value / 3) % 2];
            let source = pool.on(queue);
            let mut array = UsmVec::<u8, Device, B>::zeroed_in(queue, &source, LEN).expect("a block");
            let _ = queue.fill(&mut array, value).expect("a fill");
            let mut copy = UsmVec::<u8, Device, B>::zeroed(queue, LEN).expect("memory");
            let _ = queue.copy(&mut copy, &array).expect("a copy");
            // In flight: the next round gets the block.
            drop(array);
            copies.push((value, copy));
        }
        for (value, copy) in &copies {
            assert_eq!(copy.to_vec(&queues[0]).expect("the content"), [*value; LEN]);
        }
        assert!(pool.stats().reserved <= 1 << 14);
        pool.check();
    }
}

/// Blocks live as long as their owners, and the context outlives its last handle with them.
pub fn blocks_outlive_their_pool<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let pool = Pool::new(fixture.context, AllocKind::Device);
    let mut array = UsmVec::<u8, Device, B>::zeroed_in(&queue, &pool.on(&queue), 100).expect("a block");
    let other = pool.allocate(&Request::new(AllocKind::Device, 100)).expect("a block");
    drop(pool);
    let _ = queue.fill(&mut array, 7).expect("a fill");
    std::thread::spawn(move || drop(other)).join().expect("no panic");
    assert_eq!(array.to_vec(&queue).expect("the content"), [7; 100]);
}

/// Nothing changes by a request that the context would refuse too, or that the limit does not
/// allow.
pub fn a_pool_refuses_as_its_context<B: Backend + 'static>(fixture: &Fixture<'_, B>) {
    let mut options = PoolOptions::default();
    options.limit = Some(4096);
    let pool = Pool::with(fixture.context, AllocKind::Device, options);
    let refused = |request: Request| pool.allocate(&request).expect_err("a bad request").kind;
    let device = |size| Request::new(AllocKind::Device, size);
    assert_eq!(refused(device(0)), ErrorKind::ZeroSize);
    assert_eq!(refused(device(64).aligned_to(3)), ErrorKind::BadAlignment { alignment: 3 });
    let (expected, found) = (AllocKind::Device, AllocKind::Host);
    assert_eq!(refused(Request::new(found, 64)), ErrorKind::WrongKind { expected, found });
    assert!(matches!(refused(device(4097)), ErrorKind::PoolExhausted { requested: 4097, limit: 4096, .. }));
    let foreign = fixture.other.queue(QueueOrder::InOrder).expect("a queue");
    let kind = pool.on(&foreign).allocate(&device(64)).expect_err("a queue of another context").kind;
    assert!(matches!(kind, ErrorKind::WrongContext { .. }), "{kind:?}");
    assert_eq!((pool.stats().reserved, pool.stats().blocks), (0, 0));
}
