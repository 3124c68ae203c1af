"""Local and private memory that no item wrote is zero."""

import os
import pathlib
import subprocess
import sys

import pytest
from kernel_unwritten_case import old_words

import usm

CASE = pathlib.Path(__file__).with_name("kernel_unwritten_case.py")


def test_memory_that_nobody_wrote_is_zero(queue):
    assert old_words(lambda array: usm.asarray(array, queue=queue, kind="shared", copy=True), usm.to_numpy) == 0


@pytest.mark.parametrize("by", ["builtin", "cc"])
def test_each_compiler_of_the_host_gives_zeros(by, compiler):
    environment = {**os.environ, "USM_KERNEL_HOST": by, "USM_KERNEL_CACHE": "off"}
    found = subprocess.run([sys.executable, str(CASE)], capture_output=True, text=True, env=environment, timeout=300)
    assert found.returncode == 0 and found.stdout.strip() == "0", found.stderr
