//! The steps of a program.

use core::ops::Range;

use usm_core::AllocKind;

use super::Random;

/// Number of contexts.
pub(super) const SIDES: usize = 2;
/// Number of queues in a context; every second one is in order.
pub(super) const QUEUES: usize = 4;
/// Number of places for arrays in a context.
pub(super) const ARRAYS: usize = 5;
/// Number of places for buffers in a context.
pub(super) const BUFFERS: usize = 2;
/// Number of elements in each array and buffer.
pub(super) const ELEMENTS: usize = 16;
/// Number of tensors in the arena.
pub(super) const TENSORS: u64 = 4;

/// The source of a new array's memory.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The context.
    Context,
    /// The queue.
    Queue,
    /// A tensor of the arena.
    Arena(u64),
    /// The program's own allocator.
    System,
}

/// The initial content of a new array.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Zeros.
    Zeros,
    /// Consecutive numbers from this one on.
    From(u16),
    /// The content of another array; the memory is uninitialised before.
    Of(usize),
}

/// A queue by context and number.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Number of the context.
    pub side: usize,
    /// Number of the queue.
    pub queue: usize,
}

/// A line of a program. A step on an empty place does nothing.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "numbers of places, and ranges of elements")]
pub enum Step {
    Array {
        at: At,
        to: usize,
        kind: AllocKind,
        source: Source,
        content: Content,
    },
    Buffer {
        side: usize,
        to: usize,
    },
    Fill {
        at: At,
        array: usize,
        value: u16,
    },
    Copy {
        at: At,
        to: usize,
        from: usize,
    },
    /// Copies elements of an array to another, or to the same one.
    CopyPart {
        at: At,
        to: usize,
        first: usize,
        from: Range<usize>,
        array: usize,
    },
    /// Copies every second element, last one first.
    CopyStrided {
        at: At,
        to: usize,
        from: usize,
    },
    /// `y += x`, of the first elements.
    Kernel {
        at: At,
        x: usize,
        y: usize,
        items: usize,
    },
    FillBuffer {
        at: At,
        buffer: usize,
        range: Range<usize>,
        value: u16,
    },
    WriteBuffer {
        at: At,
        buffer: usize,
        first: usize,
        array: usize,
        from: Range<usize>,
    },
    WriteBytes {
        at: At,
        buffer: usize,
        range: Range<usize>,
        value: u16,
    },
    ReadBuffer {
        at: At,
        array: usize,
        first: usize,
        buffer: usize,
        from: Range<usize>,
    },
    CopyBuffer {
        at: At,
        to: usize,
        first: usize,
        buffer: usize,
        from: Range<usize>,
    },
    /// The host adds a number to each element.
    Edit {
        side: usize,
        array: usize,
        value: u16,
    },
    Read {
        at: At,
        array: usize,
    },
    ReadBytes {
        at: At,
        buffer: usize,
    },
    /// Names memory of the other context, which every operation refuses.
    Foreign {
        at: At,
        array: usize,
    },
    Hint {
        at: At,
        array: usize,
    },
    /// Waits for kept events, or for the whole queue.
    Barrier {
        at: At,
        events: usize,
    },
    WaitEvent {
        event: usize,
    },
    WaitQueue {
        at: At,
    },
    Synchronize {
        side: usize,
    },
    Advance {
        operations: usize,
    },
    Drop {
        side: usize,
        array: usize,
    },
    DropBuffer {
        side: usize,
        buffer: usize,
    },
    DropEvents,
    NewQueue {
        at: At,
    },
    NewArena {
        at: At,
        kind: AllocKind,
        of_queue: bool,
    },
    /// Drops everything of a context, in this order of its kinds.
    NewSide {
        side: usize,
        order: u64,
    },
    ForgetArray {
        side: usize,
        array: usize,
    },
    ForgetView {
        side: usize,
        array: usize,
    },
    ForgetQueue {
        at: At,
    },
    ForgetEvents,
    Fail {
        sort: usize,
        skip: usize,
        late: bool,
    },
}

const KINDS: [AllocKind; 3] = AllocKind::ALL;

fn at(random: &mut Random) -> At {
    // Mostly one context, so that its operations meet.
    let side = usize::from(random.once_in(5));
    At { side, queue: random.below(QUEUES) }
}

fn range(random: &mut Random) -> Range<usize> {
    let (one, other) = (random.below(ELEMENTS + 1), random.below(ELEMENTS + 1));
    one.min(other)..one.max(other)
}

/// A range, and the start of an equally long range in another array.
fn part(random: &mut Random) -> (usize, Range<usize>) {
    let from = range(random);
    (random.below(ELEMENTS - from.len() + 1), from)
}

fn array(random: &mut Random) -> Step {
    let source = match random.below(8) {
        0..3 => Source::Context,
        3..5 => Source::Queue,
        5..7 => Source::Arena(random.number() % TENSORS),
        _ => Source::System,
    };
    let content = match random.below(3) {
        0 => Content::Zeros,
        1 => Content::From(random.number() as u16),
        _ => Content::Of(random.below(ARRAYS)),
    };
    Step::Array { at: at(random), to: random.below(ARRAYS), kind: random.of(&KINDS), source, content }
}

fn step(random: &mut Random, faults: bool) -> Step {
    let (at, value) = (at(random), random.number() as u16);
    let side = at.side;
    let (one, two) = (random.below(ARRAYS), random.below(ARRAYS));
    let buffer = random.below(BUFFERS);
    match random.below(100) {
        0..12 => array(random),
        12..15 => Step::Buffer { side, to: buffer },
        15..23 => Step::Fill { at, array: one, value },
        23..33 => Step::Copy { at, to: one, from: two },
        33..38 => {
            let (first, from) = part(random);
            Step::CopyPart { at, to: one, first, from, array: two }
        }
        38..41 => Step::CopyStrided { at, to: one, from: two },
        41..48 => Step::Kernel { at, x: one, y: two, items: random.below(ELEMENTS + 1) },
        48..51 => Step::FillBuffer { at, buffer, range: range(random), value },
        51..55 => {
            let (first, from) = part(random);
            Step::WriteBuffer { at, buffer, first, array: one, from }
        }
        55..57 => Step::WriteBytes { at, buffer, range: range(random), value },
        57..61 => {
            let (first, from) = part(random);
            Step::ReadBuffer { at, array: one, first, buffer, from }
        }
        61..64 => {
            let (first, from) = part(random);
            Step::CopyBuffer { at, to: random.below(BUFFERS), first, buffer, from }
        }
        64..67 => Step::Edit { side, array: one, value },
        67..71 => Step::Read { at, array: one },
        71..73 => Step::ReadBytes { at, buffer },
        73 => Step::Foreign { at, array: one },
        74 => Step::Hint { at, array: one },
        75..77 => Step::Barrier { at, events: random.below(4) },
        77 => Step::WaitEvent { event: random.below(16) },
        78 => Step::WaitQueue { at },
        79 => Step::Synchronize { side },
        80..88 => Step::Advance { operations: random.below(4) },
        88..91 => Step::Drop { side, array: one },
        91 => Step::DropBuffer { side, buffer },
        92 => Step::DropEvents,
        93 => Step::NewQueue { at },
        94 => Step::NewArena { at, kind: random.of(&KINDS[1..]), of_queue: random.once_in(2) },
        95 => Step::NewSide { side: random.below(SIDES), order: random.number() },
        96 if random.once_in(4) => match random.below(4) {
            0 => Step::ForgetArray { side, array: one },
            1 => Step::ForgetView { side, array: one },
            2 => Step::ForgetQueue { at },
            _ => Step::ForgetEvents,
        },
        97.. if faults => {
            Step::Fail { sort: random.below(8), skip: random.below(6), late: !random.once_in(4) }
        }
        _ => Step::Read { at, array: two },
    }
}

/// Some arrays and buffers, and steps on them.
pub(super) fn program(random: &mut Random, faults: bool) -> Vec<Step> {
    let steps = 10 + random.below(70);
    let mut program = vec![Step::NewArena {
        at: At { side: 0, queue: 0 },
        kind: random.of(&KINDS[1..]),
        of_queue: random.once_in(2),
    }];
    program.extend((0..3).map(|_| array(random)));
    program.push(Step::Buffer { side: 0, to: 0 });
    program.extend((0..steps).map(|_| step(random, faults)));
    program
}
