//! The promises of a launch, on plain slices and on USM memory: results do not depend on the order
//! of items and groups, and bad ranges are refused with both numbers.

#![cfg(all(feature = "alloc", feature = "macros"))]

use proptest::prelude::*;
use usm_core::backend::host::{Arena, HostHeap};
use usm_core::{Device, Host, Queue, QueueOrder, UsmVec};
use usm_kernel::host::phased;
use usm_kernel::sample::reverse_plain;
use usm_kernel::{
    InOrder, Kernel, Launch, LaunchError, NdRange, Order, Range, RangeError, ReverseOrder, ShuffledOrder,
};

#[path = "common/by_hand.rs"]
mod by_hand;

use by_hand::Reverse;

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

fn arange(count: usize) -> Vec<f32> {
    (0..count).map(|value| value as f32).collect()
}

#[test]
fn the_example_of_the_documentation_gives_all_nines() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(10)).unwrap();
    let range = NdRange::new([10], [10]).unwrap();
    let _ = Launch::new(&queue, range).run(Reverse, (&mut a,)).unwrap();
    assert_eq!(a.read().unwrap()[..], [9.0; 10]);

    let twice = NdRange::new([20], [10]).unwrap();
    let mut b = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(10)).unwrap();
    let refused = Launch::new(&queue, twice).run(Reverse, (&mut b,)).unwrap_err();
    assert!(refused.to_string().contains("10 elements, the kernel reaches 20"), "{refused}");
}

#[test]
fn the_general_form_is_right_for_many_groups() {
    for (count, group) in [(1_000, 10), (1_000_000, 10), (1_000_000, 1_000)] {
        let queue = queue();
        let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &arange(count)).unwrap();
        let range = NdRange::new([count as u64], [group as u64]).unwrap();
        let _ = Launch::new(&queue, range).run(Reverse, (&mut a,)).unwrap();
        let found = a.to_vec(&queue).unwrap();
        for (i, value) in found.iter().enumerate() {
            let start = i / group * group;
            assert_eq!(*value, (2 * start + group - 1) as f32, "element {i}");
        }
        let mut plain = arange(count);
        reverse_plain(&mut plain, group);
        assert_eq!(found, plain);
    }
}

fn run<const D: usize, K: Kernel<D, Arguments = (usm_kernel::Write<f32>,)>, O: Order>(
    kernel: &K,
    range: &NdRange<D>,
    mut a: Vec<f32>,
    order: O,
) -> Vec<f32> {
    let mut region = vec![0; 1 << 20];
    phased::run(kernel, range, (&mut a,), &mut region, order).unwrap();
    a
}

proptest! {
    #[test]
    fn reverse_does_not_depend_on_the_order(groups in 0_usize..20, group in 1_usize..70, seed: u64) {
        let range = NdRange::new([(groups * group) as u64], [group as u64]).unwrap();
        let mut plain = arange(groups * group);
        reverse_plain(&mut plain, group);
        let a = arange(groups * group);
        prop_assert_eq!(&run(&Reverse, &range, a.clone(), InOrder), &plain);
        prop_assert_eq!(&run(&Reverse, &range, a.clone(), ReverseOrder), &plain);
        prop_assert_eq!(&run(&Reverse, &range, a, ShuffledOrder(seed)), &plain);
    }

    #[test]
    fn every_order_is_a_permutation(count in 1_u64..5_000, seed: u64) {
        let places = |order: &dyn Fn(u64) -> u64| {
            let mut places: Vec<u64> = (0..count).map(order).collect();
            places.sort_unstable();
            places
        };
        let all: Vec<u64> = (0..count).collect();
        prop_assert_eq!(places(&|step| InOrder.place(step, count)), all.clone());
        prop_assert_eq!(places(&|step| ReverseOrder.place(step, count)), all.clone());
        prop_assert_eq!(places(&|step| ShuffledOrder(seed).place(step, count)), all);
    }
}

#[test]
fn a_launch_needs_no_heap() {
    let mut memory = [core::mem::MaybeUninit::uninit(); 4096];
    let arena = Arena::<8>::new(&mut memory);
    let queue = arena.context().queue(QueueOrder::InOrder).unwrap();
    let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(100)).unwrap();
    let range = NdRange::new([100], [10]).unwrap();
    #[repr(align(64))]
    struct Region([u8; 64]);
    let mut region = Region([0; 64]);
    // 40 bytes of floats: 43 suffice at any address and 40 at an aligned one, but 42 do not suffice
    // at the worst one.
    for (start, len, enough) in [(1, 43, true), (4, 40, true), (1, 42, false)] {
        let launch = Launch::new(&queue, range).local_memory(&mut region.0[start..][..len]);
        match launch.run(Reverse, (&mut a,)) {
            Ok(_) => assert!(enough),
            Err(error) => {
                assert_eq!(error, LaunchError::ArenaTooSmall { size: 43, available: 42 });
                assert!(!enough);
            }
        }
    }
}

#[test]
fn a_range_that_cannot_be_launched_names_both_numbers() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(16)).unwrap();

    let refused = NdRange::new([1_000], [300]).unwrap_err();
    assert_eq!(refused, RangeError::NotDivisible { dimension: 0, global: 1_000, local: 300 });
    assert_eq!(NdRange::new([4, 8], [2, 0]).unwrap_err(), RangeError::EmptyGroup { dimension: 1 });
    let huge = Range::new([u64::MAX, 2, 3]).unwrap_err();
    assert_eq!(huge, RangeError::TooLarge { sizes: [u64::MAX, 2, 3] });
    assert_eq!(Range::new([u64::MAX, 0, u64::MAX]).unwrap().items(), 0);

    let large = NdRange::new([1 << 20], [1 << 20]).unwrap();
    let refused = Launch::new(&queue, large).run(Reverse, (&mut a,)).unwrap_err();
    // The kernel checks first whether the array is shorter than the range.
    assert!(
        matches!(refused, LaunchError::Argument { kernel, .. } if kernel.as_str() == "reverse"),
        "{refused}"
    );
    let mut b = UsmVec::<f32, Host, _>::zeroed(&queue, 1 << 20).unwrap();
    let refused = Launch::new(&queue, large).run(Reverse, (&mut b,)).unwrap_err();
    assert_eq!(refused, LaunchError::GroupTooLarge { size: 1 << 20, limit: 1024 });

    // Without a local size, one group.
    let mut c = UsmVec::<f32, Host, _>::from_slice(&queue, &arange(16)).unwrap();
    let _ = Launch::with_range(&queue, Range::new([16]).unwrap()).run(Reverse, (&mut c,)).unwrap();
    assert_eq!(c.read().unwrap()[..], [15.0; 16]);
    let refused = Launch::with_range(&queue, *large.global()).run(Reverse, (&mut b,)).unwrap_err();
    assert_eq!(refused, LaunchError::GroupTooLarge { size: 1 << 20, limit: 1024 });
    let empty = Launch::new(&queue, NdRange::new([0], [4]).unwrap()).run(Reverse, (&mut a,));
    assert!(empty.is_ok());
    assert_eq!(a.read().unwrap()[..], arange(16));
}
