//! Index spaces compared with plain nested loops.

use std::collections::HashSet;

use proptest::prelude::*;
use usm_kernel::host::phased;
use usm_kernel::{
    Group, Id, InOrder, Kernel, NdRange, Order, Range, RangeError, ReverseOrder, ShuffledOrder, Write,
};

proptest! {
    #[test]
    fn the_last_dimension_is_the_fastest(a in 1_u64..20, b in 1_u64..20, c in 1_u64..20) {
        let range = Range::new([a, b, c]).unwrap();
        let mut linear = 0;
        for x in 0..a {
            for y in 0..b {
                for z in 0..c {
                    let id = Id::new([x, y, z]);
                    prop_assert_eq!(id.linear(&range), linear);
                    prop_assert_eq!(range.id(linear), id);
                    linear += 1;
                }
            }
        }
        prop_assert_eq!(range.items(), linear);
    }

    #[test]
    fn a_range_is_accepted_exactly_when_it_can_be_counted(sizes: [u64; 3]) {
        let product = sizes.iter().try_fold(1_u128, |product, size| product.checked_mul(u128::from(*size)));
        // Three 64-bit sizes may exceed 128 bits, unless one is 0.
        let items = if sizes.contains(&0) { Some(0) } else { product };
        match Range::new(sizes) {
            Ok(range) => prop_assert_eq!(Some(u128::from(range.items())), items),
            Err(error) => {
                prop_assert_eq!(error, RangeError::TooLarge { sizes });
                prop_assert!(items.is_none_or(|items| items > isize::MAX as u128));
            }
        }
    }

    #[test]
    fn groups_divide_or_the_numbers_are_named(global: [u16; 2], local in prop::array::uniform2(0_u16..40)) {
        let (global, local) = (global.map(u64::from), local.map(u64::from));
        match NdRange::new(global, local) {
            Ok(range) => {
                prop_assert_eq!(range.groups().items() * range.local().items(), range.global().items());
                prop_assert!((0..2).all(|d| range.groups().sizes()[d] * local[d] == global[d]));
            }
            Err(RangeError::EmptyGroup { dimension }) => prop_assert_eq!(local[dimension], 0),
            Err(RangeError::NotDivisible { dimension, global: size, local: group }) => {
                prop_assert_eq!((size, group), (global[dimension], local[dimension]));
                prop_assert_ne!(size % group, 0);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
        if !local.contains(&0) {
            let range = NdRange::covering(global, local).unwrap();
            for d in 0..2 {
                let size = range.global().sizes()[d];
                prop_assert!(size >= global[d] && size < global[d] + local[d] && size % local[d] == 0);
            }
        }
    }

    #[test]
    fn covering_never_overflows(items: [u64; 3], local: [u64; 3]) {
        if let Ok(range) = NdRange::covering(items, local) {
            prop_assert!((0..3).all(|d| range.global().sizes()[d] >= items[d]));
        }
    }

    #[test]
    fn every_item_runs_once_and_knows_its_place(
        groups in prop::array::uniform3(0_u64..4), local in prop::array::uniform3(1_u64..5), seed: u64,
    ) {
        let range = NdRange::new([0, 1, 2].map(|d| groups[d] * local[d]), local).unwrap();
        let items = range.global().items() as usize;
        let mut places = vec![[u64::MAX; 8]; items];
        phased::run(&Places, &range, (&mut places,), &mut [], InOrder).unwrap();

        let [gx, gy, gz] = range.global().sizes();
        let mut expected = Vec::new();
        for x in 0..gx {
            for y in 0..gy {
                for z in 0..gz {
                    let [lx, ly, lz] = local;
                    let in_group = ((x % lx) * ly + y % ly) * lz + z % lz;
                    let group = ((x / lx) * groups[1] + y / ly) * groups[2] + z / lz;
                    expected.push([x, y, z, x % lx, y % ly, z % lz, in_group, group]);
                }
            }
        }
        prop_assert_eq!(&places, &expected);

        for _ in 0..2 {
            places.fill([u64::MAX; 8]);
            phased::run(&Places, &range, (&mut places,), &mut [], ReverseOrder).unwrap();
            prop_assert_eq!(&places, &expected);
            places.fill([u64::MAX; 8]);
            phased::run(&Places, &range, (&mut places,), &mut [], ShuffledOrder(seed)).unwrap();
            prop_assert_eq!(&places, &expected);
        }
    }

    #[test]
    fn chunks_cut_an_array_into_groups(len in 0_usize..100, chunk in 0_usize..20, groups in 0_u64..20) {
        let range = NdRange::new([groups * 2], [2]).unwrap();
        let mut seen = vec![0_u8; len];
        phased::run(&Touch(chunk), &range, (&mut seen,), &mut [], ReverseOrder).unwrap();
        let reached = (groups as usize * chunk).min(len);
        prop_assert!(seen[..reached].iter().all(|count| *count == 1));
        prop_assert!(seen[reached..].iter().all(|count| *count == 0));
    }
}

/// Each item writes its position.
struct Places;

impl Kernel<3> for Places {
    const NAME: &'static str = "places";
    type Arguments = (Write<[u64; 8]>,);
    type Local = ();

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 3, O>, (places,): (&mut [[u64; 8]],), (): ()) {
        let mut seen = HashSet::new();
        for item in group.items() {
            let ([x, y, z], [lx, ly, lz]) = (item.global_id().numbers(), item.local_id().numbers());
            let place = &mut places[item.global()];
            assert_eq!(*place, [u64::MAX; 8], "an item ran twice");
            *place = [x, y, z, lx, ly, lz, item.local() as u64, group.index() as u64];
            assert!(seen.insert(item.local()));
        }
        assert_eq!(seen.len(), group.size());
    }
}

/// Each group counts its chunk.
struct Touch(usize);

impl Kernel<1> for Touch {
    const NAME: &'static str = "touch";
    type Arguments = (Write<u8>,);
    type Local = ();

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (seen,): (&mut [u8],), (): ()) {
        let shared = group.chunk(seen, self.0).len();
        let own = group.chunk_mut(seen, self.0);
        assert_eq!(own.len(), shared);
        own.iter_mut().for_each(|count| *count += 1);
    }
}
