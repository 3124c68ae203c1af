//! Copies between any two layouts: as runs, as rows if the runtime copies rows, or by the
//! processor.

#[cfg(feature = "alloc")]
use crate::QueueOrder;
use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, QueueOps, Rows, StridedCopy};
use crate::checks::check_same_context;
use crate::divided::copy_runs_divided;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::queue::{Queue, Usage};
use crate::source::{MemorySource as _, Request};
use crate::staging::staging;
use crate::strided::{Plan, Strided};
use crate::{AllocKind, DeviceType};

/// Maximum number of runs that are submitted as one operation each.
const FEW_RUNS: usize = 16;
/// Bytes of a run from which on a few are better copied by the runtime than by code.
const LONG_RUN: usize = 64 << 10;
/// Bytes of a row below which runtimes copy memory of the process slower than through dense memory.
const SHORT_ROW: usize = 64;
/// Number of bytes that the processor copies in the time of one operation of a runtime (about 3
/// microseconds).
const BYTES_AN_OPERATION: usize = 16 << 10;

/// The source and destination of a copy, or one allocation for both.
struct Ends<'a, B: Backend> {
    dst: &'a Allocation<B>,
    src: &'a Allocation<B>,
}

impl<B: Backend> Clone for Ends<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Ends<'_, B> {}

impl<B: Backend> Queue<B> {
    /// Copies every element of the layout `from` in `src` to its place in the layout `to` in `dst`:
    /// any strides, any number of axes, any kinds of memory. Bytes between the elements stay as
    /// they are.
    ///
    /// Adjacent runs are merged. A few runs are copied one by one in the queue's order. If it is
    /// faster, the processor copies many small runs, with staging memory for memory that it cannot
    /// access; the call then waits for earlier work on the two allocations. If the two overlap
    /// (memory of another owner), the result is as if the whole source was read before the first
    /// write.
    ///
    /// # Errors
    /// [`ErrorKind::ShapeMismatch`] and [`ErrorKind::LengthMismatch`] for layouts of different
    /// shape (the element's size counts as last axis), [`ErrorKind::DestinationAliases`] when
    /// elements of the destination may share bytes: sorted by stride, each axis must step over
    /// everything that the smaller ones cover. [`ErrorKind::OutOfBounds`], and what
    /// [`submit`](Self::submit) refuses. After a failure of the runtime some elements may have been
    /// copied.
    pub fn copy_strided(
        &self,
        dst: &mut Allocation<B>,
        to: &Strided<'_>,
        src: &Allocation<B>,
        from: &Strided<'_>,
    ) -> Result<Event<B>> {
        self.strided_event(Ends { dst, src }, to, from)
    }

    /// As [`copy_strided`](Self::copy_strided), inside one allocation. The layouts may overlap: the
    /// result is as if the whole source was read before the first write.
    ///
    /// # Errors
    /// As for [`copy_strided`](Self::copy_strided).
    pub fn copy_strided_within(
        &self,
        allocation: &mut Allocation<B>,
        to: &Strided<'_>,
        from: &Strided<'_>,
    ) -> Result<Event<B>> {
        self.strided_event(Ends { dst: allocation, src: allocation }, to, from)
    }

    /// As [`copy_strided`](Self::copy_strided), for memory with several handles, none of them
    /// exclusive, and for callers that wait for the copy. If the processor can access the memory
    /// and is faster than the runtime, it copies at once, and `None` means that no wait is needed.
    /// Both ends may be the same allocation, and layouts may overlap.
    ///
    /// # Safety
    /// Until the call returns, no other thread submits work over the two allocations, accesses the
    /// bytes of `dst` or writes those of `src`.
    ///
    /// # Errors
    /// As for [`copy_strided`](Self::copy_strided).
    pub unsafe fn copy_strided_shared(
        &self,
        dst: &Allocation<B>,
        to: &Strided<'_>,
        src: &Allocation<B>,
        from: &Strided<'_>,
    ) -> Result<Option<Event<B>>> {
        self.strided(Ends { dst, src }, to, from, true)
    }

    /// As [`copy_strided_shared`](Self::copy_strided_shared), for callers that do not wait: the
    /// copy may run until the event is complete.
    ///
    /// # Safety
    /// As for that function; and code that uses the bytes without this crate does so only before
    /// the call or after the event.
    ///
    /// # Errors
    /// As for [`copy_strided`](Self::copy_strided).
    pub unsafe fn submit_strided_shared(
        &self,
        dst: &Allocation<B>,
        to: &Strided<'_>,
        src: &Allocation<B>,
        from: &Strided<'_>,
    ) -> Result<Event<B>> {
        self.strided_event(Ends { dst, src }, to, from)
    }

    fn strided_event(&self, ends: Ends<'_, B>, to: &Strided<'_>, from: &Strided<'_>) -> Result<Event<B>> {
        let event = match self.strided(ends, to, from, false)? {
            Some(event) => event,
            None => self.barrier(&[])?,
        };
        if !core::ptr::eq(ends.dst, ends.src) {
            ends.dst.take_over_failures(ends.src);
        }
        Ok(event)
    }

    /// The caller has exclusive access to the destination. `waits` means that it would wait for
    /// the event at once.
    fn strided(
        &self,
        ends: Ends<'_, B>,
        to: &Strided<'_>,
        from: &Strided<'_>,
        waits: bool,
    ) -> Result<Option<Event<B>>> {
        if waits && to.is_dense() && to.has_places_of(from) {
            for end in [ends.dst, ends.src] {
                check_same_context(self.context().id(), end.context().id())?;
            }
            let (to, from) = (to.range(), from.range());
            // SAFETY: the caller has exclusive access to the destination, and writers of the source
            // need it.
            let outcome = unsafe { ends.dst.copy_by_processor(to.start, ends.src, from.start, to.len()) };
            if let Some(outcome) = outcome {
                return outcome.map(|()| None);
            }
        }
        let plan = Plan::new(to, from)?;
        ends.dst.check_range(to.range().start, to.range().len())?;
        ends.src.check_range(from.range().start, from.range().len())?;
        let Some(plan) = plan else {
            return ends.with_usages(|usages| self.barrier_with_usages(usages, &[])).map(Some);
        };
        for end in [ends.dst, ends.src] {
            check_same_context(self.context().id(), end.context().id())?;
        }
        if ends.ranges_overlap(&plan) {
            return self.copy_through_temporary(ends, to, from, waits);
        }
        let runs = plan.runs();
        let both = [ends.dst, ends.src];
        let host_access = both.map(Allocation::is_reached_by_processor);
        if waits && host_access == [true; 2] && self.is_for_host(ends, &plan) {
            return self.copy_on_host(ends, &plan, waits);
        }
        #[cfg(feature = "driver")]
        if waits && runs == 1 {
            if let Some(outcome) = self.copy_span_through_ring(ends, &plan) {
                return outcome.map(|()| None);
            }
        }
        let are_long = runs <= FEW_RUNS && plan.run >= LONG_RUN;
        if runs == 1 || are_long || B::SYNCHRONOUS {
            return self.copy_by_runs(ends, &plan).map(Some);
        }
        match both.map(Allocation::is_reached_by_device) {
            [true, true] => {
                if let Some(outcome) = self.copy_by_code(ends, &plan) {
                    return outcome.map(Some);
                }
            }
            [to_device, from_device] if runs > FEW_RUNS => {
                let has_strides = (to_device && !to.is_dense()) || (from_device && !from.is_dense());
                let result = has_strides.then(|| self.copy_through_device(ends, to, from, waits));
                if let Some(outcome) = result.flatten() {
                    return outcome;
                }
            }
            _ => {}
        }
        if runs <= FEW_RUNS {
            return self.copy_by_runs(ends, &plan).map(Some);
        }
        let crosses = both.iter().any(|end| !end.is_reached_by_device());
        if !(crosses && plan.run < SHORT_ROW) {
            if let Some(outcome) = self.copy_by_rows(ends, &plan) {
                return outcome.map(Some);
            }
        }
        let ranges = [plan.to_range, plan.from_range];
        let staged_bytes: usize = ranges
            .iter()
            .zip(host_access)
            .map(|((low, high), is_near)| if is_near { 0 } else { high - low })
            .sum();
        if staged_bytes / BYTES_AN_OPERATION <= runs {
            self.copy_on_host(ends, &plan, waits)
        } else {
            self.copy_by_runs(ends, &plan).map(Some)
        }
    }

    /// Copies one run between memory of the device and memory of the process, and waits. `None` for
    /// other ends, and where a ring is not worth it.
    #[cfg(feature = "driver")]
    fn copy_span_through_ring(&self, ends: Ends<'_, B>, plan: &Plan) -> Option<Result<()>> {
        use crate::ring::Process;

        let is_up = ends.dst.kind() == AllocKind::Device;
        let (device, process) = if is_up { (ends.dst, ends.src) } else { (ends.src, ends.dst) };
        if process.kind() != AllocKind::Host || process.is_reached_by_device() {
            return None;
        }
        let (at, end, access) = match is_up {
            true => {
                let from = process.as_ptr().wrapping_add(plan.from);
                (plan.to, Process::Source(from.cast_const()), Access::Read)
            }
            false => (plan.from, Process::Target(process.as_ptr().wrapping_add(plan.to)), Access::Write),
        };
        let _guard = match process.host_guard(access) {
            Ok(guard) => guard,
            Err(error) => return Some(Err(error)),
        };
        // SAFETY: checked ranges of live memory; the guard waited for work on the process's, and
        // the caller has exclusive access to the destination.
        let outcome = unsafe { self.copy_through_ring((device, at), end, plan.run, true) };
        outcome.map(|outcome| outcome.map(drop))
    }

    /// Copies every run by one operation.
    fn copy_by_runs(&self, ends: Ends<'_, B>, plan: &Plan) -> Result<Event<B>> {
        let (dst, src) = (ends.dst.as_ptr(), ends.src.as_ptr().cast_const());
        self.submit_in_parts(ends, |part| {
            plan.visit(0, |to, from| {
                let (to, from) = (dst.wrapping_add(to), src.wrapping_add(from));
                // SAFETY: every run lies inside its checked range, the two do not overlap, and the
                // usages keep both allocations alive and ordered.
                part(&mut |queue, after| unsafe { queue.copy(to, from, plan.run, after) })
            })
        })
    }

    /// Whether a copy that the processor can make and its caller waits for is best made by it: on a
    /// device that is this processor, always. Memory that both share would move to the host and
    /// back.
    fn is_for_host(&self, ends: Ends<'_, B>, plan: &Plan) -> bool {
        match self.context().info().device_type {
            DeviceType::Cpu | DeviceType::Host => true,
            _ => {
                let are_shared = [ends.dst, ends.src].iter().all(|end| end.kind() == AllocKind::Shared);
                plan.run < BYTES_AN_OPERATION && !are_shared
            }
        }
    }

    /// Copies by code that runs on the device. `None` if the runtime has none for this copy.
    fn copy_by_code(&self, ends: Ends<'_, B>, plan: &Plan) -> Option<Result<Event<B>>> {
        let copy = StridedCopy {
            dst: ends.dst.as_ptr().wrapping_add(plan.to),
            src: ends.src.as_ptr().cast_const().wrapping_add(plan.from),
            run: plan.run,
            axes: plan.axes(),
        };
        // SAFETY: every run lies inside its checked range, the two do not overlap, the device
        // reaches both allocations, and the usages keep them alive and ordered.
        let call = |queue: &B::Queue, after: &[B::Event]| unsafe { queue.copy_strided(&copy, after) };
        // SAFETY: the copy accesses what the usages declare, and the caller has exclusive access to
        // the destination; after an error nothing was submitted.
        match ends.with_usages(|usages| unsafe { self.submit(usages, &[], call) }) {
            Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) => None,
            outcome => Some(outcome),
        }
    }

    /// Copies between memory of the device and memory that its code does not reach through dense
    /// memory of the device, so that bytes cross the bus in one run. `None` if there is no memory.
    fn copy_through_device(
        &self,
        ends: Ends<'_, B>,
        to: &Strided<'_>,
        from: &Strided<'_>,
        waits: bool,
    ) -> Option<Result<Option<Event<B>>>> {
        let request = Request::new(AllocKind::Device, to.elements() * to.item());
        let dense = self.context().allocate(&request).ok()?;
        Some(self.copy_through(&dense, ends, to, from, waits))
    }

    /// Copies the innermost axis by the runtime's own copy of rows. `None` if it has none or
    /// refuses these rows.
    fn copy_by_rows(&self, ends: Ends<'_, B>, plan: &Plan) -> Option<Result<Event<B>>> {
        let inner = *plan.axes().last()?;
        let pitch = usize::try_from(inner.from).ok().filter(|pitch| *pitch >= plan.run)?;
        if plan.runs() / inner.extent > FEW_RUNS {
            return None;
        }
        let (dst, src) = (ends.dst.as_ptr(), ends.src.as_ptr().cast_const());
        let mut none_yet = true;
        let outcome = self.submit_in_parts(ends, |part| {
            plan.visit(1, |to, from| {
                let rows = Rows {
                    dst: dst.wrapping_add(to),
                    dst_pitch: inner.to,
                    src: src.wrapping_add(from),
                    src_pitch: pitch,
                    width: plan.run,
                    rows: inner.extent,
                };
                // SAFETY: as in `copy_by_runs`, for every row; pitches are not below the width.
                part(&mut |queue, after| unsafe { queue.copy_rows(&rows, after) })?;
                none_yet = false;
                Ok(())
            })
        });
        match outcome {
            Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) if none_yet => None,
            outcome => Some(outcome),
        }
    }

    /// Copies all runs on this thread, with staging memory for a side that it cannot access. `None`
    /// if the copy is complete.
    fn copy_on_host(&self, ends: Ends<'_, B>, plan: &Plan, waits: bool) -> Result<Option<Event<B>>> {
        let near_src = self.stage(ends.src, plan.from_range, true)?;
        let near_dst = self.stage(ends.dst, plan.to_range, !plan.is_dense())?;
        {
            let (src, src_low) =
                near_src.as_ref().map_or((ends.src, 0), |buffer| (buffer, plan.from_range.0));
            let (dst, dst_low) = near_dst.as_ref().map_or((ends.dst, 0), |buffer| (buffer, plan.to_range.0));
            let _reading = src.processor_guard(Access::Read)?;
            let _writing = dst.processor_guard(Access::Write)?;
            let (to, from) = (dst.as_ptr().wrapping_sub(dst_low), src.as_ptr().wrapping_sub(src_low));
            // SAFETY: every run lies inside live, host-accessible memory that does not overlap; the
            // guards waited for all conflicting work, the caller has exclusive access to the
            // destination, and writers of the source need exclusive access.
            unsafe { copy_runs_divided(plan, to, from) };
        }
        let Some(buffer) = near_dst else { return Ok(None) };
        let (start, len) = (plan.to_range.0, buffer.size());
        #[cfg(feature = "driver")]
        if waits {
            let source = crate::ring::Process::Source(buffer.as_ptr().cast_const());
            // SAFETY: a checked range, and memory that only this call knows; the caller has
            // exclusive access to the destination.
            if let Some(outcome) = unsafe { self.copy_through_ring((ends.dst, start), source, len, true) } {
                return outcome.map(|_| None);
            }
        }
        #[cfg(not(feature = "driver"))]
        let _ = waits;
        self.copy_span(ends.dst, start, &buffer, 0, len).map(Some)
    }

    /// Staging memory for a range that the host cannot access, with the range's content if
    /// `fills`.
    fn stage(
        &self,
        memory: &Allocation<B>,
        (low, high): (usize, usize),
        fills: bool,
    ) -> Result<Option<Allocation<B>>> {
        if memory.is_reached_by_processor() {
            return Ok(None);
        }
        // SAFETY: only the host and the copies of spans access it.
        let buffer = unsafe { staging(self.context(), high - low) }?;
        if !fills {
            return Ok(Some(buffer));
        }
        #[cfg(feature = "driver")]
        {
            let target = crate::ring::Process::Target(buffer.as_ptr());
            // SAFETY: a checked range, and memory that only this call knows. The caller keeps work
            // that writes the range away.
            let outcome = unsafe { self.copy_through_ring((memory, low), target, high - low, true) };
            if let Some(outcome) = outcome {
                return outcome.map(|_| Some(buffer));
            }
        }
        let _ = self.copy_span(&buffer, 0, memory, low, high - low)?;
        Ok(Some(buffer))
    }

    /// Copies `len` bytes between different allocations. The caller has exclusive access to the
    /// destination and has checked the ranges.
    fn copy_span(
        &self,
        dst: &Allocation<B>,
        to: usize,
        src: &Allocation<B>,
        from: usize,
        len: usize,
    ) -> Result<Event<B>> {
        let usages = [Usage::write(dst), Usage::read(src)];
        let (to, from) = (dst.as_ptr().wrapping_add(to), src.as_ptr().wrapping_add(from));
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: ranges inside two live allocations, one of them new; the usages keep both
            // alive and ordered.
            unsafe { queue.copy(to, from, len, after) }
        };
        // SAFETY: the copy accesses what the usages declare, and the caller has exclusive access to
        // the destination.
        unsafe { self.submit(&usages, &[], copy) }
    }

    /// Copies the whole source to other memory before the first write. The processor need not be
    /// able to access that memory.
    fn copy_through_temporary(
        &self,
        ends: Ends<'_, B>,
        to: &Strided<'_>,
        from: &Strided<'_>,
        waits: bool,
    ) -> Result<Option<Event<B>>> {
        let size = to.elements() * to.item();
        // SAFETY: only the host and these copies access it.
        let dense = unsafe { staging(self.context(), size) }?;
        self.copy_through(&dense, ends, to, from, waits)
    }

    /// Copies to dense memory of the elements in C order, and from there.
    fn copy_through(
        &self,
        dense: &Allocation<B>,
        ends: Ends<'_, B>,
        to: &Strided<'_>,
        from: &Strided<'_>,
        waits: bool,
    ) -> Result<Option<Event<B>>> {
        to.with_dense_layout(|layout| {
            let _ = self.strided(Ends { dst: dense, src: ends.src }, layout, from, waits)?;
            self.strided(Ends { dst: ends.dst, src: dense }, to, layout, waits)
        })
    }
}

impl<B: Backend> Ends<'_, B> {
    fn with_usages<R>(self, call: impl FnOnce(&[Usage<'_, B>]) -> R) -> R {
        if core::ptr::eq(self.dst, self.src) {
            call(&[Usage::write(self.dst)])
        } else {
            call(&[Usage::write(self.dst), Usage::read(self.src)])
        }
    }

    /// Whether the two ranges share memory. Two owners can only if one is foreign.
    fn ranges_overlap(self, plan: &Plan) -> bool {
        let (dst, src) = (self.dst.block().address(), self.src.block().address());
        let ((to, to_end), (from, from_end)) = (plan.to_range, plan.from_range);
        dst + to < src + from_end && src + from < dst + to_end
    }
}

/// One operation of several.
type Part<'p, B> = dyn FnMut(
        &mut dyn FnMut(&<B as Backend>::Queue, &[<B as Backend>::Event]) -> Result<<B as Backend>::Event>,
    ) -> Result<()>
    + 'p;

impl<B: Backend> Queue<B> {
    /// Submits several operations as one: each follows the earlier work on both ends, and the event
    /// follows all of them. If one is refused, records the earlier ones and returns the error.
    #[cfg(feature = "alloc")]
    fn submit_in_parts(
        &self,
        ends: Ends<'_, B>,
        submit_all: impl FnOnce(&mut Part<'_, B>) -> Result<()>,
    ) -> Result<Event<B>> {
        let mut events = alloc::vec::Vec::new();
        // SAFETY: `submit` passes events of the queue's context.
        let barrier = |queue: &B::Queue, events: &[B::Event]| unsafe { queue.barrier(events) };
        // SAFETY: the callers' operations access what the usages declare. The lines below record
        // operations submitted before a refusal.
        let outcome = ends.with_usages(|usages| unsafe {
            self.submit(usages, &[], |queue, after| {
                submit_all(&mut |operation| {
                    let event = operation(queue, after)?;
                    // In order, the last event stands for all.
                    if self.order() == QueueOrder::InOrder {
                        events.clear();
                    }
                    events.push(event);
                    Ok(())
                })?;
                match &mut events[..] {
                    [dependency] => Ok(dependency.clone()),
                    all => barrier(queue, all),
                }
            })
        });
        if outcome.is_err() && !B::SYNCHRONOUS {
            let pending = crate::pending::Pending::of_events(self.context().id(), events);
            ends.dst.absorb(pending.clone())?;
            ends.src.absorb(pending)?;
        }
        outcome
    }

    /// Without a heap every operation is complete when its call returns.
    #[cfg(not(feature = "alloc"))]
    fn submit_in_parts(
        &self,
        ends: Ends<'_, B>,
        submit_all: impl FnOnce(&mut Part<'_, B>) -> Result<()>,
    ) -> Result<Event<B>> {
        // SAFETY: no events are given.
        let end = |queue: &B::Queue| unsafe { queue.barrier(&[]) };
        // SAFETY: the callers' operations access what the usages declare.
        ends.with_usages(|usages| unsafe {
            self.submit(usages, &[], |queue, after| {
                submit_all(&mut |operation| operation(queue, after).map(drop))?;
                end(queue)
            })
        })
    }
}
