//! Random kernels as Rust text: the results are those of the same text compiled as Rust, item by
//! item. The reader with the interpreter in three orders, and the host's body, agree with the Rust
//! compiler. `opencl.rs` runs the same kernels.
//!
//! `USM_RANDOM_PLAIN` sets the number of kernels, `USM_RANDOM_SEED` the first seed.

mod common;
#[path = "common/host.rs"]
mod host;

use usm_core::backend::host::HostHeap;
use usm_core::{Queue, QueueOrder};
use usm_kernel::{Launch, NdRange, ShuffledOrder};
use usm_random_kernels::{Given, plain};

use common::{Expected, bytes_of, differ, expected};

type Run = fn(&Queue<HostHeap>, &[u64], &[u64], &[Given]) -> Vec<Vec<u8>>;
type Items = fn(&[u64], &[u64], &[Given]) -> Vec<Vec<u8>>;

#[allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    arithmetic_overflow,
    unconditional_panic,
    overflowing_literals
)]
mod compiled {
    use super::host::{array, bytes, elements, value};
    use super::*;

    /// What kernels know, as Rust.
    mod words {
        use super::{Given, bytes_of};
        use core::cell::Cell;
        use core::ops::{BitAnd, BitOr, BitXor, Index, IndexMut};

        pub use usm_kernel::{Bf16, F16};

        pub struct Elements<T>(pub Vec<T>);

        pub fn elements<T: Copy + Default>(len: u64) -> Elements<T> {
            Elements(vec![T::default(); len as usize])
        }

        impl<T: bytemuck::Pod> Elements<T> {
            pub fn of(given: &Given) -> Self {
                Self(super::elements(given))
            }

            pub fn bytes(&self) -> Vec<u8> {
                bytemuck::cast_slice(&self.0).to_vec()
            }
        }

        impl<T> Index<u64> for Elements<T> {
            type Output = T;
            fn index(&self, index: u64) -> &T {
                &self.0[index as usize]
            }
        }

        impl<T> IndexMut<u64> for Elements<T> {
            fn index_mut(&mut self, index: u64) -> &mut T {
                &mut self.0[index as usize]
            }
        }

        pub struct Cells<T>(Vec<One<T>>);
        pub struct One<T>(Cell<T>);

        impl<T: bytemuck::Pod> Cells<T> {
            pub fn of(given: &Given) -> Self {
                Self(super::elements(given).into_iter().map(|one| One(Cell::new(one))).collect())
            }

            pub fn bytes(&self) -> Vec<u8> {
                self.0.iter().flat_map(|one| bytemuck::bytes_of(&one.0.get()).to_vec()).collect()
            }
        }

        impl<T> Index<u64> for Cells<T> {
            type Output = One<T>;
            fn index(&self, index: u64) -> &One<T> {
                &self.0[index as usize]
            }
        }

        pub trait Number: Copy + PartialEq {
            fn plus(self, other: Self) -> Self;
            fn less(self, other: Self) -> Self;
            fn smaller(self, other: Self) -> Self;
            fn larger(self, other: Self) -> Self;
        }
        macro_rules! numbers {
            ($add:ident $sub:ident: $($ty:ident)*) => { $(impl Number for $ty {
                fn plus(self, other: Self) -> Self { self.$add(other) }
                fn less(self, other: Self) -> Self { self.$sub(other) }
                fn smaller(self, other: Self) -> Self { self.min(other) }
                fn larger(self, other: Self) -> Self { self.max(other) }
            })* };
        }
        use core::ops::{Add as _, Sub as _};
        numbers!(wrapping_add wrapping_sub: i8 i16 i32 i64 u8 u16 u32 u64);
        numbers!(add sub: f32 f64);

        impl<T: Number> One<T> {
            pub fn load(&self) -> T {
                self.0.get()
            }
            pub fn fetch_add(&self, by: T) -> T {
                self.0.replace(self.0.get().plus(by))
            }
            pub fn fetch_sub(&self, by: T) -> T {
                self.0.replace(self.0.get().less(by))
            }
            pub fn fetch_min(&self, by: T) -> T {
                self.0.replace(self.0.get().smaller(by))
            }
            pub fn fetch_max(&self, by: T) -> T {
                self.0.replace(self.0.get().larger(by))
            }
            pub fn swap(&self, by: T) -> T {
                self.0.replace(by)
            }
            pub fn compare_exchange(&self, wanted: T, by: T) -> T {
                self.0.replace(if self.0.get() == wanted { by } else { self.0.get() })
            }
        }

        impl<T: Number + BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>> One<T> {
            pub fn fetch_and(&self, by: T) -> T {
                self.0.replace(self.0.get() & by)
            }
            pub fn fetch_or(&self, by: T) -> T {
                self.0.replace(self.0.get() | by)
            }
            pub fn fetch_xor(&self, by: T) -> T {
                self.0.replace(self.0.get() ^ by)
            }
        }

        pub fn smaller<T: Number>(one: T, two: T) -> T {
            one.smaller(two)
        }
        pub fn larger<T: Number>(one: T, two: T) -> T {
            one.larger(two)
        }

        pub const LOCAL: u32 = 1;
        pub const GLOBAL: u32 = 2;
        pub fn barrier(_: u32) {}

        thread_local! {
            /// The item's ids, and the sizes of the range and of a group.
            static ITEM: Cell<[[u64; 3]; 3]> = const { Cell::new([[0; 3]; 3]) };
        }
        pub fn global_id(dimension: usize) -> u64 {
            ITEM.get()[0][dimension]
        }
        pub fn global_size(dimension: usize) -> u64 {
            ITEM.get()[1][dimension]
        }
        pub fn local_size(dimension: usize) -> u64 {
            ITEM.get()[2][dimension]
        }
        pub fn local_id(dimension: usize) -> u64 {
            global_id(dimension) % local_size(dimension)
        }
        pub fn group_id(dimension: usize) -> u64 {
            global_id(dimension) / local_size(dimension)
        }

        pub fn each(global: &[u64], local: &[u64], mut run: impl FnMut()) {
            let mut sizes = [[1; 3]; 2];
            sizes[0][..global.len()].copy_from_slice(global);
            sizes[1][..local.len()].copy_from_slice(local);
            for x in 0..sizes[0][0] {
                for y in 0..sizes[0][1] {
                    for z in 0..sizes[0][2] {
                        ITEM.set([[x, y, z], sizes[0], sizes[1]]);
                        run();
                    }
                }
            }
        }
    }

    include!(concat!(env!("OUT_DIR"), "/plain.rs"));
}

#[test]
fn a_kernel_means_what_the_rust_compiler_reads() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    for (seed, items, host) in compiled::TEXTS {
        let program = plain::program(*seed);
        let plain = Expected(items(&program.global, &program.local, &program.arguments));
        if let Some(text) = differ(&program, &plain, &expected(&program).0) {
            panic!("the interpreter, and Rust: {text}\n{}", plain::text(*seed).kernel);
        }
        let found = host(&queue, &program.global, &program.local, &program.arguments);
        if let Some(text) = differ(&program, &plain, &found) {
            panic!("the host, and Rust: {text}\n{}", plain::text(*seed).kernel);
        }
    }
}
