//! Antichain of maximum weight: by Dilworth's theorem a maximum flow finds it.
//!
//! "Over before the other begins" is a strict partial order of the buffers; conflicts are its
//! incomparable pairs. The heaviest set of pairwise conflicting buffers is then as heavy as the
//! lightest cover by chains, a flow problem in the cover relation.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::conflict::{ConflictGraph, set_bits};
use crate::lifetime::align_up;
use crate::sort;
use crate::{Buffer, Error};

/// Indices of pairwise conflicting buffers of maximum total size, and the bound in bytes that they
/// prove.
///
/// `conflicts` must come from a partial order that agrees with the lives: of two buffers without
/// conflict, the one whose life begins first ends before the other begins. That holds for every
/// relation made from a graph. The function checks its result pair by pair, so another relation
/// costs quality, never correctness. `None` when the network would not fit in memory.
///
/// # Errors
/// [`Error::LengthMismatch`] when the relation is of another size, [`Error::OutOfMemory`].
pub fn antichain(buffers: &[Buffer], conflicts: &ConflictGraph) -> Result<(u64, Vec<usize>), Error> {
    antichain_until(buffers, conflicts, &|| false)
}

/// As [`antichain`]; returns only the largest buffer if `stop` ends it early.
pub(crate) fn antichain_until(
    buffers: &[Buffer],
    conflicts: &ConflictGraph,
    stop: &dyn Fn() -> bool,
) -> Result<(u64, Vec<usize>), Error> {
    if conflicts.len() != buffers.len() {
        return Err(Error::LengthMismatch { buffers: buffers.len(), other: conflicts.len() });
    }
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| buffers[i].size > 0).collect();
    sort::by_key(&mut order, |i| (buffers[i].lower, buffers[i].upper, i));
    match antichain_of(buffers, conflicts, &order, stop)? {
        Some(result) => Ok(result),
        None => {
            let largest = (0..buffers.len()).max_by_key(|&i| buffers[i].size);
            Ok((largest.map_or(0, |i| buffers[i].size), largest.into_iter().collect()))
        }
    }
}

/// As [`antichain`], over the buffers of `order`, a linear extension of the partial order; `None`
/// if `stop` ended it.
fn antichain_of(
    buffers: &[Buffer],
    conflicts: &ConflictGraph,
    order: &[usize],
    stop: &dyn Fn() -> bool,
) -> Result<Option<(u64, Vec<usize>)>, Error> {
    let n = order.len();
    let unit = order.iter().map(|&i| buffers[i].alignment).min().unwrap_or(1);
    let weights: Vec<u64> =
        order.iter().map(|&i| align_up(buffers[i].size, unit).unwrap_or(buffers[i].size)).collect();
    let mut network = Network::new(2 * n + 2);
    let (source, sink) = (2 * n, 2 * n + 1);
    for (k, &weight) in weights.iter().enumerate() {
        network.edge(source, k, weight);
        network.edge(n + k, sink, weight);
        // A chain may pass through a buffer that another chain covers, so the cover relation is
        // enough to represent the order.
        network.edge(n + k, k, u64::MAX);
    }
    let Some(covers) = cover_relation(conflicts, order, stop)? else { return Ok(None) };
    for (k, covers) in covers.into_iter().enumerate() {
        for next in covers {
            network.edge(k, n + next as usize, u64::MAX);
        }
    }
    if !network.maximise(source, sink, stop) {
        return Ok(None);
    }
    let reachable = network.reachable(source);
    let mut set: Vec<usize> =
        (0..n).filter(|&k| reachable[k] && !reachable[n + k]).map(|k| order[k]).collect();
    // If the relation is no order, the set may have pairs without conflict: drops buffers that do
    // not conflict with all earlier ones.
    let mut antichain: Vec<usize> = Vec::with_capacity(set.len());
    for i in set.drain(..) {
        if antichain.iter().all(|&other| conflicts.contains(i, other)) {
            antichain.push(i);
        }
    }
    antichain.sort_unstable();
    let bytes = super::stacked(antichain.iter().map(|&i| &buffers[i])).unwrap_or(0);
    Ok(Some((bytes, antichain)))
}

/// For each buffer of `order` (by position) its direct successors; `None` if `stop` ended it.
fn cover_relation(
    conflicts: &ConflictGraph,
    order: &[usize],
    stop: &dyn Fn() -> bool,
) -> Result<Option<Vec<Vec<u32>>>, Error> {
    let n = order.len();
    // `after` row `k`, by position: all buffers that begin after the end of buffer `k`.
    let mut after = ConflictGraph::new(n)?;
    let as_given = n == conflicts.len() && order.iter().enumerate().all(|(k, &i)| k == i);
    for k in 0..n {
        if k % 64 == 63 && stop() {
            return Ok(None);
        }
        let row = after.row_mut(k);
        if as_given {
            // 64 at a time: all without a conflict, except those up to `k` and beyond `n`.
            for (word, (mine, theirs)) in row.iter_mut().zip(conflicts.row(k)).enumerate().skip(k / 64) {
                let above = if word == k / 64 { u64::MAX << (k % 64) << 1 } else { u64::MAX };
                let below = if word == n / 64 { (1 << (n % 64)) - 1 } else { u64::MAX };
                *mine = !theirs & above & below;
            }
            continue;
        }
        for next in k + 1..n {
            row[next / 64] |= u64::from(!conflicts.contains(order[k], order[next])) << (next % 64);
        }
    }
    let mut covers = Vec::with_capacity(n);
    for k in 0..n {
        if k % 64 == 63 && stop() {
            return Ok(None);
        }
        let mut left: Vec<u64> = after.row(k).to_vec();
        let mut successors = Vec::new();
        loop {
            let next = set_bits(&left).next();
            let Some(next) = next else { break };
            successors.push(next as u32);
            left[next / 64] &= !(1 << (next % 64));
            for (mine, theirs) in left.iter_mut().zip(after.row(next)).skip(next / 64) {
                *mine &= !theirs;
            }
        }
        covers.push(successors);
    }
    Ok(Some(covers))
}

/// Flow network in adjacency lists; edge `e ^ 1` is the reverse of edge `e`.
struct Network {
    heads: Vec<Vec<u32>>,
    to: Vec<u32>,
    room: Vec<u64>,
}

impl Network {
    fn new(nodes: usize) -> Self {
        Self { heads: (0..nodes).map(|_| Vec::new()).collect(), to: Vec::new(), room: Vec::new() }
    }

    fn edge(&mut self, from: usize, to: usize, room: u64) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            self.heads[from].push(self.to.len() as u32);
            self.to.push(to as u32);
            self.room.push(room);
        }
    }

    /// Dinic's algorithm with explicit stacks. Deterministic. Returns `false` if `stop` ended it.
    fn maximise(&mut self, source: usize, sink: usize, stop: &dyn Fn() -> bool) -> bool {
        let mut steps = 0_u32;
        let nodes = self.heads.len();
        let mut next = alloc::vec![0_u32; nodes];
        loop {
            let level = self.levels(source);
            if level[sink] == u32::MAX {
                return true;
            }
            next.fill(0);
            let mut path: Vec<u32> = Vec::new();
            let mut at = source;
            loop {
                steps = steps.wrapping_add(1);
                if steps % (1 << 16) == 0 && stop() {
                    return false;
                }
                if at == sink {
                    let flow = path.iter().map(|&e| self.room[e as usize]).min().unwrap_or(0);
                    let mut back = 0;
                    for (depth, &e) in path.iter().enumerate().rev() {
                        self.room[e as usize] -= flow;
                        self.room[e as usize ^ 1] = self.room[e as usize ^ 1].saturating_add(flow);
                        if self.room[e as usize] == 0 {
                            back = depth;
                        }
                    }
                    path.truncate(back);
                    at = path.last().map_or(source, |&e| self.to[e as usize] as usize);
                    continue;
                }
                let step = loop {
                    let Some(&e) = self.heads[at].get(next[at] as usize) else {
                        break None;
                    };
                    let to = self.to[e as usize] as usize;
                    if self.room[e as usize] > 0 && level[to] == level[at] + 1 {
                        break Some((e, to));
                    }
                    next[at] += 1;
                };
                match step {
                    Some((e, to)) => {
                        path.push(e);
                        at = to;
                    }
                    None => {
                        let Some(e) = path.pop() else { break };
                        at = self.to[e as usize ^ 1] as usize;
                        next[at] += 1;
                    }
                }
            }
        }
    }

    fn levels(&self, source: usize) -> Vec<u32> {
        let mut level = alloc::vec![u32::MAX; self.heads.len()];
        let mut queue = VecDeque::from([source]);
        level[source] = 0;
        while let Some(at) = queue.pop_front() {
            for &e in &self.heads[at] {
                let to = self.to[e as usize] as usize;
                if self.room[e as usize] > 0 && level[to] == u32::MAX {
                    level[to] = level[at] + 1;
                    queue.push_back(to);
                }
            }
        }
        level
    }

    fn reachable(&self, source: usize) -> Vec<bool> {
        self.levels(source).into_iter().map(|level| level != u32::MAX).collect()
    }
}
