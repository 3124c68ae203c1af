//! How a group holds the arrays that its kernel writes: alone, or beside groups in other threads.

use core::cell::UnsafeCell;
use core::fmt::Debug;
use core::slice;
use core::sync::atomic::Ordering;

use crate::argument::{RawSlice, Sealed};

/// How a group holds written arrays; sealed.
pub trait Sharing: Sealed {
    /// A written array.
    type Array<'v, T: Copy + Send + Sync + 'static>: Elements<T>;

    /// # Safety
    /// The elements are live and initialised for `'v`. Nothing else accesses them meanwhile. As an
    /// exception, other groups of the same launch may access [`Concurrent`] arrays, but never two
    /// of them one element unless both read it.
    #[doc(hidden)]
    unsafe fn array<'v, T: Copy + Send + Sync + 'static>(raw: &RawSlice<T>) -> Self::Array<'v, T>;

    /// Orders the accesses of the calling thread before and after it, as the strongest order of
    /// atomic operations in kernels demands. A thread that runs all groups needs no such fence.
    #[doc(hidden)]
    fn fence() {}

    /// The same array for one group.
    #[doc(hidden)]
    fn reborrow<'s, T: Copy + Send + Sync + 'static>(array: &'s mut Self::Array<'_, T>)
    -> Self::Array<'s, T>;
}

/// Groups run one after the other: `&mut [T]`, and the compiler knows that nothing else refers to
/// the elements.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// Groups run in several threads at once: a slice of [`SharedElement`]s.
#[derive(Clone, Copy, Debug)]
pub struct Concurrent;

impl Sealed for Exclusive {}
impl Sharing for Exclusive {
    type Array<'v, T: Copy + Send + Sync + 'static> = &'v mut [T];

    #[inline]
    unsafe fn array<'v, T: Copy + Send + Sync + 'static>(raw: &RawSlice<T>) -> &'v mut [T] {
        // SAFETY: the caller's promise, which here is exclusive access.
        unsafe { RawSlice::view_mut(raw) }
    }

    #[inline]
    fn reborrow<'s, T: Copy + Send + Sync + 'static>(array: &'s mut &mut [T]) -> &'s mut [T] {
        array
    }
}

impl Sealed for Concurrent {}
impl Sharing for Concurrent {
    type Array<'v, T: Copy + Send + Sync + 'static> = &'v [SharedElement<T>];

    #[inline]
    unsafe fn array<'v, T: Copy + Send + Sync + 'static>(raw: &RawSlice<T>) -> &'v [SharedElement<T>] {
        // SAFETY: the caller's promise; an element has the layout of `T`, and a shared reference to
        // it claims nothing about who writes it.
        unsafe { slice::from_raw_parts(raw.as_ptr().cast(), raw.len()) }
    }

    #[inline]
    fn fence() {
        core::sync::atomic::fence(Ordering::SeqCst);
    }

    #[inline]
    fn reborrow<'s, T: Copy + Send + Sync + 'static>(
        array: &'s mut &[SharedElement<T>],
    ) -> &'s [SharedElement<T>] {
        array
    }
}

/// An element that several threads may access. The proof of the launch says that no two of them
/// access one element unless both read it.
#[repr(transparent)]
pub struct SharedElement<T>(UnsafeCell<T>);

// SAFETY: the element is accessed through unsafe methods only, whose callers promise that no other
// thread interferes.
unsafe impl<T: Send + Sync> Sync for SharedElement<T> {}

#[cfg(feature = "std")]
impl<T> SharedElement<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) const fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> Debug for SharedElement<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SharedElement")
    }
}

/// An array that a kernel writes.
pub trait Elements<T> {
    /// Number of elements.
    fn count(&self) -> usize;

    /// Reads an element.
    ///
    /// # Safety
    /// The index is below [`count`](Self::count), and no other thread writes the element meanwhile.
    unsafe fn get(&self, index: usize) -> T;

    /// Writes an element.
    ///
    /// # Safety
    /// The index is below [`count`](Self::count), and no other thread accesses the element
    /// meanwhile.
    unsafe fn set(&mut self, index: usize, value: T);
}

impl<T: Copy> Elements<T> for &mut [T] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn get(&self, index: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.get_unchecked(index) }
    }

    #[inline(always)]
    unsafe fn set(&mut self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        let element = unsafe { self.get_unchecked_mut(index) };
        *element = value;
    }
}

impl<T: Copy> Elements<T> for &[SharedElement<T>] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn get(&self, index: usize) -> T {
        // SAFETY: the caller's promise.
        let element = unsafe { self.get_unchecked(index) };
        // SAFETY: no other thread writes the element, by the caller's promise.
        unsafe { *element.0.get() }
    }

    #[inline(always)]
    unsafe fn set(&mut self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        let element = unsafe { self.get_unchecked(index) };
        // SAFETY: no other thread accesses the element, by the caller's promise.
        unsafe { *element.0.get() = value };
    }
}
