//! `usm plan --curve-recompute`: peak against the time of operators that run again and of copies.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use usm_plan::clock::{Clock, Stopped};
use usm_plan::request::{PointFacts, Refusal, Request, text};
use usm_pool::planner::recompute::Curve;
use usm_pool::{Options, Strategy, svg};

use super::arguments::{Arguments, first_given};
use super::execute::{self, RunReport};
use super::{make, read};
use crate::error::{Error, Exit, Result, write_file};
use crate::input;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::shown::Shown;

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

/// Runs the command.
pub(super) fn run(arguments: &Arguments, json: bool, start: Instant) -> Result<Exit> {
    refuse(arguments)?;
    let input = read(arguments)?;
    let interrupt = Interrupt::watch();
    let outcome = make(input, arguments, start)?;
    outcome.check()?;
    let request = Request { budget: arguments.budget, bytes_per_cost: arguments.bytes_per_cost };
    let job = request.check(&outcome).map_err(|Refusal { field, reason }| match field {
        "input" => Error::bad(reason).in_file(input::called(&arguments.input)),
        field => Error::bad(reason).in_field(option(field)),
    })?;
    let clock = Clock::new(start, arguments.time_limit, Strategy::Auto).or_when(&interrupt::is_pressed);
    let stop = || clock.must_stop();
    let mut options = Options::default();
    options.strategy = arguments.strategy.into();
    options.threads = arguments.threads;
    options.stop = Some(&stop);
    let curve = {
        let _sign_of_life = Progress::start("searching for operators to run again");
        job.run(&options, &stop, &option)?
    };
    drop(interrupt);
    let facts: Vec<PointFacts> = curve.points.iter().map(PointFacts::from).collect();
    let files = write(&curve, arguments)?;
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
            stopped: clock.stopped().map(Stopped::name),
            points: points.collect(),
        })?;
    } else {
        output::text(&describe(&curve, &facts))?;
        if let Some(stopped) = clock.stopped() {
            output::line(format_args!(
                "  {:<12} by {}: another run may find a better curve",
                "stopped",
                stopped.name()
            ))?;
        }
        for ran in &runs {
            output::text(&ran.to_string())?;
        }
        let picture = arguments.svg.iter().map(|path| ("picture", path));
        for (what, path) in files.iter().map(|path| ("graph", path)).chain(picture) {
            output::line(format_args!("  {what:<12} {}", Shown(path.display())))?;
        }
    }
    Ok(match runs.iter().any(|ran| ran.wrong > 0) {
        _ if interrupt::is_pressed() => Exit::Interrupted,
        true => Exit::Unable,
        false => Exit::Done,
    })
}

/// The option for a field of the request.
fn option(field: &'static str) -> String {
    format!("--{}", field.replace('_', "-"))
}

/// Refuses options that have no meaning for a curve.
fn refuse(arguments: &Arguments) -> Result<()> {
    let given = [
        ("--capacity", arguments.capacity.is_some()),
        ("--device-memory", arguments.device_memory.is_some()),
        ("--max-alloc", arguments.max_alloc.is_some()),
        ("--proof", arguments.proof.is_some()),
        ("--check", arguments.check.is_some()),
        ("--curve", arguments.curve),
    ];
    let one = arguments.of_one_plan().into_iter().filter(|&(name, _)| name != "--svg");
    match first_given(given.into_iter().chain(one)) {
        Some(option) => {
            Err(Error::bad("it is for one plan; each point of a curve is a graph of its own")
                .in_field(option))
        }
        None => Ok(()),
    }
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
        let (repeated, copies) = (repeated.len(), copies.len());
        text += &format!("  {peak:>16} {time:>16} {repeated:>8} {copies:>8}  {}\n", "#".repeat(bar));
    }
    text
}
