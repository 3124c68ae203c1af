//! A case has one way to report that it does not run, and the summary of `cargo xtask test` counts
//! these reports.

use std::fs;
use std::path::{Path, PathBuf};

/// Test sources below a folder of the workspace, without the output of cargo and the set-up.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

fn workspace() -> (PathBuf, Vec<PathBuf>) {
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the workspace");
    let mut found = Vec::new();
    sources(&root, &mut found);
    let found = found.iter().map(|path| path.strip_prefix(&root).expect("below it").to_owned()).collect();
    (root, found)
}

/// Not in other words, which xtask does not count, and not by reading `USM_REQUIRE` directly.
#[test]
fn no_other_file_announces_a_skip() {
    let (root, sources) = workspace();
    // Exceptions: the counting code, files without tests, code that passes the variable on, and
    // this file.
    let others = ["xtask/", "benches/", "fuzz/", "tests/skip/", "tests/tests/skips.rs"];
    let is_test = |path: &Path| !others.iter().any(|other| path.starts_with(other));
    let mut found = Vec::new();
    for path in sources.iter().filter(|path| is_test(path)) {
        let text = fs::read_to_string(root.join(path)).expect("a file");
        for (number, line) in text.lines().enumerate() {
            let said =
                ["\"skipped: ", "\\nskipped: ", ": skipped: ", "\"skipped {", "SKIPPED: ", "\"USM_REQUIRE\""];
            if said.iter().any(|words| line.contains(words)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(sources.len() > 500, "{} files", sources.len());
}
