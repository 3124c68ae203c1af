//! Submission and waits.

use core::ffi::c_void;
use core::time::Duration;
use std::time::Instant;

use level_zero_sys::*;

use crate::command::{Action, Command};
use crate::state::{Answer, State, find, handle, lock, number};

/// The sleep between two checks of a wait.
const NAP: Duration = Duration::from_micros(50);

impl State {
    /// Appends a command to a list. An immediate list submits it.
    pub(crate) fn append(
        &mut self,
        list: ze_command_list_handle_t,
        action: Action,
        signal: ze_event_handle_t,
        waits: &[ze_event_handle_t],
    ) -> Answer {
        let owner = |number: *mut c_void| self.owners.get(&(number as usize));
        let strange = |event: &ze_event_handle_t| !event.is_null() && owner(event.0) != owner(list.0);
        let is_strange = waits.iter().chain([&signal]).any(strange);
        self.unless(is_strange)?;
        let known = |event: &ze_event_handle_t| {
            let number = number(event.0)?;
            match self.counters.get(&number) {
                // Waits for the event's last signal so far; later signals do not count.
                Some(last) => Ok(*last),
                None if self.events.contains_key(&number) => Ok(Some(number)),
                None => Err(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT),
            }
        };
        let waits: Vec<usize> =
            waits.iter().map(known).collect::<Answer<Vec<_>>>()?.into_iter().flatten().collect();
        let signal = if signal.is_null() { None } else { Some(self.signal(list, signal)?) };
        let command = Command { action, waits, signal };
        let immediate = {
            let list = find(&mut self.lists, list.0)?;
            if list.closed {
                return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
            }
            if !list.immediate {
                list.commands.push(command.clone());
            }
            list.immediate
        };
        if immediate {
            self.queues.entry(list.0 as usize).or_default().push_back(command);
            if !self.lazy {
                self.progress();
            }
        }
        Ok(())
    }

    /// The signal of a command for the caller's event.
    fn signal(&mut self, list: ze_command_list_handle_t, event: ze_event_handle_t) -> Answer<usize> {
        let event = number(event.0)?;
        let list = find(&mut self.lists, list.0)?;
        if !self.counters.contains_key(&event) {
            return match self.events.get(&event) {
                // A wait would end at once, on the earlier signal.
                Some(true) if list.immediate => self.unless(true).map(|()| event),
                Some(_) => Ok(event),
                None => Err(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT),
            };
        }
        if !list.in_order {
            return Err(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
        }
        let next = self.number();
        self.events.insert(next, false);
        let last = self.counters.insert(event, Some(next)).flatten();
        if let Some(last) = last.filter(|last| self.events.get(last) == Some(&true)) {
            self.events.remove(&last);
        }
        Ok(next)
    }

    /// Whether an event is signalled.
    pub(crate) fn is_signalled(&mut self, event: ze_event_handle_t) -> Answer<bool> {
        let event = match self.counters.get(&number(event.0)?) {
            Some(Some(last)) => handle(*last),
            Some(None) => return Ok(true),
            None => event.0,
        };
        Ok(*find(&mut self.events, event)?)
    }

    /// Submits closed lists to a queue, followed by a fence.
    pub(crate) fn execute(
        &mut self,
        queue: ze_command_queue_handle_t,
        lists: &[ze_command_list_handle_t],
        fence: ze_fence_handle_t,
    ) -> Answer {
        let mut commands = Vec::new();
        for list in lists {
            let list = find(&mut self.lists, list.0)?;
            if list.immediate || !list.closed {
                return Err(ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
            }
            commands.extend(list.commands.iter().cloned());
        }
        if !fence.is_null() {
            find(&mut self.fences, fence.0)?;
            commands.push(Command {
                action: Action::Fence(fence.0 as usize),
                waits: Vec::new(),
                signal: None,
            });
        }
        find(&mut self.queues, queue.0)?.extend(commands);
        if !self.lazy {
            self.progress();
        }
        Ok(())
    }
}

/// Waits at most `limit` nanoseconds until `done` returns true, and executes commands meanwhile.
pub(crate) fn wait(function: &str, limit: u64, done: impl Fn(&mut State) -> Answer<bool>) -> ze_result_t {
    let end = Instant::now().checked_add(Duration::from_nanos(limit));
    let mut first = true;
    loop {
        {
            let mut guard = lock();
            let Some(state) = guard.as_mut() else { return ZE_RESULT_ERROR_UNINITIALIZED };
            // A fault that counts calls counts a wait once, but the device may be lost during the
            // wait.
            if first || state.faults.is_lost() {
                if let Some(fault) = state.faults.of(function) {
                    return fault;
                }
            }
            first = false;
            state.progress();
            match done(state) {
                Ok(true) => return ZE_RESULT_SUCCESS,
                Ok(false) => {}
                Err(error) => return error,
            }
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return ZE_RESULT_NOT_READY;
        }
        std::thread::sleep(NAP);
    }
}
