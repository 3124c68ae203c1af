//! The graph of a change: repeated operators and copies with tensors of their own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Source;
use super::stages::{Item, Stages};
use crate::graph::{Graph, GraphBuilder, GraphError, Op, OpNode, Tensor, TensorKind, TensorNode};

/// An operator of the new graph: its source, and the version of each root before and after it.
struct Step {
    source: Source,
    root: Option<u32>,
    /// Versions of the used roots.
    uses: Vec<(u32, u32)>,
    /// Versions of the made roots.
    makes: Vec<(u32, u32)>,
}

/// The operators of the new graph in their order.
fn steps(stages: &Stages<'_>) -> (Vec<Step>, Vec<u32>) {
    let model = stages.model;
    let mut current = alloc::vec![0_u32; model.roots.len()];
    let mut count = alloc::vec![0_u32; model.roots.len()];
    let mut steps = Vec::new();
    for (at, stage) in stages.stages.iter().enumerate() {
        for &item in &stage.items {
            match item {
                Item::Run(op) => {
                    let facts = &model.ops[op as usize];
                    let first = op as usize == at;
                    let uses = facts.uses.iter().map(|&root| (root, current[root as usize])).collect();
                    let mut makes = Vec::new();
                    for &root in &facts.makes {
                        let version = count[root as usize];
                        count[root as usize] += 1;
                        makes.push((root, version));
                        let is_missing = !stages.resident.get(root, at) && stage.roots.contains(&root);
                        if first || (is_missing && !stages.is_stored[root as usize]) {
                            current[root as usize] = version;
                        }
                    }
                    let op = op as usize;
                    let source = if first { Source::First(op) } else { Source::Again(op) };
                    let stores =
                        facts.makes.iter().copied().filter(|&root| first && stages.is_stored[root as usize]);
                    let stores: Vec<u32> = stores.collect();
                    steps.push(Step { source, root: None, uses, makes });
                    for root in stores {
                        let uses = alloc::vec![(root, current[root as usize])];
                        steps.push(Step { source: Source::Store, root: Some(root), uses, makes: Vec::new() });
                    }
                }
                Item::Fetch(root) => {
                    let version = count[root as usize];
                    count[root as usize] += 1;
                    current[root as usize] = version;
                    let makes = alloc::vec![(root, version)];
                    steps.push(Step { source: Source::Fetch, root: Some(root), uses: Vec::new(), makes });
                }
            }
        }
    }
    (steps, current)
}

/// The tensors of the new graph.
struct Names<'g> {
    graph: &'g Graph,
    /// The version of each tensor that keeps its id.
    home: Vec<u32>,
    ids: BTreeMap<(usize, u32), u64>,
    used_ids: BTreeSet<u64>,
    texts: BTreeSet<String>,
    next: u64,
    tensors: Vec<Tensor>,
}

impl Names<'_> {
    fn fresh(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        while !self.used_ids.insert(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }

    /// The id of a version of an activation. Declares it if it is new.
    fn id(&mut self, tensor: usize, version: u32) -> u64 {
        if let Some(&id) = self.ids.get(&(tensor, version)) {
            return id;
        }
        let node = &self.graph.tensors()[tensor];
        let is_home = self.home[tensor] == version;
        let id = if is_home { node.id } else { self.fresh() };
        self.ids.insert((tensor, version), id);
        let mut copy = describe(node, id);
        if let (Some(name), false) = (&node.name, is_home) {
            copy = copy.name(unused_name(&mut self.texts, &format!("{name}.again")));
        }
        if node.root == tensor {
            copy = copy.kind(node.kind);
        } else {
            let root = self.id(node.root, version);
            copy = copy.alias_of(root, node.root_offset);
        }
        self.tensors.push(copy);
        id
    }
}

fn describe(node: &TensorNode, id: u64) -> Tensor {
    let mut tensor = Tensor::new(id, node.size - node.padding)
        .alignment(node.alignment)
        .padding(node.padding)
        .dynamic(node.dynamic);
    if let Some(name) = &node.name {
        tensor = tensor.name(name.clone());
    }
    tensor
}

/// The new graph, and where each of its operators comes from.
pub(super) fn build(graph: &Graph, stages: &Stages<'_>) -> Result<(Graph, Vec<Source>), GraphError> {
    let model = stages.model;
    let (steps, last) = steps(stages);
    let mut home = alloc::vec![0_u32; graph.tensors().len()];
    // A view keeps its id where its operator runs; outputs keep theirs at the end.
    for step in &steps {
        if let Source::First(op) = step.source {
            for &tensor in &graph.ops()[op].outputs {
                let Some(root) = model.of[tensor] else { continue };
                if let Some(&(_, version)) = step.uses.iter().find(|&&(other, _)| other == root) {
                    home[tensor] = version;
                }
            }
        }
    }
    for (number, root) in model.roots.iter().enumerate() {
        let family = graph.family(root.tensor);
        if family.iter().any(|&member| graph.tensors()[member].is_output) {
            for &member in family {
                home[member] = last[number];
            }
        }
    }
    let ids: BTreeSet<u64> = graph.tensors().iter().map(|node| node.id).collect();
    let next = ids.last().copied().unwrap_or(0);
    let texts = graph.tensors().iter().filter_map(|node| node.name.clone()).collect();
    let mut names =
        Names { graph, home, ids: BTreeMap::new(), used_ids: ids, texts, next, tensors: Vec::new() };
    let mut names_of_ops: BTreeSet<String> = graph.ops().iter().map(|op| op.name.clone()).collect();
    let mut builder = Graph::builder();
    for (tensor, node) in graph.tensors().iter().enumerate() {
        if model.of[tensor].is_some() {
            continue;
        }
        let copy = describe(node, node.id);
        builder = builder.tensor(match node.alias {
            None => copy.kind(node.kind),
            Some((of, offset)) => copy.alias_of(graph.tensors()[of].id, offset),
        });
    }
    let (mut ops, mut sources) = (Vec::new(), Vec::new());
    // For each stored root its bytes, and what orders the copies.
    let mut host: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for step in &steps {
        let version = |list: &[(u32, u32)], root: u32| {
            list.iter().find(|&&(other, _)| other == root).map(|&(_, version)| version)
        };
        let op = match (step.source, step.root) {
            (Source::First(op) | Source::Again(op), _) => {
                let mut id = |tensor: usize, is_output: bool| match model.of[tensor] {
                    None => graph.tensors()[tensor].id,
                    Some(root) => {
                        let lists =
                            if is_output { [&step.makes, &step.uses] } else { [&step.uses, &step.makes] };
                        let version = lists.into_iter().find_map(|list| version(list, root));
                        names.id(tensor, version.unwrap_or(0))
                    }
                };
                let node = &graph.ops()[op];
                let name = match step.source {
                    Source::First(_) => node.name.clone(),
                    _ => unused_name(&mut names_of_ops, &format!("{}.again", node.name)),
                };
                described(node, name, &mut id)
            }
            (_, Some(root)) => {
                let facts = &model.roots[root as usize];
                let node = &graph.tensors()[facts.tensor];
                let text = node.name.clone().unwrap_or_else(|| format!("t{}", node.id));
                let cost = facts.copy.unwrap_or(0);
                if step.source == Source::Store {
                    let from = names.id(facts.tensor, step.uses[0].1);
                    let id = names.fresh();
                    let order = names.fresh();
                    host.insert(root, [id, order]);
                    let copy = describe(node, id).kind(TensorKind::State).name(format!("{text}.stored"));
                    let token = Tensor::new(order, 0).alignment(1).name(format!("{text}.order"));
                    builder = builder.tensor(copy).tensor(token);
                    let name = unused_name(&mut names_of_ops, &format!("{text}.store"));
                    Op::new(name).inputs([from]).outputs([id, order]).cost(cost)
                } else {
                    let to = names.id(facts.tensor, step.makes[0].1);
                    let name = unused_name(&mut names_of_ops, &format!("{text}.fetch"));
                    Op::new(name)
                        .inputs(host.get(&root).into_iter().flatten().copied())
                        .outputs([to])
                        .cost(cost)
                }
            }
            _ => continue,
        };
        sources.push(step.source);
        ops.push(op);
    }
    // What nobody uses stays in the graph.
    for (tensor, of) in model.of.iter().enumerate() {
        let is_there = |names: &Names<'_>| names.ids.contains_key(&(tensor, names.home[tensor]));
        if of.is_some() && !is_there(&names) {
            let version = names.home[tensor];
            names.id(tensor, version);
        }
    }
    builder = names.tensors.drain(..).fold(builder, GraphBuilder::tensor);
    builder = ops.into_iter().fold(builder, GraphBuilder::op);
    for &output in graph.outputs() {
        builder = builder.output(graph.tensors()[output].id);
    }
    Ok((builder.build()?, sources))
}

/// An operator with other tensors.
fn described(node: &OpNode, name: String, id: &mut dyn FnMut(usize, bool) -> u64) -> Op {
    let inputs: Vec<u64> = node.inputs.iter().map(|&tensor| id(tensor, false)).collect();
    let outputs: Vec<u64> = node.outputs.iter().map(|&tensor| id(tensor, true)).collect();
    let mut op = Op::new(name).inputs(inputs).outputs(outputs).cost(node.cost);
    for &(from, to) in &node.in_place {
        op = op.in_place(id(from, false), id(to, true));
    }
    op
}

fn unused_name(names: &mut BTreeSet<String>, base: &str) -> String {
    let mut name = String::from(base);
    let mut number = 1_u64;
    while !names.insert(name.clone()) {
        number += 1;
        name = format!("{base}{number}");
    }
    name
}
