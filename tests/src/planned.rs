//! Panics that a test plans: their payload, and a panic hook that prints nothing about them.

use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, panic_any, resume_unwind, set_hook, take_hook};
use std::sync::Once;

/// The payload of a panic that a test plans.
#[derive(Debug)]
pub struct Planned;

/// Panics as planned.
pub fn panic() -> ! {
    panic_any(Planned)
}

/// Runs `work` and returns whether it panicked as planned. Any other panic goes on, after a line
/// with `place`.
pub fn panicked(place: fmt::Arguments<'_>, work: impl FnOnce()) -> bool {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !info.payload().is::<Planned>() {
                usual(info);
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => false,
        Err(payload) if payload.is::<Planned>() => true,
        Err(payload) => {
            eprintln!("{place}");
            resume_unwind(payload)
        }
    }
}
