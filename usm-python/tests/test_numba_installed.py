"""Programs on usm's runtime that do more than call a function: threads, forks, exceptions, generators, caches. Each is a process of its own.

Small blocks are carved out of slabs of the source and kept by the threads that free them: what must not show anywhere else.
"""

import os
import subprocess
import sys
import textwrap

import pytest

import usm
from conftest import require
from test_numba import SETUP, selector
from warm import Warm

require("numba", "usm.numba is for it")

MORE = """
def held(kind):
    usm.nrt.drain()
    return usm.stats()[str(usm.numba.installed().queue.device.selector)]["usm_" + kind]

def balanced():
    gc.collect()
    stats = usm.nrt.get_allocation_stats()
    return usm.numba.installed().live == 0 and stats.alloc == stats.free and stats.mi_alloc == stats.mi_free
"""
WARM = Warm(SETUP + MORE)


pytestmark = pytest.mark.usefixtures("nrt_library")


@pytest.fixture(scope="module", autouse=True)
def warm():
    yield
    WARM.close()


def run(script):
    code, printed = WARM.run(textwrap.dedent(script))
    assert code == 0, printed
    return printed


SOURCES = [("host", "host"), ("host", "shared"), ("opencl", "host"), ("opencl", "shared"), ("sycl", "host"), ("sycl", "shared")]


# ---- Small blocks ------------------------------------------------------------------------------------------------------


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


def test_slabs_are_off_where_the_environment_says_so():
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
    for wish in "0", "1":
        done = subprocess.run(
            [sys.executable, "-c", SETUP + MORE + code], capture_output=True, text=True, timeout=600,
            env={**os.environ, "USM_NRT_THREAD_CACHE": wish},
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


# ---- Threads -----------------------------------------------------------------------------------------------------------


def test_what_a_sleeping_thread_keeps_goes_back_too():
    run("""
    import threading
    usm.numba.install("host")
    churn = njit(lambda n: sum([np.ones(i % 100)[:1].sum() for i in range(n)]), nogil=True)
    churn(10)
    done, wake = threading.Barrier(4), threading.Event()

    def work():
        churn(5000)
        done.wait()
        wake.wait()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    done.wait()
    assert balanced()
    queue = usm.numba.installed().queue
    usm.numba.uninstall()
    counters = usm.stats()[str(queue.device.selector)]["usm_host"]
    import sys
    if sys.platform == "linux":
        assert counters["live"] == 0, counters
    wake.set()
    for thread in threads: thread.join()
    assert churn(100) > 0
    """)


@pytest.mark.parametrize(("backend", "kind"), [("host", "host"), ("opencl", "shared"), ("sycl", "shared")])
def test_parallel_loops_make_arrays_and_dictionaries(backend, kind):
    run(f"""
    from numba import prange
    usm.numba.install({selector(backend)!r}, {kind!r})

    @njit(parallel=True)
    def work(n):
        total = 0.0
        out = np.zeros(n)
        for i in prange(n):
            d = {{i: np.ones(i % 50 + 1)}}
            out[i] = d[i].sum()
            total += out[i]
        return out, total

    out, total = work(4000)
    expected = [i % 50 + 1.0 for i in range(4000)]
    assert out.tolist() == expected and total == sum(expected)
    assert usm.asarray(out).kind == {kind!r} and usm.numba.installed().live == 1
    del out
    assert balanced()
    usm.numba.uninstall()
    # The workers sleep with what they knew; they go on with the heap, and then with another source.
    out, _ = work(1000)
    usm.numba.install("host", "shared")
    again, _ = work(1000)
    assert usm.asarray(again).kind == "shared" and usm.asarray(out).kind == "host" and (out == again).all()
    assert usm.numba.installed().live == 1
    """)


# ---- Ways out of compiled code -----------------------------------------------------------------------------------------


def test_an_exception_leaks_what_it_leaks_on_numbas_runtime_and_that_is_named():
    """Compiled code does not free what is alive where a function that it calls raises; it is found by number and by line."""
    run("""
    usm.numba.install("host")

    @njit
    def check(a):
        if a.sum() > 2:
            raise ValueError("too much")

    @njit
    def fail(n):
        kept = np.ones(n)
        check(kept)
        return kept

    fail(1)
    usm.nrt.track(origins=True)
    def a_caller():
        for _ in range(3):
            refused(ValueError, "too much", fail, 5)
    a_caller()
    gc.collect()
    leaks = usm.nrt.leaks()
    assert len(leaks) == usm.numba.installed().live == 3, leaks
    assert all(leak.size == 40 and "a_caller" in leak.origin for leak in leaks)
    refused(usm.RequestError, "3 blocks of the source are alive", usm.numba.uninstall)
    stats = usm.nrt.get_allocation_stats()
    assert stats.alloc - stats.free == 3
    """)


def test_a_raising_callback_leaves_what_is_freed_afterwards():
    run("""
    usm.numba.install("host")

    @njit
    def guarded(a):
        try:
            if a[0] > 0:
                raise ValueError
            return a.copy()
        except Exception:
            return np.zeros(3)

    assert guarded(np.ones(3)).tolist() == [0, 0, 0] and guarded(np.zeros(2)).tolist() == [0, 0]
    """)


def test_object_mode_inside_compiled_code():
    run("""
    from numba import objmode
    usm.numba.install("host", "shared")

    def look(made):
        assert usm.asarray(made).kind == "shared" and usm.numba.installed().live == 1
        return int(made.sum()), made * 2

    @njit
    def work(n):
        made = np.arange(n)
        with objmode(total="int64", other="int64[:]"):
            total, other = look(made)
        return other + made, total

    out, total = work(10)
    assert out.tolist() == [3 * i for i in range(10)] and total == 45
    del out
    assert balanced()
    """)


def test_a_generator_holds_its_arrays_as_long_as_it_lives():
    run("""
    usm.numba.install("host")

    @njit
    def chunks(n):
        buffer = np.zeros(4)
        for i in range(n):
            buffer += i
            yield buffer.copy()

    assert [float(chunk[0]) for chunk in chunks(4)] == [0, 1, 3, 6]
    assert balanced()
    unfinished = chunks(3)
    first = next(unfinished)
    assert usm.numba.installed().live == 2
    refused(usm.RequestError, "2 blocks of the source are alive", usm.numba.uninstall)
    del unfinished, first
    gc.collect()
    # The buffer of a generator that did not get to its end: Numba does not free it on its own runtime either.
    assert usm.numba.installed().live == 1
    refused(usm.RequestError, "1 blocks of the source are alive", usm.numba.uninstall)
    """)


def test_arrays_and_arrays_of_ours_in_structures_of_compiled_code():
    run("""
    from collections import namedtuple
    Pair = namedtuple("Pair", "one other")
    usm.numba.install("host", "shared")
    ours = usm.asarray([1.0, 2.0], kind="shared", queue="host")

    @njit
    def pair(a):
        return Pair(a, a + 1)

    @njit
    def strings(n):
        return ["x" * i for i in range(n)]

    made = pair(ours)
    assert made.one is ours and usm.asarray(made.other).kind == "shared"
    assert strings(50)[49] == "x" * 49
    del made, ours
    assert balanced()
    """)


# ---- Other processes ---------------------------------------------------------------------------------------------------


def test_a_fork_goes_on_with_what_it_has():
    run("""
    import os, threading
    usm.numba.install("host")
    work = njit(lambda n: [np.full(i % 200, i) for i in range(n)], nogil=True)
    kept = work(300)
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            work(200)

    # Forks happen while threads are in the middle of it.
    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads: thread.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            assert all((array == i).all() for i, array in enumerate(kept))
            more = work(1000)
            assert all((array == i).all() for i, array in enumerate(more))
            del more, kept
            gc.collect()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
    for thread in threads: thread.join()
    assert all((array == i).all() for i, array in enumerate(kept)) and usm.numba.installed().live == 300
    del kept
    assert balanced()
    usm.numba.uninstall()
    """)


def test_a_child_of_a_fork_may_uninstall():
    run("""
    import os
    usm.numba.install("host")
    make = njit(lambda n: np.ones(n))
    make(3)
    child = os.fork()
    if child == 0:
        usm.numba.uninstall()
        assert make(2).sum() == 2
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert usm.numba.installed().live == 0 and make(4).sum() == 4
    """)


SCRIPT = """
import pickle, sys
import numpy as np
import usm, usm.numba
from numba import njit

if sys.argv[1] != "numba":
    usm.numba.install(*sys.argv[1].split("/"))

@njit(cache=True)
def work(n):
    squares, words = {}, [np.zeros(0)]
    for i in range(n):
        squares[i] = np.full(i, i)
        words.append(squares[i][1:] + 0.5)
    return squares, words

def report():
    squares, words = work(30)
    kinds = {usm.asarray(words[9]).kind}
    total = sum(key * len(value) for key, value in squares.items()) + sum(float(word.sum()) for word in words)
    live = usm.numba.installed().live if sys.argv[1] != "numba" else -1
    print(total, sum(work.stats.cache_hits.values()), *kinds, live)

if __name__ == "__main__":
    report()
"""


def test_cached_code_names_what_it_calls_and_runs_on_every_runtime(tmp_path):
    """The cache has names, not the addresses of the process that filled it."""
    script = tmp_path / "cached.py"
    script.write_text(SCRIPT)
    runtimes = ["host/host", "host/shared", "numba", f"{selector('opencl')}/shared", "host/host"]
    answers = []
    for runtime in runtimes:
        done = subprocess.run(
            [sys.executable, str(script), runtime], capture_output=True, text=True, timeout=600,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split())
    assert len({answer[0] for answer in answers}) == 1
    assert [answer[1] for answer in answers] == ["0", "1", "1", "1", "1"]
    assert [answer[2] for answer in answers] == ["host", "shared", "host", "shared", "host"]
    assert all(int(answer[3]) >= 60 for answer, runtime in zip(answers, runtimes) if runtime != "numba")


def test_functions_travel_by_pickle_between_runtimes(tmp_path):
    """A pickle has the Python function: the other process compiles it for the runtime that it has."""
    (tmp_path / "travelling.py").write_text(
        "import numpy as np\nfrom numba import njit\n@njit\ndef make(n):\n    return np.arange(n)\ndef maker(k):\n"
        "    @njit\n    def inner(n):\n        return np.full(n, k)\n    return inner\n"
    )
    receive = "import pickle, sys, usm, usm.numba\n" + "{install}\n" + (
        "make, inner = pickle.load(sys.stdin.buffer)\n"
        "assert make(4).tolist() == [0, 1, 2, 3] and inner(2).tolist() == [7, 7]\n"
        "print(usm.asarray(make(5)).kind)\n"
    )
    send = (
        "import pickle, sys, usm, usm.numba\nusm.numba.install('host', 'shared')\nimport travelling\n"
        "made = travelling.make, travelling.maker(7)\nmade[0](3), made[1](3)\nsys.stdout.buffer.write(pickle.dumps(made))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    sent = subprocess.run([sys.executable, "-c", send], capture_output=True, timeout=600, env=environment)
    assert sent.returncode == 0, sent.stderr.decode()
    for install, kind in ("", "host"), ("usm.numba.install('host', 'shared')", "shared"):
        script = receive.replace("{install}", install)
        got = subprocess.run([sys.executable, "-c", script], input=sent.stdout, capture_output=True, timeout=600, env=environment)
        assert got.returncode == 0, got.stderr.decode()
        assert got.stdout.decode().split() == [kind]


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_a_process_ends_in_order_whatever_it_holds(backend):
    """Also with blocks alive in globals, on threads and in what threads keep."""
    code = f"""
    import threading
    usm.numba.install({selector(backend)!r}, "shared")
    work = njit(lambda n: [np.full(i % 300, i) for i in range(n)], nogil=True)
    kept = work(500)
    holder = dict(array=kept[3], compiled=work)
    def churn():
        held = work(500)
        event.wait()
    event = threading.Event()
    threading.Thread(target=churn, daemon=True).start()
    work(100)
    print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(code)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout.split()) == (0, ["done"]), done.stderr
