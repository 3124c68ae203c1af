//! Running a program: echoed, without standard input, its output shown while it comes and read for test counts.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::environment;

/// What a program said of its tests, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The program ended with status 0.
    pub(crate) success: bool,
    /// Its exit status, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// How it ended, for messages.
    pub(crate) status: String,
    /// Tests passed and failed, summed over every summary line seen.
    pub(crate) passed: u64,
    /// Cases that returned at once, because their runtime is missing: the harness counts them as passed.
    pub(crate) early: u64,
    /// Tests failed, errors included.
    pub(crate) failed: u64,
    /// Lines that announce a skip.
    pub(crate) skips: Vec<String>,
    /// Everything written to standard output.
    pub(crate) output: String,
}

/// A command in the workspace root, without standard input.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(environment::root()).stdin(Stdio::null()).envs(environment::variables());
    command
}

/// Cargo with the given arguments.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = command(environment::cargo());
    // Set for us by the cargo that runs xtask; inherited, they would confuse the inner one.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// Runs to the end, showing all output and counting tests.
pub(crate) fn run(command: &mut Command) -> Outcome {
    eprintln!("$ {}", describe(command));
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let status = format!("{} did not start: {error}", describe(command));
            eprintln!("{status}");
            return Outcome { status, ..Outcome::default() };
        }
    };
    let seen = Mutex::new(Outcome::default());
    std::thread::scope(|scope| {
        if let Some(stream) = child.stderr.take() {
            let seen = &seen;
            scope.spawn(move || follow(stream, &mut std::io::stderr(), seen, false));
        }
        if let Some(stream) = child.stdout.take() {
            follow(stream, &mut std::io::stdout(), &seen, true);
        }
    });
    let mut outcome = seen.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    match child.wait() {
        Ok(status) => {
            outcome.success = status.success();
            outcome.code = status.code();
            outcome.status = status.to_string();
        }
        Err(error) => outcome.status = error.to_string(),
    }
    outcome
}

/// Runs quietly; the output only matters to us. `None` when it did not start or failed.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command line as a person would type it, paths shortened to the workspace.
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

fn follow(stream: impl Read, show: &mut dyn Write, seen: &Mutex<Outcome>, keep: bool) {
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // A closed terminal must not stop the run that is being counted.
        let _ = show.write_all(&bytes);
        let _ = show.flush();
        let line = String::from_utf8_lossy(&bytes);
        let mut outcome = seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        count(&line, &mut outcome);
        if keep {
            outcome.output.push_str(&line);
        }
    }
}

/// Reads one line: cargo's `test result: ok. 3 passed; 0 failed; ...`, pytest's `3 passed, 1 skipped in 0.1s`,
/// pytest's `SKIPPED [1] file:line: reason`, and our own `skipped: what: reason`.
fn count(line: &str, outcome: &mut Outcome) {
    let line = line.trim();
    if let Some((suite, reason)) = skipped_case(line) {
        outcome.early += 1;
        let skip = format!("cases of {suite}: {reason}");
        if !outcome.skips.contains(&skip) {
            outcome.skips.push(skip);
        }
    } else if let Some(rest) = line.strip_prefix("test result: ") {
        let counts = rest.split_once(". ").map_or(rest, |(_, counts)| counts);
        add(counts.split(';'), outcome);
    } else if let Some(rest) = pytest_summary(line) {
        add(rest.split(','), outcome);
    } else if let Some((place, reason)) = line.split_once("skipped: ") {
        // At the start of a line, or after the name of what was skipped.
        let skip = format!("{place}{reason}");
        if (place.is_empty() || place.ends_with(": ")) && !outcome.skips.contains(&skip) {
            outcome.skips.push(skip);
        }
    } else if let Some(reason) = line.strip_prefix("SKIPPED ") {
        outcome.skips.push(reason.to_owned());
    }
}

/// A case of the conformance suite without its runtime: `skipped cuda::zero_size_is_refused: no library`.
fn skipped_case(line: &str) -> Option<(&str, &str)> {
    let (case, reason) = line.strip_prefix("skipped ")?.split_once(": ")?;
    let (suite, name) = case.split_once("::")?;
    (!suite.contains(' ') && !name.contains(' ')).then_some((suite, reason))
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

fn add<'a>(parts: impl Iterator<Item = &'a str>, outcome: &mut Outcome) {
    for part in parts {
        let mut words = part.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
            continue;
        };
        match words.next() {
            Some("passed" | "xfailed") => outcome.passed += number,
            Some("failed" | "error" | "errors" | "xpassed") => outcome.failed += number,
            Some("ignored") if number > 0 => outcome.skips.push(format!("{number} ignored tests")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> (u64, u64, Vec<String>) {
        let mut outcome = Outcome::default();
        for line in lines {
            count(line, &mut outcome);
        }
        (outcome.passed, outcome.failed, outcome.skips)
    }

    #[test]
    fn cargo_summaries_add_up() {
        let (passed, failed, skips) = counted(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ]);
        assert_eq!((passed, failed), (13, 2));
        assert_eq!(skips, ["1 ignored tests"]);
    }

    #[test]
    fn pytest_summaries_add_up() {
        let (passed, failed, skips) = counted(&[
            "SKIPPED [1] tests/test_gpu.py:7: no GPU",
            "1 failed, 44 passed, 1 skipped in 35.10s",
            "===== 2 passed, 1 warning in 61.00s (0:01:01) =====",
            "3 errors in 0.10s",
        ]);
        assert_eq!((passed, failed), (46, 4));
        assert_eq!(skips, ["[1] tests/test_gpu.py:7: no GPU"]);
    }

    #[test]
    fn cases_without_their_runtime_are_not_passed() {
        let mut outcome = Outcome::default();
        count("skipped cuda::one: no library", &mut outcome);
        count("skipped cuda::two: no library", &mut outcome);
        assert_eq!((outcome.early, &outcome.skips[..]), (2, &["cases of cuda: no library".to_owned()][..]));
    }

    #[test]
    fn other_lines_do_not_count() {
        let (passed, failed, skips) = counted(&[
            "12 passed by in the street",
            "error: 3 failed in spirit",
            "2 in 3s",
            "Finished `dev` profile in 3.20s",
            "skipped: qemu: qemu-system-x86_64 not found",
            "skipped: qemu: qemu-system-x86_64 not found",
            "runtime opencl: skipped: no platform",
            "bytes that were skipped: 3",
            "skipped by the parser: a::b",
        ]);
        assert_eq!((passed, failed), (0, 0));
        assert_eq!(skips, ["qemu: qemu-system-x86_64 not found", "runtime opencl: no platform"]);
    }
}
