"""`usm.Array` in compiled code."""

import importlib.metadata

import pytest

from conftest import lacking
from numba_case import run, selector

pytestmark = pytest.mark.usefixtures("nrt_library")


def test_compiled_code_returns_the_same_array():
    run("""
    @njit
    def double(a):
        for i in range(a.size):
            a[i] *= 2
        return a

    for kind in "host", "shared":
        array = usm.asarray([1.0, 2.0, 3.0], kind=kind, queue="host")
        assert double(array) is array
        assert array.tolist() == [2.0, 4.0, 6.0] and array.kind == kind
    assert len(double.signatures) == 1
    """)


def test_parts_are_arrays_over_the_same_memory():
    run("""
    parts = {
        "reversed": (njit(lambda a: a[::-2]), lambda a: a[::-2]),
        "transposed": (njit(lambda a: a.T), lambda a: a.T),
        "a row": (njit(lambda a: a[1]), lambda a: a[1]),
        "a block": (njit(lambda a: a[1:, 1:3]), lambda a: a[1:, 1:3]),
        "other elements": (njit(lambda a: a.view(np.uint8)), None),
        "flat": (njit(lambda a: a.reshape(12)), lambda a: a.reshape(12)),
        "empty": (njit(lambda a: a[3:]), lambda a: a[3:]),
    }
    expected = np.arange(12, dtype="f4").reshape(3, 4)
    array = usm.asarray(expected, kind="shared", queue="host")
    assert array.base is None
    for name, (compiled, plain) in parts.items():
        part = compiled(array)
        assert type(part) is usm.Array and part.kind == "shared", name
        if plain is None:
            assert part.dtype == "|u1" and part.shape == (3, 16)
            continue
        theirs = plain(expected)
        assert part.shape == theirs.shape and part.tolist() == theirs.tolist(), name
        if part.size:
            assert part.strides == theirs.strides, name
            assert part.pointer - array.pointer == theirs.ctypes.data - expected.ctypes.data, name
    row = parts["a row"][0](array)
    del array
    gc.collect()
    row[0] = 7.0
    assert row.tolist() == [7.0, 5.0, 6.0, 7.0]
    """)


def test_what_is_computed_is_numpys_and_what_is_copied_is_ours():
    run("""
    array = usm.asarray([1.0, 2.0], queue="host")
    total = njit(lambda a: a + np.sqrt(a) * 2)(array)
    assert type(total) is np.ndarray and np.allclose(total, [3.0, 2 + 2 * 2**0.5])
    copied = njit(lambda a: a.copy())(array)
    assert type(copied) is usm.Array and copied.pointer != array.pointer and copied.tolist() == [1.0, 2.0]
    assert njit(lambda a, b: ((a * b).sum(), a.max(), len(a)))(array, np.ones(2)) == (3.0, 2.0, 2)
    both = njit(lambda a, b, first: a if first else b)
    assert both(array, np.ones(2), True).tolist() == [1.0, 2.0]
    assert both(array, array[::-1], False).tolist() == [2.0, 1.0]
    inside = njit(lambda a: (a, [a[1:]]))(array)
    assert inside[0] is array and inside[1][0].tolist() == [2.0]
    """)


def test_every_common_element_type_works():
    run("""
    first = njit(lambda a: a[0])
    for dtype in "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16":
        array = usm.asarray(np.ones(3, dtype), kind="host", queue="host")
        assert first(array) == 1, dtype
    swapped = usm.asarray(np.ones(3, ">i4"))
    refused(Exception, "", first, swapped)
    """)


def test_parallel_code_takes_arrays():
    run("""
    from numba import prange

    @njit(parallel=True)
    def fill(a):
        for i in prange(a.size):
            a[i] = i
        return a

    array = usm.zeros(10000, "<i8", kind="shared", queue="host")
    assert fill(array) is array and array.tolist() == list(range(10000))
    """)


def test_read_only_arrays_stay_read_only():
    run("""
    from numba.core.errors import TypingError

    @njit
    def write(a):
        a[0] = 1

    array = usm.asarray(b"abc")
    assert array.readonly
    refused(TypingError, "readonly", write, array)
    part = njit(lambda a: a[1:])(array)
    assert part.readonly and part.tobytes() == b"bc"
    """)


def test_device_memory_is_refused():
    run("""
    first = njit(lambda a: a[0])
    refused(usm.AccessError, "device memory has no host view", first, usm.zeros(3, kind="device", queue="host"))
    assert first(usm.zeros(3, kind="shared", queue="host")) == 0
    """)


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_pending_work_is_waited_for(backend):
    run(f"""
    queue = usm.Queue({selector(backend)!r})
    n = 1 << 22
    source, target = usm.zeros(n, "<i4", kind="device", queue=queue), usm.zeros(n, "<i4", kind="shared", queue=queue)
    source.fill(5)
    total = njit(lambda a: a.sum())
    assert total(target) == 0
    for _ in range(5):
        target.fill(0)
        queue.copy(target, source)
        assert total(target) == 5 * n
    """)


def test_no_block_is_left():
    run("""
    usm.numba.install("host")
    take = njit(lambda a: (a, a[1:], a.copy(), a + 1))
    array = usm.asarray([1.0, 2.0, 3.0], queue="host")
    take(array)
    gc.collect()
    before = usm.nrt.get_allocation_stats()
    results = [take(array) for _ in range(10)]
    assert usm.numba.installed().live == 20
    del results
    gc.collect()
    after = usm.nrt.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert usm.numba.installed().live == 0
    """)


def test_numba_registers_the_type_by_itself():
    found = importlib.metadata.entry_points().select(group="numba_extensions")
    if not any(entry.value.startswith("usm.numba:") for entry in found):
        lacking("usm", "the package is not installed, only imported")
    run("""
    import sys
    assert "usm.numba" not in sys.modules
    array = usm.asarray([1, 2], queue="host")
    assert njit(lambda a: a)(array) is array
    """)
