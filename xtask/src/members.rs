//! The members of the workspace, as their manifests describe them.

use std::sync::OnceLock;

use crate::{environment, folder};

/// A member that is published as a crate.
struct Member {
    name: &'static str,
    /// The members that it needs.
    needs: Vec<&'static str>,
    has_features: bool,
    /// Whether it connects a runtime: it needs the toolkit of runtimes, and no more of usm-core.
    is_runtime: bool,
}

/// The line by which a crate of a runtime needs the toolkit, and nothing else of usm-core.
const TOOLKIT: &str = "\nusm-core = { workspace = true, features = [\"driver\"] }\n";

/// The folders of all members, as the manifest of the workspace lists them.
pub(crate) fn folders(root: &str) -> Vec<&str> {
    let Some((_, list)) = root.split_once("\nmembers = [") else { return Vec::new() };
    let list = list.split(']').next().unwrap_or_default();
    list.split('"').skip(1).step_by(2).collect()
}

/// The crates that are published, from the leaves up: each comes after those that it needs.
pub(crate) fn published() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut rest: Vec<&Member> = all().iter().collect();
        let mut order = Vec::new();
        while !rest.is_empty() {
            let ready = |member: &&Member| member.needs.iter().all(|need| order.contains(need));
            let Some(place) = rest.iter().position(ready) else {
                panic!(
                    "crates that need each other: {:?}",
                    rest.iter().map(|one| one.name).collect::<Vec<_>>()
                )
            };
            order.push(rest.remove(place).name);
        }
        order
    })
}

/// The published crates that have features.
pub(crate) fn with_features() -> impl Iterator<Item = &'static str> {
    all().iter().filter(|member| member.has_features).map(|member| member.name)
}

/// The published crates of runtimes, sorted.
pub(crate) fn runtimes() -> Vec<&'static str> {
    let mut names: Vec<_> =
        all().iter().filter(|member| member.is_runtime).map(|member| member.name).collect();
    names.sort_unstable();
    names
}

fn all() -> &'static [Member] {
    static ALL: OnceLock<Vec<Member>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |path: &str| {
            folder::read(&environment::root().join(path)).unwrap_or_else(|error| panic!("{error}"))
        };
        let root: &'static str = read("Cargo.toml").leak();
        let manifests = folders(root).into_iter().map(|name| (name, read(&format!("{name}/Cargo.toml"))));
        let manifests: Vec<(&str, String)> =
            manifests.filter(|(_, text)| !text.contains("\npublish = false\n")).collect();
        let names: Vec<&'static str> = manifests.iter().map(|(name, _)| *name).collect();
        manifests
            .iter()
            .map(|(name, text)| {
                let needs = needs(text);
                Member {
                    name,
                    needs: names.iter().copied().filter(|one| needs.contains(one)).collect(),
                    has_features: text.contains("\n[features]\n"),
                    is_runtime: text.contains(TOOLKIT),
                }
            })
            .collect()
    })
}

/// The packages in the tables of dependencies, but not in those for tests.
fn needs(manifest: &str) -> Vec<&str> {
    let mut is_inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let table = line.trim_matches(['[', ']']);
            is_inside = table == "dependencies" || table.ends_with(".dependencies");
        } else if is_inside && !line.starts_with('#') {
            names.extend(line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{folders, needs, published, runtimes, with_features};

    #[test]
    fn each_crate_comes_after_those_that_it_needs() {
        let all = published();
        let place = |name: &str| all.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{name}"));
        for (first, second) in [
            ("usm-core", "usm-pool"),
            ("usm-kernel", "usm-kernel-jit"),
            ("usm-kernel-jit", "usm"),
            ("usm", "usm-cli"),
        ] {
            assert!(place(first) < place(second), "{all:?}");
        }
        assert!(!all.iter().any(|name| ["usm-python", "tests", "xtask"].contains(name)), "{all:?}");
        assert_eq!(runtimes()[..2], ["usm-cuda", "usm-level-zero"]);
        assert!(!runtimes().iter().any(|name| ["usm", "usm-array", "usm-core"].contains(name)));
        assert!(with_features().any(|name| name == "usm-kernel-jit"));
        assert!(!with_features().any(|name| name == "usm-kernel-macros"));
    }

    #[test]
    fn tables_of_tests_are_no_needs() {
        let manifest = "[dependencies]\n# why\na.workspace = true\nb = \"1\"\n[target.'cfg(unix)'.dependencies]\nc = 1\n[dev-dependencies]\nd = 1\n";
        assert_eq!(needs(manifest), ["a", "b", "c"]);
        assert_eq!(folders("[workspace]\nmembers = [\n    \"a\",\n    \"b/c\",\n]\n"), ["a", "b/c"]);
    }
}
