//! Simple orders, each in about linear time: starting points of the search.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::lives::Lives;
use super::walk::Walk;
use crate::sort;

/// All simple orders.
pub(super) fn all(lives: &Lives) -> impl Iterator<Item = Vec<u32>> + '_ {
    const MAKE: [fn(&Lives) -> Vec<u32>; 7] = [
        least_growth,
        heaviest_branch_first,
        highest_rise_first,
        least_peak_first,
        earliest_inputs_first,
        lightest_first,
        list_ops,
    ];
    let orders = MAKE.into_iter().map(|make| make(lives));
    orders.flat_map(|order| [delay_sources(lives, &order), order])
}

/// The given order.
pub(super) fn list_ops(lives: &Lives) -> Vec<u32> {
    (0..lives.len() as u32).collect()
}

/// Bytes that an operator begins.
fn count_begin_bytes(lives: &Lives) -> Vec<u64> {
    // The first user of a root in the given order begins it.
    let mut bytes = alloc::vec![0; lives.len()];
    let mut walk = Walk::new(lives);
    for op in 0..lives.len() as u32 {
        let level = walk.level;
        let cost = walk.level_with(op);
        bytes[op as usize] = cost - level;
        walk.run(op);
    }
    bytes
}

/// List scheduling: takes the ready operator that adds the fewest live bytes; of equals the one
/// with the most recent inputs.
fn least_growth(lives: &Lives) -> Vec<u32> {
    let mut front = Front::new(lives);
    let key = |front: &Front<'_>, op: u32| {
        let change = front.changes[op as usize];
        (change.growth, !u64::from(front.fresh[op as usize]), op)
    };
    let mut ready: BTreeSet<Key> = front.walk.ready().iter().map(|&op| key(&front, op)).collect();
    let mut order: Vec<u32> = Vec::with_capacity(lives.len());
    while let Some((.., op)) = ready.pop_first() {
        order.push(op);
        for op in front.run(op) {
            ready.remove(&key(&front, op));
            front.update(op);
            if front.walk.is_ready(op) {
                ready.insert(key(&front, op));
            }
        }
    }
    order
}

/// "Least peak memory first", as in PyTorch's Inductor: the operator that leaves the fewest bytes
/// of those below the peak so far, otherwise the one that raises it least.
fn least_peak_first(lives: &Lives) -> Vec<u32> {
    let mut front = Front::new(lives);
    let by_growth = |change: Change, op: u32| (change.growth, 0, op);
    let by_begun = |change: Change, op: u32| (change.begin_bytes, change.growth, op);
    let (mut growths, mut begins) = (BTreeSet::<Key>::new(), BTreeSet::<Key>::new());
    for &op in front.walk.ready() {
        growths.insert(by_growth(front.changes[op as usize], op));
        begins.insert(by_begun(front.changes[op as usize], op));
    }
    let (mut peak, mut comparisons) = (0_u64, 0);
    let mut order: Vec<u32> = Vec::with_capacity(lives.len());
    while let Some(&(least, _, first)) = begins.first() {
        // What may begin below the peak.
        let room = peak.checked_sub(front.walk.level).filter(|&room| least <= room);
        let op = match room {
            Some(room) if comparisons <= COMPARED => {
                let fits = |op: u32| front.changes[op as usize].begin_bytes <= room;
                let skips = growths.iter().take_while(|&&(.., op)| !fits(op)).count();
                comparisons += skips;
                growths.iter().nth(skips).map_or(first, |&(.., op)| op)
            }
            _ => first,
        };
        peak = peak.max(front.walk.level_with(op));
        order.push(op);
        for op in front.run(op) {
            growths.remove(&by_growth(front.changes[op as usize], op));
            begins.remove(&by_begun(front.changes[op as usize], op));
            front.update(op);
            if front.walk.is_ready(op) {
                growths.insert(by_growth(front.changes[op as usize], op));
                begins.insert(by_begun(front.changes[op as usize], op));
            }
        }
    }
    order
}

/// The ready operator whose inputs were made earliest, as in PyTorch's Inductor.
fn earliest_inputs_first(lives: &Lives) -> Vec<u32> {
    let mut position = alloc::vec![0_u32; lives.len()];
    let mut walk = Walk::new(lives);
    let mut ready: BTreeSet<(Vec<u32>, u32)> = walk.ready().iter().map(|&op| (Vec::new(), op)).collect();
    let mut order = Vec::with_capacity(lives.len());
    while let Some((_, op)) = ready.pop_first() {
        position[op as usize] = order.len() as u32;
        order.push(op);
        walk.run(op);
        for &successor in lives.after[op as usize].iter().filter(|&&other| walk.is_ready(other)) {
            let mut inputs: Vec<u32> =
                lives.before[successor as usize].iter().map(|&earlier| position[earlier as usize]).collect();
            inputs.sort_unstable();
            ready.insert((inputs, successor));
        }
    }
    order
}

/// Depth first from the operators that touch the fewest bytes on, as in PyTorch's Inductor.
fn lightest_first(lives: &Lives) -> Vec<u32> {
    let rooms = |op: u32| lives.uses[op as usize].iter().map(|&root| lives.roots[root as usize].room);
    let bytes: Vec<u64> = (0..lives.len() as u32).map(|op| rooms(op).sum()).collect();
    let mut starts = list_ops(lives);
    sort::by_key(&mut starts, |op| (bytes[op as usize], op));
    depth_first(lives, starts, |op| (bytes[op as usize], op))
}

/// Puts every operator right after its inputs, the branch with the largest results first.
fn heaviest_branch_first(lives: &Lives) -> Vec<u32> {
    let bytes = count_begin_bytes(lives);
    let sinks = list_ops(lives).into_iter().filter(|&op| lives.after[op as usize].is_empty());
    depth_first(lives, sinks.collect(), |op| (Reverse(bytes[op as usize]), op))
}

/// As [`heaviest_branch_first`], but a branch counts as far as its peak exceeds what stays of it:
/// the order that is best for trees.
fn highest_rise_first(lives: &Lives) -> Vec<u32> {
    let bytes = count_begin_bytes(lives);
    let mut rise = alloc::vec![0_u64; lives.len()];
    let mut peak = alloc::vec![0_u64; lives.len()];
    for op in 0..lives.len() {
        let mut inputs: Vec<(u64, u64)> = lives.before[op]
            .iter()
            .map(|&earlier| (peak[earlier as usize], bytes[earlier as usize]))
            .collect();
        inputs.sort_unstable_by_key(|&(peak, stays)| Reverse(peak.saturating_sub(stays)));
        let (mut live, mut most) = (0_u64, 0_u64);
        for (peak, stays) in inputs {
            most = most.max(live.saturating_add(peak));
            live = live.saturating_add(stays);
        }
        peak[op] = most.max(live.saturating_add(bytes[op]));
        rise[op] = peak[op].saturating_sub(bytes[op]);
    }
    let sinks = list_ops(lives).into_iter().filter(|&op| lives.after[op as usize].is_empty());
    depth_first(lives, sinks.collect(), |op| (Reverse(rise[op as usize]), op))
}

/// Every operator after its inputs, these in the order of a key.
fn depth_first<K: Ord>(lives: &Lives, starts: Vec<u32>, key: impl Fn(u32) -> K) -> Vec<u32> {
    let mut is_done = alloc::vec![false; lives.len()];
    let mut order = Vec::with_capacity(lives.len());
    let mut stack: Vec<(u32, bool)> = Vec::new();
    for start in starts {
        stack.push((start, false));
        while let Some((op, is_entered)) = stack.pop() {
            if is_done[op as usize] {
                continue;
            }
            if is_entered {
                is_done[op as usize] = true;
                order.push(op);
                continue;
            }
            stack.push((op, true));
            let inputs = lives.before[op as usize].iter().copied();
            let mut needs: Vec<u32> = inputs.filter(|&earlier| !is_done[earlier as usize]).collect();
            // The stack reverses them.
            sort::by_key(&mut needs, |earlier| Reverse(key(earlier)));
            stack.extend(needs.into_iter().map(|earlier| (earlier, false)));
        }
    }
    order
}

/// The same order with operators without inputs moved to just before their first user.
fn delay_sources(lives: &Lives, order: &[u32]) -> Vec<u32> {
    let mut new_order = Vec::with_capacity(order.len());
    let mut is_done = alloc::vec![false; order.len()];
    for &op in order {
        let before = &lives.before[op as usize];
        if (before.is_empty() && !lives.after[op as usize].is_empty()) || is_done[op as usize] {
            continue;
        }
        for &earlier in before {
            if !is_done[earlier as usize] {
                is_done[earlier as usize] = true;
                new_order.push(earlier);
            }
        }
        is_done[op as usize] = true;
        new_order.push(op);
    }
    new_order
}

/// Most operators that [`least_peak_first`] passes over in all.
const COMPARED: usize = 1 << 24;

/// Ready operators in an order: two numbers, and the operator.
pub(super) type Key = (u64, u64, u32);

const NO_GROWTH: u64 = 1 << 63;

/// What an operator would do next.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    /// Bytes that it begins.
    begin_bytes: u64,
    /// Bytes by which the level grows, from [`NO_GROWTH`] on.
    growth: u64,
}

/// A walk that knows what each ready operator would change. Running one operator changes few of
/// the others: those that become ready, and those that share a root that begins, or whose last use
/// is the only one left.
struct Front<'l> {
    walk: Walk<'l>,
    /// The operators that use each root.
    users: Vec<Vec<u32>>,
    changes: Vec<Change>,
    /// The step at which an operator became ready.
    fresh: Vec<u32>,
}

impl<'l> Front<'l> {
    fn new(lives: &'l Lives) -> Self {
        let mut users = alloc::vec![Vec::new(); lives.roots.len()];
        for (roots, op) in lives.uses.iter().zip(0_u32..) {
            roots.iter().for_each(|&root| users[root as usize].push(op));
        }
        let walk = Walk::new(lives);
        let changes = alloc::vec![Change::default(); lives.len()];
        let mut front = Self { walk, users, changes, fresh: alloc::vec![0; lives.len()] };
        for op in front.walk.ready().to_vec() {
            front.update(op);
        }
        front
    }

    /// Runs an operator. Returns it and those for which it changes something.
    fn run(&mut self, op: u32) -> Vec<u32> {
        let lives = self.walk.lives;
        let begins: Vec<u32> = self.walk.begun_by(op).collect();
        self.walk.run(op);
        let mut ops = alloc::vec![op];
        for &root in &lives.uses[op as usize] {
            let begins = begins.contains(&root);
            if begins || self.walk.uses_left(root) == 1 {
                let users = self.users[root as usize].iter();
                ops.extend(users.filter(|&&user| self.walk.is_ready(user)));
            }
        }
        for &successor in &lives.after[op as usize] {
            self.fresh[successor as usize] = self.walk.count as u32;
            if self.walk.is_ready(successor) {
                ops.push(successor);
            }
        }
        ops.sort_unstable();
        ops.dedup();
        ops
    }

    fn update(&mut self, op: u32) {
        if self.walk.is_ready(op) {
            let level = self.walk.level;
            let begin_bytes = self.walk.level_with(op) - level;
            let growth = self.walk.level_after(op).wrapping_sub(level).wrapping_add(NO_GROWTH);
            self.changes[op as usize] = Change { begin_bytes, growth };
        }
    }
}
