//! Pruning beside the reference pass of llvmlite, on the graphs of real modules.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::Value as Json;
use usm_prune::{Cfg, CfgBuilder, OpKind, Options, Value, prune};

use crate::row::Row;

/// Nanoseconds for each removed operation: ours between two runs of the reference, so that both see
/// the same modules. Parsing is not counted. The reference works on LLVM's graph, ours on the
/// neutral one.
pub(super) fn beside_llvmlite() -> Result<Row, String> {
    let shared = std::env::var_os("USM_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let file = shared.join("data/nrt/real.json");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let records: Vec<Json> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let modules: Vec<(Cfg, Options)> = records.iter().filter_map(graphs).flatten().collect();

    let (removed_before, before) = reference(&file)?;
    let mut times = Vec::new();
    let mut removals = 0;
    for _ in 0..51 {
        let mut fresh: Vec<(Cfg, Options)> = modules.clone();
        let start = Instant::now();
        removals = fresh.iter_mut().map(|(cfg, options)| prune(cfg, options).total()).sum::<usize>();
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    let (_, after) = reference(&file)?;
    if removals != removed_before {
        return Err(format!("we remove {removals} operations, llvmlite {removed_before}"));
    }
    let each = |nanoseconds: f64| nanoseconds / removals as f64;
    let (ours, theirs) = (each(times[times.len() / 2]), each((before + after) / 2.0));
    Ok(Row::new("prune 22 real modules, an operation", "llvmlite's pass", "ns", ours, theirs))
}

/// Operations removed and nanoseconds of one pass over all modules.
fn reference(file: &std::path::Path) -> Result<(usize, f64), String> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/refprune.py");
    let output = Command::new(python).arg(script).arg(file).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace();
    match (numbers.next().map(str::parse), numbers.next().map(str::parse)) {
        (Some(Ok(count)), Some(Ok(nanoseconds))) => Ok((count, nanoseconds)),
        _ => Err(format!("refprune.py: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The graphs of a record's functions.
fn graphs(record: &Json) -> Option<Vec<(Cfg, Options)>> {
    let options =
        Options { subgraph_limit: record["subgraph_limit"].as_u64()? as usize, ..Options::default() };
    record["functions"].as_object()?.values().map(|blocks| Some((graph(blocks)?, options))).collect()
}

fn graph(blocks: &Json) -> Option<Cfg> {
    let blocks = blocks.as_array()?;
    let mut builder = CfgBuilder::new();
    let mut ids = HashMap::new();
    for block in blocks {
        ids.insert(block["name"].as_str()?, builder.block(block["raising"].as_bool()?));
    }
    let mut values = HashMap::new();
    for block in blocks {
        let id = ids[block["name"].as_str()?];
        for successor in block["succ"].as_array()? {
            builder.edge(id, *ids.get(successor.as_str()?)?);
        }
        for op in block["ops"].as_array()? {
            let kind = if op[0] == "inc" { OpKind::Inc } else { OpKind::Dec };
            let name = op[1].as_str()?;
            let next = values.len() as u32;
            let value = if name == "null" { Value::NULL } else { Value(*values.entry(name).or_insert(next)) };
            builder.op(id, kind, value);
        }
    }
    builder.build().ok()
}
