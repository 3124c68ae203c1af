//! The Level Zero backend, everywhere that a machine without an Intel GPU can take it: on the driver that executes on the
//! host, behind the unmodified loader and as a loader itself, and on Intel's GPU driver in capture mode, which
//! records calls and runs nothing.
//!
//! Its own harness: one process for each configuration, because loader and drivers read their environment once. Words on
//! the command line select the configurations whose names contain one of them.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod capture;
mod configuration;
mod devices;
mod driver;
mod faults;
mod kernels;
mod suite;

use std::io::{Read, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use configuration::{CONFIGURATIONS, Configuration};

/// What a child reads to know that it is one.
const VARIABLE: &str = "LEVEL_ZERO_CONFIGURATION";
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
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    for (name, _) in std::env::vars_os() {
        // A machine's own settings are for its own runtime.
        let setting = name.to_string_lossy().starts_with("ZE_") || name == "USM_LEVEL_ZERO_LIBRARY";
        if setting && !configuration.may_be_absent() {
            command.env_remove(name);
        }
    }
    let mut child = command
        .env(VARIABLE, configuration.name)
        // A panic says its place; the way there is the same for all cases.
        .env("RUST_BACKTRACE", "0")
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program runs again");
    let out = read(child.stdout.take());
    let errors = read(child.stderr.take());
    let status = wait(&mut child);
    let (out, errors) = (out.join().expect("its output"), errors.join().expect("its output"));
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    if status.as_deref() == Some("exit status: 0") {
        return Ok(passed);
    }
    let running = out.lines().last().unwrap_or("nothing");
    let status = status.unwrap_or_else(|| format!("still running after {} s", LIMIT.as_secs()));
    Err(format!("{status}, last was: {running}\n{errors}"))
}

fn read(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How the child ended; none when it had to be ended.
fn wait(child: &mut Child) -> Option<String> {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status.to_string());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("a child");
    let _ = child.wait();
    None
}

/// Runs the cases of a configuration in this process.
fn child(configuration: &Configuration) -> ExitCode {
    let mut failed = 0;
    for (name, body) in (configuration.cases)() {
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
                eprintln!("{name} failed: {}", message(panic.as_ref()));
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a panic said.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic without words".to_owned(),
    }
}
