//! Entries for symbol slots.

use alloc::boxed::Box;
use core::ffi::{c_char, c_void};
use core::ptr::{self, NonNull};

use crate::symbols::{Slot, SlotTable};

pub(crate) unsafe extern "C" fn new(abort: *mut c_void) -> *mut SlotTable {
    NonNull::new(abort).map_or(ptr::null_mut(), |abort| Box::into_raw(Box::new(SlotTable::new(abort))))
}

pub(crate) unsafe extern "C" fn free(slots: *mut SlotTable) {
    if !slots.is_null() {
        // SAFETY: made by `api_slots_new`, and the C caller gives it up.
        drop(unsafe { Box::from_raw(slots) });
    }
}

/// A name of C.
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
    slots.zip(name).map_or(ptr::null(), |(slots, name)| slots.slot(name))
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
    let names = slots.unresolved();
    if let Some(visit) = visit {
        for name in &names {
            // SAFETY: the C caller's function, with readable bytes.
            unsafe { visit(name.as_ptr().cast(), name.len(), context) };
        }
    }
    names.len()
}
