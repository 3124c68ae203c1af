//! POSIX locks and conditions, which valgrind's helgrind and drd understand. They report a race on
//! everything that a spin lock or a futex of the standard library guards.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut RawMutex) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut RawMutex) -> c_int;
    fn pthread_mutex_destroy(mutex: *mut RawMutex) -> c_int;
    fn pthread_cond_signal(condition: *mut RawCondition) -> c_int;
    fn pthread_cond_broadcast(condition: *mut RawCondition) -> c_int;
    fn pthread_cond_wait(condition: *mut RawCondition, mutex: *mut RawMutex) -> c_int;
    fn pthread_cond_timedwait(condition: *mut RawCondition, mutex: *mut RawMutex, end: *const Time) -> c_int;
}

const TIMED_OUT: c_int = 110;

/// `pthread_mutex_t` of 64-bit Linux; zeros are a mutex at rest.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct RawMutex([u64; 5]);

/// Otherwise helgrind takes the next lock at this address for the same one and may report
/// inconsistent lock orders.
impl Drop for RawMutex {
    fn drop(&mut self) {
        // SAFETY: no borrow of the mutex is left, so no thread holds it.
        unsafe { pthread_mutex_destroy(self) };
    }
}

/// `pthread_cond_t` of 64-bit Linux; zeros are a condition without waiters that uses the wall
/// clock.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct RawCondition([u64; 6]);

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

/// A lock with the interface of `spin::mutex::SpinMutex`. Its value must not move while it is
/// locked, which the borrow of the guard sees to.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    raw: UnsafeCell<RawMutex>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed through the lock or through an exclusive borrow.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: no thread holds a lock while it moves.
unsafe impl<T: Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self { raw: UnsafeCell::new(RawMutex([0; 5])), value: UnsafeCell::new(value) }
    }

    /// Blocks until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // SAFETY: a mutex at rest or in use, at an address that stays while it is borrowed.
        let code = unsafe { pthread_mutex_lock(self.raw.get()) };
        assert_eq!(code, 0, "a lock");
        MutexGuard { mutex: self }
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

/// A condition with the interface of `sleeping::Condvar`. Its value must not move while a thread
/// waits; the waiting borrow ensures that.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    raw: UnsafeCell<RawCondition>,
}

// SAFETY: all threads may call its functions concurrently.
unsafe impl Sync for Condvar {}
// SAFETY: no thread waits for a condition while it moves.
unsafe impl Send for Condvar {}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { raw: UnsafeCell::new(RawCondition([0; 6])) }
    }

    pub(crate) fn notify_one(&self) {
        // SAFETY: a condition at an address that stays while it is borrowed.
        let code = unsafe { pthread_cond_signal(self.raw.get()) };
        assert_eq!(code, 0, "a signal");
    }

    #[allow(dead_code, reason = "for the drivers of the tests, which have this file too")]
    pub(crate) fn notify_all(&self) {
        // SAFETY: as above.
        let code = unsafe { pthread_cond_broadcast(self.raw.get()) };
        assert_eq!(code, 0, "a signal");
    }

    pub(crate) fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        // SAFETY: this thread holds the guard's lock, and holds it again when the call returns.
        let code = unsafe { pthread_cond_wait(self.raw.get(), guard.mutex.raw.get()) };
        assert_eq!(code, 0, "a wait");
        guard
    }

    pub(crate) fn wait_timeout<'m, T>(&self, guard: MutexGuard<'m, T>, limit: Duration) -> MutexGuard<'m, T> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = now.saturating_add(limit);
        let end = Time {
            seconds: i64::try_from(end.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: end.subsec_nanos().into(),
        };
        // SAFETY: as above; the time outlives the call.
        let code = unsafe { pthread_cond_timedwait(self.raw.get(), guard.mutex.raw.get(), &raw const end) };
        assert!(code == 0 || code == TIMED_OUT, "a wait: {code}");
        guard
    }
}
