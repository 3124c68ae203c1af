//! `model.onnx`: the topology from the file, sizes from the stated shapes, and the others from
//! shape inference. Results that do not depend on the data are constants.

mod allow;
mod choose;
mod control;
mod element;
mod every_value;
mod fit;
mod functions;
mod infer;
mod multiple;
pub(crate) mod proto;
mod shape;
mod slice;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use prost::Message as _;
use usm_pool::{Graph, Op, Tensor, TensorKind};

use crate::error::{Error, Result, read_file};
use crate::field::Field;
use crate::model::{GRAPH_ALIGNMENT, Hints, Model};
use allow::{Facts, Join, Permits};
use control::Control;
pub use every_value::to_ranged_graph_json;
use infer::{Constancy, InferenceResult};
pub use infer::{Value, ValueInfo};
use proto::{GraphProto, ModelProto, NodeProto, TensorProto};
pub use shape::Shape;

/// Reads a file.
pub(crate) fn read(path: &Path, hints: &Hints<'_>) -> Result<Model> {
    parse(&read_file(path)?, hints).map_err(|error| error.in_file(path))
}

/// Reads the bytes of a file. Ids of activations count in the order of their operators; ids of
/// inputs and constants follow.
pub fn parse(bytes: &[u8], hints: &Hints<'_>) -> Result<Model> {
    // All extents have values, so results of extents are constants too.
    Reading::of(decode(bytes)?, hints, Constancy::OfExtents)?.model(hints)
}

/// What is known of every value of a model before anything runs, by name: inputs, constants, and
/// the results of operators. Nothing is planned. Of the hints the values of dimensions and inputs
/// count.
///
/// # Errors
/// Files that are no ONNX model; dimensions of inputs without a value.
pub fn known_values(bytes: &[u8], hints: &Hints<'_>) -> Result<BTreeMap<String, ValueInfo>> {
    let mut model = decode(bytes)?;
    let mut inference = Inference::of(&mut model, hints)?;
    let inference_result = inference.run(&model, hints);
    let graph = &inference.graph;
    let inputs = graph.input.iter().map(|input| &input.name);
    let constants = graph.initializer.iter().map(|tensor| &tensor.name);
    let results = graph.node.iter().flat_map(|node| &node.output);
    let names = inputs.chain(constants).chain(results).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| Some((name.clone(), inference_result.known(name)?))).collect())
}

fn decode(bytes: &[u8]) -> Result<ModelProto> {
    ModelProto::decode(bytes).map_err(|error| Error::bad(format!("not an ONNX file: {error}")))
}

/// The flat graph of a file, with values for its dimensions.
struct Inference {
    graph: Box<GraphProto>,
    control: Control,
    /// Inputs that the caller must provide, in order.
    inputs: Vec<String>,
    shapes: HashMap<String, Shape>,
}

impl Inference {
    /// Takes the graph out of the model.
    fn of(model: &mut ModelProto, hints: &Hints<'_>) -> Result<Self> {
        let Some(mut graph) = model.graph.take().map(Box::new) else {
            return Err(Error::bad("not an ONNX file: there is no graph in it"));
        };
        functions::inline(&mut graph, &model.functions)?;
        let control = control::flatten(&mut graph)?;
        set(&mut graph, &hints.values)?;
        let Names { inputs } = Names::of(&graph)?;
        shape::bind(&mut graph, &inputs, &hints.dims)?;
        let mut shapes = stated_shapes(&graph);
        control.add_shapes(&mut shapes);
        Ok(Self { graph, control, inputs, shapes })
    }

    fn run(&mut self, frame: &ModelProto, hints: &Hints<'_>) -> InferenceResult {
        let Self { graph, control, shapes, .. } = self;
        let remark = |remark| hints.report_remark(Some(remark));
        let inference_result = infer::complete(frame, graph, control, shapes, &remark);
        control.add_shapes(shapes);
        inference_result
    }
}

/// The content of a file for some values of its dimensions.
struct Reading {
    description: Description,
    outside: Outside,
    shapes: HashMap<String, Shape>,
    permits: Permits,
    inference_result: InferenceResult,
}

impl Reading {
    /// `constants`: what results are constants, if views are allowed.
    fn of(mut model: ModelProto, hints: &Hints<'_>, constants: Constancy) -> Result<Self> {
        let mut inference = Inference::of(&mut model, hints)?;
        // What is wrong with an input or a constant is said before what follows from it.
        outside_inputs(&inference.graph, &inference.inputs)?;
        let inference_result = inference.run(&model, hints);
        let Inference { mut graph, control, inputs, mut shapes } = inference;
        control.check(|name| shapes.get(name)?.bytes().ok())?;
        // A contradiction is refused before its operators become constants.
        allow::check(&graph, &Facts::of(&graph, &shapes))?;
        if !hints.no_views {
            inference_result.fold(&mut graph, constants);
        }
        let outside = outside_inputs(&graph, &inputs)?;
        let description = Description::of(&graph, &control);
        let facts = Facts::of(&graph, &shapes);
        let alignment = hints.alignment.unwrap_or(GRAPH_ALIGNMENT);
        let permits = if hints.no_views {
            Permits::default().must(&control)
        } else {
            Permits::of(&graph, &facts, alignment, &control)
        };
        drop(facts);
        let input_shapes =
            graph.input.iter().filter_map(|input| Some((input.name.clone(), shape::known(input)?)));
        shapes.extend(input_shapes);
        Ok(Self { description, outside, shapes, permits, inference_result })
    }

    /// The graph, in the order and with the concatenations in place that give the lowest peak.
    fn model(&self, hints: &Hints<'_>) -> Result<Model> {
        let alignment = hints.alignment.unwrap_or(GRAPH_ALIGNMENT);
        let shape_error = |name: &str| unknown_shape(name, &self.inference_result);
        let Self { description, outside, shapes, permits, .. } = self;
        let build =
            |joins: &[&Join]| description.build(outside, shapes, &shape_error, alignment, permits, joins);
        choose::choose(build, &permits.joins, hints)
    }
}

/// Gives inputs the user's values, so that inference knows the shapes that depend on them.
fn set(graph: &mut GraphProto, values: &[(String, String)]) -> Result<()> {
    for (name, text) in values {
        let refuse = |reason: String| Err(Error::bad(reason).in_option(Field::Values));
        let Some(input) = graph.input.iter().find(|input| input.name == *name) else {
            return refuse(format!("the model has no input {name:?}"));
        };
        if graph.initializer.iter().any(|tensor| tensor.name == *name) {
            return refuse(format!("{name} is given twice, or the file has its value"));
        }
        let one = |shape: Shape| shape.dims.iter().all(|&extent| extent == 1).then_some(shape.dims);
        let (Some(tensor), Some(dims)) = (shape::tensor_type(input), shape::known(input).and_then(one))
        else {
            return refuse(format!("the input {name:?} does not hold one number"));
        };
        let bytes = element::number(tensor.elem_type, text);
        let Some(raw_data) = bytes else {
            return refuse(format!(
                "{name}: {text:?} is no number of its type, or the type is none of bool, int32, int64, float and double"
            ));
        };
        let (dims, data_type) = (dims.iter().map(|&extent| extent as i64).collect(), tensor.elem_type);
        let name = name.clone();
        graph.initializer.push(TensorProto { name, data_type, dims, raw_data, ..TensorProto::default() });
    }
    Ok(())
}

/// Whether a node only holds a constant.
fn is_constant(node: &NodeProto) -> bool {
    is_standard(node, "Constant")
}

/// Whether a node is this standard operator.
fn is_standard(node: &NodeProto, op_type: &str) -> bool {
    node.op_type == op_type && matches!(node.domain.as_str(), "" | "ai.onnx")
}

/// The name of a node in messages: `node 12 "conv1" (Conv)`.
fn node_title(index: usize, node: &NodeProto) -> String {
    if node.name.is_empty() {
        format!("node {index} ({})", node.op_type)
    } else {
        format!("node {index} {:?} ({})", node.name, node.op_type)
    }
}

/// The names that exist before the first node.
struct Names {
    /// Inputs that the caller must provide, in order.
    inputs: Vec<String>,
}

impl Names {
    /// Collects the names. Checks that every node reads existing names and writes new ones.
    fn of(graph: &GraphProto) -> Result<Self> {
        let sparse = graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref());
        let mut names: HashSet<&str> = HashSet::new();
        for tensor in graph.initializer.iter().chain(sparse) {
            if !names.insert(&tensor.name) {
                return Err(Error::bad("the name is used twice")
                    .in_field(format_args!("initializer {:?}", tensor.name)));
            }
        }
        let mut inputs = Vec::new();
        for input in &graph.input {
            // Older files list the initializers among the inputs.
            if names.insert(&input.name) {
                inputs.push(input.name.clone());
            } else if inputs.contains(&input.name) {
                return Err(
                    Error::bad("the name is used twice").in_field(format_args!("input {:?}", input.name))
                );
            }
        }
        for (index, node) in graph.node.iter().enumerate() {
            let place = || node_title(index, node);
            if let Some(stranger) =
                node.input.iter().find(|name| !name.is_empty() && !names.contains(name.as_str()))
            {
                let reason = format!("reads {stranger:?}, which nothing before it provides");
                return Err(Error::bad(reason).in_field(place()));
            }
            for name in node.output.iter().filter(|name| !name.is_empty()) {
                if !names.insert(name) {
                    return Err(
                        Error::bad(format!("writes {name:?}, which exists already")).in_field(place())
                    );
                }
            }
        }
        if let Some(output) = graph.output.iter().find(|output| !names.contains(output.name.as_str())) {
            return Err(Error::bad("nothing provides it").in_field(format_args!("output {:?}", output.name)));
        }
        Ok(Self { inputs })
    }
}

/// Inputs and constants: tensors outside of the arena.
struct Outside {
    tensors: Vec<(String, TensorKind, u64)>,
}

fn outside_inputs(graph: &GraphProto, inputs: &[String]) -> Result<Outside> {
    let mut tensors = Vec::new();
    for input in graph.input.iter().filter(|input| inputs.contains(&input.name)) {
        let place = || format!("input {:?}", input.name);
        let tensor = shape::tensor_type(input)
            .ok_or_else(|| Error::bad(shape::other_type(input)).in_field(place()))?;
        if tensor.shape.is_none() {
            return Err(Error::bad("has no shape").in_field(place()));
        }
        let complaint = || Error::bad(element::unsized_reason(tensor.elem_type)).in_field(place());
        let shape = shape::known(input).ok_or_else(complaint)?;
        let bytes = shape.bytes().map_err(|error| error.in_field(place()))?;
        tensors.push((input.name.clone(), TensorKind::Input, bytes));
    }
    for tensor in &graph.initializer {
        let bytes = constant_bytes(tensor)
            .map_err(|error| error.in_field(format_args!("initializer {:?}", tensor.name)))?;
        tensors.push((tensor.name.clone(), TensorKind::Constant, bytes));
    }
    for tensor in graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref()) {
        tensors.push((tensor.name.clone(), TensorKind::Constant, tensor.raw_data.len() as u64));
    }
    for (index, node) in graph.node.iter().enumerate().filter(|(_, node)| is_constant(node)) {
        let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        // Other attributes hold scalars and lists; tensors outside of the arena do not count.
        let bytes =
            value.map_or(Ok(0), constant_bytes).map_err(|error| error.in_field(node_title(index, node)))?;
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            tensors.push((name.clone(), TensorKind::Constant, bytes));
        }
    }
    Ok(Outside { tensors })
}

/// Size of a constant in bytes, compared with the data in the file.
fn constant_bytes(tensor: &TensorProto) -> Result<u64> {
    let (data, strings) = (tensor.raw_data.len() as u64, tensor.string_data.len());
    if element::bits(tensor.data_type).is_none() && strings > 0 {
        return Ok(0);
    }
    let bytes = Shape::new(tensor.data_type, &tensor.dims)?.bytes()?;
    if data != 0 && data != bytes {
        return Err(Error::bad(format!(
            "{data} bytes of data, but the shape {:?} needs {bytes}",
            tensor.dims
        )));
    }
    Ok(bytes)
}

/// The shapes that the file states.
fn stated_shapes(graph: &GraphProto) -> HashMap<String, Shape> {
    let values = graph.value_info.iter().chain(&graph.output);
    values.filter_map(|value| Some((value.name.clone(), shape::known(value)?))).collect()
}

/// Topology without the weights.
struct Description {
    nodes: Vec<(String, NodeProto)>,
    outputs: Vec<String>,
    /// Bodies of loops: first and last operator.
    loops: Vec<(usize, usize)>,
}

impl Description {
    fn of(graph: &GraphProto, control: &Control) -> Self {
        // Constants are no operators.
        let op = |node: usize| graph.node[..node].iter().filter(|node| !is_constant(node)).count();
        let range = |&(first, end): &(usize, usize)| Some((op(first), op(end).checked_sub(1)?));
        let loops = control.loops.iter().filter_map(range).filter(|(first, last)| first <= last).collect();
        let nodes = graph.node.iter().enumerate().filter(|(_, node)| !is_constant(node));
        let bare = |node: &NodeProto| NodeProto { attribute: Vec::new(), ..node.clone() };
        Self {
            nodes: nodes.map(|(index, node)| (node_title(index, node), bare(node))).collect(),
            outputs: graph.output.iter().map(|output| output.name.clone()).collect(),
            loops,
        }
    }

    fn build(
        &self,
        outside: &Outside,
        shapes: &HashMap<String, Shape>,
        shape_error: &dyn Fn(&str) -> Error,
        alignment: u64,
        permits: &Permits,
        joins: &[&Join],
    ) -> Result<Graph> {
        let mut builder = Graph::builder().default_alignment(alignment);
        let parts = joins.iter().flat_map(|join| {
            join.parts.iter().map(|(part, at)| (part.as_str(), (join.result.as_str(), *at)))
        });
        let views = permits.views.iter().map(|(view, (of, at))| (view.as_str(), (of.as_str(), *at)));
        let views: HashMap<&str, (&str, u64)> = views.chain(parts).collect();
        let mut ids: HashMap<&str, u64> = HashMap::new();
        let mut next = 0..;
        let mut id_of = |name| *ids.entry(name).or_insert_with(|| next.next().unwrap_or(u64::MAX));
        for (title, node) in &self.nodes {
            for name in outputs(node) {
                let shape = shapes.get(name).ok_or_else(|| shape_error(name).in_field(title))?;
                let bytes = shape
                    .bytes()
                    .map_err(|error| error.in_field(format_args!("{title}, output {name:?}")))?;
                let mut tensor = Tensor::new(id_of(name), bytes).name(name);
                if let Some(&(of, at)) = views.get(name) {
                    tensor = tensor.alias_of(id_of(of), at).alignment(alignment);
                }
                builder = builder.tensor(tensor);
            }
        }
        for (name, kind, bytes) in &outside.tensors {
            builder = builder.tensor(Tensor::new(id_of(name), *bytes).kind(*kind).name(name));
        }
        for (_, node) in &self.nodes {
            let name = if node.name.is_empty() { &node.op_type } else { &node.name };
            let inputs: Vec<u64> =
                node.input.iter().filter(|name| !name.is_empty()).map(|name| id_of(name)).collect();
            let mut op = Op::new(name.clone()).inputs(inputs);
            for output in outputs(node) {
                op = op.outputs([id_of(output)]);
                for input in permits.permits.get(output).into_iter().flatten() {
                    op = op.in_place(id_of(input), id_of(output));
                }
            }
            builder = builder.op(op);
        }
        for &(first, last) in &self.loops {
            builder = builder.loop_body(first, last);
        }
        for output in &self.outputs {
            builder = builder.output(id_of(output));
        }
        builder.build().map_err(Error::bad)
    }
}

/// The outputs that a node has, without empty names.
fn outputs(node: &NodeProto) -> impl Iterator<Item = &str> {
    node.output.iter().map(String::as_str).filter(|name| !name.is_empty())
}

/// The error for an activation without a shape.
fn unknown_shape(name: &str, inference_result: &InferenceResult) -> Error {
    let why = inference_result.why(name).unwrap_or("nothing is known of it");
    Error::bad(format!(
        "the shape of its output {name:?} is not in the file and could not be inferred: {why}"
    ))
}
