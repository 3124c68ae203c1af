//! A kernel's body cannot run another kernel's body past its launch, and with it past its check.

use usm_kernel::sample::Reverse;
use usm_kernel::{Group, Kernel, Local, Order, Write};

struct Caller;

impl Kernel<1> for Caller {
    const NAME: &'static str = "caller";
    type Arguments = (Write<f32>,);
    type Local = (Local<f32>,);

    fn group<O: Order>(&self, group: &Group<'_, Self, 1, O>, (a,): (&mut [f32],), (lm,): (&mut [f32],)) {
        Reverse.group(group, (&mut a[..1],), (lm,));
    }
}

fn main() {}
