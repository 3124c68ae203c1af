//! The parts of a copy through the ring: which thread copies which, and whose turn each block is.

use alloc::vec::Vec;
use core::hint::spin_loop;
use core::slice;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use super::Process;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::stores;

/// Time that a thread stays awake for a block. Then it sleeps for [`PAUSE`] at a time.
const AWAKE: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(50);

/// Part number `k` goes through block `k` modulo the number of blocks. Each block is the threads'
/// and the device's in turns: its stage counts the turns that have ended.
pub(super) struct Parts<'p> {
    process: Process<'p>,
    blocks: Vec<*mut u8>,
    stages: Vec<AtomicUsize>,
    len: usize,
    /// Bytes of a part.
    part: usize,
    /// The first part that no thread has taken.
    next: AtomicUsize,
    /// Bytes of the parts that are complete.
    copied_bytes: AtomicUsize,
    has_failed: AtomicBool,
    helpers: AtomicUsize,
}

// SAFETY: a block is accessed by the thread whose part it has and whose turn it is, and the bytes
// of the process by the thread that took their part.
unsafe impl Sync for Parts<'_> {}

/// A part: its number, start and length in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    number: usize,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Makes the threads end, also in a panic.
pub(super) struct FailOnDrop<'p>(pub(super) &'p Parts<'p>);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

impl<'p> Parts<'p> {
    pub(super) fn new<B: Backend>(
        blocks: &[Allocation<B>],
        process: Process<'p>,
        len: usize,
        part: usize,
    ) -> Self {
        Self {
            process,
            stages: blocks.iter().map(|_| AtomicUsize::new(0)).collect(),
            blocks: blocks.iter().map(Allocation::as_ptr).collect(),
            len,
            part,
            next: AtomicUsize::new(0),
            copied_bytes: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            helpers: AtomicUsize::new(0),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.len.div_ceil(self.part)
    }

    pub(super) fn is_up(&self) -> bool {
        !matches!(self.process, Process::Target(_))
    }

    pub(super) fn at(&self, number: usize) -> Part {
        let start = number * self.part;
        Part { number, start, len: self.part.min(self.len - start) }
    }

    pub(super) fn copied(&self) -> usize {
        self.copied_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn count_copied(&self, part: Part) {
        self.copied_bytes.fetch_add(part.len, Ordering::Relaxed);
    }

    /// Makes the threads end.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(super) fn has_helpers(&self) -> bool {
        self.helpers.load(Ordering::Relaxed) > 0
    }

    /// The number of the block of a part.
    pub(super) fn block_of(&self, part: Part) -> usize {
        part.number % self.blocks.len()
    }

    /// Whether it is the device's turn with a part.
    pub(super) fn is_devices(&self, part: Part) -> bool {
        self.has_stage(part, usize::from(self.is_up()))
    }

    fn is_threads(&self, part: Part) -> bool {
        self.has_stage(part, usize::from(!self.is_up()))
    }

    fn has_stage(&self, part: Part, turn: usize) -> bool {
        let rounds = part.number / self.blocks.len();
        self.stages[self.block_of(part)].load(Ordering::Acquire) == 2 * rounds + turn
    }

    /// Ends a turn with a part.
    pub(super) fn hand_over(&self, part: Part) {
        self.stages[self.block_of(part)].fetch_add(1, Ordering::Release);
    }

    /// The work of a helping thread.
    pub(super) fn work(&self) {
        self.helpers.fetch_add(1, Ordering::Relaxed);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count() || self.has_failed() || !self.wait_for(self.at(number)) {
                break;
            }
            self.copy(self.at(number));
        }
        self.helpers.fetch_sub(1, Ordering::Relaxed);
    }

    /// The work of the calling thread on one part, if there is one for which it need not wait.
    pub(super) fn try_work(&self) -> bool {
        let number = self.next.load(Ordering::Relaxed);
        let is_taken = number < self.count()
            && !self.has_failed()
            && self.is_threads(self.at(number))
            && self.next.compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_taken {
            self.copy(self.at(number));
        }
        is_taken
    }

    /// Waits until the threads have the turn; false once the copy has failed.
    fn wait_for(&self, part: Part) -> bool {
        let (mut start, mut queries) = (None, 0_u32);
        while !self.is_threads(part) {
            if self.has_failed() {
                return false;
            }
            queries += 1;
            if queries % 64 != 0 {
                spin_loop();
            } else if start.get_or_insert_with(Instant::now).elapsed() < AWAKE {
                thread::yield_now();
            } else {
                thread::sleep(PAUSE);
            }
        }
        true
    }

    /// Copies a part between the process and its block. It is this thread's, and the threads' turn.
    fn copy(&self, part: Part) {
        let block = self.blocks[self.block_of(part)];
        match self.process {
            Process::Source(from) => {
                // SAFETY: a part of the live source, and a block that is this thread's now.
                unsafe { block.copy_from_nonoverlapping(from.wrapping_add(part.start), part.len) };
            }
            Process::Fill(fill) => {
                // SAFETY: a block that is this thread's now, of at least this many bytes.
                let room = unsafe { slice::from_raw_parts_mut(block.cast(), part.len) };
                // Also after a panic the other threads do not wait for this part.
                let fail = FailOnDrop(self);
                if !fill(part.start, room) {
                    return;
                }
                core::mem::forget(fail);
            }
            Process::Target(to) => {
                // SAFETY: a part of the live target, and a block that is this thread's now and that
                // the device has written.
                unsafe { stores::copy(to.wrapping_add(part.start), block, part.len) };
                self.count_copied(part);
            }
        }
        self.hand_over(part);
    }
}
