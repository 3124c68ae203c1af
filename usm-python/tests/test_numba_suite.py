"""Short tests of Numba's own pass on usm's runtime and leave no block.

`cargo xtask numba` runs the others too, and all of them beside Numba's own runtime
(`numba_compare.py`).
"""

import pytest

import effort
import numba_compare
import numba_modules
from conftest import require

require("numba", "its tests come with it")
require("dpctl", "blocks live in memory of its default device")

SHORT = effort.some(
    # The runtime, its counts, and a container.
    ["test_nrt", "test_nrt_refct", "test_setimpl"],
    ["test_ndarray_subclasses", "test_recursion", "test_refop_pruning", "test_dictimpl", "test_listimpl", "test_setobject"],
)


pytestmark = pytest.mark.usefixtures("nrt_library")


@pytest.mark.parametrize("module", SHORT)
def test_a_module_passes_and_leaves_no_block(module):
    tests, left = numba_modules.run_part(module, "0/1")
    different = numba_modules.DIFFERENT.get(module, {})
    wrong = {name: test for name, test in tests.items() if test["outcome"] in ("failed", "unexpected success")}
    assert len(tests) >= 4 and set(wrong) == set(different), wrong
    assert left == {"blocks": numba_modules.FAILED_ALLOCATIONS.get(module, 0), "headers": 0, "live": 0, "tracked": 0, "kind": "host"}


@pytest.mark.parametrize("kind", ["shared"])
def test_a_module_passes_in_shared_memory(kind):
    tests, left = numba_modules.run_part("test_nrt_refct", "0/1", "--kind", kind)
    assert [test["outcome"] for test in tests.values()] == ["passed"] * 4, tests
    assert left == {"blocks": 0, "headers": 0, "live": 0, "tracked": 0, "kind": kind}


# ---- What tells us so
# --------------------------------------------------------------------------------------------------


def found(*, blocks=0, headers=0, live=0, **outcomes):
    tests = {name: {"outcome": outcome.replace("_", " ")} for name, outcome in outcomes.items()}
    return {"tests": tests, "left": [{"blocks": blocks, "headers": headers, "live": live, "tracked": 0}], "seconds": 1}


def test_the_comparison_finds_a_difference():
    good = found(a="passed", b="skipped", c="expected_failure")
    assert numba_compare.compare("test_recursion", good, good) == ([], [])
    for worse in (
        found(a="failed", b="skipped", c="expected_failure"),
        found(a="passed", b="passed", c="expected_failure"),
        found(a="passed", b="skipped"),
        found(a="passed", b="skipped", c="expected_failure", headers=1),
        found(a="passed", b="skipped", c="expected_failure", blocks=1),
        {**good, "left": [None]},
    ):
        explained, unexplained = numba_compare.compare("test_recursion", good, worse)
        assert (explained, len(unexplained)) == ([], 1), unexplained
    assert numba_compare.compare("test_recursion", found(a="failed"), found(a="failed"))[1], "failed on both is no success"


def test_known_differences_are_listed_with_their_reason():
    known = "TestNRTIssue.test_no_nrt_on_njit_decoration"
    theirs, ours = found(**{known: "passed"}), found(**{known: "failed"}, blocks=2)
    (line,), unexplained = numba_compare.compare("test_nrt", theirs, ours)
    assert known in line and "before anything is decorated" in line and unexplained == []


def test_a_test_that_hangs_or_crashes_ends_no_other(monkeypatch, tmp_path):
    """The others of its part run on in a process of their own."""
    (tmp_path / "numba_hostile.py").write_text(
        "import ctypes, time, unittest\n"
        "class Hostile(unittest.TestCase):\n"
        "    def test_a_passes(self): pass\n"
        "    def test_b_crashes(self): ctypes.string_at(0)\n"
        "    def test_c_hangs(self): time.sleep(600)\n"
        "    def test_d_fails(self): self.assertEqual(1, 2)\n"
        "    def test_e_leaves(self): import os; os._exit(3)\n"
        "    def test_f_passes(self): pass\n"
    )
    script = tmp_path / "suite.py"
    text = numba_modules.SCRIPT.read_text()
    script.write_text(text.replace('f"numba.tests.{arguments.module}"', "arguments.module"))
    monkeypatch.setattr(numba_modules, "SCRIPT", script)
    monkeypatch.setattr(numba_modules, "TEST_LIMIT", 3)
    tests, left = numba_modules.run_part("numba_hostile", "0/1", "--stock", "--uncounted")
    outcomes = {name.split("_")[1]: test["outcome"] for name, test in tests.items()}
    assert outcomes == {"a": "passed", "b": "failed", "c": "failed", "d": "failed", "e": "failed", "f": "passed"}
    text = {name.split("_")[1]: test.get("text", "") for name, test in tests.items()}
    assert "SIGSEGV" in text["b"] and "Timeout" in text["c"] and "1 != 2" in text["d"] and "status 3" in text["e"]
    assert left == {"blocks": None, "headers": None}
