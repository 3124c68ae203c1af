//! A trace of allocations through the pool's own code, over addresses that nothing backs. The same
//! trace gives the same blocks at the same places.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::fmt;

use super::bins::{self, Bins, Flow};
use super::choice::{self, Demand, Grant, Ground, Refusal, Reuse, Status};
use super::classes;
use super::space::{Order, Space, State, Travel};
use super::table::Table;
use super::{BlockPart, BlockState, PoolSegment};
use crate::snapshot::{self, Event};

/// What a line of a trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Allocates `id`, in the order of the stream.
    Allocate,
    /// Frees `id`, in the order of the stream.
    Free,
    /// `id` is also used on the stream.
    Use,
    /// The mark of a step.
    Mark,
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The allocation; of a mark the number of the step.
    pub id: u64,
    /// Bytes of the allocation.
    pub size: u64,
    /// The stream.
    pub stream: u32,
    /// Line of the trace, from 1.
    pub line: usize,
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceError {
    /// Line of the trace, from 1.
    pub line: usize,
    /// The field: `op`, `id`, `size` or `stream`.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, field {}: {}", self.line, self.field, self.reason)
    }
}

impl core::error::Error for TraceError {}

/// Reads lines `op,id,size,stream` without a header: `a` allocates, `f` frees, `u` uses on another
/// stream, `m` marks a step. Empty lines are skipped.
///
/// # Errors
/// The first field that is missing, no number of its range, or too many. What ids stand for is
/// checked by [`replay`].
pub fn parse(text: &str) -> Result<Vec<Step>, TraceError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| parse_line(at + 1, line)).collect()
}

fn parse_line(line: usize, text: &str) -> Result<Step, TraceError> {
    let refuse = |field, reason| TraceError { line, field, reason };
    let mut fields = text.trim().split(',');
    let action = match fields.next().unwrap_or_default() {
        "a" => Action::Allocate,
        "f" => Action::Free,
        "u" => Action::Use,
        "m" => Action::Mark,
        _ => return Err(refuse("op", "not one of a, f, u and m")),
    };
    let mut number = |field: &'static str| {
        let text = fields.next().ok_or_else(|| refuse(field, "missing"))?;
        text.parse::<u64>().map_err(|_| refuse(field, "not a number from 0 to 2^64 - 1"))
    };
    let (id, size, stream) = (number("id")?, number("size")?, number("stream")?);
    let stream = u32::try_from(stream).map_err(|_| refuse("stream", "not a number below 2^32"))?;
    if fields.next().is_some() {
        return Err(refuse("stream", "more fields after it"));
    }
    if action == Action::Allocate && size == 0 {
        return Err(refuse("size", "an allocation of 0 bytes"));
    }
    Ok(Step { action, id, size, stream, line })
}

/// How a trace is replayed.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// A use is complete this many lines later on its stream.
    pub delay: u64,
    /// Whether blocks may be given out before the work of other streams is complete.
    pub reuse: Reuse,
    /// Bytes of a segment; 0 for what suits.
    pub segment: u64,
    /// Whether [`Replay::events`] is filled.
    pub history: bool,
}

/// What a trace took. Sizes in bytes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Replay {
    /// Allocations.
    pub pairs: u64,
    /// Most bytes that were live, as requested.
    pub peak_live: u64,
    /// Most bytes that the pool held.
    pub peak_reserved: u64,
    /// `peak_reserved / peak_live`; 1 without allocations.
    pub ratio: f64,
    /// 1 - largest free block / free bytes, when the pool last grew to its peak; 0 if it was full.
    pub fragmentation: f64,
    /// Allocations that got a block which another stream had used.
    pub cross_queue_reuses: u64,
    /// Those of them that had to wait for it.
    pub waits: u64,
    /// The segments when the pool last grew to its peak.
    pub segments: Vec<PoolSegment>,
    /// Allocations and frees, with the line of the trace as their time.
    pub events: Vec<Event>,
    /// Events until the pool last grew to its peak.
    pub events_to_peak: usize,
}

/// Positions on streams that are not known to be complete.
#[derive(Clone, Debug)]
struct Uses(Vec<(u32, u64)>);

impl Travel for Uses {
    const NONE: Self = Self(Vec::new());

    fn order(&self) -> Order {
        match &self.0[..] {
            [] => Order::Idle,
            [(stream, _)] => queue_of(*stream),
            _ => Order::Several,
        }
    }

    fn join(&mut self, others: Self) -> Self {
        for (stream, at) in others.0 {
            match self.0.iter_mut().find(|(other, _)| *other == stream) {
                Some((_, line)) => *line = at.max(*line),
                None => self.0.push((stream, at)),
            }
        }
        Self::NONE
    }
}

/// The queue of a stream. 0 is no queue.
fn queue_of(stream: u32) -> Order {
    Order::Queue(u64::from(stream) + 1)
}

struct Field {
    table: Table<Uses>,
    /// The one thread's cache.
    cache: Bins,
    flow: Flow,
    peak_live: Cell<u64>,
    space: RefCell<Space<Uses, ()>>,
    /// The next address that no segment had.
    next: Cell<u64>,
    /// Lines so far, by stream.
    lines: RefCell<BTreeMap<u32, u64>>,
    delay: u64,
}

impl Field {
    fn event(&self, step: &Step, action: snapshot::Action, address: u64, size: u64) -> Event {
        let current = self.flow.live();
        let queue = u64::from(step.stream);
        let origin = snapshot::Origin { queue, frames: Vec::new() };
        let time = step.line as u64;
        Event { action, address, size, time, kind: "device", current, in_segment: true, origin }
    }
}

impl Ground for Field {
    type Uses = Uses;
    type Memory = ();
    type Error = Infallible;

    fn with<R>(&self, call: impl FnOnce(&mut Space<Uses, ()>) -> R) -> R {
        call(&mut self.space.borrow_mut())
    }

    fn status(&self, uses: &Uses) -> Status {
        let lines = self.lines.borrow();
        let is_complete = |(stream, at): &(u32, u64)| {
            lines.get(stream).is_some_and(|now| at.saturating_add(self.delay) <= *now)
        };
        if uses.0.iter().all(is_complete) { Status::Complete } else { Status::Pending }
    }

    fn copy(&self, uses: &Uses) -> Uses {
        uses.clone()
    }

    fn wait(&self, _: &[(u32, Uses)]) {}

    fn grow(&self, bytes: u64, alignment: u64) -> Result<(u64, ()), Infallible> {
        // The address space was reserved with the bytes.
        let address = self.next.get().next_multiple_of(alignment);
        self.next.set(address + bytes);
        Ok((address, ()))
    }

    fn is_shortage(error: &Infallible) -> bool {
        match *error {}
    }

    fn pause(&self) {}

    fn gather(&self) {
        let mut garbage = Vec::new();
        let chain = self.cache.empty(&self.table, false);
        self.with(|space| space.take_chain(chain, &mut garbage));
    }
}

impl Field {
    /// As [`Pool`](super::Pool) allocates: the thread's cache, the shared store, the space.
    fn allocate(&self, demand: &Demand, bytes: u64) -> Result<Grant<Uses>, Refusal<Infallible>> {
        let own = self.cache.take(&self.table, demand.size, demand.alignment, demand.queue);
        let own = own.map(|block| block.ticket);
        let ticket = own.or_else(|| self.with(|space| space.take_stored(demand, &self.cache)));
        let hit = ticket.and_then(|ticket| {
            let slot = ticket.slot();
            let block = self.table.get(slot)?;
            Some(Grant { slot, address: block.address.get(), uses: self.table.take_uses(slot) })
        });
        let grant = match hit {
            Some(grant) => grant,
            None => {
                if demand.size > classes::SMALL {
                    let mut garbage = Vec::new();
                    let chain = self.cache.empty(&self.table, true);
                    self.with(|space| space.take_chain(chain, &mut garbage));
                }
                choice::allocate(self, demand)?
            }
        };
        if let Some(block) = self.table.get(grant.slot) {
            block.bytes.set(bytes);
        }
        self.flow.allocate(bytes);
        self.peak_live.set(self.peak_live.get().max(self.flow.live()));
        Ok(grant)
    }

    fn free(&self, slot: u32, uses: Uses) {
        let Some(block) = self.table.get(slot) else { return };
        self.flow.free(block.bytes.get());
        block.bytes.set(0);
        self.table.set_uses(slot, uses);
        let mut garbage = Vec::new();
        let room = bins::room(self.with(|space| space.counters.reserved));
        let excess = self.cache.put(&self.table, slot, block, room);
        self.with(|space| space.take_over(excess, false, &mut garbage));
    }
}

struct Live {
    slot: u32,
    address: u64,
    bytes: u64,
    uses: Uses,
}

/// Addresses that a replay may use in all.
const ADDRESSES: u64 = 1 << 62;

/// Replays a trace.
///
/// # Errors
/// An id that lives when it is allocated, or does not when it is freed or used; a size above the
/// address space.
pub fn replay(steps: &[Step], options: &ReplayOptions) -> Result<Replay, TraceError> {
    let table = Table::new();
    let field = Field {
        space: RefCell::new(Space::new(table.clone())),
        table,
        cache: Bins::new(),
        flow: Flow::new(),
        peak_live: Cell::new(0),
        next: Cell::new(1 << 20),
        lines: RefCell::default(),
        delay: options.delay,
    };
    let mut live = BTreeMap::<u64, Live>::new();
    let mut replay = Replay { ratio: 1.0, ..Replay::default() };
    for step in steps {
        let refuse = |field, reason| TraceError { line: step.line, field, reason };
        let now = match step.action {
            Action::Mark => continue,
            _ => {
                let mut lines = field.lines.borrow_mut();
                let line = lines.entry(step.stream).or_default();
                *line += 1;
                *line
            }
        };
        let unknown_id = || refuse("id", "not allocated, or freed already");
        match step.action {
            Action::Allocate => {
                if live.contains_key(&step.id) {
                    return Err(refuse("id", "allocated already"));
                }
                let size = Space::<Uses, ()>::round(step.size).filter(|size| *size < ADDRESSES);
                let size = size.ok_or_else(|| refuse("size", "above the address space"))?;
                if field.next.get() > ADDRESSES {
                    return Err(refuse("size", "no addresses are left"));
                }
                let before = field.with(|space| space.counters.peak_reserved);
                let demand = Demand {
                    size,
                    alignment: super::space::UNIT,
                    queue: queue_of(step.stream),
                    reuse: options.reuse,
                    limit: ADDRESSES,
                    segment: options.segment,
                };
                let grant = field.allocate(&demand, step.size).map_err(|refusal| match refusal {
                    Refusal::Exhausted => refuse("size", "the live blocks exceed the address space"),
                    Refusal::Memory(error) => match error {},
                })?;
                replay.pairs += 1;
                let (slot, address, bytes) = (grant.slot, grant.address, step.size);
                live.insert(step.id, Live { slot, address, bytes, uses: Uses::NONE });
                if options.history {
                    replay.events.push(field.event(step, snapshot::Action::Allocate, address, bytes));
                }
                field.with(|space| {
                    if space.counters.peak_reserved > before {
                        let all = [space.free_bytes(), space.store.free_bytes(), field.cache.free_bytes()];
                        let free: u64 = all.iter().map(|(idle, pending)| idle + pending).sum();
                        let largest = space.largest_free() as f64;
                        replay.fragmentation = if free == 0 { 0.0 } else { 1.0 - largest / free as f64 };
                        replay.segments = segments_of(space);
                        replay.events_to_peak = replay.events.len();
                    }
                });
            }
            Action::Use => {
                let used = live.get_mut(&step.id).ok_or_else(unknown_id)?;
                let _ = used.uses.join(Uses(alloc::vec![(step.stream, now)]));
            }
            Action::Free => {
                let Live { slot, address, bytes, mut uses } = live.remove(&step.id).ok_or_else(unknown_id)?;
                let _ = uses.join(Uses(alloc::vec![(step.stream, now)]));
                field.free(slot, uses);
                if options.history {
                    replay.events.push(field.event(step, snapshot::Action::Free, address, bytes));
                }
            }
            Action::Mark => {}
        }
    }
    let counters = field.with(|space| space.counters);
    replay.peak_live = field.peak_live.get();
    replay.peak_reserved = counters.peak_reserved;
    if replay.peak_live > 0 {
        replay.ratio = counters.peak_reserved as f64 / replay.peak_live as f64;
    }
    (replay.waits, replay.cross_queue_reuses) = (counters.waits, counters.cross_queue);
    Ok(replay)
}

impl PoolSegment {
    /// The segment for viewers: blocks that an owner has, or unfinished work uses.
    #[must_use]
    pub fn for_viewers(&self, kind: &'static str) -> snapshot::Segment {
        let used = self.blocks.iter().filter(|block| block.state != BlockState::Cached);
        let block = |block: &BlockPart| snapshot::Block {
            address: block.address,
            size: block.size,
            requested: block.requested,
            is_pending: block.state != BlockState::Live,
            origin: snapshot::Origin::default(),
        };
        snapshot::Segment { address: self.address, size: self.size, kind, blocks: used.map(block).collect() }
    }
}

/// The segments of a space by address, and the blocks that tile each.
pub(super) fn segments_of<U: Travel, H>(space: &Space<U, H>) -> Vec<PoolSegment> {
    let mut all: Vec<PoolSegment> = space
        .segments()
        .map(|(_, segment)| PoolSegment {
            address: segment.address,
            size: segment.bytes,
            blocks: space
                .blocks_of(segment)
                .map(|block| BlockPart {
                    address: block.address.get(),
                    size: block.size.get(),
                    requested: block.bytes.get(),
                    state: match block.state() {
                        State::Out if block.is_live() => BlockState::Live,
                        State::Quarantined => BlockState::Leaked,
                        _ if block.order() == Order::Idle => BlockState::Cached,
                        _ => BlockState::Pending,
                    },
                })
                .collect(),
        })
        .collect();
    all.sort_unstable_by_key(|segment| segment.address);
    all
}
