"""Numba's own tests on its own runtime and on usm's, side by side.

    python numba_compare.py [--all] [--refresh] [--cache FOLDER] [--kind KIND] [--source SELECTOR]
    [MODULE ...]

What comes of them on Numba's runtime is kept in ``FOLDER``, for that release of it: ``--refresh``
runs them there again. Without modules the eight that the runtime is about, with ``--all`` those of
the containers too. Exit status 1 when a test differs without a reason that is known, or when what
is left is not what Numba leaves.
"""

import argparse
import concurrent.futures
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
import time

import numba_modules
from numba_modules import CONTAINERS, DIFFERENT, FAILED_ALLOCATIONS, FAILED_IN_COMPILED_CODE, NAMED, PARTS, TABLES, UNCOUNTED

OUTCOMES = ["passed", "failed", "skipped", "expected failure"]


def versions():
    """The versions that decide the outcomes of Numba's tests."""
    script = hashlib.sha256(numba_modules.SCRIPT.read_bytes()).hexdigest()[:12]
    packages = [f"{name}-{importlib.metadata.version(name)}" for name in ("numba", "llvmlite", "numpy", "cffi")]
    return [f"python-{platform.python_version()}", *packages, script]


class Reference:
    """Saved outcomes of the tests on Numba's runtime: a file for each module and its versions."""

    def __init__(self, folder, refresh):
        self.folder, self.refresh = folder and folder / "_".join(versions()), refresh

    def path(self, module):
        return self.folder / f"{module}-{PARTS.get(module, 1)}.json"

    def read(self, module):
        if self.folder is None or self.refresh or not self.path(module).exists():
            return None
        return json.loads(self.path(module).read_text())

    def write(self, module, found):
        complete = all(left is not None for left in found["left"])
        if self.folder is None or not complete:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.path(module).with_suffix(".tmp")
        fresh.write_text(json.dumps(found))
        fresh.replace(self.path(module))


def run_all(modules, reference, ours):
    """The outcomes of each module on both runtimes, with a process for each processor."""
    found = {(module, "numba"): reference.read(module) for module in modules}
    known = {module for module in modules if found[module, "numba"]}
    jobs = [(module, runtime, part) for module in modules for part in numba_modules.parts(module) for runtime in ("numba", "usm")]
    jobs = [job for job in jobs if not (job[1] == "numba" and job[0] in known)]
    # The longest first, so that none is waited for at the end; the same part on both runtimes at
    # the same time.
    jobs.sort(key=lambda job: -PARTS.get(job[0], 1))
    waiting = {key: [job for job in jobs if job[:2] == key] for key in {job[:2] for job in jobs}}
    results = {}

    def run(job):
        module, runtime, part = job
        arguments = ours if runtime == "usm" else ["--stock", *(["--uncounted"] if module in UNCOUNTED else [])]
        start = time.perf_counter()
        tests, left = numba_modules.run_part(module, part, *arguments)
        return job, tests, left, time.perf_counter() - start

    workers = max(1, int(os.environ.get("USM_NUMBA_PROCESSES", 0)) or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, job) for job in jobs]):
            (module, runtime, part), tests, left, seconds = done.result()
            results[module, runtime, part] = tests, left, seconds
            counts = ", ".join(f"{number} {outcome}" for outcome, number in numba_modules.counted(tests).items())
            print(f"{module} {part} on {runtime}'s runtime: {counts} in {seconds:.0f} s", flush=True)
            key = module, runtime
            if all(job in results for job in waiting[key]):
                tests, lefts, times = zip(*(results[job] for job in waiting[key]))
                merged = {name: outcome for part in tests for name, outcome in part.items()}
                found[key] = {"tests": merged, "left": lefts, "seconds": sum(times)}
                if runtime == "numba":
                    reference.write(module, found[key])
    return found, known


def compare(module, theirs, ours):
    """The differences: those with a known reason, and the others."""
    explained, unexplained = [], []
    for test in sorted({*theirs["tests"], *ours["tests"]}):
        one, other = (found["tests"].get(test, {"outcome": "did not run"}) for found in (theirs, ours))
        if one["outcome"] != other["outcome"]:
            line = f"{module}: {test}: {one['outcome']} on Numba's runtime, {other['outcome']} on usm's"
            reason = DIFFERENT.get(module, {}).get(test)
            if reason:
                explained.append(f"{line}: {reason}")
            else:
                unexplained.append(f"{line}\n{one.get('text', '')}\n{other.get('text', '')}")
        elif one["outcome"] in ("failed", "unexpected success"):
            unexplained.append(f"{module}: {test}: {one['outcome']} on both\n{other.get('text', '')}")
    unexplained += blocks(module, numba_modules.total(theirs["left"]), numba_modules.total(ours["left"]))
    return explained, unexplained


def blocks(module, theirs, ours):
    """Faults in the blocks that a module left.

    What its tests leak themselves, by raising out of compiled code, leaks on both runtimes, block
    for block.
    """
    if theirs is None or ours is None:
        return [f"{module}: a process did not get to its end"]
    if module in UNCOUNTED:
        expected = {"blocks": FAILED_ALLOCATIONS.get(module, 0), "headers": 0, "live": 0, "tracked": 0}
        return [] if ours == expected else [f"{module}: left {ours}, not {expected}"]
    expected = theirs["blocks"] - FAILED_IN_COMPILED_CODE.get(module, 0)
    tables = 2 * ours["headers"] if module in TABLES else 0
    if ours["headers"] == theirs["headers"] and expected <= ours["blocks"] <= expected + tables:
        return []
    return [f"{module}: left {ours}, on Numba's runtime {theirs}"]


def table(modules, found):
    rows = [["module", "tests", *(f"{outcome}" for outcome in OUTCOMES), "seconds", "headers left", "live"]]
    for module in modules:
        for runtime in "numba", "usm":
            one = found[module, runtime]
            counts, left = numba_modules.counted(one["tests"]), numba_modules.total(one["left"])
            shown = ("?", "?") if left is None else ("" if module in UNCOUNTED and runtime == "numba" else left["headers"], left["live"] if runtime == "usm" else "")
            seconds = f"{one['seconds']:.0f}"
            rows.append([f"{module} ({runtime})", len(one["tests"]), *(counts.get(outcome, 0) for outcome in OUTCOMES), seconds, *shown])
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(str(row[0]).ljust(widths[0]), *(str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--refresh", action="store_true")
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--kind", default="host")
    parser.add_argument("--source")
    arguments = parser.parse_args()
    modules = arguments.modules or [*NAMED, *(CONTAINERS if arguments.all else [])]
    ours = ["--kind", arguments.kind, *(["--source", arguments.source] if arguments.source else [])]

    start = time.perf_counter()
    found, known = run_all(modules, Reference(arguments.cache, arguments.refresh), ours)
    print(f"\n{', '.join(versions()[:-1])}; usm's runtime in {arguments.kind} memory of {arguments.source or 'the default device'}")
    if known:
        print(f"known from an earlier run on Numba's runtime: {', '.join(sorted(known))}")
    print()
    table(modules, found)
    explained, unexplained = [], []
    for module in modules:
        more, worse = compare(module, found[module, "numba"], found[module, "usm"])
        explained += more
        unexplained += worse
    skipped = {}
    for module in modules:
        for test, outcome in found[module, "usm"]["tests"].items():
            if outcome["outcome"] == "skipped":
                skipped.setdefault(outcome["text"], []).append(f"{module}: {test}")
    for title, lines in ("differs, and why", explained), ("DIFFERS", unexplained):
        print(f"\n{title}: {len(lines)}")
        for line in lines:
            print(f"  {line}")
    # Not in the words that announce a part that is missing here: Numba's own tests say so on both
    # runtimes.
    print(f"\nNumba's tests that skip themselves: {sum(map(len, skipped.values()))}")
    for reason, tests in skipped.items():
        print(f"  {reason}: {', '.join(tests)}")
    same = sum(len(found[module, "usm"]["tests"]) for module in modules) - len(explained)
    print(f"\n{time.perf_counter() - start:.0f} s")
    # The words that the summary of `cargo xtask` reads.
    print(f"test result: {'ok' if not unexplained else 'FAILED'}. {same - len(unexplained)} passed; {len(unexplained)} failed")
    sys.exit(bool(unexplained))


if __name__ == "__main__":
    main()
