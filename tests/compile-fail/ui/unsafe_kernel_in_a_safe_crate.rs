//! A crate that forbids unsafe code has no kernel whose author vouches for it.
#![forbid(unsafe_code)]

use usm_kernel::prelude::*;

#[kernel]
unsafe fn outside(a: &mut [u32]) {
    a[global_id(0) + 1] = 0;
}

#[kernels]
mod several {
    #[kernel]
    pub unsafe fn race(a: &mut [u32]) {
        a[0] = 1;
    }
}

fn main() {}
