//! `cargo xtask races [PART...]`: the cases with several threads under valgrind's helgrind, with locks that it understands. What it cannot understand is
//! in `tests/sanitizers/helgrind.txt`, with the reason.

use crate::Failure;
use crate::command::{cargo, command, probe};
use crate::environment;
use crate::report::{self, Report};

/// Test binaries of usm-tests, and which of their tests run several threads. Of the runtimes OpenCL; Level Zero and CUDA on the drivers that
/// execute on the host, Level Zero's opened as if it were the loader.
const STRESS: [(&str, &[&str]); 5] = [
    ("conformance", &["threads_", "two_threads_", "in_flight"]),
    ("core", &["threads_", "in_flight", "limits"]),
    ("runtimes", &["opencl::threads_", "opencl::two_threads_", "opencl::two_contexts_work"]),
    (
        "cuda_on_host",
        &[
            "suite::cuda_on_host_late::threads_",
            "suite::cuda_on_host_late::two_",
            "suite::cuda_on_host_late::dropping_",
            "suite::cuda_on_host_late::memory_freed_in_flight",
        ],
    ),
    ("level_zero", &["unloaded"]),
];
/// The same for the cases of Level Zero, which has a harness of its own.
const LEVEL_ZERO_CASES: &str = "threads_,two_threads_,two_contexts_work,in_flight";

pub(crate) fn run(pieces: &[String]) -> Result<(), Failure> {
    let parts = report::chosen(&STRESS, |part| part.0, pieces)?;
    if probe(command("valgrind").arg("--version")).is_none() {
        return Err(Failure::Run("valgrind is not installed".into()));
    }
    let suppressions = environment::root().join("tests/sanitizers/helgrind.txt");
    let suppressions = format!("--suppressions={}", suppressions.display());
    // Level Zero's harness runs itself again.
    let children = "--trace-children=yes";
    let runner = ["valgrind", "--tool=helgrind", "--error-exitcode=1", "--quiet", children, &suppressions];
    let runner = format!("target.'cfg(all())'.runner={runner:?}");
    // A folder of its own: the flag rebuilds everything below.
    let target = environment::target_dir().join("races");
    let build = |what: &[&str]| {
        let mut command = cargo(what);
        command.arg("--target-dir").arg(&target).env("RUSTFLAGS", "--cfg usm_valgrind");
        command
    };
    let mut report = Report::new();
    // Their locks are such that valgrind understands, too.
    for (package, _) in environment::DRIVERS {
        report.command("test driver", &mut build(&["build", "--quiet", "-p", package]));
    }
    for (name, filters) in parts {
        let mut test = build(&["test", "-p", "usm-tests", "--all-features", "--test", *name]);
        let drivers =
            environment::DRIVERS.map(|(package, file)| (file, environment::driver(&target, package)));
        test.envs(drivers)
            .env("LEVEL_ZERO_CASES", LEVEL_ZERO_CASES)
            .args(["--config", &runner, "--"])
            .args(*filters)
            .arg("--test-threads=1");
        report.command(&format!("races: {name}"), &mut test);
    }
    report.finish()
}
