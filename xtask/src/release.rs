//! The command as people build and measure it does its work at the speed of optimised code.
//!
//! A manifest that compiles the command's own code without optimisation makes both checks fail: a
//! kernel took 36 times its time, a dictionary 6 times. Both limits are multiples of another
//! program's time in the same run, with room for a busy machine. The test run reads the manifest
//! alone (`release_names_no_crate_of_ours`); `cargo xtask ci` builds and measures.

use core::time::Duration;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{self, cargo, command};
use crate::report::Report;
use crate::{environment, folder, usage};

/// How many times a plain loop's time the sample kernel may take.
const LOOPS: f64 = 3.0;
/// How many times the processor time of Python's `json.loads` a dictionary may take.
const READERS: f64 = 3.0;
/// How many dictionaries are read.
const DICTIONARIES: usize = 300_000;
/// The best of so many runs counts: on a busy machine some are slow. A run that is good enough is
/// the last one.
const RUNS: usize = 20;

/// A dictionary as NumPy spells it.
const DICTIONARY: &str = "{'shape': (64, 32), 'typestr': '<f8', 'descr': [('', '<f8')], \
     'data': (140200000000000, False), 'strides': None, 'version': 3}\n";

/// Reads what is in the file, line by line.
const READER: &str = "import json, sys\nfor line in sys.stdin: json.loads(line)";
/// The same dictionary as JSON.
const AS_JSON: &str = "{\"shape\": [64, 32], \"typestr\": \"<f8\", \"descr\": [[\"\", \"<f8\"]], \
     \"data\": [140200000000000, false], \"strides\": null, \"version\": 3}\n";

/// Builds the command as the README does, and measures it.
pub(crate) fn part(report: &mut Report) {
    let mut build = cargo(["build", "--quiet", "--release", "--bin", "usm"]);
    if !report.command("release: build of the command", &mut build) {
        return;
    }
    let program =
        environment::target_dir().join("release").join(format!("usm{}", std::env::consts::EXE_SUFFIX));
    report.check("release: a kernel beside a plain loop", || kernel(&program));
    report.check("release: dictionaries beside a JSON reader", || dictionaries(&program));
    report.check("release: what is left out has a remedy", || remedy(&program));
}

/// A kernel in Rust needs the feature `jit`, which this build lacks.
fn remedy(program: &Path) -> Result<(), String> {
    let file = environment::target_dir().join("left_out.rs");
    fs::write(&file, "#[kernel]\nfn f(a: &mut [u32]) {}\n").map_err(|error| folder::at(&file, &error))?;
    let mut run = command(program);
    let (success, errors) = command::quietly(run.arg("kernel").arg(&file).args(["--emit", "ir"]))?;
    let _ = fs::remove_file(&file);
    let is_refused = !success && errors.contains("--features jit");
    is_refused.then_some(()).ok_or(format!("usm kernel FILE.rs says: {errors}"))
}

fn kernel(program: &Path) -> Result<(), String> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let mut run = command(program);
        run.args(["run", "saxpy", "--json", "--repeat", "20"]);
        let output = command::probe(&mut run).ok_or("usm run saxpy failed")?;
        let number = |key: &str| number_after(&output, key).ok_or(format!("no {key} in {output}"));
        best = best.min(number("\"seconds\":")? / number("\"reference_seconds\":")?);
        if best <= LOOPS {
            break;
        }
    }
    println!("usm run saxpy takes {best:.2} times its plain loop; at most {LOOPS}");
    if best <= LOOPS { Ok(()) } else { Err(format!("{best:.2} times the plain loop, at most {LOOPS}")) }
}

fn dictionaries(program: &Path) -> Result<(), String> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let ours = time(command(program).arg("interface"), DICTIONARY)?;
        let reader = time(command(environment::venv_python()).args(["-c", READER]), AS_JSON)?;
        best = best.min(ours.as_secs_f64() / reader.as_secs_f64().max(1e-9));
        if best <= READERS {
            break;
        }
    }
    println!("usm interface takes {best:.2} times a JSON reader's time; at most {READERS}");
    if best <= READERS { Ok(()) } else { Err(format!("{best:.2} times a JSON reader, at most {READERS}")) }
}

/// The processor time of one run over a file with so many copies of this line.
fn time(program: &mut Command, line: &str) -> Result<Duration, String> {
    let input = environment::target_dir().join("dictionaries.txt");
    let io_error = |error| folder::at(&input, &error);
    fs::write(&input, line.repeat(DICTIONARIES)).map_err(io_error)?;
    program.stdin(File::open(&input).map_err(io_error)?).stdout(Stdio::null());
    let before = usage::total();
    let mut child = program.spawn().map_err(io_error)?;
    let status = usage::wait(&mut child).map_err(io_error)?;
    let _ = fs::remove_file(&input);
    if status.success() { Ok(usage::total() - before) } else { Err(format!("a reader: {status}")) }
}

/// The JSON number behind this key.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = text.split_once(key)?.1.trim_start();
    let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_command_s_document() {
        let text = r#"{"kernel":"saxpy","seconds":0.25,"reference_seconds": 1e-1}"#;
        assert_eq!(number_after(text, "\"seconds\":"), Some(0.25));
        assert_eq!(number_after(text, "\"reference_seconds\":"), Some(0.1));
        assert_eq!(number_after(text, "\"size\":"), None);
    }

    #[test]
    fn release_names_no_crate_of_ours() {
        let manifest = folder::read(&environment::root().join("Cargo.toml")).expect("the manifest");
        let names: Vec<&str> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("[profile.release.package.")?.strip_suffix(']'))
            .collect();
        let ours = |name: &str| environment::root().join(name.trim_matches('"')).join("Cargo.toml").exists();
        assert!(names.iter().all(|name| !ours(name) && !name.contains('*')), "{names:?}");
        assert!(names.len() <= 5, "{names:?}");
    }
}
