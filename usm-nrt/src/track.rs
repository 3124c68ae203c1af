//! Which blocks are alive, for finding leaks. Misuse is `misuse.rs`'s.
//!
//! Tracking is a switch ([`set_tracking`](crate::set_tracking)) that costs nothing while off. Only
//! blocks made while it is on are known.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use spin::Mutex;

use crate::block::BUILTIN;
use crate::error::Error;
use crate::fork;
use crate::local;
use crate::meminfo::MemInfo;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::spread::Spread;
use crate::stats::Event;
use crate::system::{self, Switches};

/// A block that is alive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveBlock {
    /// Address of the header.
    pub address: usize,
    /// Address of the data.
    pub data: usize,
    /// Bytes of data; 0 when not known.
    pub size: usize,
    /// References at the moment of the report; 0 for a block of an external allocator, which
    /// another runtime may have freed unseen.
    pub refcount: usize,
    /// How many blocks were tracked before this one: the order of allocation.
    pub sequence: u64,
    /// Where it was allocated: a stack trace with the features `std` and `debug`, else empty.
    pub origin: String,
}

impl fmt::Display for LiveBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, data, size, refcount, sequence, origin } = self;
        write!(f, "block {sequence}: header {address:#x} data {data:#x} size {size} refcount {refcount}")?;
        if origin.is_empty() { Ok(()) } else { write!(f, "\n{origin}") }
    }
}

struct Record {
    sequence: u64,
    origin: Origin,
    /// At birth.
    data: usize,
    /// At birth.
    size: usize,
    /// Whether the block cannot go without leaving the registry. Blocks of an external allocator
    /// can: another runtime frees them through it, and nobody tells us.
    ours: bool,
}

impl Record {
    fn new(mi: NonNull<MemInfo>, sequence: u64, origin: Origin) -> Self {
        // SAFETY: the header was just written, and its maker has not given it away yet.
        let mi = unsafe { mi.as_ref() };
        let ours = core::ptr::eq(mi.external_allocator(), &raw const BUILTIN);
        Self { sequence, origin, data: mi.data().addr(), size: mi.size(), ours }
    }
}

#[cfg(feature = "debug")]
type Origin = std::backtrace::Backtrace;
#[cfg(not(feature = "debug"))]
type Origin = &'static str;

fn origin() -> Origin {
    #[cfg(feature = "debug")]
    return misuse::stack();
    #[cfg(not(feature = "debug"))]
    ""
}

pub(crate) struct Registry {
    live: Live,
    next: u64,
}

/// By the address of the header.
type Live = HashMap<usize, Record, Spread>;

const fn none() -> Live {
    HashMap::with_hasher(Spread::new())
}

pub(crate) static REGISTRY: Mutex<Registry> = Mutex::new(Registry { live: none(), next: 0 });

/// Starts or stops keeping a record of every block made, for [`crate::live_blocks`]. Off at start.
/// Stopping forgets all of them: what is freed while nobody looks must not be read later.
pub fn set_tracking(on: bool) {
    fork::watch();
    let mut registry = REGISTRY.lock();
    // Under the lock, so that no record is made after the registry was emptied.
    system::switch_tracking(on);
    let gone = if on { none() } else { registry.take() };
    drop(registry);
    drop(gone);
}

impl Registry {
    /// Empties it. What was in it is to be dropped without the lock held.
    fn take(&mut self) -> Live {
        core::mem::replace(&mut self.live, none())
    }
}

/// A block was made, with its memory.
#[inline]
pub(crate) fn born(mi: NonNull<MemInfo>) {
    // Also where the memory is somebody else's: a freed block of ours may have lain there.
    #[cfg(feature = "debug")]
    misuse::born(mi.cast());
    observe(mi, [Event::Alloc, Event::MiAlloc], true);
}

/// A block is about to be freed, with its memory.
#[inline]
pub(crate) fn died(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free, Event::MiFree], false);
}

/// The memory of a block is about to be freed by hand.
#[cfg(feature = "capi")]
pub(crate) fn released(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free], false);
}

/// Blocks that another runtime destroyed while counting was on.
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

/// Another runtime destroyed a block and is about to free its memory: the ledger must know, or it
/// would look into it.
pub(crate) fn left(mi: NonNull<MemInfo>) {
    if system::stats_enabled() {
        FOREIGN.fetch_add(1, Ordering::Relaxed);
    }
    died(mi);
}

/// How many blocks another runtime destroyed while counting was on ([`crate::set_stats`]). The
/// statistics have them as freed, and so has the other runtime if it counts: subtract this when
/// both are added.
pub fn foreign_frees() -> usize {
    FOREIGN.load(Ordering::Relaxed)
}

/// A header was written into memory that was counted already.
#[cfg(feature = "capi")]
pub(crate) fn adopted(mi: NonNull<MemInfo>) {
    // Also where the memory is somebody else's: a freed block of ours may have lain there.
    #[cfg(feature = "debug")]
    misuse::born(mi.cast());
    observe(mi, [Event::MiAlloc], true);
}

#[inline]
fn observe<const N: usize>(mi: NonNull<MemInfo>, events: [Event; N], alive: bool) {
    let switches = system::switches();
    if switches.is_counted() {
        local::count(events);
    }
    if switches.is_tracked() {
        record(mi, alive);
    }
}

/// [`born`] where nothing can be tracked.
#[inline(always)]
pub(crate) fn counted_birth(switches: Switches) {
    if switches.is_counted() {
        local::count([Event::Alloc, Event::MiAlloc]);
    }
}

/// [`died`] where nothing can be tracked.
#[inline(always)]
pub(crate) fn counted_death(switches: Switches) {
    if switches.is_counted() {
        local::count([Event::Free, Event::MiFree]);
    }
}

#[cold]
#[inline(never)]
fn record(mi: NonNull<MemInfo>, alive: bool) {
    if alive {
        // `live_blocks` makes a pointer of it again.
        let address = mi.as_ptr().expose_provenance();
        // Captured and dropped outside the lock: both allocate.
        let origin = self::origin();
        let mut registry = REGISTRY.lock();
        if !system::switches().is_tracked() {
            return;
        }
        let sequence = registry.next;
        registry.next += 1;
        // Without memory for its record a block is not listed; whoever asked for it has it
        // nevertheless.
        if registry.live.try_reserve(1).is_ok() {
            let _gone = registry.live.insert(address, Record::new(mi, sequence, origin));
            drop(registry);
        }
    } else {
        forget(mi.addr().get());
    }
    #[cfg(feature = "debug")]
    misuse::trace(if alive { "made" } else { "freed" }, mi);
}

/// Memory is about to be freed: it holds no header any more.
fn forget(address: usize) {
    // Dropped outside the lock.
    let _gone = REGISTRY.lock().live.remove(&address);
}

/// Memory is about to be freed by somebody who may have had a header in it.
#[inline]
pub(crate) fn freed(block: NonNull<u8>) {
    if system::switches().is_tracked() {
        forget(block.addr().get());
    }
}

/// The tracked blocks that are alive now, in the order of their allocation. Fails without memory
/// for the list.
pub fn live_blocks() -> Result<Vec<LiveBlock>, Error> {
    let mut blocks = Vec::new();
    fork::watch();
    let registry = REGISTRY.lock();
    let count = registry.live.len();
    let size = count.saturating_mul(size_of::<LiveBlock>());
    blocks.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { size })?;
    for (&address, record) in &registry.live {
        let Record { sequence, origin, data, size, ours } = record;
        let mut block = LiveBlock {
            address,
            data: *data,
            size: *size,
            refcount: 0,
            sequence: *sequence,
            origin: origin.to_string(),
        };
        if *ours {
            let mi = core::ptr::with_exposed_provenance::<MemInfo>(address);
            // SAFETY: exposed by `record`; these blocks leave the registry, under its lock, before
            // they are freed.
            let mi = unsafe { &*mi };
            (block.data, block.size, block.refcount) = (mi.data().addr(), mi.size(), mi.refcount());
        }
        blocks.push(block);
    }
    drop(registry);
    blocks.sort_unstable_by_key(|block| block.sequence);
    Ok(blocks)
}

/// How many tracked blocks are alive now.
pub(crate) fn live_count() -> usize {
    REGISTRY.lock().live.len()
}

/// The place in the order of allocation of a tracked block that is alive: no two blocks ever have
/// the same.
pub fn sequence_of(mi: NonNull<MemInfo>) -> Option<u64> {
    REGISTRY.lock().live.get(&mi.addr().get()).map(|record| record.sequence)
}

/// Forgets all tracked blocks; they stay alive.
pub fn forget_tracked() {
    let forgotten = REGISTRY.lock().take();
    drop(forgotten);
}

/// With the feature `debug`: refuses a use of a block that was freed.
#[inline]
pub(crate) fn check(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}

/// With the feature `debug`: refuses to count a block that nobody has a reference to.
#[inline]
pub(crate) fn check_counted(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check_counted(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}

/// With the feature `debug`: refuses to destroy a block that somebody has a reference to.
#[inline]
pub(crate) fn check_unreferenced(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check_unreferenced(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}
