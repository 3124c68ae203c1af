//! The state of a replay: placed, open and refuted buffers.

use alloc::vec;
use alloc::vec::Vec;

use super::{Line, ProofFault};
use crate::Buffer;
use crate::problem::Problem;

/// Maximum number of conflicting pairs for which a tree is replayed: their lists take a gigabyte.
const PAIRS: usize = 1 << 27;

type CheckResult<T = ()> = Result<T, ProofFault>;

/// A node on the path from the root.
#[derive(Debug, Default)]
struct Node {
    /// Lower limit for the offsets of open buffers.
    floor: u64,
    /// Length of the trail to return to.
    mark: usize,
    /// The buffer that was placed for this node.
    buffer: Option<usize>,
    /// Buffers that are not the lowest one, with the offset that they would have.
    refutations: Vec<(usize, u64)>,
    /// No buffer at or above this offset is the lowest one.
    free: Option<u64>,
    /// Where the buffers live that the last `part` of this node left.
    part: Option<(u64, u64)>,
}

#[derive(Debug)]
enum Change {
    /// The buffer was open.
    Open(usize),
    /// The buffer had this lower offset.
    Low(usize, u64),
}

pub(super) struct State<'p> {
    problem: &'p Problem,
    capacity: u64,
    /// Indices by id.
    ids: Vec<(u64, usize)>,
    /// The lowest offset above all placed partners.
    low: Vec<u64>,
    open: Vec<bool>,
    /// The buffers that conflict with each buffer. Empty until a buffer is placed.
    partners: Vec<Vec<u32>>,
    /// Two buffers with equal numbers conflict with the same buffers.
    twins: Vec<(usize, usize)>,
    trail: Vec<Change>,
    nodes: Vec<Node>,
    /// Number of times that a `part` looked at all buffers.
    #[cfg(test)]
    looks: usize,
}

impl<'p> State<'p> {
    pub(super) fn new(problem: &'p Problem, capacity: u64) -> Self {
        let buffers = problem.buffers();
        let occupies = |buffer: &Buffer| {
            buffer.size > 0 && (problem.conflicts().is_some() || buffer.lower < buffer.upper)
        };
        let mut ids: Vec<(u64, usize)> = buffers.iter().map(|buffer| buffer.id).zip(0..).collect();
        ids.sort_unstable();
        Self {
            problem,
            capacity,
            ids,
            low: vec![0; buffers.len()],
            open: buffers.iter().map(occupies).collect(),
            partners: Vec::new(),
            twins: Vec::new(),
            trail: Vec::new(),
            nodes: vec![Node::default()],
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Whether the root is refuted.
    pub(super) fn is_refuted(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn take(&mut self, line: Line) -> CheckResult {
        match line {
            Line::Part(begin, end) => return self.part(begin, end),
            Line::Place(id) => return self.place(id),
            Line::Cut(time) => {
                let live = |b: &Buffer| b.lower <= time && time < b.upper;
                // In a problem with a list of conflicts, lives determine nothing.
                let counts = self.problem.conflicts().is_none();
                self.too_high((0..self.open.len()).filter(|&i| counts && live(&self.problem.buffers()[i])))?;
            }
            Line::Over(ids) => self.check_too_high(&ids)?,
            Line::Tall(id) => {
                let i = self.open(id)?;
                self.too_high(core::iter::once(i))?;
            }
            Line::Done => self.done()?,
        }
        self.refuted();
        Ok(())
    }

    fn open(&self, id: u64) -> CheckResult<usize> {
        let at = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok();
        at.map(|at| self.ids[at].1).filter(|&i| self.open[i]).ok_or(ProofFault::NotOpen { id })
    }

    fn id(&self, i: usize) -> u64 {
        self.problem.buffers()[i].id
    }

    fn node(&self) -> &Node {
        // `take` is not called when the root is refuted.
        &self.nodes[self.nodes.len() - 1]
    }

    /// Removes the open buffers that live outside of the interval.
    fn part(&mut self, begin: u64, end: u64) -> CheckResult {
        let is_first = self.node().refutations.is_empty();
        // So every line that looks at all buffers removes one.
        if is_first && self.node().part.is_some_and(|(low, high)| begin <= low && high <= end) {
            return Ok(());
        }
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let mut left = (u64::MAX, 0);
        for i in (0..self.open.len()).filter(|&i| self.open[i]).collect::<Vec<_>>() {
            let &Buffer { id, lower, upper, .. } = &self.problem.buffers()[i];
            let (inside, outside) = (begin <= lower && upper <= end, upper <= begin || end <= lower);
            if !(inside || outside) || !is_first || self.problem.conflicts().is_some() {
                return Err(ProofFault::Crosses { id });
            }
            if inside {
                left = (lower.min(left.0), upper.max(left.1));
            } else {
                self.open[i] = false;
                self.trail.push(Change::Open(i));
            }
        }
        if let Some(node) = self.nodes.last_mut() {
            node.part = Some(left);
        }
        Ok(())
    }

    fn check_too_high(&self, ids: &[u64]) -> CheckResult {
        let set = ids.iter().map(|&id| self.open(id)).collect::<CheckResult<Vec<usize>>>()?;
        let mut sorted = set.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ProofFault::Twice { id: self.id(twice[0]) });
        }
        let buffers = self.problem.buffers();
        let refuse = |i: usize, j: usize| ProofFault::NoConflict { first: self.id(i), second: self.id(j) };
        if self.problem.conflicts().is_none() {
            // Lives overlap in pairs if the last one to begin overlaps the first one to end.
            let last = set.iter().copied().max_by_key(|&i| buffers[i].lower);
            let first = set.iter().copied().min_by_key(|&i| buffers[i].upper);
            if let (Some(last), Some(first)) = (last, first)
                && !self.conflict(last, first)
            {
                return Err(refuse(first, last));
            }
        } else {
            for (at, &i) in set.iter().enumerate() {
                if let Some(&other) = set[..at].iter().find(|&&other| !self.conflict(other, i)) {
                    return Err(refuse(other, i));
                }
            }
        }
        self.too_high(set.into_iter())
    }

    fn conflict(&self, i: usize, j: usize) -> bool {
        let (one, other) = (&self.problem.buffers()[i], &self.problem.buffers()[j]);
        match self.problem.conflicts() {
            Some(relation) => relation.contains(i, j),
            None => one.lower < other.upper && other.lower < one.upper,
        }
    }

    /// Checks that open buffers that conflict in pairs end above the capacity in every order. If
    /// buffers are aligned to a unit or more, they begin at its multiples. So each takes its size
    /// rounded up, except the topmost.
    fn too_high(&self, set: impl Iterator<Item = usize>) -> CheckResult {
        let set: Vec<usize> = set.filter(|&i| self.open[i]).collect();
        let buffers = self.problem.buffers();
        let mut units: Vec<u64> = set.iter().map(|&i| buffers[i].alignment).collect();
        units.sort_unstable();
        units.dedup();
        let mut most = 0;
        for unit in units {
            let up = |bytes: u64| u128::from(bytes.div_ceil(unit)) * u128::from(unit);
            let (mut low, mut sum, mut topmost) = (u64::MAX, 0_u128, 0_u128);
            for &i in set.iter().filter(|&&i| buffers[i].alignment >= unit) {
                let size = buffers[i].size;
                low = low.min(self.low[i]);
                sum += up(size);
                topmost = topmost.max(up(size) - u128::from(size));
            }
            most = most.max(up(low.max(self.node().floor)) + sum - topmost);
        }
        if most > u128::from(self.capacity) {
            return Ok(());
        }
        // At most the capacity, so it fits in 64 bits.
        Err(ProofFault::Fits { end: most as u64, capacity: self.capacity })
    }

    /// Begins the node in which this buffer is the lowest open one.
    fn place(&mut self, id: u64) -> CheckResult {
        let i = self.open(id)?;
        self.list_partners()?;
        let node = self.node();
        let (floor, offset) = (node.floor, self.low[i]);
        if offset < floor {
            return Err(ProofFault::BelowTheFloor { id, offset, floor });
        }
        if node.refutations.iter().any(|&(other, _)| other == i) {
            return Err(ProofFault::Twice { id });
        }
        let mark = self.trail.len();
        self.open[i] = false;
        self.trail.push(Change::Open(i));
        let buffers = self.problem.buffers();
        let top = offset.saturating_add(buffers[i].size);
        for &other in &self.partners[i] {
            let other = other as usize;
            // An offset beyond 64 bits is above every capacity, and it never becomes lower.
            let raised = top.checked_next_multiple_of(buffers[other].alignment).unwrap_or(u64::MAX);
            if self.open[other] && self.low[other] < raised {
                self.trail.push(Change::Low(other, self.low[other]));
                self.low[other] = raised;
            }
        }
        self.nodes.push(Node { floor: offset, mark, buffer: Some(i), ..Node::default() });
        Ok(())
    }

    /// Checks that every buffer that may be the lowest one was refuted.
    fn done(&self) -> CheckResult {
        let node = self.node();
        let buffers = self.problem.buffers();
        let open = || (0..self.open.len()).filter(|&i| self.open[i]);
        let lid = open().map(|i| self.low[i].saturating_add(buffers[i].size)).min();
        let Some(lid) = lid else { return Err(ProofFault::Plan { capacity: self.capacity }) };
        for i in open().filter(|&i| self.low[i] >= node.floor && self.low[i] < lid) {
            let low = self.low[i];
            let stands_for = |other: usize| other == i || self.open[other] && self.are_twins(i, other);
            let refuted = node.refutations.iter().any(|&(other, at)| at == low && stands_for(other));
            let banned = low == node.floor && self.refuted_at_floor().any(stands_for);
            if !refuted && !banned && node.free.is_none_or(|free| low < free) {
                return Err(ProofFault::Missing { id: self.id(i), offset: low });
            }
        }
        Ok(())
    }

    /// Buffers that no best plan of this node has at the floor: they were refuted there before a
    /// buffer was placed at the same offset, for this node or for a node above it with this floor.
    fn refuted_at_floor(&self) -> impl Iterator<Item = usize> {
        let floor = self.node().floor;
        let above = self.nodes.iter().rev().zip(self.nodes.iter().rev().skip(1));
        let same = above.take_while(move |(node, _)| node.floor == floor);
        same.flat_map(move |(_, parent)| parent.refutations.iter().filter(move |&&(_, low)| low == floor))
            .map(|&(other, _)| other)
    }

    /// Whether two buffers could take each other's place.
    fn are_twins(&self, i: usize, j: usize) -> bool {
        let shape = |i: usize| (self.problem.buffers()[i].size, self.problem.buffers()[i].alignment);
        shape(i) == shape(j) && self.twins.get(i).is_some_and(|twins| Some(twins) == self.twins.get(j))
    }

    /// Leaves a refuted node.
    fn refuted(&mut self) {
        let Some(node) = self.nodes.pop() else { return };
        while self.trail.len() > node.mark {
            match self.trail.pop() {
                Some(Change::Open(i)) => self.open[i] = true,
                Some(Change::Low(i, low)) => self.low[i] = low,
                None => {}
            }
        }
        let Some(i) = node.buffer else { return };
        let is_free = !self.partners[i].iter().any(|&other| self.open[other as usize]);
        let low = self.low[i];
        if let Some(parent) = self.nodes.last_mut() {
            parent.refutations.push((i, low));
            if is_free {
                parent.free = Some(parent.free.map_or(low, |free| free.min(low)));
            }
        }
    }

    /// Lists the conflicts of each buffer, and the buffers with equal conflicts.
    fn list_partners(&mut self) -> CheckResult {
        let buffers = self.problem.buffers();
        if self.partners.len() == buffers.len() {
            return Ok(());
        }
        let too_large = ProofFault::TooLarge { buffers: buffers.len() };
        if u32::try_from(buffers.len()).is_err() {
            return Err(too_large);
        }
        let open = (0..buffers.len()).filter(|&i| self.open[i]);
        let mut order: Vec<(u64, usize)> = open.map(|i| (buffers[i].lower, i)).collect();
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(_, i)| i).collect();
        let mut partners = vec![Vec::new(); buffers.len()];
        let mut pairs = 0;
        for (at, &i) in order.iter().enumerate() {
            // With lives, only a buffer that begins before the end can conflict. In a list of
            // conflicts, any buffer can.
            let timed = self.problem.conflicts().is_none();
            for &j in order[at + 1..].iter().take_while(|&&j| !timed || buffers[j].lower < buffers[i].upper) {
                if self.conflict(i, j) {
                    partners[i].push(j as u32);
                    partners[j].push(i as u32);
                    pairs += 1;
                }
            }
            if pairs > PAIRS {
                return Err(too_large);
            }
        }
        self.partners = partners;
        if self.problem.conflicts().is_none() {
            let mut begins: Vec<u64> = order.iter().map(|&i| buffers[i].lower).collect();
            let mut ends: Vec<u64> = order.iter().map(|&i| buffers[i].upper).collect();
            begins.sort_unstable();
            ends.sort_unstable();
            // A buffer conflicts with all buffers except those that end before it begins, and those
            // that begin after it ends.
            let of = |b: &Buffer| {
                (
                    ends.partition_point(|&end| end <= b.lower),
                    begins.partition_point(|&begin| begin < b.upper),
                )
            };
            self.twins = buffers.iter().map(of).collect();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, each of these lines looked at all buffers: a megabyte of text took minutes.
    #[test]
    fn lines_that_remove_nothing_look_at_no_buffer() {
        let buffers = (0..50).map(|id| Buffer::new(id, id, id + 1, 1)).collect();
        let problem = Problem::from_buffers(buffers).expect("problem");
        for (first, then) in [((0, 50), (0, 50)), ((0, 60), (0, 50)), ((60, 70), (0, 1)), ((3, 7), (2, 9))] {
            let mut state = State::new(&problem, 5);
            let line = |(begin, end)| Line::Part(begin, end);
            state.take(line(first)).expect("a part");
            for _ in 0..1000 {
                state.take(line(then)).expect("a part");
            }
            assert_eq!(state.looks, 1, "{first:?}, then {then:?}");
        }
        let mut state = State::new(&problem, 5);
        for begin in 0..10 {
            state.take(Line::Part(begin, 50)).expect("a part");
        }
        assert_eq!(state.looks, 10, "each of them removes a buffer");
    }
}
