//! The body of a kernel compiles with other parameters of the same names, but the code for devices
//! would write through a shared reference, or take elements of another size.
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering;

mod other {
    pub use usm_kernel::{Group, NdRange, Order, Proof, Values, generated};

    pub type Atomic<T> = usm_kernel::Read<T>;

    pub trait AtomicElement {
        type Atomic;
    }

    impl AtomicElement for u32 {
        type Atomic = u32;
    }
}

mod narrow {
    pub use usm_kernel::{Group, NdRange, Order, Proof, Values, generated};

    pub type Atomic<T> = <T as AtomicElement>::Parameter;

    pub trait AtomicElement {
        type Atomic;
        type Parameter;
    }

    impl AtomicElement for u32 {
        type Atomic = u8;
        type Parameter = usm_kernel::Read<u8>;
    }
}

trait Count {
    fn fetch_add(&self, by: u32, order: Ordering) -> u32;
}

impl<T> Count for T {
    fn fetch_add(&self, by: u32, _: Ordering) -> u32 {
        by
    }
}

#[usm_kernel::kernel(crate = other)]
fn read(a: &[Atomic<u32>]) {
    a[0].fetch_add(1);
}

#[usm_kernel::kernel(crate = narrow)]
fn bytes(a: &[Atomic<u32>]) {
    a[0].fetch_add(1);
}

fn main() {}
