//! `cargo xtask packages`: what a release would publish: manifests, pages, cargo's own checks,
//! licences, advisories and semver.

use std::process::Command;

use crate::command::{cargo, command, probe};
use crate::members;
use crate::report::Report;
use crate::{Failure, environment, folder, links, system};

/// Published as a wheel, not as a crate.
const PYTHON: &str = "usm-python";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            manifests(&mut report);
            parts(&mut report);
        }
        ["--fast"] => {
            manifests(&mut report);
            publish(&mut report, false);
        }
        ["--publish"] => {
            report.command("packages: publish", cargo(["publish", "--workspace"]).args(ours()));
        }
        _ => return Err(Failure::Usage(format!("packages does not take `{}`", arguments.join(" ")))),
    }
    report.finish()
}

/// What only `cargo xtask ci` does: [`manifests`] is in the test run.
pub(crate) fn parts(report: &mut Report) {
    publish(report, true);
    licences(report);
    semver(report);
}

/// The checks that need no network and no compiler, a part of the test run too.
pub(crate) fn manifests(report: &mut Report) {
    report.check("packages: manifests", || {
        let root = folder::read(&environment::root().join("Cargo.toml"))?;
        let each = |package: &str| folder::read(&environment::root().join(package).join("Cargo.toml"));
        let mut faults = versions(&root);
        for package in members::published() {
            faults.extend(manifest(&each(package)?).into_iter().map(|fault| format!("{package}: {fault}")));
        }
        verdict(faults)
    });
    report.check("packages: links", || {
        let mut faults = Vec::new();
        for package in members::published().iter().copied().chain([PYTHON]) {
            let page = folder::read(&environment::root().join(package).join("README.md"))?;
            faults.extend(links::published(&page).into_iter().map(|fault| format!("{package}: {fault}")));
        }
        verdict(faults)
    });
}

/// Cargo's rehearsal of a release, in the order of the dependencies. With `verify` every packed
/// crate is compiled against the packed others.
fn publish(report: &mut Report, verify: bool) {
    let mut publish = cargo(["publish", "--workspace", "--dry-run", "--allow-dirty", "--quiet"]);
    publish.args(ours()).args((!verify).then_some("--no-verify"));
    let name = if verify { "packages: publish, compiled" } else { "packages: publish, not compiled" };
    report.command(name, &mut publish);
}

/// Leaves out the members that are never published.
fn ours() -> impl Iterator<Item = String> {
    let root = folder::read(&environment::root().join("Cargo.toml")).unwrap_or_default();
    let others: Vec<String> = members::folders(&root)
        .into_iter()
        .filter(|member| !members::published().contains(member))
        .filter_map(|member| {
            let manifest = folder::read(&environment::root().join(member).join("Cargo.toml")).ok()?;
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
            Some(name.trim_end_matches('"').to_owned())
        })
        .collect();
    others.into_iter().flat_map(|name| ["--exclude".to_owned(), name])
}

/// Licences, sources and duplicates need no network; advisories need their database.
fn licences(report: &mut Report) {
    if system::find("cargo-deny").is_none() {
        report.missing(
            "packages: licences and advisories",
            "cargo-deny is not installed (cargo install cargo-deny)",
        );
        return;
    }
    report.command("packages: licences", &mut cargo(["deny", "check", "licenses", "bans", "sources"]));
    if probe(&mut cargo(["deny", "fetch", "db"])).is_some() {
        report.command("packages: advisories", &mut cargo(["deny", "check", "advisories"]));
    } else {
        report.missing("packages: advisories", "their database cannot be fetched here");
    }
}

/// The libraries beside those of the last release.
fn semver(report: &mut Report) {
    let name = "packages: semver";
    let Some(tag) = last_release() else {
        report.not_applicable(name, "no release has a tag yet");
        return;
    };
    if system::find("cargo-semver-checks").is_none() {
        report.missing(name, "cargo-semver-checks is not installed (cargo install cargo-semver-checks)");
        return;
    }
    let mut check = cargo(["semver-checks", "--workspace", "--baseline-rev", &tag]);
    report.command(name, check.args(ours()));
}

/// The tag of the newest release, `v1.2.3`.
fn last_release() -> Option<String> {
    let tags: String = probe(&mut git(&["tag", "--list", "v*", "--sort=-version:refname"]))?;
    tags.lines().next().map(str::to_owned)
}

fn git(arguments: &[&str]) -> Command {
    let mut git = command("git");
    git.args(arguments);
    git
}

fn verdict(faults: Vec<String>) -> Result<(), String> {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Our crates have one version, in `[workspace.package]` and in the table of dependencies.
fn versions(root: &str) -> Vec<String> {
    let Some(version) = root.lines().find_map(|line| line.strip_prefix("version = \"")) else {
        return vec!["no version in [workspace.package]".to_owned()];
    };
    let version = version.trim_end_matches('"');
    let ours = root.lines().filter(|line| line.contains("{ path = \""));
    ours.filter(|line| !line.contains(&format!("version = \"{version}\"")))
        .map(|line| format!("not version {version}: {line}"))
        .collect()
}

/// What a manifest of a published crate lacks.
fn manifest(text: &str) -> Vec<String> {
    let settings = [
        "version.workspace = true",
        "license.workspace = true",
        "repository.workspace = true",
        "description = ",
        "keywords = ",
        "categories = ",
        "readme = \"README.md\"",
        // The tests need crates and data that are not published.
        "exclude = [\"tests/\"]",
        "[package.metadata.docs.rs]\nall-features = true\n",
    ];
    let mut faults: Vec<String> = settings
        .iter()
        .filter(|setting| !text.contains(*setting))
        .map(|setting| format!("no `{}`", setting.trim()))
        .collect();
    if text.contains("publish = false") {
        faults.push("`publish = false` in a published crate".to_owned());
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{manifest, versions};

    #[test]
    fn one_version_is_stated_everywhere() {
        let text = |own: &str| format!("version = \"1.2.3\"\na = {{ path = \"a\", version = \"{own}\" }}\n");
        assert_eq!(versions(&text("1.2.3")), [""; 0]);
        assert_eq!(versions(&text("1.2.2")).len(), 1);
        assert_eq!(versions("").len(), 1);
    }

    #[test]
    fn faults_of_manifests_are_read() {
        assert_eq!(manifest("[package]\n").len(), 9);
        assert_eq!(manifest("publish = false\n").len(), 10);
    }
}
