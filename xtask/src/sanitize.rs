//! `cargo xtask sanitize [PACKAGE...]`: tests under AddressSanitizer, which sees what safe Rust cannot: use after free,
//! writes beyond a block, leaks.

use std::process::Command;

use crate::Failure;
use crate::command::{command, probe};
use crate::environment;
use crate::report::Report;

/// The packages with raw memory of their own, and the conformance suite: on the host, the mock and the runtimes that are there.
const PACKAGES: [&str; 5] = ["usm-nrt", "usm-core", "usm-pool", "usm-kernel", "usm-tests"];

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(flag) = arguments.iter().find(|argument| argument.starts_with('-')) {
        return Err(Failure::Usage(format!("sanitize does not take `{flag}`")));
    }
    if probe(nightly().arg("--version")).is_none() {
        return Err(Failure::Run(
            "AddressSanitizer needs the nightly toolchain (rustup toolchain install nightly)".into(),
        ));
    }
    let suppressions = environment::root().join("tests/sanitizers/leaks.txt");
    let mut report = Report::new();
    let packages: Vec<&str> = match arguments {
        [] => PACKAGES.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    for package in packages {
        let mut test = nightly();
        test.args(["test", "-p", package, "--all-features", "--no-fail-fast"]).args(targets(package));
        test.args(["--target", TARGET, "--target-dir"])
            .arg(environment::target_dir().join("sanitize"))
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // Sizes that no machine has must give null, as without the sanitizer. Intel's OpenCL runtime exchanges the signal
            // stacks of threads, which the sanitizer then frees in the place of its own.
            .env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1:use_sigaltstack=0")
            .env("LSAN_OPTIONS", format!("print_suppressions=0:suppressions={}", suppressions.display()))
            .args(["--", "--show-output"]);
        report.command(&format!("AddressSanitizer: {package}"), &mut test);
    }
    report.finish()
}

/// The tests that run; those of what the compiler refuses compile for the host.
fn targets(package: &str) -> &'static [&'static str] {
    match package {
        "usm-tests" => &["--test", "conformance", "--test", "core", "--test", "launch", "--test", "runtimes"],
        _ => &["--lib", "--tests"],
    }
}

/// The nightly cargo; what the outer cargo set would win over `+nightly`.
pub(crate) fn nightly() -> Command {
    let mut cargo = command("cargo");
    for variable in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC"] {
        cargo.env_remove(variable);
    }
    cargo.arg("+nightly");
    cargo
}
