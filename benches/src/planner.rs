//! The planner compared with its bound, the simple strategies, what the tests of OpenVINO's pool
//! expect and, if their programs are named, planners of others.
//!
//! `--instances DIR...` adds every `*.csv` of the folders (`id,lower,upper,size`). A name such as
//! `A.1048576.csv` contains a capacity, which is then decided too, also by google/minimalloc if
//! `USM_MINIMALLOC` names its program. omnimalloc plans the tables if `USM_OMNIMALLOC` names a
//! Python that has it. Without a folder only the synthetic shapes run. `--table FILE` writes the
//! results as a page.

mod generate;
mod openvino;
mod page;
mod peers;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use usm_pool::{Buffer, Options, Plan, Problem, Strategy, plan};

use crate::arguments::Arguments;
use crate::cpu_time;
use crate::row::{Row, median};
use generate::Cut;

/// Time for one plan from scratch.
const LIMIT: Duration = Duration::from_secs(8);

/// Runs of a decision; their median counts.
const RUNS: usize = 3;

struct Measurement {
    plan: Plan,
    seconds: f64,
}

pub(crate) fn rows() -> Vec<Row> {
    let arguments = Arguments::get().unwrap_or_default();
    let (mut rows, mut beyond) = (openvino::rows(), Vec::new());
    eprintln!(
        "{:40} {:>8} {:>14} {:>14} {:>4} {:>9} {:>10} {:>8} {:>8} {:>8}",
        "instance", "buffers", "bound", "peak", "opt", "seconds", "nodes", "size", "best-fit", "whole"
    );
    for file in arguments.instances.iter().flat_map(|folder| tables(folder)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match read(&file) {
            Ok(buffers) => {
                let capacity = name.split('.').rev().nth(1).and_then(|text| text.parse().ok());
                case(&name, buffers, Budget::Time, Some((capacity, &*file)), &mut rows, &mut beyond);
            }
            Err(reason) => eprintln!("SKIPPED: {name}: {reason}"),
        }
    }
    for (name, buffers) in [
        ("training, 125 layers", generate::training(125, 1)),
        ("training, 250 layers", generate::training(250, 1)),
    ] {
        case(name, buffers, Budget::Time, None, &mut rows, &mut beyond);
    }
    // One at a time: a million buffers in several shapes need much memory.
    type Shape = (&'static str, fn(usize, u64) -> Vec<Buffer>, u64);
    let shapes: [Shape; 5] = [
        ("packed", |n, seed| generate::packed(n, seed, Cut::Middle), 3),
        ("packed squares", |n, seed| generate::packed(n, seed, Cut::Squares), 1),
        ("packed slivers", |n, seed| generate::packed(n, seed, Cut::Slivers), 1),
        ("power law", generate::powerlaw, 3),
        ("u-net", generate::unet, 1),
    ];
    for (size, n) in [("100k", 100_000), ("1M", 1_000_000)] {
        for (name, shape, seeds) in shapes {
            for seed in 1..=seeds {
                let name = format!("{name}, {size}, seed {seed}");
                case(&name, shape(n, seed), Budget::Default, None, &mut rows, &mut beyond);
            }
        }
    }
    rows.extend(summary(&rows));
    if let Some(path) = &arguments.table {
        match page::write(path, &rows, &beyond) {
            Ok(()) => eprintln!("results page {}", path.display()),
            Err(reason) => eprintln!("no results page: {reason}"),
        }
    }
    rows
}

/// The geometric mean against reuse of whole buffers over the tables of the folders.
fn summary(rows: &[Row]) -> Option<Row> {
    let pool = Strategy::WholeBuffer.name();
    let logarithms = rows.iter().filter(|row| row.peer == pool && row.case.ends_with(".csv"));
    let logarithms: Vec<f64> = logarithms.map(|row| row.ratio.ln()).collect();
    if logarithms.is_empty() {
        return None;
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    let above = rows.iter().filter(|row| row.peer == pool && row.ratio > 1.0).count();
    eprintln!(
        "{} instances: {:.1} % below the whole-buffer pool in geometric mean, above it on {above}",
        logarithms.len(),
        100.0 * (1.0 - mean)
    );
    Some(Row::new("geometric mean of the folders", pool, "x", mean, 1.0))
}

/// The buffer tables of a folder by name; `*.graph.csv` are graphs.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("SKIPPED: no folder {}", folder.display());
        return Vec::new();
    };
    let table = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".csv") && !name.ends_with(".graph.csv")
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(table).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Result<Vec<Buffer>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let column = |name: &str| {
        header.iter().position(|field| *field == name).ok_or_else(|| format!("no column {name}"))
    };
    let columns = [column("id")?, column("lower")?, column("upper")?, column("size")?];
    let row = |(line, text): (usize, &str)| {
        let fields: Vec<&str> = text.split(',').collect();
        let mut numbers = [0; 4];
        for (number, &column) in numbers.iter_mut().zip(&columns) {
            let field = fields.get(column).and_then(|field| field.trim().parse().ok());
            *number =
                field.ok_or_else(|| format!("line {}: no number in column {}", line + 2, header[column]))?;
        }
        Ok(Buffer::new(numbers[0], numbers[1], numbers[2], numbers[3]))
    };
    lines.enumerate().filter(|(_, text)| !text.trim().is_empty()).map(row).collect()
}

/// The budget of a plan from scratch.
#[derive(Clone, Copy)]
enum Budget {
    /// [`LIMIT`].
    Time,
    /// The default number of nodes.
    Default,
}

/// A plan within the budget, verified. Seconds are CPU time of this thread.
fn measure(problem: &Problem, strategy: Strategy, budget: Budget, capacity: Option<u64>) -> Measurement {
    let (start, used) = (Instant::now(), cpu_time::seconds());
    let stop = || start.elapsed() > LIMIT;
    let mut options = Options::default();
    options.strategy = strategy;
    options.capacity = capacity;
    if matches!(budget, Budget::Time) {
        options.nodes = u64::MAX;
        options.stop = Some(&stop);
    }
    let plan = plan(problem, &options).expect("a checked problem has a plan");
    let seconds = cpu_time::seconds() - used;
    plan.verify(problem).expect("every plan verifies");
    Measurement { plan, seconds }
}

/// Adds the rows of one problem; those of programs for a file, and a decision for its capacity.
/// `beyond` tells which peers gave no result.
fn case(
    name: &str,
    buffers: Vec<Buffer>,
    budget: Budget,
    file: Option<(Option<u64>, &Path)>,
    rows: &mut Vec<Row>,
    beyond: &mut Vec<String>,
) {
    let problem = match Problem::from_buffers(buffers) {
        Ok(problem) => problem,
        Err(error) => return eprintln!("SKIPPED: {name}: {error}"),
    };
    let ours = measure(&problem, Strategy::Auto, budget, None);
    let (peak, bound) = (ours.plan.peak, ours.plan.lower_bound);
    // Above this number, strategies that compare pairs of buffers take minutes.
    let simple: Vec<(Strategy, u64)> = [Strategy::GreedyBySize, Strategy::BestFit, Strategy::WholeBuffer]
        .into_iter()
        .filter(|_| problem.buffers().len() < 20_000)
        .map(|strategy| (strategy, measure(&problem, strategy, budget, None).plan.peak))
        .collect();
    eprintln!(
        "{name:40} {:8} {bound:14} {peak:14} {:>4} {:9.3} {:10} {}",
        problem.buffers().len(),
        if peak == bound { "yes" } else { "no" },
        ours.seconds,
        ours.plan.nodes,
        simple
            .iter()
            .map(|(_, theirs)| format!("{:8.4}", *theirs as f64 / bound as f64))
            .collect::<Vec<_>>()
            .join(" "),
    );
    rows.push(Row::new(name, "lower bound", "bytes", peak as f64, bound as f64));
    for (strategy, theirs) in simple {
        rows.push(Row::new(name, strategy.name(), "bytes", peak as f64, theirs as f64));
    }
    let Some((capacity, file)) = file else { return };
    match peers::omnimalloc(file) {
        Some(Ok(theirs)) => {
            rows.push(Row::new(name, peers::OMNIMALLOC.name, "bytes", peak as f64, theirs as f64));
        }
        Some(Err(reason)) => beyond.push(format!("{name}: {}: {reason}", peers::OMNIMALLOC.name)),
        None => {}
    }
    let Some(capacity) = capacity else { return };
    // In turns, so that a busy machine affects both equally.
    let runs: Vec<(Measurement, Option<Result<f64, String>>)> = (0..RUNS)
        .map(|_| {
            let ours = measure(&problem, Strategy::Auto, Budget::Time, Some(capacity));
            (ours, peers::minimalloc(file, capacity))
        })
        .collect();
    let mut ours: Vec<f64> = runs.iter().map(|run| run.0.seconds).collect();
    let ours = median(&mut ours);
    let decision = &runs[0].0;
    let feasible = decision.plan.peak <= capacity;
    eprintln!(
        "{:40} {:>8} {:>14} {:>14} {:>4} {:9.3} {:10}",
        format!("  at {capacity}"),
        "",
        "",
        decision.plan.peak,
        if feasible { "yes" } else { "no" },
        ours,
        decision.plan.nodes
    );
    let (name, peer) = (format!("{name} at {capacity}"), peers::MINIMALLOC.name);
    let mut theirs = Vec::new();
    for run in runs.iter().filter_map(|run| run.1.as_ref()) {
        match run {
            Ok(seconds) => theirs.push(*seconds),
            Err(reason) => return beyond.push(format!("{name}: {peer}: {reason}")),
        }
    }
    if !theirs.is_empty() {
        rows.push(Row::new(&name, peer, "s", ours, median(&mut theirs)));
    }
}
