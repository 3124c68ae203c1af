//! CUDA C whose threads cooperate in warps, from source to result.
//! `tests/cuda-driver/src/ptx/tests` tests each instruction.

use usm_core::{Device, QueueOrder, Shared, UsmVec};
use usm_cuda::Cuda;
use usm_kernel::{Argument, BuildError, Code, Launch, Module, NdRange};
use usm_tests::skip;

use crate::driver::Driver;

/// A weighted sum and the number of odd values: in each warp by shuffles and votes, over all warps
/// by atomics.
const SOURCE: &str = r#"
__constant__ int weights[3] = {5, -7, 11};
extern "C" __global__ void sums(const int *x, int *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? x[i] : 0, sum = value * weights[i % 3];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    unsigned odd = __ballot_sync(0xffffffffu, value & 1);
    if (threadIdx.x % warpSize == 0) {
        atomicAdd(out, sum);
        atomicAdd(out + 1, __popc(odd));
    }
}
"#;

#[test]
fn a_kernel_sums_up_in_warps() {
    for settings in ["", "late"] {
        let Some(driver) = Driver::find_with(settings, Cuda::open) else { return };
        let context = driver.context();
        let module = match Module::build(&context, Code::CudaC(SOURCE)) {
            Err(BuildError::Runtime(error)) => return skip::missing("nvrtc", error),
            built => built.expect("code that compiles"),
        };
        let sums = module.function("sums").expect("a function");
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        let values: Vec<i32> = (0..1000).map(|i| i * i % 4093 - 2000).collect();
        let x = UsmVec::<i32, Device, _>::from_slice(&queue, &values).expect("memory");
        let mut out = UsmVec::<i32, Shared, _>::zeroed(&queue, 2).expect("memory");
        let range = NdRange::new([1024], [256]).expect("a range");
        let arguments = [Argument::read(&x), Argument::write(&mut out), Argument::value(&1000_u32)];
        // SAFETY: reads as many elements as there are, and writes two by atomic operations.
        drop(unsafe { Launch::new(&queue, range).call(&sums, &arguments) }.expect("a launch"));
        let expected: i32 = values.iter().zip([5, -7, 11].iter().cycle()).map(|(x, weight)| x * weight).sum();
        let odd = values.iter().filter(|value| **value % 2 != 0).count() as i32;
        assert_eq!(out.read().expect("a view")[..], [expected, odd]);
    }
}
