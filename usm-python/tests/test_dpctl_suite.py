"""dpctl's own tests of ``dpctl.memory``, run against ``usm.memory`` by swapping the import."""

import importlib.util
import pathlib

import pytest

from conftest import lacking, require

# Tests that cannot run, with the reason. One function, three times, for each kind of memory, takes
# the functions that Cython exports from `dpctl.memory._memory.__pyx_capi__`
# (`Memory_GetUsmPointer`, ..., `Memory_Make`) and passes them the object as `struct Py_MemoryObject
# *`. They read the structure of dpctl's own class, so they cannot take an object of any other
# class. C code gets our memory by `usm.Array.__dlpack_c_exchange_api__` or the buffer protocol
# instead (`test_exchange_api.py`).
NOT_PORTABLE = {
    "test_cpython_api": "its functions read the C structure of dpctl's own class: __pyx_capi__ of dpctl.memory._memory",
}


def swapped():
    dpctl = require("dpctl", "its tests come with it")
    path = pathlib.Path(dpctl.__file__).parent / "tests" / "test_sycl_usm.py"
    if not path.exists():
        lacking("dpctl", "it comes without its tests", module=True)
    source = path.read_text()
    assert source.count("from dpctl.memory import") == 1
    source = source.replace("from dpctl.memory import", "from usm.memory import")
    source = source.replace("dpctl.memory.", "usm.memory.")
    # Of memory that is dpctl's too, it is the owner of the block, which dpctl's objects must keep.
    none = "assert mobj2.reference_obj is None"
    assert source.count(none) == 1
    source = source.replace(none, "assert mobj2.reference_obj is mobj.reference_obj is not None")
    return compile("import usm.memory\n" + source, str(path), "exec")


exec(swapped())
SWAPPED = {name for name in globals() if name.startswith("test_")}

for name, reason in NOT_PORTABLE.items():
    assert name in globals(), f"dpctl has no {name} any more"
    # It cannot pass: it asks for dpctl's own C structure, which no other package has (NOT_PORTABLE
    # has each reason). `test_all_but_three_of_dpctls_tests_run` fails if any other item is skipped.
    globals()[name] = pytest.mark.skip(reason=reason)(globals()[name])


def test_all_but_three_of_dpctls_tests_run(request):
    """Counts the tests that pytest found in dpctl's file, by function name."""
    theirs = [item for item in request.session.items if item.path.name == "test_sycl_usm.py" or item.module.__name__ == __name__]
    found = [item.originalname for item in theirs if item.originalname in SWAPPED]
    if request.config.getoption("keyword") or len(request.config.args) > 1 or "::" in request.config.args[0]:
        pytest.skip("only a part of the tests was asked for")
    assert [name for name in found if name in NOT_PORTABLE] == ["test_cpython_api"] * 3
    # In dpctl 0.22; one of the others needs a GPU and reports that.
    assert len(found) - 3 >= 42


def test_dpctls_tests_run_on_the_classes_of_usm():
    assert MemoryUSMShared.__module__ == "usm.memory"  # noqa: F821
    assert importlib.util.find_spec("dpctl.memory") is not None
