//! All sample kernels, with arrays and local memory of 4 KiB each.

use core::mem::MaybeUninit;

use usm_core::backend::host::{Arena, FixedHost};
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::sample::{
    BINS, add_carries, histogram, histogram_plain, matmul, matmul_plain, reduce, reduce_plain, reverse,
    reverse_plain, saxpy, saxpy_plain, scan, scan_plain,
};
use usm_kernel::{Launch, NdRange, ShuffledOrder};

use super::{Narrator, Refusal, check};

/// Elements of the arrays, in groups of this many.
const ELEMENTS: usize = 64;
const GROUP: usize = 16;
/// Side of the matrices.
const SIDE: usize = 16;
/// Bytes of the arena, and of local memory.
const BYTES: usize = 4 << 10;

/// Runs each kernel once and compares it with the plain loop that specifies it.
pub(super) fn samples(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let mut block = [MaybeUninit::uninit(); BYTES];
    let arena = Arena::<8>::new(&mut block);
    let context = arena.context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let mut local = [0_u8; BYTES];
    let of_floats = reverse_and_saxpy(&queue, &mut local)?;
    let of_sums = sums(&queue, &mut local)?;
    let of_integers = integers(&queue, &mut local)?;
    product(&queue, &mut local)?;
    let peak = context.stats().sum.peak;
    check(of_floats && of_sums && of_integers, "the samples")?;
    narrator.say(format_args!("seven samples in {BYTES} bytes, at most {peak} of them at once"))
}

fn ramp() -> [f32; ELEMENTS] {
    core::array::from_fn(|place| place as f32)
}

fn range() -> Result<NdRange<1>, Refusal> {
    Ok(NdRange::new([ELEMENTS as u64], [GROUP as u64])?)
}

fn reverse_and_saxpy<const N: usize>(
    queue: &Queue<FixedHost<'_, N>>,
    local: &mut [u8],
) -> Result<bool, Refusal> {
    let mut expected = ramp();
    let x = UsmVec::<f32, Host, _>::from_slice(queue, &expected)?;
    let mut y = UsmVec::<f32, Host, _>::from_slice(queue, &expected)?;
    Launch::new(queue, range()?).local_memory(local).run(reverse, (&mut y,))?.wait()?;
    Launch::new(queue, range()?).run(saxpy, (2.0, &x, &mut y))?.wait()?;
    reverse_plain(&mut expected, GROUP);
    saxpy_plain(2.0, &ramp(), &mut expected);
    Ok(y.read()?[..] == expected)
}

fn sums<const N: usize>(queue: &Queue<FixedHost<'_, N>>, local: &mut [u8]) -> Result<bool, Refusal> {
    let a = UsmVec::<f32, Host, _>::from_slice(queue, &ramp())?;
    let mut sums = UsmVec::<f32, Host, _>::zeroed(queue, ELEMENTS / GROUP)?;
    Launch::new(queue, range()?)
        .order(ShuffledOrder(3))
        .local_memory(local)
        .run(reduce, (&a, &mut sums))?
        .wait()?;
    let sum: f32 = sums.read()?.iter().sum();
    Ok(sum == reduce_plain(&ramp()))
}

fn integers<const N: usize>(queue: &Queue<FixedHost<'_, N>>, local: &mut [u8]) -> Result<bool, Refusal> {
    let bytes: [u8; ELEMENTS] = core::array::from_fn(|place| (place * place) as u8);
    let mut counts = [0; BINS];
    histogram_plain(&bytes, &mut counts);
    let values = UsmVec::<u8, Host, _>::from_slice(queue, &bytes)?;
    let mut found = UsmVec::<u32, Host, _>::zeroed(queue, BINS)?;
    Launch::new(queue, range()?).local_memory(local).run(histogram, (&values, &mut found))?.wait()?;
    let agree = found.read()?[..] == counts;

    let words: [u32; ELEMENTS] = core::array::from_fn(|place| (u32::MAX / 7).wrapping_mul(place as u32));
    let mut expected = [0; ELEMENTS];
    scan_plain(&words, &mut expected);
    let input = UsmVec::<u32, Host, _>::from_slice(queue, &words)?;
    let mut output = UsmVec::<u32, Host, _>::zeroed(queue, ELEMENTS)?;
    let mut totals = UsmVec::<u32, Host, _>::zeroed(queue, ELEMENTS / GROUP)?;
    let mut carries = UsmVec::<u32, Host, _>::zeroed(queue, ELEMENTS / GROUP)?;
    let mut none = UsmVec::<u32, Host, _>::zeroed(queue, 1)?;
    Launch::new(queue, range()?).local_memory(local).run(scan, (&input, &mut output, &mut totals))?.wait()?;
    let groups = NdRange::new([(ELEMENTS / GROUP) as u64], [(ELEMENTS / GROUP) as u64])?;
    Launch::new(queue, groups).local_memory(local).run(scan, (&totals, &mut carries, &mut none))?.wait()?;
    Launch::new(queue, range()?).run(add_carries, (&carries, &mut output))?.wait()?;
    Ok(agree && output.read()?[..] == expected)
}

fn product<const N: usize>(queue: &Queue<FixedHost<'_, N>>, local: &mut [u8]) -> Result<(), Refusal> {
    let left: [f32; SIDE * SIDE] = core::array::from_fn(|place| (place % 7) as f32);
    let right: [f32; SIDE * SIDE] = core::array::from_fn(|place| (place % 5) as f32);
    let mut expected = [0.0; SIDE * SIDE];
    matmul_plain(SIDE, SIDE, &left, &right, &mut expected);
    let a = UsmVec::<f32, Host, _>::from_slice(queue, &left)?;
    let b = UsmVec::<f32, Host, _>::from_slice(queue, &right)?;
    let mut c = UsmVec::<f32, Host, _>::zeroed(queue, SIDE * SIDE)?;
    let side = SIDE as u64;
    Launch::new(queue, NdRange::new([side, side], [side, side])?)
        .local_memory(local)
        .run(matmul, (side, side, side, &a, &b, &mut c))?
        .wait()?;
    check(c.read()?[..] == expected, "the sample matmul")
}
