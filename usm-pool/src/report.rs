//! Reports for people and for tools that read OpenVINO's dumps.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::Error;
use crate::dependency::Queue;
use crate::graph::Graph;
use crate::plan::{Memory, Plan};
use crate::planner::{Options, Strategy, plan};
use crate::problem::Problem;

mod sharing;
pub use sharing::{Sharing, sharing, sharing_table};

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
            own @ Memory::Own(_) => own.name_in(graph),
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
pub struct ComparisonRow {
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
pub fn compare(problem: &Problem, options: &Options<'_>) -> Result<Vec<ComparisonRow>, Error> {
    let one = |strategy: Strategy| {
        let mut options = *options;
        options.strategy = strategy;
        let plan = plan(problem, &options)?;
        Ok(ComparisonRow { strategy, peak: plan.peak, optimal: plan.optimal(), nodes: plan.nodes })
    };
    Strategy::ALL.into_iter().map(one).collect()
}

/// A comparison as a table, with ratios to `lower_bound` (bytes).
#[must_use]
pub fn comparison_table(rows: &[ComparisonRow], queue: Queue, lower_bound: u64) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} queue, lower bound {lower_bound} bytes", queue.name());
    let _ = writeln!(text, "{:16} {:>16} {:>9} {:>10}", "strategy", "peak (bytes)", "ratio", "nodes");
    for row in rows {
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
