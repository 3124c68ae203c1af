"""Numba's own tests on usm's runtime: they pass as they do on Numba's, and leave the same blocks.

The short ones by default. With ``USM_NUMBA_SUITE=all`` (``cargo xtask numba``) all of them, each beside a run on Numba's own
runtime, which is then the oracle of every outcome and of what is left.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import usm
from conftest import CI, require

require("numba", "its tests come with it")
require("dpctl", "blocks live in memory of its default device")

#: Tests that look at what is replaced, and differ for that reason.
DIFFERENT = {
    "test_nrt": {
        "TestNRTIssue.test_no_nrt_on_njit_decoration": "install() initialises the runtime, before anything is decorated",
    }
}
SHORT = [
    "test_nrt",
    "test_nrt_refct",
    "test_ndarray_subclasses",
    "test_recursion",
    "test_refop_pruning",
    "test_dictimpl",
    "test_listimpl",
    "test_setimpl",
    "test_setobject",
]
LONG = ["test_array_iterators", "test_lists", "test_dyn_array", "test_dictobject", "test_typedlist", "test_listobject"]
#: Blocks that only ours count: the header and the table of every container. On Numba's runtime they are the C heap's.
TABLES = {"test_dictimpl", "test_listimpl", "test_setimpl", "test_setobject", "test_dictobject", "test_typedlist", "test_listobject"}
ALL = os.environ.get("USM_NUMBA_SUITE") == "all"
#: Numba's runtime counts allocations that fail: these tests ask it for too much by its Python interface.
FAILED_ALLOCATIONS = {"test_nrt": 2}
#: As above, but from compiled code, so that ours is asked, which counts what is made.
FAILED_IN_COMPILED_CODE = {"test_lists": 1, "test_dyn_array": 1}
SCRIPT = pathlib.Path(__file__).with_name("numba_suite.py")


@pytest.fixture(autouse=True)
def library():
    try:
        usm.nrt.get_library()
    except usm.DeviceError as error:
        if CI:
            pytest.fail(str(error))
        pytest.skip(str(error))


def run(module, *arguments):
    done = subprocess.run([sys.executable, SCRIPT, module, *arguments], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    # Some tests print from C.
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"ran"')))


@pytest.mark.parametrize("module", SHORT)
def test_a_module_passes_and_leaves_no_block(module):
    report = run(module)
    assert report["ran"] >= 4
    assert set(report["failed"]) == set(DIFFERENT.get(module, {})) and report["unexpected"] == [], report["output"]
    stats = report["stats"]
    assert (report["live"], report["leaks"]) == (0, 0)
    assert stats["mi_alloc"] == stats["mi_free"]
    assert stats["alloc"] == stats["free"] + FAILED_ALLOCATIONS.get(module, 0)


@pytest.mark.parametrize("kind", ["shared"])
def test_a_module_passes_in_shared_memory(kind):
    report = run("test_nrt_refct", "--kind", kind)
    assert (report["ran"], report["failed"], report["kind"], report["live"]) == (4, [], kind, 0), report["output"]


if ALL:

    @pytest.mark.parametrize("module", SHORT + LONG)
    def test_a_module_does_what_it_does_on_numbas_runtime(module):
        """What its tests leak themselves (by raising out of compiled code) is leaked there too, block for block."""
        # test_nrt asks whether Numba counts: its outcomes are compared, and what it leaves is looked at above.
        ours, theirs = run(module), run(module, "--stock", *(["--uncounted"] if module == "test_nrt" else []))
        seconds = f"{ours['seconds']} s, on Numba's own runtime {theirs['seconds']} s"
        print(f"{module}: {ours['ran']} tests in {seconds}; {ours['stats']}")
        assert theirs["failed"] == theirs["unexpected"] == []
        assert set(ours["failed"]) == set(DIFFERENT.get(module, {})), ours["output"]
        for what in "ran", "unexpected", "skipped", "expected_failures":
            assert ours[what] == theirs[what], what
        if not ours["failed"]:
            theirs["stats"]["alloc"] -= FAILED_IN_COMPILED_CODE.get(module, 0)
            (blocks, headers), (their_blocks, their_headers) = left(ours["stats"]), left(theirs["stats"])
            tables = 2 * headers if module in TABLES else 0
            assert headers == their_headers and their_blocks <= blocks <= their_blocks + tables


def left(stats):
    """Blocks and headers that a module left: what it makes in all varies from run to run."""
    return stats["alloc"] - stats["free"], stats["mi_alloc"] - stats["mi_free"]
