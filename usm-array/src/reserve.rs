//! Memory of the process of sizes that a program chooses. A size from an array may be any number,
//! so each request here can be refused; the library's own containers would end the process.

use std::alloc::{Layout, alloc_zeroed};

use crate::error::{Error, Result};

/// `size` zero bytes.
///
/// # Errors
/// [`Error::NoMemory`].
pub fn zeroed(size: usize) -> Result<Vec<u8>> {
    if size == 0 {
        return Ok(Vec::new());
    }
    let layout = Layout::array::<u8>(size).map_err(|_| Error::NoMemory(size))?;
    // SAFETY: the layout has a size.
    let pointer = unsafe { alloc_zeroed(layout) };
    if pointer.is_null() {
        return Err(Error::NoMemory(size));
    }
    // SAFETY: just allocated with this layout, and all bytes are initialised.
    Ok(unsafe { Vec::from_raw_parts(pointer, size, size) })
}

/// An empty vector with capacity for `len` elements.
///
/// # Errors
/// [`Error::NoMemory`].
pub fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| Error::NoMemory(len.saturating_mul(size_of::<T>())))?;
    Ok(vector)
}
