//! The interval map against a list with linear search.

use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, MemorySource, PointerInfo, Registry, Request};

fn info(slot: usize, size: usize) -> PointerInfo {
    PointerInfo { kind: AllocKind::Shared, base: slot * 16, size, device: Some(0), context: 1 }
}

proptest! {
    #[test]
    fn answers_are_those_of_a_list(
        steps in prop::collection::vec((any::<bool>(), 0_usize..40, 1_usize..=16), 0..120),
        probes in prop::collection::vec(0_usize..700, 50),
    ) {
        let registry = Registry::new();
        let mut list: Vec<PointerInfo> = Vec::new();
        for (insert, slot, size) in steps {
            let found = list.iter().position(|block| block.base == slot * 16);
            if insert && found.is_none() {
                registry.insert(info(slot, size));
                list.push(info(slot, size));
            } else if !insert {
                prop_assert_eq!(registry.remove(slot * 16), found.map(|index| list.swap_remove(index)));
            }
        }
        prop_assert_eq!(registry.len(), list.len());
        for address in probes {
            let expected = list.iter().find(|block| (block.base..block.base + block.size).contains(&address));
            prop_assert_eq!(registry.find(address), expected.copied());
        }
    }
}

proptest! {
    /// A runtime reuses memory that the registry still has.
    #[test]
    fn a_block_replaces_those_that_begin_inside_it(
        blocks in prop::collection::vec((0_usize..300, 1_usize..200), 0..200),
        probes in prop::collection::vec(0_usize..6_000, 50),
    ) {
        let registry = Registry::new();
        let mut list: Vec<PointerInfo> = Vec::new();
        for (slot, size) in blocks {
            let block = info(slot, size);
            registry.insert(block);
            list.retain(|older| !block.contains(older.base));
            list.push(block);
        }
        prop_assert_eq!(registry.len(), list.len());
        for address in probes {
            let nearest = list.iter().filter(|block| block.base <= address).max_by_key(|block| block.base);
            let expected = nearest.filter(|block| block.contains(address));
            prop_assert_eq!(registry.find(address), expected.copied());
        }
    }
}

#[test]
fn threads_find_their_own_blocks_while_others_free_theirs() {
    let context = HostHeap::new().context();
    std::thread::scope(|scope| {
        for thread in 0..3_usize {
            let context = context.clone();
            scope.spawn(move || {
                for round in 0..4_000 {
                    // The heap reuses one thread's memory for another in pieces of other sizes.
                    let size = 4_096 << ((thread + round) % 4);
                    let block = context.allocate(&Request::new(AllocKind::Shared, size)).expect("memory");
                    for inside in [0, size / 2, size - 1] {
                        let found = context.query(block.as_ptr().wrapping_add(inside)).expect("an answer");
                        assert_eq!((found.base, found.size), (block.as_ptr() as usize, size));
                    }
                }
            });
        }
    });
    assert_eq!((context.stats().sum.current, context.stats().sum.live), (0, 0));
}

/// Some GPUs' device addresses have all upper bits set.
#[test]
fn blocks_at_the_end_of_the_address_space() {
    let registry = Registry::new();
    let base = usize::MAX - 99;
    registry.insert(PointerInfo { base, size: 100, ..info(0, 0) });
    assert_eq!(registry.find(usize::MAX).map(|block| block.base), Some(base));
    assert_eq!(registry.find(base - 1), None);
    registry.insert(PointerInfo { base: 0xff00_ffff_fffe_0000, size: 4000, ..info(0, 0) });
    assert_eq!(registry.find(0xff00_ffff_fffe_0f9f).map(|block| block.size), Some(4000));
    assert_eq!(registry.find(0xff00_ffff_fffe_0fa0), None);
}
