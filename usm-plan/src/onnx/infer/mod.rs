//! Shapes and constants of a model, before anything runs.
//!
//! One walk along the operators, in their order. A rule (`rules/`) gives the types and extents of
//! an operator's results. Where the elements of small tensors are known, the results' are computed
//! (`fold.rs`): exporters compute shapes by operators. Branches that a known condition excludes are
//! removed, and the walk begins anew.
//!
//! A result depends on the file alone, on the extents of the inputs too, or on the data. What does
//! not depend on the data is a constant of the plan.

mod call;
mod fold;
mod rules;
mod value;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::control::{self, Control};
use super::element::{BOOL, FLOAT, INT64, STRING};
use super::proto::{
    AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};
use super::shape::{self, Shape};
use super::{is_constant, is_standard, node_title, outputs};
use call::{Call, Extent, Fact, Made, Refusal};

pub(super) use call::Constancy;
pub use value::Value;

/// Maximum number of walks, each without the branches found dead before.
const MOST_WALKS: usize = 64;

/// The newest operator set, for a file that names none.
const NEWEST: i64 = 1_000;

/// The results of inference.
#[derive(Debug, Default)]
pub(super) struct Inferred {
    /// What is known, by name.
    facts: HashMap<String, Fact>,
    /// The first operator that contradicts the standard or that no rule knows.
    complaint: Option<String>,
    /// Conditions that are known.
    truths: HashMap<String, bool>,
}

impl Inferred {
    /// Why a shape is not known.
    pub(super) fn why(&self, name: &str) -> Option<&str> {
        self.facts.get(name)?.why.as_deref()
    }

    /// The value of a name: element type, extents, and elements of small constants.
    pub(super) fn known(&self, name: &str) -> Option<Known> {
        let fact = self.facts.get(name)?;
        let value = fact.value.as_deref().cloned();
        Some(Known { data_type: fact.data_type, dims: fact.dims.clone()?, value })
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
pub struct Known {
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
) -> Inferred {
    // Exporters state dimensions of outputs that the operators do not have.
    let incomplete = !all_known(graph, control, |name| shapes.contains_key(name));
    let said: HashMap<String, Shape> = if incomplete {
        graph.output.iter().filter_map(|output| shapes.remove_entry(&output.name)).collect()
    } else {
        HashMap::new()
    };
    let inferred = of_branches(frame, graph, control, shapes, &said, remark);
    for (name, fact) in &inferred.facts {
        if let Some(shape) = fact.shape() {
            shapes.entry(name.clone()).or_insert(shape);
        }
    }
    for (name, shape) in said {
        let found = shapes.entry(name.clone()).or_insert_with(|| shape.clone());
        if found.bytes().ok() != shape.bytes().ok() {
            remark(format!(
                "the shape {:?} that the file states for output {name:?} is not that of its operator, {:?}",
                shape.dims, found.dims
            ));
        }
    }
    inferred
}

/// Whether every operator's results are known, but for those that a loop overwrites.
fn all_known(graph: &GraphProto, control: &Control, known: impl Fn(&str) -> bool) -> bool {
    let later = control.known_later();
    let made = graph.node.iter().filter(|node| !is_constant(node)).flat_map(outputs);
    made.filter(|name| !later.contains(*name)).all(known)
}

/// As [`complete`]; `said`: shapes that count if none is inferred.
fn of_branches(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    stated: &HashMap<String, Shape>,
    said: &HashMap<String, Shape>,
    remark: &dyn Fn(String),
) -> Inferred {
    let inferred = reachable(frame, graph, control, stated);
    let Some(complaint) = &inferred.complaint else { return inferred };
    let known = |graph: &GraphProto, control: &Control, inferred: &Inferred| {
        let shape = |name: &str| inferred.facts.get(name).is_some_and(|fact| fact.shape().is_some());
        all_known(graph, control, |name| shape(name) || stated.contains_key(name) || said.contains_key(name))
    };
    if known(graph, control, &inferred) {
        return inferred;
    }
    for condition in control.conditions() {
        for truth in [true, false] {
            let (mut light, mut left) = (without_weights(graph), control.clone());
            let truths = HashMap::from([(condition.clone(), truth)]);
            left.remove_dead_branches(&truths, &mut light);
            let found = reachable(frame, &mut light, &mut left, stated);
            if known(&light, &left, &found) {
                remark(format!(
                    "the branch for {} of the If on {condition:?} is left out, because no shapes fit it: {complaint}",
                    !truth
                ));
                control.remove_dead_branches(&truths, graph);
                return reachable(frame, graph, control, stated);
            }
        }
    }
    inferred
}

/// As [`complete`], for the branches that may run by their conditions.
fn reachable(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    stated: &HashMap<String, Shape>,
) -> Inferred {
    let mut collected: HashMap<String, Made> = HashMap::new();
    for _ in 0..MOST_WALKS {
        let inferred = Walk::of(frame, graph, stated, &collected).run(graph);
        if control.remove_dead_branches(&inferred.truths, graph) {
            continue;
        }
        let rows = rows_of_loops(graph, control, &inferred);
        if rows.iter().all(|(name, made)| collected.get(name) == Some(made)) {
            return inferred;
        }
        collected.extend(rows);
    }
    Walk::of(frame, graph, stated, &collected).run(graph)
}

/// The results of loops that have a row for each iteration, where their number is known.
fn rows_of_loops(graph: &GraphProto, control: &Control, inferred: &Inferred) -> Vec<(String, Made)> {
    let mut found = Vec::new();
    for &(first, end) in &control.loops {
        let Some(nodes) = graph.node.get(first..end) else { continue };
        let Some(count) = nodes.first().and_then(|node| iterations(node, nodes, control, inferred)) else {
            continue;
        };
        for node in nodes {
            let (Some(source), Some(result)) = (node.input.first(), node.output.first()) else { continue };
            let Some((of, axis)) = control.row_of(result) else { continue };
            let Some(fact) = inferred.facts.get(source) else { continue };
            let Some(mut dims) = fact.dims.clone() else { continue };
            if let Ok(at) = call::place(axis, dims.len() + 1) {
                dims.insert(at, Some(count));
                found.push((of.to_owned(), (fact.data_type, dims)));
            }
        }
    }
    found
}

/// How often the body runs whose first node this is.
fn iterations(node: &NodeProto, nodes: &[NodeProto], control: &Control, inferred: &Inferred) -> Option<u64> {
    let fact = |name: &String| inferred.facts.get(name);
    match node.op_type.as_str() {
        "Element" => {
            let sequence = fact(node.input.first()?)?.dims.as_ref()?;
            let axis = node.attribute.iter().find(|a| a.name == "axis").map_or(0, |a| a.i);
            sequence[call::place(axis, sequence.len()).ok()?]
        }
        "Number" => {
            // Without a limit there is only the condition.
            let [limit, condition] = &node.input[..] else { return None };
            let &[count] = fact(limit)?.value.as_deref()?.integers()? else { return None };
            let is_true = |name: &String| {
                fact(name).and_then(|fact| fact.value.as_deref()?.integers().map(|all| all == [1]))
                    == Some(true)
            };
            // Each iteration says that the next one runs, or none says anything.
            let next = nodes.iter().find(|node| {
                node.output.first().is_some_and(|result| control.overwrites(result) == Some(condition))
            });
            let goes_on = match next {
                Some(next) => next.input.first().is_some_and(is_true),
                None => is_true(condition),
            };
            goes_on.then(|| u64::try_from(count).unwrap_or(0))
        }
        _ => None,
    }
}

/// One walk along the operators.
struct Walk<'a> {
    version: i64,
    /// What the file states, beyond whole shapes too.
    described: HashMap<&'a str, (i32, Vec<Extent>)>,
    /// Whole shapes, which count before a rule's.
    stated: &'a HashMap<String, Shape>,
    collected: &'a HashMap<String, Made>,
    found: Inferred,
}

impl<'a> Walk<'a> {
    fn of(
        frame: &ModelProto,
        graph: &'a GraphProto,
        stated: &'a HashMap<String, Shape>,
        collected: &'a HashMap<String, Made>,
    ) -> Self {
        let sets = frame.opset_import.iter().filter(|set| matches!(set.domain.as_str(), "" | "ai.onnx"));
        let version = sets.map(|set| set.version).max().unwrap_or(NEWEST);
        let described = graph.value_info.iter().chain(&graph.output).filter_map(|value| {
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
        let found = Inferred { facts, ..Inferred::default() };
        Self { version, described: described.collect(), stated, collected, found }
    }

    fn run(mut self, graph: &GraphProto) -> Inferred {
        for (index, node) in graph.node.iter().enumerate() {
            if is_constant(node) {
                let fact = of_constant(node);
                self.found.facts.extend(node.output.first().map(|name| (name.clone(), fact)));
            } else if node.domain == control::DOMAIN {
                self.control(node);
            } else {
                self.node(index, node);
            }
        }
        let truths = self.found.facts.iter().filter_map(|(name, fact)| {
            let &[truth] = fact.value.as_deref()?.integers()? else { return None };
            Some((name.clone(), truth != 0))
        });
        self.found.truths = truths.collect();
        self.found
    }

    fn node(&mut self, index: usize, node: &NodeProto) {
        let fact = |name: &String| {
            (!name.is_empty()).then(|| self.found.facts.get(name).cloned().unwrap_or_default())
        };
        let mut inputs: Vec<Option<Fact>> = node.input.iter().map(fact).collect();
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        let call = Call { node, inputs, version: self.version };
        let answer = rules::results(&call);
        let given = call.inputs.iter().flatten().find_map(|fact| fact.why.clone());
        let why: Option<Rc<str>> = match &answer {
            Ok(_) => given,
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
                Some(given.unwrap_or_else(|| format!("{reason} of {}", title(index, node)).into()))
            }
            Err(Refusal::Wrong(reason)) => Some(format!("{}: {reason}", title(index, node)).into()),
        };
        let unstated = outputs(node).any(|name| !self.stated.contains_key(name));
        if matches!(answer, Err(Refusal::Unknown | Refusal::Wrong(_)))
            && unstated
            && self.found.complaint.is_none()
        {
            self.found.complaint = why.as_deref().map(str::to_owned);
        }
        let made = answer.unwrap_or_default();
        let values = fold::values(&call, &made).unwrap_or_default();
        let constancy = if made.is_empty() { Constancy::Varies } else { constancy(&call) };
        let data = || {
            let reason = format!("it depends on the data: on what {} computes", title(index, node));
            Rc::<str>::from(reason)
        };
        for (at, name) in node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let mut fact = match made.get(at) {
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
            self.found.facts.insert(name.clone(), fact);
        }
    }

    /// Replaces what the file states otherwise, and adds what only the file states.
    fn correct(&self, name: &str, fact: &mut Fact) {
        let Some((data_type, dims)) = self.described.get(name) else { return };
        if fact.data_type == 0 {
            fact.data_type = *data_type;
        }
        if let Some(stated) = self.stated.get(name) {
            if fact.shape().as_ref() != Some(stated) {
                let dims = stated.dims.iter().copied().map(Some).collect();
                *fact = Fact { data_type: *data_type, dims: Some(dims), ..Fact::default() };
            }
        } else {
            match &mut fact.dims {
                Some(own) if own.len() == dims.len() => {
                    own.iter_mut().zip(dims).for_each(|(own, stated)| *own = own.or(*stated));
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
        let input = |at: usize| node.input.get(at).and_then(|name| self.found.facts.get(name)).cloned();
        let first = input(0).unwrap_or_default();
        let varying = |fact: Fact| Fact { value: None, constancy: Constancy::Varies, ..fact };
        let mut fact = match node.op_type.as_str() {
            "Element" => {
                let axis = node.attribute.iter().find(|a| a.name == "axis").map_or(0, |a| a.i);
                let mut fact = varying(first);
                let at = fact.dims.as_ref().and_then(|dims| call::place(axis, dims.len()).ok());
                fact.dims = fact.dims.take().zip(at).map(|(mut dims, at)| {
                    dims.remove(at);
                    dims
                });
                fact
            }
            // A Join with one result left has one input more, its condition.
            "Join" if node.input.len() < 3 => first,
            "Join" if first.shape().is_none() => varying(input(1).unwrap_or(first)),
            "Enter" | "Join" => varying(first),
            "Collect" => match self.collected.get(result) {
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
            && let Some((data_type, dims)) = self.described.get(result.as_str())
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
        self.found.facts.insert(result.clone(), fact);
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

fn of_tensor(tensor: &TensorProto) -> Fact {
    let value = Value::of(tensor).map(Rc::new);
    Fact { value, constancy: Constancy::OfFile, ..Fact::of(tensor.data_type, &tensor.dims) }
}

fn of_sparse(sparse: &SparseTensorProto) -> Fact {
    let data_type = sparse.values.as_ref().map_or(0, |values| values.data_type);
    Fact { constancy: Constancy::OfFile, ..Fact::of(data_type, &sparse.dims) }
}

/// The value of a Constant, which is in one of its attributes.
fn of_constant(node: &NodeProto) -> Fact {
    let Some(attribute) = node.attribute.iter().find(|attribute| !attribute.name.is_empty()) else {
        return Fact::default();
    };
    let of = |data_type: i32, dims: &[i64], value: Option<Value>| Fact {
        value: value.map(Rc::new),
        constancy: Constancy::OfFile,
        ..Fact::of(data_type, dims)
    };
    let reals = |numbers: &[f32]| Value::Reals(numbers.iter().map(|&number| f64::from(number)).collect());
    match attribute.name.as_str() {
        "value" => attribute.t.as_ref().map(of_tensor).unwrap_or_default(),
        "sparse_value" => attribute.sparse_tensor.as_ref().map(of_sparse).unwrap_or_default(),
        "value_int" => of(INT64, &[], Some(Value::Integers(vec![attribute.i]))),
        "value_ints" => {
            of(INT64, &[attribute.ints.len() as i64], Some(Value::Integers(attribute.ints.clone())))
        }
        "value_float" => of(FLOAT, &[], Some(reals(&[attribute.f]))),
        "value_floats" => of(FLOAT, &[attribute.floats.len() as i64], Some(reals(&attribute.floats))),
        "value_string" => of(STRING, &[], None),
        "value_strings" => of(STRING, &[attribute.strings.len() as i64], None),
        _ => Fact::default(),
    }
}

/// The parts of a graph that inference needs, without weights.
fn without_weights(graph: &GraphProto) -> GraphProto {
    let bare = |tensor: &TensorProto| {
        if value::element_count(&tensor.dims).is_some_and(|count| count <= value::MOST_ELEMENTS) {
            return tensor.clone();
        }
        TensorProto {
            name: tensor.name.clone(),
            data_type: tensor.data_type,
            dims: tensor.dims.clone(),
            ..TensorProto::default()
        }
    };
    let attribute = |attribute: &AttributeProto| match &attribute.t {
        Some(tensor) => AttributeProto {
            name: attribute.name.clone(),
            r#type: attribute.r#type,
            t: Some(bare(tensor)),
            ..AttributeProto::default()
        },
        None => attribute.clone(),
    };
    let node = |node: &NodeProto| NodeProto {
        input: node.input.clone(),
        output: node.output.clone(),
        name: node.name.clone(),
        op_type: node.op_type.clone(),
        domain: node.domain.clone(),
        attribute: node.attribute.iter().map(attribute).collect(),
    };
    GraphProto {
        node: graph.node.iter().map(node).collect(),
        initializer: graph.initializer.iter().map(bare).collect(),
        name: graph.name.clone(),
        input: graph.input.clone(),
        output: graph.output.clone(),
        value_info: graph.value_info.clone(),
        sparse_initializer: graph.sparse_initializer.clone(),
    }
}
