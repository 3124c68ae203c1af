//! Executes a model as the standard describes it: values by name, no memory.

use std::collections::HashMap;

use crate::generate::{About, Model};
use crate::proto::{GraphProto, NodeProto};

pub(crate) type Values = HashMap<String, Vec<i64>>;

/// The results of operators without bodies.
pub(crate) fn apply(op_type: &str, about: Option<&About>, inputs: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let x = &inputs[0];
    let each = |f: fn(i64) -> i64| vec![x.iter().map(|&n| f(n)).collect::<Vec<_>>()];
    let both = |f: fn(i64, i64) -> i64| vec![x.iter().zip(&inputs[1]).map(|(&a, &b)| f(a, b)).collect()];
    match (op_type, about) {
        ("Identity" | "Reshape", _) => vec![x.clone()],
        ("Neg", _) => each(|n| n.wrapping_neg().wrapping_add(1)),
        ("BitwiseNot", _) => each(|n| n.rotate_left(7) ^ 0x5555),
        ("Add", _) => both(i64::wrapping_add),
        ("Mul", _) => both(|a, b| a.wrapping_mul(3).wrapping_sub(b.wrapping_mul(5))),
        ("Less", _) => both(|a, b| i64::from(a < b)),
        ("Concat", _) => vec![[&x[..], &inputs[1]].concat()],
        ("Split", _) => x.chunks(x.len() / 2).map(<[i64]>::to_vec).collect(),
        ("Slice", Some(About::Slice(start))) => vec![x[*start..start + 2].to_vec()],
        other => unreachable!("{other:?}"),
    }
}

/// The inputs, and all values that follow from the constants among them, in bodies too.
pub(crate) fn outside(model: &Model) -> Values {
    let mut constants = Values::new();
    let named =
        |graph: &GraphProto| graph.initializer.iter().map(|tensor| tensor.name.clone()).collect::<Vec<_>>();
    constants.extend(
        named(&model.graph)
            .into_iter()
            .filter_map(|name| model.inputs.get_key_value(&name))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    follow(model, &model.graph, &mut constants);
    constants.extend(model.inputs.iter().map(|(name, value)| (name.clone(), value.clone())));
    constants
}

fn follow(model: &Model, graph: &GraphProto, constants: &mut Values) {
    for node in &graph.node {
        for body in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            follow(model, body, constants);
        }
        let inputs: Option<Vec<Vec<i64>>> =
            node.input.iter().map(|name| constants.get(name).cloned()).collect();
        let bodies = node.attribute.iter().any(|attribute| attribute.g.is_some());
        let Some(inputs) = inputs.filter(|inputs| !bodies && !inputs.is_empty()) else { continue };
        let results = apply(&node.op_type, model.about.get(&node.name), &inputs);
        constants.extend(node.output.iter().cloned().zip(results));
    }
}

/// All values of the model's outer graph. A collected result has as many rows as there were
/// iterations.
pub(crate) fn run(model: &Model) -> Values {
    let mut values = model.inputs.clone();
    block(model, &model.graph, &mut values);
    values
}

fn block(model: &Model, graph: &GraphProto, values: &mut Values) {
    for node in &graph.node {
        let results = node_results(model, node, values);
        values.extend(node.output.iter().cloned().zip(results));
    }
}

/// The results of a body that is given some values.
fn body(model: &Model, node: &NodeProto, at: usize, values: &Values, given: Vec<Vec<i64>>) -> Vec<Vec<i64>> {
    let graph = node.attribute[at].g.as_ref().expect("a body");
    let mut inner = values.clone();
    inner.extend(graph.input.iter().map(|input| input.name.clone()).zip(given));
    block(model, graph, &mut inner);
    graph.output.iter().map(|output| inner[&output.name].clone()).collect()
}

fn node_results(model: &Model, node: &NodeProto, values: &Values) -> Vec<Vec<i64>> {
    let input = |at: usize| values[&node.input[at]].clone();
    match model.about.get(&node.name) {
        Some(About::If) => body(model, node, usize::from(input(0)[0] == 0), values, Vec::new()),
        Some(&About::Loop { states, rows }) => {
            let (times, mut go) = (input(0)[0], node.input[1].is_empty() || input(1)[0] != 0);
            let mut own: Vec<Vec<i64>> = (0..states).map(|state| input(2 + state)).collect();
            let (mut collected, mut i) = (vec![Vec::new(); rows], 0);
            while go && i < times {
                let given = [vec![i], vec![1]].into_iter().chain(own);
                let mut results = body(model, node, 0, values, given.collect()).into_iter();
                go = results.next().is_some_and(|flag| flag[0] != 0);
                own = results.by_ref().take(states).collect();
                collected.iter_mut().zip(results).for_each(|(rows, row)| rows.extend(row));
                i += 1;
            }
            own.into_iter().chain(collected).collect()
        }
        Some(About::Scan { states, count, sequences, rows }) => {
            let mut own: Vec<Vec<i64>> = (0..*states).map(input).collect();
            let mut collected: Vec<Vec<i64>> =
                rows.iter().map(|along| vec![0; along.dims.0 * along.dims.1]).collect();
            for iteration in 0..*count {
                let element = |(at, along): (usize, &crate::generate::Along)| {
                    let all = input(states + at);
                    along.positions(iteration, *count).into_iter().map(|position| all[position]).collect()
                };
                let given = own.into_iter().chain(sequences.iter().enumerate().map(element));
                let mut results = body(model, node, 0, values, given.collect()).into_iter();
                own = results.by_ref().take(*states).collect();
                for ((all, along), row) in collected.iter_mut().zip(rows).zip(results) {
                    let positions = along.positions(iteration, *count);
                    positions.into_iter().zip(row).for_each(|(position, number)| all[position] = number);
                }
            }
            own.into_iter().chain(collected).collect()
        }
        about => apply(&node.op_type, about, &(0..node.input.len()).map(input).collect::<Vec<_>>()),
    }
}
