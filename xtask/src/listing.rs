//! The files of the workspace, by git or, in a source archive, by its folders.

use std::fs;
use std::path::Path;

use crate::command::{command, probe};
use crate::environment;

/// The output of git in the workspace; `None` without git, or in a tree that is no repository.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    // A source archive may lie inside another repository.
    if !environment::root().join(".git").exists() {
        return None;
    }
    probe(command("git").args(arguments).current_dir(environment::root()))
}

/// Every file of the repository, from its root: those that git knows or would add. Without git, all
/// but hidden folders and those that builds make.
pub(crate) fn paths() -> Result<Vec<String>, String> {
    if let Some(output) = git(&["ls-files", "--cached", "--others", "--exclude-standard"]) {
        return Ok(output.lines().map(str::to_owned).collect());
    }
    let mut all = Vec::new();
    walk(&environment::root(), "", &mut all)?;
    Ok(all)
}

fn walk(folder: &Path, path: &str, all: &mut Vec<String>) -> Result<(), String> {
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(io_error)?.collect::<Result<Vec<_>, _>>().map_err(io_error)?;
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        match entry.file_type().map_err(io_error)? {
            kind if kind.is_dir() => {
                let is_made = name.starts_with('.') || ["target", "__pycache__"].contains(&name.as_str());
                if !is_made || name == ".github" {
                    walk(&entry.path(), &path, all)?;
                }
            }
            kind if kind.is_file() && path != "docs/python/tutorial.md" => all.push(path),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{git, walk};
    use crate::environment::root;

    #[test]
    fn an_archive_has_the_files_that_git_knows() {
        let Some(known) = git(&["ls-files", "--cached"]) else { return };
        let mut all = Vec::new();
        walk(&root(), "", &mut all).expect("a readable tree");
        let all: BTreeSet<&str> = all.iter().map(String::as_str).collect();
        let checked = |path: &&str| {
            let is_hidden = path.split('/').any(|part| part.starts_with('.') && part != ".github");
            [".rs", ".py", ".md", ".c"].iter().any(|end| path.ends_with(end)) && !is_hidden
        };
        let lost: Vec<&str> = known.lines().filter(checked).filter(|path| !all.contains(path)).collect();
        let there = |path: &&&str| root().join(path).exists();
        assert_eq!(lost.iter().filter(there).count(), 0, "{lost:?}");
        assert!(!all.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
