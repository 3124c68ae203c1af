//! Only unsafe code vouches for the launches of a kernel.

use usm_kernel::prelude::*;

#[kernel]
unsafe fn race(a: &mut [u32]) {
    a[0] = global_id(0) as u32;
}

fn main() {
    let _ = VouchedKernel::new(race);
}
