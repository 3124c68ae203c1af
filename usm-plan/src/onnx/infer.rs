//! Shape inference by a foreign library, on a graph without weights.

use std::collections::{HashMap, HashSet};

use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::control::{self, Control};
use super::correct::{Corrected, correct, squeezes_all};
use super::proto::{AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, TensorProto};
use super::shape::{self, Shape};
use super::{is_constant, is_standard, outputs, quantised};

/// A larger tensor is no shape: inference receives its type instead of its content.
const LARGEST_VALUE: u64 = 4096;

/// `TensorProto.DataType` of 32-bit floats and of 64-bit integers.
const FLOAT: i32 = 1;
const INT64: i32 = 7;

/// Maximum number of inference runs, each without the branches found dead.
const ROUNDS: usize = 8;

/// Adds inferred shapes to the stated ones, and removes branches that cannot run: those of a known
/// condition, and those that no shape fits, which `remark` reports. Returns why inference stopped,
/// if it did. `frame` is the model without its graph.
pub(super) fn complete(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    shapes: &mut HashMap<String, Shape>,
    infer: &dyn Fn(&[u8]) -> Inferred,
    remark: &dyn Fn(String),
) -> Option<String> {
    // Exporters state dimensions of outputs that the operators do not have.
    let said = graph.output.iter().filter_map(|output| shapes.remove_entry(&output.name));
    let said: HashMap<String, Shape> = said.collect();
    let complaint = infer_all(frame, graph, control, shapes, &said, infer, remark);
    for (name, shape) in said {
        let found = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
        if found.bytes().ok() != shape.bytes().ok() {
            remark(format!(
                "the shape {:?} that the file states for output {name:?} is not that of its operator, {:?}",
                shape.dims, found.dims
            ));
        }
    }
    complaint
}

/// As [`complete`]; `said`: shapes that count if none is inferred.
fn infer_all(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    shapes: &mut HashMap<String, Shape>,
    said: &HashMap<String, Shape>,
    infer: &dyn Fn(&[u8]) -> Inferred,
    remark: &dyn Fn(String),
) -> Option<String> {
    let stated = shapes.clone();
    let complaint = infer_reachable(frame, graph, control, shapes, infer)?;
    let known_later = control.known_later();
    let known = |graph: &GraphProto, shapes: &HashMap<String, Shape>| {
        let given = graph.node.iter().filter(|node| !is_constant(node)).flat_map(outputs);
        let mut given = given.filter(|name| !known_later.contains(*name));
        given.all(|name| shapes.contains_key(name) || said.contains_key(name))
    };
    if known(graph, shapes) {
        return Some(complaint);
    }
    for condition in control.conditions() {
        for truth in [true, false] {
            let (mut light, mut control_left, mut found) =
                (without_weights(graph), control.clone(), stated.clone());
            let truths = HashMap::from([(condition.clone(), truth)]);
            control_left.remove_dead_branches(&truths, [&mut light, &mut GraphProto::default()]);
            let _ = infer_reachable(frame, &mut light, &mut control_left, &mut found, infer);
            if known(&light, &found) {
                remark(format!(
                    "the branch for {} of the If on {condition:?} is left out, because no shapes fit it: {complaint}",
                    !truth
                ));
                control.remove_dead_branches(&truths, [graph, &mut GraphProto::default()]);
                *shapes = stated;
                return infer_reachable(frame, graph, control, shapes, infer);
            }
        }
    }
    Some(complaint)
}

/// As [`complete`], for the branches that may run by their conditions.
fn infer_reachable(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    shapes: &mut HashMap<String, Shape>,
    infer: &dyn Fn(&[u8]) -> Inferred,
) -> Option<String> {
    // The weights are no longer needed; inference needs a few values.
    let mut light = without_weights(graph);
    // Repeats while branches turn out to be dead or extents to be 1, because later shapes may
    // depend on them.
    let replaced = |node: &&NodeProto| squeezes_all(node) || is_standard(node, "Slice");
    let most = ROUNDS + light.node.iter().filter(replaced).count();
    let mut substitute = light.node.iter().any(squeezes_all);
    for _ in 0..=most {
        let mut standard = light.clone();
        control::standard(&mut standard);
        quantised::standard(&mut standard);
        // The substitute has another shape: only facts computed before it are used.
        standard.node.iter_mut().filter(|node| substitute && squeezes_all(node)).for_each(|node| {
            "Identity".clone_into(&mut node.op_type);
        });
        let mut inferred = infer_shapes(ModelProto { graph: Some(standard), ..frame.clone() }, infer);
        let Corrected { changed, doubtful } = correct(&mut light, &inferred, substitute);
        inferred.truths.retain(|name, _| !doubtful.contains(name));
        if control.remove_dead_branches(&inferred.truths, [graph, &mut light]) || changed {
            continue;
        }
        if core::mem::take(&mut substitute) {
            // No such node is left, or its input has no shape: shapes after a substitute are no
            // facts.
            continue;
        }
        for (name, shape) in inferred.shapes {
            shapes.entry(name).or_insert(shape);
        }
        return inferred.complaint;
    }
    None
}

/// The results of inference.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Inferred {
    /// Shapes by name.
    pub shapes: HashMap<String, Shape>,
    /// Truth values that do not depend on the data.
    pub truths: HashMap<String, bool>,
    /// The elements of small tensors of integers that do not depend on the data.
    pub numbers: HashMap<String, Vec<i64>>,
    /// The reason why inference stopped, or the first operator that it could not infer.
    pub complaint: Option<String>,
}

impl Inferred {
    /// The shapes that the bytes of a model state, as a library for shape inference returns them.
    #[must_use]
    pub fn of_model(bytes: &[u8]) -> Self {
        match ModelProto::decode(bytes) {
            Ok(model) => {
                let values =
                    model.graph.iter().flat_map(|graph| graph.value_info.iter().chain(&graph.output));
                let shapes = values.filter_map(|value| Some((value.name.clone(), shape::known(value)?)));
                Self { shapes: shapes.collect(), ..Self::default() }
            }
            Err(error) => Self::nothing(format!("shape inference gave no ONNX model: {error}")),
        }
    }

    /// A result without shapes, with the reason.
    #[must_use]
    pub fn nothing(complaint: String) -> Self {
        Self { complaint: Some(complaint), ..Self::default() }
    }
}

/// Infers the shapes of the operators' results. Dimensions of the inputs already have values.
fn infer_shapes(mut model: ModelProto, infer: &dyn Fn(&[u8]) -> Inferred) -> Inferred {
    if let Some(graph) = &mut model.graph {
        if let Some(complaint) = too_large_extent(graph) {
            return Inferred::nothing(complaint);
        }
        strip_weights(graph);
    }
    infer(&model.encode_to_vec())
}

/// The parts of a graph that inference needs, without weights.
fn without_weights(graph: &GraphProto) -> GraphProto {
    let bare = |tensor: &TensorProto| {
        if is_small_constant(tensor) {
            tensor.clone()
        } else {
            TensorProto {
                name: tensor.name.clone(),
                data_type: tensor.data_type,
                dims: tensor.dims.clone(),
                data_location: tensor.data_location,
                ..TensorProto::default()
            }
        }
    };
    let node = |node: &NodeProto| {
        let attribute = |attribute: &AttributeProto| match &attribute.t {
            Some(tensor) => AttributeProto {
                name: attribute.name.clone(),
                r#type: attribute.r#type,
                t: Some(bare(tensor)),
                ..AttributeProto::default()
            },
            None => attribute.clone(),
        };
        NodeProto {
            input: node.input.clone(),
            output: node.output.clone(),
            name: node.name.clone(),
            op_type: node.op_type.clone(),
            domain: node.domain.clone(),
            attribute: node.attribute.iter().map(attribute).collect(),
        }
    };
    GraphProto {
        node: graph.node.iter().map(node).collect(),
        initializer: graph.initializer.iter().map(bare).collect(),
        name: graph.name.clone(),
        input: graph.input.clone(),
        output: graph.output.clone(),
        value_info: graph.value_info.clone(),
        ..GraphProto::default()
    }
}

/// The inputs from which an operator computes a shape.
fn shape_inputs(node: &NodeProto) -> &[String] {
    let one_of = |op_types: &[&str]| op_types.iter().any(|op_type| is_standard(node, op_type));
    if one_of(&["ConstantOfShape", "Range"]) {
        &node.input
    } else if one_of(&["Expand", "OneHot", "Pad", "Reshape", "Resize", "Tile"]) {
        node.input.get(1..).unwrap_or_default()
    } else {
        &[]
    }
}

/// tract cuts some extents to 32 bits, so larger ones are refused.
fn too_large_extent(graph: &GraphProto) -> Option<String> {
    let shapes: HashSet<&String> = graph.node.iter().flat_map(shape_inputs).collect();
    let constants = graph.initializer.iter().map(|tensor| (&tensor.name, tensor));
    let nodes = graph.node.iter().filter(|node| is_constant(node)).filter_map(|node| {
        Some((node.output.first()?, node.attribute.iter().find_map(|attribute| attribute.t.as_ref())?))
    });
    let numbers = |tensor: &TensorProto| tensor.data_type == INT64 && is_small_constant(tensor);
    let used = constants.chain(nodes).filter(|(name, tensor)| shapes.contains(name) && numbers(tensor));
    let stated = used.flat_map(|(_, tensor)| {
        let raw = tensor.raw_data.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, i64::from_le_bytes));
        tensor.int64_data.iter().copied().chain(raw).map(i64::unsigned_abs)
    });
    let inputs = graph.input.iter().filter_map(shape::known).flat_map(|shape| shape.dims);
    let largest = inputs.chain(stated).max()?;
    let limit = i32::MAX as u64;
    (largest > limit).then(|| format!("extents above {limit} are not inferred, and one is {largest}"))
}

/// Turns weights into inputs of the same type, and drops fields without a meaning for shapes.
fn strip_weights(graph: &mut GraphProto) {
    let mut weights = Vec::new();
    graph.initializer.retain(|tensor| {
        is_small_constant(tensor) || {
            weights.push(shape::value_info(&tensor.name, tensor.data_type, &tensor.dims));
            false
        }
    });
    graph.node.retain(|node| {
        let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        match (is_constant(node), value, node.output.first()) {
            (true, Some(tensor), Some(name)) if !is_small_constant(tensor) => {
                weights.push(shape::value_info(name, tensor.data_type, &tensor.dims));
                false
            }
            _ => true,
        }
    });
    graph.node.iter_mut().for_each(add_default_value);
    // Old files list initializers among the inputs.
    let listed: HashSet<&String> = graph.input.iter().map(|input| &input.name).collect();
    weights.retain(|weight| !listed.contains(&weight.name));
    graph.input.extend(weights);
    // For tract a stated shape takes an input's type away.
    let inputs: HashSet<&String> = graph.input.iter().map(|input| &input.name).collect();
    graph.value_info.retain(|value| shape::known(value).is_some() && !inputs.contains(&value.name));
    // Outputs need their names, but not their shapes.
    for output in &mut graph.output {
        output.r#type = None;
    }
}

/// tract assumes 64-bit floats for a `ConstantOfShape` without a value; the standard says 32-bit
/// floats.
fn add_default_value(node: &mut NodeProto) {
    if is_standard(node, "ConstantOfShape") && node.attribute.is_empty() {
        let zero =
            TensorProto { dims: vec![1], data_type: FLOAT, float_data: vec![0.0], ..TensorProto::default() };
        node.attribute.push(AttributeProto {
            name: "value".to_owned(),
            r#type: AttributeType::Tensor.into(),
            t: Some(zero),
            ..AttributeProto::default()
        });
    }
}

/// Whether a constant is small and its content is in the file.
fn is_small_constant(tensor: &TensorProto) -> bool {
    let elements = tensor.dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(u64::try_from(dim).ok()?));
    elements.is_some_and(|n| n <= LARGEST_VALUE) && tensor.data_location.unwrap_or(0) == 0
}
