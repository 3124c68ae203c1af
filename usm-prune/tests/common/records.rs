//! The records of graphs in the data folder: real modules, hand-made cases, random graphs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use usm_prune::{Cfg, CfgBuilder, OpKind, Value};

use skip::missing;

/// The folder of recorded answers. Reports it if it is missing.
#[track_caller]
pub(crate) fn oracle(file: &str) -> Option<String> {
    let root = std::env::var_os("USM_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join("data/nrt").join(file);
    let text = std::fs::read_to_string(&path);
    if let Err(error) = &text {
        missing("shared data", format_args!("{}: {error} (set USM_SHARED)", path.display()));
    }
    text.ok()
}

/// A record's function as a graph, with the name of every value.
pub(crate) fn graph(blocks: &[Json]) -> (Cfg, Vec<String>) {
    let mut builder = CfgBuilder::new();
    let mut ids = HashMap::new();
    for block in blocks {
        let id = builder.block(block["raising"].as_bool().unwrap());
        ids.insert(block["name"].as_str().unwrap(), id);
    }
    let (mut values, mut names) = (HashMap::new(), Vec::new());
    for (block, &id) in blocks.iter().zip(blocks.iter().map(|block| &ids[block["name"].as_str().unwrap()])) {
        for successor in block["succ"].as_array().unwrap() {
            builder.edge(id, ids[successor.as_str().unwrap()]);
        }
        for op in block["ops"].as_array().unwrap() {
            let kind = if op[0] == "inc" { OpKind::Inc } else { OpKind::Dec };
            let name = op[1].as_str().unwrap();
            let value = if name == "null" {
                Value::NULL
            } else {
                *values.entry(name.to_owned()).or_insert_with(|| {
                    names.push(name.to_owned());
                    Value(names.len() as u32 - 1)
                })
            };
            builder.op(id, kind, value);
        }
    }
    (builder.build().unwrap(), names)
}
