"""Random programs over the package end correctly, and never write read-only memory.

`USM_RANDOM_PROGRAMS` is the number of each sort, one by default.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import effort
from backends.configurations import CONFIGURATIONS, Missing
from conftest import lacking, require

PROGRAM = Path(__file__).with_name("random_programs.py")


@pytest.mark.parametrize("name", ["host", "opencl", "sycl", "cuda_on_host_late"])
def test_random_programs_end_and_write_nothing_that_is_read_only(name, request):
    require("numpy", "a consumer and a producer")
    if name == "sycl":
        request.getfixturevalue("dpctl")
    try:
        environment = CONFIGURATIONS[name].environment(request.getfixturevalue)
    except Missing as reason:
        lacking(name, reason)
    for seed in range(effort.cases("USM_RANDOM_PROGRAMS", 1)):
        command = [sys.executable, str(PROGRAM), str(seed), "4000", "host", CONFIGURATIONS[name].backend]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stdout) == (0, "held\n"), (seed, done.returncode, done.stderr[-3000:])
