//! The path of every call of the interpreter's functions from Rust: through [`exit::guard`].
//!
//! Nearly every function of the interpreter may run Python code: a method of an argument, a
//! finalizer, a garbage collection. Before Python 3.14 the end of the interpreter unwinds a daemon
//! thread that runs Python code, and pyo3 declares these functions as functions that never unwind.
//! So the linker finds their names here first, for the calls of pyo3 too, and here they do not.
//!
//! Functions that neither run Python code nor allocate or free containers are called as they are.
//! `tests/test_calls.py` lists those, and refuses a module that needs any other. Only glibc unwinds
//! threads.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::process::{exit, symbol};

/// The interpreter's function of this name, which ends with a zero byte.
#[cold]
fn find(name: &'static str, address: &AtomicPtr<()>) -> *mut () {
    // Every release of the interpreter has the name, as a function of its stable ABI.
    let symbol = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(symbol::find);
    let Some(symbol) = symbol else {
        eprintln!("usm: the interpreter lacks {name}");
        std::process::abort();
    };
    let symbol = symbol.as_ptr().cast();
    address.store(symbol, Ordering::Relaxed);
    symbol
}

/// Defines functions of the interpreter, hidden in this library. Their arguments are at most six
/// numbers or pointers, and the result is one too, or a float.
macro_rules! guarded {
    ($result:ty: $($name:ident)*) => {$(
        #[allow(non_snake_case, reason = "a name of the interpreter's")]
        mod $name {
            use super::*;

            static FOUND: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
            type Function =
                unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> $result;

            /// Takes six registers, whatever the function has, and passes them on.
            unsafe extern "C-unwind" fn call(
                a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
            ) -> $result {
                let mut address = FOUND.load(Ordering::Relaxed);
                if address.is_null() {
                    address = find(concat!(stringify!($name), "\0"), &FOUND);
                }
                // SAFETY: a function whose arguments and result are in the registers of this type.
                let function = unsafe { std::mem::transmute::<*mut (), Function>(address) };
                // SAFETY: the caller's arguments, and values of registers that it does not read.
                exit::guard(|| unsafe { function(a, b, c, d, e, f) })
            }

            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ", @function"),
                concat!(stringify!($name), ": jmp {}"),
                sym call,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ", %function"),
                concat!(stringify!($name), ": b {}"),
                sym call,
            );
        }
    )*};
}

guarded! { f64: PyComplex_ImagAsDouble PyComplex_RealAsDouble PyFloat_AsDouble }

// With variable arguments, of which pyo3 passes at most six. On Linux both processors pass them in
// the registers of named ones.
guarded! { usize: PyObject_CallMethodObjArgs }

guarded! { usize:
    PyBuffer_Release PyByteArray_FromStringAndSize PyBytes_FromStringAndSize PyCMethod_New
    PyCapsule_New PyDict_Contains PyDict_Copy PyDict_DelItem PyDict_GetItemWithError PyDict_New
    PyDict_SetItem PyDict_Values PyErr_CheckSignals PyErr_Clear PyErr_Fetch
    PyErr_NewExceptionWithDoc PyErr_NormalizeException PyErr_PrintEx PyErr_Restore PyErr_SetObject
    PyErr_SetString PyErr_WarnEx PyErr_WriteUnraisable PyEval_GetFrame PyException_SetCause
    PyException_SetContext PyException_SetTraceback PyGILState_Release PyImport_Import PyIter_Next
    PyList_Append PyList_AsTuple PyList_New PyList_SetItem PyLong_AsLong
    PyLong_AsLongLongAndOverflow PyLong_AsUnsignedLongLong PyLong_AsUnsignedLongLongMask
    PyMemoryView_FromObject PyModule_GetNameObject PyNumber_Absolute PyNumber_Add PyNumber_And
    PyNumber_Divmod PyNumber_FloorDivide PyNumber_Index PyNumber_Invert PyNumber_Lshift
    PyNumber_MatrixMultiply PyNumber_Multiply PyNumber_Negative PyNumber_Or PyNumber_Positive
    PyNumber_Power PyNumber_Remainder PyNumber_Rshift PyNumber_Subtract PyNumber_TrueDivide
    PyNumber_Xor PyOS_FSPath PyObject_Call PyObject_CallNoArgs PyObject_ClearWeakRefs
    PyObject_DelItem PyObject_GenericGetDict PyObject_GenericSetDict PyObject_GetAttr
    PyObject_GetBuffer PyObject_GetItem PyObject_GetIter PyObject_IsInstance PyObject_IsSubclass
    PyObject_IsTrue PyObject_Repr PyObject_RichCompare PyObject_SetAttr PyObject_SetAttrString
    PyObject_SetItem PyObject_Size PyObject_Str PySequence_List PySlice_Unpack PyTraceBack_Print
    PyTuple_GetSlice PyTuple_New PyTuple_SetItem PyType_FromSpec PyType_GetName PyType_GetQualName
    PyUnicode_AsEncodedString PyUnicode_DecodeFSDefaultAndSize PyUnicode_EncodeFSDefault
    PyUnicode_FromStringAndSize PyUnicode_InternInPlace PyWeakref_NewRef _Py_DecRef
}
