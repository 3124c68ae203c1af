//! `usm.nrt.MemInfo`: reference-counted blocks as Python objects, and Python objects' memory as
//! blocks.

pub(crate) mod handle;
pub(crate) mod library;
pub(crate) mod origin;
pub(crate) mod route;
pub(crate) mod source;
pub(crate) mod trace;
pub(crate) mod window;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use usm_core::AllocKind;
use usm_interface::{Dtype, Kind};
use usm_nrt::api::kind_number;
use usm_nrt::{MemInfo, Owner, OwnerTag};

use crate::array::Array;
use crate::array::view::View;
use crate::device::runtime as runtimes;
use crate::exchange::export;
use crate::nrt::handle::PyMemInfo;
use crate::nrt::library::{check, check_aligned, runtime};
use crate::process::wait::Protocol;
use crate::storage::handle::Memory;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::argument;
use crate::text::error::Class;

impl PyMemInfo {
    /// The Python object that owns the memory, and whether it is only our view of the given object.
    fn owner<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, bool)> {
        let mut owner = Owner { tag: OwnerTag(0), object: std::ptr::null_mut(), release: None };
        // SAFETY: a live block, and room for the record.
        let has_owner = unsafe { (self.runtime.api.owner)(self.block.as_ptr(), &mut owner) };
        if !has_owner || owner.tag != OwnerTag::PYTHON {
            return None;
        }
        // SAFETY: by the tag this is a Python object, and the block keeps it alive.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, owner.object.cast()) }?;
        let is_view = owner.release.is_some_and(|release| std::ptr::fn_addr_eq(release, RELEASE_VIEW));
        Some((object, is_view))
    }

    fn side(&self, py: Python<'_>) -> PyResult<Option<Side>> {
        match self.owner(py) {
            Some((owner, _)) if owner.is_instance_of::<Array>() || owner.is_instance_of::<Memory>() => {
                Side::of(&owner).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The type of one byte.
fn byte() -> PyResult<Dtype> {
    Dtype::number(Kind::Uint, 1).ok_or_else(|| Class::Request.error("no type of one byte"))
}

/// Releases a Python object that owns a block's memory. Without an interpreter the object no longer
/// exists.
fn drop_object(object: *mut c_void) {
    Python::try_attach(|py| {
        // SAFETY: the reference that the block owned.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, object.cast()) });
    });
}

/// The release function of blocks that own the given object.
unsafe extern "C" fn release_object(object: *mut c_void) {
    drop_object(object);
    GIVEN.fetch_add(1, Ordering::Relaxed);
}

/// The release function of blocks that own a view of the given object.
unsafe extern "C" fn release_view(object: *mut c_void) {
    drop_object(object);
    VIEWED.fetch_add(1, Ordering::Relaxed);
}

// The function's address distinguishes the two; a counter in each prevents the linker from merging
// them.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static VIEWED: AtomicUsize = AtomicUsize::new(0);
const RELEASE_OBJECT: unsafe extern "C" fn(*mut c_void) = release_object;
const RELEASE_VIEW: unsafe extern "C" fn(*mut c_void) = release_view;

#[pymethods]
impl PyMemInfo {
    #[new]
    fn new(py: Python<'_>, obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        let runtime = runtime(py)?;
        let side = Side::of(obj)?;
        if side.storage.is_host_accessible() {
            transfer::expose_to_host(py, &side.storage, Protocol::Other)?;
        } else {
            transfer::expose(py, &side.storage)?;
        }
        let span = side.view.span();
        let (data, size) = (side.storage.address() + span.start, span.len());
        let kind = kind_number(side.storage.kind());
        // An array of ours keeps imported memory, with the producer's buffer or capsule.
        let is_ours = obj.is_instance_of::<Array>() || obj.is_instance_of::<Memory>();
        let (object, release) = if is_ours {
            (obj.clone(), RELEASE_OBJECT)
        } else {
            (Array::new(side).into_object(py)?.into_any(), RELEASE_VIEW)
        };
        let object = object.into_ptr();
        let owner = Owner { tag: OwnerTag::PYTHON, object: object.cast(), release: Some(release) };
        let mut block = std::ptr::null_mut();
        let data = data as *mut c_void;
        // SAFETY: the owner keeps the bytes in place until it is released, with the interpreter
        // attached, on any thread.
        let status =
            unsafe { (runtime.api.wrap_owned_of_kind)(data, size, &raw const owner, kind, &raw mut block) };
        if let Err(error) = check(status, size) {
            drop_object(object.cast());
            return Err(error);
        }
        origin::note_block(block, runtime);
        Self::take_reference(block, runtime)
    }

    /// A new block of ``size`` bytes, from the source of Numba's blocks, by default the heap.
    /// :class:`MemoryError` without memory.
    #[staticmethod]
    #[pyo3(signature = (size, *, alignment=16))]
    fn allocate(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::size)] size: usize,
        #[pyo3(from_py_with = argument::alignment)] alignment: usize,
    ) -> PyResult<Self> {
        let runtime = runtime(py)?;
        let mut block = std::ptr::null_mut();
        // SAFETY: no destructor, no allocator, and room for the result.
        let status =
            unsafe { (runtime.api.allocate)(size, alignment, 0, None, std::ptr::null_mut(), &raw mut block) };
        check_aligned(status, size, alignment)?;
        origin::note_block(block, runtime);
        Self::take_reference(block, runtime)
    }

    /// The block at an address from C or compiled code, which must be a live block. Adds a
    /// reference.
    #[staticmethod]
    fn from_address(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::address)] address: usize,
    ) -> PyResult<Self> {
        let runtime = runtime(py)?;
        let object = Self::take_reference(address as *mut MemInfo, runtime)?;
        // SAFETY: the caller guarantees a live block.
        unsafe { (runtime.numba.acquire)(object.block.as_ptr()) };
        Ok(object)
    }

    /// Address of the 48-byte header, for C.
    #[getter]
    fn address(&self) -> usize {
        self.block.as_ptr() as usize
    }

    /// Address of the data.
    #[getter]
    fn data(&self) -> usize {
        self.block().data() as usize
    }

    /// Size of the data in bytes; 0 if unknown.
    #[getter]
    fn size(&self) -> usize {
        self.block().size()
    }

    /// Number of references, with this object's.
    #[getter]
    fn refcount(&self) -> usize {
        self.block().refcount()
    }

    /// The kind of the memory: `"host"`, `"device"` or `"shared"`; plain memory is `"host"`.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        if let Some(side) = self.side(py)? {
            return Ok(side.storage.kind().name());
        }
        let pointer = self.block().data().cast::<u8>();
        let kinds = runtimes::scopes(py).into_iter().filter_map(|scope| {
            let info = scope.context.query(pointer).ok()?;
            (info.base != 0).then_some(info.kind)
        });
        let kind = kinds.into_iter().find(|kind| *kind != AllocKind::Unknown).unwrap_or(AllocKind::Host);
        Ok(kind.name())
    }

    /// The object that owns the memory; ``None`` for a block that the runtime allocated.
    #[getter]
    fn parent<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let (owner, is_view) = self.owner(py)?;
        if !is_view {
            return Some(owner);
        }
        let array = owner.cast::<Array>().ok()?;
        array.get().storage().owner().map(|object| object.bind(py).clone())
    }

    /// Whether the memory is read-only.
    #[getter]
    fn readonly(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.side(py)?.is_some_and(|side| side.storage.is_readonly()))
    }

    /// Adds a reference.
    fn acquire(&self) {
        self.reference_count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: this object owns a reference.
        unsafe { (self.runtime.numba.acquire)(self.block.as_ptr()) };
    }

    /// Releases a reference that `acquire` of this object acquired.
    fn release(&self) -> PyResult<()> {
        let update = self
            .reference_count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        if update.is_err() {
            return Err(
                Class::Request.error("release without acquire: the object's own reference goes with it")
            );
        }
        // SAFETY: one of the references from `acquire`.
        unsafe { (self.runtime.numba.release)(self.block.as_ptr()) };
        Ok(())
    }

    /// NumPy's conversion. :class:`usm.AccessError` if the host cannot access the memory.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let side = slf.get().side(slf.py())?;
        export::as_numpy(slf, side.map_or(AllocKind::Host, |side| side.storage.kind()), dtype, copy)
    }

    /// NumPy's functions. They treat the block as any other array.
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
        self.size()
    }

    fn __repr__(&self) -> String {
        let block = self.block();
        format!(
            "<usm.nrt.MemInfo data={:p} size={} refcount={}>",
            block.data(),
            block.size(),
            block.refcount()
        )
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, raw: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let side = this.side(py)?;
        if let Some(side) = &side {
            transfer::expose_to_host(py, &side.storage, Protocol::Other)?;
        }
        let readonly = side.is_some_and(|side| side.storage.is_readonly());
        let extent = i64::try_from(this.size())
            .map_err(|_| Class::Request.error("the size in bytes does not fit 63 bits"))?;
        let view = View::contiguous(byte()?, &[extent])?;
        let pointer = this.data() as *mut u8;
        // SAFETY: the structure is Python's. The block's bytes are host memory, which this object
        // keeps alive.
        unsafe { crate::exchange::buffer::fill(raw, flags, slf.into_any(), pointer, &view, readonly) }
    }

    unsafe fn __releasebuffer__(&self, raw: *mut ffi::Py_buffer) {
        // SAFETY: Python returns the structure that `__getbuffer__` filled.
        unsafe { crate::exchange::buffer::release(raw) };
    }
}
