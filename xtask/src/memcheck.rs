//! `cargo xtask memcheck [PART...]`: runs safe programs under valgrind's memcheck. It detects
//! decisions on uninitialised memory, and accesses of memory that was freed or never allocated.
//! `tests/sanitizers/memcheck.txt` lists the reports on foreign code, with the reason.
//!
//! Memory of contexts, mock queues and arenas counts as uninitialised from its allocation on,
//! wherever a runtime, the mock or an arena takes it from (`usm-core/src/sync/memcheck.rs`). A
//! block that went back to a pool is not addressable (`usm-core/src/sync/checker.rs`).
//! Memcheck cannot detect that a runtime's own pool took a block back (Intel's OpenCL allocator has
//! one; host and mock use the C library's). It does not know the memory of such a runtime's buffers
//! either; a case of the conformance suite checks that they are zero. `cargo xtask sanitize` checks
//! leaks.

use std::process::Command;

use crate::Failure;
use crate::command::{cargo, command, probe, run as run_command};
use crate::environment;
use crate::report::{self, Report};

/// A test binary of usm-tests, and the tests of it to run.
struct Part {
    name: &'static str,
    binary: &'static str,
    tests: &'static [&'static str],
}

const fn part(name: &'static str, binary: &'static str, tests: &'static [&'static str]) -> Part {
    Part { name, binary, tests }
}

/// The conformance suite on the host, the mock and Intel's OpenCL CPU runtime; random programs on
/// all three; arenas and kernels.
const PARTS: [Part; 5] = [
    part("host", "conformance", &["heap::", "arena::"]),
    part("mock", "conformance", &["mock::", "mock_without_concurrency::"]),
    part("core", "core", &[]),
    part("launch", "launch", &[]),
    part("opencl", "runtimes", &["opencl::", "random_programs"]),
];

/// Cases that test other properties and take minutes or the machine's memory: a process that runs
/// out of memory, many pairs or threads. The kernel of the last case deliberately uses an unwritten
/// index, and checks it.
const SKIPPED: [&str; 5] = [
    "memory_that_runs_out_is_an_error",
    "twenty_thousand_pairs_leak_nothing",
    "waits_of_many_threads_all_end",
    "the_variable_prints_the_lines",
    "one_source_checks_an_index_that_nobody_wrote",
];

/// Exit status of a program in which memcheck found a fault.
const FOUND: i32 = 99;

pub(crate) fn run(pieces: &[String]) -> Result<(), Failure> {
    let parts = report::chosen(&PARTS, |part| part.name, pieces)?;
    if probe(command("valgrind").arg("--version")).is_none() {
        return Err(Failure::Run("valgrind is not installed".into()));
    }
    let suppressions = environment::root().join("tests/sanitizers/memcheck.txt");
    let (suppressions, status) =
        (format!("--suppressions={}", suppressions.display()), format!("--error-exitcode={FOUND}"));
    let runner = [
        "valgrind",
        "--tool=memcheck",
        "--quiet",
        "--leak-check=no",
        "--trace-children=yes",
        "--num-callers=30",
        &status,
        &suppressions,
    ];
    let runner = format!("target.'cfg(all())'.runner={runner:?}");
    // The folder of `races`, whose builds use the same flag.
    let target = environment::target_dir().join("races");
    let under = |what: &[&str]| -> Command {
        let mut command = cargo(what);
        command.arg("--target-dir").arg(&target).env("RUSTFLAGS", "--cfg usm_valgrind");
        command.args(["-p", "usm-tests", "--all-features", "--config", &runner]);
        // A fortieth of the processor's speed: fewer programs and fewer cases for each property.
        command.env("USM_PROGRAMS", "20").env("PROPTEST_CASES", "8");
        command
    };
    let mut report = Report::new();
    // A checker that finds nothing in these would find nothing at all.
    for (source, status) in [
        ("written", 0),
        ("pool written", 0),
        ("host", FOUND),
        ("mock", FOUND),
        ("pool", FOUND),
        ("pool freed", FOUND),
    ] {
        let mut planted_run = under(&["run", "--quiet", "--bin", "planted"]);
        planted_run.arg("--").args(source.split(' '));
        report.check(&format!("memcheck: planted: {source}"), || {
            let outcome = run_command(&mut planted_run);
            if outcome.code == Some(status) {
                Ok(())
            } else {
                Err(format!("ended with {}, not with {status}", outcome.status))
            }
        });
    }
    for Part { name, binary, tests } in parts {
        let mut test = under(&["test", "--no-fail-fast", "--test", binary]);
        test.args(["--", "--test-threads=1"]).args(*tests);
        test.args(SKIPPED.iter().flat_map(|case| ["--skip", case]));
        report.command(&format!("memcheck: {name}"), &mut test);
    }
    report.finish()
}
