"""`assert` in kernels: on every device, and in checked launches."""

import pathlib

import numpy as np
import pytest
from conftest import device_of

import usm


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    return usm.Queue(device_of(request.param))


def array(queue, values, dtype=np.float32):
    return usm.asarray(np.array(values, dtype), queue=queue, copy=True)


@usm.device_func
def root(x):
    assert x >= 0
    return np.sqrt(x)


@usm.kernel
def roots(a, b):
    i = usm.get_global_id(0)
    b[i] = root(a[i])
    for k in range(i % 3):
        assert b[i] + k < 100, "a \"great\" root"


@pytest.mark.parametrize("wrong, message", [(-1.0, r"assert x >= 0` is false"), (1e6, r"assert b\[i\] \+ k < 100: a \"great\" root` is false")])
def test_a_false_one_is_an_error_with_its_text_and_place(queue, wrong, message):
    lines = pathlib.Path(__file__).read_text().split("\n")
    line = lines.index("    assert x >= 0" if wrong < 0 else '        assert b[i] + k < 100, "a \\"great\\" root"') + 1
    values = [4.0, 9.0, 16.0, 25.0, 36.0, 49.0]
    for launch in (roots, roots.check):
        a, b = array(queue, values), array(queue, [0] * 6)
        launch[6](a, b)
        a = array(queue, [*values[:5], wrong])
        with pytest.raises(usm.KernelError, match=rf"test_kernel_asserts.py:{line}:\d+: `{message}"):
            launch[6](a, b)
    roots[6](array(queue, values), b)
    assert usm.to_numpy(b).tolist() == [2, 3, 4, 5, 6, 7]


@usm.kernel
def grouped(a):
    shared = usm.local.array(4, np.float32)
    at, i = usm.get_local_id(0), usm.get_global_id(0)
    shared[at] = a[i]
    usm.barrier()
    total = np.float32(0)
    for k in range(4):
        assert shared[k] == shared[k]
        total += shared[k]
    usm.barrier()
    a[i] = total


def test_a_group_whose_item_fails_ends(queue):
    a = array(queue, range(8))
    grouped[8, 4](a)
    assert usm.to_numpy(a).tolist() == [6.0] * 4 + [22.0] * 4
    with pytest.raises(usm.KernelError, match=r"`assert shared\[k\] == shared\[k\]` is false"):
        grouped[8, 4](array(queue, [0, 1, 2, 3, 4, np.nan, 6, 7]))


@usm.kernel
def known(a, n):
    i = usm.get_global_id(0)
    assert n > 3
    a[i] = n


def test_a_condition_of_the_launch_is_decided_before(queue):
    a = array(queue, [0, 0])
    known[2](a, 4)
    with pytest.raises(usm.KernelError, match="`assert n > 3` is false"):
        known[2](a, 3)


def f_text(a):
    i = usm.get_global_id(0)
    assert a[i] > 0, f"{i}"


def test_a_message_is_a_literal():
    with pytest.raises(usm.KernelError, match="the message of an `assert` is a literal text"):
        usm.kernel(f_text)[1](np.zeros(1))
