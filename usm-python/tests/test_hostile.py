"""Every category of hostile input, each in a process: no crash, and nothing false accepted."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import effort
from backends.configurations import CONFIGURATIONS
from conftest import lacking

SCRIPT = pathlib.Path(__file__).with_name("hostile.py")


@pytest.mark.parametrize(
    # A SYCL case opens the runtime anew: every second one, and the others with more effort.
    ("family", "part", "parts", "least"),
    effort.some([("array", 0, 1, 200), ("dlpack", 0, 1, 100), ("sycl", 0, 2, 200), ("cuda", 0, 1, 260)], [("sycl", 1, 2, 200)]),
)
def test_hostile_input_is_refused_or_read_correctly(family, part, parts, least, request):
    if family == "sycl" and importlib.util.find_spec("dpctl") is None:
        lacking("dpctl", "not installed: no SYCL memory")
    if not hasattr(os, "fork"):
        pytest.skip("no fork: cases cannot be told apart")
    command = [sys.executable, str(SCRIPT), family, str(part), str(parts)]
    # On the driver that executes on the host, and with nothing else to open.
    more = CONFIGURATIONS["cuda_on_host"].environment(request.getfixturevalue) if family == "cuda" else {}
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=900)
    count, *lines = done.stdout.splitlines() or [""]
    assert done.returncode == 0 and count.startswith("cases "), done.stderr
    cases = int(count.split()[1])
    answers = dict(line.split(" ", 1) for line in lines)
    assert cases >= least and sorted(map(int, answers)) == list(range(cases))[part::parts]
    # A case that answered and then died while its runtime closed has the second line.
    wrong = [f"{number} {answer}" for number, answer in answers.items() if not answer.startswith("ok")]
    assert wrong == [], done.stderr[-2000:]
