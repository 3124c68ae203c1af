//! Sorting by a key.
//!
//! The code of a stable sort has some kilobytes. Here it exists once for each type of element, not
//! once for each key.

use core::cmp::Ordering;

/// Sorts by a key; equal elements keep their order.
pub(crate) fn by_key<T: Copy, K: Ord>(list: &mut [T], key: impl Fn(T) -> K) {
    by(list, &|&one, &other| key(one).cmp(&key(other)));
}

#[inline(never)]
fn by<T>(list: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    list.sort_by(compare);
}
