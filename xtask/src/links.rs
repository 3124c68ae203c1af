//! Links of pages: those that lead from file to file in the repository, and those of pages that are
//! published alone.

use std::path::Path;

use crate::{environment, folder, listing};

/// How a link to a file of the project begins on a page that is published alone.
const OWN: &str = "/usm-rs/usm/blob/main/";
/// How a link begins to a page that `cargo xtask site` makes.
const SITE: [&str; 2] = ["../rust/", "tutorial.md"];

/// Every page of the repository: the files that its links name exist.
pub(crate) fn check() -> Result<(), String> {
    let exists = |path: &Path| environment::root().join(path).exists();
    let mut faults = Vec::new();
    for path in listing::paths()?.iter().filter(|path| path.ends_with(".md")) {
        let file = environment::root().join(path);
        if file.exists() {
            let file_faults = inside(&folder::read(&file)?, Path::new(path), &exists);
            faults.extend(file_faults.into_iter().map(|fault| format!("{path}:{fault}")));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Links of the page at `path`, from the root, to files that do not exist.
fn inside(page: &str, path: &Path, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let folder = path.parent().unwrap_or(path);
    let is_missing = |target: &str| {
        let file = target.split('#').next().unwrap_or(target);
        let file = match file.split_once(OWN) {
            Some((_, own)) => Path::new(own).to_path_buf(),
            None if file.is_empty() || file.contains("://") => return false,
            None if SITE.iter().any(|page| file.starts_with(page)) => return false,
            None => folder.join(file),
        };
        !exists(&file)
    };
    let targets = targets(page).into_iter().filter(|(_, target)| is_missing(target));
    targets.map(|(line, target)| format!("{line}: no file {target}")).collect()
}

/// Links that work in the repository only: docs.rs, crates.io and PyPI show the page alone.
pub(crate) fn published(page: &str) -> Vec<String> {
    let local = |target: &str| !target.starts_with("https://") && !target.starts_with('#');
    let targets = targets(page).into_iter().filter(|(_, target)| local(target));
    targets
        .map(|(line, target)| format!("README.md:{line}: `{target}` works in the repository only"))
        .collect()
}

/// The targets of a page's links, each with its line. Code has none.
fn targets(page: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let (mut is_code, mut in_ticks) = (false, false);
    for (number, line) in page.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        // Code between backticks is no link, but the words of a link may be code. Such code may go
        // on in the next line.
        in_ticks &= !line.trim().is_empty();
        let mut prose = String::new();
        for (index, piece) in line.split('`').enumerate() {
            in_ticks ^= index > 0;
            prose.push_str(if in_ticks { "" } else { piece });
        }
        // A link in its place, and one whose target stands elsewhere.
        let inside = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let definition_target =
            definition.filter(|(label, _)| !label.contains(']')).map(|(_, target)| target.trim());
        all.extend(inside.chain(definition_target).map(|target| (number + 1, target.to_owned())));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_files_that_exist() {
        let exists = |path: &Path| ["docs/a.md", "docs/../b.md"].iter().any(|known| path == Path::new(known));
        let faults = |page: &str| inside(page, Path::new("docs/a.md"), &exists);
        let own = "[a](https://github.com/usm-rs/usm/blob/main/docs/a.md#b)";
        for good in ["[b](../b.md#c) [a](#a)", "[c](https://docs.rs/usm)", own, "`k[g](h)`", "[b]: ../b.md"] {
            assert_eq!(faults(good), [""; 0], "{good}");
        }
        let planted = own.replace("a.md", "gone.md");
        for planted in ["[b](b.md)", "[`c`](../c.md#d)", "[c]: c.md", planted.as_str()] {
            assert_eq!(faults(planted).len(), 1, "{planted}");
        }
    }

    #[test]
    fn links_of_published_pages_are_absolute() {
        let good = "[a](#b) and [c](https://docs.rs/usm)\n[Guide][guide]: every part.\n";
        assert_eq!(published(good), [""; 0]);
        assert_eq!(published("`k[g, l](a)`\n`k[g,\nl](a)`\n```\nk[g, l](a)\n```\n"), [""; 0]);
        for planted in ["[`a`](../b.md)", "[a]: ../b.md", "[a](docs/c.md)"] {
            assert_eq!(published(planted).len(), 1, "{planted}");
        }
    }
}
