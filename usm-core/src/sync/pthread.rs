//! The lock as one of POSIX, which valgrind's helgrind and drd understand: they see a spin lock as a race on everything that it guards.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ops::{Deref, DerefMut};

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut RawMutex) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut RawMutex) -> c_int;
}

/// `pthread_mutex_t` of 64-bit Linux; zeros are a mutex at rest.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct RawMutex([u64; 5]);

/// A lock with the interface of `spin::Mutex`. Its value must not move while it is locked, which the borrow of the guard sees to.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    raw: UnsafeCell<RawMutex>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock, or through an exclusive borrow.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: nobody holds a lock that moves.
unsafe impl<T: Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { raw: UnsafeCell::new(RawMutex([0; 5])), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // SAFETY: a mutex at rest or in use, at an address that stays while it is borrowed.
        let code = unsafe { pthread_mutex_lock(self.raw.get()) };
        assert_eq!(code, 0, "a lock");
        MutexGuard { mutex: self }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The value of a locked [`Mutex`].
#[derive(Debug)]
pub(crate) struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
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

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: locked by this thread, which still has the guard.
        unsafe { pthread_mutex_unlock(self.mutex.raw.get()) };
    }
}
