//! Slots for symbols that are called before they are defined.
//!
//! A compiler that handles one function at a time meets calls of functions that it has not compiled yet:
//! mutual recursion. It lets such a call go through a slot, a pointer-sized cell at an address that never
//! changes. Until the function is defined the cell holds the address of an *abort* function, which the
//! embedder supplies: whatever the slots of a table are called as, it must be callable as too (in Numba's
//! calling convention it gets a return and an exception pointer first, and raises).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;

use crate::sync::{AtomicPtr, Mutex, Ordering};

/// A cell with a function's address: one pointer, for compiled code to load at every call.
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicPtr<c_void>);

impl Slot {
    /// A slot that holds `address`.
    pub fn new(address: NonNull<c_void>) -> Self {
        Self(AtomicPtr::new(address.as_ptr()))
    }

    /// What a call through the slot calls now. Whatever was written before that function was published is
    /// seen after this.
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
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyResolved { address } => write!(f, "the symbol is already resolved, to {address:p}"),
        }
    }
}

impl core::error::Error for SlotError {}

/// Slots by symbol name. Slots are never moved, and freed only with the table: it must outlive all code that
/// calls through them.
pub struct SlotTable {
    abort: NonNull<c_void>,
    /// The lock is for the names; calls through slots never take it.
    slots: Mutex<BTreeMap<Box<str>, Box<Slot>>>,
}

// SAFETY: addresses are values here, never dereferenced; the map is locked and the cells are atomics.
unsafe impl Send for SlotTable {}
// SAFETY: as above.
unsafe impl Sync for SlotTable {}

impl SlotTable {
    /// A table whose slots hold `abort` until they are resolved.
    #[cfg(not(loom))]
    pub const fn new(abort: NonNull<c_void>) -> Self {
        Self { abort, slots: Mutex::new(BTreeMap::new()) }
    }

    /// Loom's lock is not made at compile time.
    #[cfg(loom)]
    pub fn new(abort: NonNull<c_void>) -> Self {
        Self { abort, slots: Mutex::new(BTreeMap::new()) }
    }

    /// The slot of a symbol, made at the first call with that name.
    pub fn slot(&self, name: &str) -> &Slot {
        let mut slots = self.slots.lock();
        let slot = match slots.get(name) {
            Some(slot) => &raw const **slot,
            None => &raw const **slots.entry(name.into()).or_insert_with(|| Box::new(Slot::new(self.abort))),
        };
        // SAFETY: boxed, so it stays where it is when the map changes; entries are never removed.
        unsafe { &*slot }
    }

    /// Defines a symbol: from now on calls through its slot come to `address`. Defining it again is refused,
    /// unless the address is the same.
    pub fn resolve(&self, name: &str, address: NonNull<c_void>) -> Result<(), SlotError> {
        match self.slot(name).publish(self.abort, address) {
            Err(kept) if kept != address => Err(SlotError::AlreadyResolved { address: kept }),
            _ => Ok(()),
        }
    }

    /// Whether a symbol was resolved; false for a name never heard of.
    pub fn is_resolved(&self, name: &str) -> bool {
        self.slots.lock().get(name).is_some_and(|slot| slot.get() != self.abort)
    }

    /// The names of all slots that still abort, in alphabetical order.
    pub fn unresolved(&self) -> Vec<Box<str>> {
        let slots = self.slots.lock();
        slots.iter().filter(|(_, slot)| slot.get() == self.abort).map(|(name, _)| name.clone()).collect()
    }
}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotTable")
            .field("abort", &self.abort)
            .field("unresolved", &self.unresolved())
            .finish()
    }
}
