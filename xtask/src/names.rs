//! Names of values and types, and circles of files, by crate.
//!
//! A value's name is a noun phrase. A participle or an adverb (`found`, `here`) says what happened
//! to a value and not what it is. The check counts them in the code that is not a test, and the
//! files of the largest circle of imports. It fails where a crate has more than its limit.

use std::collections::BTreeMap;

use crate::{environment, folder, listing};

mod bindings;
mod circles;
mod words;

/// The most that a crate may have.
struct Limit {
    name: &'static str,
    /// Participles and adverbs among the names of values, in thousandths.
    values: usize,
    /// The same among the names of types.
    types: usize,
    /// Files of the largest circle.
    circle: usize,
}

/// Limits of crates without a row below.
const USUAL: Limit = Limit::of("", [7, 10], 2);

/// What other crates reached. A limit falls when its crate's count does, and never rises.
const LIMITS: [Limit; 11] = [
    Limit::of("benches", [7, 10], 1),
    Limit::of("usm-core", [7, 23], 1),
    Limit::of("usm-kernel", [8, 15], 5),
    Limit::of("usm-kernel-ir", [5, 0], 3),
    Limit::of("usm-kernel-jit", [7, 0], 6),
    Limit::of("usm-kernel-rust", [1, 0], 1),
    Limit::of("usm-nrt", [7, 10], 6),
    Limit::of("usm-plan", [7, 10], 3),
    Limit::of("usm-pool", [7, 13], 4),
    Limit::of("usm-python", [7, 10], 2),
    Limit::of("xtask", [7, 10], 31),
];

impl Limit {
    const fn of(name: &'static str, [values, types]: [usize; 2], circle: usize) -> Self {
        Self { name, values, types, circle }
    }
}

/// What a crate has.
#[derive(Default)]
struct Count {
    values: usize,
    types: usize,
    /// Names that say no thing, each as `file:line: name`.
    value_faults: Vec<String>,
    type_faults: Vec<String>,
    circle: usize,
}

/// Compares every crate of the workspace with its limits.
pub(crate) fn check() -> Result<(), String> {
    let faults: Vec<String> = counts()?.iter().flat_map(|(name, count)| faults(name, count)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The counts of each crate with a folder `src`, as git lists their files.
fn counts() -> Result<BTreeMap<String, Count>, String> {
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in listing::paths()? {
        let Some((name, file)) = path.split_once("/src/") else { continue };
        let full = environment::root().join(&path);
        if !name.contains('/') && file.ends_with(".rs") && full.exists() {
            crates.entry(name.to_owned()).or_default().insert(file.to_owned(), folder::read(&full)?);
        }
    }
    // The suite of conformance keeps the bodies of its cases.
    crates.remove("tests");
    Ok(crates.into_iter().map(|(name, files)| (name, count(&files))).collect())
}

fn count(files: &BTreeMap<String, String>) -> Count {
    let tests: Vec<circles::Path> = files
        .iter()
        .flat_map(|(file, text)| {
            let place = circles::path_of(file);
            let below = move |module: &&str| [&place[..], &[(*module).to_owned()]].concat();
            bindings::test_modules(text).iter().map(below).collect::<Vec<_>>()
        })
        .collect();
    let mut count = Count::default();
    let mut code = BTreeMap::new();
    for (file, text) in files {
        let place = circles::path_of(file);
        if tests.iter().any(|test| place.starts_with(test)) {
            continue;
        }
        let tokens = bindings::tokens(text);
        let names = bindings::names(&tokens);
        let faults = |names: &[bindings::Token<'_>]| -> Vec<String> {
            let faulty = names.iter().filter(|name| words::says_no_thing(name.text));
            faulty.map(|name| format!("{file}:{}: {}", name.line, name.text)).collect()
        };
        count.values += names.values.len();
        count.types += names.types.len();
        count.value_faults.extend(faults(&names.values));
        count.type_faults.extend(faults(&names.types));
        code.insert(place, tokens);
    }
    count.circle = circles::largest(&code);
    count
}

fn faults(name: &str, count: &Count) -> Vec<String> {
    let limit = LIMITS.iter().find(|limit| limit.name == name).unwrap_or(&USUAL);
    let mut faults = Vec::new();
    for (what, limit, all, names) in [
        ("values", limit.values, count.values, &count.value_faults),
        ("types", limit.types, count.types, &count.type_faults),
    ] {
        // Rounded up: a limit of 0 admits none.
        let share = (names.len() * 1000).div_ceil(all.max(1));
        if share > limit {
            faults.push(format!(
                "{name}: {} of {all} names of {what} say no thing, {share} of 1000, at most {limit}: {}",
                names.len(),
                names.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ")
            ));
        }
    }
    if count.circle > limit.circle {
        faults.push(format!(
            "{name}: {} files import each other in a circle, at most {}",
            count.circle, limit.circle
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{count, faults};

    fn counted(files: &[(&str, &str)]) -> super::Count {
        count(
            &files
                .iter()
                .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        )
    }

    #[test]
    fn names_above_the_limit_are_faults() {
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] mod tests;"),
            ("a.rs", "struct Found; fn f(kept: u8) { let block = kept; }"),
            ("tests.rs", "fn g() { let made = 1; }"),
        ];
        let count = counted(&files);
        assert_eq!((count.values, count.types, count.circle), (2, 1, 1));
        assert_eq!(count.value_faults, ["a.rs:1: kept"]);
        assert_eq!(faults("a", &count).len(), 2);
    }

    #[test]
    fn circles_above_the_limit_are_faults() {
        let files =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
        let count = counted(&files);
        assert_eq!(faults("a", &count), ["a: 3 files import each other in a circle, at most 2"]);
    }
}
