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


@pytest.mark.parametrize("selector", ["opencl:cpu", "sycl:cpu"])
def test_an_interrupt_ends_waits_for_a_device(selector):
    device_of(selector.split(":")[0])
    child = subprocess.run(
        [sys.executable, CASE.with_name("wait_interrupt_case.py"), selector], capture_output=True, text=True, timeout=120
    )
    names = ["call", "wait", "tolist", "item", "asarray", "copy", "to_numpy", "store", "fill", "synchronize"]
    assert child.stdout.split("\n")[:-1] == [f"{name} interrupted" for name in names], child.stdout + child.stderr
