//! `cargo xtask fuzz [TARGET] [--seconds N]`: the targets of `fuzz/`, each for a bounded time, then
//! types against NumPy.

use std::fs;

use crate::Failure;
use crate::command::{cargo, command, probe};
use crate::environment;
use crate::report::Report;

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut target = None;
    let mut seconds = 60_u32;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seconds" {
            seconds = arguments
                .next()
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| Failure::Usage("--seconds needs a whole number".into()))?;
        } else if argument.starts_with('-') || target.is_some() {
            return Err(Failure::Usage(format!("unexpected argument `{argument}`")));
        } else {
            target = Some(argument.clone());
        }
    }
    let names = targets()?;
    if let Some(name) = &target {
        if !names.contains(name) {
            let list = names.join(", ");
            return Err(Failure::Usage(format!("no fuzz target `{name}` among {list}")));
        }
    }
    if probe(command("cargo").args(["+nightly", "fuzz", "--version"])).is_none() {
        return Err(Failure::Run(
            "fuzzing needs the nightly toolchain and cargo-fuzz (cargo install cargo-fuzz)".into(),
        ));
    }
    let mut report = Report::new();
    for name in names.iter().filter(|name| target.as_ref().is_none_or(|chosen_target| chosen_target == *name))
    {
        let mut fuzz = command("cargo");
        // rustup chooses these from `+nightly`; the outer cargo's variables would override it.
        for variable in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC"] {
            fuzz.env_remove(variable);
        }
        fuzz.args(["+nightly", "fuzz", "run", name, "--"]).arg(format!("-max_total_time={seconds}"));
        report.command(&format!("fuzz {name}"), &mut fuzz);
    }
    if target.is_none() {
        // Types against NumPy: ten times as many as in each test run.
        let mut numpy = cargo([
            "test",
            "--quiet",
            "--release",
            "-p",
            "usm-interface",
            "--test",
            "numpy",
            "--",
            "--show-output",
        ]);
        numpy.envs(environment::variables()).env("USM_NUMPY_CASES", "1000000");
        report.command("a million types against each NumPy", &mut numpy);
    }
    report.finish()
}

fn targets() -> Result<Vec<String>, String> {
    let folder = environment::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}
