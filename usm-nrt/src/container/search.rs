//! The search for a key. A comparison is foreign code, so the container is read again after it.

use super::hash_container::HashContainer;
use super::layout::{Slot, by_width};
use super::memory::bytes_equal;
use super::table::{EMPTY, Probe, Table};

/// The outcome of a search.
pub(super) enum Search {
    Found(usize),
    /// The key is absent; the first slot where it may be inserted.
    Missing(Probe),
    Failed,
}

/// Looks for a key.
///
/// # Safety
/// `this` is live, and `key` has a key's bytes to read.
#[inline(always)]
pub(super) unsafe fn find(this: *const HashContainer, key: *const u8, hash: usize) -> Search {
    // SAFETY: live, as the caller promises; the reference ends before a callback runs.
    let HashContainer { table, methods, .. } = unsafe { &*this };
    if methods.key_equal.is_none() && table.shape().key == size_of::<u64>() {
        // SAFETY: as the caller promises.
        let key = unsafe { key.cast::<u64>().read_unaligned() };
        return by_width!(table.width(), find_word(table, key, hash));
    }
    // SAFETY: as the caller promises.
    unsafe { find_any(this, key, hash) }
}

/// The search for usual keys, numbers of 8 bytes. The loop makes no call, so its values stay in
/// registers.
#[inline(always)]
fn find_word<S: Slot>(table: &Table, key: u64, hash: usize) -> Search {
    let mut probe = Probe::new(hash);
    let mut vacant = None;
    loop {
        let slot = table.slot::<S>(probe);
        if slot >= 0 {
            let row = slot as usize;
            // SAFETY: the key of a row: 8 bytes, aligned to a word and initialised.
            if table.hash(row) == hash && unsafe { table.key(row).cast::<u64>().read_unaligned() } == key {
                return Search::Found(row);
            }
        } else if slot == EMPTY {
            return Search::Missing(vacant.unwrap_or(probe));
        } else {
            vacant = vacant.or(Some(probe));
        }
        probe.next();
    }
}

/// # Safety
/// As for [`find`].
#[inline(never)]
unsafe fn find_any(this: *const HashContainer, key: *const u8, hash: usize) -> Search {
    // SAFETY: as the caller promises.
    let width = unsafe { (*this).table.width() };
    // SAFETY: as the caller promises, for each width.
    unsafe { by_width!(width, find_in(this, key, hash)) }
}

/// # Safety
/// As for [`find`]; `S` is the table's width.
#[inline(always)]
unsafe fn find_in<S: Slot>(this: *const HashContainer, key: *const u8, hash: usize) -> Search {
    let mut probe = Probe::new(hash);
    let mut vacant = None;
    loop {
        // SAFETY: live, as the caller promises; the reference ends before a callback runs.
        let table = unsafe { &(*this).table };
        let slot = table.slot::<S>(probe);
        if slot >= 0 {
            let row = slot as usize;
            if table.hash(row) == hash {
                // SAFETY: as the caller promises.
                match unsafe { is_equal(this, row, key) } {
                    Some(true) => return Search::Found(row),
                    Some(false) => {}
                    None => return Search::Failed,
                }
            }
        } else if slot == EMPTY {
            return Search::Missing(vacant.unwrap_or(probe));
        } else {
            vacant = vacant.or(Some(probe));
        }
        probe.next();
    }
}

/// Compares a key with a row's. `None` if the comparison failed or moved the rows.
///
/// # Safety
/// As for [`find`]; `row` is live.
#[inline(always)]
unsafe fn is_equal(this: *const HashContainer, row: usize, key: *const u8) -> Option<bool> {
    // SAFETY: live, as the caller promises; the reference ends before a callback runs.
    let HashContainer { table, methods, .. } = unsafe { &*this };
    let stored_key = table.key(row);
    let Some(equal) = methods.key_equal else {
        // SAFETY: two keys; keys that are compared by their bytes are initialised.
        return Some(unsafe { bytes_equal(stored_key, key, table.shape().key) });
    };
    let generation = table.generation();
    // SAFETY: the caller's function, with two keys of its container.
    let result = unsafe { equal(stored_key, key) };
    // SAFETY: live, as the caller promises: a callback does not free its container.
    let has_moved = unsafe { (*this).table.generation() } != generation;
    if result < 0 || has_moved { None } else { Some(result > 0) }
}
