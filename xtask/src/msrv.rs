//! `cargo xtask msrv`: compiles every package with the oldest Rust that its manifest states. A
//! feature with a newer one, in the table `package.metadata.rust-version`, is compiled with that.

use std::collections::BTreeMap;

use crate::command::{command, quietly};
use crate::report::Report;
use crate::{Failure, environment, features, folder, members, toolchains};

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
        let (whole, parts): (Vec<&Part>, Vec<&Part>) =
            packages.iter().partition(|part| part.features.is_none());
        let mut failures = Vec::new();
        let all = whole.iter().flat_map(|part| ["-p", part.package]).chain(["--all-features"]);
        let mut runs = vec![all.map(String::from).collect::<Vec<_>>()];
        runs.extend(parts.iter().map(|part| {
            let names = part.features.as_deref().unwrap_or("");
            ["-p", part.package, "--no-default-features", "--features", names].map(String::from).into()
        }));
        for arguments in runs.iter().filter(|arguments| arguments.len() > 1) {
            let mut check = command("rustup");
            check
                .args(["run", &toolchain, "cargo", "check", "--quiet", "--target-dir"])
                .arg(environment::target_dir().join("msrv").join(version))
                .args(arguments);
            // Those of the newer toolchain, which cargo passes on.
            for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
                check.env_remove(variable);
            }
            failures.extend(match quietly(&mut check) {
                Ok((true, _)) => None,
                Ok((false, text)) | Err(text) => Some(text),
            });
        }
        report.check(&name, || match failures.is_empty() {
            true => Ok(()),
            false => Err(failures.join("\n")),
        });
    }
}

/// A package in one of the sets.
#[derive(Clone, Debug)]
struct Part {
    package: &'static str,
    /// The features that this version compiles; `None` for all.
    features: Option<String>,
}

fn counted(packages: &[Part]) -> String {
    let names: Vec<&str> = packages.iter().map(|part| part.package).collect();
    match &*names {
        [first, .., last] if names.len() > 3 => format!("{first} to {last}, {} packages", names.len()),
        _ => names.join(", "),
    }
}

/// The packages by the version that they state.
fn versions() -> Result<BTreeMap<String, Vec<Part>>, String> {
    let manifest = |folder: &str| folder::read(&environment::root().join(folder).join("Cargo.toml"));
    let usual = stated(&manifest("")?).ok_or("Cargo.toml: no rust-version")?;
    let mut sets = BTreeMap::<String, Vec<Part>>::new();
    for package in members::published().iter().copied().chain([PYTHON]) {
        let text = manifest(package)?;
        let version = match stated(&text) {
            Some(own) => own,
            None if text.contains("rust-version.workspace = true") => usual.clone(),
            None => return Err(format!("{package}: no rust-version")),
        };
        let mut features = None;
        if let Some((feature, newer)) = newer(&text) {
            let names = features::names(package)?;
            let others: Vec<String> = names.into_iter().filter(|name| *name != feature).collect();
            features = Some(others.join(","));
            sets.entry(newer).or_default().push(Part { package, features: None });
        }
        sets.entry(version).or_default().push(Part { package, features });
    }
    Ok(sets)
}

/// The `rust-version` that a manifest writes out.
fn stated(manifest: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""))?;
    Some(line.split('"').next()?.to_owned())
}

/// The feature that needs a newer Rust, and that.
fn newer(manifest: &str) -> Option<(String, String)> {
    let (_, table) = manifest.split_once("[package.metadata.rust-version]\n")?;
    let (feature, version) = table.lines().next()?.split_once(" = ")?;
    Some((feature.to_owned(), version.trim_matches('"').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{newer, stated, versions};

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
    fn a_feature_may_need_a_newer_version() {
        let manifest = "[package]\n\n[package.metadata.rust-version]\njit = \"1.95\"\n";
        assert_eq!(newer(manifest), Some(("jit".to_owned(), "1.95".to_owned())));
        let sets = versions().expect("all state one");
        let part = sets["1.88"].iter().find(|part| part.package == "usm-cli").expect("the command");
        let features = part.features.as_deref().expect("without `jit`");
        assert!(features.split(',').any(|name| name == "sycl") && !features.contains("jit"), "{features}");
        assert!(sets["1.95"].iter().any(|part| part.package == "usm-cli" && part.features.is_none()));
    }

    #[test]
    fn a_manifest_that_leaves_it_to_the_workspace_states_none() {
        assert_eq!(stated("[package]\nrust-version.workspace = true\n"), None);
        assert_eq!(stated("# why\nrust-version = \"1.95\"\n").as_deref(), Some("1.95"));
    }
}
