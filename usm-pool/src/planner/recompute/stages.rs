//! One change of a graph: for each root the stages that it is held into, and what each stage
//! therefore runs.
//!
//! Stage `q` ends with operator `q` of the graph; the last one is the caller's, which reads the
//! outputs. A stage first brings back what it lacks: it copies a root that lies in the other
//! memory, and runs the producer of every other one again, for which it may lack further roots.

use alloc::vec::Vec;

use super::bits::Bits;
use super::model::Model;

/// One thing that a stage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Runs an operator, for the first time or again.
    Run(u32),
    /// Copies a root back from the other memory.
    Fetch(u32),
}

/// What a stage does, and what it takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Stage {
    /// Most bytes at one time.
    pub(super) peak: u64,
    /// Time of what is done again.
    pub(super) cost: u64,
    pub(super) items: Vec<Item>,
    /// Roots that are used, and those that are brought back, each once.
    pub(super) roots: Vec<u32>,
}

/// A range of stages that a root is held into, or no longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) root: u32,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) hold: bool,
}

/// How to take a change back.
#[derive(Debug, Default)]
pub(super) struct Undo {
    bits: Vec<(u32, usize)>,
    bytes: Vec<(usize, u64, u64)>,
    stages: Vec<(usize, Stage)>,
    store: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Stages<'m> {
    pub(super) model: &'m Model,
    pub(super) resident: Bits,
    pub(super) accesses: Bits,
    /// Whether a root was copied to the other memory.
    pub(super) is_stored: Vec<bool>,
    /// Bytes held into each stage.
    base: Vec<u64>,
    pub(super) stages: Vec<Stage>,
    /// Roots that each stage must leave behind although it was not given them.
    begins: Vec<Vec<u32>>,
    /// Peaks above it are an excess.
    limit: u64,
    /// The sum over the stages of what exceeds the limit.
    pub(super) excess: u128,
    /// Time of all that is done again, copies included.
    pub(super) cost: u128,
    marks: Marks,
}

/// Tables of one evaluation, by root and by operator. A number says whether an entry is of this
/// one.
#[derive(Clone, Debug, Default)]
struct Marks {
    stamp: u32,
    needs: Vec<u32>,
    ops: Vec<u32>,
    last: Vec<(u32, u32)>,
}

impl<'m> Stages<'m> {
    /// The graph without a change.
    pub(super) fn new(model: &'m Model) -> Self {
        let (n, roots) = (model.ops.len(), model.roots.len());
        let mut result = Self {
            model,
            resident: Bits::new(roots, n + 2),
            accesses: Bits::new(roots, n + 2),
            is_stored: alloc::vec![false; roots],
            base: alloc::vec![0; n + 1],
            stages: alloc::vec![Stage::default(); n + 1],
            begins: alloc::vec![Vec::new(); n + 1],
            limit: u64::MAX,
            excess: 0,
            cost: 0,
            marks: Marks {
                stamp: 0,
                needs: alloc::vec![0; roots],
                ops: alloc::vec![0; n],
                last: alloc::vec![(0, 0); roots],
            },
        };
        for (number, root) in model.roots.iter().enumerate() {
            for stage in root.first..=root.last {
                result.resident.set(number as u32, stage as usize, true);
                result.base[stage as usize] += root.size;
            }
            if root.last as usize == n {
                result.resident.set(number as u32, n + 1, true);
            }
        }
        for at in 0..=n {
            // Nothing is missing.
            if let Some(stage) = result.evaluate(at) {
                result.replace(at, stage);
            }
        }
        result
    }

    /// Counts what is above this many bytes.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.excess = self.stages.iter().map(|stage| self.above(stage.peak)).sum();
    }

    fn above(&self, peak: u64) -> u128 {
        u128::from(peak.saturating_sub(self.limit))
    }

    pub(super) fn peak(&self) -> u64 {
        self.stages.iter().map(|stage| stage.peak).max().unwrap_or(0)
    }

    fn replace(&mut self, at: usize, stage: Stage) -> Stage {
        self.excess = self.excess + self.above(stage.peak) - self.above(self.stages[at].peak);
        self.cost = self.cost + u128::from(stage.cost) - u128::from(self.stages[at].cost);
        for &root in &self.stages[at].roots {
            self.accesses.set(root, at, false);
        }
        for &root in &stage.roots {
            self.accesses.set(root, at, true);
        }
        core::mem::replace(&mut self.stages[at], stage)
    }

    /// Changes what is held, and stores a root. None, and no change, if a stage then lacks what
    /// cannot be brought back.
    pub(super) fn apply(&mut self, changes: &[Change], store: Option<u32>) -> Option<Undo> {
        let mut undo = Undo::default();
        let mut dirty: Vec<usize> = Vec::new();
        if let Some(root) = store.filter(|&root| !self.is_stored[root as usize]) {
            self.is_stored[root as usize] = true;
            undo.store = Some(root);
            self.cost += u128::from(self.model.roots[root as usize].copy.unwrap_or(0));
            // Where it was made again it is copied.
            let mut at = self.model.roots[root as usize].first as usize;
            while let Some(stage) = self.accesses.first_from(root, at).filter(|&at| at < self.stages.len()) {
                dirty.push(stage);
                at = stage + 1;
            }
        }
        for change in changes {
            let size = self.model.roots[change.root as usize].size;
            dirty.extend([change.first - 1, change.last]);
            for at in change.first..=change.last {
                if self.resident.get(change.root, at) == change.hold {
                    continue;
                }
                self.resident.set(change.root, at, change.hold);
                undo.bits.push((change.root, at));
                undo.bytes.push((at, self.base[at], self.stages[at].peak));
                let shift = |bytes: u64| if change.hold { bytes + size } else { bytes - size };
                self.base[at] = shift(self.base[at]);
                if self.accesses.get(change.root, at) {
                    dirty.push(at);
                } else {
                    self.set_peak(at, shift(self.stages[at].peak));
                }
            }
            self.note_begin(change.root, change.first - 1);
            self.note_begin(change.root, change.last);
        }
        dirty.sort_unstable();
        dirty.dedup();
        for at in dirty {
            let Some(stage) = self.evaluate(at) else {
                self.undo(undo);
                return None;
            };
            let before = self.replace(at, stage);
            undo.stages.push((at, before));
        }
        Some(undo)
    }

    fn set_peak(&mut self, at: usize, peak: u64) {
        self.excess = self.excess + self.above(peak) - self.above(self.stages[at].peak);
        self.stages[at].peak = peak;
    }

    /// Takes the last change back.
    pub(super) fn undo(&mut self, undo: Undo) {
        for (at, stage) in undo.stages.into_iter().rev() {
            self.replace(at, stage);
        }
        for &(at, base, peak) in undo.bytes.iter().rev() {
            self.base[at] = base;
            self.set_peak(at, peak);
        }
        for &(root, at) in undo.bits.iter().rev() {
            let bit = self.resident.get(root, at);
            self.resident.set(root, at, !bit);
        }
        for &(root, at) in &undo.bits {
            self.note_begin(root, at - 1);
            self.note_begin(root, at);
        }
        if let Some(root) = undo.store {
            self.is_stored[root as usize] = false;
            self.cost -= u128::from(self.model.roots[root as usize].copy.unwrap_or(0));
        }
    }

    /// Says whether the stage must leave the root behind although it was not given it.
    fn note_begin(&mut self, root: u32, at: usize) {
        if at >= self.begins.len() {
            return;
        }
        let facts = &self.model.roots[root as usize];
        let begins = self.resident.get(root, at + 1)
            && !self.resident.get(root, at)
            && facts.producer != Some(at as u32);
        let list = &mut self.begins[at];
        match (begins, list.iter().position(|&other| other == root)) {
            (true, None) => list.push(root),
            (false, Some(place)) => {
                list.swap_remove(place);
            }
            _ => {}
        }
    }

    /// What a stage does. None if it lacks what cannot be brought back.
    fn evaluate(&mut self, at: usize) -> Option<Stage> {
        let Self { model, resident, is_stored, base, begins, marks, .. } = self;
        let n = model.ops.len();
        marks.stamp += 1;
        let stamp = marks.stamp;
        let mut queue: Vec<u32> = begins[at].clone();
        match model.ops.get(at) {
            Some(facts) => queue.extend(facts.uses.iter().filter(|&&root| !resident.get(root, at))),
            None => {
                let outputs = (0..model.roots.len() as u32).filter(|&root| resident.get(root, n + 1));
                queue.extend(outputs.filter(|&root| !resident.get(root, n)));
            }
        }
        let (mut runs, mut fetches) = (Vec::new(), Vec::new());
        let mut stage = Stage::default();
        while let Some(root) = queue.pop() {
            if marks.needs[root as usize] == stamp {
                continue;
            }
            marks.needs[root as usize] = stamp;
            stage.roots.push(root);
            let facts = &model.roots[root as usize];
            if is_stored[root as usize] {
                fetches.push(root);
                stage.cost = stage.cost.saturating_add(facts.copy?);
                continue;
            }
            let op = facts.producer.filter(|&op| model.ops[op as usize].is_repeatable)?;
            if (op as usize) >= at {
                return None;
            }
            if marks.ops[op as usize] != stamp {
                marks.ops[op as usize] = stamp;
                runs.push(op);
                stage.cost = stage.cost.saturating_add(model.ops[op as usize].cost);
                queue.extend(model.ops[op as usize].uses.iter().filter(|&&root| !resident.get(root, at)));
            }
        }
        runs.sort_unstable();
        if at < n {
            runs.push(at as u32);
        }
        // The last use of each root; in the order of the first use what is fetched.
        for root in stage.roots.drain(..).collect::<Vec<_>>() {
            marks.last[root as usize] = (stamp, 0);
            stage.roots.push(root);
        }
        let mut first: Vec<(u32, u32)> = Vec::new();
        for (place, &op) in runs.iter().enumerate() {
            for &root in &model.ops[op as usize].uses {
                if marks.last[root as usize].0 != stamp {
                    stage.roots.push(root);
                }
                let was_used = marks.last[root as usize].0 == stamp && marks.last[root as usize].1 > 0;
                if !was_used && is_stored[root as usize] && marks.needs[root as usize] == stamp {
                    first.push((place as u32, root));
                }
                marks.last[root as usize] = (stamp, place as u32 + 1);
            }
        }
        let is_unused = |root: &u32| marks.last[*root as usize].1 == 0;
        first.extend(fetches.into_iter().filter(is_unused).map(|root| (u32::MAX, root)));
        let mut first = first.into_iter().peekable();
        let size = |root: u32| model.roots[root as usize].size;
        let mut bytes = base[at];
        stage.peak = bytes;
        for (place, &op) in runs.iter().enumerate() {
            while let Some((_, root)) = first.next_if(|&(of, _)| of == place as u32) {
                stage.items.push(Item::Fetch(root));
                bytes += size(root);
                stage.peak = stage.peak.max(bytes);
            }
            stage.items.push(Item::Run(op));
            let facts = &model.ops[op as usize];
            let is_last = |root: u32| {
                marks.last[root as usize] == (stamp, place as u32 + 1) && !resident.get(root, at + 1)
            };
            let result_bytes: u64 = facts.makes.iter().map(|&root| size(root)).sum();
            stage.peak =
                stage.peak.max(bytes + result_bytes - sum_permit_savings(&facts.permits, is_last, size));
            bytes += result_bytes;
            for &root in &facts.makes {
                let stays = match op as usize == at {
                    true => resident.get(root, at + 1),
                    false => marks.needs[root as usize] == stamp && !is_stored[root as usize],
                };
                if !stays {
                    bytes -= size(root);
                }
                if op as usize == at {
                    stage.roots.push(root);
                }
            }
            bytes -= facts.uses.iter().filter(|&&root| is_last(root)).map(|&root| size(root)).sum::<u64>();
        }
        for (_, root) in first {
            stage.items.push(Item::Fetch(root));
            bytes += size(root);
            stage.peak = stage.peak.max(bytes);
        }
        Some(stage)
    }
}

/// Bytes that results take over from inputs, each input once.
fn sum_permit_savings(permits: &[(u32, u32)], ends: impl Fn(u32) -> bool, size: impl Fn(u32) -> u64) -> u64 {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for &(source, target) in permits {
        if ends(source) && !from.contains(&source) && !to.contains(&target) {
            from.push(source);
            to.push(target);
            bytes += size(target);
        }
    }
    bytes
}
