//! Every combination of at most two features of every library and of the command line: each must build without a warning.

use std::fs;

use crate::Failure;
use crate::command::{cargo, describe};
use crate::environment;
use crate::report::Report;

/// The members that have features of their own. usm-python needs Python and has one form only.
const PACKAGES: [&str; 7] =
    ["level-zero-sys", "usm-interface", "usm-core", "usm-pool", "usm-kernel", "usm-nrt", "usm-cli"];

/// `cargo xtask features`.
pub(crate) fn run_alone() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    report.finish()
}

/// One check a package.
pub(crate) fn parts(report: &mut Report) {
    for package in PACKAGES {
        report.check(&format!("feature pairs: {package}"), || check(package));
    }
}

fn check(package: &str) -> Result<(), String> {
    let names = names(package)?;
    let list = names.join(", ");
    println!("{} combinations of {list}", combinations(&names).count());
    for features in combinations(&names) {
        let mut check = cargo(["check", "--quiet", "--no-default-features", "-p", package, "--features"]);
        check.arg(&features);
        let output = check.output().map_err(|error| format!("{}: {error}", describe(&check)))?;
        let said = String::from_utf8_lossy(&output.stderr);
        // Warnings count: an import that one combination does not use is a mistake in it.
        if !output.status.success() || said.contains("warning:") {
            return Err(format!("{}\n{said}", describe(&check)));
        }
    }
    Ok(())
}

/// None, each, every pair, and all; as the value of `--features`.
fn combinations(names: &[String]) -> impl Iterator<Item = String> {
    let singles = names.iter().cloned();
    let pairs = names
        .iter()
        .enumerate()
        .flat_map(|(index, first)| names[index + 1..].iter().map(move |second| format!("{first},{second}")));
    let all = (names.len() > 2).then(|| names.join(","));
    core::iter::once(String::new()).chain(singles).chain(pairs).chain(all)
}

/// The names in the `[features]` table of a member. `default` is a choice of the others.
fn names(package: &str) -> Result<Vec<String>, String> {
    let path = environment::root().join(package).join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text
        .lines()
        .skip_while(|line| line.trim() != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with([' ', '#', ']']))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().to_owned())
        .filter(|name| name != "default")
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_comes_once() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let found: Vec<String> = combinations(&names).collect();
        assert_eq!(found, ["", "a", "b", "c", "a,b", "a,c", "b,c", "a,b,c"]);
        assert_eq!(combinations(&names[..2]).count(), 4);
        assert_eq!(combinations(&[]).count(), 1);
    }

    #[test]
    fn features_are_read_from_the_manifest() {
        assert_eq!(names("level-zero-sys"), Ok(vec![String::from("std")]));
    }
}
