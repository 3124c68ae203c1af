//! Numba's typed list: items of one size in a contiguous block that grows by an eighth.
//!
//! Compiled code reads items and the length through [`numba_list_base_ptr`] and
//! [`numba_list_size_address`] without a call. As in dictionaries, no reference into the list lives
//! while a callback runs.

use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use super::memory::{Memory, copy};
use super::{CountFn, LIST_EXHAUSTED, LIST_IMMUTABLE, LIST_INDEX, LIST_MUTATED, LIST_NO_MEMORY, OK, call};
use crate::export::export;

/// A list of compiled code. Only its address and that of its size leave this crate.
#[derive(Debug)]
pub struct List {
    /// Number of items; never negative. Compiled code reads it.
    size: isize,
    /// Size of an item in bytes.
    item_size: usize,
    /// Number of items that fit in `items`; never negative.
    capacity: isize,
    mutable: c_int,
    /// Whether the list is being changed.
    busy: bool,
    methods: ListMethods,
    items: Option<Memory>,
    /// Size of `items` in bytes.
    room: usize,
}

/// The callbacks of a list; either may be missing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ListMethods {
    /// Called for an item that was copied into the list.
    pub item_incref: Option<CountFn>,
    /// Called for an item that leaves it.
    pub item_decref: Option<CountFn>,
}

/// An iterator in memory of the caller: as large as Numba's, at any alignment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ListIter {
    parent: *const List,
    size: isize,
    position: isize,
}

impl List {
    /// The address of item `index`, for an index that a list of this size may have. Reads nothing.
    #[inline(always)]
    fn item(&self, index: isize) -> *mut u8 {
        let start = self.items.as_ref().map_or(ptr::null_mut(), Memory::start);
        start.wrapping_add(index as usize * self.item_size)
    }

    /// Checks an index in one comparison: a negative one becomes too large.
    #[inline(always)]
    const fn is_in_range(&self, index: isize) -> bool {
        (index as usize) < self.size as usize
    }

    /// Refuses a change of an immutable list, and a change while another one runs.
    #[inline(always)]
    const fn check_writable(&self) -> Result<(), c_int> {
        if self.mutable == 0 {
            return Err(LIST_IMMUTABLE);
        }
        if self.busy { Err(LIST_MUTATED) } else { Ok(()) }
    }

    /// Resizes to `size` items. Added items are uninitialised.
    #[inline(always)]
    fn resize(&mut self, size: isize) -> Result<(), c_int> {
        if size > self.capacity || size < self.capacity >> 1 {
            return self.reallocate(size);
        }
        self.size = size;
        Ok(())
    }

    /// Resizes the room to `size` items and an eighth more; compiled code sees it.
    #[cold]
    #[inline(never)]
    fn reallocate(&mut self, size: isize) -> Result<(), c_int> {
        if size == 0 {
            self.items = None;
            (self.room, self.capacity, self.size) = (0, 0, 0);
            return Ok(());
        }
        let spare = (size >> 3) + if size < 9 { 3 } else { 6 };
        let capacity = size.checked_add(spare).ok_or(LIST_NO_MEMORY)?;
        let bytes = bytes(capacity, self.item_size).ok_or(LIST_NO_MEMORY)?;
        if !self.make_room(bytes) && size > self.capacity {
            return Err(LIST_NO_MEMORY);
        }
        // A block that could not shrink is larger than it need be.
        debug_assert!(bytes <= self.room);
        (self.capacity, self.size) = (capacity, size);
        Ok(())
    }

    /// Makes room for at least `bytes` bytes. It grows by half, because a device's memory may be
    /// slow to allocate and seldom grows in place. It shrinks when three quarters are empty.
    fn make_room(&mut self, bytes: usize) -> bool {
        let Some(items) = &mut self.items else {
            self.items = Memory::new(bytes);
            self.room = if self.items.is_some() { bytes } else { 0 };
            return self.items.is_some();
        };
        if (self.room / 4..=self.room).contains(&bytes) {
            return true;
        }
        let more = self.room + self.room / 2;
        let fits = if bytes < self.room { [bytes, bytes] } else { [bytes.max(more), bytes] };
        let Some(room) = fits.into_iter().find(|&room| items.resize(room)) else { return false };
        self.room = room;
        true
    }
}

/// Size of `items` items in bytes; `None` if no memory has that many.
fn bytes(items: isize, item_size: usize) -> Option<usize> {
    let bytes = usize::try_from(items).ok()?.checked_mul(item_size)?;
    isize::try_from(bytes).is_ok().then_some(bytes)
}

/// Runs a callback on an item of the list. The callback may read the list but not change it.
///
/// # Safety
/// `lp` is live and may be changed; `item` is a current or just removed item of it.
#[inline(always)]
unsafe fn count(lp: *mut List, function: Option<CountFn>, item: *mut u8) {
    if function.is_none() {
        return;
    }
    // SAFETY: live.
    unsafe { (*lp).busy = true };
    // SAFETY: the caller's function; a busy list is neither moved nor freed.
    unsafe { call(function, item) };
    // SAFETY: live.
    unsafe { (*lp).busy = false };
}

/// The items of a slice in ascending order: first, last, number and distance.
#[derive(Clone, Copy)]
struct Slice {
    first: isize,
    step: isize,
    count: isize,
}

impl Slice {
    /// `Ok(None)` for an empty slice; an error if it reaches outside of a list of `size` items.
    fn new(start: isize, stop: isize, step: isize, size: isize) -> Result<Option<Self>, c_int> {
        if step == 0 {
            return Err(LIST_INDEX);
        }
        let is_empty = if step < 0 { start <= stop } else { start >= stop };
        if is_empty {
            return Ok(None);
        }
        let (low, high) =
            if step < 0 { (stop.saturating_add(1), start) } else { (start, stop.saturating_sub(1)) };
        if low < 0 || high >= size {
            return Err(LIST_INDEX);
        }
        // A step longer than the list selects one item, whatever its length.
        let step_up = step.unsigned_abs().min(size as usize) as isize;
        let count = (high - low) / step_up + 1;
        let first = if step < 0 { high - (count - 1) * step_up } else { low };
        Ok(Some(Self { first, step: step_up, count }))
    }

    const fn index_at(self, index: isize) -> isize {
        self.first + index * self.step
    }
}

impl List {
    /// Closes the gaps: moves up the items between and behind those of the slice.
    fn close_gaps(&mut self, slice: Slice) {
        for index in 0..slice.count {
            let from = slice.index_at(index) + 1;
            let end = if index + 1 < slice.count { slice.index_at(index + 1) } else { self.size };
            let length = (end - from) as usize * self.item_size;
            // SAFETY: both ranges lie inside the list, because the slice does.
            unsafe { ptr::copy(self.item(from), self.item(from - index - 1), length) };
        }
    }
}

/// # Safety
/// `lp` is null or live, and no other thread changes it.
unsafe fn delete(
    lp: *mut List,
    slice: impl FnOnce(&List) -> Result<Option<Slice>, c_int>,
) -> Result<(), c_int> {
    // SAFETY: null or live.
    let Some(list) = (unsafe { lp.as_ref() }) else { return Err(LIST_INDEX) };
    list.check_writable()?;
    let Some(slice) = slice(list)? else { return Ok(()) };
    let decref = list.methods.item_decref;
    if decref.is_some() {
        for index in 0..slice.count {
            // SAFETY: live; a busy list does not move.
            let item = unsafe { (*lp).item(slice.index_at(index)) };
            // SAFETY: an item that leaves the list.
            unsafe { count(lp, decref, item) };
        }
    }
    // SAFETY: live.
    let list = unsafe { &mut *lp };
    list.close_gaps(slice);
    list.resize(list.size - slice.count)
}

fn status(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(OK)
}

export! {
    /// Makes a list with room for `capacity` items of `item_size` bytes.
    fn numba_list_new(out: *mut *mut List, item_size: isize, capacity: isize) -> c_int {
        let (Ok(item_size), false) = (usize::try_from(item_size), out.is_null()) else { return LIST_NO_MEMORY };
        let Some(bytes) = bytes(capacity, item_size) else { return LIST_NO_MEMORY };
        let items = if capacity == 0 { None } else { Memory::new(bytes) };
        if items.is_none() && capacity != 0 {
            return LIST_NO_MEMORY;
        }
        let methods = ListMethods::default();
        let list = List { size: 0, item_size, capacity, mutable: 1, busy: false, methods, items, room: bytes };
        let Some(list) = Memory::store_in_block(list) else { return LIST_NO_MEMORY };
        // SAFETY: room for a pointer.
        unsafe { out.write(list.as_ptr()) };
        OK
    }
    /// Copies the table. Null removes both methods.
    fn numba_list_set_method_table(lp: *mut List, methods: *const ListMethods) {
        // SAFETY: null or the caller's table.
        let methods = if methods.is_null() { ListMethods::default() } else { unsafe { methods.read() } };
        // SAFETY: null or the caller's list.
        if let Some(list) = unsafe { lp.as_mut() } {
            list.methods = methods;
        }
    }
    /// Releases all items in order, and frees the memory. Leaks the list if it is being changed.
    fn numba_list_free(lp: *mut List) {
        let Some(place) = NonNull::new(lp) else { return };
        // SAFETY: the caller's list; the reference ends before a callback runs.
        let &List { busy, size, methods: ListMethods { item_decref: decref, .. }, .. } = unsafe { place.as_ref() };
        if busy {
            return;
        }
        if decref.is_some() {
            for index in 0..size {
                // SAFETY: live; a busy list does not move.
                let item = unsafe { (*lp).item(index) };
                // SAFETY: an item that leaves the list.
                unsafe { count(lp, decref, item) };
            }
        }
        // SAFETY: made by `hold`, and the caller gives it up.
        drop(unsafe { Memory::take(place) });
    }
    /// The address of the first item, valid until the list changes. Null if no item fits.
    fn numba_list_base_ptr(lp: *mut List) -> *mut u8 {
        // SAFETY: null or the caller's list.
        unsafe { lp.as_ref() }.map_or(ptr::null_mut(), |list| list.item(0))
    }
    /// The address of the field that holds the number of items.
    fn numba_list_size_address(lp: *mut List) -> isize {
        if lp.is_null() {
            return 0;
        }
        // SAFETY: the caller's list.
        unsafe { &raw const (*lp).size }.expose_provenance() as isize
    }
    /// The number of items.
    fn numba_list_length(lp: *mut List) -> isize {
        // SAFETY: null or the caller's list.
        unsafe { lp.as_ref() }.map_or(0, |list| list.size)
    }
    /// The number of items that fit without growing.
    fn numba_list_allocated(lp: *mut List) -> isize {
        // SAFETY: null or the caller's list.
        unsafe { lp.as_ref() }.map_or(0, |list| list.capacity)
    }
    /// 0 if the list refuses changes.
    fn numba_list_is_mutable(lp: *mut List) -> c_int {
        // SAFETY: null or the caller's list.
        unsafe { lp.as_ref() }.map_or(0, |list| list.mutable)
    }
    /// Sets whether the list accepts changes.
    fn numba_list_set_is_mutable(lp: *mut List, is_mutable: c_int) {
        // SAFETY: null or the caller's list.
        if let Some(list) = unsafe { lp.as_mut() } {
            list.mutable = is_mutable;
        }
    }
    /// Replaces the item at an index.
    fn numba_list_setitem(lp: *mut List, index: isize, item: *const u8) -> c_int {
        // SAFETY: null or the caller's list.
        let Some(list) = (unsafe { lp.as_ref() }) else { return LIST_INDEX };
        if let Err(status) = list.check_writable() {
            return status;
        }
        if !list.is_in_range(index) {
            return LIST_INDEX;
        }
        let (place, size, methods) = (list.item(index), list.item_size, list.methods);
        // SAFETY: the old item.
        unsafe { count(lp, methods.item_decref, place) };
        // SAFETY: the caller's item; a busy list was not moved.
        unsafe { copy(item, place, size) };
        // SAFETY: the new item.
        unsafe { count(lp, methods.item_incref, place) };
        OK
    }
    /// Copies an item out. Counts no references.
    fn numba_list_getitem(lp: *mut List, index: isize, out: *mut u8) -> c_int {
        // SAFETY: null or the caller's list.
        let Some(list) = (unsafe { lp.as_ref() }) else { return LIST_INDEX };
        if !list.is_in_range(index) {
            return LIST_INDEX;
        }
        // SAFETY: an item, and the caller's room for it.
        unsafe { copy(list.item(index), out, list.item_size) };
        OK
    }
    /// Appends an item, which must not lie in the list.
    fn numba_list_append(lp: *mut List, item: *const u8) -> c_int {
        // SAFETY: null or the caller's list; the reference ends before a callback runs.
        let Some(list) = (unsafe { lp.as_mut() }) else { return LIST_NO_MEMORY };
        if let Err(status) = list.check_writable() {
            return status;
        }
        let size = list.size;
        // Items of a byte or more cannot reach `isize::MAX`; items of no bytes can.
        let Some(new_size) = size.checked_add(1) else { return LIST_NO_MEMORY };
        if let Err(status) = list.resize(new_size) {
            return status;
        }
        let (place, incref) = (list.item(size), list.methods.item_incref);
        // SAFETY: the caller's item, and room for it.
        unsafe { copy(item, place, list.item_size) };
        // SAFETY: the added item.
        unsafe { count(lp, incref, place) };
        OK
    }
    /// Removes the item at an index.
    fn numba_list_delitem(lp: *mut List, index: isize) -> c_int {
        let one = |list: &List| if list.is_in_range(index) { Ok(Some(Slice { first: index, step: 1, count: 1 })) } else { Err(LIST_INDEX) };
        // SAFETY: the caller's list.
        status(unsafe { delete(lp, one) })
    }
    /// Removes the items of a slice from `start` up to, excluding, `stop`; the ends are clipped to
    /// the list. [`LIST_INDEX`] if they are not, or if the step is 0.
    fn numba_list_delete_slice(lp: *mut List, start: isize, stop: isize, step: isize) -> c_int {
        // SAFETY: the caller's list.
        status(unsafe { delete(lp, |list| Slice::new(start, stop, step, list.size)) })
    }
    /// Size of an iterator in bytes.
    fn numba_list_iter_sizeof() -> usize {
        size_of::<ListIter>()
    }
    /// Starts an iteration.
    fn numba_list_iter(it: *mut ListIter, lp: *mut List) {
        // SAFETY: null or the caller's list.
        let size = unsafe { lp.as_ref() }.map_or(0, |list| list.size);
        if !it.is_null() {
            // SAFETY: room for an iterator.
            unsafe { it.write_unaligned(ListIter { parent: lp, size, position: 0 }) };
        }
    }
    /// The address of the next item, valid until the list changes.
    fn numba_list_iter_next(it: *mut ListIter, item_ptr: *mut *const u8) -> c_int {
        if it.is_null() {
            return LIST_EXHAUSTED;
        }
        // SAFETY: the caller's iterator.
        let state = unsafe { it.read_unaligned() };
        // SAFETY: of a live list, or null.
        let Some(list) = (unsafe { state.parent.as_ref() }) else { return LIST_EXHAUSTED };
        if list.size != state.size {
            return LIST_MUTATED;
        }
        if !list.is_in_range(state.position) {
            return LIST_EXHAUSTED;
        }
        let place = it.wrapping_byte_add(offset_of!(ListIter, position)).cast::<isize>();
        // SAFETY: the caller's iterator.
        unsafe { place.write_unaligned(state.position + 1) };
        if !item_ptr.is_null() {
            // SAFETY: room for a pointer.
            unsafe { item_ptr.write_unaligned(list.item(state.position)) };
        }
        OK
    }
}
