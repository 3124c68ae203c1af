//! A kernel of the attribute has the attribute's proof: a program cannot claim in its place that
//! its indices are inside.
#![forbid(unsafe_code)]

use usm_kernel::{Group, Kernel, LocalViews, NdRange, Order, Proof, Values, Views};

#[usm_kernel::kernel]
fn copy(a: &[u32], b: &mut [u32]) {
    b[global_id(0)] = a[global_id(0)];
}

impl Kernel<1> for copy {
    const NAME: &'static str = "copy";
    type Arguments = (usm_kernel::Read<u32>, usm_kernel::Write<u32>);
    type Local = ();

    fn proof(&self, _: &NdRange<1>, _: &[usize], _: &Values<Self::Arguments>) -> Proof {
        Proof::PROVEN
    }

    fn group<O: Order>(
        &self,
        _: &mut Group<'_, Self, 1, O>,
        _: Views<'_, Self::Arguments>,
        _: LocalViews<'_, Self::Local>,
    ) {
    }
}

fn main() {}
