//! The order of choice: a ready block of any size that fits; then one that waits; then more memory.
//! Every call of a driver happens between two short uses of the space, never inside one.

use alloc::vec::Vec;

use super::space::{Order, Space, Travel};

/// Candidates whose operations are asked before the best of them is followed.
const ASKED: usize = 64;

/// Candidates that are asked because they fit better than a ready block.
const BETTER: usize = 4;

/// Bytes: growth is at least the first, and at most the second unless the request is larger.
const GROWTH: (u64, u64) = (2 << 20, 32 << 20);

/// The least alignment of a segment (bytes).
pub(crate) const SEGMENT_ALIGNMENT: u64 = 256;

/// Looks at a pool that another thread is about to grow, before this one grows it too.
const PATIENCE: usize = 200;

/// What the operations on a block are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Complete,
    Pending,
    Failed,
}

/// Whether a request may get a block that unfinished work of another queue still uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// It may, once no other block fits: its first operation then follows that work on the device.
    #[default]
    Follow,
    /// Never: for programs in which the work of one queue waits for the host.
    Ready,
}

/// What the space lies in: locks, drivers, events.
pub(crate) trait Ground {
    type Uses: Travel;
    /// The memory of a segment.
    type Memory;
    type Error;

    /// Runs a few instructions on the space.
    fn with<R>(&self, call: impl FnOnce(&mut Space<Self::Uses, Self::Memory>) -> R) -> R;

    /// Asks the operations; never blocks.
    fn status(&self, uses: &Self::Uses) -> Status;

    fn copy(&self, uses: &Self::Uses) -> Self::Uses;

    /// Waits for all of these operations, within one limit.
    fn wait(&self, all: &[(u32, Self::Uses)]);

    /// More memory: its address and owner.
    fn grow(&self, bytes: u64, alignment: u64) -> Result<(u64, Self::Memory), Self::Error>;

    /// Whether less memory may succeed after this error.
    fn is_shortage(error: &Self::Error) -> bool;

    /// A pause while another thread works.
    fn pause(&self);

    /// Brings the blocks of all caches back to the space.
    fn gather(&self);
}

pub(crate) struct Demand {
    /// A multiple of the unit, in bytes.
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    /// The queue of the first operation, or idle if that is not known.
    pub(crate) queue: Order,
    pub(crate) reuse: Reuse,
    pub(crate) limit: u64,
    /// Bytes of a new segment; 0 for what suits.
    pub(crate) segment: u64,
}

/// A block for its owner, with the operations that its first work follows.
#[derive(Debug)]
pub(crate) struct Grant<U> {
    pub(crate) slot: u32,
    pub(crate) address: u64,
    pub(crate) uses: U,
}

/// Why no block was given.
#[derive(Debug)]
pub(crate) enum Refusal<E> {
    /// The limit, or the address space.
    Exhausted,
    Memory(E),
}

type Answer<G> = Result<Grant<<G as Ground>::Uses>, Refusal<<G as Ground>::Error>>;

/// Gives a block of the space, or says why not.
pub(crate) fn allocate<G: Ground>(ground: &G, demand: &Demand) -> Answer<G> {
    let at_once = ready(ground, demand, true)
        .or_else(|| follow(ground, demand, BETTER, Reuse::Ready))
        .or_else(|| ready(ground, demand, false));
    if let Some(grant) = at_once {
        return Ok(grant);
    }
    let mut has_gathered = false;
    for _ in 0..PATIENCE {
        if let Some(grant) = search(ground, demand) {
            return Ok(grant);
        }
        if !core::mem::replace(&mut has_gathered, true) {
            ground.gather();
            continue;
        }
        let first = ground.with(|space| !core::mem::replace(&mut space.is_growing, true));
        if first {
            break;
        }
        ground.pause();
    }
    let _guard = GrowthGuard(ground);
    let refusal = match grow(ground, demand) {
        Ok(grant) => return Ok(grant),
        Err(refusal) => refusal,
    };
    let may_wait = match &refusal {
        Refusal::Exhausted => true,
        Refusal::Memory(error) => G::is_shortage(error),
    };
    if demand.reuse == Reuse::Follow && may_wait {
        // What does not fit beside pending blocks may fit in their place. One wait for all.
        let pending_blocks = ground.with(Space::detach_all_waiting);
        if pending_blocks.is_empty() && matches!(refusal, Refusal::Memory(_)) {
            // The driver would say the same again.
            return Err(refusal);
        }
        ground.wait(&pending_blocks);
        attach_all(ground, pending_blocks);
        ground.gather();
        collect(ground);
        if let Some(grant) = search(ground, demand) {
            return Ok(grant);
        }
        return grow(ground, demand);
    }
    Err(refusal)
}

struct GrowthGuard<'g, G: Ground>(&'g G);

impl<G: Ground> Drop for GrowthGuard<'_, G> {
    fn drop(&mut self) {
        self.0.with(|space| space.is_growing = false);
    }
}

/// Any block that fits, without more memory.
fn search<G: Ground>(ground: &G, demand: &Demand) -> Option<Grant<G::Uses>> {
    let follow = || follow(ground, demand, ASKED, demand.reuse);
    if let Some(grant) = follow() {
        return Some(grant);
    }
    collect(ground);
    ready(ground, demand, false).or_else(follow)
}

/// A block whose operations are none, or of the demand's own queue. With `asks` none, if a smaller
/// one may be complete.
fn ready<G: Ground>(ground: &G, demand: &Demand, asks: bool) -> Option<Grant<G::Uses>> {
    let mut garbage = Vec::new();
    let (slot, uses, address) = ground.with(|space| {
        let slot = space.detach_ready(demand.queue, demand.size, demand.alignment, asks)?;
        let uses = space.take_uses(slot);
        let (address, has_front, has_back) = space.cut(slot, demand.size, demand.alignment);
        let at_once = uses.order() == Order::Idle || !(has_front || has_back);
        if at_once {
            space.give(slot, demand.size, demand.alignment, || Travel::NONE, &mut garbage);
        }
        Some((slot, uses, at_once.then_some(address)))
    })?;
    match address {
        Some(address) => Some(Grant { slot, address, uses }),
        None => Some(give(ground, demand, slot, uses)),
    }
}

/// Gives a detached block. What is cut off keeps copies of its operations.
fn give<G: Ground>(ground: &G, demand: &Demand, slot: u32, uses: G::Uses) -> Grant<G::Uses> {
    let mut rest = [Some(ground.copy(&uses)), Some(ground.copy(&uses))].into_iter().flatten();
    let mut garbage = Vec::new();
    let address = ground.with(|space| {
        let (address, ..) = space.cut(slot, demand.size, demand.alignment);
        let next = || rest.next().unwrap_or(Travel::NONE);
        space.give(slot, demand.size, demand.alignment, next, &mut garbage);
        address
    });
    Grant { slot, address, uses }
}

/// A block that other work has used: of `count` the smallest whose work is complete; else, where
/// `reuse` allows it, the smallest.
fn follow<G: Ground>(ground: &G, demand: &Demand, count: usize, reuse: Reuse) -> Option<Grant<G::Uses>> {
    let pending_blocks = ground.with(|space| space.detach_waiting(demand.size, demand.alignment, count));
    let (mut choice, mut others) = (None, Vec::new());
    let mut complete = Vec::new();
    for (slot, uses) in pending_blocks {
        let status = if choice.is_some() { Status::Pending } else { ground.status(&uses) };
        if status == Status::Complete {
            choice = Some((slot, Travel::NONE));
            complete.push(uses);
        } else {
            others.push((slot, uses, status));
        }
    }
    let mut waits = false;
    if choice.is_none() && reuse == Reuse::Follow {
        if let Some(first) = others.iter().position(|(.., status)| *status == Status::Pending) {
            let (slot, uses, _) = others.remove(first);
            choice = Some((slot, uses));
            waits = true;
        }
    }
    let mut garbage = Vec::new();
    ground.with(|space| {
        space.counters.waits += u64::from(waits);
        space.counters.cross_queue += u64::from(choice.is_some());
        for (slot, uses, status) in others {
            match status {
                Status::Failed => space.quarantine(slot, uses),
                _ => space.attach(slot, uses, &mut garbage),
            }
        }
    });
    let (slot, uses) = choice?;
    Some(give(ground, demand, slot, uses))
}

/// Asks all operations on free blocks of the space, and merges neighbours.
pub(crate) fn collect<G: Ground>(ground: &G) {
    let pending_blocks = ground.with(Space::detach_all_waiting);
    attach_all(ground, pending_blocks);
    let mut garbage = Vec::new();
    ground.with(|space| space.merge_all(&mut garbage));
}

/// Attaches detached blocks again, each by what its operations are doing.
fn attach_all<G: Ground>(ground: &G, pending_blocks: Vec<(u32, G::Uses)>) {
    let statuses: Vec<_> = pending_blocks
        .into_iter()
        .map(|(slot, uses)| {
            let status = ground.status(&uses);
            (slot, uses, status)
        })
        .collect();
    let (mut garbage, mut complete) = (Vec::new(), Vec::new());
    ground.with(|space| {
        for (slot, uses, status) in statuses {
            match status {
                Status::Failed => space.quarantine(slot, uses),
                Status::Pending => space.attach(slot, uses, &mut garbage),
                Status::Complete => {
                    complete.push(uses);
                    space.attach(slot, Travel::NONE, &mut garbage);
                }
            }
        }
    });
}

/// Returns segments that are one idle block, until at most `keep` bytes are reserved. Returns the
/// bytes that went.
pub(crate) fn release<G: Ground>(ground: &G, keep: u64) -> u64 {
    let mut freed_bytes = 0;
    loop {
        let remove_excess = |space: &mut Space<G::Uses, G::Memory>| match space.counters.reserved > keep {
            true => space.remove_idle_segment(),
            false => None,
        };
        let Some((segment, memory)) = ground.with(remove_excess) else { return freed_bytes };
        drop(memory);
        ground.with(|space| space.unreserve(segment.bytes));
        freed_bytes += segment.bytes;
    }
}

/// More memory: the segment's size, then less, down to the request.
fn grow<G: Ground>(ground: &G, demand: &Demand) -> Answer<G> {
    release(ground, 0);
    let reserved = ground.with(|space| space.counters.reserved);
    let usual = match demand.segment {
        0 => (reserved / 32).clamp(GROWTH.0, GROWTH.1) & !(GROWTH.0 - 1),
        bytes => bytes.next_multiple_of(super::space::UNIT),
    };
    let mut bytes = match demand.size <= usual {
        true => usual,
        false => demand.size.checked_next_multiple_of(GROWTH.0).unwrap_or(demand.size),
    };
    let alignment = demand.alignment.max(SEGMENT_ALIGNMENT);
    let mut last = Refusal::Exhausted;
    loop {
        if ground.with(|space| space.reserve(bytes, demand.limit)) {
            match ground.grow(bytes, alignment) {
                Ok((address, memory)) => {
                    let mut garbage = Vec::new();
                    let slot = ground.with(|space| {
                        let slot = space.add_segment(address, bytes, memory);
                        let none = || Travel::NONE;
                        space.give(slot, demand.size, demand.alignment, none, &mut garbage);
                        slot
                    });
                    return Ok(Grant { slot, address, uses: Travel::NONE });
                }
                Err(error) => {
                    ground.with(|space| space.unreserve(bytes));
                    let goes_on = G::is_shortage(&error);
                    last = Refusal::Memory(error);
                    if !goes_on {
                        return Err(last);
                    }
                }
            }
        }
        if bytes == demand.size {
            return Err(last);
        }
        bytes = (bytes / 2).next_multiple_of(super::space::UNIT).max(demand.size);
    }
}
