//! The part without a heap: memory from a caller's block, dictionaries in a caller's text, a plan
//! from constant tables.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use usm_core::backend::host::Arena;
use usm_core::{AllocKind, Device, Host, QueueOrder, Shared, UsmVec};
use usm_interface::{Allocation, Field, Policy, Spelling, dict};
use usm_kernel::sample::{reverse, reverse_plain};
use usm_kernel::{Launch, NdRange, ReverseOrder};
use usm_pool::{Buffer, FixedNode, FixedPool, verify};

use super::text::Text;
use super::{Narrator, Refusal, check};

/// Elements and group size of the general form of the kernel.
const ELEMENTS: usize = 1000;
const GROUP: usize = 10;

/// Allocates the three kinds from a fixed block, asks about pointers, copies, and runs the reverse
/// kernel.
pub(super) fn memory_and_kernel(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let mut block = [MaybeUninit::uninit(); 16 << 10];
    let arena = Arena::<8>::new(&mut block);
    let context = arena.context();
    let queue = context.queue(QueueOrder::InOrder)?;

    let mut ramp = [0.0_f32; 10];
    for (place, value) in ramp.iter_mut().enumerate() {
        *value = place as f32;
    }
    let mut array = UsmVec::<f32, Host, _>::from_slice(&queue, &ramp)?;
    let interior = context.query(array.as_ptr().wrapping_add(3))?;
    check(interior.kind == AllocKind::Host && interior.size == 40, "query of an interior pointer")?;
    check(interior.base == array.as_ptr() as usize, "base of an interior pointer")?;
    let beyond = context.query(array.as_ptr().wrapping_add(10))?;
    check(beyond.kind == AllocKind::Unknown, "query of one past the end")?;
    narrator.say(format_args!("{} bytes of {} memory", interior.size, interior.kind.name()))?;

    // Local memory from the stack: no heap anywhere.
    let mut local = [0_u8; 64];
    let event = Launch::new(&queue, NdRange::new([10], [10])?)
        .local_memory(&mut local)
        .run(reverse, (&mut array,))?;
    event.wait()?;
    check(array.read()?.iter().all(|value| *value == 9.0), "reverse_array")?;
    narrator.say(format_args!("reverse_array {:?}", &array.read()?[..]))?;

    let mut many = [0.0_f32; ELEMENTS];
    for (place, value) in many.iter_mut().enumerate() {
        *value = place as f32;
    }
    let mut expected = many;
    reverse_plain(&mut expected, GROUP);
    let mut device = UsmVec::<f32, Device, _>::from_slice(&queue, &many)?;
    let event = Launch::new(&queue, NdRange::new([ELEMENTS as u64], [GROUP as u64])?)
        .local_memory(&mut local)
        .order(ReverseOrder)
        .run(reverse, (&mut device,))?;
    event.wait()?;
    let mut shared = UsmVec::<f32, Shared, _>::zeroed(&queue, ELEMENTS)?;
    queue.copy(&mut shared, &device)?.wait()?;
    check(shared.read()?[..] == expected, "reverse in groups")?;
    narrator.say(format_args!("reverse {ELEMENTS} elements in groups of {GROUP}"))?;

    let refused = UsmVec::<f32, Host, _>::zeroed(&queue, 3 * ELEMENTS).map(drop);
    check(refused.is_err(), "an allocation beyond the block")?;
    if let Err(error) = refused {
        narrator.say(format_args!("refused: {error}"))?;
    }
    let peak = context.stats().sum.peak;
    drop((array, device, shared));
    let stats = context.stats();
    check(stats.sum.current == 0 && stats.leaked == 0, "statistics after the last free")?;
    narrator.say(format_args!("peak {peak} bytes, now {}", stats.sum.current))
}

/// Blocks of a pool whose memory and records are the caller's.
pub(super) fn pool(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let (mut block, mut nodes) = ([MaybeUninit::uninit(); 4096], [FixedNode::VACANT; 8]);
    let mut pool = FixedPool::new(&mut block, &mut nodes);
    let kilobyte = Layout::from_size_align(1024, 1)?;
    let mut blocks = [pool.allocate(kilobyte)?; 3];
    for block in &mut blocks[1..] {
        *block = pool.allocate(kilobyte)?;
    }
    let refused = pool.allocate(Layout::from_size_align(1025, 1)?);
    check(refused.is_err(), "a block beyond the rest")?;
    for block in blocks {
        check(pool.free(block) && !pool.free(block), "a block returned once")?;
    }
    pool.allocate(Layout::from_size_align(4096, 1)?)?;
    narrator.say(format_args!("fixed pool: {} blocks of 1024 bytes, then one of 4096", blocks.len()))
}

/// Writes the dictionary of an array, reads it back, and proves that it lies inside its allocation.
pub(super) fn dictionary(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let source =
        "{'data': (4096, False), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '<f8', 'version': 3}";
    let mut table = [Field::EMPTY; 4];
    let array = dict::parse::<4>(source, None, &Policy::default(), &mut table)?;
    let extent = array.layout().extent();
    check((extent.low, extent.high) == (-16, 32), "extent of a negative stride")?;
    check(array.check_inside(Allocation { base: 4080, len: 48 }).is_ok(), "bounds that fit")?;
    check(array.check_inside(Allocation { base: 4080, len: 47 }).is_err(), "bounds that do not")?;
    narrator.say(format_args!(
        "dictionary {:?} extent {}..{}",
        array.layout().shape(),
        extent.low,
        extent.high
    ))?;

    let mut written = Text::<200>::new();
    array.write(&mut written, Spelling::Json)?;
    let mut table = [Field::EMPTY; 4];
    let again = dict::parse::<4>(written.as_str(), None, &Policy::default(), &mut table)?;
    check(again.layout().extent() == extent, "a dictionary written and read again")?;

    let overflow =
        "{'data': (4096, False), 'shape': (4611686018427387904, 8), 'typestr': '<f8', 'version': 3}";
    let mut table = [Field::EMPTY; 4];
    match dict::parse::<4>(overflow, None, &Policy::default(), &mut table) {
        Ok(_) => Err(Refusal::wrong("a shape that overflows")),
        Err(error) => narrator.say(format_args!("refused: {error}")),
    }
}

/// A plan made elsewhere: buffers and offsets as constants in the image.
const BUFFERS: [Buffer; 4] = [
    Buffer::new(0, 0, 2, 4096),
    Buffer::new(1, 1, 3, 2048),
    Buffer::new(2, 2, 4, 4096),
    Buffer::new(3, 3, 5, 2048),
];
const OFFSETS: [u64; 4] = [0, 4096, 0, 4096];
const CAPACITY: u64 = 6144;

/// Checks the constant plan, and that a wrong one is refused.
pub(super) fn plan(narrator: &mut Narrator<'_>) -> Result<(), Refusal> {
    let peak = verify::intervals(&BUFFERS, &OFFSETS, CAPACITY)?;
    check(peak == CAPACITY, "peak of the constant plan")?;
    check(verify::load_at(&BUFFERS, 1) == Some(CAPACITY), "lower bound of the constant plan")?;
    narrator.say(format_args!("constant plan: peak {peak}, lower bound {CAPACITY}"))?;
    match verify::intervals(&BUFFERS, &[0, 4088, 0, 4096], CAPACITY) {
        Ok(_) => Err(Refusal::wrong("a plan with an overlap")),
        Err(violation) => narrator.say(format_args!("refused: {violation}")),
    }
}
