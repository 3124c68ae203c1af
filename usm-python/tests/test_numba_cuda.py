"""What the examples of numba-cuda's documentation compute, by `usm.cuda`."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import usm
from usm import cuda, float32

TPB = 8


@pytest.fixture
def on(queue):
    """The module on the queue of each backend."""
    cuda._chosen.queue = queue
    yield queue
    cuda.close()


@cuda.jit
def f_vecadd(a, b, c):
    tid = cuda.grid(1)
    size = len(c)
    if tid < size:
        c[tid] = a[tid] + b[tid]


def test_vector_addition(on):
    n = 10007
    a, b = (cuda.to_device(np.random.default_rng(seed).random(n)) for seed in (1, 2))
    c = cuda.device_array_like(a)
    f_vecadd.forall(len(a))(a, b, c)
    np.testing.assert_array_equal(c.copy_to_host(), a.copy_to_host() + b.copy_to_host())
    c.copy_to_device(np.zeros(n))
    threads = 256
    f_vecadd[(n + threads - 1) // threads, threads](a, b, c)
    cuda.synchronize()
    np.testing.assert_array_equal(c.copy_to_host(), a.copy_to_host() + b.copy_to_host())


@cuda.jit
def increment_2d(an_array):
    x, y = cuda.grid(2)
    if x < an_array.shape[0] and y < an_array.shape[1]:
        an_array[x, y] += 1


@cuda.jit("void(float64[:,:])")
def increment_by_places(an_array):
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    y = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if x < an_array.shape[0] and y < an_array.shape[1]:
        an_array[x, y] += cuda.gridDim.x * 0 + 1


def test_increments_in_two_dimensions(on):
    an_array = np.random.default_rng(1).random((33, 17))
    expected = an_array + 2
    threads = (16, 16)
    blocks = (math.ceil(an_array.shape[0] / 16), math.ceil(an_array.shape[1] / 16))
    increment_2d[blocks, threads](an_array)
    increment_by_places[blocks, threads](an_array)
    np.testing.assert_allclose(an_array, expected)


@cuda.jit
def matmul(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for k in range(A.shape[1]):
            tmp += A[i, k] * B[k, j]
        C[i, j] = tmp


@cuda.jit
def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


def test_products_of_matrices(on):
    A, B = np.arange(16.0).reshape(4, 4), np.ones((4, 4))
    C = np.zeros((4, 4))
    A_d, B_d, C_d = map(cuda.to_device, (A, B, C))
    matmul[(1, 1), (16, 16)](A_d, B_d, C_d)
    np.testing.assert_array_equal(C_d.copy_to_host(), A @ B)
    # Sizes that no block divides, and a matrix that is no square.
    A, B = np.arange(5 * 23.0).reshape(5, 23), np.ones((23, 7))
    C_d = cuda.device_array((5, 7))
    blocks = math.ceil(max(5, 23) / TPB)
    fast_matmul[(blocks, blocks), (TPB, TPB)](cuda.to_device(A), cuda.to_device(B), C_d)
    np.testing.assert_array_equal(C_d.copy_to_host(), A @ B)


@cuda.jit
def array_sum(data):
    tid = cuda.threadIdx.x
    size = len(data)
    shr = cuda.shared.array(1024, np.int32)
    if tid < size:
        i = cuda.grid(1)
        shr[tid] = data[i]
    cuda.syncthreads()
    s = 1
    while s < cuda.blockDim.x:
        if tid % (2 * s) == 0:
            shr[tid] += shr[tid + s]
        s *= 2
        cuda.syncthreads()
    if tid == 0:
        data[tid] = shr[tid]


def test_a_reduction_in_shared_memory(on):
    a = cuda.to_device(np.arange(1024, dtype=np.int32))
    array_sum[1, 1024](a)
    assert a[0] == sum(range(1024))


@cuda.reduce
def sum_reduce(a, b):
    return a + b


@cuda.Reduce
def max_reduce(a, b):
    return a if a > b else b


def test_reductions_by_a_function(on):
    A = np.arange(1234, dtype=np.float64) + 1
    assert sum_reduce(A) == A.sum() == sum_reduce(cuda.to_device(A))
    assert sum_reduce(A, init=10, size=5) == 25 and max_reduce(cuda.to_device(A), init=-math.inf) == 1234
    assert sum_reduce(A[:0], init=3) == 3
    result = cuda.device_array(1)
    sum_reduce(A, res=result)
    assert result[0] == A.sum()


@cuda.jit
def max_example(result, values):
    tid = cuda.threadIdx.x
    bid = cuda.blockIdx.x
    bdim = cuda.blockDim.x
    i = (bid * bdim) + tid
    cuda.atomic.max(result, 0, values[i])


@cuda.jit
def max_example_3d(result, values):
    i, j, k = cuda.grid(3)
    cuda.atomic.max(result, (0, 1, 2), values[i, j, k])


@cuda.jit
def counted(result, seen):
    i = cuda.grid(1)
    cuda.atomic.add(result, i % 3, 1)
    old = cuda.atomic.cas(seen, 0, 0, i + 1)
    if old == 0:
        cuda.atomic.compare_and_swap(seen, i + 1, 7)


def test_atomic_operations(on):
    arr = np.random.default_rng(1).random(16384)
    result = np.zeros(1, dtype=np.float64)
    max_example[256, 64](result, arr)
    assert result[0] == arr.max()
    arr = np.random.default_rng(1).random(1000).reshape(10, 10, 10)
    result = np.zeros((3, 3, 3), dtype=np.float64)
    max_example_3d[(2, 2, 2), (5, 5, 5)](result, arr)
    assert result[0, 1, 2] == arr.max()
    result, seen = np.zeros(3, np.int32), np.zeros(1, np.int32)
    counted[10, 32](result, seen)
    assert result.tolist() == [107, 107, 106] and seen.tolist() == [7]


@cuda.jit(device=True)
def a_device_function(a, b):
    return a + b + cuda.threadIdx.x * 0


@cuda.jit
def uses_it(out):
    i = cuda.grid(1)
    step = cuda.gridsize(1)
    for k in range(i, out.size, step):
        out[k] = a_device_function(k, 10)


@cuda.jit
def votes(out):
    i = cuda.threadIdx.x
    below = cuda.syncthreads_count(i < 5)
    every, some = cuda.syncthreads_and(i < 5), cuda.syncthreads_or(i == 3)
    own = cuda.local.array(2, np.int32)
    own[0] = below
    own[1] = cuda.selp(every, 100, 0) + cuda.selp(some, 10, 0)
    out[i] = own[0] + own[1]


def test_device_functions_strides_and_votes(on):
    out = cuda.device_array(1000, np.int64)
    stream = cuda.stream()
    with stream.auto_synchronize():
        uses_it[3, 32, stream](out)
    np.testing.assert_array_equal(out.copy_to_host(stream=stream), np.arange(1000) + 10)
    assert a_device_function.py_func is a_device_function.__wrapped__
    out = np.zeros(16, np.int32)
    votes[1, 16](out)
    assert out.tolist() == [15] * 16


@cuda.jit
def mandel_kernel(min_x, max_x, min_y, max_y, image, iters):
    height = image.shape[0]
    width = image.shape[1]
    startX, startY = cuda.grid(2)
    gridX = cuda.gridDim.x * cuda.blockDim.x
    gridY = cuda.gridDim.y * cuda.blockDim.y
    for x in range(startX, width, gridX):
        for y in range(startY, height, gridY):
            cr, ci = min_x + x * ((max_x - min_x) / width), min_y + y * ((max_y - min_y) / height)
            zr, zi, color = 0.0, 0.0, iters
            for i in range(iters):
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                if zr * zr + zi * zi >= 4 and color == iters:
                    color = i
            image[y, x] = color


def test_a_picture_in_strides_of_the_grid(on):
    image = cuda.to_device(np.zeros((20, 30), np.uint8))
    mandel_kernel[(2, 1), (8, 8)](-2.0, 1.0, -1.0, 1.0, image, 20)
    found = image.copy_to_host()
    assert found[10, 20] == 20 and found[0, 0] < 2


@cuda.jit
def monte_carlo_pi(seed, iterations, out):
    thread_id = cuda.grid(1)
    inside = 0
    for i in range(iterations):
        x = usm.random.uniform(seed, thread_id * 2 * iterations + 2 * i)
        y = usm.random.uniform(seed, thread_id * 2 * iterations + 2 * i + 1)
        if x**2 + y**2 <= 1.0:
            inside += 1
    out[thread_id] = 4.0 * inside / iterations


def test_monte_carlo_with_numbers_by_counter(on):
    out = np.zeros(64 * 4, np.float32)
    monte_carlo_pi[4, 64](1, 200, out)
    assert abs(out.mean() - math.pi) < 0.03


def test_devices_and_memory():
    with cuda.gpus[0] as device:
        assert cuda.get_current_device() == device == cuda.gpus.current and len(cuda.gpus) == len(cuda.list_devices())
        free, total = cuda.current_context().get_memory_info()
        assert total > 0 and (free is None or free <= total)
        pinned = cuda.pinned_array(5, np.float32)
        pinned[:] = 2
        with cuda.pinned(pinned):
            there = cuda.to_device(pinned)
        assert there.dtype == np.float32 and there.shape == (5,) and there.copy_to_host().tolist() == [2] * 5
        assert there[1:3].copy_to_host().tolist() == [2, 2] and len(there.reshape(5, 1).T.ravel()) == 5
    assert cuda.is_available()
    with pytest.raises(usm.KernelError, match="device 99: there are"):
        cuda.select_device(99)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: f_vecadd[1], "2 to 4 parts"),
        (lambda: f_vecadd[1, 2, 0, 64], "64 bytes of shared memory by the launch"),
        (lambda: f_vecadd[1.5, 2], "whole numbers are needed"),
        (lambda: f_vecadd[(1, 2, 3, 4), 2], "blocks of 4 dimensions"),
        (lambda: f_vecadd(1, 2, 3), "a kernel is launched over a range"),
        (lambda: cuda.jit(link=["file.cu"])(lambda: None), "no option 'link'"),
        (lambda: cuda.grid(1), "means something in kernels only"),
        (lambda: cuda.device_array(3, order="F"), "order 'F'"),
    ],
)
def test_what_is_not_here_is_refused(call, message):
    with pytest.raises(usm.KernelError, match=message):
        call()


def test_the_examples_on_the_cuda_driver(cuda_driver):
    program = (
        "import usm, test_numba_cuda as t\n"
        "t.cuda.select_device(0); q = usm.Queue('cuda'); assert t.cuda.get_current_device().type == 'gpu'\n"
        "for name in 'increments_in_two_dimensions products_of_matrices reductions_by_a_function atomic_operations device_functions_strides_and_votes'.split():\n"
        "    getattr(t, 'test_' + name)(q)\n"
        "print('right')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize("name, remedy", [("laneid", "usm.sub_group"), ("popc", "np.bitwise_count"), ("event", "usm.Event.times"), ("cg", "two launches")])
def test_names_that_are_not_here_have_their_remedy(name, remedy):
    with pytest.raises(AttributeError, match=f"usm.cuda has no {name}: use {remedy}"):
        getattr(cuda, name)
    assert not hasattr(cuda, "anything_else")
