"""Sub-groups: the same neighbours on every device, whatever the size of the group."""

import numpy as np
import pytest
from conftest import device_of

import usm


def body(a, shuffled, found, who):
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    x, lane = a[i], usm.sub_group.local_id()
    shuffled[i, 0] = usm.sub_group.shuffle(x, 1)
    shuffled[i, 1] = usm.sub_group.shuffle_xor(x, 1)
    shuffled[i, 2] = usm.sub_group.shuffle_up(x, 1)
    shuffled[i, 3] = usm.sub_group.shuffle_down(x, 2)
    shuffled[i, 4] = usm.sub_group.broadcast(x, 0)
    found[i, 0] = usm.sub_group.reduce_add(x)
    found[i, 1] = usm.sub_group.reduce_min(x)
    found[i, 2] = usm.sub_group.inclusive_add(x)
    found[i, 3] = usm.sub_group.exclusive_add(x)
    found[i, 4] = usm.sub_group.inclusive_max(x)
    found[i, 5] = usm.sub_group.any(x > 90) * 10 + usm.sub_group.all(x >= 3)
    who[i, 0] = lane
    who[i, 1] = usm.sub_group.id()
    who[i, 2] = usm.sub_group.size()
    who[i, 3] = usm.sub_group.count() + 0 * l


def expected(a, local, width):
    shuffled, found, who = np.zeros((len(a), 5), a.dtype), np.zeros((len(a), 6), a.dtype), np.zeros((len(a), 4), np.int64)
    for start in range(0, len(a), local):
        for number, first in enumerate(range(0, local, width)):
            x = a[start + first : min(start + first + width, start + local)]
            n = len(x)
            for lane in range(n):
                i = start + first + lane

                def of(lane):
                    # A lane that is not there is the last item of the group.
                    return a[min(start + first + lane % width, start + local - 1)]

                shuffled[i] = [of(1), of(lane ^ 1), x[lane - 1] if lane else x[lane], x[lane + 2] if lane + 2 < n else x[lane], x[0]]
                found[i] = [x.sum(), x.min(), x[: lane + 1].sum(), x[:lane].sum(), x[: lane + 1].max(), (x > 90).any() * 10 + (x >= 3).all()]
                who[i] = [lane, number, n, -(-local // width)]
    return shuffled, found, who


@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
@pytest.mark.parametrize(("width", "local"), [(4, 16), (8, 12), (32, 20), (32, 64), (1, 3)])
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_neighbours_work_together(backend, width, local, dtype):
    selector = device_of(backend).selector
    kernel = usm.kernel(sub_group=width)(body)
    a = np.random.default_rng(width).integers(0, 100, 2 * local).astype(dtype)
    outs = [np.zeros((len(a), n), ty) for n, ty in ((5, dtype), (6, dtype), (4, np.int64))]
    kernel.check[len(a), local](a, *outs)
    with usm.device_context(selector):
        kernel[len(a), local](a, *outs)
    for out, wanted in zip(outs, expected(a, local, width)):
        np.testing.assert_array_equal(out, wanted)


@usm.kernel(sub_group=4)
def plane(out):
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    out[y, x] = usm.sub_group.reduce_add(x + 10 * y)


def test_neighbours_of_a_plane_follow_the_last_dimension():
    out = np.zeros((4, 6), np.int64)
    plane[(4, 6), (2, 6)](out)
    of = (np.arange(6) + 10 * np.arange(4)[:, None]).reshape(2, 3, 4)
    assert out.reshape(2, 3, 4).tolist() == np.broadcast_to(of.sum(2, keepdims=True), (2, 3, 4)).tolist()
    assert plane.proof[(4, 6), (2, 6)](out) == "proven"


@usm.kernel
def parted(a):
    if a[usm.get_global_id(0)] > 0:
        a[0] = usm.sub_group.reduce_add(a[0])


def test_bad_sub_groups_are_refused_with_a_place():
    with pytest.raises(usm.KernelError, match=r":\d+:\d+: not all work-items of a group reach"):
        parted[4, 4](np.zeros(4, np.int32))
    with pytest.raises(usm.KernelError, match="sub-groups of 12 items"):
        usm.kernel(sub_group=12)(body)
    with pytest.raises(usm.KernelError, match="in kernels only"):
        usm.sub_group.size()
