//! Reordering on an in-order queue: the processing order decides which tensors are live together.
//!
//! Finding the best order is NP-hard. The bounds (the heaviest cuts) of a few orders with different
//! strengths are compared; greedy plans mostly reach them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::alias::{Blocks, InPlace};
use crate::bound;
use crate::graph::{Graph, GraphError, TensorKind};
use crate::sort;
use crate::{Buffer, Error};

/// A processing order and the least peak in bytes that it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reordered {
    /// Operators of the given graph, in their new order.
    pub order: Vec<usize>,
    /// Heaviest cut in bytes with that order.
    pub bound: u64,
    /// Heaviest cut in bytes with the given order.
    pub given: u64,
}

/// Searches for a processing order with a lower peak. Returns the given order if no tried one is
/// better. Graphs with loops keep their order: a loop's body must stay together.
///
/// # Errors
/// Tables that do not fit in memory.
pub fn reorder(graph: &Graph, in_place: InPlace) -> Result<Reordered, Error> {
    let n = graph.ops().len();
    let identity: Vec<usize> = (0..n).collect();
    let given = heaviest_cut(graph, in_place)?;
    let mut best = Reordered { order: identity, bound: given, given };
    if !graph.loops().is_empty() {
        return Ok(best);
    }
    let links = Links::new(graph);
    for order in [links.least_growth(graph), links.depth_first(graph), links.delay_sources(&best.order)] {
        for order in [links.delay_sources(&order), order] {
            let Ok(reordered) = graph.reordered(&order) else { continue };
            let bound = heaviest_cut(&reordered, in_place)?;
            if bound < best.bound {
                best = Reordered { order, bound, given };
            }
        }
    }
    Ok(best)
}

/// Heaviest cut in bytes of a graph on an in-order queue, its operators in their order.
///
/// # Errors
/// Tables that do not fit in memory.
pub fn heaviest_cut(graph: &Graph, in_place: InPlace) -> Result<u64, Error> {
    let blocks = Blocks::new(graph, in_place, None)?;
    let buffers = blocks.blocks().iter().map(|block| Buffer {
        id: graph.tensors()[block.root].id,
        lower: block.lifetime.lower,
        upper: block.lifetime.upper,
        size: block.size,
        alignment: block.alignment,
    });
    Ok(bound::time_cut(&buffers.collect::<Vec<_>>()).bytes)
}

struct Links {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Links {
    fn new(graph: &Graph) -> Self {
        let n = graph.ops().len();
        let mut before: Vec<Vec<usize>> = (0..n).map(|op| graph.predecessors(op)).collect();
        let mut after: Vec<Vec<usize>> = (0..n).map(|_| Vec::new()).collect();
        for (op, list) in before.iter_mut().enumerate() {
            list.sort_unstable();
            list.dedup();
            for &earlier in list.iter() {
                after[earlier].push(op);
            }
        }
        Self { before, after }
    }

    /// List scheduling: takes the ready operator that adds the fewest live bytes; of equals the one
    /// with the most recent inputs.
    fn least_growth(&self, graph: &Graph) -> Vec<usize> {
        let n = self.before.len();
        let mut users: Vec<usize> =
            graph.tensors().iter().map(|tensor| tensor.users.len() + usize::from(tensor.is_output)).collect();
        let mut waiting: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut fresh = alloc::vec![0_usize; n];
        let mut ready: BTreeSet<usize> = (0..n).filter(|&op| waiting[op] == 0).collect();
        let mut order = Vec::with_capacity(n);
        while !ready.is_empty() {
            let growth = |op: usize| {
                let node = &graph.ops()[op];
                let placed = |tensor: usize| graph.tensors()[tensor].kind == TensorKind::Activation;
                let size = |tensor: usize| i128::from(graph.tensors()[tensor].size);
                let made: i128 = node.outputs.iter().filter(|&&t| placed(t)).map(|&t| size(t)).sum();
                let mut inputs = node.inputs.clone();
                inputs.sort_unstable();
                inputs.dedup();
                let freed: i128 = inputs.into_iter().filter(|&t| placed(t) && users[t] == 1).map(size).sum();
                made - freed
            };
            let next =
                ready.iter().copied().min_by_key(|&op| (growth(op), core::cmp::Reverse(fresh[op]), op));
            let Some(op) = next else { break };
            ready.remove(&op);
            order.push(op);
            let mut inputs = graph.ops()[op].inputs.clone();
            inputs.sort_unstable();
            inputs.dedup();
            for tensor in inputs {
                users[tensor] = users[tensor].saturating_sub(1);
            }
            for &later in &self.after[op] {
                waiting[later] -= 1;
                fresh[later] = order.len();
                if waiting[later] == 0 {
                    ready.insert(later);
                }
            }
        }
        order
    }

    /// Puts every operator right after its inputs, the branch with the largest tensors first, from
    /// the last operator backwards.
    fn depth_first(&self, graph: &Graph) -> Vec<usize> {
        let n = self.before.len();
        let made = |op: usize| {
            graph.ops()[op].outputs.iter().map(|&t| graph.tensors()[t].size).fold(0, u64::saturating_add)
        };
        let mut done = alloc::vec![false; n];
        let mut order = Vec::with_capacity(n);
        let mut stack: Vec<(usize, bool)> = Vec::new();
        for sink in (0..n).filter(|&op| self.after[op].is_empty()) {
            stack.push((sink, false));
            while let Some((op, entered)) = stack.pop() {
                if done[op] {
                    continue;
                }
                if entered {
                    done[op] = true;
                    order.push(op);
                    continue;
                }
                stack.push((op, true));
                let mut needs: Vec<usize> =
                    self.before[op].iter().copied().filter(|&earlier| !done[earlier]).collect();
                // The stack reverses them.
                sort::by_key(&mut needs, |earlier| (made(earlier), core::cmp::Reverse(earlier)));
                stack.extend(needs.into_iter().map(|earlier| (earlier, false)));
            }
        }
        order
    }

    /// The same order with operators without inputs moved to just before their first user.
    fn delay_sources(&self, order: &[usize]) -> Vec<usize> {
        let mut moved = Vec::with_capacity(order.len());
        let mut done = alloc::vec![false; order.len()];
        for &op in order {
            let source = self.before[op].is_empty() && !self.after[op].is_empty();
            if source || done[op] {
                continue;
            }
            for &earlier in &self.before[op] {
                if !done[earlier] {
                    done[earlier] = true;
                    moved.push(earlier);
                }
            }
            done[op] = true;
            moved.push(op);
        }
        moved
    }
}

impl Graph {
    /// The same graph in another processing order. Names and ids stay.
    ///
    /// # Errors
    /// [`GraphError::ReadBeforeWrite`] when the order is not topological, [`GraphError::BadLoop`]
    /// when it does not name every operator once, or when the graph has loops.
    pub fn reordered(&self, order: &[usize]) -> Result<Self, GraphError> {
        let n = self.ops().len();
        let mut position = alloc::vec![usize::MAX; n];
        for (at, &op) in order.iter().enumerate() {
            match position.get_mut(op) {
                Some(slot) if *slot == usize::MAX => *slot = at,
                _ => return Err(GraphError::BadLoop { first: at, last: op, ops: n }),
            }
        }
        if order.len() != n || !self.loops().is_empty() {
            return Err(GraphError::BadLoop { first: 0, last: order.len(), ops: n });
        }
        for op in 0..n {
            for earlier in self.predecessors(op) {
                if position[earlier] > position[op] {
                    let input = self.ops()[op].inputs.first().copied().unwrap_or(0);
                    let tensor = self.tensors().get(input).map_or(0, |node| node.id);
                    return Err(GraphError::ReadBeforeWrite { op, tensor, producer: earlier });
                }
            }
        }
        let mut graph = self.clone();
        graph.ops = order.iter().map(|&op| self.ops()[op].clone()).collect();
        for tensor in &mut graph.tensors {
            tensor.producer = tensor.producer.map(|op| position[op]);
            for user in &mut tensor.users {
                *user = position[*user];
            }
            tensor.users.sort_unstable();
        }
        graph.rewritten = graph.find_rewritten();
        Ok(graph)
    }
}
