//! The corpus of real exports beside the project.

use std::path::PathBuf;

use serde_json::Value;

/// The folder beside the project, or `None` with a line that says so.
pub(crate) fn shared() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let shared = std::env::var_os("USM_SHARED").map_or_else(
        || root.join("../shared"),
        |path| {
            let path = PathBuf::from(path);
            if path.is_absolute() { path } else { root.join(path) }
        },
    );
    let folder = shared.join("data/interface");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no corpus at {} (set USM_SHARED)", folder.display());
    None
}

/// All records of the three files.
pub(crate) fn records() -> Vec<Value> {
    let Some(folder) = shared() else {
        return Vec::new();
    };
    let mut records = Vec::new();
    for name in ["np126.json", "np24.json", "torch212.json"] {
        let text = std::fs::read_to_string(folder.join(name)).expect("corpus file");
        let file: Value = serde_json::from_str(&text).expect("corpus is JSON");
        assert_eq!(file["schema"], 1);
        records.extend(file["records"].as_array().expect("records").iter().cloned());
    }
    records
}
