//! A crate of usm-kernel's names whose structures have another number of columns.

use usm_kernel::Structure;

mod fake {
    pub use usm_kernel::*;

    pub type WriteColumns<S, const N: usize> = usm_kernel::WriteColumns<S, 1>;
}

#[usm_kernel::kernels(crate = fake)]
mod kernels {
    use super::Structure;

    #[derive(Clone, Copy, Structure)]
    #[repr(C)]
    pub struct Mixed {
        a: u32,
        b: f32,
    }

    #[kernel]
    pub fn set(all: &mut [Mixed]) {
        all[global_id(0)].b = 1.0;
    }
}

fn main() {}
