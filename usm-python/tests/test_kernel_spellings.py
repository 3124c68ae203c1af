"""Kernels in the spelling of numba-dpex 0.23, and conversions of numba.cuda kernels."""

import math

import numpy as np
import pytest
from conftest import device_of, require

import usm as ndpx
from usm import kernel_api as kapi


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    return ndpx.Queue(device_of(request.param))


def on(queue, array):
    return ndpx.asarray(array, queue=queue, kind="shared", copy=True)


@ndpx.kernel
def vecadd(item: kapi.Item, a, b, c):
    idx = item.get_id(0)
    c[idx] = a[idx] + b[idx]


@ndpx.kernel
def linear(item: kapi.Item, out):
    out[item.get_linear_id()] = item.get_range(1) * 1000 + item.get_linear_range()


def test_a_range_of_items(queue):
    a = np.arange(100, dtype=np.float32)
    c = on(queue, np.zeros_like(a))
    ndpx.call_kernel(vecadd, kapi.Range(a.size), on(queue, a), on(queue, a), c)
    np.testing.assert_array_equal(ndpx.to_numpy(c), 2 * a)
    out = on(queue, np.zeros(24, np.int64))
    ndpx.call_kernel(linear, kapi.Range(4, 6), out)
    np.testing.assert_array_equal(ndpx.to_numpy(out), np.full(24, 6024))


@ndpx.kernel
def ids(nd: kapi.NdItem, out):
    i = nd.get_global_linear_id()
    group = nd.get_group()
    out[i, 0] = nd.get_global_id(1)
    out[i, 1] = nd.get_local_id(0)
    out[i, 2] = nd.get_local_linear_id()
    out[i, 3] = group.get_group_id(1)
    out[i, 4] = group.get_group_linear_id()
    out[i, 5] = group.get_group_range(0) * 100 + group.get_group_linear_range() * 10 + nd.get_local_range(1)
    out[i, 6] = nd.get_global_range(0) + nd.get_global_linear_range() * 10 + group.get_local_linear_range() * 1000


def test_ids_of_items_and_groups(queue):
    out = on(queue, np.zeros((24, 7), np.int64))
    ndpx.call_kernel(ids, kapi.NdRange((4, 6), (2, 3)), out)
    y, x = np.divmod(np.arange(24), 6)
    expected = [x, y % 2, y % 2 * 3 + x % 3, x // 3, y // 2 * 2 + x // 3, np.full(24, 243), np.full(24, 6244)]
    np.testing.assert_array_equal(ndpx.to_numpy(out), np.stack(expected, 1))


@ndpx.kernel
def tree(nd: kapi.NdItem, a, sums, slm):
    i, l, n = nd.get_global_id(0), nd.get_local_id(0), nd.get_local_range(0)
    group = nd.get_group()
    slm[l] = a[i]
    stride = n // 2
    while stride > 0:
        kapi.group_barrier(group, kapi.MemoryScope.WORK_GROUP)
        if l < stride:
            slm[l] += slm[l + stride]
        stride >>= 1
    if l == 0:
        sums[group.get_group_id(0)] = slm[0]


def test_a_tree_in_local_memory_of_the_launchs_size(queue):
    a = np.arange(256, dtype=np.int64)
    for size in (8, 32):
        sums = on(queue, np.zeros(256 // size, np.int64))
        slm = kapi.LocalAccessor(size, dtype=ndpx.int64)
        ndpx.call_kernel(tree, kapi.NdRange((256,), (size,)), on(queue, a), sums, slm)
        np.testing.assert_array_equal(ndpx.to_numpy(sums), a.reshape(-1, size).sum(1))
        tree.check[kapi.NdRange((256,), (size,))](a, np.zeros(256 // size, np.int64), slm)


@ndpx.kernel
def references(item: kapi.Item, a, found):
    i = item.get_id(0)
    total = kapi.AtomicRef(a, index=0)
    total.fetch_add(i)
    kapi.AtomicRef(a, 1).fetch_max(i)
    kapi.AtomicRef(a, 2, memory_order=kapi.MemoryOrder.RELAXED).fetch_xor(i)
    last = kapi.AtomicRef(a, index=3)
    last.store(7)
    found[i] = last.load() + last.exchange(7)


@ndpx.kernel
def once(item: kapi.Item, flag, expected, winners):
    i = item.get_id(0)
    reference = kapi.AtomicRef(flag, 0)
    if reference.compare_exchange(expected, i + 1, i):
        winners[i] = 1


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_atomic_references(queue, dtype):
    a, found = on(queue, np.zeros(4, dtype)), on(queue, np.zeros(50, dtype))
    ndpx.call_kernel(references, kapi.Range(50), a, found)
    assert ndpx.to_numpy(a).tolist() == [sum(range(50)), 49, np.bitwise_xor.reduce(np.arange(50)), 7]
    assert set(ndpx.to_numpy(found).tolist()) <= {7, 14}
    flag, expected, winners = (on(queue, np.zeros(n, np.int32)) for n in (1, 50, 50))
    ndpx.call_kernel(once, kapi.Range(50), flag, expected, winners)
    seen = ndpx.to_numpy(winners)
    assert seen.sum() == 1 and ndpx.to_numpy(flag)[0] == seen.argmax() + 1
    assert ((ndpx.to_numpy(expected) != 0) == (seen == 0)).all()


@ndpx.kernel
def squares(item: kapi.Item, a):
    i = item.get_id(0)
    p = kapi.PrivateArray(10, dtype=a.dtype, fill_zeros=True)
    for j in range(0, 10, 2):
        p[j] = i * i
    a[i] = 0
    for j in range(10):
        a[i] += p[j]


def test_private_arrays(queue):
    a = on(queue, np.empty(100, np.float32))
    ndpx.call_kernel(squares, kapi.Range(100), a)
    np.testing.assert_allclose(ndpx.to_numpy(a), 5.0 * np.arange(100) ** 2)


def test_asynchronous_launches_follow_each_other(queue):
    a, b, c = (on(queue, np.ones(1000, np.float32)) for _ in range(3))
    first = ndpx.call_kernel_async(vecadd, kapi.Range(1000), a, b, c)
    second = ndpx.call_kernel_async(vecadd, kapi.Range(1000), c, b, a, after=[first])
    assert isinstance(second, ndpx.Event)
    second.wait()
    assert first.done and ndpx.to_numpy(a).tolist() == [3.0] * 1000


@ndpx.kernel
def unannotated(item, a, b):
    i = item.get_id(0)
    b[i] = 2 * a[i]


@ndpx.kernel
def unannotated_nd(nd, a, b):
    i, group = nd.get_global_id(0), nd.get_group()
    b[i] = a[i] + group.get_group_id(0)


@ndpx.kernel
def no_item(a, b):
    b[ndpx.get_global_id(0)] = a.size


def test_a_first_parameter_without_annotation_is_an_item_where_it_is_used_as_one(queue):
    a, b = on(queue, np.arange(8)), on(queue, np.zeros(8, np.int64))
    ndpx.call_kernel(unannotated, kapi.Range(8), a, b)
    assert ndpx.to_numpy(b).tolist() == list(range(0, 16, 2))
    ndpx.call_kernel(unannotated_nd, kapi.NdRange((8,), (4,)), a, b)
    assert ndpx.to_numpy(b).tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    ndpx.call_kernel(no_item, kapi.Range(8), a, b)
    assert ndpx.to_numpy(b).tolist() == [8] * 8


METHOD = "fetch_sub"


@ndpx.kernel
def by_name(item: kapi.Item, a, flag):
    i = item.get_id(0)
    getattr(kapi.AtomicRef(a, index=1), METHOD)(a.dtype.type(i) + item.dimensions)
    flag[0] = kapi.AtomicRef(flag, 1).compare_exchange(expected_ref=flag, desired=flag[3], expected_idx=2)


def test_methods_by_name_and_arguments_by_keyword(queue):
    a, flag = on(queue, np.zeros(2, np.int64)), on(queue, np.array([0, 2, 2, 3]))
    ndpx.call_kernel(by_name, kapi.Range(1), a, flag)
    assert ndpx.to_numpy(a).tolist() == [0, -1] and ndpx.to_numpy(flag).tolist() == [1, 3, 2, 3]


def plain_function(nd: kapi.Item, a, slm):
    i, l = nd.get_global_id(0), nd.get_local_id(0)
    slm[l] = i
    kapi.group_barrier(nd.get_group())
    a[i] = slm[nd.get_local_range(0) - 1 - l]


def test_a_function_without_decorator_runs(queue):
    a, slm = on(queue, np.zeros(8, np.int32)), kapi.LocalAccessor(4, np.int32)
    kapi.call_kernel(plain_function, kapi.NdRange((8,), (4,)), a, slm)
    assert ndpx.to_numpy(a).tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    kapi.call_kernel(no_item, kapi.Range(8), a, a)
    assert ndpx.to_numpy(a).tolist() == [8] * 8


def test_events_may_stand_before_the_arguments(queue):
    a, b, c = (on(queue, np.ones(100, np.float32)) for _ in range(3))
    kept, first = ndpx.call_kernel_async(vecadd, kapi.Range(100), (), a, b, c)
    _, second = ndpx.call_kernel_async(vecadd, kapi.Range(100), (first,), c, b, a)
    second.wait()
    assert kept is first and ndpx.to_numpy(a).tolist() == [3.0] * 100


@ndpx.kernel
def errors(a, b):
    i = ndpx.get_global_id(0)
    b[i] = math.erf(a[i])


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float64, 2e-15)])
def test_the_error_function(queue, dtype, bound):
    a = np.concatenate([np.linspace(-7, 7, 200), [0.0, 1e-30, np.inf, -np.inf, np.nan]]).astype(dtype)
    b = on(queue, np.zeros_like(a))
    errors[len(a)](on(queue, a), b)
    found, wanted = ndpx.to_numpy(b), np.array([math.erf(x) for x in a.tolist()])
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=0)


@ndpx.kernel
def remainders(a, b):
    i = ndpx.get_global_id(0)
    b[i] = math.fmod(a[i], 0.75)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_remainder_of_c(queue, dtype):
    a = np.linspace(-5, 5, 41).astype(dtype)
    b = on(queue, np.zeros_like(a))
    remainders[len(a)](on(queue, a), b)
    np.testing.assert_array_equal(ndpx.to_numpy(b), np.fmod(a, dtype(0.75)))


def test_types_of_numba_are_types(queue):
    numba = require("numba", "types of Numba")

    @ndpx.kernel
    def cubes(item: kapi.Item, a):
        i = item.get_id(0)
        p = kapi.PrivateArray(3, numba.float64)
        for j in range(3):
            p[j] = i
        a[i] = p[0] * p[1] * p[2]

    a = on(queue, np.zeros(5))
    ndpx.call_kernel(cubes, kapi.Range(5), a)
    assert ndpx.to_numpy(a).tolist() == [0, 1, 8, 27, 64]


@ndpx.kernel
def swapped_scan(nd: kapi.NdItem, a, one, two):
    i, l, n = nd.get_global_id(0), nd.get_local_id(0), nd.get_local_range(0)
    group = nd.get_group()
    one[l] = two[l] = a[i]
    kapi.group_barrier(group, kapi.MemoryScope.WORK_GROUP)
    d = 1
    while d < n:
        two[l] = one[l] + one[l - d] if l >= d else one[l]
        kapi.group_barrier(group, kapi.MemoryScope.WORK_GROUP)
        one[l] = two[l]  # and the next round reads what a neighbour writes here
        d *= 2
    a[i] = two[l]


def test_the_race_of_the_scan_example_is_found():
    slm = kapi.LocalAccessor(64, ndpx.int64)
    with pytest.raises(ndpx.KernelError, match=r"race on element \d+ of `one`: work-item \[\d+\]"):
        swapped_scan.check[kapi.NdRange((64,), (64,))](np.arange(64) + 1, slm, slm)


# The lines of the README's table for numba.cuda: `x` is the fastest dimension there, the last one
# here.


TABLE = np.array([0, 0, 7], np.int32)


@ndpx.device_func  # @cuda.jit(device=True)
def of_cuda_function(a, place):
    return a[place]


@ndpx.kernel
def of_cuda(out, sums):
    x, y = ndpx.get_global_id(1), ndpx.get_global_id(0)  # x, y = cuda.grid(2)
    width, height = ndpx.get_global_size(1), ndpx.get_global_size(0)  # width, height = cuda.gridsize(2)
    tx = ndpx.get_local_id(1)  # cuda.threadIdx.x
    bx = ndpx.get_group_id(1)  # cuda.blockIdx.x
    bw = ndpx.get_local_size(1)  # cuda.blockDim.x
    gw = ndpx.get_num_groups(1)  # cuda.gridDim.x
    shared = ndpx.local.array((2, 4), ndpx.int32)  # cuda.shared.array
    mine = ndpx.private.array(2, ndpx.int32)  # cuda.local.array
    mine[0] = bx * bw + tx == x
    mine[1] = gw * bw == width
    shared[ndpx.get_local_id(0), tx] = mine[0] + mine[1]
    ndpx.barrier(ndpx.CLK_LOCAL_MEM_FENCE)  # cuda.syncthreads()
    ndpx.mem_fence(ndpx.CLK_GLOBAL_MEM_FENCE)  # cuda.threadfence()
    table = ndpx.constant.array_like(TABLE)  # cuda.const.array_like(TABLE)
    out[y, x] = shared[1 - ndpx.get_local_id(0), 3 - tx] + height + of_cuda_function(table, 2)
    ndpx.atomic.add(sums, 0, 1)  # cuda.atomic.add(sums, 0, 1)
    ndpx.atomic.max(sums, 1, x)  # cuda.atomic.max(sums, 1, x)
    ndpx.atomic.cas(sums, 2, 0, 5)  # cuda.atomic.cas(sums, 2, 0, 5)


def test_what_numba_cuda_has(queue):
    out, sums = on(queue, np.zeros((4, 12), np.int32)), on(queue, np.zeros(3, np.int32))
    of_cuda[(4, 12), (2, 4)](out, sums)  # kernel[(3, 2), (4, 2)](out, sums) there: blocks and threads, x first
    assert ndpx.to_numpy(out).tolist() == [[13] * 12] * 4 and ndpx.to_numpy(sums).tolist() == [48, 11, 5]


def test_code_is_generated_without_arguments():
    kernel = ndpx.kernel(vecadd.__wrapped__)
    types = "float32[:], float32[:], float32[:]"
    assert "__kernel void usm_vecadd" in kernel.code("opencl-c", types)
    assert '__global__ void usm_vecadd' in kernel.code("cuda-c", f"void({types})".replace("[:]", "[::1]"))
    assert kernel.code("spir-v", types)[:4] == b"\x03\x02\x23\x07"
    assert kernel.code("ir", types).startswith('(kernel "vecadd" 1')
    assert (kernel.local_mem_size, kernel.max_work_group_size) == (0, None)
    for wrong, message in {"float32[:]": "3 types are needed", types.replace("float32", "complex256"): '"complex256[:]" is no type'}.items():
        with pytest.raises(ndpx.KernelError, match=message.replace("[", r"\[")):
            kernel.code("ir", wrong)
    with pytest.raises(ndpx.KernelError, match="no target"):
        kernel.code("metal", types)
