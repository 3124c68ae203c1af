"""Small blocks of compiled code on usm's runtime beside Numba's own: `python small_blocks.py`.

Two processes, because a process has one Numba, that work in turns; prints
`CASE<TAB>OURS<TAB>THEIRS`, nanoseconds of CPU time a turn of the loop, medians of 31 rounds."""

import statistics
import subprocess
import sys
import time

ROUNDS, TURNS = 31, 50_000


def serve(runtime):
    import numpy as np

    if runtime != "numba":
        import usm.numba

        usm.numba.install("host", runtime)
    from numba import njit

    @njit
    def dictionary(n):
        total = 0
        for i in range(n):
            made = {}
            made[i] = i
            total += len(made)
        return total

    @njit
    def array(n):
        total = 0.0
        for i in range(n):
            total += np.ones(4)[0]
        return total

    cases = {"dictionary": dictionary, "array": array}
    for case in cases.values():
        case(10)
    print("ready", flush=True)
    for line in sys.stdin:
        case = cases[line.strip()]
        start = time.thread_time_ns()
        case(TURNS)
        print((time.thread_time_ns() - start) / TURNS, flush=True)


def main():
    runtimes = {
        runtime: subprocess.Popen([sys.executable, __file__, runtime], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for runtime in ("shared", "numba")
    }
    for process in runtimes.values():
        assert process.stdout.readline() == "ready\n", "a process did not begin"

    def once(process, case):
        process.stdin.write(case + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    for case, name in ("dictionary", "@njit: a dictionary of one key in a loop"), ("array", "@njit: an array of 32 B in a loop"):
        times = [[once(process, case) for process in runtimes.values()] for _ in range(ROUNDS)]
        print(name, *(statistics.median(column) for column in zip(*times)), sep="\t", flush=True)
    for process in runtimes.values():
        process.stdin.close()
        process.wait()


if len(sys.argv) > 1:
    serve(sys.argv[1])
else:
    main()
