//! `cargo xtask prose`: checks comments and pages.
//!
//! Comments, docstrings and the prose of pages keep to 100 columns. Paragraphs of pages keep to
//! 120 words; their links name files that exist, and work outside rustdoc. The map is short and
//! names existing files. A decision record has its four parts. Code and pages use the terms of
//! GLOSSARY.md, and a value's name says what it is ([`names`]). Subjects of commits are short and
//! name the part.

use std::fs;
use std::path::Path;

use crate::report::Report;
use crate::{Failure, environment, links, listing, names, workflows};

/// The widest comment, in characters.
const COLUMNS: usize = 100;
/// The longest paragraph of a page, in words.
const PARAGRAPH: usize = 120;
/// The longest map, in words.
const MAP: usize = 1200;
/// The longest subject of a commit, in characters.
const SUBJECT: usize = 72;
/// The commits whose subjects are checked: a longer one that slipped in stays in the history.
const COMMITS: &str = "-20";
/// The longest item of a release in the changelog, in words.
const ITEM: usize = 25;
/// The parts of a decision record, in order.
const PARTS: [&str; 4] = ["## Context", "## Decision", "## Alternatives", "## Measured"];
/// Words that a term of GLOSSARY.md or of the field has replaced, in lower case.
const RETIRED: [(&str, &str); 18] = [
    ("book", "ledger, registry or statistics"),
    ("books", "ledger, registry or statistics"),
    ("door", "entry point"),
    ("doors", "entry points"),
    ("orphan", "say which owner is dropped"),
    ("orphans", "say which owner is dropped"),
    ("parked", "kept, or say until when"),
    ("parking", "the list of kept values"),
    ("roster", "queue list"),
    ("rosters", "queue lists"),
    ("settle", "say what it does: report, release, resolve"),
    ("settled", "say what is done: reported, released, resolved"),
    ("settles", "say what it does: reports, releases, resolves"),
    ("standin", "substitute"),
    ("territory", "pool pages"),
    ("untold", "unreported"),
    ("wish", "option, setting or request"),
    ("wishes", "options, settings or requests"),
];
/// Places that keep retired words: history, and cases whose bodies do not change.
const OLD_WORDS: [&str; 5] =
    ["CHANGELOG.md", "docs/adr/", "xtask/src/prose.rs", "tests/src/conformance/", "usm-python/licenses/"];

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    // Not a part of the tests: a change's subject is not in its tree.
    match listing::git(&["log", COMMITS, "--format=%s"]) {
        Some(log) => {
            report.check("prose: subjects", || verdict(subjects(&log)));
        }
        None => report.missing("prose: subjects", "this is no git repository"),
    }
    report.finish()
}

pub(crate) fn parts(report: &mut Report) {
    report.check("prose: comments", || {
        let slashes = |text: &str| comments(text, "//");
        [".rs", ".c", ".h", ".cl", ".cu"].iter().try_for_each(|end| files(&[end], &[], slashes))?;
        let hashes = |text: &str| [comments(text, "#"), docstrings(text)].concat();
        [".py", ".pyi"].iter().try_for_each(|end| files(&[end], &[], hashes))
    });
    report.check("prose: pages", || files(&[".md"], &[], page));
    report.check("prose: links", links::check);
    report.check("prose: words", || {
        [".rs", ".py", ".pyi", ".h", ".c", ".md"].iter().try_for_each(|end| files(&[end], &OLD_WORDS, words))
    });
    report.check("prose: names", names::check);
    report.check("prose: map", || {
        let path = environment::root().join("ARCHITECTURE.md");
        verdict(map(&read(&path)?, &|name| environment::root().join(name).exists()))
    });
    report.check("prose: changelog", || {
        verdict(changes(&read(&environment::root().join("CHANGELOG.md"))?, env!("CARGO_PKG_VERSION")))
    });
    report.check("prose: workflows", workflows::check);
    report.check("prose: decisions", || files(&["docs/adr/", ".md"], &[], decision));
}

/// Applies `check` to every file of the repository whose path contains all of `parts`, the last one
/// at its end, and none of `skip`.
fn files(parts: &[&str], skip: &[&str], check: fn(&str) -> Vec<String>) -> Result<(), String> {
    let mut faults = Vec::new();
    for path in listing::paths()? {
        let path = path.as_str();
        let fits = parts.iter().all(|part| path.contains(part))
            && parts.last().is_none_or(|end| path.ends_with(end));
        // Compiler messages quote lines of these files, so they stay unchanged.
        let is_skipped = skip.iter().any(|part| path.contains(part));
        if !fits || is_skipped || path.contains("/ui/") || path.contains("/data/") {
            continue;
        }
        let full = environment::root().join(path);
        if full.exists() {
            faults.extend(check(&read(&full)?).into_iter().map(|fault| format!("{path}:{fault}")));
        }
    }
    verdict(faults)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn verdict(faults: Vec<String>) -> Result<(), String> {
    let first_faults: Vec<&str> = faults.iter().take(20).map(String::as_str).collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("{} faults\n{}", faults.len(), first_faults.join("\n")))
    }
}

/// Comment lines that are too wide, each as `line: columns`. Tables, addresses and code cannot be
/// broken.
fn comments(text: &str, mark: &str) -> Vec<String> {
    let mut code = false;
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if !content.starts_with(mark) {
            code = false;
            continue;
        }
        let body = content.trim_start_matches(['/', '!', '#']).trim_start();
        let fence = body.starts_with("```");
        code ^= fence;
        let is_fixed =
            code || fence || body.starts_with('|') || body.contains("://") || body.starts_with('[');
        let width = line.chars().count();
        // A line of one long word, or of code in backticks, has no break.
        let breakable = body.split(' ').count() > 3;
        if width > COLUMNS && !is_fixed && breakable {
            faults.push(format!("{}: a comment of {width} columns, at most {COLUMNS}", number + 1));
        }
    }
    faults
}

/// Lines of Python docstrings that are too wide. Examples and addresses cannot be broken.
fn docstrings(text: &str) -> Vec<String> {
    // A docstring is the first thing in a file or behind the colon of a definition.
    let (mut string, mut docstring, mut first) = (false, false, true);
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if !string {
            docstring = first && line.trim_start().starts_with("\"\"\"");
        }
        let width = line.chars().count();
        let is_fixed = line.contains(">>>") || line.contains("://");
        if docstring && width > COLUMNS && !is_fixed {
            faults.push(format!("{}: a docstring of {width} columns, at most {COLUMNS}", number + 1));
        }
        string ^= line.matches("\"\"\"").count() % 2 == 1;
        first = line.ends_with(':') || first && line.trim().is_empty();
    }
    faults
}

/// Retired words in comments, names and texts, each with its replacement.
fn words(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase().replace(['-', '_'], "");
        if !RETIRED.iter().any(|(entry_word, _)| lower.contains(entry_word)) {
            continue;
        }
        for name in line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-') {
            for word in parts_of(name) {
                if let Some((_, term)) = RETIRED.iter().find(|(old_word, _)| *old_word == word) {
                    faults.push(format!("{}: `{word}` is retired: {term}", number + 1));
                }
            }
        }
    }
    faults
}

/// The words of a name: `standIn` has two of its own and, together, `standin`.
fn parts_of(name: &str) -> Vec<String> {
    let mut words = vec![name.replace('-', "").to_ascii_lowercase()];
    let mut word = String::new();
    for letter in name.chars() {
        if letter == '-'
            || letter.is_ascii_uppercase() && !word.ends_with(|last: char| last.is_ascii_uppercase())
        {
            words.push(core::mem::take(&mut word).to_ascii_lowercase());
        }
        if letter != '-' {
            word.push(letter);
        }
    }
    words.push(word.to_ascii_lowercase());
    words.retain(|word| !word.is_empty());
    words.dedup();
    words
}

/// Paragraphs that are too long, each by its first line.
fn page(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut words, mut begin, mut code) = (0, 0, false);
    for (number, line) in text.lines().chain([""]).enumerate() {
        let content = line.trim();
        if content.starts_with("```") {
            code = !code;
        }
        let is_prose = !code && !content.starts_with(['|', '#']) && content.contains(' ');
        let columns = line.chars().count();
        if is_prose && columns > COLUMNS {
            faults.push(format!("{}: {columns} columns, at most {COLUMNS}", number + 1));
        }
        if !code && links_to_item(line) {
            faults.push(format!("{}: a link that only rustdoc knows: write code without a link", number + 1));
        }
        let item = content.starts_with(['-', '*', '#', '|', '>'])
            || content.split_once(". ").is_some_and(|(digits, _)| digits.parse::<u32>().is_ok());
        if words > PARAGRAPH && (content.is_empty() || item || code) {
            faults.push(format!("{}: a paragraph of {words} words, at most {PARAGRAPH}", begin + 1));
        }
        if content.is_empty() || item || code {
            (words, begin) = (0, number + usize::from(content.is_empty()));
        }
        if !code && !content.starts_with(['|', '#']) {
            words += content.split_whitespace().count();
        }
    }
    faults
}

/// Whether a line links to an item by its path. Rustdoc resolves such a link, other readers do not.
fn links_to_item(line: &str) -> bool {
    let by_name = line.split("[`").skip(1).any(|rest| {
        rest.split_once("`]").is_some_and(|(name, after)| !name.contains('`') && !after.starts_with('('))
    });
    let by_path = line.split("](").skip(1).any(|rest| {
        let target = rest.split(')').next().unwrap_or_default();
        let is_code = target.chars().any(|letter| !letter.is_ascii_alphanumeric() && !"_:".contains(letter));
        !is_code && target.starts_with(|letter: char| letter.is_ascii_alphabetic())
    });
    by_name || by_path
}

/// The map: its length, and names of files that do not exist.
fn map(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let words = text.split_whitespace().count();
    if words > MAP {
        faults.push(format!("ARCHITECTURE.md: {words} words, at most {MAP}"));
    }
    let mut crate_of_walk = "";
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("**") {
            crate_of_walk = line.rsplit_once("(`").map_or("", |(_, rest)| rest.trim_end_matches("`)"));
        }
        for name in line.split('`').skip(1).step_by(2) {
            let path = name.ends_with('/')
                || Path::new(name).extension().is_some_and(|end| end == "rs" || end == "md");
            let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            let places = ["", crate_of_walk, &format!("{crate_of_walk}/src/planner")]
                .map(|folder| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
            if path && plain && !places.iter().any(|place| exists(place)) {
                faults.push(format!("ARCHITECTURE.md:{}: no file {name}", number + 1));
            }
        }
    }
    faults
}

/// Subjects of commits that are too long, or that name no part and what is done to it.
fn subjects(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for subject in text.lines() {
        let length = subject.chars().count();
        if length > SUBJECT {
            faults.push(format!("{subject}: {length} characters, at most {SUBJECT}"));
        }
        if !subject.contains(": ") {
            faults.push(format!("{subject}: no `part: verb object`"));
        }
    }
    faults
}

/// Items of a version's section of the changelog that are too long to be read. Unreleased items are
/// written for their commit, and shortened for the release.
fn changes(text: &str, version: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let head = format!("## [{version}]");
    let (mut is_inside, mut words, mut begin) = (false, 0, 0);
    for (number, line) in text.lines().chain(["## "]).enumerate() {
        let goes_on = line.starts_with("  ");
        if !goes_on && words > ITEM {
            faults.push(format!("{begin}: an item of {words} words, at most {ITEM}"));
        }
        if line.starts_with("## ") {
            is_inside = line.starts_with(&head);
        }
        if !is_inside || !goes_on {
            words = 0;
        }
        if is_inside && (goes_on || line.starts_with("- ")) {
            begin = if goes_on { begin } else { number + 1 };
            words += line.trim_start_matches("- ").split_whitespace().count();
        }
    }
    faults
}

/// The parts of a decision record that are missing or out of order.
fn decision(text: &str) -> Vec<String> {
    let mut from = 0;
    let mut faults = Vec::new();
    for part in PARTS {
        match text[from..].find(part) {
            Some(at) => from += at,
            None => faults.push(format!("1: `{part}` is missing or out of order")),
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{changes, comments, decision, docstrings, map, page, subjects, words};

    #[test]
    fn retired_words_are_found_in_text_and_in_names() {
        assert_eq!(words("fn a() {}\n/// The roster.\n")[0], "2: `roster` is retired: queue list");
        for planted in
            ["struct Books;", "BOOKS.lock()", "fn settle_views()", "is_settled", "a stand-in", "StandIn"]
        {
            assert_eq!(words(planted).len(), 1, "{planted}");
        }
        assert_eq!(words("/// The bookkeeping of a facebook: doorway, settlement, outdoors."), [""; 0]);
    }

    #[test]
    fn wide_comments_are_found_and_tables_are_not() {
        let words = "word ".repeat(22);
        assert_eq!(comments(&format!("fn a() {{}}\n    // {words}\n"), "//").len(), 1);
        assert_eq!(comments(&format!("/// | {words}\n/// http://x {words}\n"), "//"), [""; 0]);
        assert_eq!(comments(&format!("a = 1\n# {words}\n"), "#").len(), 1);
        assert_eq!(comments(&format!("/// ```\n/// {words}\n/// ```\n/// {words}"), "//").len(), 1);
    }

    #[test]
    fn wide_lines_of_docstrings_and_pages_are_found() {
        let words = "word ".repeat(22);
        let faulty = format!("def f():\n    \"\"\"Short.\n\n    {words}\n    \"\"\"\n");
        assert_eq!(docstrings(&faulty).len(), 1);
        assert_eq!(docstrings(&format!("\"\"\"One line.\"\"\"\nsource = f(\"{words}\")\n")), [""; 0]);
        assert_eq!(docstrings(&format!("source = \"\"\"\n{words}\n\"\"\"\n")), [""; 0]);
        assert_eq!(page(&format!("A\n{words}\n")), ["2: 110 columns, at most 100"]);
        assert_eq!(page(&format!("| {words}\n# {words}\n```\n{words}\n```\n")), [""; 0]);
    }

    #[test]
    fn long_paragraphs_are_found_by_their_first_line() {
        let long = "word\n".repeat(121);
        assert_eq!(page(&format!("# A\n\n{long}\n\nshort")), ["3: a paragraph of 121 words, at most 120"]);
        assert_eq!(page(&format!("- {0}\n- {0}\n", "word\n".repeat(80))), [""; 0]);
        assert_eq!(page(&format!("```\n{long}\n```\n")), [""; 0]);
    }

    #[test]
    fn links_that_only_rustdoc_knows_are_found() {
        for planted in ["By [`Queue::copy`].", "By [`copy`](Queue::copy).", "A [queue](Queue)."] {
            assert_eq!(page(planted).len(), 1, "{planted}");
        }
        let usual = "[`a`](../a/README.md), [b](https://docs.rs/b), [c](#c), `k[..]` and [1](a.md)";
        assert_eq!(page(usual), [""; 0]);
        assert_eq!(page("```\n[`Queue`]\n```\n"), [""; 0]);
    }

    #[test]
    fn the_map_names_files_that_exist_and_stays_short() {
        let exists = |name: &str| name == "a/src/b.rs";
        assert_eq!(map("**A walk** (`a`)\n1. `src/b.rs` and `a/src/b.rs`", &exists), [""; 0]);
        assert_eq!(map("`a/src/c.rs`", &exists), ["ARCHITECTURE.md:1: no file a/src/c.rs"]);
        assert_eq!(map(&"word ".repeat(1201), &exists).len(), 1);
    }

    #[test]
    fn long_subjects_and_those_without_a_part_are_found() {
        assert_eq!(subjects("usm-core: check ranges once\n"), [""; 0]);
        assert_eq!(subjects(&format!("a: {}\nFix it\n", "word ".repeat(14))).len(), 2);
    }

    #[test]
    fn long_items_of_a_release_are_found_and_those_to_come_are_not() {
        let long = format!("- {}\n  {}\n- short\n", "word ".repeat(20).trim_end(), "word ".repeat(6));
        let text = format!(
            "## [Unreleased]\n\n{long}\n## [1.0.0] - 2026-01-31\n\n- short\n{long}\n## [0.9.0]\n{long}"
        );
        assert_eq!(changes(&text, "1.0.0"), ["10: an item of 26 words, at most 25"]);
        assert_eq!(changes(&text, "0.9.0").len(), 1);
        assert_eq!(changes(&text, "2.0.0"), [""; 0]);
    }

    #[test]
    fn a_decision_has_four_parts_in_order() {
        assert_eq!(decision("## Context\n## Decision\n## Alternatives\n## Measured\n"), [""; 0]);
        assert_eq!(decision("## Decision\n## Context\n## Alternatives\n").len(), 2);
    }
}
