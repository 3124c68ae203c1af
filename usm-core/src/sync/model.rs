//! The same names over loom, which runs a program in every order that its atomics and locks allow.
//!
//! loom's objects belong to one run of a model and cannot be made in a constant, so each is made at
//! its first use. Only one thread of a model runs at a time, and making an object is no switching
//! point. A model uses its shared objects once before it starts threads, so that all later uses are
//! ordered after the making. The objects are never dropped: the standard library's `Arc` count
//! orders the last use before the end, but loom cannot see that.

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::sync::{OnceLock, PoisonError};

pub use core::sync::atomic::Ordering;

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// Loom's atomic of this width.
        #[derive(Debug)]
        pub struct $name {
            first: $value,
            inner: ManuallyDrop<OnceLock<loom::sync::atomic::$name>>,
        }

        impl $name {
            /// Makes one with this value.
            pub const fn new(first: $value) -> Self {
                Self { first, inner: ManuallyDrop::new(OnceLock::new()) }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }

        impl Deref for $name {
            type Target = loom::sync::atomic::$name;

            fn deref(&self) -> &Self::Target {
                self.inner.get_or_init(|| loom::sync::atomic::$name::new(self.first))
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicUsize, usize);

/// A lock with the interface of `spin::mutex::SpinMutex`.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    lock: ManuallyDrop<OnceLock<loom::sync::Mutex<()>>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed through the lock or through an exclusive borrow.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { lock: ManuallyDrop::new(OnceLock::new()), value: UnsafeCell::new(value) }
    }

    /// Blocks until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let lock = self.lock.get_or_init(|| loom::sync::Mutex::new(()));
        MutexGuard { mutex: self, inner: lock.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Access without locking, because the borrow is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The value of a locked [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    inner: loom::sync::MutexGuard<'m, ()>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and this borrow is exclusive.
        unsafe { &mut *self.mutex.value.get() }
    }
}

/// A condition with the interface of `sleeping::Condvar`.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    inner: ManuallyDrop<OnceLock<loom::sync::Condvar>>,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { inner: ManuallyDrop::new(OnceLock::new()) }
    }

    fn inner(&self) -> &loom::sync::Condvar {
        self.inner.get_or_init(loom::sync::Condvar::new)
    }

    pub(crate) fn notify_one(&self) {
        self.inner().notify_one();
    }

    pub(crate) fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        let MutexGuard { mutex, inner } = guard;
        let inner = self.inner().wait(inner).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex, inner }
    }

    /// A model has no clock. With [`Duration::MAX`] this returns only when notified, so that the
    /// model finds a lost signal; otherwise it returns after other threads had their turn, as if
    /// the time were over.
    pub(crate) fn wait_timeout<'m, T>(&self, guard: MutexGuard<'m, T>, limit: Duration) -> MutexGuard<'m, T> {
        if limit == Duration::MAX {
            return self.wait(guard);
        }
        let mutex = guard.mutex;
        drop(guard);
        loom::thread::yield_now();
        mutex.lock()
    }
}
