//! `cargo xtask msrv`: compiles every package with the oldest Rust that its manifest states.

use std::collections::BTreeMap;

use crate::command::command;
use crate::public_api::CRATES;
use crate::report::Report;
use crate::{Failure, environment, folder, toolchains};

/// Published as a wheel, not as a crate.
const PYTHON: &str = "usm-python";

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    report.finish()
}

/// A part for each version that a manifest states.
pub(crate) fn parts(report: &mut Report) {
    let mut sets = BTreeMap::new();
    let is_read = report.check("minimum Rust: manifests", || {
        sets = versions()?;
        Ok(())
    });
    for (version, packages) in sets.iter().filter(|_| is_read) {
        let name = format!("minimum Rust: {version}, {}", counted(packages));
        // The first release of a version: a later one may have fixes.
        let toolchain = format!("{version}.0");
        if let Err(reason) = toolchains::require(&toolchain) {
            report.missing(&name, &reason);
            continue;
        }
        let mut check = command("rustup");
        check
            .args(["run", &toolchain, "cargo", "check", "--quiet", "--all-features", "--target-dir"])
            .arg(environment::target_dir().join("msrv").join(version))
            .args(packages.iter().flat_map(|package| ["-p", package]));
        // Those of the newer toolchain, which cargo passes on.
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
            check.env_remove(variable);
        }
        report.command(&name, &mut check);
    }
}

fn counted(packages: &[&str]) -> String {
    match packages {
        [first, .., last] if packages.len() > 3 => format!("{first} to {last}, {} packages", packages.len()),
        _ => packages.join(", "),
    }
}

/// The packages by the version that they state.
fn versions() -> Result<BTreeMap<String, Vec<&'static str>>, String> {
    let manifest = |folder: &str| folder::read(&environment::root().join(folder).join("Cargo.toml"));
    let usual = stated(&manifest("")?).ok_or("Cargo.toml: no rust-version")?;
    let mut sets = BTreeMap::<String, Vec<&'static str>>::new();
    for package in CRATES.into_iter().chain([PYTHON]) {
        let text = manifest(package)?;
        let version = match stated(&text) {
            Some(own) => own,
            None if text.contains("rust-version.workspace = true") => usual.clone(),
            None => return Err(format!("{package}: no rust-version")),
        };
        sets.entry(version).or_default().push(package);
    }
    Ok(sets)
}

/// The `rust-version` that a manifest writes out.
fn stated(manifest: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""))?;
    Some(line.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{stated, versions};

    #[test]
    fn every_package_states_one_version() {
        let sets = versions().expect("all state one");
        let parsed: Vec<(u32, usize)> = sets
            .iter()
            .map(|(version, packages)| {
                let minor = version.strip_prefix("1.").and_then(|minor| minor.parse().ok());
                (minor.expect("1 and a number"), packages.len())
            })
            .collect();
        assert!(parsed.iter().all(|(minor, _)| *minor >= 88), "{parsed:?}");
        assert!(parsed.len() <= 3, "one for the libraries, and few exceptions: {sets:?}");
    }

    #[test]
    fn a_manifest_that_leaves_it_to_the_workspace_states_none() {
        assert_eq!(stated("[package]\nrust-version.workspace = true\n"), None);
        assert_eq!(stated("# why\nrust-version = \"1.95\"\n").as_deref(), Some("1.95"));
    }
}
