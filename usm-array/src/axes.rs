//! A number for each dimension, stored in place for the usual few dimensions.

use std::ops::{Deref, DerefMut};

/// Two of these lists and the rest of an array still move in registers.
const INLINE: usize = 3;

/// The length of a list in place. A whole word, so that a move reads the pieces that were written;
/// a byte would cost a stall each time. Values that it does not have tell the other form, which
/// then needs no word of its own.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Length {
    Zero,
    One,
    Two,
    Three,
}

/// A list with an integer for each dimension: extents in elements, or strides in bytes.
#[derive(Clone)]
pub struct Axes(Repr);

#[derive(Clone)]
enum Repr {
    Inline(Length, [isize; INLINE]),
    Heap(Box<[isize]>),
}

impl Length {
    /// Of a number up to [`INLINE`].
    #[inline]
    fn of(number: usize) -> Self {
        match number {
            0 => Self::Zero,
            1 => Self::One,
            2 => Self::Two,
            _ => Self::Three,
        }
    }
}

impl Axes {
    /// The same value for each of `len` dimensions.
    #[must_use]
    pub fn filled(len: usize, value: isize) -> Self {
        std::iter::repeat_n(value, len).collect()
    }

    /// The empty list.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::Inline(Length::Zero, [0; INLINE]))
    }

    /// Adds a value for one more dimension.
    #[inline]
    pub fn push(&mut self, value: isize) {
        let len = self.len();
        match &mut self.0 {
            Repr::Inline(length, values) if len < INLINE => {
                values[len] = value;
                *length = Length::of(len + 1);
            }
            _ => self.0 = Repr::Heap(self.iter().copied().chain([value]).collect()),
        }
    }

    /// The strides of elements of `size` bytes that lie in C order without gaps, with these
    /// extents. The product of the extents and the size must fit a word.
    #[must_use]
    pub fn packed_strides(&self, size: usize) -> Self {
        let (mut strides, mut step) = (self.clone(), size as isize);
        for (stride, extent) in strides.iter_mut().zip(self).rev() {
            *stride = step;
            step *= *extent;
        }
        strides
    }

    /// The list without the first dimension, if it has one.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> Self {
        match &self.0 {
            Repr::Inline(length, [_, second, third]) => {
                Self(Repr::Inline(Length::of((*length as usize).saturating_sub(1)), [*second, *third, 0]))
            }
            Repr::Heap(values) => values.get(1..).unwrap_or_default().into(),
        }
    }
}

impl Deref for Axes {
    type Target = [isize];

    #[inline]
    fn deref(&self) -> &[isize] {
        match &self.0 {
            Repr::Inline(length, values) => &values[..*length as usize],
            Repr::Heap(values) => values,
        }
    }
}

impl DerefMut for Axes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [isize] {
        match &mut self.0 {
            Repr::Inline(length, values) => &mut values[..*length as usize],
            Repr::Heap(values) => values,
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
                Self(Repr::Inline(Length::of(from.len()), values))
            }
            None => Self(Repr::Heap(from.into())),
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
                return Self(Repr::Heap(values.into_iter().chain([value]).chain(iter).collect()));
            }
            values[len] = value;
            len += 1;
        }
        Self(Repr::Inline(Length::of(len), values))
    }
}

impl<'a> IntoIterator for &'a Axes {
    type Item = &'a isize;
    type IntoIter = std::slice::Iter<'a, isize>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Default for Axes {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Axes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Axes {}

impl std::fmt::Debug for Axes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
