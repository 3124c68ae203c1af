//! The body of a kernel whose author vouches for it is not called by another kernel, whose launch
//! nobody vouched for.

use usm_kernel::prelude::*;
use usm_kernel::{Group, Kernel, LocalViews, Order, Views};

#[kernel]
unsafe fn race(a: &mut [u32]) {
    a[0] = global_id(0) as u32;
}

/// Its own launch of the body, with a group that a launch of another kernel has proven.
impl Kernel<1> for race {
    const NAME: &'static str = "race";
    type Arguments = (usm_kernel::Write<u32>,);
    type Local = ();

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        arguments: Views<'_, Self::Arguments>,
        local: LocalViews<'_, Self::Local>,
    ) {
        usm_kernel::generated::Written::<1>::group::<O, _>(
            self, group, arguments, local,
        );
    }
}

fn main() {}
