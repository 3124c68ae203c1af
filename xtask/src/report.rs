//! One summary at the end: the parts, their time, and the skipped ones with the reason.

use core::cmp::Reverse;
use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use crate::command::{self, Outcome};
use crate::{Failure, environment, usage};

/// The parts of one run, in order.
#[derive(Debug)]
pub(crate) struct Report {
    parts: Vec<Part>,
    skips: Vec<String>,
    failures: Vec<String>,
    /// The test programs that ran, with their time.
    programs: Vec<(String, Time)>,
    ci: bool,
    start: Instant,
}

/// How many of the test programs the summary names: those that took most processor time.
const NAMED: usize = 16;

#[derive(Debug)]
struct Part {
    name: String,
    verdict: &'static str,
    pass_count: u64,
    fail_count: u64,
    skip_count: u64,
    /// When it ended, after the start of the run.
    end: Duration,
    /// Wall time, and processor time of the programs that it ran.
    time: Time,
}

/// Wall time and processor time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Time {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

/// Measures from its creation on, in one thread.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    cpu: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), cpu: usage::total() }
    }

    pub(crate) fn time(&self) -> Time {
        Time { wall: self.start.elapsed(), cpu: usage::total().saturating_sub(self.cpu) }
    }
}

/// The begin of the reason why something could not be downloaded.
pub(crate) const NO_NETWORK: &str = "no network";

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            parts: Vec::new(),
            skips: Vec::new(),
            failures: Vec::new(),
            programs: Vec::new(),
            ci: environment::is_ci(),
            start: Instant::now(),
        }
    }

    /// A part that runs one program and counts its tests. A program without test counts is one
    /// check.
    pub(crate) fn command(&mut self, name: &str, program: &mut Command) -> bool {
        announce(name);
        let clock = Clock::start();
        let outcome = command::run(program);
        self.record(name, outcome, clock.time())
    }

    /// [`command`](Self::command) for a program under a checker that may abort. An abort is no
    /// verdict, so the program runs again, at most twice.
    pub(crate) fn command_under_checker(&mut self, name: &str, program: &mut Command) -> bool {
        announce(name);
        let clock = Clock::start();
        let mut outcome = command::run(program);
        for attempt in 1..=2 {
            if !outcome.checker_ended {
                break;
            }
            self.skips.push(format!("in part: {name}: the checker ended itself, run again ({attempt})"));
            outcome = command::run(program);
        }
        self.record(name, outcome, clock.time())
    }

    /// A part written in Rust; it counts as one check.
    pub(crate) fn check(&mut self, name: &str, body: impl FnOnce() -> Result<(), String>) -> bool {
        announce(name);
        let clock = Clock::start();
        let result = body();
        self.judge(name, result, clock.time())
    }

    /// [`check`](Self::check) of what is downloaded: without a network it is a skip with its
    /// reason, or a failure in CI.
    pub(crate) fn set_up(&mut self, name: &str, body: impl FnOnce() -> Result<(), String>) -> bool {
        announce(name);
        let clock = Clock::start();
        match body() {
            Err(reason) if reason.starts_with(NO_NETWORK) && !self.ci => {
                self.skips.push(format!("{name}: {reason}"));
                self.push(name, "skipped", [0, 0, 1], clock.time());
                false
            }
            result => self.judge(name, result, clock.time()),
        }
    }

    fn judge(&mut self, name: &str, result: Result<(), String>, time: Time) -> bool {
        if let Err(message) = &result {
            eprintln!("{name}: {message}");
        }
        let failures = result.clone().err().into_iter().collect();
        let outcome = Outcome { success: result.is_ok(), failures, ..Outcome::default() };
        self.record(name, outcome, time)
    }

    /// An empty report of parts that run beside those of this one.
    pub(crate) fn beside(&self) -> Self {
        Self { start: self.start, ..Self::new() }
    }

    /// The parts of a run beside this one join it, in the order of their ends.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.parts.extend(other.parts);
        self.parts.sort_by_key(|part| part.end);
        self.skips.extend(other.skips);
        self.failures.extend(other.failures);
        self.programs.extend(other.programs);
    }

    /// Notes how long a test program ran. Its counts are part of a row of its package.
    pub(crate) fn program(&mut self, name: String, time: Time) {
        self.programs.push((name, time));
    }

    /// A required part that cannot run: a skip with its reason, or a failure in CI.
    pub(crate) fn missing(&mut self, name: &str, reason: &str) {
        self.skips.push(format!("{name}: {reason}"));
        let fail_count = u64::from(self.ci);
        if self.ci {
            self.failures.push(format!("{name}: {reason}"));
        }
        let verdict = if self.ci { "missing" } else { "skipped" };
        self.push(name, verdict, [0, fail_count, 1 - fail_count], Time::default());
    }

    /// A part that has nothing to check yet, in CI too: a skip with its reason.
    pub(crate) fn not_applicable(&mut self, name: &str, reason: &str) {
        self.skips.push(format!("{name}: {reason}"));
        self.push(name, "skipped", [0, 0, 1], Time::default());
    }

    /// Prints the summary. The last lines have the times, what failed and the totals: a log that is
    /// cut at its beginning still tells what broke and what took long.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        println!();
        for skip in &self.skips {
            println!("skipped: {skip}");
        }
        let width = self.parts.iter().map(|part| part.name.len()).max().unwrap_or(0).max("total".len());
        let (mut pass_count, mut fail_count, mut skip_count, mut cpu) = (0, 0, 0, Duration::ZERO);
        println!(
            "\n{:width$}  {:8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7}",
            "part", "verdict", "passed", "failed", "skipped", "wall", "cpu", "end"
        );
        let row = |name: &str, verdict: &str, counts: [u64; 3], time: Time, end: Duration| {
            let [pass_count, fail_count, skip_count] = counts;
            let (wall, cpu) = (time.wall.as_secs_f64(), time.cpu.as_secs_f64());
            let counts = format!("{pass_count:8} {fail_count:8} {skip_count:8}");
            println!("{name:width$}  {verdict:8} {counts} {wall:8.1}s {cpu:8.1}s {:6}s", end.as_secs());
        };
        for part in &self.parts {
            pass_count += part.pass_count;
            fail_count += part.fail_count;
            skip_count += part.skip_count;
            cpu += part.time.cpu;
            row(
                &part.name,
                part.verdict,
                [part.pass_count, part.fail_count, part.skip_count],
                part.time,
                part.end,
            );
        }
        let wall = self.start.elapsed();
        row("total", "", [pass_count, fail_count, skip_count], Time { wall, cpu }, wall);
        self.programs.sort_by_key(|(_, time)| Reverse(time.cpu));
        for (name, Time { wall, cpu }) in self.programs.iter().take(NAMED) {
            println!(
                "took {:6.1}s of processor time in {:6.1}s: {name}",
                cpu.as_secs_f64(),
                wall.as_secs_f64()
            );
        }
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{pass_count} passed, {fail_count} failed, {skip_count} skipped");
        if fail_count == 0 { Ok(()) } else { Err(Failure::Reported) }
    }

    /// A part whose programs ran elsewhere.
    pub(crate) fn record(&mut self, name: &str, outcome: Outcome, time: Time) -> bool {
        let Outcome { success, mut pass_count, mut fail_count, skip_count, skips, failures, status, .. } =
            outcome;
        if pass_count + fail_count + skip_count == 0 && success {
            pass_count = 1;
        }
        // A build error or a crash fails no named test, but is a failure.
        if !success && fail_count == 0 {
            fail_count = 1;
        }
        for skip in skips {
            let line = format!("{name}: {skip}");
            if !self.skips.contains(&line) {
                self.skips.push(line);
            }
        }
        let good = success && fail_count == 0;
        self.failures.extend(failures.iter().map(|failure| format!("{name}: {failure}")));
        if !good && failures.is_empty() {
            self.failures.push(format!("{name}: {status}"));
        }
        self.push(name, if good { "passed" } else { "FAILED" }, [pass_count, fail_count, skip_count], time);
        good
    }

    fn push(
        &mut self,
        name: &str,
        verdict: &'static str,
        [pass_count, fail_count, skip_count]: [u64; 3],
        time: Time,
    ) {
        let end = self.start.elapsed();
        self.parts.push(Part {
            name: name.to_owned(),
            verdict,
            pass_count,
            fail_count,
            skip_count,
            end,
            time,
        });
    }
}

/// The part with this name, or the parts whose names contain it; all parts for an empty list. For
/// repeating only some parts.
///
/// # Errors
/// A piece that no name contains, with the names: it would select nothing, and nothing passes.
pub(crate) fn chosen<'p, P>(
    parts: &'p [P],
    name: impl Fn(&P) -> &'static str,
    pieces: &[String],
) -> Result<Vec<&'p P>, Failure> {
    let is_in = |part: &P, piece: &str| match parts.iter().any(|part| name(part) == piece) {
        true => name(part) == piece,
        false => name(part).to_lowercase().contains(&piece.to_lowercase()),
    };
    if let Some(piece) = pieces.iter().find(|piece| !parts.iter().any(|part| is_in(part, piece))) {
        let names: Vec<_> = parts.iter().map(&name).collect();
        return Err(Failure::Usage(format!(
            "no part has `{piece}` in its name; there are {}",
            names.join(", ")
        )));
    }
    let is_selected = |part: &&P| pieces.is_empty() || pieces.iter().any(|piece| is_in(part, piece));
    Ok(parts.iter().filter(is_selected).collect())
}

fn announce(name: &str) {
    println!("\n=== {name}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_by_pieces_of_their_names() {
        let chosen = |pieces: &[&str]| {
            let pieces: Vec<String> = pieces.iter().map(|&piece| piece.to_owned()).collect();
            let parts = chosen(&["usm-core", "usm-tests", "usm-tests on OpenCL"], |name| name, &pieces);
            parts.ok().map(|parts| parts.into_iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]).expect("all"), ["usm-core", "usm-tests", "usm-tests on OpenCL"]);
        assert_eq!(chosen(&["opencl", "core"]).expect("two"), ["usm-core", "usm-tests on OpenCL"]);
        assert_eq!(chosen(&["usm-tests"]).expect("the one of that name"), ["usm-tests"]);
        assert_eq!(chosen(&["core", "cuda"]), None);
    }
}
