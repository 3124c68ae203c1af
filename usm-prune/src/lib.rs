#![no_std]
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
// Tests and benchmarks share files that name the crate as a user does.
#[cfg(test)]
extern crate self as usm_prune;
#[cfg(test)]
extern crate std;

mod cfg;
mod diamond;
mod dominance;
mod fanout;
#[cfg(test)]
mod growth;
mod index;
mod llvm_lex;
mod llvm_text;
mod loops;
mod marks;
mod near_fan;
mod normalize;
mod per_block;
mod revival;
mod spans;
mod walk;
mod web;

pub use cfg::{BlockId, Cfg, CfgBuilder, CfgError, Op, OpKind, Value};
pub use llvm_text::{PrunedText, TextError, TextErrorKind, prune_llvm};

use diamond::Diamonds;
use fanout::Fans;
use index::Index;
use walk::Walker;

/// The passes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Pairs inside a block, and operations on null.
    pub per_block: bool,
    /// Pairs in two blocks that always run together.
    pub diamond: bool,
    /// One increment against a decrement on every path.
    pub fanout: bool,
    /// As `fanout`, if some paths raise.
    pub fanout_raise: bool,
}

impl Passes {
    /// All four.
    pub const ALL: Self = Self { per_block: true, diamond: true, fanout: true, fanout_raise: true };
    /// None: changes only the order of operations inside blocks.
    pub const NONE: Self = Self { per_block: false, diamond: false, fanout: false, fanout_raise: false };

    /// Reads a comma-separated list of `per_bb`, `diamond`, `fanout`, `fanout_raise` and `all`, the
    /// syntax of `NUMBA_LLVM_REFPRUNE_FLAGS`. The error is the first unknown name.
    pub fn parse(list: &str) -> Result<Self, &str> {
        let mut passes = Self::NONE;
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "per_bb" => passes.per_block = true,
                "diamond" => passes.diamond = true,
                "fanout" => passes.fanout = true,
                "fanout_raise" => passes.fanout_raise = true,
                "all" => passes = Self::ALL,
                error => return Err(error),
            }
        }
        Ok(passes)
    }
}

/// The extent of pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Only pairs inside a block, as before llvmlite had a pass: `NUMBA_LLVM_REFPRUNE_PASS=0`.
    Legacy,
    /// llvmlite's pass: the same removed operations and the same statistics.
    #[default]
    Reference,
    /// Pairs inside blocks, and webs. Webs cover diamonds and fans, and also increments that join
    /// before a decrement, loops and large regions. Unlike the reference, this keeps the net count
    /// of every path without a raising block even if the increment's block can repeat before the
    /// decrement. Without `fanout_raise` it keeps the net count of every path.
    Extended,
}

/// The options of pruning. The defaults are the reference's: all passes, a subgraph limit of 1000.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The method.
    pub method: Method,
    /// The passes of the reference to run. The legacy method has only its own.
    pub passes: Passes,
    /// Maximum number of steps of a fanout search from one block.
    pub subgraph_limit: usize,
    /// Maximum number of blocks of the search for one web. The steps of all searches together are
    /// limited in proportion to the graph. Large graphs may exhaust them; each later search then
    /// stops near its start.
    pub web_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { method: Method::Reference, passes: Passes::ALL, subgraph_limit: 1000, web_limit: 10_000 }
    }
}

/// Numbers of operations that each pass removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneStats {
    /// Pairs inside a block, and operations on null.
    pub per_block: usize,
    /// Pairs in two blocks.
    pub diamond: usize,
    /// Increments and decrements of fans.
    pub fanout: usize,
    /// Increments and decrements of fans with raising paths.
    pub fanout_raise: usize,
    /// Increments and decrements of webs; 0 for the reference.
    pub web: usize,
    /// Increments and decrements of webs with raising paths.
    pub web_raise: usize,
}

impl PruneStats {
    /// All operations removed.
    pub fn total(&self) -> usize {
        self.per_block + self.diamond + self.fanout + self.fanout_raise + self.web + self.web_raise
    }
}

impl core::ops::AddAssign for PruneStats {
    fn add_assign(&mut self, other: Self) {
        self.per_block += other.per_block;
        self.diamond += other.diamond;
        self.fanout += other.fanout;
        self.fanout_raise += other.fanout_raise;
        self.web += other.web;
        self.web_raise += other.web_raise;
    }
}

/// Removes reference operations that cancel out. Normalises the graph first, even if no pass is
/// selected: in a block with an increment, decrements move behind increments.
pub fn prune(cfg: &mut Cfg, options: &Options) -> PruneStats {
    normalize::normalize(cfg);
    let mut stats = PruneStats::default();
    if cfg.is_empty() {
        return stats;
    }
    let mut index = Index::new(cfg);
    prune_index(&mut index, options, &mut stats);
    index.finish();
    stats
}

fn prune_index(index: &mut Index<'_>, options: &Options, stats: &mut PruneStats) {
    if options.method == Method::Legacy {
        stats.per_block = per_block::prune_legacy(index);
        return;
    }
    if options.passes.per_block {
        // The operations that remain in a block never get a partner there, so one pass is enough.
        stats.per_block = per_block::prune(index);
    }
    if index.has_no_pairs() {
        return;
    }
    let mut walker = Walker::new(index.cfg);
    if options.method == Method::Reference {
        prune_reference(index, &mut walker, options, stats);
    } else {
        prune_extended(index, &mut walker, options, stats);
    }
}

/// llvmlite's passes, repeated until nothing changes: one removal may enable another.
fn prune_reference(index: &mut Index<'_>, walker: &mut Walker, options: &Options, stats: &mut PruneStats) {
    let Passes { diamond, fanout, fanout_raise, .. } = options.passes;
    let mut diamonds = diamond.then(|| Diamonds::new(index));
    let mut fans = fanout.then(|| Fans::new(index, false, options.subgraph_limit));
    let mut raising_fans = fanout_raise.then(|| Fans::new(index, true, options.subgraph_limit));
    loop {
        let before = stats.total();
        if let Some(diamonds) = &mut diamonds {
            stats.diamond += diamonds.prune(index, walker);
        }
        if let Some(fans) = &mut fans {
            stats.fanout += fans.prune(index, walker);
        }
        if let Some(fans) = &mut raising_fans {
            stats.fanout_raise += fans.prune(index, walker);
        }
        if stats.total() == before {
            break;
        }
    }
}

/// Pairs of blocks that always run together, then webs, which need a search.
fn prune_extended(index: &mut Index<'_>, walker: &mut Walker, options: &Options, stats: &mut PruneStats) {
    let Passes { diamond, fanout, fanout_raise, .. } = options.passes;
    let mut diamonds = None;
    if diamond || fanout {
        let mut pairs = Diamonds::extended(index);
        stats.web += pairs.prune_all(index, walker);
        stats.web += revival::prune(index);
        diamonds = Some(pairs);
    }
    let mut search = web::Search::new(index, walker.reached(), options.web_limit);
    loop {
        let before = stats.total();
        if let Some(diamonds) = &mut diamonds {
            stats.web += diamonds.prune_all(index, walker);
            stats.web += web::prune(index, &mut search, false);
        }
        if fanout_raise {
            stats.web_raise += web::prune(index, &mut search, true);
        }
        if stats.total() == before {
            break;
        }
    }
}
