"""Items that leave or continue a loop alone, beside loops that their group runs."""

import numpy as np
import pytest

import usm
from usm import cuda

N = 4


@usm.kernel
def leaves_first(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(3):
        if k == t:
            break
        o[i] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    for k in range(3):
        o[i] += 10


@usm.kernel
def leaves_by_memory(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    best = usm.local.array(4, np.int64)
    n = 0
    for k in range(a.shape[0]):
        if a[k] > i:
            break
        n += 1
    best[t] = n
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    for k in range(4):
        o[i] += best[k]


@usm.kernel
def leaves_second(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(4):
        s[i] += k
    usm.barrier(usm.CLK_GLOBAL_MEM_FENCE)
    for k in range(4):
        if s[k] < 0 or k == 3 - t:
            break
        o[i] += 1


@usm.kernel
def returns_in_second(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(2):
        o[i] += 10
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    for k in range(3):
        if k == t:
            return
        o[i] += 1


@usm.kernel
def leaves_before_barriers_in_a_loop(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(3):
        if k == t:
            break
        o[i] += 1
    for k in range(2):
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        if k < 2:
            usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        o[i] += 10


@usm.kernel
def leaves_before_a_sum(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    n = 0
    for k in range(3):
        if k == t:
            break
        n += 1
    m = usm.group.reduce_add(n)
    for k in range(2):
        o[i] += m


@usm.kernel
def continues_with_a_common_value(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    last = 0
    for k in range(3):
        last = k
        if k == t:
            continue
        o[i] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    o[i] += 10 * last


@usm.kernel
def continues_while(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    rounds = 0
    while rounds < 3:
        rounds += 1
        if rounds == t:
            continue
        o[i] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    o[i] += 10 * rounds


@usm.kernel
def continues_before_a_loop_of_the_group(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    rounds = 0
    while rounds < 3:
        rounds += 1
        if rounds == t:
            continue
        o[i] += 1
    while rounds < 5:
        rounds += 1
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        o[i] += 10


@usm.kernel
def reads_a_counter_after_its_loop(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    k = 7
    for k in range(3):
        if k == t:
            break
        o[i] += 1
    o[i] += 100 * k
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    for k in range(2):
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        o[i] += 10


@usm.kernel
def leaves_an_inner_loop(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    for k in range(2):
        for j in range(3):
            if j == t:
                break
            o[i] += 1
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        for j in range(2):
            if j == t:
                continue
            o[i] += 10
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)


@usm.kernel
def continues_in_a_condition_of_the_group(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    n = 0
    for k in range(3):
        n += 1
        if a[5] > 2:
            if k == t:
                continue
        o[i] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    o[i] += 10 * n


@usm.kernel
def continues_where_the_group_sets(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    n = 0
    for k in range(a.shape[0]):
        if a[k] < 3:
            n += 1
            if k == t:
                continue
            elif k == 1:
                o[i] += 100
        o[i] += 1
    for k in range(2):
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        o[i] += 10 * n


@usm.kernel
def continues_behind_a_barrier(a, s, o):
    i, t = usm.get_global_id(0), usm.get_local_id(0)
    n = 0
    for k in range(3):
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        n += 1
        if a[k] < 2:
            if k == t:
                continue
            o[i] += 1
        o[i] += 10 * n


@cuda.jit
def of_cuda(a, s, o):
    t = cuda.threadIdx.x
    for j in range(4):
        if (j + t) % 2 == 0:
            continue
        o[t] += j
    s[t] = o[t]
    cuda.syncthreads()
    for j in range(4):
        o[t] += s[j]


# What each item of a group of four computes, by hand.
EXPECTED = {
    leaves_first: [30, 31, 32, 33],
    leaves_by_memory: [10, 10, 10, 10],
    leaves_second: [3, 2, 1, 0],
    returns_in_second: [20, 21, 22, 23],
    leaves_before_barriers_in_a_loop: [20, 21, 22, 23],
    leaves_before_a_sum: [12, 12, 12, 12],
    continues_with_a_common_value: [22, 22, 22, 23],
    continues_while: [33, 32, 32, 32],
    continues_before_a_loop_of_the_group: [23, 22, 22, 22],
    reads_a_counter_after_its_loop: [20, 121, 222, 223],
    leaves_an_inner_loop: [20, 22, 44, 46],
    continues_in_a_condition_of_the_group: [32, 32, 32, 33],
    continues_where_the_group_sets: [165, 65, 165, 166],
    continues_behind_a_barrier: [51, 41, 62, 62],
    of_cuda: [16, 14, 16, 14],
}


def arrays():
    return np.array([0, 1, 2, 3, 4, 5]), np.zeros(N, "i8"), np.zeros(N, "i8")


@pytest.mark.parametrize("host", ["cc", "builtin"])
@pytest.mark.parametrize("kernel", EXPECTED, ids=lambda kernel: kernel.__name__)
def test_items_that_leave_a_loop_alone(kernel, host, compiler, monkeypatch):
    monkeypatch.setenv("USM_KERNEL_HOST", host)
    again = cuda.jit(kernel.py_func) if kernel is of_cuda else usm.kernel(kernel.__wrapped__)
    a, s, o = arrays()
    with usm.Device("host"):
        if kernel is of_cuda:
            again[1, N](a, s, o)
        else:
            again[N, N](a, s, o)
    assert o.tolist() == EXPECTED[kernel]


@pytest.mark.parametrize("kernel", [kernel for kernel in EXPECTED if kernel is not of_cuda], ids=lambda kernel: kernel.__name__)
def test_items_that_leave_a_loop_alone_on_every_device(kernel, queue):
    a, s, o = (usm.asarray(array, queue=queue) for array in arrays())
    kernel[N, N](a, s, o)
    assert np.asarray(o).tolist() == EXPECTED[kernel]
