//! Converts an ONNX model whose dimensions have ranges to a graph.json whose sizes are expressions
//! of these dimensions.
//!
//! The reader infers the shapes of the model for some values of the dimensions, the samples. To
//! each extent it fits an expression that is right at all samples. A dimension with few values is
//! sampled at all of them. Otherwise two expressions of the same form may agree at all samples and
//! differ between them: the reader adds a sample at each value where they differ, and fits again.

use std::collections::{BTreeSet, HashMap, HashSet};

use usm_pool::range::Dimension;
use usm_pool::{Graph, TensorKind};

use super::fit::{Fit, Points};
use super::infer::Constancy;
use super::multiple::is_multiple;
use super::{Reading, Shape, decode};
use crate::error::{Error, Result};
use crate::field::Field;
use crate::graph_json;
use crate::model::{GRAPH_ALIGNMENT, Hints};
use crate::ranged::{Amount, NamedDimension, check};

/// Maximum number of samples at first; several dimensions share them.
const MAX_FIRST_SAMPLES: u64 = 64;

/// Maximum number of times that samples are added. Each time about half of the expressions that are
/// not sure remain so.
const MAX_REFINEMENTS: usize = 16;

/// Converts the bytes of a file to a graph.json with dimensions. `ranges` gives the values of
/// dimensions by name; the hints give one value for each other dimension.
///
/// # Errors
/// Every reason to refuse a model; extents without a fitting expression; operators that differ
/// between values.
pub fn to_ranged_graph_json(
    bytes: &[u8],
    hints: &Hints<'_>,
    ranges: &[(String, Dimension)],
) -> Result<String> {
    let dims = to_identifiers(ranges)?;
    let model = decode(bytes)?;
    let mut values = sample_points(&dims);
    let base_values = values[0].clone();
    let read = |values: &Vec<u64>| -> Result<Reading> {
        let dimensions = ranges.iter().zip(values).map(|((name, _), &value)| (name.clone(), value));
        // One value for all: the others would repeat its remarks.
        let remark = hints.remark.filter(|_| *values == base_values);
        let dims = hints.dims.iter().cloned().chain(dimensions.clone()).collect();
        let hints = Hints { dims, remark, ..hints.clone() };
        let text = || {
            dimensions.clone().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
        };
        Reading::of(model.clone(), &hints, Constancy::OfFile)
            .map_err(|error| error.in_option_of(Field::Dims, text()))
    };
    let mut readings: Vec<Reading> = Vec::new();
    let mut graph = None;
    for round in 0.. {
        for values in &values[readings.len()..] {
            let reading = read(values)?;
            // The base has the greatest values, where the order matters most.
            let base = readings.first().unwrap_or(&reading);
            let same = |(one, other): (&(String, _), &(String, _))| one.0 == other.0;
            let (ours, theirs) = (&base.description.nodes, &reading.description.nodes);
            if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(same) {
                let reason = format!("other operators run for {base_values:?} than for {values:?}");
                return Err(Error::bad(reason).in_option(Field::Dims));
            }
            readings.push(reading);
        }
        if graph.is_none() {
            graph = readings.first().map(|base| base.model(hints)).transpose()?.map(|model| model.graph);
        }
        let Some(graph) = &graph else { break };
        let points = Points { dims: &dims, values: values.clone() };
        let doubts = Readings { points: &points, readings: &readings }.doubts(graph);
        if doubts.is_empty() {
            break;
        }
        if round == MAX_REFINEMENTS {
            let reason = "no expressions were found that surely hold for the values between those read";
            return Err(Error::bad(reason).in_option(Field::Dims));
        }
        for (dim, value) in doubts {
            let mut point = base_values.clone();
            point[dim] = value;
            if !values.contains(&point) {
                values.push(point);
            }
        }
    }
    let Some(graph) = graph else { return Err(Error::bad("no dimension").in_option(Field::Dims)) };
    let points = Points { dims: &dims, values };
    let alignment = hints.alignment.unwrap_or(GRAPH_ALIGNMENT);
    let samples = Readings { points: &points, readings: &readings };
    let text = |tensor: usize| samples.size(&graph, tensor);
    let sizes = (0..graph.tensors().len()).map(text).collect::<Result<Vec<_>>>()?;
    let view = |tensor| samples.view(&graph, tensor, &sizes).filter(|at| samples.is_aligned(at, alignment));
    let views = (0..graph.tensors().len()).map(view);
    let views: Vec<Option<Amount>> = views.collect();
    let is_permitted = |input: usize, output: usize| samples.is_permitted(&graph, input, output);
    graph_json::text_with_dims(&graph, &dims, sizes, views, &is_permitted)
}

/// Turns the names of the model into identifiers.
fn to_identifiers(ranges: &[(String, Dimension)]) -> Result<Vec<NamedDimension>> {
    let mut dims: Vec<NamedDimension> = Vec::new();
    for (of, values) in ranges {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = of.chars().map(letter).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || matches!(&*name, "min" | "max")
        {
            name.insert(0, '_');
        }
        if dims.iter().any(|dim| dim.of.as_deref().unwrap_or(&dim.name) == of) {
            return Err(Error::bad(format!("{of} is given twice")).in_option(Field::Dims));
        }
        while dims.iter().any(|dim| dim.name == name) {
            name.push('_');
        }
        let of = (name != *of).then(|| of.clone());
        dims.push(NamedDimension { name, of, values: *values });
    }
    check(&dims)?;
    Ok(dims)
}

/// The greatest values, then each dimension varied alone, then some combinations.
fn sample_points(dims: &[NamedDimension]) -> Vec<Vec<u64>> {
    let spread = |values: Dimension, count: u64| -> Vec<u64> {
        let steps = (values.high - values.low) / values.step;
        let count = count.min(steps.saturating_add(1)).max(1);
        let between = steps / (count - 1).max(1);
        // Distances between values differ, so that their remainders do.
        let shift = |k: u64| if between > 3 && k + 1 < count { k % 3 } else { 0 };
        let at =
            |k: u64| (u128::from(steps) * u128::from(k) / u128::from((count - 1).max(1))) as u64 + shift(k);
        (0..count).rev().map(|k| values.low + at(k) * values.step).collect()
    };
    let each = (MAX_FIRST_SAMPLES / dims.len().max(1) as u64).max(4);
    let all: Vec<Vec<u64>> = dims.iter().map(|dim| spread(dim.values, each)).collect();
    let base: Vec<u64> = all.iter().map(|values| values[0]).collect();
    let mut points = vec![base.clone()];
    for (dim, values) in all.iter().enumerate() {
        for &value in &values[1..] {
            let mut point = base.clone();
            point[dim] = value;
            points.push(point);
        }
    }
    if dims.len() > 1 {
        // Different strides make every pair of dimensions vary differently.
        for k in 1..=8 {
            points
                .push(all.iter().enumerate().map(|(dim, of)| of[(k * (dim + 2) + dim) % of.len()]).collect());
        }
    }
    points
}

/// What the reader inferred at each sample.
struct Readings<'a> {
    points: &'a Points<'a>,
    readings: &'a [Reading],
}

impl Readings<'_> {
    fn shapes(&self, name: &str) -> Option<Vec<&Shape>> {
        self.readings.iter().map(|reading| reading.shapes.get(name)).collect()
    }

    /// Values of dimensions at which the number of an extent or an offset is not sure yet.
    fn doubts(&self, graph: &Graph) -> BTreeSet<(usize, u64)> {
        let mut series: HashSet<Vec<u64>> = HashSet::new();
        for (tensor, node) in graph.tensors().iter().enumerate() {
            let name = node.name.as_deref().filter(|_| node.kind != TensorKind::Constant);
            let shapes = name.and_then(|name| self.shapes(name)).unwrap_or_default();
            let rank = shapes.iter().map(|shape| shape.dims.len()).min().unwrap_or(0);
            series.extend((0..rank).map(|axis| shapes.iter().map(|shape| shape.dims[axis]).collect()));
            series.extend(self.offsets(graph, tensor));
        }
        series.iter().filter_map(|numbers| self.points.fit(numbers)).flat_map(|fit| fit.doubts).collect()
    }

    /// The size of a tensor in bytes.
    fn size(&self, graph: &Graph, tensor: usize) -> Result<Amount> {
        let node = &graph.tensors()[tensor];
        let Some(name) = node.name.as_deref().filter(|_| node.kind != TensorKind::Constant) else {
            return Ok(Amount::Number(node.size));
        };
        let refuse = |reason: String| Err(Error::bad(reason).in_field(format_args!("tensor {name:?}")));
        let Some(shapes) = self.shapes(name) else {
            return refuse("its shape is not known for every value".to_owned());
        };
        let (bits, rank) = (shapes[0].bits, shapes[0].dims.len());
        if shapes.iter().any(|shape| shape.bits != bits || shape.dims.len() != rank) {
            return refuse("its element type or its rank depends on the values".to_owned());
        }
        let (mut number, mut factors) = (1_u64, Vec::new());
        for axis in 0..rank {
            let extents: Vec<u64> = shapes.iter().map(|shape| shape.dims[axis]).collect();
            let Some(Fit { text, .. }) = self.points.fit(&extents) else {
                let reason = format!("no expression was found for its extent {axis}, which is {extents:?}");
                return refuse(reason);
            };
            match text.parse::<u64>() {
                Ok(extent) => number = number.saturating_mul(extent),
                Err(_) => factors.push(text),
            }
        }
        let whole = bits % 8 == 0;
        let number = number.saturating_mul(if whole { bits / 8 } else { bits });
        if factors.is_empty() && whole {
            return Ok(Amount::Number(number));
        }
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let factor = |text: &String| if plain(text) { text.clone() } else { format!("({text})") };
        let mut factors: Vec<String> = factors.iter().map(factor).collect();
        if number != 1 || factors.is_empty() {
            factors.insert(0, number.to_string());
        }
        let product = factors.join("*");
        Ok(Amount::Text(if whole { product } else { format!("({product}+7)//8") }))
    }

    /// The offsets of a view in its base at the points. `None` if it is no view for some value.
    fn offsets(&self, graph: &Graph, tensor: usize) -> Option<Vec<u64>> {
        let node = &graph.tensors()[tensor];
        let (of, _) = node.alias?;
        let name = node.name.as_deref()?;
        let base = graph.tensors()[of].name.as_deref()?;
        let begin = |reading: &Reading| {
            let joins = reading.permits.joins.iter().filter(|join| join.result == base);
            let mut parts = joins.flat_map(|join| &join.parts);
            let view = reading.permits.views.get(name).filter(|(of, _)| of == base).map(|&(_, at)| at);
            view.or_else(|| parts.find(|(part, _)| part == name).map(|&(_, at)| at))
        };
        self.readings.iter().map(begin).collect()
    }

    /// The offset of a view in its base. `None` if the tensor needs its own bytes, because it is no
    /// view for some value that was read, or because no expression fits its offset.
    fn view(&self, graph: &Graph, tensor: usize, sizes: &[Amount]) -> Option<Amount> {
        let name = graph.tensors()[tensor].name.as_deref()?;
        let offsets = self.offsets(graph, tensor)?;
        if let Some(Fit { text, .. }) = self.points.fit(&offsets) {
            return Some(text.parse().map_or(Amount::Text(text), Amount::Number));
        }
        // A multiple of a part: the tensor's own size.
        let bytes = |name: &str| -> Option<Vec<u64>> {
            self.shapes(name)?.iter().map(|shape| shape.bytes().ok()).collect()
        };
        let (own, Amount::Text(size)) = (bytes(name)?, &sizes[tensor]) else { return None };
        let (times, by) = (offsets[0], own[0].max(1));
        let text = format!("({size})*{times}//{by}");
        self.points.is_right(&text, &offsets).then_some(Amount::Text(text))
    }

    /// Whether a view at this offset begins at a multiple of the alignment for all values, also for
    /// those that were not read.
    fn is_aligned(&self, at: &Amount, alignment: u64) -> bool {
        let dims: Vec<Dimension> = self.points.dims.iter().map(|dim| dim.values).collect();
        at.to_terms(self.points.dims).is_ok_and(|terms| is_multiple(&terms, &dims, alignment))
    }

    /// Whether a result may be written over an input for all values.
    fn is_permitted(&self, graph: &Graph, input: usize, output: usize) -> bool {
        let name = |tensor: usize| graph.tensors()[tensor].name.as_deref();
        let (Some(input), Some(output)) = (name(input), name(output)) else { return false };
        self.readings.iter().all(|reading| {
            let permits: &HashMap<String, Vec<String>> = &reading.permits.permits;
            permits.get(output).is_some_and(|inputs| inputs.iter().any(|name| name == input))
        })
    }
}
