//! Copies, fills, and hints.

use core::ffi::c_void;

use crate::code::{Answer, INVALID_VALUE};
use crate::command::{Action, Rows};
use crate::export::functions;
use crate::memory::Kind;
use crate::state::State;

/// `CU_MEMORYTYPE_HOST`, `_DEVICE` and `_UNIFIED`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;
/// Maximum bytes between two rows of a copy.
const MOST_PITCH: usize = i32::MAX as usize;

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy2D {
    src: Side,
    dst: Side,
    width: usize,
    height: usize,
}

/// The source or the destination of a copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    x: usize,
    y: usize,
    memory_type: u32,
    host: usize,
    device: usize,
    array: *mut c_void,
    pitch: usize,
}

impl Copy2D {
    /// A copy between two addresses with their pitches, and its width and height.
    pub(super) fn of(dst: [usize; 2], src: [usize; 2], [width, height]: [usize; 2]) -> Self {
        let side = |[device, pitch]: [usize; 2]| {
            let array = core::ptr::null_mut();
            Side { x: 0, y: 0, memory_type: UNIFIED, host: 0, device, array, pitch }
        };
        Self { src: side(src), dst: side(dst), width, height }
    }
}

impl Side {
    /// The rows, if this side is plain memory.
    fn rows(&self, width: usize, height: usize) -> Answer<Rows> {
        let base = match self.memory_type {
            HOST => self.host,
            DEVICE | UNIFIED => self.device,
            _ => return Err(INVALID_VALUE),
        };
        let pitch = if self.pitch == 0 || height <= 1 { width } else { self.pitch };
        if pitch < width || pitch > MOST_PITCH {
            return Err(INVALID_VALUE);
        }
        let above = pitch.checked_mul(self.y).and_then(|above| above.checked_add(self.x));
        let start = above.and_then(|above| base.checked_add(above)).ok_or(INVALID_VALUE)?;
        Ok(Rows { start, pitch })
    }
}

functions! {
    cuMemcpyAsync(to: usize, from: usize, bytes: usize, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        state.copy(Rows::one(to), Rows::one(from), bytes, 1, stream)?;
    }
    cuMemcpy2DAsync_v2(copy: *const Copy2D, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        let copy = copy.as_ref().ok_or(INVALID_VALUE)?;
        let (to, from) = (copy.dst.rows(copy.width, copy.height)?, copy.src.rows(copy.width, copy.height)?);
        state.copy(to, from, copy.width, copy.height, stream)?;
    }
    cuMemsetD8Async(to: usize, value: u8, count: usize, stream: usize) |state| {
        state.fill(Rows::one(to), &[value], count, 1, stream)?;
    }
    cuMemsetD16Async(to: usize, value: u16, count: usize, stream: usize) |state| {
        state.fill(Rows::one(to), &value.to_ne_bytes(), count, 1, stream)?;
    }
    cuMemsetD32Async(to: usize, value: u32, count: usize, stream: usize) |state| {
        state.fill(Rows::one(to), &value.to_ne_bytes(), count, 1, stream)?;
    }
    cuMemsetD2D32Async(to: usize, pitch: usize, value: u32, width: usize, height: usize, stream: usize) |state| {
        state.fill(Rows { start: to, pitch }, &value.to_ne_bytes(), width, height, stream)?;
    }
    cuMemPrefetchAsync(address: usize, bytes: usize, device: i32, stream: usize) |state| {
        state.note(format_args!("{stream:#x}"));
        state.hint(address, bytes, device)?;
        let stream = state.stream(stream)?;
        state.submit(stream, Action::Hint)?;
    }
    cuMemAdvise(address: usize, bytes: usize, advice: i32, device: i32) |state| {
        state.current()?;
        if !(1..=6).contains(&advice) {
            return Err(INVALID_VALUE);
        }
        state.hint(address, bytes, device)?;
    }
}

impl State {
    fn copy(&mut self, to: Rows, from: Rows, width: usize, height: usize, stream: usize) -> Answer {
        let stream = self.stream(stream)?;
        self.current()?;
        for side in [&to, &from] {
            let span = side.span(width, height).ok_or(INVALID_VALUE)?;
            self.resolve(side.start, span).map_err(|_| INVALID_VALUE)?;
        }
        self.submit(stream, Action::Copy { to, from, width, height }).map(drop)
    }

    /// Fills memory of the driver with a repeated value.
    fn fill(&mut self, to: Rows, value: &[u8], count: usize, height: usize, stream: usize) -> Answer {
        self.note(format_args!("{stream:#x}"));
        let stream = self.stream(stream)?;
        self.current()?;
        let width = count.checked_mul(value.len()).ok_or(INVALID_VALUE)?;
        let span = to.span(width, height).ok_or(INVALID_VALUE)?;
        let aligned = to.start % value.len() == 0 && to.pitch % value.len() == 0;
        if !aligned || (height > 1 && to.pitch < width) {
            return Err(INVALID_VALUE);
        }
        if span > 0 {
            self.lookup(to.start).ok_or(INVALID_VALUE)?;
            self.resolve(to.start, span).map_err(|_| INVALID_VALUE)?;
        }
        self.submit(stream, Action::Fill { to, value: value.to_vec(), width, height }).map(drop)
    }

    /// Checks the arguments of a hint: managed memory, and a device or the host.
    fn hint(&mut self, address: usize, bytes: usize, device: i32) -> Answer {
        const CPU: i32 = -1;
        if device != CPU {
            self.device(device)?;
        }
        let found = self.lookup(address).filter(|(_, live)| live.kind == Kind::Managed);
        let (base, live) = found.ok_or(INVALID_VALUE)?;
        let inside = bytes > 0 && bytes <= live.size - (address - base);
        if inside { Ok(()) } else { Err(INVALID_VALUE) }
    }
}
