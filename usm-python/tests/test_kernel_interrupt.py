"""Ctrl-C ends a kernel on the host, and its array can be used afterwards."""

import os
import pathlib
import subprocess
import sys

import pytest

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
