//! Streams and events: submission, order and completion.

use alloc::collections::VecDeque;
use std::time::Instant;

use crate::code::{Answer, CONTEXT_IS_DESTROYED, Code, INVALID_HANDLE, SUCCESS};
use crate::command::{Action, Command, Work};
use crate::memory::Kind;
use crate::state::{State, find};
use crate::worker;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: usize,
    /// Whether the stream waits for the default stream.
    blocking: bool,
    commands: VecDeque<Command>,
    running: Option<Command>,
    /// The last submitted command.
    last: u64,
    /// The handle was destroyed; the stream ends with its last command.
    pub(crate) destroyed: bool,
}

/// An event and its latest record.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    pub(crate) record: u64,
    /// The stream of the record.
    pub(crate) stream: usize,
    /// Whether it was created without `CU_EVENT_DISABLE_TIMING`.
    pub(crate) timed: bool,
}

impl Stream {
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight().next().is_some()
    }

    fn in_flight(&self) -> impl Iterator<Item = &Command> {
        self.running.iter().chain(&self.commands)
    }
}

impl State {
    pub(crate) fn create_stream(&mut self, context: usize, blocking: bool) -> usize {
        let stream = self.number();
        let (commands, running) = (VecDeque::new(), None);
        self.streams
            .insert(stream, Stream { context, blocking, commands, running, last: 0, destroyed: false });
        stream
    }

    /// The stream of a handle; two handles mean default streams.
    pub(crate) fn stream(&self, handle: usize) -> Answer<usize> {
        self.wants_current()?;
        let stream = match handle {
            0 | 1 => self.context(self.current()?)?.defaults[0],
            2 => self.context(self.current()?)?.defaults[1],
            own => own,
        };
        let found = self.streams.get(&stream).filter(|found| !found.destroyed).ok_or(INVALID_HANDLE)?;
        self.context(found.context).map(|_| stream)
    }

    fn wants_current(&self) -> Answer {
        if self.settings.current { self.current().map(|_| ()) } else { Ok(()) }
    }

    /// The event of a handle, in a context without a sticky error.
    pub(crate) fn event(&mut self, handle: usize) -> Answer<&mut Event> {
        self.wants_current()?;
        let context = find(&mut self.events, handle)?.context;
        self.context(context)?;
        find(&mut self.events, handle)
    }

    /// A command is done. If it records a timed event, this is the event's time.
    fn complete(&mut self, number: u64) {
        self.unfinished.remove(&number);
        if let Some(time) = self.times.get_mut(&number) {
            *time = Some(Instant::now());
        }
    }

    /// Submits a command to a stream and returns its number.
    pub(crate) fn submit(&mut self, stream: usize, action: Action) -> Answer<u64> {
        let number = self.number() as u64;
        let (context, blocking) = {
            let stream = find(&mut self.streams, stream)?;
            (stream.context, stream.blocking)
        };
        let default = self.contexts.get(&context).ok_or(CONTEXT_IS_DESTROYED)?.defaults[0];
        let mut after = Vec::new();
        if stream == default {
            let others = self.streams.values().filter(|other| other.context == context && other.blocking);
            after.extend(others.map(|other| other.last));
        } else if blocking {
            after.extend(self.streams.get(&default).map(|default| default.last));
        }
        let stream = find(&mut self.streams, stream)?;
        stream.commands.push_back(Command { number, after, action });
        stream.last = number;
        self.unfinished.insert(number);
        self.share_managed(context);
        worker::wake();
        Ok(number)
    }

    /// Whether a command is complete. Under `late`, the query starts an operation.
    pub(crate) fn is_done(&mut self, number: u64) -> bool {
        let done = !self.unfinished.contains(&number);
        if !done {
            self.asked = true;
            worker::wake();
        }
        done
    }

    /// The last command of a stream.
    pub(crate) fn last(&self, stream: usize) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.last)
    }

    /// The last command of each stream of a context.
    pub(crate) fn last_of_all(&self, context: usize) -> Vec<u64> {
        self.streams.values().filter(|stream| stream.context == context).map(|stream| stream.last).collect()
    }

    /// Destroys a stream's handle. Its work continues.
    pub(crate) fn destroy_stream(&mut self, handle: usize) -> Answer {
        let found = find(&mut self.streams, handle)?;
        if found.destroyed {
            return Err(INVALID_HANDLE);
        }
        found.destroyed = true;
        self.streams.retain(|_, stream| !stream.destroyed || stream.is_busy());
        Ok(())
    }

    /// Whether a command in flight reads or writes a range.
    pub(crate) fn is_used(&self, address: usize, bytes: usize) -> bool {
        self.streams.values().flat_map(Stream::in_flight).any(|command| command.touches(address, bytes))
    }

    /// Whether a launch of a function of that module is in flight.
    pub(crate) fn runs(&self, module: usize) -> bool {
        self.streams.values().flat_map(Stream::in_flight).any(|command| command.runs(module))
    }

    /// Drops the commands of a context that have not started.
    fn abandon(&mut self, context: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.context == context) {
            for command in stream.commands.drain(..) {
                self.unfinished.remove(&command.number);
            }
        }
    }

    /// Takes the next work and its stream. Completes commands without work on the way.
    pub(crate) fn start(&mut self) -> Option<(usize, Work)> {
        loop {
            if self.settings.hold {
                return None;
            }
            let waits = self.settings.late && !self.asked && self.waiting == 0;
            let ready = self.streams.iter().filter(|(_, stream)| {
                let first = stream.commands.front().filter(|_| stream.running.is_none());
                first.is_some_and(|command| {
                    command.is_ready(&self.unfinished)
                        && !(waits && command.is_operation() && self.is_open(stream.context))
                })
            });
            // Commands without work first, then the oldest. Under `late` the newest, because a
            // device may start with any ready one.
            let chosen = ready.max_by_key(|(_, stream)| {
                let age = |number: u64| if self.settings.late { number } else { u64::MAX - number };
                stream.commands.front().map(|command| (!command.is_operation(), age(command.number)))
            });
            let stream = *chosen?.0;
            let command = find(&mut self.streams, stream).ok()?.commands.pop_front()?;
            if !command.is_operation() {
                self.complete(command.number);
                self.forget(stream);
                worker::done();
                continue;
            }
            self.asked = false;
            let context = find(&mut self.streams, stream).ok()?.context;
            let work = match self.faults.of_operation() {
                Some(code) => Err(code),
                None => self.work(context, &command),
            };
            find(&mut self.streams, stream).ok()?.running = Some(command);
            match work {
                Ok(work) => return Some((stream, work)),
                Err(code) => self.finish(stream, code),
            }
        }
    }

    /// Completes the work of a stream.
    pub(crate) fn finish(&mut self, stream: usize, code: Code) {
        let Ok(found) = find(&mut self.streams, stream) else { return };
        let context = found.context;
        if let Some(command) = found.running.take() {
            self.complete(command.number);
        }
        if code != SUCCESS {
            // Like a device fault: nothing that follows is reliable.
            if let Some(context) = self.contexts.get_mut(&context) {
                context.failed.get_or_insert(code);
            }
            self.abandon(context);
        }
        self.share_managed(context);
        self.forget(stream);
        worker::done();
    }

    /// Closes a device's managed memory to the host while the device works, if concurrent access is
    /// off. A destroyed context does not count, because nothing can wait for its work.
    pub(crate) fn share_managed(&mut self, context: usize) {
        let Some(device) = self.contexts.get(&context).map(|context| context.device) else { return };
        let of = |context: &usize| {
            self.contexts.get(context).is_some_and(|found| !found.closing && found.device == device)
        };
        let works = |stream: &Stream| of(&stream.context) && stream.in_flight().any(Command::is_operation);
        let works = !self.settings.concurrent && self.streams.values().any(works);
        if core::mem::replace(&mut self.devices[device].works, works) == works {
            return;
        }
        for (address, live) in &self.allocations {
            if live.kind == Kind::Managed && live.device == device {
                self.spaces.managed.reachable(*address, live.size, !works);
            }
        }
    }

    /// Removes a destroyed stream without work, and its destroyed context with its last stream.
    fn forget(&mut self, stream: usize) {
        let Some(found) = self.streams.get(&stream).filter(|found| found.destroyed && !found.is_busy())
        else {
            return;
        };
        let context = found.context;
        self.streams.remove(&stream);
        self.close_context(context);
    }
}
