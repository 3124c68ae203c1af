//! Capsules of tensors. A consumer that takes the tensor renames the capsule. Under its first name
//! the capsule still owns the tensor, and its destructor deletes it.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_interface::dlpack::abi::{self, DLManagedTensor, DLManagedTensorVersioned, OwnedTensor, Structure};

/// A tensor structure, and the names of its capsule before and after a consumer has taken it.
pub(super) trait CapsuleTensor: Structure {
    const NAME: &'static CStr;
    const USED: &'static CStr;
}

impl CapsuleTensor for DLManagedTensor {
    const NAME: &'static CStr = abi::LEGACY;
    const USED: &'static CStr = abi::USED_LEGACY;
}

impl CapsuleTensor for DLManagedTensorVersioned {
    const NAME: &'static CStr = abi::VERSIONED;
    const USED: &'static CStr = abi::USED_VERSIONED;
}

/// A fresh capsule that owns the tensor.
pub(super) fn to_capsule<T: CapsuleTensor>(
    py: Python<'_>,
    tensor: OwnedTensor<T>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let raw = tensor.into_raw();
    // SAFETY: the destructor deletes the structure unless a consumer has renamed the capsule and
    // taken it.
    let capsule =
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, raw.cast(), T::NAME, Some(delete::<T>)) };
    capsule.inspect_err(|_| {
        // SAFETY: no other code has it.
        drop(unsafe { OwnedTensor::from_raw(raw) });
    })
}

/// Deletes a tensor that no consumer has taken.
unsafe extern "C" fn delete<T: CapsuleTensor>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls the destructor with its capsule; the name is terminated.
    if unsafe { ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: a capsule of that name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()) };
    if let Some(raw) = NonNull::new(pointer.cast::<T>()) {
        // SAFETY: by its name the capsule still owns the structure, and the capsule is being
        // destroyed.
        drop(unsafe { OwnedTensor::from_raw(raw) });
    }
}

/// Takes the tensor out of a capsule that still has it.
pub(super) fn take<T: CapsuleTensor>(capsule: &Bound<'_, PyCapsule>) -> PyResult<Option<OwnedTensor<T>>> {
    // SAFETY: a capsule; the name is terminated.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), T::NAME.as_ptr()) } == 0 {
        return Ok(None);
    }
    let pointer = capsule.pointer_checked(Some(T::NAME))?;
    // SAFETY: a capsule; the name lives for ever.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), T::USED.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    // SAFETY: the name promised a structure of this sort, and the new one that it is ours now.
    Ok(Some(unsafe { OwnedTensor::from_raw(pointer.cast()) }))
}
