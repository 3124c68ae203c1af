//! Heap values that report a lack of memory. The standard library's constructors end the program.

use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Moves a value to the heap; the caller owns it, as from [`Box::into_raw`]. Without memory drops
/// the value and returns `None`.
pub(crate) fn try_into_raw<T>(value: T) -> Option<NonNull<T>> {
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
