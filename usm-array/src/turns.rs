//! The turns of several blocks of memory at once.

use std::sync::{Arc, MutexGuard};

use usm_core::Result;
use usm_core::backend::Backend;

use crate::fork;
use crate::storage::{Memory, Owner, Storage};

/// The turns of all blocks, until it is dropped: meanwhile no other thread submits work on them.
pub struct Turns<'s, B: Backend, O: Owner<B>> {
    blocks: Vec<&'s Arc<Memory<B, O>>>,
    guards: Option<Guards<'s>>,
}

/// The turns, and what a fork waits for; dropped in this order.
#[expect(dead_code, reason = "kept for their drops, in this order")]
struct Guards<'s>(Vec<MutexGuard<'s, ()>>, fork::Inside<{ fork::TURNS }>);

impl<'s, B: Backend, O: Owner<B>> Turns<'s, B, O> {
    /// Each turn is taken once, in the order of addresses. A caller that holds a lock of an
    /// interpreter lets go of it first: another thread may hold a turn while it waits for a device.
    ///
    /// # Errors
    /// [`Forked`](usm_core::ErrorKind::Forked) in a child of a process in which another thread held
    /// a turn.
    pub fn of(storages: &[&'s Storage<B, O>]) -> Result<Self> {
        let mut blocks: Vec<&Arc<Memory<B, O>>> = storages.iter().map(|storage| storage.memory()).collect();
        blocks.sort_unstable_by_key(|block| Arc::as_ptr(block));
        blocks.dedup_by_key(|block| Arc::as_ptr(block));
        let guards = Some(Self::lock(&blocks)?);
        Ok(Self { blocks, guards })
    }

    fn lock(blocks: &[&'s Arc<Memory<B, O>>]) -> Result<Guards<'s>> {
        let inside = fork::enter::<{ fork::TURNS }>();
        let turns = blocks.iter().map(|block| block.turn().lock()).collect::<Result<Vec<_>>>()?;
        Ok(Guards(turns, inside))
    }

    /// Marks the blocks as those of a launch, which may release the turns in between.
    #[must_use]
    pub fn begin_launch(&self) -> LaunchMark<'s, B, O> {
        self.blocks.iter().for_each(|block| block.turn().begin_launch());
        LaunchMark(self.blocks.clone())
    }

    /// Lets others have the turns during `work`.
    ///
    /// # Errors
    /// As of [`of`](Self::of), when the turns are taken again.
    pub fn released<R>(&mut self, work: impl FnOnce() -> R) -> Result<R> {
        self.guards = None;
        let result = work();
        self.guards = Some(Self::lock(&self.blocks)?);
        Ok(result)
    }
}

impl<B: Backend, O: Owner<B>> std::fmt::Debug for Turns<'_, B, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}

/// The blocks of a launch, until it ends.
pub struct LaunchMark<'s, B: Backend, O: Owner<B>>(Vec<&'s Arc<Memory<B, O>>>);

impl<B: Backend, O: Owner<B>> Drop for LaunchMark<'_, B, O> {
    fn drop(&mut self) {
        self.0.iter().for_each(|block| block.turn().end_launch());
    }
}

impl<B: Backend, O: Owner<B>> std::fmt::Debug for LaunchMark<'_, B, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LaunchMark").field(&self.0.len()).finish()
    }
}

/// The turns of two blocks, or the one turn if they are the same. The order of addresses prevents a
/// deadlock between two copies in opposite directions.
pub(crate) fn of_two<'s, B: Backend, O: Owner<B>>(
    dst: &'s Storage<B, O>,
    src: &'s Storage<B, O>,
) -> Result<Turn<'s>> {
    let is_first = Arc::as_ptr(dst.memory()) <= Arc::as_ptr(src.memory());
    let (first, second) = if is_first { (dst, src) } else { (src, dst) };
    let mut turn = of_one(first)?;
    if !Arc::ptr_eq(first.memory(), second.memory()) {
        turn.1 = Some(second.memory().turn().lock()?);
    }
    Ok(turn)
}

pub(crate) fn of_one<B: Backend, O: Owner<B>>(storage: &Storage<B, O>) -> Result<Turn<'_>> {
    let inside = fork::enter();
    Ok(Turn(storage.memory().turn().lock()?, None, inside))
}

/// The turn of one block or of two. A fork waits until it is dropped.
#[expect(dead_code, reason = "kept for their drops, in this order")]
pub(crate) struct Turn<'s>(MutexGuard<'s, ()>, Option<MutexGuard<'s, ()>>, fork::Inside<{ fork::TURNS }>);
