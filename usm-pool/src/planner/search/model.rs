//! The instance for the search: buffers to place, their conflicts, and cliques that bound the
//! height.

use alloc::vec;
use alloc::vec::Vec;

use super::super::Instance;
use super::eject::Relation;
use super::rows::Rows;
use crate::ConflictGraph;
use crate::lifetime::align_up;
use crate::sort;

/// Above this number of conflicting pairs, the exhaustive search's tables are not built.
const PAIRS: u64 = 1 << 25;

/// Items and cliques for which a node counts as one more.
const BUFFERS: u64 = 1024;

/// One buffer that needs bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Index in the caller's slice.
    pub(super) buffer: usize,
    /// Bytes.
    pub(super) size: u64,
    /// `size` rounded up to the smallest alignment of the instance.
    pub(super) room: u64,
    /// Alignment of the offset.
    pub(super) alignment: u64,
    /// Begin and end of the life.
    pub(super) life: (u64, u64),
    /// Length of the life, or the number of conflicts when there are no lives.
    pub(super) width: u64,
    /// Buffers of one class are interchangeable.
    pub(super) class: u32,
}

/// Items, conflicts and cliques.
///
/// With lives, a clique is a *section*: the buffers live at an instant, one instant for each
/// maximal set, in order of time. A buffer is in consecutive sections, so a time that no unplaced
/// buffer spans cuts the rest into independent parts. With a conflict graph the cliques are found
/// greedily; they prune, and need not cover every conflict.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) items: Vec<Item>,
    pub(super) conflicts: Rows,
    pub(super) cliques: Rows,
    /// Sections `first..last` of an item, or that range of `section_list` when there are no lives.
    first: Vec<u32>,
    last: Vec<u32>,
    section_list: Vec<u32>,
    /// Every end of a buffer in a compacted plan is a multiple of this.
    pub(super) unit: u64,
    /// The cliques are in order of time.
    pub(super) chain: bool,
}

impl Model {
    /// `None` if the tables would be too large, or no buffer needs bytes.
    pub(super) fn new(instance: Instance<'_>) -> Option<Self> {
        let needs_bytes = |&i: &usize| instance.occupies(i);
        let mut buffers: Vec<usize> = (0..instance.buffers.len()).filter(needs_bytes).collect();
        if buffers.is_empty() || u32::try_from(buffers.len()).is_err() {
            return None;
        }
        sort::by_key(&mut buffers, |i| (instance.buffers[i].lower, i));
        let least = buffers.iter().map(|&i| instance.buffers[i].alignment).min()?;
        let mut unit = 0;
        let mut items = Vec::with_capacity(buffers.len());
        for &i in &buffers {
            let buffer = &instance.buffers[i];
            unit = gcd(unit, buffer.size);
            if buffer.alignment > 1 {
                unit = gcd(unit, buffer.alignment);
            }
            items.push(Item {
                buffer: i,
                size: buffer.size,
                room: align_up(buffer.size, least)?,
                alignment: buffer.alignment,
                life: (buffer.lower, buffer.upper),
                width: buffer.lifetime().len(),
                class: 0,
            });
        }
        let mut model = Self {
            items,
            conflicts: Rows::default(),
            cliques: Rows::default(),
            first: Vec::new(),
            last: Vec::new(),
            section_list: Vec::new(),
            unit,
            chain: instance.conflicts.is_none(),
        };
        match instance.conflicts {
            None => model.fill_from_lives(instance)?,
            Some(graph) => model.fill_from_graph(graph)?,
        }
        model.find_classes();
        Some(model)
    }

    /// The cost of a node: it takes time in proportion to items and cliques.
    pub(super) fn weight(&self) -> u64 {
        1 + (self.items.len() + self.cliques.len()) as u64 / BUFFERS
    }

    /// Highest end of an item.
    pub(super) fn peak(&self, offsets: &[u64]) -> u64 {
        self.items.iter().zip(offsets).map(|(item, offset)| offset + item.size).max().unwrap_or(0)
    }

    /// The cliques that an item is in.
    pub(super) fn cliques_of(&self, item: usize) -> impl Iterator<Item = usize> + '_ {
        (self.first[item]..self.last[item]).map(|at| {
            if self.section_list.is_empty() { at as usize } else { self.section_list[at as usize] as usize }
        })
    }

    /// The sections `[first, last)` of an item; only with lives.
    pub(super) fn sections(&self, item: usize) -> (usize, usize) {
        debug_assert!(self.chain);
        (self.first[item] as usize, self.last[item] as usize)
    }

    fn fill_from_lives(&mut self, instance: Instance<'_>) -> Option<()> {
        let n = self.items.len();
        // Ends, numbered from 0, before begins, numbered from `n`, at the same instant; a section
        // closes at the first end after a begin.
        let mut events: Vec<(u64, usize)> = Vec::with_capacity(2 * n);
        for (i, item) in self.items.iter().enumerate() {
            let buffer = &instance.buffers[item.buffer];
            events.push((buffer.lower, n + i));
            events.push((buffer.upper, i));
        }
        events.sort_unstable();
        (self.first, self.last) = (vec![0; n], vec![0; n]);
        let (mut sections, mut open, mut live, mut pairs, mut members) = (0_u32, false, 0_u64, 0_u64, 0_u64);
        for &(_, event) in &events {
            if event >= n {
                self.first[event - n] = sections;
                pairs += live;
                live += 1;
                open = true;
            } else {
                if open {
                    sections += 1;
                    members += live;
                    open = false;
                }
                self.last[event] = sections;
                live -= 1;
            }
        }
        if pairs > PAIRS || members > 2 * PAIRS {
            return None;
        }
        let of = |i: usize| self.first[i]..self.last[i];
        self.cliques = Rows::new(sections as usize, |push| {
            for i in 0..n {
                of(i).for_each(|section| push(section as usize, i as u32));
            }
        });
        // Items are in order of begin, so the later partners of one follow it directly.
        self.conflicts = Rows::new(n, |push| {
            for i in 0..n {
                for j in (i + 1..n).take_while(|&j| self.first[j] < self.last[i]) {
                    push(i, j as u32);
                    push(j, i as u32);
                }
            }
        });
        Some(())
    }

    fn fill_from_graph(&mut self, graph: &ConflictGraph) -> Option<()> {
        let n = self.items.len();
        let mut index = vec![u32::MAX; graph.len()];
        for (i, item) in self.items.iter().enumerate() {
            index[item.buffer] = i as u32;
        }
        let partners =
            |i: usize| graph.neighbours(self.items[i].buffer).map(|j| index[j]).filter(|&j| j != u32::MAX);
        let pairs: u64 = (0..n)
            .map(|i| graph.row(self.items[i].buffer).iter().map(|w| u64::from(w.count_ones())).sum::<u64>())
            .sum();
        if pairs > 2 * PAIRS {
            return None;
        }
        let conflicts = Rows::new(n, |push| {
            for i in 0..n {
                partners(i).for_each(|j| push(i, j));
            }
        });
        let cliques = greedy_cliques(&self.items, &conflicts, |i, j| {
            graph.contains(self.items[i].buffer, self.items[j].buffer)
        });
        let of = Rows::new(n, |push| {
            for clique in 0..cliques.len() {
                cliques.row(clique).iter().for_each(|&i| push(i as usize, clique as u32));
            }
        });
        (self.first, self.last) = (vec![0; n], vec![0; n]);
        for (i, item) in self.items.iter_mut().enumerate() {
            item.width = conflicts.row(i).len() as u64 + 1;
            (self.first[i], self.last[i]) = of.range(i);
        }
        self.section_list = of.into_data();
        (self.conflicts, self.cliques) = (conflicts, cliques);
        Some(())
    }

    /// Gives one class to items that conflict with each other and with the same others, and have
    /// the same size and alignment.
    fn find_classes(&mut self) {
        let n = self.items.len();
        if !self.chain {
            for (i, item) in self.items.iter_mut().enumerate() {
                item.class = i as u32;
            }
            return;
        }
        let key = |i: usize| (self.first[i], self.last[i], self.items[i].size, self.items[i].alignment);
        let mut order: Vec<usize> = (0..n).collect();
        sort::by_key(&mut order, key);
        let mut class = 0;
        let mut classes = vec![0; n];
        for (at, &i) in order.iter().enumerate() {
            if at > 0 && key(order[at - 1]) != key(i) {
                class += 1;
            }
            classes[i] = class;
        }
        for (item, class) in self.items.iter_mut().zip(classes) {
            item.class = class;
        }
    }
}

impl Relation for Model {
    const PARTNERS_PER_NODE: u64 = 8;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn shape(&self, item: usize) -> (u64, u64) {
        (self.items[item].size, self.items[item].alignment)
    }

    fn width(&self, item: usize) -> u64 {
        self.items[item].width
    }

    fn each_partner(&self, item: usize, mut visit: impl FnMut(usize)) {
        self.conflicts.row(item).iter().for_each(|&other| visit(other as usize));
    }
}

/// Cliques grown from every item, largest room first; bounded work.
fn greedy_cliques(items: &[Item], conflicts: &Rows, conflict: impl Fn(usize, usize) -> bool) -> Rows {
    let n = items.len();
    let mut order: Vec<u32> = (0..n as u32).collect();
    sort::by_key(&mut order, |i| core::cmp::Reverse(items[i as usize].room));
    let mut rank = vec![0_u32; n];
    for (r, &i) in order.iter().enumerate() {
        rank[i as usize] = r as u32;
    }
    let mut work: u64 = 1 << 26;
    let mut cliques: Vec<Vec<u32>> = Vec::new();
    let mut candidates: Vec<u32> = Vec::new();
    for &seed in &order {
        let mut clique = vec![seed];
        candidates.clear();
        candidates.extend(conflicts.row(seed as usize).iter().map(|&i| rank[i as usize]));
        candidates.sort_unstable();
        for i in candidates.iter().map(|&rank| order[rank as usize]) {
            work = work.saturating_sub(clique.len() as u64);
            if clique.iter().all(|&j| conflict(i as usize, j as usize)) {
                clique.push(i);
            }
        }
        if clique.len() > 1 {
            clique.sort_unstable();
            cliques.push(clique);
        }
        if work == 0 {
            break;
        }
    }
    let mut order: Vec<usize> = (0..cliques.len()).collect();
    sort::by_key(&mut order, |at| &cliques[at]);
    order.dedup_by_key(|at| &cliques[*at]);
    Rows::new(order.len(), |push| {
        for (row, &at) in order.iter().enumerate() {
            cliques[at].iter().for_each(|&i| push(row, i));
        }
    })
}

/// Greatest common divisor; `gcd(0, x) = x`.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
