//! Rows in the order of insertion, and a hash table that finds them.
//!
//! ```text
//! rows    | hash | key | value | hash | key | value | ... two thirds as many as slots
//! slots   | 1 | EMPTY | 0 | REMOVED | ...                a power of two; each names a row
//! ```
//! Both lie in one block, rows first, so the rows stay in place when the block grows in place.
//! Slots are as narrow as the number of rows allows. A removed row keeps its place until the next
//! rebuild, so positions and order never change in between.

use super::layout::{KEY_AT, MIN_SLOTS, Plan, Shape, Slot, Width, by_width, rows_for};
use super::memory::{Memory, copy};

/// A slot that ends a search.
pub(super) const EMPTY: isize = -1;
/// A slot whose row was removed; a search continues behind it.
const REMOVED: isize = -2;
/// Stored instead of a hash: the row was removed. [`clean`] never returns it.
const NONE: usize = usize::MAX;

/// Maps the mark of removed rows to another hash, as Python does: -1 becomes -2.
#[inline]
pub(super) const fn row_hash(hash: isize) -> usize {
    if hash == -1 { -2_isize as usize } else { hash as usize }
}

/// The order in which slots are searched. It reaches every slot, and uses the hash's high bits
/// early.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    at: usize,
    rest: usize,
}

impl Probe {
    #[inline(always)]
    pub(super) fn new(hash: usize) -> Self {
        Self { at: hash, rest: hash }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) {
        self.rest >>= 5;
        self.at = self.at.wrapping_mul(5).wrapping_add(self.rest).wrapping_add(1);
    }
}

/// See the module's page. Invariants: `used <= filled`; the block has room for `filled + left`
/// rows; every slot is `EMPTY`, `REMOVED` or a row below `filled_rows`; at least one slot is
/// `EMPTY`, because an insertion lowers `left` even if it reuses a slot.
#[derive(Debug)]
pub(super) struct Table {
    memory: Memory,
    shape: Shape,
    width: Width,
    /// Number of slots - 1.
    mask: usize,
    slots_at: usize,
    /// Number of rows, removed ones included.
    filled_rows: usize,
    /// Number of rows that fit before the next rebuild.
    left: usize,
    /// Number of rows with an element.
    used: usize,
    /// Changes whenever rows move.
    generation: usize,
}

impl Table {
    /// Makes an empty table. `slots` is a power of two of at least [`MIN_SLOTS`]. `None` if memory
    /// is short.
    pub(super) fn new(slots: usize, shape: Shape) -> Option<Self> {
        debug_assert!(slots.is_power_of_two() && slots >= MIN_SLOTS);
        let plan = Plan::new(slots, shape)?;
        let mut table = Self {
            memory: Memory::new(plan.bytes)?,
            shape,
            width: plan.width,
            mask: 0,
            slots_at: 0,
            filled_rows: 0,
            left: 0,
            used: 0,
            generation: 0,
        };
        table.init_slots(plan);
        Some(table)
    }

    #[inline(always)]
    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    #[inline(always)]
    pub(super) const fn width(&self) -> Width {
        self.width
    }

    /// The number of elements.
    #[inline(always)]
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// The number of positions, with and without an element.
    #[inline(always)]
    pub(super) const fn filled(&self) -> usize {
        self.filled_rows
    }

    /// A number that changes whenever elements move.
    #[inline(always)]
    pub(super) const fn generation(&self) -> usize {
        self.generation
    }

    /// Whether the next insertion needs a [`Table::rebuild`] first.
    #[inline(always)]
    pub(super) const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// The address of a row. Reads nothing.
    #[inline(always)]
    fn row(&self, position: usize) -> *mut u8 {
        debug_assert!(rows_for(self.mask + 1).is_some_and(|rows| position < rows));
        self.memory.start().wrapping_add(position * self.shape.row)
    }

    /// The address of a key.
    #[inline(always)]
    pub(super) fn key(&self, position: usize) -> *mut u8 {
        self.row(position).wrapping_add(KEY_AT)
    }

    /// The address of a value.
    #[inline(always)]
    pub(super) fn value(&self, position: usize) -> *mut u8 {
        self.row(position).wrapping_add(self.shape.value_at)
    }

    /// The hash of a row, or the mark of a removed one.
    #[inline(always)]
    pub(super) fn hash(&self, position: usize) -> usize {
        debug_assert!(position < self.filled_rows);
        // SAFETY: rows below `filled_rows` have a hash, and rows are whole words from an aligned
        // start.
        unsafe { self.row(position).cast::<usize>().read() }
    }

    fn set_hash(&mut self, position: usize, hash: usize) {
        // SAFETY: inside the rows, which are whole words from an aligned start.
        unsafe { self.row(position).cast::<usize>().write(hash) }
    }

    /// Whether the position has an element.
    #[inline(always)]
    pub(super) fn is_live(&self, position: usize) -> bool {
        position < self.filled_rows && self.hash(position) != NONE
    }

    /// The slot that `probe` is at: a row, [`EMPTY`] or [`REMOVED`]. `S` is the table's [`Width`].
    #[inline(always)]
    pub(super) fn slot<S: Slot>(&self, probe: Probe) -> isize {
        let slots = self.memory.start().wrapping_add(self.slots_at).cast::<S>();
        // SAFETY: there are `mask + 1` slots, all written, aligned because the rows before them are
        // whole words.
        unsafe { slots.wrapping_add(probe.at & self.mask).read() }.get()
    }

    #[inline(always)]
    fn set_slot<S: Slot>(&mut self, probe: Probe, row: isize) {
        let slots = self.memory.start().wrapping_add(self.slots_at).cast::<S>();
        // SAFETY: as in `slot`.
        unsafe { slots.wrapping_add(probe.at & self.mask).write(S::new(row)) }
    }

    /// Adds an element. Its search ended at `vacant`, an empty or removed slot, and the table is
    /// not full.
    ///
    /// # Safety
    /// Key and value have the sizes of the shape and do not lie in the table.
    #[inline(always)]
    pub(super) unsafe fn push<S: Slot>(
        &mut self,
        vacant: Probe,
        hash: usize,
        key: *const u8,
        value: *const u8,
    ) {
        debug_assert!(!self.is_full());
        let position = self.filled_rows;
        self.set_slot::<S>(vacant, position as isize);
        self.set_hash(position, hash);
        // SAFETY: as the caller promises; a row has room for both.
        unsafe { copy(key, self.key(position), self.shape.key) };
        // SAFETY: as above.
        unsafe { copy(value, self.value(position), self.shape.value) };
        self.filled_rows += 1;
        self.left -= 1;
        self.used += 1;
    }

    /// The first slot where a key with this hash may be inserted.
    pub(super) fn vacant<S: Slot>(&self, hash: usize) -> Probe {
        let mut probe = Probe::new(hash);
        while self.slot::<S>(probe) >= 0 {
            probe.next();
        }
        probe
    }

    /// Removes a live element from the order and the slots. Its bytes stay until the next
    /// insertion.
    pub(super) fn remove(&mut self, position: usize) {
        debug_assert!(self.is_live(position));
        by_width!(self.width, unlink(self, position));
        self.set_hash(position, NONE);
        self.used -= 1;
    }

    /// [`Table::remove`] for the last element. Its position, and those of removed rows behind it,
    /// are reused.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let last = (0..self.filled_rows).rev().find(|&position| self.hash(position) != NONE)?;
        self.remove(last);
        // `left` stays: the slot remains `REMOVED`.
        self.filled_rows = last;
        Some(last)
    }

    /// Marks a row as removed while its slot still names it, for a table that is about to be freed.
    pub(super) fn forget(&mut self, position: usize) {
        self.set_hash(position, NONE);
    }

    /// Drops removed rows, and makes room for twice the elements. On failure returns false and
    /// changes nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn rebuild(&mut self) -> bool {
        let Some(least) = self.used.checked_mul(3) else { return false };
        let Some(slots) = least.max(MIN_SLOTS).checked_next_power_of_two() else { return false };
        let Some(plan) = Plan::new(slots, self.shape) else { return false };
        if slots > self.mask + 1 && !self.memory.resize(plan.bytes) {
            return false;
        }
        self.compact();
        if slots < self.mask + 1 {
            // A block that cannot shrink is large enough.
            let _ = self.memory.resize(plan.bytes);
        }
        self.init_slots(plan);
        by_width!(self.width, link(self));
        self.generation = self.generation.wrapping_add(1);
        true
    }

    /// Closes the gaps of removed rows.
    fn compact(&mut self) {
        if self.used == self.filled_rows {
            return;
        }
        let mut to = 0;
        for from in 0..self.filled_rows {
            if self.hash(from) == NONE {
                continue;
            }
            if from != to {
                // SAFETY: two rows of the block, the one in front of the other.
                unsafe { core::ptr::copy_nonoverlapping(self.row(from), self.row(to), self.shape.row) };
            }
            to += 1;
        }
        debug_assert_eq!(to, self.used);
        self.filled_rows = to;
    }

    /// Writes empty slots behind the rows. The block has the bytes of `plan` and no removed rows.
    fn init_slots(&mut self, plan: Plan) {
        self.width = plan.width;
        self.mask = plan.slots - 1;
        self.slots_at = plan.slots_at;
        self.left = plan.rows - self.filled_rows;
        let slots = self.memory.start().wrapping_add(plan.slots_at);
        // SAFETY: the rest of the block; all ones is `EMPTY` in every width.
        unsafe { slots.write_bytes(0xFF, plan.bytes - plan.slots_at) };
    }
}

/// Makes a slot name each row. All slots are empty and all rows live.
fn link<S: Slot>(table: &mut Table) {
    for position in 0..table.filled_rows {
        let probe = table.vacant::<S>(table.hash(position));
        table.set_slot::<S>(probe, position as isize);
    }
}

/// Marks the slot of a live row as removed.
fn unlink<S: Slot>(table: &mut Table, position: usize) {
    let mut probe = Probe::new(table.hash(position));
    loop {
        match table.slot::<S>(probe) {
            row if row == position as isize => return table.set_slot::<S>(probe, REMOVED),
            // Every live row has a slot. A search that ends without it is a defect, but no hang.
            EMPTY => return debug_assert!(false, "row {position} has no slot"),
            _ => probe.next(),
        }
    }
}
