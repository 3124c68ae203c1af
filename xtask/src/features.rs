//! Combinations of features of every library and of the command line: each must build without a
//! warning. Every test run builds no feature, each one alone and all of them. `cargo xtask ci`
//! builds every pair too, as `cargo hack --feature-powerset --depth 2` would.

use std::fs;
use std::process::Command;

use crate::Failure;
use crate::command::{cargo, describe, quietly};
use crate::report::Report;
use crate::{environment, members};

/// `cargo xtask features`.
pub(crate) fn run_command() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report, Depth::Pairs);
    report.finish()
}

/// The number of features at once, beside all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// None, and each one alone.
    Alone,
    /// Every pair too.
    Pairs,
}

/// Checks each package.
pub(crate) fn parts(report: &mut Report, depth: Depth) {
    let what = if depth == Depth::Alone { "features alone" } else { "feature pairs" };
    for package in
        members::with_features().filter(|package| depth == Depth::Pairs || !LATER.contains(package))
    {
        report.check(&format!("{what}: {package}"), || check(package, depth));
    }
    if depth == Depth::Alone {
        // What a user installs: every other build of the test run enables all features.
        let mut check = cargo(["check", "--quiet", "-p", "usm-cli"]);
        report.check("default features: usm-cli", || is_silent(&mut check));
    }
    report.check("features: one runtime alone", check_runtimes);
}

/// Those that only `cargo xtask ci` builds with each feature alone: their features select other
/// members, each of which is checked with its own.
const LATER: [&str; 3] = ["usm", "usm-cli", "usm-kernel-jit"];

fn check(package: &str, depth: Depth) -> Result<(), String> {
    let names = names(package)?;
    let list = names.join(", ");
    println!("{} combinations of {list}", combinations(&names, depth).count());
    for features in combinations(&names, depth) {
        let mut check = cargo(["check", "--quiet", "--no-default-features", "-p", package, "--features"]);
        is_silent(check.arg(&features))?;
    }
    Ok(())
}

/// Warnings count: an import that one combination does not use is a fault.
fn is_silent(check: &mut Command) -> Result<(), String> {
    let (success, errors) = quietly(check)?;
    if !success || errors.contains("warning:") {
        return Err(format!("{}\n{errors}", describe(check)));
    }
    Ok(())
}

/// Features of the facade that enable another list of runtime crates than that of their name.
const EXCEPTIONS: [(&str, &[&str]); 4] = [
    ("hip", &["usm-cuda"]),
    // The runtimes that SYCL drives too.
    ("sycl", &["usm-level-zero", "usm-opencl", "usm-sycl"]),
    // With kernels too.
    ("cuda,kernel", &["usm-cuda"]),
    ("interface,kernel,nrt,pool", &[]),
];

/// Checks that each runtime has a feature of the facade, which enables no other runtime.
fn check_runtimes() -> Result<(), String> {
    let runtimes = members::runtimes();
    let own = runtimes.chunks(1).map(|one| (one[0].trim_start_matches("usm-"), one));
    let is_usual = |feature: &str| EXCEPTIONS.iter().all(|(name, _)| *name != feature);
    for (feature, expected) in own.filter(|(feature, _)| is_usual(feature)).chain(EXCEPTIONS) {
        let mut tree =
            cargo(["tree", "--quiet", "-p", "usm", "--no-default-features", "--features", feature]);
        tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        let output = tree.output().map_err(|error| format!("{}: {error}", describe(&tree)))?;
        if !output.status.success() {
            return Err(format!("{}\n{}", describe(&tree), String::from_utf8_lossy(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let enabled = runtimes_in(&text);
        if enabled != expected {
            return Err(format!("{}: runtimes {}", describe(&tree), enabled.join(", ")));
        }
    }
    Ok(())
}

/// The runtime crates in the output of `cargo tree`, sorted: `usm-cuda v0.2.0 (PATH)`.
fn runtimes_in(tree: &str) -> Vec<&str> {
    let all = members::runtimes();
    let mut packages: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    packages.retain(|name| all.contains(name));
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// No feature, each one, every pair if requested, and all; as values of `--features`.
fn combinations(names: &[String], depth: Depth) -> impl Iterator<Item = String> {
    let singles = names.iter().cloned();
    let pairs =
        names.iter().enumerate().filter(move |_| depth == Depth::Pairs).flat_map(|(index, first)| {
            names[index + 1..].iter().map(move |second| format!("{first},{second}"))
        });
    let most = if depth == Depth::Pairs { 2 } else { 1 };
    let all = (names.len() > most).then(|| names.join(","));
    core::iter::once(String::new()).chain(singles).chain(pairs).chain(all)
}

/// The names in the `[features]` table of a member, without `default`, which selects others.
pub(crate) fn names(package: &str) -> Result<Vec<String>, String> {
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
        let found = |names, depth| combinations(names, depth).collect::<Vec<_>>();
        assert_eq!(found(&names, Depth::Pairs), ["", "a", "b", "c", "a,b", "a,c", "b,c", "a,b,c"]);
        assert_eq!(found(&names, Depth::Alone), ["", "a", "b", "c", "a,b,c"]);
        for depth in [Depth::Alone, Depth::Pairs] {
            assert_eq!(found(&names[..2], depth), ["", "a", "b", "a,b"]);
            assert_eq!(found(&[], depth), [""]);
        }
    }

    #[test]
    fn a_tree_lists_its_runtimes() {
        let tree = "usm v0.2.0 (x)\nusm-opencl v0.2.0 (x)\nusm-cuda v0.2.0 (x)\nother v1.0.0\nusm-cuda v0.2.0 (x) (*)";
        assert_eq!(runtimes_in(tree), ["usm-cuda", "usm-opencl"]);
        assert_eq!(check_runtimes(), Ok(()));
    }

    #[test]
    fn features_are_read_from_the_manifest() {
        assert_eq!(names("level-zero-sys"), Ok(vec![String::from("std")]));
    }
}
