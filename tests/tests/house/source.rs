//! The source of what is shipped, without tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the workspace with code that no user runs.
const NOT_SHIPPED: [&str; 5] = ["tests", "benches", "xtask", "fuzz", "target"];

/// The path from the workspace's root, with `/`, and the lines of a file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust file in the `src` of a shipped crate, without its modules of tests.
pub(crate) fn rust() -> Vec<Source> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root()).expect("the workspace") {
        let folder = entry.expect("an entry").path();
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if folder.join("Cargo.toml").exists() && !NOT_SHIPPED.contains(&name.as_str()) {
            collect(&folder.join("src"), &format!("{name}/src"), "rs", &mut all);
        }
    }
    assert!(all.len() > 500, "{} files", all.len());
    all
}

/// The Python files of the package.
pub(crate) fn python() -> Vec<Source> {
    let mut all = Vec::new();
    collect(&root().join("usm-python/python/usm"), "usm-python/python/usm", "py", &mut all);
    assert!(all.len() > 10, "{} files", all.len());
    all
}

fn collect(folder: &Path, path: &str, extension: &str, all: &mut Vec<Source>) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect(path).map(|entry| entry.expect(path)).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().expect("a name in Unicode");
        let path = format!("{path}/{name}");
        if entry.path().is_dir() {
            if name != "tests" {
                collect(&entry.path(), &path, extension, all);
            }
        } else if entry.path().extension().is_some_and(|found| found == extension) && name != "tests.rs" {
            let text = fs::read_to_string(entry.path()).expect(&path);
            all.push(Source { path, lines: without_tests(&text) });
        }
    }
}

/// The lines before a module of tests, which is the last item of its file, without comments.
fn without_tests(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
    let end = lines.windows(3).position(|three| {
        is_test(three[0]) && three[1..].iter().any(|line| line.contains("mod ") && line.ends_with('{'))
    });
    let code = lines[..end.unwrap_or(lines.len())].iter().map(|line| line.trim_start());
    code.filter(|line| !line.starts_with("//") && !line.starts_with('#')).map(str::to_owned).collect()
}
