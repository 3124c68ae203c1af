//! `cargo xtask races [PART...]`: runs the cases with several threads under valgrind's helgrind,
//! with locks that it understands. `tests/sanitizers/helgrind.txt` lists the code that it cannot
//! understand, with the reason.

use crate::Failure;
use crate::command::{cargo, command, probe};
use crate::environment;
use crate::report::{self, Report};

/// A test binary, and the tests of it with several threads.
struct Part {
    name: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
    /// Whether each test runs in a process of its own. Intel's OpenCL runtime never reports the end
    /// of a lock, and helgrind aborts when another kind of lock begins at its address. That is rare
    /// in a process with one test, whose contexts are made before the work.
    is_alone: bool,
}

const fn part(name: &'static str, tests: &'static [&'static str]) -> Part {
    Part { name, package: "usm-tests", tests, is_alone: false }
}

/// OpenCL among the runtimes; Level Zero and CUDA on the drivers that execute on the host. Level
/// Zero's driver is opened in place of the loader.
const STRESS: [Part; 7] = [
    part("conformance", &["threads_", "two_threads_", "in_flight"]),
    part("core", &["threads_", "in_flight", "limits"]),
    Part {
        is_alone: true,
        ..part("runtimes", &["opencl::threads_", "opencl::two_threads_", "opencl::two_contexts_work"])
    },
    part(
        "cuda_on_host",
        &[
            "suite::cuda_on_host_late::threads_",
            "suite::cuda_on_host_late::two_",
            "suite::cuda_on_host_late::dropping_",
            "suite::cuda_on_host_late::memory_freed_in_flight",
        ],
    ),
    part("level_zero", &["unloaded"]),
    // Without the caches of threads, whose order is a barrier that helgrind does not know: the
    // models (`cargo xtask loom`) have them.
    Part {
        package: "usm-pool",
        ..part("caches", &["blocks_that_other_threads_free", "a_pool_ends_once", "ended_threads"])
    },
    Part { package: "usm-pool", ..part("pool", &["threads_never", "blocks_outlive"]) },
];
/// The same for the cases of Level Zero, which have their own harness.
const LEVEL_ZERO_CASES: &str = "threads_,two_threads_,two_contexts_work,in_flight";

pub(crate) fn run(pieces: &[String]) -> Result<(), Failure> {
    let parts = report::chosen(&STRESS, |part| part.name, pieces)?;
    if probe(command("valgrind").arg("--version")).is_none() {
        return Err(Failure::Run("valgrind is not installed".into()));
    }
    let suppressions = environment::root().join("tests/sanitizers/helgrind.txt");
    let suppressions = format!("--suppressions={}", suppressions.display());
    // Level Zero's harness starts itself again.
    let children = "--trace-children=yes";
    let runner = ["valgrind", "--tool=helgrind", "--error-exitcode=1", "--quiet", children, &suppressions];
    let runner = format!("target.'cfg(all())'.runner={runner:?}");
    // A folder of its own: the flag rebuilds all dependencies.
    let target = environment::target_dir().join("races");
    let build = |what: &[&str]| {
        let mut command = cargo(what);
        command.arg("--target-dir").arg(&target).env("RUSTFLAGS", "--cfg usm_valgrind");
        command
    };
    let mut report = Report::new();
    // These drivers use locks that valgrind understands, too.
    for (package, _) in environment::DRIVERS {
        report.command("test driver", &mut build(&["build", "--quiet", "-p", package]));
    }
    for Part { name, package, tests, is_alone } in parts {
        let test = |arguments: &[&str]| {
            let mut test = build(&["test", "-p", package, "--all-features", "--test", name]);
            let drivers =
                environment::DRIVERS.map(|(package, file)| (file, environment::driver(&target, package)));
            test.envs(drivers).env("LEVEL_ZERO_CASES", LEVEL_ZERO_CASES).args(arguments);
            test
        };
        let under = ["--config", &runner, "--", "--test-threads=1"];
        if !is_alone {
            report.command(&format!("races: {name}"), test(&under).args(*tests));
            continue;
        }
        if !report.command(&format!("races: {name}: build"), &mut test(&["--no-run"])) {
            continue;
        }
        let output = probe(test(&["--", "--list", "--format=terse"]).args(*tests)).unwrap_or_default();
        let cases: Vec<_> = output.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        for one in &cases {
            report
                .command_under_checker(&format!("races: {name}: {one}"), test(&under).args(["--exact", one]));
        }
        if cases.is_empty() {
            report
                .check(&format!("races: {name}"), || Err(format!("no test is named {}", tests.join(" or "))));
        }
    }
    report.finish()
}
