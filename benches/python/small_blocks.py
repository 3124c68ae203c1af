"""Blocks of compiled code on usm's runtime beside Numba's own, and arrays of a pool beside NumPy's
and dpctl's: `python small_blocks.py`. It is one of the parts of `bench nrt`.

Two processes, because a process has one Numba, that work in turns; prints
`CASE<TAB>OURS<TAB>THEIRS`, nanoseconds of CPU time a turn of the loop, medians of 31 rounds. With
two threads each has the interpreter's lock released, and the time is the mean of both."""

import statistics
import subprocess
import sys
import threading
import time

ROUNDS, TURNS = 31, 50_000
#: Bytes of the arrays of a loop.
SIZES = {"4 KiB": 4 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20}


def serve(runtime):
    import numpy as np

    if runtime != "numba":
        import usm.numba

        source, kind = runtime.split("/")
        usm.numba.install(source, kind)
    from numba import njit

    @njit(nogil=True)
    def dictionary(n, size):
        total = 0
        for i in range(n):
            made = {}
            made[i] = i
            total += len(made)
        return total

    @njit(nogil=True)
    def array(n, size):
        total = 0.0
        for i in range(n):
            total += np.ones(4)[0]
        return total

    @njit(nogil=True)
    def empty(n, size):
        total = 0
        for i in range(n):
            block = np.empty(size, np.uint8)
            block[0] = i
            total += block[0]
        return total

    cases = {"dictionary": dictionary, "array": array, "empty": empty}
    for case in cases.values():
        case(10, 4096)
    print("ready", flush=True)
    for line in sys.stdin:
        name, size, threads, turns = line.split()
        case, size, turns = cases[name], int(size), int(turns)
        together, times = threading.Barrier(int(threads)), []

        def work():
            together.wait()
            start = time.thread_time_ns()
            case(turns, size)
            times.append((time.thread_time_ns() - start) / turns)

        workers = [threading.Thread(target=work) for _ in range(int(threads))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(statistics.mean(times), flush=True)


def of_compiled_code(source, names):
    runtimes = {
        runtime: subprocess.Popen([sys.executable, __file__, runtime], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for runtime in (source, "numba")
    }
    for runtime, process in runtimes.items():
        if process.stdout.readline() != "ready\n":
            print(f"no process of {runtime}", file=sys.stderr)
            return

    def once(process, *words):
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    for name, words in names.items():
        times = [[once(process, *words) for process in runtimes.values()] for _ in range(ROUNDS)]
        print(f"@njit on {source}: {name}", *(statistics.median(column) for column in zip(*times)), sep="\t", flush=True)
    for process in runtimes.values():
        process.stdin.close()
        process.wait()


def in_a_pool(device, peer, make_peer):
    """`usm.empty` in a `with` block beside the peer's array of 4 KiB."""
    import usm

    def batch(make, size):
        start = time.thread_time_ns()
        for _ in range(2000):
            make(size)
        return (time.thread_time_ns() - start) / 2000

    with usm.Device(device), usm.Pool(device):
        make = lambda size: usm.empty(size, "u1")  # noqa: E731
        for name, size in {"4 KiB": 4 << 10, **SIZES, "64 MiB": 64 << 20}.items():
            times = [(batch(make, size), batch(make_peer, 4096)) for _ in range(ROUNDS)]
            ours, theirs = map(statistics.median, zip(*times))
            print(f"usm.empty of {name} in a pool on {device}, beside 4 KiB of {peer}", ours, theirs, sep="\t", flush=True)


def main():
    import numpy as np

    loops = {"a dictionary of one key in a loop": ("dictionary", 0, 1, TURNS), "an array of 32 B in a loop": ("array", 0, 1, TURNS)}
    for threads in 1, 2:
        for name, size in SIZES.items():
            loops[f"an array of {name} in a loop, {threads} at once"] = ("empty", size, threads, 2000)
    of_compiled_code("host/shared", loops)
    of_compiled_code("sycl/shared", loops)
    in_a_pool("host", "NumPy", lambda size: np.empty(size, "u1"))
    try:
        import dpctl.memory
    except ImportError:
        return
    in_a_pool("sycl", "dpctl", dpctl.memory.MemoryUSMShared)


if len(sys.argv) > 1:
    serve(sys.argv[1])
else:
    main()
