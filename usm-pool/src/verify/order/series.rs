//! The least peak of a series-parallel graph, computed anew.
//!
//! Nothing of the certificate is needed. An operator with one neighbour on each side becomes a part
//! of one edge, and each edge has parts that run side by side. Of a part only the bytes matter: the
//! peaks, and what is live at the stops between them, where other parts may run. A stop that one of
//! its neighbours can always replace is left out.
//!
//! Bytes whose life the parts do not decide are left out of the sums, so the result is never above
//! the least peak.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::stops::{Part, Stop, Use, apart};
use super::table::Table;

/// Most states in which parts that share bytes are compared, in one place and in all.
const STATES: usize = 1 << 16;
const ALL_STATES: usize = 1 << 31;

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
    always: u64,
    edges: BTreeMap<(usize, usize), Vec<Part>>,
    before: Vec<BTreeSet<usize>>,
    after: Vec<BTreeSet<usize>>,
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
        let (&from, &to) = (rest.before[op].first()?, rest.after[op].first()?);
        let old = [from, to].map(|end| rest.is_between(end));
        rest.take_in(from, op, to);
        open.extend(
            [from, to]
                .into_iter()
                .zip(old)
                .filter(|&(end, old)| !old && rest.is_between(end))
                .map(|(end, _)| end),
        );
    }
    if rest.edges.len() > 1 {
        return None;
    }
    let (_, parts) = rest.edges.pop_first()?;
    let whole = rest.side_by_side(parts);
    let most = whole.stops.iter().map(|stop| stop.peak.max(stop.live)).max()?;
    let spare = table.bytes.iter().map(|bytes| bytes.spare).max().unwrap_or(0);
    Some((most + rest.always).saturating_sub(spare))
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
            always: 0,
            edges: BTreeMap::new(),
            before: alloc::vec![BTreeSet::new(); n + 2],
            after: alloc::vec![BTreeSet::new(); n + 2],
            is_inside: alloc::vec![false; table.bytes.len()],
            states: ALL_STATES,
        };
        for (number, bytes) in table.bytes.iter().enumerate() {
            let Some((&first, others)) = bytes.users.split_first() else {
                rest.always += if bytes.before_run && bytes.after_run { bytes.room } else { 0 };
                continue;
            };
            if bytes.before_run && bytes.after_run {
                rest.always += bytes.room;
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

    fn connect(&mut self, from: usize, to: usize) {
        self.edges.entry((from, to)).or_default();
        self.after[from].insert(to);
        self.before[to].insert(from);
    }

    fn is_between(&self, op: usize) -> bool {
        self.before[op].len() == 1 && self.after[op].len() == 1
    }

    fn room(&self, number: usize) -> u64 {
        self.table.bytes[number].room
    }

    /// Makes an operator a part of an edge between its neighbours.
    fn take_in(&mut self, from: usize, op: usize, to: usize) {
        let left = self.edges.remove(&(from, op)).unwrap_or_default();
        let right = self.edges.remove(&(op, to)).unwrap_or_default();
        let (left, right) = (self.side_by_side(left), self.side_by_side(right));
        for (one, other) in [(from, op), (op, to)] {
            self.after[one].remove(&other);
            self.before[other].remove(&one);
        }
        self.connect(from, to);
        let part = self.follow(from, left, op, &right);
        self.edges.entry((from, to)).or_default().push(part);
    }

    /// A part, an operator and a part after each other.
    fn follow(&mut self, from: usize, mut part: Part, op: usize, right: &Part) -> Part {
        for &number in self.begins.get(from).map_or(&[][..], |begins| begins) {
            if self.users[number].contains(&op) {
                let count = part.uses.get(&number).map_or(0, |uses| uses.count) + 1;
                part.uses.insert(number, Use { count, last: Some(op) });
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
                part.uses.insert(number, uses);
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
        let mut by_bytes: BTreeMap<usize, Vec<(usize, Use)>> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            for (&number, &uses) in &part.uses {
                by_bytes.entry(number).or_default().push((at, uses));
            }
        }
        let mut joined = Part::default();
        let mut couples: Vec<(u64, Vec<(usize, usize)>)> = Vec::new();
        for (number, uses) in by_bytes {
            let count = uses.iter().map(|(_, uses)| uses.count).sum();
            if count < self.users[number].len() {
                joined.uses.insert(number, Use { count, last: None });
                continue;
            }
            self.is_inside[number] = true;
            let last: Option<Vec<_>> = uses.iter().map(|&(at, uses)| Some((at, uses.last?))).collect();
            couples.extend(last.map(|last| (self.room(number), last)));
        }
        joined.stay = parts.iter().map(|part| part.stay).sum();
        joined.leave = parts.iter().map(|part| part.leave).sum();
        let mut alone: Vec<Vec<Stop>> = parts.drain(..).map(|part| part.stops).collect();
        while let Some((_, last)) = couples.first() {
            // The parts that these bytes connect, one after the other.
            let mut set: BTreeSet<usize> = last.iter().map(|&(at, _)| at).collect();
            let (mut inside, mut outside) = (Vec::new(), core::mem::take(&mut couples));
            loop {
                let touches =
                    |couple: &(u64, Vec<(usize, usize)>)| couple.1.iter().any(|(at, _)| set.contains(at));
                let (more, apart): (Vec<_>, Vec<_>) = outside.into_iter().partition(touches);
                outside = apart;
                if more.is_empty() {
                    break;
                }
                set.extend(more.iter().flat_map(|couple| couple.1.iter().map(|&(at, _)| at)));
                inside.extend(more);
            }
            couples = outside;
            let group: Vec<usize> = set.into_iter().collect();
            let stops: Vec<Vec<Stop>> = group.iter().map(|&at| core::mem::take(&mut alone[at])).collect();
            let ends = inside.iter().map(|(room, last)| {
                let end = |&(at, op): &(usize, usize)| {
                    let part = group.iter().position(|&other| other == at)?;
                    Some((part, stops[part].iter().position(|stop| stop.op == Some(op))?))
                };
                (*room, last.iter().filter_map(end).collect())
            });
            let ends: Vec<(u64, Vec<(usize, usize)>)> = ends.collect();
            alone.push(self.together(stops, &ends));
        }
        alone.retain(|stops| !stops.is_empty());
        joined.stops = apart(&alone);
        joined
    }

    /// The stops of parts that share bytes.
    fn together(&mut self, parts: Vec<Vec<Stop>>, ends: &[(u64, Vec<(usize, usize)>)]) -> Vec<Stop> {
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        let states = sizes.iter().fold(1_usize, |states, &size| states.saturating_mul(size));
        let work = states.saturating_mul(sizes.iter().sum());
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
            let behind = (0..at).filter(|&state| peaks[state] == peaks[0]);
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
            let behind = (at + 1..states).rev().filter(|&state| peaks[state] == most);
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
