//! `usm plan` with a range of values for a dimension: one plan for all of them.

use core::fmt::Write as _;
use std::time::Instant;

use serde::Serialize;
use usm_plan::graph_json::{Found, search};
use usm_plan::ranged::Wanted;
use usm_pool::Options;
use usm_pool::range::Dimension;

use super::arguments::{Arguments, first_given};
use super::clock;
use crate::error::{Error, Exit, Result, write_file};
use crate::input;
use crate::output;
use crate::progress::Progress;
use crate::shown::Shown;

/// Runs the command.
pub(super) fn run(arguments: &Arguments, json: bool, start: Instant) -> Result<Exit> {
    let path = &arguments.input;
    refuse(arguments)?;
    let clock = clock(arguments, start, 1);
    let stop = || clock.must_stop();
    let mut options = Options::default();
    options.strategy = arguments.strategy.into();
    options.queue = arguments.queue.into();
    options.threads = arguments.threads;
    options.stop = Some(&stop);
    clock.rule(&mut options);
    let hints = arguments.hints();
    let ranges: Vec<(String, Dimension)> = arguments
        .dims
        .iter()
        .filter_map(|(name, values)| match values {
            Wanted::Every(range) => Some((name.clone(), *range)),
            Wanted::One(_) => None,
        })
        .collect();
    let found = {
        let _sign_of_life = Progress::start("planning for every value");
        search(path, &hints, &ranges, &options)?
    };
    if let Some(file) = &arguments.range_plan {
        write_file(file, &found.text)?;
    }
    if json {
        output::json(&Report::of(&found))?;
    } else {
        output::text(&describe(&found))?;
        if let Some(file) = &arguments.range_plan {
            output::line(format_args!("  {:<12} {}", "range plan", Shown(file.display())))?;
        }
    }
    Ok(if crate::interrupt::is_pressed() { Exit::Interrupted } else { Exit::Done })
}

/// Refuses options that have no meaning for a plan of many values.
fn refuse(arguments: &Arguments) -> Result<()> {
    let name = arguments.input.to_string_lossy().to_ascii_lowercase();
    if !name.ends_with(".json") && !name.ends_with(".onnx") {
        let reason = "only a model.onnx or a graph.json with dims is planned for every value";
        return Err(Error::bad(reason).in_field("--dim").in_file(input::called(&arguments.input)));
    }
    let given = [
        ("--capacity", arguments.capacity.is_some()),
        ("--device-memory", arguments.device_memory.is_some()),
        ("--max-alloc", arguments.max_alloc.is_some()),
        ("--ordering-edges", arguments.ordering_edges.is_some()),
        ("--reorder", arguments.reorder),
        ("--proof", arguments.proof.is_some()),
        ("--check", arguments.check.is_some()),
    ];
    match first_given(given.into_iter().chain(arguments.of_one_plan())) {
        Some(option) => {
            Err(Error::bad("it is for one value of each dimension; a plan for all is made here")
                .in_field(option))
        }
        None => Ok(()),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    dims: Vec<DimensionReport<'a>>,
    plans: usize,
    /// Whether the plans are proven for every value, or for the probes and at each further use.
    proven_for_every_value: bool,
    /// Values of the dimensions, in their order, that were also planned one by one.
    probes: &'a [usm_plan::graph_json::Probe],
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
    fn of(found: &'a Found) -> Self {
        let dims = found.dims.iter().map(|dim| DimensionReport {
            name: &dim.name,
            of: dim.of.as_deref(),
            low: dim.values.low,
            high: dim.values.high,
            step: dim.values.step,
        });
        Self {
            dims: dims.collect(),
            plans: found.plans,
            proven_for_every_value: found.proven_for_every_value,
            probes: &found.probes,
            worst: worst_ratio(found),
        }
    }
}

fn worst_ratio(found: &Found) -> f64 {
    let share = found.probes.iter().map(|probe| probe.peak as f64 / probe.lower_bound.max(1) as f64);
    share.fold(0.0, f64::max)
}

fn describe(found: &Found) -> String {
    let mut text = String::new();
    let names: Vec<String> = found.dims.iter().map(|dim| format!("{}={}", dim.name, dim.values)).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {:<12} {}", "dimensions", Shown(names.join(", ")));
    let proven = match found.proven_for_every_value {
        true => "proven for every value".to_owned(),
        false => format!("proven for {} values, and at use for each other one", found.probes.len()),
    };
    let _ = writeln!(text, "  {:<12} {}, {proven}", "plans", found.plans);
    let above = 100.0 * (worst_ratio(found) - 1.0);
    let _ =
        writeln!(text, "  {:<12} {above:.2} % above the bound, of {} values", "worst", found.probes.len());
    for probe in &found.probes {
        let values: Vec<String> = probe.values.iter().map(u64::to_string).collect();
        let (peak, bound) = (output::bytes(probe.peak), output::bytes(probe.lower_bound));
        let _ = writeln!(text, "  {:<12} {peak}, bound {bound}", values.join(", "));
    }
    text
}
