//! Shape inference by tract, on a graph without weights, in a process of its own.
//!
//! tract is written for models that somebody wants to run, not for arbitrary files: it may panic, ask for more memory than there is, or
//! loop. None of that can be caught in the process that it happens in, so the command starts itself once more, gives the child a
//! limit of memory and of time, and takes its answer or its end as the result.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use prost::Message as _;
use serde::{Deserialize, Serialize};
use tract_onnx::prelude::{DatumType, InferenceModelExt as _, Tensor, TractResult};
use tract_onnx::tract_hir::internal::Factoid as _;

use super::control::{self, Control};
use super::proto::{AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, TensorProto};
use super::shape::{self, Shape};
use super::{is_constant, is_standard};
use crate::error::{Error, Exit, Result};

/// The argument that makes the command do the child's part.
pub(crate) const CHILD: &str = "infer-shapes";

/// Tensors above so many elements are not the shape of anything: inference gets their type instead of their content.
const LARGEST_VALUE: u64 = 4096;

/// `TensorProto.DataType` of 32-bit floats and of 64-bit integers.
const FLOAT: i32 = 1;
const INT64: i32 = 7;

/// Address space of the child in bytes.
const MEMORY: u64 = 2 << 30;

/// Time that the child has.
const TIME: Duration = Duration::from_secs(120);

/// Inference is asked again at most so often, each time without the branches that cannot run.
const ROUNDS: usize = 8;

/// Adds the shapes that can be inferred to those that the file states, and takes the branches that cannot run out of the graph. Answers why
/// inference stopped, if it did. `frame` is the model without its graph.
pub(super) fn complete(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    shapes: &mut HashMap<String, Shape>,
) -> Option<String> {
    // Weights are done with: inference needs a handful of values.
    let mut light = light(graph);
    let flattened = !control.is_empty();
    // As often as branches turn out to be dead: what follows may depend on it.
    for _ in 0..ROUNDS {
        let mut standard = light.clone();
        if flattened {
            control::standard(&mut standard);
        }
        let inferred = infer_shapes(ModelProto { graph: Some(standard), ..frame.clone() });
        if !control.settle(&inferred.truths, [graph, &mut light]) {
            for (name, shape) in inferred.shapes {
                shapes.entry(name).or_insert(shape);
            }
            return inferred.complaint;
        }
    }
    None
}

/// What inference found.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Inferred {
    shapes: HashMap<String, Shape>,
    /// Truth values that do not depend on the data.
    truths: HashMap<String, bool>,
    /// Why it stopped, or the first operator that it could not understand.
    complaint: Option<String>,
}

impl Inferred {
    fn nothing(complaint: String) -> Self {
        Self { complaint: Some(complaint), ..Self::default() }
    }
}

/// Infers shapes of what the operators give. Dimensions of the inputs have values already.
fn infer_shapes(mut model: ModelProto) -> Inferred {
    if let Some(graph) = &mut model.graph {
        if let Some(complaint) = beyond(graph) {
            return Inferred::nothing(complaint);
        }
        strip(graph);
    }
    ask_child(&model.encode_to_vec())
        .unwrap_or_else(|error| Inferred::nothing(format!("no process to infer shapes: {error}")))
}

/// A graph without its weights: what inference needs.
fn light(graph: &GraphProto) -> GraphProto {
    let bare = |tensor: &TensorProto| {
        if keep(tensor) {
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

/// The inputs of an operator that are numbers of which it makes a shape.
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

/// tract cuts some extents to 32 bits: larger ones are refused rather than inferred wrongly.
fn beyond(graph: &GraphProto) -> Option<String> {
    let shapes: HashSet<&String> = graph.node.iter().flat_map(shape_inputs).collect();
    let constants = graph.initializer.iter().map(|tensor| (&tensor.name, tensor));
    let nodes = graph.node.iter().filter(|node| is_constant(node)).filter_map(|node| {
        Some((node.output.first()?, node.attribute.iter().find_map(|attribute| attribute.t.as_ref())?))
    });
    let numbers = |tensor: &TensorProto| tensor.data_type == INT64 && keep(tensor);
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

fn ask_child(model: &[u8]) -> io::Result<Inferred> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (answer, remarks, ended) = thread::scope(|scope| {
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(model)));
        let answer = scope.spawn(|| read(stdout));
        let remarks = scope.spawn(|| read(stderr));
        let ended = wait(&mut child);
        (answer.join().unwrap_or_default(), remarks.join().unwrap_or_default(), ended)
    });
    Ok(match serde_json::from_slice(&answer) {
        Ok(inferred) if ended? => inferred,
        _ => Inferred::nothing(last_words(&String::from_utf8_lossy(&remarks))),
    })
}

fn read(pipe: Option<impl io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A child that dies leaves half an answer, which is no answer.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

/// Waits for the child, and ends it when its time is over. Answers whether it ended well.
fn wait(child: &mut Child) -> io::Result<bool> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() >= TIME {
            child.kill()?;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// The reason that a child which did not answer gave: of a panic the message, not the trace.
fn last_words(remarks: &str) -> String {
    let mut lines = remarks.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let message = if first.contains("panicked at") { lines.next().unwrap_or(first) } else { first };
    match message {
        "" => format!(
            "the inference library ended without an answer, within {} s and {} GiB",
            TIME.as_secs(),
            MEMORY >> 30
        ),
        message => format!("the inference library failed: {message}"),
    }
}

/// The child's part: a model on standard input, what was inferred on standard output.
pub(crate) fn run_child() -> Result<Exit> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::As).maximum;
        let current = Some(maximum.map_or(MEMORY, |maximum| maximum.min(MEMORY)));
        // Without the limit it is less safe, not wrong.
        let _ = setrlimit(Resource::As, Rlimit { current, maximum });
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(Error::bad)?;
    let model = tract_onnx::pb::ModelProto::decode(&*bytes).map_err(Error::bad)?;
    let inferred = infer(&model).unwrap_or_else(|error| Inferred::nothing(format!("{error:#}")));
    crate::output::json(&inferred)?;
    Ok(Exit::Done)
}

fn infer(model: &tract_onnx::pb::ModelProto) -> TractResult<Inferred> {
    let mut parsed = tract_onnx::onnx().parse(model, None)?;
    // Obstinate: what follows an operator that it does not know may still be known from elsewhere.
    let complaint = parsed.model.analyse(true).err().map(|error| format!("{error:#}"));
    let (mut shapes, mut truths) = (HashMap::new(), HashMap::new());
    for name in model.graph.iter().flat_map(|graph| &graph.node).flat_map(|node| &node.output) {
        let Some(&outlet) = parsed.outlets_by_name.get(name) else { continue };
        let fact = parsed.model.outlet_fact(outlet)?;
        let value = fact.value.concretize();
        if let Some(truth) = value.as_ref().and_then(|value| truth(value)) {
            truths.insert(name.clone(), truth);
        }
        let (Some(dims), Some(bits)) =
            (fact.shape.as_concrete_finite()?, fact.datum_type.concretize().and_then(bits))
        else {
            continue;
        };
        shapes.insert(name.clone(), Shape { bits, dims: dims.iter().map(|&dim| dim as u64).collect() });
    }
    Ok(Inferred { shapes, truths, complaint })
}

/// The one truth value of a tensor.
fn truth(value: &Tensor) -> Option<bool> {
    let view = value.as_plain_ram()?;
    match view.as_slice::<bool>().ok()? {
        [truth] => Some(*truth),
        _ => None,
    }
}

/// Turns weights into inputs of the same type, and drops what says nothing.
fn strip(graph: &mut GraphProto) {
    let mut weights = Vec::new();
    graph.initializer.retain(|tensor| {
        keep(tensor) || {
            weights.push(shape::value_info(&tensor.name, tensor.data_type, &tensor.dims));
            false
        }
    });
    graph.node.retain(|node| {
        let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        match (is_constant(node), value, node.output.first()) {
            (true, Some(tensor), Some(name)) if !keep(tensor) => {
                weights.push(shape::value_info(name, tensor.data_type, &tensor.dims));
                false
            }
            _ => true,
        }
    });
    graph.node.iter_mut().for_each(spell_out);
    // Old files list initializers among the inputs.
    let listed: HashSet<&String> = graph.input.iter().map(|input| &input.name).collect();
    weights.retain(|weight| !listed.contains(&weight.name));
    graph.input.extend(weights);
    graph.value_info.retain(|value| shape::known(value).is_some());
    // Names of the outputs are needed, their shapes are not.
    for output in &mut graph.output {
        output.r#type = None;
    }
}

/// tract takes 64-bit floats where the standard says that a `ConstantOfShape` without a value is of 32-bit floats.
fn spell_out(node: &mut NodeProto) {
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
fn keep(tensor: &TensorProto) -> bool {
    let elements = tensor.dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(u64::try_from(dim).ok()?));
    elements.is_some_and(|n| n <= LARGEST_VALUE) && tensor.data_location.unwrap_or(0) == 0
}

/// Bits of one element; `None` for types without a fixed size.
fn bits(datum_type: DatumType) -> Option<u64> {
    match datum_type {
        // Extents, int64 in the file.
        DatumType::TDim => Some(64),
        DatumType::String | DatumType::Blob => None,
        other => Some(other.size_of() as u64 * 8),
    }
}
