"""`usm.numba`: arrays in compiled code, and compiled code on our runtime. Each case is a process of its own, because a
process has one Numba and machine code is tied to the runtime that it was compiled for.
"""

import os
import subprocess
import sys
import textwrap

import pytest

import usm
from conftest import require
from warm import Warm

require("numba", "usm.numba is for it")

SETUP = """
import gc
import numpy as np
import usm
from numba import njit

def refused(error, words, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except error as problem:
        assert words in str(problem), str(problem)
    else:
        raise AssertionError(f"not refused: {words}")
"""


pytestmark = pytest.mark.usefixtures("nrt_library")


@pytest.fixture(scope="module", autouse=True)
def warm():
    """The imports of all cases, made once."""
    yield
    WARM.close()


WARM = Warm(SETUP)


def run(script):
    code, printed = WARM.run(textwrap.dedent(script))
    assert code == 0, printed


def selector(backend):
    device = next((device for device in usm.devices() if device.backend == backend), None)
    if device is None:
        pytest.skip(f"no device of the {backend} backend")
    return device.selector


# ---- usm.Array in compiled code ----------------------------------------------------------------------------------------


def test_an_array_goes_in_and_comes_back_as_itself():
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


def test_every_element_type_that_both_know():
    run("""
    first = njit(lambda a: a[0])
    for dtype in "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16":
        array = usm.asarray(np.ones(3, dtype), kind="host", queue="host")
        assert first(array) == 1, dtype
    swapped = usm.asarray(np.ones(3, ">i4"))
    refused(Exception, "", first, swapped)
    """)


def test_parallel_code():
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


def test_read_only_arrays_stay_so():
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


def test_numba_learns_the_type_by_itself():
    run("""
    import importlib.metadata, sys
    found = importlib.metadata.entry_points().select(group="numba_extensions")
    if not any(entry.value.startswith("usm.numba:") for entry in found):
        print("skipped: the package is not installed, only imported")
        sys.exit()
    assert "usm.numba" not in sys.modules
    array = usm.asarray([1, 2], queue="host")
    assert njit(lambda a: a)(array) is array
    """)


# ---- Compiled code on our runtime --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "kind"), [("host", "host"), ("opencl", "host"), ("opencl", "shared"), ("sycl", "host"), ("sycl", "shared")]
)
def test_arrays_lists_and_sets_live_in_the_source(backend, kind):
    run(f"""
    usm.numba.install({selector(backend)!r}, {kind!r})
    where = usm.numba.installed()
    assert (where.kind, where.live) == ({kind!r}, 0)

    @njit
    def arrays(n):
        numbers = set()
        for i in range(n):
            numbers.add(i)
        return [np.full(n, i) for i in range(3)], numbers

    @njit
    def keep(n):
        return np.arange(n)

    keep(1)
    lists, numbers = arrays(5)
    assert [a.tolist() for a in lists] == [[0] * 5, [1] * 5, [2] * 5] and numbers == set(range(5))
    live = usm.numba.installed().live
    assert live == 3
    context, array = where.queue.context, keep(100)
    found, base, size = context.query(array.ctypes.data)
    assert found == {kind!r} and base <= array.ctypes.data and array.ctypes.data + array.nbytes <= base + size
    counters = usm.stats()[str(where.queue.device.selector)]["usm_" + {kind!r}]
    assert counters["live"] >= 1 and counters["current"] >= array.nbytes  # small blocks share slabs

    ours = usm.asarray(array)
    assert (ours.kind, ours.pointer) == ({kind!r}, array.ctypes.data)
    assert ours.device.selector == where.queue.device.selector
    moved = ours.copy(kind="device")
    array[0] = 9
    assert moved.tolist() == list(range(100)) and ours.tolist()[0] == 9

    del lists, numbers, array, ours, moved
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    assert usm.numba.installed().live == 0 and stats.alloc == stats.free and stats.mi_alloc == stats.mi_free
    """)


def test_dpctl_takes_an_array_of_compiled_code_without_a_copy(dpctl):
    run("""
    import dpctl, dpctl.memory
    queue = dpctl.SyclQueue()
    usm.numba.install(queue, "shared")
    array = njit(lambda: np.arange(8))()
    memory = dpctl.memory.as_usm_memory(usm.asarray(array))
    assert memory._pointer == array.ctypes.data and memory.get_usm_type() == "shared"
    assert memory.sycl_context == queue.sycl_context
    """)


@pytest.mark.parametrize(("backend", "kind"), [("host", "host"), ("host", "shared"), ("opencl", "host"), ("sycl", "shared")])
def test_tables_of_typed_containers_live_in_the_source(backend, kind):
    run(f"""
    import ctypes
    from numba.typed import Dict, List
    from numba.typed.typedset import Set

    usm.numba.install({selector(backend)!r}, {kind!r})

    @njit
    def fill(n):
        numbers, squares = List(), Dict()
        for i in range(n):
            numbers.append(i * 0.5)
            squares[i] = i * i
        return numbers, squares

    numbers, squares = fill(1000)
    words = Set()
    for i in range(1000):
        words.add(i)
    library = ctypes.CDLL(str(usm.nrt.get_library()))
    library.numba_list_base_ptr.restype = ctypes.c_void_p
    context = usm.numba.installed().queue.context

    def check(address, size):
        found, base, length = context.query(address)
        assert found == {kind!r} and base <= address and address + size <= base + length

    # Each: the block of the container, its header and its table.
    assert usm.numba.installed().live == 9
    handles = {{name: ctypes.c_void_p.from_address(made._opaque.data) for name, made in
                {{"list": numbers, "dict": squares, "set": words}}.items()}}
    check(library.numba_list_base_ptr(handles["list"]), 8000)
    for name in "dict", "set":
        iterator, pointers = (ctypes.c_size_t * 4)(), [ctypes.c_void_p(), ctypes.c_void_p()][: 1 + (name == "dict")]
        getattr(library, f"numba_{{name}}_iter")(iterator, handles[name])
        for i in range(1000):
            assert getattr(library, f"numba_{{name}}_iter_next")(iterator, *map(ctypes.byref, pointers)) == 0
            assert ctypes.c_int64.from_address(pointers[0].value).value == i
        check(pointers[0].value, 8)
        check(handles[name].value, 8)

    assert [numbers[3], squares[31], 999 in words, 1000 in words] == [1.5, 961, True, False]
    stats = usm.nrt.get_allocation_stats()
    assert stats.alloc - stats.free == 9
    refused(usm.RequestError, "9 blocks of the source are alive", usm.numba.uninstall)
    del numbers, squares, words
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    assert usm.numba.installed().live == 0 and stats.alloc == stats.free and stats.mi_alloc == stats.mi_free
    usm.numba.uninstall()
    """)


def test_typed_containers_of_arrays_and_strings():
    run("""
    from numba.typed import Dict, List

    usm.numba.install("host")

    @njit
    def fill(n):
        numbers, names = List(), Dict()
        for i in range(n):
            numbers.append(np.ones(i + 1))
            names[str(i)] = np.zeros(i + 1)
        return numbers, names

    numbers, names = fill(40)
    numbers.append(np.ones(9))
    assert [len(a) for a in numbers] == [*range(1, 41), 9] and list(names) == [str(i) for i in range(40)]
    del numbers[3:39:2], names["7"]
    names["3"] = np.zeros(100)
    names.popitem()
    numbers.reverse()
    assert len(names["3"]) == 100 and "7" not in names and "39" not in names and len(numbers) == 23
    nested = List([List([1, 2]), List([3])])
    nested[0].append(9)
    assert [list(part) for part in nested] == [[1, 2, 9], [3]]
    del numbers, names, nested
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    assert usm.numba.installed().live == 0 and stats.alloc == stats.free
    """)


def test_a_container_stays_where_it_began():
    """Tables remember their allocator, so that containers of one time live on in the next."""
    run("""
    from numba.typed import Dict, List

    usm.numba.install("host", "shared")
    usm.numba.uninstall()
    heap, items = Dict(), List()
    heap[0] = items.append(0) or 0
    usm.numba.install("host")
    for i in range(2000):
        heap[i] = i
        items.append(i)
    assert usm.numba.installed().live == 0, "what grew began in the heap"
    source = Dict()
    source[1] = 1
    assert usm.numba.installed().live == 3
    assert len(heap) == 2000 and heap[1999] == items[2000] == 1999 and source[1] == 1
    del heap, items, source
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    assert usm.numba.installed().live == 0 and stats.alloc == stats.free
    """)


def test_no_container_is_older_than_the_functions_that_it_needs():
    run("""
    from numba.typed import Dict
    older = Dict()
    older[1] = 2
    refused(usm.RequestError, "Numba has compiled already", usm.numba.install, "host")
    assert dict(older) == {1: 2} and usm.numba.installed() is None
    """)


def test_code_that_was_cached_on_the_other_runtime(tmp_path):
    """Machine code of the cache names what it calls, and reserves iterators of the same size."""
    script = tmp_path / "cached.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import numpy as np
        import usm, usm.numba
        from numba import njit

        if sys.argv[1] == "ours":
            usm.numba.install("host")

        @njit(cache=True)
        def work(n):
            squares, total = {}, 0
            for i in range(n):
                squares[i] = np.full(i, i)
            for key, value in squares.items():
                total += key * len(value)
            return squares, total

        squares, total = work(50)
        hits = sum(work.stats.cache_hits.values())
        live = usm.numba.installed().live if sys.argv[1] == "ours" else -1
        print(total, len(squares), hits, live)
        """)
    )
    expected = str(sum(i * i for i in range(50)))
    answers = []
    for runtime in "numba", "ours", "numba":
        done = subprocess.run(
            [sys.executable, str(script), runtime], capture_output=True, text=True, timeout=600,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split())
    assert [answer[0] for answer in answers] == [expected] * 3
    assert [answer[2] for answer in answers] == ["0", "1", "1"]
    assert int(answers[1][3]) >= 53


def test_instances_of_compiled_classes_are_freed_and_counted():
    """Numba's C code releases them by itself, around our functions."""
    run("""
    from numba import float64, types
    from numba.experimental import jitclass

    usm.numba.install("host")
    usm.nrt.track()

    @jitclass([("data", float64[:])])
    class Holder:
        def __init__(self, n):
            self.data = np.zeros(n)

    holders = [Holder(10) for _ in range(5)]
    assert usm.numba.installed().live >= 10
    del holders
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    assert usm.numba.installed().live == 0 and usm.nrt.leaks() == []
    assert stats.alloc == stats.free and stats.mi_alloc == stats.mi_free
    """)


def test_memory_that_is_not_there_is_a_memory_error():
    run("""
    usm.numba.install("host")
    make = njit(lambda n: np.empty(n))
    refused(MemoryError, "Allocation failed", make, 1 << 50)
    assert len(make(3)) == 3
    gc.collect()
    assert usm.numba.installed().live == 0
    """)


def test_leaks_names_the_call_that_made_an_array():
    run("""
    usm.numba.install("host")
    make = njit(lambda n: np.empty(n))
    make(1)
    usm.nrt.track(origins=True)
    def a_function_that_keeps(n):
        return make(n)
    kept = a_function_that_keeps(1000)
    leak, = usm.nrt.leaks()
    assert leak.size == 8000 and leak.data == kept.ctypes.data and "a_function_that_keeps" in leak.origin
    """)


def test_tracemalloc_sees_the_blocks():
    run("""
    import tracemalloc
    usm.numba.install("host")
    make = njit(lambda n: np.empty(n, np.int8))
    make(1)
    tracemalloc.start()
    kept = make(1000000)
    assert tracemalloc.get_traced_memory()[0] > 1000000
    del kept
    assert tracemalloc.get_traced_memory()[0] < 100000
    """)


def test_threads_without_the_interpreter_allocate_too():
    run("""
    import threading
    usm.numba.install("host")
    usm.nrt.track(origins=True)

    @njit(nogil=True)
    def churn(n):
        total = 0.0
        for i in range(n):
            total += np.ones(i % 100).sum()
        return total

    churn(1)
    threads = [threading.Thread(target=churn, args=(3000,)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    stats = usm.nrt.get_allocation_stats()
    assert stats.alloc >= 12000 and stats.alloc == stats.free
    """)


def test_uninstall_waits_for_the_last_block_and_another_source_may_follow():
    run(f"""
    usm.numba.install("host")
    make = njit(lambda n: np.ones(n))
    array = make(3)
    refused(usm.RequestError, "1 blocks of the source are alive", usm.numba.uninstall)
    assert usm.numba.installed().live == 1 and make(2).sum() == 2
    del array
    usm.numba.uninstall()
    assert usm.numba.installed() is None
    refused(usm.RequestError, "nothing is installed", usm.numba.uninstall)
    heap = make(4)
    assert usm.asarray(heap).tolist() == [1.0] * 4
    usm.numba.install("host", "shared")
    source = make(5)
    assert usm.asarray(source).kind == "shared" and usm.asarray(heap).kind == "host"
    # A list that grew in one place may shrink in the other.
    del heap, source
    gc.collect()
    assert usm.numba.installed().live == 0
    """)


def test_a_list_may_grow_under_another_source_than_it_began_with():
    run("""
    from numba.core.runtime import rtsys
    usm.numba.install("host")
    extend = njit(lambda items, n: items.extend([float(i) for i in range(n)]))
    usm.numba.uninstall()
    items = [1.0]
    extend(items, 10)
    usm.numba.install("host")
    extend(items, 1000)
    assert len(items) == 1011 and usm.numba.installed().live == 0
    """)


def test_what_would_crash_is_refused():
    run("""
    import numba
    refused(usm.RequestError, "kind must be", usm.numba.install, "host", "device")
    refused(usm.RequestError, "is not one of", usm.numba.install, "host", "plaid")
    refused(usm.DeviceError, "no device matches", usm.numba.install, "cuda:gpu:77")
    numba.__version__, right = "0.99.0", numba.__version__
    refused(usm.DeviceError, "0.99.0", usm.numba.install, "host")
    numba.__version__ = right
    from numba.core.runtime import _nrt_python
    address = _nrt_python.c_helpers.pop("Allocate")
    refused(usm.DeviceError, "Allocate", usm.numba.install, "host")
    _nrt_python.c_helpers["Allocate"] = address
    assert usm.numba.installed() is None
    usm.numba.install("host")
    refused(usm.RequestError, "installed already", usm.numba.install, "host")
    assert njit(lambda: np.ones(3))().sum() == 3
    """)


def test_it_is_too_late_once_something_was_compiled():
    run("""
    from numba.core.runtime import _nrt_python
    make = njit(lambda: np.ones(3))
    array = make()
    before = dict(_nrt_python.c_helpers)
    refused(usm.RequestError, "Numba has compiled already", usm.numba.install, "host")
    assert dict(_nrt_python.c_helpers) == before and usm.numba.installed() is None
    assert make().sum() == array.sum() == 3
    """)


def test_threads_that_compile_meanwhile_are_before_or_after():
    run("""
    import sys
    import threading
    # Threads take turns as often as they can: locks taken in two orders then meet at once.
    sys.setswitchinterval(1e-6)
    refusals, sums = [], []

    def compile_and_run():
        sums.append(njit(lambda: np.ones(3))().sum())

    def install():
        try:
            usm.numba.install("host")
        except usm.RequestError as error:
            refusals.append(str(error))

    usm.numba
    threads = [threading.Thread(target=compile_and_run) for _ in range(3)]
    threads += [threading.Thread(target=install) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert sums == [3.0] * 3 and len(refusals) >= 2
    """)


def test_numbas_statistics_are_ours():
    run("""
    from numba.core.runtime import _nrt_python, rtsys
    usm.numba.install("host")
    make = njit(lambda a: (np.ones(3), a[1:]))
    refused(RuntimeError, "NRT stats are disabled", rtsys.get_allocation_stats)
    _nrt_python.memsys_enable_stats()
    shown = rtsys.get_allocation_stats()
    made = make(np.zeros(2))
    now = rtsys.get_allocation_stats()
    # Ones of ours, and the header that Numba makes around the argument.
    assert (now.mi_alloc - shown.mi_alloc, now.mi_free - shown.mi_free) == (2, 0)
    del made
    assert rtsys.get_allocation_stats().mi_free == now.mi_alloc
    _nrt_python.memsys_disable_stats()
    refused(RuntimeError, "NRT stats are disabled", rtsys.get_allocation_stats)
    assert usm.nrt.get_allocation_stats().mi_alloc >= 2
    """)


def test_importing_usm_imports_no_numba():
    run("""
    import subprocess, sys
    code = "import sys, usm, usm.nrt; assert 'numba' not in sys.modules and 'numpy' not in sys.modules; usm.numba; assert 'numba' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    """)


def test_c_is_told_the_kind_of_blocks_that_compiled_code_makes():
    run(
        """
        import ctypes
        get_api = ctypes.CDLL(usm.nrt.get_library()).usm_nrt_get_api
        get_api.restype, get_api.argtypes = ctypes.c_void_p, [ctypes.c_uint32]
        kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(
            ctypes.c_void_p.from_address(get_api(1) + 8 + 13 * ctypes.sizeof(ctypes.c_void_p)).value
        )
        usm.numba.install("host", "shared")

        @njit
        def make(n):
            return np.ones(n), [n, n]

        for origins in (False, True):
            usm.nrt.track(origins=origins)
            kept = make(10), make(10_000)
            own = usm.nrt.MemInfo.allocate(64)
            found = usm.nrt.leaks()
            assert len(found) >= 3, found
            assert [kind(leak.address) for leak in found] == [3] * len(found), found
            usm.nrt.track(False)
        assert own.kind == "shared"
        """
    )


def test_a_fork_finds_no_lock_held():
    run(
        """
        import ctypes, os, threading
        library = ctypes.CDLL(usm.nrt.get_library())
        make, release = library.NRT_MemInfo_alloc, library.NRT_MemInfo_release
        make.restype, make.argtypes, release.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
        usm.numba.install("host")
        usm.nrt.track(origins=True)
        stop = False

        def work():
            # Without the interpreter held, from the source, noted.
            while not stop:
                release(make(5000))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        hung = 0
        for _ in range(40):
            child = os.fork()
            if child == 0:
                import signal
                signal.alarm(30)
                # Not from the source: its context's locks are its own, and few runtimes of devices survive a fork.
                usm.nrt.leaks()
                assert usm._usm._nrt_source()[1] == "host"
                os._exit(0)
            hung += os.waitpid(child, 0)[1] != 0
            if hung:
                break
        stop = True
        for thread in threads:
            thread.join()
        assert not hung, "a child hangs"
        usm.nrt.track(False)
        """
    )
