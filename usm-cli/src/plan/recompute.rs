//! `usm plan --curve-recompute`: peak against the time of operators that run again and of copies.

use std::path::{Path, PathBuf};

use serde::Serialize;
use usm_plan::clock::StopReason;
use usm_plan::request::{PointFacts, text};
use usm_pool::planner::recompute::Curve;
use usm_pool::svg;

use super::arguments::Arguments;
use super::execute::{self, RunReport};
use crate::error::{Error, Exit, Result, write_file};
use crate::escape::EscapedText;
use crate::interrupt;
use crate::output;

/// The JSON document.
#[derive(Serialize)]
struct Report<'a> {
    /// No change of the graph in its order has a peak below it.
    bound: u64,
    /// The reason of an early stop: "time" or "interrupt".
    stopped: Option<&'static str>,
    points: Vec<PointReport<'a>>,
}

#[derive(Serialize)]
struct PointReport<'a> {
    peak: u64,
    time: u64,
    repeated: &'a [String],
    copies: &'a [String],
    /// With --output-dir: the graph.json of the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    /// With --run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunReport>,
}

/// Writes the files, runs the points and prints the report.
pub(super) fn report(
    curve: &Curve,
    stop_reason: Option<StopReason>,
    arguments: &Arguments,
    json: bool,
) -> Result<Exit> {
    let facts: Vec<PointFacts> = curve.points.iter().map(PointFacts::from).collect();
    let files = write(curve, arguments)?;
    let mut runs = Vec::new();
    if arguments.run {
        for point in &curve.points {
            runs.push(execute::run(&point.graph, &point.problem, &point.plan, arguments)?);
        }
    }
    if json {
        let points = facts.iter().enumerate().map(|(at, facts)| PointReport {
            peak: facts.peak,
            time: facts.time,
            repeated: &facts.repeated,
            copies: &facts.copies,
            file: files.get(at).map(PathBuf::as_path),
            run: runs.get(at),
        });
        output::json(&Report {
            bound: curve.bound,
            stopped: stop_reason.map(StopReason::name),
            points: points.collect(),
        })?;
    } else {
        output::text(&describe(curve, &facts))?;
        if let Some(stop_reason) = stop_reason {
            output::line(format_args!(
                "  {:<12} by {}: another run may find a better curve",
                "stopped",
                stop_reason.name()
            ))?;
        }
        for ran in &runs {
            output::text(&ran.to_string())?;
        }
        let picture = arguments.svg.iter().map(|path| ("picture", path));
        for (what, path) in files.iter().map(|path| ("graph", path)).chain(picture) {
            output::line(format_args!("  {what:<12} {}", EscapedText(path.display())))?;
        }
    }
    Ok(match runs.iter().any(|ran| ran.wrong > 0) {
        _ if interrupt::is_pressed() => Exit::Interrupted,
        true => Exit::Unable,
        false => Exit::Done,
    })
}

/// Writes a graph.json for each point, and the picture. Answers the paths of the graphs.
fn write(curve: &Curve, arguments: &Arguments) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if let Some(folder) = &arguments.output_dir {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::unable(format!("cannot be made: {error}")).in_file(folder))?;
        for (at, point) in curve.points.iter().enumerate() {
            let path = folder.join(format!("point{at:02}.json"));
            write_file(&path, &text(point)?)?;
            files.push(path);
        }
    }
    if let Some(path) = &arguments.svg {
        write_file(path, svg::recompute_curve(curve, &arguments.title()))?;
    }
    Ok(files)
}

/// The curve as numbers and as bars from zero.
fn describe(curve: &Curve, facts: &[PointFacts]) -> String {
    const BAR: u64 = 40;
    let most = facts.first().map_or(0, |point| point.peak).max(1);
    let mut text = format!("  {:<12} no change is below {}\n", "bound", output::bytes(curve.bound));
    text += &format!("  {:>16} {:>16} {:>8} {:>8}\n", "peak (bytes)", "added time", "repeated", "copies");
    for PointFacts { peak, time, repeated, copies } in facts {
        let bar = (u128::from(*peak) * u128::from(BAR)).div_ceil(u128::from(most)) as usize;
        let (repeat_count, copies) = (repeated.len(), copies.len());
        text += &format!("  {peak:>16} {time:>16} {repeat_count:>8} {copies:>8}  {}\n", "#".repeat(bar));
    }
    text
}
