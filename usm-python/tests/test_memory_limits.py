"""Without free memory there is an exception, and the process lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import usm
from conftest import require


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux processes")
def test_no_member_crashes_a_process_without_free_memory():
    require("numpy", "a producer")
    case = Path(__file__).with_name("memory_case.py")
    done = subprocess.run(
        [sys.executable, str(case)], env={**os.environ, "USM_DEVICE": "host"}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, (done.returncode, done.stdout.splitlines()[-1:], done.stderr[-500:])
    ran, refused = map(int, done.stdout.splitlines()[-1].split())
    assert ran > 500 and refused > 100


def test_rows_are_made_one_after_another(np):
    many = usm.asarray(np.broadcast_to(np.arange(2, dtype="|u1"), (1 << 44, 2)))
    rows = iter(many)
    assert iter(rows) is rows
    assert [next(rows).tolist() for _ in range(3)] == [[0, 1]] * 3
    three = usm.asarray([1, 2, 3], queue="host")
    assert [row.item() for row in three] == [1, 2, 3]
    assert next(iter(three)).readonly is False
    assert repr(usm.asarray(np.empty((1 << 44, 0), "|u1"))).startswith("usm.Array([], shape=(17592186044416, 0)")
