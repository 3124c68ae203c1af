//! The records of a [`FixedPool`](super::FixedPool): they tile a region by address. Free ones are
//! also in a list for each class of sizes, four classes a power of two; live ones in a chain by the
//! hash of their address. No two free neighbours stay apart. A call looks at a fixed number of
//! blocks, however many there are.

use core::alloc::Layout;

use crate::error::{ErrorKind, Result};
use crate::{AllocKind, MemoryType};

const NONE: u32 = u32::MAX;

/// Blocks end at multiples of this address, and the region's end (bytes).
const UNIT: usize = 16;

const CLASSES: u32 = u128::BITS;

/// Classes that a search looks at, and blocks of each, before it takes one that fits for sure.
const LOOKS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Vacant,
    Free,
    Live,
}

/// The record of one block. A [`FixedPool`](super::FixedPool) needs two for each block that is live
/// at once.
#[derive(Clone, Copy, Debug)]
pub struct FixedNode {
    start: usize,
    size: usize,
    /// As requested, of a live block.
    bytes: usize,
    /// Neighbours by address.
    before: u32,
    after: u32,
    /// Neighbours in the list of a class; of a live block only the next of its chain.
    previous: u32,
    next: u32,
    /// The first block of the chain whose hash is this record's index.
    chain: u32,
    state: State,
    kind: AllocKind,
}

impl FixedNode {
    /// A record without a block.
    pub const VACANT: Self = Self {
        start: 0,
        size: 0,
        bytes: 0,
        before: NONE,
        after: NONE,
        previous: NONE,
        next: NONE,
        chain: NONE,
        state: State::Vacant,
        kind: AllocKind::Unknown,
    };

    fn end(&self) -> usize {
        self.start + self.size
    }

    /// Where a request lies in the block, and where it ends.
    fn fit(&self, layout: Layout) -> Option<(usize, usize)> {
        let start = self.start.checked_next_multiple_of(layout.align())?;
        let end = start.checked_add(layout.size())?;
        (end <= self.end()).then_some((start, end))
    }
}

/// The class of a size. The last one has no upper limit.
fn class_of(size: usize) -> u32 {
    let units = size / UNIT;
    if units < 4 {
        return units as u32;
    }
    let power = units.ilog2();
    ((power - 1) * 4 + ((units >> (power - 2)) & 3) as u32).min(CLASSES - 1)
}

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveBlock {
    pub(super) start: usize,
    pub(super) bytes: usize,
    pub(super) kind: AllocKind,
}

/// The state of a pool beside its records, which each call gets.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Which lists have blocks.
    full: u128,
    heads: [u32; CLASSES as usize],
    vacant: u32,
    live: usize,
}

impl Blocks {
    /// One free block, from `start`. All records become the pool's.
    pub(super) fn new(nodes: &mut [FixedNode], start: usize, size: usize) -> Self {
        let mut blocks = Self { full: 0, heads: [NONE; CLASSES as usize], vacant: NONE, live: 0 };
        let count = nodes.len().min(NONE as usize);
        for index in (0..count).rev() {
            nodes[index] = FixedNode { next: blocks.vacant, ..FixedNode::VACANT };
            blocks.vacant = index as u32;
        }
        if size > 0 {
            if let Some(node) = blocks.take_vacant(nodes, start, size) {
                blocks.list(nodes, node);
            }
        }
        blocks
    }

    /// Blocks that are live.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn allocate(
        &mut self,
        nodes: &mut [FixedNode],
        layout: Layout,
        kind: AllocKind,
    ) -> Result<usize> {
        let limit = nodes.len() / 2;
        if self.live == limit {
            return Err(ErrorKind::TooManyBlocks { limit }.into());
        }
        let Some((mut node, start, end)) = self.search(nodes, layout) else {
            let requested = layout.size() as u64;
            return Err(ErrorKind::OutOfMemory { memory_type: MemoryType::of(kind), requested }.into());
        };
        self.unlist(nodes, node);
        // Fewer live blocks than the limit leave a record for the first split.
        if let Some(rest) = self.split(nodes, node, start) {
            self.list(nodes, node);
            node = rest;
        }
        let all = nodes[node as usize].end();
        let end = end.checked_next_multiple_of(UNIT).map_or(all, |end| end.min(all));
        // Without a record the rest stays with the block.
        if let Some(rest) = self.split(nodes, node, end) {
            self.list(nodes, rest);
        }
        let chain = chain_of(nodes, start);
        let next = core::mem::replace(&mut nodes[chain].chain, node);
        let block = &mut nodes[node as usize];
        (block.state, block.next, block.bytes, block.kind) = (State::Live, next, layout.size(), kind);
        self.live += 1;
        Ok(start)
    }

    /// Takes a block back. False, and nothing changes, if no live block starts there.
    pub(super) fn free(&mut self, nodes: &mut [FixedNode], start: usize) -> bool {
        if nodes.is_empty() {
            return false;
        }
        let chain = chain_of(nodes, start);
        let (mut before, mut node) = (NONE, nodes[chain].chain);
        while node != NONE && nodes[node as usize].start != start {
            (before, node) = (node, nodes[node as usize].next);
        }
        if node == NONE {
            return false;
        }
        let next = nodes[node as usize].next;
        match before {
            NONE => nodes[chain].chain = next,
            before => nodes[before as usize].next = next,
        }
        self.live -= 1;
        let FixedNode { before, after, .. } = nodes[node as usize];
        let is_free = |other: u32| other != NONE && nodes[other as usize].state == State::Free;
        let (joins_before, joins_after) = (is_free(before), is_free(after));
        if joins_after {
            self.unlist(nodes, after);
            self.swallow(nodes, node, after);
        }
        if joins_before {
            self.unlist(nodes, before);
            self.swallow(nodes, before, node);
            node = before;
        }
        self.list(nodes, node);
        true
    }

    /// The live block that contains an address. Looks at all of them.
    pub(super) fn find(nodes: &[FixedNode], address: usize) -> Option<LiveBlock> {
        let holds = |node: &&FixedNode| {
            node.state == State::Live && address.checked_sub(node.start).is_some_and(|at| at < node.bytes)
        };
        let FixedNode { start, bytes, kind, .. } = *nodes.iter().find(holds)?;
        Some(LiveBlock { start, bytes, kind })
    }

    /// A free block that fits, and where the request lies in it.
    fn search(&self, nodes: &[FixedNode], layout: Layout) -> Option<(u32, usize, usize)> {
        let mut class = class_of(layout.size());
        for _ in 0..LOOKS {
            class = self.next_full(class)?;
            let mut node = self.heads[class as usize];
            for _ in 0..LOOKS {
                let Some(block) = nodes.get(node as usize) else { break };
                if let Some((start, end)) = block.fit(layout) {
                    return Some((node, start, end));
                }
                node = block.next;
            }
            class += 1;
        }
        // Each block of the next class has room for any address.
        let any = layout.size().checked_add(layout.align() - 1)?;
        let node = self.heads[self.next_full(class_of(any) + 1)? as usize];
        nodes[node as usize].fit(layout).map(|(start, end)| (node, start, end))
    }

    /// The first class from this one on that has blocks.
    fn next_full(&self, class: u32) -> Option<u32> {
        let rest = self.full.checked_shr(class).filter(|rest| *rest != 0)?;
        Some(class + rest.trailing_zeros())
    }

    fn take_vacant(&mut self, nodes: &mut [FixedNode], start: usize, size: usize) -> Option<u32> {
        let node = self.vacant;
        let record = nodes.get_mut(node as usize)?;
        self.vacant = record.next;
        *record = FixedNode { start, size, chain: record.chain, ..FixedNode::VACANT };
        Some(node)
    }

    /// Splits a block that is in no list. Returns the part from `at` on, if there is one, and a
    /// record for it.
    fn split(&mut self, nodes: &mut [FixedNode], node: u32, at: usize) -> Option<u32> {
        let FixedNode { start, after, .. } = nodes[node as usize];
        let end = nodes[node as usize].end();
        if at == start || at == end {
            return None;
        }
        let rest = self.take_vacant(nodes, at, end - at)?;
        (nodes[rest as usize].before, nodes[rest as usize].after) = (node, after);
        (nodes[node as usize].size, nodes[node as usize].after) = (at - start, rest);
        if let Some(after) = nodes.get_mut(after as usize) {
            after.before = rest;
        }
        Some(rest)
    }

    /// Joins a block with the next one. Neither is in a list.
    fn swallow(&mut self, nodes: &mut [FixedNode], node: u32, next: u32) {
        let FixedNode { size, after, chain, .. } = nodes[next as usize];
        nodes[next as usize] = FixedNode { next: self.vacant, chain, ..FixedNode::VACANT };
        self.vacant = next;
        nodes[node as usize].size += size;
        nodes[node as usize].after = after;
        if let Some(after) = nodes.get_mut(after as usize) {
            after.before = node;
        }
    }

    /// Puts a block into the list of its class.
    fn list(&mut self, nodes: &mut [FixedNode], node: u32) {
        let class = class_of(nodes[node as usize].size);
        let next = core::mem::replace(&mut self.heads[class as usize], node);
        let block = &mut nodes[node as usize];
        (block.state, block.bytes, block.previous, block.next) = (State::Free, 0, NONE, next);
        if let Some(next) = nodes.get_mut(next as usize) {
            next.previous = node;
        }
        self.full |= 1 << class;
    }

    fn unlist(&mut self, nodes: &mut [FixedNode], node: u32) {
        let FixedNode { size, previous, next, .. } = nodes[node as usize];
        if let Some(next) = nodes.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(previous) = nodes.get_mut(previous as usize) {
            previous.next = next;
            return;
        }
        let class = class_of(size);
        self.heads[class as usize] = next;
        if next == NONE {
            self.full &= !(1 << class);
        }
    }

    /// Panics with what is wrong.
    pub(super) fn check(&self, nodes: &[FixedNode], start: usize, size: usize) {
        let (mut at, mut used, mut live, mut free) = (start, 0, 0, 0);
        let first = nodes.iter().position(|node| node.state != State::Vacant && node.before == NONE);
        let mut before = NONE;
        let mut next = first.map_or(NONE, |first| first as u32);
        while let Some(node) = nodes.get(next as usize) {
            assert_eq!((node.start, node.before), (at, before), "record {next}");
            let is_free = node.state == State::Free;
            assert!(
                before == NONE || !is_free || nodes[before as usize].state != State::Free,
                "two free neighbours"
            );
            assert!(node.size >= node.bytes && node.size > 0, "record {next}");
            (used, live, free) = (used + 1, live + usize::from(!is_free), free + usize::from(is_free));
            (at, before, next) = (node.end(), next, node.after);
        }
        assert_eq!((at, live), (start + size, self.live));
        let mut list_len = 0;
        for (class, head) in self.heads.iter().enumerate() {
            assert_eq!(self.full >> class & 1 == 1, *head != NONE, "class {class}");
            let mut next = *head;
            while let Some(node) = nodes.get(next as usize) {
                assert_eq!((node.state, class_of(node.size) as usize), (State::Free, class));
                (list_len, next) = (list_len + 1, node.next);
            }
        }
        let vacant = nodes.iter().filter(|node| node.state == State::Vacant).count();
        assert_eq!((list_len, used + vacant), (free, nodes.len()));
    }
}

/// The record whose chain has the block that starts here.
fn chain_of(nodes: &[FixedNode], start: usize) -> usize {
    let hash = ((start / UNIT) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((hash * nodes.len() as u64) >> 32) as usize
}
