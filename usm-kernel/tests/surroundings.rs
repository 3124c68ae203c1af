//! Safe code around a kernel cannot change the proof of its launches.

#![cfg(all(feature = "macros", feature = "alloc"))]
#![forbid(unsafe_code)]
#![allow(unreachable_pub, dead_code)]

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;

/// Length of the array that the kernels read.
const LENGTH: usize = 16;

/// A method of exclusive slices with the name of the one that counts elements.
mod another_length {
    trait Longer {
        fn len(self) -> usize;
    }

    impl Longer for &mut [u32] {
        fn len(self) -> usize {
            1 << 20
        }
    }

    #[usm_kernel::kernel]
    pub fn copy(a: &[u32], b: &mut [u32], k: u32) {
        let i = global_id(0);
        if i < b.len() && k > 0 {
            b[i] = a[0];
        }
    }
}

/// A method of every type with the name of the one that gives the items of a row.
mod other_items {
    trait Further: Sized {
        fn clone(self) -> core::ops::Range<u64> {
            (1 << 20)..(1 << 20) + 1
        }
    }

    impl<T> Further for T {}

    #[usm_kernel::kernel]
    pub fn copy(a: &[u32], b: &mut [u32], k: u32) {
        b[global_id(0)] = a[0] + k;
    }
}

/// A crate of the same names with other arithmetic.
mod other_arithmetic {
    mod fake {
        pub use usm_kernel::*;
        pub mod generated {
            pub use usm_kernel::generated::{CheckedCode, Place, Sharing, Subject, Written, element, store};

            pub fn quotient(_: i64, _: i64) -> Option<i64> {
                Some(0)
            }

            pub fn distinct(_: &mut [(i64, i64)], _: i64) -> bool {
                true
            }
        }
    }

    #[usm_kernel::kernel(crate = fake)]
    pub fn copy(a: &[u32], b: &mut [u32], k: u32) {
        let i = global_id(0);
        if k > 0 {
            b[i] = a[i / 7];
        }
    }
}

/// Methods of every type with the names of those that give numbers and places, and no prelude with
/// the right ones.
#[no_implicit_prelude]
mod no_prelude {
    trait Steps: ::core::marker::Sized {
        fn step_by(self, _: usize) -> ::core::ops::Range<u64> {
            (1 << 20)..(1 << 20) + 1
        }
        fn again(self) -> ::core::ops::Range<u64> {
            (1 << 20)..(1 << 20) + 1
        }
        fn try_from<T>(_: T) -> ::core::result::Result<i64, ()> {
            ::core::result::Result::Ok(0)
        }
        fn min(self, other: Self) -> Self {
            other
        }
        fn max(self, other: Self) -> Self {
            other
        }
    }

    impl<T> Steps for T {}

    #[::usm_kernel::kernel]
    pub fn copy(a: &[u32], b: &mut [u32], k: u32) {
        let mut i = global_id(0);
        let end = (k as u64 + 4).min(a.len());
        if i < b.len() {
            let mut t = 0u64;
            while t < end {
                b[i] = a[t];
                t += 1;
            }
            for s in (0..end).step_by(3) {
                b[i] = a[s];
            }
            b[i] = a[i.min(a.len() - 1)];
        }
    }
}

/// Runs over 4,096 items, where `a` has `LENGTH` elements, and `b` the given number.
macro_rules! stays_inside {
    ($name:ident, $b:expr) => {
        #[test]
        fn $name() {
            let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
            let a = UsmVec::<u32, Host, _>::from_slice(&queue, &[7; LENGTH]).unwrap();
            let mut b = UsmVec::<u32, Host, _>::from_slice(&queue, &[0; $b]).unwrap();
            let launch = Launch::with_range(&queue, Range::new([4096]).unwrap());
            // An index outside panics, and one that the proof omits does not.
            let _ = catch_unwind(AssertUnwindSafe(|| launch.run($name::copy, (&a, &mut b, 1_u32)).map(drop)));
            assert!(b.read().unwrap().iter().all(|value| matches!(value, 0 | 7 | 8)));
        }
    };
}

stays_inside!(another_length, LENGTH);
stays_inside!(other_items, 4096);
stays_inside!(other_arithmetic, 4096);
stays_inside!(no_prelude, 4096);
