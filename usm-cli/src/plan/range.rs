//! `usm plan` with a range of values for a dimension: one plan for all of them.

use core::fmt::Write as _;

use serde::Serialize;
use usm_plan::graph_json::{Probe, RangePlan};

use super::arguments::Arguments;
use crate::error::{Exit, Result, write_file};
use crate::escape::EscapedText;
use crate::output;

/// Writes the file and prints the report.
pub(super) fn report(plan: &RangePlan, arguments: &Arguments, json: bool) -> Result<Exit> {
    if let Some(file) = &arguments.range_plan {
        write_file(file, plan.text()?)?;
    }
    if json {
        output::json(&Report::of(plan))?;
    } else {
        output::text(&describe(plan))?;
        if let Some(file) = &arguments.range_plan {
            output::line(format_args!("  {:<12} {}", "range plan", EscapedText(file.display())))?;
        }
    }
    Ok(if crate::interrupt::is_pressed() { Exit::Interrupted } else { Exit::Done })
}

#[derive(Serialize)]
struct Report<'a> {
    dims: Vec<DimensionReport<'a>>,
    plans: usize,
    /// Whether the plans are proven for every value, or for the probes and at each further use.
    proven_for_every_value: bool,
    /// Values of the dimensions, in their order, that were also planned one by one.
    probes: &'a [Probe],
    /// The largest ratio of a peak to the bound for the same values.
    worst: f64,
}

#[derive(Serialize)]
struct DimensionReport<'a> {
    name: &'a str,
    of: Option<&'a str>,
    low: u64,
    high: u64,
    step: u64,
}

impl<'a> Report<'a> {
    fn of(plan: &'a RangePlan) -> Self {
        let dims = plan.dims().iter().map(|dim| DimensionReport {
            name: &dim.name,
            of: dim.of.as_deref(),
            low: dim.values.low,
            high: dim.values.high,
            step: dim.values.step,
        });
        Self {
            dims: dims.collect(),
            plans: plan.count(),
            proven_for_every_value: plan.is_proven_for_every_value(),
            probes: plan.probes(),
            worst: worst_ratio(plan),
        }
    }
}

fn worst_ratio(plan: &RangePlan) -> f64 {
    let share = plan.probes().iter().map(|probe| probe.peak as f64 / probe.lower_bound.max(1) as f64);
    share.fold(0.0, f64::max)
}

fn describe(plan: &RangePlan) -> String {
    let mut text = String::new();
    let names: Vec<String> = plan.dims().iter().map(|dim| format!("{}={}", dim.name, dim.values)).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {:<12} {}", "dimensions", EscapedText(names.join(", ")));
    let claim = match plan.is_proven_for_every_value() {
        true => "proven for every value".to_owned(),
        false => format!("proven for {} values, and at use for each other one", plan.probes().len()),
    };
    let _ = writeln!(text, "  {:<12} {}, {claim}", "plans", plan.count());
    let above = 100.0 * (worst_ratio(plan) - 1.0);
    let _ =
        writeln!(text, "  {:<12} {above:.2} % above the bound, of {} values", "worst", plan.probes().len());
    for probe in plan.probes() {
        let values: Vec<String> = probe.values.iter().map(u64::to_string).collect();
        let (peak, bound) = (output::bytes(probe.peak), output::bytes(probe.lower_bound));
        let _ = writeln!(text, "  {:<12} {peak}, bound {bound}", values.join(", "));
    }
    text
}
