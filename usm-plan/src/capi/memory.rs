//! The memory behind the caller's pointers.

use crate::error::{Error, Result};

use super::null;

/// Refuses a pointer that cannot hold `count` items: null, misaligned, or beyond the address space.
pub(super) fn check_array<T>(at: *const T, count: usize, name: &str) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    if at.is_null() {
        return Err(null(name));
    }
    if !at.is_aligned() {
        let reason = format!("at {:#x}, which is no multiple of {}", at.addr(), align_of::<T>());
        return Err(Error::bad(reason).in_field(name));
    }
    let most = isize::MAX as usize / size_of::<T>();
    if count > most || at.addr().checked_add(count * size_of::<T>()).is_none() {
        let reason = format!("{count} items of {} bytes exceed the address space", size_of::<T>());
        return Err(Error::bad(reason).in_field(name));
    }
    Ok(())
}

/// A copy of the caller's numbers: the result may be written to the same array.
///
/// # Safety
/// `from` is null or has `count` numbers.
pub(super) unsafe fn copied(from: *const u64, count: usize, name: &str) -> Result<Vec<u64>> {
    check_array(from, count, name)?;
    let mut numbers = Vec::new();
    if count == 0 {
        return Ok(numbers);
    }
    numbers.try_reserve_exact(count).map_err(|error| Error::unable(error).in_field(name))?;
    // SAFETY: the contract demands this many numbers; null and misalignment were refused.
    numbers.extend_from_slice(unsafe { core::slice::from_raw_parts(from, count) });
    Ok(numbers)
}

/// The caller's bytes.
///
/// # Safety
/// `from` is null or has `length` bytes, which do not change while the slice is used.
pub(super) unsafe fn bytes<'a>(from: *const u8, length: usize, name: &str) -> Result<&'a [u8]> {
    check_array(from, length, name)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: the contract demands this many bytes; null was refused.
    Ok(unsafe { core::slice::from_raw_parts(from, length) })
}

/// Writes all numbers.
///
/// # Safety
/// `to` passed [`check_array`] for this many numbers and has room for them.
pub(super) unsafe fn write(numbers: &[u64], to: *mut u64) {
    if !numbers.is_empty() {
        // SAFETY: the contract demands the room; the numbers lie in a block of this library.
        unsafe { to.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
    }
}

/// Moves a value to C.
pub(super) fn into_c<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes a value back and drops it.
///
/// # Safety
/// `value` is null, or came from [`into_c`] and is not used afterwards.
pub(super) unsafe fn free<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: from `Box::into_raw`; the contract demands a single call.
        drop(unsafe { Box::from_raw(value) });
    }
}
