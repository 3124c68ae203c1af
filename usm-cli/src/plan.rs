//! `usm plan`.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;
use usm_pool::placement::{Limits, plan_graph_within, plan_within};
use usm_pool::planner::Progress as SearchProgress;
use usm_pool::{Certificate, Graph, Options, Plan, Problem, Queue, Strategy, svg, verify};

use crate::error::{Error, Exit, Result, write_file};
use crate::input::{self, Hints, Input, number};
use crate::output;
use crate::progress::Progress;

/// How long the automatic strategy searches when the user says nothing: a person waits, and almost all of what a search finds it finds
/// early.
const AUTO_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// model.onnx, graph.json, buffers.csv or NAME.graph.csv (with NAME.csv and NAME.outputs beside it).
    input: PathBuf,
    /// The queue that will run the plan.
    #[arg(long, value_enum, default_value = "in-order")]
    queue: QueueArgument,
    /// How the plan is made.
    #[arg(long, value_enum, default_value = "auto")]
    strategy: StrategyArgument,
    /// Decide whether a plan fits in so many bytes; exit code 1 when none was found.
    #[arg(long, value_name = "BYTES", value_parser = number, allow_negative_numbers = true)]
    capacity: Option<u64>,
    /// End the search so long after the start of planning; another run may then end with another plan. Without it a count of nodes
    /// ends the search, the same on every machine [default: with --strategy auto also 10 seconds of search].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    /// Value of a symbolic dimension of an ONNX model; dimensions without a name are called INPUT.AXIS.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dimension)]
    dims: Vec<(String, u64)>,
    /// Alignment of tensors that do not say their own [default: 64; 1 for a CSV without the column].
    #[arg(long, value_name = "BYTES", value_parser = alignment, allow_negative_numbers = true)]
    alignment: Option<u64>,
    /// Device memory; what does not fit goes to host memory. Also limits what one operator reads and writes.
    #[arg(long, value_name = "BYTES", value_parser = number, allow_negative_numbers = true)]
    device_memory: Option<u64>,
    /// Largest single allocation in device memory; larger buffers go to host memory.
    #[arg(long, value_name = "BYTES", value_parser = number, allow_negative_numbers = true)]
    max_alloc: Option<u64>,
    /// On an out-of-order queue: add so many ordering edges at most, where they lower the peak.
    #[arg(long, value_name = "N")]
    ordering_edges: Option<usize>,
    /// Add only ordering edges that leave the critical path as long as it is.
    #[arg(long, requires = "ordering_edges")]
    keep_critical_path: bool,
    /// Write the plan: id,lower,upper,size,alignment,offset,memory.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the plan: time across, address up, one block a tensor.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum QueueArgument {
    /// One operator after the other.
    InOrder,
    /// Any order that the data dependencies allow.
    OutOfOrder,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StrategyArgument {
    /// All simple strategies, then the search, 10 seconds of it at most unless --time-limit says otherwise.
    Auto,
    /// Descending size, each at the lowest free offset.
    GreedyBySize,
    /// Each in the smallest gap that fits.
    BestFit,
    /// Whole buffers are used again.
    WholeBuffer,
    /// The search alone.
    Search,
}

impl From<QueueArgument> for Queue {
    fn from(argument: QueueArgument) -> Self {
        match argument {
            QueueArgument::InOrder => Self::InOrder,
            QueueArgument::OutOfOrder => Self::OutOfOrder,
        }
    }
}

impl From<StrategyArgument> for Strategy {
    fn from(argument: StrategyArgument) -> Self {
        match argument {
            StrategyArgument::Auto => Self::Auto,
            StrategyArgument::GreedyBySize => Self::GreedyBySize,
            StrategyArgument::BestFit => Self::BestFit,
            StrategyArgument::WholeBuffer => Self::WholeBuffer,
            StrategyArgument::Search => Self::Search,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn alignment(text: &str) -> Result<u64, String> {
    let bytes = number(text)?;
    if bytes.is_power_of_two() { Ok(bytes) } else { Err(format!("{bytes} is not a power of two")) }
}

/// The name may contain the sign itself: exporters write expressions.
fn dimension(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.rsplit_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), number(value)?))
}

#[derive(Serialize)]
struct Report<'a> {
    buffers: usize,
    lower_bound: u64,
    peak: Option<u64>,
    naive: u64,
    optimal: bool,
    feasible: bool,
    strategy: &'static str,
    seconds: f64,
    queue: &'static str,
    certificate: CertificateReport<'a>,
    ordering_edges: Vec<[&'a str; 2]>,
    memories: Vec<MemoryReport>,
    spilled: &'a [u64],
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CertificateReport<'a> {
    TimeCut { time: u64, buffers: &'a [u64] },
    Antichain { buffers: &'a [u64] },
    Search { nodes: u64, capacity: u64 },
}

#[derive(Serialize)]
struct MemoryReport {
    memory: &'static str,
    peak: u64,
    buffers: usize,
}

/// A plan, what it was made for, and how long that took.
pub(crate) struct Outcome {
    /// None for a file of buffers.
    pub(crate) graph: Option<Graph>,
    pub(crate) problem: Problem,
    pub(crate) plan: Plan,
    pub(crate) seconds: f64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit> {
    let hints = Hints { alignment: arguments.alignment, dims: arguments.dims.clone() };
    let input = {
        let _sign_of_life = Progress::start(format!("reading {}", arguments.input.display()));
        input::read(&arguments.input, &hints)?
    };
    let outcome = make(input, arguments)?;
    check(&outcome)?;
    let feasible = outcome.plan.feasible();
    let mut written = Vec::new();
    if let Some(path) = arguments.output.as_ref().filter(|_| feasible) {
        write_file(path, &outcome.plan.to_csv())?;
        written.push(("plan", path));
    }
    if let Some(path) = arguments.svg.as_ref().filter(|_| feasible) {
        write_file(path, &svg::render(&outcome.plan, &title(&arguments.input)))?;
        written.push(("picture", path));
    }
    if json {
        output::json(&Report::of(&outcome))?;
    } else {
        output::text(&describe(&outcome))?;
        for (what, path) in written {
            output::line(format_args!("  {what:<12} {}", path.display()))?;
        }
    }
    Ok(if feasible { Exit::Done } else { Exit::Unable })
}

fn describe_progress(found: SearchProgress) -> String {
    let (peak, bound) = (output::bytes(found.peak), output::bytes(found.bound));
    format!("searching: peak {peak}, lower bound {bound}, {} nodes", found.nodes)
}

/// How the picture calls the input.
fn title(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn make(input: Input, arguments: &Arguments) -> Result<Outcome> {
    let start = Instant::now();
    let sign_of_life = Progress::start("planning");
    let better = |found: SearchProgress| sign_of_life.say(describe_progress(found));
    let searches_by_itself = matches!(arguments.strategy, StrategyArgument::Auto);
    // The planner asks first when a search begins.
    let search_start = OnceLock::new();
    let cut = AtomicBool::new(false);
    let stop = || {
        let over = match arguments.time_limit {
            Some(limit) => start.elapsed() >= limit,
            None => searches_by_itself && search_start.get_or_init(Instant::now).elapsed() >= AUTO_LIMIT,
        };
        cut.fetch_or(over, Ordering::Relaxed);
        over
    };
    let mut options = Options::default();
    options.strategy = arguments.strategy.into();
    options.queue = arguments.queue.into();
    options.capacity = arguments.capacity;
    options.progress = Some(&better);
    options.ordering_edges = arguments.ordering_edges.unwrap_or(0);
    options.keep_critical_path = arguments.keep_critical_path;
    if arguments.ordering_edges.is_some() && options.queue == Queue::InOrder {
        return Err(Error::bad("an in-order queue has one order already").in_field("--ordering-edges"));
    }
    let limits = Limits::new(arguments.device_memory, arguments.max_alloc);
    if arguments.time_limit.is_some() {
        // The clock decides, not the count.
        options.nodes = u64::MAX;
    }
    options.stop = Some(&stop);
    let named = |error| Error::bad(error).in_file(&arguments.input);
    let (graph, problem, plan) = match input {
        Input::Buffers(_) if options.queue == Queue::OutOfOrder => {
            let reason = "buffers have lifetimes, which only an in-order queue keeps; give a graph";
            return Err(Error::bad(reason).in_field("--queue").in_file(&arguments.input));
        }
        Input::Buffers(problem) => {
            let plan = plan_within(&problem, &options, &limits).map_err(named)?;
            (None, problem, plan)
        }
        Input::Graph(graph) => {
            let (problem, plan) = plan_graph_within(&graph, &options, &limits).map_err(named)?;
            (Some(graph), problem, plan)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    drop(sign_of_life);
    if arguments.time_limit.is_none() && cut.into_inner() {
        let limit = AUTO_LIMIT.as_secs();
        output::warning(format_args!(
            "the search was ended after its {limit} s, so another run may end with another plan; --time-limit SECONDS sets the limit"
        ));
    }
    Ok(Outcome { graph, problem, plan, seconds })
}

/// No plan leaves the command unchecked.
pub(crate) fn check(outcome: &Outcome) -> Result<()> {
    let Outcome { graph, problem, plan, .. } = outcome;
    plan.verify(problem).map_err(wrong)?;
    if let Some(graph) = graph {
        verify::graph(graph, plan.queue, &plan.ordering_edges, &plan.rows).map_err(wrong)?;
    }
    Ok(())
}

fn wrong(violation: verify::Violation) -> Error {
    Error::unable(format!("the planner made a wrong plan, please report it: {violation}"))
}

impl<'a> Report<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let Outcome { graph, plan, seconds, .. } = outcome;
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
            feasible,
            strategy: plan.strategy.name(),
            seconds: *seconds,
            queue: plan.queue.name(),
            certificate: CertificateReport::of(&plan.certificate),
            ordering_edges: plan.ordering_edges.iter().map(|&(a, b)| [name(a), name(b)]).collect(),
            memories: plan
                .memories
                .iter()
                .filter(|_| feasible)
                .map(|used| MemoryReport {
                    memory: used.memory.name(),
                    peak: used.peak,
                    buffers: used.buffers,
                })
                .collect(),
            spilled: if feasible { &plan.spilled } else { &[] },
        }
    }
}

impl<'a> CertificateReport<'a> {
    fn of(certificate: &'a Certificate) -> Self {
        match certificate {
            Certificate::TimeCut { time, buffers } => Self::TimeCut { time: *time, buffers },
            Certificate::Antichain { buffers } => Self::Antichain { buffers },
            Certificate::Search { nodes, capacity } => Self::Search { nodes: *nodes, capacity: *capacity },
            // The enum may grow; an unknown proof is no proof that scripts could check.
            _ => Self::Antichain { buffers: &[] },
        }
    }
}

/// A plan for people.
pub(crate) fn describe(outcome: &Outcome) -> String {
    let Outcome { graph, plan, seconds, .. } = outcome;
    let mut text = String::new();
    let mut row = |what: &str, value: String| text += &format!("  {what:<12} {value}\n");
    let ops = graph.as_ref().map(|graph| format!("{} operators, ", graph.ops().len())).unwrap_or_default();
    row("problem", format!("{ops}{} buffers, {} queue", plan.buffers(), plan.queue.name()));
    row("plain sum", output::bytes(plan.naive));
    row("lower bound", format!("{}, {}", output::bytes(plan.lower_bound), proof(&plan.certificate)));
    if plan.feasible() {
        let quality = match plan.peak {
            _ if plan.memories.len() > 1 => "in two memories".to_owned(),
            peak if plan.optimal() => {
                let times = plan.naive as f64 / peak.max(1) as f64;
                format!("optimal, {times:.1} times less than the plain sum")
            }
            peak => {
                let above = 100.0 * (peak as f64 / plan.lower_bound.max(1) as f64 - 1.0);
                format!("{above:.2} % above the bound")
            }
        };
        row("peak", format!("{}, {quality}", output::bytes(plan.peak)));
    } else {
        let capacity = plan.capacity.unwrap_or(0);
        let proven = if plan.lower_bound > capacity { "no plan can" } else { "no plan was found that does" };
        row("peak", format!("{proven} fit in {}", output::bytes(capacity)));
    }
    for used in plan.memories.iter().filter(|_| plan.memories.len() > 1) {
        row(used.memory.name(), format!("{}, {} buffers", output::bytes(used.peak), used.buffers));
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
    row("strategy", format!("{}, {seconds:.3} s, verified", plan.strategy.name()));
    text
}

fn proof(certificate: &Certificate) -> String {
    match certificate {
        Certificate::TimeCut { time, buffers } => format!("{} buffers live at time {time}", buffers.len()),
        Certificate::Antichain { buffers } => {
            format!("{} buffers that may all be live together", buffers.len())
        }
        Certificate::Search { nodes, capacity } => {
            format!("nothing fits in {capacity} bytes ({nodes} nodes searched)")
        }
        _ => String::new(),
    }
}
