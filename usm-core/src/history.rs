//! The allocations and frees in order: an observer that gets each event and, with `alloc`, a ring
//! of the last ones.
//!
//! The text of an event is the log line of the OpenVINO GPU plugin:
//! `GPU_Debug: Allocate 58982400 bytes of usm_host allocation type (current=117969612;
//! max=117969612)`.

#[cfg(feature = "alloc")]
mod ring;

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

use crate::MemoryType;
#[cfg(feature = "alloc")]
use crate::segment::{Event, Lending};
#[cfg(feature = "alloc")]
use crate::sync::AtomicUsize;
use crate::sync::{AtomicU32, Mutex, Ordering};
#[cfg(feature = "alloc")]
pub(crate) use ring::Numbers;
#[cfg(feature = "alloc")]
use ring::Ring;

/// Allocation or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Memory was allocated.
    Allocate,
    /// Memory was freed.
    Free,
    /// A limit or the runtime refused a request. The address is 0.
    Refuse,
}

/// One allocation, free or refusal. Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The event.
    pub operation: Operation,
    /// Type of the memory.
    pub memory_type: MemoryType,
    /// Address, 0 for an opaque buffer.
    pub address: usize,
    /// Bytes of the block.
    pub bytes: usize,
    /// Live bytes of this type after the event.
    pub current: usize,
    /// Peak of the live bytes of this type.
    pub peak: usize,
    /// Microseconds since the beginning of 1970; 0 without `std`. Of a block of a pool, in a
    /// history without an observer, it may be some milliseconds early, but never before the record
    /// ahead.
    pub time: u64,
}

/// Microseconds since the beginning of 1970; 0 without `std`.
pub(crate) fn now() -> u64 {
    #[cfg(feature = "std")]
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    #[cfg(not(feature = "std"))]
    let now = 0;
    now
}

/// The same from a clock that costs less and is up to some milliseconds behind, where there is one.
#[cfg(feature = "alloc")]
#[inline]
pub(crate) fn recent() -> u64 {
    #[cfg(all(feature = "std", target_os = "linux", target_pointer_width = "64", not(miri)))]
    {
        const CLOCK_REALTIME_COARSE: core::ffi::c_int = 5;
        unsafe extern "C" {
            fn clock_gettime(clock: core::ffi::c_int, time: *mut [i64; 2]) -> core::ffi::c_int;
        }
        let mut time = [0_i64; 2];
        // SAFETY: seconds and nanoseconds, of 64 bits each on this target, which the call fills in.
        if unsafe { clock_gettime(CLOCK_REALTIME_COARSE, &raw mut time) } == 0 {
            let [seconds, nanoseconds] = time.map(i64::unsigned_abs);
            return seconds.wrapping_mul(1_000_000).wrapping_add(nanoseconds / 1000);
        }
    }
    now()
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.operation {
            Operation::Allocate => "Allocate",
            Operation::Free => "Free",
            Operation::Refuse => "Refuse",
        };
        write!(
            f,
            "GPU_Debug: {verb} {} bytes of {} allocation type (current={}; max={})",
            self.bytes, self.memory_type, self.current, self.peak
        )
    }
}

/// Gets every allocation and free of a context, after the fact. Must not allocate or free memory of
/// the same context.
pub type Observer = fn(&Record);

/// There is an observer.
const OBSERVER: u32 = 1;
/// Other processes know memory of the context, and its end must be told to them.
const EXPORTS: u32 = 2;
/// There is a ring.
#[cfg(feature = "alloc")]
const RING: u32 = 4;
#[cfg(not(feature = "alloc"))]
const RING: u32 = 0;

/// Records the last events of a context and calls the observer.
#[derive(Debug)]
pub(crate) struct History {
    /// [`OBSERVER`], [`EXPORTS`] and [`RING`]. Usually there is none, and an event costs one load.
    watches: AtomicU32,
    #[cfg(feature = "alloc")]
    kept: Arc<Kept>,
    #[cfg(not(feature = "alloc"))]
    kept: Kept,
}

/// The parts behind locks.
#[derive(Debug)]
struct Kept {
    observer: Mutex<Option<Observer>>,
    #[cfg(feature = "alloc")]
    ring: Mutex<Ring>,
    /// The number of the next record. Numbers order records as they happened.
    #[cfg(feature = "alloc")]
    next: AtomicUsize,
}

#[cfg(all(feature = "std", unix, not(any(loom, miri, usm_valgrind))))]
impl crate::process::fork::LockAcrossFork for Kept {
    fn hold(&self) {
        self.observer.hold();
        self.ring.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.ring.release() };
        // SAFETY: as the caller promises.
        unsafe { self.observer.release() };
    }
}

impl History {
    pub(crate) fn new() -> Self {
        let kept = Kept {
            observer: Mutex::new(None),
            #[cfg(feature = "alloc")]
            ring: Mutex::new(Ring::new()),
            #[cfg(feature = "alloc")]
            next: AtomicUsize::new(0),
        };
        #[cfg(feature = "alloc")]
        let kept = Arc::new(kept);
        #[cfg(feature = "std")]
        crate::process::fork::guard(&kept);
        Self { watches: AtomicU32::new(0), kept }
    }

    /// With `std`, the environment variable `USM_VERBOSE=2` (or above) prints every event to
    /// standard error.
    pub(crate) fn from_environment() -> Self {
        let history = Self::new();
        #[cfg(feature = "std")]
        if verbosity() >= 2 {
            history.set_observer(Some(print_to_stderr));
        }
        history
    }

    pub(crate) fn set_observer(&self, observer: Option<Observer>) {
        *self.kept.observer.lock() = observer;
        self.watch(OBSERVER, observer.is_some());
    }

    fn watch(&self, what: u32, on: bool) {
        match on {
            true => self.watches.fetch_or(what, Ordering::Release),
            false => self.watches.fetch_and(!what, Ordering::Release),
        };
    }

    /// Notes whether other processes know memory of the context. The caller holds the lock of the
    /// list that says so.
    #[allow(dead_code, reason = "not every system has signs of life")]
    pub(crate) fn watch_exports(&self, any: bool) {
        self.watch(EXPORTS, any);
    }

    /// Whether there is an observer or a ring.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.watches.load(Ordering::Acquire) & (OBSERVER | RING) != 0
    }

    /// Whether there is a ring and nothing else.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn only_keeps(&self) -> bool {
        self.watches.load(Ordering::Acquire) == RING
    }

    /// Whether other processes know memory of the context.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn has_exports(&self) -> bool {
        self.watches.load(Ordering::Acquire) & EXPORTS != 0
    }

    /// Whether a free does more than free: one of the two.
    #[inline]
    pub(crate) fn watches_frees(&self) -> bool {
        self.watches.load(Ordering::Acquire) != 0
    }

    pub(crate) fn record(&self, record: Record) {
        #[cfg(feature = "alloc")]
        {
            let number = self.next_number();
            self.kept.ring.lock().insert(&Event { number, record });
        }
        // The lock is released before the call, so that an observer may replace the observer.
        let observer = *self.kept.observer.lock();
        if let Some(observer) = observer {
            observe(observer, &record);
        }
    }
}

#[cfg(feature = "alloc")]
impl History {
    /// The number of a record that is made now.
    #[inline]
    pub(crate) fn next_number(&self) -> usize {
        self.kept.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes events of pools, which `give` passes on. No other thread takes events of
    /// the same context meanwhile.
    pub(crate) fn take_events(&self, give: impl FnOnce(&mut dyn FnMut(&[Event]))) {
        let mut ring = self.kept.ring.lock();
        give(&mut |events| ring.insert_events(events));
    }

    /// Keeps `records` from now on. `numbers` are the live bytes and peaks after all that happened.
    pub(crate) fn set_capacity(
        &self,
        records: usize,
        pools: &[Arc<dyn Lending>],
        numbers: impl Fn() -> Numbers,
    ) {
        let give_all = |give: &mut dyn FnMut(&[Event])| pools.iter().for_each(|pool| pool.events(give));
        if !self.kept.ring.lock().is_enabled() && records > 0 {
            self.watch(RING, true);
            // A number changes if a pool's event may be in `numbers` and still come.
            for tries in (0..16).rev() {
                self.take_events(give_all);
                let before = self.kept.next.load(Ordering::Relaxed);
                let numbers = numbers();
                let mut ring = self.kept.ring.lock();
                if tries == 0 || self.kept.next.load(Ordering::Relaxed) == before {
                    ring.begin(numbers);
                    return ring.set_capacity(records);
                }
            }
        }
        self.take_events(give_all);
        let mut ring = self.kept.ring.lock();
        ring.set_capacity(records);
        let keeps = ring.is_enabled();
        drop(ring);
        self.watch(RING, keeps);
    }

    /// Begins new peaks.
    pub(crate) fn reset_peak(&self) {
        if self.is_active() {
            let number = self.next_number();
            self.kept.ring.lock().reset_peak(number);
        }
    }

    fn with_ring<R>(&self, pools: &[Arc<dyn Lending>], call: impl FnOnce(&Ring) -> R) -> R {
        let mut ring = self.kept.ring.lock();
        pools.iter().for_each(|pool| pool.events(&mut |events| ring.insert_events(events)));
        call(&ring)
    }

    pub(crate) fn records(&self, pools: &[Arc<dyn Lending>]) -> Vec<Record> {
        self.with_ring(pools, Ring::records)
    }

    pub(crate) fn lost(&self, pools: &[Arc<dyn Lending>]) -> u64 {
        self.with_ring(pools, |ring| ring.lost)
    }
}

/// Calls the observer. While the thread unwinds, a second panic would abort the process, so it is
/// caught here.
fn observe(observer: Observer, record: &Record) {
    #[cfg(feature = "std")]
    if std::thread::panicking() {
        if let Err(payload) = std::panic::catch_unwind(|| observer(record)) {
            // Its drop may panic as well.
            core::mem::forget(payload);
        }
        return;
    }
    observer(record);
}

/// The number in `USM_VERBOSE`, or 0 if it is unset or no number. Read once.
#[cfg(feature = "std")]
fn verbosity() -> u32 {
    const UNREAD: u32 = u32::MAX;
    // No cell with a lock: a forked child could find it locked. Two threads read the same number.
    static LEVEL: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(UNREAD);
    let known = LEVEL.load(core::sync::atomic::Ordering::Relaxed);
    if known != UNREAD {
        return known;
    }
    let level = std::env::var("USM_VERBOSE").ok().and_then(|text| text.trim().parse::<u32>().ok());
    let level = level.unwrap_or(0).min(UNREAD - 1);
    LEVEL.store(level, core::sync::atomic::Ordering::Relaxed);
    level
}

/// The observer of `USM_VERBOSE=2`: one line an event on standard error.
#[cfg(feature = "std")]
pub fn print_to_stderr(record: &Record) {
    use std::io::Write;
    // A closed standard error must not take the program down.
    let _ = writeln!(std::io::stderr(), "{record}");
}
