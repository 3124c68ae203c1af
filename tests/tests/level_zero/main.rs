//! The Level Zero backend, everywhere that a machine without an Intel GPU can take it: on the driver that executes on the
//! host, behind the unmodified loader and as a loader itself, and on Intel's GPU driver in capture mode, which
//! records calls and runs nothing.
//!
//! Its own harness: one process for each configuration, because loader and drivers read their environment once. Words on
//! the command line select the configurations whose names contain one of them; `LEVEL_ZERO_CASES` does the same for cases.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod capture;
mod configuration;
mod devices;
mod driver;
mod faults;
mod kernels;
mod suite;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use configuration::{CONFIGURATIONS, Configuration};
use usm_tests::process;

/// What a child reads to know that it is one.
const VARIABLE: &str = "LEVEL_ZERO_CONFIGURATION";
/// Words, separated by commas: only cases whose names contain one of them.
const CASES: &str = "LEVEL_ZERO_CASES";
/// No configuration may hang.
const LIMIT: Duration = Duration::from_secs(240);

/// Name and body of a case; the error is the reason for which it cannot run here.
type Case = (&'static str, fn() -> Result<(), String>);

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        let wanted = CONFIGURATIONS.iter().find(|configuration| configuration.name == name);
        return child(wanted.expect("a known configuration"));
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let selected = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let required = std::env::var("USM_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|name| name == "level_zero");
    let (mut passed, mut failed) = (0, 0);
    for configuration in CONFIGURATIONS.iter().filter(|configuration| selected(configuration.name)) {
        let outcome = match configuration.variables() {
            Ok(variables) => parent(configuration, variables),
            Err(reason) if required && !configuration.may_be_absent() => Err(format!("required: {reason}")),
            Err(reason) => {
                eprintln!("skipped: Level Zero, {}: {reason}", configuration.name);
                continue;
            }
        };
        match outcome {
            Ok(count) => passed += count,
            Err(reason) => {
                failed += 1;
                println!("{}: {reason}", configuration.name);
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program again in the configuration's environment: the cases that passed, or what went wrong.
fn parent(configuration: &Configuration, variables: Vec<configuration::Variable>) -> Result<usize, String> {
    let ended = process::again(VARIABLE, configuration.name, LIMIT, |command| {
        for (name, _) in std::env::vars_os() {
            // A machine's own settings are for its own runtime.
            let setting = name.to_string_lossy().starts_with("ZE_") || name == "USM_LEVEL_ZERO_LIBRARY";
            if setting && !configuration.may_be_absent() {
                command.env_remove(name);
            }
        }
        command.envs(variables).stderr(Stdio::piped());
    });
    if ended.well() {
        return Ok(ended.out.lines().filter(|line| line.starts_with("ok ")).count());
    }
    let running = ended.out.lines().last().unwrap_or("nothing");
    Err(format!("{}, last was: {running}\n{}", ended.end, ended.errors))
}

/// Runs the cases of a configuration in this process.
fn child(configuration: &Configuration) -> ExitCode {
    let mut failed = 0;
    let words = std::env::var(CASES).unwrap_or_default();
    let selected = |name: &str| words.is_empty() || words.split(',').any(|word| name.contains(word));
    for (name, body) in (configuration.cases)().into_iter().filter(|(name, _)| selected(name)) {
        println!("begins {name}");
        let _ = std::io::stdout().flush();
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => println!("ok {name}"),
            Ok(Err(reason)) => {
                failed += 1;
                eprintln!("{name} did not run: {reason}");
            }
            Err(panic) => {
                failed += 1;
                eprintln!("{name} failed: {}", process::message(panic.as_ref()));
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
