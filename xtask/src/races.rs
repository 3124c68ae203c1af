//! `cargo xtask races`: the cases with several threads under valgrind's helgrind, with locks that it understands. What it cannot understand is
//! in `tests/sanitizers/helgrind.txt`, with the reason.

use crate::Failure;
use crate::command::{cargo, command, probe};
use crate::environment;
use crate::report::Report;

/// Test binaries of usm-tests, and which of their tests run several threads. Of the runtimes OpenCL.
const STRESS: [(&str, &[&str]); 3] = [
    ("conformance", &["threads_", "two_threads_", "in_flight"]),
    ("core", &["threads_", "in_flight", "limits"]),
    ("runtimes", &["opencl::threads_", "opencl::two_threads_", "opencl::two_contexts_work"]),
];

pub(crate) fn run() -> Result<(), Failure> {
    if probe(command("valgrind").arg("--version")).is_none() {
        return Err(Failure::Run("valgrind is not installed".into()));
    }
    let suppressions = environment::root().join("tests/sanitizers/helgrind.txt");
    let suppressions = format!("--suppressions={}", suppressions.display());
    let runner = ["valgrind", "--tool=helgrind", "--error-exitcode=1", "--quiet", &suppressions];
    let mut report = Report::new();
    for (name, filters) in STRESS {
        let mut test = cargo(["test", "-p", "usm-tests", "--all-features", "--test", name, "--target-dir"]);
        // A folder of its own: the flag rebuilds everything below.
        test.arg(environment::target_dir().join("races"))
            .env("RUSTFLAGS", "--cfg usm_valgrind")
            .args(["--config", &format!("target.'cfg(all())'.runner={runner:?}"), "--"])
            .args(filters)
            .arg("--test-threads=1");
        report.command(&format!("races: {name}"), &mut test);
    }
    report.finish()
}
