//! Arrays in another process's memory: the handle, its export and its import.

use std::str;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use usm_core::ipc::IpcHandle;
use usm_interface::Layout;

use crate::array::Array;
use crate::array::dtype::PyDtype;
use crate::array::view::{MAX_DIMS, View};
use crate::device::choice;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

#[pymethods]
impl Array {
    /// A handle as bytes. :func:`usm.open_ipc` in another process makes an array on this memory
    /// from it. Waits for the work that writes the memory. This process must keep the memory while
    /// another one uses it. On Linux the first handle of an allocation opens a socket, which the
    /// free of the memory closes. :class:`usm.DeviceError` if the runtime has no such handles, or
    /// none for this kind: the host, OpenCL and SYCL have none.
    fn ipc_handle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let Side { storage, view, .. } = self.side();
        // SAFETY: it names the memory, and uses none of it.
        let handle = py.detach(|| unsafe { storage.allocation() }.export_ipc()).or_raise()?;
        let mut bytes = handle.to_bytes().to_vec();
        bytes.extend_from_slice(describe(&view, storage.is_readonly()).as_bytes());
        Ok(PyBytes::new(py, &seal(&bytes)))
    }
}

/// Bytes of the checksum and of the length, at the start of a handle.
const SEAL: usize = 16;

/// Puts checksum and length before the content of a handle. Runtimes do not recognise every altered
/// handle of theirs, and would open other memory.
fn seal(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_le_bytes();
    let sum = checksum(&length, content).to_le_bytes();
    [&sum, &length, content].concat()
}

/// The content that [`seal`] took.
fn unseal(handle: &[u8]) -> PyResult<&[u8]> {
    let handle_error = |what: String| Err(Class::Interface.error(format!("handle: {what}")));
    let Some((start, content)) = handle.split_at_checked(SEAL) else {
        return handle_error(format!("{} bytes, not {SEAL} and more", handle.len()));
    };
    let (sum, length) = start.split_at(SEAL / 2);
    if length != (content.len() as u64).to_le_bytes() {
        return handle_error(format!("{} bytes are not its length, or not a handle of usm", handle.len()));
    }
    if sum != checksum(length, content).to_le_bytes() {
        return handle_error("its bytes were altered, because the checksum is another one".to_owned());
    }
    Ok(content)
}

/// 64-bit FNV-1a, which every change of one byte changes.
fn checksum(length: &[u8], content: &[u8]) -> u64 {
    length
        .iter()
        .chain(content)
        .fold(0xCBF2_9CE4_8422_2325, |sum: u64, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Describes the layout in a handle's memory: a line each for type, members, offset, shape, strides
/// and read-only flag.
fn describe(view: &View, readonly: bool) -> String {
    let list = |values: &[isize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let element = PyDtype::of_view(view);
    let members = element.descr.as_deref().map_or("", |members| members);
    let (shape, strides) = (list(view.shape()), list(view.strides()));
    format!("{}\n{members}\n{}\n{shape}\n{strides}\n{readonly}", element.text(), view.offset())
}

/// The view that [`describe`] wrote, proven to lie inside `size` bytes.
fn read(text: &[u8], size: u64) -> PyResult<(View, bool)> {
    let handle_error = |what: &str| Class::Interface.error(format!("handle: {what}"));
    let text = str::from_utf8(text).map_err(|_| handle_error("no text behind the runtime's part"))?;
    let lines: Vec<&str> = text.split('\n').collect();
    let [word, members, offset, shape, strides, readonly] = lines[..] else {
        return Err(handle_error(&format!("{} lines, not 6", lines.len())));
    };
    let list = |name: &str, text: &str| {
        let numbers: Result<Vec<i64>, _> = text.split_whitespace().map(str::parse).collect();
        numbers.map_err(|error| handle_error(&format!("{name} {text:?}: {error}")))
    };
    let element = match members {
        "" => PyDtype::of_text(word),
        members => PyDtype::structure(word, members),
    };
    let element = element.map_err(|error| handle_error(&Python::attach(|py| error.value(py).to_string())))?;
    let (shape, strides, offset) =
        (list("shape", shape)?, list("strides", strides)?, list("offset", offset)?);
    let readonly = readonly.parse().map_err(|_| handle_error(&format!("read-only {readonly:?}")))?;
    let &[offset] = &offset[..] else { return Err(handle_error("no offset")) };
    let layout = Layout::<MAX_DIMS>::new(element.dtype, &shape, Some(&strides), offset)
        .map_err(|error| handle_error(&error.to_string()))?;
    let extent = layout.extent();
    if extent.low < 0 || u64::try_from(extent.high).is_ok_and(|high| high > size) {
        return Err(handle_error(&format!("bytes {} to {} of {size}", extent.low, extent.high)));
    }
    let view = View { descr: element.descr, ..View::of_layout(&layout) };
    // A view counts from the lowest byte of its layout, a handle from the memory's first byte.
    Ok((view.moved_to(view.offset() + extent.low as usize), readonly))
}

/// Makes an array on the memory that :meth:`Array.ipc_handle` named in another process, without a
/// copy. The other process must keep the memory, and both must order their work on it. ``device``
/// or ``queue`` select the place, as in :func:`usm.empty`. :class:`usm.InterfaceError` for an
/// altered or cut handle; :class:`usm.DeviceError` for a handle of another runtime, of this
/// process, of a process that has ended, and on Linux of memory that was freed. A process in
/// another network namespace, such as another container's, looks like one that has ended.
#[pyfunction]
#[pyo3(signature = (handle, *, device=None, queue=None))]
pub(crate) fn open_ipc<'py>(
    py: Python<'py>,
    handle: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    queue: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, Array>> {
    let Ok(bytes) = handle.cast::<PyBytes>() else {
        return Err(argument::type_error("handle", handle, "the bytes that Array.ipc_handle gave"));
    };
    let content = unseal(bytes.as_bytes())?;
    let (native, text) = content.split_at(IpcHandle::BYTES.min(content.len()));
    let ipc_handle =
        IpcHandle::from_bytes(native).map_err(|error| Class::Interface.error(format!("handle: {error}")))?;
    let (view, readonly) = read(text, ipc_handle.size())?;
    let stream = match choice::queue_of_arguments(py, device, queue)? {
        Some(stream) => stream,
        None => choice::stream(py, None)?,
    };
    let context = stream.context();
    // SAFETY: the documentation demands that the other process keeps the memory. No runtime can
    // check it.
    let allocation = py.detach(|| unsafe { context.open_ipc(&ipc_handle) }).or_raise()?;
    let storage = Storage::of_other_process(allocation).restricted(readonly);
    Array::new(Side { storage, stream, view }).into_object(py)
}
