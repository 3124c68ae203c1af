//! The hosted workflows: they only call verbs of xtask, and name only files, jobs, lists and parts
//! that exist. And the notes of a release, which a workflow takes from CHANGELOG.md.

use std::collections::BTreeSet;
use std::fs;

use crate::{Failure, USAGE, environment, folder, platforms};

/// What a step may run, besides verbs: Rust's tools, and programs that a verb needs.
const STEPS: [&str; 5] =
    ["cargo xtask ", "rustup ", "cargo install --locked ", "git config --global ", "apt-get "];

/// Reads every workflow.
pub(crate) fn check() -> Result<(), String> {
    let place = environment::root().join(".github/workflows");
    let entries = fs::read_dir(&place).map_err(|error| folder::at(&place, &error))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let exists = |path: &str| environment::root().join(path).exists();
    let mut all = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let workflow_faults = faults(&folder::read(&path)?, &exists);
        all.extend(workflow_faults.into_iter().map(|fault| format!("{name}:{fault}")));
    }
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}

/// The words after `cargo xtask` that this program knows.
fn verbs() -> impl Iterator<Item = &'static str> {
    let lines = USAGE.lines().filter_map(|line| line.strip_prefix("  "));
    lines
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split(' ').next())
}

/// Steps that run something else, unknown verbs, and files that do not exist.
fn faults(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    // The indentation of a `run: |`, whose lines are deeper.
    let mut block: Option<usize> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let content = line.trim_start();
        let depth = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if block.is_some_and(|outer| depth <= outer) {
            block = None;
        }
        let item = content.trim_start_matches("- ");
        let step = match (block, item.strip_prefix("run:").map(str::trim)) {
            (Some(_), _) => Some(content),
            (None, Some("|" | ">")) => {
                block = Some(depth);
                None
            }
            (None, run) => run,
        };
        if let Some(step) = step {
            faults.extend(step_faults(step).map(|fault| format!("{number}: {fault}")));
        }
        for word in line.split(|letter: char| letter.is_whitespace() || "\"'`,(){}".contains(letter)) {
            if is_file(word) && !exists(word.trim_start_matches("./")) {
                faults.push(format!("{number}: no file {word}"));
            }
        }
    }
    faults.extend(name_faults(text));
    faults
}

/// Jobs and lists that are used and not there, and listed verbs and parts that xtask does not know.
/// A list is on one line: `verb: [fuzz, loom]`.
fn name_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut lists, mut jobs) = (BTreeSet::new(), BTreeSet::new());
    let pairs = || {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
        lines.filter_map(|(number, line)| Some((number + 1, line.split_once(':')?)))
    };
    for (number, (key, value)) in pairs() {
        let (name, items) = (key.trim(), items(value));
        // A job is the only key of this depth without a value, but for settings of all jobs.
        if key.starts_with("  ") && !key.starts_with("   ") && value.is_empty() {
            jobs.insert(name);
        }
        if value.trim().starts_with('[') {
            lists.insert(name);
        }
        for item in items {
            let is_known = match name {
                "verb" => verbs().any(|verb| verb == item),
                "part" => platforms::has_part(item),
                _ => true,
            };
            if !is_known {
                faults.push(format!("{number}: xtask has no {name} `{item}`"));
            }
        }
    }
    for (number, (key, value)) in pairs().filter(|(_, (key, _))| key.trim() == "needs") {
        let missing_jobs = items(value).into_iter().filter(|job| !jobs.contains(job));
        faults.extend(missing_jobs.map(|job| format!("{number}: {} no job `{job}`", key.trim())));
    }
    for (number, line) in text.lines().enumerate() {
        let uses = line.split("matrix.").skip(1);
        let names =
            uses.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest));
        let missing_names = names.filter(|name| !lists.contains(name));
        faults.extend(missing_names.map(|name| format!("{}: no list `{name}` of the matrix", number + 1)));
    }
    faults
}

/// The words of a list, or the one word of a value.
fn items(value: &str) -> Vec<&str> {
    let inside = value.trim().trim_start_matches('[').trim_end_matches(']');
    let items = inside.split(',').map(|item| item.trim().trim_matches('"'));
    items.filter(|item| !item.is_empty()).collect()
}

fn step_faults(step: &str) -> Option<String> {
    if !STEPS.iter().any(|start| step.starts_with(start)) {
        return Some(format!("`{step}` is no verb of xtask"));
    }
    let verb = step.strip_prefix("cargo xtask ")?.split(' ').next()?;
    // A job for each of several verbs, which are in a list.
    let is_listed = verb.starts_with("${{");
    (!is_listed && !verbs().any(|name| name == verb)).then(|| format!("xtask has no verb `{verb}`"))
}

/// Whether a word names a file of the repository. What a build makes is in `target`, and an action
/// is named with its version.
fn is_file(word: &str) -> bool {
    let is_path = word.starts_with("./")
        || [".md", ".toml", ".lock", ".txt", ".py", ".sh"].iter().any(|end| word.ends_with(end));
    let is_foreign = ["target/", "http", "**", "~", "$"].iter().any(|start| word.starts_with(start));
    is_path && !is_foreign && !word.contains(['@', '*'])
}

/// `cargo xtask notes [VERSION]`.
pub(crate) fn notes(arguments: &[String]) -> Result<(), Failure> {
    let version = match arguments {
        [] => env!("CARGO_PKG_VERSION"),
        // As a tag names it too.
        [version] => version.trim_start_matches('v'),
        _ => return Err(Failure::Usage("notes takes one version".into())),
    };
    let changelog = folder::read(&environment::root().join("CHANGELOG.md"))?;
    let notes = notes_of(&changelog, version)?;
    let file = environment::target_dir().join("release-notes.md");
    fs::create_dir_all(environment::target_dir()).map_err(|error| folder::at(&file, &error))?;
    fs::write(&file, notes).map_err(|error| folder::at(&file, &error))?;
    println!("notes    {}", file.display());
    Ok(())
}

/// The section of a version, which must have a date.
fn notes_of<'c>(changelog: &'c str, version: &str) -> Result<&'c str, String> {
    let head = format!("\n## [{version}]");
    let (_, rest) = changelog.split_once(&head).ok_or(format!("CHANGELOG.md has no section {version}"))?;
    let (line, section) = rest.split_once('\n').unwrap_or((rest, ""));
    let date = line.trim().trim_start_matches("- ");
    let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u32>().is_ok());
    if !is_date {
        return Err(format!("CHANGELOG.md: version {version} has no date (`## [{version}] - 2026-01-31`)"));
    }
    Ok(section.split("\n## [").next().unwrap_or(section).trim())
}

#[cfg(test)]
mod tests {
    use super::{faults, notes_of, verbs};

    #[test]
    fn steps_call_verbs_that_exist() {
        let exists = |_: &str| true;
        let good = "      - run: cargo xtask test\n      - run: |\n          cargo xtask wheel --bare\n          rustup component add clippy\n      - uses: a/b@v1\n";
        assert_eq!(faults(good, &exists), [""; 0]);
        for planted in [
            "      - run: cargo xtask tests\n",
            "      - run: cargo test\n",
            "      - run: |\n          cargo xtask test\n          make\n",
            "  run: cargo xtask\n",
        ] {
            assert_eq!(faults(planted, &exists).len(), 1, "{planted}");
        }
    }

    #[test]
    fn jobs_lists_verbs_and_parts_exist() {
        let exists = |_: &str| true;
        let good = "jobs:\n  one:\n    strategy:\n      matrix:\n        verb: [fuzz, loom]\n        part: \
                    [Windows, \"Linux on arm\"]\n  two:\n    needs: [one]\n    steps:\n      - run: cargo xtask \
                    ${{ matrix.verb }}\n      - run: cargo xtask platforms \"${{ matrix.part }}\"\n";
        assert_eq!(faults(good, &exists), [""; 0]);
        for (right, wrong) in [
            ("fuzz, loom", "fuzz, looms"),
            ("Windows", "Widnows"),
            ("needs: [one]", "needs: [none]"),
            ("needs: [one]", "needs: none"),
            ("matrix.verb", "matrix.verbs"),
            ("        verb: [", "        verbs: ["),
        ] {
            assert_eq!(faults(&good.replace(right, wrong), &exists).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn files_that_do_not_exist_are_found() {
        let exists = |path: &str| path == "Cargo.lock";
        assert_eq!(faults("key: ${{ hashFiles('Cargo.lock') }}\n", &exists), [""; 0]);
        assert_eq!(faults("body_path: target/release-notes.md\nuses: a/b.md@v1\n", &exists), [""; 0]);
        for planted in ["key: hashFiles('Gone.lock')\n", "uses: ./.github/gone\n", "path: docs/gone.md\n"] {
            assert_eq!(faults(planted, &exists).len(), 1, "{planted}");
        }
    }

    #[test]
    fn verbs_are_those_of_the_usage() {
        let known: Vec<_> = verbs().collect();
        for verb in ["setup", "test", "ci", "platforms", "wheels", "notes", "packages", "msrv"] {
            assert!(known.contains(&verb), "{verb}: {known:?}");
        }
    }

    #[test]
    fn notes_are_the_section_of_a_version_with_a_date() {
        let text = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-31\n\n- a\n\n## [1.0.0]\n\n- b\n";
        assert_eq!(notes_of(text, "1.1.0"), Ok("- a"));
        assert!(notes_of(text, "1.0.0").is_err_and(|reason| reason.contains("no date")));
        assert!(notes_of(text, "2.0.0").is_err());
    }
}
