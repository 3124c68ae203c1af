//! `cargo xtask sanitize [PART...] [-- WORD...]`: runs tests under AddressSanitizer, which detects
//! faults that safe Rust cannot: use after free, writes beyond a block, leaks. `PART` is a piece of
//! a part's name; without it all parts run.

use std::process::Command;

use crate::Failure;
use crate::command::{command, probe, run as run_command};
use crate::environment;
use crate::report::{self, Report};
use crate::test;

/// One run of cargo.
struct Part {
    name: &'static str,
    package: &'static str,
    targets: &'static [&'static str],
    /// The tests to run.
    words: &'static [&'static str],
    /// Whether a runtime allocates memory. Its frames need a walk by unwind tables: without it a
    /// leak in C++ shows only the operator `new`, and no rule can identify its owner. Takes several
    /// times as long.
    exact: bool,
}

const fn part(package: &'static str, targets: &'static [&'static str], exact: bool) -> Part {
    Part { name: package, package, targets, words: &[], exact }
}

/// The packages with raw memory of their own, and the conformance suite on the host, the mock and
/// the installed runtimes. Compile-fail tests compile for the host. For Level Zero it uses the
/// tests' driver: Intel's opens parts of itself in a way that the sanitizer forbids
/// (`RTLD_DEEPBIND`).
const PARTS: [Part; 12] = [
    part("usm-nrt", &["--lib", "--tests"], false),
    part("usm-core", &["--lib", "--tests"], false),
    part("usm-pool", &["--lib", "--tests"], false),
    part("usm-kernel", &["--lib", "--tests"], false),
    part("usm-opencl", &["--lib"], true),
    part("usm-level-zero", &["--lib"], false),
    part("usm-cuda", &["--lib"], false),
    part("usm-sycl", &["--lib", "--tests"], true),
    part("usm-tests", &["--test", "conformance", "--test", "core", "--test", "launch"], false),
    Part {
        name: "usm-tests on Level Zero",
        words: &["driver", "unloaded"],
        ..part("usm-tests", &["--test", "level_zero"], false)
    },
    Part {
        name: "usm-tests on the CUDA driver of the tests",
        ..part("usm-tests", &["--test", "cuda_on_host"], false)
    },
    Part { name: "usm-tests on OpenCL and SYCL", ..part("usm-tests", &["--test", "runtimes"], true) },
];

/// Children of a process with threads that exit by `exit`. Their search for leaks covers the stacks
/// of the parent's threads, and reports memory that only these refer to.
const SKIPPED: &str = "tests::children_";

/// The flag makes the blocks of pools known to the sanitizer (`usm-core/src/sync/checker.rs`).
const FLAGS: &str = "-Zsanitizer=address --cfg usm_asan";

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (pieces, words) = (&arguments[..end], arguments.get(end + 1..).unwrap_or_default());
    let parts = report::chosen(&PARTS, |part| part.name, pieces)?;
    if probe(nightly().arg("--version")).is_none() {
        return Err(Failure::Run(
            "AddressSanitizer needs the nightly toolchain (rustup toolchain install nightly)".into(),
        ));
    }
    let suppressions = environment::root().join("tests/sanitizers/leaks.txt");
    let mut report = Report::new();
    test::drivers(&mut report);
    planted(&mut report);
    for part in parts {
        // Sizes that no machine has must return null, as without the sanitizer. Intel's OpenCL
        // runtime replaces the signal stacks of threads, and the sanitizer would free those instead
        // of its own.
        let mut options = "allocator_may_return_null=1:detect_leaks=1:use_sigaltstack=0".to_owned();
        if part.exact {
            options.push_str(":fast_unwind_on_malloc=0");
        }
        let mut test = nightly();
        test.args(["test", "-p", part.package, "--all-features", "--no-fail-fast"]).args(part.targets);
        test.args(["--target", TARGET, "--target-dir"])
            .arg(environment::target_dir().join("sanitize"))
            .env("RUSTFLAGS", FLAGS)
            .env("LD_LIBRARY_PATH", environment::runtime_folders())
            .env("ASAN_OPTIONS", options)
            .env("LSAN_OPTIONS", format!("print_suppressions=0:suppressions={}", suppressions.display()))
            .args(["--", "--show-output", "--skip", SKIPPED])
            .args(if words.is_empty() {
                Vec::from(part.words)
            } else {
                words.iter().map(String::as_str).collect()
            });
        report.command(&format!("AddressSanitizer: {}", part.name), &mut test);
    }
    report.finish()
}

/// A checker that does not find a read of a pool's freed block would find none in the tests.
fn planted(report: &mut Report) {
    const FOUND: i32 = 99;
    for (source, status) in [("pool written", 0), ("pool freed", FOUND)] {
        let mut program = nightly();
        program.args(["run", "--quiet", "-p", "usm-tests", "--all-features", "--bin", "planted"]);
        program.args(["--target", TARGET, "--target-dir"]).arg(environment::target_dir().join("sanitize"));
        program.env("RUSTFLAGS", FLAGS).env("ASAN_OPTIONS", format!("exitcode={FOUND}"));
        program.arg("--").args(source.split(' '));
        report.check(&format!("AddressSanitizer: planted: {source}"), || {
            let outcome = run_command(&mut program);
            match outcome.code {
                Some(code) if code == status => Ok(()),
                _ => Err(format!("ended with {}, not with {status}", outcome.status)),
            }
        });
    }
}

/// The nightly cargo; the outer cargo's variables would override `+nightly`.
pub(crate) fn nightly() -> Command {
    let mut cargo = command("cargo");
    for variable in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC"] {
        cargo.env_remove(variable);
    }
    cargo.arg("+nightly");
    cargo
}
