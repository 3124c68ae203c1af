"""Launches of more work-items than 32 bits count."""

import pytest
from conftest import device_of

import usm

ITEMS = 2**32 + 9


@usm.kernel
def last(a):
    i = usm.get_global_id(0)
    if i >= 2**32 + 5:
        a[i - 2**32 - 5] = i % 100


@pytest.mark.parametrize("name", ["host", "opencl"])
def test_every_item_runs(name):
    a = usm.zeros(4, "i4", queue=device_of(name))
    last[ITEMS](a)
    assert usm.to_numpy(a).tolist() == [(2**32 + 5 + k) % 100 for k in range(4)]


@pytest.mark.parametrize("shape", [(ITEMS,), (2**20, 2**20), ((2**31, 1), (64, 1))], ids=repr)
def test_sycl_names_its_limit(shape):
    @usm.kernel
    def first(a):
        if usm.get_global_id(0) == 0:
            a[0] = 1

    launch = shape if isinstance(shape[0], tuple) else (shape, None)
    with pytest.raises(usm.KernelError, match="a range of more than 2147483647 work-items is not supported"):
        first[launch](usm.zeros(4, "i4", queue=device_of("sycl")))
