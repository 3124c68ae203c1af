//! `cargo xtask test`: all checks that a change must pass, from a fresh clone.

use std::process::Command;

use crate::command::{cargo, command, probe};
use crate::report::Report;
use crate::{
    Failure, cuda, environment, examples, features, images, mutants, planner, prose, setup, site, spirv,
    wheel,
};

/// The crates that work without the standard library. Each is linted and tested with no feature and
/// with `alloc`.
pub(crate) const NO_STD: [&str; 6] =
    ["usm-core", "usm-interface", "usm-pool", "usm-kernel-ir", "usm-kernel", "usm-nrt"];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--cuda"] => return cuda::test(None),
        ["--cuda", "--prebuilt", folder] => {
            return cuda::test(Some(&std::path::absolute(folder).unwrap_or_else(|_| folder.into())));
        }
        _ => return Err(Failure::Usage(format!("test does not take `{}`", arguments.join(" ")))),
    }
    let mut report = Report::new();
    all(&mut report);
    report.finish()
}

/// Runs every part of the test run into one report.
pub(crate) fn all(report: &mut Report) {
    let python_stands = setup::parts(report);
    format(report);
    prose::parts(report);
    lints(report);
    features::parts(report, features::Depth::Alone);
    spirv::part(report, true);
    tests(report);
    examples::parts(report);
    mutants::part(report);
    without_unwinding(report);
    images::parts(report);
    if python_stands {
        python(report);
    } else {
        report.missing("wheel and Python tests", "no virtual environment");
    }
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

fn lints(report: &mut Report) {
    if probe(&mut cargo(["clippy", "--version"])).is_none() {
        report.missing("lints", "cargo clippy (rustup component clippy) not installed");
        return;
    }
    let deny = ["--", "-D", "warnings"];
    report.command(
        "lints: all features",
        cargo(["clippy", "--quiet", "--workspace", "--all-targets", "--all-features"]).args(deny),
    );
    report.command(
        "lints: no feature",
        cargo(["clippy", "--quiet", "--no-default-features", "--lib"]).args(packages()).args(deny),
    );
    report.command(
        "lints: alloc",
        cargo(["clippy", "--quiet", "--no-default-features", "--features", "alloc", "--lib"])
            .args(packages())
            .args(deny),
    );
    images::lints(report);
}

fn tests(report: &mut Report) {
    drivers(report);
    // Tests in C and in Python use it as users have it.
    report.check("C library of usm-plan", || planner::build().map(drop));
    report.command("tests and doctests", &mut test(["--all-features"].into_iter()));
    // No default member, because of the time that its code generator takes to compile.
    report.command("tests: usm-kernel-jit", &mut test(["-p", "usm-kernel-jit"].into_iter()));
    // The builds of a new user, one by one: a joint build would enable one crate's test features
    // for the others.
    for package in NO_STD.into_iter().chain(["level-zero-sys"]) {
        report.command(
            &format!("doctests: {package}, default features"),
            &mut cargo(["test", "--quiet", "--doc", "-p", package]),
        );
    }
    let none = ["--no-default-features", "--tests"];
    report.command("tests: no feature", fewer_cases(&mut test(none.into_iter().chain(packages()))));
    let alloc = ["--no-default-features", "--features", "alloc", "--tests"];
    report.command("tests: alloc", fewer_cases(&mut test(alloc.into_iter().chain(packages()))));
    // The usual build: with the feature `debug` of the first run no block is kept, and every check
    // is compiled in.
    report.command(
        "tests: usm-nrt without debug",
        &mut test(["-p", "usm-nrt", "--features", "capi", "--tests"].into_iter()),
    );
}

/// Builds the tests' drivers, which execute on the host.
pub(crate) fn drivers(report: &mut Report) {
    let packages = environment::DRIVERS.into_iter().flat_map(|(package, _)| ["-p", package]);
    report.command("test drivers", cargo(["build", "--quiet"]).args(packages));
}

/// The command built with `panic = "abort"` and the default features, so without shape inference.
/// The earlier tests run again with this binary: with the machine's runtimes, with one, none and
/// broken ones, and on ONNX models.
fn without_unwinding(report: &mut Report) {
    let built = report.command(
        "panic=abort: build",
        &mut cargo(["build", "--quiet", "--profile", "abort", "-p", "usm-cli"]),
    );
    if !built {
        return;
    }
    let binary = environment::target_dir().join("abort").join(format!("usm{}", std::env::consts::EXE_SUFFIX));
    let tests = ["test", "--quiet", "--all-features", "--test", "command", "--", "--show-output"];
    let words = ["runtimes::", "onnx_stated::"];
    report.command(
        "panic=abort: runtimes, and models without shape inference",
        cargo(tests).args(words).env("USM_CLI_BINARY", binary),
    );
}

/// `cargo test` with the output of passing tests, which announces skips.
fn test(arguments: impl Iterator<Item = &'static str>) -> Command {
    let mut test = cargo(["test", "--quiet", "--no-fail-fast"]);
    test.args(arguments).args(["--", "--show-output"]);
    test
}

/// The random tests run in full with all features. A build with fewer features compiles the same
/// rules, so a tenth of the cases shows what only that build could break.
fn fewer_cases(test: &mut Command) -> &mut Command {
    test.env("PROPTEST_CASES", "26").env("USM_NUMPY_CASES", "10000").env("USM_CASES", "12")
}

fn packages() -> impl Iterator<Item = &'static str> {
    NO_STD.into_iter().flat_map(|name| ["-p", name])
}

/// Builds the wheel as users get it, installs it and runs the Python tests with it.
fn python(report: &mut Report) {
    let crate_dir = environment::root().join("usm-python");
    if !crate_dir.join("pyproject.toml").exists() {
        report.missing("wheel", "usm-python/pyproject.toml does not exist");
        return;
    }
    let mut wheel = None;
    let built = report.check("wheel", || wheel::install().map(|file| wheel = Some(file)));
    if let Some(file) = &wheel {
        wheel::parts(report, file);
        site::part(report);
    }
    if !built {
        report.missing("Python tests", "no wheel");
    } else if crate_dir.join("tests").is_dir() {
        // Most of the time goes into separate processes that compile.
        let parallel = ["--numprocesses", "auto", "--maxprocesses", "8", "--dist", "worksteal"];
        report.command("Python tests", pytest().arg("tests").args(parallel));
    } else {
        report.missing("Python tests", "usm-python/tests does not exist");
    }
}

fn pytest() -> Command {
    let mut pytest = command(environment::venv_python());
    pytest
        .args(["-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider"])
        .current_dir(environment::root().join("usm-python"));
    pytest
}

/// `cargo xtask python`: the Python tests alone, on the wheel of this tree. The arguments go to
/// pytest, in the folder `usm-python`; without any it runs all tests.
pub(crate) fn python_alone(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    if report.check("set-up: Python and OpenCL", crate::python::virtual_environment) {
        drivers(&mut report);
        if install_wheel(&mut report) {
            let all = arguments.is_empty().then_some("tests");
            report.command("Python tests", pytest().args(all).args(arguments));
        }
    }
    report.finish()
}

/// Builds the wheel and installs it into the virtual environment.
pub(crate) fn install_wheel(report: &mut Report) -> bool {
    report.check("wheel", || wheel::install().map(drop))
}
