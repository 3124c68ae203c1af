//! `cargo xtask test`: all checks that a change must pass, from a fresh clone.

use core::sync::atomic::{AtomicBool, Ordering};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::command::{self, cargo, command, probe};
use crate::report::Report;
use crate::{
    Failure, cuda, documentation, environment, examples, features, folder, idle, images, lints, mutants, nrt,
    packages, planner, programs, prose, setup, site, spirv, wheel,
};

/// The crates that work without the standard library. Each is linted with no feature and with
/// `alloc`.
pub(crate) const NO_STD: [&str; 6] =
    ["usm-core", "usm-interface", "usm-pool", "usm-kernel-ir", "usm-kernel", "usm-nrt"];

/// Builds with fewer features, each alone: in a joint build cargo would enable for one crate what
/// the tests of another ask for. `usm-pool` and `usm-kernel` test themselves over a usm-core with
/// std, so one program of each shows that it compiles and works.
const SMALL_BUILDS: [(&str, &str, &[&str]); 8] = [
    ("usm-core", "", &["--tests"]),
    ("usm-core", "alloc", &["--tests"]),
    ("usm-interface", "", &["--tests"]),
    ("usm-nrt", "", &["--tests"]),
    ("usm-kernel-ir", "", &["--tests"]),
    ("usm-pool", "alloc", &["--lib"]),
    ("usm-kernel", "", &["--lib"]),
    ("usm-kernel", "alloc", &["--lib"]),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--cuda"] => return cuda::test(None),
        ["--cuda", "--prebuilt", folder] => {
            return cuda::test(Some(&std::path::absolute(folder).unwrap_or_else(|_| folder.into())));
        }
        _ => return Err(Failure::Usage(format!("test does not take `{}`", arguments.join(" ")))),
    }
    folder::claim(&environment::setup_dir())?;
    let mut report = Report::new();
    all(&mut report, wheel::install_for_tests);
    report.finish()
}

/// How the wheel of the Python tests is built and installed.
type Install = fn() -> Result<PathBuf, String>;

/// Runs every part of the test run into one report.
///
/// Two threads run parts side by side: one those of Rust, the other the set-up and those of Python.
/// Alone, each would leave a core idle while it waits for the network, a linker or processes that
/// tests start.
pub(crate) fn all(report: &mut Report, install: Install) {
    command::run_side_by_side();
    let mut beside = report.beside();
    let (set_up, is_set_up) = channel();
    let (build_sender, is_built) = channel();
    let (rust_alone, python_parts) = (&AtomicBool::new(false), &mut beside);
    // A panic in a thread drops its sender, so that the other one does not wait for ever.
    let python = idle::shown(|| {
        std::thread::scope(|scope| {
            let python = scope.spawn(move || {
                of_python(python_parts, install, &set_up, &is_built);
                rust_alone.store(true, Ordering::Relaxed);
            });
            of_rust(report, &is_set_up, &build_sender, rust_alone);
            drop(build_sender);
            python.join()
        })
    });
    if python.is_err() {
        report.check("Python", || Err("the thread of its parts panicked".into()));
    }
    report.absorb(beside);
}

/// The parts of Rust. What compiles comes first, because the other thread waits for downloads then.
/// The test programs come last: they are many, and keep all cores busy to the end.
fn of_rust(
    report: &mut Report,
    is_set_up: &Receiver<()>,
    build_sender: &Sender<bool>,
    is_alone: &AtomicBool,
) {
    format(report);
    prose::parts(report);
    packages::manifests(report);
    let tests = programs::build_all(report);
    // Tests in C and in Python use them as users have them.
    report.check("C library of usm-plan", planner::build_for_tests);
    report.check("C library of usm-nrt", || nrt::build().map(drop));
    let _ = build_sender.send(tests.is_some());
    let nrt = programs::build(report, "usm-nrt without debug", &NRT);
    lints::small_builds(report);
    features::parts(report, features::Depth::Alone);
    documentation::part(report);
    images::parts(report);
    // A thread that panicked sends nothing more.
    let _ = is_set_up.recv();
    spirv::part(report, true);
    report.command("doctests", lints::on(cargo(["test", "--quiet", "--doc"]).args(ALL)));
    small_builds(report);
    examples::parts(report);
    mutants::part(report);
    for programs in [tests, nrt].into_iter().flatten() {
        programs.run(report, is_alone);
    }
}

/// Everything, with all features.
const ALL: [&str; 2] = ["--workspace", "--all-features"];
/// The usual build of the runtime: with the feature `debug` no block is kept, and every check is
/// compiled in.
const NRT: [&str; 5] = ["-p", "usm-nrt", "--features", "capi", "--tests"];

/// The set-up, and the parts of Python. Their module is one of the libraries that the other thread
/// compiles.
fn of_python(report: &mut Report, install: Install, set_up: &Sender<()>, is_built: &Receiver<bool>) {
    let python_stands = setup::parts(report);
    let _ = set_up.send(());
    if !python_stands {
        return report.missing("wheel and Python tests", "no virtual environment");
    }
    if !is_built.recv().unwrap_or(false) {
        return report.missing("wheel and Python tests", "the tests were not compiled");
    }
    if !report.check("wheel for tests", || install().map(drop)) {
        return report.missing("Python tests", "no wheel");
    }
    // Most of the time goes into separate processes that compile.
    let parallel = ["--numprocesses", "auto", "--maxprocesses", "8", "--dist", "worksteal"];
    report.command("Python tests", pytest().arg("tests").args(parallel));
    site::part(report);
}

fn format(report: &mut Report) {
    if probe(&mut cargo(["fmt", "--version"])).is_none() {
        report.missing("format", "cargo fmt (rustup component rustfmt) not installed");
        return;
    }
    report.command("format", &mut cargo(["fmt", "--all", "--check"]));
    let mut images = cargo(["fmt", "--all", "--check", "--manifest-path"]);
    report.command("format: images", images.arg(images::manifest()));
}

/// The doctests in the builds of a new user, one by one.
pub(crate) fn doctests_by_default(report: &mut Report) {
    for package in NO_STD.into_iter().chain(["level-zero-sys"]) {
        report.command(
            &format!("doctests: {package}, default features"),
            &mut cargo(["test", "--quiet", "--doc", "-p", package]),
        );
    }
}

fn small_builds(report: &mut Report) {
    for (package, features, targets) in SMALL_BUILDS {
        let name = if features.is_empty() { "no feature" } else { features };
        let mut test = cargo(["test", "--quiet", "--no-fail-fast", "-p", package, "--no-default-features"]);
        test.args(["--features", features]).args(targets).args(["--", "--show-output"]);
        report.command(&format!("tests: {package}, {name}"), fewer_cases(&mut test));
    }
}

/// Builds the tests' drivers, which execute on the host.
pub(crate) fn drivers(report: &mut Report) {
    let packages = environment::DRIVERS.into_iter().flat_map(|(package, _)| ["-p", package]);
    report.command("test drivers", cargo(["build", "--quiet"]).args(packages));
}

/// Builds what the Python tests need, and installs a wheel of it into the virtual environment.
pub(crate) fn install_wheel(report: &mut Report) -> bool {
    drivers(report);
    // The proofs of kernels are most of what some test files compute: without optimisation the
    // tests of the ready algorithms take four times the processor time.
    let mut module = cargo(["build", "--quiet", "-p", "usm-python"]);
    module.args(["--config", "profile.dev.package.usm-kernel-ir.opt-level=1"]);
    report.command("Python module", &mut module)
        && report.check("wheel for tests", || wheel::install_for_tests().map(drop))
}

/// The command built with `panic = "abort"` and the default features.
/// The earlier tests run again with this binary: with the machine's runtimes, with one, none and
/// broken ones, and on ONNX models.
pub(crate) fn without_unwinding(report: &mut Report) {
    let is_built = report.command(
        "panic=abort: build",
        &mut cargo(["build", "--quiet", "--profile", "abort", "-p", "usm-cli"]),
    );
    if !is_built {
        return;
    }
    let binary = environment::target_dir().join("abort").join(format!("usm{}", std::env::consts::EXE_SUFFIX));
    let mut test = cargo(["test", "--quiet"]);
    lints::on(&mut test).args(ALL).args([
        "--test",
        "command",
        "--",
        "--show-output",
        "runtimes::",
        "onnx_stated::",
    ]);
    report.command("panic=abort: runtimes, and models", test.env("USM_CLI_BINARY", binary));
}

/// The random tests run in full with all features. A build with fewer features compiles the same
/// rules, so a tenth of the cases shows what only that build could break.
fn fewer_cases(test: &mut Command) -> &mut Command {
    test.env("PROPTEST_CASES", "26").env("USM_NUMPY_CASES", "10000").env("USM_CASES", "12")
}

pub(crate) fn pytest() -> Command {
    let mut pytest = command(environment::venv_python());
    pytest
        .args(["-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", "--timeout", "900"])
        .args(["--durations", "30", "--durations-min", "4"])
        // No test multiplies large matrices; threads for that take half the time of NumPy's import.
        .env("OPENBLAS_NUM_THREADS", "1")
        .current_dir(environment::root().join("usm-python"));
    pytest
}

/// `cargo xtask python`: the Python tests alone, on the wheel of this tree. The arguments go to
/// pytest, in the folder `usm-python`; without any it runs all tests.
pub(crate) fn python_alone(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    if report.check("set-up: Python and OpenCL", crate::python::virtual_environment) {
        if install_wheel(&mut report) {
            let all = arguments.is_empty().then_some("tests");
            report.command("Python tests", pytest().args(all).args(arguments));
        }
    }
    report.finish()
}
