//! Memory in the order of a stream: pools, one for each device.

use core::ffi::c_void;

use crate::code::{Answer, INVALID_HANDLE, INVALID_VALUE};
use crate::command::Action;
use crate::export::{functions, put};
use crate::memory::{Kind, Origin};
use crate::state::{State, find};

/// The pool of the first device.
const FIRST: usize = 0x9001_0000;

/// The pool of a device.
pub(super) fn of_device(device: i32) -> usize {
    FIRST + 16 * device as usize
}

functions! {
    cuMemAllocAsync(address: *mut usize, bytes: usize, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let stream = state.stream(stream)?;
        put(address, state.allocate_in(stream, bytes)?)?;
    }
    cuMemAllocFromPoolAsync(address: *mut usize, bytes: usize, pool: usize, stream: usize) |state| {
        let stream = state.stream(stream)?;
        state.pool(pool)?;
        put(address, state.allocate_in(stream, bytes)?)?;
    }
    cuMemFreeAsync(address: usize, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let stream = state.stream(stream)?;
        let found = state.allocations.get(&address);
        let known = found.filter(|live| live.kind == Kind::Device && !matches!(live.origin, Origin::Opened(_)));
        let Some(id) = known.filter(|live| live.dying.is_none()).map(|live| live.id) else {
            state.misuse(format_args!("nothing is freed at {address:#x}"));
            return Err(INVALID_VALUE);
        };
        state.submit(stream, Action::Free { address, id })?;
        if let Some(live) = state.allocations.get_mut(&address) {
            live.dying = Some(stream);
        }
    }
    cuMemPoolTrimTo(pool: usize, _keep: usize) |state| { state.pool(pool)?; }
    cuMemPoolSetAttribute(pool: usize, _attribute: i32, value: *const c_void) |state| {
        state.pool(pool)?;
        if value.is_null() {
            return Err(INVALID_VALUE);
        }
    }
}

impl State {
    fn pool(&self, pool: usize) -> Answer {
        let known = (0..self.devices.len()).any(|device| of_device(device as i32) == pool);
        if known { Ok(()) } else { Err(INVALID_HANDLE) }
    }

    /// Memory from now on in the order of a stream. What that stream was told to free may be given out again before it is free.
    fn allocate_in(&mut self, stream: usize, bytes: usize) -> Answer<usize> {
        let context = find(&mut self.streams, stream)?.context;
        let again =
            self.allocations.iter().find(|(_, live)| live.dying == Some(stream) && live.size == bytes);
        let again = again.map(|(address, _)| *address);
        let born = self.submit(stream, Action::Born)?;
        let Some(address) = again else {
            return self.allocate(context, Kind::Device, bytes, Origin::Pool(born));
        };
        let id = self.number() as u64;
        if let Some(live) = self.allocations.get_mut(&address) {
            (live.id, live.origin, live.dying) = (id, Origin::Pool(born), None);
        }
        Ok(address)
    }
}
