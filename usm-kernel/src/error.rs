//! Why a launch was refused.

use core::fmt;

use usm_core::Name;

use crate::proof::ShownRace;
use crate::range::RangeError;

/// Maximum number of arguments of a call.
pub(crate) const MOST_ARGUMENTS: usize = 40;

/// An argument or a local array that is shorter than the kernel needs. Elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentError {
    /// Position of the argument, or of the local array among the local arrays, from 0.
    pub argument: usize,
    /// Whether it is a local array.
    pub is_local: bool,
    /// Elements that the kernel accesses.
    pub expected: u64,
    /// Elements that exist.
    pub found: u64,
}

impl ArgumentError {
    /// Refuses argument number `argument` unless it has `expected` elements; for
    /// [`Kernel::check`](crate::Kernel::check).
    ///
    /// # Errors
    /// This error if the array is too short. A missing argument has no elements.
    #[inline]
    pub fn at_least(lengths: &[usize], argument: usize, expected: u64) -> Result<(), Self> {
        Self::check_length(lengths, argument, false, expected)
    }

    /// Refuses local array number `array` unless it has `expected` elements; for the check of a
    /// [`DeclaredFunction`](crate::DeclaredFunction).
    ///
    /// # Errors
    /// This error if the array is too short. A missing array has no elements.
    #[inline]
    pub fn local_at_least(locals: &[usize], array: usize, expected: u64) -> Result<(), Self> {
        Self::check_length(locals, array, true, expected)
    }

    #[inline]
    fn check_length(lengths: &[usize], argument: usize, is_local: bool, expected: u64) -> Result<(), Self> {
        let found = lengths.get(argument).map_or(0, |length| *length as u64);
        if found >= expected { Ok(()) } else { Err(Self { argument, is_local, expected, found }) }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, is_local, expected, found } = self;
        let what = if *is_local { "local array" } else { "argument" };
        write!(f, "{what} {argument} has {found} elements, the kernel reaches {expected}")
    }
}

impl core::error::Error for ArgumentError {}

/// Why a launch was refused. Nothing runs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// The range.
    Range(RangeError),
    /// A work-group above the device's `max_work_group_size`.
    GroupTooLarge {
        /// Work-items in a group.
        size: u64,
        /// The device's limit.
        limit: u64,
    },
    /// A launch with another local size than the kernel requires.
    WrongGroup {
        /// The dimension.
        dimension: usize,
        /// Local size that the kernel requires.
        expected: u64,
        /// Local size of the launch.
        found: u64,
    },
    /// Local memory for a function over a range without work-groups.
    NoGroups,
    /// More local memory than the device has for a group. Bytes.
    LocalMemoryTooLarge {
        /// Bytes that the kernel needs; `u64::MAX` if they exceed 64 bits.
        size: u64,
        /// The device's `local_mem_size`.
        limit: u64,
    },
    /// Less memory for local and private arrays than the kernel needs. Bytes.
    ArenaTooSmall {
        /// Bytes that suffice at any address.
        size: u64,
        /// RawArgument bytes.
        available: u64,
    },
    /// The caller's local memory on an asynchronous backend, which cannot borrow it.
    ArenaWithAsynchronous,
    /// An argument.
    Argument {
        /// Name of the kernel or function.
        kernel: Name,
        /// The error.
        error: ArgumentError,
    },
    /// Two work-items may touch one element between two barriers, and one of them writes. An
    /// inspection of the launch could not tell: an index follows from the contents of an array, or
    /// there are too many accesses.
    Race {
        /// Name of the kernel.
        kernel: &'static str,
        /// The array.
        array: &'static str,
        /// Place of the write: `file:line:column`.
        write: &'static str,
        /// Place of the other read or write.
        other: &'static str,
        /// The condition under which none do, in the words of the source.
        why: &'static str,
    },
    /// Two work-items touch one element between two barriers, and one of them writes.
    ShownRace {
        /// Name of the kernel.
        kernel: &'static str,
        /// The element and the two work-items.
        race: ShownRace,
    },
    /// An index that range, lengths and values do not prove to be inside, in device code without
    /// checks, or in a launch that [requires a proof](crate::Launch::require_proof).
    Unproven {
        /// Name of the kernel.
        kernel: &'static str,
        /// The index: `file:line:column`.
        index: &'static str,
        /// The condition that this launch violates, in the words of the source.
        why: &'static str,
    },
    /// The launch proves too little, and the code with checks does not build.
    /// [`Executable::checked`](crate::Executable::checked) gives the reason.
    CheckedCode {
        /// Name of the kernel.
        kernel: &'static str,
    },
    /// A scalar of the launch is one of the kernel's
    /// [`STRIDES`](crate::DeviceCode::STRIDES) and 0, and the code for that does not build.
    ScalarCode {
        /// Name of the kernel.
        kernel: &'static str,
    },
    /// A hand-written kernel in a launch that [requires a proof](crate::Launch::require_proof).
    NoProof {
        /// Name of the kernel.
        kernel: &'static str,
    },
    /// Another number of arguments than the function has parameters, local arrays included.
    ArgumentCount {
        /// Parameters of the function, or the maximum of a call.
        expected: usize,
        /// Number of passed arguments.
        found: usize,
    },
    /// An argument of another type than the function's parameter.
    ArgumentMismatch {
        /// Position of the argument, from 0.
        argument: usize,
        /// The declared type.
        expected: &'static str,
        /// The passed type.
        found: &'static str,
    },
    /// An argument of another size than the function's parameter. Bytes.
    ArgumentBytes {
        /// Position of the argument, from 0.
        argument: usize,
        /// Bytes of the parameter.
        expected: usize,
        /// Bytes of the argument.
        found: usize,
    },
    /// An edge of a [histogram](crate::algorithms::OrderAlgorithms::histogram) that is NaN or below
    /// the one before it.
    Edge {
        /// Position of the edge, from 0.
        edge: usize,
    },
    /// The memory model: context, limits, live views, or the runtime.
    Memory(usm_core::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Range(error) => error.fmt(f),
            Self::GroupTooLarge { size, limit } => {
                write!(f, "a work-group of {size} items, the device allows {limit}")
            }
            Self::WrongGroup { dimension, expected, found } => {
                write!(f, "local size {found} in dimension {dimension}, the kernel is written for {expected}")
            }
            Self::NoGroups => {
                f.write_str("a function with local memory needs an nd-range, not a plain range")
            }
            Self::LocalMemoryTooLarge { size, limit } => {
                write!(
                    f,
                    "{size} bytes of local memory needed, the device has {limit} bytes for a work-group"
                )
            }
            Self::ArenaTooSmall { size, available } => write!(
                f,
                "{size} bytes needed for local and private memory, the launch was given {available} bytes"
            ),
            Self::ArenaWithAsynchronous => {
                f.write_str("this backend finishes launches later and cannot borrow local memory")
            }
            Self::ArgumentCount { expected, found } if expected == MOST_ARGUMENTS && found > expected => {
                write!(
                    f,
                    "more than {expected} arguments, lengths of arrays and local arrays counted, the most of a launch on a \
                 device: pass several arrays as parts of one"
                )
            }
            Self::ArgumentCount { expected, found } => {
                write!(f, "{found} arguments given, the function has {expected} parameters")
            }
            Self::ArgumentMismatch { argument, expected, found } => {
                write!(f, "argument {argument} is {found}, the function declares {expected}")
            }
            Self::ArgumentBytes { argument, expected, found } => {
                write!(f, "argument {argument} has {found} bytes, the function's parameter has {expected}")
            }
            Self::Argument { kernel, error } => write!(f, "kernel {kernel}: {error}"),
            Self::Race { kernel, array, write, other, why } => write!(
                f,
                "kernel {kernel}: two work-items of this range may touch one element of `{array}`, at {write} and at {other}: proven if {why}"
            ),
            Self::ShownRace { kernel, race } => write!(f, "kernel {kernel}: a race of this launch on {race}"),
            Self::Unproven { kernel, index, why } => write!(
                f,
                "kernel {kernel}: for this range and these arguments the index at {index} is not proven to be inside of its array: {why}"
            ),
            Self::CheckedCode { kernel } => write!(
                f,
                "kernel {kernel}: the code that checks indices, which this launch needs, does not build; `Executable::checked` says why"
            ),
            Self::ScalarCode { kernel } => write!(
                f,
                "kernel {kernel}: its OpenCL C for strides of 0, which this launch needs, does not build"
            ),
            Self::NoProof { kernel } => {
                write!(f, "kernel {kernel} is written by hand and proves nothing of its indices")
            }
            Self::Edge { edge } => write!(f, "edge {edge} of the bins is NaN or below the one before it"),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Range(error) => Some(error),
            Self::Argument { error, .. } => Some(error),
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RangeError> for LaunchError {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}

impl From<usm_core::Error> for LaunchError {
    fn from(error: usm_core::Error) -> Self {
        Self::Memory(error)
    }
}

impl From<usm_core::ErrorKind> for LaunchError {
    fn from(kind: usm_core::ErrorKind) -> Self {
        Self::Memory(kind.into())
    }
}
