//! What a part of a graph needs over time: peaks, and what is live between them.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::sort;

/// Operators in an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ops {
    first: u32,
    last: u32,
}

const END: u32 = u32::MAX;

/// For each operator the next one: two lists join in one step.
#[derive(Debug)]
pub(super) struct Links {
    next: Vec<u32>,
}

impl Links {
    pub(super) fn new(ops: usize) -> Self {
        Self { next: alloc::vec![END; ops] }
    }

    pub(super) fn one(&self, op: u32) -> Ops {
        Ops { first: op, last: op }
    }

    fn join(&mut self, first: Ops, then: Ops) -> Ops {
        self.next[first.last as usize] = then.first;
        Ops { first: first.first, last: then.last }
    }

    /// The operators of a list.
    pub(super) fn ops(&self, ops: Ops) -> impl Iterator<Item = u32> + '_ {
        let next = move |&op: &u32| (op != ops.last).then(|| self.next[op as usize]);
        core::iter::successors(Some(ops.first), next)
    }
}

/// Operators that run without a stop between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The most bytes at one of them.
    pub(super) peak: u64,
    /// Live after the last one.
    pub(super) live: u64,
    pub(super) ops: Ops,
    /// The last one, if other parts may wait for it: then the step ends there.
    pub(super) mark: Option<u32>,
}

/// The steps of a part. Between two of them other parts may run.
///
/// A stop is left out if it is never needed. The one before it has no more live bytes, and the peak
/// up to it is no higher than the peak after it: then the first of the two steps may wait. Or the
/// stop after it has no more live bytes, and its peak is no higher: then the second may follow at
/// once. What is left goes down, with peaks that rise, and then up, with peaks that fall.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    /// Live before the first step.
    pub(super) start: u64,
    pub(super) steps: Vec<Step>,
}

impl Profile {
    pub(super) fn new(start: u64) -> Self {
        Self { start, steps: Vec::new() }
    }

    /// Live after so many steps.
    pub(super) fn live(&self, steps: usize) -> u64 {
        steps.checked_sub(1).map_or(self.start, |last| self.steps[last].live)
    }

    /// Live after the last step.
    pub(super) fn end(&self) -> u64 {
        self.live(self.steps.len())
    }

    pub(super) fn peak(&self) -> u64 {
        self.steps.iter().map(|step| step.peak.max(step.live)).fold(self.start, u64::max)
    }

    /// So many bytes more, throughout.
    pub(super) fn raise(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.start += bytes;
        for step in &mut self.steps {
            step.peak += bytes;
            step.live += bytes;
        }
    }

    /// Adds a step, without the stops that it makes needless.
    pub(super) fn push(&mut self, mut step: Step, links: &mut Links) {
        while let Some(&last) = self.steps.last() {
            let before = self.live(self.steps.len() - 1);
            let waits = before <= last.live && last.peak <= step.peak;
            let follows = step.live <= last.live && step.peak <= last.peak;
            if last.mark.is_some() || !(waits || follows) {
                break;
            }
            self.steps.pop();
            step = Step { peak: step.peak.max(last.peak), ops: links.join(last.ops, step.ops), ..step };
        }
        self.steps.push(step);
    }

    /// The same without marks.
    fn unmarked(self, links: &mut Links) -> Self {
        if self.steps.iter().all(|step| step.mark.is_none()) {
            return self;
        }
        let mut profile = Self::new(self.start);
        for step in self.steps {
            profile.push(Step { mark: None, ..step }, links);
        }
        profile
    }
}

/// The best order of parts that run side by side and share nothing.
///
/// All go down to where the fewest bytes are live, and up from there. Upwards the step that leaves
/// the least of its peak behind goes first. Downwards it is the same with time backwards.
pub(super) fn merge(profiles: Vec<Profile>, links: &mut Links) -> Profile {
    let mut profiles: Vec<Profile> = profiles.into_iter().map(|profile| profile.unmarked(links)).collect();
    if profiles.len() == 1 {
        return profiles.pop().unwrap_or_default();
    }
    let mut live = 0;
    // Each step with what is live before it; those on the way down by number, and those on the way
    // up.
    let mut steps: Vec<(u64, Step)> = Vec::new();
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for profile in &profiles {
        live += profile.start;
        let (mut turn, mut least) = (0, profile.start);
        for (at, step) in profile.steps.iter().enumerate() {
            if step.live <= least {
                (turn, least) = (at + 1, step.live);
            }
        }
        for (at, &step) in profile.steps.iter().enumerate() {
            let side = if at < turn { &mut down } else { &mut up };
            side.push(steps.len() as u32);
            steps.push((profile.live(at), step));
        }
    }
    // Stable: the steps of one part stay in their order.
    sort::by_key(&mut down, |number| {
        let (before, step) = steps[number as usize];
        step.peak - before
    });
    sort::by_key(&mut up, |number| {
        let (_, step) = steps[number as usize];
        Reverse(step.peak - step.live)
    });
    let mut result = Profile::new(live);
    for number in down.into_iter().chain(up) {
        let (before, step) = steps[number as usize];
        let others = live - before;
        live = others + step.live;
        result.push(Step { peak: others + step.peak, live, ..step }, links);
    }
    result
}
