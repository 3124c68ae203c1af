//! A kernel's body cannot run another kernel's body past its launch, and with it past its check.

use usm_kernel::sample::saxpy;
use usm_kernel::{Group, Kernel, Order, Read, Value, Write};

struct Caller;

impl Kernel<1> for Caller {
    const NAME: &'static str = "caller";
    type Arguments = (Value<f32>, Read<f32>, Write<f32>);
    type Local = ();

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (alpha, x, y): (f32, &[f32], &mut [f32]),
        (): (),
    ) {
        saxpy.group(group, (alpha, x, &mut y[..1]), ());
    }
}

fn main() {}
