//! The allocations and frees in order: an observer that gets each event and, with `alloc`, a ring
//! of the last ones.
//!
//! The text of an event is the log line of the OpenVINO GPU plugin:
//! `GPU_Debug: Allocate 58982400 bytes of usm_host allocation type (current=117969612;
//! max=117969612)`.

use core::fmt;

use crate::MemoryType;
use crate::sync::{AtomicU32, Mutex, Ordering};

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
    /// Microseconds since the beginning of 1970; 0 without `std`.
    pub time: u64,
    /// Whether the block is a part of a pool's segment.
    pub in_pool: bool,
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

/// There is an observer or a ring.
const RECORDS: u32 = 1;
/// Other processes know memory of the context, and its end must be told to them.
const EXPORTS: u32 = 2;

/// Records the last events of a context and calls the observer.
#[derive(Debug)]
pub(crate) struct History {
    /// [`RECORDS`] and [`EXPORTS`]. Usually there is neither, and an event then costs one load.
    watches: AtomicU32,
    #[cfg(feature = "alloc")]
    parts: alloc::sync::Arc<Parts>,
    #[cfg(not(feature = "alloc"))]
    parts: Parts,
}

/// The parts behind locks.
#[derive(Debug)]
struct Parts {
    observer: Mutex<Option<Observer>>,
    #[cfg(feature = "alloc")]
    ring: Mutex<ring::Ring>,
}

#[cfg(all(feature = "std", unix, not(any(loom, miri, usm_valgrind))))]
impl crate::process::fork::LockAcrossFork for Parts {
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
        let parts = Parts {
            observer: Mutex::new(None),
            #[cfg(feature = "alloc")]
            ring: Mutex::new(ring::Ring::new()),
        };
        #[cfg(feature = "alloc")]
        let parts = alloc::sync::Arc::new(parts);
        #[cfg(feature = "std")]
        crate::process::fork::guard(&parts);
        Self { watches: AtomicU32::new(0), parts }
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
        *self.parts.observer.lock() = observer;
        self.activate();
    }

    fn activate(&self) {
        #[cfg(feature = "alloc")]
        let keeps = self.parts.ring.lock().is_enabled();
        #[cfg(not(feature = "alloc"))]
        let keeps = false;
        self.watch(RECORDS, keeps || self.parts.observer.lock().is_some());
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
        self.watches.load(Ordering::Acquire) & RECORDS != 0
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
        self.parts.ring.lock().push(record);
        // The lock is released before the call, so that an observer may replace the observer.
        let observer = *self.parts.observer.lock();
        if let Some(observer) = observer {
            observe(observer, &record);
        }
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn set_capacity(&self, records: usize) {
        self.parts.ring.lock().set_capacity(records);
        self.activate();
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn lost(&self) -> u64 {
        self.parts.ring.lock().lost_count
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn records(&self) -> alloc::vec::Vec<Record> {
        self.parts.ring.lock().records()
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
    let level = LEVEL.load(core::sync::atomic::Ordering::Relaxed);
    if level != UNREAD {
        return level;
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

#[cfg(feature = "alloc")]
mod ring {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use super::Record;

    /// The last records, oldest first. Off (capacity 0) by default: history then costs nothing.
    #[derive(Debug)]
    pub(super) struct Ring {
        records: VecDeque<Record>,
        capacity: usize,
        /// Records that made room for later ones.
        pub(super) lost_count: u64,
    }

    impl Ring {
        pub(super) const fn new() -> Self {
            Self { records: VecDeque::new(), capacity: 0, lost_count: 0 }
        }

        pub(super) fn set_capacity(&mut self, capacity: usize) {
            self.capacity = capacity;
            while self.records.len() > capacity {
                self.records.pop_front();
            }
            self.lost_count = 0;
        }

        pub(super) fn is_enabled(&self) -> bool {
            self.capacity > 0
        }

        pub(super) fn push(&mut self, record: Record) {
            if self.capacity == 0 {
                return;
            }
            if self.records.len() == self.capacity {
                self.records.pop_front();
                self.lost_count += 1;
            }
            self.records.push_back(record);
        }

        pub(super) fn records(&self) -> Vec<Record> {
            self.records.iter().copied().collect()
        }
    }
}
