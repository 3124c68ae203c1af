"""Ready algorithms: on the host beside NumPy, on a GPU beside CuPy, whose parts are CUB's and
Thrust's; rows of JSON.

Elapsed microseconds with the wait, medians of batches taken in turns. Arguments choose the parts.
"""

import sys
import time

import numpy as np

import usm
from pairs import row

SIZES = {"host": (1 << 22, 4_194_319), "cuda": (1 << 24, 16_777_259)}


def skipped(what, error):
    print(f"skipped: {what}: {error}", file=sys.stderr)


def elapsed(case, peer, ours, theirs, count, rounds=9):
    """The row of two functions, by the elapsed time of batches of `count` calls."""

    def batch(work):
        start = time.perf_counter()
        for _ in range(count):
            work()
        return (time.perf_counter() - start) / count * 1e6

    for work in (ours, theirs):
        batch(work)
    row(case, peer, *zip(*[(batch(ours), batch(theirs)) for _ in range(rounds)]))


def rows(where, queue, kind, peer, module, taken, waited, count):
    """The rows of all algorithms on a queue, in memory of a kind, beside a module with NumPy's
    names.
    """
    for n in SIZES[where]:
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        given = {"x": x, "i": (x * 1e8).astype(np.int32), "u": (x * 1e8).astype(np.int64).astype(np.uint8)}
        x, i, u = (usm.asarray(array, queue=queue, kind=kind, copy=True) for array in given.values())
        there = {name: taken(array) for name, array in given.items()}
        out = {name: usm.empty(n, dtype, kind=kind, queue=queue) for name, dtype in (("x", "f4"), ("i", "i4"), ("places", "i8"))}
        bins = {count: usm.empty(count, "i8", kind=kind, queue=queue) for count in (100, 256)}
        scaled = usm.elementwise("2 * x + x")
        stable = {"kind": "stable"} if module is np else {}
        pairs = {
            "elementwise 2 * x + x": (lambda: scaled(x, out=out["x"]), lambda: 2 * there["x"] + there["x"]),
            "sum of float32": (lambda: usm.reduce(x), lambda: there["x"].sum()),
            "max of float32": (lambda: usm.reduce(x, "max"), lambda: there["x"].max()),
            "argmin of float32": (lambda: usm.argmin(x), lambda: there["x"].argmin()),
            "running sums of float32": (lambda: usm.scan(x, out=out["x"]), lambda: module.cumsum(there["x"])),
            "sort of int32": (lambda: usm.sort(i, out=out["i"]), lambda: module.sort(there["i"], **stable)),
            "sort of float32": (lambda: usm.sort(x, out=out["x"]), lambda: module.sort(there["x"], **stable)),
            "argsort of float32": (lambda: usm.argsort(x, out=out["places"]), lambda: module.argsort(there["x"], **stable)),
            "bincount of bytes": (lambda: usm.bincount(u, length=256, out=bins[256]), lambda: module.bincount(there["u"], minlength=256)),
            "histogram of 100 bins": (lambda: usm.histogram(x, 100, (-3, 3), out=bins[100]), lambda: module.histogram(there["x"], 100, (-3, 3))),
        }
        for name, (ours, theirs) in pairs.items():
            elapsed(f"algorithms: {name}, {n}, {where}", peer, ours, lambda theirs=theirs: waited(theirs()), count)


def host():
    rows("host", usm.Queue("host"), None, "NumPy", np, lambda array: array, lambda found: found, 1)


def cuda():
    try:
        import cupy

        queue = usm.Queue("cuda:gpu")
        stream = cupy.cuda.Stream.null
    except Exception as error:
        skipped("algorithms on a GPU", error)
        return
    rows("cuda", queue, "device", "CuPy", cupy, cupy.asarray, lambda found: stream.synchronize(), 10)


if __name__ == "__main__":
    for part in sys.argv[1:] or ["host", "cuda"]:
        globals()[part]()
