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
    /// Threads of a block that it is written for, or at most has.
    pub(crate) required: Option<[u32; 3]>,
    pub(crate) most_threads: Option<u32>,
    /// Bytes of shared memory of its own; what a launch adds comes behind.
    pub(crate) shared_bytes: usize,
    /// Bytes of each item's own variables.
    pub(crate) local_bytes: usize,
    pub(super) steps: Vec<Step>,
    /// What registers hold at the start: constants, and for the rest a pattern.
    pub(super) registers: Vec<u64>,
    /// Registers that hold what is an item's own.
    pub(super) specials: Vec<(Register, Special)>,
}

/// Where a parameter lies among the bytes of all of them.
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

/// What an item knows of itself and its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Item(usize),
    GroupSize(usize),
    Group(usize),
    Groups(usize),
    /// The place in the warp.
    Lane,
    /// The bits of the lanes before it, itself, or behind it.
    Lanes {
        before: bool,
        itself: bool,
        behind: bool,
    },
}

/// Memory by how it is reached.
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
    /// Only where this predicate is so.
    pub(super) guard: Option<(Register, bool)>,
    /// Of the text.
    pub(super) line: usize,
}

/// What it does: with the registers of the step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Calculate(Operation),
    Compare(Comparison, Option<Logic>),
    Select,
    Convert(Type, Rounding),
    /// From the address in the first register and so many bytes on.
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

/// What lanes of a warp do together, and the registers that it needs beside the step's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    pub(super) what: Collective,
    /// The lanes that have to come.
    pub(super) lanes: Register,
    /// Where the second result goes, a predicate.
    pub(super) also: Register,
}

/// The values are in the first register of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    /// The second register is the lane or the distance, the third the bounds.
    Shuffle(Shuffle),
    Vote(Vote),
    Reduce(Operation),
    /// The lanes that have the same value; all or none of them.
    MatchAny,
    MatchAll,
    /// Nothing but to wait for each other.
    Wait,
    /// Who is here, without waiting for anybody.
    Active,
}

/// Whose value a lane gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What is found out about predicates.
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
    /// The place of the highest bit that is not like the sign, and how far it is from the top.
    HighestBit,
    HighestBitShift,
    Reverse,
    /// As many bits from a place on as the third operand says.
    Field,
}

/// For which orders of two values it is so; they have none where one is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) less: bool,
    pub(super) equal: bool,
    pub(super) greater: bool,
    pub(super) unordered: bool,
}

/// With what the result of a comparison is put together.
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
    /// Not at all, but from 0 to 1.
    Unit,
}

/// What an atomic operation makes of the value that is there.
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
