//! A number for each dimension, stored in place for the usual few dimensions.

use std::ops::{Deref, DerefMut};

/// Two of these lists and the rest of an array still move in registers.
const INLINE: usize = 3;

/// A list of fixed length with an integer for each dimension. The length is a whole word, so that a
/// move reads the pieces that were written; a byte would cost a stall each time.
#[derive(Clone)]
pub(crate) enum Axes {
    Inline(usize, [isize; INLINE]),
    Heap(Box<[isize]>),
}

impl Axes {
    /// The same value for each of `len` dimensions.
    pub(crate) fn filled(len: usize, value: isize) -> Self {
        std::iter::repeat_n(value, len).collect()
    }
}

impl Deref for Axes {
    type Target = [isize];

    #[inline]
    fn deref(&self) -> &[isize] {
        match self {
            Self::Inline(len, values) => &values[..*len],
            Self::Heap(values) => values,
        }
    }
}

impl DerefMut for Axes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [isize] {
        match self {
            Self::Inline(len, values) => &mut values[..*len],
            Self::Heap(values) => values,
        }
    }
}

impl From<&[isize]> for Axes {
    #[inline]
    fn from(from: &[isize]) -> Self {
        let mut values = [0; INLINE];
        match values.get_mut(..from.len()) {
            Some(head) => {
                head.copy_from_slice(from);
                Self::Inline(from.len(), values)
            }
            None => Self::Heap(from.into()),
        }
    }
}

impl FromIterator<isize> for Axes {
    #[inline]
    fn from_iter<I: IntoIterator<Item = isize>>(iter: I) -> Self {
        let mut iter = iter.into_iter();
        let mut values = [0; INLINE];
        let mut len = 0;
        for value in iter.by_ref() {
            if len == INLINE {
                return Self::Heap(values.into_iter().chain([value]).chain(iter).collect());
            }
            values[len] = value;
            len += 1;
        }
        Self::Inline(len, values)
    }
}

impl<'a> IntoIterator for &'a Axes {
    type Item = &'a isize;
    type IntoIter = std::slice::Iter<'a, isize>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::fmt::Debug for Axes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
