//! Memory shared between processes and between devices.

use crate::arena::Views;
use crate::code::{
    INVALID_CONTEXT, INVALID_VALUE, PEER_ACCESS_ALREADY_ENABLED, PEER_ACCESS_NOT_ENABLED,
    PEER_ACCESS_UNSUPPORTED,
};
use crate::export::{functions, put};
use crate::memory::{Allocation, Kind, Origin};
use crate::state::find;

/// The first word of a handle.
const MAGIC: u64 = 0x75_73_6D_63_75_64_61_31;
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_PEER_ACCESS: u32 = 1;
/// Mappings start at multiples of this.
const PAGE: usize = 4096;

/// `CUipcMemHandle`: a process, one of its files, and a range of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    magic: u64,
    process: u64,
    file: u64,
    offset: u64,
    bytes: u64,
    rest: [u64; 3],
}

functions! {
    cuIpcGetMemHandle(handle: *mut Handle, address: usize) |state| {
        state.current()?;
        let live = state.allocations.get(&address).ok_or(INVALID_VALUE)?;
        if live.kind != Kind::Device || !matches!(live.origin, Origin::Plain) {
            return Err(INVALID_VALUE);
        }
        let arena = &state.spaces.device;
        put(handle, Handle {
            magic: MAGIC,
            process: u64::from(std::process::id()),
            file: arena.file as u64,
            offset: (address - arena.views.seen) as u64,
            bytes: live.size as u64,
            rest: [0; 3],
        })?;
    }
    cuIpcOpenMemHandle_v2(address: *mut usize, handle: Handle, flags: u32) |state| {
        let context = state.current()?;
        if handle.magic != MAGIC || flags != LAZY_PEER_ACCESS {
            return Err(INVALID_VALUE);
        }
        // A process cannot open its own handle.
        if handle.process == u64::from(std::process::id()) {
            return Err(INVALID_CONTEXT);
        }
        let path = alloc::ffi::CString::new(format!("/proc/{}/fd/{}", handle.process, handle.file));
        let file = libc::open(path.map_err(|_| INVALID_VALUE)?.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return Err(INVALID_VALUE);
        }
        let (offset, size) = (handle.offset as usize, handle.bytes as usize);
        let before = offset % PAGE;
        let views = Views::of(file, offset - before, before + size, false);
        libc::close(file);
        let views = views.ok_or(INVALID_VALUE)?;
        let start = views.seen + before;
        let (device, id) = (state.context(context)?.device, state.number() as u64);
        let (kind, origin) = (Kind::Device, Origin::Opened(views));
        state.allocations.insert(start, Allocation { kind, device, context, size, id, origin, dying: None });
        put(address, start)?;
    }
    cuIpcCloseMemHandle(address: usize) |state| {
        state.current()?;
        match state.allocations.get(&address).map(|live| &live.origin) {
            Some(Origin::Opened(_)) => state.release(address),
            _ => return Err(INVALID_VALUE),
        }
    }
    cuCtxEnablePeerAccess(peer: usize, flags: u32) |state| {
        let (current, theirs) = (state.current()?, state.context(peer)?.device);
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if state.context(current)?.device == theirs {
            return Err(PEER_ACCESS_UNSUPPORTED);
        }
        if !find(&mut state.contexts, current)?.peers.insert(peer) {
            return Err(PEER_ACCESS_ALREADY_ENABLED);
        }
    }
    cuCtxDisablePeerAccess(peer: usize) |state| {
        let current = state.current()?;
        if !find(&mut state.contexts, current)?.peers.remove(&peer) {
            return Err(PEER_ACCESS_NOT_ENABLED);
        }
    }
}

const _: () = assert!(size_of::<Handle>() == 64);
