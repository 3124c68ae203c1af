//! Decides whether a placement below a capacity exists. Depth first, with an explicit stack.
//!
//! Tries only compacted placements: items are placed in ascending offset, each on top of
//! conflicting ones. The item's rank breaks ties, so that every placement occurs once. An item is
//! no candidate if another one fits entirely below it.

use alloc::vec::Vec;

use super::log::Log;
use super::model::Model;
use super::order::Order;
use super::state::{State, UNPLACED};

/// Number of candidates sorted at a time.
const AHEAD: usize = 24;

/// The answer for one capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The state holds a placement.
    Found,
    /// No placement exists.
    Infeasible,
    /// The node budget is spent.
    Limit,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    offset: u64,
    rank: u32,
    item: u32,
}

/// Items that are placed independently of all others.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Range in `Search::members`, in order of rank.
    members: (u32, u32),
    /// Cliques that must be checked.
    cliques: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    /// One of the candidates is placed next.
    Choice(Choice),
    /// All parts must be solved, one after the other. The last item was placed at this offset.
    Parts { next: u32, end: u32, offset: u64, log: usize },
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    part: u32,
    /// First, next and end in `Search::candidates`.
    first: u32,
    next: u32,
    end: u32,
    /// Candidates before this are sorted and precede all others.
    sorted_end: u32,
    /// Lengths of the trail, the parts and the members to return to.
    marks: (u32, u32, u32),
    /// The last tried candidate conflicted with nothing, so no other candidate can be better.
    is_last: bool,
}

/// The search with its tables, used again for every restart.
#[derive(Debug)]
pub(super) struct Search<'m> {
    model: &'m Model,
    pub(super) state: State<'m>,
    candidates: Vec<Candidate>,
    parts: Vec<Part>,
    members: Vec<u32>,
    frames: Vec<Frame>,
    borders: Vec<u32>,
    /// Last expansion in which a class had a candidate.
    last_expansion: Vec<u64>,
    expansion: u64,
    /// The cost of a node of this instance.
    weight: u64,
}

impl<'m> Search<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        Self {
            model,
            state: State::new(model),
            candidates: Vec::new(),
            parts: Vec::new(),
            members: Vec::new(),
            frames: Vec::new(),
            borders: Vec::new(),
            last_expansion: alloc::vec![0; model.items.len()],
            expansion: 0,
            weight: model.weight(),
        }
    }

    /// Looks for a placement with all ends at or below `capacity`, ranks by `order`. Every node
    /// subtracts its weight from `nodes`; `stop` is called once in many nodes. `log` hears why
    /// there is none.
    pub(super) fn decide(
        &mut self,
        capacity: u64,
        order: &Order,
        nodes: &mut u64,
        stop: &mut dyn FnMut() -> bool,
        log: &mut impl Log,
    ) -> Answer {
        if !self.state.reset(capacity) {
            log.too_high(self.model, &self.state);
            return Answer::Infeasible;
        }
        self.candidates.clear();
        self.parts.clear();
        self.members.clear();
        self.frames.clear();
        let cliques = self.model.cliques.len();
        self.members.extend(0..self.model.items.len() as u32);
        self.borders.clear();
        if self.model.chain {
            self.state.borders(0, cliques, &mut self.borders);
        }
        self.split((0, self.members.len() as u32), (0, cliques as u32), 0, log.mark());
        let mut node = 0_u64;
        // A node takes time in proportion to these.
        let pace = ((1 << 20) / (cliques + self.model.items.len()) as u64).max(16);
        while let Some(frame) = self.frames.last_mut() {
            match frame {
                Frame::Parts { next, end, offset, log: mark } => {
                    if next < end {
                        let (part, offset) = (*next, *offset);
                        *next += 1;
                        // Parts that were solved before refute nothing.
                        log.undo_to(*mark);
                        // Totals change as buffers are placed; on large instances the rank at the
                        // start must do.
                        if self.state.exact || self.state.mark() == 0 {
                            self.rank_part(part, order);
                        }
                        let (start, end) = self.parts[part as usize].members;
                        log.limit_to(self.model, &self.members[start as usize..end as usize]);
                        self.expand(part, offset, 0);
                    } else {
                        self.frames.pop();
                        self.part_solved();
                        if self.frames.is_empty() {
                            return Answer::Found;
                        }
                    }
                }
                Frame::Choice(choice) => {
                    if choice.next >= choice.end || choice.is_last {
                        self.part_failed();
                        log.done();
                        continue;
                    }
                    if choice.next == choice.sorted_end {
                        let (next, end) = (choice.next as usize, choice.end as usize);
                        choice.sorted_end += Self::sort_next_candidates(&mut self.candidates[next..end]);
                    }
                    let Candidate { offset, rank, item } = self.candidates[choice.next as usize];
                    choice.next += 1;
                    if *nodes < self.weight || (node % pace == pace - 1 && stop()) {
                        return Answer::Limit;
                    }
                    (*nodes, node) = (*nodes - self.weight, node + 1);
                    let (part, mark) = (choice.part, choice.marks.0);
                    let Part { members, cliques } = self.parts[part as usize];
                    let effect = self.state.place(item as usize, cliques.0 as usize..cliques.1 as usize);
                    choice.is_last = effect.free;
                    log.place(self.model, item);
                    if !effect.fits {
                        log.too_high(self.model, &self.state);
                        self.state.undo(mark as usize);
                        continue;
                    }
                    self.borders.clear();
                    if self.model.chain {
                        let (first, last) = self.model.sections(item as usize);
                        self.state.borders(first, last, &mut self.borders);
                    }
                    if self.borders.is_empty() {
                        if !self.expand(part, offset, rank) {
                            self.part_solved();
                            if self.frames.is_empty() {
                                return Answer::Found;
                            }
                        }
                    } else {
                        self.split(members, cliques, offset, log.mark());
                    }
                }
            }
        }
        Answer::Infeasible
    }

    /// Cuts a part at `borders` into smaller ones that remain to be solved.
    fn split(&mut self, members: (u32, u32), cliques: (u32, u32), offset: u64, log: usize) {
        let begin = self.parts.len() as u32;
        let mut first = cliques.0;
        for at in 0..=self.borders.len() {
            let last = self.borders.get(at).copied().unwrap_or(cliques.1);
            let start = self.members.len() as u32;
            for at in members.0..members.1 {
                let item = self.members[at as usize];
                if self.state.offset[item as usize] != UNPLACED {
                    continue;
                }
                if self.model.chain {
                    let section = self.model.sections(item as usize).0 as u32;
                    if section < first || section >= last {
                        continue;
                    }
                }
                self.members.push(item);
            }
            let end = self.members.len() as u32;
            if end > start {
                self.parts.push(Part { members: (start, end), cliques: (first, last) });
            }
            first = last;
        }
        self.frames.push(Frame::Parts { next: begin, end: self.parts.len() as u32, offset, log });
    }

    fn rank_part(&mut self, part: u32, order: &Order) {
        let (start, end) = self.parts[part as usize].members;
        let members = &mut self.members[start as usize..end as usize];
        order.sort(self.model, &self.state.rest, members);
    }

    /// Pushes a choice among the candidates of a part, at or after (`offset`, `rank`). `false` when
    /// everything is placed.
    fn expand(&mut self, part: u32, offset: u64, rank: u32) -> bool {
        let Part { members: (start, end), .. } = self.parts[part as usize];
        let first = self.candidates.len();
        let members = &self.members[start as usize..end as usize];
        let mut lid = UNPLACED;
        for &item in members {
            let low = self.state.low[item as usize];
            if low != UNPLACED {
                lid = lid.min(low + self.model.items[item as usize].size);
            }
        }
        if lid == UNPLACED {
            return false;
        }
        // Members of a part are in order of rank.
        self.expansion += 1;
        for (at, &item) in members.iter().enumerate() {
            let (low, at) = (self.state.low[item as usize], at as u32);
            if low < lid && (low > offset || (low == offset && at >= rank)) {
                // Of interchangeable items, only the first is tried.
                let class = &mut self.last_expansion[self.model.items[item as usize].class as usize];
                if *class != self.expansion {
                    *class = self.expansion;
                    self.candidates.push(Candidate { offset: low, rank: at, item });
                }
            }
        }
        let sorted_end = first as u32 + Self::sort_next_candidates(&mut self.candidates[first..]);
        self.frames.push(Frame::Choice(Choice {
            part,
            first: first as u32,
            next: first as u32,
            sorted_end,
            end: self.candidates.len() as u32,
            marks: (self.state.mark() as u32, self.parts.len() as u32, self.members.len() as u32),
            is_last: false,
        }));
        true
    }

    /// Moves the next candidates to the front, in order of offset and rank. Returns their number.
    /// Sorts piecewise: most choices are left after a few candidates.
    fn sort_next_candidates(candidates: &mut [Candidate]) -> u32 {
        let key = |candidate: &Candidate| (candidate.offset, candidate.rank);
        let count = candidates.len().min(AHEAD);
        if count < candidates.len() {
            candidates.select_nth_unstable_by_key(count, key);
        }
        candidates[..count].sort_unstable_by_key(key);
        count as u32
    }

    /// The current part has no unplaced item: returns to the enclosing parts.
    fn part_solved(&mut self) {
        while let Some(Frame::Choice(_)) = self.frames.last() {
            self.frames.pop();
        }
    }

    /// The choice on top has no candidate left. If it began a part, that part cannot be solved, nor
    /// can the choice below it.
    fn part_failed(&mut self) {
        let Some(Frame::Choice(choice)) = self.frames.pop() else { return };
        self.candidates.truncate(choice.first as usize);
        if let Some(Frame::Parts { .. }) = self.frames.last() {
            self.frames.pop();
        }
        if let Some(Frame::Choice(choice)) = self.frames.last() {
            let (trail, parts, members) = choice.marks;
            self.state.undo(trail as usize);
            self.parts.truncate(parts as usize);
            self.members.truncate(members as usize);
            self.candidates.truncate(choice.end as usize);
        }
    }
}
