//! `cargo xtask bench NAME [--json]`: a benchmark of usm-bench, release build.

use crate::command::{cargo, describe};
use crate::{Failure, environment, nrt, python, wheel};

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.iter().any(|argument| !argument.starts_with('-')) {
        return Err(Failure::Usage("bench needs a name".into()));
    }
    // Peers such as dpctl and numpy live in the virtual environment.
    python::virtual_environment()?;
    let mut bench = cargo(["run", "--quiet", "--release", "-p", "usm-bench", "--"]);
    bench.args(arguments);
    if arguments.iter().any(|argument| argument == "nrt") {
        // The runtime as compiled code meets it.
        bench.env("USM_NRT_LIBRARY", nrt::build()?);
    }
    if arguments.iter().any(|argument| argument == "interface") {
        // The package as a user has it, beside NumPy and dpctl.
        wheel::install()?;
        bench.envs(environment::variables());
    }
    let status = bench.status().map_err(|error| format!("{}: {error}", describe(&bench)))?;
    if status.success() { Ok(()) } else { Err(Failure::Run(format!("{}: {status}", describe(&bench)))) }
}
