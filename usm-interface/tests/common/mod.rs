//! The corpus of real exports.

use std::path::PathBuf;

use serde_json::Value;
use usm_interface::{Field, members};

/// The folder beside the project, or `None` with a line that says so.
#[track_caller]
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
    let reason = format_args!("the corpus of real exports: no {} (set USM_SHARED)", folder.display());
    skip::missing("shared data", reason);
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

/// Compares members with the corpus' `[[name, offset, itemsize, subtree]...]`, padding left out.
pub(crate) fn compare(table: &[Field<'_>], expect: &Value, id: &str) {
    let Some(expect) = expect.as_array() else {
        return;
    };
    let own: Vec<_> = members(table).filter(|(field, _)| !field.is_padding()).collect();
    assert_eq!(own.len(), expect.len(), "{id}: members");
    for ((field, inner), expect) in own.iter().zip(expect) {
        assert_eq!(field.name().to_string(), expect[0].as_str().unwrap(), "{id}");
        assert_eq!(
            u64::from(field.offset()),
            expect[1].as_u64().unwrap(),
            "{id}: offset of {}",
            field.name()
        );
        assert_eq!(u64::from(field.size()), expect[2].as_u64().unwrap(), "{id}: size of {}", field.name());
        let mut subtree = &expect[3];
        let mut shape = Vec::new();
        while let Some(base) = subtree.get("base") {
            shape.extend(subtree["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32));
            subtree = base;
        }
        assert_eq!(field.shape().dims(), shape, "{id}: shape of {}", field.name());
        match subtree.as_str() {
            Some(typestr) => assert_eq!(field.dtype().to_string(), typestr, "{id}"),
            None => compare(inner, subtree, id),
        }
    }
}
