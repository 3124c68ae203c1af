//! The same names over loom, which runs a program in every order that its atomics and locks allow.
//!
//! loom's objects belong to one run of a model and cannot be made in a constant, so each is made when it is first used. Only one thread of a
//! model runs at a time, and making an object is no point at which another one takes over. A model uses what it shares once before it starts
//! threads, so that what follows is ordered after the making. The objects are never dropped: the count of an `Arc` of the
//! standard library orders the last use before the end, but loom cannot see that.

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use std::sync::OnceLock;

pub(crate) use core::sync::atomic::Ordering;

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name {
            first: $value,
            inner: ManuallyDrop<OnceLock<loom::sync::atomic::$name>>,
        }

        impl $name {
            pub(crate) const fn new(first: $value) -> Self {
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

/// A lock with the interface of `spin::Mutex`.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    lock: ManuallyDrop<OnceLock<loom::sync::Mutex<()>>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock, or through an exclusive borrow.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: ManuallyDrop::new(OnceLock::new()), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let lock = self.lock.get_or_init(|| loom::sync::Mutex::new(()));
        let held = lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the lock is held as long as the borrow lives.
        let value = unsafe { &mut *self.value.get() };
        MutexGuard { value, _held: held }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The value of a locked [`Mutex`].
#[derive(Debug)]
pub(crate) struct MutexGuard<'m, T> {
    value: &'m mut T,
    _held: loom::sync::MutexGuard<'m, ()>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}
