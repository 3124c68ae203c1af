//! Test programs with a `main` of their own, because each case needs a process. Selects the
//! requested cases, and reports their results in the format of cargo's harness.

use core::fmt::Display;
use std::process::ExitCode;

/// Whether the command line selects the case: a word selects by a part of the name, and no word
/// selects all. Arguments that cargo passes to all harnesses begin with a dash.
#[must_use]
pub fn is_wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// The results of the cases.
#[derive(Debug, Default)]
#[must_use]
pub struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// A case that passed.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts a failed case, with the reason.
    pub fn fail(&mut self, case: &str, reason: impl Display) {
        self.failed += 1;
        println!("{case}: {reason}");
    }

    /// Counts a case that does not run because a runtime is missing; a failure if the runtime is
    /// required.
    pub fn miss(&mut self, runtime: &str, case: &str, reason: impl Display) {
        if skip::is_required(runtime) {
            return self.fail(case, format_args!("required: {runtime}: {reason}"));
        }
        self.skipped += 1;
        skip::announce(case, format_args!("{runtime}: {reason}"));
    }

    /// Counts the cases that another process reported itself.
    pub fn add(&mut self, passed: usize, skipped: usize) {
        self.passed += passed;
        self.skipped += skipped;
    }

    /// Prints the last line. Returns the status of the process.
    pub fn end(self) -> ExitCode {
        let Self { passed, failed, skipped } = self;
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!("test result: {verdict}. {passed} passed; {failed} failed; {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
