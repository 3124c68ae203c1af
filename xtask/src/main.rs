//! The entry point for people and CI: `cargo xtask <command>`.
//!
//! No dependencies, because every command waits until this crate is compiled.

#![allow(clippy::std_instead_of_alloc, reason = "a program for people: std is always there")]

mod bench;
mod binfmt;
mod ci;
mod command;
mod cuda;
mod debian;
mod documentation;
mod environment;
mod examples;
mod features;
mod folder;
mod fuzz;
mod idle;
mod images;
mod links;
mod lints;
mod listing;
mod loom;
mod members;
mod memcheck;
mod msrv;
mod mutants;
mod names;
mod nrt;
mod numba;
mod packages;
mod planner;
mod platforms;
mod programs;
mod prose;
mod public_api;
mod python;
mod quick;
mod races;
mod release;
mod report;
mod sanitize;
mod setup;
mod site;
mod sources;
mod spirv;
mod system;
mod test;
mod toolchains;
mod usage;
mod wheel;
mod wheels;
mod workflows;

use std::process::ExitCode;

pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  setup                 Python, OpenCL CPU runtime, Level Zero, PoCL, ONNX models and NumPy 1.26 in .setup/
  test                  set-up, format, lints, features one by one, tests, doctests, examples, images, Python tests
  quick [CRATE...]      in minutes: format, lints and tests of these crates (else of the edited ones) and of those that use them
  test --cuda           the tests that need an NVIDIA GPU
  test --cuda --prebuilt FOLDER
                        builds them into FOLDER, with a run.sh for a machine without cargo
  ci                    test with ten times the random cases and the wheel as it is shipped, then the release program, panic=abort, documentation,
                        the oldest Rust, packages, platforms, the public interfaces, models and every pair of features of every crate
  bench NAME [--json]   a benchmark of usm-bench, built as users build by default
  bench --prebuilt FOLDER  the program alone, for a machine without cargo
  fuzz [TARGET] [--seconds N]
                        every fuzz target (or one) for N seconds each, default 60; needs nightly and cargo-fuzz
  sanitize [PART...] [-- WORD...]
                        tests under AddressSanitizer: all, or the parts in whose names one of these is, and of those the tests; needs nightly
  races [PART...]       the cases with several threads under valgrind's helgrind
  memcheck [PART...]    safe programs under valgrind's memcheck: unwritten or freed memory
  loom                  the models of lock-free code under all interleavings
  mutants [--json]      wrong inputs made on purpose for each checker, which must refuse them all
  public-api [--write]  the public items of every library beside the lists in public-api/; --write: writes the lists anew
  prose                 widths of comments, lengths of paragraphs, links, names in ARCHITECTURE.md, parts of decision records, names of values
                        and types, circles of files
  platforms --native    the portable tests on this machine, whatever it is
  platforms [PART...]   the tests under wine and under qemu's emulation of arm and s390x; macOS and targets without a system compiled
  msrv                  every package compiled with the oldest Rust that its manifest states; rustup brings it
  packages [--fast]     what a release would publish: manifests, links, cargo publish without uploading, cargo deny, cargo
                        semver-checks; --fast: without compiling; --publish: publishes the crates, from the leaves up
  images                the freestanding and bare-metal images alone
  features              every pair of features of every crate alone
  nrt [--debug]         the C library of usm-nrt, or the one that looks for misuse; prints where it and its header are
  planner [--models]    the C library of usm-plan, which reads ONNX models too with --models; prints where it and its header are
  numba [--all] [--refresh] [--kind KIND] [--source SELECTOR] [MODULE...]
                        Numba's own tests on its runtime and on ours, with the wheel that is built for it: the eight modules of
                        the runtime, --all: those of typed containers too; Numba's results are kept, --refresh: made again
  python [WORD...]      the Python tests alone, on the wheel of this tree; the words go to pytest: python tests/test_explorer.py
  spirv [--check]       writes the SPIR-V of the kernels from their OpenCL C, or compares the two; needs Debian's set-up
  site                  the pages of the Python package that is installed, and of the Rust libraries, in target/site
  wheel [--bare]        the Python package with that library inside; prints where it is. --bare: size and platform, and what a user
                        tries first, in an environment with NumPy and the wheel alone
  wheels [PART...]      the wheels of a release: manylinux x86-64 and aarch64, musllinux x86-64, and the source distribution,
                        in target/dist; `sources`: the latter, and what pip builds from it and from a checkout
  notes [VERSION]       what CHANGELOG.md says about a version, by default this one: the notes of its release

environment:
  CI=true               a required part that cannot run is a failure instead of a skip
  USM_SETUP_DIR         where set-up lives (default .setup)
  PYTHON                the interpreter that makes the virtual environment (default python3)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match command {
        "setup" => no_arguments(rest).and_then(|()| setup::run()),
        "test" => test::run(rest),
        "quick" => quick::run(rest),
        "ci" => no_arguments(rest).and_then(|()| ci::run()),
        "images" => no_arguments(rest).and_then(|()| images::run_command()),
        "features" => no_arguments(rest).and_then(|()| features::run_command()),
        "nrt" => nrt::run(rest),
        "msrv" => no_arguments(rest).and_then(|()| msrv::run()),
        "packages" => packages::run(rest),
        "planner" => planner::run(rest),
        "numba" => numba::run(rest),
        "public-api" => public_api::run(rest),
        "wheel" => wheel::run(rest),
        "wheels" => wheels::run(rest),
        "platforms" => platforms::run(rest),
        "notes" => workflows::notes(rest),
        "python" => test::python_alone(rest),
        "site" => no_arguments(rest).and_then(|()| site::run()),
        "prose" => no_arguments(rest).and_then(|()| prose::run()),
        "spirv" => spirv::run_command(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "sanitize" => sanitize::run(rest),
        "races" => races::run(rest),
        "mutants" => mutants::run(rest),
        "memcheck" => memcheck::run(rest),
        "loom" => no_arguments(rest).and_then(|()| loom::run()),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => Err(Failure::Usage(format!("unknown command `{other}`"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Failure::Run(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Reported) => ExitCode::FAILURE,
    }
}

fn no_arguments(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::Usage(format!("unexpected argument `{extra}`"))),
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong: exit status 2.
    Usage(String),
    /// A failure: exit status 1.
    Run(String),
    /// A failure that the report has already printed: exit status 1.
    Reported,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Run(message)
    }
}
