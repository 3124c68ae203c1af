//! One increment against a decrement on every path that leaves it.
//!
//! Where a head's paths lead until something is given back does not depend on the value: one walk
//! serves all increments of a head, until one of the blocks where it ended gives nothing back any
//! more. A head is looked at again only after that, because nothing else turns a no into a yes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::cfg::{BlockId, OpKind};
use crate::index::{Index, Pick};
use crate::marks::Marks;
use crate::walk::Walker;

/// Blocks on one path, the head included, at which the search gives up.
const MAX_DEPTH: usize = 15;

/// The heads that may have a fan, of one of the two passes.
pub(crate) struct Fans {
    /// Whether some paths must raise.
    raising: bool,
    subgraph_limit: usize,
    /// Heads to look at.
    pending: BTreeSet<u32>,
    /// At each block, the heads to look at when it gives nothing back any more.
    watched: Vec<Vec<u32>>,
    /// Heads no increment of which can ever be removed.
    hopeless: Vec<bool>,
    /// How many of the cleared and of the changed blocks are accounted for.
    cleared: usize,
    changed: usize,
    search: Search,
}

impl Fans {
    pub(crate) fn new(index: &Index<'_>, raising: bool, subgraph_limit: usize) -> Self {
        Self {
            raising,
            subgraph_limit,
            pending: index.increments().iter().map(|&(block, _)| block).collect(),
            watched: alloc::vec![Vec::new(); index.cfg.len()],
            hopeless: alloc::vec![false; index.cfg.len()],
            cleared: index.cleared().len(),
            changed: index.changed().len(),
            search: Search::new(index.cfg.len()),
        }
    }

    /// Removes increments with one decrement on every path that follows: paths end in a block that
    /// gives the value back, or, in the pass for that, in a block that raises. One pass in function
    /// order. Returns how many operations were removed.
    pub(crate) fn prune(&mut self, index: &mut Index<'_>, walker: &mut Walker) -> usize {
        let mut removed = 0;
        let mut next = 0;
        self.follow(index);
        while let Some(&head) = self.pending.range(next..).next() {
            self.pending.remove(&head);
            next = head + 1;
            if !self.hopeless[head as usize] {
                removed += self.prune_head(index, walker, head);
                // Its own removals leave nothing to do there.
                self.changed = index.changed().len();
                self.follow(index);
            }
        }
        removed
    }

    /// Notes the heads for which something changed.
    fn follow(&mut self, index: &Index<'_>) {
        for &block in &index.cleared()[self.cleared..] {
            self.pending.extend(self.watched[block as usize].drain(..));
        }
        self.cleared = index.cleared().len();
        // One that was removed by another pass may have been what held back the next.
        self.pending.extend(&index.changed()[self.changed..]);
        self.changed = index.changed().len();
    }

    /// Removes increments of `head` until one cannot go: it holds back those behind it.
    fn prune_head(&mut self, index: &mut Index<'_>, walker: &mut Walker, head: u32) -> usize {
        let mut removed = 0;
        'walk: while let Some(mut inc) = index.first_increment(head) {
            if index.has_dec(head) {
                self.watched[head as usize].push(head);
                break;
            }
            if !self.search.run(index, head, self.raising, self.subgraph_limit) {
                self.hopeless[head as usize] = true;
                break;
            }
            let Search { tails, raises, inner, .. } = &self.search;
            let mut follows = None;
            loop {
                if let Some(&tail) = tails.iter().find(|&&tail| !index.has(OpKind::Dec, tail, inc.value)) {
                    self.watched[tail as usize].push(head);
                    break 'walk;
                }
                let follows = *follows.get_or_insert_with(|| {
                    !tails.is_empty()
                        && self.raising != raises.is_empty()
                        && walker.tails_follow_head(index, head, tails, raises, Some(inner))
                });
                if !follows {
                    tails.iter().for_each(|&tail| self.watched[tail as usize].push(head));
                    break 'walk;
                }
                index.steps(1 + tails.len());
                index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
                for &tail in tails {
                    index.remove(OpKind::Dec, tail, inc.value, Pick::First);
                }
                removed += 1 + tails.len();
                if tails.iter().any(|&tail| !index.has_dec(tail)) {
                    continue 'walk;
                }
                match index.first_increment(head) {
                    Some(next) => inc = next,
                    None => break 'walk,
                }
            }
        }
        removed
    }
}

/// A depth-first search along all paths from a head to what gives a reference back.
struct Search {
    /// Blocks that give something back, each once.
    tails: Vec<u32>,
    /// Blocks that raise, each once.
    raises: Vec<u32>,
    /// Blocks on the way, each once.
    inner: Vec<u32>,
    /// Blocks of the current path, with the number of successors taken.
    path: Vec<(u32, u32)>,
    /// Blocks that are on one of the lists.
    seen: Marks,
}

impl Search {
    fn new(blocks: usize) -> Self {
        Self {
            tails: Vec::new(),
            raises: Vec::new(),
            inner: Vec::new(),
            path: Vec::new(),
            seen: Marks::new(blocks),
        }
    }

    /// Finds the ends of all paths; false when there is a path, or a number of them, because of
    /// which no increment of `head` can be removed, now or when fewer blocks give something back.
    fn run(&mut self, index: &Index<'_>, head: u32, raising: bool, subgraph_limit: usize) -> bool {
        self.seen.clear();
        self.tails.clear();
        self.raises.clear();
        self.inner.clear();
        self.path.clear();
        self.path.push((head, 0));
        let mut visited = 0usize;
        // A head or inner block without successors ends a path without giving the value back.
        if index.cfg.succ().of(head).is_empty() {
            return false;
        }
        while let Some((block, taken)) = self.path.last_mut() {
            let Some(&child) = index.cfg.succ().of(*block).get(*taken as usize) else {
                self.path.pop();
                continue;
            };
            *taken += 1;
            visited += 1;
            index.step();
            if self.path.len() >= MAX_DEPTH || visited > subgraph_limit || child == head {
                return false;
            }
            if self.path.iter().any(|&(on_path, _)| on_path == child) {
                continue;
            }
            let list = if index.has_dec(child) {
                &mut self.tails
            } else if raising && index.cfg.is_raising(BlockId(child)) {
                &mut self.raises
            } else if index.cfg.succ().of(child).is_empty() {
                return false;
            } else {
                self.path.push((child, 0));
                &mut self.inner
            };
            if self.seen.insert(child) {
                list.push(child);
            }
        }
        true
    }
}
