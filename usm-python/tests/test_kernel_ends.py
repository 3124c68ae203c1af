"""Loops that would run for years end: after an index outside, and by Ctrl-C on the host."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import device_of

CASE = pathlib.Path(__file__).with_name("kernel_ends_case.py")


def assert_ended(what, device, **variables):
    variables = {**os.environ, **variables}
    child = subprocess.run([sys.executable, CASE, what, device], env=variables, capture_output=True, text=True, timeout=100)
    assert child.stdout.splitlines()[-1:] == ["all ended"], child.stdout + child.stderr


@pytest.mark.parametrize("way", ["cc", "builtin"])
@pytest.mark.parametrize("what", ["outside", "interrupt", "handler"])
def test_on_the_host(what, way, request):
    if way == "cc":
        request.getfixturevalue("compiler")
    assert_ended(what, "host", USM_KERNEL_HOST=way)


def test_after_an_index_outside_on_a_device():
    assert_ended("outside", device_of("opencl").selector)
