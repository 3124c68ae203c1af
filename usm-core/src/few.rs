//! A list that usually has at most one element. The first one needs no heap.

use alloc::vec::{self, Vec};
use core::{iter, mem, slice};

/// A list in insertion order.
#[derive(Clone, Debug)]
pub enum Few<T> {
    /// Empty.
    None,
    /// One element, in place.
    One(T),
    /// Any number. A list that grew keeps its capacity.
    Several(Vec<T>),
}

impl<T> Few<T> {
    #[inline]
    /// All elements.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(one) => slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    #[inline]
    /// All elements.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(one) => slice::from_mut(one),
            Self::Several(several) => several,
        }
    }

    #[inline]
    /// Adds an element at the end.
    pub fn push(&mut self, element: T) {
        match self {
            Self::None => *self = Self::One(element),
            _ => self.push_to_heap(element),
        }
    }

    #[inline(never)]
    fn push_to_heap(&mut self, element: T) {
        match self {
            Self::Several(several) => several.push(element),
            _ => *self = Self::Several(self.take().into_iter().chain([element]).collect()),
        }
    }

    /// Removes the elements for which `leave` holds. Drop the result after releasing the list's
    /// lock.
    pub fn take_out(&mut self, leave: impl Fn(&T) -> bool) -> Self {
        match self {
            Self::One(one) if leave(one) => mem::replace(self, Self::None),
            Self::Several(several) => Self::Several(crate::sync::take_out(several, leave)),
            _ => Self::None,
        }
    }

    /// The whole list; it is empty afterwards.
    pub fn take(&mut self) -> Self {
        mem::replace(self, Self::None)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = iter::Chain<core::option::IntoIter<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, several) = match self {
            Self::None => (None, Vec::new()),
            Self::One(one) => (Some(one), Vec::new()),
            Self::Several(several) => (None, several),
        };
        one.into_iter().chain(several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a plain list, through all lengths from none to several and back.
    #[test]
    fn it_is_a_list() {
        let (mut few, mut model, mut random) = (Few::None, Vec::new(), 1_usize);
        for step in 0..20_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            match random >> 33 & 7 {
                0..4 => {
                    few.push(step);
                    model.push(step);
                }
                4..7 => {
                    let leaves = |element: &usize| element % 3 == random >> 40 & 3;
                    let gone = Vec::from_iter(few.take_out(leaves));
                    assert_eq!(gone, crate::sync::take_out(&mut model, leaves));
                }
                _ => assert_eq!(Vec::from_iter(few.take()), mem::take(&mut model)),
            }
            if let Some(last) = few.as_mut_slice().last_mut() {
                *last += 1;
            }
            if let Some(last) = model.last_mut() {
                *last += 1;
            }
            assert_eq!(few.as_slice(), &model[..], "after {step} steps");
        }
    }
}
