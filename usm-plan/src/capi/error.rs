//! Status codes, and the text of a thread's last failure.

use core::any::Any;
use core::cell::RefCell;
use core::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};
use crate::field::Field;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of a function and stores the text of its failure. No panic leaves it.
pub(super) fn guarded(work: impl FnOnce() -> Result<()>) -> c_int {
    // The body writes to the caller's memory only at its end, so a panic leaves nothing
    // half-written.
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(defect(panic.as_ref())));
    let (status, text) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => {
            let error = error.spelled(Field::member);
            (c_int::from(error.exit().code()), error.to_string().replace('\0', " "))
        }
    };
    // A thread that is just ending has no place for the text.
    let _ = TEXT.try_with(|cell| cell.replace(text));
    status
}

fn defect(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let message = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
    Error::unable(format!("the planner panicked, please report it: {message}"))
}

/// Writes the text, cut at a whole character. Returns its whole length in bytes.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
pub(super) unsafe fn text(to: *mut u8, capacity: usize) -> usize {
    let text = TEXT.try_with(RefCell::take).unwrap_or_default();
    // SAFETY: the caller's contract.
    let length = unsafe { copy_text(&text, to, capacity) };
    let _ = TEXT.try_with(|cell| cell.replace(text));
    length
}

/// Writes at most `capacity` bytes of a text: whole characters and a final 0. Returns the length of
/// the whole text in bytes.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
pub(super) unsafe fn copy_text(text: &str, to: *mut u8, capacity: usize) -> usize {
    if !to.is_null() && capacity > 0 {
        let cut = (0..=text.len().min(capacity - 1)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let mut cut = text.as_bytes()[..cut].to_vec();
        cut.push(0);
        // SAFETY: at most `capacity` bytes, for which the contract demands room.
        unsafe { to.copy_from_nonoverlapping(cut.as_ptr(), cut.len()) };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text() -> String {
        let mut room = [b'x'; 200];
        // SAFETY: the array has this size.
        let length = unsafe { text(room.as_mut_ptr(), room.len()) };
        assert_eq!(room[length], 0);
        String::from_utf8_lossy(&room[..length]).into_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_with_a_text() {
        assert_eq!(guarded(|| panic!("seven {}", "of nine")), 1);
        assert_eq!(error_text(), "the planner panicked, please report it: seven of nine");
        assert_eq!(guarded(|| Ok(())), 0);
        assert_eq!(error_text(), "");
    }

    #[test]
    fn a_cut_text_ends_in_zero_at_a_whole_character() {
        assert_eq!(guarded(|| Err(Error::bad("größer"))), 2);
        let mut room = [7; 4];
        // SAFETY: the array has this size.
        assert_eq!(unsafe { text(room.as_mut_ptr(), 4) }, 8);
        assert_eq!(room, [b'g', b'r', 0, 7]);
        // SAFETY: nothing is written.
        assert_eq!(unsafe { text(room.as_mut_ptr(), 0) }, 8);
        // SAFETY: nothing is written to null.
        assert_eq!(unsafe { text(core::ptr::null_mut(), 9) }, 8);
        assert_eq!(error_text(), "größer");
    }
}
