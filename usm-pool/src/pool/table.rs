//! The descriptors of all blocks of a pool, at places that never change: whoever holds a block
//! reads and writes its descriptor without the space's lock.
//!
//! A descriptor has three holders, one at a time: the space, under its lock; a cache, whose turn is
//! held; an owner. It is handed over with the lock or the turn, which order its plain accesses. A
//! report may read it meanwhile, so every field is atomic.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::space::{Order, State, Travel};
use crate::sync::Mutex;

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// A number that one thread writes at a time and any thread may read.
#[derive(Debug, Default)]
pub(crate) struct Num32(AtomicU32);

impl Num32 {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The same with 64 bits on every target.
#[cfg(target_has_atomic = "64")]
#[derive(Debug, Default)]
pub(crate) struct Num64(core::sync::atomic::AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Num64 {
    pub(crate) const fn new(value: u64) -> Self {
        Self(core::sync::atomic::AtomicU64::new(value))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds for several threads; the sum may wrap. Returns what was there.
    pub(crate) fn add_shared(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    /// Raises the number for several threads.
    pub(crate) fn raise_shared(&self, to: u64) {
        self.0.fetch_max(to, Ordering::Relaxed);
    }
}

#[cfg(not(target_has_atomic = "64"))]
#[derive(Debug, Default)]
pub(crate) struct Num64(spin::Mutex<u64>);

#[cfg(not(target_has_atomic = "64"))]
impl Num64 {
    pub(crate) const fn new(value: u64) -> Self {
        Self(spin::Mutex::new(value))
    }

    pub(crate) fn get(&self) -> u64 {
        *self.0.lock()
    }

    pub(crate) fn set(&self, value: u64) {
        *self.0.lock() = value;
    }

    pub(crate) fn add_shared(&self, more: u64) -> u64 {
        let mut value = self.0.lock();
        let sum = value.wrapping_add(more);
        core::mem::replace(&mut *value, sum)
    }

    pub(crate) fn raise_shared(&self, to: u64) {
        let mut value = self.0.lock();
        *value = to.max(*value);
    }
}

impl Num64 {
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }
}

/// The descriptor of a block, outside of the memory. Two threads write no common line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Block {
    pub(crate) address: Num64,
    pub(crate) size: Num64,
    /// Bytes that the owner asked for; 0 while there is none.
    pub(crate) bytes: Num64,
    /// The number of the allocation, from 1.
    pub(crate) id: Num64,
    /// How its unfinished operations are ordered, which the table has.
    order: Num64,
    /// The tag of a live block. Of one in a list of the space the block before it.
    pub(crate) tag: Num32,
    /// The next block of a list, of a cache's or of the space.
    pub(crate) next: Num32,
    /// Neighbours by address in the segment.
    pub(crate) before: Num32,
    pub(crate) after: Num32,
    pub(crate) segment: Num32,
    state: Num32,
}

impl Block {
    fn vacant() -> Self {
        Self {
            address: Num64::new(0),
            size: Num64::new(0),
            bytes: Num64::new(0),
            id: Num64::new(0),
            order: Num64::new(Order::Idle.code()),
            tag: Num32::new(0),
            next: Num32::new(NONE),
            before: Num32::new(NONE),
            after: Num32::new(NONE),
            segment: Num32::new(0),
            state: Num32::new(State::Vacant as u32),
        }
    }

    /// The block before this one in a list of the space.
    pub(crate) fn previous(&self) -> &Num32 {
        &self.tag
    }

    pub(crate) fn state(&self) -> State {
        State::of(self.state.get())
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.set(state as u32);
    }

    #[inline(always)]
    pub(crate) fn order(&self) -> Order {
        Order::of_code(self.order.get())
    }

    /// Whether no unfinished operations are known.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.order.get() == Order::Idle.code()
    }

    /// Whether an operation of the queue with this code may use the bytes at once.
    #[inline(always)]
    pub(crate) fn is_ready_for(&self, queue: u64) -> bool {
        let order = self.order.get();
        order == Order::Idle.code() || order == queue
    }

    /// Whether an owner has the block.
    pub(crate) fn is_live(&self) -> bool {
        self.state() == State::Out && self.bytes.get() != 0
    }
}

/// Descriptors of the first chunk. Each later chunk has as many as all before it.
const FIRST: u32 = 64;
const CHUNKS: usize = 26;

const fn len_of(chunk: usize) -> usize {
    (FIRST as usize) << chunk
}

/// Null, or the values of one chunk, which the list owns and never moves.
type Chunk<T> = AtomicPtr<T>;

/// A list that grows by chunks.
#[derive(Debug)]
struct Chunks<T>([Chunk<T>; CHUNKS], PhantomData<Box<[T]>>);

impl<T> Chunks<T> {
    const fn new() -> Self {
        Self([const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS], PhantomData)
    }

    #[inline(always)]
    fn get(&self, slot: u32) -> Option<&T> {
        let (chunk, index) = place(slot);
        let first = self.0.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: `place` keeps the index below the length of the chunk.
        let value = unsafe { first.add(index) };
        // SAFETY: the chunk lives as long as the list.
        Some(unsafe { &*value })
    }

    /// Makes sure that the list has this number. Only one thread at a time calls it.
    fn extend_to(&self, slot: u32, make: impl Fn() -> T) {
        let (chunk, _) = place(slot);
        let Some(of_slot) = self.0.get(chunk) else { return };
        if of_slot.load(Ordering::Relaxed).is_null() {
            let new: Box<[T]> = (0..len_of(chunk)).map(|_| make()).collect();
            of_slot.store(Box::into_raw(new).cast(), Ordering::Release);
        }
    }
}

impl<T> Drop for Chunks<T> {
    fn drop(&mut self) {
        for (number, chunk) in self.0.iter_mut().enumerate() {
            let first = *chunk.get_mut();
            if !first.is_null() {
                let all = core::ptr::slice_from_raw_parts_mut(first, len_of(number));
                // SAFETY: made of a box of this length by `extend_to`; nothing borrows the list.
                drop(unsafe { Box::from_raw(all) });
            }
        }
    }
}

#[derive(Debug)]
struct Lists<U> {
    blocks: Chunks<Block>,
    /// The unfinished operations of blocks, in chunks that the first block with any makes: memory
    /// of the host has none. A lock is never waited for: only the block's holder takes it.
    uses: Chunks<Mutex<U>>,
    extension: Mutex<()>,
}

/// The descriptors by number.
#[derive(Debug)]
pub(crate) struct Table<U>(Arc<Lists<U>>);

impl<U> Clone for Table<U> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[inline(always)]
fn place(slot: u32) -> (usize, usize) {
    let number = slot.saturating_add(FIRST);
    let chunk = number.ilog2() - FIRST.ilog2();
    (chunk as usize, (number - (FIRST << chunk)) as usize)
}

impl<U: Travel> Table<U> {
    pub(crate) fn new() -> Self {
        let (blocks, uses, extension) = (Chunks::new(), Chunks::new(), Mutex::new(()));
        Self(Arc::new(Lists { blocks, uses, extension }))
    }

    /// The descriptor of a number that the table has.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u32) -> Option<&Block> {
        self.0.blocks.get(slot)
    }

    /// Makes sure that the table has this number. Only the holder of the space's lock calls it.
    pub(crate) fn extend_to(&self, slot: u32) {
        self.0.blocks.extend_to(slot, Block::vacant);
    }

    /// The unfinished operations of a block, which leave it.
    #[inline(always)]
    pub(crate) fn take_uses(&self, slot: u32) -> U {
        match self.get(slot) {
            Some(block) if !block.is_idle() => self.take_some(slot, block),
            _ => U::NONE,
        }
    }

    #[inline(never)]
    fn take_some(&self, slot: u32, block: &Block) -> U {
        block.order.set(Order::Idle.code());
        let uses = self.0.uses.get(slot);
        uses.map_or(U::NONE, |uses| core::mem::replace(&mut *uses.lock(), U::NONE))
    }

    /// Sets the unfinished operations of a block without any.
    #[inline(always)]
    pub(crate) fn set_uses(&self, slot: u32, uses: U) {
        let order = uses.order();
        if order != Order::Idle {
            self.set_some(slot, uses, order);
        }
    }

    #[inline(never)]
    fn set_some(&self, slot: u32, uses: U, order: Order) {
        if self.0.uses.get(slot).is_none() {
            let _guard = self.0.extension.lock();
            self.0.uses.extend_to(slot, || Mutex::new(U::NONE));
        }
        if let Some((block, place)) = self.get(slot).zip(self.0.uses.get(slot)) {
            block.order.set(order.code());
            *place.lock() = uses;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_chunks_in_order() {
        let mut expected = (0, 0);
        for slot in 0..10_000 {
            assert_eq!(place(slot), expected);
            expected.1 += 1;
            if expected.1 == (FIRST as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }
}
