//! What is known of a launch before it runs.

use core::fmt;

/// The proof of a launch: two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// Whether indices are inside of their arrays.
    pub bounds: Bounds,
    /// Whether the order of work-items matters.
    pub order: ItemOrder,
}

/// Whether the indices of a launch are inside of their arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bounds {
    /// Nobody knows: the body is written by hand and checks its own indices.
    None,
    /// Every index is inside, which follows from range, lengths and values: unchecked code runs.
    Proven,
    /// Every index is inside: all indices of this launch were computed. Unchecked code runs.
    Inspected,
    /// An index may be outside: checked code runs.
    Checked {
        /// The first index without a proof: `file:line:column`.
        index: &'static str,
        /// The condition that this launch violates, in the words of the source.
        why: &'static str,
    },
}

/// Whether the order of a launch's work-items matters: whether two of them access one element
/// between two barriers, unless both read or both are atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemOrder {
    /// Nobody knows: the body is written by hand, and safe Rust orders its accesses.
    None,
    /// No two work-items do: it follows from range, lengths and values.
    Proven,
    /// No two work-items do: all indices of this launch were computed and compared. The result is
    /// kept, so a launch of the same range, lengths and values takes no time for it.
    Inspected,
    /// Two work-items may, and nobody can tell, because indices or conditions follow from memory.
    /// The launch runs *unordered*: each access of a number is a whole one, so a read gives what
    /// some item wrote or what was there before, but nothing says which; a structure or complex
    /// number is accessed field by field. `a[i] += 1` may lose additions. A launch that [needs a
    /// proof](crate::Launch::require_proof) is refused. Without the feature `alloc` nothing can
    /// find this out, so such a launch is [undecided](Self::Undecided) and refused.
    Unordered {
        /// The array.
        array: &'static str,
        /// Place of the write: `file:line:column`.
        write: &'static str,
        /// Place of the other read or write.
        other: &'static str,
    },
    /// Two work-items may, and an inspection cannot tell. Such a launch is refused.
    Undecided {
        /// The array.
        array: &'static str,
        /// Place of the write: `file:line:column`.
        write: &'static str,
        /// Place of the other read or write.
        other: &'static str,
        /// The condition under which none do, in the words of the source.
        why: &'static str,
    },
    /// Two work-items do. Such a launch is refused.
    Race(ShownRace),
}

/// Two work-items that access one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShownRace {
    /// The array.
    pub array: &'static str,
    /// The element.
    pub element: u64,
    /// The file of both places.
    pub file: &'static str,
    /// The two accesses.
    pub sides: [RaceSide; 2],
}

/// The access of a work-item to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RaceSide {
    /// The work-item's global ids, 0 beyond the kernel's dimensions.
    pub item: [u32; 3],
    /// Dimensions of the kernel.
    pub dimensions: u8,
    /// What it does.
    pub deed: RaceDeed,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// What a work-item does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RaceDeed {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Changes or reads it atomically.
    Atomic,
}

impl Proof {
    /// Nothing is known.
    pub const NONE: Self = Self { bounds: Bounds::None, order: ItemOrder::None };
    /// Indices are inside, and the order does not matter, whatever the arrays contain.
    pub const PROVEN: Self = Self { bounds: Bounds::Proven, order: ItemOrder::Proven };

    /// An index may be outside.
    #[must_use]
    pub const fn checked(index: &'static str, why: &'static str) -> Self {
        Self { bounds: Bounds::Checked { index, why }, order: ItemOrder::Proven }
    }

    /// Two work-items may access one element. Nothing is said of indices.
    #[must_use]
    pub const fn undecided(
        array: &'static str,
        write: &'static str,
        other: &'static str,
        why: &'static str,
    ) -> Self {
        Self { bounds: Bounds::None, order: ItemOrder::Undecided { array, write, other, why } }
    }

    /// Whether unchecked code runs, and groups may run at once.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        matches!(self.bounds, Bounds::Proven | Bounds::Inspected)
            && matches!(self.order, ItemOrder::Proven | ItemOrder::Inspected)
    }
}

impl fmt::Display for ShownRace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} of `{}`: ", self.element, self.array)?;
        for side in &self.sides {
            let ids = side.item.get(..usize::from(side.dimensions)).unwrap_or(&side.item);
            let verb = match side.deed {
                RaceDeed::Read => "reads",
                RaceDeed::Write => "writes",
                RaceDeed::Atomic => "atomically changes",
            };
            write!(f, "work-item {ids:?} {verb} it at {}:{}:{}, ", self.file, side.line, side.column)?;
        }
        f.write_str("with no barrier between")
    }
}
