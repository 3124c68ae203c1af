//! Describes a plan as text.

use usm_pool::Certificate;
use usm_pool::planner::pareto::Tradeoff;
use usm_pool::report::comparison_table;

use crate::escape::EscapedText;
use crate::output;
use usm_plan::Outcome;
use usm_plan::proof::ProvenBound;

/// The line of the plan that the page shows beside this one.
pub(super) fn describe_beside(outcome: &Outcome, other: &Outcome, title: &str) -> String {
    let ratio = other.plan.peak as f64 / outcome.plan.peak.max(1) as f64;
    format!("  {:<12} {title}: peak {}, {ratio:.3} of this one\n", "beside", output::bytes(other.plan.peak))
}

/// Describes a plan as text.
pub(super) fn describe(outcome: &Outcome) -> String {
    let Outcome { graph, plan, seconds, stop_reason, reorder, every_order, curve, comparison, proof, .. } =
        outcome;
    let mut text = String::new();
    let mut row = |what: &str, value: String| text += &format!("  {what:<12} {value}\n");
    let ops = graph.as_ref().map(|graph| format!("{} operators, ", graph.ops().len())).unwrap_or_default();
    row("problem", format!("{ops}{} buffers, {} queue", plan.buffers(), plan.queue.name()));
    row("plain sum", output::bytes(plan.naive));
    row("lower bound", format!("{}, {}", output::bytes(plan.lower_bound), certificate_text(outcome)));
    if plan.feasible() {
        let quality = match plan.peak {
            _ if plan.is_spread() => "in several memories".to_owned(),
            peak if plan.optimal() => {
                let times = plan.naive as f64 / peak.max(1) as f64;
                let claim = match (outcome.is_claim(), outcome.is_best_order()) {
                    (true, _) => "placement claimed",
                    (false, false) => "placement proven",
                    (false, true) => "order and placement proven",
                };
                let relation = match peak > plan.naive {
                    true => "above the plain sum because of alignments".to_owned(),
                    false => format!("{times:.1} times less than the plain sum"),
                };
                format!("optimal ({claim}), {relation}")
            }
            peak => {
                let above = 100.0 * (peak as f64 / plan.lower_bound.max(1) as f64 - 1.0);
                format!("{above:.2} % above the bound")
            }
        };
        row("peak", format!("{}, {quality}", output::bytes(plan.peak)));
    } else {
        let capacity = plan.capacity.unwrap_or(0);
        let excuse = if plan.lower_bound > capacity { "no plan can" } else { "no plan was found that does" };
        row("peak", format!("{excuse} fit in {}", output::bytes(capacity)));
    }
    let several = plan.memories.len() > 1 || plan.memory_plan.is_some();
    for (at, used) in plan.memories.iter().enumerate().filter(|_| several) {
        let bound =
            plan.memory_plan.as_ref().map_or_else(String::new, |placement| match placement.bounds[at].0 {
                bound if bound == used.peak => ", placement proven".to_owned(),
                bound => format!(", bound {}", output::bytes(bound)),
            });
        let name = EscapedText(used.memory.name_in(graph.as_ref())).to_string();
        row(&name, format!("{}, {} buffers{bound}", output::bytes(used.peak), used.buffers));
    }
    if let Some(placement) = &plan.memory_plan {
        let bound = match placement.cost_bound {
            bound if bound == placement.cost => "the least, proven".to_owned(),
            bound => format!("none of these buffers costs less than {bound}"),
        };
        row("cost", format!("{}, {bound}", placement.cost));
    }
    if !plan.spilled.is_empty() {
        row("spilled", format!("{} buffers to host memory", plan.spilled.len()));
    }
    if !plan.ordering_edges.is_empty() {
        row(
            "order",
            format!("{} edges (earlier, later) that the executor must keep", plan.ordering_edges.len()),
        );
    }
    if let Some(order_found) = reorder {
        let what = if order_found.peak < order_found.peak_before {
            "new order of the operators"
        } else {
            "as given"
        };
        row("order", format!("{what}, bound {} before", output::bytes(order_found.peak_before)));
        if !outcome.is_best_order() {
            let bound = every_order.as_ref().map_or_else(
                || "whether another is lower is not known".to_owned(),
                |bound| format!("no order is below {}", output::bytes(bound.bytes)),
            );
            row("order", format!("by a heuristic, not proven the lowest; {bound}"));
        }
    }
    row("strategy", format!("{}, {seconds:.3} s, verified", plan.strategy.name()));
    if let Some((_, bound_proof)) = proof {
        row("proof", replayed(*bound_proof));
    }
    if let Some(stop_reason) = stop_reason {
        row("stopped", format!("by {}: another run may find a better plan", stop_reason.name()));
    }
    if let Some(curve) = curve {
        text.push('\n');
        text += &curve_table(curve);
    }
    if let Some(comparison) = comparison {
        text.push('\n');
        text += &comparison_table(comparison, plan.queue, plan.lower_bound);
    }
    text
}

/// Describes a proof that was replayed.
pub(super) fn replayed(bound_proof: ProvenBound) -> String {
    format!("no plan is below {}, {} lines replayed", output::bytes(bound_proof.bound), bound_proof.lines)
}

/// The curve of peak against edges, as numbers and as bars from zero.
fn curve_table(curve: &[Tradeoff]) -> String {
    const BAR: u64 = 40;
    let most = curve.iter().map(|point| point.peak).max().unwrap_or(0).max(1);
    let mut text =
        format!("  {:>5} {:>16} {:>16} {:>13}\n", "edges", "bound (bytes)", "peak (bytes)", "critical path");
    for point in curve {
        let bar = (u128::from(point.peak) * u128::from(BAR)).div_ceil(u128::from(most)) as usize;
        let Tradeoff { edges, bound, peak, critical_path, .. } = point;
        text += &format!("  {edges:>5} {bound:>16} {peak:>16} {critical_path:>13}  {}\n", "#".repeat(bar));
    }
    text
}

fn certificate_text(outcome: &Outcome) -> String {
    match &outcome.plan.certificate {
        Certificate::TimeCut { time, buffers } => format!("{} buffers live at time {time}", buffers.len()),
        Certificate::Antichain { buffers } => {
            format!("{} buffers that may all be live together", buffers.len())
        }
        Certificate::Search { nodes, capacity } => {
            let claim = if outcome.is_claim() { "a claim: " } else { "" };
            format!("{claim}the search found nothing in {capacity} bytes ({nodes} nodes)")
        }
        _ => String::new(),
    }
}
