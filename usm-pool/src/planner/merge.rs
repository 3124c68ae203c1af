//! Joins buffers that fit together exactly, for instances of any size.
//!
//! Two buffers of one life are one buffer of both sizes. Two buffers of one size whose lives follow
//! each other are one buffer that lives as long as both. What is joined joins again: memory that
//! was divided by cuts from edge to edge becomes whole again, from the last cut to the first.
//! Layers of equal shape join as well. A plan of the joined buffers is a plan of all, but not
//! always the best.
//!
//! Lives and sizes may also be equal by chance. So the first to be joined are those whose result
//! fits exactly once more.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::Instance;
use super::begins::Begins;
use crate::Buffer;
use crate::lifetime::align_up;
use crate::sort;

/// Buffers that were joined.
#[derive(Debug)]
pub(super) struct Merge {
    /// Number of buffers of the instance.
    count: usize,
    /// What is left to place, in order of begin and size. The id is an index: first those of the
    /// instance, then what was joined.
    whole: Vec<Buffer>,
    begins: Begins<u64>,
    /// The two parts of each joined buffer, and the offset of the second in bytes.
    parts: Vec<(u64, u64, u64)>,
    is_part: Vec<bool>,
}

/// Buffers of one size that follow each other.
#[derive(Clone, Copy, Debug)]
struct Row {
    upper: u64,
    /// Position of the last buffer.
    last: usize,
    /// The row of the others.
    before: Option<usize>,
}

/// All buffers of one life.
#[derive(Clone, Debug)]
struct Stack {
    lower: u64,
    upper: u64,
    size: u64,
    /// Range in the list of positions.
    members: Range<usize>,
    /// Whether it fits on, as one buffer.
    fits: bool,
}

/// The first round must join one buffer in this many. Otherwise what fits does so by chance.
const SHARE: usize = 16;

/// Maximum number of rows that begin with one buffer.
const ROWS: usize = 16;

impl Merge {
    /// `None` if more than half of the buffers would be left, and for conflict graphs. No stop ends
    /// it: a first plan is made in any case.
    pub(super) fn new(instance: Instance<'_>) -> Option<Self> {
        if instance.conflicts.is_some() {
            return None;
        }
        let count = instance.buffers.len();
        let occupants = (0..count).filter(|&i| instance.occupies(i));
        let whole = occupants.map(|i| Buffer { id: i as u64, ..instance.buffers[i] }).collect();
        let (begins, parts, is_part) = (Begins::new(Vec::new()), Vec::new(), vec![false; count]);
        let mut merge = Self { count, whole, begins, parts, is_part };
        merge.sort();
        let steps: [fn(&mut Self); 4] =
            [Self::join_rows, |all| all.join_stacks(true), |all| all.join_stacks(false), Self::join_pairs];
        loop {
            let before = merge.whole.len();
            let is_first = merge.parts.is_empty();
            for (at, step) in steps.into_iter().enumerate() {
                if at > 1 && (is_first || merge.whole.len() < before) {
                    break;
                }
                step(&mut merge);
            }
            let after = merge.whole.len();
            if is_first && before - after < count / SHARE {
                return None;
            }
            if after == before {
                break;
            }
        }
        (merge.whole.len() <= count / 2).then_some(merge)
    }

    /// The buffers that are left to place.
    pub(super) fn buffers(&self) -> &[Buffer] {
        &self.whole
    }

    /// The offset of each buffer of the instance, from those of [`Self::buffers`].
    pub(super) fn expand(&self, placements: &[u64]) -> Vec<u64> {
        let mut offsets = vec![0; self.is_part.len()];
        for (buffer, &offset) in self.whole.iter().zip(placements) {
            offsets[buffer.id as usize] = offset;
        }
        // A part is older than what was joined from it.
        for (number, &(one, other, shift)) in self.parts.iter().enumerate().rev() {
            let offset = offsets[self.count + number];
            offsets[one as usize] = offset;
            offsets[other as usize] = offset.saturating_add(shift);
        }
        offsets.truncate(self.count);
        offsets
    }

    fn sort(&mut self) {
        sort::by_key(&mut self.whole, |buffer| (buffer.lower, buffer.size));
        self.begins = Begins::new(self.whole.iter().map(|buffer| buffer.lower).collect());
    }

    /// Positions of the buffers of one begin and size.
    fn find(&self, lower: u64, size: u64) -> Range<usize> {
        equal(&self.whole, &self.begins, |buffer| (buffer.lower, buffer.size), (lower, size))
    }

    /// Positions of the buffers that begin with the one at `first`.
    fn same_begin(&self, first: usize) -> Range<usize> {
        let lower = self.whole[first].lower;
        let count = self.whole[first..].iter().take_while(|buffer| buffer.lower == lower).count();
        first..first + count
    }

    /// Joins rows that have the life of another buffer, or of another row.
    fn join_rows(&mut self) {
        let (mut rows, mut order, mut new_buffers) = (Vec::<Row>::new(), Vec::<usize>::new(), Vec::new());
        let mut next = 0;
        while next < self.whole.len() {
            let group = self.same_begin(next);
            next = group.end;
            rows.clear();
            for first in group.clone() {
                let from = rows.len();
                rows.push(Row { upper: self.whole[first].upper, last: first, before: None });
                let mut at = from;
                while at < rows.len() && rows.len() < from + ROWS {
                    for last in self.find(rows[at].upper, self.whole[first].size) {
                        rows.push(Row { upper: self.whole[last].upper, last, before: Some(at) });
                    }
                    at += 1;
                }
            }
            order.clear();
            order.extend((0..rows.len()).filter(|&row| rows[row].before.is_some()));
            sort::by_key(&mut order, |row| rows[row].upper);
            for same in order.chunk_by(|&a, &b| rows[a].upper == rows[b].upper) {
                let upper = rows[same[0]].upper;
                if same.len() > 1 || self.whole[group.clone()].iter().any(|buffer| buffer.upper == upper) {
                    new_buffers.extend(same.iter().filter_map(|&row| self.join_row(&rows, row)));
                }
            }
        }
        self.replace_parts(new_buffers);
    }

    /// Joins a row, if no buffer of it is part of another one.
    fn join_row(&mut self, rows: &[Row], last: usize) -> Option<Buffer> {
        let predecessors = || core::iter::successors(Some(last), |&row| rows[row].before);
        let is_part = |row: usize| self.is_part[self.whole[rows[row].last].id as usize];
        if predecessors().any(is_part) {
            return None;
        }
        let row = predecessors().map(|row| self.whole[rows[row].last]);
        let row: Vec<Buffer> = row.collect();
        row.into_iter().reduce(|next, before| self.follow(before, next))
    }

    /// Joins all buffers of one life. With `proof` only if a buffer of their whole size, or another
    /// such stack, precedes or follows.
    fn join_stacks(&mut self, proof: bool) {
        let (mut stacks, mut members) = (Vec::<Stack>::new(), Vec::<usize>::new());
        let mut next = 0;
        while next < self.whole.len() {
            let group = self.same_begin(next);
            next = group.end;
            let (from, first_stack) = (members.len(), stacks.len());
            members.extend(group);
            sort::by_key(&mut members[from..], |at| self.whole[at].upper);
            let mut start = from;
            for same in members[from..].chunk_by(|&a, &b| self.whole[a].upper == self.whole[b].upper) {
                let Buffer { lower, upper, .. } = self.whole[same[0]];
                let range = start..start + same.len();
                start = range.end;
                if same.len() > 1 {
                    let size = same.iter().fold(0, |sum: u64, &at| sum.saturating_add(self.whole[at].size));
                    stacks.push(Stack { lower, upper, size, members: range, fits: !proof });
                }
            }
            stacks[first_stack..].sort_by_key(|stack| stack.size);
        }
        if proof {
            let begins = Begins::new(stacks.iter().map(|stack| stack.lower).collect());
            let find = |stacks: &[Stack], lower, size| {
                equal(stacks, &begins, |stack| (stack.lower, stack.size), (lower, size))
            };
            for at in 0..stacks.len() {
                let Stack { upper, size, .. } = stacks[at];
                let after = find(&stacks, upper, size);
                stacks[at].fits |= !after.is_empty() || !self.find(upper, size).is_empty();
                stacks[after].iter_mut().for_each(|stack| stack.fits = true);
            }
            for buffer in &self.whole {
                let after = find(&stacks, buffer.upper, buffer.size);
                stacks[after].iter_mut().for_each(|stack| stack.fits = true);
            }
        }
        let mut new_buffers = Vec::new();
        for stack in stacks.into_iter().filter(|stack| stack.fits) {
            let parts: Vec<Buffer> = members[stack.members].iter().map(|&at| self.whole[at]).collect();
            new_buffers.extend(parts.into_iter().reduce(|below, above| self.stack(below, above)));
        }
        self.replace_parts(new_buffers);
    }

    /// Joins buffers of one size that follow each other.
    fn join_pairs(&mut self) {
        let mut new_buffers = Vec::new();
        for at in 0..self.whole.len() {
            let one = self.whole[at];
            let mut after = self.find(one.upper, one.size);
            if let (Some(next), None) = (after.next(), after.next()) {
                if !self.is_part[one.id as usize] && !self.is_part[self.whole[next].id as usize] {
                    new_buffers.push(self.follow(one, self.whole[next]));
                }
            }
        }
        self.replace_parts(new_buffers);
    }

    /// Puts one buffer on another of equal life. The sum of a checked problem's sizes, each with
    /// its alignment, fits in 64 bits.
    fn stack(&mut self, below: Buffer, above: Buffer) -> Buffer {
        let shift = align_up(below.size, above.alignment).unwrap_or(u64::MAX);
        let alignment = below.alignment.max(above.alignment);
        let size = shift.saturating_add(above.size);
        self.join(below, above, shift, Buffer { size, alignment, ..below })
    }

    /// Joins a buffer with the one that follows it.
    fn follow(&mut self, first: Buffer, next: Buffer) -> Buffer {
        let alignment = first.alignment.max(next.alignment);
        self.join(first, next, 0, Buffer { upper: next.upper, alignment, ..first })
    }

    fn join(&mut self, one: Buffer, other: Buffer, shift: u64, whole: Buffer) -> Buffer {
        self.is_part[one.id as usize] = true;
        self.is_part[other.id as usize] = true;
        self.parts.push((one.id, other.id, shift));
        self.is_part.push(false);
        Buffer { id: self.is_part.len() as u64 - 1, ..whole }
    }

    /// Adds what was joined, and removes the parts.
    fn replace_parts(&mut self, new_buffers: Vec<Buffer>) {
        if !new_buffers.is_empty() {
            self.whole.extend(new_buffers);
            self.whole.retain(|buffer| !self.is_part[buffer.id as usize]);
            self.sort();
        }
    }
}

/// The range of a begin and size in a list in the order of these.
fn equal<T>(
    list: &[T],
    begins: &Begins<u64>,
    key: impl Fn(&T) -> (u64, u64),
    target: (u64, u64),
) -> Range<usize> {
    // Few begin together, so the place is near their first. The steps double for the case of many.
    let (mut first, mut step) = (begins.before(target.0), 1);
    while list.get(first + step - 1).is_some_and(|one| key(one) < target) {
        first += step;
        step *= 2;
    }
    let last = list.len().min(first + step - 1);
    first += list[first..last].partition_point(|one| key(one) < target);
    let count = list[first..].iter().take_while(|&one| key(one) == target).count();
    first..first + count
}

#[cfg(test)]
#[path = "../../tests/common/divided.rs"]
mod divided;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::divided::divided;
    use super::*;
    use crate::verify::sweep;

    fn merged(buffers: &[Buffer]) -> Option<Merge> {
        Merge::new(Instance { buffers, conflicts: None })
    }

    #[test]
    fn what_was_divided_becomes_whole() {
        let buffer = |(begin, end, low, high)| Buffer::new(0, begin, end, high - low);
        let buffers: Vec<Buffer> = divided(1 << 40, 2_000).into_iter().map(buffer).collect();
        let merged = merged(&buffers).expect("joined");
        assert_eq!(merged.buffers().len(), 1);
        assert_eq!(sweep(&buffers, &merged.expand(&[0]), u64::MAX), Ok(1 << 40));
    }

    #[test]
    fn buffers_at_the_end_of_time_are_joined() {
        let two = [1, 2].map(|id| Buffer::new(id, u64::MAX - 1, u64::MAX, 8));
        let buffers = [Buffer::new(0, 0, u64::MAX - 1, 16), two[0], two[1]];
        let merged = merged(&buffers).expect("joined");
        assert_eq!((merged.buffers().len(), merged.expand(&[0])), (1, vec![0, 0, 8]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        #[test]
        fn a_plan_of_joined_buffers_is_a_plan_of_all(
            lives in prop::collection::vec((0_u64..6, 0_u64..4, 0_u64..4, 0_u32..3), 0..60),
        ) {
            let buffer = |(id, (lower, length, size, shift)): (u64, (u64, u64, u64, u32))| {
                Buffer::new(id, lower, lower + length, size).aligned(1 << shift)
            };
            let buffers: Vec<Buffer> = (0..).zip(lives).map(buffer).collect();
            if let Some(merged) = merged(&buffers) {
                let mut top = 0;
                let place = |buffer: &Buffer| {
                    let offset = align_up(top, buffer.alignment).expect("small");
                    top = offset + buffer.size;
                    offset
                };
                let offsets: Vec<u64> = merged.buffers().iter().map(place).collect();
                let offsets = merged.expand(&offsets);
                prop_assert!(sweep(&buffers, &offsets, u64::MAX).is_ok());
                prop_assert!((0..buffers.len()).all(|i| offsets[i] % buffers[i].alignment == 0));
            }
        }
    }
}
