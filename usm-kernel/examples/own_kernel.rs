//! A user's kernel with local memory and a barrier. Runs in three orders, which would reveal a
//! missing barrier.
//!
//! `cargo run -p usm-kernel --example own_kernel`

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::{
    FenceSpace, Group, Kernel, Launch, Local, NdRange, Order, ReverseOrder, ShuffledOrder, Values, Write,
};

/// Each group sums its elements into its first one, by halves.
struct GroupSums;

impl Kernel<1> for GroupSums {
    const NAME: &'static str = "group_sums";
    type Arguments = (Write<u32>,);
    type Local = (Local<u32>,);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [range.local().items() as usize]
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (a,): (&mut [u32],),
        (sums,): (&mut [u32],),
    ) {
        for item in group.items() {
            sums[item.local()] = a[item.global()];
        }
        group.barrier(FenceSpace::LOCAL);
        let mut half = group.size() / 2;
        while half > 0 {
            for item in group.items() {
                if item.local() < half {
                    sums[item.local()] += sums[item.local() + half];
                }
            }
            group.barrier(FenceSpace::LOCAL);
            half /= 2;
        }
        for item in group.items() {
            if item.local() == 0 {
                a[item.global()] = sums[0];
            }
        }
    }
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let numbers: Vec<u32> = (0..64).collect();
    let expected: Vec<u32> = numbers.chunks(16).map(|group| group.iter().sum()).collect();
    let range = NdRange::new([64], [16])?;

    let mut arrays = [(); 3].map(|()| UsmVec::<u32, Shared, _>::from_slice(&queue, &numbers));
    let [Ok(usual), Ok(reversed), Ok(shuffled)] = &mut arrays else { return Err("no memory".into()) };
    let _ = Launch::new(&queue, range).run(GroupSums, (usual,))?;
    let _ = Launch::new(&queue, range).order(ReverseOrder).run(GroupSums, (reversed,))?;
    let _ = Launch::new(&queue, range).order(ShuffledOrder(7)).run(GroupSums, (shuffled,))?;
    for array in arrays {
        let found: Vec<u32> = array?.read()?.iter().copied().step_by(16).collect();
        assert_eq!(found, expected);
    }
    println!("sums of the groups: {expected:?}");
    Ok(())
}
