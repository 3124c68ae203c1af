//! Control flow: `If`, `Loop` and `Scan` become the operators of their bodies, and a few operators
//! of our own that describe the moves between them.
//!
//! | of ours | reads | writes | stands for |
//! |---|---|---|---|
//! | `Join` | the result of both branches | the result of an `If` | one of them is it |
//! | `Enter` | an initial value | the body's own copy of it | before the first iteration |
//! | `Keep` | an initial value | the body's own copy of it | the same, if no iteration changes it |
//! | `Number` | the number of iterations, the condition | the iteration's number | the start of an iteration of a `Loop`, or the end of all |
//! | `Element` | the sequence | one element of it | the start of an iteration of a `Scan` |
//! | `Next` | what the body made | the body's own copy, or a row of a result | the end of an iteration |
//! | `Hold` | what `Next` is about to overwrite | a copy of it | before the `Next`s of values that change places |
//! | `Leave` | the body's own copy | a result of the loop | after the last iteration |
//! | `Collect` | nothing | a result with a row for each iteration | before the first iteration |
//!
//! The result of a `Next` is a view of what it overwrites, so the graph states the write. In ONNX
//! all values change at once; here one `Next` follows the other, in an order in which each reads
//! its value before another one overwrites it. Rows come first: nothing in the loop reads them.
//!
//! The graph contains both branches of an `If` in sequence. Only one of them runs, so the plan is
//! safe and may be a little large. A branch is removed if inference shows that it cannot run:
//! exporters write conditions on shapes. Inference sees the shape of a `Join`, `Enter`, `Number` or
//! `Element`, but no value: another branch or iteration may give another one.

use std::collections::{HashMap, HashSet};

use super::allow::may_be_view;
use super::proto::{AttributeProto, AttributeType, GraphProto, NodeProto};
use super::{Shape, is_standard, node_title, shape};
use crate::error::{Error, Result};

/// The domain of our own operators, and the beginning of their results' names.
pub(crate) const DOMAIN: &str = "usm.control";

/// Maximum nesting of bodies.
const DEEPEST: usize = 16;

/// `TensorProto.DataType` of 64-bit integers and of truth values.
const INT64: i32 = 7;
const BOOL: i32 = 9;

/// The facts about a flat graph beyond its nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// Loop bodies: first node, and first node after.
    pub(crate) loops: Vec<(usize, usize)>,
    /// Pairs of names that must have the same size, with the place and the file's description.
    same: Vec<(String, &'static str, [String; 2])>,
    choices: Vec<Choice>,
    /// What each `Next` overwrites, by the name of its result.
    pub(crate) overwritten: HashMap<String, Overwritten>,
    /// What each `Hold` makes, and the value that becomes it.
    held_values: HashMap<String, String>,
}

/// The bytes that a `Next` writes.
#[derive(Clone, Debug)]
pub(crate) struct Overwritten {
    /// The tensor that has the bytes.
    pub(crate) of: String,
    /// For a row: the axis along which the tensor has its rows.
    row: Option<i64>,
}

/// An `If`.
#[derive(Clone, Debug)]
struct Choice {
    condition: String,
    /// Nodes of the branch for true only, and of the branch for false only: dead if the condition
    /// is false (0) or true (1).
    results: [HashSet<String>; 2],
}

impl Control {
    /// Removes branches that cannot run from the graph. Returns whether there was one. Their nodes
    /// become unnamed constants, so that other nodes keep their positions.
    pub(crate) fn remove_dead_branches(
        &mut self,
        truths: &HashMap<String, bool>,
        graph: &mut GraphProto,
    ) -> bool {
        let mut dead: HashSet<String> = HashSet::new();
        self.choices.retain_mut(|choice| match truths.get(&choice.condition) {
            Some(&truth) => {
                dead.extend(core::mem::take(&mut choice.results[usize::from(truth)]));
                false
            }
            None => true,
        });
        for node in &mut graph.node {
            let read = node.input.iter().any(|name| dead.contains(name));
            if node.output.iter().any(|name| dead.contains(name)) || (node.output.is_empty() && read) {
                *node = NodeProto { op_type: "Constant".to_owned(), ..NodeProto::default() };
            } else if node.domain == DOMAIN {
                node.input.retain(|name| !dead.contains(name));
            }
        }
        self.same.retain(|(_, _, names)| !names.iter().any(|name| dead.contains(name)));
        !dead.is_empty()
    }

    /// The unknown conditions, those of outer `If`s first.
    pub(crate) fn conditions(&self) -> Vec<String> {
        self.choices.iter().rev().map(|choice| choice.condition.clone()).collect()
    }

    /// The tensors whose shapes are not inferred: [`Self::add_shapes`] adds them.
    pub(crate) fn known_later(&self) -> HashSet<String> {
        self.held_values.keys().chain(self.overwritten.keys()).cloned().collect()
    }

    /// The tensor, and its axis, of which a result of `Next` is a row.
    pub(crate) fn row_of(&self, result: &str) -> Option<(&str, i64)> {
        let overwrite = self.overwritten.get(result)?;
        Some((overwrite.of.as_str(), overwrite.row?))
    }

    /// What a result of `Next` overwrites.
    pub(crate) fn overwrites(&self, result: &str) -> Option<&String> {
        self.overwritten.get(result).map(|overwrite| &overwrite.of)
    }

    /// Adds the shapes of the results of `Next` and `Hold`.
    pub(crate) fn add_shapes(&self, shapes: &mut HashMap<String, Shape>) {
        for (copy_name, own) in &self.held_values {
            let shape = shapes.get(own).cloned();
            shapes.extend(shape.map(|shape| (copy_name.clone(), shape)));
        }
        for (next, Overwritten { of, row }) in &self.overwritten {
            let Some(mut shape) = shapes.get(of).cloned() else { continue };
            if let Some(axis) = *row {
                let axis = if axis < 0 { axis + shape.dims.len() as i64 } else { axis };
                let rows = usize::try_from(axis).ok().and_then(|axis| shape.dims.get_mut(axis));
                rows.into_iter().for_each(|rows| *rows = 1.min(*rows));
            }
            shapes.insert(next.clone(), shape);
        }
    }

    /// Refuses a graph in which two values with the same place differ in size.
    pub(crate) fn check(&self, bytes: impl Fn(&str) -> Option<u64>) -> Result<()> {
        for (place, what, [one, other]) in &self.same {
            match (bytes(one), bytes(other)) {
                (Some(one), Some(other)) if one != other => {
                    let reason =
                        format!("{what} are of {one} and of {other} bytes, so no plan holds for both");
                    return Err(Error::bad(reason).in_field(place));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The name in the flat graph for each name of a body.
struct Scope<'a> {
    names: HashMap<String, String>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn resolve(&self, name: &str) -> String {
        let mut scope = Some(self);
        while let Some(Scope { names, outer }) = scope {
            if let Some(full_name) = names.get(name) {
                return full_name.clone();
            }
            scope = *outer;
        }
        name.to_owned()
    }
}

/// Replaces every operator with bodies.
pub(crate) fn flatten(graph: &mut GraphProto) -> Result<Control> {
    let mut flat = Flat { control: Control::default(), graph: GraphProto::default(), bodies: 0 };
    let nodes = core::mem::take(&mut graph.node);
    let scope = Scope { names: HashMap::new(), outer: None };
    flat.nodes(nodes, &scope, 0)?;
    graph.node = flat.graph.node;
    graph.initializer.append(&mut flat.graph.initializer);
    graph.value_info.append(&mut flat.graph.value_info);
    Ok(flat.control)
}

struct Flat {
    control: Control,
    /// The nodes of the bodies.
    graph: GraphProto,
    bodies: usize,
}

/// A body with the names of the flat graph, before or after its nodes are added.
struct Body {
    nodes: Vec<NodeProto>,
    names: HashMap<String, String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Flat {
    fn nodes(&mut self, nodes: Vec<NodeProto>, scope: &Scope<'_>, depth: usize) -> Result<()> {
        for (index, mut node) in nodes.into_iter().enumerate() {
            let place = node_title(index, &node);
            let at = |error: Error| error.in_field(&place);
            for name in node.input.iter_mut().chain(&mut node.output).filter(|name| !name.is_empty()) {
                *name = scope.resolve(name);
            }
            let graphs = node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty());
            if !graphs {
                self.graph.node.push(node);
                continue;
            }
            if depth >= DEEPEST {
                return Err(at(Error::bad(format!("bodies within bodies, more than {DEEPEST} deep"))));
            }
            let new_nodes = if is_standard(&node, "If") {
                self.choose(&mut node, scope, depth)
            } else if is_standard(&node, "Loop") {
                self.repeat(&mut node, scope, depth)
            } else if is_standard(&node, "Scan") {
                self.scan(&mut node, scope, depth)
            } else {
                Err(Error::bad("an operator with a subgraph that is no If, Loop or Scan"))
            };
            new_nodes.map_err(at)?;
        }
        Ok(())
    }

    /// Takes a body out of its node and gives its names a prefix.
    fn body(&mut self, node: &mut NodeProto, attribute: &str) -> Result<Body> {
        let body = node.attribute.iter_mut().find(|a| a.name == attribute).and_then(|a| a.g.take());
        let mut graph = body.ok_or_else(|| Error::bad(format!("it has no {attribute}")))?;
        self.bodies += 1;
        let label = if node.name.is_empty() { &node.op_type } else { &node.name };
        let prefix = format!("{label}/{attribute}#{}", self.bodies);
        let mut names = HashMap::new();
        let mut own = |name: &String| {
            if !name.is_empty() {
                names.insert(name.clone(), format!("{prefix}/{name}"));
            }
        };
        graph.input.iter().for_each(|input| own(&input.name));
        graph.initializer.iter().for_each(|tensor| own(&tensor.name));
        graph.node.iter().flat_map(|node| &node.output).for_each(&mut own);
        let rename = |name: &mut String| {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        };
        // A body's output may have the name of an outer value, which is described outside.
        graph.output.retain(|output| !output.name.is_empty());
        let outputs: Vec<String> = graph.output.iter().map(|output| output.name.clone()).collect();
        let inputs = graph.input.iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        let values = graph.input.into_iter().chain(graph.value_info).chain(graph.output);
        for mut value in values.filter(|value| names.contains_key(&value.name)) {
            rename(&mut value.name);
            self.graph.value_info.push(value);
        }
        for mut tensor in graph.initializer {
            rename(&mut tensor.name);
            self.graph.initializer.push(tensor);
        }
        let flat = |name: &String| {
            let nameless = || Error::bad(format!("an input of its {attribute} has no name"));
            names.get(name).cloned().ok_or_else(nameless)
        };
        let inputs = inputs.iter().map(flat).collect::<Result<_>>()?;
        Ok(Body { nodes: graph.node, names, inputs, outputs })
    }

    /// Adds the nodes of a body. Returns the flat names of its outputs.
    fn add_body(
        &mut self,
        nodes: Vec<NodeProto>,
        names: HashMap<String, String>,
        outputs: &[String],
        scope: &Scope<'_>,
        depth: usize,
    ) -> Result<Vec<String>> {
        let scope = Scope { names, outer: Some(scope) };
        self.nodes(nodes, &scope, depth + 1)?;
        Ok(outputs.iter().map(|name| scope.resolve(name)).collect())
    }

    fn add_node(&mut self, node: &NodeProto, op_type: &str, inputs: &[&str], outputs: &[&str]) {
        let label = if node.name.is_empty() { &node.op_type } else { &node.name };
        let names = |names: &[&str]| {
            names.iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()).collect()
        };
        self.graph.node.push(NodeProto {
            name: format!("{label}/{op_type}"),
            op_type: op_type.to_owned(),
            domain: DOMAIN.to_owned(),
            input: names(inputs),
            output: names(outputs),
            ..NodeProto::default()
        });
    }

    fn require_same_shape(&mut self, node: &NodeProto, what: &'static str, one: &str, other: &str) {
        let place = format!("{:?} ({})", node.name, node.op_type);
        self.control.same.push((place, what, [one.to_owned(), other.to_owned()]));
    }

    fn choose(&mut self, node: &mut NodeProto, scope: &Scope<'_>, depth: usize) -> Result<()> {
        let bodies = [self.body(node, "then_branch")?, self.body(node, "else_branch")?];
        let mut results = Vec::new();
        let mut arguments = Vec::new();
        for Body { nodes, names, inputs, outputs } in bodies {
            check_count("inputs of a branch", inputs.len(), 0)?;
            check_count("outputs of a branch", outputs.len(), node.output.len())?;
            let first = self.graph.node.len();
            results.push(self.add_body(nodes, names, &outputs, scope, depth)?);
            let nodes = &self.graph.node[first..];
            arguments.push(nodes.iter().flat_map(|node| node.output.iter().cloned()).collect());
        }
        let condition = node.input.first().map_or("", String::as_str);
        if condition.is_empty() {
            return Err(Error::bad("it has no condition"));
        }
        if let Ok(mut results) = <[HashSet<String>; 2]>::try_from(arguments) {
            // Indexed by the condition's value: nodes that are dead if it is false, and if it is
            // true.
            results.iter_mut().for_each(|names| {
                names.remove("");
            });
            self.control.choices.push(Choice { condition: condition.to_owned(), results });
        }
        for (k, output) in node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let (one, other) = (&results[0][k], &results[1][k]);
            self.add_node(node, "Join", &[one, other, condition], &[output]);
            self.require_same_shape(node, "the results of the branches", one, other);
        }
        Ok(())
    }

    fn repeat(&mut self, node: &mut NodeProto, scope: &Scope<'_>, depth: usize) -> Result<()> {
        let Body { nodes, names, inputs, outputs } = self.body(node, "body")?;
        let state_count =
            inputs.len().checked_sub(2).ok_or_else(|| Error::bad("its body has no condition"))?;
        check_count("inputs", node.input.len(), 2 + state_count)?;
        let output_count =
            outputs.len().checked_sub(1 + state_count).ok_or_else(|| Error::bad("its body loses a value"))?;
        at_most("outputs", node.output.len(), state_count + output_count)?;
        // The iteration's number and the condition have fixed types, whatever the file says.
        for (name, data_type) in inputs.iter().zip([INT64, BOOL]) {
            self.graph.value_info.push(shape::value_info(name, data_type, &[]));
        }
        let entries = self.enter(node, &node.input[1..], &inputs[1..]);
        self.collect(node, state_count);
        let first = self.graph.node.len();
        self.add_node(node, "Number", &[&node.input[0], &inputs[1]], &[&inputs[0]]);
        let results = self.add_body(nodes, names, &outputs, scope, depth)?;
        let states = States::of(&self.graph.node[first..], &inputs[1..], &results);
        self.mark_kept(entries, &states);
        self.gather(node, &results[1 + state_count..], state_count, &[]);
        self.next(node, &states, &results);
        self.control.loops.push((first, self.graph.node.len()));
        self.leave(node, &inputs[2..]);
        Ok(())
    }

    fn scan(&mut self, node: &mut NodeProto, scope: &Scope<'_>, depth: usize) -> Result<()> {
        let Body { nodes, names, inputs, outputs } = self.body(node, "body")?;
        let number = |name: &str| node.attribute.iter().find(|a| a.name == name).map(|a| a.i);
        let sequences = number("num_scan_inputs").and_then(|n| usize::try_from(n).ok());
        let state_count = sequences.and_then(|n| inputs.len().checked_sub(n));
        let state_count = state_count
            .ok_or_else(|| Error::bad("num_scan_inputs is missing, or above the inputs of its body"))?;
        check_count("inputs", node.input.len(), inputs.len())?;
        let output_count =
            outputs.len().checked_sub(state_count).ok_or_else(|| Error::bad("its body loses a value"))?;
        at_most("outputs", node.output.len(), state_count + output_count)?;
        let entries = self.enter(node, &node.input[..state_count], &inputs);
        self.collect(node, state_count);
        let first = self.graph.node.len();
        let list = |name: &str| node.attribute.iter().find(|a| a.name == name).map(|a| a.ints.clone());
        let axes = list("scan_input_axes");
        for (k, (sequence, element)) in node.input.iter().zip(&inputs).skip(state_count).enumerate() {
            self.add_node(node, "Element", &[sequence], &[element]);
            let axis = axes.as_ref().and_then(|axes| axes.get(k)).copied().unwrap_or(0);
            let attribute = AttributeProto {
                name: "axis".to_owned(),
                r#type: AttributeType::Int.into(),
                i: axis,
                ..AttributeProto::default()
            };
            self.graph
                .node
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|node| node.attribute.push(attribute.clone()));
        }
        let results = self.add_body(nodes, names, &outputs, scope, depth)?;
        let states = States::of(&self.graph.node[first..], &inputs[..state_count], &results);
        self.mark_kept(entries, &states);
        self.gather(
            node,
            &results[state_count..],
            state_count,
            &list("scan_output_axes").unwrap_or_default(),
        );
        self.next(node, &states, &results);
        self.control.loops.push((first, self.graph.node.len()));
        self.leave(node, &inputs[..state_count]);
        Ok(())
    }

    /// Returns the position of the first node.
    fn enter(&mut self, node: &NodeProto, initial: &[String], own: &[String]) -> usize {
        let entries = self.graph.node.len();
        for (initial, own) in initial.iter().zip(own) {
            self.add_node(node, "Enter", &[initial], &[own]);
        }
        entries
    }

    /// Marks the entries of values that no iteration changes.
    fn mark_kept(&mut self, entries: usize, states: &States<'_>) {
        for (entry, change) in self.graph.node[entries..].iter_mut().zip(&states.changes) {
            if matches!(change, Change::Kept) {
                "Keep".clone_into(&mut entry.op_type);
            }
        }
    }

    /// Results with a row for each iteration live from the first one on.
    fn collect(&mut self, node: &NodeProto, state_count: usize) {
        for output in node.output.iter().skip(state_count).filter(|output| !output.is_empty()) {
            self.add_node(node, "Collect", &[], &[output]);
        }
    }

    /// The first results replace the body's own values.
    fn next(&mut self, node: &NodeProto, states: &States<'_>, results: &[String]) {
        for (result, own) in results.iter().zip(states.own) {
            self.require_same_shape(
                node,
                "a value and the one that it hands to the next iteration",
                own,
                result,
            );
        }
        let mut held_names: HashMap<usize, String> = HashMap::new();
        for copy in states.copies() {
            match copy {
                Copy::Hold(state) => {
                    let name = format!("{DOMAIN}/held/{}", states.own[state]);
                    self.add_node(node, "Hold", &[&results[state]], &[&name]);
                    self.control.held_values.insert(name.clone(), states.own[state].clone());
                    held_names.insert(state, name);
                }
                Copy::Next(state) => {
                    let source = held_names.get(&state).unwrap_or(&results[state]);
                    self.overwrite(node, source, &states.own[state], None);
                }
            }
        }
    }

    /// Rows become parts of results.
    fn gather(&mut self, node: &NodeProto, rows: &[String], state_count: usize, axes: &[i64]) {
        for (k, (row, output)) in rows.iter().zip(node.output.iter().skip(state_count)).enumerate() {
            if !output.is_empty() {
                self.overwrite(node, row, output, Some(axes.get(k).copied().unwrap_or(0)));
            }
        }
    }

    fn overwrite(&mut self, node: &NodeProto, source: &str, of: &str, row: Option<i64>) {
        let result = format!("{DOMAIN}/next/{of}");
        self.add_node(node, "Next", &[source], &[&result]);
        self.control.overwritten.insert(result, Overwritten { of: of.to_owned(), row });
    }

    fn leave(&mut self, node: &NodeProto, own: &[String]) {
        for (own, output) in own.iter().zip(&node.output).filter(|(_, output)| !output.is_empty()) {
            self.add_node(node, "Leave", &[own], &[output]);
        }
    }
}

/// The values that a body hands from one iteration to the next.
struct States<'a> {
    /// The body's own copies.
    own: &'a [String],
    changes: Vec<Change>,
}

/// What an iteration makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It stays.
    Kept,
    /// It becomes a new one.
    Made,
    /// It becomes another one's old value, by index, or a part of it: a view may have its bytes.
    Taken(usize),
}

/// One step of the end of an iteration, for a value by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    /// What becomes of the value gets bytes of its own.
    Hold(usize),
    /// The value is overwritten.
    Next(usize),
}

impl<'a> States<'a> {
    /// Of a body with these nodes, whose first results replace its own copies.
    fn of(body: &[NodeProto], own: &'a [String], results: &[String]) -> Self {
        let index: HashMap<&str, usize> = own.iter().map(String::as_str).zip(0..).collect();
        // By name: the value whose bytes it may have, and whether it surely is that value.
        let mut views: HashMap<&str, (usize, bool)> = HashMap::new();
        let look = |views: &HashMap<&str, (usize, bool)>, name: &str| {
            index.get(name).map(|&state| (state, true)).or_else(|| views.get(name).copied())
        };
        for node in body.iter().filter(|node| may_be_view(node)) {
            let Some((state, whole)) = node.input.first().and_then(|name| look(&views, name)) else {
                continue;
            };
            let whole = whole && is_standard(node, "Identity");
            views.extend(node.output.iter().map(|output| (output.as_str(), (state, whole))));
        }
        let change = |(at, result): (usize, &String)| match look(&views, result) {
            Some((state, true)) if state == at => Change::Kept,
            // A view of the value itself has its bytes where they belong.
            Some((state, _)) if state != at => Change::Taken(state),
            _ => Change::Made,
        };
        let changes = results.iter().take(own.len()).enumerate().map(change).collect();
        Self { own, changes }
    }

    /// The changes one after the other, so that each old value is read before it is overwritten.
    /// Where values change places in a circle, one of them is held.
    fn copies(&self) -> Vec<Copy> {
        let source_of = |state: usize| match self.changes[state] {
            Change::Taken(from) if self.changes[from] != Change::Kept => Some(from),
            _ => None,
        };
        let changes = || (0..self.changes.len()).filter(|&state| self.changes[state] != Change::Kept);
        let mut readers = vec![0_usize; self.changes.len()];
        changes().filter_map(source_of).for_each(|from| readers[from] += 1);
        let mut free: Vec<usize> = changes().filter(|&state| readers[state] == 0).collect();
        free.reverse();
        let (mut copies, mut is_done) = (Vec::new(), vec![false; self.changes.len()]);
        let mut is_held = is_done.clone();
        let mut circles = changes();
        loop {
            while let Some(state) = free.pop() {
                is_done[state] = true;
                copies.push(Copy::Next(state));
                // What is held was read before.
                let Some(from) = source_of(state).filter(|_| !is_held[state]) else { continue };
                readers[from] -= 1;
                if readers[from] == 0 {
                    free.push(from);
                }
            }
            let Some(state) = circles.find(|&state| !is_done[state]) else { break };
            copies.push(Copy::Hold(state));
            is_held[state] = true;
            if let Some(from) = source_of(state) {
                readers[from] -= 1;
                free.extend((readers[from] == 0).then_some(from));
            }
        }
        copies
    }
}

fn check_count(what: &str, actual: usize, expected: usize) -> Result<()> {
    if actual == expected { Ok(()) } else { Err(Error::bad(format!("{actual} {what}, not {expected}"))) }
}

fn at_most(what: &str, actual: usize, most: usize) -> Result<()> {
    if actual <= most { Ok(()) } else { Err(Error::bad(format!("{actual} {what}, and {most} at most"))) }
}
