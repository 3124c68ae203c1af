"""Ctrl-C ends a kernel on the host, and its array can be used afterwards."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import device_of

CASE = pathlib.Path(__file__).with_name("kernel_interrupt_case.py")


@pytest.mark.parametrize("way", ["cc", "builtin"])
@pytest.mark.parametrize("size", ["0", "1", "2"])
def test_an_interrupt_ends_a_launch(way, size, request):
    if way == "cc":
        request.getfixturevalue("compiler")
    assert_interrupted(size, USM_KERNEL_HOST=way)


def test_an_interrupt_ends_a_check():
    assert_interrupted("check")


def assert_interrupted(what, **variables):
    variables = {**os.environ, **variables}
    child = subprocess.run([sys.executable, CASE, what], env=variables, capture_output=True, text=True, timeout=60)
    assert child.stdout.strip() == "interrupted", child.stdout + child.stderr


@pytest.mark.parametrize("selector", ["opencl:cpu", "sycl:cpu", "cuda:0"])
def test_an_interrupt_ends_waits_for_a_device(selector, request):
    variables = dict(os.environ)
    if selector == "cuda:0":
        variables |= request.getfixturevalue("cuda_driver")
    else:
        device_of(selector.split(":")[0])
    case = [sys.executable, CASE.with_name("wait_interrupt_case.py"), selector]
    child = subprocess.run(case, env=variables, capture_output=True, text=True, timeout=120)
    *lines, last = child.stdout.splitlines() or [""]
    assert last == "end", child.stdout + child.stderr
    assert len(lines) >= 13 and all(line.endswith(" interrupted") for line in lines), child.stdout
