//! A group does not outlive the launch that made it.

use std::sync::Mutex;

use usm_kernel::{Group, InOrder, Kernel, Order, Write};

struct Keeper(Mutex<Option<Group<'static, Keeper, 1, InOrder>>>);

impl Kernel<1> for Keeper {
    const NAME: &'static str = "keeper";
    type Arguments = (Write<f32>,);
    type Local = ();

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, _: (&mut [f32],), (): ()) {
        let kept: &'static usm_kernel::NdRange<1> = group.range();
        let _ = kept;
    }
}

fn main() {}
