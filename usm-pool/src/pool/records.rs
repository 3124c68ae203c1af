//! What a caller states about a pool, and what a pool tells of itself.

use alloc::string::String;
use alloc::vec::Vec;

use super::Reuse;

/// How a pool grows and what it keeps. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Most bytes that the pool holds; `None`: what the context gives.
    pub limit: Option<usize>,
    /// Size of a new segment; 0: a 32nd of what the pool holds, from 2 to 32 MiB. A larger
    /// request gets a segment of its own size, and a pool that cannot grow by a segment tries less.
    pub segment: usize,
    /// Most bytes that stay when blocks return, if a segment is idle; `None`: no limit. The pool
    /// returns idle segments before it grows in any case.
    pub keep: Option<usize>,
    /// Whether blocks may be given out while work of other queues uses them.
    pub reuse: Reuse,
    /// Whether [`PoolStats::peak_live`] counts every moment. Otherwise it is as of the moments at
    /// which a thread's own blocks did not serve it, or somebody asked; all threads then write no
    /// common number.
    pub exact_peak: bool,
}

/// What a pool holds now, and held at most. In bytes, blocks and waits as counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Live blocks, as their owners asked for them.
    pub live: u64,
    /// Segments.
    pub reserved: u64,
    /// Free blocks that nothing uses.
    pub cached: u64,
    /// Free blocks that unfinished operations were last known to use.
    pub pending: u64,
    /// The most of `live`.
    pub peak_live: u64,
    /// The most of `reserved`.
    pub peak_reserved: u64,
    /// Blocks that failed work may still touch: never given out again.
    pub leaked: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Allocations that got a block which unfinished work of another queue used.
    pub waits: u64,
    /// Returns of blocks that were not out, which lenders refuse.
    pub misuses: u64,
}

/// A live block, for reports of what never came back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolBlock {
    /// Number of the allocation, from 1.
    pub id: u64,
    /// Bytes as requested.
    pub bytes: u64,
    /// The tag, or an empty text.
    pub tag: String,
    /// Allocations of the pool since.
    pub age: u64,
}

/// One block of a segment, for pictures and viewers. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockPart {
    /// First byte.
    pub address: u64,
    /// Bytes, up to the next block.
    pub size: u64,
    /// Bytes as requested; 0 of a block without owner.
    pub requested: u64,
    /// What it is.
    pub state: BlockState,
}

/// What a block of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockState {
    /// An owner has it.
    Live,
    /// Free, and nothing uses it.
    Cached,
    /// Free, and unfinished operations were last known to use it.
    Pending,
    /// Failed work may still touch it.
    Leaked,
}

/// One segment of a pool and its blocks, which tile it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSegment {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The blocks, by address.
    pub blocks: Vec<BlockPart>,
}
