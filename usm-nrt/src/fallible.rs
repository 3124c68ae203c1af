//! The heap where it may have nothing left: what the standard library makes ends the program then.

use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;

/// A value on the heap, owned by the caller, as [`Box::into_raw`] gives it; `None`, and the value
/// is dropped, without memory.
pub(crate) fn leaked<T>(value: T) -> Option<NonNull<T>> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Some(NonNull::from(Box::leak(Box::new(value))));
    }
    // SAFETY: the layout is not empty.
    let place = NonNull::new(unsafe { alloc::alloc::alloc(layout) })?.cast::<T>();
    // SAFETY: fresh memory of that layout.
    unsafe { place.write(value) };
    Some(place)
}
