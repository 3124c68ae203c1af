//! What is live at an operator in every order: a bound for all orders that needs no search.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::lives::Lives;
use crate::conflict::set_bits;

/// Most operators for which all paths are followed: their bits take 64 MiB.
const PATHS: usize = 1 << 14;

/// The most bytes that are live at some operator in every order, and that operator.
pub(super) fn heaviest_operator(lives: &Lives) -> (u64, u32) {
    let n = lives.len();
    if n == 0 {
        return (0, 0);
    }
    let (descendants, ancestors) = if n <= PATHS {
        (paths(n, &lives.before, false), paths(n, &lives.after, true))
    } else {
        Default::default()
    };
    let words = n.div_ceil(64);
    let mut bytes = alloc::vec![0_u64; n];
    let mut slack = alloc::vec![0_u64; n];
    // The bits of the operators at or after the first use, and at or before the last one.
    let mut users = alloc::vec![Vec::new(); lives.roots.len()];
    for (op, roots) in lives.uses.iter().enumerate() {
        roots.iter().for_each(|&root| users[root as usize].push(op));
    }
    let union = |rows: &[u64], users: &[usize], all: bool| {
        let mut union = alloc::vec![if all { u64::MAX } else { 0 }; words];
        for &op in users {
            union[op / 64] |= 1 << (op % 64);
            if let Some(row) = rows.get(op * words..(op + 1) * words) {
                union.iter_mut().zip(row).for_each(|(word, row)| *word |= row);
            }
        }
        union
    };
    for (root, users) in lives.roots.iter().zip(&users) {
        let from_first = union(&descendants, users, root.from_start);
        let open = union(&ancestors, users, root.to_end);
        let both: Vec<u64> = from_first.iter().zip(&open).map(|(word, open)| word & open).collect();
        for op in set_bits(&both).take_while(|&op| op < n) {
            bytes[op] += root.room;
            slack[op] = slack[op].max(root.slack);
        }
    }
    let is_reached = |from: usize, to: usize| {
        descendants.get(from * words + to / 64).is_some_and(|word| word >> (to % 64) & 1 == 1)
    };
    let mut best = (0, 0);
    for op in 0..n {
        // A use that follows in every order prevents a permit.
        let ends = |root: u32| users[root as usize].iter().all(|&user| !is_reached(op, user));
        let begins = |root: u32| users[root as usize].iter().all(|&user| !is_reached(user, op));
        let savings =
            lives.permits[op].iter().map(|permits| permits.count_savings(&lives.roots, ends, begins));
        let sum = bytes[op].saturating_sub(savings.sum::<u64>()).saturating_sub(slack[op]);
        if (sum, Reverse(op as u32)) > (best.0, Reverse(best.1)) {
            best = (sum, op as u32);
        }
    }
    best
}

/// For each operator a row of bits: the operators that a path from it reaches. `before` lists the
/// operators one step back; `is_reverse` says that these have higher numbers.
fn paths(n: usize, before: &[Vec<u32>], is_reverse: bool) -> Vec<u64> {
    let words = n.div_ceil(64);
    let mut rows = alloc::vec![0_u64; n * words];
    for step in 0..n {
        // From the end on, so that a row is complete before it is used.
        let op = if is_reverse { step } else { n - 1 - step };
        for &earlier in &before[op] {
            let earlier = earlier as usize;
            let (low, high) = (earlier.min(op), earlier.max(op));
            let (head, tail) = rows.split_at_mut(high * words);
            let (low, high) = (&mut head[low * words..(low + 1) * words], &mut tail[..words]);
            let (to, from) = if is_reverse { (high, low) } else { (low, high) };
            to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to |= from);
            to[op / 64] |= 1 << (op % 64);
        }
    }
    rows
}
