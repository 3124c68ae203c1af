"""Every category of hostile input, each case in a process of its own: no crash, and nothing accepted that is not so."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from conftest import CI

SCRIPT = pathlib.Path(__file__).with_name("hostile.py")


def run(family, *bounds):
    command = [sys.executable, str(SCRIPT), family, *map(str, bounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert lines and lines[0].startswith("cases "), done.stderr
    return int(lines[0].split()[1]), lines[1:], done


@pytest.mark.parametrize(("family", "least"), [("array", 200), ("dlpack", 100), ("sycl", 200)])
def test_hostile_input_is_refused_or_right(family, least):
    if family == "sycl" and importlib.util.find_spec("dpctl") is None:
        assert not CI, "dpctl is needed under CI"
        pytest.skip("dpctl is not installed: no SYCL memory")
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("no fork: cases cannot be told apart")
    answers, start, cases = [], 0, None
    while cases is None or start < cases:
        # A process that dies takes one case with it; the next goes on behind it.
        cases, lines, done = run(family, start)
        answers += lines
        answered = start + len(lines)
        if answered < cases:
            answers.append(f"{answered} died with status {done.returncode}: {done.stderr[-500:]}")
            answered += 1
        start = answered
    assert cases >= least and len(answers) == cases
    wrong = [line for line in answers if not line.split(" ", 1)[1].startswith("ok")]
    assert wrong == []
