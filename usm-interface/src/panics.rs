//! Panics of the program's own code below a C frame, which no panic may cross.
//!
//! A function of C type that calls such code runs it in [`frame`]. If Rust called the function
//! ([`through`]), the panic continues there; if C or machine code called it, the panic ends in the
//! frame. Both count it. Without `std`, and in a program built with `panic = "abort"`, no panic can
//! be caught, and both functions are plain calls.
//!
//! usm-nrt and usm-interface do not depend on each other, so each contains this file. A test of
//! usm-tests keeps the two equal.

#[cfg(not(all(feature = "std", panic = "unwind")))]
pub(crate) use plain::{caught, frame, through};
#[cfg(all(feature = "std", panic = "unwind"))]
pub(crate) use unwinding::{caught, frame, through};

#[cfg(all(feature = "std", panic = "unwind"))]
mod unwinding {
    extern crate alloc;
    extern crate std;

    use alloc::boxed::Box;
    use core::any::Any;
    use core::cell::Cell;
    use core::panic::AssertUnwindSafe;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::panic::{catch_unwind, resume_unwind};
    use std::thread;
    use std::thread_local;

    type Payload = Box<dyn Any + Send>;

    /// The fate of a panic in a frame of the calling thread.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum State {
        /// It ends in the frame, because C called.
        Ends,
        /// It is kept, because Rust called and continues it.
        Kept,
        /// One is already kept. The first one continues.
        Caught,
    }

    thread_local! {
        static STATE: Cell<State> = const { Cell::new(State::Ends) };
        static PAYLOAD: Cell<Option<Payload>> = const { Cell::new(None) };
    }

    static CAUGHT: AtomicUsize = AtomicUsize::new(0);

    pub(crate) fn caught() -> usize {
        CAUGHT.load(Ordering::Relaxed)
    }

    /// Runs code of the program in a function of C type; `None` if it panicked.
    pub(crate) fn frame<R>(run: impl FnOnce() -> R) -> Option<R> {
        // A panic can break only the program's own state, as behind any unwinding drop.
        catch_unwind(AssertUnwindSafe(run)).map_err(keep).ok()
    }

    #[cold]
    fn keep(payload: Payload) {
        CAUGHT.fetch_add(1, Ordering::Relaxed);
        let mut payload = Some(payload);
        if STATE.get() == State::Kept {
            // Fails if the thread has already dropped its variables.
            let _ = PAYLOAD.try_with(|cell| cell.set(payload.take()));
            STATE.set(if payload.is_none() { State::Caught } else { State::Kept });
        }
        discard(payload);
    }

    /// Calls functions of C type. A panic in their frames continues behind them.
    #[inline]
    pub(crate) fn through(call: impl FnOnce()) {
        let outer = Outer::begin();
        call();
        if STATE.get() == State::Caught {
            outer.resume();
        }
    }

    /// The state outside of a [`through`]. The drop restores it.
    struct Outer {
        state: State,
        payload: Option<Payload>,
    }

    impl Outer {
        #[inline]
        fn begin() -> Self {
            let state = STATE.replace(State::Kept);
            let payload = if state == State::Caught { take() } else { None };
            Self { state, payload }
        }

        #[cold]
        fn resume(self) {
            let payload = take();
            drop(self);
            match payload {
                Some(payload) if !thread::panicking() => resume_unwind(payload),
                // A second panic during the first one's unwinding would end the process.
                other => discard(other),
            }
        }
    }

    impl Drop for Outer {
        #[inline]
        fn drop(&mut self) {
            STATE.set(self.state);
            if self.state == State::Caught {
                let payload = self.payload.take();
                let _ = PAYLOAD.try_with(|cell| cell.set(payload));
            }
        }
    }

    #[cold]
    fn take() -> Option<Payload> {
        PAYLOAD.try_with(Cell::take).ok().flatten()
    }

    /// Drops a panic's value. If that panics too, the second value is forgotten.
    fn discard(payload: Option<Payload>) {
        let outcome = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        outcome.unwrap_or_else(core::mem::forget);
    }
}

#[cfg(not(all(feature = "std", panic = "unwind")))]
mod plain {
    pub(crate) fn caught() -> usize {
        0
    }

    #[inline(always)]
    pub(crate) fn frame<R>(run: impl FnOnce() -> R) -> Option<R> {
        Some(run())
    }

    #[inline(always)]
    pub(crate) fn through(call: impl FnOnce()) {
        call();
    }
}

/// Number of panics of the program's code that this crate's functions of C type have caught in this
/// process. 0 without `std` and in programs built with `panic = "abort"`, where a panic ends the
/// process.
pub fn caught_panics() -> usize {
    caught()
}
