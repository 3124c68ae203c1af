//! Best fit: every buffer takes the smallest gap it fits in.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::greedy::{in_order, sorted};
use super::offset_list::Fit;

/// The better of best fit in descending size and best fit in order of begin (descending size at equal begins).
pub(crate) fn best_fit(instance: Instance<'_>) -> Vec<u64> {
    let by_size = sorted(instance, |b| (Reverse(b.size), Reverse(b.lifetime().len()), b.lower));
    let by_begin = sorted(instance, |b| (b.lower, Reverse(b.size), b.upper));
    let first = in_order(instance, &by_size, Fit::Best);
    let second = in_order(instance, &by_begin, Fit::Best);
    if instance.peak(&second) < instance.peak(&first) { second } else { first }
}
