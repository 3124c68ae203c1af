//! Queues over streams.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use core::time::Duration;
use std::sync::OnceLock;

use crate::event::{CudaEvent, Events, SubmitOutcome};
use crate::memory::CudaContext;
use crate::native::Current;
use crate::table::{Code, Raw};
use crate::{Cuda, error, pool};
use usm_core::backend::{Advice, ContextOps, EventOps, MemAdvice, QueueOps, QueueOrder, Rows};
#[cfg(feature = "kernel")]
use usm_core::backend::{Conversion, StridedCopy};
use usm_core::driver::process;
use usm_core::driver::queue_list::QueueList;
use usm_core::driver::sync::{AtomicUsize, Ordering};
use usm_core::{AllocKind, ErrorKind, Result};
#[cfg(feature = "kernel")]
use usm_kernel::backend::driver::StridedCopies;

/// Streams are in order. An out-of-order queue distributes its work over this many.
const STREAMS_OUT_OF_ORDER: usize = 4;
/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`: no order against the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// `CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all known devices.
const MOST_PITCH: usize = i32::MAX as usize;
/// The highest handle of a default stream: 0, `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD` and their
/// twins.
const MOST_DEFAULT: usize = 2;
/// `CU_DEVICE_CPU`, `hipCpuDeviceId`.
const CPU: i32 = -1;

/// A queue: one stream when in order, several when out of order.
#[derive(Clone, Debug)]
pub struct CudaQueue(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    context: CudaContext,
    streams: Vec<Stream>,
    next: AtomicUsize,
    /// Set once an operation of an in-order queue has an unknown outcome. Later operations then
    /// fail, because their own events would not report it. A fault at run time poisons the whole
    /// context in CUDA.
    unknown_outcome: OnceLock<(&'static str, Code)>,
    #[cfg(feature = "kernel")]
    copies: StridedCopies<Cuda>,
}

/// The queues of a context, and its work in flight.
pub(super) type Queues = QueueList<Inner, CudaEvent>;

impl pool::Work for Queues {
    fn synchronize(&self, limit: Duration) -> Result<()> {
        self.synchronize(limit, |queue| queue.event_after(&[]))
    }
}

/// A `CUstream` or `hipStream_t`, destroyed with its last owner; its work still runs to the end.
#[derive(Debug)]
pub(super) struct Stream {
    raw: Raw,
    events: Arc<Events>,
    is_owned: bool,
}

// SAFETY: any thread may use the driver's handles while the context is current, which every call
// ensures.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    fn create(events: &Arc<Events>, _: &Current) -> Result<Self> {
        let (mut raw, driver) = (ptr::null_mut(), events.native().driver());
        // SAFETY: the context is current, space for the value.
        let code = unsafe { (driver.create_stream)(&raw mut raw, NON_BLOCKING) };
        driver.check(driver.names().create_stream, code)?;
        Ok(Self { raw, events: Arc::clone(events), is_owned: true })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Whether the stream's handle determines the context. It does, except for the handles of
    /// default streams.
    fn determines_context(&self) -> bool {
        self.is_owned || self.raw.addr() > MOST_DEFAULT
    }

    fn wait(&self, event: &CudaEvent, _: &Current) -> Result<()> {
        event.status()?;
        let driver = self.events.native().driver();
        // SAFETY: live stream and event, of one context.
        let code = unsafe { (driver.stream_wait)(self.raw, event.handle(), 0) };
        driver.check(driver.names().stream_wait, code)
    }

    #[inline(never)]
    fn wait_for(&self, events: &[CudaEvent], current: &Current) -> Result<()> {
        events.iter().try_for_each(|event| self.wait(event, current))
    }

    /// An event after everything submitted to the stream up to the end of `work`.
    #[inline]
    fn record(&self, work: impl FnOnce() -> SubmitOutcome) -> Result<CudaEvent> {
        self.events.record(self.raw, work)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        if self.is_owned {
            // SAFETY: owned, destroyed once; the driver finishes its work first. A failure has no
            // remedy.
            let _ = unsafe { (self.events.native().driver().destroy_stream)(self.raw) };
        }
    }
}

impl CudaQueue {
    /// A queue whose streams take their events from `events`, which are of the context.
    pub(super) fn create(context: &CudaContext, order: QueueOrder, events: &Arc<Events>) -> Result<Self> {
        let current = context.make_current()?;
        let count = match order {
            QueueOrder::InOrder => 1,
            QueueOrder::OutOfOrder => STREAMS_OUT_OF_ORDER,
        };
        let streams: Vec<_> = (0..count).map(|_| Stream::create(events, &current)).collect::<Result<_>>()?;
        events.record_zero_time(streams[0].raw)?;
        Ok(Self::from_streams(context, streams))
    }

    /// Wraps a borrowed foreign stream, which is not destroyed.
    ///
    /// # Safety
    /// `stream` is a live stream of the native context behind `context`, and outlives the queue,
    /// its clones, its work, and all memory that was allocated from it.
    pub(super) unsafe fn borrowing(context: &CudaContext, stream: Raw) -> Self {
        let stream = Stream { raw: stream, events: Arc::clone(context.events()), is_owned: false };
        Self::from_streams(context, alloc::vec![stream])
    }

    fn from_streams(context: &CudaContext, streams: Vec<Stream>) -> Self {
        let inner = Inner {
            context: context.clone(),
            streams,
            next: AtomicUsize::new(0),
            unknown_outcome: OnceLock::new(),
            #[cfg(feature = "kernel")]
            copies: context.strided_copies(),
        };
        let inner = Arc::new(inner);
        context.queue_list().insert(&inner);
        Self(inner)
    }

    pub(super) fn context(&self) -> &CudaContext {
        &self.0.context
    }

    /// The stream of an in-order queue; otherwise the first of several.
    pub(super) fn first_stream(&self) -> Raw {
        self.0.streams[0].raw
    }

    /// Submits by `call`, which gets a stream that waits for `after`.
    #[inline]
    pub(super) fn submit(
        &self,
        operation: &'static str,
        after: &[CudaEvent],
        call: impl FnOnce(Raw) -> Code,
    ) -> Result<CudaEvent> {
        self.submit_calls(after, |stream| match call(stream) {
            error::SUCCESS => SubmitOutcome::All,
            code => SubmitOutcome::Nothing(operation, code),
        })
    }

    /// As [`submit`](Self::submit), for an operation of several calls.
    #[inline]
    pub(super) fn submit_calls(
        &self,
        after: &[CudaEvent],
        calls: impl FnOnce(Raw) -> SubmitOutcome,
    ) -> Result<CudaEvent> {
        self.0.check()?;
        let current = self.0.context.make_current()?;
        let stream = self.0.next();
        Inner::wait_for_events(stream, after, &current)?;
        // Not dropped by name, because that would copy the guard.
        stream.record(|| calls(stream.raw)).map(|event| self.0.record_unknown_outcome(event))
    }

    /// As [`submit_calls`](Self::submit_calls), without events to wait for, for calls that take
    /// their context from the stream.
    #[inline]
    pub(super) fn submit_by_stream(&self, calls: impl FnOnce(Raw) -> SubmitOutcome) -> Result<CudaEvent> {
        self.0.check()?;
        let event = self.call_on_stream(&[], |stream| stream.record(|| calls(stream.raw)))?;
        Ok(self.0.record_unknown_outcome(event))
    }

    /// Calls `work` with a stream that waits for `after`. The calls take their context from the
    /// stream, so none is made current if the stream determines it and there is nothing to wait
    /// for.
    #[inline]
    pub(super) fn call_on_stream<R>(
        &self,
        after: &[CudaEvent],
        work: impl FnOnce(&Stream) -> Result<R>,
    ) -> Result<R> {
        let stream = self.0.next();
        if after.is_empty() && stream.determines_context() {
            return work(stream);
        }
        let current = self.0.context.make_current()?;
        Inner::wait_for_events(stream, after, &current)?;
        work(stream)
    }

    /// Hints are for managed memory; the driver refuses them for other memory.
    fn check_managed(&self, pointer: *const u8, operation: &'static str) -> Result<()> {
        match self.0.context.query(pointer as usize)?.kind {
            AllocKind::Shared => Ok(()),
            _ => Err(self.0.context.driver().unsupported(operation)),
        }
    }
}

impl QueueOps<Cuda> for CudaQueue {
    unsafe fn copy(
        &self,
        dst: *mut u8,
        src: *const u8,
        len: usize,
        after: &[CudaEvent],
    ) -> Result<CudaEvent> {
        let driver = self.0.context.driver();
        // SAFETY: the caller's promise.
        let call = |stream| unsafe { driver.copy(dst as usize, src as usize, len, stream) };
        self.submit(driver.names().copy, after, call)
    }

    unsafe fn copy_rows(&self, rows: &Rows, after: &[CudaEvent]) -> Result<CudaEvent> {
        if rows.dst_pitch.max(rows.src_pitch) > MOST_PITCH {
            return Err(self.0.context.driver().unsupported("a copy of rows so far apart"));
        }
        let driver = self.0.context.driver();
        // SAFETY: the caller's promise.
        let call = |stream| unsafe { driver.copy_rows(rows, stream) };
        self.submit(driver.names().copy_rows, after, call)
    }

    #[cfg(feature = "kernel")]
    unsafe fn copy_strided(&self, copy: &StridedCopy<'_>, after: &[CudaEvent]) -> Result<CudaEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.copy(&self.0.context, self, copy, after) }
    }

    #[cfg(feature = "kernel")]
    unsafe fn convert(&self, conversion: &Conversion<'_>, after: &[CudaEvent]) -> Result<CudaEvent> {
        // SAFETY: the caller's promise.
        unsafe { self.0.copies.convert(&self.0.context, self, conversion, after) }
    }

    unsafe fn fill(
        &self,
        dst: *mut u8,
        pattern: &[u8],
        len: usize,
        after: &[CudaEvent],
    ) -> Result<CudaEvent> {
        let driver = self.0.context.driver();
        let (names, dst) = (driver.names(), dst as usize);
        // In each call the range is valid by the caller's promise, and its length is a multiple of
        // the pattern's.
        match *pattern {
            // SAFETY: see above.
            [byte] => {
                // SAFETY: see above.
                let call = |stream| unsafe { (driver.fill8)(dst, byte, len, stream) };
                self.submit(names.fill8, after, call)
            }
            [a, b] => {
                let value = u16::from_ne_bytes([a, b]);
                // SAFETY: see above; counted in elements.
                self.submit(names.fill16, after, |stream| unsafe {
                    (driver.fill16)(dst, value, len / 2, stream)
                })
            }
            [a, b, c, d] => {
                let value = u32::from_ne_bytes([a, b, c, d]);
                // SAFETY: see above; counted in elements.
                self.submit(names.fill32, after, |stream| unsafe {
                    (driver.fill32)(dst, value, len / 4, stream)
                })
            }
            // SAFETY: see above.
            _ => self.submit_calls(after, |stream| unsafe { driver.fill_words(dst, pattern, len, stream) }),
        }
    }

    unsafe fn barrier(&self, after: &[CudaEvent]) -> Result<CudaEvent> {
        self.0.barrier(after)
    }
}

impl Advice<Self> for Cuda {
    unsafe fn prefetch(
        queue: &CudaQueue,
        pointer: *const u8,
        len: usize,
        after: &[CudaEvent],
    ) -> Result<CudaEvent> {
        let context = &queue.0.context;
        queue.check_managed(pointer, "prefetch")?;
        let (driver, device) = (context.driver(), context.device().id());
        queue.submit(driver.names().prefetch, after, |stream| {
            // SAFETY: the caller's promise; managed memory.
            unsafe { (driver.prefetch)(pointer as usize, len, device, stream) }
        })
    }

    /// The driver's call takes effect at once; the event orders later work.
    unsafe fn advise(
        queue: &CudaQueue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[CudaEvent],
    ) -> Result<CudaEvent> {
        // `CUmem_advise`, `hipMemoryAdvise`.
        const SET_READ_MOSTLY: i32 = 1;
        const UNSET_READ_MOSTLY: i32 = 2;
        const SET_PREFERRED_LOCATION: i32 = 3;
        const UNSET_PREFERRED_LOCATION: i32 = 4;
        let context = &queue.0.context;
        let driver = context.driver();
        queue.check_managed(pointer, "memory advice")?;
        let device = context.device().id();
        let steps: &[(i32, i32)] = match advice {
            MemAdvice::Reset => &[(UNSET_READ_MOSTLY, device), (UNSET_PREFERRED_LOCATION, device)],
            MemAdvice::ReadMostly => &[(SET_READ_MOSTLY, device)],
            MemAdvice::PreferDevice => &[(SET_PREFERRED_LOCATION, device)],
            MemAdvice::PreferHost => &[(SET_PREFERRED_LOCATION, CPU)],
            _ => return Err(driver.unsupported("this memory advice")),
        };
        let current = context.make_current()?;
        for (advice, location) in steps {
            // SAFETY: the caller's promise; managed memory, the context is current.
            let code = unsafe { (driver.advise)(pointer as usize, len, *advice, *location) };
            driver.check(driver.names().advise, code)?;
        }
        drop(current);
        queue.0.barrier(after)
    }
}

impl Inner {
    /// The error of an earlier operation with an unknown outcome.
    #[inline]
    fn check(&self) -> Result<()> {
        match self.unknown_outcome.get() {
            None => Ok(()),
            Some((operation, code)) => Err(self.context.driver().native(operation, *code)),
        }
    }

    /// The stream for the next operation.
    #[inline]
    fn next(&self) -> &Stream {
        match &*self.streams {
            [event] => event,
            several => &several[self.next.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }

    /// Makes a stream wait for events. Most work only follows earlier work of its stream.
    #[inline]
    fn wait_for_events(stream: &Stream, events: &[CudaEvent], current: &Current) -> Result<()> {
        if events.is_empty() { Ok(()) } else { stream.wait_for(events, current) }
    }

    /// Returns the event of an operation, and records in the queue if its outcome is unknown.
    #[inline]
    fn record_unknown_outcome(&self, event: CudaEvent) -> CudaEvent {
        if let Some(failure) = event.unknown_outcome() {
            self.set_unknown_outcome(failure);
        }
        event
    }

    #[cold]
    fn set_unknown_outcome(&self, failure: (&'static str, Code)) {
        if let [_in_order] = &*self.streams {
            // Only the first failure is kept.
            let _ = self.unknown_outcome.set(failure);
        }
    }

    fn barrier(&self, after: &[CudaEvent]) -> Result<CudaEvent> {
        self.check()?;
        self.event_after(after).map(|event| self.record_unknown_outcome(event))
    }

    /// Works also after a failure: the event stands for the end of the running work.
    pub(super) fn event_after(&self, after: &[CudaEvent]) -> Result<CudaEvent> {
        let current = self.context.make_current()?;
        let (first, others) = self.streams.split_first().ok_or(ErrorKind::NoDevice)?;
        if after.is_empty() {
            for other in others {
                first.wait(&other.record(|| SubmitOutcome::All)?, &current)?;
            }
        }
        Self::wait_for_events(first, after, &current)?;
        first.record(|| SubmitOutcome::All)
    }

    /// An event after everything in the queue; `None` if all is complete.
    pub(super) fn unfinished(&self) -> Result<Option<CudaEvent>> {
        let current = self.context.make_current()?;
        // SAFETY: live streams.
        let status =
            |stream: &Stream| unsafe { (self.context.driver().query_stream)(stream.raw) } == error::SUCCESS;
        let idle = self.streams.iter().all(status);
        drop(current);
        if idle { Ok(None) } else { self.event_after(&[]).map(Some) }
    }
}

impl Drop for Inner {
    /// A queue's work outlives it, so the context keeps the event to wait for.
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let last = self.unfinished().unwrap_or_else(|error| {
            let code = error.native.and_then(|code| Code::try_from(code).ok());
            let driver = self.context.driver();
            Some(CudaEvent::unknown(driver, "the last event of a queue", code.unwrap_or(error::UNKNOWN)))
        });
        self.context.queue_list().remove(self, Ok(last));
    }
}
