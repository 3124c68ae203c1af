//! The JSON document of `usm plan`. Keys of unrequested parts are absent.

use serde::Serialize;
use usm_pool::plan::MemoryUse;
use usm_pool::planner::pareto::Tradeoff;
use usm_pool::report::ComparisonRow;
use usm_pool::{Certificate, Graph, Plan};

use crate::Outcome;
use crate::clock::StopReason;
use crate::error::{Error, Result};
use crate::proof::ProvenBound;

#[derive(Serialize)]
/// The JSON document of a plan, for `serde_json`.
#[allow(missing_debug_implementations, reason = "it borrows the outcome, which has one")]
pub struct Report<'a> {
    buffers: usize,
    lower_bound: u64,
    peak: Option<u64>,
    naive: u64,
    optimal: bool,
    /// If `optimal`: "proven" by a checked certificate or proof, or "claimed" by the search.
    optimality: Option<&'static str>,
    /// Whether no other order of the operators has a lower peak.
    order_optimal: bool,
    /// "proven" or "heuristic"; null if no order was searched for.
    order_optimality: Option<&'static str>,
    /// No order has a lower peak than this; null if no order was searched for.
    order_bound: Option<u64>,
    feasible: bool,
    strategy: &'static str,
    seconds: f64,
    /// The reason of an early stop: "time" or "interrupt".
    stopped: Option<&'static str>,
    queue: &'static str,
    certificate: CertificateReport<'a>,
    ordering_edges: Vec<[&'a str; 2]>,
    /// With memories in the graph: what operators read and write, by the cost of a byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// No other choice of memories for these buffers costs less.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_bound: Option<u64>,
    memories: Vec<MemoryReport<'a>>,
    spilled: &'a [u64],
    /// With --reorder: the names of the operators in their new order.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<&'a str>>,
    /// With --curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<Vec<PointReport>>,
    /// With --compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategies: Option<Vec<StrategyReport>>,
    /// With --proof: what the file proves.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofReport>,
}

/// The JSON document of a proof, for `serde_json`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProofReport {
    buffers: usize,
    bound: u64,
    lines: usize,
}

impl From<ProvenBound> for ProofReport {
    fn from(bound_proof: ProvenBound) -> Self {
        let ProvenBound { bound, lines, buffers } = bound_proof;
        Self { buffers, bound, lines }
    }
}

#[derive(Serialize)]
struct PointReport {
    edges: usize,
    bound: u64,
    peak: u64,
    critical_path: u64,
}

#[derive(Serialize)]
struct StrategyReport {
    strategy: &'static str,
    peak: u64,
    optimal: bool,
    nodes: u64,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CertificateReport<'a> {
    TimeCut {
        time: u64,
        buffers: &'a [u64],
        names: Vec<Option<&'a str>>,
    },
    Antichain {
        buffers: &'a [u64],
        names: Vec<Option<&'a str>>,
    },
    /// A claim without a check.
    Search {
        nodes: u64,
        capacity: u64,
        claim: bool,
    },
}

#[derive(Serialize)]
struct MemoryReport<'a> {
    memory: &'a str,
    peak: u64,
    buffers: usize,
    /// With memories in the graph.
    #[serde(flatten)]
    own: Option<OwnReport<'a>>,
}

#[derive(Serialize)]
struct OwnReport<'a> {
    capacity: u64,
    cost: u64,
    lower_bound: u64,
    optimal: bool,
    certificate: CertificateReport<'a>,
}

impl<'a> MemoryReport<'a> {
    fn of(plan: &'a Plan, at: usize, graph: Option<&'a Graph>) -> Self {
        let MemoryUse { memory, peak, buffers, .. } = plan.memories[at];
        let own = plan.memory_plan.as_ref().zip(graph).map(|(placement, of)| {
            let (lower_bound, certificate) = &placement.bounds[at];
            OwnReport {
                capacity: of.memories()[at].capacity,
                cost: of.memories()[at].cost,
                lower_bound: *lower_bound,
                optimal: *lower_bound == peak,
                certificate: CertificateReport::of(certificate, graph),
            }
        });
        Self { memory: memory.name_in(graph), peak, buffers, own }
    }
}

impl<'a> Report<'a> {
    /// The document as text, on one line.
    ///
    /// No known error: every key is text.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::unable(format!("no JSON: {error}")))
    }

    /// The document of an outcome.
    #[must_use]
    pub fn of(outcome: &'a Outcome) -> Self {
        let Outcome {
            graph,
            plan,
            seconds,
            stop_reason: stopped,
            reorder: reordered,
            curve,
            comparison: compared,
            proof,
            ..
        } = outcome;
        let feasible = plan.feasible();
        let name = |op: usize| {
            graph.as_ref().and_then(|graph| graph.ops().get(op)).map_or("", |op| op.name.as_str())
        };
        Self {
            buffers: plan.buffers(),
            lower_bound: plan.lower_bound,
            peak: feasible.then_some(plan.peak),
            naive: plan.naive,
            optimal: feasible && plan.optimal(),
            optimality: (feasible && plan.optimal())
                .then(|| if outcome.is_claim() { "claimed" } else { "proven" }),
            order_optimal: outcome.is_best_order(),
            order_optimality: outcome.order_optimality(),
            order_bound: outcome.every_order.as_ref().map(|bound| bound.bytes),
            feasible,
            strategy: plan.strategy.name(),
            seconds: *seconds,
            stopped: stopped.map(StopReason::name),
            queue: plan.queue.name(),
            certificate: CertificateReport::of(&plan.certificate, graph.as_ref()),
            ordering_edges: plan.ordering_edges.iter().map(|&(a, b)| [name(a), name(b)]).collect(),
            cost: plan.memory_plan.as_ref().map(|placement| placement.cost),
            cost_bound: plan.memory_plan.as_ref().map(|placement| placement.cost_bound),
            memories: (0..plan.memories.len())
                .filter(|_| feasible)
                .map(|at| MemoryReport::of(plan, at, graph.as_ref()))
                .collect(),
            spilled: if feasible { &plan.spilled } else { &[] },
            order: graph
                .as_ref()
                .filter(|_| reordered.is_some())
                .map(|graph| graph.ops().iter().map(|op| op.name.as_str()).collect()),
            curve: curve.as_ref().map(|curve| curve.iter().map(PointReport::of).collect()),
            strategies: compared.as_ref().map(|rows| rows.iter().map(StrategyReport::of).collect()),
            proof: proof.as_ref().map(|(_, bound_proof)| ProofReport::from(*bound_proof)),
        }
    }
}

impl<'a> CertificateReport<'a> {
    fn of(certificate: &'a Certificate, graph: Option<&'a Graph>) -> Self {
        let name = |&id: &u64| graph?.tensors()[graph?.tensor_index(id)?].name.as_deref();
        let names = |buffers: &[u64]| buffers.iter().map(name).collect();
        match certificate {
            Certificate::TimeCut { time, buffers } => {
                Self::TimeCut { time: *time, buffers, names: names(buffers) }
            }
            Certificate::Antichain { buffers } => Self::Antichain { buffers, names: names(buffers) },
            Certificate::Search { nodes, capacity } => {
                Self::Search { nodes: *nodes, capacity: *capacity, claim: certificate.is_claim() }
            }
            // The enum may grow; scripts could not check an unknown proof.
            _ => Self::Antichain { buffers: &[], names: Vec::new() },
        }
    }
}

impl PointReport {
    fn of(point: &Tradeoff) -> Self {
        let &Tradeoff { edges, bound, peak, critical_path, .. } = point;
        Self { edges, bound, peak, critical_path }
    }
}

impl StrategyReport {
    fn of(row: &ComparisonRow) -> Self {
        Self { strategy: row.strategy.name(), peak: row.peak, optimal: row.optimal, nodes: row.nodes }
    }
}
