//! The functions of the driver, by topic. The specification says what each does; the other files
//! say how.
//!
//! Every body may use the caller's pointers: they are valid as the specification requires, and null
//! was checked.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each body rests on the one contract of its function"
)]
#![allow(clippy::too_many_arguments, reason = "the arguments are the specification's")]

mod context;
mod control;
mod device;
mod event;
mod kernel;
mod memory;
mod queue;

use core::ffi::c_void;

use level_zero_sys::*;

use crate::state::{Answer, DRIVER, handle};

pub(crate) use context::*;
pub(crate) use device::*;
pub(crate) use event::*;
pub(crate) use kernel::*;
pub(crate) use memory::*;
pub(crate) use queue::*;

/// # Safety
///
/// `pointer` is null or valid for reads and writes while the answer is used.
unsafe fn at<'a, T>(pointer: *mut T) -> Answer<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(ZE_RESULT_ERROR_INVALID_NULL_POINTER)
}

/// # Safety
///
/// `pointer` is null or valid for a write.
unsafe fn put<T>(pointer: *mut T, value: T) -> Answer {
    if pointer.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// # Safety
///
/// `pointer` is null or has `count` elements while the answer is used.
unsafe fn slice<'a, T>(pointer: *mut T, count: u32) -> Answer<&'a [T]> {
    match (pointer.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { core::slice::from_raw_parts(pointer, count as usize) }),
    }
}

/// The protocol of functions that list: a zero count or no array asks for the count. Otherwise that
/// many elements are written.
///
/// # Safety
///
/// `out` is null or valid for reads and writes.
unsafe fn count(out: *mut u32, asks: bool, known: u32) -> Answer<u32> {
    // SAFETY: the caller's promise.
    let out = unsafe { at(out) }?;
    if asks || *out == 0 || *out > known {
        *out = known;
    }
    Ok(if asks { 0 } else { *out })
}

/// # Safety
///
/// As [`count`]; `handles` is null or has as many elements as `*out`.
unsafe fn list(out: *mut u32, handles: *mut *mut c_void, known: &[usize]) -> Answer {
    // SAFETY: the caller's promise.
    let room = unsafe { count(out, handles.is_null(), known.len() as u32) }?;
    for (index, number) in known.iter().enumerate().take(room as usize) {
        // SAFETY: the caller's promise.
        unsafe { put(handles.wrapping_add(index), handle(*number)) }?;
    }
    Ok(())
}

fn is_driver(driver: ze_driver_handle_t) -> Answer {
    if driver.0 as usize == DRIVER { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE) }
}

/// Drivers recognise structures only by their tag, so a wrong tag is the caller's mistake.
fn tagged(found: ze_structure_type_t, expected: ze_structure_type_t) -> Answer {
    if found == expected { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_ENUMERATION) }
}

macro_rules! api {
    ($($name:ident($state:ident, $($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ze_result_t {
            #[allow(unused_variables, reason = "some functions need no state")]
            enter(stringify!($name), |$state| {
                // SAFETY: see the documentation of this module.
                #[allow(unused_unsafe, unreachable_code, reason = "some functions touch no pointer, some always refuse")]
                unsafe {
                    $body
                    Ok(ZE_RESULT_SUCCESS)
                }
            })
        }
    )*};
}
use api;
