//! A walk along an order: the live bytes after each step, and the bytes at each operator.

use alloc::vec::Vec;

use super::lives::Lives;

/// The operators done so far, and what is live after them.
#[derive(Clone, Debug)]
pub(super) struct Walk<'l> {
    pub(super) lives: &'l Lives,
    is_done: Vec<bool>,
    in_degrees: Vec<u32>,
    /// Uses of each root that are still to come.
    left: Vec<u32>,
    /// Operators that may run next, in no order, and the place of each operator among them.
    ready: Vec<u32>,
    slot: Vec<u32>,
    slacks: Slacks,
    /// Live bytes between two operators.
    pub(super) level: u64,
    pub(super) count: usize,
    /// Operators started since the beginning, and more for one with many neighbours: the work of a
    /// search.
    pub(super) steps: u64,
}

impl<'l> Walk<'l> {
    pub(super) fn new(lives: &'l Lives) -> Self {
        let mut walk = Self {
            lives,
            is_done: alloc::vec![false; lives.len()],
            in_degrees: lives.before.iter().map(|list| list.len() as u32).collect(),
            left: lives.roots.iter().map(|root| root.uses).collect(),
            ready: Vec::new(),
            slot: alloc::vec![0; lives.len()],
            slacks: Slacks::new(lives.slacks.len()),
            level: lives.roots.iter().filter(|root| root.from_start).map(|root| root.room).sum(),
            count: 0,
            steps: 0,
        };
        for root in lives.roots.iter().filter(|root| root.from_start && (root.uses > 0 || root.to_end)) {
            walk.slacks.add(root.slack_rank);
        }
        for op in 0..lives.len() as u32 {
            if walk.in_degrees[op as usize] == 0 {
                walk.make_ready(op);
            }
        }
        walk
    }

    /// Operators that may run next, in no order.
    pub(super) fn ready(&self) -> &[u32] {
        &self.ready
    }

    fn make_ready(&mut self, op: u32) {
        self.slot[op as usize] = self.ready.len() as u32;
        self.ready.push(op);
    }

    fn make_unready(&mut self, op: u32) {
        let slot = self.slot[op as usize];
        self.ready.swap_remove(slot as usize);
        if let Some(&other) = self.ready.get(slot as usize) {
            self.slot[other as usize] = slot;
        }
    }

    pub(super) fn is_done(&self, op: u32) -> bool {
        self.is_done[op as usize]
    }

    /// Operators that must run before this one and have not.
    pub(super) fn predecessors_left(&self, op: u32) -> u32 {
        self.in_degrees[op as usize]
    }

    pub(super) fn is_ready(&self, op: u32) -> bool {
        self.in_degrees[op as usize] == 0 && !self.is_done[op as usize]
    }

    /// Whether a use has begun the root's life.
    fn has_begun(&self, root: u32) -> bool {
        let entry = &self.lives.roots[root as usize];
        entry.from_start || self.left[root as usize] < entry.uses
    }

    /// The roots that `op`, which is ready, begins.
    pub(super) fn begun_by(&self, op: u32) -> impl Iterator<Item = u32> + '_ {
        self.lives.uses[op as usize].iter().copied().filter(|&root| !self.has_begun(root))
    }

    /// The uses of a root that are still to come.
    pub(super) fn uses_left(&self, root: u32) -> u32 {
        self.left[root as usize]
    }

    /// The level with all that `op`, which is ready, begins.
    pub(super) fn level_with(&self, op: u32) -> u64 {
        self.level + self.begun_by(op).map(|root| self.lives.roots[root as usize].room).sum::<u64>()
    }

    /// Bytes that are live while `op`, which is ready, runs next.
    pub(super) fn cost(&self, op: u32) -> u64 {
        let lives = self.lives;
        let uses = &lives.uses[op as usize];
        let mut bytes = self.level_with(op);
        for permits in &lives.permits[op as usize] {
            let savings = permits.count_savings(
                &lives.roots,
                |root| self.left[root as usize] == 1,
                |root| !self.has_begun(root),
            );
            bytes = bytes.saturating_sub(savings);
        }
        if lives.slacks.is_empty() {
            return bytes;
        }
        let used = uses.iter().map(|&root| lives.roots[root as usize].slack_rank).min();
        let topmost = used.into_iter().chain(self.slacks.first()).min();
        let slack = topmost.and_then(|rank| lives.slacks.get(rank as usize));
        bytes.saturating_sub(slack.copied().unwrap_or(0))
    }

    /// The level after `op`, which is ready.
    pub(super) fn level_after(&self, op: u32) -> u64 {
        let mut level = self.level;
        for &root in &self.lives.uses[op as usize] {
            let entry = &self.lives.roots[root as usize];
            if !self.has_begun(root) {
                level += entry.room;
            }
            if self.left[root as usize] == 1 && !entry.to_end {
                level -= entry.room;
            }
        }
        level
    }

    /// The largest slack among the roots that end with `op`, which is ready.
    pub(super) fn slack_ended_by(&self, op: u32) -> u64 {
        if self.lives.slacks.is_empty() {
            return 0;
        }
        let roots = self.lives.uses[op as usize].iter().filter(|&&root| self.left[root as usize] == 1);
        roots.map(|&root| self.lives.roots[root as usize].slack).max().unwrap_or(0)
    }

    /// Runs `op`, which is ready.
    pub(super) fn run(&mut self, op: u32) {
        let lives = self.lives;
        for &root in &lives.uses[op as usize] {
            let entry = &lives.roots[root as usize];
            let left = &mut self.left[root as usize];
            if !entry.from_start && *left == entry.uses {
                self.level += entry.room;
                self.slacks.add(entry.slack_rank);
            }
            *left -= 1;
            if *left == 0 && !entry.to_end {
                self.level -= entry.room;
                self.slacks.remove(entry.slack_rank);
            }
        }
        self.make_unready(op);
        for &successor in &lives.after[op as usize] {
            self.in_degrees[successor as usize] -= 1;
            if self.in_degrees[successor as usize] == 0 {
                self.make_ready(successor);
            }
        }
        self.is_done[op as usize] = true;
        self.count += 1;
        self.steps += 1 + work_of(lives.uses[op as usize].len() + lives.after[op as usize].len());
    }

    /// Takes back `op`, the last one that ran.
    pub(super) fn take_back(&mut self, op: u32) {
        self.is_done[op as usize] = false;
        self.count -= 1;
        let lives = self.lives;
        for &successor in &lives.after[op as usize] {
            if self.in_degrees[successor as usize] == 0 {
                self.make_unready(successor);
            }
            self.in_degrees[successor as usize] += 1;
        }
        self.make_ready(op);
        for &root in &self.lives.uses[op as usize] {
            let entry = &self.lives.roots[root as usize];
            if self.left[root as usize] == 0 && !entry.to_end {
                self.level += entry.room;
                self.slacks.add(entry.slack_rank);
            }
            self.left[root as usize] += 1;
            if !self.has_begun(root) {
                self.level -= entry.room;
                self.slacks.remove(entry.slack_rank);
            }
        }
    }
}

/// Steps for looking at so many neighbours.
pub(super) const fn work_of(neighbours: usize) -> u64 {
    neighbours as u64 / 8
}

/// How many live roots have each slack, by rank.
#[derive(Clone, Debug)]
struct Slacks {
    counts: Vec<u32>,
    /// One bit for each rank that some live root has.
    bits: Vec<u64>,
}

impl Slacks {
    fn new(ranks: usize) -> Self {
        Self { counts: alloc::vec![0; ranks], bits: alloc::vec![0; ranks.div_ceil(64)] }
    }

    /// Counts a root; one without slack has no rank.
    fn add(&mut self, rank: u32) {
        if let Some(count) = self.counts.get_mut(rank as usize) {
            *count += 1;
            self.bits[rank as usize / 64] |= 1 << (rank % 64);
        }
    }

    fn remove(&mut self, rank: u32) {
        if let Some(count) = self.counts.get_mut(rank as usize) {
            *count -= 1;
            if *count == 0 {
                self.bits[rank as usize / 64] &= !(1 << (rank % 64));
            }
        }
    }

    /// The rank of the largest slack.
    fn first(&self) -> Option<u32> {
        let word = self.bits.iter().position(|&word| word != 0)?;
        Some(word as u32 * 64 + self.bits[word].trailing_zeros())
    }
}

/// The most bytes at any operator of an order, and the first operator with them, by position.
pub(super) fn peak(lives: &Lives, order: &[u32]) -> (u64, usize) {
    let mut walk = Walk::new(lives);
    let mut most = (0, 0);
    for (at, &op) in order.iter().enumerate() {
        let cost = walk.cost(op);
        if cost > most.0 {
            most = (cost, at);
        }
        walk.run(op);
    }
    most
}
