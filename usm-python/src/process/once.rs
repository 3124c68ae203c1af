//! Values that are made once, without a lock. `PyOnceLock` and `intern!` of PyO3 give the
//! interpreter away while they hold a lock: a child that another thread forks in that moment waits
//! for the lock for ever.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::Python;

/// A value that is made at first need and never dropped.
pub(crate) struct LazyCell<T>(AtomicPtr<T>, PhantomData<T>);

impl<T: Send + Sync> LazyCell<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or a value that was leaked by `get_or_try_make`, is shared only, and lives
        // for ever.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value. Two threads may both make it, by `make`; all get the one that came first.
    #[inline]
    pub(crate) fn get_or_try_make<E>(
        &self,
        py: Python<'_>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        match self.get() {
            Some(value) => Ok(value),
            None => make().map(|value| self.keep(py, value)),
        }
    }

    #[cold]
    fn keep(&self, _: Python<'_>, value: T) -> &T {
        let pointer = Box::into_raw(Box::new(value));
        let first = self.0.compare_exchange(ptr::null_mut(), pointer, Ordering::AcqRel, Ordering::Acquire);
        let winner = match first {
            Ok(_) => pointer,
            Err(first) => {
                // SAFETY: the box from above, which nobody else has seen.
                drop(unsafe { Box::from_raw(pointer) });
                first
            }
        };
        // SAFETY: the value is leaked and only shared from now on.
        unsafe { &*winner }
    }
}

/// A name as a string of the interpreter, which is made once: `name!(py, "shape")`.
macro_rules! name {
    ($py:expr, $text:literal) => {{
        static NAME: $crate::process::once::LazyCell<pyo3::Py<pyo3::types::PyString>> =
            $crate::process::once::LazyCell::new();
        $crate::process::once::interned(&NAME, $py, $text)
    }};
}
pub(crate) use name;

/// The string of a [`name!`].
#[inline]
pub(crate) fn interned<'py>(
    name: &'py LazyCell<pyo3::Py<pyo3::types::PyString>>,
    py: Python<'py>,
    text: &'static str,
) -> &'py pyo3::Bound<'py, pyo3::types::PyString> {
    let make = || Ok::<_, std::convert::Infallible>(pyo3::types::PyString::intern(py, text).unbind());
    match name.get_or_try_make(py, make) {
        Ok(name) => name.bind(py),
        Err(error) => match error {},
    }
}
