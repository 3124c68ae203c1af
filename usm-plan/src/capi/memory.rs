//! What lies behind the caller's pointers.

use crate::error::{Error, Result};

use super::null;

/// Refuses what cannot be a place for `count` items: null, misaligned, beyond the address space.
pub(super) fn place<T>(at: *const T, count: usize, name: &str) -> Result<()> {
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

/// The caller's numbers, copied: the caller may give the same array for the answer.
///
/// # Safety
/// `from` is null or `count` numbers.
pub(super) unsafe fn copied(from: *const u64, count: usize, name: &str) -> Result<Vec<u64>> {
    place(from, count, name)?;
    let mut numbers = Vec::new();
    if count == 0 {
        return Ok(numbers);
    }
    numbers.try_reserve_exact(count).map_err(|error| Error::unable(error).in_field(name))?;
    // SAFETY: so many numbers by contract, neither null nor misaligned as was looked at.
    numbers.extend_from_slice(unsafe { core::slice::from_raw_parts(from, count) });
    Ok(numbers)
}

/// The caller's bytes.
///
/// # Safety
/// `from` is null or `length` bytes that stay as they are for as long as the slice is used.
pub(super) unsafe fn bytes<'a>(from: *const u8, length: usize, name: &str) -> Result<&'a [u8]> {
    place(from, length, name)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: so many bytes by contract, not null as was looked at.
    Ok(unsafe { core::slice::from_raw_parts(from, length) })
}

/// Writes all numbers.
///
/// # Safety
/// `to` passed [`place`] for as many, and has room for them.
pub(super) unsafe fn write(numbers: &[u64], to: *mut u64) {
    if !numbers.is_empty() {
        // SAFETY: room by contract; the numbers are in a block of our own.
        unsafe { to.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
    }
}

/// Hands a value to C.
pub(super) fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes a value back, and drops it.
///
/// # Safety
/// `value` is null, or from [`give`] and used no more.
pub(super) unsafe fn free<T>(value: *mut T) {
    if !value.is_null() {
        // SAFETY: from `Box::into_raw`, once, by contract.
        drop(unsafe { Box::from_raw(value) });
    }
}
