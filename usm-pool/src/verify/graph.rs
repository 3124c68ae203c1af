//! Checks a plan against the operator graph: the content that an operator reads must exist, in
//! every order that the queue allows.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Violation;
use super::live_ranges::LiveRanges;
use super::sweep::events;
use crate::dependency::Queue;
use crate::graph::{Graph, TensorKind};
use crate::plan::{Memory, Row};

/// Address range of a tensor in one memory.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) memory: crate::plan::Memory,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Range {
    fn overlaps(self, other: Self) -> bool {
        self.memory == other.memory && self.low.max(other.low) < self.high.min(other.high)
    }
}

/// Checks the rows of a plan for a graph on a queue, with `edges` (earlier, later) enforced beside
/// the data dependencies. For an in-order queue it simulates the operators and compares every write
/// with all reads still to come. For an out-of-order queue all accesses of tensors that share bytes
/// must be ordered by paths.
///
/// # Errors
/// The first [`Violation`] found.
pub fn graph(graph: &Graph, queue: Queue, edges: &[(usize, usize)], rows: &[Row]) -> Result<(), Violation> {
    let ranges = ranges(graph, rows)?;
    let n = graph.ops().len();
    let is_reverse = |earlier: usize, successor: usize| queue == Queue::InOrder && earlier >= successor;
    for &(earlier, later) in edges {
        if earlier >= n || later >= n || is_reverse(earlier, later) {
            return Err(Violation::OrderingEdge { earlier, later });
        }
    }
    match queue {
        Queue::InOrder => in_order(graph, &ranges),
        Queue::OutOfOrder => out_of_order(graph, edges, &ranges),
    }
}

/// One range for each placed tensor, after the checks of single rows.
fn ranges(graph: &Graph, rows: &[Row]) -> Result<Vec<Option<Range>>, Violation> {
    let mut ranges: Vec<Option<Range>> = graph.tensors().iter().map(|_| None).collect();
    for row in rows {
        let id = row.id;
        let tensor = graph.tensor_index(id).ok_or(Violation::Missing { id })?;
        let node = &graph.tensors()[tensor];
        if node.kind != TensorKind::Activation || ranges[tensor].is_some() {
            return Err(Violation::Missing { id });
        }
        if row.size != node.size {
            return Err(Violation::Misplaced { id, offset: row.size, expected: node.size });
        }
        if row.offset % node.alignment != 0 {
            return Err(Violation::Misaligned { id, offset: row.offset, alignment: node.alignment });
        }
        let high = row.offset.checked_add(row.size);
        let high =
            high.ok_or(Violation::Outside { id, offset: row.offset, size: row.size, capacity: u64::MAX })?;
        ranges[tensor] = Some(Range { memory: row.memory, low: row.offset, high });
    }
    for (tensor, node) in graph.tensors().iter().enumerate() {
        match (node.kind, ranges[tensor], ranges[node.root]) {
            (TensorKind::Activation, Some(mine), Some(root)) => {
                let expected = root.low.saturating_add(node.root_offset);
                if mine.low != expected || mine.memory != root.memory {
                    return Err(Violation::Misplaced { id: node.id, offset: mine.low, expected });
                }
            }
            (TensorKind::Activation, ..) => return Err(Violation::Missing { id: node.id }),
            _ => {}
        }
    }
    Ok(ranges)
}

/// Whether `op` may write `output` over `input`, by addresses and permits.
fn is_permitted(graph: &Graph, ranges: &[Option<Range>], op: usize, input: usize, output: usize) -> bool {
    let (Some(from), Some(to)) = (ranges[input], ranges[output]) else {
        return false;
    };
    graph.ops()[op].in_place.contains(&(input, output)) && from.low == to.low && to.high <= from.high
}

fn in_order(graph: &Graph, ranges: &[Option<Range>]) -> Result<(), Violation> {
    let tensors = graph.tensors();
    // Ranges that may still be read, so that a write is compared with few.
    let mut live_ranges = LiveRanges::default();
    for (tensor, node) in tensors.iter().enumerate() {
        let (true, Some(range)) = (exists_before_run(graph, node.root), ranges[tensor]) else { continue };
        // The caller filled them before the run, in no defined order.
        if let Some(holder) = live_ranges.overlapping(range).find(|&holder| tensors[holder].root != node.root)
        {
            return Err(overlap(graph, holder, tensor, ranges));
        }
        live_ranges.insert(tensor, range, last_read(graph, tensor));
    }
    let mut loop_entries: Vec<(usize, usize)> =
        (0..tensors.len()).filter_map(|tensor| Some((loop_entry(graph, tensor)?, tensor))).collect();
    loop_entries.sort_unstable();
    let mut loop_entries = loop_entries.into_iter().peekable();
    for (op, node) in graph.ops().iter().enumerate() {
        live_ranges.forget_before(op, ranges);
        while let Some((_, tensor)) = loop_entries.next_if(|&(entry, _)| entry == op) {
            let Some(range) = ranges[tensor] else { continue };
            let root = tensors[tensor].root;
            if let Some(holder) = live_ranges.overlapping(range).find(|&holder| tensors[holder].root != root)
            {
                let (reader, writer) = (tensors[holder].id, tensors[tensor].id);
                return Err(Violation::Overwritten { op, reader, writer });
            }
            live_ranges.insert(tensor, range, last_read(graph, tensor).max(op));
        }
        let mut writes = LiveRanges::default();
        for &output in &node.outputs {
            let Some(range) = ranges[output] else {
                continue;
            };
            let foreign = |other: &usize| tensors[*other].root != tensors[output].root;
            // Most operators have one output.
            if node.outputs.len() > 1 {
                if let Some(other) = writes.overlapping(range).find(foreign) {
                    return Err(overlap(graph, other, output, ranges));
                }
                writes.insert(output, range, op);
            }
            for holder in live_ranges.overlapping(range).filter(foreign) {
                // A permit covers one input: every other input under the output needs its own.
                let is_permitted = is_permitted(graph, ranges, op, holder, output);
                let reader = pending_read(graph, holder, op, is_permitted);
                if let Some(reader) = reader {
                    return Err(Violation::Overwritten {
                        op: reader,
                        reader: tensors[holder].id,
                        writer: tensors[output].id,
                    });
                }
            }
        }
        for &output in &node.outputs {
            if ranges[output].is_none() {
                continue;
            }
            // A write also fills the views of these bytes, including views that an operator makes
            // later: such an operator writes nothing.
            for &member in graph.family(tensors[output].root) {
                let gets_content = member == output || !is_written(graph, member);
                if let (true, Some(range)) = (gets_content, ranges[member]) {
                    live_ranges.insert(member, range, last_read(graph, member).max(op));
                }
            }
        }
    }
    Ok(())
}

/// Whether the bytes of a root exist before the first operator.
fn exists_before_run(graph: &Graph, root: usize) -> bool {
    let family = || graph.family(root).iter().map(|&member| &graph.tensors()[member]);
    let written_first = family().filter_map(|member| member.producer).min();
    let read_first = family().filter_map(|member| member.users.first().copied()).min();
    match (written_first, read_first) {
        (None, _) => true,
        (Some(write), Some(read)) => read <= write && graph.tensors()[root].producer.is_none(),
        (Some(_), None) => false,
    }
}

/// Operators that write bytes of the tensor: its own writer, otherwise the writers of its base.
fn writers(graph: &Graph, tensor: usize) -> impl Iterator<Item = usize> + '_ {
    let node = &graph.tensors()[tensor];
    let own = is_written(graph, tensor);
    let family = graph.family(node.root).iter().copied();
    family.filter(move |&member| !own || member == tensor).filter_map(move |member| {
        let under = &graph.tensors()[member];
        let shares = under.root_offset.max(node.root_offset)
            < (under.root_offset + under.size).min(node.root_offset + node.size);
        under.producer.filter(|_| shares && is_written(graph, member))
    })
}

/// Whether these operators alone write all bytes of the tensor.
fn is_filled(graph: &Graph, tensor: usize, by: impl Fn(&usize) -> bool) -> bool {
    let tensors = graph.tensors();
    let (mut position, end) =
        (tensors[tensor].root_offset, tensors[tensor].root_offset + tensors[tensor].size);
    let ranges = || {
        let family = graph.family(tensors[tensor].root).iter().copied();
        let members =
            family.filter(|&m| is_written(graph, m) && tensors[m].producer.is_some_and(|op| by(&op)));
        members.map(|m| (tensors[m].root_offset, tensors[m].root_offset + tensors[m].size))
    };
    while let Some(next) =
        ranges().filter(|&(low, high)| low <= position && position < high).map(|(_, high)| high).max()
    {
        position = next;
    }
    position >= end
}

/// Whether an operator writes the tensor: it has a byte that the operator does not read in the same
/// block. Otherwise the operator makes a view and writes nothing.
pub(super) fn is_written(graph: &Graph, tensor: usize) -> bool {
    let tensors = graph.tensors();
    let node = &tensors[tensor];
    let Some(op) = node.producer else { return false };
    let same = || graph.ops()[op].inputs.iter().map(|&t| &tensors[t]).filter(|input| input.root == node.root);
    let (mut position, end) = (node.root_offset, node.root_offset + node.size);
    // Each step passes the end of a range that has the byte.
    while let Some(next) = same()
        .filter(|input| input.root_offset <= position && position < input.root_offset + input.size)
        .map(|input| input.root_offset + input.size)
        .max()
    {
        position = next;
    }
    same().next().is_none() || position < end
}

/// The first operator of the loop that carries the tensor to the next iteration: its first content
/// comes from there.
fn loop_entry(graph: &Graph, tensor: usize) -> Option<usize> {
    let node = &graph.tensors()[tensor];
    let producer = node.producer?;
    let carries = |&&(first, last): &&(usize, usize)| {
        let read_first = node.users.iter().any(|&user| first <= user && user <= producer);
        first <= producer && producer <= last && read_first
    };
    graph.loops().iter().filter(carries).map(|&(first, _)| first).min()
}

/// Last operator that may read the tensor; `usize::MAX` for the caller.
fn last_read(graph: &Graph, tensor: usize) -> usize {
    let node = &graph.tensors()[tensor];
    if node.is_output {
        return usize::MAX;
    }
    let mut last = node.users.last().copied().unwrap_or(0);
    for &(first, end) in graph.loops() {
        if node.users.iter().any(|&user| first <= user && user <= end) {
            last = last.max(end);
        }
    }
    last
}

/// An operator that reads `tensor` after `op` has overwritten it: a later one, `op` itself unless
/// it may work in place, or an earlier one in a loop's next iteration. The number of operators
/// means the caller.
fn pending_read(graph: &Graph, tensor: usize, op: usize, in_place: bool) -> Option<usize> {
    let node = &graph.tensors()[tensor];
    if node.is_output {
        return Some(graph.ops().len());
    }
    let later_read = node.users.iter().copied().find(|&user| user > op || (user == op && !in_place));
    let next_iteration = || {
        graph.loops().iter().find_map(|&(first, last)| {
            if op < first || op > last {
                return None;
            }
            let fresh = |user: usize| {
                let before = |writer: &usize| first <= *writer && *writer < user;
                let mut writers = writers(graph, tensor).peekable();
                // Content from before the run counts if the operators write only a part.
                let all = (is_written(graph, tensor) || !exists_before_run(graph, node.root))
                    && writers.peek().is_some()
                    && writers.all(|writer| before(&writer));
                all || is_filled(graph, tensor, before)
            };
            node.users.iter().copied().find(|&user| first <= user && user <= last && !fresh(user))
        })
    };
    later_read.or_else(next_iteration)
}

fn overlap(graph: &Graph, first: usize, second: usize, ranges: &[Option<Range>]) -> Violation {
    let low = |tensor: usize| ranges[tensor].map_or(0, |range| range.low);
    let id = |tensor: usize| graph.tensors()[tensor].id;
    Violation::Overlap { first: id(first), second: id(second), offset: low(first).max(low(second)) }
}

/// One pass over the addresses. Roots that hold the same byte must be consecutive in time. That
/// relation is transitive, so a new root is only compared with its neighbours in time.
fn out_of_order(graph: &Graph, edges: &[(usize, usize)], ranges: &[Option<Range>]) -> Result<(), Violation> {
    let tensors = graph.tensors();
    let order = Paths::new(graph, edges)?;
    let accesses: Vec<Accesses> = (0..tensors.len()).map(|tensor| Accesses::of(graph, tensor)).collect();
    let in_memory = |memory: Memory| {
        let roots = (0..tensors.len()).filter(|&i| tensors[i].alias.is_none() && tensors[i].size > 0);
        let placements =
            roots.filter_map(move |i| Some((i, ranges[i].filter(|range| range.memory == memory)?)));
        events(tensors.len(), placements.map(|(i, range)| (i, (range.low, range.high))))
    };
    let mut live_roots: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    let mut all: Vec<Memory> = Vec::new();
    for range in ranges.iter().flatten() {
        if !all.contains(&range.memory) {
            all.push(range.memory);
        }
    }
    for (begins, root) in all.into_iter().flat_map(in_memory) {
        // A root that is complete first has begun first; an operator in place ends one root and
        // begins the other.
        let place = |op: &usize| order.position[*op] + 1;
        let all = || accesses[root].ops.iter().map(place);
        let first = if accesses[root].before_run { 0 } else { all().min().unwrap_or(0) };
        let key = (first, all().max().unwrap_or(0), root);
        if !begins {
            live_roots.remove(&key);
            continue;
        }
        let is_complete_before = |x: usize, y: usize| {
            accesses[x].completes_before(&accesses[y], &order, |op| works_in_place(graph, ranges, op, x, y))
        };
        // A root whose only operator works in place on both sides does not separate its neighbours.
        let says_nothing = |x: usize| matches!(accesses[x].ops[..], [op] if accesses[root].ops.contains(&op));
        let before =
            first_not_apart(live_roots.range(..key).rev(), |x| is_complete_before(x, root), says_nothing);
        let after = first_not_apart(live_roots.range(key..), |x| is_complete_before(root, x), says_nothing);
        if let Some(other) = before.or(after) {
            return Err(overlap(graph, other, root, ranges));
        }
        live_roots.insert(key);
    }
    Ok(())
}

/// The first of these roots that is not apart, up to one that separates all roots behind it.
fn first_not_apart<'h>(
    mut live_roots: impl Iterator<Item = &'h (usize, usize, usize)>,
    is_apart: impl Fn(usize) -> bool,
    says_nothing: impl Fn(usize) -> bool,
) -> Option<usize> {
    live_roots.find_map(|&(_, _, x)| match is_apart(x) {
        false => Some(Some(x)),
        true if says_nothing(x) => None,
        true => Some(None),
    })?
}

/// Whether `op`, which uses the roots `x` and `y` and their views, may write its outputs in `y`
/// over its inputs in `x`. It needs a permit for every such pair with common bytes, and must not
/// write bytes of both.
fn works_in_place(graph: &Graph, ranges: &[Option<Range>], op: usize, x: usize, y: usize) -> bool {
    let node = &graph.ops()[op];
    let of = |tensors: &[usize], root: usize| -> Vec<usize> {
        tensors.iter().copied().filter(|&tensor| graph.tensors()[tensor].root == root).collect()
    };
    let overlaps = |a: usize, b: usize| match (ranges[a], ranges[b]) {
        (Some(a), Some(b)) => a.overlaps(b),
        _ => false,
    };
    let is_in_loop = graph.loops().iter().any(|&(first, last)| first <= op && op <= last);
    !is_in_loop
        && of(&node.outputs, y).into_iter().all(|output| {
            of(&node.inputs, x)
                .into_iter()
                .all(|input| !overlaps(input, output) || is_permitted(graph, ranges, op, input, output))
                && !of(&node.outputs, x).into_iter().any(|other| overlaps(other, output))
        })
}

/// The accesses to a root and its views.
pub(super) struct Accesses {
    pub(super) ops: Vec<usize>,
    /// The operators after which the bytes are free: `ops`, and the whole body of a loop that
    /// accesses them, because iterations may overlap.
    until: Vec<usize>,
    pub(super) before_run: bool,
    pub(super) after_run: bool,
}

impl Accesses {
    pub(super) fn of(graph: &Graph, root: usize) -> Self {
        let mut accesses = Self { ops: Vec::new(), until: Vec::new(), before_run: true, after_run: false };
        let (mut write, mut read) = (usize::MAX, usize::MAX);
        for &member in graph.family(root) {
            let node = &graph.tensors()[member];
            accesses.after_run |= node.is_output;
            write = write.min(node.producer.unwrap_or(usize::MAX));
            read = read.min(node.users.first().copied().unwrap_or(usize::MAX));
            accesses.ops.extend(node.users.iter().copied().chain(node.producer));
        }
        accesses.before_run =
            write == usize::MAX || (graph.tensors()[root].producer.is_none() && read <= write);
        accesses.ops.sort_unstable();
        accesses.ops.dedup();
        accesses.until.clone_from(&accesses.ops);
        for &(first, last) in graph.loops() {
            if accesses.ops.iter().any(|&op| first <= op && op <= last) {
                accesses.until.extend(first..=last);
            }
        }
        accesses
    }

    /// Whether every access is strictly before every access of `other`, or both are by one operator
    /// for which `in_place` is true.
    fn completes_before(&self, other: &Self, order: &Paths, in_place: impl Fn(usize) -> bool) -> bool {
        let fits = |a: usize, b: usize| if a == b { in_place(a) } else { order.path(a, b) };
        !self.after_run
            && !other.before_run
            && !self.ops.is_empty()
            && !other.ops.is_empty()
            && self.until.iter().all(|&a| other.ops.iter().all(|&b| fits(a, b)))
    }
}

/// Ancestors of every operator, one bit each.
struct Paths {
    ancestors: Vec<Vec<u64>>,
    /// The position of each operator in an order that all paths respect.
    position: Vec<usize>,
}

impl Paths {
    /// The paths along data and `edges`. Edges may go against the processing order but close no
    /// cycle.
    fn new(graph: &Graph, edges: &[(usize, usize)]) -> Result<Self, Violation> {
        let n = graph.ops().len();
        let mut direct: Vec<Vec<usize>> = (0..n).map(|op| data_before(graph, op)).collect();
        for &(earlier, later) in edges {
            direct[later].push(earlier);
        }
        let mut after: Vec<Vec<usize>> = alloc::vec![Vec::new(); n];
        let mut waits: Vec<usize> = direct.iter().map(Vec::len).collect();
        for (op, before) in direct.iter().enumerate() {
            for &before in before {
                after[before].push(op);
            }
        }
        let mut ancestors = alloc::vec![Vec::new(); n];
        let mut position = alloc::vec![0; n];
        let mut count = 0;
        let mut ready: Vec<usize> = (0..n).filter(|&op| waits[op] == 0).collect();
        while let Some(op) = ready.pop() {
            let mut mine = alloc::vec![0_u64; n.div_ceil(64)];
            for &before in &direct[op] {
                mine[before / 64] |= 1 << (before % 64);
                for (word, theirs) in mine.iter_mut().zip(&ancestors[before]) {
                    *word |= theirs;
                }
            }
            ancestors[op] = mine;
            position[op] = count;
            count += 1;
            for &next in &after[op] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            }
        }
        // The remaining operators wait for themselves by way of an edge: data alone only goes
        // forward.
        let is_stuck = |&&(earlier, successor): &&(usize, usize)| waits[earlier] > 0 && waits[successor] > 0;
        match edges.iter().find(is_stuck) {
            Some(&(earlier, later)) => Err(Violation::OrderingEdge { earlier, later }),
            None => Ok(Self { ancestors, position }),
        }
    }

    fn path(&self, from: usize, to: usize) -> bool {
        self.ancestors
            .get(to)
            .and_then(|row| row.get(from / 64))
            .is_some_and(|word| word >> (from % 64) & 1 == 1)
    }
}

/// The operators before `op` whose results it reads, that write bytes which it reads or writes, or
/// that read bytes which it writes, with repetitions.
pub(super) fn data_before(graph: &Graph, op: usize) -> Vec<usize> {
    let tensors = graph.tensors();
    let meets = |a: usize, b: usize| {
        let (a, b) = (&tensors[a], &tensors[b]);
        a.root_offset.max(b.root_offset) < (a.root_offset + a.size).min(b.root_offset + b.size)
    };
    let node = &graph.ops()[op];
    let mut mine: Vec<usize> = Vec::new();
    for &input in &node.inputs {
        mine.extend(tensors[input].producer);
        let under = graph.family(tensors[input].root).iter().filter(|&&member| meets(member, input));
        mine.extend(under.filter(|&&member| is_written(graph, member)).filter_map(|&m| tensors[m].producer));
    }
    for &output in node.outputs.iter().filter(|&&output| is_written(graph, output)) {
        for &member in graph.family(tensors[output].root).iter().filter(|&&member| meets(member, output)) {
            let writer = tensors[member].producer.filter(|_| is_written(graph, member));
            mine.extend(tensors[member].users.iter().copied().chain(writer));
        }
    }
    mine.retain(|&before| before < op);
    mine
}
