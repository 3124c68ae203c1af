//! A fork finds the locks of this runtime free and what they guard whole, whatever other threads
//! were doing: the child has none of those threads, so nobody would ever give a lock back there.

#[cfg(all(feature = "std", unix, not(miri)))]
mod imp {
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicBool, Ordering};

    use spin::Mutex;

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Hook, parent: Hook, child: Hook) -> c_int;
    }

    /// A lock that is held from before a fork until after it.
    trait Held: Sync {
        fn hold(&self);
        /// # Safety
        /// Held by [`hold`](Self::hold) of this thread, or of the one that this is a copy of.
        unsafe fn let_go(&self);
    }

    impl<T: Send> Held for Mutex<T> {
        fn hold(&self) {
            core::mem::forget(self.lock());
        }

        unsafe fn let_go(&self) {
            // SAFETY: as the caller promises.
            unsafe { self.force_unlock() };
        }
    }

    /// No thread takes one of them while it has another, or calls out, so their order is free; but
    /// for the first, under which the standard library's are taken.
    fn each(visit: impl Fn(&dyn Held)) {
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
        each(|lock| lock.hold());
    }

    unsafe extern "C" fn after() {
        // SAFETY: held by `before`.
        each(|lock| unsafe { lock.let_go() });
    }

    pub(crate) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            // SAFETY: functions of this library, which take and give back its locks. A failure (no
            // memory) leaves forks unwatched.
            let _ = unsafe { pthread_atfork(Some(before), Some(after), Some(after)) };
        }
    }
}

#[cfg(not(all(feature = "std", unix, not(miri))))]
mod imp {
    pub(crate) fn watch() {}
}

/// From now on forks are watched: to be called before one of the locks is taken.
pub(crate) use imp::watch;
