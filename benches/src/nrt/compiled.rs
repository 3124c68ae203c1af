//! Small blocks of `@njit` functions, in memory of a source and on Numba's own runtime.

use std::process::Command;

use crate::row::Row;

/// The rows of the script, which needs the package and Numba in the Python that `USM_PYTHON` names.
pub(super) fn rows() -> Result<Vec<Row>, String> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/small_blocks.py");
    let output = Command::new(python).arg(script).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("small_blocks.py: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let (case, ours, theirs) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Row::new(case, "Numba's runtime", "ns", ours.parse().ok()?, theirs.parse().ok()?))
    };
    Ok(text.lines().filter_map(row).collect())
}
