//! Macros that export each function of the interface once, under one or several names.

use crate::code::{Answer, Code, NOT_INITIALIZED, SUCCESS};
use crate::state::{State, lock};
use crate::worker::wait;

/// Exports functions with their arguments and a body over the [`State`]. Several names separated by
/// `|` share one signature and one body: `cuInit | hipInit (flags: u32) |state| { ... }`.
///
/// A body may use the caller's pointers: they are valid as the interface requires, and [`put`]
/// checks for null.
macro_rules! functions {
    ($($($name:ident)|+ ($($argument:tt)*) |$state:pat_param| $body:block)*) => {
        $($crate::export::one!([$($name)+] ($($argument)*) |$state| $body);)*
    };
}
pub(crate) use functions;

macro_rules! one {
    ([$($name:ident)+] $arguments:tt |$state:pat_param| $body:block) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name $arguments -> $crate::code::Code {
                $crate::export::enter(stringify!($name), |$state| {
                    // SAFETY: the caller keeps to the interface; what is written is checked for
                    // null.
                    #[allow(unused_unsafe, reason = "some have no pointers")]
                    unsafe { $body };
                    Ok(())
                })
            }
        )+
    };
}
pub(crate) use one;

/// As [`functions!`], for functions that wait: a body returns the context and the commands to wait
/// for.
macro_rules! waiting {
    ($($($name:ident)|+ ($($argument:tt)*) |$state:pat_param| $body:block)*) => {
        $($crate::export::waiting_one!([$($name)+] ($($argument)*) |$state| $body);)*
    };
}
pub(crate) use waiting;

macro_rules! waiting_one {
    ([$($name:ident)+] $arguments:tt |$state:pat_param| $body:block) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name $arguments -> $crate::code::Code {
                $crate::export::enter_and_wait(stringify!($name), |$state| Ok($body))
            }
        )+
    };
}
pub(crate) use waiting_one;

/// Functions that work before the driver is initialised.
const EARLY: [&str; 2] = ["cuInit", "cuDriverGetVersion"];

/// Returns the planned fault of a function, or runs its body.
pub(crate) fn enter(function: &str, body: impl FnOnce(&mut State) -> Answer) -> Code {
    let mut state = lock();
    let outcome = match state.faults.of(function) {
        Some(fault) => Err(fault),
        None if !state.initialized && !EARLY.contains(&function) => Err(NOT_INITIALIZED),
        None => body(&mut state),
    };
    let about = core::mem::take(&mut state.about);
    if let Some(log) = &mut state.log {
        log.push_str(function);
        log.push_str(&about);
        log.push('\n');
    }
    outcome.err().unwrap_or(SUCCESS)
}

/// The result of a body that waits for nothing.
pub(crate) const NO_WAIT: (usize, Vec<u64>) = (0, Vec::new());

/// Runs the body of a function that waits, then waits.
pub(crate) fn enter_and_wait(
    function: &str,
    body: impl FnOnce(&mut State) -> Answer<(usize, Vec<u64>)>,
) -> Code {
    let mut found = NO_WAIT;
    let code = enter(function, |state| {
        found = body(state)?;
        Ok(())
    });
    if code != SUCCESS {
        return code;
    }
    if found == NO_WAIT {
        return SUCCESS;
    }
    let (context, numbers) = found;
    let done = |state: &mut State| {
        state.context(context)?;
        let done = numbers.iter().all(|number| !state.unfinished.contains(number));
        if done {
            state.seen(context, true);
        }
        Ok(done)
    };
    wait(done).err().unwrap_or(SUCCESS)
}

/// Writes a value to a caller's pointer.
///
/// # Safety
/// `pointer` is null or valid for a write.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) -> Answer {
    if pointer.is_null() {
        return Err(crate::code::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}
