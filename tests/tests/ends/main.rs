//! Programs end in every way while work is in flight on every runtime. The status is the program's,
//! standard error is empty or has one line about unfinished work, and nothing hangs.
//!
//! Its own harness: each case is a process, this program with the case's name. Words on the command
//! line select the cases whose names contain all of them. `USM_ENDS_RUNS` is the number of runs of
//! each case, with both orders of queues; by default each runs once, and the orders alternate.
//! `USM_FORKS` is the number of children of the cases that fork.

#![cfg(target_os = "linux")]
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod forks;
mod program;
mod runtimes;
mod signals;
mod ways;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use program::Program;
use runtimes::{RUNTIMES, Runtime};
use usm_core::QueueOrder;
use usm_tests::harness::Tally;
use usm_tests::process;
use ways::{WAYS, Way};

/// A child's variable: runtime, order and way.
const VARIABLE: &str = "USM_ENDS_CASE";
/// Time limit of a case.
const LIMIT: Duration = Duration::from_secs(90);
/// The beginning of the line about unfinished work.
const LINE: &str = "usm: the process ends although ";

const ORDERS: [(&str, QueueOrder); 2] =
    [("in_order", QueueOrder::InOrder), ("out_of_order", QueueOrder::OutOfOrder)];

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(VARIABLE) {
        return child(&case);
    }
    let runs: Option<usize> = std::env::var("USM_ENDS_RUNS").ok().and_then(|runs| runs.parse().ok());
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut tally = Tally::default();
    for (row, runtime) in RUNTIMES.iter().enumerate() {
        for (column, way) in WAYS.iter().enumerate() {
            let orders = if runs.is_some() { &ORDERS[..] } else { &ORDERS[(row + column) % 2..][..1] };
            for (order, _) in orders {
                let name = format!("{}::{order}::{}", runtime.name, way.name);
                if words.iter().all(|word| name.contains(word.as_str())) && way.is_for(runtime) {
                    (0..runs.unwrap_or(1)).for_each(|_| parent(runtime, way, &name, &mut tally));
                }
            }
        }
    }
    tally.end()
}

fn parent(runtime: &Runtime, way: &Way, name: &str, tally: &mut Tally) {
    let variables = match (runtime.variables)() {
        Ok(variables) => variables,
        Err(reason) => return tally.miss(runtime.required_as, name, &reason),
    };
    let ended = process::again(VARIABLE, name, LIMIT, |command| {
        // The machine's own settings are for its own runtimes.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ZE_") {
                command.env_remove(name);
            }
        }
        command.envs(variables).stderr(Stdio::piped());
    });
    let said: Vec<&str> = ended.errors.lines().filter(|line| !(way.may_say)(line)).collect();
    let may_be_late = runtime.never_answers || way.is_late;
    let is_line = said.len() == 1 && said[0].starts_with(LINE);
    let is_heard = if runtime.never_answers && way.waits() {
        is_line
    } else {
        said.is_empty() || (may_be_late && is_line)
    };
    if ended.end == way.end && is_heard {
        tally.pass();
    } else {
        tally.fail(
            name,
            format_args!("{}, not {}; it said:\n{}{}", ended.end, way.end, ended.out, ended.errors),
        );
    }
}

fn child(case: &str) -> ExitCode {
    let mut parts = case.split("::");
    let mut next = || parts.next().expect("a part of the case's name");
    let (runtime, order, way) = (next(), next(), next());
    let runtime = RUNTIMES.iter().find(|known| known.name == runtime).expect("a known runtime");
    let (_, order) = ORDERS.into_iter().find(|(known, _)| *known == order).expect("a known order");
    let way = WAYS.iter().find(|known| known.name == way).expect("a known way");
    (way.before)();
    (way.go)(Program::start(runtime, order))
}
