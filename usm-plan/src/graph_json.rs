//! `graph.json`: tensors with sizes in bytes, operators in processing order, outputs.

use std::path::Path;

use serde::{Deserialize, Serialize};
use usm_pool::graph::{OpNode, TensorNode};
use usm_pool::{Graph, Op, Tensor, TensorKind};

use crate::error::{Error, Result, read_file};
use crate::input::{GRAPH_ALIGNMENT, Hints};
use crate::json::Documents;

#[derive(Deserialize, Serialize)]
struct File {
    tensors: Vec<JsonTensor>,
    ops: Vec<JsonOp>,
    #[serde(default)]
    outputs: Vec<u64>,
    /// Inclusive ranges of operators, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loops: Vec<(usize, usize)>,
}

#[derive(Deserialize, Serialize)]
struct JsonTensor {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    padding: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<JsonKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias_of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias_offset: Option<u64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum JsonKind {
    Activation,
    Constant,
    State,
    Input,
}

#[derive(Deserialize, Serialize)]
struct JsonOp {
    #[serde(default)]
    name: String,
    #[serde(default)]
    inputs: Vec<u64>,
    #[serde(default)]
    outputs: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    in_place: Vec<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Graph> {
    parse(&read_file(path)?, hints).map_err(|error| error.in_file(path))
}

/// Reads the text of a file.
pub fn parse(text: &[u8], hints: &Hints<'_>) -> Result<Graph> {
    let mut json = Documents::new(text);
    let file: File = json.only("")?;
    hints.remark(json.unused());
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
    for (first, last) in file.loops {
        builder = builder.loop_body(first, last);
    }
    builder.build().map_err(Error::bad)
}

/// The graph as a file that [`read`] reads back as the same graph, one tensor or operator a line.
pub fn text(graph: &Graph) -> Result<String> {
    let ids = |tensors: &[usize]| tensors.iter().map(|&t| graph.tensors()[t].id).collect::<Vec<_>>();
    let mut text = String::from("{\"tensors\": [");
    lines(&mut text, graph.tensors().iter().map(|node| JsonTensor::of(node, graph)))?;
    text.push_str("],\n\"ops\": [");
    let op = |node: &OpNode| JsonOp {
        name: node.name.clone(),
        inputs: ids(&node.inputs),
        outputs: ids(&node.outputs),
        in_place: node.in_place.iter().map(|&(from, to)| (ids(&[from])[0], ids(&[to])[0])).collect(),
        cost: (node.cost != 1).then_some(node.cost),
    };
    lines(&mut text, graph.ops().iter().map(op))?;
    text.push_str("],\n\"outputs\": ");
    text += &json(&ids(graph.outputs()))?;
    if !graph.loops().is_empty() {
        text.push_str(",\n\"loops\": ");
        text += &json(&graph.loops())?;
    }
    text.push_str("}\n");
    Ok(text)
}

fn lines(text: &mut String, items: impl Iterator<Item = impl Serialize>) -> Result<()> {
    for (at, item) in items.enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&json(&item)?);
    }
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::unable(format!("no JSON: {error}")))
}

impl JsonTensor {
    fn of(node: &TensorNode, graph: &Graph) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            size: node.size - node.padding,
            alignment: Some(node.alignment),
            padding: node.padding,
            // A view has its root's.
            kind: node.alias.is_none().then(|| node.kind.into()),
            alias_of: node.alias.map(|(of, _)| graph.tensors()[of].id),
            alias_offset: node.alias.map(|(_, offset)| offset).filter(|&offset| offset != 0),
        }
    }

    fn describe(&self, index: usize) -> Result<Tensor> {
        let mut tensor = Tensor::new(self.id, self.size);
        if let Some(alignment) = self.alignment {
            tensor = tensor.alignment(alignment);
        }
        if let Some(name) = &self.name {
            tensor = tensor.name(name);
        }
        tensor = tensor.padding(self.padding);
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

impl From<TensorKind> for JsonKind {
    fn from(kind: TensorKind) -> Self {
        match kind {
            TensorKind::Constant => Self::Constant,
            TensorKind::State => Self::State,
            TensorKind::Input => Self::Input,
            // The enum may grow; what is placed is an activation.
            _ => Self::Activation,
        }
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
