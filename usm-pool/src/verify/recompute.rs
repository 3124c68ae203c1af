//! Replays a changed graph beside the given one, value by value. Shares no code with the search.
//!
//! A value is one output of one operator that read certain values, or what a tensor holds before
//! the run. Both graphs are run with such values instead of bytes, so views, partial writes and
//! copies need no rules of their own. Every run of an operator, the first and each further one,
//! must read the values that the operator reads in the given graph.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Violation;
use super::graph::is_written;
use crate::graph::{Graph, TensorKind};
use crate::planner::recompute::Source;

/// Some bytes of a value: `begin..end` of a root or tensor, from byte `at` of the value on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    begin: u64,
    end: u64,
    value: usize,
    at: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// What the tensor with this id holds before the run.
    Before(u64),
    /// An output of a run, by number.
    Result { run: usize, output: usize },
    /// What a tensor of the changed graph alone holds before the run.
    Unknown(u64),
}

/// The values and runs that were met, each with a number.
#[derive(Default)]
struct Numbers {
    values: BTreeMap<Value, usize>,
    runs: BTreeMap<(usize, Vec<Vec<Piece>>), usize>,
}

impl Numbers {
    fn value(&mut self, value: Value) -> usize {
        let next = self.values.len();
        *self.values.entry(value).or_insert(next)
    }

    fn run(&mut self, op: usize, inputs: Vec<Vec<Piece>>) -> usize {
        let next = self.runs.len();
        *self.runs.entry((op, inputs)).or_insert(next)
    }
}

/// The content of the roots of one graph.
struct Memory<'g> {
    graph: &'g Graph,
    /// Pieces that do not overlap, ascending.
    roots: Vec<Vec<Piece>>,
}

impl<'g> Memory<'g> {
    fn new(graph: &'g Graph, original: &Graph, numbers: &mut Numbers) -> Self {
        let mut root = |node: &crate::graph::TensorNode| {
            let value = match original.tensor_index(node.id) {
                Some(_) => Value::Before(node.id),
                None => Value::Unknown(node.id),
            };
            alloc::vec![Piece { begin: 0, end: node.size, value: numbers.value(value), at: 0 }]
        };
        Self { graph, roots: graph.tensors().iter().map(&mut root).collect() }
    }

    /// The content of a tensor, from its own first byte on.
    fn read(&self, tensor: usize) -> Vec<Piece> {
        let node = &self.graph.tensors()[tensor];
        let (begin, end) = (node.root_offset, node.root_offset + node.size);
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in &self.roots[node.root] {
            let (low, high) = (piece.begin.max(begin), piece.end.min(end));
            if low >= high {
                continue;
            }
            let at = piece.at + (low - piece.begin);
            match pieces.last_mut() {
                Some(last) if last.value == piece.value && last.at + (last.end - last.begin) == at => {
                    last.end = high - begin;
                }
                _ => pieces.push(Piece { begin: low - begin, end: high - begin, value: piece.value, at }),
            }
        }
        pieces
    }

    fn write(&mut self, tensor: usize, content: &[Piece]) {
        let node = &self.graph.tensors()[tensor];
        let (begin, end) = (node.root_offset, node.root_offset + node.size);
        let mut new = Vec::new();
        for piece in &self.roots[node.root] {
            for (low, high) in [(piece.begin, piece.end.min(begin)), (piece.begin.max(end), piece.end)] {
                if low < high {
                    new.push(Piece { begin: low, end: high, at: piece.at + (low - piece.begin), ..*piece });
                }
            }
        }
        new.extend(content.iter().map(|piece| Piece {
            begin: piece.begin + begin,
            end: piece.end + begin,
            ..*piece
        }));
        new.sort_unstable();
        self.roots[node.root] = new;
    }

    /// Runs an operator as one of the given graph; answers the number of the run.
    fn run(&mut self, op: usize, as_given: usize, numbers: &mut Numbers) -> usize {
        let node = &self.graph.ops()[op];
        let inputs = node.inputs.iter().map(|&tensor| self.read(tensor)).collect();
        let run = numbers.run(as_given, inputs);
        for (output, &tensor) in node.outputs.iter().enumerate() {
            if gets_content(self.graph, tensor) {
                let value = numbers.value(Value::Result { run, output });
                let end = self.graph.tensors()[tensor].size;
                let content =
                    if end == 0 { Vec::new() } else { alloc::vec![Piece { begin: 0, end, value, at: 0 }] };
                self.write(tensor, &content);
            }
        }
        run
    }
}

/// Checks that a changed graph computes what the given one does, with operators that run again and
/// copies: every run of an operator reads the same values, and the outputs and the state are equal
/// at the end. `sources` has an entry for each operator of the changed graph. Answers the cost of
/// the changed graph less that of the given one.
///
/// # Errors
/// The first [`Violation`] found.
pub fn recomputed(original: &Graph, new_graph: &Graph, sources: &[Source]) -> Result<u64, Violation> {
    if !original.loops().is_empty() || !new_graph.loops().is_empty() {
        return Err(Violation::ChangedLoop);
    }
    if sources.len() != new_graph.ops().len() {
        return Err(Violation::LengthMismatch { buffers: new_graph.ops().len(), other: sources.len() });
    }
    check_tensors(original, new_graph)?;
    let mut numbers = Numbers::default();
    let mut before = Memory::new(original, original, &mut numbers);
    let runs: Vec<usize> = (0..original.ops().len()).map(|op| before.run(op, op, &mut numbers)).collect();
    let mut after = Memory::new(new_graph, original, &mut numbers);
    let mut first = alloc::vec![0_usize; runs.len()];
    for (op, &source) in sources.iter().enumerate() {
        let of = match source {
            Source::First(of) | Source::Again(of) => of,
            Source::Store | Source::Fetch => {
                copy(new_graph, op, &mut after)?;
                continue;
            }
        };
        if !is_same_operator(original, of, new_graph, op) {
            return Err(Violation::ChangedOperator { op });
        }
        match source {
            Source::First(_) => first[of] += 1,
            _ if has_effect(original, of) => return Err(Violation::ChangedOperator { op }),
            _ => {}
        }
        if after.run(op, of, &mut numbers) != runs[of] {
            return Err(Violation::ChangedInput { op, of });
        }
    }
    if let Some(op) = first.iter().position(|&count| count != 1) {
        return Err(Violation::ChangedRuns { op, runs: first[op] });
    }
    for (tensor, node) in original.tensors().iter().enumerate() {
        let is_read = node.is_output || (node.kind == TensorKind::State && node.root == tensor);
        let same =
            new_graph.tensor_index(node.id).is_some_and(|other| after.read(other) == before.read(tensor));
        if is_read && !same {
            return Err(Violation::ChangedResult { id: node.id });
        }
    }
    let cost = |graph: &Graph| graph.ops().iter().map(|op| u128::from(op.cost)).sum::<u128>();
    Ok(u64::try_from(cost(new_graph).saturating_sub(cost(original))).unwrap_or(u64::MAX))
}

/// Every tensor of the given graph is there; what comes from outside and the outputs are as they
/// were.
fn check_tensors(original: &Graph, new_graph: &Graph) -> Result<(), Violation> {
    for node in original.tensors() {
        let other = new_graph.tensor_index(node.id).map(|tensor| &new_graph.tensors()[tensor]);
        let is_same = |other: &crate::graph::TensorNode| {
            (other.size, other.padding, other.kind, other.is_output)
                == (node.size, node.padding, node.kind, node.is_output)
                && other.alignment >= node.alignment
        };
        if !other.is_some_and(is_same) {
            return Err(Violation::ChangedTensor { id: node.id });
        }
    }
    let ids = |graph: &Graph| graph.outputs().iter().map(|&t| graph.tensors()[t].id).collect::<Vec<_>>();
    match (ids(original), ids(new_graph)) {
        (mine, theirs) if mine == theirs => Ok(()),
        (mine, theirs) => {
            let id = theirs.into_iter().find(|id| !mine.contains(id)).or(mine.first().copied());
            Err(Violation::ChangedTensor { id: id.unwrap_or(0) })
        }
    }
}

/// Whether an operator may not run twice: nobody sees what it does, or it writes state.
fn has_effect(original: &Graph, op: usize) -> bool {
    let outputs = &original.ops()[op].outputs;
    outputs.is_empty()
        || outputs.iter().any(|&tensor| original.tensors()[tensor].kind != TensorKind::Activation)
}

/// Whether both have as many inputs, outputs of the same sizes, the same cost, and no further
/// permit.
fn is_same_operator(original: &Graph, of: usize, new_graph: &Graph, op: usize) -> bool {
    let Some(mine) = original.ops().get(of) else { return false };
    let theirs = &new_graph.ops()[op];
    let size = |graph: &Graph, tensor: usize| graph.tensors()[tensor].size;
    let sizes =
        |graph: &Graph, tensors: &[usize]| tensors.iter().map(|&t| size(graph, t)).collect::<Vec<_>>();
    let is_permitted = |&(from, to): &(usize, usize)| {
        mine.in_place.iter().any(|&(input, output)| {
            let reads = theirs.inputs.iter().zip(&mine.inputs).any(|pair| pair == (&from, &input));
            let writes = theirs.outputs.iter().zip(&mine.outputs).any(|pair| pair == (&to, &output));
            reads && writes
        })
    };
    mine.cost == theirs.cost
        && sizes(original, &mine.inputs) == sizes(new_graph, &theirs.inputs)
        && sizes(original, &mine.outputs) == sizes(new_graph, &theirs.outputs)
        && theirs.in_place.iter().all(is_permitted)
}

/// Whether an operator that names the tensor as an output gives it content. State orders nothing in
/// a graph, so it has no producer.
fn gets_content(graph: &Graph, tensor: usize) -> bool {
    graph.tensors()[tensor].kind == TensorKind::State || is_written(graph, tensor)
}

/// A copy of the first input to the first output. What it reads and writes besides has no bytes and
/// only keeps the order.
fn copy(new_graph: &Graph, op: usize, after: &mut Memory<'_>) -> Result<(), Violation> {
    let node = &new_graph.ops()[op];
    let wrong = Violation::ChangedOperator { op };
    let ([from, read @ ..], [to, order_outputs @ ..]) = (&node.inputs[..], &node.outputs[..]) else {
        return Err(wrong);
    };
    let size = |tensor: usize| new_graph.tensors()[tensor].size;
    let is_copy = size(*from) == size(*to) && gets_content(new_graph, *to) && node.in_place.is_empty();
    if !is_copy || read.iter().chain(order_outputs).any(|&tensor| size(tensor) > 0) {
        return Err(wrong);
    }
    let content = after.read(*from);
    after.write(*to, &content);
    Ok(())
}
