//! A crate of usm-kernel's names whose structures have another number of columns: devices would get
//! too few arguments.
#![forbid(unsafe_code)]

mod fake {
    pub use usm_kernel::*;

    pub struct Count<const N: usize>;

    pub trait Other {
        type Columns<S>;
    }

    impl<const N: usize> Other for Count<N> {
        type Columns<S> = usm_kernel::WriteColumns<S, 1>;
    }

    pub type WriteColumns<S, const N: usize> = <Count<N> as Other>::Columns<S>;
}

#[usm_kernel::kernels]
mod kernels {
    use usm_kernel::Structure;

    #[derive(Clone, Copy, Structure)]
    #[repr(C)]
    pub struct Mixed {
        a: u32,
        b: f32,
    }

    #[usm_kernel::kernel(crate = super::fake)]
    pub fn set(all: &mut [Mixed]) {
        all[global_id(0)].b = 1.0;
    }
}

fn main() {}
