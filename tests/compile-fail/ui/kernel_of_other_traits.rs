//! A crate of the same names gets no body that relies on a proof: safe code has no trait to
//! implement.
#![forbid(unsafe_code)]

mod other {
    pub use usm_kernel::*;

    pub mod generated {
        pub use usm_kernel::generated::{CheckedCode, Place, Sharing, Subject, element, store};
        use usm_kernel::{Group, LocalViews, NdRange, Order, Proof, Signature, Values, Views};

        pub trait Written<const D: usize>: Sized {
            const NAME: &'static str;
            const NEEDS_GROUPS: bool;
            const CONCURRENT: bool;
            type Arguments: Signature;
            type Forms;
            type Local: usm_kernel::LocalSignature;
            fn proof(&self, _: &NdRange<D>, _: &[usize], _: &Values<Self::Arguments>) -> Proof;
            fn group<O: Order, F: Sharing>(
                &self,
                group: &Group<'_, Self, D, O>,
                arguments: Views<'_, Self::Arguments, F>,
                local: LocalViews<'_, Self::Local>,
            );
            const FUNCTION: &'static str;
            const IR: Option<&'static str>;
            const OPENCL_C: Option<&'static str>;
            const CUDA_C: Option<&'static str>;
            const SPIR_V: Option<&'static [u8]>;
            const CHECKED: Option<CheckedCode> = None;
            type Numbers: AsRef<[u64]>;
            fn numbers(&self, range: &NdRange<D>, lengths: &[usize]) -> Self::Numbers;
        }
    }
}

#[usm_kernel::kernel(crate = other)]
fn copy(a: &[u32], b: &mut [u32]) {
    b[global_id(0)] = a[global_id(0)];
}

fn main() {}
