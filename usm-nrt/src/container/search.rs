//! Looking for a key. A comparison is foreign code: what it may have changed is read again after
//! it.

use super::keyed::Keyed;
use super::layout::{Slot, by_width};
use super::memory::same;
use super::table::{EMPTY, Probe, Table};

/// How a search ended.
pub(super) enum Search {
    Found(usize),
    /// With the first slot where the key may go.
    Missing(Probe),
    Failed,
}

/// Looks for a key.
///
/// # Safety
/// `this` is live, and `key` has a key's bytes to read.
#[inline(always)]
pub(super) unsafe fn find(this: *const Keyed, key: *const u8, hash: usize) -> Search {
    // SAFETY: live, as the caller promises; the reference ends before a callback runs.
    let Keyed { table, methods, .. } = unsafe { &*this };
    if methods.key_equal.is_none() && table.shape().key == size_of::<u64>() {
        // SAFETY: as the caller promises.
        let key = unsafe { key.cast::<u64>().read_unaligned() };
        return by_width!(table.width(), find_word(table, key, hash));
    }
    // SAFETY: as the caller promises.
    unsafe { find_any(this, key, hash) }
}

/// The usual keys: numbers of 8 bytes, without a call in the loop, so that everything stays in
/// registers.
#[inline(always)]
fn find_word<S: Slot>(table: &Table, key: u64, hash: usize) -> Search {
    let mut probe = Probe::new(hash);
    let mut vacant = None;
    loop {
        let slot = table.slot::<S>(probe);
        if slot >= 0 {
            let row = slot as usize;
            // SAFETY: the key of a row, 8 bytes on a word, compared by its bytes and so written.
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
/// As [`find`].
#[inline(never)]
unsafe fn find_any(this: *const Keyed, key: *const u8, hash: usize) -> Search {
    // SAFETY: as the caller promises.
    let width = unsafe { (*this).table.width() };
    // SAFETY: as the caller promises, for each width.
    unsafe { by_width!(width, find_in(this, key, hash)) }
}

/// # Safety
/// As [`find`]; `S` is the table's width.
#[inline(always)]
unsafe fn find_in<S: Slot>(this: *const Keyed, key: *const u8, hash: usize) -> Search {
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

/// `None` when the comparison failed, or moved the rows: whoever does that gets no answer.
///
/// # Safety
/// As [`find`]; `row` is live.
#[inline(always)]
unsafe fn is_equal(this: *const Keyed, row: usize, key: *const u8) -> Option<bool> {
    // SAFETY: live, as the caller promises; the reference ends before a callback runs.
    let Keyed { table, methods, .. } = unsafe { &*this };
    let stored = table.key(row);
    let Some(equal) = methods.key_equal else {
        // SAFETY: two keys; those compared by their bytes have all of them written.
        return Some(unsafe { same(stored, key, table.shape().key) });
    };
    let generation = table.generation();
    // SAFETY: the caller's function, with two keys of its container.
    let result = unsafe { equal(stored, key) };
    // SAFETY: live, as the caller promises: a callback does not free what it was called for.
    let moved = unsafe { (*this).table.generation() } != generation;
    if result < 0 || moved { None } else { Some(result > 0) }
}
