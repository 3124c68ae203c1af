//! Series-parallel graphs: the best order in polynomial time.
//!
//! Operators that lie between two others and touch nothing else are a *part*. What a part needs
//! over time is a [`Profile`]. Parts that follow each other join their profiles; those that run
//! side by side merge them (Liu 1987, Abdel-Wahab and Kameda 1978, Kayaaslan and others 2018). A
//! result that several parts read ends with the last of them: then all combinations of their
//! valleys are compared, which takes more time the more parts read it.
//!
//! What does not fit the model is left out of the sums, so they stay a bound for every order.

mod profile;
mod reduce;
mod shared;

use alloc::vec::Vec;

use self::profile::{Links, Profile, Step};
use self::reduce::{Form, Tree};
use self::shared::Shared;
use super::lives::Lives;

/// An order for a series-parallel graph, and bytes that no order is below.
#[derive(Debug)]
pub(super) struct Solution {
    pub(super) order: Vec<u32>,
    pub(super) bound: u64,
}

/// What the roots that an operator begins or ends add to a part.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Live from the operator on, for the caller.
    stay: u64,
    /// Live from the begin of the run up to an operator.
    leave: u64,
}

/// Which operator begins a root, and how many read it.
#[derive(Clone, Debug)]
struct Model {
    /// For each operator the bytes that begin with it.
    begin_bytes: Vec<u64>,
    sums: Vec<Sums>,
    /// For each operator the roots that it begins and others read.
    roots: Vec<Vec<u32>>,
    /// The readers of each root; none for a root of another kind.
    readers: Vec<Vec<u32>>,
    rooms: Vec<u64>,
    /// Live throughout.
    base: u64,
}

impl Model {
    fn new(lives: &Lives) -> Self {
        let (n, count) = (lives.len(), lives.roots.len());
        let mut users = alloc::vec![Vec::new(); count];
        for (roots, op) in lives.uses.iter().zip(0_u32..) {
            roots.iter().for_each(|&root| users[root as usize].push(op));
        }
        let mut model = Self {
            begin_bytes: alloc::vec![0; n],
            sums: alloc::vec![Sums::default(); n],
            roots: alloc::vec![Vec::new(); n],
            readers: alloc::vec![Vec::new(); count],
            rooms: lives.roots.iter().map(|root| root.room).collect(),
            base: 0,
        };
        for (at, (root, users)) in lives.roots.iter().zip(users).enumerate() {
            match (root.from_start, root.to_end, &users[..]) {
                (true, true, _) => model.base += root.room,
                (true, false, &[op]) => model.sums[op as usize].leave += root.room,
                (false, to_end, &[op, ref readers @ ..]) => {
                    if readers.iter().any(|&reader| !lives.before[reader as usize].contains(&op)) {
                        continue;
                    }
                    model.begin_bytes[op as usize] += root.room;
                    if to_end {
                        model.sums[op as usize].stay += root.room;
                    } else if !readers.is_empty() {
                        model.roots[op as usize].push(at as u32);
                        model.readers[at] = readers.to_vec();
                    }
                }
                // Several operators may be the last: left out.
                _ => {}
            }
        }
        model
    }
}

/// Most steps of profiles that are changed.
const WORK: usize = 1 << 28;

/// The best order of a series-parallel graph; `None` for another graph, or if there is too much to
/// compare.
pub(super) fn solve(lives: &Lives, stop: &dyn Fn() -> bool) -> Option<Solution> {
    let model = Model::new(lives);
    let tree = Tree::of(lives, &model)?;
    let mut links = Links::new(lives.len());
    let mut values: Vec<Option<(Profile, Sums)>> = Vec::with_capacity(tree.parts.len());
    let (mut work, mut states) = (WORK, WORK);
    // A part follows the parts that it consists of.
    for (at, part) in tree.parts.iter().enumerate() {
        if at % 1024 == 0 && stop() {
            return None;
        }
        let mut take = |part: u32| match part {
            reduce::EMPTY => Some((Profile::default(), Sums::default())),
            part => values.get_mut(part as usize)?.take(),
        };
        let value = match &part.form {
            Form::Series { left, op, right, end_bytes, through, is_marked } => {
                let (mut profile, before) = take(*left)?;
                let (after, mut sums) = take(*right)?;
                work = work.checked_sub(profile.steps.len() + after.steps.len())?;
                let own = model.sums[*op as usize];
                profile.raise(end_bytes + own.leave + sums.leave);
                let stay = before.stay + own.stay;
                let peak = profile.end() + model.begin_bytes[*op as usize];
                let offset = stay + through;
                profile.push(
                    Step {
                        peak,
                        live: offset + after.start,
                        ops: links.one(*op),
                        mark: is_marked.then_some(*op),
                    },
                    &mut links,
                );
                for step in after.steps {
                    let (peak, live) = (step.peak + offset, step.live + offset);
                    profile.push(Step { peak, live, mark: None, ..step }, &mut links);
                }
                sums = Sums { stay: stay + sums.stay, leave: before.leave + own.leave + sums.leave };
                Some((profile, sums))
            }
            Form::Parallel { .. } if part.is_joined => None,
            Form::Parallel { .. } => {
                let beside = tree.beside(at as u32);
                let shared = Shared::of(&tree, &model, &beside);
                let mut sums = Sums::default();
                let mut profiles = Vec::with_capacity(beside.len());
                for &part in &beside {
                    let (profile, more) = take(part)?;
                    sums = Sums { stay: sums.stay + more.stay, leave: sums.leave + more.leave };
                    profiles.push(profile);
                }
                let profiles = shared.merge(profiles, &mut links, &mut states, stop)?;
                Some((profile::merge(profiles, &mut links), sums))
            }
        };
        values.push(value);
    }
    let (profile, _) = values.pop()??;
    let slack = lives.slacks.first().copied().unwrap_or(0);
    let has_permits = lives.permits.iter().any(|permits| !permits.is_empty());
    let bound = if has_permits { 0 } else { (profile.peak() + model.base).saturating_sub(slack) };
    let order: Vec<u32> = profile.steps.iter().flat_map(|step| links.ops(step.ops)).collect();
    Some(Solution { order, bound })
}
