//! `graph.json`: tensors with sizes in bytes, operators in processing order, outputs.

use std::path::Path;

use serde::Deserialize;
use usm_pool::{Graph, Op, Tensor, TensorKind};

use super::json::Documents;
use super::{GRAPH_ALIGNMENT, Hints};
use crate::error::{Error, Result, read_file};

#[derive(Deserialize)]
struct File {
    tensors: Vec<JsonTensor>,
    ops: Vec<JsonOp>,
    #[serde(default)]
    outputs: Vec<u64>,
}

#[derive(Deserialize)]
struct JsonTensor {
    id: u64,
    size: u64,
    alignment: Option<u64>,
    kind: Option<JsonKind>,
    alias_of: Option<u64>,
    alias_offset: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JsonKind {
    Activation,
    Constant,
    State,
    Input,
}

#[derive(Deserialize)]
struct JsonOp {
    #[serde(default)]
    name: String,
    #[serde(default)]
    inputs: Vec<u64>,
    #[serde(default)]
    outputs: Vec<u64>,
    #[serde(default)]
    in_place: Vec<(u64, u64)>,
    cost: Option<u64>,
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints) -> Result<Graph> {
    parse(&read_file(path)?, hints).map_err(|error| error.in_file(path))
}

/// Reads the text of a file.
pub(crate) fn parse(text: &[u8], hints: &Hints) -> Result<Graph> {
    let mut json = Documents::new(text);
    let file: File = json.only("")?;
    json.mention_unused();
    let mut builder = Graph::builder().default_alignment(hints.alignment.unwrap_or(GRAPH_ALIGNMENT));
    for (index, tensor) in file.tensors.iter().enumerate() {
        builder = builder.tensor(tensor.describe(index)?);
    }
    for op in file.ops {
        let mut described = Op::new(op.name).inputs(op.inputs).outputs(op.outputs);
        for (input, output) in op.in_place {
            described = described.in_place(input, output);
        }
        if let Some(cost) = op.cost {
            described = described.cost(cost);
        }
        builder = builder.op(described);
    }
    for id in file.outputs {
        builder = builder.output(id);
    }
    builder.build().map_err(Error::bad)
}

impl JsonTensor {
    fn describe(&self, index: usize) -> Result<Tensor> {
        let mut tensor = Tensor::new(self.id, self.size);
        if let Some(alignment) = self.alignment {
            tensor = tensor.alignment(alignment);
        }
        if let Some(kind) = self.kind {
            tensor = tensor.kind(kind.into());
        }
        match (self.alias_of, self.alias_offset) {
            (Some(of), offset) => tensor = tensor.alias_of(of, offset.unwrap_or(0)),
            (None, Some(offset)) => {
                let reason = format!("{offset} without an alias_of");
                return Err(Error::bad(reason).in_field(format_args!("tensors[{index}].alias_offset")));
            }
            (None, None) => {}
        }
        Ok(tensor)
    }
}

impl From<JsonKind> for TensorKind {
    fn from(kind: JsonKind) -> Self {
        match kind {
            JsonKind::Activation => Self::Activation,
            JsonKind::Constant => Self::Constant,
            JsonKind::State => Self::State,
            JsonKind::Input => Self::Input,
        }
    }
}
