//! The common part of dictionaries and sets: a table, callbacks, and the rule that a callback may
//! read the container but not change it.
//!
//! A callback is foreign code that may call back into the same container. So no reference into the
//! container lives while one runs: each step goes through the raw pointer of the C caller. The
//! table is consistent before each step.

use core::ffi::c_int;
use core::ptr::NonNull;

use super::layout::{Shape, Slot, by_width};
use super::memory::{Memory, copy, zero};
use super::search::{Search, find};
use super::table::{Probe, Table, row_hash};
use super::{
    CountFn, DICT_COMPARE_FAILED, DICT_EMPTY, DICT_MUTATED, DICT_NO_MEMORY, EqualFn, LOOKUP_FAILED, MISSING,
    OK, REPLACED, call,
};

/// A dictionary or set of compiled code. Only its address leaves this crate.
#[derive(Debug)]
pub struct HashContainer {
    pub(super) table: Table,
    pub(super) methods: Methods,
    /// Whether the container is being changed.
    busy: bool,
}

/// The callbacks for keys and values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Methods {
    /// Compares keys. Without it keys are equal if their bytes are.
    pub(super) key_equal: Option<EqualFn>,
    pub(super) key_incref: Option<CountFn>,
    pub(super) key_decref: Option<CountFn>,
    pub(super) value_incref: Option<CountFn>,
    pub(super) value_decref: Option<CountFn>,
}

/// The permission to change a container; returned on drop.
struct Turn(*mut HashContainer);

impl Turn {
    /// `None` if another caller has the permission.
    ///
    /// # Safety
    /// `this` is live. While the permission is held only its holder frees the container.
    #[inline(always)]
    unsafe fn take(this: *mut HashContainer) -> Option<Self> {
        // SAFETY: as the caller promises.
        let busy = unsafe { &mut (*this).busy };
        if *busy {
            return None;
        }
        *busy = true;
        Some(Self(this))
    }
}

impl Drop for Turn {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: live: a busy container is not freed.
        unsafe { (*self.0).busy = false }
    }
}

impl HashContainer {
    /// Writes an empty container to `out`. [`DICT_NO_MEMORY`] also if a size is negative or `out`
    /// is null.
    ///
    /// # Safety
    /// `out` is null or has room for a pointer.
    pub(super) unsafe fn make(out: *mut *mut Self, slots: Option<usize>, key: isize, value: isize) -> c_int {
        if out.is_null() {
            return DICT_NO_MEMORY;
        }
        let table = slots.zip(Shape::new(key, value)).and_then(|(slots, shape)| Table::new(slots, shape));
        let owner = table.and_then(|table| {
            Memory::store_in_block(Self { table, methods: Methods::default(), busy: false })
        });
        let Some(owner) = owner else { return DICT_NO_MEMORY };
        // SAFETY: room, as the caller promises.
        unsafe { out.write(owner.as_ptr()) };
        OK
    }

    /// # Safety
    /// As for all functions below: `this` is null or live, and no other thread changes it.
    #[inline]
    pub(super) unsafe fn set_methods(this: *mut Self, methods: Methods) {
        // SAFETY: null or live, as the caller promises.
        if let Some(owner) = unsafe { this.as_mut() } {
            owner.methods = methods;
        }
    }

    /// The number of elements.
    ///
    /// # Safety
    /// As for [`Self::set_methods`].
    #[inline]
    pub(super) unsafe fn length(this: *const Self) -> isize {
        // SAFETY: null or live, as the caller promises.
        unsafe { this.as_ref() }.map_or(0, |owner| owner.table.used() as isize)
    }

    /// Releases every element, in order, and frees the container. Leaks it if it is being changed.
    ///
    /// # Safety
    /// As for [`Self::set_methods`]; nothing uses the container afterwards.
    pub(super) unsafe fn free(this: *mut Self) {
        let Some(place) = NonNull::new(this) else { return };
        // SAFETY: live, as the caller promises.
        let Some(turn) = (unsafe { Turn::take(this) }) else { return };
        // SAFETY: live; the reference ends before a callback runs.
        let Self { table, methods, .. } = unsafe { &*this };
        let (methods, filled_rows) = (*methods, table.filled());
        if methods.key_decref.is_some() || methods.value_decref.is_some() {
            for position in 0..filled_rows {
                // SAFETY: live; the reference ends before a callback runs.
                let table = unsafe { &mut (*this).table };
                if !table.is_live(position) {
                    continue;
                }
                let (key, value) = (table.key(position), table.value(position));
                table.forget(position);
                // SAFETY: an element that no lookup finds any more; the busy table does not move.
                unsafe { call(methods.key_decref, key) };
                // SAFETY: as above.
                unsafe { call(methods.value_decref, value) };
            }
        }
        drop(turn);
        // SAFETY: made by `hold`, and the caller gives it up.
        drop(unsafe { Memory::take(place) });
    }

    /// The position of a key; copies its value to `out`. Otherwise [`MISSING`] or
    /// [`LOOKUP_FAILED`], and `out` is zeroed.
    ///
    /// # Safety
    /// As for [`Self::set_methods`]; `key` has a key's bytes to read, `out` is null or has room for
    /// a value.
    #[inline(always)]
    pub(super) unsafe fn lookup(this: *const Self, key: *const u8, hash: isize, out: *mut u8) -> isize {
        if this.is_null() {
            return MISSING;
        }
        // SAFETY: as the caller promises.
        let search = unsafe { find(this, key, row_hash(hash)) };
        // SAFETY: live.
        let table = unsafe { &(*this).table };
        match search {
            Search::Found(row) => {
                if !out.is_null() {
                    // SAFETY: a value of the table, and room for it.
                    unsafe { copy(table.value(row), out, table.shape().value) };
                }
                row as isize
            }
            Search::Missing(_) | Search::Failed => {
                // SAFETY: null, or room for a value.
                unsafe { zero(out, table.shape().value) };
                if let Search::Failed = search { LOOKUP_FAILED } else { MISSING }
            }
        }
    }

    /// Adds a key, or replaces its value if `replace`. Copies the old value to `old`, or zeros if
    /// there was none.
    ///
    /// # Safety
    /// As for [`Self::lookup`]; `value` has a value's bytes to read. Neither lies in the container.
    #[inline(always)]
    pub(super) unsafe fn insert(
        this: *mut Self,
        key: *const u8,
        hash: isize,
        value: *const u8,
        old: *mut u8,
        replace: bool,
    ) -> c_int {
        if this.is_null() {
            return DICT_NO_MEMORY;
        }
        // SAFETY: live.
        let Some(_turn) = (unsafe { Turn::take(this) }) else { return DICT_MUTATED };
        let hash = row_hash(hash);
        // SAFETY: as the caller promises.
        match unsafe { find(this, key, hash) } {
            // SAFETY: as the caller promises; the search ended at `vacant`, and nothing has changed
            // since.
            Search::Missing(vacant) => unsafe { add(this, vacant, key, hash, value, old) },
            // SAFETY: as the caller promises.
            Search::Found(row) if replace => unsafe { exchange(this, row, value, old) },
            Search::Found(_) => REPLACED,
            Search::Failed => {
                // SAFETY: live.
                let size = unsafe { (*this).table.shape() }.value;
                // SAFETY: null, or room for a value.
                unsafe { zero(old, size) };
                DICT_COMPARE_FAILED
            }
        }
    }

    /// Removes the element at a position of a lookup; [`DICT_MUTATED`] if it holds none.
    ///
    /// # Safety
    /// As for [`Self::set_methods`].
    pub(super) unsafe fn delete(this: *mut Self, position: isize) -> c_int {
        if this.is_null() {
            return DICT_EMPTY;
        }
        // SAFETY: live.
        let Some(_turn) = (unsafe { Turn::take(this) }) else { return DICT_MUTATED };
        // SAFETY: live; the reference ends before a callback runs.
        let owner = unsafe { &mut *this };
        let (table, methods) = (&mut owner.table, owner.methods);
        let Some(row) = usize::try_from(position).ok().filter(|&row| table.is_live(row)) else {
            return DICT_MUTATED;
        };
        table.remove(row);
        let (key, value) = (table.key(row), table.value(row));
        // SAFETY: the removed element; the busy table does not move.
        unsafe { call(methods.key_decref, key) };
        // SAFETY: as above.
        unsafe { call(methods.value_decref, value) };
        OK
    }

    /// [`Self::delete`] by key. `Ok` whether or not the key was there.
    ///
    /// # Safety
    /// As for [`Self::lookup`].
    pub(super) unsafe fn discard(this: *mut Self, key: *const u8, hash: isize) -> c_int {
        if this.is_null() {
            return OK;
        }
        let search = {
            // SAFETY: live.
            let Some(_turn) = (unsafe { Turn::take(this) }) else { return DICT_MUTATED };
            // SAFETY: as the caller promises.
            unsafe { find(this, key, row_hash(hash)) }
        };
        match search {
            // SAFETY: as the caller promises.
            Search::Found(row) => unsafe { Self::delete(this, row as isize) },
            Search::Missing(_) => OK,
            Search::Failed => DICT_COMPARE_FAILED,
        }
    }

    /// Moves the last element out with its references.
    ///
    /// # Safety
    /// As for [`Self::set_methods`]; both outputs are null or have room.
    pub(super) unsafe fn pop(this: *mut Self, key: *mut u8, value: *mut u8) -> c_int {
        // SAFETY: null or live; no callback runs.
        let Some(owner) = (unsafe { this.as_mut() }) else { return DICT_EMPTY };
        if owner.busy {
            return DICT_MUTATED;
        }
        let table = &mut owner.table;
        let Some(row) = table.pop() else { return DICT_EMPTY };
        let shape = table.shape();
        if !key.is_null() {
            // SAFETY: the row still has its bytes, and the caller room for them.
            unsafe { copy(table.key(row), key, shape.key) };
        }
        if !value.is_null() {
            // SAFETY: as above.
            unsafe { copy(table.value(row), value, shape.value) };
        }
        OK
    }

    /// Sizes of a key and a value in bytes, and the elements in order: key, hash, value.
    pub(super) fn elements(&self) -> (Shape, impl Iterator<Item = (*const u8, usize, *const u8)>) {
        let table = &self.table;
        let rows = (0..table.filled()).filter(|&row| table.is_live(row));
        (
            table.shape(),
            rows.map(|row| (table.key(row).cast_const(), table.hash(row), table.value(row).cast_const())),
        )
    }
}

/// # Safety
/// As for [`HashContainer::insert`]; the search for the key ended at `vacant`.
#[inline(always)]
unsafe fn add(
    this: *mut HashContainer,
    vacant: Probe,
    key: *const u8,
    hash: usize,
    value: *const u8,
    old: *mut u8,
) -> c_int {
    // SAFETY: live; the reference ends before a callback runs.
    let owner = unsafe { &mut *this };
    let (table, methods) = (&mut owner.table, owner.methods);
    // SAFETY: null, or room for a value.
    unsafe { zero(old, table.shape().value) };
    let has_moved = table.is_full();
    if has_moved && !table.rebuild() {
        return DICT_NO_MEMORY;
    }
    // SAFETY: as the caller promises; the table is not full.
    unsafe { by_width!(table.width(), push(table, vacant, has_moved, key, hash, value)) };
    // SAFETY: the added element.
    unsafe { call(methods.key_incref, key) };
    // SAFETY: as above.
    unsafe { call(methods.value_incref, value) };
    OK
}

/// # Safety
/// As for [`Table::push`].
#[inline(always)]
unsafe fn push<S: Slot>(
    table: &mut Table,
    vacant: Probe,
    has_moved: bool,
    key: *const u8,
    hash: usize,
    value: *const u8,
) {
    let vacant = if has_moved { table.vacant::<S>(hash) } else { vacant };
    // SAFETY: as the caller promises.
    unsafe { table.push::<S>(vacant, hash, key, value) }
}

/// # Safety
/// As for [`HashContainer::insert`]; `row` is live.
#[inline(always)]
unsafe fn exchange(this: *mut HashContainer, row: usize, value: *const u8, old: *mut u8) -> c_int {
    // SAFETY: live; the reference ends before a callback runs.
    let owner = unsafe { &mut *this };
    let (table, methods) = (&mut owner.table, owner.methods);
    let (place, size) = (table.value(row), table.shape().value);
    if old.is_null() {
        // There is no room to keep the old value for the callback, so it is released in place.
        // SAFETY: a live value; the busy table does not move.
        unsafe { call(methods.value_decref, place) };
        // SAFETY: as the caller promises.
        unsafe { copy(value, place, size) };
    } else {
        // SAFETY: a live value, and room for it.
        unsafe { copy(place, old, size) };
        // SAFETY: as the caller promises.
        unsafe { copy(value, place, size) };
        // SAFETY: the old value.
        unsafe { call(methods.value_decref, old) };
    }
    // SAFETY: the new value.
    unsafe { call(methods.value_incref, value) };
    REPLACED
}
