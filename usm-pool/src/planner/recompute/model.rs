//! What a change of a graph is about: operators that may run again, and roots that may leave the
//! memory between two uses.

use alloc::vec::Vec;

use crate::Error;
use crate::graph::{Graph, TensorKind};
use crate::lifetime::align_up;

/// A root of kind activation. Its views move with it.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// Index of the tensor in the graph.
    pub(super) tensor: usize,
    /// Bytes, rounded up to its alignment.
    pub(super) size: u64,
    /// Bytes without that rounding.
    pub(super) exact: u64,
    /// The only operator that writes it, unless the root must stay where it is.
    pub(super) producer: Option<u32>,
    /// First and last stage that it is held into without a change. The stage after all operators
    /// is the caller's.
    pub(super) first: u32,
    pub(super) last: u32,
    /// Time of a copy to the other memory, or back.
    pub(super) copy: Option<u64>,
}

/// An operator.
#[derive(Clone, Debug, Default)]
pub(super) struct OpFacts {
    /// Roots that must be there, each once.
    pub(super) uses: Vec<u32>,
    /// Roots that it writes alone.
    pub(super) makes: Vec<u32>,
    /// Pairs of a used and a made root, the made one no larger: it may be written over the other.
    pub(super) permits: Vec<(u32, u32)>,
    /// Roots that some permit may lay over an input.
    overlays: Vec<u32>,
    pub(super) cost: u64,
    pub(super) is_repeatable: bool,
}

/// A graph as the search sees it.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) ops: Vec<OpFacts>,
    pub(super) roots: Vec<Root>,
    /// The root of each tensor of the graph, if it is an activation.
    pub(super) of: Vec<Option<u32>>,
}

impl Model {
    /// `rate` is the number of bytes that a copy moves in one unit of cost.
    pub(super) fn new(graph: &Graph, rate: Option<f64>) -> Result<Self, Error> {
        let (tensors, n) = (graph.tensors(), graph.ops().len());
        let mut model = Self {
            ops: (0..n).map(|op| OpFacts { cost: graph.ops()[op].cost, ..OpFacts::default() }).collect(),
            roots: Vec::new(),
            of: alloc::vec![None; tensors.len()],
        };
        let mut sum = 0_u64;
        for (tensor, node) in tensors.iter().enumerate() {
            if node.root != tensor || node.kind != TensorKind::Activation {
                continue;
            }
            let family = graph.family(tensor);
            let size = align_up(node.size, node.alignment).unwrap_or(node.size);
            // Each operator is counted once more while it runs again.
            sum = sum.checked_add(size).filter(|sum| *sum <= u64::MAX / 4).ok_or(Error::SizeOverflow {
                id: node.id,
                size,
                sum,
            })?;
            let uses = || {
                family
                    .iter()
                    .flat_map(|&member| tensors[member].users.iter().copied().chain(tensors[member].producer))
            };
            let is_output = family.iter().any(|&member| tensors[member].is_output);
            let sole_writer = node.producer.filter(|_| {
                size > 0
                    && !graph.rewritten[tensor]
                    && graph.is_written(tensor)
                    && family.iter().all(|&member| member == tensor || !graph.is_written(member))
            });
            let starts_full = family.iter().all(|&member| tensors[member].producer.is_none());
            let first = match (sole_writer, uses().min()) {
                (Some(op), _) => op + 1,
                (None, Some(op)) if !starts_full => op,
                _ => 0,
            };
            let last = if is_output { n } else { uses().max().unwrap_or(first) };
            for &member in family {
                model.of[member] = Some(model.roots.len() as u32);
            }
            model.roots.push(Root {
                tensor,
                size,
                exact: node.size,
                producer: sole_writer.map(|op| op as u32),
                first: first as u32,
                last: last as u32,
                copy: rate.map(|rate| time_of_copy(node.size, rate)),
            });
        }
        model.link(graph);
        Ok(model)
    }

    fn link(&mut self, graph: &Graph) {
        let tensors = graph.tensors();
        // State that an operator writes may have changed when another one runs again.
        let mut changes = alloc::vec![false; tensors.len()];
        for &tensor in graph.ops().iter().flat_map(|node| &node.outputs) {
            changes[tensors[tensor].root] |= self.of[tensor].is_none();
        }
        for (op, node) in graph.ops().iter().enumerate() {
            let (mut uses, mut makes) = (Vec::new(), Vec::new());
            let mut repeatable = true;
            for &tensor in &node.inputs {
                match self.of[tensor] {
                    Some(root) => uses.push(root),
                    None => repeatable &= !changes[tensors[tensor].root],
                }
            }
            for &tensor in &node.outputs {
                match self.of[tensor] {
                    Some(root)
                        if self.roots[root as usize].producer == Some(op as u32)
                            && self.roots[root as usize].tensor == tensor =>
                    {
                        makes.push(root)
                    }
                    Some(root) => {
                        uses.push(root);
                        repeatable = false;
                    }
                    None => repeatable = false,
                }
            }
            for list in [&mut uses, &mut makes] {
                list.sort_unstable();
                list.dedup();
            }
            // Bytes that several operators write are not the same at another time.
            repeatable &= !makes.is_empty()
                && uses.iter().all(|&root| {
                    let root = &self.roots[root as usize];
                    root.producer.is_some() || !graph.rewritten[root.tensor]
                });
            let (mut permits, mut overlays) = (Vec::new(), Vec::new());
            for &(input, output) in &node.in_place {
                if let (Some(from), Some(to)) = (self.of[input], self.of[output]) {
                    overlays.push(to);
                    let (source, target) = (&self.roots[from as usize], &self.roots[to as usize]);
                    if source.tensor == input && target.tensor == output && target.size <= source.size {
                        permits.push((from, to));
                    }
                }
            }
            let facts = &mut self.ops[op];
            (facts.uses, facts.makes, facts.is_repeatable) = (uses, makes, repeatable);
            (facts.permits, facts.overlays) = (permits, overlays);
        }
    }

    /// A sum of bytes that no change of this order goes below, and an operator that needs them: all
    /// that it reads and writes, where permits do not join two of them, and what must stay. The
    /// caller's outputs are those of the number of operators.
    pub(super) fn bound(&self) -> (u64, usize) {
        let n = self.ops.len();
        let mut stays = alloc::vec![0_u64; n + 2];
        for root in self.roots.iter().filter(|root| root.producer.is_none() && root.first <= root.last) {
            // A permit may lay it over an input of its first operator.
            let (first, after) = (root.first as usize + 1, root.last as usize + 1);
            stays[first] = stays[first].wrapping_add(root.exact);
            stays[after] = stays[after].wrapping_sub(root.exact);
        }
        let size = |root: &u32| self.roots[*root as usize].exact;
        let has_producer = |root: &&u32| self.roots[**root as usize].producer.is_some();
        let (mut base, mut best) = (0, (0, 0));
        for (op, &change) in stays.iter().enumerate().take(n + 1) {
            base = u64::wrapping_add(base, change);
            let bytes: u64 = match self.ops.get(op) {
                Some(facts) => {
                    let results = facts.makes.iter().filter(|root| !facts.overlays.contains(root));
                    facts.uses.iter().filter(has_producer).chain(results).map(size).sum()
                }
                None => {
                    let outputs = self.roots.iter().filter(|root| root.last as usize == n);
                    outputs.filter(|root| root.producer.is_some()).map(|root| root.exact).sum()
                }
            };
            if bytes + base > best.0 {
                best = (bytes + base, op);
            }
        }
        best
    }
}

/// Units of cost, rounded up.
fn time_of_copy(bytes: u64, rate: f64) -> u64 {
    let exact = bytes as f64 / rate;
    let whole = exact as u64;
    whole.saturating_add(u64::from((whole as f64) < exact))
}
