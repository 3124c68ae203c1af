"""Launches with a stride of 0 on a processor take code without vectors in loops that store:
Intel's compiler takes elements of such an array for different ones."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import device_of

import usm

CASE = pathlib.Path(__file__).with_name("kernel_strides_case.py")
PRAGMA = "#pragma clang loop vectorize(disable) interleave(disable)"


@usm.kernel
def count_up(a):
    for i in range(a.size):
        a[i] = a[i] + 1


@usm.kernel
def by_a_scalar(a, n, s):
    j = 0
    while j < n:
        a[j * s] = a[j * s] + 1
        j += 1


@usm.kernel
def by_steps(a, n, s):
    j, k = 0, 0
    while k < n:
        a[j] = a[j] + 1
        j += s
        k += 1


@usm.kernel
def reads(a, b):
    i = usm.get_global_id(0)
    s = 0
    for j in range(a.size):
        s += a[j]
    b[i] = s


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_only_a_stride_of_0_takes_other_code(backend, tmp_path):
    """Each code of the device is a file of the cache."""
    variables = {**os.environ, "USM_KERNEL_CACHE": str(tmp_path)}
    command = [sys.executable, CASE, device_of(backend).selector]
    child = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=100)
    assert child.stdout == "right\n", child.stdout + child.stderr


def loops(text, tmp_path, compiler, *options):
    """The loops of a text, each with the line in front of it."""
    file = tmp_path / "kernel.cl.c"
    file.write_text(text)
    command = [compiler, "-E", "-P", *options, str(file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    heads = [at for at, line in enumerate(lines) if line.startswith(("for (", "while ("))]
    return [lines[at - 1] for at in heads], lines


KERNELS = [(by_a_scalar, "float32[:], int64, int64"), (by_steps, "float64[:], int64, int64")]


@pytest.mark.parametrize(("kernel", "types"), KERNELS, ids=[kernel.__name__ for kernel, _ in KERNELS])
def test_that_code_says_so_before_each_loop(kernel, types, tmp_path, compiler):
    text = kernel.code("opencl-c", types)
    before, lines = loops(text, tmp_path, compiler, "-D", "own_scalar_loops")
    assert before and all(PRAGMA in line for line in before), lines
    # All other launches keep their code.
    _, usual = loops(text, tmp_path, compiler)
    assert usual == [line for line in lines if PRAGMA not in line]


def test_loops_that_do_not_store_stay_as_they_are():
    assert "own_loop" not in reads.code("opencl-c", "int64[:], int64[:]")
    assert "own_loop" not in by_steps.code("cuda-c", "int64[:], int64, int64")
    assert "own_loop" not in count_up.code("opencl-c", "int64[:]")


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 8, 9, 64, 1000])
def test_the_values_are_those_of_one_element(queue, dtype, size):
    one, other = np.zeros(1, dtype), np.zeros(1, dtype)
    with usm.device_context(queue):
        count_up[1](np.lib.stride_tricks.as_strided(one, (size,), (0,)))
        by_a_scalar[1](other, size, 0)
        by_steps[1](other, size, 0)
    assert one.tolist() == [size]
    assert other.tolist() == [2 * size]
