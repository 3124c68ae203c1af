//! `cargo xtask numba`: runs Numba's own tests on its runtime and on ours, and compares each.

use std::ffi::OsStr;

use crate::command::command;
use crate::report::Report;
use crate::{Failure, environment, setup, test};

/// `arguments` are those of the comparing script.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    if setup::parts(&mut report) && test::install_wheel(&mut report) {
        let mut compare = command(environment::venv_python());
        compare.args([OsStr::new("tests/numba_compare.py"), OsStr::new("--cache")]);
        compare.arg(environment::setup_dir().join("numba")).args(arguments);
        compare.current_dir(environment::root().join("usm-python"));
        report.command("Numba's tests", &mut compare);
    }
    report.finish()
}
