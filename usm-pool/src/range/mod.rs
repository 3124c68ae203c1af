//! One plan for every value of some dimensions.
//!
//! Where sizes are [`expression`]s, a plan states which tensor lies below which: each begins at the
//! aligned highest end of those below it. If that orders every two tensors that are live together,
//! no sizes can make them overlap, so the plan is correct for all values. [`RangeTable::at`]
//! evaluates one value without a search and without a heap; [`prove`] checks the order.

pub mod expression;
#[cfg(feature = "alloc")]
mod order;

use core::fmt;

pub use expression::{Fault, Term, evaluate};
#[cfg(feature = "alloc")]
pub use order::{Unordered, below, prove};

/// The values of a dimension: from `low` to `high`, both included, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Dimension {
    /// The least value.
    pub low: u64,
    /// The greatest value is at most this.
    pub high: u64,
    /// The difference between two consecutive values; never 0.
    pub step: u64,
}

impl Dimension {
    /// Whether this is a value of the dimension.
    #[must_use]
    pub const fn contains(self, value: u64) -> bool {
        self.step > 0 && self.low <= value && value <= self.high && (value - self.low) % self.step == 0
    }
}

impl Dimension {
    /// The greatest value.
    #[must_use]
    pub const fn greatest(self) -> u64 {
        match (self.high.saturating_sub(self.low)).checked_div(self.step) {
            Some(steps) => self.low + steps * self.step,
            None => self.low,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}:{}", self.low, self.high, self.step)
    }
}

/// One tensor of a plan for every value. Tables of them can be constants of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Item<'a> {
    /// Size in bytes.
    pub size: &'a [Term],
    /// Alignment of the offset in bytes, a power of two. A root's alignment holds for all tensors
    /// in its block.
    pub alignment: u64,
    /// Index of the tensor whose block contains it; its own index for a root.
    pub root: u32,
    /// Offset in that block in bytes; empty for 0.
    pub inside: &'a [Term],
}

/// A plan for every value of some dimensions.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs)]
pub struct RangeTable<'a> {
    /// The dimensions and their values.
    pub dimensions: &'a [Dimension],
    /// The tensors with an offset.
    pub items: &'a [Item<'a>],
    /// The plans; the one with the lowest peak counts, the first of equals. Each is a list of roots
    /// by index (below, above). A pair follows all pairs that have its first root above.
    pub plans: &'a [&'a [(u32, u32)]],
}

/// The result of a plan for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct At {
    /// Index of the plan with the lowest peak.
    pub plan: usize,
    /// Highest end in bytes.
    pub peak: u64,
}

impl At {
    /// A plan by its index, and its highest end in bytes.
    #[must_use]
    pub const fn new(plan: usize, peak: u64) -> Self {
        Self { plan, peak }
    }
}

/// Why a plan has no offsets for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// Another number of values than dimensions.
    Values {
        /// Values given.
        given: usize,
        /// Dimensions.
        dimensions: usize,
    },
    /// A number that is no value of its dimension.
    Value {
        /// Index of the dimension.
        index: usize,
        /// The given number.
        value: u64,
        /// The dimension.
        dimension: Dimension,
    },
    /// A slice shorter than the number of tensors.
    Room {
        /// Its length.
        given: usize,
        /// Tensors.
        items: usize,
    },
    /// A size or an offset without a value.
    Expression {
        /// Index of the tensor.
        item: usize,
        /// The reason.
        fault: Fault,
    },
    /// A tensor that ends beyond its block, or beyond 64 bits.
    Outside {
        /// Index of the tensor.
        item: usize,
        /// Its offset in the block, or in the arena, in bytes.
        offset: u64,
        /// Its size in bytes.
        size: u64,
        /// Bytes of the block, or the largest possible number.
        room: u64,
    },
    /// An offset that is no multiple of the alignment.
    Misaligned {
        /// Index of the tensor.
        item: usize,
        /// Its offset in bytes.
        offset: u64,
        /// Its alignment in bytes.
        alignment: u64,
    },
    /// Contradictory tables: an index out of range, a pair too early or in a cycle, no plan.
    Malformed,
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Values { given, dimensions } => write!(f, "{given} values for {dimensions} dimensions"),
            Self::Value { index, value, dimension } => {
                write!(f, "dimension {index}: {value} is none of {dimension}")
            }
            Self::Room { given, items } => write!(f, "room for {given} of {items} tensors"),
            Self::Expression { item, fault } => write!(f, "tensor {item}: {fault}"),
            Self::Outside { item, offset, size, room } => {
                write!(f, "tensor {item}: offset {offset} + size {size} exceeds {room}")
            }
            Self::Misaligned { item, offset, alignment } => {
                write!(f, "tensor {item}: offset {offset} is no multiple of its alignment {alignment}")
            }
            Self::Malformed => write!(f, "the tables of the plan contradict themselves"),
        }
    }
}

impl core::error::Error for RangeError {}

impl RangeTable<'_> {
    /// Writes the offset in bytes of every tensor for some values, and its size beside it. Both
    /// slices have room for all tensors. Needs no search and no heap.
    ///
    /// # Errors
    /// A [`RangeError`]; the slices' content is then unspecified.
    pub fn at(&self, values: &[u64], offsets: &mut [u64], sizes: &mut [u64]) -> Result<At, RangeError> {
        let Self { dimensions, items, plans } = *self;
        at(dimensions, items.len(), |item| items[item], plans, values, offsets, sizes)
    }

    /// Whether these are values of the dimensions.
    ///
    /// # Errors
    /// [`RangeError::Values`], [`RangeError::Value`].
    pub fn fits(&self, values: &[u64]) -> Result<(), RangeError> {
        fits(self.dimensions, values)
    }
}

/// Whether these are values of the dimensions.
///
/// # Errors
/// [`RangeError::Values`], [`RangeError::Value`].
pub fn fits(dimensions: &[Dimension], values: &[u64]) -> Result<(), RangeError> {
    if values.len() != dimensions.len() {
        return Err(RangeError::Values { given: values.len(), dimensions: dimensions.len() });
    }
    match values.iter().zip(dimensions).enumerate().find(|(_, (value, of))| !of.contains(**value)) {
        Some((index, (&value, &dimension))) => Err(RangeError::Value { index, value, dimension }),
        None => Ok(()),
    }
}

/// As [`RangeTable::at`], for tensors in a table of another form: `item` is called with the indices
/// below `count`.
///
/// # Errors
/// A [`RangeError`]; the slices' content is then unspecified.
pub fn at<'a>(
    dimensions: &[Dimension],
    count: usize,
    item: impl Fn(usize) -> Item<'a>,
    plans: &[&[(u32, u32)]],
    values: &[u64],
    offsets: &mut [u64],
    sizes: &mut [u64],
) -> Result<At, RangeError> {
    let short = offsets.len().min(sizes.len());
    let (Some(offsets), Some(sizes)) = (offsets.get_mut(..count), sizes.get_mut(..count)) else {
        return Err(RangeError::Room { given: short, items: count });
    };
    fits(dimensions, values)?;
    for (index, size) in sizes.iter_mut().enumerate() {
        let Item { size: terms, alignment, .. } = item(index);
        *size = evaluate(terms, values).map_err(|fault| RangeError::Expression { item: index, fault })?;
        if !alignment.is_power_of_two() {
            return Err(RangeError::Misaligned { item: index, offset: 0, alignment });
        }
    }
    let mut best: Option<At> = None;
    for (plan, pairs) in plans.iter().enumerate() {
        let peak = stack(&item, pairs, offsets, sizes)?;
        if best.is_none_or(|best| peak < best.peak) {
            best = Some(At { plan, peak });
        }
    }
    let best = best.ok_or(RangeError::Malformed)?;
    if best.plan + 1 != plans.len() {
        stack(&item, plans[best.plan], offsets, sizes)?;
    }
    place(&item, values, offsets, sizes)?;
    Ok(best)
}

/// Offsets of the roots by one plan. Returns the peak.
fn stack<'a>(
    item: &impl Fn(usize) -> Item<'a>,
    pairs: &[(u32, u32)],
    offsets: &mut [u64],
    sizes: &[u64],
) -> Result<u64, RangeError> {
    offsets.fill(0);
    // Of a root with all below it done: its begin and its end.
    let ends = |offsets: &[u64], index: usize| {
        let size = sizes[index];
        let outside = RangeError::Outside { item: index, offset: offsets[index], size, room: u64::MAX };
        let begin = crate::lifetime::align_up(offsets[index], item(index).alignment).ok_or(outside)?;
        Ok((begin, begin.checked_add(size).ok_or(outside)?))
    };
    // Consecutive pairs often have the same root below.
    let mut last = (u32::MAX, 0);
    for &(below, above) in pairs {
        if below.max(above) as usize >= offsets.len() {
            return Err(RangeError::Malformed);
        }
        if last.0 != below {
            last = (below, ends(offsets, below as usize)?.1);
        }
        let begin = &mut offsets[above as usize];
        *begin = last.1.max(*begin);
    }
    let mut peak = 0;
    for index in 0..offsets.len() {
        if item(index).root as usize == index {
            let (begin, end) = ends(offsets, index)?;
            offsets[index] = begin;
            peak = peak.max(end);
        }
    }
    // A pair that came too early had no effect.
    let holds = |&(below, above): &(u32, u32)| {
        offsets[above as usize] >= offsets[below as usize].saturating_add(sizes[below as usize])
    };
    if pairs.iter().all(holds) { Ok(peak) } else { Err(RangeError::Malformed) }
}

/// Offsets of the tensors in a root's block.
fn place<'a>(
    item: &impl Fn(usize) -> Item<'a>,
    values: &[u64],
    offsets: &mut [u64],
    sizes: &[u64],
) -> Result<(), RangeError> {
    for index in 0..offsets.len() {
        let of = item(index);
        let root = of.root as usize;
        if root == index {
            continue;
        }
        if root >= offsets.len() || item(root).root != of.root {
            return Err(RangeError::Malformed);
        }
        let inside = match of.inside {
            [] => 0,
            terms => {
                evaluate(terms, values).map_err(|fault| RangeError::Expression { item: index, fault })?
            }
        };
        let (size, room) = (sizes[index], sizes[root]);
        if inside.checked_add(size).is_none_or(|end| end > room) {
            return Err(RangeError::Outside { item: index, offset: inside, size, room });
        }
        // The root's end was found to be below 2^64.
        let offset = offsets[root].saturating_add(inside);
        if offset % of.alignment != 0 {
            return Err(RangeError::Misaligned { item: index, offset, alignment: of.alignment });
        }
        offsets[index] = offset;
    }
    Ok(())
}
