//! Which buffers share bytes, and which are kept apart.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::conflict::{set_bits, words_per_row};
use crate::plan::{Memory, Plan};
use crate::problem::Problem;
use crate::{Buffer, ConflictGraph, sort};

/// Why two buffers do or do not share bytes. Buffers by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// They share bytes.
    Shared {
        /// Bytes in common.
        bytes: u64,
    },
    /// They lie in different memories.
    OtherMemory,
    /// Their lives overlap in `[lower, upper)`.
    LiveTogether {
        /// First common instant.
        lower: u64,
        /// First instant after the common ones.
        upper: u64,
    },
    /// No chain of dependencies orders them, so that they may be live together out of order.
    Unordered,
    /// They may share; the plan has put them at different bytes.
    Apart,
    /// One of them has no bytes, or both are the same buffer.
    Trivial,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shared { bytes } => write!(f, "share {bytes} bytes"),
            Self::OtherMemory => f.write_str("lie in different memories"),
            Self::LiveTogether { lower, upper } => write!(f, "are both live in [{lower}, {upper})"),
            Self::Unordered => f.write_str("may be live together: no dependencies order them"),
            Self::Apart => f.write_str("may share, but lie at different bytes"),
            Self::Trivial => f.write_str("have nothing to share"),
        }
    }
}

/// Why buffers `i` and `j` of a plan do or do not share bytes.
#[must_use]
pub fn sharing(problem: &Problem, plan: &Plan, i: usize, j: usize) -> Sharing {
    let buffers = problem.buffers();
    let (Some(a), Some(b)) = (buffers.get(i), buffers.get(j)) else { return Sharing::Trivial };
    if i == j || a.size == 0 || b.size == 0 {
        return Sharing::Trivial;
    }
    if plan.placement[i] != plan.placement[j] {
        return Sharing::OtherMemory;
    }
    let low = plan.offsets[i].max(plan.offsets[j]);
    let high = plan.offsets[i].saturating_add(a.size).min(plan.offsets[j].saturating_add(b.size));
    if low < high {
        return Sharing::Shared { bytes: high - low };
    }
    if !problem.conflict(i, j) {
        return Sharing::Apart;
    }
    let (lower, upper) = (a.lower.max(b.lower), a.upper.min(b.upper));
    if lower < upper { Sharing::LiveTogether { lower, upper } } else { Sharing::Unordered }
}

/// A table of all buffers: place, life, buffers that share its bytes, and buffers that cannot
/// because both may be live together. Eight of each at most, in order of their begin (in the order
/// of the table where a list of conflicts says what may be live together), and the number of the
/// others. In a plan that [`Plan::verify`] refuses, a pair can be in both lists.
#[must_use]
pub fn sharing_table(problem: &Problem, plan: &Plan) -> String {
    let buffers = problem.buffers();
    let mut with = Others::none(buffers.len());
    let mut conflicts = Others::none(buffers.len());
    let all: BTreeSet<Memory> = plan.placement.iter().copied().collect();
    for memory in all {
        let inside: Vec<usize> =
            (0..buffers.len()).filter(|&i| buffers[i].size > 0 && plan.placement[i] == memory).collect();
        let place = |i: usize| (plan.offsets[i], plan.offsets[i].saturating_add(buffers[i].size));
        with.add_overlapping(buffers, &inside, place);
        match problem.conflicts() {
            Some(relation) => conflicts.add_conflicts(buffers, &inside, relation),
            None => conflicts.add_overlapping(buffers, &inside, |i| (buffers[i].lower, buffers[i].upper)),
        }
    }
    let mut text = String::from(
        "      id         size       offset  memory  life              shares bytes with | kept apart from\n",
    );
    for (i, buffer) in buffers.iter().enumerate() {
        let mut life = String::new();
        // Writing to a String cannot fail, here and below.
        let _ = write!(life, "[{}, {})", buffer.lower, buffer.upper);
        let _ = write!(
            text,
            "{:>8} {:>12} {:>12}  {:6}  {life:16}  ",
            buffer.id,
            buffer.size,
            plan.offsets[i],
            plan.placement[i].name()
        );
        for (others, end) in [(&with, " | "), (&conflicts, "\n")] {
            others.write(&mut text, i);
            text.push_str(end);
        }
    }
    text
}

/// For each buffer some others: the ids of the first ones, and the number of all. A list of all
/// would grow with the square of the number of buffers.
struct Others {
    first: Vec<Vec<u64>>,
    count: Vec<usize>,
}

impl Others {
    /// Number of others that the table names.
    const SHOWN: usize = 8;

    fn none(buffers: usize) -> Self {
        Self { first: alloc::vec![Vec::new(); buffers], count: alloc::vec![0; buffers] }
    }

    /// Adds to each of the buffers those whose range overlaps its own, in order of the begin.
    fn add_overlapping(&mut self, buffers: &[Buffer], inside: &[usize], range: impl Fn(usize) -> (u64, u64)) {
        let mut order: Vec<usize> = inside.iter().copied().filter(|&i| range(i).0 < range(i).1).collect();
        sort::by_key(&mut order, |i| (range(i).0, i));
        // In the order, because the ids of neighbours are then neighbours in memory.
        let ids: Vec<u64> = order.iter().map(|&i| buffers[i].id).collect();
        let begins: Vec<u64> = order.iter().map(|&i| range(i).0).collect();
        let mut ends: Vec<(u64, usize)> = order.iter().map(|&i| range(i).1).zip(0..).collect();
        ends.sort_unstable();
        // The ranges that began earlier and have not ended, by their place in the order: a list,
        // whose links go from each place to the next one. The last place is its head.
        let head = order.len();
        let mut next: Vec<usize> = alloc::vec![head; head + 1];
        let mut previous = next.clone();
        let mut end_count = 0;
        for (place, &i) in order.iter().enumerate() {
            while ends[end_count].0 <= begins[place] {
                let dead = ends[end_count].1;
                next[previous[dead]] = next[dead];
                previous[next[dead]] = previous[dead];
                end_count += 1;
            }
            let begin_count = begins.partition_point(|&begin| begin < range(i).1);
            let earlier = core::iter::successors(Some(next[head]), |&at| Some(next[at]));
            let earlier = earlier.take_while(|&at| at != head);
            let first = earlier.chain(place + 1..begin_count).take(Self::SHOWN).map(|at| ids[at]);
            self.first[i] = first.collect();
            self.count[i] = begin_count - end_count - 1;
            let last = previous[head];
            (next[last], next[place]) = (place, head);
            (previous[place], previous[head]) = (last, place);
        }
    }

    /// Adds to each of the buffers those that it conflicts with, in order of their index.
    fn add_conflicts(&mut self, buffers: &[Buffer], inside: &[usize], relation: &ConflictGraph) {
        let mut among = alloc::vec![0_u64; words_per_row(relation.len())];
        inside.iter().for_each(|&i| among[i / 64] |= 1 << (i % 64));
        for &i in inside {
            let row: Vec<u64> = relation.row(i).iter().zip(&among).map(|(row, among)| row & among).collect();
            self.first[i] = set_bits(&row).take(Self::SHOWN).map(|j| buffers[j].id).collect();
            self.count[i] = row.iter().map(|word| word.count_ones() as usize).sum();
        }
    }

    fn write(&self, text: &mut String, i: usize) {
        let first = &self.first[i];
        for (k, id) in first.iter().enumerate() {
            let _ = write!(text, "{}{id}", if k == 0 { "" } else { " " });
        }
        match self.count[i] - first.len() {
            _ if first.is_empty() => text.push('-'),
            0 => {}
            more => _ = write!(text, " and {more} more"),
        }
    }
}
