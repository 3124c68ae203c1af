//! Who uses which bytes, and what is live after a set of operators.

use alloc::vec::Vec;

use crate::graph::{Graph, TensorKind};
use crate::verify::Violation;
use crate::verify::graph::{Accesses, data_before};

/// The bytes of a root and its views.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    /// Size, rounded up to the alignment that all have.
    pub(super) room: u64,
    /// What the topmost leaves free of it.
    pub(super) spare: u64,
    pub(super) users: Vec<usize>,
    pub(super) before_run: bool,
    pub(super) after_run: bool,
}

/// A permit: bytes that end, and bytes that begin over them.
#[derive(Clone, Copy, Debug)]
struct Permit {
    ends: usize,
    begins: usize,
}

/// A graph as the checker sees it.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) before: Vec<Vec<usize>>,
    pub(super) after: Vec<Vec<usize>>,
    pub(super) bytes: Vec<Bytes>,
    /// For each operator the bytes that it uses.
    uses: Vec<Vec<usize>>,
    permits: Vec<Vec<Permit>>,
    /// For each operator whether nothing can end with it: the caller or a direct successor uses all
    /// that it uses.
    pub(super) only_adds: Vec<bool>,
    /// Those of the bytes that have spare ones, the most first.
    spare_first: Vec<usize>,
}

impl Table {
    pub(super) fn of(graph: &Graph) -> Result<Self, Violation> {
        let (n, tensors) = (graph.ops().len(), graph.tensors());
        let mut table = Self {
            before: (0..n).map(|op| data_before(graph, op)).collect(),
            after: alloc::vec![Vec::new(); n],
            bytes: Vec::new(),
            uses: alloc::vec![Vec::new(); n],
            permits: alloc::vec![Vec::new(); n],
            only_adds: Vec::new(),
            spare_first: Vec::new(),
        };
        for (op, before) in table.before.iter_mut().enumerate() {
            before.sort_unstable();
            before.dedup();
            before.iter().for_each(|&earlier| table.after[earlier].push(op));
        }
        let mut number = alloc::vec![usize::MAX; tensors.len()];
        let mut unit = u64::MAX;
        for (root, node) in tensors.iter().enumerate() {
            if node.alias.is_some() || node.kind != TensorKind::Activation || node.size == 0 {
                continue;
            }
            let Accesses { ops: users, before_run, after_run, .. } = Accesses::of(graph, root);
            // Where a read may come first in some orders only, its own life begins with it.
            let has_writer = graph.family(root).iter().any(|&member| tensors[member].producer.is_some());
            let before_run = before_run && !has_writer;
            if users.is_empty() && !(before_run && after_run) {
                continue;
            }
            number[root] = table.bytes.len();
            unit = unit.min(node.alignment);
            users.iter().for_each(|&op| table.uses[op].push(table.bytes.len()));
            table.bytes.push(Bytes { room: node.size, spare: 0, users, before_run, after_run });
        }
        let mut sum = 0_u64;
        for bytes in &mut table.bytes {
            let room = bytes.room.checked_next_multiple_of(unit);
            let total = room.and_then(|room| sum.checked_add(room));
            let (Some(room), Some(total)) = (room, total) else { return Err(Violation::OrderTooLarge) };
            (bytes.spare, bytes.room, sum) = (room - bytes.room, room, total);
        }
        table.spare_first = (0..table.bytes.len()).filter(|&at| table.bytes[at].spare > 0).collect();
        table.spare_first.sort_by_key(|&at| core::cmp::Reverse(table.bytes[at].spare));
        for op in 0..n {
            for &(input, output) in &graph.ops()[op].in_place {
                let (from, to) = (number[tensors[input].root], number[tensors[output].root]);
                if from == usize::MAX || to == usize::MAX || !may_lie_over(graph, op, input, output) {
                    continue;
                }
                table.permits[op].push(Permit { ends: from, begins: to });
            }
        }
        table.only_adds = (0..n).map(|op| table.adds(op)).collect();
        Ok(table)
    }

    pub(super) fn has_permits(&self) -> bool {
        self.permits.iter().any(|permits| !permits.is_empty())
    }

    fn adds(&self, op: usize) -> bool {
        let after = &self.after[op];
        let used_again =
            |at: &usize| after.iter().any(|next| self.bytes[*at].users.binary_search(next).is_ok());
        !after.is_empty() && self.uses[op].iter().all(|at| self.bytes[*at].after_run || used_again(at))
    }

    /// The same with time backwards.
    pub(super) fn reverse(&self) -> Self {
        let mut reverse = self.clone();
        core::mem::swap(&mut reverse.before, &mut reverse.after);
        for bytes in &mut reverse.bytes {
            core::mem::swap(&mut bytes.before_run, &mut bytes.after_run);
        }
        for permit in reverse.permits.iter_mut().flatten() {
            core::mem::swap(&mut permit.ends, &mut permit.begins);
        }
        reverse.only_adds = (0..reverse.after.len()).map(|op| reverse.adds(op)).collect();
        reverse
    }

    /// Bytes that are live before the whole run or after it, the larger.
    pub(super) fn bytes_at_an_end(&self) -> u64 {
        let sum = |live: fn(&Bytes) -> bool| {
            let mut spare = 0;
            let rooms = self.bytes.iter().filter(|bytes| live(bytes)).map(|bytes| {
                spare = spare.max(bytes.spare);
                bytes.room
            });
            rooms.sum::<u64>() - spare
        };
        sum(|bytes| bytes.before_run).max(sum(|bytes| bytes.after_run))
    }

    /// Bytes that are live at an operator in every order.
    pub(super) fn bytes_in_every_order(&self, op: usize) -> u64 {
        let (ancestors, descendants) = (find_reachable(&self.before, op), find_reachable(&self.after, op));
        let live = |bytes: &&Bytes| {
            let has_begun = bytes.before_run || bytes.users.iter().any(|&user| user == op || ancestors[user]);
            let open = bytes.after_run || bytes.users.iter().any(|&user| user == op || descendants[user]);
            has_begun && open
        };
        let live = || self.bytes.iter().filter(live);
        let savings = self.count_savings(op, |permit| {
            let ends = self.bytes[permit.ends].users.iter().all(|&user| !descendants[user]);
            ends && self.bytes[permit.begins].users.iter().all(|&user| !ancestors[user])
        });
        let sum: u64 = live().map(|bytes| bytes.room).sum();
        sum.saturating_sub(savings).saturating_sub(live().map(|bytes| bytes.spare).max().unwrap_or(0))
    }

    /// The most that permits of an operator save, of those that are possible: a flow from the bytes
    /// that end to the bytes that begin, through each at most its size.
    fn count_savings(&self, op: usize, possible: impl Fn(&Permit) -> bool) -> u64 {
        let permits: Vec<Permit> = self.permits[op].iter().copied().filter(possible).collect();
        let mut flow = alloc::vec![0_u64; permits.len()];
        let mut sum = 0;
        let room = |at: usize, used: u64| self.bytes[at].room - used;
        loop {
            let out = |at: usize| {
                (0..permits.len()).filter(|&k| permits[k].ends == at).map(|k| flow[k]).sum::<u64>()
            };
            let into =
                |at: usize| (0..permits.len()).filter(|&k| permits[k].begins == at).map(|k| flow[k]).sum();
            // The permit by which each permit was reached, from those with room at their beginning.
            let mut from: Vec<Option<usize>> = alloc::vec![None; permits.len()];
            let mut open: Vec<usize> = Vec::new();
            for k in 0..permits.len() {
                if room(permits[k].ends, out(permits[k].ends)) > 0 {
                    from[k] = Some(k);
                    open.push(k);
                }
            }
            let mut at = 0;
            let mut end = None;
            while let Some(&k) = open.get(at) {
                at += 1;
                if room(permits[k].begins, into(permits[k].begins)) > 0 {
                    end = Some(k);
                    break;
                }
                // Another permit's flow into the same bytes may take another way from its source.
                for back in
                    (0..permits.len()).filter(|&b| permits[b].begins == permits[k].begins && flow[b] > 0)
                {
                    for next in
                        (0..permits.len()).filter(|&n| permits[n].ends == permits[back].ends && n != back)
                    {
                        if from[next].is_none() {
                            from[next] = Some(k);
                            open.push(next);
                        }
                    }
                }
            }
            let Some(mut k) = end else { return sum };
            let mut way = alloc::vec![k];
            while let Some(earlier) = from[k].filter(|&earlier| earlier != k) {
                way.push(earlier);
                k = earlier;
            }
            way.reverse();
            // Between two permits of the way, the flow that is taken back.
            let backs: Vec<usize> = way
                .windows(2)
                .filter_map(|pair| {
                    (0..permits.len()).find(|&b| {
                        permits[b].begins == permits[pair[0]].begins
                            && permits[b].ends == permits[pair[1]].ends
                            && flow[b] > 0
                    })
                })
                .collect();
            let first = room(permits[way[0]].ends, out(permits[way[0]].ends));
            let last = permits[way[way.len() - 1]].begins;
            let more = backs.iter().map(|&b| flow[b]).fold(first.min(room(last, into(last))), u64::min);
            way.iter().for_each(|&k| flow[k] += more);
            backs.iter().for_each(|&b| flow[b] -= more);
            sum += more;
        }
    }
}

/// The operators that a path from `op` along the lists reaches.
fn find_reachable(lists: &[Vec<usize>], op: usize) -> Vec<bool> {
    let mut is_reached = alloc::vec![false; lists.len()];
    let mut open = alloc::vec![op];
    while let Some(op) = open.pop() {
        for &next in &lists[op] {
            if !is_reached[next] {
                is_reached[next] = true;
                open.push(next);
            }
        }
    }
    is_reached
}

/// Whether some plan of some order has the output over the input: it fits, the caller does not read
/// the input's root, the output's root begins with it, and the operator neither reads nor writes
/// other bytes there without a permit.
fn may_lie_over(graph: &Graph, op: usize, input: usize, output: usize) -> bool {
    let tensors = graph.tensors();
    let (from, to) = (&tensors[input], &tensors[output]);
    let is_output = |&member: &usize| tensors[member].is_output;
    if to.size > from.size || from.root == to.root || to.root_offset != 0 {
        return false;
    }
    if graph.family(from.root).iter().any(is_output) {
        return false;
    }
    let node = &graph.ops()[op];
    // Places in the input's root.
    let place = |tensor: usize| {
        let shift = if tensors[tensor].root == to.root { from.root_offset } else { 0 };
        let low = tensors[tensor].root_offset.saturating_add(shift);
        (low, low.saturating_add(tensors[tensor].size))
    };
    let meets = |a: usize, b: usize| place(a).0.max(place(b).0) < place(a).1.min(place(b).1);
    let of = |list: &[usize], root: usize| -> Vec<usize> {
        list.iter().copied().filter(|&tensor| tensors[tensor].root == root).collect()
    };
    of(&node.outputs, to.root).into_iter().all(|target| {
        let is_permitted = |read: usize| {
            node.in_place.contains(&(read, target))
                && place(read).0 == place(target).0
                && tensors[target].size <= tensors[read].size
        };
        of(&node.inputs, from.root).into_iter().all(|read| !meets(read, target) || is_permitted(read))
            && of(&node.outputs, from.root).into_iter().all(|other| !meets(other, target))
    })
}

/// The operators that have run.
#[derive(Clone, Debug)]
pub(super) struct State<'t> {
    pub(super) table: &'t Table,
    pub(super) ran: Vec<bool>,
    waits: Vec<usize>,
    uses_left: Vec<usize>,
    ready: Vec<usize>,
    /// Bytes that are live between two operators.
    pub(super) live: u64,
}

impl<'t> State<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        let waits: Vec<usize> = table.before.iter().map(Vec::len).collect();
        Self {
            table,
            ran: alloc::vec![false; waits.len()],
            ready: (0..waits.len()).filter(|&op| waits[op] == 0).collect(),
            waits,
            uses_left: table.bytes.iter().map(|bytes| bytes.users.len()).collect(),
            live: table.bytes.iter().filter(|bytes| bytes.before_run).map(|bytes| bytes.room).sum(),
        }
    }

    pub(super) fn may_run(&self, op: usize) -> bool {
        !self.ran[op] && self.waits[op] == 0
    }

    /// Operators that may run next, in no order.
    pub(super) fn ready(&self) -> &[usize] {
        &self.ready
    }

    fn has_begun(&self, at: usize) -> bool {
        let bytes = &self.table.bytes[at];
        bytes.before_run || self.uses_left[at] < bytes.users.len()
    }

    /// Bytes that end when `op` has run.
    fn find_last_uses(&self, op: usize) -> impl Iterator<Item = &Bytes> {
        let last = self.table.uses[op].iter().filter(|&&at| self.uses_left[at] == 1);
        last.map(|&at| &self.table.bytes[at]).filter(|bytes| !bytes.after_run)
    }

    /// Bytes that are not live before `op` runs.
    fn count_begin_bytes(&self, op: usize) -> u64 {
        let new = self.table.uses[op].iter().filter(|&&at| !self.has_begun(at));
        new.map(|&at| self.table.bytes[at].room).sum()
    }

    /// Bytes that are live while `op` runs.
    pub(super) fn bytes_at(&self, op: usize) -> u64 {
        let savings = self
            .table
            .count_savings(op, |permit| self.uses_left[permit.ends] == 1 && !self.has_begun(permit.begins));
        let live = |at: usize| {
            self.has_begun(at) && (self.uses_left[at] > 0 || self.table.bytes[at].after_run)
                || self.table.uses[op].contains(&at)
        };
        let topmost = self.table.spare_first.iter().find(|&&at| live(at));
        let topmost = topmost.map_or(0, |&at| self.table.bytes[at].spare);
        (self.live + self.count_begin_bytes(op)).saturating_sub(savings).saturating_sub(topmost)
    }

    pub(super) fn live_after(&self, op: usize) -> u64 {
        self.live + self.count_begin_bytes(op) - self.find_last_uses(op).map(|bytes| bytes.room).sum::<u64>()
    }

    /// The largest spare of the bytes that end when `op` has run.
    pub(super) fn spare_ended_by(&self, op: usize) -> u64 {
        self.find_last_uses(op).map(|bytes| bytes.spare).max().unwrap_or(0)
    }

    pub(super) fn run(&mut self, op: usize) {
        self.live = self.live_after(op);
        self.ran[op] = true;
        self.ready.retain(|&other| other != op);
        let table = self.table;
        table.uses[op].iter().for_each(|&at| self.uses_left[at] -= 1);
        for &next in &table.after[op] {
            self.waits[next] -= 1;
            if self.waits[next] == 0 {
                self.ready.push(next);
            }
        }
    }

    /// Takes back `op`, the last one that ran.
    pub(super) fn undo(&mut self, op: usize) {
        let table = self.table;
        self.ran[op] = false;
        table.uses[op].iter().for_each(|&at| self.uses_left[at] += 1);
        for &next in &table.after[op] {
            self.waits[next] += 1;
        }
        let waits = &self.waits;
        self.ready.retain(|&other| waits[other] == 0);
        self.ready.push(op);
        self.live = self.live + self.find_last_uses(op).map(|bytes| bytes.room).sum::<u64>()
            - self.count_begin_bytes(op);
    }
}
