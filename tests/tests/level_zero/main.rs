//! The Level Zero backend in every way possible without an Intel GPU: on the executing host driver,
//! behind the unmodified loader and in place of it, and on Intel's GPU driver in capture mode,
//! which records calls and runs nothing.
//!
//! Its own harness: a process for each configuration, because loader and drivers read their
//! environment once. Words on the command line select the configurations whose names contain one of
//! them; `LEVEL_ZERO_CASES` does the same for cases.

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
use usm_tests::harness::{Tally, is_wanted};
use usm_tests::{process, skip};

/// A child's variable for its configuration.
const VARIABLE: &str = "LEVEL_ZERO_CONFIGURATION";
/// No configuration may hang.
const LIMIT: Duration = Duration::from_secs(900);

/// Name and body of a case. The error is the reason why it cannot run.
type Case = (&'static str, fn() -> Result<(), String>);

/// Functions as cases, by their names.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        [$((stringify!($case), $case as fn() -> Result<(), String>)),*]
    };
}
use cases;

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        let wanted = CONFIGURATIONS.iter().find(|configuration| configuration.name == name);
        return child(wanted.expect("a known configuration"));
    }
    let mut tally = Tally::default();
    for configuration in CONFIGURATIONS.iter().filter(|configuration| is_wanted(configuration.name)) {
        match configuration.variables() {
            Ok(variables) => parent(configuration, variables, &mut tally),
            Err(reason) => {
                for (name, _) in configuration.wanted_cases() {
                    tally.miss(configuration.required_as(), &configuration.named(name), &reason);
                }
            }
        }
    }
    tally.end()
}

/// Runs this program again in the configuration's environment, and adds the results of its cases.
fn parent(configuration: &Configuration, variables: Vec<configuration::Variable>, tally: &mut Tally) {
    let ended = process::again(VARIABLE, configuration.name, LIMIT, |command| {
        for (name, _) in std::env::vars_os() {
            // The machine's own settings are for its own runtime.
            let setting = name.to_string_lossy().starts_with("ZE_") || name == "USM_LEVEL_ZERO_LIBRARY";
            if setting && !configuration.may_be_absent() {
                command.env_remove(name);
            }
        }
        command.envs(variables).stderr(Stdio::piped());
    });
    if ended.well() {
        let ended_well = ended.out.lines().filter(|line| line.starts_with("ok ")).count();
        let skipped = skip::repeat(&ended.errors);
        tally.add(ended_well - skipped, skipped);
    } else {
        let running = ended.out.lines().last().unwrap_or("nothing");
        tally.fail(configuration.name, format_args!("{}, last was: {running}\n{}", ended.end, ended.errors));
    }
}

/// Runs the cases of a configuration in this process.
fn child(configuration: &Configuration) -> ExitCode {
    let mut failed = 0;
    for (name, body) in configuration.wanted_cases() {
        println!("begins {name}");
        let _ = std::io::stdout().flush();
        match skip::named(&configuration.named(name), || catch_unwind(AssertUnwindSafe(body))) {
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
