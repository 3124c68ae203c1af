//! The interval map against a list that is searched from end to end.

use proptest::prelude::*;
use usm_core::{AllocKind, PointerInfo, Registry};

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

/// Device addresses of some GPUs have all upper bits set.
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
