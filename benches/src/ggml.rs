//! Graphs of ggml, planned by the C structs of usm-plan as ggml's allocator reserves and allocates,
//! compared with the buffer that ggml-alloc asked for.
//!
//! `--instances DIR...` names folders of `*.trace` files, which `benches/ggml/record.py` records
//! from llama.cpp. The C program of usm-plan's tests replays each on the library of
//! `cargo xtask planner`, which `USM_PLAN_LIBRARY` names. The library checks each plan; the same
//! program's offsets are judged from the trace alone by usm-plan's test `ggml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::row::Row;

/// For all of the calls from `usm_plan_graph_begin` to `usm_plan_graph_end`.
const GOAL_MICROSECONDS: f64 = 2000.0;

pub(crate) fn rows() -> Vec<Row> {
    replayed().unwrap_or_else(|reason| {
        eprintln!("skipped: ggml: {reason}");
        Vec::new()
    })
}

fn replayed() -> Result<Vec<Row>, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let tests = crates.join("usm-plan/tests");
    let library =
        std::env::var_os("USM_PLAN_LIBRARY").ok_or("no USM_PLAN_LIBRARY; use `cargo xtask bench`")?;
    let program = build(&crates.join("usm-plan/include"), &tests.join("c/ggml.c"), Path::new(&library))?;
    let arguments = Arguments::get()?;
    let mut folders = arguments.instances;
    if folders.is_empty() {
        folders.push(tests.join("ggml"));
    }
    eprintln!(
        "{:24} {:>6} {:>7} {:>13} {:>13} {:>13} {:>6} {:>8} {:>8}",
        "graph", "ops", "tensors", "theirs", "ours", "bound", "ratio", "plan us", "again us"
    );
    let mut rows = Vec::new();
    for folder in &folders {
        for file in traces(folder)? {
            rows.extend(replay(&program, &file).map_err(|reason| format!("{}: {reason}", file.display()))?);
        }
    }
    Ok(rows)
}

/// Compiles the program beside the library.
fn build(include: &Path, source: &Path, library: &Path) -> Result<PathBuf, String> {
    let folder = library.parent().ok_or("the library has no folder")?;
    let program = folder.join("ggml-replay");
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=c11", "-O2", "-I"]).arg(include).arg("-o").arg(&program).arg(source);
    cc.arg("-L").arg(folder).arg("-lusm_plan").arg(format!("-Wl,-rpath,{}", folder.display()));
    output(&mut cc)?;
    Ok(program)
}

fn traces(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files: Vec<PathBuf> =
        folder.read_dir().map_err(at)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "trace"));
    files.sort();
    Ok(files)
}

fn replay(program: &Path, file: &Path) -> Result<[Row; 2], String> {
    let trace = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let count = |words: &[&str]| {
        trace.lines().filter(|line| words.contains(&line.split(' ').next().unwrap_or_default())).count()
    };
    let first = trace.lines().next().unwrap_or_default().rsplit(' ').next();
    let theirs: f64 = first.and_then(|word| word.parse().ok()).ok_or("no bytes in its first line")?;
    let text = output(Command::new(program).arg(file).arg("101"))?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [reserve, allocate, peak, bound, _] = numbers[..] else {
        return Err(format!("the program printed `{text}`"));
    };
    let (reserve, allocate) = (reserve / 1e3, allocate / 1e3);
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    eprintln!(
        "{name:24} {:6} {:7} {theirs:13} {peak:13} {bound:13} {:6.3} {reserve:8.0} {allocate:8.2}",
        count(&["op"]),
        count(&["tensor", "view"]),
        peak / theirs
    );
    Ok([
        Row::new(&name, "ggml-alloc", "bytes", peak, theirs),
        Row::new(&format!("{name}, whole call"), "goal", "us", reserve, GOAL_MICROSECONDS),
    ])
}

fn output(command: &mut Command) -> Result<String, String> {
    let run = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if run.status.success() {
        return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
    }
    Err(format!("{command:?}: {}: {}", run.status, String::from_utf8_lossy(&run.stderr)))
}
