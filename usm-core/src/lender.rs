//! Who lends blocks of larger memory, without a count for each.

use core::ptr::NonNull;

use crate::backend::{Backend, Block};
use crate::context::Context;
use crate::pending::Pending;
use crate::uses::Uses;

/// Lends blocks by [`Allocation::from_lender`](crate::Allocation::from_lender), each under a number
/// of its own, and takes them back. No allocation counts its lender or its context: the lender
/// keeps both alive until the last block is back. One that wants a count for each block holds it by
/// `Arc::into_raw`.
///
/// # Safety
/// [`take_back`](Self::take_back) keeps the memory from every other owner until the operations of
/// `uses` are complete, or hands them to the next owner of these bytes as the uses with which
/// [`Allocation::from_lender`](crate::Allocation::from_lender) begins.
pub unsafe trait Lender<B: Backend>: Send + Sync {
    /// Whether [`take_back`](Self::take_back) tells other processes that the bytes end
    /// ([`Watch::end_exports`](crate::segment::Watch::end_exports)), before anyone else gets them.
    const ENDS_EXPORTS: bool = false;

    /// Takes back a block that it lent under `slot`. `uses` are the operations that still use it.
    ///
    /// The lender is a pointer and not a reference, because it may end here: with its last block.
    ///
    /// # Safety
    /// Called once for each block that was lent, by the drop of its owner, which reads neither the
    /// lender nor the context afterwards.
    unsafe fn take_back(lender: NonNull<Self>, slot: u32, block: &Block, uses: Pending<B>);

    /// The same for a block that nothing uses, as most are: an empty list is not passed on.
    ///
    /// # Safety
    /// As of [`take_back`](Self::take_back).
    #[inline(always)]
    unsafe fn take_back_unused(lender: NonNull<Self>, slot: u32, block: &Block) {
        // SAFETY: the caller's promise.
        unsafe { Self::take_back(lender, slot, block, Pending::none()) }
    }

    /// [`Allocation::is_of_queue`](crate::Allocation::is_of_queue) of the larger memory, which its
    /// blocks answer too.
    fn is_of_queue(&self, slot: u32) -> bool {
        let _ = slot;
        false
    }
}

/// The uses with which a lent block begins: operations that earlier owners of its bytes left in
/// flight. Small, so that a pool's fast and slow ways meet without a copy through memory.
#[allow(missing_debug_implementations, reason = "only passed on")]
pub struct Inherited<B: Backend>(pub(crate) Uses<B>);

impl<B: Backend> Inherited<B> {
    /// None.
    #[inline(always)]
    #[must_use]
    pub const fn none() -> Self {
        Self(Uses::new())
    }

    /// Whether there are none.
    #[cfg(any(usm_valgrind, usm_asan))]
    pub fn is_empty(&self) -> bool {
        !self.0.has_inherited()
    }
}

impl<B: Backend> From<Pending<B>> for Inherited<B> {
    #[inline]
    fn from(uses: Pending<B>) -> Self {
        Self(Uses::inherited(uses))
    }
}

/// A lender of any type, and the slot of one block.
pub(crate) struct Loan<B: Backend> {
    lender: NonNull<()>,
    take_back: unsafe fn(NonNull<()>, u32, &Block, &mut Uses<B>, &Context<B>),
    slot: u32,
    pub(crate) of_queue: bool,
}

// SAFETY: lenders are `Send` and `Sync`, and take blocks back from any thread.
unsafe impl<B: Backend> Send for Loan<B> {}
// SAFETY: as above.
unsafe impl<B: Backend> Sync for Loan<B> {}

impl<B: Backend> Clone for Loan<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Loan<B> {}

impl<B: Backend> Loan<B> {
    /// # Safety
    /// `lender` is alive.
    #[inline]
    pub(crate) unsafe fn new<L: Lender<B>>(lender: NonNull<L>, slot: u32) -> Self {
        /// # Safety
        /// As of [`Lender::take_back`]; `lender` is an `L`.
        unsafe fn take_back<B: Backend, L: Lender<B>>(
            lender: NonNull<()>,
            slot: u32,
            block: &Block,
            uses: &mut Uses<B>,
            context: &Context<B>,
        ) {
            #[cfg(feature = "alloc")]
            if !L::ENDS_EXPORTS {
                context.shared().end_exports(block.address(), block.size);
            }
            if uses.is_untouched() {
                // SAFETY: the caller's promise.
                return unsafe { L::take_back_unused(lender.cast(), slot, block) };
            }
            // SAFETY: the caller's promise.
            unsafe { take_back_used::<B, L>(lender, slot, block, uses, context) }
        }

        /// Apart, because the usual return needs no room for a list of uses.
        ///
        /// # Safety
        /// As of `take_back`.
        #[inline(never)]
        unsafe fn take_back_used<B: Backend, L: Lender<B>>(
            lender: NonNull<()>,
            slot: u32,
            block: &Block,
            uses: &mut Uses<B>,
            context: &Context<B>,
        ) {
            let uses = uses.take(context.id());
            // SAFETY: the caller's promise.
            unsafe { L::take_back(lender.cast(), slot, block, uses) }
        }
        // SAFETY: the caller's promise.
        let of_queue = unsafe { lender.as_ref() }.is_of_queue(slot);
        Self { lender: lender.cast(), take_back: take_back::<B, L>, slot, of_queue }
    }

    /// # Safety
    /// As of [`Lender::take_back`].
    #[inline]
    pub(crate) unsafe fn give_back(self, block: &Block, uses: &mut Uses<B>, context: &Context<B>) {
        // SAFETY: the caller's promise; the function is the one of the lender's type.
        unsafe { (self.take_back)(self.lender, self.slot, block, uses, context) }
    }
}
