//! The examples of every crate: each must run to its end on any machine, with or without runtimes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::environment;
use crate::folder;
use crate::report::Report;

/// Minimum number of examples: a search that finds none would check nothing.
const LEAST: usize = 23;

/// Runs each example; `cargo test` has compiled it just before.
pub(crate) fn parts(report: &mut Report) {
    let examples = all().and_then(|list| {
        let count = list.len();
        (count >= LEAST).then_some(list).ok_or_else(|| format!("{count} of at least {LEAST} examples"))
    });
    let examples = match examples {
        Ok(examples) => examples,
        Err(error) => {
            report.check("examples", || Err(error));
            return;
        }
    };
    let folder = environment::target_dir().join("debug/examples");
    for (package, name) in examples {
        let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        report.command(&format!("example: {package}/{name}"), &mut Command::new(program));
    }
}

/// Package and name of each example, in order.
fn all() -> Result<Vec<(String, String)>, String> {
    let root = environment::root();
    let entries = fs::read_dir(&root).map_err(|error| folder::at(&root, &error))?;
    let packages =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file());
    let mut list = Vec::new();
    for package in packages {
        let Ok(examples) = fs::read_dir(package.join("examples")) else { continue };
        let name = |path: &PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let sources = examples.flatten().map(|entry| entry.path());
        let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let package = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        list.extend(sources.filter_map(|path| Some((package.clone(), name(&path)?))));
    }
    list.sort();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_an_example() {
        let found = all().expect("the folders");
        assert!(found.len() >= LEAST, "{found:?}");
        let mut names: Vec<&String> = found.iter().map(|(_, name)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), found.len(), "one folder has the programs of all: {found:?}");
        let libraries = crate::members::published().iter().filter(|name| **name != "usm-cli");
        for package in libraries {
            assert!(found.iter().any(|(name, _)| name == package), "{package}");
        }
    }
}
