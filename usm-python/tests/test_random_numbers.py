"""Philox beside the test vectors of Random123, in kernels and in plain Python."""

import os
import subprocess
import sys

import numpy as np
import pytest

import usm

# Counter, key, result: `kat_vectors` of Random123, philox4x32 with 10 rounds.
VECTORS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
ROWS = np.array([[int(word, 16) for word in line.split()] for line in VECTORS.split("\n") if line], np.uint32)
KEYS = np.ascontiguousarray(ROWS[:, [4, 5, 0, 1, 2, 3]])
SEED, ITEMS = 0x123456789ABCDEF, 1000


@usm.kernel(strict=True)
def vectors(a, o):
    i = usm.get_global_id(0)
    r0, r1, r2, r3 = usm.random.philox4x32(a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5])
    o[i, 0], o[i, 1], o[i, 2], o[i, 3] = r0, r1, r2, r3


@usm.kernel(strict=True)
def draw(seed, bits, single, double):
    i = usm.get_global_id(0)
    bits[i] = usm.random.philox(seed, i)[2]
    single[i] = usm.random.uniform(seed, i)
    double[i] = usm.random.uniform64(seed, i)


@usm.kernel
def draw_normal(seed, o):
    i = usm.get_global_id(0)
    o[i] = usm.random.normal(seed, i)


def check(queue):
    found = usm.zeros((3, 4), np.uint32, queue=queue)
    vectors[3](usm.asarray(KEYS, queue=queue), found)
    np.testing.assert_array_equal(usm.to_numpy(found), ROWS[:, 6:])
    arrays = [usm.zeros(ITEMS, dtype, queue=queue) for dtype in ("u4", "f4", "f8")]
    draw[ITEMS](SEED, *arrays)
    bits, single, double = (usm.to_numpy(array).tolist() for array in arrays)
    assert bits == [usm.random.philox(SEED, i)[2] for i in range(ITEMS)]
    assert single == [usm.random.uniform(SEED, i) for i in range(ITEMS)]
    assert double == [usm.random.uniform64(SEED, i) for i in range(ITEMS)]


def test_numbers_are_those_of_random123_in_plain_python():
    for key, row in zip(KEYS.tolist(), ROWS.tolist()):
        assert usm.random.philox4x32(*key) == tuple(row[6:])
    assert usm.random.philox(3 << 32 | 2, 5 << 32 | 4) == usm.random.philox4x32(2, 3, 4, 5, 0, 0)
    assert usm.random.philox(-1, -1) == usm.random.philox(2**64 - 1, 2**64 - 1)


def test_numbers_are_equal_on_every_device(queue):
    check(queue)


def test_numbers_of_the_normal_distribution(queue):
    found = usm.zeros(ITEMS, np.float32, queue=queue)
    draw_normal[ITEMS](SEED, found)
    found = usm.to_numpy(found)
    np.testing.assert_allclose(found, [usm.random.normal(SEED, i) for i in range(ITEMS)], atol=1e-5)
    assert abs(found.mean()) < 0.1 and abs(found.std() - 1) < 0.1


def test_numbers_on_the_cuda_driver(cuda_driver):
    program = "import usm, test_random_numbers as t; t.check(usm.Queue('cuda')); print('equal')"
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "equal\n", done.stderr


def test_a_seed_that_is_no_integer_is_refused():
    with pytest.raises((TypeError, ValueError)):
        usm.random.philox("seed", 0)
