"""Producers that import themselves during their import get a `RecursionError`, not a crash."""

import contextlib
import sys

import pytest

import usm

ENTRIES = {
    "asarray": usm.asarray,
    "asarray, a copy": lambda producer: usm.asarray(producer, copy=True),
    "validate": usm.validate,
    "from_dlpack": usm.from_dlpack,
    "as_usm_memory": usm.memory.as_usm_memory,
    "copy": lambda producer: usm.copy(usm.zeros(3), producer),
}
PROPERTIES = ["__sycl_usm_array_interface__", "__array_interface__", "__cuda_array_interface__"]


def producer(way, again):
    if way in PROPERTIES:
        return type(way, (), {way: property(again)})()
    if way == "syclobj":
        names = {"data": (4096, False), "shape": (1,), "typestr": "<i4", "version": 1}
        described = property(lambda self: {**names, "syclobj": self})
        return type(way, (), {"__sycl_usm_array_interface__": described, "_get_capsule": again})()
    if way == "__buffer__":
        return type(way, (), {way: lambda self, flags: again(self)})()
    answers = {"__dlpack__": lambda self, **_: None, "__dlpack_device__": lambda self: (1, 0)}
    return type(way, (), {**answers, way: lambda self, **_: again(self)})()


WAYS = [*PROPERTIES, "__dlpack__", "__dlpack_device__", "syclobj"]
WAYS += ["__buffer__"] if sys.version_info >= (3, 12) else []


@pytest.fixture
def usual_limit():
    """The interpreter's own limit: tinygrad, which another test of this process may have run, sets
    10,000 and more, for which the stack has no room in a module without optimisation.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("usual_limit")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_producer_that_imports_itself_is_a_recursion(entry, way):
    calls = 0

    def again(self):
        nonlocal calls
        calls += 1
        return ENTRIES[entry](self)

    if asks(entry, way):
        with pytest.raises(RecursionError):
            ENTRIES[entry](producer(way, again))
        # The Python of a level counts as one, the import as another.
        assert 100 < calls <= sys.getrecursionlimit() // 2
    else:
        with contextlib.suppress(usm.InterfaceError):
            ENTRIES[entry](producer(way, again))
        assert calls == 0


def asks(entry, way):
    """Whether an import reads this attribute of a producer."""
    if entry == "validate":
        return way in PROPERTIES
    if entry == "from_dlpack":
        return way.startswith("__dlpack")
    if entry == "as_usm_memory":
        return way in ("__sycl_usm_array_interface__", "syclobj")
    return True
