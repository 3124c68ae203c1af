//! Sets of increments and decrements that cancel on every path, across branches and joins.
//!
//! A *web* of a value is the least set of its operations with two properties: every path that
//! leaves a source meets a sink before a forbidden operation, and every path to a sink comes from a
//! source. Sources and sinks then alternate on every path, so removing all of them keeps the net
//! count of every path. An operation of a source's kind inside the region stays. There are two
//! kinds:
//!
//! - increments to decrements: the count is lower in between, so no other release may occur there;
//! - decrements to increments: the count is higher in between, so an object may live longer and
//!   never shorter; any operation may occur there.
//!
//! A web never spans a definition of its value. The definition dominates all operations, so the
//! first path to it has no source; the backward search reaches the entry and gives up. So between
//! the two operations of a path the value is the same object.
//!
//! Only paths from the entry count: unreachable code that leads to a block does not matter.

use alloc::vec::Vec;

use hashbrown::HashMap;

use crate::cfg::{BlockId, Op, OpKind, Value};
use crate::index::{Index, Pick};
use crate::marks::Marks;

/// Steps of all searches of a graph for each of its blocks and operations. Only large graphs need
/// more. A search then ends near its source, after `NEAR` blocks, so that the time stays in
/// proportion to the graph.
const STEPS: usize = 256;
const NEAR: usize = 64;

/// Removes webs of both kinds or, with `raises`, webs from increments to decrements of which some
/// paths raise first. Such a path must not release anything afterwards: it leaked its reference
/// before. Returns the number of removed operations.
pub(crate) fn prune(index: &mut Index<'_>, search: &mut Search, raises: bool) -> usize {
    search.raises.clear();
    if raises {
        search.raises.extend(final_raises(index));
    }
    search.count(index);
    let kinds: &[OpKind] = if raises { &[OpKind::Inc] } else { &[OpKind::Inc, OpKind::Dec] };
    let mut removed_count = 0;
    for &kind in kinds {
        // A block may cross a region twice only within one kind.
        search.has_match = false;
        for block in index.cfg.blocks() {
            let sources: Vec<Op> = index.live(block, kind).collect();
            for source in sources {
                removed_count += remove_web(index, search, kind, block, source.value);
            }
        }
    }
    removed_count
}

fn opposite(kind: OpKind) -> OpKind {
    if kind == OpKind::Inc { OpKind::Dec } else { OpKind::Inc }
}

/// Removes the web with sources of `kind` that contains those of `block`, if there is one.
fn remove_web(index: &mut Index<'_>, search: &mut Search, kind: OpKind, block: u32, value: Value) -> usize {
    let possible = value != Value::NULL
        && search.live.get(&(value, opposite(kind))).is_some_and(|&live| live > 0)
        && index.has(kind, block, value);
    if !possible {
        return 0;
    }
    if !search.is_found_for(index, kind, block, value) {
        search.has_match = search.find(index, kind, block, value);
    }
    if !search.has_match {
        return 0;
    }
    // Of several equal operations of a block, those next to the region.
    for &block in &search.sources {
        index.remove(kind, block, value, Pick::Last);
    }
    for &block in &search.sinks {
        index.remove(opposite(kind), block, value, Pick::First);
    }
    for (kind, op_count) in [(kind, search.sources.len()), (opposite(kind), search.sinks.len())] {
        search.live.entry((value, kind)).and_modify(|live| *live -= op_count);
    }
    search.sources.len() + search.sinks.len()
}

/// The blocks that raise, with no release there or later.
fn final_raises(index: &Index<'_>) -> Vec<bool> {
    let mut gives_back: Vec<bool> = index.cfg.blocks().map(|block| index.has_dec(block)).collect();
    let mut stack: Vec<u32> = index.cfg.blocks().filter(|&block| gives_back[block as usize]).collect();
    while let Some(block) = stack.pop() {
        for &before in index.cfg.pred().of(block) {
            if !core::mem::replace(&mut gives_back[before as usize], true) {
                stack.push(before);
            }
        }
    }
    index
        .cfg
        .blocks()
        .map(|block| index.cfg.is_raising(BlockId(block)) && !gives_back[block as usize])
        .collect()
}

/// The role of a block for a web.
#[derive(PartialEq, Eq)]
enum Role {
    Source,
    Sink,
    /// No relevant operation: the region continues through it.
    Pass,
    /// An operation that the region must not contain.
    Barrier,
}

fn role(index: &Index<'_>, kind: OpKind, block: u32, value: Value) -> Role {
    let inc = index.has(OpKind::Inc, block, value);
    let dec = index.has(OpKind::Dec, block, value);
    match (kind, inc, dec) {
        // Inside a block decrements come last, so another pass removes such a pair.
        (_, true, true) => Role::Barrier,
        (OpKind::Inc, true, false) => {
            if index.has_dec(block) {
                Role::Barrier
            } else {
                Role::Source
            }
        }
        (OpKind::Inc, false, true) => Role::Sink,
        (OpKind::Inc, false, false) => {
            if index.has_dec(block) {
                Role::Barrier
            } else {
                Role::Pass
            }
        }
        (OpKind::Dec, false, true) => Role::Source,
        (OpKind::Dec, true, false) => Role::Sink,
        (OpKind::Dec, false, false) => Role::Pass,
    }
}

/// The search for one web, with marks that are not cleared between searches.
pub(crate) struct Search {
    sources: Vec<u32>,
    sinks: Vec<u32>,
    /// Blocks whose start, and whose end, lie in the region.
    start: Marks,
    end: Marks,
    /// Ends whose successors, and starts whose predecessors, are still to be visited.
    forward: Vec<u32>,
    backward: Vec<u32>,
    /// Blocks at which a path may end by raising.
    raises: Vec<bool>,
    /// Blocks that the entry reaches.
    is_reached: Vec<bool>,
    /// Whether the last search found a web; its sources, sinks and marks are then still valid.
    has_match: bool,
    /// The blocks of every value at the start, sorted by value.
    blocks: Vec<(Value, u32)>,
    /// Number of operations by value and kind.
    live: HashMap<(Value, OpKind), usize>,
    /// Maximum number of blocks of one search, and remaining steps of all searches.
    limit: usize,
    left: usize,
}

impl Search {
    /// `is_reached` has the blocks that the entry reaches; `limit` is the maximum number of blocks
    /// of one search.
    pub(crate) fn new(index: &Index<'_>, is_reached: &[bool], limit: usize) -> Self {
        let blocks = index.cfg.len();
        let ops = index.cfg.blocks().map(|block| index.all(block));
        let mut by_value: Vec<(Value, u32)> = ops.flatten().collect();
        by_value.sort_unstable();
        by_value.dedup();
        Self {
            sources: Vec::new(),
            sinks: Vec::new(),
            start: Marks::new(blocks),
            end: Marks::new(blocks),
            forward: Vec::new(),
            backward: Vec::new(),
            raises: Vec::new(),
            is_reached: is_reached.to_vec(),
            has_match: false,
            left: STEPS.saturating_mul(blocks.saturating_add(by_value.len())),
            blocks: by_value,
            live: HashMap::new(),
            limit,
        }
    }

    /// Counts the remaining operations.
    fn count(&mut self, index: &Index<'_>) {
        self.live.clear();
        for block in index.cfg.blocks() {
            for kind in [OpKind::Inc, OpKind::Dec] {
                for op in index.live(block, kind) {
                    *self.live.entry((op.value, kind)).or_default() += 1;
                }
            }
        }
    }

    /// Whether the last web is also one for `value`. Values come in bundles, and each search may
    /// cross the whole graph. It is, if `value` has the same role in every block of the region, and
    /// only operations of such values were removed since.
    fn is_found_for(&self, index: &Index<'_>, kind: OpKind, block: u32, value: Value) -> bool {
        if !self.has_match || self.sources.first() != Some(&block) {
            return false;
        }
        let plays = |blocks: &[u32], expected: Role| {
            blocks.iter().all(|&block| role(index, kind, block, value) == expected)
        };
        let start = self.blocks.partition_point(|entry| entry.0 < value);
        let own = self.blocks[start..].iter().take_while(|entry| entry.0 == value);
        let in_region = |block| self.start.contains(block) || self.end.contains(block);
        let meets = own.filter(|entry| {
            let live = index.has(OpKind::Inc, entry.1, value) || index.has(OpKind::Dec, entry.1, value);
            live && in_region(entry.1)
        });
        meets.count() == self.sources.len() + self.sinks.len()
            && plays(&self.sources, Role::Source)
            && plays(&self.sinks, Role::Sink)
    }

    /// Whether the operations of `kind` in `block` belong to a web; stores its members.
    fn find(&mut self, index: &Index<'_>, kind: OpKind, block: u32, value: Value) -> bool {
        if role(index, kind, block, value) != Role::Source {
            return false;
        }
        self.start.clear();
        self.end.clear();
        self.sources.clear();
        self.sinks.clear();
        self.forward.clear();
        self.backward.clear();
        self.include_end(block);
        self.sources.push(block);
        // Near the source there are always enough steps.
        let limit = self.limit.min(self.left.max(NEAR));
        let mut steps = 0;
        loop {
            if let Some(block) = self.forward.pop() {
                let next = index.cfg.succ().of(block);
                // A path that ends inside the region never reaches a sink.
                if next.is_empty() {
                    return false;
                }
                for &next in next {
                    if !self.start.contains(next) && !self.include_start(index, kind, next, value) {
                        return false;
                    }
                }
            } else if let Some(block) = self.backward.pop() {
                for &before in index.cfg.pred().of(block) {
                    if self.end.contains(before) {
                        continue;
                    }
                    // No path from the entry comes this way.
                    if self.is_reached[block as usize] && !self.is_reached[before as usize] {
                        continue;
                    }
                    match role(index, kind, before, value) {
                        Role::Source => {
                            self.include_end(before);
                            self.sources.push(before);
                        }
                        Role::Pass if self.include_start(index, kind, before, value) => {}
                        _ => return false,
                    }
                }
            } else {
                // A source whose start lies in the region is none: the region continues through it.
                self.sources.retain(|&source| !self.start.contains(source));
                return !self.sources.is_empty() && !self.sinks.is_empty();
            }
            steps += 1;
            self.left = self.left.saturating_sub(1);
            index.step();
            if steps > limit {
                return false;
            }
        }
    }

    fn include_end(&mut self, block: u32) {
        if self.end.insert(block) {
            self.forward.push(block);
        }
    }

    /// Adds a block's start to the region; false if it must not contain it.
    fn include_start(&mut self, index: &Index<'_>, kind: OpKind, block: u32, value: Value) -> bool {
        // The function begins at block 0, without a source before it.
        if block == 0 {
            return false;
        }
        if !self.start.insert(block) {
            return true;
        }
        // Other paths may come here too; their operations stay.
        if self.raises.get(block as usize) == Some(&true) {
            return true;
        }
        match role(index, kind, block, value) {
            Role::Sink => self.sinks.push(block),
            Role::Pass | Role::Source => self.include_end(block),
            Role::Barrier => return false,
        }
        self.backward.push(block);
        true
    }
}
