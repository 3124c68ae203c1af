//! Kernels of the tests, each with a host body and code for devices.

use usm_kernel::{
    ArgumentError, Atomic, Constant, DeviceCode, FenceSpace, Group, Kernel, Local, NdRange, Order, Private,
    PrivateArrays, Read, Value, Write, Zeroed,
};

/// `found[i] = table[places[i] % 16]`.
pub(super) struct Lookup;

impl Kernel<1> for Lookup {
    const NAME: &'static str = "lookup";
    type Arguments = (Constant<f32, 16>, Read<u32>, Write<f32>);
    type Local = ();

    fn check(&self, range: &NdRange<1>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, range.global().items())?;
        ArgumentError::at_least(lengths, 2, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &Group<'_, 1, O>,
        (table, places, found): (&[f32; 16], &[u32], &mut [f32]),
        (): (),
    ) {
        for item in group.items() {
            found[item.global()] = table[places[item.global()] as usize % 16];
        }
    }
}

// SAFETY: an item has its own element of both arrays, and the table 16.
unsafe impl DeviceCode<1> for Lookup {
    const OPENCL_C: Option<&'static str> = Some(
        "__kernel void lookup(__constant float *table, __global const uint *places, __global float *found) {
            found[get_global_id(0)] = table[places[get_global_id(0)] % 16];
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void lookup(const float *table, const unsigned *places, float *found) {
            const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
            found[i] = table[places[i] % 16];
        }",
    );
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// Each item notes, at its linear place, its three global ids and its linear local id.
pub(super) struct Places;

impl Kernel<3> for Places {
    const NAME: &'static str = "places";
    type Arguments = (Write<u32>,);
    type Local = ();

    fn check(&self, range: &NdRange<3>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items().saturating_mul(4))
    }

    fn group<O: Order>(&self, group: &Group<'_, 3, O>, (found,): (&mut [u32],), (): ()) {
        for item in group.items() {
            let ids = item.global_id().indices();
            let place = 4 * item.global();
            for (to, id) in found[place..place + 3].iter_mut().zip(ids) {
                *to = id as u32;
            }
            found[place + 3] = item.local() as u32;
        }
    }
}

// SAFETY: an item has four elements of its own, at its linear place.
unsafe impl DeviceCode<3> for Places {
    const OPENCL_C: Option<&'static str> = Some(
        "__kernel void places(__global uint *found) {
            const size_t r1 = get_global_size(1), r2 = get_global_size(0);
            const size_t i0 = get_global_id(2), i1 = get_global_id(1), i2 = get_global_id(0);
            __global uint *place = found + 4 * ((i0 * r1 + i1) * r2 + i2);
            place[0] = i0;
            place[1] = i1;
            place[2] = i2;
            place[3] = (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void places(unsigned *found) {
            const size_t r1 = (size_t)gridDim.y * blockDim.y, r2 = (size_t)gridDim.x * blockDim.x;
            const size_t i0 = (size_t)blockIdx.z * blockDim.z + threadIdx.z;
            const size_t i1 = (size_t)blockIdx.y * blockDim.y + threadIdx.y;
            const size_t i2 = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
            unsigned *place = found + 4 * ((i0 * r1 + i1) * r2 + i2);
            place[0] = i0;
            place[1] = i1;
            place[2] = i2;
            place[3] = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        }",
    );
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<3>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// Values of every width: their sum, in each element.
pub(super) struct Widths;

/// What [`Widths`] takes by value; the last is a structure of three.
pub(super) type WidthArguments =
    (Write<f64>, Value<u8>, Value<u16>, Value<u32>, Value<u64>, Value<f32>, Value<f64>, Value<[f32; 3]>);

impl Kernel<1> for Widths {
    const NAME: &'static str = "widths";
    type Arguments = WidthArguments;
    type Local = ();

    fn check(&self, range: &NdRange<1>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &Group<'_, 1, O>,
        (found, a, b, c, d, e, f, g): (&mut [f64], u8, u16, u32, u64, f32, f64, [f32; 3]),
        (): (),
    ) {
        for item in group.items() {
            let whole = f64::from(a) + f64::from(b) + f64::from(c) + d as f64;
            found[item.global()] = whole + f64::from(e) + f + f64::from(g[0] + g[1] + g[2]);
        }
    }
}

// SAFETY: an item has its own element.
unsafe impl DeviceCode<1> for Widths {
    const OPENCL_C: Option<&'static str> = Some(
        "typedef struct { float v[3]; } three;
        __kernel void widths(__global double *found, uchar a, ushort b, uint c, ulong d, float e, double f, three g) {
            found[get_global_id(0)] = (double)a + b + c + d + e + f + (g.v[0] + g.v[1] + g.v[2]);
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "struct three { float v[3]; };
        extern \"C\" __global__ void widths(double *found, unsigned char a, unsigned short b, unsigned c,
                                            unsigned long long d, float e, double f, three g) {
            const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
            found[i] = (double)a + b + c + d + e + f + (g.v[0] + g.v[1] + g.v[2]);
        }",
    );
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// How many of `values` are odd, by atomic additions of all items.
pub(super) struct CountOdd;

impl Kernel<1> for CountOdd {
    const NAME: &'static str = "count_odd";
    type Arguments = (Read<u32>, Atomic<u32>);
    type Local = ();

    fn check(&self, range: &NdRange<1>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())?;
        ArgumentError::at_least(lengths, 1, 1)
    }

    fn group<O: Order>(
        &self,
        group: &Group<'_, 1, O>,
        (values, count): (&[u32], &[core::sync::atomic::AtomicU32]),
        (): (),
    ) {
        for item in group.items() {
            count[0].fetch_add(values[item.global()] & 1, core::sync::atomic::Ordering::Relaxed);
        }
    }
}

// SAFETY: an item reads its own element, and the count is added to atomically.
unsafe impl DeviceCode<1> for CountOdd {
    const OPENCL_C: Option<&'static str> = Some(
        "__kernel void count_odd(__global const uint *values, __global uint *count) {
            atomic_add(count, values[get_global_id(0)] & 1);
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void count_odd(const unsigned *values, unsigned *count) {
            atomicAdd(count, values[(size_t)blockIdx.x * blockDim.x + threadIdx.x] & 1);
        }",
    );
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// Local arrays of three types and a private one: each item leaves a byte, a double and its neighbour's private word.
pub(super) struct Mixed;

impl Kernel<1> for Mixed {
    const NAME: &'static str = "mixed";
    type Arguments = (Write<u32>,);
    type Local = (Local<u8>, Local<f64>, Zeroed<u32>, Private<u32>);

    fn local(&self, range: &NdRange<1>) -> [usize; 4] {
        let items = range.local().items() as usize;
        // An odd number of bytes in front of doubles.
        [2 * items + 1, items, 1, 2]
    }

    fn check(&self, range: &NdRange<1>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &Group<'_, 1, O>,
        (found,): (&mut [u32],),
        (bytes, doubles, zero, mut private): (&mut [u8], &mut [f64], &mut [u32], PrivateArrays<'_, u32>),
    ) {
        for item in group.items() {
            let l = item.local();
            private.of(item)[1] = 3 * l as u32;
            bytes[2 * l + 1] = l as u8;
            doubles[l] = l as f64 * 0.5;
        }
        group.barrier(FenceSpace::LOCAL);
        for item in group.items() {
            let other = group.size() - 1 - item.local();
            let (byte, double) = (u32::from(bytes[2 * other + 1]), (doubles[other] * 2.0) as u32);
            found[item.global()] = 1_000_000 * zero[0] + 10_000 * byte + 100 * double + private.of(item)[1];
        }
    }
}

// SAFETY: an item has its own element of the result; local arrays are written at places of its own, and read behind a barrier.
unsafe impl DeviceCode<1> for Mixed {
    const OPENCL_C: Option<&'static str> = Some(
        "__kernel void mixed(__global uint *found, __local uchar *bytes, __local double *doubles, __local uint *zero) {
            const size_t l = get_local_id(0), other = get_local_size(0) - 1 - l;
            uint own[2];
            own[1] = 3 * l;
            bytes[2 * l + 1] = l;
            doubles[l] = l * 0.5;
            if (l == 0)
                zero[0] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            const uint byte = bytes[2 * other + 1], word = doubles[other] * 2;
            found[get_global_id(0)] = 1000000 * zero[0] + 10000 * byte + 100 * word + own[1];
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern __shared__ __align__(16) unsigned char memory[];
        extern \"C\" __global__ void mixed(unsigned *found, unsigned at_bytes, unsigned at_doubles, unsigned at_zero) {
            unsigned char *bytes = memory + at_bytes;
            double *doubles = (double *)(memory + at_doubles);
            unsigned *zero = (unsigned *)(memory + at_zero);
            const unsigned l = threadIdx.x, other = blockDim.x - 1 - l;
            unsigned own[2];
            own[1] = 3 * l;
            bytes[2 * l + 1] = l;
            doubles[l] = l * 0.5;
            if (l == 0)
                zero[0] = 0;
            __syncthreads();
            const unsigned byte = bytes[2 * other + 1], word = doubles[other] * 2;
            found[blockIdx.x * blockDim.x + l] = 1000000 * zero[0] + 10000 * byte + 100 * word + own[1];
        }",
    );
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// `a[i] = a[i] * 3 + b[i]`, slowly enough that a launch can be overtaken: `rounds` times nothing in between.
pub(super) struct Step {
    pub(super) rounds: u64,
}

impl Kernel<1> for Step {
    const NAME: &'static str = "step";
    type Arguments = (Write<u32>, Read<u32>);
    type Local = ();

    fn check(&self, range: &NdRange<1>, lengths: &[usize]) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())?;
        ArgumentError::at_least(lengths, 1, range.global().items())
    }

    fn group<O: Order>(&self, group: &Group<'_, 1, O>, (a, b): (&mut [u32], &[u32]), (): ()) {
        for item in group.items() {
            let i = item.global();
            a[i] = a[i].wrapping_mul(3).wrapping_add(b[i]);
        }
    }
}

// SAFETY: an item has its own element of both arrays.
unsafe impl DeviceCode<1> for Step {
    const OPENCL_C: Option<&'static str> = Some(
        "__kernel void step(__global uint *a, __global const uint *b, ulong rounds) {
            const size_t i = get_global_id(0);
            volatile uint waste = 0;
            for (ulong round = 0; round < rounds; round++)
                waste += round;
            a[i] = a[i] * 3 + b[i];
        }",
    );
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void step(unsigned *a, const unsigned *b, unsigned long long rounds) {
            const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
            volatile unsigned waste = 0;
            for (unsigned long long round = 0; round < rounds; round++)
                waste += round;
            a[i] = a[i] * 3 + b[i];
        }",
    );
    type Numbers = [u64; 1];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 1] {
        [self.rounds]
    }
}

/// Asks for as much local memory as it is told, and touches none.
pub(super) struct Hungry {
    pub(super) bytes: usize,
}

impl Kernel<1> for Hungry {
    const NAME: &'static str = "hungry";
    type Arguments = (Write<u32>,);
    type Local = (Local<u8>,);

    fn local(&self, _: &NdRange<1>) -> [usize; 1] {
        [self.bytes]
    }

    fn group<O: Order>(&self, _: &Group<'_, 1, O>, _: (&mut [u32],), _: (&mut [u8],)) {}
}

// SAFETY: nothing is touched.
unsafe impl DeviceCode<1> for Hungry {
    const OPENCL_C: Option<&'static str> =
        Some("__kernel void hungry(__global uint *a, __local uchar *memory) {}");
    const CUDA_C: Option<&'static str> =
        Some("extern \"C\" __global__ void hungry(unsigned *a, unsigned memory) {}");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}
