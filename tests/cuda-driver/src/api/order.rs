//! Streams and events.

use crate::code::{INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::command::Action;
use crate::export::{functions, put, waiting};
use crate::state::find;
use crate::stream::Event;

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
    cuEventCreate(event: *mut usize, _flags: u32) |state| {
        let context = state.current()?;
        let created = state.number();
        // A new event counts as recorded and complete.
        state.events.insert(created, Event { context, record: 0, stream: 0 });
        put(event, created)?;
    }
    cuEventDestroy_v2(event: usize) |state| {
        state.events.remove(&event).ok_or(INVALID_HANDLE)?;
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
        (event.record, event.stream) = (record, handle);
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
