//! The fixed pool against an oracle of intervals: random sizes and alignments, memory and records
//! that end, returns of what is not out. `USM_EFFORT` multiplies the calls.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use usm_core::ErrorKind;
use usm_core::backend::host::{FixedNode, FixedPool};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).expect("a layout")
}

fn effort() -> usize {
    std::env::var("USM_EFFORT").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Live blocks by address, with their ends.
struct Oracle {
    live: BTreeMap<usize, usize>,
    region: (usize, usize),
}

impl Oracle {
    fn add(&mut self, start: usize, layout: Layout) {
        let end = start + layout.size();
        assert!(start.is_multiple_of(layout.align()) && start >= self.region.0 && end <= self.region.1);
        let before = self.live.range(..end).next_back();
        assert!(before.is_none_or(|(_, other)| *other <= start), "two owners of one byte");
        self.live.insert(start, end);
    }

    /// Whether some gap has room: then a pool that finds none lost bytes.
    fn has_room(&self, bytes: usize) -> bool {
        let starts = self.live.keys().copied().chain([self.region.1]);
        let ends = [self.region.0].into_iter().chain(self.live.values().copied());
        ends.zip(starts).any(|(end, start)| start - end >= bytes)
    }
}

#[test]
fn no_byte_has_two_owners_and_none_is_lost() {
    for (seed, shift) in [(1, 0), (2, 1), (3, 13), (4, 40)] {
        let mut memory = vec![MaybeUninit::<u8>::uninit(); (1 << 20) + shift];
        let memory = &mut memory[shift..];
        let start = memory.as_ptr() as usize;
        let mut oracle = Oracle { live: BTreeMap::new(), region: (start, start + memory.len()) };
        let records = [64, 200, 4000][seed as usize % 3];
        let mut nodes = vec![FixedNode::VACANT; records];
        let (mut random, mut blocks) = (Random(seed), Vec::new());
        let mut pool = FixedPool::new(memory, &mut nodes);
        let (mut refused, mut full) = (0, 0);
        for step in 0..25_000 * effort() {
            let power = 1 + random.below(17);
            let size = 1 + random.below(1 << power);
            let layout = layout(size, 1 << random.below(13));
            if random.below(100) < 52 {
                match pool.allocate(layout).map_err(|error| error.kind) {
                    Ok(block) => {
                        oracle.add(block.as_ptr() as usize, layout);
                        blocks.push(block);
                    }
                    Err(ErrorKind::TooManyBlocks { limit }) => {
                        assert_eq!((limit, blocks.len()), (records / 2, records / 2));
                        full += 1;
                    }
                    Err(ErrorKind::OutOfMemory { requested, .. }) => {
                        assert_eq!(requested, size as u64);
                        // A block of the next class, which is at most a quarter larger, would have
                        // been taken at any address.
                        let sure = (size + layout.align()) * 5 / 4 + 64;
                        assert!(!oracle.has_room(sure + 32), "{layout:?} was refused beside a larger gap");
                        refused += 1;
                    }
                    Err(other) => panic!("{other:?}"),
                }
            } else if !blocks.is_empty() {
                let block = blocks.swap_remove(random.below(blocks.len()));
                assert!(pool.free(block));
                let end = oracle.live.remove(&(block.as_ptr() as usize)).expect("a live block");
                // Twice, inside, and beyond.
                assert!(!pool.free(block), "returned twice");
                let inside = block.as_ptr().wrapping_add(random.below(end - block.as_ptr() as usize));
                let inside = NonNull::new(inside).expect("not null");
                assert_eq!(pool.free(inside), oracle.live.remove(&(inside.as_ptr() as usize)).is_some());
            }
            if step % 64 == 0 {
                pool.check();
            }
        }
        assert!(refused > 0 || full > 0, "nothing was refused");
        for block in blocks {
            assert!(pool.free(block));
        }
        pool.check();
        assert_eq!(pool.live(), 0);
        let whole = oracle.region.1 - oracle.region.0;
        assert!(pool.allocate(layout(whole, 1)).is_ok(), "all bytes are one block again");
    }
}

#[test]
fn bad_requests_change_nothing() {
    let (mut memory, mut nodes) = ([MaybeUninit::uninit(); 100], [FixedNode::VACANT; 4]);
    let mut pool = FixedPool::new(&mut memory, &mut nodes);
    let kind = |pool: &mut FixedPool<'_>, layout| pool.allocate(layout).map_err(|error| error.kind);
    assert_eq!(kind(&mut pool, layout(0, 1)), Err(ErrorKind::ZeroSize));
    assert!(matches!(kind(&mut pool, layout(101, 1)), Err(ErrorKind::OutOfMemory { requested: 101, .. })));
    assert!(kind(&mut pool, layout(isize::MAX as usize, 1)).is_err());
    assert!(kind(&mut pool, layout(1, 1 << 62)).is_err());
    assert!(!pool.free(NonNull::dangling()));
    pool.check();
    let all = pool.allocate(layout(100, 1)).expect("the whole region");
    let inside = NonNull::new(all.as_ptr().wrapping_add(1)).expect("not null");
    assert!(!pool.free(inside));
    assert!(pool.free(all) && !pool.free(all));
    // One record serves no block, and no record none.
    for records in 0..2 {
        let (mut memory, mut nodes) = ([MaybeUninit::uninit(); 100], vec![FixedNode::VACANT; records]);
        let mut pool = FixedPool::new(&mut memory, &mut nodes);
        assert_eq!(kind(&mut pool, layout(1, 1)), Err(ErrorKind::TooManyBlocks { limit: 0 }));
        assert!(!pool.free(all));
    }
    let mut nodes = [FixedNode::VACANT; 4];
    let mut empty = FixedPool::new(&mut [], &mut nodes);
    assert!(matches!(kind(&mut empty, layout(1, 1)), Err(ErrorKind::OutOfMemory { .. })));
    empty.check();
}
