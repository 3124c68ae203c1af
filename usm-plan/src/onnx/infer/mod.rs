//! Shapes and constants of a model, before anything runs.
//!
//! One walk along the operators, in their order. A rule (`rules/`) gives the types and extents of
//! an operator's results. Where the elements of small tensors are known, the results' are computed
//! (`fold.rs`): exporters compute shapes by operators. Branches that a known condition excludes are
//! removed, and the walk begins anew.
//!
//! A result depends on the file alone, on the extents of the inputs too, or on the data. What does
//! not depend on the data is a constant of the plan.

mod arithmetic;
mod branches;
mod call;
mod file;
mod fold;
mod rules;
mod value;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::control::{self, Control};
use super::element::BOOL;
use super::proto::{AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, TensorProto};
use super::shape::{self, Shape};
use super::{is_constant, is_standard, node_title, outputs};
use branches::{all_known, of_branches};
use call::{Call, Extent, Fact, Made, Refusal};
use file::{of_constant, of_sparse, of_tensor};

pub(super) use call::Constancy;
pub use value::Value;

/// The newest operator set, for a file that names none.
const NEWEST: i64 = 1_000;

/// The results of inference.
#[derive(Debug, Default)]
pub(super) struct InferenceResult {
    /// What is known, by name.
    facts: HashMap<String, Fact>,
    /// The first operator that contradicts the standard or that no rule knows.
    complaint: Option<String>,
    /// Conditions that are known.
    truths: HashMap<String, bool>,
}

impl InferenceResult {
    /// Why a shape is not known.
    pub(super) fn why(&self, name: &str) -> Option<&str> {
        self.facts.get(name)?.why.as_deref()
    }

    /// The value of a name: element type, extents, and elements of small constants.
    pub(super) fn known(&self, name: &str) -> Option<ValueInfo> {
        let fact = self.facts.get(name)?;
        let value = fact.value.as_deref().cloned();
        Some(ValueInfo { data_type: fact.data_type, dims: fact.dims.clone()?, value })
    }

    /// Turns operators whose results depend on no more than this into constants. Results of the
    /// model stay what they are: the caller reads them.
    pub(super) fn fold(&self, graph: &mut GraphProto, least: Constancy) {
        let results: HashSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
        let GraphProto { node, initializer, .. } = graph;
        for node in node.iter_mut().filter(|node| !is_constant(node)) {
            let tensor = |name: &str| {
                let fact = self.facts.get(name).filter(|fact| fact.constancy >= least)?;
                let (extents, shape) = (fact.extents()?, fact.shape()?);
                shape.bytes().ok()?;
                Some(match &fact.value {
                    Some(value) => value.to_tensor(name, fact.data_type, &extents),
                    None => value::without_data(name, fact.data_type, &extents),
                })
            };
            let tensors: Option<Vec<TensorProto>> = outputs(node).map(tensor).collect();
            let Some(mut tensors) = tensors.filter(|tensors| !tensors.is_empty()) else { continue };
            if outputs(node).any(|name| results.contains(name)) {
                continue;
            }
            let first = tensors.remove(0);
            initializer.append(&mut tensors);
            *node = NodeProto {
                op_type: "Constant".to_owned(),
                name: core::mem::take(&mut node.name),
                output: vec![first.name.clone()],
                attribute: vec![AttributeProto {
                    name: "value".to_owned(),
                    r#type: AttributeType::Tensor.into(),
                    t: Some(first),
                    ..AttributeProto::default()
                }],
                ..NodeProto::default()
            };
        }
    }
}

/// What is known of a value before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// `TensorProto.DataType` of the ONNX standard.
    pub data_type: i32,
    /// Extents in elements; `None` where they depend on the data.
    pub dims: Vec<Option<u64>>,
    /// The elements, if they do not depend on the data and are few.
    pub value: Option<Value>,
}

/// Adds inferred shapes to the stated ones, and removes branches that cannot run: those of a known
/// condition, and those that no shape fits, which `remark` reports. `frame` is the model without
/// its graph.
pub(super) fn complete(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    shapes: &mut HashMap<String, Shape>,
    remark: &dyn Fn(String),
) -> InferenceResult {
    // Exporters state dimensions of outputs that the operators do not have.
    let incomplete = !all_known(graph, control, |name| shapes.contains_key(name));
    let output_shapes: HashMap<String, Shape> = if incomplete {
        graph.output.iter().filter_map(|output| shapes.remove_entry(&output.name)).collect()
    } else {
        HashMap::new()
    };
    let inference = of_branches(frame, graph, control, shapes, &output_shapes, remark);
    for (name, fact) in &inference.facts {
        if let Some(shape) = fact.shape() {
            shapes.entry(name.clone()).or_insert(shape);
        }
    }
    for (name, shape) in output_shapes {
        let known_shape = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
        if known_shape.bytes().ok() != shape.bytes().ok() {
            remark(format!(
                "the shape {:?} that the file states for output {name:?} is not that of its operator, {:?}",
                shape.dims, known_shape.dims
            ));
        }
    }
    inference
}

/// One walk along the operators.
struct Walk<'a> {
    version: i64,
    /// What the file states, beyond whole shapes too.
    declared_parts: HashMap<&'a str, (i32, Vec<Extent>)>,
    /// Whole shapes, which count before a rule's.
    declared_shapes: &'a HashMap<String, Shape>,
    collected_rows: &'a HashMap<String, Made>,
    inference_result: InferenceResult,
}

impl<'a> Walk<'a> {
    fn of(
        frame: &ModelProto,
        graph: &'a GraphProto,
        declared_shapes: &'a HashMap<String, Shape>,
        collected_rows: &'a HashMap<String, Made>,
    ) -> Self {
        let sets = frame.opset_import.iter().filter(|set| matches!(set.domain.as_str(), "" | "ai.onnx"));
        let version = sets.map(|set| set.version).max().unwrap_or(NEWEST);
        let declared_parts = graph.value_info.iter().chain(&graph.output).filter_map(|value| {
            let tensor = shape::tensor_type(value)?;
            Some((value.name.as_str(), (tensor.elem_type, shape::extents(tensor.shape.as_ref()?))))
        });
        let mut facts = HashMap::new();
        for input in &graph.input {
            if let Some(tensor) = shape::tensor_type(input) {
                let dims = tensor.shape.as_ref().map(shape::extents);
                facts.insert(
                    input.name.clone(),
                    Fact { data_type: tensor.elem_type, dims, ..Fact::default() },
                );
            }
        }
        for tensor in &graph.initializer {
            facts.insert(tensor.name.clone(), of_tensor(tensor));
        }
        for sparse in &graph.sparse_initializer {
            if let Some(values) = &sparse.values {
                facts.insert(values.name.clone(), of_sparse(sparse));
            }
        }
        let result = InferenceResult { facts, ..InferenceResult::default() };
        Self {
            version,
            declared_parts: declared_parts.collect(),
            declared_shapes,
            collected_rows,
            inference_result: result,
        }
    }

    fn run(mut self, graph: &GraphProto) -> InferenceResult {
        for (index, node) in graph.node.iter().enumerate() {
            if is_constant(node) {
                let fact = of_constant(node);
                self.inference_result.facts.extend(node.output.first().map(|name| (name.clone(), fact)));
            } else if node.domain == control::DOMAIN {
                self.control(node);
            } else {
                self.node(index, node);
            }
        }
        let truths = self.inference_result.facts.iter().filter_map(|(name, fact)| {
            let &[truth] = fact.value.as_deref()?.integers()? else { return None };
            Some((name.clone(), truth != 0))
        });
        self.inference_result.truths = truths.collect();
        self.inference_result
    }

    fn node(&mut self, index: usize, node: &NodeProto) {
        let fact = |name: &String| {
            (!name.is_empty()).then(|| self.inference_result.facts.get(name).cloned().unwrap_or_default())
        };
        let mut inputs: Vec<Option<Fact>> = node.input.iter().map(fact).collect();
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        let call = Call { node, inputs, version: self.version };
        let answer = rules::results(&call);
        let known_reason = call.inputs.iter().flatten().find_map(|fact| fact.why.clone());
        let why: Option<Rc<str>> = match &answer {
            Ok(_) => known_reason,
            Err(Refusal::Unknown) => Some(
                format!(
                    "{} is an operator that is not known here; its result's shape must be in the file",
                    title(index, node)
                )
                .into(),
            ),
            Err(Refusal::Input(at)) => {
                let input = call.inputs.get(*at).and_then(Option::as_ref);
                let name = node.input.get(*at).map_or("", String::as_str);
                let plain = || {
                    format!("the shape of {name:?}, the input {at} of {}, is not known", title(index, node))
                };
                Some(input.and_then(|fact| fact.why.clone()).unwrap_or_else(|| plain().into()))
            }
            // Elements of a value without a shape are unknown for its reason.
            Err(Refusal::Data(reason)) => {
                Some(known_reason.unwrap_or_else(|| format!("{reason} of {}", title(index, node)).into()))
            }
            Err(Refusal::Wrong(reason)) => Some(format!("{}: {reason}", title(index, node)).into()),
        };
        let lacks_shape = outputs(node).any(|name| !self.declared_shapes.contains_key(name));
        if matches!(answer, Err(Refusal::Unknown | Refusal::Wrong(_)))
            && lacks_shape
            && self.inference_result.complaint.is_none()
        {
            self.inference_result.complaint = why.as_deref().map(str::to_owned);
        }
        let result_types = answer.unwrap_or_default();
        let values = fold::values(&call, &result_types).unwrap_or_default();
        let constancy = if result_types.is_empty() { Constancy::Varies } else { constancy(&call) };
        let data = || {
            let reason = format!("it depends on the data: on what {} computes", title(index, node));
            Rc::<str>::from(reason)
        };
        for (at, name) in node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let mut fact = match result_types.get(at) {
                Some((data_type, dims)) => Fact {
                    data_type: *data_type,
                    dims: Some(dims.clone()),
                    value: values.get(at).cloned().map(Rc::new),
                    constancy,
                    why: None,
                },
                None => Fact::default(),
            };
            self.correct(name, &mut fact);
            if fact.shape().is_none() {
                fact.why = Some(why.clone().unwrap_or_else(data));
                fact.constancy = Constancy::Varies;
            }
            self.inference_result.facts.insert(name.clone(), fact);
        }
    }

    /// Replaces what the file states otherwise, and adds what only the file states.
    fn correct(&self, name: &str, fact: &mut Fact) {
        let Some((data_type, dims)) = self.declared_parts.get(name) else { return };
        if fact.data_type == 0 {
            fact.data_type = *data_type;
        }
        if let Some(shape) = self.declared_shapes.get(name) {
            if fact.shape().as_ref() != Some(shape) {
                let dims = shape.dims.iter().copied().map(Some).collect();
                *fact = Fact { data_type: *data_type, dims: Some(dims), ..Fact::default() };
            }
        } else {
            match &mut fact.dims {
                Some(own) if own.len() == dims.len() => {
                    own.iter_mut().zip(dims).for_each(|(own, extent)| *own = own.or(*extent));
                }
                Some(_) => {}
                None => fact.dims = Some(dims.clone()),
            }
        }
    }

    /// Our own operators: no value passes through one that may have another value in another
    /// branch or iteration.
    fn control(&mut self, node: &NodeProto) {
        let Some(result) = node.output.first() else { return };
        let input =
            |at: usize| node.input.get(at).and_then(|name| self.inference_result.facts.get(name)).cloned();
        let first = input(0).unwrap_or_default();
        let without_value = |fact: Fact| Fact { value: None, constancy: Constancy::Varies, ..fact };
        let mut fact = match node.op_type.as_str() {
            "Element" => {
                let axis = node.attribute.iter().find(|a| a.name == "axis").map_or(0, |a| a.i);
                let mut fact = without_value(first);
                let at = fact.dims.as_ref().and_then(|dims| call::place(axis, dims.len()).ok());
                fact.dims = fact.dims.take().zip(at).map(|(mut dims, at)| {
                    dims.remove(at);
                    dims
                });
                fact
            }
            // A Join with one result left has one input more, its condition.
            "Join" if node.input.len() < 3 => first,
            "Join" if first.shape().is_none() => without_value(input(1).unwrap_or(first)),
            "Enter" | "Join" => without_value(first),
            "Collect" => match self.collected_rows.get(result) {
                Some((data_type, dims)) => {
                    Fact { data_type: *data_type, dims: Some(dims.clone()), ..Fact::default() }
                }
                None => Fact::default(),
            },
            // A loop without a condition, none of whose iterations makes one.
            "Keep" if node.input.is_empty() => {
                Fact { value: Some(Rc::new(Value::Integers(vec![1]))), ..Fact::of(BOOL, &[]) }
            }
            "Keep" | "Leave" => Fact { constancy: Constancy::Varies, ..first },
            "Number" => Fact::default(),
            // Their shapes are known from the values that they are about.
            _ => return,
        };
        if fact.shape().is_none()
            && let Some((data_type, dims)) = self.declared_parts.get(result.as_str())
        {
            fact = Fact { data_type: *data_type, dims: Some(dims.clone()), why: fact.why, ..Fact::default() };
        }
        if fact.shape().is_none() && fact.why.is_none() {
            let what = match node.op_type.as_str() {
                "Collect" => "it depends on the data: on the number of iterations",
                _ => "the value with which the loop begins has no known shape",
            };
            fact.why = Some(what.into());
        }
        self.inference_result.facts.insert(result.clone(), fact);
    }
}

fn title(index: usize, node: &NodeProto) -> String {
    let title = node_title(index, node);
    if matches!(node.domain.as_str(), "" | "ai.onnx") { title } else { format!("{title} of {}", node.domain) }
}

/// On what the results of an operator depend.
fn constancy(call: &Call<'_>) -> Constancy {
    let one_of = |names: &[&str]| names.iter().any(|name| is_standard(call.node, name));
    let least = call.inputs.iter().flatten().map(|fact| fact.constancy).min().unwrap_or(Constancy::OfFile);
    if one_of(&["Shape", "Size"]) {
        // The rule knows all that counts.
        return if call.extents(0).is_ok() { least.max(Constancy::OfExtents) } else { least };
    }
    let random = [
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    ];
    // Weights stay in the few bits in which the file has them.
    if one_of(&random) || one_of(&["Dropout", "DequantizeLinear"]) { Constancy::Varies } else { least }
}
