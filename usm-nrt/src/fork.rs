//! Makes a fork find the locks of this runtime free and their data consistent, whatever other
//! threads do. The child has none of those threads, so no thread would ever release a lock there.

#[cfg(all(feature = "std", unix, not(miri)))]
mod imp {
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicBool, Ordering};

    use spin::Mutex;

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Hook, parent: Hook, child: Hook) -> c_int;
    }

    /// A lock that is held across a fork.
    trait HeldLock: Sync {
        fn acquire(&self);
        /// # Safety
        /// Locked by [`acquire`](Self::acquire) on this thread, or on the thread that this one is
        /// the copy of.
        unsafe fn release(&self);
    }

    impl<T: Send> HeldLock for Mutex<T> {
        fn acquire(&self) {
            core::mem::forget(self.lock());
        }

        unsafe fn release(&self) {
            // SAFETY: as the caller promises.
            unsafe { self.force_unlock() };
        }
    }

    /// No thread takes one of these locks while it holds another or calls out, so their order is
    /// free. The first is an exception: the standard library's locks are taken under it.
    fn for_each_lock(visit: impl Fn(&dyn HeldLock)) {
        #[cfg(feature = "debug")]
        visit(&crate::misuse::STANDARD);
        #[cfg(feature = "debug")]
        visit(&crate::misuse::DEAD);
        visit(&crate::track::REGISTRY);
        visit(&crate::allocator::INSTALLING);
        visit(&crate::symbols::GATE);
        visit(&crate::block::CENTRAL);
        visit(&crate::local::CLOSING);
    }

    unsafe extern "C" fn before() {
        for_each_lock(|lock| lock.acquire());
    }

    unsafe extern "C" fn after() {
        // SAFETY: held by `before`.
        for_each_lock(|lock| unsafe { lock.release() });
    }

    pub(crate) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            // SAFETY: functions of this library, which lock and unlock its locks. A failure (no
            // memory) leaves forks without this protection.
            let _ = unsafe { pthread_atfork(Some(before), Some(after), Some(after)) };
        }
    }
}

#[cfg(not(all(feature = "std", unix, not(miri))))]
mod imp {
    pub(crate) fn watch() {}
}

/// Registers the fork handlers. Call it before one of the locks is first taken.
pub(crate) use imp::watch;
