//! Things of a driver that are used again once nobody has them: no heap and no call of the driver for each operation.
//!
//! The count of handles is the slot's own. With an `Arc` the last handle would have to ask whether it is: two that go at once both find
//! the other still there, and what nobody has put back is lost or has to be made anew; and the models see no count of the standard library's.
//! A number into a list of the context's would make a handle two words, with a count of the context for each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// More handles than there can be, unless they are forgotten one after the other.
const MOST_HANDLES: usize = isize::MAX as usize;

/// The slots of one context. Once this is gone, what is free is dropped, and what is not as soon as its last handle goes.
pub(super) struct Slots<T>(Arc<Home<T>>);

struct Home<T> {
    free: Mutex<Free<T>>,
}

struct Free<T> {
    /// Without a handle. They keep their home alive, until it is closed.
    slots: Vec<Box<Slot<T>>>,
    closed: bool,
}

struct Slot<T> {
    /// While there is none: that of the next.
    handles: AtomicUsize,
    /// Where it goes when its last handle does; else it is dropped.
    home: Option<Arc<Home<T>>>,
    thing: T,
}

/// A handle of a thing in a slot.
pub(super) struct Held<T> {
    slot: NonNull<Slot<T>>,
    owns: PhantomData<Slot<T>>,
}

// SAFETY: as for `Arc`: threads reach the thing by reference, and any of them may be the one that drops it.
unsafe impl<T: Send + Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Held<T> {}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        let free = Mutex::new(Free { slots: Vec::new(), closed: false });
        Self(Arc::new(Home { free }))
    }

    /// The only handle of a thing that was put back last, if there is one.
    #[inline]
    pub(super) fn take(&self) -> Option<Held<T>> {
        self.0.free.lock().slots.pop().map(Held::of)
    }

    /// The only handle of a new thing.
    pub(super) fn add(&self, thing: T) -> Held<T> {
        Held::new(Some(Arc::clone(&self.0)), thing)
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let mut free = self.0.free.lock();
        free.closed = true;
        let slots = core::mem::take(&mut free.slots);
        // Drivers are called without the lock held.
        drop(free);
        drop(slots);
    }
}

impl<T> Home<T> {
    /// Takes a slot without a handle. No reference: the slot may be what keeps the home.
    ///
    /// # Safety
    /// `home` is the slot's.
    #[inline]
    unsafe fn put(home: *const Self, slot: Box<Slot<T>>) {
        // SAFETY: the slot keeps its home alive; once it is free, and the lock with it, the home is not touched any more.
        let mut free = unsafe { (*home).free.lock() };
        if !free.closed {
            return free.slots.push(slot);
        }
        drop(free);
        drop(slot);
    }
}

impl<T> Held<T> {
    /// The only handle of a thing that is dropped with its last handle, and never used again.
    pub(super) fn alone(thing: T) -> Self {
        Self::new(None, thing)
    }

    fn new(home: Option<Arc<Home<T>>>, thing: T) -> Self {
        Self::of(Box::new(Slot { handles: AtomicUsize::new(1), home, thing }))
    }

    #[inline]
    fn of(slot: Box<Slot<T>>) -> Self {
        Self { slot: NonNull::from(Box::leak(slot)), owns: PhantomData }
    }

    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: a slot lives as long as it has a handle.
        unsafe { self.slot.as_ref() }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.slot().thing
    }
}

impl<T> Clone for Held<T> {
    #[inline]
    fn clone(&self) -> Self {
        if self.slot().handles.fetch_add(1, Ordering::Relaxed) > MOST_HANDLES {
            std::process::abort();
        }
        Self { slot: self.slot, owns: PhantomData }
    }
}

impl<T> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        let handles = &self.slot().handles;
        // A handle that is alone stays so, and leaves its count to the next one: no atomic operation that waits for others.
        // Acquire: what all others did with the thing comes before what the next does.
        if handles.load(Ordering::Acquire) != 1 {
            if handles.fetch_sub(1, Ordering::AcqRel) != 1 {
                return;
            }
            handles.store(1, Ordering::Relaxed);
        }
        // SAFETY: made by `of`; this was the last handle.
        let slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
        match slot.home.as_ref().map(Arc::as_ptr) {
            // SAFETY: the home of this slot.
            Some(home) => unsafe { Home::put(home, slot) },
            None => drop(slot),
        }
    }
}

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("free", &self.0.free.lock().slots.len()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    struct Thing<'t>(&'t Cell<u32>);

    impl Drop for Thing<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_thing_is_free_once_its_last_handle_is_gone() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        assert!(slots.take().is_none());
        let one = slots.add(Thing(&gone));
        let two = one.clone();
        drop(one);
        assert!(slots.take().is_none(), "a handle is left");
        drop(two);
        let again = slots.take().expect("free");
        assert!(slots.take().is_none(), "once");
        drop(again);
        assert!(slots.take().is_some());
        assert_eq!(gone.get(), 0);
        drop(slots);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn what_is_in_use_when_its_slots_go_is_dropped_with_its_last_handle() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        let one = slots.add(Thing(&gone));
        let two = one.clone();
        drop(slots);
        drop(one);
        assert_eq!(gone.get(), 0);
        drop(two);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn what_has_no_slots_is_dropped_with_its_last_handle() {
        let gone = Cell::new(0);
        let one = Held::alone(Thing(&gone));
        let two = one.clone();
        drop(one);
        assert_eq!(gone.get(), 0);
        drop(two);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn a_forgotten_handle_keeps_its_thing_for_ever() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        let one = slots.add(Thing(&gone));
        core::mem::forget(one.clone());
        drop(one);
        assert!(slots.take().is_none());
        drop(slots);
        assert_eq!(gone.get(), 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// What a driver's event is to its users: they may look at it together, but only one that has it alone may change it.
    struct Thing {
        uses: UnsafeCell<u32>,
        /// Alive until it is dropped.
        life: Arc<()>,
    }

    // SAFETY: loom fails a model where two accesses are not ordered.
    unsafe impl Sync for Thing {}
    // SAFETY: as above.
    unsafe impl Send for Thing {}

    impl Thing {
        fn new(life: &Arc<()>) -> Self {
            Self { uses: UnsafeCell::new(0), life: Arc::clone(life) }
        }

        fn look(&self) -> u32 {
            // SAFETY: loom fails the model if a change is not ordered before or after this.
            self.uses.with(|uses| unsafe { *uses })
        }

        /// As for the next operation.
        fn begin(&self) {
            // SAFETY: loom fails the model if another access is not ordered before or after this.
            self.uses.with_mut(|uses| unsafe { *uses += 1 });
        }
    }

    /// Slots, with a thing that has these handles. Loom's objects are made by this thread, so each was used once.
    fn slots<const N: usize>() -> (Slots<Thing>, [Held<Thing>; N], Arc<()>) {
        let (slots, life) = (Slots::new(), Arc::new(()));
        let thing = slots.add(Thing::new(&life));
        thing.begin();
        drop(thing.clone());
        drop(thing);
        let thing = slots.take().expect("free");
        let handles = core::array::from_fn(|_| thing.clone());
        drop(thing);
        (slots, handles, life)
    }

    fn things(life: &Arc<()>) -> usize {
        Arc::strong_count(life) - 1
    }

    /// All orders of two threads; of three, those with at most three switches that a thread did not ask for.
    fn model(bound: Option<usize>, run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound;
        builder.check(run);
    }

    #[test]
    fn of_two_last_handles_that_go_at_once_one_puts_the_thing_back() {
        model(None, || {
            let (slots, [one, two], life) = slots();
            let thread = thread::spawn(move || drop(one));
            drop(two);
            thread.join().expect("no panic");
            let again = slots.take().expect("put back");
            assert!(slots.take().is_none(), "once");
            again.begin();
            drop(again);
            assert_eq!(things(&life), 1);
            drop(slots);
            assert_eq!(things(&life), 0);
        });
    }

    #[test]
    fn of_three_too() {
        model(Some(3), || {
            let (slots, [one, two, three], life) = slots();
            let threads = [one, two].map(|handle| {
                thread::spawn(move || {
                    assert_eq!(handle.look(), 1);
                    drop(handle);
                })
            });
            drop(three);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            slots.take().expect("put back").begin();
            drop(slots);
            assert_eq!(things(&life), 0);
        });
    }

    /// What was done with a thing comes before what its next user does, whoever let go of it last.
    #[test]
    fn a_thing_is_used_again_once_all_have_let_go_of_it() {
        model(None, || {
            let (slots, [one, two], _) = slots();
            let thread = thread::spawn(move || {
                assert_eq!(one.look(), 1);
                drop(one);
            });
            assert_eq!(two.look(), 1);
            drop(two);
            if let Some(again) = slots.take() {
                again.begin();
            }
            thread.join().expect("no panic");
        });
    }

    /// A handle may be copied by one thread while another lets go of its own.
    #[test]
    fn a_copy_keeps_the_thing() {
        model(None, || {
            let (slots, [one, two], life) = slots();
            let thread = thread::spawn(move || {
                let copy = one.clone();
                drop(one);
                assert_eq!(copy.look(), 1);
            });
            drop(two);
            if let Some(again) = slots.take() {
                again.begin();
            }
            thread.join().expect("no panic");
            assert_eq!(things(&life), 1);
        });
    }

    #[test]
    fn two_that_take_never_have_the_same() {
        model(Some(3), || {
            let (slots, [one], life) = slots();
            let slots = Arc::new(slots);
            let next = |slots: &Slots<Thing>, life: &Arc<()>| {
                let next = slots.take().unwrap_or_else(|| slots.add(Thing::new(life)));
                next.begin();
                next
            };
            let taker = {
                let (slots, life) = (Arc::clone(&slots), Arc::clone(&life));
                thread::spawn(move || drop(next(&slots, &life)))
            };
            let dropper = thread::spawn(move || {
                assert_eq!(one.look(), 1);
                drop(one);
            });
            drop(next(&slots, &life));
            dropper.join().expect("no panic");
            taker.join().expect("no panic");
            let Ok(slots) = Arc::try_unwrap(slots) else { panic!("the taker let go") };
            assert!((1..=3).contains(&things(&life)));
            drop(slots);
            assert_eq!(things(&life), 0);
        });
    }

    /// The context goes while the last handle does: the thing is dropped once, by one of them, and the home with it.
    #[test]
    fn a_thing_that_comes_back_while_its_slots_go_is_dropped_once() {
        model(None, || {
            let (slots, [one, two], life) = slots();
            let home = Arc::downgrade(&slots.0);
            let closer = thread::spawn(move || drop(slots));
            drop(one);
            assert_eq!(things(&life), 1, "a handle is left");
            assert_eq!(two.look(), 1);
            drop(two);
            closer.join().expect("no panic");
            assert_eq!(things(&life), 0);
            assert!(home.upgrade().is_none(), "nothing keeps the home");
        });
    }

    #[test]
    fn handles_keep_the_home_that_they_go_to() {
        model(Some(3), || {
            let (slots, [one], life) = slots();
            let other = slots.add(Thing::new(&life));
            drop(other.clone());
            let home = Arc::downgrade(&slots.0);
            let threads = [one, other].map(|handle| thread::spawn(move || drop(handle)));
            drop(slots);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(things(&life), 0);
            assert!(home.upgrade().is_none(), "nothing keeps the home");
        });
    }
}
