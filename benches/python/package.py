"""Everyday work of the package beside its peers: memory, copies, a hop between processes and the
import; rows of JSON.

Medians of pairs taken in turns, of the caller's CPU time in microseconds, except the hop between
two workers of Dask, which is elapsed time, because the processes share the work.
"""

import os
import subprocess
import sys
import time

import numpy as np

import usm
import usm.memory
from pairs import compare, row

SMALL, LARGE = 4096, 64 << 20


def skipped(case, error):
    print(f"skipped: {case}: {type(error).__name__}: {error}", file=sys.stderr)


def memory():
    host = usm.Queue("host")
    compare("Python: allocate and free 4 KiB, host", "bytearray", lambda: usm.memory.MemoryUSMHost(SMALL, queue=host), lambda: bytearray(SMALL), 200)
    try:
        import dpctl
        import dpctl.memory

        theirs, ours = dpctl.SyclQueue("opencl:cpu"), usm.Queue("sycl")
    except Exception as error:
        skipped("memory of SYCL", error)
        return
    for kind in ("shared", "host", "device"):
        peer = getattr(dpctl.memory, f"MemoryUSM{kind.capitalize()}")
        compare(
            f"Python: allocate and free 4 KiB, SYCL, {kind}",
            f"dpctl's {peer.__name__}",
            lambda kind=peer.__name__: getattr(usm.memory, kind)(SMALL, queue=ours),
            lambda peer=peer: peer(SMALL, queue=theirs),
            200,
        )


def copies():
    host = usm.Queue("host")
    for name, size, count, rounds in (("4 KiB", SMALL, 200, 101), ("64 MiB", LARGE, 1, 31)):
        one, two = np.ones(size, "u1"), np.ones(size, "u1")
        a, b = usm.memory.MemoryUSMHost(size, queue=host), usm.memory.MemoryUSMHost(size, queue=host)
        a.copy_from_host(one)
        b.copy_from_host(two)
        compare(f"Python: copy of {name}, host", "np.copyto", lambda: a.copy_from_device(b), lambda: np.copyto(one, two), count, rounds)


def hop():
    try:
        from distributed import Client, LocalCluster, wait
    except Exception as error:
        skipped("a hop between workers of Dask", error)
        return
    import usm.dask  # noqa: F401

    # Dask sends the functions to the workers, which have only what they import.
    def made(kind):
        import numpy as np
        import usm

        array = np.ones(LARGE // 4, "f4")
        return array if kind == "numpy" else usm.asarray(array, queue=usm.Queue("host"), copy=True)

    def last(array):
        import numpy as np

        return float(array[-1]) if isinstance(array, np.ndarray) else float(np.asarray(array)[-1])

    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        one, two = list(client.nthreads())

        def time_of(kind):
            there = client.submit(made, kind, workers=[one], pure=False)
            wait(there)
            start = time.perf_counter()
            assert client.submit(last, there, workers=[two], pure=False).result() == 1
            return (time.perf_counter() - start) * 1e6

        for kind in ("usm", "numpy"):
            time_of(kind)
        pairs = [(time_of("usm"), time_of("numpy")) for _ in range(15)]
        row("Python: hop of 64 MiB between two workers of Dask", "NumPy's array", *zip(*pairs))


def imports():
    """CPU time of `import` in a new process, without the interpreter's own start."""

    def time_of(module):
        text = f"import time; a = time.process_time_ns(); import {module}; print(time.process_time_ns() - a)"
        return int(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout) / 1000

    pairs = [(time_of("usm"), time_of("numpy")) for _ in range(21)]
    row("Python: import", "import numpy", *zip(*pairs))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    for part in (memory, copies, imports, hop):
        part()
