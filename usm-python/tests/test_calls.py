"""Every function of the interpreter that may run Python code is called through one guard.

The guard is `src/calls.rs`: it defines the functions inside the module, so that the module's table
of needed symbols has the others alone.
"""

import struct
import sys
from pathlib import Path

import pytest

import usm

# They read what is there, mark a signal, or make numbers, which no collector looks at; pyo3 guards
# the last three.
PLAIN = set(
    """
    PyByteArray_AsString PyByteArray_Size PyBytes_AsString PyBytes_Size PyCallable_Check PyCapsule_GetPointer PyCapsule_IsValid PyCapsule_SetName
    PyComplex_FromDoubles PyDict_Next PyDict_Size PyErr_ExceptionMatches PyErr_GivenExceptionMatches PyErr_Occurred PyException_GetTraceback PyFloat_FromDouble
    PyInterpreterState_Get PyInterpreterState_GetID PyList_GetItem PyList_Size PyLong_FromLong PyLong_FromLongLong PyLong_FromSsize_t
    PyLong_FromUnsignedLongLong PyModuleDef_Init PyObject_CheckBuffer PyObject_GC_UnTrack PySequence_Check PySlice_AdjustIndices PyTuple_GetItem
    PyTuple_Size PyType_GetFlags PyType_GetSlot PyType_IsSubtype PyUnicode_AsUTF8AndSize Py_EnterRecursiveCall Py_GetVersion Py_InitializeEx
    Py_IsInitialized Py_LeaveRecursiveCall Py_NewRef _Py_IncRef PyErr_SetInterrupt PyEval_SaveThread PyEval_RestoreThread PyGILState_Ensure
    """.split()
)
# Objects, not functions.
OBJECTS = ("_Type", "RefType", "ProxyType", "Struct", "Object")


def needed(library):
    """The names that an ELF file of 64 bits takes from others."""
    content = library.read_bytes()
    assert content[:6] == b"\x7fELF\x02\x01", "an ELF file, 64 bits, little endian"
    (at,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, at + size * number) for number in range(count)]
    (symbols,) = [section for section in sections if section[1] == 11]  # SHT_DYNSYM
    strings = sections[symbols[6]][4]
    for place in range(symbols[4], symbols[4] + symbols[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", content, place)
        if name and section == 0:
            begin = strings + name
            yield content[begin : content.index(b"\0", begin)].decode()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone unwinds threads")
def test_functions_that_may_run_python_are_guarded():
    names = {name for name in needed(Path(usm._usm.__file__)) if name.startswith(("Py", "_Py"))}
    assert {"PyTuple_Size", "PyLong_Type"} <= names, "is the table read?"
    functions = {name for name in names if not name.startswith("PyExc_") and not name.endswith(OBJECTS)}
    assert functions - PLAIN == set()
