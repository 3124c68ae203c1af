//! A registry of live blocks, for finding leaks. `misuse.rs` detects misuse.
//!
//! Tracking is a switch ([`set_tracking`](crate::set_tracking)) that costs nothing while off.
//! Blocks made while it is off are not recorded.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use hashbrown::HashMap;
use spin::Mutex;

use crate::address_hash::Spread;
use crate::block::BUILTIN;
use crate::error::Error;
use crate::fork;
use crate::local;
use crate::meminfo::MemInfo;
#[cfg(feature = "debug")]
use crate::misuse;
use crate::stats::Event;
use crate::sync::lasting::AtomicUsize;
use crate::system::{self, Switches};

/// A live block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveBlock {
    /// Address of the header.
    pub address: usize,
    /// Address of the data.
    pub data: usize,
    /// Size of the data in bytes; 0 if unknown.
    pub size: usize,
    /// References at the time of the report; 0 for a block of an external allocator, which another
    /// runtime may have freed unseen.
    pub refcount: usize,
    /// Number of blocks tracked before this one: the order of allocation.
    pub sequence: u64,
    /// The place of allocation: a stack trace with the features `std` and `debug`, otherwise empty.
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
    /// The data address when the block was made.
    data: usize,
    /// The size in bytes when the block was made.
    size: usize,
    /// Whether the block is always removed from the registry before it is freed. A block of an
    /// external allocator may not be: another runtime frees it through that allocator, and does not
    /// report it.
    must_leave: bool,
}

impl Record {
    fn new(mi: NonNull<MemInfo>, sequence: u64, origin: Origin) -> Self {
        // SAFETY: the header was just written, and no other thread has its address yet.
        let mi = unsafe { mi.as_ref() };
        let must_leave = core::ptr::eq(mi.external_allocator(), &raw const BUILTIN);
        Self { sequence, origin, data: mi.data().addr(), size: mi.size(), must_leave }
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

/// Records by the address of the header.
type Live = HashMap<usize, Record, Spread>;

const fn empty_map() -> Live {
    HashMap::with_hasher(Spread::new())
}

pub(crate) static REGISTRY: Mutex<Registry> = Mutex::new(Registry { live: empty_map(), next: 0 });

/// Turns the record of every new block on or off, for [`crate::live_blocks`]. Off at start. Turning
/// it off clears all records: blocks freed while it is off must not be read later.
pub fn set_tracking(on: bool) {
    fork::watch();
    let mut registry = REGISTRY.lock();
    // Under the lock, so that no record is added after the registry was emptied.
    system::switch_tracking(on);
    let old_map = if on { empty_map() } else { registry.take_all() };
    drop(registry);
    drop(old_map);
}

impl Registry {
    /// Empties the registry. The caller drops the result without the lock.
    fn take_all(&mut self) -> Live {
        core::mem::replace(&mut self.live, empty_map())
    }
}

/// Records that a block was made with its memory.
#[inline]
pub(crate) fn record_new(mi: NonNull<MemInfo>) {
    // Also for foreign memory: a freed block of this runtime may have had its address.
    #[cfg(feature = "debug")]
    misuse::record_new(mi.cast());
    observe(mi, [Event::Alloc, Event::MiAlloc], true);
}

/// Records that a block is about to be freed with its memory.
#[inline]
pub(crate) fn record_free(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free, Event::MiFree], false);
}

/// Records that the caller is about to free the memory of a block by itself.
#[cfg(feature = "capi")]
pub(crate) fn record_memory_freed(mi: NonNull<MemInfo>) {
    observe(mi, [Event::Free], false);
}

/// Number of blocks that another runtime destroyed while counting was on.
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

/// Records that another runtime destroyed a block and is about to free its memory. Otherwise the
/// registry would read that memory later.
pub(crate) fn record_foreign_free(mi: NonNull<MemInfo>) {
    if system::stats_enabled() {
        FOREIGN.fetch_add(1, Ordering::Relaxed);
    }
    record_free(mi);
}

/// Number of blocks that another runtime destroyed while counting was on ([`crate::set_stats`]).
/// The statistics count them as freed, and so does the other runtime if it counts. Subtract this
/// number when you add both.
pub fn foreign_frees() -> usize {
    FOREIGN.load(Ordering::Relaxed)
}

/// Records that a header was written into memory that was already counted.
#[cfg(feature = "capi")]
pub(crate) fn record_adopted(mi: NonNull<MemInfo>) {
    // Also for foreign memory: a freed block of this runtime may have had its address.
    #[cfg(feature = "debug")]
    misuse::record_new(mi.cast());
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

/// [`record_new`] for a block that is never tracked.
#[inline(always)]
pub(crate) fn count_new(switches: Switches) {
    if switches.is_counted() {
        local::count([Event::Alloc, Event::MiAlloc]);
    }
}

/// [`record_free`] for a block that is never tracked.
#[inline(always)]
pub(crate) fn count_freed(switches: Switches) {
    if switches.is_counted() {
        local::count([Event::Free, Event::MiFree]);
    }
}

#[cold]
#[inline(never)]
fn record(mi: NonNull<MemInfo>, alive: bool) {
    if alive {
        // `live_blocks` makes a pointer from the address.
        let address = mi.as_ptr().expose_provenance();
        // Captured and dropped without the lock: both allocate.
        let origin = self::origin();
        let mut registry = REGISTRY.lock();
        if !system::switches().is_tracked() {
            return;
        }
        let sequence = registry.next;
        registry.next += 1;
        // Without memory for its record a block is not listed. The allocation succeeds
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

/// Removes a record: the memory is about to be freed and holds no header.
fn forget(address: usize) {
    // Dropped without the lock.
    let _gone = REGISTRY.lock().live.remove(&address);
}

/// Removes the record of a header that a freed plain block may contain.
#[inline]
pub(crate) fn forget_header(block: NonNull<u8>) {
    if system::switches().is_tracked() {
        forget(block.addr().get());
    }
}

/// The live tracked blocks in the order of their allocation. Fails if there is no memory for the
/// list.
pub fn live_blocks() -> Result<Vec<LiveBlock>, Error> {
    let mut blocks = Vec::new();
    fork::watch();
    let registry = REGISTRY.lock();
    let count = registry.live.len();
    let size = count.saturating_mul(size_of::<LiveBlock>());
    blocks.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { size })?;
    for (&address, record) in &registry.live {
        let Record { sequence, origin, data, size, must_leave } = record;
        let mut block = LiveBlock {
            address,
            data: *data,
            size: *size,
            refcount: 0,
            sequence: *sequence,
            origin: origin.to_string(),
        };
        if *must_leave {
            let mi = core::ptr::with_exposed_provenance::<MemInfo>(address);
            // SAFETY: exposed by `record`. These blocks leave the registry, under its lock, before
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

/// Number of live tracked blocks.
pub(crate) fn live_count() -> usize {
    REGISTRY.lock().live.len()
}

/// The position of a live tracked block in the order of allocation. No two blocks ever share one.
pub fn sequence_of(mi: NonNull<MemInfo>) -> Option<u64> {
    REGISTRY.lock().live.get(&mi.addr().get()).map(|record| record.sequence)
}

/// Clears the records. The blocks stay alive.
pub fn forget_tracked() {
    let old_map = REGISTRY.lock().take_all();
    drop(old_map);
}

/// With the feature `debug`, refuses a use of a freed block.
#[inline]
pub(crate) fn check(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}

/// With the feature `debug`, refuses to count references of a block that has none.
#[inline]
pub(crate) fn check_counted(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check_counted(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}

/// With the feature `debug`, refuses to destroy a block that has references.
#[inline]
pub(crate) fn check_unreferenced(mi: NonNull<MemInfo>, what: &str) {
    #[cfg(feature = "debug")]
    misuse::check_unreferenced(mi, what);
    #[cfg(not(feature = "debug"))]
    let _ = (mi, what);
}
