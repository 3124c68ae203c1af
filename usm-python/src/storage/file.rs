//! Bytes of a file, read by several threads straight into the pinned blocks of a copy to a GPU.

use pyo3::prelude::*;

use crate::array::Array;

/// Reads the bytes of a contiguous array from an open file, from byte ``from_`` on, and waits.
/// Whether they were all there; ``None``, and nothing was read, where the device has no such way.
#[pyfunction]
#[pyo3(signature = (array, number, from_))]
pub(crate) fn _read_file(
    py: Python<'_>,
    array: &Bound<'_, Array>,
    number: i32,
    from_: u64,
) -> PyResult<Option<bool>> {
    imp::read(py, array.get(), number, from_)
}

#[cfg(unix)]
mod imp {
    use std::fs::File;
    use std::io::{Error, ErrorKind};
    use std::mem::{ManuallyDrop, MaybeUninit};
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::FileExt;
    use std::sync::{Mutex, PoisonError};

    use pyo3::prelude::*;

    use crate::array::Array;
    use crate::text::error::OrRaise;

    pub(super) fn read(py: Python<'_>, array: &Array, number: i32, from: u64) -> PyResult<Option<bool>> {
        let (content, len) = (array.holding(), array.holding().view.nbytes());
        if number < 0 || !content.view.is_c_contiguous() {
            return Ok(None);
        }
        // SAFETY: the caller's open file, which is not closed here. A number that is none is
        // refused by the system.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
        let refusal: Mutex<Option<Error>> = Mutex::new(None);
        let lock = || refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let fill = |start: usize, room: &mut [MaybeUninit<u8>]| {
            room.fill(MaybeUninit::new(0));
            // SAFETY: all bytes are initialised.
            let room = unsafe { &mut *(std::ptr::from_mut(room) as *mut [u8]) };
            let outcome = file.read_exact_at(room, from.saturating_add(start as u64));
            outcome.map_err(|error| *lock() = Some(error)).is_ok()
        };
        let (storage, queue, offset) = (content.storage(), &content.stream.queue, content.view.offset());
        // SAFETY: `fill` has written the whole slice where it returns true.
        let is_whole = py.detach(|| unsafe { storage.write_by(queue, offset, len, &fill) }).or_raise()?;
        match refusal.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
            _ => Ok(is_whole),
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use pyo3::prelude::*;

    use crate::array::Array;

    pub(super) fn read(_: Python<'_>, _: &Array, _: i32, _: u64) -> PyResult<Option<bool>> {
        Ok(None)
    }
}
