//! The peers that are Python's: NumPy and dpctl beside the package `usm`, in an interpreter of
//! their own.

use std::process::{Command, Stdio};

use crate::row::Row;

/// The rows of `peers.py`, or none with a line that says why. `USM_PYTHON` names a Python that has
/// the wheel.
pub(super) fn rows() -> Vec<Row> {
    let Some(python) = std::env::var_os("USM_PYTHON") else {
        eprintln!("skipped: Python's peers: USM_PYTHON is not set");
        return Vec::new();
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/interface/peers.py");
    let output = match Command::new(python).arg(script).stderr(Stdio::inherit()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: Python's peers: {error}");
            return Vec::new();
        }
    };
    if !output.status.success() {
        eprintln!("skipped: the rest of Python's peers: {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}
