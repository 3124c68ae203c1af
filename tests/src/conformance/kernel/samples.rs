//! Kernels of the tests, each with a host body and code for devices.

use usm_kernel::{
    ArgumentError, Atomic, Constant, DeviceCode, FenceSpace, Group, Kernel, Local, NdRange, Order, Private,
    PrivateArrays, Read, Value, Values, Write, ZeroedLocal,
};

macro_rules! code {
    ($name:literal) => {
        const OPENCL_C: Option<&'static str> = Some(include_str!(concat!("device/", $name, ".cl")));
        const CUDA_C: Option<&'static str> = Some(include_str!(concat!("device/", $name, ".cu")));
        const SPIR_V: Option<&'static [u8]> = Some(include_bytes!(concat!("device/", $name, ".spv")));
    };
}

/// `found[i] = table[places[i] % 16]`.
pub(super) struct Lookup;

impl Kernel<1> for Lookup {
    const NAME: &'static str = "lookup";
    type Arguments = (Constant<f32, 16>, Read<u32>, Write<f32>);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, range.global().items())?;
        ArgumentError::at_least(lengths, 2, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
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
    code!("lookup");
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

    fn check(
        &self,
        range: &NdRange<3>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items().saturating_mul(4))
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 3, O>, (found,): (&mut [u32],), (): ()) {
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
    code!("places");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<3>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// Each item notes its group. A launch without groups is one group.
pub(super) struct GroupOf;

impl Kernel<1> for GroupOf {
    const NAME: &'static str = "group_of";
    type Arguments = (Write<u32>,);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (groups,): (&mut [u32],), (): ()) {
        for item in group.items() {
            groups[item.global()] = group.index() as u32;
        }
    }
}

// SAFETY: an item has its own element.
unsafe impl DeviceCode<1> for GroupOf {
    code!("group_of");
    type Numbers = [u64; 1];

    fn numbers(&self, range: &NdRange<1>, _: &[usize]) -> [u64; 1] {
        [range.local().items()]
    }
}

/// Values of every width: their sum, in each element.
pub(super) struct Widths;

/// The values of [`Widths`]; the last is a structure of three.
pub(super) type WidthArguments =
    (Write<f64>, Value<u8>, Value<u16>, Value<u32>, Value<u64>, Value<f32>, Value<f64>, Value<[f32; 3]>);

impl Kernel<1> for Widths {
    const NAME: &'static str = "widths";
    type Arguments = WidthArguments;
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
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
    code!("widths");
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

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())?;
        ArgumentError::at_least(lengths, 1, 1)
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
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
    code!("count_odd");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// Local arrays of three types and a private one: each item writes a byte, a double and its
/// neighbour's private word.
pub(super) struct Mixed;

impl Kernel<1> for Mixed {
    const NAME: &'static str = "mixed";
    type Arguments = (Write<u32>,);
    type Local = (Local<u8>, Local<f64>, ZeroedLocal<u32>, Private<u32>);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 4] {
        let items = range.local().items() as usize;
        // An odd number of bytes in front of doubles.
        [2 * items + 1, items, 1, 2]
    }

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
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

// SAFETY: an item has its own element of the result. It writes its own elements of local arrays,
// and reads others after a barrier.
unsafe impl DeviceCode<1> for Mixed {
    code!("mixed");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// `a[i] = a[i] * 3 + b[i]`, after `rounds` idle iterations, so that later work could overtake it.
pub(super) struct Step {
    pub(super) rounds: u64,
}

impl Kernel<1> for Step {
    const NAME: &'static str = "step";
    type Arguments = (Write<u32>, Read<u32>);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.global().items())?;
        ArgumentError::at_least(lengths, 1, range.global().items())
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a, b): (&mut [u32], &[u32]), (): ()) {
        for item in group.items() {
            let i = item.global();
            a[i] = a[i].wrapping_mul(3).wrapping_add(b[i]);
        }
    }
}

// SAFETY: an item has its own element of both arrays.
unsafe impl DeviceCode<1> for Step {
    code!("step");
    type Numbers = [u64; 1];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 1] {
        [self.rounds]
    }
}

/// Requests the given amount of local memory and uses none.
pub(super) struct Hungry {
    pub(super) bytes: usize,
}

impl Kernel<1> for Hungry {
    const NAME: &'static str = "hungry";
    type Arguments = (Write<u32>,);
    type Local = (Local<u8>,);

    fn local(&self, _: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [self.bytes]
    }

    fn group<O: Order>(&self, _: &mut Group<'_, Self, 1, O>, _: (&mut [u32],), _: (&mut [u8],)) {}
}

// SAFETY: the code accesses no memory.
unsafe impl DeviceCode<1> for Hungry {
    code!("hungry");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}
