//! Runs a program: prints the command, gives no standard input, shows the output while it comes,
//! and counts tests in it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::{environment, usage};

/// A program's test counts and exit status.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The program ended with status 0.
    pub(crate) success: bool,
    /// Its exit status, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// The exit status as text, for messages.
    pub(crate) status: String,
    /// Tests passed and failed, summed over every summary line seen.
    pub(crate) pass_count: u64,
    /// Number of cases that did not run.
    pub(crate) skip_count: u64,
    /// Number of failed tests, errors included.
    pub(crate) fail_count: u64,
    /// The cases that did not run, a line for each reason.
    pub(crate) skips: Vec<String>,
    /// The names of the failed tests.
    pub(crate) failures: Vec<String>,
    /// Everything written to standard output.
    pub(crate) output: String,
    /// Whether valgrind ended by an assertion of its own before any report. That says nothing about
    /// the program.
    pub(crate) checker_ended: bool,
}

/// A command in the workspace root, without standard input.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(environment::root()).stdin(Stdio::null()).envs(environment::variables());
    // Tests start two thousand Python processes: each would compile NumPy from its source.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command
}

/// Cargo with the given arguments.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = command(environment::cargo());
    // The cargo that runs xtask sets these; inherited, they would confuse the inner one.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// Whether several programs run at a time.
static SIDE_BY_SIDE: AtomicBool = AtomicBool::new(false);

/// From now on the output of each program is shown whole at its end, because the lines of several
/// that run at a time would mix.
pub(crate) fn run_side_by_side() {
    SIDE_BY_SIDE.store(true, Ordering::Relaxed);
}

/// Runs to the end, shows all output and counts tests.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let head = format!("$ {}\n", describe(command));
    if SIDE_BY_SIDE.load(Ordering::Relaxed) {
        let page = Mutex::new(head.into_bytes());
        let outcome = run_into(command, &Page(&page), &Page(&page));
        let page = page.into_inner().unwrap_or_else(|error| error.into_inner());
        // A closed terminal must not stop the counted run.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&page);
        let _ = out.flush();
        return outcome;
    }
    eprint!("{head}");
    run_into(command, &std::io::stdout(), &std::io::stderr())
}

/// What a program has written so far, on both of its streams.
struct Page<'p>(&'p Mutex<Vec<u8>>);

/// Where lines of a program's output go.
trait Show: Sync {
    fn show(&self, line: &[u8]);
}

impl Show for Page<'_> {
    fn show(&self, line: &[u8]) {
        self.0.lock().unwrap_or_else(|error| error.into_inner()).extend_from_slice(line);
    }
}

impl Show for std::io::Stdout {
    fn show(&self, line: &[u8]) {
        let mut out = self.lock();
        // A closed terminal must not stop the counted run.
        let _ = out.write_all(line);
        let _ = out.flush();
    }
}

impl Show for std::io::Stderr {
    fn show(&self, line: &[u8]) {
        let _ = self.lock().write_all(line);
    }
}

fn run_into(command: &mut Command, out: &impl Show, err: &impl Show) -> Outcome {
    let spawn_result = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawn_result {
        Ok(child) => child,
        Err(error) => {
            let status = format!("{} did not start: {error}", describe(command));
            err.show(format!("{status}\n").as_bytes());
            return Outcome { status, ..Outcome::default() };
        }
    };
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        if let Some(stream) = child.stderr.take() {
            let tally = &tally;
            scope.spawn(move || follow(stream, err, tally, false));
        }
        if let Some(stream) = child.stdout.take() {
            follow(stream, out, &tally, true);
        }
    });
    let mut outcome = tally.into_inner().unwrap_or_else(|error| error.into_inner()).outcome();
    match usage::wait(&mut child) {
        Ok(status) => {
            outcome.success = status.success();
            outcome.code = status.code();
            outcome.status = status.to_string();
        }
        Err(error) => outcome.status = error.to_string(),
    }
    outcome
}

/// Runs without showing the output. `None` if it did not start or failed.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs without showing the output, and counts its processor time. The status and all text on
/// standard error.
///
/// # Errors
/// The program did not start.
pub(crate) fn quietly(command: &mut Command) -> Result<(bool, String), String> {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let spawn_result = command.spawn();
    let at = |error: std::io::Error| format!("{}: {error}", describe(command));
    let mut child = spawn_result.map_err(at)?;
    let mut output = Vec::new();
    if let Some(mut stream) = child.stderr.take() {
        stream.read_to_end(&mut output).map_err(at)?;
    }
    let status = usage::wait(&mut child).map_err(at)?;
    Ok((status.success(), String::from_utf8_lossy(&output).into_owned()))
}

/// The command line as a person would type it, with paths relative to the workspace.
pub(crate) fn describe(command: &Command) -> String {
    let root = format!("{}/", environment::root().display());
    let mut line = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy().replace(&root, ""));
    }
    line
}

/// The counts so far.
#[derive(Debug, Default)]
struct Tally {
    pass_count: u64,
    fail_count: u64,
    /// Number of cases that a summary counts as skipped.
    skip_count: u64,
    /// Number of those that also printed a line of their own.
    announced_count: u64,
    /// Cases that printed such a line, by reason.
    cases: BTreeMap<String, BTreeSet<String>>,
    /// Other omitted parts.
    others: Vec<String>,
    /// The names of failed tests, as the harness lists them.
    failures: Vec<String>,
    /// The names in the list of cargo's harness that is being read.
    failure_list: Option<Vec<String>>,
    output: String,
    /// Whether valgrind reported something. Each line of a report begins with its sign and the
    /// process.
    has_report: bool,
    checker_ended: bool,
}

impl Tally {
    /// Reads one line: cargo's `test result: ok. 3 passed; 0 failed; ...`, pytest's
    /// `3 passed, 1 skipped in 0.1s`, pytest's `SKIPPED [1] file:line: reason`, and our own
    /// `skipped: case: reason` and `skipped in part: case: reason`.
    fn count(&mut self, line: &str) {
        if let (Some(failure_list), Some(name)) = (&mut self.failure_list, line.strip_prefix("    ")) {
            failure_list.push(name.trim().to_owned());
        }
        let line = line.trim();
        if line == "failures:" {
            // Cargo's harness says so twice: before the outputs and before the names.
            self.failure_list = Some(Vec::new());
        } else if let Some((case, reason)) =
            line.strip_prefix("skipped: ").and_then(|rest| rest.split_once(": "))
        {
            self.cases.entry(reason.to_owned()).or_default().insert(case.to_owned());
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            self.failures.extend(self.failure_list.take().into_iter().flatten());
            let counts = rest.split_once(". ").map_or(rest, |(_, counts)| counts);
            self.announced_count += self.add(counts.split(';'));
        } else if let Some(rest) = pytest_summary(line) {
            let _ = self.add(rest.split(','));
        } else if let Some(rest) = line.strip_prefix("skipped in part: ") {
            self.also(&format!("in part: {rest}"));
        } else if let Some(reason) = line.strip_prefix("SKIPPED ") {
            self.also(reason);
        } else if let Some(rest) = line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")) {
            self.failures.push(rest.to_owned());
        } else if line.starts_with("Helgrind: ") && line.contains(": Assertion '") {
            self.checker_ended = !self.has_report;
        } else if line.starts_with("==") {
            self.has_report = true;
        }
    }

    fn also(&mut self, skip: &str) {
        if !self.others.iter().any(|other| other == skip) {
            self.others.push(skip.to_owned());
        }
    }

    /// Adds the numbers of a summary. Returns its number of skipped cases.
    fn add<'a>(&mut self, parts: impl Iterator<Item = &'a str>) -> u64 {
        let before = self.skip_count;
        for part in parts {
            let mut words = part.split_whitespace();
            let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
                continue;
            };
            match words.next() {
                Some("passed" | "xfailed") => self.pass_count += number,
                Some("failed" | "error" | "errors" | "xpassed") => self.fail_count += number,
                Some("skipped") => self.skip_count += number,
                Some("ignored") if number > 0 => self.also(&format!("{number} ignored tests")),
                _ => {}
            }
        }
        self.skip_count - before
    }

    fn outcome(self) -> Outcome {
        let mut cases: BTreeSet<&String> = BTreeSet::new();
        self.cases.values().for_each(|names| cases.extend(names));
        // Cargo's harness counts these as passed.
        let unannounced_count = (cases.len() as u64).saturating_sub(self.announced_count);
        let reasons = self.cases.iter().map(|(reason, names)| match names.first() {
            Some(name) if names.len() == 1 => format!("{name}: {reason}"),
            _ => format!("{} cases: {reason}", names.len()),
        });
        Outcome {
            pass_count: self.pass_count.saturating_sub(unannounced_count),
            fail_count: self.fail_count,
            skip_count: self.skip_count + unannounced_count,
            skips: reasons.chain(self.others).collect(),
            failures: self.failures,
            output: self.output,
            checker_ended: self.checker_ended,
            ..Outcome::default()
        }
    }
}

fn follow(stream: impl Read, show: &impl Show, tally: &Mutex<Tally>, keep: bool) {
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        show.show(&bytes);
        let line = String::from_utf8_lossy(&bytes);
        let mut tally = tally.lock().unwrap_or_else(|error| error.into_inner());
        tally.count(&line);
        if keep {
            tally.output.push_str(&line);
        }
    }
}

fn pytest_summary(line: &str) -> Option<&str> {
    let line = line.trim_matches('=').trim();
    let (counts, time) = line.rsplit_once(" in ")?;
    let is_time = time
        .strip_suffix('s')
        .or_else(|| time.split_once("s ").map(|(seconds, _)| seconds))
        .is_some_and(|seconds| seconds.parse::<f64>().is_ok());
    let starts = counts.starts_with(|first: char| first.is_ascii_digit());
    (is_time && starts).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> (u64, u64, u64, Vec<String>) {
        let mut seen = Tally::default();
        lines.iter().for_each(|line| seen.count(line));
        let outcome = seen.outcome();
        (outcome.pass_count, outcome.fail_count, outcome.skip_count, outcome.skips)
    }

    #[test]
    fn cargo_summaries_add_up() {
        let (passed, failed, skipped, skips) = counted(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ]);
        assert_eq!((passed, failed, skipped), (13, 2, 0));
        assert_eq!(skips, ["1 ignored tests"]);
    }

    #[test]
    fn pytest_summaries_add_up() {
        let (passed, failed, skipped, skips) = counted(&[
            "SKIPPED [1] tests/test_gpu.py:7: no GPU",
            "1 failed, 44 passed, 1 skipped in 35.10s",
            "===== 2 passed, 1 warning in 61.00s (0:01:01) =====",
            "3 errors in 0.10s",
        ]);
        assert_eq!((passed, failed, skipped), (46, 4, 1));
        assert_eq!(skips, ["[1] tests/test_gpu.py:7: no GPU"]);
    }

    #[test]
    fn failed_tests_are_named() {
        let mut seen = Tally::default();
        for line in [
            "failures:\n",
            "\n",
            "---- a::one stdout ----\n",
            "    a line of its output\n",
            "failures:\n",
            "    a::one\n",
            "    a::two\n",
            "\n",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "    Running another program\n",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "FAILED tests/test_a.py::test_b - assert 1 == 2\n",
            "ERROR tests/test_c.py\n",
        ] {
            seen.count(line);
        }
        let named = ["a::one", "a::two", "tests/test_a.py::test_b - assert 1 == 2", "tests/test_c.py"];
        assert_eq!(seen.outcome().failures, named);
    }

    #[test]
    fn a_checker_that_dies_is_distinguished_from_its_report() {
        let ended = |lines: &[&str]| {
            let mut seen = Tally::default();
            lines.iter().for_each(|line| seen.count(line));
            seen.outcome().checker_ended
        };
        let own = "Helgrind: hg_main.c:308 (lockN_acquire_reader): Assertion 'lk->kind == LK_rdwr' failed.";
        let report = "==9572== Possible data race during read of size 8 at 0x4 by thread #1";
        assert!(ended(&["running 1 test", own, "==9572==    at 0x5802666A: ??? (in helgrind-amd64-linux)"]));
        assert!(!ended(&[report]));
        assert!(!ended(&[report, own]), "an earlier report stays a failure");
        assert!(!ended(&["assertion `left == right` failed"]));
    }

    #[test]
    fn cases_that_did_not_run_are_not_passed() {
        let (passed, failed, skipped, skips) = counted(&[
            "skipped: a::one: cuda: no library",
            "skipped: a::two: cuda: no library",
            // A case may print it more than once, and for several reasons.
            "skipped: a::two: cuda: no library",
            "skipped: a::two: nvrtc: no compiler",
            "skipped in part: a::three: images: status -59",
            "test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "3 passed, 2 skipped in 0.10s",
        ]);
        assert_eq!((passed, failed, skipped), (11, 0, 4));
        let expected = [
            "2 cases: cuda: no library",
            "a::two: nvrtc: no compiler",
            "in part: a::three: images: status -59",
        ];
        assert_eq!(skips, expected);
    }

    #[test]
    fn harnesses_that_count_skipped_cases_are_believed() {
        let (passed, failed, skipped, _) = counted(&[
            "skipped: late::one: level_zero: no loader",
            "skipped: late::two: level_zero: no loader",
            "test result: ok. 5 passed; 0 failed; 2 skipped",
            "skipped: three: cuda: no library",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ]);
        assert_eq!((passed, failed, skipped), (5, 0, 3));
    }

    #[test]
    fn other_lines_do_not_count() {
        let (passed, failed, skipped, skips) = counted(&[
            "12 passed by in the street",
            "error: 3 failed in spirit",
            "2 in 3s",
            "Finished `dev` profile in 3.20s",
            "bytes that were skipped: 3",
            "skipped by the parser: a::b",
        ]);
        assert_eq!((passed, failed, skipped), (0, 0, 0));
        assert_eq!(skips, [""; 0]);
    }
}
