//! Circles of files that import each other.
//!
//! Importing a name that another file only passes on counts as importing its origin: a crate's root
//! names all files and depends on none of them.

use std::collections::{BTreeMap, BTreeSet};

use super::bindings::Token;

/// A file's place in its crate: `["device", "queue"]` for `device/queue.rs` and `["device"]` for
/// `device/mod.rs`.
pub(super) type Path = Vec<String>;

/// The place of a file, by its path below `src`.
pub(super) fn path_of(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// A name that a `use` brings into a file, by its whole path.
struct Import {
    /// The name in the file.
    name: String,
    path: Path,
}

/// The imports of the file at `place`, for each `use` of its own crate.
fn imports(place: &Path, code: &[Token<'_>]) -> Vec<Import> {
    let mut all = Vec::new();
    for at in 0..code.len() {
        if code[at].text == "use" {
            let end =
                code[at..].iter().position(|token| token.text == ";").map_or(code.len(), |end| at + end);
            tree(place, &code[at + 1..end], &[], &mut all);
        }
    }
    all
}

/// Adds the imports of a `use` tree below `stem`.
fn tree(place: &Path, tokens: &[Token<'_>], stem: &[String], all: &mut Vec<Import>) {
    let mut path = stem.to_vec();
    let mut name = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "::" => {}
            "{" => {
                for part in parts(&tokens[at + 1..]) {
                    tree(place, part, &path, all);
                }
                return;
            }
            "as" => {
                name = tokens.get(at + 1).map(|name| name.text.to_owned());
                break;
            }
            "crate" => path = Path::from(["crate".to_owned()]),
            "self" if path.is_empty() => path = own(place),
            "super" => {
                path = if path.is_empty() { own(place) } else { path };
                path.pop();
            }
            "self" => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if path.first().is_some_and(|first| first == "crate") {
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        all.push(Import { name, path: path.split_off(1) });
    }
}

fn own(place: &Path) -> Path {
    core::iter::once("crate".to_owned()).chain(place.iter().cloned()).collect()
}

/// The parts of a list between braces, of which `tokens` has all but the first.
fn parts<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" if depth > 0 => depth -= 1,
            "," | "}" if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 && token.text == "}" && start == at + 1 {
            break;
        }
    }
    parts
}

/// The number of files in the largest circle of a crate; 1 without any.
pub(super) fn largest(files: &BTreeMap<Path, Vec<Token<'_>>>) -> usize {
    let imports: BTreeMap<&Path, Vec<Import>> =
        files.iter().map(|(place, code)| (place, imports(place, code))).collect();
    let edges: BTreeMap<&Path, BTreeSet<&Path>> = imports
        .iter()
        .map(|(place, list)| {
            let targets = list.iter().filter_map(|import| target(&import.path, &imports, 0));
            (*place, targets.filter(|target| target != place).collect())
        })
        .collect();
    let closures: BTreeMap<&Path, BTreeSet<&Path>> =
        edges.keys().map(|place| (*place, reachable(place, &edges))).collect();
    let size = |place: &Path| {
        let others =
            closures[place].iter().filter(|other| ***other != *place && closures[*other].contains(place));
        1 + others.count()
    };
    edges.keys().map(|place| size(place)).max().unwrap_or(1)
}

/// The file that an imported path means. A file that imports the name itself passes it on.
fn target<'p>(path: &[String], imports: &BTreeMap<&'p Path, Vec<Import>>, depth: usize) -> Option<&'p Path> {
    let place = (0..=path.len()).rev().find_map(|len| imports.get_key_value(&path[..len].to_vec()))?;
    let name = path.get(place.0.len());
    let import = name.and_then(|name| place.1.iter().find(|import| import.name == *name));
    match import {
        // Names can pass through each other's files.
        Some(import) if depth < 8 && import.path != path => {
            let rest = &path[place.0.len() + 1..];
            target(&[&import.path, rest].concat(), imports, depth + 1)
        }
        _ if place.0.is_empty() => None,
        _ => Some(place.0),
    }
}

fn reachable<'p>(start: &'p Path, edges: &BTreeMap<&'p Path, BTreeSet<&'p Path>>) -> BTreeSet<&'p Path> {
    let mut places = BTreeSet::new();
    let mut stack = vec![start];
    while let Some(place) = stack.pop() {
        for next in edges.get(place).into_iter().flatten() {
            if places.insert(*next) {
                stack.push(next);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::bindings::tokens;
    use super::{largest, path_of};

    fn circle(files: &[(&str, &str)]) -> usize {
        largest(&files.iter().map(|(file, text)| (path_of(file), tokens(text))).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn the_largest_circle_is_found() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use crate::b::B;"),
            ("a.rs", "use crate::B;"),
            ("b.rs", "use super::c::{self, C};"),
            ("c/mod.rs", "use crate::c::d::D;"),
            ("c/d.rs", "use super::super::a::{A, X as Y};"),
        ];
        assert_eq!(circle(&files), 4);
        assert_eq!(circle(&files[..4]), 1);
    }
}
