//! Objects of others as memory: without a copy where their protocol allows it.

use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use usm_core::AllocKind;
use usm_interface::{Policy, Protocol, SyclFlag, SyclObject};

use crate::dictionary::{self, Checked};
use crate::dlpack;
use crate::error::Class;
use crate::pep3118;
use crate::runtime;
use crate::storage::Storage;
use crate::sycl::{self, Imported};
use crate::transfer::Side;
use crate::view::View;

impl From<Imported> for Side {
    fn from(Imported { storage, view, stream, readonly }: Imported) -> Self {
        Self { storage, stream, view, readonly }
    }
}

/// Reads an attribute that must be a dictionary; `None` when the object has no such attribute.
fn dictionary_of<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(value) = object.getattr_opt(name)? else { return Ok(None) };
    match value.cast_into::<PyDict>() {
        Ok(dict) => Ok(Some(dict)),
        Err(_) => Err(Class::Interface.error(format!("{name} is not a dictionary"))),
    }
}

/// SYCL memory of another object. `ignore_flag`: read-only or not, as `dpctl.memory` does.
pub(crate) fn sycl_memory(object: &Bound<'_, PyAny>, ignore_flag: bool) -> PyResult<Option<Side>> {
    let py = object.py();
    let Some(dict) = dictionary_of(object, intern!(py, "__sycl_usm_array_interface__"))? else {
        return Ok(None);
    };
    let policy = Policy { sycl_flag: SyclFlag::Auto, ..Policy::default() };
    let mut side: Side = sycl::import(object, &dict, &policy)?.into();
    side.readonly &= !ignore_flag;
    Ok(Some(side))
}

/// Host memory behind `__array_interface__`. Its address cannot be checked: who wrote it is trusted to own it, as NumPy
/// trusts.
fn host_memory(object: &Bound<'_, PyAny>) -> PyResult<Option<Side>> {
    let py = object.py();
    let Some(dict) = dictionary_of(object, intern!(py, "__array_interface__"))? else { return Ok(None) };
    let Checked { layout, address, readonly, descr, .. } =
        dictionary::read(&dict, Protocol::Array, &Policy::default(), |_| SyclObject::Unknown)?;
    let scope = runtime::host(py)?.scope()?;
    let stream = scope.queue()?;
    if layout.nbytes() == 0 {
        let storage = Storage::allocate(&scope.context, AllocKind::Host, 1, 0).map_err(crate::error::core)?;
        let view = View { descr, ..View::of_layout(&layout, 0)? };
        return Ok(Some(Side { storage, stream, view, readonly }));
    }
    let Some(address) = address else {
        return Err(Class::Interface.error("data: missing; pass the object that holds the memory"));
    };
    let low = address.wrapping_add_signed(layout.extent().low);
    let size = layout.extent().high.wrapping_sub(layout.extent().low);
    let (Ok(size), Some(pointer)) = (usize::try_from(size), NonNull::new(low as *mut u8)) else {
        return Err(Class::Interface.error("data: the array does not fit the address space"));
    };
    // The dictionary too: a producer may keep a temporary alive in it, as NumPy's scalars do.
    let keeper = Box::new((object.clone().unbind(), dict.clone().unbind()));
    // SAFETY: plain memory is host memory of the host's context; the producer says that these bytes are its own, and is
    // kept alive.
    let storage = unsafe { Storage::foreign(&scope.context, AllocKind::Host, pointer, size, object, keeper) };
    let view = View { descr, ..View::of_layout(&layout, -layout.extent().low)? };
    Ok(Some(Side { storage, stream, view, readonly }))
}

/// Whatever can be had without a copy.
pub(crate) fn without_copy(object: &Bound<'_, PyAny>) -> PyResult<Option<Side>> {
    if let Some(side) = sycl_memory(object, false)? {
        return Ok(Some(side));
    }
    if let Some(side) = host_memory(object)? {
        return Ok(Some(side));
    }
    if let Some(side) = dlpack::import(object)? {
        return Ok(Some(side));
    }
    pep3118::import(object)
}

/// As [`without_copy`], or an error that names the protocols.
pub(crate) fn any(object: &Bound<'_, PyAny>) -> PyResult<Side> {
    without_copy(object)?.ok_or_else(|| {
        let name = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        Class::Interface.error(format!(
            "an object of type {name} exposes none of __sycl_usm_array_interface__, __array_interface__, __dlpack__ \
             and the buffer protocol"
        ))
    })
}

/// The queue that an argument `queue=` means; the default one for `None`.
pub(crate) fn stream(
    py: Python<'_>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<crate::runtime::Stream>> {
    let Some(queue) = queue.filter(|queue| !queue.is_none()) else {
        return runtime::default_entry(py)?.scope()?.queue();
    };
    if queue.is_instance_of::<crate::context::PyContext>() || sycl::looks_like_queue(queue)? {
        return sycl::stream_of(queue);
    }
    crate::context::device_of(py, Some(queue))?.0.scope()?.queue()
}

/// The kind that a word names.
pub(crate) fn kind(word: &str) -> PyResult<AllocKind> {
    AllocKind::from_name(word)
        .filter(|kind| *kind != AllocKind::Unknown)
        .ok_or_else(|| Class::Request.error(format!("kind {word:?} is not one of host, device, shared")))
}
