//! Launches in which a stride is 0.

use usm_core::{BackendKind, DeviceType, QueueOrder};
use usm_kernel::{
    CheckedCode, DeviceCode, Formats, Group, Kernel, Launch, Module, NdRange, Order, Programmable, Proof,
    Range, Value, Values, Write,
};

use super::{queue, ready_in_every_format, shared};
use crate::Fixture;

/// A kernel whose codes differ: 1 from the usual one, 2 from the one for strides of 0, and 2 more
/// from each with checks.
#[derive(Clone, Copy, Debug)]
struct Told;

impl Kernel<1> for Told {
    const NAME: &'static str = "told";
    type Arguments = (Write<u32>, Value<u32>, Value<u32>);
    type Local = ();

    fn proof(&self, range: &NdRange<1>, lengths: &[usize], _: &Values<Self::Arguments>) -> Proof {
        match range.global().items() <= lengths[0] as u64 {
            true => Proof::PROVEN,
            false => Proof::checked("here", "the range is longer"),
        }
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a, ..): (&mut [u32], u32, u32), (): ()) {
        for item in group.items() {
            a[item.global()] = 1;
        }
    }
}

// SAFETY: one element an item, proven to be inside or checked.
unsafe impl DeviceCode<1> for Told {
    const OPENCL_C: Option<&'static str> = Some(
        "#ifdef own_scalar_loops
         #define told 2
         #else
         #define told 1
         #endif
         __kernel void told_by(__global uint *a, uint n, uint s) { a[get_global_id(0)] = told; }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void told_by(unsigned *a, unsigned n, unsigned s) \
         { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }",
    );
    const FUNCTION: &'static str = "told_by";
    const CHECKED: Option<CheckedCode> = Some(CheckedCode {
        function: "checked",
        opencl_c: Some(
            "#ifdef own_scalar_loops
             #define told 4
             #else
             #define told 3
             #endif
             __kernel void checked(__global uint *a, uint n, uint s, ulong len, __global uint *record)
             { if (get_global_id(0) < len) a[get_global_id(0)] = told; }",
        ),
        cuda_c: Some(
            "extern \"C\" __global__ void checked(unsigned *a, unsigned n, unsigned s, \
             unsigned long long len, unsigned *record) \
             { if (blockIdx.x * blockDim.x + threadIdx.x < len) a[blockIdx.x * blockDim.x + threadIdx.x] = 3; }",
        ),
        spir_v: None,
        ptx: None,
        lengths: &[(0, 1)],
        places: &[],
    });
    const STRIDES: &'static [usize] = &[2];
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// On a processor, a stride of 0 takes code of its own, with checks and without. Nothing else does.
pub fn one_source_has_other_code_for_strides_of_zero<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let info = fixture.context.info();
    let varies = info.device_type == DeviceType::Cpu
        && !matches!(info.backend, BackendKind::Host | BackendKind::Mock)
        && Module::formats(fixture.context).contains(Formats::OPENCL_C);
    for ready in ready_in_every_format::<Told, B, 1>(fixture.context) {
        let mut a = shared(&queue, &[0_u32; 8]);
        for (items, n, s) in [(8, 0, 1), (8, 5, 0), (9, 0, 1), (9, 0, 0), (8, 0, 7), (9, 1, 0)] {
            if items == 9 && ready.function().is_none() {
                continue;
            }
            let launch = Launch::with_range(&queue, Range::new([items]).expect("a range"));
            let event = launch.run_on(&ready, Told, (&mut a, n, s)).expect("a launch");
            event.wait().expect("all inside");
            let wanted = 1 + u32::from(varies && s == 0) + if items == 9 { 2 } else { 0 };
            assert_eq!(a.read().expect("a view")[..], [wanted; 8], "{items} items, {n}, {s}");
        }
    }
}
