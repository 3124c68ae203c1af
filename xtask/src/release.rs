//! The command as people build and measure it: `target/release/usm` does its work at the speed of
//! optimised code.
//!
//! A manifest that compiles the command's own code without optimisation makes both checks fail: a
//! kernel took 36 times its time, a dictionary 6 times. The limits leave room for a slow and busy
//! machine.

use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{self, cargo};
use crate::report::Report;
use crate::{environment, folder, usage};

/// How many times a plain loop's time the sample kernel may take.
const LOOPS: f64 = 3.0;
/// How many plain dictionaries a second of processor time reads, at least.
const DICTIONARIES: u32 = 300_000;
/// The best of so many runs counts: on a busy machine some are slow. A run that is good enough is
/// the last one.
const RUNS: usize = 20;

/// A dictionary as NumPy spells it.
const DICTIONARY: &str = "{'shape': (64, 32), 'typestr': '<f8', 'descr': [('', '<f8')], \
     'data': (140200000000000, False), 'strides': None, 'version': 3}\n";

/// Builds the command as the README does, and measures it.
pub(crate) fn part(report: &mut Report) {
    let mut build = cargo(["build", "--quiet", "--release", "--bin", "usm"]);
    if !report.command("release: build of the command", &mut build) {
        return;
    }
    let program =
        environment::target_dir().join("release").join(format!("usm{}", std::env::consts::EXE_SUFFIX));
    report.check("release: a kernel beside a plain loop", || kernel(&program));
    report.check("release: dictionaries", || dictionaries(&program));
    report.check("release: what is left out has a remedy", || remedy(&program));
}

/// A kernel in Rust needs the feature `jit`, which this build lacks.
fn remedy(program: &Path) -> Result<(), String> {
    let file = environment::target_dir().join("left_out.rs");
    fs::write(&file, "#[kernel]\nfn f(a: &mut [u32]) {}\n").map_err(|error| folder::at(&file, &error))?;
    let mut run = Command::new(program);
    let (success, said) = command::quietly(run.arg("kernel").arg(&file).args(["--emit", "ir"]))?;
    let _ = fs::remove_file(&file);
    let refused = !success && said.contains("--features jit");
    refused.then_some(()).ok_or(format!("usm kernel FILE.rs says: {said}"))
}

fn kernel(program: &Path) -> Result<(), String> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let mut run = Command::new(program);
        run.args(["run", "saxpy", "--json", "--repeat", "20"]);
        let printed = command::probe(&mut run).ok_or("usm run saxpy failed")?;
        let number = |key: &str| number_after(&printed, key).ok_or(format!("no {key} in {printed}"));
        best = best.min(number("\"seconds\":")? / number("\"reference_seconds\":")?);
        if best <= LOOPS {
            break;
        }
    }
    println!("usm run saxpy takes {best:.2} times its plain loop; at most {LOOPS}");
    if best <= LOOPS { Ok(()) } else { Err(format!("{best:.2} times the plain loop, at most {LOOPS}")) }
}

fn dictionaries(program: &Path) -> Result<(), String> {
    let input = environment::target_dir().join("dictionaries.txt");
    fs::write(&input, DICTIONARY.repeat(DICTIONARIES as usize))
        .map_err(|error| folder::at(&input, &error))?;
    let mut rate = 0.0_f64;
    for _ in 0..RUNS {
        rate = rate.max(f64::from(DICTIONARIES) / time(program, &input)?.as_secs_f64().max(1e-9));
        if rate >= f64::from(DICTIONARIES) {
            break;
        }
    }
    let _ = fs::remove_file(&input);
    println!(
        "usm interface reads {rate:.0} dictionaries a second of processor time; at least {DICTIONARIES}"
    );
    let enough = rate >= f64::from(DICTIONARIES);
    enough.then_some(()).ok_or(format!("{rate:.0} dictionaries a second, at least {DICTIONARIES}"))
}

/// The processor time of one run over the file.
fn time(program: &Path, input: &PathBuf) -> Result<Duration, String> {
    let input = File::open(input).map_err(|error| folder::at(input, &error))?;
    let mut run = Command::new(program);
    run.arg("interface").stdin(input).stdout(Stdio::null());
    let before = usage::total();
    let mut child = run.spawn().map_err(|error| folder::at(program, &error))?;
    let status = usage::wait(&mut child).map_err(|error| folder::at(program, &error))?;
    if status.success() { Ok(usage::total() - before) } else { Err(format!("usm interface: {status}")) }
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
