//! The arguments of `usm plan`.

use core::time::Duration;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use usm_plan::ranged::Values;
use usm_plan::request::{EveryValue, MOST_THREADS, Recompute};
use usm_plan::{Request, units};
use usm_pool::{Queue, Strategy};

use crate::error::Result;
use crate::output::file_to_write;

#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// model.onnx, graph.json, buffers.csv or NAME.graph.csv (with NAME.csv and NAME.outputs beside
    /// it); `-` for a graph.json or CSV on standard input.
    pub(super) input: PathBuf,
    /// The queue that will run the plan.
    #[arg(long, value_enum, default_value = "in-order")]
    pub(super) queue: QueueArgument,
    /// How the plan is made.
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) strategy: StrategyArgument,
    /// Decide whether a plan fits in this many bytes; exit code 1 if none was found.
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_negative_numbers = true)]
    pub(super) capacity: Option<u64>,
    /// End the search and the steps before it this long after the start of the command; another run
    /// may then give another plan. By default a count of nodes ends the search, equal on every
    /// machine [default: with --strategy auto also 10 seconds of search].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(super) time_limit: Option<Duration>,
    /// Threads that search. Where a count of nodes ends the search, the plan is the same for every
    /// number of them.
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads, allow_negative_numbers = true)]
    pub(super) threads: usize,
    /// Value of a dimension of an ONNX model, or of a graph.json with dims; an ONNX model's
    /// dimensions without a name are called INPUT.AXIS. With LOW..HIGH[:STEP] one plan is made for
    /// all the values; both ends are values, STEP is 1 by default.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dimension)]
    pub(super) dims: Vec<(String, Values)>,
    /// Value of an ONNX model's input of one number; it selects the branch of an If.
    #[arg(long = "value", value_name = "INPUT=VALUE", value_parser = value)]
    pub(super) values: Vec<(String, String)>,
    /// Write one plan for every value of the dimensions: a graph.json that is evaluated by --dim
    /// NAME=VALUE without a search.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) range_plan: Option<PathBuf>,
    /// Alignment of tensors that do not say their own [default: 64; 1 for a CSV without the
    /// column].
    #[arg(long, value_name = "BYTES", value_parser = alignment, allow_negative_numbers = true)]
    pub(super) alignment: Option<u64>,
    /// Device memory; tensors that do not fit go to host memory. Also limits the inputs and outputs
    /// of one operator.
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_negative_numbers = true)]
    pub(super) device_memory: Option<u64>,
    /// Largest single allocation in device memory; larger buffers go to host memory.
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_negative_numbers = true)]
    pub(super) max_alloc: Option<u64>,
    /// On an out-of-order queue: add at most this many ordering edges, if they lower the peak.
    #[arg(long, value_name = "N")]
    pub(super) ordering_edges: Option<usize>,
    /// Add only ordering edges that leave the critical path as long as it is.
    #[arg(long, requires = "ordering_edges")]
    pub(super) keep_critical_path: bool,
    /// With --ordering-edges: print the gain of every further edge, peak against edges.
    #[arg(long, requires = "ordering_edges")]
    pub(super) curve: bool,
    /// On an in-order queue: run the operators in another order that the data allow where that
    /// lowers the peak. For an ONNX model this is done without asking.
    #[arg(long)]
    pub(super) reorder: bool,
    /// Run the operators of an ONNX model in the order of the file.
    #[arg(long, conflicts_with = "reorder")]
    pub(super) keep_order: bool,
    /// Give every tensor of an ONNX model bytes of its own: no views, nothing written over an
    /// input.
    #[arg(long)]
    pub(super) no_views: bool,
    /// Print a curve of peak against time, each point a graph of its own: operators run again, and
    /// with --bytes-per-cost tensors are copied to another memory and back, for a lower peak. The
    /// order of the operators stays. Times are in the unit of the operators' cost.
    #[arg(long)]
    pub(super) curve_recompute: bool,
    /// With --curve-recompute: only the graph of the least time that fits in this many bytes; exit
    /// code 1 and the least peak if none was found.
    #[arg(long, value_name = "BYTES", requires = "curve_recompute", value_parser = units::bytes, allow_negative_numbers = true)]
    pub(super) budget: Option<u64>,
    /// With --curve-recompute: bytes that a copy to another memory, or back, moves in one unit of
    /// cost. Without it there are no copies.
    #[arg(long, value_name = "RATE", requires = "curve_recompute", allow_negative_numbers = true)]
    pub(super) bytes_per_cost: Option<f64>,
    /// With --curve-recompute: write each point as graph.json in this folder.
    #[arg(long, value_name = "DIR", requires = "curve_recompute")]
    pub(super) output_dir: Option<PathBuf>,
    /// Print the peak of every strategy beside that of the plan.
    #[arg(long)]
    pub(super) compare: bool,
    /// Run the plan with substitute operators that check every read. The constants are made in host
    /// memory, moved once and shared by all streams; each stream has a pool of its own. With
    /// --strategy whole-buffer the pools have the rules of OpenVINO's for padded and dynamic
    /// tensors.
    #[arg(long)]
    pub(super) run: bool,
    /// With --run: the number of streams that run at the same time.
    #[arg(long, value_name = "N", requires = "run", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) streams: u32,
    /// With --run: where it runs [default: USM_DEVICE, else host].
    #[arg(long, value_name = "SELECTOR", requires = "run")]
    pub(super) device: Option<String>,
    /// Write the proof that no plan has a lower peak than the lower bound. It is searched again and
    /// replayed first, with an equal share of the --time-limit.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) proof: Option<PathBuf>,
    /// Make no plan. Replay the proof that --proof wrote for this input, without the code of the
    /// search. Exit code 2 and the line of the fault for a proof that proves nothing. Other options
    /// select how the input is read.
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    pub(super) check: Option<PathBuf>,
    /// Write the plan: id,lower,upper,size,alignment,offset,memory,name,operator.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) output: Option<PathBuf>,
    /// Draw the plan: time across, address up, one block a tensor.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) svg: Option<PathBuf>,
    /// Write a page for a browser: zoom, search by name, what is live at each time, a click
    /// describes a block. One file, nothing from the network.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) html: Option<PathBuf>,
    /// Plan this input too, with the same options, and show both plans on the page, at one scale.
    #[arg(long, value_name = "INPUT", requires = "html")]
    pub(super) compare_with: Option<PathBuf>,
    /// Write the graph as graph.json, in the order in which it was planned.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) graph: Option<PathBuf>,
    /// Write which buffers share bytes, and which must not.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) sharing: Option<PathBuf>,
    /// Write for every operator the operators whose memory it must not reuse, as OpenVINO lists
    /// them.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) dependencies: Option<PathBuf>,
    /// Write the plan with the columns of OpenVINO's memory-pool dump.
    #[arg(long, value_name = "FILE", value_parser = file_to_write())]
    pub(super) pool_dump: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum QueueArgument {
    /// One operator after the other.
    InOrder,
    /// Any order that the data dependencies allow.
    OutOfOrder,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum StrategyArgument {
    /// All simple strategies, then the search, 10 seconds of it at most unless --time-limit says
    /// otherwise.
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

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=MOST_THREADS) => Ok(threads),
        _ => Err(format!("{text:?} is not a number from 1 to {MOST_THREADS}")),
    }
}

fn alignment(text: &str) -> Result<u64, String> {
    units::alignment(units::bytes(text)?)
}

/// The first option that was given.
pub(super) fn first_given(options: impl IntoIterator<Item = (&'static str, bool)>) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

impl Arguments {
    /// The options that write one plan, and whether they were given.
    pub(super) fn of_one_plan(&self) -> [(&'static str, bool); 8] {
        [
            ("--compare-with", self.compare_with.is_some()),
            ("--output", self.output.is_some()),
            ("--svg", self.svg.is_some()),
            ("--html", self.html.is_some()),
            ("--graph", self.graph.is_some()),
            ("--sharing", self.sharing.is_some()),
            ("--dependencies", self.dependencies.is_some()),
            ("--pool-dump", self.pool_dump.is_some()),
        ]
    }

    /// The title of the picture: the name of the input's file.
    pub(super) fn title(&self) -> String {
        let name = crate::input::called(&self.input).file_name();
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The arguments of the plan beside this one: those that shape a plan, and no files of its own.
    pub(super) fn beside(&self) -> Option<Self> {
        let input = self.compare_with.clone()?;
        Some(Self { input, compare_with: None, curve: false, compare: false, proof: None, ..self.clone() })
    }

    /// Whether the plan is for several values.
    pub(super) fn many_values(&self) -> bool {
        self.range_plan.is_some() || self.dims.iter().any(|(_, values)| matches!(values, Values::Every(_)))
    }

    /// What the options ask for. The limit of the time is half of the user's while another plan
    /// follows.
    pub(super) fn request(&self) -> Request {
        let recompute = Recompute { budget: self.budget, bytes_per_cost: self.bytes_per_cost };
        let plans = 1 + u32::from(self.compare_with.is_some());
        Request {
            queue: self.queue.into(),
            strategy: self.strategy.into(),
            capacity: self.capacity,
            time_limit: self.time_limit.map(|limit| limit / plans),
            threads: self.threads,
            alignment: self.alignment,
            dims: self.dims.clone(),
            every_value: match self.range_plan {
                Some(_) => EveryValue::Always,
                None => EveryValue::OfRanges,
            },
            values: self.values.clone(),
            reorder: self.reorder,
            keep_order: self.keep_order,
            views: !self.no_views,
            device_memory: self.device_memory,
            max_alloc: self.max_alloc,
            ordering_edges: self.ordering_edges,
            keep_critical_path: self.keep_critical_path,
            curve: self.curve,
            compare: self.compare,
            proof: self.proof.is_some() || self.check.is_some(),
            recompute: self.curve_recompute.then_some(recompute),
        }
    }
}

fn value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.rsplit_once('=').ok_or("not INPUT=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads `NAME=VALUE`. The name may contain `=`, because exporters write expressions.
fn dimension(text: &str) -> Result<(String, Values), String> {
    let (name, values) = text.rsplit_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), values.parse()?))
}
