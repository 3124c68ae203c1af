//! The freedom of operators: a result that is a view of an input, a result written over an input, a
//! concatenation with its inputs made in place.
//!
//! | operator | result |
//! |---|---|
//! | Reshape, Squeeze, Unsqueeze, Flatten, Identity, Dropout at inference | a view of the first input |
//! | Split, Slice by step 1, along the outermost extent | views of parts of the first input |
//! | Concat along the outermost extent | its inputs may be views of parts of it |
//! | `Next` of a loop | always a view of what it overwrites |
//! | element-wise, BatchNormalization, Softmax | may be written over an input of its shape and element size |
//!
//! The outermost extent is the first one above 1; its parts are contiguous ranges of bytes. A view
//! begins at a multiple of the tensors' alignment, as every tensor does.

use std::collections::{HashMap, HashSet};

use super::control::Control;
use super::proto::{GraphProto, NodeProto, TensorProto};
use super::slice::Selection;
use super::{Shape, is_constant, is_standard, node_title, outputs};
use crate::error::{Error, Result};

/// Operators that compute each element of the result from the elements at the same index of their
/// inputs.
const ELEMENT_WISE: [&str; 58] = [
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Tan",
    "Tanh",
];

/// More such operators, and operators that read a whole row before they write it. Only the first
/// input may be overwritten: operators with many inputs compute one input after the other, and
/// other inputs are parameters.
const FIRST_INPUT: [&str; 11] = [
    "BatchNormalization",
    "Clip",
    "LogSoftmax",
    "Max",
    "Mean",
    "Min",
    "Shrink",
    "Softmax",
    "Sum",
    "Swish",
    "ThresholdedRelu",
];

/// A part of a tensor: its name and its offset in bytes.
pub(super) type Part = (String, u64);

/// A Concat with inputs that may be made inside the result.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) result: String,
    pub(super) parts: Vec<Part>,
}

/// The freedom of a graph's operators.
#[derive(Debug, Default)]
pub(super) struct Permits {
    /// For each view, the tensor that contains it.
    pub(super) views: HashMap<String, Part>,
    /// For each result, the inputs of its operator that it may be written over.
    pub(super) permits: HashMap<String, Vec<String>>,
    /// In the operators' order. Each one is optional, because a block for all inputs lives from the
    /// first one on.
    pub(super) joins: Vec<Join>,
}

/// Whether the operator's results have the bytes of its first input, in that order.
fn keeps_bytes(node: &NodeProto) -> bool {
    ["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"]
        .iter()
        .any(|op| is_standard(node, op))
}

/// Whether results of an operator may have bytes of its first input.
pub(super) fn may_be_view(node: &NodeProto) -> bool {
    keeps_bytes(node) || is_standard(node, "Split") || is_standard(node, "Slice")
}

/// Refuses shapes that contradict the operator: the plan would be for another model.
pub(super) fn check(graph: &GraphProto, facts: &Facts<'_>) -> Result<()> {
    for (index, node) in graph.node.iter().enumerate() {
        let (Some(first), Some(result)) = (node.input.first(), node.output.first()) else { continue };
        let (whole, parts) = if keeps_bytes(node) {
            (first, vec![result.clone()])
        } else if is_standard(node, "Split") {
            (first, node.output.clone())
        } else if is_standard(node, "Concat") {
            (result, node.input.clone())
        } else if let Some(reason) = contradiction(node, facts) {
            let reason = format!("{reason}: the shapes contradict the operator");
            return Err(Error::bad(reason).in_field(node_title(index, node)));
        } else {
            continue;
        };
        let bytes: Option<Vec<u64>> = parts.iter().map(|name| facts.bytes(name)).collect();
        let sum = bytes.and_then(|bytes| bytes.into_iter().try_fold(0, u64::checked_add));
        let (Some(bytes), Some(sum)) = (facts.bytes(whole), sum) else { continue };
        if bytes != sum {
            let parts = parts.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let reason = format!(
                "{whole:?} has {bytes} bytes by its shape, but {parts} {sum}: the shapes contradict the operator"
            );
            return Err(Error::bad(reason).in_field(node_title(index, node)));
        }
    }
    Ok(())
}

/// Why the number of a result's elements is not the one that the operator computes.
fn contradiction(node: &NodeProto, facts: &Facts<'_>) -> Option<String> {
    let result = node.output.first()?;
    let declared_dims = &facts.shape(result)?.dims;
    let dims = selected(node, facts).or_else(|| broadcast(node, facts))?;
    let count = |dims: &[u64]| dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim));
    (count(&dims) != count(declared_dims))
        .then(|| format!("{result:?} has the shape {declared_dims:?}, but by its inputs {dims:?}"))
}

/// The extents of a Slice.
fn selected(node: &NodeProto, facts: &Facts<'_>) -> Option<Vec<u64>> {
    let from = facts.shape(node.input.first().filter(|_| is_standard(node, "Slice"))?)?;
    Some(Selection::of(node, &from.dims, |name| facts.numbers(name))?.dims)
}

/// The extents of the result of an operator whose inputs are broadcast, or that keeps those of its
/// first input.
fn broadcast(node: &NodeProto, facts: &Facts<'_>) -> Option<Vec<u64>> {
    let one_of = |names: &[&str]| names.iter().any(|name| is_standard(node, name));
    let inputs = if one_of(&ELEMENT_WISE) || one_of(&["Where", "Max", "Mean", "Min", "Sum"]) {
        &node.input[..]
    } else if one_of(&FIRST_INPUT) {
        node.input.get(..1)?
    } else {
        return None;
    };
    // The last extents meet, and one of 1 is repeated.
    let mut dims: Vec<u64> = Vec::new();
    for input in inputs {
        let theirs = &facts.shape(input)?.dims;
        let more = theirs.len().saturating_sub(dims.len());
        dims.splice(..0, core::iter::repeat_n(1, more));
        for (ours, &theirs) in dims.iter_mut().rev().zip(theirs.iter().rev()).filter(|(ours, _)| **ours == 1)
        {
            *ours = theirs;
        }
    }
    Some(dims)
}

/// Shapes and small constants by name.
pub(super) struct Facts<'a> {
    shapes: &'a HashMap<String, Shape>,
    outside: HashMap<&'a str, Shape>,
    constants: HashMap<&'a str, &'a TensorProto>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(graph: &'a GraphProto, shapes: &'a HashMap<String, Shape>) -> Self {
        let mut constants: HashMap<&str, &TensorProto> =
            graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        for node in graph.node.iter().filter(|node| is_constant(node)) {
            let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
            constants.extend(node.output.first().zip(value).map(|(name, value)| (name.as_str(), value)));
        }
        let declared_size = constants
            .iter()
            .filter_map(|(&name, tensor)| Some((name, Shape::new(tensor.data_type, &tensor.dims).ok()?)));
        let mut outside: HashMap<&str, Shape> = declared_size.collect();
        for input in &graph.input {
            if let Some(shape) = super::shape::known(input) {
                outside.entry(&input.name).or_insert(shape);
            }
        }
        Self { shapes, outside, constants }
    }

    pub(super) fn shape(&self, name: &str) -> Option<&Shape> {
        self.outside.get(name).or_else(|| self.shapes.get(name))
    }

    fn bytes(&self, name: &str) -> Option<u64> {
        self.shape(name)?.bytes().ok()
    }

    /// The elements of a small integer constant.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<i64>> {
        const INT32: i32 = 6;
        const INT64: i32 = 7;
        let tensor = self.constants.get(name)?;
        let raw = &tensor.raw_data;
        let numbers: Vec<i64> = match tensor.data_type {
            INT64 if raw.is_empty() => tensor.int64_data.clone(),
            INT64 => raw
                .chunks_exact(8)
                .filter_map(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?)))
                .collect(),
            INT32 if raw.is_empty() => tensor.int32_data.iter().map(|&number| i64::from(number)).collect(),
            INT32 => raw
                .chunks_exact(4)
                .filter_map(|bytes| Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))))
                .collect(),
            _ => return None,
        };
        let declared_size =
            self.outside.get(name)?.dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim))?;
        (numbers.len() as u64 == declared_size).then_some(numbers)
    }

    /// Whether each element is made of whole bytes.
    fn has_bytes(&self, name: &str) -> bool {
        self.shape(name).is_some_and(|shape| shape.bits % 8 == 0)
    }

    /// Whether parts along the axis are ranges of bytes: every extent before it is 1.
    fn is_outermost(&self, name: &str, axis: i64) -> bool {
        let Some(Shape { dims, .. }) = self.shape(name) else { return false };
        let rank = dims.len() as i64;
        let axis = if axis < 0 { axis.saturating_add(rank) } else { axis };
        (0..rank).contains(&axis) && dims[..axis as usize].iter().all(|&extent| extent == 1)
    }
}

fn axis_of(node: &NodeProto) -> i64 {
    node.attribute.iter().find(|a| a.name == "axis").map_or(0, |a| a.i)
}

impl Permits {
    /// The freedom of a graph's operators, for tensors of this alignment in bytes.
    pub(super) fn of(graph: &GraphProto, facts: &Facts<'_>, alignment: u64, control: &Control) -> Self {
        let computed_values: HashSet<&str> =
            graph.node.iter().filter(|node| !is_constant(node)).flat_map(outputs).collect();
        let results: HashSet<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
        let mut permits = Self::default();
        for node in &graph.node {
            for (view, (of, offset)) in views(node, facts) {
                // The caller reads its results in the arena, not in its own inputs.
                let outside = results.contains(view.as_str()) && !computed_values.contains(permits.root(&of));
                if offset % alignment == 0 && !outside {
                    permits.views.insert(view, (of, offset));
                }
            }
            let Some(result) = node.output.first().filter(|_| outputs(node).count() == 1) else { continue };
            let inputs = overwritten(node).iter().filter(|input| {
                let (from, to) = (facts.shape(input), facts.shape(result));
                from.is_some() && from == to && computed_values.contains(input.as_str())
            });
            let inputs: Vec<String> = inputs.cloned().collect();
            if !inputs.is_empty() {
                permits.permits.insert(result.clone(), inputs);
            }
        }
        // Tensors that operators write again and again have bytes of their own.
        let rewritten_values: HashSet<&str> =
            control.overwritten.values().map(|overwrite| overwrite.of.as_str()).collect();
        let computed_values = computed_values.difference(&rewritten_values).copied().collect();
        permits.joins = permits.in_place(graph, facts, alignment, &computed_values);
        permits.must(control)
    }

    /// Adds what is no freedom: results that overwrite another tensor.
    pub(super) fn must(mut self, control: &Control) -> Self {
        let views =
            control.overwritten.iter().map(|(result, overwrite)| (result.clone(), (overwrite.of.clone(), 0)));
        self.views.extend(views);
        self
    }

    /// The tensor at the end of a chain of views.
    fn root<'n>(&'n self, mut name: &'n str) -> &'n str {
        while let Some((of, _)) = self.views.get(name) {
            name = of;
        }
        name
    }

    /// Concatenations along the outermost extent with inputs that may be parts of it. One operator
    /// makes each input, which is part of nothing else and occurs once.
    fn in_place(
        &self,
        graph: &GraphProto,
        facts: &Facts<'_>,
        alignment: u64,
        computed_values: &HashSet<&str>,
    ) -> Vec<Join> {
        let mut used_parts: HashSet<String> = HashSet::new();
        let mut joins = Vec::new();
        for node in graph.node.iter().filter(|node| is_standard(node, "Concat")) {
            let Some(result) = node.output.first() else { continue };
            let has_axis = node.attribute.iter().any(|a| a.name == "axis");
            let outermost = facts.is_outermost(result, axis_of(node)) && facts.has_bytes(result);
            if !has_axis || !outermost || node.input.len() < 2 {
                continue;
            }
            let mut at = 0_u64;
            let mut parts: Vec<Part> = Vec::new();
            for input in &node.input {
                let root = self.root(input);
                let bytes = facts.bytes(root).filter(|&bytes| facts.bytes(input) == Some(bytes));
                let Some(end) = bytes.and_then(|bytes| at.checked_add(bytes)) else { break };
                let is_separate = parts.iter().all(|(part, _)| part != root) && !used_parts.contains(root);
                if !is_separate || !computed_values.contains(root) || at % alignment != 0 {
                    break;
                }
                parts.push((root.to_owned(), at));
                at = end;
            }
            if parts.len() == node.input.len() && facts.bytes(result) == Some(at) {
                used_parts.extend(parts.iter().map(|(part, _)| part.clone()));
                joins.push(Join { result: result.clone(), parts });
            }
        }
        joins
    }
}

/// The results of an operator that have bytes of its first input, and their offsets.
fn views(node: &NodeProto, facts: &Facts<'_>) -> Vec<(String, Part)> {
    let (Some(input), Some(result)) = (node.input.first(), node.output.first()) else { return Vec::new() };
    if !may_be_view(node) {
        return Vec::new();
    }
    let whole = facts
        .shape(input)
        .zip(facts.shape(result))
        .is_some_and(|(from, to)| from.bits == to.bits && from.bytes().ok() == to.bytes().ok());
    if is_standard(node, "Dropout") && may_have_effect(node, facts) {
        Vec::new()
    } else if keeps_bytes(node) && whole {
        vec![(result.clone(), (input.clone(), 0))]
    } else if is_standard(node, "Split") && facts.is_outermost(input, axis_of(node)) && facts.has_bytes(input)
    {
        let mut at = Some(0_u64);
        let parts = outputs(node).map_while(|part| {
            let begin = at?;
            at = facts.bytes(part).and_then(|bytes| begin.checked_add(bytes));
            at.is_some().then(|| (part.to_owned(), (input.clone(), begin)))
        });
        let parts: Vec<_> = parts.collect();
        let all = parts.len() == node.output.len() && at == facts.bytes(input);
        if all { parts } else { Vec::new() }
    } else if is_standard(node, "Slice") {
        slice_offset(node, facts).map(|at| (result.clone(), (input.clone(), at))).into_iter().collect()
    } else {
        Vec::new()
    }
}

/// Whether a Dropout may have an effect: by its input, or in the oldest sets by its attribute.
fn may_have_effect(node: &NodeProto, facts: &Facts<'_>) -> bool {
    if node.attribute.iter().any(|a| a.name == "is_test" && a.i == 0) {
        return true;
    }
    let Some(mode) = node.input.get(2).filter(|name| !name.is_empty()) else { return false };
    let data = facts.constants.get(mode.as_str()).map(|tensor| (&tensor.raw_data, &tensor.int32_data));
    !data.is_some_and(|(raw, numbers)| match (&raw[..], &numbers[..]) {
        ([byte], []) => *byte == 0,
        ([], [number]) => *number == 0,
        _ => false,
    })
}

/// The offset in bytes of a Slice that selects one range of its input.
fn slice_offset(node: &NodeProto, facts: &Facts<'_>) -> Option<u64> {
    let (input, result) = (node.input.first()?, node.output.first()?);
    let (from, to) = (facts.shape(input)?, facts.shape(result)?);
    let Selection { inside, dims, .. } = Selection::of(node, &from.dims, |name| facts.numbers(name))?;
    if dims != to.dims || inside.steps.iter().any(|&step| step != 1) {
        return None;
    }
    let mut cuts = from.dims.iter().zip(&dims).enumerate().filter(|(_, (from, to))| from != to);
    let Some((axis, _)) = cuts.next() else { return Some(0) };
    if cuts.next().is_some() || !facts.is_outermost(input, axis as i64) {
        return None;
    }
    let at = inside.axes.iter().position(|&axis_number| axis_number == axis as i64)?;
    let start = u64::try_from(inside.starts[at]).ok()?;
    let row = from.dims[axis + 1..].iter().try_fold(from.bits, |n, &dim| n.checked_mul(dim))?;
    let bits = row.checked_mul(start)?;
    (bits % 8 == 0).then_some(bits / 8)
}

/// The inputs that the operator's result may be written over if their shapes are equal.
fn overwritten(node: &NodeProto) -> &[String] {
    let one_of = |names: &[&str]| names.iter().any(|name| is_standard(node, name));
    if one_of(&ELEMENT_WISE) || is_standard(node, "Where") {
        &node.input
    } else if one_of(&FIRST_INPUT) {
        // The first input may be among the others, which are read after its elements were written.
        match node.input.split_first() {
            Some((first, others)) if !others.contains(first) => &node.input[..1],
            _ => &[],
        }
    } else {
        &[]
    }
}
