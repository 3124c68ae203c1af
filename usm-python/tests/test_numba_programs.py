"""Programs on our runtime that do more than call a function: threads, exceptions, generators."""

import pytest

from numba_case import SOURCES, run, selector

pytestmark = pytest.mark.usefixtures("nrt_library")


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


def test_blocks_that_a_sleeping_thread_keeps_are_freed_too():
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


@pytest.mark.parametrize(("backend", "kind"), SOURCES)
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
    # The workers sleep with the old source. They continue with the heap, and then with another
    # source.
    out, _ = work(1000)
    usm.numba.install("host", "shared")
    again, _ = work(1000)
    assert usm.asarray(again).kind == "shared" and usm.asarray(out).kind == "host" and (out == again).all()
    assert usm.numba.installed().live == 1
    """)


def test_an_exception_leaks_as_on_numbas_runtime_and_leaks_names_it():
    """Compiled code does not free live blocks where a function that it calls raises.

    `leaks` finds them by number and by line.
    """
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


def test_compiled_code_catches_its_exceptions():
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
    # The buffer of a generator that did not get to its end: Numba does not free it on its own
    # runtime either.
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
