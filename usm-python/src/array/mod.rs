//! `usm.Array`.

mod absent_methods;
pub(crate) mod construct;
pub(crate) mod content;
pub(crate) mod conversion;
pub(crate) mod create;
pub(crate) mod dtype;
pub(crate) mod field;
mod form;
pub(crate) mod ipc;
pub(crate) mod members;
pub(crate) mod operators;
pub(crate) mod placement;
pub(crate) mod reinterpretation;
mod rows;
pub(crate) mod scalar;
pub(crate) mod selection;
mod shape;
pub(crate) mod structures;
pub(crate) mod text;
pub(crate) mod travel;
pub(crate) mod ufunc;
pub(crate) mod uniform;
pub(crate) mod view;

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyString, PyTuple};

use usm_core::Access;

use crate::array::dtype::PyDtype;
use crate::array::form::{Element, Form};
use crate::array::rows::Rows;
use crate::device::choice;
use crate::device::handles::PyContext;
use crate::device::handles::PyDevice;
use crate::device::handles::PyQueue;
use crate::exchange::arrow;
use crate::exchange::dlpack::{self, ExportOptions};
use crate::exchange::export;
use crate::exchange::import;
use crate::process::wait::{self, Protocol};
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::argument::{self, Kind};
use crate::text::error::OrRaise;
use crate::text::html::bundle;

pub(crate) use crate::array::form::Array;

bundle!(Array, "text/html", |array, py| Ok(array._repr_html_(py)));

#[pymethods]
impl Array {
    /// Extents in elements: a tuple with one integer for each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.view().shape().iter())
    }

    /// Strides in bytes: a tuple with one integer for each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.view().strides().iter())
    }

    /// The element type. It equals NumPy's type and the type string.
    #[getter]
    fn dtype(&self) -> PyDtype {
        PyDtype::of_view(self.view())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.view().ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.view().len()
    }

    /// Size of one element in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.view().itemsize()
    }

    /// Size of all elements in bytes, without gaps.
    #[getter]
    fn nbytes(&self) -> usize {
        self.view().nbytes()
    }

    /// The kind of the memory: `"host"`, `"device"` or `"shared"`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.holding().kind().name()
    }

    /// Whether the memory is read-only.
    #[getter]
    fn readonly(&self) -> bool {
        self.holding().is_readonly()
    }

    /// Address of the element with all indices 0.
    #[getter]
    fn pointer(&self, py: Python<'_>) -> PyResult<usize> {
        if let Some(storage) = self.holding().own_storage() {
            py.detach(|| storage.escape_unordered()).or_raise()?;
        }
        Ok(self._address())
    }

    /// `pointer` for comparisons within the package.
    #[getter]
    fn _address(&self) -> usize {
        self.holding().address() + self.view().offset()
    }

    /// The queue for work on the array.
    #[getter]
    fn queue(&self) -> PyQueue {
        PyQueue(Arc::clone(&self.holding().stream))
    }

    /// The context of the memory.
    #[getter]
    fn context(&self) -> PyContext {
        PyContext(self.holding().stream.scope())
    }

    /// The device of the memory; `None` if usm does not list it.
    #[getter]
    fn device(&self, py: Python<'_>) -> Option<PyDevice> {
        self.context().device(py)
    }

    /// The producer of imported memory; `None` for usm's own memory.
    #[getter]
    fn base<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.storage().owner().map(|owner| owner.bind(py))
    }

    /// Whether the elements lie in C order without gaps.
    #[getter]
    fn is_c_contiguous(&self) -> bool {
        self.view().is_c_contiguous()
    }

    /// Whether the elements lie in Fortran order without gaps.
    #[getter]
    fn is_f_contiguous(&self) -> bool {
        self.view().is_f_contiguous()
    }

    /// A C-contiguous copy, by default in memory of the same kind, device and context.
    #[pyo3(signature = (*, kind=None, device=None, queue=None))]
    fn copy<'py>(
        &self,
        py: Python<'py>,
        kind: Option<Kind>,
        device: Option<&Bound<'py, PyAny>>,
        queue: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let kind = kind.map_or(self.holding().kind(), |kind| kind.0);
        let place = choice::queue_of_arguments(py, device, queue)?;
        let stream = place.unwrap_or_else(|| Arc::clone(&self.holding().stream));
        Self::new(transfer::duplicate(py, &self.side(), &stream, kind, 0)?).into_object(py)
    }

    /// The array in memory of the same kind on a device: itself if it is already there, otherwise a
    /// copy. `stream` is a queue of that device; the copy then lies in its context.
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device<'py>(
        slf: &Bound<'py, Self>,
        device: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(stream) = stream.filter(|stream| !stream.is_none()) {
            let _ = choice::named_stream(stream, ("stream", argument::QUEUE))?;
        }
        let Some(place) = choice::queue_of_arguments(py, Some(device), stream)? else {
            return Ok(slf.clone());
        };
        let (own_context, target_context) = (this.holding().stream.context(), place.context());
        let same = (own_context.info().backend, own_context.info().ordinal)
            == (target_context.info().backend, target_context.info().ordinal);
        if own_context.id() == target_context.id() || (same && stream.is_none()) {
            return Ok(slf.clone());
        }
        Self::new(transfer::duplicate(py, &this.side(), &place, this.holding().kind(), 0)?).into_object(py)
    }

    /// Sets every element to a value.
    fn fill(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        fill(py, &self.side(), value)
    }

    /// Waits for usm's work on this array.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait::for_uses(py, self.storage(), Access::Write)
    }

    /// The only element of an array of size 1.
    pub(crate) fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Form::Element(Element { of, offset, .. }) = &self.0 {
            return text::element_at(py, of.get().holding(), *offset);
        }
        if self.view().len() != 1 {
            let message =
                format!("only an array of one element has an item; this one has {}", self.view().len());
            return Err(PyValueError::new_err(message));
        }
        text::element_at(py, self.holding(), self.view().offset())
    }

    /// The elements as nested lists. An array of 0 dimensions returns its element.
    ///
    /// >>> array = usm.asarray([[1, 2], [3, 4]], device="host")
    /// >>> array.tolist(), array[1, 0].tolist()
    /// ([[1, 2], [3, 4]], 3)
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_element() {
            return self.item(py);
        }
        text::list_of(py, self.holding())
    }

    /// A copy with elements of another type, in memory of the same kind and device, by NumPy's
    /// rule `casting`. Code of a GPU converts numbers in its memory, NumPy everything else.
    ///
    /// >>> usm.asarray([1.5, 2.5], device="host").astype("i4").tolist()
    /// [1, 2]
    #[pyo3(signature = (dtype, *, casting="unsafe", copy=true))]
    fn astype<'py>(
        slf: &Bound<'py, Self>,
        dtype: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::casting)] casting: &str,
        copy: bool,
    ) -> PyResult<Bound<'py, Self>> {
        conversion::astype(slf, dtype, casting, copy)
    }

    /// The elements as bytes in C order.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        transfer::to_object(py, &self.side())
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.view().shape().first() {
            Some(extent) => Ok(extent.unsigned_abs()),
            None => Err(PyTypeError::new_err("an array of 0 dimensions has no length")),
        }
    }

    /// A view. The name of a member of a structure gives the view of that member. A mask or a list
    /// of integers gives a copy, as in NumPy, which selects the elements.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let (array, view) = (slf.get(), slf.get().view());
        if let Some(offset) = view.offset_of_element(key)? {
            return Self::element(slf, offset);
        }
        let selection = match selection::is_of_values(key)? {
            true => Self::new(selection::copy(slf, key)?),
            false => array.with_view(field::selected(view, key)?),
        };
        selection.into_object(slf.py())
    }

    /// Copies an array or a value to the elements that the key selects. The source is broadcast.
    /// A mask or a list of integers stores in memory of the host, by NumPy.
    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        if selection::is_of_values(key)? {
            return selection::store(slf, key, value);
        }
        let this = slf.get();
        let target = this.holding().with_view(field::selected(this.view(), key)?);
        let dtype = target.view.dtype;
        if scalar::is_number_of_python(value) {
            return fill(py, &target, value);
        }
        if let Ok(array) = value.cast_exact::<Self>() {
            return conversion::store(py, &target, value, &array.get().side());
        }
        if let Some(source) = import::without_copy(value)? {
            let source = source.get().side();
            // A scalar of NumPy's is a number, as Python's are.
            if source.view.dtype != dtype && scalar::number_of_numpy(value)?.is_some() {
                return fill(py, &target, value);
            }
            return conversion::store(py, &target, value, &source);
        }
        if target.view.descr.is_none() && crate::array::construct::is_sequence(value) {
            let side = crate::array::construct::of_values(value, Some(dtype))?;
            return transfer::copy(py, &target, &side);
        }
        fill(py, &target, value)
    }

    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = key;
        Err(PyTypeError::new_err("array elements cannot be deleted"))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Rows> {
        let len = slf.get().__len__()?;
        Ok(Rows::new(slf, len))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<pyo3::types::PyInt>().call1((self.item(py)?,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let item = self.item(py)?;
        match item.cast_exact::<pyo3::types::PyFloat>() {
            Ok(number) => Ok(number.value()),
            Err(_) => item.extract(),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.item(py)?.is_truthy()
    }

    /// Size of the object in bytes, with its memory if this array owns it. Imported memory and
    /// parts of another array do not count.
    fn __sizeof__(&self) -> usize {
        let Form::Whole(content) = &self.0 else { return size_of::<Self>() };
        let is_others = content.is_part || content.content.is_foreign();
        let owned_bytes = if is_others { 0 } else { self.storage().size() };
        size_of::<Self>() + size_of_val(&**content) + owned_bytes
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        text::describe(py, self.holding())
    }

    /// The display in notebooks: shape, type, kind, device and values.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        text::page(py, self.holding())
    }

    /// For SYCL memory only. Waits for work in flight.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::sycl_dictionary(py, &self.side())
    }

    /// For host and shared memory only. Waits for work in flight.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::array_dictionary(py, &self.side())
    }

    /// For CUDA memory only, not HIP's. The dictionary names the array's queue as the stream to
    /// order work after.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::cuda_dictionary(py, &self.side())
    }

    /// DLPack's table for C, version 1.3.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        dlpack::exchange_api(py)
    }

    /// The same by the name that DLPack had before 1.3.
    #[classattr]
    fn __c_dlpack_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        dlpack::exchange_api(py)
    }

    /// DLPack. Waits for work in flight. On CUDA and ROCm the consumer's `stream` waits instead.
    /// :class:`usm.AccessError` for device memory without a DLPack device, unless `copy` True or a
    /// `dl_device` of the host requests a copy.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        dlpack::export(py, &self.side(), &ExportOptions { stream, max_version, dl_device, copy })
    }

    /// Arrow's type of the array as a column. Dimensions after the first become fixed-size lists.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.side())
    }

    /// Arrow's C data interface: capsules of schema and array, which share the memory. Arrow takes
    /// it for memory that nobody changes. :class:`usm.AccessError` for memory that the host cannot
    /// access, another order than C, and elements that Arrow does not have.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer ignore it: nothing is converted.
        let _ = requested_schema;
        arrow::host_pair(py, &self.side())
    }

    /// The device form of :meth:`__arrow_c_array__`: memory of CUDA, ROCm and SYCL too. Waits for
    /// work in flight.
    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        arrow::device_pair(py, &self.side(), kwargs)
    }

    /// NumPy's conversion. :class:`usm.AccessError` if the host cannot access the memory.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::as_numpy(slf, slf.get().holding().kind(), dtype, copy)
    }

    /// NumPy's ``ctypes``: address, shape and strides for functions of C. :class:`usm.AccessError`
    /// if the host cannot access the memory.
    #[getter]
    fn ctypes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        operators::host_view(slf, "ctypes")?.getattr("ctypes")
    }

    /// NumPy's type of the elements, for NumPy 2.4 and later.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype().dtype(py)
    }

    /// NumPy's elementwise functions, on memory that the host can access. Results without `out` are
    /// arrays of NumPy.
    #[allow(clippy::unused_self, reason = "a method of Python's")]
    #[pyo3(signature = (ufunc, method, /, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        &self,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ufunc::call(ufunc, method, inputs, kwargs)
    }

    /// NumPy's functions. They treat the array as any other.
    #[allow(clippy::unused_self, reason = "a method of Python's")]
    fn __array_function__<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::numpy_function(func, types, args, kwargs)
    }

    /// `(type, id)`. USM of SYCL has type 14, and its id counts root devices. CUDA's device, host
    /// and managed memory have types 2, 3 and 13. ROCm's page-locked memory has type 11, its other
    /// memory 10. The host is `(1, 0)`, and so are OpenCL and Level Zero: their device memory is
    /// exported only as a copy.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = dlpack::device(&self.side());
        (device.kind.code(), device.id)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, raw: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let array = slf.get();
        transfer::expose_to_host(slf.py(), array.storage(), Protocol::Buffer)?;
        let pointer = array._address() as *mut u8;
        let readonly = array.holding().is_readonly();
        // SAFETY: the structure is Python's. The view's elements are host memory, which the object
        // keeps alive.
        unsafe {
            crate::exchange::buffer::fill(raw, flags, slf.clone().into_any(), pointer, array.view(), readonly)
        }
    }

    unsafe fn __releasebuffer__(&self, raw: *mut ffi::Py_buffer) {
        // SAFETY: Python returns the structure that `__getbuffer__` filled.
        unsafe { crate::exchange::buffer::release(raw) };
    }
}

/// Sets every element.
fn fill(py: Python<'_>, side: &Side, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if side.view.descr.is_some() {
        let values = structures::of_values(value, &PyDtype::of_view(&side.view));
        return transfer::copy(py, side, &values.map_err(|error| argument::named(py, "value", error))?);
    }
    let bytes = scalar::store(side.view.dtype, value).map_err(|error| argument::named(py, "value", error))?;
    transfer::fill(py, side, bytes)
}
