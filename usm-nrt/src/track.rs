//! Which blocks are alive, for finding leaks; and, with the feature `debug`, misuse.
//!
//! Tracking is a switch ([`set_tracking`](crate::set_tracking)) that costs nothing while off. Only blocks made while it is
//! on are known.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;

use spin::Mutex;

use crate::local;
use crate::meminfo::MemInfo;
use crate::stats::Event;
use crate::system;

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
    /// References at the moment of the report.
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
}

#[cfg(feature = "debug")]
type Origin = std::backtrace::Backtrace;
#[cfg(not(feature = "debug"))]
type Origin = &'static str;

fn origin() -> Origin {
    #[cfg(feature = "debug")]
    return std::backtrace::Backtrace::capture();
    #[cfg(not(feature = "debug"))]
    ""
}

struct Registry {
    live: BTreeMap<usize, Record>,
    /// Headers that were freed and not given out again since: whoever uses them is late.
    #[cfg(feature = "debug")]
    dead: alloc::collections::BTreeSet<usize>,
    next: u64,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    live: BTreeMap::new(),
    #[cfg(feature = "debug")]
    dead: alloc::collections::BTreeSet::new(),
    next: 0,
});

/// A block was made, with its memory.
#[inline]
pub(crate) fn born(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Alloc, Event::MiAlloc], true);
}

/// A block is about to be freed, with its memory.
#[inline]
pub(crate) fn died(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free, Event::MiFree], false);
}

/// The memory of a block is about to be freed by hand.
pub(crate) fn released(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free], false);
}

/// A header was written into memory that was counted already.
pub(crate) fn adopted(mi: NonNull<MemInfo>) {
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
pub(crate) fn counted_birth() {
    if system::switches().is_counted() {
        local::count([Event::Alloc, Event::MiAlloc]);
    }
}

/// [`died`] where nothing can be tracked.
#[inline(always)]
pub(crate) fn counted_death() {
    if system::switches().is_counted() {
        local::count([Event::Free, Event::MiFree]);
    }
}

#[cold]
#[inline(never)]
fn record(mi: NonNull<MemInfo>, alive: bool) {
    let address = mi.addr().get();
    // Captured and dropped outside the lock: both allocate.
    let (origin, _gone);
    if alive {
        origin = self::origin();
        let mut registry = REGISTRY.lock();
        let sequence = registry.next;
        registry.next += 1;
        #[cfg(feature = "debug")]
        registry.dead.remove(&address);
        _gone = registry.live.insert(address, Record { sequence, origin });
    } else {
        let mut registry = REGISTRY.lock();
        _gone = registry.live.remove(&address);
        #[cfg(feature = "debug")]
        registry.dead.insert(address);
    }
    #[cfg(feature = "debug")]
    trace(if alive { "made" } else { "freed" }, mi);
}

/// The tracked blocks that are alive now, in the order of their allocation.
pub fn live_blocks() -> Vec<LiveBlock> {
    let registry = REGISTRY.lock();
    let mut blocks: Vec<LiveBlock> = registry
        .live
        .iter()
        .map(|(&address, record)| {
            // SAFETY: blocks leave the registry, under its lock, before they are freed.
            let mi = unsafe { &*core::ptr::with_exposed_provenance::<MemInfo>(address) };
            LiveBlock {
                address,
                data: mi.data().addr(),
                size: mi.size(),
                refcount: mi.refcount(),
                sequence: record.sequence,
                origin: record.origin.to_string(),
            }
        })
        .collect();
    drop(registry);
    blocks.sort_by_key(|block| block.sequence);
    blocks
}

/// Forgets all tracked blocks; they stay alive.
pub fn forget_tracked() {
    let forgotten = {
        let mut registry = REGISTRY.lock();
        #[cfg(feature = "debug")]
        registry.dead.clear();
        core::mem::take(&mut registry.live)
    };
    drop(forgotten);
}

/// With the feature `debug`: refuses a use of a block that tracking saw being freed.
#[inline]
pub(crate) fn check(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    if system::switches().is_tracked() {
        if REGISTRY.lock().dead.contains(&mi.addr().get()) {
            std::eprintln!("usm-nrt: {what} of block {:#x} after it was freed", mi.addr());
            std::process::abort();
        }
        trace(what, mi);
    }
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}

/// Prints what happens to a block when the environment has `USM_NRT_TRACE` set.
#[cfg(feature = "debug")]
fn trace(what: &str, mi: NonNull<MemInfo>) {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os("USM_NRT_TRACE").is_some()) {
        std::eprintln!("usm-nrt: {what} {:#x}", mi.addr());
    }
}
