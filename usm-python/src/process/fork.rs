//! Locks of this package that a forked child does not wait for.

use std::sync::{Arc, Mutex, TryLockError};

use pyo3::Python;
use pyo3::sync::MutexExt;
pub(crate) use usm_array::fork::{SOURCE, TURNS, count, enter, prepare};

/// A value with a lock that may be held for long and over calls of the interpreter, so that no fork
/// waits for it. In a forked child a lock that another thread of the parent held is replaced,
/// with a default value.
#[derive(Debug, Default)]
pub(crate) struct ReplacedState<T>(Mutex<(usize, Arc<Mutex<T>>)>);

impl<T: Default> ReplacedState<T> {
    /// The lock of this process. The interpreter stays attached while the outer lock is held, so
    /// that no thread of it forks meanwhile.
    pub(crate) fn lock_of(&self, py: Python<'_>) -> Arc<Mutex<T>> {
        let mut current = match self.0.lock_py_attached(py) {
            Ok(current) => current,
            Err(error) => error.into_inner(),
        };
        let forks = count();
        if current.0 != forks {
            let is_held = matches!(current.1.try_lock(), Err(TryLockError::WouldBlock));
            if is_held {
                // The thread that held it does not exist here, so nobody else frees its value.
                std::mem::forget(std::mem::take(&mut current.1));
            }
            current.0 = forks;
        }
        Arc::clone(&current.1)
    }
}
