//! Reordering on an in-order queue: the processing order decides which tensors are live together.
//!
//! Finding the best order is NP-hard. Simple orders come first, and for a series-parallel graph the
//! order that is best there. Around the peak of the best one the
//! operators are ordered anew, and then limits on the peak are tried on the whole graph. A limit
//! that no order keeps is a bound on the peak of every order.

mod forced;
mod improve;
mod key_set;
mod lists;
mod lives;
mod parts;
mod permits;
mod reach;
mod series;
mod side;
mod walk;

use alloc::vec::Vec;

use self::improve::Incumbent;
use self::lives::Lives;
use self::reach::{Budget, Refutation};
use crate::alias::{Blocks, InPlace};
use crate::bound;
use crate::graph::{Graph, GraphError};
use crate::order_bound::{OrderBound, OrderCertificate};
use crate::{Buffer, Error};

/// A processing order, and the peak of the tensors that are live together in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reordered {
    /// Operators of the given graph, in their new order.
    pub order: Vec<usize>,
    /// Maximum bytes of tensors that are live at one time in that order.
    pub peak: u64,
    /// The same in the order of the graph.
    pub peak_before: u64,
    /// A lower bound on the peak of every order; none for a graph with loops. Its certificate names
    /// operators by their position in the new order.
    pub every_order: Option<OrderBound>,
}

/// What limits the search for an order.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Effort<'a> {
    /// Maximum number of search states, each the set of operators that have run. The search takes
    /// at most ten times as many steps from one state to another. Counted, not timed, so that every
    /// machine finds the same order.
    pub sets: u64,
    /// Called regularly; `true` ends the search with the best order so far.
    pub stop: &'a dyn Fn() -> bool,
}

impl core::fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Effort").field("sets", &self.sets).finish_non_exhaustive()
    }
}

impl Default for Effort<'_> {
    fn default() -> Self {
        Self { sets: Self::USUAL, stop: &|| false }
    }
}

impl<'a> Effort<'a> {
    /// Maximum number of search states without a user's limit: about a second.
    pub const USUAL: u64 = 1_000_000;
    /// Maximum number of search states where a time limit ends the search.
    pub const MOST: u64 = 10_000_000;

    /// At most so many sets, and until `stop` is true.
    #[must_use]
    pub const fn new(sets: u64, stop: &'a dyn Fn() -> bool) -> Self {
        Self { sets, stop }
    }
}

/// Searches for a processing order with a lower peak. Returns the given order if no tried one is
/// better. Graphs with loops keep their order: a loop's body must stay together.
///
/// # Errors
/// Tables that do not fit in memory.
pub fn reorder(graph: &Graph, in_place: InPlace) -> Result<Reordered, Error> {
    reorder_within(graph, in_place, &Effort::default())
}

/// As [`reorder`], with a limit on the search.
///
/// # Errors
/// As [`reorder`].
///
/// ```
/// use usm_pool::alias::InPlace;
/// use usm_pool::planner::reorder::{Effort, reorder_within};
/// use usm_pool::{Graph, Op, Tensor, verify};
///
/// // The large and short branch first.
/// let graph = Graph::builder()
///     .default_alignment(1)
///     .tensor(Tensor::new(0, 1))
///     .tensor(Tensor::new(1, 100))
///     .tensor(Tensor::new(2, 289))
///     .tensor(Tensor::new(3, 10))
///     .op(Op::new("s").outputs([0]))
///     .op(Op::new("b").inputs([0]).outputs([1]))
///     .op(Op::new("a1").inputs([0]).outputs([2]))
///     .op(Op::new("a2").inputs([2]).outputs([3]))
///     .output(1)
///     .output(3)
///     .build()?;
/// let found = reorder_within(&graph, InPlace::Never, &Effort::default())?;
/// assert_eq!((found.peak_before, found.peak), (399, 300));
/// // No other order is better, and the checker agrees.
/// let proof = found.every_order.expect("no loops");
/// assert_eq!(proof.bytes, 300);
/// verify::order_bound(&graph.reordered(&found.order)?, &proof)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn reorder_within(graph: &Graph, in_place: InPlace, effort: &Effort<'_>) -> Result<Reordered, Error> {
    let n = graph.ops().len();
    let original_peak = heaviest_cut(graph, in_place)?;
    let identity = || (0..n).collect();
    if !graph.loops().is_empty() {
        return Ok(Reordered {
            order: identity(),
            peak: original_peak,
            peak_before: original_peak,
            every_order: None,
        });
    }
    let lives = Lives::new(graph)?;
    let (mut bound, op) = forced::heaviest_operator(&lives);
    let at_an_end = lives.at_an_end();
    // No lists: already the first or the last set of finished operators exceeds it.
    let refutation = (at_an_end > bound).then(Refutation::default);
    bound = bound.max(at_an_end);
    let mut best =
        Reordered { order: identity(), peak: original_peak, peak_before: original_peak, every_order: None };
    let mut lowest = Incumbent { order: lists::list_ops(&lives), peak: u64::MAX, bound, refutation };
    let mut consider = |order: &[u32]| -> Result<(), Error> {
        let order: Vec<usize> = order.iter().map(|&op| op as usize).collect();
        let Ok(new_graph) = graph.reordered(&order) else { return Ok(()) };
        let peak = heaviest_cut(&new_graph, in_place)?;
        if peak < best.peak {
            (best.order, best.peak) = (order, peak);
        }
        Ok(())
    };
    lowest.peak = walk::peak(&lives, &lowest.order).0;
    for order in lists::all(&lives) {
        let peak = walk::peak(&lives, &order).0;
        // Without permits the sums are the cuts.
        if !lives.is_exact || peak < lowest.peak {
            consider(&order)?;
        }
        if peak < lowest.peak {
            (lowest.order, lowest.peak) = (order, peak);
        }
        if lowest.peak <= bound && lives.is_exact || (effort.stop)() {
            break;
        }
    }
    let mut is_series_parallel = false;
    if lowest.peak > bound
        && let Some(solution) = series::solve(&lives, effort.stop)
    {
        let peak = walk::peak(&lives, &solution.order).0;
        consider(&solution.order)?;
        if peak < lowest.peak {
            (lowest.order, lowest.peak) = (solution.order, peak);
        }
        if solution.bound > bound {
            (lowest.bound, lowest.refutation) = (solution.bound, None);
            is_series_parallel = true;
        }
    }
    let mut budget = Budget { sets: effort.sets, steps: effort.sets.saturating_mul(10), stop: effort.stop };
    lowest.improve(&lives, &mut budget);
    consider(&lowest.order)?;
    let certificate = match lowest.refutation {
        None if is_series_parallel => OrderCertificate::SeriesParallel,
        None => OrderCertificate::Operator { op: op as usize },
        Some(refutation) => {
            let ops = |list: Vec<u32>| list.into_iter().map(|op| op as usize).collect::<Vec<_>>();
            let lists = |lists: Vec<Vec<u32>>| lists.into_iter().map(ops).collect::<Vec<_>>();
            OrderCertificate::Sets { first: lists(refutation.first), last: lists(refutation.last) }
        }
    };
    let mut number = alloc::vec![0; n];
    for (position, &op) in best.order.iter().enumerate() {
        number[op] = position;
    }
    best.every_order = Some(OrderBound::new(lowest.bound, certificate).renumbered(&number));
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
