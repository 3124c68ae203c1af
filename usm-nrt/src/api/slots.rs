//! Table entries for symbol slots.

use alloc::boxed::Box;
use core::ffi::{c_char, c_void};
use core::ptr::{self, NonNull};

use crate::fallible::try_into_raw;
use crate::symbols::{Slot, SlotTable};

pub(crate) unsafe extern "C" fn new(abort: *mut c_void) -> *mut SlotTable {
    let table = NonNull::new(abort).and_then(|abort| try_into_raw(SlotTable::new(abort)));
    table.map_or(ptr::null_mut(), NonNull::as_ptr)
}

pub(crate) unsafe extern "C" fn free(slots: *mut SlotTable) {
    if !slots.is_null() {
        // SAFETY: made by `new`, and the C caller gives it up.
        drop(unsafe { Box::from_raw(slots) });
    }
}

/// A name that C passed; `None` if it is null or not UTF-8.
///
/// # Safety
/// `name` is null or points to `length` readable bytes that live for `'a`.
unsafe fn name_of<'a>(name: *const c_char, length: usize) -> Option<&'a str> {
    let name = NonNull::new(name.cast_mut())?;
    // SAFETY: as the caller promises.
    let bytes = unsafe { core::slice::from_raw_parts(name.as_ptr().cast::<u8>(), length) };
    core::str::from_utf8(bytes).ok()
}

pub(crate) unsafe extern "C" fn get(
    slots: *const SlotTable,
    name: *const c_char,
    length: usize,
) -> *const Slot {
    // SAFETY: null or a live table.
    let slots = unsafe { slots.as_ref() };
    // SAFETY: null or the C caller's readable bytes.
    let name = unsafe { name_of(name, length) };
    let slot = slots.zip(name).and_then(|(slots, name)| slots.slot(name).ok());
    slot.map_or(ptr::null(), ptr::from_ref)
}

pub(crate) unsafe extern "C" fn resolve(
    slots: *const SlotTable,
    name: *const c_char,
    length: usize,
    address: *mut c_void,
) -> bool {
    // SAFETY: null or a live table.
    let slots = unsafe { slots.as_ref() };
    // SAFETY: null or the C caller's readable bytes.
    let name = unsafe { name_of(name, length) };
    match (slots, name, NonNull::new(address)) {
        (Some(slots), Some(name), Some(address)) => slots.resolve(name, address).is_ok(),
        _ => false,
    }
}

pub(crate) unsafe extern "C" fn unresolved(
    slots: *const SlotTable,
    visit: Option<unsafe extern "C" fn(name: *const c_char, length: usize, context: *mut c_void)>,
    context: *mut c_void,
) -> usize {
    // SAFETY: null or a live table.
    let Some(slots) = (unsafe { slots.as_ref() }) else { return 0 };
    let mut count = 0;
    for name in slots.unresolved() {
        count += 1;
        if let Some(visit) = visit {
            // SAFETY: the C caller's function, with readable bytes; no lock is held.
            unsafe { visit(name.as_ptr().cast(), name.len(), context) };
        }
    }
    count
}
