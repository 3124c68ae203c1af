"""Compiled code on usm's runtime: where its blocks are, and what counts them.

Small blocks are parts of slabs of the source. The threads that free them keep them, which must not
show anywhere else.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from numba_case import SETUP, SOURCES, run, selector

pytestmark = pytest.mark.usefixtures("nrt_library")


@pytest.mark.parametrize(("backend", "kind"), SOURCES)
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
    assert balanced()
    """)


@pytest.mark.parametrize(("backend", "kind"), SOURCES)
def test_a_snapshot_shows_the_segments_of_the_source(backend, kind, tmp_path):
    run(f"""
    import pickle
    usm.numba.install({selector(backend)!r}, {kind!r})

    @njit
    def keep(n):
        return np.arange(n)

    array, context = keep(1000), usm.numba.installed().queue.context
    taken = usm.snapshot()
    taken.dump({str(tmp_path / "memory")!r})
    with open({str(tmp_path / "memory")!r}, "rb") as file:
        segments = pickle.load(file)["segments"]
    address = array.ctypes.data
    ours = [it for it in segments if it["address"] <= address < it["address"] + it["total_size"]]
    assert len(ours) == 1 and ours[0]["total_size"] == context.stats()["reserved"] > 0, (ours, context.stats())
    assert ours[0]["kind"] == {kind!r}
    inside = [it for it in ours[0]["blocks"] if it["address"] <= address < it["address"] + it["size"]]
    assert [it["state"] for it in inside] == ["active_allocated"] and inside[0]["requested_size"] >= array.nbytes
    del array
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


def test_missing_memory_is_a_memory_error():
    run("""
    usm.numba.install("host")
    make = njit(lambda n: np.empty(n))
    refused(MemoryError, "Allocation failed", make, 1 << 50)
    assert len(make(3)) == 3
    gc.collect()
    assert usm.numba.installed().live == 0
    """)


def test_c_reads_the_kind_of_blocks_of_compiled_code():
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


@pytest.mark.parametrize(("backend", "kind"), SOURCES)
def test_a_loop_of_small_blocks_asks_the_source_for_slabs(backend, kind):
    run(f"""
    usm.numba.install({selector(backend)!r}, {kind!r})

    @njit
    def loop(n):
        total = 0.0
        for i in range(n):
            d = {{i: i}}
            total += len(d) + np.ones(4)[0]
        return total

    @njit
    def keep(n):
        return [np.full(5, i) for i in range(n)]

    assert loop(20000) == 40000
    counters = held({kind!r})
    # A slab of 64 KiB for each of the sizes: the dictionary's three blocks and the array's one.
    assert counters["count"] < 20 and counters["live"] < 10, counters
    arrays = keep(3000)
    assert usm.numba.installed().live == 3000
    assert held({kind!r})["live"] < 60
    context = usm.numba.installed().queue.context
    for array in arrays[::100]:
        found, base, size = context.query(array.ctypes.data)
        assert found == {kind!r} and base <= array.ctypes.data and array.ctypes.data + array.nbytes <= base + size
    assert all((array == i).all() for i, array in enumerate(arrays))
    ours = usm.asarray(arrays[7])
    assert (ours.kind, ours.pointer, ours.tolist()) == ({kind!r}, arrays[7].ctypes.data, [7] * 5)
    refused(usm.RequestError, "3000 blocks of the source are alive", usm.numba.uninstall)
    del arrays, array, ours
    assert balanced()
    queue = usm.numba.installed().queue
    usm.numba.uninstall()
    gc.collect()
    counters = usm.stats()[str(queue.device.selector)]["usm_" + {kind!r}]
    assert (counters["live"], counters["current"]) == (0, 0), counters
    """)


def test_the_environment_switches_slabs_off():
    code = textwrap.dedent("""
    @njit
    def loop(n):
        for i in range(n):
            np.ones(4)[0]
        return n

    usm.numba.install("host")
    loop(1000)
    print(held("host")["count"])
    """)
    counts = []
    for setting in "0", "1":
        done = subprocess.run(
            [sys.executable, "-c", SETUP + code], capture_output=True, text=True, timeout=600,
            env={**os.environ, "USM_NRT_THREAD_CACHE": setting},
        )
        assert done.returncode == 0, done.stderr
        counts.append(int(done.stdout))
    assert counts[0] >= 1000 and counts[1] < 20, counts


def test_small_leaks_have_an_origin_too():
    run("""
    usm.numba.install("host")
    make = njit(lambda n: np.empty(n))
    # There are kept blocks that could be taken for the next ones.
    for _ in range(100):
        make(3)
    before = make(3)
    usm.nrt.track(origins=True)
    def a_function_that_keeps(n):
        return make(n)
    kept = a_function_that_keeps(3)
    leak, = usm.nrt.leaks()
    assert leak.size == 24 and leak.data == kept.ctypes.data and "a_function_that_keeps" in leak.origin
    assert usm.numba.installed().live == 2
    refused(usm.RequestError, "2 blocks of the source are alive", usm.numba.uninstall)
    del before, kept
    assert usm.nrt.leaks() == [] and balanced()
    usm.nrt.track(False)
    usm.numba.uninstall()
    """)
