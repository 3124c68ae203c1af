//! Benchmarks with their peers:
//! `usm-bench NAME... [--json] [--native] [--instances DIR...] [--table FILE]`.
//!
//! Each row compares one of our operations with one peer in the same process, measured in turns.
//! Never part of the tests.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod arguments;
mod backends;
mod compile;
mod cpu_time;
mod formats;
mod ggml;
mod interface;
mod kernel;
mod nrt;
mod pairs;
mod planner;
mod pool;
mod python;
mod row;

use std::process::ExitCode;

use arguments::Arguments;
use row::Row;

/// A benchmark and its function.
type Bench = (&'static str, fn() -> Vec<Row>);

/// Every benchmark by name.
const BENCHES: &[Bench] = &[
    ("algorithms", python::algorithms),
    ("backends", backends::rows),
    ("compile", compile::rows),
    ("copies", python::copies),
    ("files", python::files),
    ("everyday", python::everyday),
    ("formats", formats::rows),
    ("ggml", ggml::rows),
    ("interface", interface::rows),
    ("kernel", kernel::rows),
    ("nrt", nrt::rows),
    ("package", python::package),
    ("planner", planner::rows),
    ("pool", pool::rows),
    ("python", python::kernels),
];

fn main() -> ExitCode {
    let arguments = match Arguments::get() {
        Ok(arguments) => arguments,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(2);
        }
    };
    let names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    let is_known = |name: &&str| BENCHES.iter().any(|(bench, _)| bench == name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let all: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        eprintln!("no benchmark {name}; there are: {}", all.join(", "));
        return ExitCode::from(2);
    }
    let benches = BENCHES.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
    let mut rows: Vec<Row> = benches.flat_map(|(_, rows)| rows()).collect();
    if arguments.native {
        rows.iter_mut().for_each(|row| row.target = Some("native".into()));
    }
    if arguments.json {
        println!("{}", serde_json::to_string(&rows).expect("rows are plain data"));
    } else {
        row::print(&rows);
    }
    ExitCode::SUCCESS
}
