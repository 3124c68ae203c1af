//! Up to `N` integers in place: shapes and strides.

use core::fmt;
use core::hash::{Hash, Hasher};

/// A list of at most `N` integers, without allocation.
#[derive(Clone, Copy)]
pub struct Dims<const N: usize> {
    values: [i64; N],
    len: usize,
}

impl<const N: usize> Dims<N> {
    /// An empty list.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { values: [0; N], len: 0 }
    }

    /// A list with these values; `None` when there are more than `N`.
    #[must_use]
    pub fn from_slice(values: &[i64]) -> Option<Self> {
        let mut dims = Self::new();
        dims.values.get_mut(..values.len())?.copy_from_slice(values);
        dims.len = values.len();
        Some(dims)
    }

    /// Appends a value; `None` when there are `N` already.
    #[must_use]
    #[inline]
    pub fn push(&mut self, value: i64) -> Option<()> {
        *self.values.get_mut(self.len)? = value;
        self.len = self.len.wrapping_add(1);
        Some(())
    }

    /// The values.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[i64] {
        self.values.get(..self.len).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [i64] {
        self.values.get_mut(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> Default for Dims<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> PartialEq for Dims<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<const N: usize> Eq for Dims<N> {}

impl<const N: usize> Hash for Dims<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<const N: usize> fmt::Debug for Dims<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
