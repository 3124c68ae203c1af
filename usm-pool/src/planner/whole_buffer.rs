//! Whole-buffer reuse as in OpenVINO's GPU memory pool: in descending size, each request takes the smallest pooled buffer that is large
//! enough and has no user in conflict, else a new one. Parts of a buffer are never shared out.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::greedy::{Until, sorted};
use crate::lifetime::{Lifetime, align_up};

struct Entry {
    size: u64,
    alignment: u64,
    users: Vec<u32>,
    /// Hull of the users' lives: outside of it no user needs to be looked at.
    hull: Lifetime,
}

/// Requests in the order of OpenVINO: descending size.
pub(crate) fn by_size(instance: Instance<'_>) -> Vec<u32> {
    sorted(instance, |b| Reverse(b.size))
}

/// One offset for each buffer; the pooled buffers lie one after the other. `None` as soon as they take too much.
pub(crate) fn whole_buffer(instance: Instance<'_>, order: &[u32], until: Until<'_>) -> Option<Vec<u64>> {
    let mut total = 0_u64;
    let mut entries: Vec<Entry> = Vec::new();
    for (at, &buffer) in order.iter().enumerate() {
        if until.over(at) {
            return None;
        }
        let item = &instance.buffers[buffer as usize];
        if !instance.occupies(buffer as usize) {
            continue;
        }
        let life = item.lifetime();
        let free = |entry: &Entry| match instance.conflicts {
            None => {
                !entry.hull.overlaps(life)
                    || !entry
                        .users
                        .iter()
                        .any(|&user| instance.buffers[user as usize].lifetime().overlaps(life))
            }
            Some(graph) => !entry.users.iter().any(|&user| graph.contains(buffer as usize, user as usize)),
        };
        // Entries are in descending size: the last one that is free is the smallest.
        let large = entries.partition_point(|entry| entry.size >= item.size);
        match entries[..large].iter_mut().rev().find(|entry| free(entry)) {
            Some(entry) => {
                entry.users.push(buffer);
                entry.hull = entry.hull.union(life);
                entry.alignment = entry.alignment.max(item.alignment);
            }
            None => {
                total = total.saturating_add(item.size);
                if total > until.limit {
                    return None;
                }
                let users = alloc::vec![buffer];
                let entry = Entry { size: item.size, alignment: item.alignment, users, hull: life };
                entries.insert(large, entry);
            }
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
