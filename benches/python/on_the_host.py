"""Kernels on the host beside Numba, Taichi and Warp: one thread, and two; rows of JSON.

Each library runs all programs in a process of its own, and the processes take turns. A row has the
processor's and the elapsed time of a call in milliseconds, medians over the turns of each turn's
median, and the ratio of ours to the best peer's elapsed time. What is compiled is compiled before.
`USM_PEERS` is a folder of further packages, where Taichi and Warp may be.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TURNS, SECONDS = 3, 1.0
LIBRARIES = {"usm": "ours", "numba": "with_numba", "taichi": "with_taichi", "warp": "with_warp"}


def work(library, threads):
    """The times of all programs of a library, as JSON."""
    import importlib

    from host_kernels.inputs import NAMES, inputs, is_right

    times = {}
    programs = importlib.import_module(f"host_kernels.{LIBRARIES[library]}").programs(threads)
    for name in NAMES:
        if name not in programs:
            continue
        before, arguments = inputs(name), inputs(name)
        programs[name](*arguments)
        if not is_right(name, before, arguments):
            times[name] = "wrong"
            continue
        # The code that a library makes in the background is there by then.
        for _ in range(3):
            programs[name](*arguments)
            time.sleep(0.2)
        taken, end = [], time.monotonic() + SECONDS
        while time.monotonic() < end or len(taken) < 5:
            wall, cpu = time.perf_counter(), time.process_time()
            programs[name](*arguments)
            taken.append((time.process_time() - cpu, time.perf_counter() - wall))
        times[name] = [1e3 * statistics.median(column) for column in zip(*taken)]
    print(json.dumps(times))


def turn(library, threads):
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), os.environ.get("USM_PEERS")]))
    limits = {"NUMBA_NUM_THREADS": str(threads), "USM_NUM_THREADS": str(threads), "USM_DEVICE": "host", "PYTHONPATH": path}
    command = [sys.executable, __file__, library, str(threads)]
    done = subprocess.run(command, env={**os.environ, **limits}, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    return json.loads(done.stdout.splitlines()[-1])


def main():
    for threads in (1, 2):
        turns = {library: [turn(library, threads)] for library in LIBRARIES}
        absent = {library: found[0][0] for library, found in turns.items() if isinstance(found[0], list)}
        for library, reason in absent.items():
            print(json.dumps({"case": f"on the host: {library}", "skipped": reason}), flush=True)
        present = [library for library in LIBRARIES if library not in absent]
        for _ in range(TURNS - 1):
            for library in present:
                turns[library].append(turn(library, threads))
        for name in turns["usm"][0]:
            row(name, threads, {library: [times[name] for times in turns[library] if name in times] for library in present})


def row(name, threads, times):
    wrong = sorted(library for library, found in times.items() if "wrong" in found)
    medians = {
        library: [statistics.median(column) for column in zip(*found)] for library, found in times.items() if found and library not in wrong
    }
    peers = {library: wall for library, (_, wall) in medians.items() if library != "usm"}
    best = min(peers, key=peers.get, default=None)
    ratio = medians["usm"][1] / peers[best] if best and "usm" in medians else None
    case = f"on the host: {name}, {threads} thread" + "s" * (threads > 1)
    print(json.dumps({"case": case, "peer": best, "unit": "ms", "cpu and wall": medians, "wrong": wrong, "ratio": ratio}), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    work(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else main()
