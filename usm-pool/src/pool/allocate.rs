//! The way of an allocation: from the thread's cache, or by way of the lock.

use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;

use usm_core::segment::{self, Segment};
use usm_core::{
    AllocKind, Allocation, Backend, Context, Error, ErrorKind, Fallback, Inherited, MemorySource, MemoryType,
    Pending, Request, Result,
};

use super::choice::{self, Demand, Grant, Ground, Refusal};
use super::classes::Ticket;
use super::space::Space;
#[cfg(feature = "std")]
use super::threads;
use super::{Pool, callback, table};
#[cfg(feature = "std")]
use super::{Shared, bins, classes};

impl<B: Backend + 'static> Pool<B> {
    fn exhausted(&self, requested: u64) -> Error {
        let shared = self.shared();
        let (live, reserved, pending, largest) = shared.with(|space| {
            let (_, pending) = shared.free_bytes(space);
            (shared.flow(space).live(), space.counters.reserved, pending, space.largest_free())
        });
        let limit = shared.options.limit.map_or(u64::MAX, |limit| limit as u64);
        let kind = shared.kind;
        ErrorKind::PoolExhausted { kind, requested, limit, live, reserved, pending, largest }.into()
    }

    /// A block, after the callback if none is left.
    fn choose(&self, demand: &Demand, requested: u64) -> core::result::Result<Grant<Pending<B>>, Error> {
        let shared = self.shared();
        let mut calls = 0..3;
        loop {
            let error = match choice::allocate(shared, demand) {
                Ok(grant) => return Ok(grant),
                Err(Refusal::Exhausted) => self.exhausted(requested),
                Err(Refusal::Memory(error)) => error,
            };
            // No call after the last refusal: what it freed would be for nothing.
            let callback = calls.next().and_then(|_| shared.callback.lock().clone());
            match callback {
                Some(free) if callback::call(&free, requested) => {}
                _ => return Err(error),
            }
        }
    }
}

impl<B: Backend + 'static> Pool<B> {
    /// A block of the calling thread's cache, for a request that is valid and that nobody records.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn take_cached(&self, request: &Request, alignment: usize) -> Option<Own<B>> {
        let shared = self.shared();
        let is_usual = request.kind == shared.kind
            && self.queue_context == shared.context_id
            && alignment.is_power_of_two()
            && (1..=isize::MAX as usize / 2).contains(&request.size)
            && shared.watch.may_begin();
        if !is_usual {
            return None;
        }
        let size = Space::<Pending<B>, Segment<B>>::round(request.size as u64)?;
        let cache = threads::find(shared.id)?;
        if !cache.begin() {
            return None;
        }
        let hit = cache.bins().take(&shared.table, size, alignment as u64, self.queue);
        cache.end();
        let bins::CachedBlock { ticket, block } = hit?;
        Some(self.own_cached(ticket, block, request.size as u64, cache))
    }

    /// Marks a block that no list has as an owner's.
    #[inline(always)]
    fn own(&self, ticket: Ticket, block: &table::Block, bytes: u64, id: u64) -> Own<B> {
        let uses = match block.is_idle() {
            true => Inherited::none(),
            false => self.shared().table.take_uses(ticket.slot()).into(),
        };
        self.shared().count_allocated(bytes);
        block.tag.set(self.tag);
        block.id.set(id);
        block.bytes.set(bytes);
        Own { ticket, address: block.address.get(), uses }
    }

    /// The same, counted by a cache of the calling thread.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn own_cached(&self, ticket: Ticket, block: &table::Block, bytes: u64, cache: &threads::Cache) -> Own<B> {
        cache.flow.allocate(bytes);
        self.own(ticket, block, bytes, cache.next_id(&self.shared().shared_counters.ids))
    }

    /// The owner of a block.
    #[inline(always)]
    fn allocation(&self, own: Own<B>, bytes: usize, alignment: usize) -> Allocation<B> {
        let shared = self.shared();
        let block = shared.block_of(own.address, bytes as u64, alignment);
        let lender = NonNull::from(shared);
        #[cfg(any(usm_valgrind, usm_asan))]
        usm_core::substitute::show(block.pointer.as_ptr(), block.size, !own.uses.is_empty());
        // SAFETY: the block lies in a segment that lives until it is back, is nobody else's, and
        // comes with all operations on its bytes. The pool and its context live until the last
        // block is back, whatever becomes of this handle.
        unsafe { Allocation::from_lender(&shared.context, block, own.uses, lender, own.ticket.number()) }
    }

    /// A block for [`MemorySource::allocate`], when the thread's cache has none. Otherwise what
    /// that returns, in a box because it is rare.
    #[inline(never)]
    fn find_slowly(&self, request: &Request) -> core::result::Result<Own<B>, Box<Result<Allocation<B>>>> {
        let shared = self.shared();
        let result = self.checked_demand(request).and_then(|(layout, demand)| {
            let _entered = segment::admit(&shared.context)?;
            self.find_block(&demand, layout.size() as u64)
        });
        match result {
            Ok(own) if shared.watch.is_recorded() => {
                let alignment = request.layout().map_or(1, |layout| layout.align());
                let allocation = self.allocation(own, request.size, alignment);
                shared.report();
                segment::record_allocation(&shared.context, allocation.block());
                Err(Box::new(Ok(allocation)))
            }
            Ok(own) => Ok(own),
            Err(error) if is_refusal_of_memory(&error) => {
                if request.fallback == Fallback::Host && shared.kind != AllocKind::Host {
                    let mut of_host = *request;
                    of_host.kind = AllocKind::Host;
                    return Err(Box::new(shared.context.allocate(&of_host)));
                }
                segment::record_refusal(&shared.context, shared.kind, request.size);
                Err(Box::new(Err(error)))
            }
            Err(error) => Err(Box::new(Err(error))),
        }
    }

    fn checked_demand(&self, request: &Request) -> Result<(Layout, Demand)> {
        let (layout, shared) = (request.layout()?, self.shared());
        let kind = shared.kind;
        MemoryType::try_from(request.kind)?;
        if request.kind != kind {
            return Err(ErrorKind::WrongKind { expected: kind, found: request.kind }.into());
        }
        let expected = shared.context_id;
        if self.queue_context != expected {
            return Err(ErrorKind::WrongContext { expected, found: self.queue_context }.into());
        }
        let size = Space::<Pending<B>, Segment<B>>::round(layout.size() as u64);
        let demand = Demand {
            size: size.ok_or(ErrorKind::SizeOverflow)?,
            alignment: layout.align() as u64,
            queue: self.queue,
            reuse: shared.options.reuse,
            limit: shared.options.limit.map_or(u64::MAX, |limit| limit as u64),
            segment: shared.options.segment as u64,
        };
        Ok((layout, demand))
    }

    /// A block of the thread's cache, of the store that caches share, or of the space.
    fn find_block(&self, demand: &Demand, bytes: u64) -> Result<Own<B>> {
        let shared = self.shared();
        let table = &shared.table;
        #[cfg(feature = "std")]
        let cache = caches(shared).then(|| threads::open(shared.id, &self.shared)).flatten();
        #[cfg(feature = "std")]
        if let Some(cache) = cache {
            let ticket = cache.enter(|bins| {
                let own = bins.take(table, demand.size, demand.alignment, demand.queue);
                let take_stored = || shared.with(|space| space.take_stored(demand, bins));
                own.map(|block| block.ticket).or_else(take_stored)
            });
            let hit = ticket.flatten().and_then(|ticket| Some((ticket, table.get(ticket.slot())?)));
            if let Some((ticket, block)) = hit {
                return Ok(self.own_cached(ticket, block, bytes, cache));
            }
            if demand.size > classes::SMALL {
                // Large blocks may merge to one that fits.
                let large = cache.enter(|bins| bins.empty(table, true)).unwrap_or(bins::Chain::new());
                if !large.is_empty() {
                    shared.take_in(|space, garbage| space.take_chain(large, garbage));
                }
            }
        }
        let grant = self.choose(demand, bytes)?;
        let block = table.get(grant.slot).ok_or(ErrorKind::SizeOverflow)?;
        table.set_uses(grant.slot, grant.uses);
        let ticket = Ticket::new(grant.slot, block.size.get());
        let count_in_space = || {
            shared.with(|space| space.flow.allocate(bytes));
            self.own(ticket, block, bytes, shared.shared_counters.ids.add_shared(1))
        };
        // A callback may have given the cache to another pool.
        #[cfg(feature = "std")]
        let own = match cache.filter(|cache| cache.is_of(shared.id)) {
            Some(cache) => self.own_cached(ticket, block, bytes, cache),
            None => count_in_space(),
        };
        #[cfg(not(feature = "std"))]
        let own = count_in_space();
        // Memory that the caches did not have: a peak may be near.
        shared.report();
        Ok(own)
    }
}

/// A block that an owner is about to get.
struct Own<B: Backend> {
    ticket: Ticket,
    address: u64,
    uses: Inherited<B>,
}

/// Whether the error is of the memory, and not of the request.
fn is_refusal_of_memory(error: &Error) -> bool {
    !matches!(
        error.kind,
        ErrorKind::ZeroSize
            | ErrorKind::BadAlignment { .. }
            | ErrorKind::WrongKind { .. }
            | ErrorKind::WrongContext { .. }
            | ErrorKind::UnknownKind
            | ErrorKind::Forked
            | ErrorKind::ProcessEnds
    )
}

/// Whether threads keep blocks of the pool.
#[cfg(feature = "std")]
#[inline(always)]
pub(super) fn caches<B: Backend + 'static>(shared: &Shared<B>) -> bool {
    !cfg!(usm_valgrind) && shared.room.get() != 0
}

impl<B: Backend + 'static> MemorySource<B> for Pool<B> {
    /// Waits only for work without which the request would be refused.
    ///
    /// # Errors
    /// [`ErrorKind::PoolExhausted`] at the pool's limit; [`ErrorKind::WrongKind`]; as of
    /// [`Context`].
    #[inline(always)]
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        let alignment = match request.alignment {
            0 => Request::DEFAULT_ALIGNMENT,
            alignment => alignment,
        };
        #[cfg(feature = "std")]
        let cached = self.take_cached(request, alignment);
        #[cfg(not(feature = "std"))]
        let cached = None;
        let own = match cached {
            Some(own) => own,
            None => match self.find_slowly(request) {
                Ok(own) => own,
                Err(other) => return *other,
            },
        };
        // Both ways meet here, in registers: an owner that went through memory would be read before
        // its parts are there.
        Ok(self.allocation(own, request.size, alignment))
    }

    fn context(&self) -> &Context<B> {
        &self.shared().context
    }
}
