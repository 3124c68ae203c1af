//! Submission and waits.

use core::time::Duration;
use std::time::Instant;

use level_zero_sys::*;

use crate::command::{Action, Command};
use crate::state::{Answer, State, find, lock, number};

/// How long a wait sleeps between two looks.
const NAP: Duration = Duration::from_micros(50);

impl State {
    /// Appends a command to a list; an immediate list takes it as submitted.
    pub(crate) fn append(
        &mut self,
        list: ze_command_list_handle_t,
        action: Action,
        signal: ze_event_handle_t,
        waits: &[ze_event_handle_t],
    ) -> Answer {
        let known = |event: &ze_event_handle_t| {
            let number = number(event.0)?;
            self.events
                .contains_key(&number)
                .then_some(number)
                .ok_or(ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
        };
        let waits = waits.iter().map(known).collect::<Answer<Vec<usize>>>()?;
        let signal = if signal.is_null() { None } else { Some(known(&signal)?) };
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

    /// Submits closed lists to a queue, and a fence behind them.
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

/// Waits until `done`, making progress, at most `limit` nanoseconds.
pub(crate) fn wait(function: &str, limit: u64, done: impl Fn(&mut State) -> Answer<bool>) -> ze_result_t {
    let end = Instant::now().checked_add(Duration::from_nanos(limit));
    let mut first = true;
    loop {
        {
            let mut guard = lock();
            let Some(state) = guard.as_mut() else { return ZE_RESULT_ERROR_UNINITIALIZED };
            // A fault that counts calls counts a wait once, but a device may be lost during it.
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
