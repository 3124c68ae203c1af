"""dpctl's own tests of ``dpctl.memory``, run against ``usm.memory`` by swapping the import."""

import importlib.util
import pathlib

import pytest

from conftest import require

# Not portable: it calls into the compiled module of dpctl.
NOT_PORTABLE = {
    "test_cpython_api": "calls the Cython functions of dpctl.memory._memory",
}


def swapped():
    dpctl = require("dpctl", "its tests come with it")
    path = pathlib.Path(dpctl.__file__).parent / "tests" / "test_sycl_usm.py"
    if not path.exists():
        pytest.skip("this dpctl comes without its tests", allow_module_level=True)
    source = path.read_text()
    assert source.count("from dpctl.memory import") == 1
    source = source.replace("from dpctl.memory import", "from usm.memory import")
    source = source.replace("dpctl.memory.", "usm.memory.")
    return compile("import usm.memory\n" + source, str(path), "exec")


exec(swapped())

for name, reason in NOT_PORTABLE.items():
    assert name in globals(), f"dpctl has no {name} any more"
    globals()[name] = pytest.mark.skip(reason=reason)(globals()[name])


def test_the_swap_reached_the_classes():
    assert MemoryUSMShared.__module__ == "usm.memory"  # noqa: F821
    assert importlib.util.find_spec("dpctl.memory") is not None
