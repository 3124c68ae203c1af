//! Code that the tests share: the data folder beside the project, and readers for its simple
//! tables.
#![allow(dead_code)] // Each test binary uses its part.

pub(crate) mod executor;
pub(crate) mod random_graph;
pub(crate) mod tables;
pub(crate) mod views;

use std::path::{Path, PathBuf};

use proptest::prelude::ProptestConfig;
use usm_pool::{Buffer, Graph, Op, Tensor};

/// Settings of the property tests: fewer cases without optimisation, or the number in
/// `PROPTEST_CASES`. Writes no files.
pub(crate) fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        None if cfg!(debug_assertions) => ProptestConfig { cases: 48, ..default },
        _ => default,
    }
}

/// The folder with real instances, or `None` after one line on stderr.
#[track_caller]
pub(crate) fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("USM_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    if folder.join("data/planner").is_dir() {
        return Some(folder);
    }
    let reason = format_args!("no planning instances in {} (set USM_SHARED)", folder.display());
    skip::missing("shared data", reason);
    None
}

/// Names of the real graphs in the data folder, sorted.
pub(crate) fn graph_names(shared: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(shared.join("data/planner"))
        .expect("data folder")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".graph.csv").map(String::from))
        .collect();
    names.sort();
    if cfg!(debug_assertions) {
        // Without optimisation all take minutes; a release run includes them.
        let (small, large): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| {
            let table = shared.join(format!("data/planner/{name}.graph.csv"));
            std::fs::metadata(table).is_ok_and(|table| table.len() < 32_000)
        });
        eprintln!("LEFT OUT of this unoptimised run: {}", large.join(" "));
        return small;
    }
    names
}

/// Buffers of a table `id,lower,upper,size`.
pub(crate) fn buffers(path: &Path) -> Vec<Buffer> {
    let text = std::fs::read_to_string(path).expect("table");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("header").split(',').collect();
    let column = |name: &str| header.iter().position(|field| *field == name);
    let (id, lower, upper, size) = (column("id"), column("lower"), column("upper"), column("size"));
    lines
        .enumerate()
        .map(|(line, text)| {
            let fields: Vec<&str> = text.split(',').collect();
            let number =
                |at: Option<usize>| fields[at.expect("column")].trim().parse::<u64>().expect("number");
            let named = fields[id.expect("id")].trim().parse().unwrap_or(line as u64);
            Buffer::new(named, number(lower), number(upper), number(size))
        })
        .collect()
}

/// The operator graph `NAME.graph.csv` with the sizes of `NAME.csv` and the outputs of
/// `NAME.outputs`.
pub(crate) fn graph(shared: &Path, name: &str) -> Graph {
    let folder = shared.join("data/planner");
    let mut builder = Graph::builder().default_alignment(64);
    for buffer in buffers(&folder.join(format!("{name}.csv"))) {
        builder = builder.tensor(Tensor::new(buffer.id, buffer.size));
    }
    let ids = |text: &str| {
        text.split(';').filter(|id| !id.is_empty()).map(|id| id.parse().expect("id")).collect::<Vec<u64>>()
    };
    let text = std::fs::read_to_string(folder.join(format!("{name}.graph.csv"))).expect("graph");
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        builder = builder.op(Op::new("").inputs(ids(fields[1])).outputs(ids(fields[2])));
    }
    let outputs = std::fs::read_to_string(folder.join(format!("{name}.outputs"))).expect("outputs");
    for id in ids(outputs.trim()) {
        builder = builder.output(id);
    }
    builder.build().expect("graph")
}
