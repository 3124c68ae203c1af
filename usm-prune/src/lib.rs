#![no_std]
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
// Files that tests and benchmarks share name the crate as a user does.
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

/// Which passes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Pairs inside a block, and operations on null.
    pub per_block: bool,
    /// Pairs in two blocks that always run together.
    pub diamond: bool,
    /// One increment against a decrement on every path.
    pub fanout: bool,
    /// As fanout, where some paths raise.
    pub fanout_raise: bool,
}

impl Passes {
    /// All four.
    pub const ALL: Self = Self { per_block: true, diamond: true, fanout: true, fanout_raise: true };
    /// None: only the order of operations within blocks changes.
    pub const NONE: Self = Self { per_block: false, diamond: false, fanout: false, fanout_raise: false };

    /// Reads a comma-separated list of `per_bb`, `diamond`, `fanout`, `fanout_raise` and `all`, the
    /// spelling of `NUMBA_LLVM_REFPRUNE_FLAGS`; gives the first unknown name back.
    pub fn parse(list: &str) -> Result<Self, &str> {
        let mut passes = Self::NONE;
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "per_bb" => passes.per_block = true,
                "diamond" => passes.diamond = true,
                "fanout" => passes.fanout = true,
                "fanout_raise" => passes.fanout_raise = true,
                "all" => passes = Self::ALL,
                unknown => return Err(unknown),
            }
        }
        Ok(passes)
    }
}

/// How far pruning goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Pairs inside a block only, as before llvmlite had a pass: `NUMBA_LLVM_REFPRUNE_PASS=0`.
    Legacy,
    /// The pass of llvmlite: same operations removed, same statistics.
    #[default]
    Reference,
    /// Pairs inside blocks and webs, which cover diamonds and fans, and also increments that join
    /// before a decrement, loops and large regions. Unlike the reference this keeps the net count
    /// of every path that passes no raising block also where the increment's block can repeat
    /// before the decrement; without `fanout_raise` of every path.
    Extended,
}

/// How to prune. The default is that of the reference: all passes, a subgraph limit of 1000.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How far.
    pub method: Method,
    /// Which passes of the reference run; the legacy method has only its own.
    pub passes: Passes,
    /// Steps after which the search of the two fanout passes gives up on a block.
    pub subgraph_limit: usize,
    /// Blocks after which the search for one web gives up. All searches together take steps in
    /// proportion to the graph; when those are used up, on large graphs only, each gives up near
    /// where it began.
    pub web_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { method: Method::Reference, passes: Passes::ALL, subgraph_limit: 1000, web_limit: 10_000 }
    }
}

/// Operations removed by each pass.
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
    /// Increments and decrements of webs; always 0 for the reference.
    pub web: usize,
    /// As web, where some paths raise.
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

/// Removes what cancels out. The graph is normalised first, also when no pass is selected: in a
/// block with an increment, decrements move behind increments.
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
        // What is left in a block then has no partner there, ever: once is enough.
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

/// The passes of llvmlite, in turns until nothing changes: a removal may enable another.
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

/// Pairs of blocks that always run together, and what takes a search: webs.
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
