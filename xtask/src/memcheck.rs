//! `cargo xtask memcheck [PART...]`: safe programs under valgrind's memcheck, which sees decisions
//! that depend on memory nobody wrote, and accesses of memory that was freed or never given out.
//! What it reports of others is in `tests/sanitizers/memcheck.txt`, with the reason.
//!
//! Memory of contexts, queues of the mock and arenas counts as without a value from the moment it
//! is given out, whatever a runtime, the mock or an arena made it of
//! (`usm-core/src/sync/memcheck.rs`). What memcheck cannot see: that a runtime's own pool has taken
//! a block back (Intel's allocator of OpenCL has one; the blocks of the host and the mock are those
//! of the C library), and what lies in a buffer of such a runtime, whose memory it does not know;
//! that those are zero is a case of the conformance suite. Leaks are the part of
//! `cargo xtask sanitize`.

use std::process::Command;

use crate::Failure;
use crate::command::{cargo, command, probe, run as run_command};
use crate::environment;
use crate::report::{self, Report};

/// A test binary of usm-tests, and which of its tests run.
struct Part {
    name: &'static str,
    binary: &'static str,
    tests: &'static [&'static str],
}

const fn part(name: &'static str, binary: &'static str, tests: &'static [&'static str]) -> Part {
    Part { name, binary, tests }
}

/// The conformance suite on the host, on the mock and on Intel's OpenCL CPU runtime; random
/// programs on all three; arenas and kernels.
const PARTS: [Part; 5] = [
    part("host", "conformance", &["heap::", "arena::"]),
    part("mock", "conformance", &["mock::", "mock_without_concurrency::"]),
    part("core", "core", &[]),
    part("launch", "launch", &[]),
    part("opencl", "runtimes", &["opencl::", "random_programs"]),
];

/// Cases about other things, which take minutes or the machine's memory here: a process that runs
/// out of memory, and many pairs or threads.
const SKIPPED: [&str; 4] = [
    "memory_that_runs_out_is_an_error",
    "twenty_thousand_pairs_leak_nothing",
    "waits_of_many_threads_all_end",
    "the_variable_prints_the_lines",
];

/// The status of a program in which memcheck found something.
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
    // The folder of `races`, whose builds have the same flag.
    let target = environment::target_dir().join("races");
    let under = |what: &[&str]| -> Command {
        let mut command = cargo(what);
        command.arg("--target-dir").arg(&target).env("RUSTFLAGS", "--cfg usm_valgrind");
        command.args(["-p", "usm-tests", "--all-features", "--config", &runner]);
        // A fortieth of the processor's speed: fewer programs and fewer cases of each property.
        command.env("USM_PROGRAMS", "20").env("PROPTEST_CASES", "8");
        command
    };
    let mut report = Report::new();
    // A checker that finds nothing in these finds nothing at all.
    for (source, status) in [("written", 0), ("host", FOUND), ("mock", FOUND)] {
        let mut planted = under(&["run", "--quiet", "--bin", "planted"]);
        planted.args(["--", source]);
        report.check(&format!("memcheck: planted: {source}"), || {
            let outcome = run_command(&mut planted);
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
