//! Ctrl-C during a search: the command still prints the best plan so far.

use core::sync::atomic::{AtomicBool, Ordering};

static CAME: AtomicBool = AtomicBool::new(false);

/// While this lives, the first Ctrl-C is recorded and the second ends the process. Without it each
/// one ends the process.
pub(crate) struct Interrupt(());

/// Whether Ctrl-C was pressed.
pub(crate) fn is_pressed() -> bool {
    CAME.load(Ordering::Relaxed)
}

#[cfg(unix)]
mod system {
    use core::sync::atomic::{AtomicUsize, Ordering};

    const SIGINT: i32 = 2;
    /// `SIG_DFL`.
    const USUAL: usize = 0;
    /// `SIG_IGN`.
    const IGNORED: usize = 1;

    /// The previous action of the signal: the embedding program may have a handler of its own.
    static BEFORE: AtomicUsize = AtomicUsize::new(USUAL);

    unsafe extern "C" {
        fn signal(number: i32, handler: usize) -> usize;
    }

    extern "C" fn handle_signal(_: i32) {
        super::CAME.store(true, Ordering::Relaxed);
        restore_handler();
    }

    pub(super) fn watch() {
        super::CAME.store(false, Ordering::Relaxed);
        let handler: extern "C" fn(i32) = handle_signal;
        // SAFETY: the handler stores to an atomic and calls `signal`; both are allowed in handlers.
        let before = unsafe { signal(SIGINT, handler as usize) };
        BEFORE.store(before, Ordering::Relaxed);
        if before == IGNORED {
            // A shell that runs the command in the background ignores the signal.
            restore_handler();
        }
    }

    pub(super) fn restore_handler() {
        // SAFETY: restores the previous action.
        let _ = unsafe { signal(SIGINT, BEFORE.load(Ordering::Relaxed)) };
    }
}

impl Interrupt {
    pub(crate) fn watch() -> Self {
        #[cfg(unix)]
        system::watch();
        Self(())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        #[cfg(unix)]
        system::restore_handler();
    }
}
