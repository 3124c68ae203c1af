//! Parts that run side by side and read the same result: it ends with the last of its readers.
//!
//! Which part should read last hangs on what all of them leave behind, so all combinations of their
//! stops are compared. What comes out is one profile, as good as any other order of these parts at
//! every limit: live bytes are a submodular function of the finished operators, so the states with
//! the fewest bytes within a limit contain each other, and one order passes through all of them.

use alloc::vec::Vec;

use super::profile::{Links, Profile, Step};
use super::reduce::Tree;
use super::{Model, profile};
use crate::sort;

/// Most combinations of stops.
const STATES: usize = 1 << 16;

/// A result that several parts read.
#[derive(Clone, Debug)]
struct Root {
    room: u64,
    /// Its readers: the part, and the operator that is the last one there in every order.
    readers: Vec<(usize, u32)>,
}

/// The results that parts side by side share.
#[derive(Debug)]
pub(super) struct Shared {
    roots: Vec<Root>,
}

impl Shared {
    /// What is read by some of these parts, and by nothing else.
    pub(super) fn of(tree: &Tree, model: &Model, beside: &[u32]) -> Self {
        let mut readers: Vec<(u32, usize, usize, Option<u32>)> = Vec::new();
        for (at, &part) in beside.iter().enumerate() {
            let of_part = tree.parts[part as usize].readers.iter();
            readers.extend(of_part.map(|readers| (readers.root, at, readers.count(), readers.last)));
        }
        let mut by_root: Vec<u32> = (0..readers.len() as u32).collect();
        sort::by_key(&mut by_root, |at| readers[at as usize].0);
        let root_of = |at: &u32| readers[*at as usize].0;
        let mut roots = Vec::new();
        for at in by_root.chunk_by(|one, other| root_of(one) == root_of(other)) {
            let root = root_of(&at[0]) as usize;
            let readers = || at.iter().map(|&at| readers[at as usize]);
            let count: usize = readers().map(|(_, _, count, _)| count).sum();
            if count < model.readers[root].len() {
                continue;
            }
            // Where the order inside of a part decides, the result is left out of the sums.
            let last: Option<Vec<(usize, u32)>> =
                readers().map(|(_, at, _, last)| Some((at, last?))).collect();
            roots.extend(last.map(|readers| Root { room: model.rooms[root], readers }));
        }
        Self { roots }
    }

    /// The parts, with those that share a result as one.
    /// `work` limits how many states are compared; `None` once `stop` says so.
    pub(super) fn merge(
        &self,
        mut profiles: Vec<Profile>,
        links: &mut Links,
        work: &mut usize,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Profile>> {
        if self.roots.is_empty() {
            return Some(profiles);
        }
        // For each part the first one that it is connected with.
        let mut group: Vec<usize> = (0..profiles.len()).collect();
        let first = |group: &[usize], mut at: usize| {
            while group[at] != at {
                at = group[at];
            }
            at
        };
        for root in &self.roots {
            for pair in root.readers.windows(2) {
                let (one, other) = (first(&group, pair[0].0), first(&group, pair[1].0));
                group[one.max(other)] = one.min(other);
            }
        }
        let mut results = Vec::new();
        for at in 0..profiles.len() {
            if first(&group, at) != at {
                continue;
            }
            let parts: Vec<usize> = (at..profiles.len()).filter(|&part| first(&group, part) == at).collect();
            let of_parts = parts.iter().map(|&part| core::mem::take(&mut profiles[part])).collect();
            let roots: Vec<&Root> =
                self.roots.iter().filter(|root| parts.contains(&root.readers[0].0)).collect();
            results.push(if roots.is_empty() {
                profile::merge(of_parts, links)
            } else {
                match Lattice::new(of_parts, &parts, &roots, work) {
                    Ok(lattice) => lattice.profile(links, stop)?,
                    Err(profiles) => profile::merge(profiles, links),
                }
            });
        }
        Some(results)
    }
}

/// A state: how many steps each part has run, as one number.
struct Lattice {
    profiles: Vec<Profile>,
    /// By how much the number grows with a step of each part.
    strides: Vec<usize>,
    /// Live bytes of each state.
    live: Vec<u64>,
    /// The lowest peak on a way from the begin to each state, and from it to the end.
    from_begin: Vec<u64>,
    to_end: Vec<u64>,
}

impl Lattice {
    /// The profiles again if there are too many states.
    fn new(
        profiles: Vec<Profile>,
        parts: &[usize],
        roots: &[&Root],
        work: &mut usize,
    ) -> Result<Self, Vec<Profile>> {
        let mut strides = Vec::with_capacity(profiles.len());
        let mut states = 1_usize;
        for profile in &profiles {
            strides.push(states);
            states = states.saturating_mul(profile.steps.len() + 1);
        }
        let steps: usize = profiles.iter().map(|profile| profile.steps.len()).sum();
        // A pass over all states for each step of the result.
        match work.checked_sub(states.saturating_mul(steps).saturating_mul(profiles.len())) {
            Some(rest) if states <= STATES => *work = rest,
            _ => return Err(profiles),
        }
        let live = Vec::with_capacity(states);
        let mut lattice = Self { profiles, strides, live, from_begin: Vec::new(), to_end: Vec::new() };
        // The steps after which each part has read each root.
        let mut ends: Vec<(u64, Vec<(usize, usize)>)> = Vec::new();
        for root in roots {
            let end = |&(part, op): &(usize, u32)| {
                let at = parts.iter().position(|&other| other == part)?;
                let mut steps = lattice.profiles[at].steps.iter();
                Some((at, steps.position(|step| step.mark == Some(op))? + 1))
            };
            let Some(readers) = root.readers.iter().map(end).collect() else { continue };
            ends.push((root.room, readers));
        }
        for state in 0..states {
            let own =
                (0..lattice.profiles.len()).map(|part| lattice.profiles[part].live(lattice.at(state, part)));
            let shared = ends
                .iter()
                .filter(|(_, readers)| readers.iter().any(|&(part, steps)| lattice.at(state, part) < steps));
            lattice.live.push(own.sum::<u64>() + shared.map(|&(room, _)| room).sum::<u64>());
        }
        lattice.from_begin = lattice.ways_up(0).into_iter().map(|(peak, _)| peak).collect();
        lattice.to_end = lattice.ways_down(states - 1).into_iter().map(|(peak, _)| peak).collect();
        Ok(lattice)
    }

    /// The steps that a part has run in a state.
    fn at(&self, state: usize, part: usize) -> usize {
        state / self.strides[part] % (self.profiles[part].steps.len() + 1)
    }

    /// The most bytes at the next step of a part.
    fn peak(&self, state: usize, part: usize) -> Option<u64> {
        let profile = &self.profiles[part];
        let at = self.at(state, part);
        Some(self.live[state] - profile.live(at) + profile.steps.get(at)?.peak)
    }

    /// The profile of the best order; `None` once `stop` says so.
    fn profile(&self, links: &mut Links, stop: &dyn Fn() -> bool) -> Option<Profile> {
        let end = self.live.len() - 1;
        // Of equal states the last one: it contains the others.
        let least = (0..=end).rev().min_by_key(|&state| self.live[state]).unwrap_or(0);
        let mut steps = Vec::new();
        let mut to = least;
        while to != 0 {
            if stop() {
                return None;
            }
            let (from, way, peak) = self.down(to);
            steps.push((way, peak, self.live[to]));
            to = from;
        }
        steps.reverse();
        let mut from = least;
        while from != end {
            if stop() {
                return None;
            }
            let (to, way, peak) = self.up(from);
            steps.push((way, peak, self.live[to]));
            from = to;
        }
        let mut profile = Profile::new(self.live[0]);
        let mut ran = alloc::vec![0; self.profiles.len()];
        for (way, peak, live) in steps {
            for part in way {
                let step = self.profiles[part].steps[ran[part]];
                ran[part] += 1;
                profile.push(Step { peak, live: peak, ops: step.ops, mark: None }, links);
            }
            // All of the way is one step, whatever lies between.
            if let Some(last) = profile.steps.pop() {
                profile.push(Step { live, ..last }, links);
            }
        }
        Some(profile)
    }

    /// From a state on, the lowest peak on a way to each state, and the part that steps last.
    fn ways_up(&self, from: usize) -> Vec<(u64, usize)> {
        let (end, parts) = (self.live.len() - 1, self.profiles.len());
        let mut best = alloc::vec![(u64::MAX, 0); end + 1];
        best[from] = (0, 0);
        for state in from..=end {
            if best[state].0 == u64::MAX {
                continue;
            }
            for part in 0..parts {
                let Some(peak) = self.peak(state, part) else { continue };
                let most = peak.max(best[state].0);
                let next = &mut best[state + self.strides[part]];
                *next = (*next).min((most, part));
            }
        }
        best
    }

    /// From a state on, the one with the fewest bytes behind the highest peak on the way to the
    /// end, from which the rest of the way has no higher one: the parts that step on the way there,
    /// and the peak.
    fn up(&self, from: usize) -> (usize, Vec<usize>, u64) {
        let (best, end) = (self.ways_up(from), self.live.len() - 1);
        let peak = best[end].0;
        let behind =
            (from + 1..=end).rev().filter(|&state| best[state].0 == peak && self.to_end[state] <= peak);
        let to = behind.min_by_key(|&state| self.live[state]).unwrap_or(end);
        let mut way = Vec::new();
        let mut state = to;
        while state != from {
            way.push(best[state].1);
            state -= self.strides[best[state].1];
        }
        way.reverse();
        (to, way, peak)
    }

    /// The same as [`ways_up`](Self::ways_up) with time backwards.
    fn ways_down(&self, to: usize) -> Vec<(u64, usize)> {
        let parts = self.profiles.len();
        let mut best = alloc::vec![(u64::MAX, 0); to + 1];
        best[to] = (0, 0);
        for state in (1..=to).rev() {
            if best[state].0 == u64::MAX {
                continue;
            }
            for part in (0..parts).filter(|&part| self.at(state, part) > 0) {
                let earlier = state - self.strides[part];
                let peak = self.peak(earlier, part).unwrap_or(u64::MAX);
                best[earlier] = best[earlier].min((peak.max(best[state].0), part));
            }
        }
        best
    }

    /// The same as [`up`](Self::up) with time backwards.
    fn down(&self, to: usize) -> (usize, Vec<usize>, u64) {
        let best = self.ways_down(to);
        let peak = best[0].0;
        let before = (0..to).filter(|&state| best[state].0 == peak && self.from_begin[state] <= peak);
        let from = before.min_by_key(|&state| self.live[state]).unwrap_or(0);
        let mut way = Vec::new();
        let mut state = from;
        while state != to {
            way.push(best[state].1);
            state += self.strides[best[state].1];
        }
        (from, way, peak)
    }
}
