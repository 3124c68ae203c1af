"""Interpreters end in every way while work is in flight on every runtime: the status is what the
program said, standard error is empty, nothing hangs.

The ends are in `ends_case.py`, each a process of its own. Each runs once, and the orders of queues
take turns; with `USM_ENDS_RUNS` each runs so often with both. `USM_FORKS` is the number of children
of the end that forks.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.configurations import CONFIGURATIONS, Missing
from conftest import lacking
from ends_case import ENDS

CASE = Path(__file__).with_name("ends_case.py")
RUNTIMES = ["host", "opencl", "sycl", "level_zero", "cuda_on_host_late", "hip_on_host_late"]
RUNS = os.environ.get("USM_ENDS_RUNS")
ORDERS = ["in_order", "out_of_order"]
CASES = [
    (runtime, order, end)
    for row, runtime in enumerate(RUNTIMES)
    for column, end in enumerate(ENDS)
    # The drivers of the tests have no compiler of kernels.
    if end != "threads_that_build" or runtime in ("host", "opencl", "sycl")
    for order in (ORDERS if RUNS else ORDERS[(row + column) % 2 :][:1])
]
LIMIT = 90


@pytest.mark.skipif(sys.platform != "linux", reason="ends of Linux processes")
@pytest.mark.parametrize(("runtime", "order", "end"), CASES)
def test_end(runtime, order, end, request):
    configuration = CONFIGURATIONS[runtime]
    try:
        variables = configuration.environment(request.getfixturevalue)
    except Missing as reason:
        lacking(runtime, reason)
        pytest.skip(f"{runtime}: {reason}")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ZE_", "USM_ZE_"))}
    for _ in range(int(RUNS or 1)):
        ended = subprocess.run(
            [sys.executable, str(CASE), end, order],
            env={**inherited, "USM_DEVICE": configuration.backend, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        said = ended.stderr
        if end == "exception":
            assert said.endswith("ValueError: of the program\n") and "usm:" not in said, said
            said = ""
        assert (ended.returncode, said) == (ENDS[end][1], "")
