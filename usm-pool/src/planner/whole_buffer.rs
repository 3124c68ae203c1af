//! Whole-buffer reuse as in OpenVINO's GPU memory pool. In descending size, each request takes the
//! smallest pooled buffer that is large enough and has no conflicting user, or a new one. Buffers
//! are never divided.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::greedy::{Until, order_by};
use crate::lifetime::{Lifetime, align_up};

struct Entry {
    size: u64,
    alignment: u64,
    users: Vec<u32>,
    /// The users' lives in order of time, if there are lives; they do not overlap.
    lives: Vec<Lifetime>,
}

impl Entry {
    fn new(size: u64) -> Self {
        Self { size, alignment: 1, users: Vec::new(), lives: Vec::new() }
    }

    /// Number of lives before this one, or `None` when one overlaps it.
    fn place(&self, life: Lifetime) -> Option<usize> {
        let at = self.lives.partition_point(|other| other.lower < life.upper);
        let free = at.checked_sub(1).is_none_or(|before| self.lives[before].upper <= life.lower);
        free.then_some(at)
    }
}

/// Requests in the order of OpenVINO: descending size.
pub(crate) fn by_size(instance: Instance<'_>) -> Vec<u32> {
    order_by(instance, |b| (Reverse(b.size), Reverse(0), 0))
}

/// One offset for each buffer; the pooled buffers are consecutive. `None` as soon as they exceed
/// the limit.
pub(crate) fn whole_buffer(instance: Instance<'_>, order: &[u32], until: Until<'_>) -> Option<Vec<u64>> {
    let mut total = 0_u64;
    let mut entries: Vec<Entry> = Vec::new();
    let (mut work, mut is_late) = (0, false);
    for (count, &buffer) in order.iter().enumerate() {
        if !is_late && until.is_exhausted(count, work) {
            if !until.on_top {
                return None;
            }
            // From now on each request gets a new buffer.
            is_late = true;
        }
        let item = &instance.buffers[buffer as usize];
        if !instance.occupies(buffer as usize) {
            continue;
        }
        let life = item.lifetime();
        // Whether an entry is free, and the position of the life in it.
        let place = |entry: &Entry| match instance.conflicts {
            None => entry.place(life),
            Some(graph) => {
                let is_used = entry.users.iter().any(|&user| graph.contains(buffer as usize, user as usize));
                (!is_used).then_some(0)
            }
        };
        // Entries are in descending size, so the last free one is the smallest.
        let large = entries.partition_point(|entry| entry.size >= item.size);
        let first = if is_late { large } else { 0 };
        let reuse = (first..large).rev().find_map(|at| Some((at, place(&entries[at])?)));
        work += (large - reuse.map_or(0, |pair| pair.0)) as u64;
        let (at, before) = match reuse {
            Some(pair) => pair,
            None => {
                total = total.saturating_add(item.size);
                if total > until.limit {
                    return None;
                }
                entries.insert(large, Entry::new(item.size));
                (large, 0)
            }
        };
        let entry = &mut entries[at];
        entry.users.push(buffer);
        entry.alignment = entry.alignment.max(item.alignment);
        if instance.conflicts.is_none() {
            entry.lives.insert(before, life);
        }
    }
    let mut offsets = alloc::vec![0; instance.buffers.len()];
    let mut end = 0_u64;
    for entry in &entries {
        let offset = align_up(end, entry.alignment).unwrap_or(u64::MAX);
        for &user in &entry.users {
            offsets[user as usize] = offset;
        }
        end = offset.saturating_add(entry.size);
    }
    Some(offsets)
}
