//! Ordering edges on an out-of-order queue: a few edges (events) let more tensors share bytes.
//!
//! The bound of an out-of-order graph is its heaviest antichain of tensors. An edge from operator
//! `u` to operator `v` orders everything that is complete by `u` before everything that begins at
//! or after `v`, so it removes the lighter side from the antichain. Edges may go against the
//! processing order: a side branch with slack is best finished before the main one begins. If such
//! edges cannot lower the bound any further, edges along the processing order replace them: enough
//! of these reach the in-order bound.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::alias::{Block, Blocks, InPlace};
use crate::bound;
use crate::conflict::set_bits;
use crate::dependency::{Reachability, first_accesses, last_accesses};
use crate::graph::Graph;
use crate::problem::Problem;
use crate::sort;
use crate::{Buffer, Error};

/// Limits of the search for edges.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Lever {
    /// Maximum number of edges.
    pub limit: usize,
    /// Only edges that do not lengthen the critical path.
    pub keep_critical_path: bool,
    /// Stops when the bound is at or below this many bytes. Edges cannot go below the in-order
    /// bound.
    pub target: u64,
    /// In-place permits that the plan will use.
    pub in_place: InPlace,
}

impl Lever {
    /// At most `limit` edges, until the bound is `target` bytes.
    #[must_use]
    pub const fn new(limit: usize, target: u64) -> Self {
        Self { limit, keep_critical_path: false, target, in_place: InPlace::Never }
    }

    /// The same, without lengthening the critical path.
    #[must_use]
    pub const fn keeping_critical_path(mut self) -> Self {
        self.keep_critical_path = true;
        self
    }
}

/// One point of the curve of peak against edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// Number of edges.
    pub edges: usize,
    /// Least possible peak with them in bytes (the heaviest antichain).
    pub bound: u64,
}

/// Ordering edges and their effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ordering {
    /// Edges (earlier, later operator); every prefix in `curve` is a working set of edges.
    pub edges: Vec<(usize, usize)>,
    /// Bound after each round, falling; the Pareto curve.
    pub curve: Vec<Point>,
}

/// Longest path through the graph in units of operator cost, `edges` included.
#[must_use]
pub fn critical_path(graph: &Graph, edges: &[(usize, usize)]) -> u64 {
    // Edges that close a cycle have no longest path.
    Reachability::new(graph, edges).map_or(u64::MAX, |reach| Depths::new(graph, edges, reach.order()).longest)
}

/// The least peak in bytes of any execution as long as the critical path, with any edges, and the
/// instant that proves it.
///
/// Between the latest start of its producer and the earliest end of its last user a tensor is live
/// in every such execution.
///
/// # Errors
/// Tables that do not fit.
pub fn critical_path_bound(graph: &Graph, in_place: InPlace) -> Result<bound::TimeCut, Error> {
    let reach = Reachability::new(graph, &[])?;
    let depths = Depths::new(graph, &[], reach.order());
    let blocks = Blocks::new(graph, in_place, Some(&reach))?;
    let forced_life = |block: &Block| {
        let starts = block.ops.iter().map(|&op| depths.longest.saturating_sub(depths.tail[op]));
        let ends = block.ops.iter().map(|&op| depths.head[op]);
        let lower = if block.from_start { 0 } else { starts.min().unwrap_or(0) };
        let upper = if block.to_end { depths.longest } else { ends.max().unwrap_or(0) };
        Buffer { lower, upper: upper.max(lower), ..buffer(graph, block) }
    };
    let buffers: Vec<Buffer> = blocks.blocks().iter().map(forced_life).collect();
    Ok(bound::time_cut(&buffers))
}

/// Finds ordering edges. Each is chosen by the bytes that it removes from the heaviest antichain.
///
/// # Errors
/// As for an out-of-order plan: tables that do not fit.
pub fn ordering_edges(graph: &Graph, lever: &Lever) -> Result<Ordering, Error> {
    ordering_edges_until(graph, lever, &|| false)
}

/// As [`ordering_edges`]; only those found so far if `stop` ends it.
pub(super) fn ordering_edges_until(
    graph: &Graph,
    lever: &Lever,
    stop: &dyn Fn() -> bool,
) -> Result<Ordering, Error> {
    let free = separate_antichains(graph, lever, false, stop)?;
    let bound = |ordering: &Ordering| ordering.curve.last().map_or(u64::MAX, |point| point.bound);
    if bound(&free) <= lever.target || stop() {
        return Ok(free);
    }
    // An edge against the processing order can prevent better ones; an edge along it never does.
    let forward = separate_antichains(graph, lever, true, stop)?;
    let better = (bound(&forward), forward.edges.len()) < (bound(&free), free.edges.len());
    Ok(if better { forward } else { free })
}

fn separate_antichains(
    graph: &Graph,
    lever: &Lever,
    forward: bool,
    stop: &dyn Fn() -> bool,
) -> Result<Ordering, Error> {
    let mut ordering = Ordering { edges: Vec::new(), curve: Vec::new() };
    let budget = critical_path(graph, &[]);
    loop {
        let mut reach = Reachability::new(graph, &ordering.edges)?;
        let problem = Problem::with_reachability(graph, &reach, lever.in_place)?;
        let blocks = Blocks::new(graph, lever.in_place, Some(&reach))?;
        let Some(conflicts) = problem.conflicts() else { break };
        let (bytes, set) = bound::antichain_until(problem.buffers(), conflicts, stop)?;
        if stop() {
            // It was not the heaviest.
            break;
        }
        ordering.curve.push(Point { edges: ordering.edges.len(), bound: bytes });
        if bytes <= lever.target || ordering.edges.len() >= lever.limit {
            break;
        }
        let set: Vec<&Block> = set.into_iter().map(|i| &blocks.blocks()[i]).collect();
        // A few edges for each antichain, because the flow is the expensive part.
        let batch = (set.len() / 8).max(1);
        let before = ordering.edges.len();
        let mut cut = Cut::new(graph, &reach, &set);
        for _ in 0..batch {
            if stop() {
                return Ok(ordering);
            }
            let depths = Depths::new(graph, &ordering.edges, reach.order());
            let room = lever.limit - ordering.edges.len();
            let strict = Rule { budget: Some(budget), forward };
            let rules = [Some(strict), (!lever.keep_critical_path).then_some(Rule { budget: None, forward })];
            let step = |rule: Rule| {
                let single = cut.best_edge(&reach, &depths, &rule);
                single.map(Step::Single).or_else(|| cut.best_join(&reach, &depths, &rule, room))
            };
            match rules.into_iter().flatten().find_map(step) {
                Some(Step::Single((u, v))) => {
                    ordering.edges.push((u, v));
                    cut.apply(u, v);
                }
                Some(Step::Join { member, edges }) => {
                    ordering.edges.extend(edges);
                    cut.remove(member);
                }
                None => break,
            }
            if cut.remaining_size() <= lever.target || ordering.edges.len() >= lever.limit {
                break;
            }
            reach = Reachability::new(graph, &ordering.edges)?;
        }
        if ordering.edges.len() == before {
            break;
        }
    }
    Ok(ordering)
}

fn buffer(graph: &Graph, block: &Block) -> Buffer {
    Buffer {
        id: graph.tensors()[block.root].id,
        lower: block.lifetime.lower,
        upper: block.lifetime.upper,
        size: block.size,
        alignment: block.alignment,
    }
}

/// Longest paths that end and that begin at each operator, its own cost included.
struct Depths {
    head: Vec<u64>,
    tail: Vec<u64>,
    longest: u64,
}

impl Depths {
    /// `order` is a topological order of the graph with the edges, or nearly so while a round adds
    /// edges.
    fn new(graph: &Graph, edges: &[(usize, usize)], order: &[usize]) -> Self {
        let n = graph.ops().len();
        let mut before: Vec<Vec<usize>> = (0..n).map(|op| graph.predecessors(op)).collect();
        for (op, before) in before.iter_mut().enumerate() {
            before.retain(|&other| other < op);
        }
        for &(u, v) in edges {
            before[v].push(u);
        }
        let mut head = alloc::vec![0_u64; n];
        let mut tail = alloc::vec![0_u64; n];
        for &v in order {
            let longest = before[v].iter().map(|&u| head[u]).max().unwrap_or(0);
            head[v] = longest.saturating_add(graph.ops()[v].cost);
        }
        for &v in order.iter().rev() {
            tail[v] = tail[v].saturating_add(graph.ops()[v].cost);
            for &u in &before[v] {
                tail[u] = tail[u].max(tail[v]);
            }
        }
        let longest = head.iter().copied().max().unwrap_or(0);
        Self { head, tail, longest }
    }
}

/// Which edges a step may use.
#[derive(Clone, Copy)]
struct Rule {
    /// Maximum length of a path.
    budget: Option<u64>,
    /// Only edges in processing order.
    forward: bool,
}

impl Rule {
    fn allows(&self, u: usize, v: usize) -> bool {
        !self.forward || u < v
    }
}

/// One step against an antichain.
enum Step {
    /// One edge.
    Single((usize, usize)),
    /// All last accesses of one member before all first accesses of another; the lighter of the two
    /// leaves the antichain.
    Join { member: usize, edges: Vec<(usize, usize)> },
}

/// The separation of one antichain by each operator.
struct Cut {
    first: Vec<Vec<usize>>,
    last: Vec<Vec<usize>>,
    sizes: Vec<u64>,
    /// For each member, the operators by which it is complete.
    completes: Vec<Vec<usize>>,
    /// For each member, the operators at or after which it begins.
    begins: Vec<Vec<usize>>,
    /// Bytes complete by each operator.
    before: Vec<u64>,
    /// Bytes that begin at or after each operator.
    after: Vec<u64>,
}

impl Cut {
    fn new(graph: &Graph, reach: &Reachability, set: &[&Block]) -> Self {
        let n = graph.ops().len();
        let mut cut = Self {
            first: set.iter().map(|block| first_accesses(block, reach)).collect(),
            last: set
                .iter()
                .map(|block| if block.to_end { Vec::new() } else { last_accesses(block, reach) })
                .collect(),
            sizes: set.iter().map(|block| block.size).collect(),
            completes: Vec::with_capacity(set.len()),
            begins: Vec::with_capacity(set.len()),
            before: alloc::vec![0; n],
            after: alloc::vec![0; n],
        };
        for (first, last) in cut.first.iter().zip(&cut.last) {
            cut.completes.push(complete_by(last, reach));
            let covers = |op: &usize| first.iter().all(|&begin| begin == *op || reach.precedes(*op, begin));
            let ops = if first.is_empty() { 0..0 } else { 0..n };
            cut.begins.push(ops.filter(covers).collect());
        }
        for (k, &size) in cut.sizes.iter().enumerate() {
            for &op in &cut.completes[k] {
                cut.before[op] += size;
            }
            for &op in &cut.begins[k] {
                cut.after[op] += size;
            }
        }
        cut
    }

    /// The edge that removes most from the antichain. Of equal edges, the one that waits for the
    /// latest end, which moves early unneeded work to its use.
    fn best_edge(&self, reach: &Reachability, depths: &Depths, rule: &Rule) -> Option<(usize, usize)> {
        /// Operators tried for each `v`, latest first: complete bytes grow with time, so the first
        /// ones are usually best.
        const TRIES: usize = 256;
        let ops = |side: &[u64]| (0..side.len()).filter(|&op| side[op] > 0).collect::<Vec<_>>();
        let (mut earlier, mut successors) = (ops(&self.before), ops(&self.after));
        sort::by_key(&mut earlier, |op| (Reverse(depths.head[op]), Reverse(self.before[op]), op));
        sort::by_key(&mut successors, |op| (Reverse(self.after[op]), Reverse(depths.head[op]), op));
        let mut best: Option<(u64, u64, usize, usize)> = None;
        for &v in &successors {
            if best.is_some_and(|(gain, ..)| self.after[v] < gain) {
                break;
            }
            let latest = rule.budget.map_or(u64::MAX, |budget| budget.saturating_sub(depths.tail[v]));
            let from = earlier.partition_point(|&u| depths.head[u] > latest);
            for &u in earlier[from..].iter().filter(|&&u| rule.allows(u, v)).take(TRIES) {
                let gain = self.before[u].min(self.after[v]);
                let better = best.is_none_or(|(most, head, ..)| (gain, depths.head[u]) > (most, head));
                if better && u != v && !reach.precedes(u, v) && !reach.precedes(v, u) {
                    best = Some((gain, depths.head[u], u, v));
                    if gain == self.after[v] {
                        break;
                    }
                }
            }
        }
        best.map(|(_, _, u, v)| (u, v))
    }

    /// Removes the lighter side of an edge from the antichain.
    fn apply(&mut self, u: usize, v: usize) {
        let side = if self.before[u] < self.after[v] { &self.completes } else { &self.begins };
        let at = if self.before[u] < self.after[v] { u } else { v };
        let removals: Vec<usize> = (0..self.sizes.len()).filter(|&k| side[k].contains(&at)).collect();
        for k in removals {
            self.remove(k);
        }
    }

    fn remove(&mut self, k: usize) {
        for op in core::mem::take(&mut self.completes[k]) {
            self.before[op] -= self.sizes[k];
        }
        for op in core::mem::take(&mut self.begins[k]) {
            self.after[op] -= self.sizes[k];
        }
        self.sizes[k] = 0;
    }

    /// Two members that several edges can order: if a tensor has several last users, no single edge
    /// frees it. The greatest gain counts, then the fewest edges.
    fn best_join(&self, reach: &Reachability, depths: &Depths, rule: &Rule, room: usize) -> Option<Step> {
        let mut best: Option<(u64, Reverse<usize>, usize, usize)> = None;
        let mut live: Vec<usize> = (0..self.sizes.len()).filter(|&k| self.sizes[k] > 0).collect();
        sort::by_key(&mut live, |k| (Reverse(self.sizes[k]), k));
        for (rank, &a) in live.iter().enumerate() {
            for &b in &live[rank + 1..] {
                let gain = self.sizes[b];
                if best.is_some_and(|(most, ..)| gain < most) {
                    break;
                }
                for (x, y) in [(a, b), (b, a)] {
                    let (ends, begins) = (&self.last[x], &self.first[y]);
                    let edges = ends.len() * begins.len();
                    let is_allowed = |u: usize, v: usize| {
                        let length = depths.head[u].saturating_add(depths.tail[v]);
                        let short = rule.budget.is_none_or(|budget| length <= budget);
                        u != v
                            && rule.allows(u, v)
                            && !reach.precedes(v, u)
                            && (short || reach.precedes(u, v))
                    };
                    let fits = edges > 0
                        && edges <= room
                        && ends.iter().all(|&u| begins.iter().all(|&v| is_allowed(u, v)));
                    if fits && best.is_none_or(|(most, fewest, ..)| (gain, Reverse(edges)) > (most, fewest)) {
                        best = Some((gain, Reverse(edges), x, y));
                    }
                }
            }
        }
        let (_, _, x, y) = best?;
        let mut edges = Vec::new();
        for &u in &self.last[x] {
            edges.extend(self.first[y].iter().filter(|&&v| !reach.precedes(u, v)).map(|&v| (u, v)));
        }
        let member = if self.sizes[x] < self.sizes[y] { x } else { y };
        Some(Step::Join { member, edges })
    }

    fn remaining_size(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

/// Operators at which a block with these last accesses is complete: those that follow all of them,
/// or the only one.
fn complete_by(last: &[usize], reach: &Reachability) -> Vec<usize> {
    let Some(&any) = last.first() else { return Vec::new() };
    let covers = |op: &usize| last.iter().all(|&end| end == *op || reach.precedes(end, *op));
    core::iter::once(any).chain(set_bits(reach.row(any))).filter(covers).collect()
}
