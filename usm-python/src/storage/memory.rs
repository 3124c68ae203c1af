//! `usm.memory`: the interface of `dpctl.memory`, so that code and tests work after a change of the
//! import.

use std::ffi::c_int;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyInt, PyTuple};
use usm_core::{Access, AllocKind, Request};

use crate::array::Array;
use crate::device::choice;
use crate::device::handles::PyQueue;
use crate::exchange::buffer::HeldBuffer;
use crate::exchange::export;
use crate::exchange::import;
use crate::exchange::sycl;
use crate::process::once::name;
use crate::process::pickled;
use crate::process::wait::{self, Protocol};
use crate::storage::Storage;
use crate::storage::handle::Memory;
use crate::storage::source::Source;
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $python:literal, $kind:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, subclass, extends = Memory, module = "usm.memory", name = $python)]
            #[derive(Debug)]
            pub(crate) struct $name;

            #[pymethods]
            impl $name {
                #[new]
                #[pyo3(signature = (other, *, alignment=0, queue=None, copy=false))]
                fn new(
                    other: &Bound<'_, PyAny>,
                    #[pyo3(from_py_with = argument::alignment)] alignment: usize,
                    queue: Option<&Bound<'_, PyAny>>,
                    copy: bool,
                ) -> PyResult<PyClassInitializer<Self>> {
                    let memory = Memory::new(AllocKind::$kind, other, alignment, queue, copy)?;
                    Ok(PyClassInitializer::from(memory).add_subclass(Self))
                }
            }
        )*

        /// An object of the class for the memory's kind.
        pub(crate) fn wrap<'py>(py: Python<'py>, memory: Memory) -> PyResult<Bound<'py, PyAny>> {
            match memory.storage.kind() {
                $(AllocKind::$kind => {
                    let object = PyClassInitializer::from(memory).add_subclass($name);
                    Ok(Bound::new(py, object)?.into_any())
                })*
                AllocKind::Unknown => Err(Class::Interface.error("memory of unknown kind")),
            }
        }
    };
}

kinds! {
    /// USM host memory.
    Host = "MemoryUSMHost", Host;
    /// USM device memory.
    Device = "MemoryUSMDevice", Device;
    /// USM shared memory.
    Shared = "MemoryUSMShared", Shared;
}

impl Memory {
    fn new(
        kind: AllocKind,
        other: &Bound<'_, PyAny>,
        alignment: usize,
        queue: Option<&Bound<'_, PyAny>>,
        copy: bool,
    ) -> PyResult<Self> {
        let py = other.py();
        // Memory of another object keeps its place, but a wrong argument is not taken in silence.
        Request::new(kind, 1).aligned_to(alignment).layout().or_raise()?;
        // A plain number is no object with memory.
        let plain = other.is_exact_instance_of::<PyInt>();
        let Some(source) = (if plain { None } else { Self::source(other)? }) else {
            let nbytes = size(other)?;
            let stream = choice::stream(py, queue)?;
            let source = Source::of(py, &stream, kind)?;
            let make = || Storage::allocate_from(&source, &stream, kind, nbytes, alignment);
            let is_quick = source.is_quick(&stream, nbytes);
            let storage = if is_quick { make() } else { py.detach(make) }.or_raise()?;
            return Ok(Self { storage, stream, offset: 0, nbytes });
        };
        if copy {
            let stream = match queue.filter(|queue| !queue.is_none()) {
                Some(queue) => choice::stream(py, Some(queue))?,
                None => Arc::clone(&source.stream),
            };
            return Ok(Self::of_span(transfer::duplicate(py, &source.side()?, &stream, kind, alignment)?));
        }
        let source_kind = source.storage.kind();
        if source_kind != kind {
            let class = other.get_type().name()?;
            return Err(Class::Request.error(format!(
                "the argument of type {class} holds {source_kind} memory, not {kind} memory; use copy=True, or the \
                 constructor for {source_kind} memory"
            )));
        }
        Ok(source)
    }

    /// Imports memory of another object without a copy; `None` for an object that may be a size.
    fn source(other: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(memory) = other.cast::<Self>() {
            return Ok(Some(memory.get().share()));
        }
        if let Ok(array) = other.cast::<Array>() {
            return Ok(Some(Self::of_span(array.get().side())));
        }
        // An object of dpctl's class too has ours inside.
        if let Some(memory) = other.getattr_opt(name!(other.py(), "_usm_memory"))?
            && let Ok(memory) = memory.cast::<Self>()
        {
            return Ok(Some(memory.get().share()));
        }
        Ok(import::sycl_memory(other, true)?.map(|array| Self::of_span(array.get().side())))
    }

    /// The memory's kind for `syclobj`, by default its own.
    fn kind_for(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<AllocKind> {
        let Some(syclobj) = syclobj.filter(|syclobj| !syclobj.is_none()) else {
            return Ok(self.storage.kind());
        };
        if !sycl::looks_like_queue(syclobj)? {
            return Err(PyTypeError::new_err("syclobj is neither a queue nor a context"));
        }
        let stream = sycl::stream_of(syclobj)?;
        Ok(stream.context().query(self.pointer() as *const u8).or_raise()?.kind)
    }
}

/// Reads a number of bytes with `__index__`.
fn size(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let name = || value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    let wrong = || {
        Class::Request.error(format!(
            "an object of type {} is no number of bytes and does not expose __sycl_usm_array_interface__",
            name()
        ))
    };
    let index = match value.is_exact_instance_of::<PyInt>() {
        true => value.clone(),
        false => value
            .call_method0(name!(value.py(), "__index__"))
            .map_err(|error| argument::conversion_error(value.py(), error, wrong))?,
    };
    match index.extract::<i128>() {
        Ok(nbytes) if nbytes > 0 => usize::try_from(nbytes)
            .map_err(|_| Class::Allocation.error(format!("{nbytes} bytes do not fit the address space"))),
        Ok(_) => Err(Class::Request.error("Number of bytes of request allocation must be positive.")),
        Err(_) => Err(Class::Allocation.error("the number of bytes does not fit the address space")),
    }
}

#[pymethods]
impl Memory {
    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Size in bytes, as `nbytes`.
    #[getter]
    fn size(&self) -> usize {
        self.nbytes
    }

    /// Whether dpctl's classes can stand for it: memory of SYCL that may be written.
    #[getter]
    fn _is_dpctls(&self) -> bool {
        self.stream.is_sycl() && !self.storage.is_readonly()
    }

    /// Address of the first byte.
    #[getter]
    fn _pointer(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.storage.escape_unordered()).or_raise()?;
        Ok(self.pointer())
    }

    /// The queue, of usm's own class.
    #[getter]
    fn queue(&self) -> PyQueue {
        PyQueue(Arc::clone(&self.stream))
    }

    /// The queue: dpctl's class for SYCL memory, otherwise usm's own.
    #[getter]
    fn sycl_queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.stream.is_sycl() {
            return sycl::dpctl_queue(py, &self.stream);
        }
        Ok(Bound::new(py, self.queue())?.into_any())
    }

    #[getter]
    fn _queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.sycl_queue(py)
    }

    /// The `dpctl.SyclContext` of the queue; SYCL only.
    #[getter]
    fn sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = if self.stream.is_sycl() { "sycl_context" } else { "context" };
        self.sycl_queue(py)?.getattr(name)
    }

    #[getter]
    fn _context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.sycl_context(py)
    }

    /// The `dpctl.SyclDevice` of the queue; SYCL only.
    #[getter]
    fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = if self.stream.is_sycl() { "sycl_device" } else { "device" };
        self.sycl_queue(py)?.getattr(name)
    }

    /// The producer of imported memory; `None` for usm's own memory.
    #[getter]
    fn reference_obj<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.storage.owner().map(|owner| owner.bind(py))
    }

    /// The kind of the memory: `"host"`, `"device"` or `"shared"`. With a queue or context
    /// `syclobj`, `"unknown"` if that does not know the memory.
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<&'static str> {
        self.kind_for(syclobj).map(AllocKind::name)
    }

    /// `get_usm_type` as SYCL's number: unknown 0, device 1, shared 2, host 3.
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type_enum(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        Ok(match self.kind_for(syclobj)? {
            AllocKind::Unknown => 0,
            AllocKind::Device => 1,
            AllocKind::Shared => 2,
            AllocKind::Host => 3,
        })
    }

    /// Copies to the host: to `obj`, a writable buffer of at least as many bytes, or to a new
    /// bytearray.
    #[pyo3(signature = (obj=None))]
    fn copy_to_host<'py>(
        &self,
        py: Python<'py>,
        obj: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let target = match obj {
            Some(obj) => obj.clone(),
            None => PyByteArray::new_with(py, self.nbytes, |_| Ok(()))?.into_any(),
        };
        let buffer = HeldBuffer::new(&target, true)?;
        self.check_room("destination", buffer.len() >= self.nbytes, buffer.len())?;
        wait::for_access(py, &self.storage, &self.stream, Access::Read)?;
        let read = py.detach(|| self.storage.read(&self.stream.queue, self.offset, self.nbytes, buffer));
        drop(read.or_raise()?);
        Ok(target)
    }

    /// Copies the bytes of a buffer to the start of the memory.
    fn copy_from_host(&self, py: Python<'_>, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = HeldBuffer::new(obj, false)?;
        self.check_room("source", buffer.len() <= self.nbytes, buffer.len())?;
        wait::for_access(py, &self.storage, &self.stream, Access::Write)?;
        py.detach(|| self.storage.write(&self.stream.queue, self.offset, buffer)).or_raise()
    }

    /// Copies the bytes of other USM memory to the start of this memory.
    fn copy_from_device(&self, py: Python<'_>, sycl_usm_ary: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(source) = Self::source(sycl_usm_ary)? else {
            let fits = "an object with __sycl_usm_array_interface__";
            return Err(argument::type_error("sycl_usm_ary", sycl_usm_ary, fits));
        };
        self.check_room("source", source.nbytes <= self.nbytes, source.nbytes)?;
        let mut target = self.share();
        target.nbytes = source.nbytes;
        transfer::copy(py, &target.side()?, &source.side()?)
    }

    /// Sets every byte to a value.
    #[pyo3(signature = (val=0))]
    fn memset(&self, py: Python<'_>, val: u8) -> PyResult<()> {
        let fill = || self.storage.submit_fill(&self.stream.queue, self.offset, self.nbytes, &[val]);
        let event = py.detach(fill).or_raise()?;
        self.stream.note(&event);
        wait::for_event(py, &event)
    }

    /// A copy of the bytes.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        transfer::to_object(py, &self.side()?)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.tobytes(py)
    }

    /// NumPy's conversion. :class:`usm.AccessError` if the host cannot access the memory.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export::as_numpy(slf, slf.get().storage.kind(), dtype, copy)
            .map_err(|error| to_type_error(slf.py(), error))
    }

    /// NumPy's functions. They treat the memory as any other array.
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

    fn __len__(&self) -> usize {
        self.nbytes
    }

    fn __sizeof__(&self) -> usize {
        self.nbytes + size_of::<Self>()
    }

    fn __repr__(&self) -> String {
        let kind = self.storage.kind();
        format!("<SYCL(TM) USM-{kind} allocation of {} bytes at {:#x}>", self.nbytes, self.pointer())
    }

    /// Pickles a host copy, which is restored on the default queue.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let rebuild = py.import("usm.memory")?.getattr("_rebuild_memory")?;
        let arguments = PyTuple::new(
            py,
            [self.tobytes(py)?.into_any(), self.storage.kind().name().into_pyobject(py)?.into_any()],
        )?;
        PyTuple::new(py, [rebuild, arguments.into_any()])
    }

    /// The bytes as `|u1`, with the queue as `syclobj`. SYCL memory only. Waits for work in flight.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        export::require_sycl(&self.stream)?;
        transfer::expose(py, &self.storage)?;
        let dict = PyDict::new(py);
        // dpctl's own memory exports True for writable memory; the documents and dpnp define True =
        // read-only. An offset distinguishes this dictionary from dpctl's own.
        let readonly = self.storage.is_readonly();
        dict.set_item(name!(py, "data"), (self.pointer(), readonly))?;
        if readonly {
            dict.set_item(name!(py, "offset"), 0)?;
        }
        dict.set_item(name!(py, "shape"), (self.nbytes,))?;
        dict.set_item(name!(py, "strides"), py.None())?;
        dict.set_item(name!(py, "typestr"), "|u1")?;
        dict.set_item(name!(py, "version"), 1)?;
        dict.set_item(name!(py, "syclobj"), sycl::syclobj(py, &self.stream)?)?;
        Ok(dict)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, raw: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let memory = slf.get();
        transfer::expose_to_host(slf.py(), &memory.storage, Protocol::Buffer)
            .map_err(|error| to_type_error(slf.py(), error))?;
        let pointer = memory.pointer() as *mut u8;
        let (view, readonly) = (memory.side()?.view, memory.storage.is_readonly());
        // SAFETY: the structure is Python's. The bytes are host memory, which the object keeps
        // alive.
        unsafe { crate::exchange::buffer::fill(raw, flags, slf.clone().into_any(), pointer, &view, readonly) }
    }

    unsafe fn __releasebuffer__(&self, raw: *mut ffi::Py_buffer) {
        // SAFETY: Python returns the structure that `__getbuffer__` filled.
        unsafe { crate::exchange::buffer::release(raw) };
    }
}

impl Memory {
    fn check_room(&self, what: &str, fits: bool, actual: usize) -> PyResult<()> {
        if fits {
            return Ok(());
        }
        Err(Class::Request.error(format!("the {what} has {actual} bytes, the memory {}", self.nbytes)))
    }
}

/// An `AccessError` that is a `TypeError` too, which dpctl's users catch.
fn to_type_error(py: Python<'_>, error: PyErr) -> PyErr {
    if !Class::Access.is_of(&error, py) {
        return error;
    }
    let both = py.import("usm.errors").and_then(|module| module.getattr("_MemoryAccessError"));
    both.and_then(|both| both.call1((error.value(py).to_string(),)))
        .map_or_else(|other| other, PyErr::from_value)
}

/// Imports USM memory of an object without a copy, as the class for its kind.
#[pyfunction]
pub(crate) fn as_usm_memory<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Some(memory) = Memory::source(obj)? else {
        let class = obj.get_type().name()?;
        return Err(Class::Interface
            .error(format!("an object of type {class} does not expose __sycl_usm_array_interface__")));
    };
    wrap(obj.py(), memory)
}

/// The counterpart of `__reduce__`.
#[pyfunction]
pub(crate) fn _rebuild_memory<'py>(
    py: Python<'py>,
    content: &Bound<'py, PyAny>,
    kind: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (kind, buffer) = pickled::read(py, "a memory", || {
        Ok((argument::kind(pickled::text("kind", kind)?)?, HeldBuffer::new(content, false)?))
    })?;
    let stream = choice::stream(py, None)?;
    let nbytes = buffer.len();
    let storage = py
        .detach(|| {
            let storage = Storage::allocate(&stream, kind, nbytes, 0)?;
            storage.write(&stream.queue, 0, buffer).map(|()| storage)
        })
        .or_raise()?;
    wrap(py, Memory { storage, stream, offset: 0, nbytes: nbytes.max(1) })
}
