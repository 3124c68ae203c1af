//! What is wrong with a launch, in words.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::kernel::Place;

/// A work-item: its global ids, one for each dimension of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    pub(super) ids: [u64; 3],
    pub(super) dimensions: u8,
}

impl WorkItem {
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

/// What an item does with an element.
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
    /// As a sentence says it: `reads`, `writes`, `atomically changes`.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Atomic => "atomically changes",
        }
    }
}

/// Where an item does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The item.
    pub item: WorkItem,
    /// Where in the source.
    pub place: Place,
    /// The same as `file:line:column`.
    pub located: Box<str>,
}

/// What is wrong with a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An index that is not inside its array.
    Outside {
        /// Name of the array.
        array: String,
        /// Where it is indexed.
        at: Site,
        /// The index.
        index: u64,
        /// Elements of the array.
        len: u64,
    },
    /// Two work-items touch one element with no barrier between, one of them writes, and not both
    /// atomically.
    Race {
        /// Name of the array.
        array: String,
        /// The element.
        index: u64,
        /// The first access and the second one.
        accesses: Box<[(Site, Deed); 2]>,
    },
    /// Local or private memory that is read before it is written.
    Unwritten {
        /// Name of the array.
        array: String,
        /// Where it is read.
        at: Site,
        /// The element.
        index: u64,
    },
    /// An item waits at a barrier that another item of its group does not reach.
    Divergence {
        /// Who waits at which barrier, and who does not come: the barrier at which that one waits,
        /// or where it ended.
        items: Box<[Site; 2]>,
        /// Whether the other one ended, or waits at another barrier or in another round of a loop.
        ended: bool,
    },
    /// More steps than were allowed.
    Steps,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { array, at, index, len } => {
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
