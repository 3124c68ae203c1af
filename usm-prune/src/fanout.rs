//! Removes one increment with a decrement on every path from it.
//!
//! The ends of a head's paths, up to the first releasing blocks, do not depend on the value. One
//! walk serves all increments of a head until one of the end blocks stops releasing. Only then is a
//! head checked again, because nothing else makes a removal possible.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::cfg::{BlockId, OpKind};
use crate::index::{Index, Pick};
use crate::marks::Marks;
use crate::walk::Walker;

/// Maximum number of blocks on one path, head included.
const MAX_DEPTH: usize = 15;

/// The heads that may have a fan, for one of the two passes.
pub(crate) struct Fans {
    /// Whether some paths must raise.
    follows_raises: bool,
    subgraph_limit: usize,
    /// Heads to check.
    pending: BTreeSet<u32>,
    /// At each block, the heads to check when it stops releasing.
    watchers: Vec<Vec<u32>>,
    /// Heads whose increments can never be removed.
    hopeless: Vec<bool>,
    /// Number of cleared and of changed blocks that are processed.
    cleared_count: usize,
    changed_count: usize,
    search: Search,
}

impl Fans {
    pub(crate) fn new(index: &Index<'_>, raises: bool, subgraph_limit: usize) -> Self {
        Self {
            follows_raises: raises,
            subgraph_limit,
            pending: index.increments().iter().map(|&(block, _)| block).collect(),
            watchers: alloc::vec![Vec::new(); index.cfg.len()],
            hopeless: alloc::vec![false; index.cfg.len()],
            cleared_count: index.cleared().len(),
            changed_count: index.changed().len(),
            search: Search::new(index.cfg.len()),
        }
    }

    /// Removes increments with one decrement on every path that follows. A path ends in a block
    /// that releases the value or, in the raising pass, in a block that raises. One pass in
    /// function order. Returns the number of removed operations.
    pub(crate) fn prune(&mut self, index: &mut Index<'_>, walker: &mut Walker) -> usize {
        let mut removed_count = 0;
        let mut next = 0;
        self.follow(index);
        while let Some(&head) = self.pending.range(next..).next() {
            self.pending.remove(&head);
            next = head + 1;
            if !self.hopeless[head as usize] {
                removed_count += self.prune_head(index, walker, head);
                // The pass has already handled its own removals.
                self.changed_count = index.changed().len();
                self.follow(index);
            }
        }
        removed_count
    }

    /// Schedules the heads for which something changed.
    fn follow(&mut self, index: &Index<'_>) {
        for &block in &index.cleared()[self.cleared_count..] {
            self.pending.extend(self.watchers[block as usize].drain(..));
        }
        self.cleared_count = index.cleared().len();
        // An increment that another pass removed may have blocked the next one.
        self.pending.extend(&index.changed()[self.changed_count..]);
        self.changed_count = index.changed().len();
    }

    /// Removes increments of `head` until one is not removable, which blocks those behind it.
    fn prune_head(&mut self, index: &mut Index<'_>, walker: &mut Walker, head: u32) -> usize {
        let mut removed_count = 0;
        'walk: while let Some(mut inc) = index.first_increment(head) {
            if index.has_dec(head) {
                self.watchers[head as usize].push(head);
                break;
            }
            if !self.search.run(index, head, self.follows_raises, self.subgraph_limit) {
                self.hopeless[head as usize] = true;
                break;
            }
            let Search { tails, raises, inner, .. } = &self.search;
            let mut follows = None;
            loop {
                if let Some(&tail) = tails.iter().find(|&&tail| !index.has(OpKind::Dec, tail, inc.value)) {
                    self.watchers[tail as usize].push(head);
                    break 'walk;
                }
                let follows = *follows.get_or_insert_with(|| {
                    !tails.is_empty()
                        && self.follows_raises != raises.is_empty()
                        && walker.tails_follow_head(index, head, tails, raises, Some(inner))
                });
                if !follows {
                    tails.iter().for_each(|&tail| self.watchers[tail as usize].push(head));
                    break 'walk;
                }
                index.steps(1 + tails.len());
                index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
                for &tail in tails {
                    index.remove(OpKind::Dec, tail, inc.value, Pick::First);
                }
                removed_count += 1 + tails.len();
                if tails.iter().any(|&tail| !index.has_dec(tail)) {
                    continue 'walk;
                }
                match index.first_increment(head) {
                    Some(next) => inc = next,
                    None => break 'walk,
                }
            }
        }
        removed_count
    }
}

/// A depth-first search along all paths from a head to the first releasing blocks.
struct Search {
    /// Blocks that release a reference, each once.
    tails: Vec<u32>,
    /// Blocks that raise, each once.
    raises: Vec<u32>,
    /// Blocks on the way, each once.
    inner: Vec<u32>,
    /// The current path: blocks with the number of successors taken.
    path: Vec<(u32, u32)>,
    /// Blocks on one of the lists.
    marks: Marks,
}

impl Search {
    fn new(blocks: usize) -> Self {
        Self {
            tails: Vec::new(),
            raises: Vec::new(),
            inner: Vec::new(),
            path: Vec::new(),
            marks: Marks::new(blocks),
        }
    }

    /// Finds the ends of all paths. False if a path, or the number of paths, makes every removal at
    /// `head` impossible, now and when fewer blocks release.
    fn run(&mut self, index: &Index<'_>, head: u32, raises: bool, subgraph_limit: usize) -> bool {
        self.marks.clear();
        self.tails.clear();
        self.raises.clear();
        self.inner.clear();
        self.path.clear();
        self.path.push((head, 0));
        let mut visit_count = 0usize;
        // A head or inner block without successors ends a path without a release.
        if index.cfg.succ().of(head).is_empty() {
            return false;
        }
        while let Some((block, edge_count)) = self.path.last_mut() {
            let Some(&child) = index.cfg.succ().of(*block).get(*edge_count as usize) else {
                self.path.pop();
                continue;
            };
            *edge_count += 1;
            visit_count += 1;
            index.step();
            if self.path.len() >= MAX_DEPTH || visit_count > subgraph_limit || child == head {
                return false;
            }
            if self.path.iter().any(|&(on_path, _)| on_path == child) {
                continue;
            }
            let list = if index.has_dec(child) {
                &mut self.tails
            } else if raises && index.cfg.is_raising(BlockId(child)) {
                &mut self.raises
            } else if index.cfg.succ().of(child).is_empty() {
                return false;
            } else {
                self.path.push((child, 0));
                &mut self.inner
            };
            if self.marks.insert(child) {
                list.push(child);
            }
        }
        true
    }
}
