//! Operators whose bodies are in the file: each call becomes the nodes of its function.

use std::collections::HashMap;

use prost::Message as _;

use super::node_title;
use super::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use crate::error::{Error, Result};

/// Maximum nesting of calls.
const DEEPEST: usize = 16;

/// Maximum number of nodes that calls become, and of their bytes in the file.
const MOST_NODES: usize = 100_000;
const MOST_BYTES: usize = 256 << 20;

/// Replaces every call of a function by the function's nodes, in bodies of `If`, `Loop` and `Scan`
/// too.
pub(super) fn inline(graph: &mut GraphProto, functions: &[FunctionProto]) -> Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let entries =
        functions.iter().map(|function| ((normal(&function.domain), function.name.as_str()), function));
    let mut calls = Calls { functions: entries.collect(), count: 0, nodes: 0, bytes: 0 };
    calls.graph(graph, 0)
}

/// The domain of the standard has two names.
fn normal(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

struct Calls<'a> {
    functions: HashMap<(&'a str, &'a str), &'a FunctionProto>,
    count: usize,
    nodes: usize,
    bytes: usize,
}

impl Calls<'_> {
    fn graph(&mut self, graph: &mut GraphProto, depth: usize) -> Result<()> {
        let nodes = core::mem::take(&mut graph.node);
        graph.node = self.nodes(nodes, depth)?;
        Ok(())
    }

    fn nodes(&mut self, nodes: Vec<NodeProto>, depth: usize) -> Result<Vec<NodeProto>> {
        let mut all = Vec::with_capacity(nodes.len());
        for (index, mut node) in nodes.into_iter().enumerate() {
            let place = node_title(index, &node);
            let refuse = |reason: String| Err(Error::bad(reason).in_field(&place));
            if depth > DEEPEST {
                return refuse(format!("calls of functions or bodies, more than {DEEPEST} deep"));
            }
            for attribute in &mut node.attribute {
                for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                    self.graph(graph, depth + 1)?;
                }
            }
            let Some(&function) = self.functions.get(&(normal(&node.domain), node.op_type.as_str())) else {
                all.push(node);
                continue;
            };
            self.count += 1;
            self.nodes = self.nodes.saturating_add(function.node.len());
            self.bytes = self.bytes.saturating_add(function.encoded_len());
            if self.nodes > MOST_NODES || self.bytes > MOST_BYTES {
                return refuse(format!(
                    "the calls of functions become {} nodes of {} bytes, above {MOST_NODES} or {MOST_BYTES}",
                    self.nodes, self.bytes
                ));
            }
            if node.input.len() > function.input.len() || node.output.len() > function.output.len() {
                return refuse(format!(
                    "{} inputs and {} outputs for a function of {} and {}",
                    node.input.len(),
                    node.output.len(),
                    function.input.len(),
                    function.output.len()
                ));
            }
            all.extend(self.nodes(body(function, &node, self.count), depth + 1)?);
        }
        Ok(all)
    }
}

/// The nodes of a function with the names and attributes of one call.
fn body(function: &FunctionProto, call: &NodeProto, count: usize) -> Vec<NodeProto> {
    let label = if call.name.is_empty() { &call.op_type } else { &call.name };
    let label: String = label.chars().take(64).collect();
    let own = |name: &String| format!("{label}#{count}/{name}");
    let mut names: HashMap<String, String> = HashMap::new();
    names.extend(function.node.iter().flat_map(|node| &node.output).map(|name| (name.clone(), own(name))));
    // An input or output that the call leaves out has no name there.
    for (formal, actual) in [(&function.input, &call.input), (&function.output, &call.output)] {
        for (at, name) in formal.iter().enumerate() {
            match actual.get(at).filter(|name| !name.is_empty()) {
                Some(actual) => names.insert(name.clone(), actual.clone()),
                None if names.contains_key(name) => None,
                None => names.insert(name.clone(), String::new()),
            };
        }
    }
    names.remove("");
    let values = Values { call, defaults: &function.attribute_proto };
    let mut nodes = function.node.clone();
    for node in &mut nodes {
        if !node.name.is_empty() {
            node.name = own(&node.name);
        }
        values.set(node, &names);
    }
    // What the function returns unchanged is an input under another name.
    for (at, name) in function.output.iter().enumerate() {
        let (Some(result), Some(from)) = (call.output.get(at), function.input.iter().position(|i| i == name))
        else {
            continue;
        };
        if let Some(input) = call.input.get(from).filter(|_| !result.is_empty()) {
            nodes.push(NodeProto {
                op_type: "Identity".to_owned(),
                input: vec![input.clone()],
                output: vec![result.clone()],
                ..NodeProto::default()
            });
        }
    }
    nodes
}

/// The attributes of a call.
struct Values<'a> {
    call: &'a NodeProto,
    defaults: &'a [AttributeProto],
}

impl Values<'_> {
    /// Gives a node of the body the names and the attributes of the call.
    fn set(&self, node: &mut NodeProto, names: &HashMap<String, String>) {
        for name in node.input.iter_mut().chain(&mut node.output) {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        }
        node.attribute.retain_mut(|attribute| {
            if attribute.ref_attr_name.is_empty() {
                return true;
            }
            let attributes = self.call.attribute.iter().chain(self.defaults);
            let Some(value) =
                attributes.into_iter().find(|candidate| candidate.name == attribute.ref_attr_name)
            else {
                return false;
            };
            *attribute = AttributeProto { name: core::mem::take(&mut attribute.name), ..value.clone() };
            true
        });
        for attribute in &mut node.attribute {
            for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                self.set_graph(graph, names);
            }
        }
    }

    /// As [`Self::set`], for a body inside of the function: its own names hide those outside.
    fn set_graph(&self, graph: &mut GraphProto, names: &HashMap<String, String>) {
        let mut names = names.clone();
        graph.input.iter().for_each(|input| {
            names.remove(&input.name);
        });
        graph.initializer.iter().for_each(|tensor| {
            names.remove(&tensor.name);
        });
        for name in graph.node.iter().flat_map(|node| &node.output) {
            names.remove(name);
        }
        for output in &mut graph.output {
            if let Some(new) = names.get(&output.name) {
                output.name.clone_from(new);
            }
        }
        graph.node.iter_mut().for_each(|node| self.set(node, &names));
    }
}
