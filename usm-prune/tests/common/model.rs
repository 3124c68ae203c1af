//! The reference's passes by definition: a walk over the graph answers every question, and every
//! round checks every increment. The fast passes must give the same answers.

use std::collections::HashSet;

use usm_prune::{BlockId, Cfg, OpKind, Options, PruneStats, Value};

const MAX_DEPTH: usize = 15;

pub(crate) struct Model {
    succ: Vec<Vec<usize>>,
    pred: Vec<Vec<usize>>,
    raising: Vec<bool>,
    /// Kind, value and number.
    ops: Vec<Vec<(OpKind, Value, u32)>>,
    roots: Vec<usize>,
}

impl Model {
    pub(crate) fn new(cfg: &Cfg) -> Self {
        let blocks = 0..cfg.len();
        let id = |block: usize| BlockId(block as u32);
        let succ: Vec<Vec<usize>> =
            blocks.clone().map(|block| cfg.successors(id(block)).map(|to| to.0 as usize).collect()).collect();
        let mut pred = vec![Vec::new(); cfg.len()];
        for (from, targets) in succ.iter().enumerate() {
            targets.iter().for_each(|&to| pred[to].push(from));
        }
        let mut ops: Vec<Vec<_>> = blocks
            .clone()
            .map(|block| cfg.ops(id(block)).iter().map(|op| (op.kind, op.value, op.id)).collect())
            .collect();
        ops.iter_mut().for_each(|ops| ops.sort_by_key(|op| op.0 == OpKind::Dec));
        let raising = blocks.map(|block| cfg.is_raising(id(block))).collect();
        let roots = exits(&succ, &pred);
        Self { succ, pred, raising, ops, roots }
    }

    /// The remaining operations in order.
    pub(crate) fn ops(&self, block: usize) -> Vec<u32> {
        self.ops[block].iter().map(|op| op.2).collect()
    }

    pub(crate) fn prune(&mut self, options: &Options) -> PruneStats {
        let mut stats = PruneStats::default();
        if self.succ.is_empty() {
            return stats;
        }
        loop {
            let before = stats;
            if options.passes.per_block {
                stats.per_block += self.per_block();
            }
            if options.passes.diamond {
                stats.diamond += self.diamond();
            }
            if options.passes.fanout {
                stats.fanout += self.fanout(false, options.subgraph_limit);
            }
            if options.passes.fanout_raise {
                stats.fanout_raise += self.fanout(true, options.subgraph_limit);
            }
            if stats == before {
                return stats;
            }
        }
    }

    fn gives(&self, block: usize, value: Value) -> bool {
        self.ops[block].iter().any(|op| (op.0, op.1) == (OpKind::Dec, value))
    }

    fn gives_any(&self, block: usize) -> bool {
        self.ops[block].iter().any(|op| op.0 == OpKind::Dec)
    }

    /// Removes the first decrement of a value.
    fn take(&mut self, block: usize, value: Value) {
        let place = self.ops[block].iter().position(|op| (op.0, op.1) == (OpKind::Dec, value));
        self.ops[block].remove(place.unwrap());
    }

    /// Removes one increment.
    fn drop_increment(&mut self, block: usize, id: u32) {
        self.ops[block].retain(|op| op.2 != id);
    }

    /// Block, value and number of every current increment.
    fn increments(&self) -> Vec<(usize, Value, u32)> {
        let increments = |(block, ops): (usize, &Vec<(OpKind, Value, u32)>)| {
            ops.iter().filter(|op| op.0 == OpKind::Inc).map(move |op| (block, op.1, op.2)).collect::<Vec<_>>()
        };
        self.ops.iter().enumerate().flat_map(increments).collect()
    }

    fn per_block(&mut self) -> usize {
        let mut removed = 0;
        for block in 0..self.ops.len() {
            let before = self.ops[block].len();
            self.ops[block].retain(|op| op.1 != Value::NULL);
            let mut place = self.ops[block].len();
            while place > 0 {
                place -= 1;
                let (kind, value, _) = self.ops[block][place];
                if kind == OpKind::Inc && self.gives(block, value) {
                    self.ops[block].remove(place);
                    self.take(block, value);
                }
            }
            removed += before - self.ops[block].len();
        }
        removed
    }

    fn diamond(&mut self) -> usize {
        let mut removed = 0;
        for (head, value, id) in self.increments() {
            let tail = (0..self.ops.len()).find(|&tail| {
                tail != head
                    && self.gives(tail, value)
                    && cuts(&self.succ, &[0], head, tail)
                    && cuts(&self.pred, &self.roots, tail, head)
                    && self.tails_follow(head, &[tail], &[])
                    && !self.walk(&self.succ, head, tail).into_iter().any(|block| self.gives_any(block))
            });
            if let Some(tail) = tail {
                self.drop_increment(head, id);
                self.take(tail, value);
                removed += 2;
            }
        }
        removed
    }

    /// Blocks reached from `start` without `end`.
    fn walk(&self, next: &[Vec<usize>], start: usize, end: usize) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let mut stack = vec![start];
        while let Some(block) = stack.pop() {
            if block != end && seen.insert(block) {
                stack.extend(&next[block]);
            }
        }
        seen
    }

    fn tails_follow(&self, head: usize, tails: &[usize], raises: &[usize]) -> bool {
        let mut seen = HashSet::new();
        let mut stack = tails.to_vec();
        while let Some(block) = stack.pop() {
            if !seen.insert(block) || !raises.is_empty() && self.raising[block] {
                continue;
            }
            let before = self.pred[block].iter().filter(|&&before| before != head);
            if block == 0 || before.clone().any(|before| tails.contains(before) || raises.contains(before)) {
                return false;
            }
            stack.extend(before);
        }
        true
    }

    fn fanout(&mut self, raising: bool, limit: usize) -> usize {
        let mut removed = 0;
        let mut bad = vec![false; self.ops.len()];
        for (head, value, id) in self.increments() {
            if bad[head] || self.gives_any(head) {
                continue;
            }
            let mut fan = Fan { value, raising, limit, visited: 0, tails: Vec::new(), raises: Vec::new() };
            match fan.search(self, &mut vec![head]) {
                Found::Bad => bad[head] = true,
                Found::Good
                    if !fan.tails.is_empty()
                        && fan.raises.is_empty() != raising
                        && self.tails_follow(head, &fan.tails, &fan.raises) =>
                {
                    self.drop_increment(head, id);
                    fan.tails.iter().for_each(|&tail| self.take(tail, value));
                    removed += 1 + fan.tails.len();
                }
                _ => {}
            }
        }
        removed
    }
}

#[derive(PartialEq)]
enum Found {
    Good,
    Fail,
    Bad,
}

struct Fan {
    value: Value,
    raising: bool,
    limit: usize,
    visited: usize,
    tails: Vec<usize>,
    raises: Vec<usize>,
}

impl Fan {
    /// Continues all paths from the last block of `path`.
    fn search(&mut self, model: &Model, path: &mut Vec<usize>) -> Found {
        let block = *path.last().unwrap();
        if model.succ[block].is_empty() {
            return Found::Fail;
        }
        for &child in &model.succ[block] {
            if path.len() >= MAX_DEPTH {
                return Found::Fail;
            }
            self.visited += 1;
            if self.visited > self.limit || child == path[0] {
                return Found::Bad;
            }
            if path.contains(&child) {
                continue;
            }
            if model.gives(child, self.value) {
                if !self.tails.contains(&child) {
                    self.tails.push(child);
                }
            } else if model.gives_any(child) {
                return Found::Bad;
            } else if self.raising && model.raising[child] {
                if !self.raises.contains(&child) {
                    self.raises.push(child);
                }
            } else {
                path.push(child);
                let found = self.search(model, path);
                path.pop();
                if found != Found::Good {
                    return found;
                }
            }
        }
        Found::Good
    }
}

/// Whether every walk from the roots to `b` passes `a`.
fn cuts(next: &[Vec<usize>], roots: &[usize], a: usize, b: usize) -> bool {
    let reach = |without: Option<usize>| {
        let mut seen = vec![false; next.len()];
        let mut stack = roots.to_vec();
        while let Some(block) = stack.pop() {
            if Some(block) != without && !core::mem::replace(&mut seen[block], true) {
                stack.extend(&next[block]);
            }
        }
        seen
    };
    let reached = reach(None);
    a == b || !reached[b] || reached[a] && !reach(Some(a))[b]
}

/// LLVM's roots of post-dominance: blocks without successors; for blocks that reach none of those,
/// the last block of a walk; without roots that reach another.
fn exits(succ: &[Vec<usize>], pred: &[Vec<usize>]) -> Vec<usize> {
    let mut roots: Vec<usize> = (0..succ.len()).filter(|&block| succ[block].is_empty()).collect();
    let reach = |next: &[Vec<usize>], start: &[usize]| {
        let (mut order, mut stack) = (Vec::new(), start.to_vec());
        while let Some(block) = stack.pop() {
            if !order.contains(&block) {
                order.push(block);
                let mut sorted = next[block].clone();
                sorted.sort_unstable();
                stack.extend(sorted);
            }
        }
        order
    };
    for start in 0..succ.len() {
        if !reach(pred, &roots).contains(&start) {
            roots.push(*reach(succ, &[start]).last().unwrap());
        }
    }
    let mut index = 0;
    while index < roots.len() {
        let others = reach(succ, &succ[roots[index]]);
        if roots.iter().any(|&other| other != roots[index] && others.contains(&other)) {
            roots.swap_remove(index);
        } else {
            index += 1;
        }
    }
    roots
}
