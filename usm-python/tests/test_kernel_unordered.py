"""Launches whose items access elements in an order that follows from memory.

As a program it tries one backend, whose variables the process has.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import run_in

import usm

ITEMS = 4096


@usm.kernel
def added(places, counts, bytes_, flag):
    i = usm.get_global_id(0)
    counts[places[i]] += 1
    bytes_[places[i]] = 7
    if counts[places[i]] > 0:
        flag[0] = True


@usm.kernel
def chased(a):
    i = usm.get_global_id(0)
    for k in range(8):
        there = a[i]
        if there >= 0 and there < a.shape[0]:
            a[there] = a[(there * 7 + i) % a.shape[0]]


@usm.kernel
def voted(x, counts):
    here, group = usm.get_local_id(0), usm.get_group_id(0)
    bins = usm.local.array(16, usm.int32)
    if here < 16:
        bins[here] = 0
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    bins[x[usm.get_global_id(0)]] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    if here < 16:
        counts[group, here] = bins[here]


@usm.kernel
def both(places, a, rows, n):
    i = usm.get_global_id(0)
    k = places[i]
    if k >= 0 and k < a.shape[0]:
        a[k] = i
    if i < n * 2:
        rows[i % n] = i


def tried(array):
    """Launches kernels with arrays that `array` makes of NumPy's."""
    places = np.arange(ITEMS) * 7919 % 100
    counts, tops, flag = (array(np.zeros(n, dtype)) for n, dtype in ((100, np.float32), (100, np.uint8), (1, bool)))
    added[ITEMS](array(places), counts, tops, flag)
    found = usm.to_numpy(counts)
    # Additions may be lost, but what was added is there.
    assert (found >= 1).all() and (found <= np.bincount(places)).all(), found
    assert (usm.to_numpy(tops) == 7).all() and usm.to_numpy(flag)[0]
    values = np.arange(ITEMS) * 7919 % 6000
    a = array(values)
    chased[ITEMS](a)
    assert np.isin(usm.to_numpy(a), values).all()
    counts = array(np.full((ITEMS // 32, 16), 99))
    voted[ITEMS, 32](array(values % 16), counts)
    most = np.stack([np.bincount(row, minlength=16) for row in (values % 16).reshape(-1, 32)])
    found = usm.to_numpy(counts)
    assert (found <= most).all() and ((found > 0) == (most > 0)).all()
    outside = array(np.array([0, 1, 100, 3]))
    with pytest.raises(usm.KernelError, match="index 100 in dimension 0 of `counts` is outside"):
        added[4](outside, array(np.zeros(100, np.float32)), tops, flag)


@pytest.mark.parametrize("way", ["cc", "builtin"])
def test_on_the_host(way, request):
    if way == "cc":
        request.getfixturevalue("compiler")
    folder = str(pathlib.Path(__file__).parent)
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "USM_KERNEL_HOST": way, "PYTHONPATH": path}
    child = subprocess.run([sys.executable, __file__, "host"], env=environment, capture_output=True, text=True, timeout=100)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("name", ["opencl", "sycl", "cuda_on_host", "level_zero"])
def test_on_devices(name, request):
    run_in(name, request, __file__)


def test_a_proof_says_so_and_strict_kernels_refuse():
    places, a, rows = np.arange(100), np.zeros(100, np.int64), np.zeros(100, np.int64)
    said = both.proof[100](places, a, rows, 100)
    assert said.startswith("unordered: which of two work-items accesses an element of `a` first, at "), said
    assert said.count("test_kernel_unordered.py:") == 1, said
    assert said.endswith("use `usm.atomic`, for `+=` `usm.atomic.add`, or write elements that follow from the item's ids")
    # A race that is shown comes first, and overlapping arguments are no such case.
    assert "a race: work-item [0] writes element 0 of `rows`" in both.proof[100](places, a, rows, 50)
    assert not both.proof[100](places, a, a, 100).startswith("unordered")
    assert both.proof[0](places, a, rows, 50) == "proven"
    strict = usm.kernel(strict=True)(both.__wrapped__)
    with pytest.raises(usm.KernelError, match="unordered: which of two work-items"):
        strict[100](places, a, rows, 100)
    with pytest.raises(usm.KernelError, match="race on element 0 of `a`"):
        both.check[4](np.zeros(4, np.int64), a, rows, 100)


@usm.kernel
def counts_by(counts, data, n):
    counts[data[usm.get_global_id(0)] % n] += 1


@usm.kernel
def counts_up_to(counts, data, n):
    counts[min(int(data[usm.get_global_id(0)]), n - 1)] += 1


@usm.kernel
def keeps_nearest(distances, best):
    i = usm.get_global_id(0)
    last = best.shape[1] - 1
    for j in range(distances.shape[1]):
        d = distances[i, j]
        if d < best[i, last]:
            k = last
            while k > 0 and best[i, k - 1] > d:
                best[i, k] = best[i, k - 1]
                k -= 1
            best[i, k] = d


def test_a_missing_condition_is_one_that_a_user_can_write():
    counts = np.zeros(16, np.int32)
    for kernel, data, words in (
        (counts_by, np.zeros(9, np.int32), "it may be below 0, whatever the launch: add a condition that it is not"),
        (counts_up_to, np.zeros(9, np.float32), "it may be below 0, whatever the launch: add a condition that it is not"),
        (counts_by, np.zeros(9, np.uint32), "it may be beyond the end, whatever the launch: add a condition such as `if i < counts.size:`"),
    ):
        said = kernel.proof[9](counts, data, 16)
        assert said.endswith(words) and not re.search(r"\d{9}|min\(|max\(", said), said


def test_rows_that_items_sort_for_themselves_are_proven():
    distances, best = np.random.default_rng(1).random((4, 9)), np.full((4, 3), 9.0)
    strict = usm.kernel(strict=True)(keeps_nearest.__wrapped__)
    assert strict.proof[4](distances, best) == "proven"
    strict[4](distances, best)
    assert (best == np.sort(distances, axis=1)[:, :3]).all()


def test_code_reads_such_elements_once():
    text = both.code("opencl-c", "int64[:], int64[:], int64[:], int64")
    assert "*(volatile __global long *)&a_a" in text and "volatile __global long *)&rows" not in text


if __name__ == "__main__":
    if sys.argv[1] == "host":
        tried(lambda array: array)
    else:
        queue = usm.Queue(next(device for device in usm.devices() if device.backend == sys.argv[1]))
        tried(lambda array: usm.asarray(array, queue=queue, copy=True))
