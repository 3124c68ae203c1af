//! A crate of usm-kernel's names whose log has the lengths of another kernel.

mod small {
    pub struct Small;

    // No program states this of its own types without `unsafe`.
    impl usm_kernel::generated::Prints for Small {
        const NODES: Option<&'static str> = None;
    }
}

mod fake {
    pub use usm_kernel::*;

    pub mod generated {
        pub use usm_kernel::generated::*;
        pub type Log<K> = usm_kernel::generated::Log<<K as super::super::Map>::To>;
    }
}

pub trait Map {
    type To;
}

impl<T> Map for T {
    type To = small::Small;
}

#[usm_kernel::kernel(crate = fake)]
fn show(a: &mut [u32]) {
    println!("{}", a[global_id(0)]);
}

fn main() {}
