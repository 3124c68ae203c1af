//! The least peak of a series-parallel graph, computed anew.
//!
//! Nothing of the certificate is needed. An operator with one neighbour on each side becomes a part
//! of one edge, and each edge has parts that run side by side. Of a part only the bytes matter: the
//! peaks, and what is live at the stops between them, where other parts may run. A stop that one of
//! its neighbours can always replace is left out.
//!
//! Bytes whose life the parts do not decide are left out of the sums, so the result is never above
//! the least peak.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::stops::{Part, Stop, Use, apart};
use super::table::Table;
use crate::sort;

/// Most states in which parts that share bytes are compared, in one place and in all.
const STATES: usize = 1 << 16;
const ALL_STATES: usize = 1 << 31;

type Edge = (u64, u64, u32);

/// The first edge from an operator, or that to another one.
fn first(edges: &BTreeSet<Edge>, from: usize, to: Option<usize>) -> Option<(usize, usize)> {
    let from = from as u64;
    let range = match to {
        Some(to) => (from, to as u64, 0)..(from, to as u64 + 1, 0),
        None => (from, 0, 0)..(from + 1, 0, 0),
    };
    edges.range(range).next().map(|&(_, to, number)| (to as usize, number as usize))
}

/// A graph that becomes smaller.
struct Rest<'t> {
    table: &'t Table,
    /// For each operator, and for the caller, the bytes that begin with it, by number.
    begins: Vec<Vec<usize>>,
    /// For each of the bytes the other users, unless they stay or were left out.
    users: Vec<Vec<usize>>,
    stay: Vec<u64>,
    leave: Vec<u64>,
    new: Vec<u64>,
    base: u64,
    /// From, to, and the number of the edge; the search has such sets too, so that their code is
    /// there once.
    out: BTreeSet<Edge>,
    /// The same edges: to, from, number.
    into: BTreeSet<Edge>,
    degrees: Vec<(usize, usize)>,
    /// The parts of each edge.
    parts: Vec<Vec<Part>>,
    is_inside: Vec<bool>,
    states: usize,
}

/// A bound on the peak of every order; `None` for a graph that is not series-parallel.
pub(super) fn least_peak(table: &Table) -> Option<u64> {
    if table.has_permits() {
        return None;
    }
    let mut rest = Rest::new(table);
    let n = table.before.len();
    let mut open: Vec<usize> = (0..n).rev().filter(|&op| rest.is_between(op)).collect();
    while let Some(op) = open.pop() {
        let (from, left) = first(&rest.into, op, None)?;
        let (to, right) = first(&rest.out, op, None)?;
        let old = [from, to].map(|end| rest.is_between(end));
        rest.take_in((from, left), op, (to, right));
        let ends = [from, to].into_iter().zip(old);
        open.extend(ends.filter(|&(end, old)| !old && rest.is_between(end)).map(|(end, _)| end));
    }
    if rest.out.len() > 1 {
        return None;
    }
    let (.., number) = rest.out.pop_first()?;
    let parts = core::mem::take(&mut rest.parts[number as usize]);
    let whole = rest.side_by_side(parts);
    let most = whole.stops.iter().map(|stop| stop.peak.max(stop.live)).max()?;
    let spare = table.bytes.iter().map(|bytes| bytes.spare).max().unwrap_or(0);
    Some((most + rest.base).saturating_sub(spare))
}

impl<'t> Rest<'t> {
    fn new(table: &'t Table) -> Self {
        let n = table.before.len();
        let mut rest = Self {
            table,
            begins: alloc::vec![Vec::new(); n],
            users: alloc::vec![Vec::new(); table.bytes.len()],
            stay: alloc::vec![0; n],
            leave: alloc::vec![0; n],
            new: alloc::vec![0; n],
            base: 0,
            out: BTreeSet::new(),
            into: BTreeSet::new(),
            degrees: alloc::vec![(0, 0); n + 2],
            parts: Vec::new(),
            is_inside: alloc::vec![false; table.bytes.len()],
            states: ALL_STATES,
        };
        for (number, bytes) in table.bytes.iter().enumerate() {
            let Some((&first, others)) = bytes.users.split_first() else {
                rest.base += if bytes.before_run && bytes.after_run { bytes.room } else { 0 };
                continue;
            };
            if bytes.before_run && bytes.after_run {
                rest.base += bytes.room;
            } else if bytes.before_run {
                // Which of several users is the last, an order decides.
                rest.leave[first] += if others.is_empty() { bytes.room } else { 0 };
            } else if others.iter().all(|&user| table.before[user].contains(&first)) {
                rest.new[first] += bytes.room;
                if bytes.after_run {
                    rest.stay[first] += bytes.room;
                } else if !others.is_empty() {
                    rest.begins[first].push(number);
                    rest.users[number] = others.to_vec();
                }
            }
        }
        for op in 0..n {
            for &earlier in &table.before[op] {
                rest.connect(earlier, op);
            }
            if table.before[op].is_empty() {
                rest.connect(n, op);
            }
            if table.after[op].is_empty() {
                rest.connect(op, n + 1);
            }
        }
        rest
    }

    /// The edge between two operators, which is new if there is none.
    fn connect(&mut self, from: usize, to: usize) -> usize {
        if let Some((_, number)) = first(&self.out, from, Some(to)) {
            return number;
        }
        let number = self.parts.len();
        self.parts.push(Vec::new());
        self.out.insert((from as u64, to as u64, number as u32));
        self.into.insert((to as u64, from as u64, number as u32));
        self.degrees[from].1 += 1;
        self.degrees[to].0 += 1;
        number
    }

    /// Takes an edge away, and its parts as one.
    fn cut(&mut self, from: usize, to: usize, number: usize) -> Part {
        self.out.remove(&(from as u64, to as u64, number as u32));
        self.into.remove(&(to as u64, from as u64, number as u32));
        self.degrees[from].1 -= 1;
        self.degrees[to].0 -= 1;
        let parts = core::mem::take(&mut self.parts[number]);
        self.side_by_side(parts)
    }

    fn is_between(&self, op: usize) -> bool {
        self.degrees[op] == (1, 1)
    }

    fn room(&self, number: usize) -> u64 {
        self.table.bytes[number].room
    }

    /// Makes an operator a part of an edge between its neighbours.
    fn take_in(&mut self, (from, left): (usize, usize), op: usize, (to, right): (usize, usize)) {
        let (left, right) = (self.cut(from, op, left), self.cut(op, to, right));
        let part = self.follow(from, left, op, &right);
        let number = self.connect(from, to);
        self.parts[number].push(part);
    }

    /// A part, an operator and a part after each other.
    fn follow(&mut self, from: usize, mut part: Part, op: usize, right: &Part) -> Part {
        for &number in self.begins.get(from).map_or(&[][..], |begins| begins) {
            if self.users[number].contains(&op) {
                let at = part.uses.iter().position(|(other, _)| *other == number);
                let count = at.map_or(0, |at| part.uses.swap_remove(at).1.count) + 1;
                part.uses.push((number, Use { count, last: Some(op) }));
            }
        }
        let mut before_op = self.leave[op] + right.leave;
        let mut is_last = false;
        for (number, uses) in core::mem::take(&mut part.uses) {
            if uses.count == self.users[number].len() {
                self.is_inside[number] = true;
                before_op += self.room(number);
            } else {
                is_last |= uses.last == Some(op);
                part.uses.push((number, uses));
            }
        }
        for stop in &mut part.stops {
            stop.peak += before_op;
            stop.live += before_op;
        }
        let to_the_end: u64 = self.begins[op]
            .iter()
            .filter(|&&number| !self.is_inside[number])
            .map(|&number| self.room(number))
            .sum();
        part.stay += self.stay[op];
        let more = part.stay + to_the_end;
        let peak = part.end() + self.new[op];
        part.add(Stop { peak, live: more + right.begin(), op: is_last.then_some(op) });
        for stop in right.stops.iter().skip(1) {
            part.add(Stop { peak: stop.peak + more, live: stop.live + more, op: None });
        }
        part.stay += right.stay;
        part.leave += self.leave[op] + right.leave;
        part
    }

    /// The parts of an edge as one.
    fn side_by_side(&mut self, mut parts: Vec<Part>) -> Part {
        if parts.len() < 2 {
            return parts.pop().unwrap_or_else(Part::empty);
        }
        let parts_of = |parts: &[Part]| -> Vec<(usize, usize, Use)> {
            let all = parts.iter().enumerate();
            all.flat_map(|(at, part)| part.uses.iter().map(move |&(number, uses)| (number, at, uses)))
                .collect()
        };
        let all = parts_of(&parts);
        let mut by_bytes: Vec<u32> = (0..all.len() as u32).collect();
        sort::by_key(&mut by_bytes, |at| all[at as usize].0);
        let mut result = Part::default();
        let mut couples: Vec<(u64, Vec<(usize, usize)>)> = Vec::new();
        for same in by_bytes.chunk_by(|&one, &other| all[one as usize].0 == all[other as usize].0) {
            let number = all[same[0] as usize].0;
            let uses = || same.iter().map(|&at| all[at as usize]);
            let count = uses().map(|(.., uses)| uses.count).sum();
            if count < self.users[number].len() {
                result.uses.push((number, Use { count, last: None }));
                continue;
            }
            self.is_inside[number] = true;
            let last: Option<Vec<_>> = uses().map(|(_, at, uses)| Some((at, uses.last?))).collect();
            couples.extend(last.map(|last| (self.room(number), last)));
        }
        result.stay = parts.iter().map(|part| part.stay).sum();
        result.leave = parts.iter().map(|part| part.leave).sum();
        let mut part_stops: Vec<Vec<Stop>> = parts.drain(..).map(|part| part.stops).collect();
        while let Some((_, last)) = couples.first() {
            // The parts that these bytes connect, one after the other.
            let mut is_in = alloc::vec![false; part_stops.len()];
            last.iter().for_each(|&(at, _)| is_in[at] = true);
            let (mut inside, mut outside) = (Vec::new(), core::mem::take(&mut couples));
            loop {
                let touches = |couple: &(u64, Vec<(usize, usize)>)| couple.1.iter().any(|&(at, _)| is_in[at]);
                let (more, rest): (Vec<_>, Vec<_>) = outside.into_iter().partition(touches);
                outside = rest;
                if more.is_empty() {
                    break;
                }
                more.iter().flat_map(|couple| &couple.1).for_each(|&(at, _)| is_in[at] = true);
                inside.extend(more);
            }
            couples = outside;
            let group: Vec<usize> = (0..is_in.len()).filter(|&at| is_in[at]).collect();
            let stops: Vec<Vec<Stop>> =
                group.iter().map(|&at| core::mem::take(&mut part_stops[at])).collect();
            let ends = inside.iter().map(|(room, last)| {
                let end = |&(at, op): &(usize, usize)| {
                    let part = group.iter().position(|&other| other == at)?;
                    Some((part, stops[part].iter().position(|stop| stop.op == Some(op))?))
                };
                (*room, last.iter().filter_map(end).collect())
            });
            let ends: Vec<(u64, Vec<(usize, usize)>)> = ends.collect();
            part_stops.push(self.together(stops, &ends));
        }
        part_stops.retain(|stops| !stops.is_empty());
        result.stops = apart(&part_stops);
        result
    }

    /// The stops of parts that share bytes.
    fn together(&mut self, parts: Vec<Vec<Stop>>, ends: &[(u64, Vec<(usize, usize)>)]) -> Vec<Stop> {
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        let states = sizes.iter().fold(1_usize, |states, &size| states.saturating_mul(size));
        let work = states.saturating_mul(sizes.iter().sum()).saturating_mul(sizes.len());
        if states > STATES || work > self.states {
            return apart(&parts);
        }
        self.states -= work;
        let place = |state: usize| {
            let mut rest = state;
            sizes.iter().map(|&size| (rest % size, rest /= size).0).collect::<Vec<_>>()
        };
        let live: Vec<u64> = (0..states)
            .map(|state| {
                let place = place(state);
                let own: u64 = place.iter().zip(&parts).map(|(&at, stops)| stops[at].live).sum();
                let is_live = |last: &[(usize, usize)]| last.iter().any(|&(part, at)| place[part] < at);
                own + ends.iter().filter(|(_, last)| is_live(last)).map(|(room, _)| room).sum::<u64>()
            })
            .collect();
        // The steps into each state: from where, and the most bytes.
        let mut into: Vec<Vec<(usize, u64)>> = alloc::vec![Vec::new(); states];
        for state in 0..states {
            let mut stride = 1;
            for (part, at) in place(state).into_iter().enumerate() {
                if let Some(next) = parts[part].get(at + 1) {
                    into[state + stride].push((state, live[state] - parts[part][at].live + next.peak));
                }
                stride *= sizes[part];
            }
        }
        let mut out: Vec<Vec<(usize, u64)>> = alloc::vec![Vec::new(); states];
        for (to, steps) in into.iter().enumerate() {
            steps.iter().for_each(|&(from, peak)| out[from].push((to, peak)));
        }
        // The lowest peak on a way from the begin to each state, and from it to the end.
        let (mut from_begin, mut to_end) = (alloc::vec![u64::MAX; states], alloc::vec![u64::MAX; states]);
        (from_begin[0], to_end[states - 1]) = (0, 0);
        for state in 1..states {
            let ways = into[state].iter().map(|&(from, peak)| from_begin[from].max(peak));
            from_begin[state] = ways.min().unwrap_or(u64::MAX);
        }
        for state in (0..states - 1).rev() {
            let ways = out[state].iter().map(|&(to, peak)| to_end[to].max(peak));
            to_end[state] = ways.min().unwrap_or(u64::MAX);
        }
        let lowest =
            (0..states).fold(0, |least, state| if live[state] <= live[least] { state } else { least });
        let mut stops = alloc::vec![(0, lowest)];
        let mut at = lowest;
        while at != 0 {
            // Backwards: the way to the begin with the lowest peak, and the lowest state behind it.
            let mut peaks = alloc::vec![u64::MAX; at + 1];
            peaks[at] = 0;
            for state in (0..at).rev() {
                let ways = out[state].iter().filter(|(to, _)| *to <= at);
                peaks[state] = ways.map(|&(to, peak)| peaks[to].max(peak)).min().unwrap_or(u64::MAX);
            }
            // What comes before such a state has no higher peak.
            let is_stop = |state: &usize| peaks[*state] == peaks[0] && from_begin[*state] <= peaks[0];
            let behind = (0..at).filter(is_stop);
            let next = behind.min_by_key(|&state| live[state]).unwrap_or(0);
            if let Some(last) = stops.last_mut() {
                last.0 = peaks[0];
            }
            stops.push((0, next));
            at = next;
        }
        stops.reverse();
        at = lowest;
        while at != states - 1 {
            let mut peaks = alloc::vec![u64::MAX; states];
            peaks[at] = 0;
            for state in at + 1..states {
                let ways = into[state].iter().map(|&(from, peak)| peaks[from].max(peak));
                peaks[state] = ways.min().unwrap_or(u64::MAX);
            }
            let most = peaks[states - 1];
            let is_stop = |state: &usize| peaks[*state] == most && to_end[*state] <= most;
            let behind = (at + 1..states).rev().filter(is_stop);
            let next = behind.min_by_key(|&state| live[state]).unwrap_or(states - 1);
            stops.push((most, next));
            at = next;
        }
        let mut part = Part::default();
        for (peak, state) in stops {
            part.add(Stop { peak, live: live[state], op: None });
        }
        part.stops
    }
}
