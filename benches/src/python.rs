//! Rows that a script measures in a separate interpreter.

use std::process::{Command, Stdio};

use crate::row::Row;

/// The package's kernels.
pub(crate) fn kernels() -> Vec<Row> {
    rows("python/kernels.py")
}

/// Memory, copies and the import of the package, and a hop between two workers of Dask.
pub(crate) fn package() -> Vec<Row> {
    rows("python/package.py")
}

/// Everyday operations on host arrays beside NumPy's.
pub(crate) fn everyday() -> Vec<Row> {
    rows("python/everyday.py")
}

/// Copies of every layout, new arrays and waits.
pub(crate) fn copies() -> Vec<Row> {
    rows("python/copies.py")
}

/// Loads of files beside safetensors, and beside the copies alone.
pub(crate) fn files() -> Vec<Row> {
    rows("python/files.py")
}

/// Ready algorithms beside NumPy and CuPy.
pub(crate) fn algorithms() -> Vec<Row> {
    rows("python/algorithms.py")
}

/// The rows of a script of this crate, or none with the reason on a line. `USM_PYTHON` names a
/// Python with the wheel.
pub(crate) fn rows(script: &str) -> Vec<Row> {
    let Some(python) = std::env::var_os("USM_PYTHON") else {
        eprintln!("skipped: {script}: USM_PYTHON is not set");
        return Vec::new();
    };
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let output = match Command::new(python).arg(file).stderr(Stdio::inherit()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {script}: {error}");
            return Vec::new();
        }
    };
    if !output.status.success() {
        eprintln!("skipped: the rest of {script}: {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}
