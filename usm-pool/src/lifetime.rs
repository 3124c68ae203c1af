//! When a buffer is needed: half-open lifetimes in operator-index time, and the plain record that
//! planners and checkers share.

/// Half-open lifetime `[lower, upper)` in operator-index time. `lower == upper` is a life of no
/// length: it overlaps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs)]
pub struct Lifetime {
    /// First instant of the life.
    pub lower: u64,
    /// First instant after the life.
    pub upper: u64,
}

impl Lifetime {
    /// The lifetime `[lower, upper)`.
    #[must_use]
    pub const fn new(lower: u64, upper: u64) -> Self {
        Self { lower, upper }
    }

    /// Whether the life has no instant (also true of the malformed `lower > upper`).
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.lower >= self.upper
    }

    /// Number of instants.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.upper.saturating_sub(self.lower)
    }

    /// Whether both are live at some instant.
    ///
    /// The emptiness test matters: for `[5,5)` inside `[0,10)` the usual two comparisons alone
    /// would say yes.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.lower < other.upper && other.lower < self.upper && !self.is_empty() && !other.is_empty()
    }

    /// The smallest lifetime that contains both; an empty one adds nothing.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            other
        } else if other.is_empty() {
            self
        } else {
            Self::new(self.lower.min(other.lower), self.upper.max(other.upper))
        }
    }
}

/// One buffer to place. Plain data, so that tables of them can be constants of a program without a
/// heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct Buffer {
    /// The caller's name for the buffer; unique within a problem.
    pub id: u64,
    /// First instant of the half-open life.
    pub lower: u64,
    /// First instant after the life.
    pub upper: u64,
    /// Size in bytes.
    pub size: u64,
    /// Alignment of the offset in bytes, a power of two.
    pub alignment: u64,
}

impl Buffer {
    /// A buffer with alignment 1.
    #[must_use]
    pub const fn new(id: u64, lower: u64, upper: u64, size: u64) -> Self {
        Self { id, lower, upper, size, alignment: 1 }
    }

    /// The same buffer with another alignment in bytes.
    #[must_use]
    pub const fn aligned(mut self, alignment: u64) -> Self {
        self.alignment = alignment;
        self
    }

    /// The half-open life.
    #[must_use]
    pub const fn lifetime(&self) -> Lifetime {
        Lifetime::new(self.lower, self.upper)
    }

    /// Whether the buffer occupies memory at some instant: a size and a life that are both not
    /// empty.
    #[must_use]
    pub const fn occupies(&self) -> bool {
        self.size > 0 && !self.lifetime().is_empty()
    }
}

/// `value` rounded up to a multiple of `alignment` (a power of two), or `None` on overflow.
#[must_use]
pub const fn align_up(value: u64, alignment: u64) -> Option<u64> {
    debug_assert!(alignment.is_power_of_two());
    let mask = alignment - 1;
    match value.checked_add(mask) {
        Some(sum) => Some(sum & !mask),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_life_overlaps_nothing_even_inside_another() {
        let long = Lifetime::new(0, 10);
        assert!(!Lifetime::new(5, 5).overlaps(long));
        assert!(!long.overlaps(Lifetime::new(5, 5)));
        assert!(long.overlaps(Lifetime::new(9, 11)));
        assert!(!long.overlaps(Lifetime::new(10, 11)));
    }

    #[test]
    fn rounding_up_reports_overflow() {
        assert_eq!(align_up(65, 64), Some(128));
        assert_eq!(align_up(128, 64), Some(128));
        assert_eq!(align_up(u64::MAX, 64), None);
        assert_eq!(align_up(u64::MAX, 1), Some(u64::MAX));
    }
}
