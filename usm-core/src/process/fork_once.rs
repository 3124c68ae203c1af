//! A value that is made once in a process, by code that may run for long: it loads a library, lists
//! devices, starts threads.
//!
//! `std::sync::OnceLock` is locked while that code runs. A child that another thread forks
//! meanwhile has the lock and not the thread that would unlock it, so it waits for ever. Here the
//! mark of the thread that makes the value is the number of its process, so a child sees that
//! nobody makes it.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::time::Duration;
use std::sync::OnceLock;
use std::thread;

use crate::error::{ErrorKind, Result};

/// A cell that is written once, and that no fork leaves locked.
///
/// A thread waits while another one of its process makes the value. Code that makes a value must
/// not ask for it: it would wait for itself.
pub struct ForkOnce<T> {
    /// From a box; null before the value is made.
    value: AtomicPtr<T>,
    /// The process of the thread that makes the value; [`NOBODY`] if none does.
    maker: AtomicU32,
    /// Shared and sent under the same conditions.
    like: PhantomData<OnceLock<T>>,
}

/// No process has this number.
const NOBODY: u32 = 0;
/// Number of times that a waiting thread yields before it sleeps.
const YIELDS: u32 = 64;
const PAUSE: Duration = Duration::from_micros(200);

/// The right of one thread to make the value.
struct Claim<'c> {
    maker: &'c AtomicU32,
    process: u32,
}

impl Drop for Claim<'_> {
    /// In a child that the code itself forked, another thread may have the claim by now.
    fn drop(&mut self) {
        let order = (Ordering::Release, Ordering::Relaxed);
        let _ = self.maker.compare_exchange(self.process, NOBODY, order.0, order.1);
    }
}

impl<T> ForkOnce<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), maker: AtomicU32::new(NOBODY), like: PhantomData }
    }

    /// The value, if it was made.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or the pointer of a box that lives as long as the cell. Nobody changes the
        // value, and `Acquire` orders reading it after writing it.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value, made at first need. A child that was forked while a thread of its parent made it
    /// makes it again. For code that calls nothing, or whose own calls refuse such a child, as
    /// those of a runtime do.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.get().unwrap_or_else(|| self.make(make))
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        loop {
            match self.get_or_claim() {
                Ok(CellState::Value(value)) => return value,
                Ok(CellState::Claim(claim)) => return self.fill(&claim, make),
                Err(parent) => {
                    let order = (Ordering::Relaxed, Ordering::Relaxed);
                    let _ = self.maker.compare_exchange(parent, NOBODY, order.0, order.1);
                }
            }
        }
    }

    /// The value, made at first need. For code that calls others, whose locks a forked child may
    /// find locked.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] in a child that was forked while a thread of its parent made it.
    #[inline]
    pub fn get_or_refuse(&self, make: impl FnOnce() -> T) -> Result<&T> {
        self.get().map_or_else(|| self.make_or_refuse(make), Ok)
    }

    #[cold]
    fn make_or_refuse(&self, make: impl FnOnce() -> T) -> Result<&T> {
        match self.get_or_claim() {
            Ok(CellState::Value(value)) => Ok(value),
            Ok(CellState::Claim(claim)) => Ok(self.fill(&claim, make)),
            Err(_) => Err(ErrorKind::Forked.into()),
        }
    }

    /// Waits while a thread of this process makes the value. Asks the system for the process, which
    /// takes a hundred nanoseconds: callers look for the value first.
    ///
    /// # Errors
    /// The process of a thread that began to make it and does not exist here.
    fn get_or_claim(&self) -> Result<CellState<'_, T>, u32> {
        let process = std::process::id();
        let mut waits = 0;
        loop {
            if let Some(value) = self.get() {
                return Ok(CellState::Value(value));
            }
            let order = (Ordering::Acquire, Ordering::Relaxed);
            match self.maker.compare_exchange(NOBODY, process, order.0, order.1) {
                Ok(_) => return Ok(CellState::Claim(Claim { maker: &self.maker, process })),
                Err(maker) if maker != process => return Err(maker),
                Err(_) if waits < YIELDS => {
                    waits += 1;
                    thread::yield_now();
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Makes the value, unless another thread did so before this one had the claim.
    fn fill(&self, _: &Claim<'_>, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let value_pointer = Box::into_raw(Box::new(make()));
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let first = match self.value.compare_exchange(ptr::null_mut(), value_pointer, order.0, order.1) {
            Ok(_) => value_pointer,
            // In a child that `make` forked, another thread has made the value meanwhile.
            Err(first) => {
                // SAFETY: from the box above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(value_pointer) });
                first
            }
        };
        // SAFETY: not null, from a box that lives as long as the cell; nobody changes the value.
        unsafe { &*first }
    }
}

/// What a thread finds in a cell.
enum CellState<'c, T> {
    Value(&'c T),
    Claim(Claim<'c>),
}

impl<T> Default for ForkOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for ForkOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from a box, which no reference uses any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForkOnce").field(&self.get()).finish()
    }
}

#[cfg(all(test, unix, not(any(loom, miri, usm_valgrind))))]
mod tests {
    use alloc::string::String;
    use core::panic::AssertUnwindSafe;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::panic::catch_unwind;
    use std::sync::{Barrier, PoisonError};
    use std::thread;

    use super::super::exit::tests::{ONE_AT_A_TIME, child};
    use super::ForkOnce;
    use crate::ErrorKind;

    #[test]
    fn all_threads_get_the_value_of_the_first_one() {
        let (cell, made) = (ForkOnce::new(), AtomicUsize::new(0));
        let make = || {
            thread::sleep(core::time::Duration::from_millis(20));
            made.fetch_add(1, Ordering::Relaxed) + 7
        };
        thread::scope(|scope| {
            let ask = |number: usize| match number % 2 {
                0 => *cell.get_or_make(make),
                _ => *cell.get_or_refuse(make).expect("no fork"),
            };
            let threads: [_; 8] = core::array::from_fn(|number| scope.spawn(move || ask(number)));
            for thread in threads {
                assert_eq!(thread.join().expect("no panic"), 7);
            }
        });
        assert_eq!((made.into_inner(), cell.get()), (1, Some(&7)));
    }

    #[test]
    fn after_a_panic_another_thread_makes_the_value() {
        let cell = ForkOnce::<String>::new();
        let panics = || catch_unwind(AssertUnwindSafe(|| cell.get_or_make(|| panic!("of the test")).len()));
        assert!(panics().is_err() && cell.get().is_none());
        assert_eq!(cell.get_or_refuse(|| "one".into()).expect("no fork"), "one");
        assert_eq!(cell.get_or_make(|| "two".into()), "one");
    }

    /// Neither the child nor its own child waits for the thread, which exists in none of them.
    #[test]
    fn a_child_forked_while_a_thread_makes_the_value_gets_its_own_or_an_error() {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (cell, both) = (ForkOnce::new(), Barrier::new(2));
        let refused = || matches!(cell.get_or_refuse(|| 2), Err(error) if error.kind == ErrorKind::Forked);
        let status = thread::scope(|scope| {
            scope.spawn(|| {
                cell.get_or_make(|| {
                    both.wait();
                    both.wait();
                    1
                });
            });
            both.wait();
            let status = child(|| {
                let of_grandchild = child(|| i32::from(!refused()));
                let fine = of_grandchild == 0 && refused() && *cell.get_or_make(|| 3) == 3;
                i32::from(!(fine && cell.get_or_refuse(|| 4) == Ok(&3)))
            });
            both.wait();
            status
        });
        assert_eq!((status, *cell.get_or_make(|| 5)), (0, 1));
    }
}
