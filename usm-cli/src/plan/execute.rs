//! `usm plan --run`: the plan on a device, in several streams, with substitute operators that check
//! every read.

use core::fmt;

use serde::Serialize;
use usm_core::QueueOrder;
use usm_plan::Report;
use usm_pool::arena::ArenaError;
use usm_pool::execute::{ConstantStats, Network, Pool, ReadCounts};
use usm_pool::{Graph, Plan, Problem, TensorKind};

use super::Arguments;
use crate::backends;
use crate::error::{Error, Result};
use crate::{output, threads};

/// The JSON document of a plan, with that of its run.
#[derive(Serialize)]
pub(super) struct WithRun<'a> {
    #[serde(flatten)]
    pub(super) plan: Report<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<&'a RunReport>,
}

#[derive(Serialize)]
pub(super) struct RunReport {
    device: String,
    streams: u32,
    constants: ConstantsReport,
    pools: Vec<PoolReport>,
    reads_checked: u64,
    pub(super) wrong: u64,
}

#[derive(Serialize)]
struct ConstantsReport {
    count: usize,
    transfers: usize,
    host_bytes_before: u64,
    host_bytes_after: u64,
    device_bytes: u64,
}

#[derive(Serialize)]
struct PoolReport {
    stream: u32,
    padded: usize,
    non_padded: usize,
    dynamic: usize,
    bytes: u64,
}

/// Runs a plan.
pub(super) fn run(graph: &Graph, problem: &Problem, plan: &Plan, arguments: &Arguments) -> Result<RunReport> {
    let context = match &arguments.device {
        Some(selector) => backends::select(selector).map_err(|error| error.in_field("--device"))?,
        None => backends::from_environment("host")?,
    };
    let available = context.info().global_mem_size;
    let required_bytes = needed_bytes(graph, plan, arguments.streams);
    if required_bytes > u128::from(available) {
        let error = format!("{required_bytes} bytes needed, the device has {available}");
        return Err(Error::unable(error).in_field("--run"));
    }
    let arena_error = |error: ArenaError| Error::unable(error).in_field("--run");
    let queue = context.queue(plan.queue).map_err(Error::unable)?;
    let network = Network::new(graph, problem, plan, &queue).map_err(arena_error)?;
    let stream = |number: u32| -> Result<(Pool, ReadCounts), ArenaError> {
        let queue = network_queue(&context, plan.queue)?;
        let mut stream = network.stream(&queue, number)?;
        Ok((stream.pool(), stream.run()?))
    };
    let ran = threads::run_streams(arguments.streams, stream);
    let ConstantStats { count, transfers, host_bytes_before, host_bytes_after, device_bytes, .. } =
        network.constant_stats();
    let constants = ConstantsReport { count, transfers, host_bytes_before, host_bytes_after, device_bytes };
    let mut report = RunReport {
        device: backends::name(context.info()),
        streams: arguments.streams,
        constants,
        pools: Vec::new(),
        reads_checked: 0,
        wrong: 0,
    };
    for (number, ran) in (0..).zip(ran) {
        let (Pool { padded, non_padded, dynamic, bytes, .. }, checked_bytes) =
            ran.map_err(|error| error.in_field("--run"))?.map_err(arena_error)?;
        report.pools.push(PoolReport { stream: number, padded, non_padded, dynamic, bytes });
        report.reads_checked += checked_bytes.reads;
        report.wrong += checked_bytes.wrong;
    }
    Ok(report)
}

fn network_queue(
    context: &usm::Context<usm::backend::Dyn>,
    order: QueueOrder,
) -> Result<usm_core::Queue<usm::backend::Dyn>, ArenaError> {
    Ok(context.queue(order)?)
}

/// Bytes that a run holds at the same time at most: constants, and for each stream its pool, its
/// inputs and state, and the largest tensor on its way.
fn needed_bytes(graph: &Graph, plan: &Plan, streams: u32) -> u128 {
    let roots = |constant: bool| {
        let kinds = move |kind| match kind {
            TensorKind::Activation => false,
            kind => (kind == TensorKind::Constant) == constant,
        };
        let nodes = graph.tensors().iter().filter(move |node| node.alias.is_none() && kinds(node.kind));
        nodes.map(|node| u128::from(node.size)).sum::<u128>()
    };
    let largest = graph.tensors().iter().map(|node| u128::from(node.size)).max().unwrap_or(0);
    roots(true) + largest + u128::from(streams) * (u128::from(plan.peak) + roots(false) + 2 * largest)
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, streams, constants, pools, reads_checked, wrong } = self;
        writeln!(f, "  {:<12} {streams} streams on {device}", "run")?;
        writeln!(
            f,
            "  {:<12} {}, {} moved once; host {} before, {} after, device {}",
            "constants",
            constants.count,
            constants.transfers,
            output::bytes(constants.host_bytes_before),
            output::bytes(constants.host_bytes_after),
            output::bytes(constants.device_bytes)
        )?;
        for PoolReport { stream, padded, non_padded, dynamic, bytes } in pools {
            let bytes = output::bytes(*bytes);
            writeln!(
                f,
                "  {:<12} stream {stream}: {padded} padded, {non_padded} other places, {dynamic} dynamic; {bytes}",
                "pool"
            )?;
        }
        writeln!(f, "  {:<12} {reads_checked}, {wrong} wrong", "reads")
    }
}
