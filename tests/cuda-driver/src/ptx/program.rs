//! A module: its functions as steps over registers.

use super::types::Type;

/// Functions and their variables.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) entries: Vec<Entry>,
    /// The bytes of all constants.
    pub(crate) constants: Vec<u64>,
}

/// A function that can be launched.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    /// The block size that the function requires, or its maximum.
    pub(crate) required: Option<[u32; 3]>,
    pub(crate) most_threads: Option<u32>,
    /// Bytes of static shared memory. Dynamic shared memory follows.
    pub(crate) shared_bytes: usize,
    /// Bytes of each item's local variables.
    pub(crate) local_bytes: usize,
    pub(super) steps: Vec<Step>,
    /// Initial values: constants, and the pattern for other registers.
    pub(super) registers: Vec<u64>,
    /// Registers that hold special values of an item.
    pub(super) specials: Vec<(Register, Special)>,
}

/// Where a parameter lies in the parameter buffer.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

impl Entry {
    /// Bytes of all parameters.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.bytes)
    }
}

/// The number of a register.
pub(super) type Register = u32;

/// A special register: the item's position and its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Item(usize),
    GroupSize(usize),
    Group(usize),
    Groups(usize),
    /// The lane's index in the warp.
    Lane,
    /// A mask of the lanes before, at or after this one.
    Lanes {
        before: bool,
        itself: bool,
        behind: bool,
    },
}

/// A space of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Constant,
    Parameter,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) of: Type,
    pub(super) to: Register,
    pub(super) from: [Register; 3],
    /// The predicate and the value that it must have for the step to run.
    pub(super) guard: Option<(Register, bool)>,
    /// The line in the text.
    pub(super) line: usize,
}

/// The action of a step on its registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Calculate(Operation),
    Compare(Comparison, Option<Logic>),
    Select,
    Convert(Type, Rounding),
    /// Loads from the address in the first register plus an offset.
    Load(Space, i64),
    Store(Space, i64),
    Update(Space, i64, Update),
    Jump(usize),
    Barrier,
    Together(Together),
    End,
    Trap,
    Nothing,
}

/// A collective step, with the registers that it needs beside the step's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    pub(super) what: Collective,
    /// The mask of participating lanes.
    pub(super) lanes: Register,
    /// The register of the second result, a predicate.
    pub(super) also: Register,
}

/// The first register of the step holds the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    /// The second register holds the lane or the distance, the third the bounds.
    Shuffle(Shuffle),
    Vote(Vote),
    Reduce(Operation),
    /// The lanes with an equal value: any of them, or all or none.
    MatchAny,
    MatchAll,
    /// Only a barrier.
    Wait,
    /// The active lanes at this instruction, without a wait.
    Active,
}

/// How a shuffle selects the source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The question about the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Arithmetic, on integers, floating-point numbers or predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Move,
    Not,
    Negate,
    Absolute,
    Add,
    Subtract,
    Multiply,
    MultiplyHigh,
    MultiplyWide,
    MultiplyAdd,
    MultiplyHighAdd,
    MultiplyWideAdd,
    /// Rounded down.
    MultiplyAddDown,
    /// Rounds towards zero.
    MultiplyAddToZero,
    /// Rounds towards zero.
    AddToZero,
    Divide,
    Remainder,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Root,
    Reciprocal,
    /// 2 to this power, and the logarithm to base 2.
    Power,
    Logarithm,
    CountOnes,
    CountZeros,
    /// The position of the highest bit that differs from the sign, and its distance from the top.
    HighestBit,
    HighestBitShift,
    Reverse,
    /// A bit field: start and length are the other operands.
    Field,
    /// Two words of 32 bits as one of 64, shifted: its upper word, and its lower one.
    FunnelLeft,
    FunnelRight,
}

/// The orders of two values for which the comparison is true; `unordered` means NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) less: bool,
    pub(super) equal: bool,
    pub(super) greater: bool,
    pub(super) unordered: bool,
}

/// How the result of a comparison is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
}

/// To a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    None,
    Nearest,
    Zero,
    Down,
    Up,
    /// No rounding: clamps to 0..=1.
    Unit,
}

/// How an atomic operation changes the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    Add,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
}
