//! Slots for symbols that are called before they are defined.
//!
//! A compiler that handles one function at a time meets calls of functions that it has not compiled
//! yet: mutual recursion. It lets such a call go through a slot, a pointer-sized cell at an address
//! that never changes. Until the function is defined the cell holds the address of an *abort*
//! function, which the embedder supplies: whatever the slots of a table are called as, it must be
//! callable as too (in Numba's calling convention it gets a return and an exception pointer first,
//! and raises).

use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;

use crate::fallible::leaked;
use crate::sync::{AtomicPtr, Mutex, Ordering};

/// Held by whoever is at the names of a table, so that a fork finds all tables whole (`fork.rs`).
#[cfg(not(loom))]
pub(crate) static GATE: Mutex<()> = Mutex::new(());

/// A cell with a function's address: one pointer, for compiled code to load at every call.
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicPtr<c_void>);

impl Slot {
    /// A slot that holds `address`.
    pub fn new(address: NonNull<c_void>) -> Self {
        Self(AtomicPtr::new(address.as_ptr()))
    }

    /// What a call through the slot calls now. Whatever was written before that function was
    /// published is seen after this.
    #[inline]
    pub fn get(&self) -> NonNull<c_void> {
        let address = self.0.load(Ordering::Acquire);
        // SAFETY: only addresses that are not null are ever stored.
        unsafe { NonNull::new_unchecked(address) }
    }

    /// Publishes an address, unless the slot no longer holds `expected`; then says what it holds.
    pub fn publish(
        &self,
        expected: NonNull<c_void>,
        address: NonNull<c_void>,
    ) -> Result<(), NonNull<c_void>> {
        match self.0.compare_exchange(
            expected.as_ptr(),
            address.as_ptr(),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(()),
            // SAFETY: only addresses that are not null are ever stored.
            Err(now) => Err(unsafe { NonNull::new_unchecked(now) }),
        }
    }
}

/// Why a symbol was not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotError {
    /// The symbol was resolved before, to another address.
    AlreadyResolved {
        /// The address that it keeps.
        address: NonNull<c_void>,
    },
    /// There is no memory for the symbol's slot.
    OutOfMemory,
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyResolved { address } => write!(f, "the symbol is already resolved, to {address:p}"),
            Self::OutOfMemory => f.write_str("no memory for the symbol's slot"),
        }
    }
}

impl core::error::Error for SlotError {}

/// Slots by symbol name. Slots are never moved, and freed only with the table: it must outlive all
/// code that calls through them.
pub struct SlotTable {
    abort: NonNull<c_void>,
    /// The lock is for the names; calls through slots never take it. In alphabetical order, so that
    /// nothing need be allocated to find one, or the next one that is not resolved. A new name
    /// moves the pointers to those behind it.
    symbols: Mutex<Vec<Entry>>,
}

/// A symbol, where it stays until its table goes.
struct Symbol {
    slot: Slot,
    name: String,
}

/// Owned by the table.
struct Entry(NonNull<Symbol>);

impl Entry {
    fn get<'a>(&self) -> &'a Symbol {
        // SAFETY: made by `make`, freed with the table, which all users of `'a` borrow.
        unsafe { self.0.as_ref() }
    }

    fn make(name: &str, abort: NonNull<c_void>) -> Option<Self> {
        let mut owned = String::new();
        owned.try_reserve_exact(name.len()).ok()?;
        owned.push_str(name);
        leaked(Symbol { slot: Slot::new(abort), name: owned }).map(Self)
    }
}

// SAFETY: addresses are values here, never dereferenced; the names are locked and the cells are
// atomics.
unsafe impl Send for SlotTable {}
// SAFETY: as above.
unsafe impl Sync for SlotTable {}

impl SlotTable {
    /// A table whose slots hold `abort` until they are resolved.
    #[cfg(not(loom))]
    pub const fn new(abort: NonNull<c_void>) -> Self {
        Self { abort, symbols: Mutex::new(Vec::new()) }
    }

    /// Loom's lock is not made at compile time.
    #[cfg(loom)]
    pub fn new(abort: NonNull<c_void>) -> Self {
        Self { abort, symbols: Mutex::new(Vec::new()) }
    }

    fn with<R>(&self, look: impl FnOnce(&mut Vec<Entry>) -> R) -> R {
        #[cfg(not(loom))]
        crate::fork::watch();
        #[cfg(not(loom))]
        let _gate = GATE.lock();
        look(&mut self.symbols.lock())
    }

    /// The slot of a symbol, made at the first call with that name.
    pub fn slot(&self, name: &str) -> Result<&Slot, SlotError> {
        self.with(|symbols| {
            let place = match place_of(symbols, name) {
                Ok(place) => return symbols.get(place).map(|entry| &entry.get().slot),
                Err(place) => place,
            };
            symbols.try_reserve(1).ok()?;
            let entry = Entry::make(name, self.abort)?;
            let slot = &entry.get().slot;
            symbols.insert(place, entry);
            Some(slot)
        })
        .ok_or(SlotError::OutOfMemory)
    }

    /// Defines a symbol: from now on calls through its slot come to `address`. Defining it again is
    /// refused, unless the address is the same.
    pub fn resolve(&self, name: &str, address: NonNull<c_void>) -> Result<(), SlotError> {
        match self.slot(name)?.publish(self.abort, address) {
            Err(kept) if kept != address => Err(SlotError::AlreadyResolved { address: kept }),
            _ => Ok(()),
        }
    }

    /// Whether a symbol was resolved; false for a name never heard of.
    pub fn is_resolved(&self, name: &str) -> bool {
        self.with(|symbols| {
            let known = place_of(symbols, name).ok().and_then(|place| symbols.get(place));
            known.is_some_and(|entry| entry.get().slot.get() != self.abort)
        })
    }

    /// The names of all slots that still abort, in alphabetical order. Each is looked for when it
    /// is asked for, so a symbol may be made or resolved meanwhile; nothing is allocated.
    pub fn unresolved(&self) -> impl Iterator<Item = &str> {
        let mut last: Option<&str> = None;
        core::iter::from_fn(move || {
            let next = self.with(|symbols| {
                let start =
                    last.map_or(0, |last| symbols.partition_point(|entry| entry.get().name.as_str() <= last));
                let rest = symbols.get(start..).unwrap_or_default();
                rest.iter().map(Entry::get).find(|symbol| symbol.slot.get() == self.abort)
            })?;
            last = Some(&next.name);
            last
        })
    }
}

/// Where a name is, or would be.
fn place_of(symbols: &[Entry], name: &str) -> Result<usize, usize> {
    symbols.binary_search_by(|entry| entry.get().name.as_str().cmp(name))
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        for entry in self.symbols.lock().drain(..) {
            // SAFETY: made by `Entry::make`, and nobody borrows the table any more.
            drop(unsafe { alloc::boxed::Box::from_raw(entry.0.as_ptr()) });
        }
    }
}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Unresolved<'a>(&'a SlotTable);
        impl fmt::Debug for Unresolved<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.unresolved()).finish()
            }
        }
        f.debug_struct("SlotTable")
            .field("abort", &self.abort)
            .field("unresolved", &Unresolved(self))
            .finish()
    }
}
