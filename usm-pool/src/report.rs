//! Reports for people and for tools that read OpenVINO's dumps.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::Error;
use crate::dependency::Queue;
use crate::graph::Graph;
use crate::plan::{Memory, Plan};
use crate::planner::{Options, Strategy, plan};
use crate::problem::Problem;

/// Why two buffers do or do not share bytes. Buffers by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// They share bytes.
    Shared {
        /// Bytes in common.
        bytes: u64,
    },
    /// They lie in different memories.
    OtherMemory,
    /// Their lives overlap in `[lower, upper)`.
    LiveTogether {
        /// First common instant.
        lower: u64,
        /// First instant after the common ones.
        upper: u64,
    },
    /// No chain of dependencies orders them, so that they may be live together out of order.
    Unordered,
    /// They may share; the plan has put them at different bytes.
    Apart,
    /// One of them has no bytes, or both are the same buffer.
    Trivial,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shared { bytes } => write!(f, "share {bytes} bytes"),
            Self::OtherMemory => f.write_str("lie in different memories"),
            Self::LiveTogether { lower, upper } => write!(f, "are both live in [{lower}, {upper})"),
            Self::Unordered => f.write_str("may be live together: no dependencies order them"),
            Self::Apart => f.write_str("may share, but lie at different bytes"),
            Self::Trivial => f.write_str("have nothing to share"),
        }
    }
}

/// Why buffers `i` and `j` of a plan do or do not share bytes.
#[must_use]
pub fn sharing(problem: &Problem, plan: &Plan, i: usize, j: usize) -> Sharing {
    let buffers = problem.buffers();
    let (Some(a), Some(b)) = (buffers.get(i), buffers.get(j)) else { return Sharing::Trivial };
    if i == j || a.size == 0 || b.size == 0 {
        return Sharing::Trivial;
    }
    if plan.placement[i] != plan.placement[j] {
        return Sharing::OtherMemory;
    }
    let low = plan.offsets[i].max(plan.offsets[j]);
    let high = plan.offsets[i].saturating_add(a.size).min(plan.offsets[j].saturating_add(b.size));
    if low < high {
        return Sharing::Shared { bytes: high - low };
    }
    if !problem.conflict(i, j) {
        return Sharing::Apart;
    }
    let (lower, upper) = (a.lower.max(b.lower), a.upper.min(b.upper));
    if lower < upper { Sharing::LiveTogether { lower, upper } } else { Sharing::Unordered }
}

/// A table of all buffers: place, life, buffers that share its bytes, and buffers that cannot
/// because both may be live together.
#[must_use]
pub fn sharing_table(problem: &Problem, plan: &Plan) -> String {
    let mut text = String::from(
        "      id         size       offset  memory  life              shares bytes with | kept apart from\n",
    );
    for (i, buffer) in problem.buffers().iter().enumerate() {
        let (mut with, mut apart) = (Vec::new(), Vec::new());
        for (j, other) in problem.buffers().iter().enumerate() {
            match sharing(problem, plan, i, j) {
                Sharing::Shared { .. } => with.push(other.id),
                Sharing::LiveTogether { .. } | Sharing::Unordered => apart.push(other.id),
                _ => {}
            }
        }
        let mut life = String::new();
        // Writing to a String cannot fail, here and below.
        let _ = write!(life, "[{}, {})", buffer.lower, buffer.upper);
        let _ = write!(
            text,
            "{:>8} {:>12} {:>12}  {:6}  {life:16}  ",
            buffer.id,
            buffer.size,
            plan.offsets[i],
            plan.placement[i].name()
        );
        write_first_ids(&mut text, &with);
        text.push_str(" | ");
        write_first_ids(&mut text, &apart);
        text.push('\n');
    }
    text
}

/// The first ids, and the number of the others.
fn write_first_ids(text: &mut String, ids: &[u64]) {
    const SHOWN: usize = 8;
    for (k, id) in ids.iter().take(SHOWN).enumerate() {
        let _ = write!(text, "{}{id}", if k == 0 { "" } else { " " });
    }
    if ids.len() > SHOWN {
        let _ = write!(text, " and {} more", ids.len() - SHOWN);
    }
    if ids.is_empty() {
        text.push('-');
    }
}

/// The plan with the columns of OpenVINO's memory-pool dump,
/// `pool_type,layout,mem_ptr,mem_type,mem_pool_size,prim_id,unique_id,mem_size`: one row for each
/// tensor. Tensors that begin at the same byte form one record, as large as the largest; `mem_ptr`
/// is the offset in the arena, `layout` the size in bytes (plans know no element types), `prim_id`
/// the operator that writes the tensor.
#[must_use]
pub fn pool_dump_csv(plan: &Plan, graph: Option<&Graph>) -> String {
    let mut records: BTreeMap<(Memory, u64), (u64, Vec<usize>)> = BTreeMap::new();
    for (at, row) in plan.rows.iter().enumerate().filter(|(_, row)| row.size > 0) {
        let record = records.entry((row.memory, row.offset)).or_default();
        record.0 = record.0.max(row.size);
        record.1.push(at);
    }
    let mut text =
        String::from("pool_type,layout,mem_ptr,mem_type,mem_pool_size,prim_id,unique_id,mem_size\n");
    for ((memory, offset), (size, users)) in records {
        let kind = match memory {
            Memory::Device => "usm_device",
            Memory::Host => "usm_host",
        };
        for row in users.into_iter().map(|at| &plan.rows[at]) {
            let writer = graph.and_then(|graph| graph.labels(row.id).1);
            let mut name = String::new();
            match writer {
                Some(writer) => quoted(&mut name, writer),
                None => name.push_str("tensor"),
            }
            let _ = writeln!(
                text,
                "non_padded_pool,bytes:{},{offset:#x},{kind},{size},{name},{},{}",
                row.size, row.id, row.size
            );
        }
    }
    text
}

/// A CSV field: quoted when it holds a comma, a quote or a line break.
pub(crate) fn quoted(text: &mut String, field: &str) {
    if field.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&field.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(field);
    }
}

/// One strategy of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compared {
    /// The strategy.
    pub strategy: Strategy,
    /// Its peak in bytes.
    pub peak: u64,
    /// Whether the peak is proven to be the least possible.
    pub optimal: bool,
    /// Number of search nodes.
    pub nodes: u64,
}

/// Plans the problem with every strategy, `auto` first; the other options are those given.
///
/// # Errors
/// As [`plan`].
pub fn compare(problem: &Problem, options: &Options<'_>) -> Result<Vec<Compared>, Error> {
    let one = |strategy: Strategy| {
        let mut options = *options;
        options.strategy = strategy;
        let plan = plan(problem, &options)?;
        Ok(Compared { strategy, peak: plan.peak, optimal: plan.optimal(), nodes: plan.nodes })
    };
    Strategy::ALL.into_iter().map(one).collect()
}

/// A comparison as a table, with ratios to `lower_bound` (bytes).
#[must_use]
pub fn comparison_table(compared: &[Compared], queue: Queue, lower_bound: u64) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} queue, lower bound {lower_bound} bytes", queue.name());
    let _ = writeln!(text, "{:16} {:>16} {:>9} {:>10}", "strategy", "peak (bytes)", "ratio", "nodes");
    for row in compared {
        let ratio = row.peak as f64 / lower_bound.max(1) as f64;
        let proof = if row.optimal { "  optimal" } else { "" };
        let _ = writeln!(
            text,
            "{:16} {:>16} {ratio:>8.4}x {:>10}{proof}",
            row.strategy.name(),
            row.peak,
            row.nodes
        );
    }
    text
}
