//! `cargo xtask spirv`: compiles the kernels' SPIR-V from the OpenCL C beside it. The result is
//! committed, so that a build of the crates needs no compiler.
//!
//! The compiler optimises nothing: a module has its source's instructions one by one, and the
//! device's driver optimises them. Debian's releases of the tools are pinned by name; the same
//! release writes the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{command, run};
use crate::report::Report;
use crate::{Failure, debian, environment, folder, setup};

/// Folders with `*.spv` files beside their `*.cl` files.
const FOLDERS: [&str; 3] = [
    "benches/src/backends/device",
    "tests/src/conformance/kernel/device",
    "tests/level-zero-driver/tests/device",
];

/// No unnamed address spaces, and only features that every driver since 2017 supports.
const COMPILE: [&str; 14] = [
    "-target",
    "spir64-unknown-unknown",
    "-cl-std=CL1.2",
    "-O2",
    "-Xclang",
    "-disable-llvm-passes",
    "-Xclang",
    "-disable-lifetime-markers",
    "-Xclang",
    "-finclude-default-header",
    "-Xclang",
    "-fdeclare-opencl-builtins",
    "-emit-llvm",
    "-c",
];
/// `fast`: a device may fuse a product and a sum, as OpenCL C allows.
const TRANSLATE: [&str; 2] = ["--spirv-max-version=1.0", "--spirv-fp-contract=fast"];
const VALIDATE: [&str; 2] = ["--target-env", "opencl1.2"];

/// The command: writes the modules, or compares them with `--check`.
pub(crate) fn run_command(arguments: &[String]) -> Result<(), Failure> {
    let checks = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => return Err(Failure::Usage(format!("spirv does not take `{}`", arguments.join(" ")))),
    };
    let mut report = Report::new();
    setup::debian(&mut report);
    part(&mut report, checks);
    report.finish()
}

/// The check, if the tools are installed.
pub(crate) fn part(report: &mut Report, checks: bool) {
    if !debian::stand() {
        return report
            .missing("SPIR-V from its source", "needs clang-15 and llvm-spirv-15 from Debian's set-up");
    }
    report.check("SPIR-V from its source", || modules(checks));
}

fn modules(checks: bool) -> Result<(), String> {
    let work = environment::target_dir().join("spirv");
    fs::create_dir_all(&work).map_err(|error| folder::at(&work, &error))?;
    let mut stale = Vec::new();
    for folder in FOLDERS {
        for source in folder::files(&environment::root().join(folder), "cl")? {
            let module = compiled(&source, &work)?;
            let stored_file = source.with_extension("spv");
            if checks {
                if fs::read(&stored_file).ok().as_ref() != Some(&module) {
                    stale.push(stored_file.display().to_string());
                }
            } else {
                fs::write(&stored_file, module).map_err(|error| folder::at(&stored_file, &error))?;
            }
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not what the source beside it gives, `cargo xtask spirv` makes it anew: {}",
        stale.join(", ")
    ))
}

/// The validated module of a source.
fn compiled(source: &Path, work: &Path) -> Result<Vec<u8>, String> {
    let name = source.file_stem().unwrap_or_default();
    let (code, module) = (work.join(name).with_extension("bc"), work.join(name).with_extension("spv"));
    succeed(tool("lib/llvm-15/bin/clang").args(COMPILE).arg(source).arg("-o").arg(&code))?;
    succeed(tool("bin/llvm-spirv-15").args(TRANSLATE).arg(&code).arg("-o").arg(&module))?;
    succeed(tool("bin/spirv-val").args(VALIDATE).arg(&module))?;
    fs::read(&module).map_err(|error| folder::at(&module, &error))
}

fn succeed(program: &mut Command) -> Result<(), String> {
    let outcome = run(program);
    if outcome.success { Ok(()) } else { Err(outcome.status) }
}

/// A program of the unpacked packages, with their libraries.
fn tool(path: &str) -> Command {
    let usr = environment::debian().join("usr");
    let libraries: Vec<PathBuf> =
        ["lib/x86_64-linux-gnu", "lib/llvm-15/lib"].map(|part| usr.join(part)).into();
    let mut tool = command(usr.join(path));
    if let Ok(paths) = std::env::join_paths(libraries) {
        tool.env("LD_LIBRARY_PATH", paths);
    }
    tool
}
