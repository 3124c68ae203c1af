//! Streams and events.

use std::time::Instant;

use crate::code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::command::Action;
use crate::export::{functions, put, waiting};
use crate::state::{State, find};
use crate::stream::Event;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

impl State {
    /// When the last record of a timed event was done.
    fn time(&mut self, event: usize) -> Answer<Instant> {
        let event = self.event(event)?;
        let record = event.record;
        if !event.timed {
            return Err(INVALID_HANDLE);
        }
        self.times.get(&record).ok_or(INVALID_HANDLE)?.ok_or(NOT_READY)
    }
}

functions! {
    cuStreamCreate(stream: *mut usize, flags: u32) |state| {
        let context = state.current()?;
        // `CU_STREAM_NON_BLOCKING`.
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let created = state.create_stream(context, flags == 0);
        state.note(format_args!("{created:#x}"));
        put(stream, created)?;
    }
    cuStreamDestroy_v2(stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        state.destroy_stream(stream)?;
    }
    cuStreamQuery(stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let stream = state.stream(stream)?;
        let last = state.last(stream);
        if !state.is_done(last) {
            return Err(NOT_READY);
        }
        let context = find(&mut state.streams, stream)?.context;
        state.seen(context, false);
    }
    cuStreamGetCtx(stream: usize, context: *mut usize) |state| {
        let stream = state.stream(stream)?;
        put(context, find(&mut state.streams, stream)?.context)?;
    }
    cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) |state| {
        let (record, recorded) = {
            let event = state.event(event)?;
            (event.record, event.stream)
        };
        state.note(format_args!("{stream:#x} {recorded:#x}"));
        let stream = state.stream(stream)?;
        // The record at this moment: a later record of the event does not change the wait.
        if state.unfinished.contains(&record) {
            state.submit(stream, Action::Wait(record))?;
        }
    }
    cuEventCreate(event: *mut usize, flags: u32) |state| {
        let context = state.current()?;
        let created = state.number();
        // A new event counts as recorded and complete.
        let timed = flags & DISABLE_TIMING == 0;
        state.events.insert(created, Event { context, record: 0, stream: 0, timed });
        put(event, created)?;
    }
    cuEventDestroy_v2(event: usize) |state| {
        let event = state.events.remove(&event).ok_or(INVALID_HANDLE)?;
        state.times.remove(&event.record);
    }
    cuEventRecord(event: usize, handle: usize) |state| {
        state.note(format_args!("{handle:#x}"));
        let stream = state.stream(handle)?;
        let context = state.event(event)?.context;
        if find(&mut state.streams, stream)?.context != context {
            return Err(INVALID_HANDLE);
        }
        let record = state.submit(stream, Action::Record)?;
        let event = find(&mut state.events, event)?;
        let before = core::mem::replace(&mut event.record, record);
        event.stream = handle;
        if event.timed {
            state.times.remove(&before);
            state.times.insert(record, None);
        }
    }
    cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) |state| {
        let (start, end) = (state.time(start)?, state.time(end)?);
        let (forth, back) = (end.saturating_duration_since(start), start.saturating_duration_since(end));
        put(milliseconds, (forth.as_secs_f64() * 1e3 - back.as_secs_f64() * 1e3) as f32)?;
    }
    cuEventQuery(event: usize) |state| {
        let (record, stream, context) = {
            let event = state.event(event)?;
            (event.record, event.stream, event.context)
        };
        state.note(format_args!("{stream:#x}"));
        if !state.is_done(record) {
            return Err(NOT_READY);
        }
        state.seen(context, false);
        state.note(format_args!("done"));
    }
}

waiting! {
    cuStreamSynchronize(stream: usize) |state| {
        let stream = state.stream(stream)?;
        (find(&mut state.streams, stream)?.context, vec![state.last(stream)])
    }
    cuEventSynchronize(event: usize) |state| {
        let event = state.event(event)?;
        (event.context, vec![event.record])
    }
}
