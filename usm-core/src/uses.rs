//! The uses of an allocation in flight: the events that decide when the host may touch it and when
//! it may be freed.

use core::time::Duration;

use crate::access::Access;
use crate::backend::Backend;
#[cfg(feature = "alloc")]
use crate::backend::EventOps;
#[cfg(feature = "alloc")]
use crate::deadline::Deadline;
use crate::error::Result;

#[cfg(feature = "alloc")]
use {
    crate::error::{Error, ErrorKind},
    crate::few::Few,
    crate::lazy_box::LazyBox,
    crate::outcome::Outcome,
    crate::pending::{PendingUse, Position},
    crate::sync::Mutex,
    crate::sync::helgrind::Marks,
    crate::sync::next_id,
    alloc::boxed::Box,
    alloc::collections::BTreeSet,
    alloc::sync::Arc,
    alloc::vec::Vec,
    core::slice,
};

use crate::pending::Pending;

#[cfg(feature = "alloc")]
struct Use<B: Backend> {
    /// Unique in its list.
    serial: u64,
    /// Only an in-order queue orders later work by itself.
    position: Position,
    access: Access,
    event: B::Event,
    /// Identifies the event in lists of several parts of a block; 0 before it leaves its list.
    name: u64,
    /// Whether an earlier owner of the block submitted it. Its failure does not concern the
    /// content, which the new owner writes, but it may still access the memory.
    is_inherited: bool,
}

#[cfg(feature = "alloc")]
type Records = Vec<(Access, Arc<Outcome>)>;

#[cfg(feature = "alloc")]
struct InFlight<B: Backend> {
    uses: Few<Use<B>>,
    /// Serial number of the last use.
    serial: u64,
    marks: Marks,
    /// Operations with a record whose outcome was not reported yet.
    records: Option<Box<Records>>,
    /// Whether a use may be inherited.
    has_inherited: bool,
}

#[cfg(feature = "alloc")]
impl<B: Backend> InFlight<B> {
    const fn new() -> Self {
        Self { uses: Few::None, serial: 0, marks: Marks::none(), records: None, has_inherited: false }
    }

    fn next(&mut self, position: Position, access: Access, event: B::Event) -> Use<B> {
        self.serial += 1;
        self.marks.submitted(access, self.serial);
        Use { serial: self.serial, position, access, event, name: 0, is_inherited: false }
    }

    #[inline]
    fn dependencies(&self, access: Access, queue: u64, after: &mut Vec<B::Event>) -> u64 {
        for earlier in self.uses.as_slice() {
            let conflicts = access == Access::Write || earlier.access == Access::Write;
            let is_ordered = queue != 0 && earlier.position.queue == queue;
            if conflicts && !is_ordered {
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
        position: Position,
        event: B::Event,
        last_serial: u64,
    ) -> core::result::Result<Option<B::Event>, B::Event> {
        match self.uses.as_mut_slice() {
            [] => {
                let first = self.next(position, access, event);
                self.uses.push(first);
                Ok(None)
            }
            [earlier] if earlier.is_replaced_by(access, position.queue, last_serial) => {
                self.serial += 1;
                self.marks.submitted(access, self.serial);
                (earlier.serial, earlier.position, earlier.access) = (self.serial, position, access);
                (earlier.name, earlier.is_inherited) = (0, false);
                self.has_inherited = false;
                Ok(Some(core::mem::replace(&mut earlier.event, event)))
            }
            _ => Err(event),
        }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Use<B> {
    /// Gives an event a name by which lists recognise it, unless its position is one.
    fn assign_name(&mut self) {
        if self.name == 0 && self.position.queue == 0 {
            self.name = next_id();
        }
    }

    fn into_pending(self) -> PendingUse<B> {
        PendingUse { event: self.event, position: self.position, name: self.name }
    }

    #[inline(never)]
    fn push_event(&self, after: &mut Vec<B::Event>) {
        after.push(self.event.clone());
    }

    /// A write is ordered after all earlier uses, a read after the earlier read of the same
    /// in-order queue. Earlier means serial <= `last_serial`.
    #[inline]
    fn is_replaced_by(&self, access: Access, queue: u64, last_serial: u64) -> bool {
        self.serial <= last_serial
            && match access {
                Access::Write => true,
                Access::Read => queue != 0 && self.access == Access::Read && self.position.queue == queue,
            }
    }
}

/// The uses of one block in flight. The borrow checker makes writers exclusive; readers of several
/// threads meet here, and so does every thread that names the block by a [`Usage`](crate::Usage).
/// Only a complete use leaves the list, or one that a later use is ordered after.
pub(crate) struct Uses<B: Backend> {
    /// Most allocations of a pool, and all on the host, have none.
    #[cfg(feature = "alloc")]
    list: LazyBox<Mutex<InFlight<B>>>,
    #[cfg(not(feature = "alloc"))]
    marker: core::marker::PhantomData<fn() -> B>,
}

impl<B: Backend> Uses<B> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(feature = "alloc")]
            list: LazyBox::new(),
            #[cfg(not(feature = "alloc"))]
            marker: core::marker::PhantomData,
        }
    }

    /// The uses of a block whose earlier owners left these.
    #[inline]
    pub(crate) fn inherited(pending: Pending<B>) -> Self {
        #[cfg(feature = "alloc")]
        if !B::SYNCHRONOUS && !pending.is_empty() {
            return Self::of_earlier_owners(pending);
        }
        let _nothing_in_flight = pending;
        Self::new()
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Uses<B> {
    #[inline(never)]
    fn of_earlier_owners(pending: Pending<B>) -> Self {
        let mut list = InFlight::new();
        list.has_inherited = true;
        for PendingUse { event, position, name } in pending.into_uses() {
            let earlier = Use { name, is_inherited: true, ..list.next(position, Access::Write, event) };
            list.uses.push(earlier);
        }
        Self { list: LazyBox::of(Mutex::new(list)) }
    }

    /// Whether operations of earlier owners may still use the block.
    pub(crate) fn has_inherited(&self) -> bool {
        self.list.get().is_some_and(|list| list.lock().has_inherited)
    }

    /// The uses of a block that begins with one.
    pub(crate) fn with_first_use(access: Access, position: Position, event: B::Event) -> Self {
        let mut list = InFlight::new();
        list.serial = 1;
        list.uses.push(Use { serial: 1, position, access, event, name: 0, is_inherited: false });
        Self { list: LazyBox::of(Mutex::new(list)) }
    }

    fn list(&self) -> &Mutex<InFlight<B>> {
        self.list.get_or_make(|| Mutex::new(InFlight::new()))
    }

    /// A list longer than this is searched for complete uses.
    const PRUNE_ABOVE: usize = 4;

    /// Adds to `after` the events that an access from `queue` (0 when out of order) must wait for.
    /// Returns the last serial number that it looked at, for [`record`](Self::record).
    ///
    /// # Errors
    /// [`ErrorKind::EarlierOwnerFailed`].
    #[inline]
    pub(crate) fn dependencies(&self, access: Access, queue: u64, after: &mut Vec<B::Event>) -> Result<u64> {
        if B::SYNCHRONOUS {
            return Ok(0);
        }
        let Some(list) = self.list.get() else { return Ok(0) };
        let in_flight = list.lock();
        if !in_flight.has_inherited {
            return Ok(in_flight.dependencies(access, queue, after));
        }
        drop(in_flight);
        self.ask_inherited(list, queue)?;
        Ok(list.lock().dependencies(access, queue, after))
    }

    /// Forgets inherited uses that are complete, and refuses the block if one has failed: by the
    /// order of events the failure would otherwise spread to `queue`, whose work has nothing to do
    /// with it. A use of the same queue has failed that queue already. Calls the driver without the
    /// lock, and never blocks.
    #[cold]
    fn ask_inherited(&self, list: &Mutex<InFlight<B>>, queue: u64) -> Result<()> {
        let earlier: Vec<(u64, B::Event)> = {
            let list = list.lock();
            let of_others =
                |earlier: &&Use<B>| earlier.is_inherited && (queue == 0 || earlier.position.queue != queue);
            let all = list.uses.as_slice().iter().filter(of_others);
            all.map(|earlier| (earlier.serial, earlier.event.clone())).collect()
        };
        let mut complete_serials = Vec::new();
        for (serial, event) in &earlier {
            match event.status() {
                Ok(crate::EventStatus::Complete) => complete_serials.push(*serial),
                Ok(crate::EventStatus::Pending) => {}
                Err(error) => return Err(of_earlier_owner(event, error)),
            }
        }
        let mut in_flight = list.lock();
        in_flight.marks.pruned();
        let removed_uses = in_flight.uses.take_out(|earlier| complete_serials.contains(&earlier.serial));
        in_flight.has_inherited = in_flight.uses.as_slice().iter().any(|earlier| earlier.is_inherited);
        drop(in_flight);
        drop((removed_uses, earlier));
        Ok(())
    }

    /// Records that `event` uses the block. Replaces uses with serial <= `last_serial` that this
    /// one is ordered after. Uses recorded meanwhile stay; they may be later.
    #[inline]
    pub(crate) fn record(&self, access: Access, position: Position, event: B::Event, last_serial: u64) {
        if B::SYNCHRONOUS {
            return;
        }
        // Dropping an event may call the driver, so it happens after the lock is released.
        let replacement = self.list().lock().replace_only_use(access, position, event, last_serial);
        match replacement {
            Ok(removed_uses) => drop(removed_uses),
            Err(event) => self.record_in_list(access, position, event, last_serial),
        }
    }

    /// Records a use beside others.
    #[inline(never)]
    fn record_in_list(&self, access: Access, position: Position, event: B::Event, last_serial: u64) {
        let mut list = self.list().lock();
        let latest = list.next(position, access, event);
        let removed_uses =
            list.uses.take_out(|earlier| earlier.is_replaced_by(access, position.queue, last_serial));
        list.uses.push(latest);
        let is_crowded = list.uses.as_slice().len() > Self::PRUNE_ABOVE;
        drop(list);
        drop(removed_uses);
        if is_crowded {
            self.prune();
        }
    }

    /// Remembers the outcome of an operation whose event is recorded.
    pub(crate) fn add_outcome(&self, access: Access, outcome: &Arc<Outcome>) {
        let mut list = self.list().lock();
        let records = list.records.get_or_insert_default();
        records.retain(|(_, earlier)| earlier.is_unreported());
        records.push((access, Arc::clone(outcome)));
    }

    /// Remembers the outcomes of operations that wrote what a copy brings here.
    pub(crate) fn add_copied_outcomes(&self, outcomes: Vec<Arc<Outcome>>) {
        let mut list = self.list().lock();
        let records = list.records.get_or_insert_default();
        records.retain(|(_, earlier)| earlier.is_unreported());
        let writes = records.iter().filter(|(did, _)| *did == Access::Write);
        let write_outcomes: BTreeSet<_> = writes.map(|(_, outcome)| Arc::as_ptr(outcome)).collect();
        let new = outcomes.into_iter().filter(|outcome| !write_outcomes.contains(&Arc::as_ptr(outcome)));
        records.extend(new.map(|outcome| (Access::Write, outcome)));
    }

    /// The unreported outcomes of operations that a host access of this sort waits for.
    pub(crate) fn unreported(&self, access: Access) -> Vec<Arc<Outcome>> {
        let Some(list) = self.list.get() else { return Vec::new() };
        let list = list.lock();
        let records = list.records.iter().flat_map(|all| all.iter());
        let conflicts = |did: Access| access == Access::Write || did == Access::Write;
        records.filter(|(did, _)| conflicts(*did)).map(|(_, outcome)| Arc::clone(outcome)).collect()
    }

    /// Adds the uses of a part that was carved from this block. They are of the block's context. A
    /// use that is in the list already is not added again; otherwise parts that overlap each other
    /// in turn would double their uses each time.
    pub(crate) fn absorb(&self, pending: Pending<B>) {
        if B::SYNCHRONOUS || pending.is_empty() {
            return;
        }
        let mut list = self.list().lock();
        let mut duplicates = Few::None;
        for pending in pending.into_uses() {
            let is_known = |earlier: &Use<B>| {
                let same_queue = pending.position.queue != 0 && earlier.position == pending.position;
                same_queue || (pending.name != 0 && earlier.name == pending.name)
            };
            if list.uses.as_slice().iter().any(is_known) {
                duplicates.push(pending);
                continue;
            }
            let PendingUse { event, position, name } = pending;
            let latest = Use { name, ..list.next(position, Access::Write, event) };
            list.uses.push(latest);
        }
        let is_crowded = list.uses.as_slice().len() > Self::PRUNE_ABOVE;
        drop(list);
        drop(duplicates);
        if is_crowded {
            self.prune();
        }
    }

    /// Forgets complete uses. Calls the driver without the lock.
    fn prune(&self) {
        let Some(list) = self.list.get() else { return };
        let snapshot: Vec<(u64, B::Event)> = {
            let list = list.lock();
            list.uses.as_slice().iter().map(|earlier| (earlier.serial, earlier.event.clone())).collect()
        };
        let complete_serials: Vec<u64> =
            snapshot.into_iter().filter(|(_, event)| event.is_complete()).map(|(serial, _)| serial).collect();
        self.forget(|serial| complete_serials.contains(&serial));
    }

    /// Forgets uses that are complete.
    fn forget(&self, is_complete: impl Fn(u64) -> bool) {
        let Some(list) = self.list.get() else { return };
        let mut list = list.lock();
        list.marks.pruned();
        let removed_uses = list.uses.take_out(|earlier| is_complete(earlier.serial));
        list.has_inherited = list.uses.as_slice().iter().any(|earlier| earlier.is_inherited);
        drop(list);
        drop(removed_uses);
    }

    /// Blocks until a host access of this sort conflicts with no use. Returns the number of uses
    /// that it waited for.
    ///
    /// # Errors
    /// The failure of a use, [`ErrorKind::EarlierOwnerFailed`] for an inherited one, or
    /// [`ErrorKind::Timeout`].
    pub(crate) fn wait(&self, access: Access, limit: Duration) -> Result<usize> {
        if B::SYNCHRONOUS {
            return Ok(0);
        }
        let Some(list) = self.list.get() else { return Ok(0) };
        let events: Vec<(u64, bool, B::Event)> = {
            let list = list.lock();
            let conflicts = |earlier: &&Use<B>| access == Access::Write || earlier.access == Access::Write;
            let all = list.uses.as_slice().iter().filter(conflicts);
            all.map(|earlier| (earlier.serial, earlier.is_inherited, earlier.event.clone())).collect()
        };
        if events.is_empty() {
            return Ok(0);
        }
        let mut deadline = Deadline::after(limit);
        for (_, is_inherited, event) in &events {
            deadline.wait(|left| event.wait(left)).map_err(|error| match error.kind {
                ErrorKind::Timeout { .. } => error,
                _ if *is_inherited => of_earlier_owner(event, error),
                _ => error,
            })?;
        }
        // Complete: the next access asks the runtime no more about them.
        self.forget(|serial| events.iter().any(|(serial_of_use, ..)| *serial_of_use == serial));
        Ok(events.len())
    }

    /// Call after a [`wait`](Self::wait) for the same access to these bytes that waited for
    /// `wait_count` uses. It serves runtimes in which helgrind does not see that the end of an
    /// event orders the runtime's work. A wait that missed a use makes no request, nor does one
    /// after which the runtime is still busy.
    #[cfg(usm_valgrind)]
    pub(crate) fn annotate_for_helgrind(
        &self,
        wait_count: usize,
        access: Access,
        base: *const u8,
        len: usize,
    ) {
        let Some(list) = self.list.get() else { return };
        let mut events = Vec::new();
        let last_serial = list.lock().dependencies(access, 0, &mut events);
        if events.len() <= wait_count && events.iter().all(EventOps::is_complete) {
            list.lock().marks.completed(wait_count > 0, access, last_serial, base, len);
        }
    }

    /// The uses in flight of a block of this context, each with a name.
    pub(crate) fn pending(&self, context: u64) -> Pending<B> {
        let Some(list) = self.list.get() else { return Pending::none() };
        let mut list = list.lock();
        let mut uses = Few::None;
        for earlier in list.uses.as_mut_slice() {
            earlier.assign_name();
            let (event, position, name) = (earlier.event.clone(), earlier.position, earlier.name);
            uses.push(PendingUse { event, position, name });
        }
        Pending::of(context, uses)
    }

    /// Takes the uses in flight of a block of this context, each with a name; the list is empty
    /// afterwards.
    #[inline]
    pub(crate) fn take(&mut self, context: u64) -> Pending<B> {
        match self.list.get_mut() {
            None => Pending::none(),
            Some(list) => Self::take_from(list.get_mut(), context),
        }
    }

    #[inline(never)]
    fn take_from(list: &mut InFlight<B>, context: u64) -> Pending<B> {
        let mut uses = Few::None;
        for mut earlier in list.uses.take() {
            earlier.assign_name();
            uses.push(earlier.into_pending());
        }
        Pending::of(context, uses)
    }

    /// Calls `work` with the events of all uses except those by this queue. An in-order queue has
    /// an id; an out-of-order queue has 0.
    #[inline]
    pub(crate) fn with_events_of_others<R>(&mut self, queue: u64, work: impl FnOnce(&[B::Event]) -> R) -> R {
        let Some(list) = self.list.get_mut() else { return work(&[]) };
        let list = list.get_mut();
        match list.uses.as_slice() {
            [] => work(&[]),
            [earlier] if queue != 0 && earlier.position.queue == queue => work(&[]),
            [earlier] => work(slice::from_ref(&earlier.event)),
            _ => {
                let mut after = Vec::new();
                let _ = list.dependencies(Access::Write, queue, &mut after);
                work(&after)
            }
        }
    }

    /// Whether the block was never used, so that the list is nothing to drop.
    #[inline]
    pub(crate) fn is_untouched(&mut self) -> bool {
        self.list.get_mut().is_none()
    }
}

/// The failure of an earlier owner's work. A lost device is lost for this owner too.
#[cfg(feature = "alloc")]
fn of_earlier_owner<E: EventOps>(event: &E, error: Error) -> Error {
    if event.is_for_good(&error) { error } else { Error { kind: ErrorKind::EarlierOwnerFailed, ..error } }
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
