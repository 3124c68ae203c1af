"""Programs on our runtime in several processes: forks, caches, pickles, and how a process ends."""

import os
import subprocess
import sys
import textwrap

import pytest

from effort import some
from numba_case import SETUP, run, selector

pytestmark = pytest.mark.usefixtures("nrt_library")


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


def test_no_lock_is_held_after_a_fork():
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
                # Not from the source: its context's locks are its own, and few runtimes of devices
                # survive a fork.
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


def test_compiled_code_works_on_after_a_fork():
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


@pytest.mark.parametrize("first", some(["numba"], ["host/host"]))
def test_cached_code_names_what_it_calls_and_runs_on_every_runtime(tmp_path, first):
    """The cache has names, not addresses, and iterators have one size on both runtimes."""
    script = tmp_path / "cached.py"
    script.write_text(SCRIPT)
    runtimes = [first, "host/shared", "numba", f"{selector('opencl')}/shared", "host/host"]
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
    """A pickle has the Python function, which the other process compiles for its own runtime."""
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
def test_a_process_ends_normally_with_live_objects(backend):
    """Also with blocks alive in globals, on threads and in their caches."""
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
