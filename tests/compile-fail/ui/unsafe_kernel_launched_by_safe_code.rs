//! A kernel whose author vouches for it is launched by whoever vouches for the launch: no function
//! that safe code calls takes it as it is.

use usm_kernel::prelude::*;
use usm_kernel::usm_core::backend::host::HostHeap;
use usm_kernel::usm_core::{Context, Host, Queue, UsmVec};
use usm_kernel::host::phased;
use usm_kernel::InOrder;

#[kernel]
unsafe fn race(a: &mut [u32]) {
    a[0] = global_id(0) as u32;
}

#[kernels]
mod several {
    #[kernel]
    pub unsafe fn race(a: &mut [u32]) {
        a[0] = 1;
    }
}

fn launched(queue: &Queue<HostHeap>, a: &mut UsmVec<u32, Host, HostHeap>) {
    let range = Range::new([2]).unwrap();
    let _ = Launch::with_range(queue, range).run(race, (&mut *a,));
    let _ = Launch::with_range(queue, range).run(several::race, (&mut *a,));
    let _ = Launch::with_range(queue, range).run(VouchedKernel(race), (&mut *a,));
    let _ = Launch::with_range(queue, range).proof(race, (a,));
}

fn built(context: &Context<HostHeap>, queue: &Queue<HostHeap>, a: &mut UsmVec<u32, Host, HostHeap>) {
    let ready = Executable::<race, _, 1>::build(context).unwrap();
    let _ = Launch::with_range(queue, Range::new([2]).unwrap()).run_on(&ready, race, (a,));
}

fn phases(a: &mut [u32]) {
    let range = NdRange::new([2], [1]).unwrap();
    let _ = phased::run(&race, &range, (a,), &mut [], InOrder);
}

fn main() {}
