//! The fixed arena: after any sequence of allocations and frees, blocks are aligned, inside the
//! region and disjoint.

use proptest::prelude::*;
use usm_core::backend::host::Arena;
use usm_core::{AllocKind, Allocation, ErrorKind, MemorySource, Request};

proptest! {
    #[test]
    fn blocks_are_aligned_inside_and_apart(
        steps in prop::collection::vec((any::<bool>(), 1_usize..700, 0_u32..9, 0_usize..12), 1..80),
        shift in 0_usize..64,
    ) {
        let mut memory = vec![core::mem::MaybeUninit::<u8>::uninit(); 4096 + shift];
        let region = memory[shift..].as_ptr_range();
        let arena = Arena::<8>::new(&mut memory[shift..]);
        let context = arena.context();
        let mut live: Vec<Allocation<_>> = Vec::new();
        for (allocate, size, power, victim) in steps {
            if !allocate {
                if victim < live.len() {
                    live.swap_remove(victim);
                }
                continue;
            }
            let request = Request::new(AllocKind::Shared, size).aligned_to(1 << power);
            match context.allocate(&request) {
                Ok(block) => {
                    prop_assert_eq!(block.as_ptr() as usize % (1 << power), 0);
                    live.push(block);
                }
                Err(error) => match error.kind {
                    ErrorKind::TooManyBlocks { limit } => prop_assert_eq!((limit, live.len()), (8, 8)),
                    ErrorKind::OutOfMemory { .. } | ErrorKind::OverMemory { .. } => {}
                    other => prop_assert!(false, "{other:?}"),
                },
            }
            let mut ranges: Vec<_> = live.iter().map(|block| (block.as_ptr() as usize, block.size())).collect();
            ranges.sort_unstable();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            let inside = ranges.iter().all(|(start, size)| {
                *start >= region.start as usize && start + size <= region.end as usize
            });
            prop_assert!(inside, "{:?} outside {:?}", ranges, region);
        }
        live.clear();
        // All blocks were freed: the whole region can be allocated at once.
        prop_assert!(context.allocate(&Request::new(AllocKind::Host, 4096).aligned_to(1)).is_ok());
    }
}
