"""Sums, products and running totals of complex numbers beside NumPy, on every backend."""

import os
import subprocess
import sys

import numpy as np
import pytest

import usm
from test_algorithms import equal, given

SIZES = [0, 1, 2, 257, 4097, 40961]


def check(queue, sizes, dtypes=("c8", "c16")):
    for dtype in dtypes:
        for n in sizes:
            random = np.random.default_rng(n)
            # Whole numbers, whose sums are exact.
            x = (random.integers(-9, 10, n) + 1j * random.integers(-9, 10, n)).astype(dtype)
            a = given(x, queue)
            equal(usm.reduce(a), np.asarray(x.sum()))
            equal(usm.scan(a), np.cumsum(x))
            equal(usm.scan(a, exclusive=True), np.cumsum(x) - x)
            # Powers of i, whose products are exact.
            turns = random.integers(0, 4, n)
            units = np.array([1, 1j, -1, -1j], dtype)[turns]
            b = given(units, queue)
            expected = np.array([1, 1j, -1, -1j], dtype)[np.cumsum(turns) % 4]
            equal(usm.scan(b, "prod"), expected)
            equal(usm.reduce(b, "prod"), np.asarray(expected[-1] if n else 1, dtype))


def test_complex_numbers(queue):
    check(queue, SIZES)
    x = (np.arange(35) + 1j * np.arange(35)[::-1]).reshape(5, 7)
    for axis in (0, 1):
        equal(usm.reduce(given(x, queue), axis=axis), x.sum(axis=axis))
        equal(usm.scan(given(x, queue), axis=axis), np.cumsum(x, axis=axis))
    equal(usm.reduce(given(x.imag, queue), dtype="c16"), np.asarray(x.imag.sum(dtype="c16")))


def test_complex_numbers_have_no_order():
    x = np.ones(3, "c8")
    for call in (
        lambda: usm.reduce(x, "min"), lambda: usm.scan(x, "max"), lambda: usm.sort(x), lambda: usm.argsort(x),
        lambda: usm.argmin(x), lambda: usm.argmax(x), lambda: usm.histogram(x), lambda: usm.bincount(x),
    ):
        with pytest.raises(usm.KernelError, match="elements of type <c8 are not for algorithms"):
            call()
    with pytest.raises(TypeError, match="results of type complex64 do not fit"):
        usm.reduce(x, out=np.zeros((), "f4"))


def test_on_the_cuda_driver(cuda_driver):
    program = "import usm, test_algorithm_complex as t; t.check(usm.Queue('cuda'), (1, 257), ('c8',)); print('right')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr
