//! `cargo xtask mutants`: counts the deliberately wrong inputs that each checker of the workspace
//! accepts.

use crate::command::{cargo, command};
use crate::report::Report;
use crate::{Failure, environment};

/// Runs all checkers. `--json` prints one document:
/// `{"checkers":[{"name","mutants","killed","alive":[]}]}`.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(other) = arguments.iter().find(|argument| *argument != "--json") {
        return Err(Failure::Usage(format!("mutants does not take `{other}`")));
    }
    let mut program = program();
    let status = program.args(arguments).status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(Failure::Reported) }
}

/// Runs all checkers as a part of the test run, with the program that the build of all tests left.
/// Its own build, with fewer features, would compile the libraries once more.
pub(crate) fn part(report: &mut Report) {
    let name = format!("mutants{}", std::env::consts::EXE_SUFFIX);
    let program = environment::target_dir().join("debug").join(name);
    report.command("mutants of the checkers", &mut command(program));
}

fn program() -> std::process::Command {
    let mut program = cargo(["run", "--quiet", "-p", "usm-tests", "--bin", "mutants", "--"]);
    program.current_dir(environment::root());
    program
}
