//! Stream-ordered memory and its pools.

use core::ffi::c_void;

use crate::code::{Answer, INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED};
use crate::command::Action;
use crate::export::{functions, put};
use crate::memory::{Kind, Origin};
use crate::pool::{Pool, default_of};
use crate::state::{State, find};

/// `CUmemPoolProps`, with the fields that CUDA 12 names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties {
    allocation_type: i32,
    handle_types: i32,
    location_type: i32,
    location: i32,
    security_attributes: usize,
    max_size: usize,
    usage: u16,
    reserved: [u8; 54],
}

/// `CUmemPool_attribute`: the first three have 32 bits, the others 64.
mod attribute {
    pub(super) const RELEASE_THRESHOLD: i32 = 4;
    pub(super) const RESERVED: i32 = 5;
    pub(super) const USED: i32 = 7;
}

functions! {
    cuMemAllocAsync(address: *mut usize, bytes: usize, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let stream = state.stream(stream)?;
        let pool = default_of(state.device_of(stream)?);
        put(address, state.allocate_in(stream, pool, bytes)?)?;
    }
    cuMemAllocFromPoolAsync(address: *mut usize, bytes: usize, pool: usize, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let stream = state.stream(stream)?;
        state.pool(pool)?;
        put(address, state.allocate_in(stream, pool, bytes)?)?;
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
    cuMemPoolCreate(pool: *mut usize, properties: *const Properties) |state| {
        if properties.is_null() {
            return Err(INVALID_VALUE);
        }
        let asked = properties.read();
        // Only pinned memory on a device is supported.
        if asked.allocation_type != 1 || asked.location_type != 1 || asked.reserved != [0; 54] {
            return Err(INVALID_VALUE);
        }
        if asked.handle_types != 0 || asked.security_attributes != 0 || asked.usage != 0 {
            return Err(NOT_SUPPORTED);
        }
        state.device(asked.location).map_err(|_| INVALID_DEVICE)?;
        let handle = state.number();
        put(pool, handle)?;
        state.pools.insert(handle, Pool::new(asked.location as usize, asked.max_size));
    }
    // Returns at once. Blocks in use stay until they are freed.
    cuMemPoolDestroy(pool: usize) |state| {
        let found = state.pool(pool)?;
        if pool == default_of(found.device) {
            return Err(INVALID_VALUE);
        }
        found.destroyed = true;
        state.end_pool(pool);
    }
    cuMemPoolTrimTo(pool: usize, keep: usize) |state| {
        state.pool(pool)?;
        state.trim_pool(pool, keep);
    }
    cuMemPoolSetAttribute(pool: usize, which: i32, value: *const c_void) |state| {
        let pool = state.pool(pool)?;
        match which {
            _ if value.is_null() => return Err(INVALID_VALUE),
            1..=3 => {}
            attribute::RELEASE_THRESHOLD => pool.threshold = value.cast::<u64>().read(),
            _ => return Err(INVALID_VALUE),
        }
    }
    cuMemPoolGetAttribute(pool: usize, which: i32, value: *mut c_void) |state| {
        let found = state.pool(pool)?;
        let (threshold, reserved) = (found.threshold, found.reserved());
        let of_pool = state.allocations.values().filter(|live| live.pool() == Some(pool));
        let used: usize = of_pool.map(|live| live.size).sum();
        match which {
            attribute::RELEASE_THRESHOLD => put(value.cast(), threshold)?,
            attribute::RESERVED => put(value.cast(), reserved as u64)?,
            attribute::USED => put(value.cast(), used as u64)?,
            _ => return Err(INVALID_VALUE),
        }
    }
}

impl State {
    fn device_of(&mut self, stream: usize) -> Answer<usize> {
        let context = find(&mut self.streams, stream)?.context;
        Ok(self.context(context)?.device)
    }

    /// Allocates in the order of a stream. A block that the same stream has freed may be reused
    /// before that free completes.
    fn allocate_in(&mut self, stream: usize, pool: usize, bytes: usize) -> Answer<usize> {
        let context = find(&mut self.streams, stream)?.context;
        let again = self
            .allocations
            .iter()
            .find(|(_, live)| live.dying == Some(stream) && live.size == bytes && live.pool() == Some(pool));
        let again = again.map(|(address, _)| *address);
        let Some(address) = again else {
            // A failed allocation submits nothing.
            let address = self.allocate(context, Kind::Device, bytes, Origin::Pool { pool, born: 0 })?;
            let born = self.submit(stream, Action::Born)?;
            if let Some(live) = self.allocations.get_mut(&address) {
                live.origin = Origin::Pool { pool, born };
            }
            return Ok(address);
        };
        let born = self.submit(stream, Action::Born)?;
        let id = self.number() as u64;
        if let Some(live) = self.allocations.get_mut(&address) {
            (live.id, live.origin, live.dying) = (id, Origin::Pool { pool, born }, None);
        }
        Ok(address)
    }
}

const _: () = assert!(size_of::<Properties>() == 88);
