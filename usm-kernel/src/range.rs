//! Index spaces: ranges, nd-ranges, and the position of a work-item in them.
//!
//! Dimensions are numbered from 0, and the last one is the fastest (SYCL's row-major order; CUDA's
//! `x` corresponds to the last dimension). Ids have 64 bits on every target.

use core::fmt;

/// The number of work-items in each of `D` (1 to 3) dimensions. A size may be zero; nothing runs
/// then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range<const D: usize> {
    sizes: [u64; D],
    items: u64,
}

/// A position in a [`Range`]: one number for each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id<const D: usize>([u64; D]);

/// A global range cut into work-groups of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NdRange<const D: usize> {
    global: Range<D>,
    local: Range<D>,
    groups: Range<D>,
}

/// Why a range is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The number of work-items exceeds 64 bits, or the address space of the target that runs them.
    TooLarge {
        /// The sizes; missing dimensions are 1.
        sizes: [u64; 3],
    },
    /// A work-group of no items.
    EmptyGroup {
        /// The dimension whose local size is 0.
        dimension: usize,
    },
    /// A global size that is not a multiple of the local size.
    NotDivisible {
        /// The dimension.
        dimension: usize,
        /// Global size.
        global: u64,
        /// Local size.
        local: u64,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLarge { sizes: [a, b, c] } => {
                write!(f, "a range of {a} x {b} x {c} work-items cannot be counted on this machine")
            }
            Self::EmptyGroup { dimension } => write!(f, "the local size in dimension {dimension} is 0"),
            Self::NotDivisible { dimension, global, local } => write!(
                f,
                "the global size {global} is not a multiple of the local size {local} in dimension {dimension}"
            ),
        }
    }
}

impl core::error::Error for RangeError {}

/// Maximum number of work-items that a loop of this target can count.
const COUNTABLE: u64 = isize::MAX as u64;

impl<const D: usize> Range<D> {
    /// A range of these sizes.
    ///
    /// # Errors
    /// [`RangeError::TooLarge`].
    pub fn new(sizes: [u64; D]) -> Result<Self, RangeError> {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        let items = if sizes.contains(&0) {
            Some(0)
        } else {
            sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
        };
        match items {
            Some(items) if items <= COUNTABLE => Ok(Self { sizes, items }),
            _ => {
                Err(RangeError::TooLarge { sizes: core::array::from_fn(|d| sizes.get(d).map_or(1, |s| *s)) })
            }
        }
    }

    /// The size of each dimension.
    #[must_use]
    pub const fn sizes(&self) -> [u64; D] {
        self.sizes
    }

    /// The number of work-items: the product of the sizes.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The position of the item number `linear`. Numbers past the end wrap around.
    #[inline]
    #[must_use]
    pub fn id(&self, linear: u64) -> Id<D> {
        let mut rest = linear;
        let mut id = [0; D];
        for dimension in (1..D).rev() {
            let size = self.sizes[dimension].max(1);
            id[dimension] = rest % size;
            rest /= size;
        }
        id[0] = rest;
        Id(id)
    }
}

impl<const D: usize> Id<D> {
    /// The position with these numbers.
    #[must_use]
    pub const fn new(numbers: [u64; D]) -> Self {
        Self(numbers)
    }

    /// The number in each dimension.
    #[must_use]
    pub const fn numbers(self) -> [u64; D] {
        self.0
    }

    /// The number in each dimension, as array indices. Ids of a launch always fit.
    #[inline]
    #[must_use]
    pub fn indices(self) -> [usize; D] {
        self.0.map(|number| number as usize)
    }

    /// The position in row-major order, the last dimension fastest:
    /// `id0 * r1 * r2 + id1 * r2 + id2`.
    #[inline]
    #[must_use]
    pub fn linear(self, range: &Range<D>) -> u64 {
        let places = self.0.iter().zip(range.sizes);
        places.fold(0, |sum, (number, size)| sum.wrapping_mul(size).wrapping_add(*number))
    }
}

impl<const D: usize> NdRange<D> {
    /// `global` work-items in groups of `local`.
    ///
    /// ```
    /// use usm_kernel::{NdRange, RangeError};
    ///
    /// assert_eq!(NdRange::new([1_000], [10])?.groups().items(), 100);
    /// assert_eq!(
    ///     NdRange::new([1_000], [300]),
    ///     Err(RangeError::NotDivisible { dimension: 0, global: 1_000, local: 300 })
    /// );
    /// # Ok::<(), RangeError>(())
    /// ```
    ///
    /// # Errors
    /// [`RangeError::EmptyGroup`], [`RangeError::NotDivisible`], [`RangeError::TooLarge`].
    pub fn new(global: [u64; D], local: [u64; D]) -> Result<Self, RangeError> {
        for dimension in 0..D {
            let (global, local) = (global[dimension], local[dimension]);
            if local == 0 {
                return Err(RangeError::EmptyGroup { dimension });
            }
            if global % local != 0 {
                return Err(RangeError::NotDivisible { dimension, global, local });
            }
        }
        let groups = Range::new(core::array::from_fn(|d| global[d] / local[d]))?;
        Ok(Self { global: Range::new(global)?, local: Range::new(local)?, groups })
    }

    /// The smallest nd-range with groups of `local` items and at least `items` in each dimension.
    /// The kernel must skip the items past the end.
    ///
    /// # Errors
    /// As [`new`](Self::new), except that nothing needs to divide.
    pub fn covering(items: [u64; D], local: [u64; D]) -> Result<Self, RangeError> {
        let mut global = items;
        for (dimension, size) in global.iter_mut().enumerate() {
            let local = local[dimension];
            if local == 0 {
                return Err(RangeError::EmptyGroup { dimension });
            }
            let sizes = core::array::from_fn(|d| items.get(d).map_or(1, |s| *s));
            *size = size.checked_next_multiple_of(local).ok_or(RangeError::TooLarge { sizes })?;
        }
        Self::new(global, local)
    }

    /// All of `range` as one group.
    pub(crate) fn one_group(range: Range<D>) -> Self {
        let local = Range { sizes: range.sizes.map(|size| size.max(1)), items: range.items.max(1) };
        // An empty dimension has no groups; all others have one.
        let groups = Range { sizes: range.sizes.map(|size| size.min(1)), items: range.items.min(1) };
        Self { global: range, local, groups }
    }

    /// The part of the range that has `count` positions in `dimension`, as one group of the whole
    /// range. The group's id is its first position.
    #[cfg(feature = "threads")]
    pub(crate) fn part(range: Range<D>, dimension: usize, count: u64) -> Self {
        let whole = Self::one_group(range);
        let mut local = whole.local;
        local.items = local.items / local.sizes[dimension] * count;
        local.sizes[dimension] = count;
        Self { local, ..whole }
    }

    /// All work-items.
    #[must_use]
    pub const fn global(&self) -> &Range<D> {
        &self.global
    }

    /// The work-items of one group.
    #[must_use]
    pub const fn local(&self) -> &Range<D> {
        &self.local
    }

    /// The groups.
    #[must_use]
    pub const fn groups(&self) -> &Range<D> {
        &self.groups
    }
}

/// One work-item of a group.
#[derive(Clone, Copy, Debug)]
pub struct Item<'g, const D: usize> {
    range: &'g NdRange<D>,
    group: &'g Id<D>,
    local: usize,
}

impl<'g, const D: usize> Item<'g, D> {
    #[inline]
    pub(crate) fn new(range: &'g NdRange<D>, group: &'g Id<D>, local: usize) -> Self {
        Self { range, group, local }
    }

    /// Linear position inside the group: the index into local memory and into
    /// [`Group::block`](crate::Group::block).
    #[inline]
    #[must_use]
    pub fn local(&self) -> usize {
        self.local
    }

    /// Linear position in the global range: the index into an array with one element a work-item.
    #[inline]
    #[must_use]
    pub fn global(&self) -> usize {
        if D == 1 {
            // One dimension needs no division, which would be measurable there.
            self.group.0[0] as usize * self.range.local.items as usize + self.local
        } else {
            self.global_id().linear(&self.range.global) as usize
        }
    }

    /// Position inside the group.
    #[inline]
    #[must_use]
    pub fn local_id(&self) -> Id<D> {
        self.range.local.id(self.local as u64)
    }

    /// Position in the global range: `group * local range + local id`.
    #[inline]
    #[must_use]
    pub fn global_id(&self) -> Id<D> {
        let local = self.local_id();
        Id(core::array::from_fn(|d| self.group.0[d] * self.range.local.sizes[d] + local.0[d]))
    }
}
