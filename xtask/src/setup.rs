//! `cargo xtask setup`: installs the requirements of tests and benchmarks beside the toolchain.

use crate::report::Report;
use crate::{Failure, debian, environment, folder, python, system};

pub(crate) fn run() -> Result<(), Failure> {
    folder::claim(&environment::setup_dir())?;
    let mut report = Report::new();
    let _ = parts(&mut report);
    println!("\nvirtual environment  {}", environment::venv().display());
    for model in folder::files(&environment::models(), "onnx").unwrap_or_default() {
        println!("model                {}", model.display());
    }
    println!("to use it by hand:");
    for (name, value) in environment::variables() {
        println!("  export {name}={}", value.to_string_lossy());
    }
    report.finish()
}

/// Runs all set-up into one report. False without Python.
pub(crate) fn parts(report: &mut Report) -> bool {
    let python_stands = report.set_up("set-up: Python and OpenCL", python::virtual_environment);
    if python_stands {
        report.set_up("set-up: ONNX models", python::models);
        if python::has_numpy_1() {
            report.set_up("set-up: NumPy 1.26", python::numpy_1);
        } else {
            report.missing("set-up: NumPy 1.26", "it was built for Python 3.9 to 3.12");
        }
    } else {
        report.missing("set-up: ONNX models", "no virtual environment");
    }
    debian(report);
    python_stands
}

/// Installs only Debian's runtimes and tools.
pub(crate) fn debian(report: &mut Report) {
    if debian::stand() || system::can_install() {
        report.set_up("set-up: Debian's runtimes", debian::runtimes);
    } else {
        report.missing("set-up: Debian's runtimes", "Level Zero and PoCL need Debian with root");
    }
}
