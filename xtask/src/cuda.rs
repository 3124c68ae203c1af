//! `cargo xtask test --cuda`: the tests that need an NVIDIA GPU, run here or packed for a machine
//! without cargo.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{cargo, command, describe, run};
use crate::report::Report;
use crate::{Failure, environment, folder, system};

/// Test executables with CUDA cases: package, target. Cases have `cuda` in their names.
const TESTS: [(&str, &str); 2] = [("usm-tests", "runtimes"), ("usm-tests", "raw")];

/// Runs the packed tests on the machine with the GPU.
const SCRIPT: &str = "\
#!/bin/sh
# Tests of usm on CUDA, built elsewhere: needs the NVIDIA driver, and NVRTC for kernels from source. What is missing is a failure.
cd \"$(dirname \"$0\")\" || exit 1
for packed in ./*.gz; do
    [ -e \"$packed\" ] && gunzip --force \"$packed\"
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# NVRTC finds its own library of functions only where the loader looks.
for file in $(find /usr /opt \"$HOME\" -name 'libnvrtc.so.1[23]' 2>/dev/null); do
    LD_LIBRARY_PATH=\"${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname \"$file\")\"
done
export LD_LIBRARY_PATH
echo \"NVRTC: $LD_LIBRARY_PATH\"
status=0
for test in ./*.test; do
    USM_REQUIRE=cuda,nvrtc \"$test\" cuda || status=1
done
for kernel in reverse reduce matmul histogram saxpy scan; do
    ./usm run \"$kernel\" --device cuda || status=1
done
exit $status
";

/// The kernels of `usm run`.
const KERNELS: [&str; 6] = ["reverse", "reduce", "matmul", "histogram", "saxpy", "scan"];

/// Builds the executables; runs them, or leaves them in a folder with a script.
pub(crate) fn test(prebuilt: Option<&Path>) -> Result<(), Failure> {
    let mut report = Report::new();
    for (package, target) in TESTS {
        let mut executable = None;
        report.check(&format!("build: {target}"), || {
            executable = Some(build(package, target)?);
            Ok(())
        });
        let Some(executable) = executable else { continue };
        match prebuilt {
            Some(folder) => {
                report.check(&format!("pack: {target}"), || {
                    pack(&executable, folder, &format!("{target}.test"))
                });
            }
            None => {
                let mut test = command(&executable);
                report.command(&format!("CUDA: {target}"), test.arg("cuda").env("USM_REQUIRE", "cuda,nvrtc"));
            }
        }
    }
    let mut usm = None;
    report.check("build: usm", || {
        usm = Some(build_command()?);
        Ok(())
    });
    match (prebuilt, usm) {
        (Some(folder), Some(usm)) => {
            report.check("pack: usm", || pack(&usm, folder, "usm"));
        }
        (None, Some(usm)) => {
            for kernel in KERNELS {
                let mut run = command(&usm);
                report.command(
                    &format!("CUDA: usm run {kernel}"),
                    run.args(["run", kernel, "--device", "cuda"]),
                );
            }
        }
        (_, None) => {}
    }
    if let Some(folder) = prebuilt {
        report.check("pack: run.sh", || {
            let script = folder.join("run.sh");
            fs::write(&script, SCRIPT).map_err(|error| folder::at(&script, &error))?;
            compress(folder)
        });
        println!("on the machine with the GPU: sh {}", folder.join("run.sh").display());
    }
    report.finish()
}

/// Builds one test target and finds it in cargo's output: `Executable tests/runtimes.rs
/// (target/debug/deps/runtimes-1f)`.
fn build(package: &str, target: &str) -> Result<PathBuf, String> {
    let mut build = cargo(["test", "--no-run", "-p", package, "--test", target]);
    let output = build.output().map_err(|error| format!("{}: {error}", describe(&build)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let executable = errors
        .lines()
        .filter(|line| line.trim_start().starts_with("Executable"))
        .find_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'))
        .map(|path| environment::root().join(path));
    executable.filter(|_| output.status.success()).ok_or_else(|| format!("{}\n{errors}", describe(&build)))
}

/// Builds the command with the CUDA backend.
fn build_command() -> Result<PathBuf, String> {
    let features = ["--no-default-features", "--features", "cuda"];
    let mut build = cargo(["build", "--quiet", "-p", "usm-cli"]);
    let outcome =
        run(build.args(features).args(["--target-dir"]).arg(environment::root().join("target/cuda")));
    let program = environment::root().join("target/cuda/debug/usm");
    outcome.success.then_some(program).ok_or(outcome.status)
}

/// Compresses what was packed if `gzip` is installed: a third of the size.
fn compress(folder: &Path) -> Result<(), String> {
    if system::find("gzip").is_none() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|error| folder::at(folder, &error))? {
        let file = entry.map_err(|error| folder::at(folder, &error))?.path();
        if file.extension().is_some_and(|extension| extension == "test") || file.ends_with("usm") {
            let mut gzip = command("gzip");
            let outcome = run(gzip.arg("--force").arg(&file));
            if !outcome.success {
                return Err(format!("{}: {}", describe(&gzip), outcome.status));
            }
        }
    }
    Ok(())
}

/// Copies an executable, without debugging information if `strip` is installed.
pub(crate) fn pack(executable: &Path, folder: &Path, name: &str) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| folder::at(folder, &error))?;
    let target = folder.join(name);
    fs::copy(executable, &target).map_err(|error| folder::at(&target, &error))?;
    if system::find("strip").is_some() {
        run(command("strip").arg(&target));
    }
    Ok(())
}
