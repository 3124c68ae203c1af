"""Every source of memory x conversions x writes, reads and exports.

Each gives the right bytes or a typed refusal, and nothing read-only is written.
"""

import inspect
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import usm
import usm.memory
import usm.nrt
from backends.configurations import CONFIGURATIONS, Missing
from conftest import lacking, require
from effort import EFFORT
from matrix.rows import FUNCTIONS, MEMBERS, WITHOUT_MEMORY

WORKER = Path(__file__).with_name("matrix") / "worker.py"
# One in so many of the cases two conversions deep; a prime, because kinds of sources come in turns.
PARTS = int(os.environ.get("USM_MATRIX", "191" if EFFORT == 1 else "7"))


def run(backend, environment, place, parts=PARTS):
    """The faults, the cases in which a process died, and the count of each row."""
    first, wrong, deaths, counts = (0, -1), [], [], {}
    while True:
        place.write_bytes(bytes(16))
        command = [sys.executable, str(WORKER), backend, str(place), "{},{}".format(*first), str(parts)]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=1500)
        for line in map(json.loads, done.stdout.splitlines()):
            if isinstance(line, dict):
                counts |= {name: counts.get(name, 0) + count for name, count in line.items()}
            else:
                wrong.append(line)
        if done.returncode == 0:
            return wrong, deaths, counts
        first = struct.unpack("qq", place.read_bytes())
        deaths.append([*first, done.returncode, done.stderr[-500:]])
        assert len(deaths) < 100, (deaths, wrong)


@pytest.mark.parametrize("name", ["host", "opencl", "sycl", "cuda_on_host_late"])
def test_read_only_memory_stays_read_only_and_bytes_are_right(name, request, tmp_path):
    require("numpy", "a consumer and a producer")
    require("numba", "a consumer and a producer")
    if name == "sycl":
        request.getfixturevalue("dpctl")
    try:
        environment = CONFIGURATIONS[name].environment(request.getfixturevalue)
    except Missing as reason:
        lacking(name, reason)
    wrong, deaths, counts = run(CONFIGURATIONS[name].backend, environment, tmp_path / "place")
    print(f"{name}: {counts.get('operations')} operations, {len(wrong)} wrong, {len(deaths)} deaths")
    assert (wrong, deaths) == ([], [])
    # A row that is always refused tests nothing; these are refused on some runtimes.
    never = {row.split("/")[0] for table in MEMBERS.values() for row in table} and [row for row in expected(name) if not counts.get(row)]
    assert never == []
    assert counts["operations"] > 5_000


def expected(name):
    """Rows that must have been done at least once."""
    rows = [f"{function}/0" for function in FUNCTIONS]
    rows += ["Array.fill/0", "Array.__setitem__/2", "MemoryUSMShared.memset/0", "MemInfo.buffer/0", "memoryview.buffer/0", "ndarray.buffer/0"]
    rows += {"sycl": ["Array.__sycl_usm_array_interface__/0", "MemoryUSMShared.__sycl_usm_array_interface__/0"], "cuda_on_host_late": ["Array.__cuda_array_interface__/0"]}.get(name, [])
    return rows


# Attributes of every object, or of classes that hold nothing.
OF_ALL = {"__doc__", "__module__", "__new__", "__dir__", "__buffer__", "__release_buffer__"}


def members(found):
    """What objects of a class have, without names that only say what to call."""
    elsewhere = {name for name, it in vars(found).items() if (it.__doc__ or "").startswith("Not here: use ")}
    return set(vars(found)) - OF_ALL - elsewhere


def test_every_member_and_function_of_the_package_has_a_row():
    modules = {"usm": usm, "usm.memory": usm.memory, "usm.nrt": usm.nrt}
    classes = {value for module in (*modules.values(), usm._usm) for value in vars(module).values() if inspect.isclass(value)}
    for found in classes:
        if issubclass(found, (BaseException, tuple)) or not found.__module__.startswith("usm"):
            continue
        listed = WITHOUT_MEMORY.get(found.__name__)
        if listed is None:
            assert members(found) == set(MEMBERS[found.__name__]) - {"buffer"}, found
        else:
            assert {name for name in vars(found) if not name.startswith("__")} == listed, found
    for name, module in modules.items():
        functions = {it for it in module.__all__ if inspect.isroutine(getattr(module, it))}
        assert functions == (WITHOUT_MEMORY[name] | (set(FUNCTIONS) if name == "usm" else set())) - {it for it in FUNCTIONS if "." in it}, name
