//! Queues over immediate command lists.
//!
//! A list may run its commands in any order. In an in-order queue every operation waits for the
//! event of the previous one, or the queue uses an in-order list if the driver has counting events
//! for it.
//!
//! A queue keeps the events of its operations, and those that they wait for, until it has found
//! them complete (`work.rs`). A queue dropped before that leaves both to the context.

use alloc::sync::Arc;
use core::mem::ManuallyDrop;

use level_zero_sys::*;

use crate::event::{Events, LevelZeroEvent, NO_EVENTS};
use crate::memory::LevelZeroContext;
use crate::work::{self, List};
use crate::{LevelZero, error};
use usm_core::Result;
use usm_core::backend::{Advice, MemAdvice, QueueOps, QueueOrder, Rows};
#[cfg(feature = "kernel")]
use usm_core::backend::{Conversion, StridedCopy};
use usm_core::driver::process;
use usm_core::driver::sync::sleeping::Mutex;
#[cfg(feature = "kernel")]
use usm_kernel::backend::driver::StridedCopies;

/// A queue that keeps more events than this removes finished ones.
const SWEEP_ABOVE: usize = 32;

/// A queue: an immediate command list.
#[derive(Clone, Debug)]
pub struct LevelZeroQueue(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    context: LevelZeroContext,
    order: QueueOrder,
    /// Whether the list is an in-order list.
    is_ordered: bool,
    events: Arc<Events>,
    list: ManuallyDrop<List>,
    /// Held during each call, because a list takes one thread at a time and the order of the calls
    /// is the queue's order.
    work: Mutex<Work>,
    #[cfg(feature = "kernel")]
    copies: StridedCopies<LevelZero>,
}

/// The list of a command, the event that it signals and the events that it waits for.
pub(super) struct Command<'c> {
    pub(super) functions: &'c Functions,
    pub(super) list: ze_command_list_handle_t,
    pub(super) signal: ze_event_handle_t,
    pub(super) count: u32,
    pub(super) waits: *mut ze_event_handle_t,
}

/// The unfinished work of a queue, with the driver's types.
pub(super) type Work = super::work::Work<LevelZeroEvent, ze_event_handle_t>;

/// A dropped queue, with the driver's types.
pub(super) type DroppedQueue = work::DroppedQueue<List, LevelZeroEvent, ze_event_handle_t>;

pub(super) type Answer = core::result::Result<ze_result_t, Error>;

impl LevelZeroQueue {
    pub(super) fn create(context: &LevelZeroContext, order: QueueOrder) -> Result<Self> {
        context.dropped_queues().collect(drop);
        let counting_events = context.counting().filter(|_| order == QueueOrder::InOrder);
        let is_ordered = counting_events.is_some();
        let events = counting_events.unwrap_or(context.pooled());
        let native = context.native();
        let description = ze_command_queue_desc_t {
            ordinal: context.device().engine.ordinal,
            mode: ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            flags: if is_ordered { ZE_COMMAND_QUEUE_FLAG_IN_ORDER } else { ze_command_queue_flags_t(0) },
            ..Default::default()
        };
        let mut raw = ze_command_list_handle_t::NULL;
        // SAFETY: a live context and a device of it, space for the value.
        unsafe {
            native.functions().zeCommandListCreateImmediate(
                native.context(),
                native.device(),
                &raw const description,
                &raw mut raw,
            )
        }
        .map_err(error::call)?;
        let list = List { raw, native: Arc::clone(native), is_owned: true };
        Ok(Self::from_list(context, order, is_ordered, events, list))
    }

    /// Wraps a foreign list, which is not destroyed.
    ///
    /// # Safety
    /// `list` is a live immediate list of `context`, an in-order list if `order` says so, that
    /// outlives the queue, its clones and its work.
    pub(super) unsafe fn borrowing(
        context: &LevelZeroContext,
        list: ze_command_list_handle_t,
        order: QueueOrder,
    ) -> Self {
        let list = List { raw: list, native: Arc::clone(context.native()), is_owned: false };
        Self::from_list(context, order, order == QueueOrder::InOrder, context.pooled(), list)
    }

    fn from_list(
        context: &LevelZeroContext,
        order: QueueOrder,
        is_ordered: bool,
        events: &Arc<Events>,
        list: List,
    ) -> Self {
        let (context, events) = (context.clone(), Arc::clone(events));
        let (list, work) = (ManuallyDrop::new(list), Mutex::new(Work::new()));
        #[cfg(feature = "kernel")]
        let copies = context.strided_copies();
        let inner = Arc::new(Inner {
            context,
            order,
            is_ordered,
            events,
            list,
            work,
            #[cfg(feature = "kernel")]
            copies,
        });
        inner.context.queue_list().insert(&inner);
        Self(inner)
    }

    pub(super) fn handle(&self) -> ze_command_list_handle_t {
        self.0.list.raw
    }

    /// As [`Inner::submit`].
    pub(super) fn submit(
        &self,
        after: &[LevelZeroEvent],
        append: impl FnOnce(&Command<'_>) -> Answer,
    ) -> Result<LevelZeroEvent> {
        self.0.submit(after, append)
    }
}

impl QueueOps<LevelZero> for LevelZeroQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        let (dst, src) = (dst.cast(), src.cast());
        self.0.submit(after, |&Command { functions, list, signal, count, waits }| {
            // SAFETY: the caller's promise for the ranges; the command lives during the call.
            unsafe { functions.zeCommandListAppendMemoryCopy(list, dst, src, len, signal, count, waits) }
        })
    }

    #[cfg(feature = "kernel")]
    unsafe fn copy_strided(
        &self,
        copy: &StridedCopy<'_>,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.copy(&self.0.context, self, copy, after) }
    }

    #[cfg(feature = "kernel")]
    unsafe fn convert(
        &self,
        conversion: &Conversion<'_>,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.convert(&self.0.context, self, conversion, after) }
    }

    unsafe fn copy_rows(&self, rows: &Rows, after: &[LevelZeroEvent]) -> Result<LevelZeroEvent> {
        let numbers = [rows.width, rows.rows, rows.dst_pitch, rows.src_pitch].map(u32::try_from);
        let [Ok(width), Ok(height), Ok(dst_pitch), Ok(src_pitch)] = numbers else {
            return Err(error::unsupported("a copy of rows with these numbers"));
        };
        // Two dimensions: one slice.
        let region = ze_copy_region_t { width, height, ..Default::default() };
        let outcome = self.0.submit(after, |to| {
            // SAFETY: the caller's promise for every row; the regions are read before the call
            // returns; the command lives during the call.
            unsafe {
                to.functions.zeCommandListAppendMemoryCopyRegion(
                    to.list,
                    rows.dst.cast(),
                    &raw const region,
                    dst_pitch,
                    0,
                    rows.src.cast(),
                    &raw const region,
                    src_pitch,
                    0,
                    to.signal,
                    to.count,
                    to.waits,
                )
            }
        });
        outcome.map_err(|error| match error.native {
            Some(code) if code == i64::from(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE.0) => {
                error::unsupported("a copy of rows")
            }
            _ => error,
        })
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        if pattern.len() > self.0.context.device().engine.max_pattern {
            return Err(error::unsupported("a fill with a pattern of this width"));
        }
        let (dst, value, width) = (dst.cast(), pattern.as_ptr().cast(), pattern.len());
        self.0.submit(after, |&Command { functions, list, signal, count, waits }| {
            // SAFETY: the caller's promise for the range; the pattern is read before the call
            // returns; the command lives during the call.
            unsafe {
                functions.zeCommandListAppendMemoryFill(list, dst, value, width, len, signal, count, waits)
            }
        })
    }

    unsafe fn barrier(&self, after: &[LevelZeroEvent]) -> Result<LevelZeroEvent> {
        self.0.end_event(after)
    }
}

impl Advice<Self> for LevelZero {
    unsafe fn prefetch(
        queue: &LevelZeroQueue,
        pointer: *const u8,
        len: usize,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        queue.0.hint("prefetch", after, |functions, list| {
            // SAFETY: the caller's promise.
            unsafe { functions.zeCommandListAppendMemoryPrefetch(list, pointer.cast(), len) }
        })
    }

    unsafe fn advise(
        queue: &LevelZeroQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[LevelZeroEvent],
    ) -> Result<LevelZeroEvent> {
        let steps: &[ze_memory_advice_t] = match advice {
            MemAdvice::Reset => {
                &[ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY, ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION]
            }
            MemAdvice::ReadMostly => &[ZE_MEMORY_ADVICE_SET_READ_MOSTLY],
            MemAdvice::PreferDevice => &[ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION],
            MemAdvice::PreferHost => &[ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION],
            _ => return Err(error::unsupported("this memory advice")),
        };
        let device = queue.0.context.native().device();
        queue.0.hint("memory advice", after, |functions, list| {
            let mut answer = Ok(ZE_RESULT_SUCCESS);
            for (index, step) in steps.iter().enumerate() {
                // SAFETY: the caller's promise.
                let code = unsafe {
                    functions.zeCommandListAppendMemAdvise(list, device, pointer.cast(), len, *step)
                };
                // After the first hint was appended, a refused one only loses that hint.
                if index == 0 {
                    answer = code;
                }
                if code.is_err() {
                    break;
                }
            }
            answer
        })
    }
}

impl Inner {
    /// Whether the next operation must wait for the previous one.
    fn follows(&self) -> bool {
        self.order == QueueOrder::InOrder && !self.is_ordered
    }

    /// Appends by `append`, which passes list, event and wait list, all of them live during the
    /// call, to one append function and proves that call. If it appends nothing, the event is never
    /// signalled, and a wait for it times out.
    fn submit(
        &self,
        after: &[LevelZeroEvent],
        append: impl FnOnce(&Command<'_>) -> Answer,
    ) -> Result<LevelZeroEvent> {
        let mut work = self.work.lock();
        let event = self.prepare(&mut work, after)?;
        let outcome =
            work.append(&event, after, self.follows(), LevelZeroEvent::handle_to_wait_for, |waits| {
                append(&Command {
                    functions: self.list.native.functions(),
                    list: self.list.raw,
                    signal: event.handle(),
                    count: waits.len() as u32,
                    waits: waits.as_mut_ptr(),
                })
            });
        outcome.map(|_| event).map_err(error::call)
    }

    /// Appends commands without events, between a barrier that waits and a barrier that signals.
    fn hint(
        &self,
        operation: &'static str,
        after: &[LevelZeroEvent],
        append: impl FnOnce(&Functions, ze_command_list_handle_t) -> Answer,
    ) -> Result<LevelZeroEvent> {
        let mut work = self.work.lock();
        let event = self.prepare(&mut work, after)?;
        let (functions, list) = (self.list.native.functions(), self.list.raw);
        // A refused hint after the first barrier is no error of the operation.
        let outcome =
            work.append(&event, after, self.follows(), LevelZeroEvent::handle_to_wait_for, |waits| {
                let (count, waits) = (waits.len() as u32, waits.as_mut_ptr());
                if count > 0 {
                    let no_event = ze_event_handle_t::NULL;
                    // SAFETY: a live list, live events.
                    unsafe { functions.zeCommandListAppendBarrier(list, no_event, count, waits) }
                        .map_err(error::call)?;
                }
                let hint_outcome = append(functions, list).map_err(|error| error::optional(operation, error));
                if count == 0 && hint_outcome.is_err() {
                    return hint_outcome.map(Ok);
                }
                // SAFETY: a live list, an unsignalled event.
                let signal_outcome =
                    unsafe { functions.zeCommandListAppendBarrier(list, event.handle(), 0, NO_EVENTS) };
                if let Err(error) = signal_outcome {
                    event.fail(&error);
                }
                Ok(hint_outcome)
            });
        outcome?.map(|_| event)
    }

    /// An event for the next operation, or the error of an operation that it would follow.
    fn prepare(&self, work: &mut Work, after: &[LevelZeroEvent]) -> Result<LevelZeroEvent> {
        if work.kept_events() > SWEEP_ABOVE {
            work.sweep();
        }
        let before = work.last().filter(|_| self.order == QueueOrder::InOrder);
        after.iter().chain(before).try_for_each(LevelZeroEvent::check)?;
        self.events.take()
    }

    /// An event after `after` or, if it is empty, after everything in the list.
    pub(super) fn end_event(&self, after: &[LevelZeroEvent]) -> Result<LevelZeroEvent> {
        self.submit(after, |&Command { functions, list, signal, count, waits }| {
            // SAFETY: a live list and live events; a barrier accesses no memory.
            unsafe { functions.zeCommandListAppendBarrier(list, signal, count, waits) }
        })
    }

    /// An event after everything in the queue; `None` if all is complete.
    pub(super) fn unfinished(&self) -> Result<Option<LevelZeroEvent>> {
        let mut work = self.work.lock();
        work.sweep();
        match (work.last(), self.order) {
            _ if work.kept_events() == 0 => Ok(None),
            (Some(last), QueueOrder::InOrder) => Ok(Some(last.clone())),
            _ => {
                drop(work);
                self.end_event(&[]).map(Some)
            }
        }
    }
}

impl Drop for Inner {
    /// A queue's work outlives it, so the context keeps the events to wait for.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let last = self.unfinished().unwrap_or_else(|error| {
            Some(LevelZeroEvent::unknown(self.list.native.functions(), error.native))
        });
        let work = core::mem::replace(self.work.get_mut(), Work::new());
        // SAFETY: the queue ends here and does not use its list afterwards.
        let list = unsafe { ManuallyDrop::take(&mut self.list) };
        let queue_list = self.context.queue_list();
        if last.is_some() {
            let operations = work.operations();
            self.context.dropped_queues().push(DroppedQueue { work, list }, operations);
            self.context.dropped_queues().collect(drop);
        }
        queue_list.remove(self, Ok(last));
    }
}
