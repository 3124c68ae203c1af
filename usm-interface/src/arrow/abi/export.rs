//! Columns that own any value.

extern crate alloc;

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use core::ffi::c_void;
use core::ptr;

use super::{ArrowArray, ArrowDeviceArray, ArrowSchema, FLAG_NULLABLE, OwnedStructure, Structure};
use crate::arrow::format::format_of;
use crate::arrow::validate::Column;
use crate::dlpack::DeviceType;
use crate::error::{Key, Reason, Result};

/// What a schema points at.
struct SchemaParts {
    format: CString,
    child: ArrowSchema,
    children: [*mut ArrowSchema; 1],
}

/// What the array of a list points at.
struct ListParts {
    buffers: [*const c_void; 1],
    child: ArrowArray,
    children: [*mut ArrowArray; 1],
}

/// What the array of the values points at.
struct ValueParts<O> {
    buffers: [*const c_void; 2],
    _owner: O,
}

/// # Safety
/// `this` is a schema of this file that is not released.
unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    // SAFETY: the caller's promise.
    let this = unsafe { &mut *this };
    // SAFETY: `schema` made the box.
    let mut parts = unsafe { Box::from_raw(this.private_data.cast::<SchemaParts>()) };
    // SAFETY: the child is ours, or a consumer has moved and so released it.
    unsafe { parts.child.release() };
    this.release = None;
}

/// # Safety
/// `this` is a list of this file that is not released.
unsafe extern "C" fn release_list(this: *mut ArrowArray) {
    // SAFETY: the caller's promise.
    let this = unsafe { &mut *this };
    // SAFETY: `list` made the box.
    let mut parts = unsafe { Box::from_raw(this.private_data.cast::<ListParts>()) };
    // SAFETY: as above.
    unsafe { parts.child.release() };
    this.release = None;
}

/// # Safety
/// `this` is an array of values of this file that is not released.
unsafe extern "C" fn release_values<O>(this: *mut ArrowArray) {
    // SAFETY: the caller's promise.
    let this = unsafe { &mut *this };
    // SAFETY: `values` made the box.
    let parts = unsafe { Box::from_raw(this.private_data.cast::<ValueParts<O>>()) };
    this.release = None;
    let _ = crate::panics::frame(|| drop(parts));
}

fn schema(format: String, child: Option<ArrowSchema>, is_child: bool) -> ArrowSchema {
    let n_children = i64::from(child.is_some());
    let parts = Box::into_raw(Box::new(SchemaParts {
        // Our formats have no NUL inside.
        format: CString::new(format).unwrap_or_default(),
        child: child.unwrap_or(ArrowSchema::RELEASED),
        children: [ptr::null_mut()],
    }));
    // SAFETY: a new box.
    let this = unsafe { &mut *parts };
    this.children = [&raw mut this.child];
    ArrowSchema {
        format: this.format.as_ptr(),
        name: if is_child { c"item" } else { c"" }.as_ptr(),
        flags: FLAG_NULLABLE,
        n_children,
        children: if n_children == 0 { ptr::null_mut() } else { this.children.as_mut_ptr() },
        release: Some(release_schema),
        private_data: parts.cast(),
        ..ArrowSchema::RELEASED
    }
}

fn list(length: i64, child: ArrowArray) -> ArrowArray {
    let parts =
        Box::into_raw(Box::new(ListParts { buffers: [ptr::null()], child, children: [ptr::null_mut()] }));
    // SAFETY: a new box.
    let this = unsafe { &mut *parts };
    this.children = [&raw mut this.child];
    ArrowArray {
        length,
        n_buffers: 1,
        n_children: 1,
        buffers: this.buffers.as_mut_ptr(),
        children: this.children.as_mut_ptr(),
        release: Some(release_list),
        private_data: parts.cast(),
        ..ArrowArray::RELEASED
    }
}

fn values<O>(length: i64, data: *const c_void, owner: O) -> ArrowArray {
    let parts = Box::into_raw(Box::new(ValueParts { buffers: [ptr::null(), data], _owner: owner }));
    // SAFETY: a new box.
    let this = unsafe { &mut *parts };
    ArrowArray {
        length,
        n_buffers: 2,
        buffers: this.buffers.as_mut_ptr(),
        release: Some(release_values::<O>),
        private_data: parts.cast(),
        ..ArrowArray::RELEASED
    }
}

/// Makes the structures of a column that keeps `owner` alive until the array is released. Further
/// dimensions become fixed-size lists. `data` is the pointer for the column's address; it is only
/// stored. No work may be in flight: the column has no event.
///
/// Arrow has no flag for memory that may be written: its consumers only read.
///
/// # Errors
/// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable) for an element type that
/// Arrow does not have.
pub fn export<O: Send + 'static, const N: usize>(
    column: &Column<N>,
    data: *const c_void,
    owner: O,
) -> Result<(OwnedStructure<ArrowSchema>, OwnedStructure<ArrowDeviceArray>)> {
    let format = format_of(column.dtype()).ok_or_else(|| Key::Dtype.error(Reason::Dtype))?;
    let device = column.device();
    let shape = column.shape();
    let count = |dims: &[i64]| dims.iter().fold(1_i64, |count, extent| count.saturating_mul(*extent));
    let mut outer = schema(format.to_string(), None, shape.len() > 1);
    let mut array = values(count(shape), data, owner);
    for level in (1..shape.len()).rev() {
        let width = shape.get(level).copied().unwrap_or(0);
        outer = schema(format!("+w:{width}"), Some(outer), level > 1);
        array = list(count(shape.get(..level).unwrap_or_default()), array);
    }
    let is_host = device.kind == DeviceType::Cpu;
    let array = ArrowDeviceArray {
        array,
        device_id: if is_host { -1 } else { i64::from(device.id) },
        device_type: device.kind.code(),
        ..ArrowDeviceArray::RELEASED
    };
    // SAFETY: new, as the interface requires it, and this function's alone.
    let outer = unsafe { OwnedStructure::from_raw(outer) };
    // SAFETY: as above.
    Ok((outer, unsafe { OwnedStructure::from_raw(array) }))
}
