//! The way of a block back: into the thread's cache, or into the space under the lock.

use alloc::sync::Arc;
use core::ptr::NonNull;

use usm_core::segment;
use usm_core::{Backend, Block, Lender, Pending};

#[cfg(feature = "std")]
use super::bins::Chain;
use super::classes::Ticket;
use super::{Shared, table};
#[cfg(feature = "std")]
use super::{allocate::caches, threads};

/// What became of a block that came back to a cache.
#[cfg(feature = "std")]
enum Put {
    Done,
    /// It is in the cache, and these are too many; whether the thread frees more than it allocates.
    Over(Chain, bool),
    /// Not for the cache. The operations are the caller's still.
    Refused,
}

#[cfg(feature = "std")]
impl<B: Backend + 'static> Shared<B> {
    /// Puts a block into a cache of the calling thread, whose turn it holds.
    #[inline(always)]
    fn put_cached(
        &self,
        cache: &threads::Cache,
        ticket: Ticket,
        user_block: &Block,
        uses: Option<&mut Pending<B>>,
    ) -> Put {
        let Some(block) = self.table.get(ticket.slot()) else { return Put::Refused };
        let is_out = !cfg!(debug_assertions) || is_lent(block, user_block);
        let (room, bytes) = (self.room.get(), user_block.size as u64);
        if cfg!(usm_valgrind) || !is_out || room == 0 {
            return Put::Refused;
        }
        block.bytes.set(0);
        self.count_freed(bytes);
        let is_idle = match uses {
            None => true,
            Some(uses) => {
                self.table.set_uses(ticket.slot(), core::mem::replace(uses, Pending::none()));
                block.is_idle()
            }
        };
        cache.flow.free(bytes);
        let excess = cache.bins().put_ticket(&self.table, ticket, block, is_idle, room);
        match excess.is_empty() {
            true => Put::Done,
            false => Put::Over(excess, cache.frees_more()),
        }
    }
}

/// Whether an owner has the block, as it comes back. Debug builds compare the place too: it shows
/// the return of part of a block, and of another pool's.
fn is_lent(descriptor: &table::Block, block: &Block) -> bool {
    let is_same =
        descriptor.address.get() == block.address() as u64 && descriptor.bytes.get() == block.size as u64;
    descriptor.is_live() && (!cfg!(debug_assertions) || is_same)
}

/// Puts a block back, also if an observer panics.
struct GiveBack<B: Backend + 'static> {
    shared: Arc<Shared<B>>,
    ticket: Ticket,
    /// As requested.
    block: Block,
    uses: Pending<B>,
}

impl<B: Backend + 'static> Drop for GiveBack<B> {
    fn drop(&mut self) {
        let (shared, slot) = (&self.shared, self.ticket.slot());
        #[cfg(feature = "std")]
        match shared.put(self.ticket, &self.block, &mut self.uses) {
            Put::Done => return,
            Put::Over(chain, passes_on) => {
                return shared.take_in(|space, garbage| space.take_over(chain, passes_on, garbage));
            }
            Put::Refused => {}
        }
        let uses = core::mem::replace(&mut self.uses, Pending::none());
        shared.take_in(|space, garbage| {
            let block = space.block(slot).filter(|descriptor| is_lent(descriptor, &self.block));
            let Some(block) = block else {
                space.counters.misuses += 1;
                return garbage.push(uses);
            };
            space.flow.free(block.bytes.get());
            self.shared.count_freed(block.bytes.get());
            block.bytes.set(0);
            self.shared.table.set_uses(slot, uses);
            space.take_back(slot, garbage);
        });
    }
}

#[cfg(feature = "std")]
impl<B: Backend + 'static> Shared<B> {
    /// Puts a block into the thread's cache, which a thread without one gets.
    fn put(self: &Arc<Self>, ticket: Ticket, block: &Block, uses: &mut Pending<B>) -> Put {
        let has_caches = caches(&**self);
        if !has_caches {
            threads::leave_closed(self.id);
        }
        let cache = has_caches.then(|| threads::open(self.id, self)).flatten();
        let Some(cache) = cache.filter(|cache| cache.begin()) else { return Put::Refused };
        let put = self.put_cached(cache, ticket, block, Some(uses));
        cache.end();
        put
    }
}

#[cfg(feature = "std")]
impl<B: Backend + 'static> threads::Keeper for Shared<B> {
    fn take_leave(&self, cache: &threads::Cache) {
        self.take_in(|space, garbage| {
            space.take_over(cache.bins().empty(&self.table, false), false, garbage);
            space.flow.add(&cache.flow);
            cache.clear();
        });
    }
}

// SAFETY: a returned block keeps its uses in its descriptor, which go to the next owner or to the
// end of the segment.
unsafe impl<B: Backend + 'static> Lender<B> for Shared<B> {
    const ENDS_EXPORTS: bool = true;

    #[inline]
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, block: &Block, mut uses: Pending<B>) {
        #[cfg(any(usm_valgrind, usm_asan))]
        if uses.is_empty() {
            usm_core::substitute::hide(block.pointer.as_ptr(), block.size);
        }
        // SAFETY: as of this function.
        if !unsafe { take_back_cached(lender, slot, block, Some(&mut uses)) } {
            // SAFETY: as of this function.
            unsafe { take_back_slowly(lender, slot, block, uses) }
        }
    }

    #[inline(always)]
    unsafe fn take_back_unused(lender: NonNull<Self>, slot: u32, block: &Block) {
        #[cfg(any(usm_valgrind, usm_asan))]
        usm_core::substitute::hide(block.pointer.as_ptr(), block.size);
        // SAFETY: as of this function.
        if !unsafe { take_back_cached(lender, slot, block, None) } {
            // SAFETY: as of this function.
            unsafe { take_back_idle_slowly(lender, slot, block) }
        }
    }
}

/// Puts a block into the calling thread's cache. False, and nothing changes, without one.
///
/// # Safety
/// As of [`Lender::take_back`].
#[inline(always)]
unsafe fn take_back_cached<B: Backend + 'static>(
    lender: NonNull<Shared<B>>,
    slot: u32,
    block: &Block,
    uses: Option<&mut Pending<B>>,
) -> bool {
    #[cfg(feature = "std")]
    {
        // SAFETY: alive until the block is back.
        let shared = unsafe { lender.as_ref() };
        if shared.watch.watches_frees() {
            return false;
        }
        let Some(cache) = threads::find(shared.id).filter(|cache| cache.begin()) else { return false };
        // While the turn is held the block is not back, so the pool lives.
        let put = shared.put_cached(cache, Ticket::of_number(slot), block, uses);
        cache.end();
        match put {
            Put::Done => true,
            Put::Over(chain, passes_on) => {
                // SAFETY: the blocks of the chain are not back.
                unsafe { take_over(lender, chain, passes_on) };
                true
            }
            Put::Refused => false,
        }
    }
    #[cfg(not(feature = "std"))]
    {
        let _ = (lender, slot, block, uses);
        false
    }
}

/// # Safety
/// The pool lives: a block of the chain is not back.
#[cfg(feature = "std")]
#[inline(never)]
unsafe fn take_over<B: Backend + 'static>(lender: NonNull<Shared<B>>, chain: Chain, passes_on: bool) {
    // SAFETY: the caller's promise.
    let shared = unsafe { count(lender) };
    shared.take_in(|space, garbage| space.take_over(chain, passes_on, garbage));
}

/// A count for the time of a call: another thread may return the last block before it ends.
///
/// # Safety
/// The pool lives.
unsafe fn count<B: Backend + 'static>(lender: NonNull<Shared<B>>) -> Arc<Shared<B>> {
    // SAFETY: in an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(lender.as_ptr()) };
    // SAFETY: the count above.
    unsafe { Arc::from_raw(lender.as_ptr()) }
}

/// # Safety
/// As of [`Lender::take_back`].
#[inline(never)]
unsafe fn take_back_idle_slowly<B: Backend + 'static>(lender: NonNull<Shared<B>>, slot: u32, block: &Block) {
    // SAFETY: as of this function.
    unsafe { take_back_slowly(lender, slot, block, Pending::none()) }
}

/// # Safety
/// As of [`Lender::take_back`].
#[inline(never)]
unsafe fn take_back_slowly<B: Backend + 'static>(
    lender: NonNull<Shared<B>>,
    slot: u32,
    block: &Block,
    uses: Pending<B>,
) {
    // SAFETY: the caller's promise.
    let shared = unsafe { count(lender) };
    let ticket = Ticket::of_number(slot);
    let give_back = GiveBack { shared, ticket, block: *block, uses };
    let shared = &give_back.shared;
    if !shared.table.get(ticket.slot()).is_some_and(|descriptor| is_lent(descriptor, block)) {
        // The lock's holder counts the misuse, and changes nothing else.
        return;
    }
    shared.watch.end_exports(block);
    if shared.watch.is_recorded() {
        shared.report();
        segment::record_free(&shared.context, block);
    }
}

// Release builds trust what comes back.
#[cfg(all(test, debug_assertions))]
mod tests {
    use usm_core::backend::host::HostHeap;
    use usm_core::{AllocKind, Allocation, MemorySource, Request};

    use super::super::{Pool, PoolOptions};
    use super::*;

    type Lent = Allocation<HostHeap>;

    fn take(pool: &Pool<HostHeap>) -> Lent {
        pool.allocate(&Request::new(AllocKind::Host, 1000)).expect("memory")
    }

    /// The number under which the pool has lent a block.
    fn number_of(pool: &Pool<HostHeap>, lent: &Lent) -> u32 {
        let address = lent.block().address() as u64;
        let at = |slot: &u32| pool.shared.table.get(*slot).is_some_and(|it| it.address.get() == address);
        let slot = (0..1000).find(at).expect("a block of the pool");
        Ticket::new(slot, pool.shared.table.get(slot).expect("a descriptor").size.get()).number()
    }

    /// A return that the pool has to refuse, by both ways.
    fn is_refused(pool: &Pool<HostHeap>, number: u32, block: &Block, case: &str) {
        let lender = NonNull::from(&*pool.shared);
        let (before, segments) = (pool.stats(), pool.snapshot());
        // SAFETY: no return of an owner: the handle above keeps the pool, which refuses it.
        unsafe { Lender::take_back(lender, number, block, Pending::none()) };
        // SAFETY: as above.
        unsafe { Lender::take_back_unused(lender, number, block) };
        let mut after = pool.stats();
        assert_eq!(after.misuses, before.misuses + 2, "{case}");
        after.misuses = before.misuses;
        assert_eq!((after, pool.snapshot()), (before, segments), "{case}: something was freed");
    }

    /// Of blocks that pass by the caches of threads, and of others.
    #[test]
    fn double_interior_and_foreign_returns_are_counted_and_free_nothing() {
        for keep in [None, Some(0)] {
            let context = HostHeap::new().context();
            let options = PoolOptions { keep, ..PoolOptions::default() };
            let pool = Pool::with(&context, AllocKind::Host, options);
            let other = Pool::new(&context, AllocKind::Host);
            let ([gone, live], foreign) = ([(); 2].map(|()| take(&pool)), take(&other));
            let of_gone = (number_of(&pool, &gone), *gone.block());
            let (number, block) = (number_of(&pool, &live), *live.block());
            drop(gone);
            is_refused(&pool, of_gone.0, &of_gone.1, "twice");
            is_refused(&pool, u32::MAX, &block, "a number of no block");
            let inside = NonNull::new(block.pointer.as_ptr().wrapping_add(64)).expect("not null");
            is_refused(&pool, number, &Block { pointer: inside, ..block }, "interior");
            is_refused(&pool, number, &Block { size: 999, ..block }, "of another size");
            is_refused(&pool, number, foreign.block(), "foreign");
            let shown = context.query(live.as_ptr()).expect("an answer");
            assert_eq!((shown.base, shown.size), (block.address(), 1000));
            drop((live, foreign));
            assert_eq!((pool.stats().live, pool.stats().blocks, other.stats().misuses), (0, 0, 0));
            pool.check();
        }
    }
}
