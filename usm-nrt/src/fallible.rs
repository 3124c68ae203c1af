//! The heap where it may have nothing left: what the standard library makes ends the program then.

use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::error::Error;

/// A value on the heap, owned by the caller: what [`Box::into_raw`] gives. Dropped when there is no memory.
pub(crate) fn leaked<T>(value: T) -> Result<NonNull<T>, Error> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Ok(NonNull::from(Box::leak(Box::new(value))));
    }
    // SAFETY: the layout is not empty.
    let room = NonNull::new(unsafe { alloc::alloc::alloc(layout) })
        .ok_or(Error::OutOfMemory { size: layout.size() })?;
    let place = room.cast::<T>();
    // SAFETY: fresh memory of that layout.
    unsafe { place.write(value) };
    Ok(place)
}
