//! `cargo xtask bench NAME [--json] [--native]`: runs a benchmark of usm-bench in a release build,
//! with `--native` compiled for this machine's processor. With `--prebuilt FOLDER` it leaves the
//! program in the folder, for a machine without cargo: run `./usm-bench NAME` there.

use std::path::Path;

use crate::command::{cargo, describe, run as run_command};
use crate::{Failure, cuda, environment, nrt, planner, platforms, python, wheel};

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(at) = arguments.iter().position(|argument| argument == "--prebuilt") {
        let folder = arguments.get(at + 1);
        let folder = folder.ok_or_else(|| Failure::Usage("--prebuilt needs a folder".into()))?;
        return prebuild(Path::new(folder));
    }
    if !arguments.iter().any(|argument| !argument.starts_with('-')) {
        return Err(Failure::Usage("bench needs a name".into()));
    }
    // Peers such as dpctl and numpy live in the virtual environment.
    python::virtual_environment()?;
    let mut bench = cargo(["run", "--quiet", "--release", "-p", "usm-bench", "--"]);
    bench.args(arguments);
    if arguments.iter().any(|argument| argument == "--native") {
        // In a folder of its own, or the next build would compile everything again.
        bench.env("RUSTFLAGS", "-C target-cpu=native");
        bench.env("CARGO_TARGET_DIR", environment::target_dir().join("native"));
    }
    if arguments.iter().any(|argument| argument == "nrt") {
        // The runtime as compiled code uses it.
        bench.env("USM_NRT_LIBRARY", nrt::build()?);
        // And as a Numba program uses it.
        wheel::install()?;
        bench.envs(environment::variables());
    }
    if arguments.iter().any(|argument| argument == "ggml") {
        bench.env("USM_PLAN_LIBRARY", planner::build_for_users()?);
    }
    if arguments.iter().any(|argument| {
        ["algorithms", "copies", "everyday", "files", "interface", "package", "python"]
            .contains(&argument.as_str())
    }) {
        // The installed package, beside NumPy and dpctl.
        wheel::install()?;
        bench.envs(environment::variables());
    }
    if arguments.iter().any(|argument| argument == "backends" || argument == "kernel") {
        // The set-up's runtimes, and the Level Zero driver that executes on the host.
        let mut driver = cargo(["build", "--quiet", "-p", "usm-level-zero-driver"]);
        let outcome = run_command(&mut driver);
        if !outcome.success {
            return Err(Failure::Run(format!("{}: {}", describe(&driver), outcome.status)));
        }
        bench.envs(environment::variables());
    }
    if arguments.iter().any(|argument| argument == "pool") {
        // Peer and traces, where there are any.
        let umf = environment::venv().join("lib/libumf.so");
        if umf.is_file() {
            bench.env("USM_UMF_LIBRARY", umf);
        }
        if let Some(shared) = platforms::shared_data() {
            bench.env("USM_SHARED", shared);
        }
    }
    let status = bench.status().map_err(|error| format!("{}: {error}", describe(&bench)))?;
    if status.success() { Ok(()) } else { Err(Failure::Run(format!("{}: {status}", describe(&bench)))) }
}

fn prebuild(folder: &Path) -> Result<(), Failure> {
    let mut build = cargo(["build", "--quiet", "--release", "-p", "usm-bench"]);
    let outcome = run_command(&mut build);
    if !outcome.success {
        return Err(Failure::Run(format!("{}: {}", describe(&build), outcome.status)));
    }
    let name = format!("usm-bench{}", std::env::consts::EXE_SUFFIX);
    let program = environment::target_dir().join("release").join(&name);
    cuda::pack(&program, folder, &name).map_err(Failure::Run)?;
    println!("on the other machine: {} backends", folder.join(name).display());
    Ok(())
}
