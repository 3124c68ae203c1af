//! Capsules of Arrow's structures. A consumer leaves a released structure in the capsule; the
//! capsule's destructor releases what is still there, and frees the structure's place.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use usm_interface::arrow::abi::{
    self, ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema, OwnedStructure, Structure,
};

use crate::text::error::{Class, OrRaise};

/// A structure and the name of its capsule.
pub(super) trait CapsuleStructure: Structure {
    const NAME: &'static CStr;
}

impl CapsuleStructure for ArrowSchema {
    const NAME: &'static CStr = abi::SCHEMA;
}

impl CapsuleStructure for ArrowArray {
    const NAME: &'static CStr = abi::ARRAY;
}

impl CapsuleStructure for ArrowDeviceArray {
    const NAME: &'static CStr = abi::DEVICE_ARRAY;
}

impl CapsuleStructure for ArrowArrayStream {
    const NAME: &'static CStr = abi::STREAM;
}

/// A fresh capsule that owns the structure.
pub(super) fn to_capsule<T: CapsuleStructure>(
    py: Python<'_>,
    owner: OwnedStructure<T>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let place = NonNull::from(Box::leak(Box::new(owner.into_raw())));
    // SAFETY: the destructor frees the place of this type, with what is in it.
    let capsule =
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, place.cast(), T::NAME, Some(free::<T>)) };
    capsule.inspect_err(|_| {
        // SAFETY: the box from above, which no other code has.
        let structure = unsafe { Box::from_raw(place.as_ptr()) };
        // SAFETY: the structure that was held.
        drop(unsafe { OwnedStructure::from_raw(*structure) });
    })
}

/// Frees the place of a structure, and releases it unless a consumer has taken it.
unsafe extern "C" fn free<T: CapsuleStructure>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls the destructor with its capsule; the name is terminated.
    let place = unsafe { ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()) };
    if place.is_null() {
        // Somebody has renamed the capsule; who takes a structure by other rules keeps its place.
        // SAFETY: the interpreter is attached in a destructor.
        unsafe { ffi::PyErr_Clear() };
        return;
    }
    // SAFETY: `to_capsule` made the box.
    let structure = unsafe { Box::from_raw(place.cast::<T>()) };
    // SAFETY: ours, or released by its consumer.
    drop(unsafe { OwnedStructure::from_raw(*structure) });
}

/// Moves the structure out of a capsule that a method of a producer gave.
pub(super) fn take<T: CapsuleStructure>(
    object: &Bound<'_, PyAny>,
    method: &str,
) -> PyResult<OwnedStructure<T>> {
    let wrong = || {
        let name = T::NAME.to_string_lossy();
        Class::Interface.error(format!("{method}() gave no capsule of the name {name}"))
    };
    let capsule = object.cast::<PyCapsule>().map_err(|_| wrong())?;
    let pointer = capsule.pointer_checked(Some(T::NAME)).map_err(|_| wrong())?;
    // SAFETY: the name promises a structure of this sort, and that its consumer may move it out.
    unsafe { OwnedStructure::take(pointer.cast()) }.or_raise()
}
