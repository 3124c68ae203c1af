//! `cargo xtask quick [CRATE...]`: in minutes, what most mistakes of a small edit fail: format,
//! lints and tests of the edited crates and of the crates that use them directly.

use core::sync::atomic::AtomicBool;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::command::{self, cargo, command, probe};
use crate::report::Report;
use crate::{Failure, environment, programs, test};

/// Members whose tests take minutes, or that need what only the whole run builds. As users of an
/// edited crate they are compiled, and nothing of theirs runs.
const ONLY_COMPILED: [&str; 7] = [
    "usm-tests",
    "usm-bench",
    "usm-random-kernels",
    "usm-python",
    "usm-cuda-driver",
    "usm-level-zero-driver",
    "xtask",
];

/// Files of Python tests that start many processes or compile much.
const SLOW_IN_PYTHON: [&str; 22] = [
    "backends",
    "calls",
    "dpctl_suite",
    "ends",
    "explorer",
    "hostile",
    "import_again",
    "ipc",
    "kernel_devices",
    "kernel_dpex",
    "kernel_flow",
    "kernel_forks",
    "kernel_mutants",
    "kernel_random",
    "matrix",
    "notebook",
    "numba_programs",
    "numba_suite",
    "random_models",
    "random_programs",
    "travel_far",
    "types",
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let crates: BTreeSet<String> =
        if arguments.is_empty() { edited()? } else { arguments.iter().cloned().collect() };
    let mut report = Report::new();
    let mut users = BTreeSet::new();
    for name in &crates {
        users.extend(direct_users(name)?);
    }
    let users: Vec<&String> = users.difference(&crates).collect();
    println!("edited: {}; users: {}", list(&crates), list(&users));
    command::run_side_by_side();
    report.command("format", &mut cargo(["fmt", "--all", "--check"]));
    let mut lints = cargo(["clippy", "--quiet", "--all-targets", "--all-features"]);
    lints.args(crates.iter().chain(users.iter().copied()).flat_map(|name| ["-p", name]));
    report.command("lints", lints.args(["--", "-D", "warnings"]));
    // An edited crate is tested whole, whatever it is; xtask would be built twice.
    let is_tested = |name: &&String| crates.contains(*name) || !ONLY_COMPILED.contains(&name.as_str());
    let tested_crates: Vec<&str> = crates
        .iter()
        .chain(users.iter().copied())
        .filter(is_tested)
        .map(String::as_str)
        .filter(|name| *name != "usm-python")
        .collect();
    if !tested_crates.is_empty() {
        let packages = tested_crates.iter().flat_map(|name| ["-p", name]);
        let words: Vec<&str> = packages.chain(["--all-features", "--lib", "--bins", "--tests"]).collect();
        if let Some(programs) = programs::build(&mut report, "tests", &words) {
            programs.run(&mut report, &AtomicBool::new(true));
        }
    }
    if crates.contains("usm-python") {
        python(&mut report);
    }
    report.finish()
}

/// The module without optimisation, and the Python tests that are quick on it.
fn python(report: &mut Report) {
    if !environment::venv_python().exists() {
        return report.missing("Python tests", "no virtual environment: cargo xtask setup makes it");
    }
    if test::install_wheel(report) {
        let mut pytest = test::pytest();
        pytest.args(["tests", "-x", "--numprocesses", "auto", "--maxprocesses", "8", "--dist", "worksteal"]);
        pytest.args(SLOW_IN_PYTHON.iter().map(|name| format!("--ignore=tests/test_{name}.py")));
        report.command("Python tests, the quick ones", &mut pytest);
    }
}

fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The members with files that differ from the last commit.
fn edited() -> Result<BTreeSet<String>, Failure> {
    let remedy = "name the crates: cargo xtask quick usm-pool";
    let lines = probe(command("git").args(["status", "--porcelain", "--untracked-files=all"]))
        .ok_or_else(|| Failure::Usage(format!("git does not answer; {remedy}")))?;
    let files =
        lines.lines().filter_map(|line| line.get(3..)).map(|file| file.rsplit(" -> ").next().unwrap_or(file));
    let crates: BTreeSet<String> = files.filter_map(|file| package_of(file.trim_matches('"'))).collect();
    match crates.is_empty() {
        true => {
            Err(Failure::Usage(format!("no crate has a file that differs from the last commit; {remedy}")))
        }
        false => Ok(crates),
    }
}

/// The name of the member whose folder contains this file.
fn package_of(file: &str) -> Option<String> {
    let root = environment::root();
    let folders = Path::new(file).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.map(|folder| root.join(folder).join("Cargo.toml")).find_map(|manifest| {
        let text = std::fs::read_to_string(manifest).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \""))?;
        Some(name.trim_end_matches('"').to_owned())
    })
}

/// The members that depend on this one without another in between, tests and benchmarks included.
fn direct_users(name: &str) -> Result<BTreeSet<String>, Failure> {
    let mut tree = cargo(["tree", "--quiet", "--workspace", "--all-features", "--invert", name]);
    tree.args(["--depth", "1", "--prefix", "none", "--format", "{p}"]);
    let tree_lines =
        output(&mut tree).map_err(|errors| Failure::Usage(format!("no crate `{name}`: {errors}")))?;
    let names = tree_lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
    Ok(names.filter(|user| user != name && !user.is_empty() && !user.starts_with('[')).collect())
}

fn output(program: &mut Command) -> Result<String, String> {
    let output = program.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_member_around_it() {
        let owner = |file| package_of(file);
        assert_eq!(owner("usm-pool/src/lib.rs").as_deref(), Some("usm-pool"));
        assert_eq!(owner("tests/skip/src/lib.rs").as_deref(), Some("usm-skip"));
        assert_eq!(owner("README.md"), None);
    }

    #[test]
    fn users_are_those_that_name_the_crate() {
        let users = direct_users("usm-pool").expect("the crate");
        assert!(users.contains("usm-plan") && users.contains("usm"), "{users:?}");
        assert!(!users.contains("usm-pool") && !users.contains("usm-core"), "{users:?}");
        assert!(direct_users("usm-nothing").is_err());
    }

    #[test]
    fn slow_files_exist() {
        let tests = environment::root().join("usm-python/tests");
        for name in SLOW_IN_PYTHON {
            assert!(tests.join(format!("test_{name}.py")).exists(), "{name}");
        }
    }
}
