//! Slots for symbols that compiled code calls before they are defined.
//!
//! A compiler that handles one function at a time meets calls of functions that it has not compiled
//! yet, as in mutual recursion. Such a call goes through a slot: a pointer-sized cell at a constant
//! address. Until the function is defined the cell holds the address of an *abort* function of the
//! embedding program. It must accept every call that goes through the table's slots. In Numba's
//! calling convention it receives a return pointer and an exception pointer first, and raises.

use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;

use crate::fallible::try_into_raw;
use crate::sync::{AtomicPtr, Mutex, Ordering};

/// Held while a thread accesses the names of a table, so that a fork finds all tables consistent
/// (`fork.rs`).
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

    /// The function that a call through the slot reaches now. All writes before its publication are
    /// visible.
    #[inline]
    pub fn get(&self) -> NonNull<c_void> {
        let address = self.0.load(Ordering::Acquire);
        // SAFETY: only addresses that are not null are ever stored.
        unsafe { NonNull::new_unchecked(address) }
    }

    /// Publishes an address if the slot holds `expected`. Otherwise returns the address that it
    /// holds.
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

/// The reason why a symbol was not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotError {
    /// The symbol already has another address.
    AlreadyResolved {
        /// The symbol's address, which stays.
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

/// Slots by symbol name. A slot never moves and is freed with its table, which must outlive all
/// code that calls through it.
pub struct SlotTable {
    abort: NonNull<c_void>,
    /// The symbols in alphabetical order, so that finding one, or the next unresolved one,
    /// allocates nothing. A new name moves the pointers behind it. The lock protects the names;
    /// calls through slots never take it.
    symbols: Mutex<Vec<Entry>>,
}

/// A symbol; it never moves while its table lives.
struct Symbol {
    slot: Slot,
    name: String,
}

/// A pointer to a symbol, which the table owns.
struct Entry(NonNull<Symbol>);

impl Entry {
    fn get<'a>(&self) -> &'a Symbol {
        // SAFETY: made by `make` and freed with the table, which is borrowed for `'a`.
        unsafe { self.0.as_ref() }
    }

    fn make(name: &str, abort: NonNull<c_void>) -> Option<Self> {
        let mut text = String::new();
        text.try_reserve_exact(name.len()).ok()?;
        text.push_str(name);
        try_into_raw(Symbol { slot: Slot::new(abort), name: text }).map(Self)
    }
}

// SAFETY: addresses are values here and never dereferenced. The names are locked, and the cells are
// atomic.
unsafe impl Send for SlotTable {}
// SAFETY: as above.
unsafe impl Sync for SlotTable {}

impl SlotTable {
    /// Makes a table whose slots hold `abort` until they are resolved.
    #[cfg(not(loom))]
    pub const fn new(abort: NonNull<c_void>) -> Self {
        Self { abort, symbols: Mutex::new(Vec::new()) }
    }

    /// Loom's lock cannot be made at compile time.
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

    /// The slot of a symbol. The first call with a name makes the slot.
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

    /// Defines a symbol: calls through its slot reach `address` from now on. A second definition is
    /// refused, unless the address is the same.
    pub fn resolve(&self, name: &str, address: NonNull<c_void>) -> Result<(), SlotError> {
        match self.slot(name)?.publish(self.abort, address) {
            Err(present) if present != address => Err(SlotError::AlreadyResolved { address: present }),
            _ => Ok(()),
        }
    }

    /// Whether a symbol was resolved; false for an unknown name.
    pub fn is_resolved(&self, name: &str) -> bool {
        self.with(|symbols| {
            let symbol = place_of(symbols, name).ok().and_then(|place| symbols.get(place));
            symbol.is_some_and(|entry| entry.get().slot.get() != self.abort)
        })
    }

    /// The names of all unresolved slots in alphabetical order. Each step searches again, so
    /// symbols may be made or resolved meanwhile. Allocates nothing.
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

/// The index of a name, or the index at which it would be inserted.
fn place_of(symbols: &[Entry], name: &str) -> Result<usize, usize> {
    symbols.binary_search_by(|entry| entry.get().name.as_str().cmp(name))
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        for entry in self.symbols.lock().drain(..) {
            // SAFETY: made by `Entry::make`; the table is no longer borrowed.
            drop(unsafe { alloc::boxed::Box::from_raw(entry.0.as_ptr()) });
        }
    }
}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct UnresolvedNames<'a>(&'a SlotTable);
        impl fmt::Debug for UnresolvedNames<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.unresolved()).finish()
            }
        }
        f.debug_struct("SlotTable")
            .field("abort", &self.abort)
            .field("unresolved", &UnresolvedNames(self))
            .finish()
    }
}
