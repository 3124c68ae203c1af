//! The driver's calls of a copy through the ring, all of one thread: calls of several wait for each
//! other's locks in the driver, longer than the copies take.

use alloc::collections::VecDeque;
use core::hint::spin_loop;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use super::parts::{FailOnDrop, Part, Parts};
use crate::allocation::Allocation;
use crate::backend::{Backend, EventStatus, QueueOps as _};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::queue::{Queue, Usage};

/// Time without progress after which the calling thread copies parts too.
const HELPED: Duration = Duration::from_micros(200);
/// Time without progress after which it no longer stays awake.
const AWAKE: Duration = Duration::from_millis(1);

pub(super) struct Transfer<'t, B: Backend> {
    queue: &'t Queue<B>,
    device: &'t Allocation<B>,
    offset: usize,
    blocks: &'t [Allocation<B>],
    parts: &'t Parts<'t>,
    submit_count: usize,
    /// Submitted copies that are not known to be complete.
    flight: VecDeque<(Event<B>, Part)>,
    /// The event of the last copy.
    pub(super) last: Option<Event<B>>,
    pub(super) error: Option<Error>,
}

impl<'t, B: Backend> Transfer<'t, B> {
    pub(super) fn new(
        queue: &'t Queue<B>,
        device: &'t Allocation<B>,
        offset: usize,
        blocks: &'t [Allocation<B>],
        parts: &'t Parts<'t>,
    ) -> Self {
        let flight = VecDeque::with_capacity(blocks.len());
        Self { queue, device, offset, blocks, parts, submit_count: 0, flight, last: None, error: None }
    }

    /// Submits all parts, and waits for them if told to. Does nothing in a second call.
    pub(super) fn drive(&mut self, waits: bool) {
        if self.error.is_some() {
            return;
        }
        // Also after a panic the other threads do not wait for this one.
        let fail = FailOnDrop(self.parts);
        match self.submit_all(waits) {
            Ok(()) => core::mem::forget(fail),
            Err(error) => self.error = Some(error),
        }
    }

    fn submit_all(&mut self, must_wait: bool) -> Result<()> {
        let (parts, count) = (self.parts, self.parts.count());
        let waits = must_wait || !parts.is_up();
        let mut progress = Instant::now();
        while self.submit_count < count || (waits && !self.flight.is_empty()) {
            if parts.has_failed() {
                // Nothing fills the rest. What was submitted is the device's until it has ended.
                return self.flight.drain(..).try_for_each(|(event, _)| event.wait());
            }
            if self.submit_next(count)? || self.take_complete()? {
                progress = Instant::now();
                continue;
            }
            let idle = progress.elapsed();
            if (idle > HELPED || !parts.has_helpers()) && parts.try_work() {
                progress = Instant::now();
            } else if idle < AWAKE {
                spin_loop();
            } else if let Some((event, _)) = self.flight.front() {
                event.wait()?;
            } else {
                thread::yield_now();
            }
        }
        // What the device has written and nobody has taken.
        while parts.try_work() {}
        Ok(())
    }

    /// Submits the next part if it is the device's turn with its block.
    fn submit_next(&mut self, count: usize) -> Result<bool> {
        if self.submit_count == count {
            return Ok(false);
        }
        let part = self.parts.at(self.submit_count);
        if !self.parts.is_devices(part) {
            return Ok(false);
        }
        let block = &self.blocks[self.parts.block_of(part)];
        let device = (self.device.as_ptr().wrapping_add(self.offset + part.start), self.device);
        let block = (block.as_ptr(), block);
        let ((to, to_of), (from, from_of)) =
            if self.parts.is_up() { (device, block) } else { (block, device) };
        let usages = [Usage::write(to_of), Usage::read(from_of)];
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: a part of the device's memory and a block that is the device's now: live,
            // apart, and ordered by the usages.
            unsafe { queue.copy(to, from, part.len, after) }
        };
        // SAFETY: the copy accesses what the usages declare, and the caller has exclusive access to
        // the destination.
        let event = unsafe { self.queue.submit(&usages, &[], copy) }?;
        self.last = Some(event.clone());
        self.flight.push_back((event, part));
        self.submit_count += 1;
        Ok(true)
    }

    /// Hands the block of the first copy in flight over, if that is complete.
    fn take_complete(&mut self) -> Result<bool> {
        let Some((event, part)) = self.flight.front() else { return Ok(false) };
        if event.status()? != EventStatus::Complete {
            return Ok(false);
        }
        if self.parts.is_up() {
            self.parts.count_copied(*part);
        }
        self.parts.hand_over(*part);
        self.flight.pop_front();
        Ok(true)
    }
}
