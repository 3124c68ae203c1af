//! Exports arrays as dictionaries.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use usm_core::{AllocKind, BackendKind};
use usm_interface::Kind;

use crate::array::Array;
use crate::array::members::literal;
use crate::device::runtime::Stream;
use crate::exchange::cuda;
use crate::exchange::sycl;
use crate::nrt::handle::PyMemInfo;
use crate::process::once::name;
use crate::process::wait::Protocol;
use crate::storage::handle::Memory;
use crate::storage::side::Side;
use crate::storage::transfer;
use crate::text::error::{Class, OrRaise};

/// The attribute does not exist for other memory, so `hasattr` is false.
pub(crate) fn require_sycl(stream: &Stream) -> PyResult<()> {
    if stream.is_sycl() {
        return Ok(());
    }
    Err(PyAttributeError::new_err("memory that is not SYCL's has no __sycl_usm_array_interface__"))
}

/// `__sycl_usm_array_interface__`: strides and offset in elements, the pointer of the storage, true
/// = read-only.
pub(crate) fn sycl_dictionary<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyDict>> {
    require_sycl(&side.stream)?;
    let view = &side.view;
    let itemsize = view.itemsize().max(1);
    let (Some(strides), 0) = (view.element_strides(), view.offset() % itemsize) else {
        let strides = view.strides();
        return Err(Class::Interface.error(format!(
            "strides {strides:?} and offset {} are not multiples of {itemsize} bytes, which SYCL's dictionary cannot say",
            view.offset()
        )));
    };
    transfer::expose(py, &side.storage)?;
    let dict = PyDict::new(py);
    dict.set_item(name!(py, "data"), (side.storage.address(), side.storage.is_readonly()))?;
    dict.set_item(name!(py, "shape"), PyTuple::new(py, view.shape().iter())?)?;
    let strides = if view.is_c_contiguous() {
        py.None()
    } else {
        PyTuple::new(py, strides.iter())?.into_any().unbind()
    };
    dict.set_item(name!(py, "strides"), strides)?;
    // `|` for every type, as dpctl writes it: its consumers know no other order.
    let typestr = format!("|{}", &view.dtype.to_string()[1..]);
    dict.set_item(
        name!(py, "typestr"),
        if view.dtype.is_native() { typestr } else { view.dtype.to_string() },
    )?;
    if let Some(descr) = &view.descr {
        dict.set_item(name!(py, "typedescr"), literal(py, descr)?)?;
    }
    dict.set_item(name!(py, "version"), 1)?;
    dict.set_item(name!(py, "syclobj"), sycl::syclobj(py, &side.stream)?)?;
    dict.set_item(name!(py, "offset"), view.offset() / itemsize)?;
    Ok(dict)
}

/// `__array_interface__`: strides in bytes, the pointer of the first element.
pub(crate) fn array_dictionary<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyDict>> {
    if !side.storage.is_host_accessible() {
        let kind = side.storage.kind();
        return Err(PyAttributeError::new_err(format!(
            "{kind} memory has no __array_interface__; copy it explicitly"
        )));
    }
    if let Kind::Extended(element) = side.view.dtype.kind() {
        return Err(PyAttributeError::new_err(format!(
            "no type string means {}; usm.to_numpy(array) and DLPack know it",
            element.name()
        )));
    }
    transfer::expose_to_host(py, &side.storage, Protocol::Other)?;
    bytes_dictionary(py, side)
}

/// The common part of NumPy's and CUDA's array interfaces. Does not wait.
fn bytes_dictionary<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyDict>> {
    let view = &side.view;
    let dict = PyDict::new(py);
    dict.set_item(name!(py, "data"), (side.storage.address() + view.offset(), side.storage.is_readonly()))?;
    dict.set_item(name!(py, "shape"), PyTuple::new(py, view.shape().iter())?)?;
    let strides = if view.is_c_contiguous() {
        py.None()
    } else {
        PyTuple::new(py, view.strides().iter())?.into_any().unbind()
    };
    dict.set_item(name!(py, "strides"), strides)?;
    dict.set_item(name!(py, "typestr"), view.dtype.to_string())?;
    if let Some(descr) = &view.descr {
        dict.set_item(name!(py, "descr"), literal(py, descr)?)?;
    }
    dict.set_item(name!(py, "version"), 3)?;
    Ok(dict)
}

/// `__cuda_array_interface__` version 3. Its stream is the array's queue, which waits for all other
/// work first.
pub(crate) fn cuda_dictionary<'py>(py: Python<'py>, side: &Side) -> PyResult<Bound<'py, PyDict>> {
    let backend = side.stream.context().info().backend;
    if backend != BackendKind::Cuda {
        let hint = if backend == BackendKind::Hip { "; HIP's is exchanged by __dlpack__" } else { "" };
        let message = format!("memory that is not CUDA's has no __cuda_array_interface__{hint}");
        return Err(PyAttributeError::new_err(message));
    }
    let dict = bytes_dictionary(py, side)?;
    if side.view.nbytes() == 0 {
        dict.set_item(name!(py, "data"), (0, side.storage.is_readonly()))?;
    }
    side.storage.escape();
    py.detach(|| side.storage.follow(&side.stream.queue)).or_raise()?;
    dict.set_item(name!(py, "stream"), cuda::handle(&side.stream))?;
    Ok(dict)
}

/// The result of `__array__`, which NumPy calls if it finds neither a buffer nor a dictionary.
pub(crate) fn as_numpy<'py>(
    object: &Bound<'py, PyAny>,
    kind: AllocKind,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if !kind.is_host_accessible() {
        return Err(Class::Access.error(format!(
            "{kind} memory is no array of the host; usm.to_numpy(array) gives a copy of it"
        )));
    }
    let options = PyDict::new(py);
    options.set_item(name!(py, "dtype"), dtype)?;
    let (array, numpy) = (crate::array::construct::to_numpy(object)?, py.import(name!(py, "numpy"))?);
    // NumPy before 2 takes no `copy=None`.
    let Some(copy) = copy else {
        return numpy.call_method(name!(py, "asarray"), (array,), Some(&options));
    };
    options.set_item(name!(py, "copy"), copy)?;
    numpy.call_method(name!(py, "array"), (array,), Some(&options))
}

/// NumPy functions that treat any exception as a difference.
const TAKES_ERRORS_FOR_ANSWERS: [&str; 2] = ["array_equal", "array_equiv"];

/// The result of `__array_function__`, which NumPy calls before one of its functions: the
/// function's usual result. One case differs: if an error of `__array__` would become the result
/// `False`, it is raised first.
pub(crate) fn numpy_function<'py>(
    function: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let numpy = py.import(name!(py, "numpy"))?;
    let not_ours = || Ok(py.NotImplemented().into_bound(py));
    let name = name!(py, "__array_function__");
    let plain = numpy.getattr(name!(py, "ndarray"))?.getattr(name)?;
    for class in types.try_iter()? {
        let class = class?.cast_into::<PyType>()?;
        // An operand with its own functions is asked next.
        if !is_of_this_module(&class)? && !class.getattr(name)?.is(&plain) {
            return not_ours();
        }
    }
    let Some(implementation) = function.getattr_opt(name!(py, "_implementation"))? else {
        return not_ours();
    };
    let function_name = function.getattr(name!(py, "__name__"))?;
    if TAKES_ERRORS_FOR_ANSWERS.iter().any(|listed_name| function_name.eq(*listed_name).unwrap_or(false)) {
        for argument in arguments.iter().chain(keywords.values()) {
            if is_of_this_module(&argument.get_type())? {
                numpy.call_method1(name!(py, "asarray"), (argument,))?;
            }
        }
    }
    implementation.call(arguments, Some(keywords))
}

fn is_of_this_module(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(class.is_subclass_of::<Array>()?
        || class.is_subclass_of::<Memory>()?
        || class.is_subclass_of::<PyMemInfo>()?
        // Of objects that are dpctl's too.
        || class.hasattr(name!(class.py(), "_usm_memory"))?)
}
