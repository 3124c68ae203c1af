//! The uses of an allocation in flight: the events that decide when the host may touch it and when
//! it may be freed.

use core::fmt;
use core::time::Duration;

use crate::access::Access;
use crate::backend::{Backend, EventOps};
use crate::deadline::Deadline;
use crate::error::Result;

#[cfg(feature = "alloc")]
use {
    crate::few::Few, crate::index_record::Outcome, crate::sync::Mutex, crate::sync::helgrind::Marks,
    crate::sync::next_id, alloc::boxed::Box, alloc::sync::Arc, alloc::vec::Vec, core::slice,
};

#[cfg(feature = "alloc")]
type Events<E> = Vec<E>;
/// Without a heap a submission waits for its event before it returns.
#[cfg(not(feature = "alloc"))]
type Events<E> = [E; 0];

/// The events of unfinished operations of one context.
pub struct Pending<B: Backend> {
    /// Id of the context; 0 of none.
    context: u64,
    events: Events<B::Event>,
    /// Names of the events, or none. A list recognises an event that reaches it a second time.
    #[cfg(feature = "alloc")]
    names: Vec<u64>,
}

/// A clone serves memory that several later allocations reuse in parts: each of them waits.
impl<B: Backend> Clone for Pending<B> {
    fn clone(&self) -> Self {
        Self {
            context: self.context,
            events: self.events.clone(),
            #[cfg(feature = "alloc")]
            names: self.names.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Pending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("events", &self.events().len()).finish()
    }
}

impl<B: Backend> Pending<B> {
    /// No work in flight.
    #[must_use]
    pub const fn none() -> Self {
        #[cfg(feature = "alloc")]
        let events = Vec::new();
        #[cfg(not(feature = "alloc"))]
        let events = [];
        Self {
            context: 0,
            events,
            #[cfg(feature = "alloc")]
            names: Vec::new(),
        }
    }

    /// These events of a context.
    #[cfg(feature = "alloc")]
    pub(crate) fn of(context: u64, events: Vec<B::Event>) -> Self {
        Self { context, events, names: Vec::new() }
    }

    /// Id of the operations' context; 0 if no work is in flight.
    #[must_use]
    pub fn context(&self) -> u64 {
        if self.events.is_empty() { 0 } else { self.context }
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> &[B::Event] {
        &self.events
    }

    /// Whether all of it is complete. A failed operation never is: it may still touch memory.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.events().iter().all(EventOps::is_complete)
    }

    /// Blocks until all of it is complete, at most `limit`.
    ///
    /// # Errors
    /// The first event's failure or timeout.
    pub fn wait(&self, limit: Duration) -> Result<()> {
        wait_for::<B>(self.events(), &mut Deadline::after(limit)).map(drop)
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn into_events(self) -> Vec<B::Event> {
        self.events
    }
}

/// Returns the number of events that it waited for.
fn wait_for<B: Backend>(events: &[B::Event], deadline: &mut Deadline) -> Result<usize> {
    events.iter().try_fold(0, |waited, event| deadline.wait(|left| event.wait(left)).map(|()| waited + 1))
}

#[cfg(feature = "alloc")]
struct Use<B: Backend> {
    /// Unique in its list.
    serial: u64,
    /// Id of the in-order queue that ran it, 0 for an out-of-order queue: only the former orders
    /// later work by itself.
    queue: u64,
    access: Access,
    event: B::Event,
    /// Name of the event among the parts of a block, 0 before it leaves its list.
    name: u64,
}

#[cfg(feature = "alloc")]
type Noted = Vec<(Access, Arc<Outcome>)>;

#[cfg(feature = "alloc")]
struct InFlight<B: Backend> {
    uses: Few<Use<B>>,
    /// Serial number of the last use.
    serial: u64,
    marks: Marks,
    /// Checked launches whose outcome was not reported yet.
    noted: Option<Box<Noted>>,
}

#[cfg(feature = "alloc")]
impl<B: Backend> InFlight<B> {
    fn next(&mut self, queue: u64, access: Access, event: B::Event) -> Use<B> {
        self.serial += 1;
        self.marks.submitted(access, self.serial);
        Use { serial: self.serial, queue, access, event, name: 0 }
    }

    #[inline]
    fn dependencies(&self, access: Access, queue: u64, after: &mut Vec<B::Event>) -> u64 {
        for earlier in self.uses.as_slice() {
            let conflicts = access == Access::Write || earlier.access == Access::Write;
            let ordered = queue != 0 && earlier.queue == queue;
            if conflicts && !ordered {
                earlier.push_event(after);
            }
        }
        self.serial
    }

    /// For a block that operations use one after the other: replaces the only use and returns its
    /// event, or fills an empty list. Otherwise gives the new event back as an error.
    #[inline]
    fn replace_only_use(
        &mut self,
        access: Access,
        queue: u64,
        event: B::Event,
        known: u64,
    ) -> core::result::Result<Option<B::Event>, B::Event> {
        match self.uses.as_mut_slice() {
            [] => {
                let first = self.next(queue, access, event);
                self.uses.push(first);
                Ok(None)
            }
            [earlier] if earlier.is_replaced_by(access, queue, known) => {
                self.serial += 1;
                self.marks.submitted(access, self.serial);
                (earlier.serial, earlier.queue, earlier.access) = (self.serial, queue, access);
                earlier.name = 0;
                Ok(Some(core::mem::replace(&mut earlier.event, event)))
            }
            _ => Err(event),
        }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Use<B> {
    /// Returns its name, and gives it one if it has none.
    fn assign_name(&mut self) -> u64 {
        if self.name == 0 {
            self.name = next_id();
        }
        self.name
    }

    #[inline(never)]
    fn push_event(&self, after: &mut Vec<B::Event>) {
        after.push(self.event.clone());
    }

    /// A write is ordered after all earlier uses, a read after the earlier read of the same
    /// in-order queue. Earlier means serial <= `known`.
    #[inline]
    fn is_replaced_by(&self, access: Access, queue: u64, known: u64) -> bool {
        self.serial <= known
            && match access {
                Access::Write => true,
                Access::Read => queue != 0 && self.access == Access::Read && self.queue == queue,
            }
    }
}

/// The uses of one block in flight. The borrow checker makes writers exclusive; readers of several
/// threads meet here, and so does every thread that names the block by a [`Usage`](crate::Usage).
/// Only a complete use leaves the list, or one that a later use is ordered after.
pub(crate) struct Uses<B: Backend> {
    #[cfg(feature = "alloc")]
    list: Mutex<InFlight<B>>,
    #[cfg(not(feature = "alloc"))]
    marker: core::marker::PhantomData<fn() -> B>,
}

impl<B: Backend> Uses<B> {
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(feature = "alloc")]
            list: Mutex::new(InFlight { uses: Few::None, serial: 0, marks: Marks::none(), noted: None }),
            #[cfg(not(feature = "alloc"))]
            marker: core::marker::PhantomData,
        }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Uses<B> {
    /// The uses of a block that begins with one.
    pub(crate) fn with_first_use(access: Access, queue: u64, event: B::Event) -> Self {
        let first = Use { serial: 1, queue, access, event, name: 0 };
        let marks = Marks::none();
        Self { list: Mutex::new(InFlight { uses: Few::One(first), serial: 1, marks, noted: None }) }
    }

    /// A list longer than this is searched for complete uses.
    const PRUNE_ABOVE: usize = 4;

    /// Adds to `after` the events that an access from `queue` (0 when out of order) must wait for.
    /// Returns the last serial number that it looked at, for [`record`](Self::record).
    #[inline]
    pub(crate) fn dependencies(&self, access: Access, queue: u64, after: &mut Vec<B::Event>) -> u64 {
        if B::SYNCHRONOUS { 0 } else { self.list.lock().dependencies(access, queue, after) }
    }

    /// Records that `event` uses the block. Replaces uses with serial <= `known` that this one is
    /// ordered after. Uses recorded meanwhile stay; they may be later.
    #[inline]
    pub(crate) fn record(&self, access: Access, queue: u64, event: B::Event, known: u64) {
        if B::SYNCHRONOUS {
            return;
        }
        // Dropping an event may call the driver, so it happens after the lock is released.
        let succeeded = self.list.lock().replace_only_use(access, queue, event, known);
        match succeeded {
            Ok(gone) => drop(gone),
            Err(event) => self.record_in_list(access, queue, event, known),
        }
    }

    /// Records a use beside others.
    #[inline(never)]
    fn record_in_list(&self, access: Access, queue: u64, event: B::Event, known: u64) {
        let mut list = self.list.lock();
        let latest = list.next(queue, access, event);
        let gone = list.uses.take_out(|earlier| earlier.is_replaced_by(access, queue, known));
        list.uses.push(latest);
        let crowded = list.uses.as_slice().len() > Self::PRUNE_ABOVE;
        drop(list);
        drop(gone);
        if crowded {
            self.prune();
        }
    }

    /// Remembers a launch that checks indices, whose event is recorded.
    pub(crate) fn add_checked_launch(&self, access: Access, outcome: &Arc<Outcome>) {
        let mut list = self.list.lock();
        let noted = list.noted.get_or_insert_default();
        noted.retain(|(_, earlier)| earlier.is_unreported());
        noted.push((access, Arc::clone(outcome)));
    }

    /// The checked launches with an unreported outcome that a host access of this sort waits for.
    pub(crate) fn unreported(&self, access: Access) -> Vec<Arc<Outcome>> {
        let list = self.list.lock();
        let noted = list.noted.iter().flat_map(|noted| noted.iter());
        let conflicts = |did: Access| access == Access::Write || did == Access::Write;
        noted.filter(|(did, _)| conflicts(*did)).map(|(_, outcome)| Arc::clone(outcome)).collect()
    }

    /// Adds the uses of a part that was carved from this block. They are of the block's context. A
    /// use that is in the list already is not added again; otherwise parts that overlap each other
    /// in turn would double their uses each time.
    pub(crate) fn absorb(&self, pending: Pending<B>) {
        if B::SYNCHRONOUS {
            return;
        }
        let mut list = self.list.lock();
        let names = pending.names.into_iter().chain(core::iter::repeat(0));
        let mut known = Vec::new();
        for (event, name) in pending.events.into_iter().zip(names) {
            if name != 0 && list.uses.as_slice().iter().any(|earlier| earlier.name == name) {
                known.push(event);
                continue;
            }
            let latest = Use { name, ..list.next(0, Access::Write, event) };
            list.uses.push(latest);
        }
        let crowded = list.uses.as_slice().len() > Self::PRUNE_ABOVE;
        drop(list);
        drop(known);
        if crowded {
            self.prune();
        }
    }

    /// Forgets complete uses. Calls the driver without the lock.
    fn prune(&self) {
        let snapshot: Vec<(u64, B::Event)> = {
            let list = self.list.lock();
            list.uses.as_slice().iter().map(|earlier| (earlier.serial, earlier.event.clone())).collect()
        };
        let done: Vec<u64> =
            snapshot.into_iter().filter(|(_, event)| event.is_complete()).map(|(serial, _)| serial).collect();
        let mut list = self.list.lock();
        list.marks.pruned();
        let gone = list.uses.take_out(|earlier| done.contains(&earlier.serial));
        drop(list);
        drop(gone);
    }

    /// Blocks until a host access of this sort conflicts with no use. Returns the number of uses
    /// that it waited for.
    pub(crate) fn wait(&self, access: Access, limit: Duration) -> Result<usize> {
        if B::SYNCHRONOUS {
            return Ok(0);
        }
        let mut events = Vec::new();
        let _ = self.dependencies(access, 0, &mut events);
        wait_for::<B>(&events, &mut Deadline::after(limit))
    }

    /// Call after a [`wait`](Self::wait) for the same access to these bytes that waited for
    /// `waited` uses. It serves runtimes in which helgrind does not see that the end of an event
    /// orders the runtime's work. A wait that missed a use makes no request, nor does one after
    /// which the runtime is still busy.
    #[cfg(usm_valgrind)]
    pub(crate) fn annotate_for_helgrind(&self, waited: usize, access: Access, base: *const u8, len: usize) {
        let mut events = Vec::new();
        let known = self.dependencies(access, 0, &mut events);
        if events.len() <= waited && Pending::<B>::of(0, events).is_done() {
            self.list.lock().marks.completed(waited > 0, access, known, base, len);
        }
    }

    /// The uses in flight of a block of this context.
    pub(crate) fn pending(&self, context: u64) -> Pending<B> {
        let mut list = self.list.lock();
        let names = list.uses.as_mut_slice().iter_mut().map(Use::assign_name).collect();
        let events = list.uses.as_slice().iter().map(|earlier| earlier.event.clone()).collect();
        Pending { context, events, names }
    }

    /// Takes the uses in flight of a block of this context; the list is empty afterwards.
    pub(crate) fn take(&mut self, context: u64) -> Pending<B> {
        let uses = self.list.get_mut().uses.take();
        Pending::of(context, uses.into_iter().map(|earlier| earlier.event).collect())
    }

    /// As [`take`](Self::take), for the list of a larger block.
    pub(crate) fn take_with_names(&mut self, context: u64) -> Pending<B> {
        let names = self.list.get_mut().uses.as_mut_slice().iter_mut().map(Use::assign_name).collect();
        Pending { names, ..self.take(context) }
    }

    /// Calls `work` with the events of all uses except those by this queue. An in-order queue has
    /// an id; an out-of-order queue has 0.
    #[inline]
    pub(crate) fn with_events_of_others<R>(&mut self, queue: u64, work: impl FnOnce(&[B::Event]) -> R) -> R {
        let list = self.list.get_mut();
        match list.uses.as_slice() {
            [] => work(&[]),
            [only] if queue != 0 && only.queue == queue => work(&[]),
            [only] => work(slice::from_ref(&only.event)),
            _ => {
                let mut after = Vec::new();
                let _ = list.dependencies(Access::Write, queue, &mut after);
                work(&after)
            }
        }
    }

    /// Whether the list is empty and needs no drop. A lock that a checker watches needs one.
    #[inline]
    pub(crate) fn is_untouched(&mut self) -> bool {
        let list = self.list.get_mut();
        !core::mem::needs_drop::<Mutex<()>>() && matches!(list.uses, Few::None) && list.noted.is_none()
    }
}

/// Without `alloc` a submission waits for its event before it returns, so no work is ever in
/// flight.
#[cfg(not(feature = "alloc"))]
impl<B: Backend> Uses<B> {
    pub(crate) fn wait(&self, _: Access, _: Duration) -> Result<usize> {
        Ok(0)
    }

    pub(crate) fn take(&mut self, _: u64) -> Pending<B> {
        Pending::none()
    }

    #[allow(clippy::unused_self, reason = "the same call with and without `alloc`")]
    pub(crate) fn is_untouched(&mut self) -> bool {
        true
    }
}
