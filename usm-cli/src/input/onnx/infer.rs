//! Shape inference by tract, on a graph without weights.
//!
//! tract is written for models that it runs, not for arbitrary files: a panic inside it becomes an error here.

use std::collections::{HashMap, HashSet};
use std::panic;
use std::thread;

use tract_onnx::pb::{GraphProto, ModelProto, TensorProto};
use tract_onnx::prelude::{DatumType, InferenceModelExt as _, TractResult};
use tract_onnx::tract_hir::internal::Factoid as _;

use super::is_constant;
use super::shape::{self, Shape};

/// Tensors above so many elements are not the shape of anything: inference gets their type instead of their content.
const LARGEST_VALUE: u64 = 4096;

/// Stack of the thread that infers, in bytes.
const STACK: usize = 64 << 20;

const THREAD: &str = "shape inference";

/// What inference found.
#[derive(Default)]
pub(crate) struct Inferred {
    pub(crate) shapes: HashMap<String, Shape>,
    /// Why it stopped, or the first operator that it could not understand.
    pub(crate) complaint: Option<String>,
}

/// Infers shapes of what the operators give. Dimensions of the inputs have values already.
pub(crate) fn shapes(model: ModelProto) -> Inferred {
    silence_panics();
    let worker = thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK).spawn(move || {
        infer(model)
            .unwrap_or_else(|error| Inferred { complaint: Some(format!("{error:#}")), ..Inferred::default() })
    });
    let result = match worker {
        Ok(worker) => worker.join(),
        Err(error) => {
            return Inferred { complaint: Some(format!("no thread: {error}")), ..Inferred::default() };
        }
    };
    result.unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        Inferred {
            complaint: Some(format!("panic in the inference library: {message}")),
            ..Inferred::default()
        }
    })
}

/// A panic of the inference thread is reported as an error; the default hook would print it as a bug of ours.
fn silence_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().name() != Some(THREAD) {
                before(info);
            }
        }));
    });
}

fn infer(mut model: ModelProto) -> TractResult<Inferred> {
    if let Some(graph) = &mut model.graph {
        strip(graph);
    }
    let mut parsed = tract_onnx::onnx().parse(&model, None)?;
    // Obstinate: what follows an operator that it does not know may still be known from elsewhere.
    let complaint = parsed.model.analyse(true).err().map(|error| format!("{error:#}"));
    let mut shapes = HashMap::new();
    for name in model.graph.iter().flat_map(|graph| &graph.node).flat_map(|node| &node.output) {
        let Some(&outlet) = parsed.outlets_by_name.get(name) else { continue };
        let fact = parsed.model.outlet_fact(outlet)?;
        let (Some(dims), Some(bits)) =
            (fact.shape.as_concrete_finite()?, fact.datum_type.concretize().and_then(bits))
        else {
            continue;
        };
        shapes.insert(name.clone(), Shape { bits, dims: dims.iter().map(|&dim| dim as u64).collect() });
    }
    Ok(Inferred { shapes, complaint })
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
