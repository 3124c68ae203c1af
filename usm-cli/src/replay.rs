//! `usm replay`: a trace of allocations through the run-time pool, over addresses that nothing
//! backs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use usm_plan::usm_pool::pool::replay::{Replay, ReplayOptions, TraceError, parse, replay};
use usm_plan::usm_pool::snapshot::{Action, Block, Device, Event, Origin, Segment, Snapshot};

use crate::error::{Error, Exit, Result, read_file, write_file};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Lines `op,id,size,stream` without a header: `a` allocates, `f` frees, `u` uses on another
    /// stream, `m` marks a step.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A use is complete this many lines later on its stream.
    #[arg(long, value_name = "K", default_value_t = 0)]
    delay: u64,
    /// Write the segments and blocks at the peak, for PyTorch's `memory_viz`.
    #[arg(long, value_name = "FILE", value_parser = output::file_to_write())]
    snapshot: Option<PathBuf>,
    /// Write a picture of the live bytes over time.
    #[arg(long, value_name = "FILE", value_parser = output::file_to_write())]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    pairs: u64,
    peak_live: u64,
    peak_reserved: u64,
    ratio: f64,
    ns_per_pair: f64,
    fragmentation: f64,
    cross_queue_reuses: u64,
    waits: u64,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<Exit> {
    let path = &arguments.trace;
    let refuse = |error: TraceError| {
        Error::bad(error.reason).in_file(path).at_line(error.line as u64).in_field(error.field)
    };
    let bytes = read_file(path)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        Error::bad("not text").in_file(path).at_line(line as u64).in_field("op")
    })?;
    let steps = parse(&text).map_err(refuse)?;
    let mut options = ReplayOptions::default();
    options.delay = arguments.delay;
    let start = Instant::now();
    let result = replay(&steps, &options).map_err(refuse)?;
    let elapsed = start.elapsed();
    if arguments.snapshot.is_some() || arguments.svg.is_some() {
        // Again, so that the time above is the pool's.
        options.history = true;
        write_views(arguments, replay(&steps, &options).map_err(refuse)?)?;
    }
    let report = Report {
        pairs: result.pairs,
        peak_live: result.peak_live,
        peak_reserved: result.peak_reserved,
        ratio: result.ratio,
        ns_per_pair: elapsed.as_nanos() as f64 / result.pairs.max(1) as f64,
        fragmentation: result.fragmentation,
        cross_queue_reuses: result.cross_queue_reuses,
        waits: result.waits,
    };
    if json {
        output::json(&report)?;
        return Ok(Exit::Done);
    }
    let Report { pairs, ratio, ns_per_pair, waits, cross_queue_reuses, .. } = report;
    output::line(format_args!(
        "{pairs} pairs, {ns_per_pair:.0} ns each\n\
         peak live      {}\n\
         peak reserved  {} ({ratio:.3})\n\
         fragmentation  {:.3}\n\
         reuses across queues  {cross_queue_reuses}, of which {waits} wait",
        output::bytes(report.peak_live),
        output::bytes(report.peak_reserved),
        report.fragmentation,
    ))?;
    Ok(Exit::Done)
}

fn write_views(arguments: &Arguments, result: Replay) -> Result<()> {
    let Replay { segments, mut events, events_to_peak, peak_reserved, .. } = result;
    let name =
        arguments.trace.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let snapshot = |segments, events| Snapshot {
        devices: vec![Device { name: name.clone(), total: peak_reserved, segments, events }],
    };
    if let Some(path) = &arguments.svg {
        write_file(path, snapshot(vec![live_after(&events)], events.clone()).svg())?;
    }
    if let Some(path) = &arguments.snapshot {
        // The viewer reads the history backwards from the segments.
        events.truncate(events_to_peak);
        let segments = segments.iter().map(|segment| segment.for_viewers("device")).collect();
        write_file(path, snapshot(segments, events).pickle())?;
    }
    Ok(())
}

/// What the trace left allocated, which the picture counts in its head.
fn live_after(events: &[Event]) -> Segment {
    let mut live = BTreeMap::new();
    for Event { action, address, size, .. } in events {
        match action {
            Action::Allocate => _ = live.insert(*address, *size),
            _ => _ = live.remove(address),
        }
    }
    let origin = Origin::default();
    let block = |(address, size): (u64, u64)| Block {
        address,
        size,
        requested: size,
        is_pending: false,
        origin: origin.clone(),
    };
    let blocks: Vec<Block> = live.into_iter().map(block).collect();
    let end = blocks.last().map_or(0, |last| last.address + last.size);
    Segment { address: 0, size: end, kind: "device", blocks }
}
