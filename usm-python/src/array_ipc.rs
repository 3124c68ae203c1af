//! Arrays in memory that another process has: the handle that travels, and both of its ends.

use std::str;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use usm_core::ipc::IpcHandle;
use usm_interface::Layout;

use crate::argument;
use crate::array::Array;
use crate::dtype::PyDtype;
use crate::error::{Class, OrRaise};
use crate::import;
use crate::storage::Storage;
use crate::transfer::Side;
use crate::view::{MAX_DIMS, View};

#[pymethods]
impl Array {
    /// A handle, as bytes, by which :func:`usm.open_ipc` in another process makes an array over
    /// this memory. Waits for the work that writes it. This process keeps the memory as long as
    /// another one uses it. :class:`usm.DeviceError` where the runtime has no such handles, or not
    /// for this kind: the host, OpenCL and SYCL have none.
    fn ipc_handle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let Side { storage, view, .. } = self.side();
        let handle = py.detach(|| storage.allocation().export_ipc()).or_raise()?;
        let mut bytes = handle.to_bytes().to_vec();
        bytes.extend_from_slice(describe(&view, storage.is_readonly()).as_bytes());
        Ok(PyBytes::new(py, &bytes))
    }
}

/// How an array lies in the memory of a handle: a line each for type, members, offset, shape,
/// strides and whether it is read-only.
fn describe(view: &View, readonly: bool) -> String {
    let list = |values: &[isize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let element = PyDtype::of_view(view);
    let members = element.descr.as_deref().unwrap_or_default();
    let (shape, strides) = (list(&view.shape), list(&view.strides));
    format!("{}\n{members}\n{}\n{shape}\n{strides}\n{readonly}", element.text(), view.offset)
}

/// The view that [`describe`] wrote, proven to stay inside `size` bytes.
fn read(text: &[u8], size: u64) -> PyResult<(View, bool)> {
    let altered = |what: &str| Class::Interface.error(format!("handle: {what}"));
    let text = str::from_utf8(text).map_err(|_| altered("no text behind the runtime's part"))?;
    let lines: Vec<&str> = text.split('\n').collect();
    let [word, members, offset, shape, strides, readonly] = lines[..] else {
        return Err(altered(&format!("{} lines, not 6", lines.len())));
    };
    let list = |name: &str, text: &str| {
        let numbers: Result<Vec<i64>, _> = text.split_whitespace().map(str::parse).collect();
        numbers.map_err(|error| altered(&format!("{name} {text:?}: {error}")))
    };
    let element = match members {
        "" => PyDtype::of_text(word)?,
        members => PyDtype::structure(word, members)?,
    };
    let (shape, strides, offset) =
        (list("shape", shape)?, list("strides", strides)?, list("offset", offset)?);
    let readonly = readonly.parse().map_err(|_| altered(&format!("read-only {readonly:?}")))?;
    let &[offset] = &offset[..] else { return Err(altered("no offset")) };
    let layout = Layout::<MAX_DIMS>::new(element.dtype, &shape, Some(&strides), offset).or_raise()?;
    let extent = layout.extent();
    if extent.low < 0 || u64::try_from(extent.high).is_ok_and(|high| high > size) {
        return Err(altered(&format!("bytes {} to {} of {size}", extent.low, extent.high)));
    }
    let view = View { descr: element.descr, ..View::of_layout(&layout) };
    // A view counts from the lowest byte of its layout, and the handle from the memory's first.
    Ok((View { offset: view.offset + extent.low as usize, ..view }, readonly))
}

/// An array over the memory that :meth:`Array.ipc_handle` named in another process, without a copy.
/// The other process keeps the memory, and both order what they do with it. ``device`` or ``queue``
/// say where, as for :func:`usm.empty`. :class:`usm.InterfaceError` for what is no handle,
/// :class:`usm.DeviceError` for one of another runtime, of this process, or of memory that is gone.
#[pyfunction]
#[pyo3(signature = (handle, *, device=None, queue=None))]
pub(crate) fn open_ipc(
    py: Python<'_>,
    handle: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Array> {
    let Ok(bytes) = handle.cast::<PyBytes>() else {
        return Err(argument::wrong("handle", handle, "the bytes that Array.ipc_handle gave"));
    };
    let (native, text) = bytes.as_bytes().split_at(IpcHandle::BYTES.min(bytes.as_bytes().len()));
    let named =
        IpcHandle::from_bytes(native).map_err(|error| Class::Interface.error(format!("handle: {error}")))?;
    let (view, readonly) = read(text, named.size())?;
    let stream = match import::place(py, device, queue)? {
        Some(stream) => stream,
        None => import::stream(py, None)?,
    };
    let context = stream.context();
    // SAFETY: the other process keeps the memory, as the documentation asks of the caller: no
    // runtime can say whether it does.
    let opened = py.detach(|| unsafe { context.open_ipc(&named) }).or_raise()?;
    let storage = Storage::opened(opened).restricted(readonly);
    Ok(Array::new(Side { storage, stream, view }))
}
