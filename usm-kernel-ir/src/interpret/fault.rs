//! The faults of a launch, in words.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::kernel::{ASSERTION, ArrayId, Place};

/// A work-item: its global ids, one for each dimension of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    pub(super) ids: [u64; 3],
    pub(super) dimensions: u8,
}

impl WorkItem {
    pub(crate) const fn new(ids: [u64; 3], dimensions: u8) -> Self {
        Self { ids, dimensions }
    }

    /// The global ids, dimension 0 first.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        self.ids.get(..usize::from(self.dimensions)).unwrap_or(&self.ids)
    }
}

impl fmt::Display for WorkItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.ids())
    }
}

/// The access of an item to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Changes or reads it atomically.
    Atomic,
}

impl Deed {
    /// The verb in a sentence: `reads`, `writes`, `atomically changes`.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Atomic => "atomically changes",
        }
    }
}

/// The place of an item's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The item.
    pub item: WorkItem,
    /// The place in the source.
    pub place: Place,
    /// The place as `file:line:column`.
    pub located: Box<str>,
}

/// A fault of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An index outside of its array.
    Outside {
        /// Name of the array.
        array: String,
        /// The array.
        id: ArrayId,
        /// The place of the access.
        at: Box<Site>,
        /// The index.
        index: u64,
        /// Number of elements of the array.
        len: u64,
    },
    /// Two items access one element without a barrier in between; at least one writes, and not both
    /// are atomic.
    Race {
        /// Name of the array.
        array: String,
        /// The element.
        index: u64,
        /// The first and the second access.
        accesses: Box<[(Site, Deed); 2]>,
    },
    /// Local or private memory that is read before it is written.
    Unwritten {
        /// Name of the array.
        array: String,
        /// The place of the read.
        at: Site,
        /// The element.
        index: u64,
    },
    /// An item waits at a barrier that another item of its group does not reach.
    Divergence {
        /// The waiting item and its barrier, and the other item with its barrier or the place of
        /// its end.
        items: Box<[Site; 2]>,
        /// Whether the other item ended, waits at another barrier, or is in another round of a
        /// loop.
        ended: bool,
    },
    /// The run exceeded its limit of steps.
    Steps,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The index of an assertion, which front ends name so.
            Self::Outside { array, at, .. } if array.starts_with(ASSERTION) => {
                write!(f, "{}: `{array}` is false, by work-item {}", at.located, at.item)
            }
            Self::Outside { array, at, index, len, .. } => {
                write!(
                    f,
                    "{}: index {index} of `{array}`, which has {len} elements, by work-item {}",
                    at.located, at.item
                )
            }
            Self::Race { array, index, accesses } => {
                let [(one, did), (two, does)] = &**accesses;
                write!(
                    f,
                    "race on element {index} of `{array}`: work-item {} {} it at {}, work-item {} {} it at {}, with no barrier between",
                    one.item,
                    did.verb(),
                    one.located,
                    two.item,
                    does.verb(),
                    two.located
                )
            }
            Self::Unwritten { array, at, index } => write!(
                f,
                "{}: element {index} of `{array}` is read before it is written, by work-item {}",
                at.located, at.item
            ),
            Self::Divergence { items, ended } => {
                let [waits, other] = &**items;
                let (w, o) = (&waits.located, &other.located);
                write!(f, "divergence: work-item {} waits at the barrier {w}, ", waits.item)?;
                if *ended {
                    write!(f, "which work-item {} of its group ended without, at {o}", other.item)
                } else if w == o {
                    write!(
                        f,
                        "work-item {} of its group at the same one in another round of a loop",
                        other.item
                    )
                } else {
                    write!(f, "work-item {} of its group at the barrier {o}", other.item)
                }
            }
            Self::Steps => f.write_str("more steps than were allowed: a loop may not end"),
        }
    }
}

impl core::error::Error for Fault {}
