//! Control-flow graphs with reference operations: a JSON array of records, or records in sequence.

use core::fmt;
use std::collections::{HashMap, HashSet};

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use usm_prune::{BlockId, Cfg, CfgBuilder, OpKind, Value};

use crate::error::Result;
use usm_plan::json::Documents;

/// The name of the constant null, in place of a value.
const NULL: &str = "null";

/// Functions that are pruned together.
#[derive(Deserialize)]
pub(crate) struct Record {
    pub(crate) case: String,
    /// Maximum number of steps of the search from one increment.
    pub(crate) subgraph_limit: Option<usize>,
    /// In the order of the file.
    #[serde(deserialize_with = "functions")]
    pub(crate) functions: Vec<(String, Function)>,
    /// An oracle's answer. Declared so that it is not reported as unused; never read.
    #[serde(rename = "expect")]
    _expect: Option<serde_json::Value>,
}

/// A graph with the names of its blocks and values.
#[derive(Deserialize)]
#[serde(try_from = "Vec<JsonBlock>")]
pub(crate) struct Function {
    pub(crate) cfg: Cfg,
    blocks: Vec<String>,
    values: Vec<String>,
}

#[derive(Deserialize)]
struct JsonBlock {
    name: String,
    succ: Vec<String>,
    raising: bool,
    ops: Vec<(JsonOp, Option<String>)>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JsonOp {
    Inc,
    Dec,
}

/// Reads all records, in order.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Record>> {
    let mut json = Documents::new(text);
    let records = if text.trim_ascii_start().starts_with(b"[") {
        json.only("records")?
    } else {
        let mut records = Vec::new();
        while let Some(record) = json.next(&format!("records[{}]", records.len()))? {
            records.push(record);
        }
        records
    };
    if let Some(unused_field) = json.unused() {
        crate::output::warning(unused_field);
    }
    Ok(records)
}

/// Functions by name, each name once.
fn functions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Function)>, D::Error> {
    struct Functions;

    impl<'de> Visitor<'de> for Functions {
        type Value = Vec<(String, Function)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of functions")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut names, mut functions) = (HashSet::new(), Vec::new());
            while let Some(name) = map.next_key::<String>()? {
                let function = map.next_value()?;
                if !names.insert(name.clone()) {
                    return Err(de::Error::custom(format_args!("the function {name:?} comes twice")));
                }
                functions.push((name, function));
            }
            Ok(functions)
        }
    }

    deserializer.deserialize_map(Functions)
}

impl TryFrom<Vec<JsonBlock>> for Function {
    type Error = String;

    fn try_from(json_blocks: Vec<JsonBlock>) -> Result<Self, String> {
        let mut builder = CfgBuilder::new();
        let mut ids = HashMap::new();
        for block in &json_blocks {
            if ids.insert(block.name.as_str(), builder.block(block.raising)).is_some() {
                return Err(format!("the block {:?} comes twice", block.name));
            }
        }
        let (mut values, mut names) = (HashMap::new(), Vec::new());
        for block in &json_blocks {
            let at = |field: &str, index| format!("block {:?}: {field}[{index}]", block.name);
            // Every block was given an id above.
            let Some(&from) = ids.get(block.name.as_str()) else { continue };
            for (index, successor) in block.succ.iter().enumerate() {
                let to = ids.get(successor.as_str());
                let to =
                    to.ok_or_else(|| format!("{}: there is no block {successor:?}", at("succ", index)))?;
                builder.edge(from, *to);
            }
            for (index, (op, name)) in block.ops.iter().enumerate() {
                let value = match name.as_deref() {
                    None | Some(NULL) => Value::NULL,
                    Some(name) => match values.get(name) {
                        Some(&value) => value,
                        None => {
                            let number = u32::try_from(names.len()).ok().map(Value);
                            let value = number.filter(|&value| value != Value::NULL);
                            let value =
                                value.ok_or_else(|| format!("{}: too many values", at("ops", index)))?;
                            names.push(name.to_owned());
                            values.insert(name, value);
                            value
                        }
                    },
                };
                builder.op(from, (*op).into(), value);
            }
        }
        let cfg = builder.build().map_err(|error| error.to_string())?;
        drop((ids, values));
        let blocks = json_blocks.into_iter().map(|block| block.name).collect();
        Ok(Self { cfg, blocks, values: names })
    }
}

impl Function {
    /// The blocks with their current operations, in order.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, Vec<(JsonOp, &str)>)> {
        self.blocks.iter().zip(0..).map(|(name, block)| {
            let ops = self.cfg.ops(BlockId(block)).iter();
            (name.as_str(), ops.map(|op| (op.kind.into(), self.name(op.value))).collect())
        })
    }

    fn name(&self, value: Value) -> &str {
        self.values.get(value.0 as usize).map_or(NULL, String::as_str)
    }
}

impl From<JsonOp> for OpKind {
    fn from(op: JsonOp) -> Self {
        match op {
            JsonOp::Inc => Self::Inc,
            JsonOp::Dec => Self::Dec,
        }
    }
}

impl From<OpKind> for JsonOp {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Inc => Self::Inc,
            OpKind::Dec => Self::Dec,
        }
    }
}
