//! Which parts a series-parallel graph consists of.
//!
//! An operator with one edge in and one edge out becomes a part of one edge. Two edges between the
//! same operators become one. If one edge is left in the end, the graph is series-parallel (Valdes,
//! Tarjan and Lawler 1982).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Model;
use crate::planner::reorder::lists::Key;
use crate::planner::reorder::lives::Lives;

/// The part of an edge with nothing between its ends.
pub(super) const EMPTY: u32 = u32::MAX;

/// Readers of a root in a part that begins behind the operator which begins the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readers {
    pub(super) root: u32,
    count: u32,
    /// The last of them, if it is so in every order of the part.
    pub(super) last: Option<u32>,
}

impl Readers {
    pub(super) const fn count(&self) -> usize {
        self.count as usize
    }
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    Series {
        left: u32,
        op: u32,
        right: u32,
        /// Bytes of the roots from before the part that end with the operator.
        end_bytes: u64,
        /// Bytes that the operator begins and that are live to the end of the part.
        through: u64,
        /// Whether a root from before the part has its last reader here, and readers elsewhere.
        is_marked: bool,
    },
    Parallel {
        left: u32,
        right: u32,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) form: Form,
    /// Readers of roots from before the part, of which some are elsewhere.
    pub(super) readers: Vec<Readers>,
    /// Whether a part that runs beside others is one of several that do so.
    pub(super) is_joined: bool,
}

/// The parts of a graph. The last one is the whole.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) parts: Vec<Part>,
}

/// The graph as far as it was not reduced. Two more operators are its begin and its end.
struct Rest<'m> {
    model: &'m Model,
    tree: Tree,
    /// Edges: from, to, part.
    out: BTreeSet<Key>,
    /// The same: to, from, part.
    into: BTreeSet<Key>,
    degrees: Vec<(u32, u32)>,
    open: Vec<u32>,
    /// Whether all readers of a root are in one part.
    complete: Vec<bool>,
    /// Readers that may still be copied.
    work: usize,
}

/// Most readers that are copied: only graphs in which one operator begins many results need more.
const WORK: usize = 1 << 26;

fn edge(edges: &BTreeSet<Key>, from: u32, to: Option<u32>) -> Option<Key> {
    let from = u64::from(from);
    match to {
        Some(to) => edges.range((from, u64::from(to), 0)..=(from, u64::from(to), u32::MAX)).next(),
        None => edges.range((from, 0, 0)..(from + 1, 0, 0)).next(),
    }
    .copied()
}

impl Rest<'_> {
    fn add(&mut self, from: u32, to: u32, part: u32) {
        self.out.insert((u64::from(from), u64::from(to), part));
        self.into.insert((u64::from(to), u64::from(from), part));
        self.degrees[from as usize].1 += 1;
        self.degrees[to as usize].0 += 1;
    }

    fn remove(&mut self, from: u32, to: u32, part: u32) {
        self.out.remove(&(u64::from(from), u64::from(to), part));
        self.into.remove(&(u64::from(to), u64::from(from), part));
        self.degrees[from as usize].1 -= 1;
        self.degrees[to as usize].0 -= 1;
    }

    fn readers(&self, part: u32) -> &[Readers] {
        self.tree.parts.get(part as usize).map_or(&[], |part| &part.readers)
    }

    fn push(&mut self, form: Form, readers: Vec<Readers>) -> u32 {
        self.work = self.work.saturating_sub(readers.len() * readers.len());
        self.tree.parts.push(Part { form, readers, is_joined: false });
        self.tree.parts.len() as u32 - 1
    }

    /// The operator and the parts before and after it as one part.
    fn series(&mut self, from: u32, left: u32, op: u32, right: u32) -> u32 {
        let model = self.model;
        let mut readers = self.readers(left).to_vec();
        let roots = model.roots.get(from as usize).map_or(&[][..], |roots| roots);
        for &root in roots.iter().filter(|&&root| model.readers[root as usize].binary_search(&op).is_ok()) {
            let last = Some(op);
            match readers.iter_mut().find(|readers| readers.root == root) {
                Some(readers) => *readers = Readers { count: readers.count + 1, last, root },
                None => readers.push(Readers { root, count: 1, last }),
            }
        }
        let mut end_bytes = 0;
        readers.retain(|readers| {
            let is_complete = model.readers[readers.root as usize].len() == readers.count as usize;
            if is_complete {
                self.complete[readers.root as usize] = true;
                end_bytes += model.rooms[readers.root as usize];
            }
            !is_complete
        });
        let own = model.roots[op as usize].iter().filter(|&&root| !self.complete[root as usize]);
        let through = own.map(|&root| model.rooms[root as usize]).sum();
        let is_marked = readers.iter().any(|readers| readers.last == Some(op));
        self.push(Form::Series { left, op, right, end_bytes, through, is_marked }, readers)
    }

    /// Two parts between the same operators as one.
    fn parallel(&mut self, left: u32, right: u32) -> u32 {
        let mut readers = self.readers(left).to_vec();
        for &more in self.readers(right) {
            match readers.iter_mut().find(|readers| readers.root == more.root) {
                Some(readers) => readers.count += more.count,
                None => readers.push(more),
            }
        }
        readers.iter_mut().for_each(|readers| readers.last = None);
        readers.retain(|readers| {
            let is_complete = self.model.readers[readers.root as usize].len() == readers.count as usize;
            self.complete[readers.root as usize] |= is_complete;
            !is_complete
        });
        for side in [left, right] {
            let part = &mut self.tree.parts[side as usize];
            part.is_joined = matches!(part.form, Form::Parallel { .. });
        }
        self.push(Form::Parallel { left, right }, readers)
    }

    fn reduce(&mut self, op: u32) -> Option<()> {
        let ((_, from, left), (_, to, right)) = (edge(&self.into, op, None)?, edge(&self.out, op, None)?);
        let (from, to) = (from as u32, to as u32);
        self.remove(from, op, left);
        self.remove(op, to, right);
        let mut part = self.series(from, left, op, right);
        if let Some((.., other)) = edge(&self.out, from, Some(to)) {
            self.remove(from, to, other);
            if other != EMPTY {
                part = self.parallel(other, part);
            }
            for end in [from, to] {
                // With the new edge it has one on each side.
                let (into, out) = self.degrees[end as usize];
                let (into, out) = (into + u32::from(end == to), out + u32::from(end == from));
                if (into, out) == (1, 1) {
                    self.open.push(end);
                }
            }
        }
        self.add(from, to, part);
        Some(())
    }
}

impl Tree {
    /// The parts of a graph; `None` if it is not series-parallel.
    pub(super) fn of(lives: &Lives, model: &Model) -> Option<Self> {
        let n = lives.len() as u32;
        let (begin, end) = (n, n + 1);
        let mut rest = Rest {
            model,
            tree: Self::default(),
            out: BTreeSet::new(),
            into: BTreeSet::new(),
            degrees: alloc::vec![(0, 0); n as usize + 2],
            open: Vec::new(),
            complete: alloc::vec![false; model.rooms.len()],
            work: WORK,
        };
        for op in 0..n {
            let before = &lives.before[op as usize];
            before.iter().for_each(|&earlier| rest.add(earlier, op, EMPTY));
            if before.is_empty() {
                rest.add(begin, op, EMPTY);
            }
            if lives.after[op as usize].is_empty() {
                rest.add(op, end, EMPTY);
            }
        }
        // The first one is taken first.
        rest.open = (0..n).rev().filter(|&op| rest.degrees[op as usize] == (1, 1)).collect();
        while let Some(op) = rest.open.pop() {
            rest.reduce(op)?;
            if rest.work == 0 {
                return None;
            }
        }
        let is_whole = rest.out.len() == 1 && rest.tree.parts.last().is_some_and(|part| !part.is_joined);
        is_whole.then_some(rest.tree)
    }

    /// The parts that run side by side in a part.
    pub(super) fn beside(&self, part: u32) -> Vec<u32> {
        let (mut parts, mut open) = (Vec::new(), alloc::vec![part]);
        while let Some(part) = open.pop() {
            match self.parts[part as usize].form {
                Form::Parallel { left, right } => open.extend([right, left]),
                Form::Series { .. } => parts.push(part),
            }
        }
        parts
    }
}
