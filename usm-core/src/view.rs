//! Host views of typed arrays: slices that borrow their array, so that conflicting work does not
//! compile.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::gate::ViewGuard;

/// Read access of the host. While it lives the array cannot be written, by the host or by a launch.
pub struct ReadView<'v, T> {
    slice: &'v [T],
    _guard: ViewGuard<'v>,
}

impl<'v, T> ReadView<'v, T> {
    pub(crate) fn new(slice: &'v [T], guard: ViewGuard<'v>) -> Self {
        Self { slice, _guard: guard }
    }
}

impl<T> Deref for ReadView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}

/// Read and write access of the host. While it lives nothing else can use the array.
pub struct WriteView<'v, T> {
    slice: &'v mut [T],
    _guard: ViewGuard<'v>,
}

impl<'v, T> WriteView<'v, T> {
    pub(crate) fn new(slice: &'v mut [T], guard: ViewGuard<'v>) -> Self {
        Self { slice, _guard: guard }
    }
}

impl<T> Deref for WriteView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.slice
    }
}

impl<T> DerefMut for WriteView<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.slice
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice.fmt(f)
    }
}
