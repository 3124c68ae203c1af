//! The evidence that a format is ambiguous.

/// The evidence that NumPy's format omits padding.
///
/// NumPy omits the trailing padding of the elements of an array of structures, and writes it behind
/// the array or not at all (its issue 7797). It writes all other padding. A member that it marks as
/// aligned (`@`) is aligned in the whole type, but perhaps not in its own structure.
#[derive(Clone, Copy)]
pub(super) struct Doubts {
    /// Number of elements of the shortest array of structures; `None` without one.
    least: Option<u64>,
    /// Bytes of padding behind the first such array, written or implied.
    behind: u64,
    /// Whether unwritten padding lies in an inner structure or in front of one.
    pub(super) is_implied: bool,
}

impl Doubts {
    pub(super) const NONE: Self = Self { least: None, behind: 0, is_implied: false };

    /// Whether there is an array of structures.
    pub(super) const fn has_array(self) -> bool {
        self.least.is_some()
    }

    /// Whether the format is ambiguous: the padding with `missing_bytes` bytes at the end is enough
    /// for a byte in each element of an array, or unwritten padding may not exist.
    pub(super) fn is_ambiguous(self, missing_bytes: u64) -> bool {
        self.is_implied || self.least.is_some_and(|least| self.behind.saturating_add(missing_bytes) >= least)
    }

    pub(super) fn pad(&mut self, bytes: u32) {
        if self.least.is_some() {
            self.behind = self.behind.saturating_add(u64::from(bytes));
        }
    }

    pub(super) fn array(&mut self, elements: u64) {
        if elements > 1 {
            self.least = Some(self.least.map_or(elements, |least| least.min(elements)));
        }
    }
}
