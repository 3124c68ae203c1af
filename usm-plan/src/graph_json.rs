//! `graph.json`: tensors with sizes in bytes, operators in processing order, outputs.

mod range_plan;
mod range_search;

use core::fmt;
use std::collections::HashMap;
use std::path::Path;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use usm_pool::graph::{OpNode, TensorNode};
use usm_pool::range::{Dimension, Term};
use usm_pool::{Graph, Op, Space, Tensor, TensorKind};

use crate::error::{Error, Result, read_file};
use crate::json::Documents;
use crate::model::{GRAPH_ALIGNMENT, Hints, Model};
use crate::ranged::{self, Amount, NamedDimension, Place, PlanSet};

pub use range_plan::RangePlan;

pub use range_search::Probe;

#[derive(Debug, Deserialize, Serialize)]
#[serde(expecting = "a graph")]
struct File {
    tensors: Vec<JsonTensor>,
    ops: Vec<JsonOp>,
    #[serde(default)]
    outputs: Vec<u64>,
    /// Inclusive ranges of operators, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loops: Vec<(usize, usize)>,
    /// The memories that tensors lie in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    memories: Vec<JsonMemory>,
    /// The dimensions that sizes depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dims: Vec<JsonDimension>,
    /// Plans for every value of the dimensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    plans: Vec<JsonPlan>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(expecting = "a memory")]
struct JsonMemory {
    name: String,
    capacity: u64,
    /// Cost of a byte; those of all memories or none, in which case they count by their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Bytes of the largest allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(expecting = "a dimension")]
struct JsonDimension {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    low: u64,
    high: u64,
    #[serde(default = "one")]
    step: u64,
}

const fn one() -> u64 {
    1
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(expecting = "a plan")]
struct JsonPlan {
    below: Vec<(u64, u64)>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(expecting = "a tensor")]
struct JsonTensor {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    size: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    padding: u64,
    /// The size is the upper bound of a dynamic shape.
    #[serde(default, skip_serializing_if = "is_false")]
    dynamic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<JsonKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias_of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias_offset: Option<Amount>,
    /// The tensor that this one may be written over in a plan for every value.
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<u64>,
    /// The name of the memory that it must lie in.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
}

/// A number, or the text of an expression.
impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 2^64 - 1, or the text of an expression,")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount::Number(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum JsonKind {
    Activation,
    Constant,
    State,
    Input,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(expecting = "an operator")]
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
    /// Bytes that the operator needs while it runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    workspace: u64,
}

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Model> {
    parse(&read_file(path)?, hints).map_err(|error| error.in_file(path))
}

/// Reads the text of a file. If its sizes depend on dimensions, the hints have the values.
pub fn parse(text: &[u8], hints: &Hints<'_>) -> Result<Model> {
    let mut json = Documents::new(text);
    let file: File = json.only("")?;
    hints.judge_keys(&json)?;
    let dims = file.dimensions()?;
    let values = ranged::values(&dims, &hints.dims)?;
    let graph = file.graph(&dims, &values, hints)?;
    file.count_plans()?;
    let plan_set = if file.plans.is_empty() { None } else { Some(file.planned(dims, values)?) };
    let missing_cost = file.missing_cost();
    Ok(Model { planned: plan_set, missing_cost, ..Model::from(graph) })
}

/// Whether the sizes of a text depend on dimensions; then, whether it has plans for every value.
pub fn ranges(text: &[u8]) -> Result<Option<bool>> {
    let file: File = Documents::new(text).only("")?;
    Ok((!file.dims.is_empty()).then_some(!file.plans.is_empty()))
}

impl File {
    /// Refuses memories, which plans for every value do not have.
    fn check_one_memory(&self) -> Result<()> {
        let error = || Error::bad("a plan for every value is about one memory").in_field("memories");
        if self.memories.is_empty() { Ok(()) } else { Err(error()) }
    }

    /// Refuses too many plans, and fields that need plans in a file without plans.
    fn count_plans(&self) -> Result<()> {
        if !self.plans.is_empty() {
            self.check_one_memory()?;
        }
        let count = self.plans.len();
        if count > ranged::PLANS {
            return Err(Error::bad(format!("{count} exceed {}", ranged::PLANS)).in_field("plans"));
        }
        match self.tensors.iter().position(|tensor| tensor.over.is_some()) {
            Some(index) if count == 0 => {
                let error = Error::bad("only plans lay a tensor over another, and there are none");
                Err(error.in_field(format_args!("tensors[{index}].over")))
            }
            _ => Ok(()),
        }
    }

    /// The place of an operator without a cost, if others have one.
    fn missing_cost(&self) -> Option<String> {
        let operator = self.ops.iter().position(|op| op.cost.is_none())?;
        self.ops.iter().any(|op| op.cost.is_some()).then(|| format!("ops[{operator}].cost"))
    }

    fn dimensions(&self) -> Result<Vec<NamedDimension>> {
        let named_dimension = |dim: &JsonDimension| {
            let JsonDimension { name, of, low, high, step } = dim.clone();
            NamedDimension { name, of, values: Dimension { low, high, step } }
        };
        let dims: Vec<NamedDimension> = self.dims.iter().map(named_dimension).collect();
        ranged::check(&dims)?;
        Ok(dims)
    }

    /// The graph with its sizes for some values. With plans, its permits are those that the plans
    /// use.
    fn graph(&self, dims: &[NamedDimension], values: &[u64], hints: &Hints<'_>) -> Result<Graph> {
        let mut builder = Graph::builder().default_alignment(hints.alignment.unwrap_or(GRAPH_ALIGNMENT));
        for (index, tensor) in self.tensors.iter().enumerate() {
            let tensor_part = tensor.describe(index, dims, values)?;
            builder = builder.tensor(match &tensor.memory {
                None => tensor_part,
                Some(name) => tensor_part.memory(self.memory_number(index, name)?),
            });
        }
        for memory in self.spaces()? {
            builder = builder.memory(memory);
        }
        let mut bases: HashMap<u64, u64> =
            self.tensors.iter().filter_map(|tensor| Some((tensor.id, tensor.over?))).collect();
        for (index, op) in self.ops.iter().enumerate() {
            if op.workspace > 0 && !dims.is_empty() {
                let reason = "with dims, a tensor that nobody reads takes its place";
                return Err(Error::bad(reason).in_field(format_args!("ops[{index}].workspace")));
            }
            let mut operator = Op::new(op.name.clone())
                .inputs(op.inputs.iter().copied())
                .outputs(op.outputs.iter().copied());
            for &(input, output) in &op.in_place {
                if self.plans.is_empty() || bases.get(&output) == Some(&input) {
                    bases.remove(&output);
                    operator = operator.in_place(input, output);
                }
            }
            if let Some(cost) = op.cost {
                operator = operator.cost(cost);
            }
            operator = operator.workspace(op.workspace);
            builder = builder.op(operator);
        }
        if let (Some((id, of)), false) = (bases.iter().min(), self.plans.is_empty()) {
            let reason = format!("no operator has the permit [{of}, {id}]");
            return Err(Error::bad(reason).in_field(format_args!("the tensor with id {id}: over")));
        }
        for &id in &self.outputs {
            builder = builder.output(id);
        }
        for &(first, last) in &self.loops {
            builder = builder.loop_body(first, last);
        }
        builder.build().map_err(Error::bad)
    }

    fn memory_number(&self, tensor: usize, name: &str) -> Result<usize> {
        let number = self.memories.iter().position(|memory| memory.name == name);
        number.ok_or_else(|| {
            let error = Error::bad(format!("{name:?} is none of {} memories", self.memories.len()));
            error.in_field(format_args!("tensors[{tensor}].memory"))
        })
    }

    fn spaces(&self) -> Result<Vec<Space>> {
        let has_cost = self.memories.iter().any(|memory| memory.cost.is_some());
        let space = |(index, memory): (usize, &JsonMemory)| {
            let JsonMemory { name, capacity, cost, chunk } = memory.clone();
            let cost = match cost {
                None if has_cost => {
                    let error = Error::bad("it is absent, but other memories have a cost");
                    return Err(error.in_field(format_args!("memories[{index}].cost")));
                }
                cost => cost.unwrap_or(index as u64),
            };
            let mut space = Space::new(name, capacity, cost);
            space.chunk = chunk;
            Ok(space)
        };
        self.memories.iter().enumerate().map(space).collect()
    }

    fn planned(&self, dims: Vec<NamedDimension>, values: Vec<u64>) -> Result<PlanSet> {
        let place = |tensor: &JsonTensor| {
            let mut size = tensor.size.to_terms(&dims)?;
            if tensor.padding > 0 {
                size.extend([Term::Number(tensor.padding), Term::Add]);
            }
            let offset = tensor.alias_offset.as_ref().map(|offset| offset.to_terms(&dims)).transpose()?;
            let base = match (tensor.alias_of, tensor.over) {
                (Some(of), None) => Some((of, offset.unwrap_or_else(|| vec![Term::Number(0)]))),
                (None, Some(base)) => Some((base, vec![Term::Number(0)])),
                (None, None) => None,
                (Some(_), Some(_)) => {
                    let reason = "a view lies where its root does";
                    let field = format!("the tensor with id {}: over", tensor.id);
                    return Err(Error::bad(reason).in_field(field));
                }
            };
            Ok(Place { id: tensor.id, size, base, is_permitted: tensor.over.is_some() })
        };
        let places = self.tensors.iter().map(place).collect::<Result<_>>()?;
        let plans = self.plans.iter().map(|plan| plan.below.clone()).collect();
        Ok(PlanSet { dims, values, places, plans })
    }
}

/// The graph as text, one tensor or operator a line. [`parse`] reads it back as the same graph.
pub fn text(graph: &Graph) -> Result<String> {
    File::of(graph).text()
}

/// The graph as a file whose sizes depend on dimensions. For each tensor: its size, and its offset
/// in its base; no offset for a tensor that is no view for some value. `permits` tells of an
/// input and an output whether the permit holds for every value.
pub(crate) fn text_with_dims(
    graph: &Graph,
    dims: &[NamedDimension],
    sizes: Vec<Amount>,
    views: Vec<Option<Amount>>,
    permits: &dyn Fn(usize, usize) -> bool,
) -> Result<String> {
    let mut file = File::of(graph);
    for (tensor, (size, view)) in file.tensors.iter_mut().zip(sizes.into_iter().zip(views)) {
        tensor.size = size;
        if view.is_none() && tensor.alias_of.take().is_some() {
            tensor.kind = Some(JsonKind::Activation);
        }
        tensor.alias_offset = view.filter(|at| *at != Amount::Number(0));
    }
    for (op, node) in file.ops.iter_mut().zip(graph.ops()) {
        let permit_flags = node.in_place.iter().map(|&(input, output)| permits(input, output));
        let mut permit_flags = permit_flags.collect::<Vec<_>>().into_iter();
        op.in_place.retain(|_| permit_flags.next().unwrap_or(false));
    }
    let dim = |dim: &NamedDimension| {
        let NamedDimension { name, of, values: Dimension { low, high, step } } = dim.clone();
        JsonDimension { name, of, low, high, step }
    };
    file.dims = dims.iter().map(dim).collect();
    file.text()
}

impl File {
    fn of(graph: &Graph) -> Self {
        let ids = |tensors: &[usize]| tensors.iter().map(|&t| graph.tensors()[t].id).collect::<Vec<_>>();
        // All costs or none, as a reader cannot know what an absent one among others means.
        let has_costs = graph.ops().iter().any(|node| node.cost != 1);
        let op = |node: &OpNode| JsonOp {
            name: node.name.clone(),
            inputs: ids(&node.inputs),
            outputs: ids(&node.outputs),
            in_place: node.in_place.iter().map(|&(from, to)| (ids(&[from])[0], ids(&[to])[0])).collect(),
            cost: has_costs.then_some(node.cost),
            // The graph has a tensor for it.
            workspace: 0,
        };
        Self {
            tensors: graph.tensors().iter().map(|node| JsonTensor::of(node, graph)).collect(),
            ops: graph.ops().iter().map(op).collect(),
            outputs: ids(graph.outputs()),
            loops: graph.loops().to_vec(),
            memories: graph.memories().iter().map(JsonMemory::of).collect(),
            dims: Vec::new(),
            plans: Vec::new(),
        }
    }

    fn text(&self) -> Result<String> {
        let mut text = String::from("{\"tensors\": [");
        lines(&mut text, self.tensors.iter())?;
        text.push_str("],\n\"ops\": [");
        lines(&mut text, self.ops.iter())?;
        text.push_str("],\n\"outputs\": ");
        text += &json(&self.outputs)?;
        if !self.loops.is_empty() {
            text.push_str(",\n\"loops\": ");
            text += &json(&self.loops)?;
        }
        if !self.memories.is_empty() {
            text.push_str(",\n\"memories\": ");
            text += &json(&self.memories)?;
        }
        if !self.dims.is_empty() {
            text.push_str(",\n\"dims\": ");
            text += &json(&self.dims)?;
        }
        if !self.plans.is_empty() {
            text.push_str(",\n\"plans\": [");
            lines(&mut text, self.plans.iter())?;
            text.push(']');
        }
        text.push_str("}\n");
        Ok(text)
    }
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

impl JsonMemory {
    fn of(space: &Space) -> Self {
        let Space { name, capacity, cost, chunk, .. } = space.clone();
        Self { name, capacity, cost: Some(cost), chunk }
    }
}

impl JsonTensor {
    fn of(node: &TensorNode, graph: &Graph) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            size: Amount::Number(node.size - node.padding),
            alignment: Some(node.alignment),
            padding: node.padding,
            dynamic: node.dynamic,
            // A view has its root's alignment.
            kind: node.alias.is_none().then(|| node.kind.into()),
            alias_of: node.alias.map(|(of, _)| graph.tensors()[of].id),
            alias_offset: node
                .alias
                .map(|(_, offset)| offset)
                .filter(|&offset| offset != 0)
                .map(Amount::Number),
            over: None,
            memory: node.memory.filter(|_| node.alias.is_none()).map(|at| graph.memories()[at].name.clone()),
        }
    }

    fn describe(&self, index: usize, dims: &[NamedDimension], values: &[u64]) -> Result<Tensor> {
        let of = |amount: &Amount, field: &str| {
            let amount = amount.of(dims, values);
            amount.map_err(|error| error.in_field(format_args!("tensors[{index}].{field}")))
        };
        let offset = self.alias_offset.as_ref().map(|offset| of(offset, "alias_offset")).transpose()?;
        let mut tensor = Tensor::new(self.id, of(&self.size, "size")?);
        if let Some(alignment) = self.alignment {
            tensor = tensor.alignment(alignment);
        }
        if let Some(name) = &self.name {
            tensor = tensor.name(name);
        }
        tensor = tensor.padding(self.padding);
        tensor = tensor.dynamic(self.dynamic || matches!(self.size, Amount::Text(_)));
        if let Some(kind) = self.kind {
            tensor = tensor.kind(kind.into());
        }
        match (self.alias_of, offset) {
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
            // The enum may grow; a placed tensor is an activation.
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
