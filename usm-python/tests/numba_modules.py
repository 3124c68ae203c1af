"""Facts about Numba's test modules, and how to run one of them.

A module runs in parts, each in a process of its own, which may crash or hang.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

#: Those that the runtime is about.
NAMED = [
    "test_nrt",
    "test_nrt_refct",
    "test_refop_pruning",
    "test_ndarray_subclasses",
    "test_recursion",
    "test_dyn_array",
    "test_array_iterators",
    "test_lists",
]
#: Those of the containers that are replaced too.
CONTAINERS = ["test_dictobject", "test_typedlist", "test_listobject", "test_dictimpl", "test_listimpl", "test_setimpl", "test_setobject"]
# : Number of parts in which a module runs; short modules run at once. Parts are equal on both
# runtimes, so that their leftovers can be compared.
PARTS = {
    "test_dictobject": 8,
    "test_typedlist": 6,
    "test_listobject": 6,
    "test_lists": 4,
    "test_dyn_array": 4,
    "test_array_iterators": 2,
    "test_recursion": 2,
    "test_setobject": 2,
}
#: Tests that look at what is replaced, and differ for that reason.
DIFFERENT = {
    "test_nrt": {
        "TestNRTIssue.test_no_nrt_on_njit_decoration": "install() initialises the runtime, before anything is decorated",
    }
}
# : Blocks that only ours count: the header and the table of every container. On Numba's runtime
# they are the C heap's.
TABLES = {"test_dictimpl", "test_listimpl", "test_setimpl", "test_setobject", "test_dictobject", "test_typedlist", "test_listobject"}
# : Numba's runtime counts allocations that fail: these tests ask it for too much by its Python
# interface.
FAILED_ALLOCATIONS = {"test_nrt": 2}
#: As above, but from compiled code, so that ours is asked, which counts what is made.
FAILED_IN_COMPILED_CODE = {"test_lists": 1, "test_dyn_array": 1}
#: Modules that query Numba's counts: on its own runtime no other code may count there.
UNCOUNTED = {"test_nrt"}

# : Seconds that one test may take, and one part of a module; `USM_NUMBA_SLOWER` is a factor for
# slow machines.
SLOWER = float(os.environ.get("USM_NUMBA_SLOWER", "1"))
TEST_LIMIT = 300 * SLOWER
PART_LIMIT = 1800 * SLOWER
#: Crashes and timeouts of one part after which the rest of it is given up.
RESTARTS = 5

SCRIPT = pathlib.Path(__file__).with_name("numba_suite.py")


def run_part(module, part, *arguments):
    """The outcome of each test, and the blocks that were left.

    Outcomes are `{TEST: {"outcome", "seconds", "text"}}`. The blocks are `None` where the process
    did not reach its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        tests, left, after, text = {}, None, None, ""
        for _ in range(RESTARTS):
            report = pathlib.Path(folder, "report")
            report.write_text("")
            command = [sys.executable, SCRIPT, module, report, "--part", part, "--test-limit", str(TEST_LIMIT), *arguments]
            ended, printed = run_process([*command, *(["--after", after] if after else [])])
            open_test = None
            for line in map(json.loads, report.read_text().splitlines()):
                if "start" in line:
                    open_test = line["start"]
                elif "end" in line:
                    tests[line.pop("end")] = line
                    open_test = None
                else:
                    left = line["left"]
            if left is not None:
                break
            text = f"{ended}\n{printed[-4000:]}"
            if open_test is None:
                # Before the first test, between two or after the last one.
                tests[f"{module} {part}"] = {"outcome": "failed", "text": text}
                break
            tests[open_test] = {"outcome": "failed", "text": text}
            after = open_test
        return tests, left


def run_process(command):
    """The end of the process, in words, and its output; ends its children too."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        try:
            code = process.wait(PART_LIMIT)
            ended = f"ended with status {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"
        except subprocess.TimeoutExpired:
            ended = f"took longer than {PART_LIMIT:.0f} s"
        finally:
            if hasattr(os, "killpg"):
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.kill()
            process.wait()
        output.seek(0)
        return ended, output.read().decode(errors="replace")


def parts(module):
    count = PARTS.get(module, 1)
    return [f"{index}/{count}" for index in range(count)]


def counted(tests):
    """The number of tests with each outcome."""
    counts = {}
    for test in tests.values():
        counts[test["outcome"]] = counts.get(test["outcome"], 0) + 1
    return counts


def total(lefts):
    """The blocks that all parts left together; `None` where one did not reach its end."""
    if any(left is None for left in lefts):
        return None
    number = lambda key: sum(left.get(key) or 0 for left in lefts)  # noqa: E731
    return {key: number(key) for key in ("blocks", "headers", "live", "tracked")}
