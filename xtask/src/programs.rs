//! Test programs: built by one call of cargo, then run two at a time.
//!
//! `cargo test` runs them one by one. Many of them wait for processes that they start, and one core
//! would wait with them.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::command::{self, Outcome, cargo, probe};
use crate::report::{Clock, Report, Time};
use crate::{environment, lints, usage};

/// How many programs run at a time, beside those of another thread of parts.
const AT_A_TIME: usize = 2;
/// How many more run where nothing else does: many of them wait for processes.
const ALONE: usize = 1;

/// The programs that take longest. They begin first, so that none of them is left at the end.
const LONGEST: [&str; 12] = [
    "level_zero",
    "cuda_on_host",
    "ends",
    "runtimes",
    "conformance",
    "text_proofs",
    "core",
    "opencl",
    "command",
    "nesting",
    "sycl_failures",
    "opencl_failures",
];

/// A program that runs longer hangs.
const LIMIT: Duration = Duration::from_secs(1200);

/// A test program, as cargo names it in its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// The package's folder, where cargo would run it.
    folder: PathBuf,
    /// The name of the test, example or library.
    name: String,
    executable: PathBuf,
}

impl Program {
    fn package(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Builds the test programs of `cargo test --no-run` with these arguments, and with them examples
/// and binaries. Returns the programs, to be run; none if the build failed.
pub(crate) fn build(report: &mut Report, name: &str, arguments: &[&str]) -> Option<Programs> {
    let mut build = cargo(["test", "--no-run"]);
    compile(report, name, build.args(arguments))?.programs(report, name)
}

/// Builds with all lints everything that the workspace has, every library for its users too: test
/// programs load the drivers, and the Python module has no tests of its own. The programs are those
/// of `cargo test`.
pub(crate) fn build_all(report: &mut Report) -> Option<Programs> {
    let mut build = cargo(["build", "--workspace", "--all-features"]);
    build.args(["--lib", "--bins", "--tests", "--examples"]);
    let build_output = compile(report, "tests", lints::on(&mut build));
    lints::part(report, "lints: all features", build_output.as_ref().map(|output| output.warnings));
    build_output?.programs(report, "tests")
}

/// What cargo said about a build that succeeded.
#[derive(Debug, Default)]
struct BuildOutput {
    list: Vec<Program>,
    warnings: usize,
}

impl BuildOutput {
    fn programs(self, report: &mut Report, name: &str) -> Option<Programs> {
        if self.list.is_empty() {
            report.check(name, || Err("cargo named no test program".into()));
            return None;
        }
        Some(Programs { name: name.to_owned(), list: self.list })
    }
}

/// Runs cargo, shows what the compiler says, and reads the test programs from its messages.
fn compile(report: &mut Report, name: &str, build: &mut Command) -> Option<BuildOutput> {
    let mut build_output = None;
    report.check(&format!("{name}: compile"), || {
        build.args(["--quiet", "--message-format=json"]).stdin(Stdio::null()).stdout(Stdio::piped());
        eprintln!("$ {}", command::describe(build));
        let mut child = build.spawn().map_err(|error| error.to_string())?;
        let mut output = BuildOutput::default();
        if let Some(stream) = child.stdout.take() {
            for message in BufReader::new(stream).lines() {
                output.read(&message.map_err(|error| error.to_string())?);
            }
        }
        let status = usage::wait(&mut child).map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(status.to_string());
        }
        build_output = Some(output);
        Ok(())
    });
    build_output
}

impl BuildOutput {
    /// Reads one message.
    fn read(&mut self, message: &str) {
        if message.starts_with("{\"reason\":\"compiler-message\"") {
            self.warnings += usize::from(message.contains("\"level\":\"warning\""));
            eprint!("{}", text_after(message, "\"rendered\":").unwrap_or_default());
        } else {
            self.list.extend(program(message));
        }
    }
}

/// Test programs that are built.
#[derive(Debug)]
pub(crate) struct Programs {
    name: String,
    list: Vec<Program>,
}

impl Programs {
    /// Runs them, [`AT_A_TIME`], and reports a part for each package. When `is_alone` says that
    /// nothing else runs any more, [`ALONE`] more.
    pub(crate) fn run(mut self, report: &mut Report, is_alone: &AtomicBool) {
        let rank = |program: &Program| LONGEST.iter().position(|name| *name == program.name);
        self.list.sort_by_key(|program| rank(program).unwrap_or(LONGEST.len()));
        let packages: BTreeMap<String, usize> = self.list.iter().fold(BTreeMap::new(), |mut map, program| {
            *map.entry(program.package()).or_default() += 1;
            map
        });
        let mut rest = packages;
        let mut sums: BTreeMap<String, (Outcome, Time)> = BTreeMap::new();
        let queue = Mutex::new(self.list.into_iter());
        let (send, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for worker in 0..AT_A_TIME + ALONE {
                let (queue, send) = (&queue, send.clone());
                let is_needed = move || worker < AT_A_TIME || is_alone.load(Ordering::Relaxed);
                let is_done = move || lock(queue).len() == 0;
                scope.spawn(move || {
                    while !is_needed() && !is_done() {
                        std::thread::sleep(Duration::from_millis(200));
                    }
                    loop {
                        let next = lock(queue).next();
                        let Some(program) = next else { return };
                        let clock = Clock::start();
                        let outcome = command::run(&mut start(&program));
                        let _ = send.send((program, outcome, clock.time()));
                    }
                });
            }
            drop(send);
            for (program, outcome, time) in results {
                usage::add(time.cpu);
                let package = program.package();
                let (wall, cpu) = (time.wall.as_secs_f64(), time.cpu.as_secs_f64());
                println!("--- {package} {}: {wall:.1} s, {cpu:.1} s of processor time", program.name);
                report.program(format!("{package} {}", program.name), time);
                let sum = sums
                    .entry(package.clone())
                    .or_insert_with(|| (Outcome { success: true, ..Outcome::default() }, Time::default()));
                join(&mut sum.0, outcome, &program);
                sum.1.wall += time.wall;
                sum.1.cpu += time.cpu;
                let left = rest.get_mut(&package).map_or(0, |count| {
                    *count -= 1;
                    *count
                });
                if left == 0
                    && let Some((outcome, time)) = sums.remove(&package)
                {
                    report.record(&format!("{}: {package}", self.name), outcome, time);
                }
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// Adds the outcome of one program to that of its package.
fn join(sum: &mut Outcome, one: Outcome, program: &Program) {
    let name = &program.name;
    if !one.success && one.failures.is_empty() {
        sum.failures.push(format!("{name}: {}", one.status));
    }
    sum.failures.extend(one.failures.into_iter().map(|failure| format!("{name}: {failure}")));
    sum.pass_count += one.pass_count;
    sum.skip_count += one.skip_count;
    // A program that ends without a count, as by a signal, is a failure.
    sum.fail_count += one.fail_count.max(u64::from(!one.success));
    sum.success &= one.success;
    for skip in one.skips {
        if !sum.skips.contains(&skip) {
            sum.skips.push(skip);
        }
    }
    if !one.success {
        sum.status = one.status;
    }
}

/// The program as `cargo test` starts it, with the output of passing tests, which announces skips.
fn start(program: &Program) -> Command {
    let mut start = match (crate::system::find("timeout"), cfg!(unix)) {
        (Some(timeout), true) => {
            let mut limited_run = command::command(timeout);
            limited_run
                .args(["--foreground", "--kill-after=10"])
                .arg(LIMIT.as_secs().to_string())
                .arg(&program.executable);
            limited_run
        }
        _ => command::command(&program.executable),
    };
    start.args(["--quiet", "--show-output"]).current_dir(&program.folder);
    start.env("CARGO", environment::cargo());
    start.env("CARGO_MANIFEST_DIR", &program.folder).env("CARGO_PKG_NAME", program.package());
    start.env("CARGO_MANIFEST_PATH", program.folder.join("Cargo.toml"));
    // Attribute macros' own tests need the compiler's libraries.
    let name = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    let mut folders: Vec<PathBuf> = program.executable.parent().map(Path::to_path_buf).into_iter().collect();
    folders.extend(program.executable.parent().and_then(Path::parent).map(Path::to_path_buf));
    folders.extend(compiler_libraries().cloned());
    folders.extend(std::env::var_os(name).iter().flat_map(std::env::split_paths));
    start.env(name, std::env::join_paths(folders).unwrap_or_default());
    start
}

/// The folder with the compiler's own libraries.
fn compiler_libraries() -> Option<&'static PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let text = probe(command::command(rustc).args(["--print", "target-libdir"]))?;
        Some(PathBuf::from(text.trim()))
    });
    folder.as_ref()
}

/// The test program that a message of cargo names.
fn program(message: &str) -> Option<Program> {
    let profile = message.split_once("\"profile\":{")?.1.split_once('}')?.0;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let manifest = PathBuf::from(text_after(message, "\"manifest_path\":")?);
    let target = message.split_once("\"target\":{")?.1;
    Some(Program {
        folder: manifest.parent()?.to_path_buf(),
        name: text_after(target, "\"name\":")?,
        executable: PathBuf::from(text_after(message, "\"executable\":")?),
    })
}

/// The JSON text behind this key, if it is a text.
fn text_after(message: &str, key: &str) -> Option<String> {
    let mut rest = message.split_once(key)?.1.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => text.push(match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'u' => escaped(&mut rest)?,
                other => other,
            }),
            other => text.push(other),
        }
    }
}

/// The character behind `\u`.
fn escaped(rest: &mut core::str::Chars<'_>) -> Option<char> {
    let number = u32::from_str_radix(rest.as_str().get(..4)?, 16).ok()?;
    rest.nth(3)?;
    Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///a/usm-core#0.2.0","manifest_path":"/a/usm-core/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"loom","src_path":"/a/usm-core/tests/loom.rs","edition":"2024","doc":false,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":1,"debug_assertions":true,"overflow_checks":true,"test":TEST},"features":["alloc"],"filenames":["/a/t/loom-1"],"executable":"/a/t/de\"ps/loom-1","fresh":false}"#;

    #[test]
    fn test_programs_are_read_from_cargo_s_messages() {
        let program = program(&MESSAGE.replace("TEST", "true")).expect("a program");
        assert_eq!(program.package(), "usm-core");
        assert_eq!(program.name, "loom");
        assert_eq!(program.executable, Path::new("/a/t/de\"ps/loom-1"));
        assert_eq!(super::program(&MESSAGE.replace("TEST", "false")), None, "an example");
        assert_eq!(super::program(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn warnings_are_counted_and_printed() {
        let mut built = BuildOutput::default();
        for level in ["warning", "error", "warning"] {
            built.read(&format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","rendered":"a\nb"}}}}"#
            ));
        }
        assert_eq!((built.warnings, built.list.len()), (2, 0));
        let text = text_after(r#"{"rendered":"\u001b[1ma\tb\nc \"d\"\\"}"#, "\"rendered\":");
        assert_eq!(text.as_deref(), Some("\u{1b}[1ma\tb\nc \"d\"\\"));
    }

    #[test]
    fn a_program_that_ends_without_a_count_is_a_failure() {
        let program = program(&MESSAGE.replace("TEST", "true")).expect("a program");
        let mut sum = Outcome { success: true, pass_count: 3, ..Outcome::default() };
        let crashed = Outcome { status: "signal: 11".into(), pass_count: 2, ..Outcome::default() };
        join(&mut sum, crashed, &program);
        assert_eq!((sum.success, sum.pass_count, sum.fail_count), (false, 5, 1));
        assert_eq!(sum.failures, ["loom: signal: 11"]);
        let good = Outcome { success: true, pass_count: 1, ..Outcome::default() };
        join(&mut sum, good, &program);
        assert_eq!((sum.success, sum.pass_count, sum.fail_count), (false, 6, 1));
    }
}
