//! Values that may be released once work is complete, with the events of that work.
//!
//! The lock guards moves of the list only. Calls of a driver and of the caller's closures run
//! without it.

use alloc::vec::{IntoIter, Vec};
use core::fmt;
use core::mem::ManuallyDrop;

use crate::backend::EventOps;
use crate::deadline::Deadline;
use crate::sync::{AtomicUsize, Mutex, Ordering};

#[cfg(all(test, loom))]
mod models;

/// Values `T` that wait for events `E`. The list never drops a value that still waits: its work may
/// go on.
pub struct After<T, E> {
    entries: Mutex<Vec<Entry<T, E>>>,
    /// Length of the list. The usual question, whether anything waits, then costs one load.
    len: AtomicUsize,
}

struct Entry<T, E> {
    value: ManuallyDrop<T>,
    /// Dropped after the value: a runtime may look at the last event of a queue that it releases.
    events: Vec<E>,
}

impl<T, E> fmt::Debug for After<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").field("entries", &self.len()).finish()
    }
}

impl<T, E> Default for After<T, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E> After<T, E> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()), len: AtomicUsize::new(0) }
    }

    /// Number of waiting values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps `value` until all of `events` are complete.
    pub fn push(&self, value: T, events: Vec<E>) {
        self.extend([Entry { value: ManuallyDrop::new(value), events }]);
    }

    fn extend(&self, more: impl IntoIterator<Item = Entry<T, E>>) {
        let mut entries = self.entries.lock();
        entries.extend(more);
        self.len.store(entries.len(), Ordering::Release);
    }

    fn take(&self) -> Vec<Entry<T, E>> {
        let mut entries = self.entries.lock();
        self.len.store(0, Ordering::Release);
        core::mem::take(&mut entries)
    }
}

impl<T, E: EventOps> After<T, E> {
    /// Passes every value whose events are complete to `take`; never blocks. If `take` panics, the
    /// rest stays.
    #[inline]
    pub fn collect(&self, take: impl FnMut(T)) {
        if !self.is_empty() {
            self.collect_complete(take);
        }
    }

    #[cold]
    fn collect_complete(&self, take: impl FnMut(T)) {
        let (complete_entries, open_entries): (Vec<_>, Vec<_>) =
            self.take().into_iter().partition(Entry::is_complete);
        self.extend(open_entries);
        release_each(complete_entries, take, |entry| self.extend([entry]));
    }

    /// Waits for all events until the deadline. Passes the completed values to `take` and the rest
    /// to `left`, also if `take` panics. `left` must not drop a value: work that may go on uses it.
    pub fn drain(&self, deadline: &mut Deadline, mut take: impl FnMut(T), left: impl Fn(ManuallyDrop<T>)) {
        let finish = |entry: Entry<T, E>| match entry.is_complete_within(deadline) {
            true => entry.release(&mut take),
            false => left(entry.value),
        };
        each_entry(self.take(), finish, |entry| left(entry.value));
    }
}

impl<T, E> Entry<T, E> {
    fn release(self, take: &mut impl FnMut(T)) {
        let Self { value, events } = self;
        take(ManuallyDrop::into_inner(value));
        drop(events);
    }
}

impl<T, E: EventOps> Entry<T, E> {
    fn is_complete(&self) -> bool {
        self.events.iter().all(EventOps::is_complete)
    }

    fn is_complete_within(&self, deadline: &mut Deadline) -> bool {
        if deadline.has_passed() {
            return self.is_complete();
        }
        self.events.iter().all(|event| deadline.wait(|left| event.wait(left)).is_ok())
    }
}

fn release_each<T, E>(entries: Vec<Entry<T, E>>, mut take: impl FnMut(T), fallback: impl FnMut(Entry<T, E>)) {
    each_entry(entries, |entry| entry.release(&mut take), fallback);
}

/// Calls `work` for each entry; after a panic, `fallback` gets the remaining ones.
fn each_entry<T, E>(
    entries: Vec<Entry<T, E>>,
    mut work: impl FnMut(Entry<T, E>),
    fallback: impl FnMut(Entry<T, E>),
) {
    struct Rest<T, E, F: FnMut(Entry<T, E>)>(IntoIter<Entry<T, E>>, F);

    impl<T, E, F: FnMut(Entry<T, E>)> Drop for Rest<T, E, F> {
        fn drop(&mut self) {
            self.0.by_ref().for_each(&mut self.1);
        }
    }

    let mut rest = Rest(entries.into_iter(), fallback);
    for entry in rest.0.by_ref() {
        work(entry);
    }
}

/// Keeps a value for ever because work may use it for ever. The list is reachable, so a search for
/// leaks reports only others.
#[cfg(feature = "driver")]
pub fn give_up<T: Send + 'static>(value: T) {
    trait Keepalive: Send {}
    impl<T: Send> Keepalive for T {}
    static LEAKED: Mutex<Vec<alloc::boxed::Box<dyn Keepalive>>> = Mutex::new(Vec::new());

    // A child of a fork gives up what its parent had.
    let keepalive = alloc::boxed::Box::new(value);
    crate::process::fork::delay(|| LEAKED.lock().push(keepalive));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::{Cell, RefCell};
    use core::time::Duration;

    use super::*;
    use crate::backend::EventStatus;
    use crate::error::{Error, ErrorKind, Result};

    /// Complete, pending, or failed.
    #[derive(Clone)]
    struct Work<'w>(&'w Cell<Option<bool>>);

    impl EventOps for Work<'_> {
        fn status(&self) -> Result<EventStatus> {
            match self.0.get() {
                Some(true) => Ok(EventStatus::Complete),
                Some(false) => Ok(EventStatus::Pending),
                None => Err(ErrorKind::DeviceLost.into()),
            }
        }

        fn wait(&self, limit: Duration) -> Result<()> {
            if self.status()? == EventStatus::Complete { Ok(()) } else { Err(Error::timeout(limit)) }
        }
    }

    #[test]
    fn a_value_waits_for_all_of_its_events_and_for_failed_ones_for_ever() {
        let works = [Some(true), Some(false), None].map(Cell::new);
        let [done, pending, failed] = works.each_ref().map(Work);
        let (list, gone) = (After::new(), RefCell::new(Vec::new()));
        let collect = || list.collect(|value| gone.borrow_mut().push(value));
        list.push(1, alloc::vec![done.clone(), pending.clone()]);
        list.push(2, Vec::new());
        list.push(3, alloc::vec![failed]);
        collect();
        assert_eq!((gone.take(), list.len()), (alloc::vec![2], 2));
        pending.0.set(Some(true));
        collect();
        assert_eq!((gone.take(), list.len()), (alloc::vec![1], 1));
        let left = RefCell::new(Vec::new());
        list.push(4, alloc::vec![done]);
        let keep = |value| left.borrow_mut().push(ManuallyDrop::into_inner(value));
        list.drain(&mut Deadline::after(Duration::ZERO), |value| gone.borrow_mut().push(value), keep);
        assert_eq!((gone.take(), left.take(), list.len()), (alloc::vec![4], alloc::vec![3], 0));
    }

    #[test]
    #[cfg(feature = "std")]
    fn values_after_a_panic_stay_or_are_left() {
        let done = Cell::new(Some(true));
        let fill = |list: &After<i32, Work<'_>>| (1..=3).for_each(|value| list.push(value, Vec::new()));
        let panics = |work: &dyn Fn()| {
            assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(work)).is_err());
        };
        let second = |value| assert_ne!(value, 2, "as asked for");
        let list = After::new();
        list.push(0, alloc::vec![Work(&done)]);
        fill(&list);
        panics(&|| list.collect(second));
        assert_eq!(list.len(), 1, "the third");
        list.collect(drop);
        fill(&list);
        let left = Cell::new(0);
        panics(&|| list.drain(&mut Deadline::after(Duration::ZERO), second, |_| left.set(left.get() + 1)));
        assert_eq!((left.get(), list.len()), (1, 0), "the third");
    }

    #[test]
    fn waiting_values_are_not_dropped_with_the_list() {
        struct Bomb;

        impl Drop for Bomb {
            fn drop(&mut self) {
                unreachable!("its work goes on");
            }
        }

        let pending = Cell::new(Some(false));
        let list = After::new();
        list.push(Bomb, alloc::vec![Work(&pending)]);
        list.collect(drop);
        drop(list);
    }
}
