//! Traces of real programs: what the pool holds for them, and how long their pairs take.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Allocation, MemorySource};
use usm_pool::Pool;
use usm_pool::pool::replay::{Action, Replay, ReplayOptions, Step, parse, replay};

use super::pair::{PEER, peer, request, units};
use crate::pairs::Clock;
use crate::row::{Row, median};

/// Most bytes of a trace that are live at once in the memory of this machine.
const MOST_LIVE: u64 = 4 << 30;

/// Lines after which a use is complete.
const DELAYS: [u64; 2] = [0, 32];

/// Traces whose allocations should seldom wait for another queue.
const FEW_WAITS: [&str; 2] = ["dataframe", "streams4"];

/// One allocation or free, by a small number for the block.
enum Call {
    Allocate(usize, usize),
    Free(usize),
}

pub(super) fn rows() -> Vec<Row> {
    let traces = match traces() {
        Ok(traces) => traces,
        Err(reason) => {
            eprintln!("skipped: traces: {reason}");
            return Vec::new();
        }
    };
    let mut rows = Vec::new();
    for delay in DELAYS {
        let ratios: Vec<(String, Replay)> =
            traces.iter().map(|(name, steps)| (name.clone(), replayed(steps, delay))).collect();
        let ratio = |(_, replay): &(String, Replay)| replay.ratio;
        let case = |what: &str| format!("{} traces, k = {delay}: reserved, {what}", ratios.len());
        let worst = ratios.iter().map(ratio).fold(1.0, f64::max);
        rows.push(Row::new(&case("mean"), "live", "ratio", mean(ratios.iter().map(ratio)), 1.0));
        rows.push(Row::new(&case("worst"), "live", "ratio", worst, 1.0));
        let few = ratios.iter().filter(|(name, _)| delay > 0 && FEW_WAITS.contains(&&**name));
        rows.extend(few.map(|(name, replay)| {
            let case = format!("{name}, k = {delay}: allocations that wait");
            Row::new(&case, "all", "count", replay.waits as f64, replay.pairs as f64)
        }));
    }
    let times: Vec<(f64, f64)> = traces.iter().map(|(_, steps)| times(steps)).collect();
    let each = traces.iter().zip(&times);
    rows.extend(
        each.map(|((name, _), time)| Row::new(&format!("{name}: a pair"), PEER, "ns", time.0, time.1)),
    );
    let (ours, theirs) = (mean(times.iter().map(|time| time.0)), mean(times.iter().map(|time| time.1)));
    rows.push(Row::new(&format!("{} traces: a pair, mean", traces.len()), PEER, "ns", ours, theirs));
    rows
}

/// The geometric mean.
fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

/// The traces by name.
fn traces() -> Result<Vec<(String, Vec<Step>)>, String> {
    let shared = std::env::var_os("USM_SHARED").ok_or("USM_SHARED is not set")?;
    let folder = Path::new(&shared).join("data/traces");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let steps = parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), steps))
    };
    paths.into_iter().map(read).collect()
}

fn replayed(steps: &[Step], delay: u64) -> Replay {
    let mut options = ReplayOptions::default();
    options.delay = delay;
    replay(steps, &options).expect("a trace that its parser took")
}

/// Nanoseconds of a pair of ours and of the peer's, with the owners stored: medians of passes that
/// take turns. Nothing touches the memory.
fn times(steps: &[Step]) -> (f64, f64) {
    const PASSES: usize = 7;
    let (calls, places) = calls(steps);
    let pairs = calls.iter().filter(|call| matches!(call, Call::Allocate(..))).count() as f64;
    let context = HostHeap::new().context();
    let pool = Pool::new(&context, AllocKind::Shared);
    let other = peer(128 << 30);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let mut owners: Vec<Option<Allocation<HostHeap>>> = (0..places).map(|_| None).collect();
        let start = Clock::Thread.now();
        for call in &calls {
            match *call {
                Call::Allocate(at, size) => {
                    owners[at] = Some(pool.allocate(&request(size)).expect("memory"));
                }
                Call::Free(at) => owners[at] = None,
            }
        }
        ours.push((Clock::Thread.now() - start) as f64 / pairs);
        drop(owners);
        let mut owners: Vec<Option<_>> = (0..places).map(|_| None).collect();
        let start = Clock::Thread.now();
        for call in &calls {
            match *call {
                Call::Allocate(at, size) => {
                    let block = other.lock().expect("no panic").allocate(units(size));
                    owners[at] = Some(block.expect("room"));
                }
                Call::Free(at) => {
                    if let Some(block) = owners[at].take() {
                        other.lock().expect("no panic").free(block);
                    }
                }
            }
        }
        theirs.push((Clock::Thread.now() - start) as f64 / pairs);
        let rest: Vec<_> = owners.into_iter().flatten().collect();
        rest.into_iter().for_each(|block| other.lock().expect("no panic").free(block));
    }
    (median(&mut ours), median(&mut theirs))
}

/// The calls with numbers of places for the live blocks, and how many places there are. Sizes of a
/// trace that does not fit are divided by a power of two.
fn calls(steps: &[Step]) -> (Vec<Call>, usize) {
    let (mut places, mut vacant, mut all) = (HashMap::new(), Vec::new(), 0);
    let (mut live, mut peak) = (0, 0);
    let mut calls = Vec::new();
    for step in steps {
        match step.action {
            Action::Allocate => {
                let place = vacant.pop().unwrap_or_else(|| {
                    all += 1;
                    all - 1
                });
                places.insert(step.id, (place, step.size));
                live += step.size;
                peak = peak.max(live);
                calls.push(Call::Allocate(place, step.size as usize));
            }
            Action::Free => {
                if let Some((place, size)) = places.remove(&step.id) {
                    live -= size;
                    vacant.push(place);
                    calls.push(Call::Free(place));
                }
            }
            _ => {}
        }
    }
    let scale = peak.div_ceil(MOST_LIVE).next_power_of_two() as usize;
    for call in &mut calls {
        if let Call::Allocate(_, size) = call {
            *size = size.div_ceil(scale);
        }
    }
    (calls, all)
}
