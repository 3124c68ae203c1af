"""Counts the codes that launches on a device make, by the files of the cache: `case.py DEVICE`."""

import os
import pathlib
import sys

import numpy as np

import usm

CACHE = pathlib.Path(os.environ["USM_KERNEL_CACHE"])


@usm.kernel
def count_up(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] + 1


@usm.kernel
def count_checked(a, n):
    for i in range(n):
        a[i] = a[i] + 1


@usm.kernel
def count_by(a, n, s):
    for i in range(n):
        a[i * s] = a[i * s] + 1


def codes():
    return len(list(CACHE.iterdir())) if CACHE.exists() else 0


def launch(kernel, *arguments):
    """The number of codes that a launch adds."""
    before = codes()
    kernel[1](*arguments)
    return codes() - before


def view(shape, *strides):
    memory = np.zeros(64, "int64")
    return memory, np.lib.stride_tricks.as_strided(memory, shape, strides)


with usm.device_context(sys.argv[1]):
    each = launch(count_up, view((4, 4), 64, 16)[1])
    assert each > 0, "the runtime gives no code"
    for shape, strides, new in [
        ((4, 8), (0, 16), each),  # the first stride of 0
        ((4, 8), (0, 16), 0),  # the same again
        ((4, 4), (64, 16), 0),  # the usual code again
        ((4, 4), (32, 0), 0),  # the other dimension
        ((1, 4), (0, 16), 0),  # a dimension of one element
        ((4, 1), (64, 0), 0),
    ]:
        memory, array = view(shape, *strides)
        found = launch(count_up, array)
        assert found == new, (shape, strides, found)
        expected, same = view(shape, *strides)
        for place in np.ndindex(*shape):
            same[place] += 1
        assert memory.tolist() == expected.tolist(), (shape, strides)
    usual = launch(count_by, view((64,), 8)[0], 8, 8)
    assert usual == each and launch(count_by, view((64,), 8)[0], 8, 4) == 0
    memory = view((64,), 8)[0]
    assert launch(count_by, memory, 8, 0) == each and memory[0] == 8
    assert launch(count_checked, view((8,), 16)[1], 8) == each
    assert launch(count_checked, view((8,), 0)[1], 8) == each
    try:
        launch(count_checked, view((8,), 0)[1], 9)
    except usm.KernelError as error:
        assert "index 8 in dimension 0" in str(error), error
    else:
        raise AssertionError("no index was outside")
print("right")
