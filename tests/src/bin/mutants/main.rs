//! Wrong inputs for each checker of the workspace, made from right ones. The checker must refuse
//! every wrong one and accept every right one. `cargo xtask mutants` runs this. A panic of a
//! checker is no refusal.

#![allow(clippy::std_instead_of_alloc, reason = "a program for people: std is always there")]

mod conformance;
mod kernels;
mod mock;
mod plans;

use core::any::Any;
use core::fmt::Display;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::process::ExitCode;

/// The results of one checker.
pub(crate) struct Checker {
    name: &'static str,
    mutants: usize,
    killed: usize,
    alive: Vec<String>,
    names: BTreeSet<String>,
}

impl Checker {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, mutants: 0, killed: 0, alive: Vec::new(), names: BTreeSet::new() }
    }

    /// A right input, which `check` must accept. A refused one counts as undetected.
    pub(crate) fn right<T, E: Display>(&mut self, what: &str, check: impl FnOnce() -> Result<T, E>) {
        match outcome(check) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.alive.push(format!("right, but refused: {what}: {error}")),
            Err(panic) => self.alive.push(format!("right, but panicked: {what}: {panic}")),
        }
    }

    /// A wrong input, which `check` must refuse. `what` is its unique name.
    pub(crate) fn wrong<T, E: Display>(&mut self, what: &str, check: impl FnOnce() -> Result<T, E>) {
        assert!(self.names.insert(what.to_owned()), "{}: two mutants are called {what}", self.name);
        self.mutants += 1;
        match outcome(check) {
            Ok(Err(_)) => self.killed += 1,
            Ok(Ok(())) => self.alive.push(what.to_owned()),
            Err(panic) => self.alive.push(format!("panicked: {what}: {panic}")),
        }
    }

    fn json(&self) -> String {
        let alive: Vec<String> = self.alive.iter().map(|name| quoted(name)).collect();
        let (name, alive) = (quoted(self.name), alive.join(","));
        format!(
            "{{\"name\":{name},\"mutants\":{},\"killed\":{},\"alive\":[{alive}]}}",
            self.mutants, self.killed
        )
    }
}

fn outcome<T, E: Display>(check: impl FnOnce() -> Result<T, E>) -> Result<Result<(), String>, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| check().map(drop).map_err(|error| error.to_string())));
    checked.map_err(|panic| message(&*panic))
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted += &format!("\\u{:04x}", control as u32),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

fn main() -> ExitCode {
    let json = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [only] if only == "--json" => true,
        other => {
            eprintln!("unexpected arguments: {}", other.join(" "));
            return ExitCode::from(2);
        }
    };
    let checkers = [
        plans::plan_verify(),
        plans::certificates(),
        plans::graph(),
        plans::ends_of_iterations(),
        plans::void_permits(),
        plans::proofs(),
        kernels::launches(),
        mock::violations(),
        conformance::suite_on_faulty_backends(),
    ];
    if json {
        let rows: Vec<String> = checkers.iter().map(Checker::json).collect();
        println!("{{\"checkers\":[{}]}}", rows.join(","));
    } else {
        for Checker { name, mutants, killed, alive, .. } in &checkers {
            println!("{name:<24} {killed:>4} of {mutants:>4} mutants killed");
            for name in alive {
                println!("    {name}");
            }
        }
        let killed: usize = checkers.iter().map(|checker| checker.killed).sum();
        let alive: usize = checkers.iter().map(|checker| checker.alive.len()).sum();
        let verdict = if alive == 0 { "ok" } else { "FAILED" };
        println!("test result: {verdict}. {killed} passed; {alive} failed");
    }
    if checkers.iter().all(|checker| checker.alive.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
