"""NumPy arguments that share memory: each sees what the kernel writes to the others, on every
device, as it does on the host."""

import random

import numpy as np
import pytest
from conftest import device_of

import usm

SOURCE = """
__kernel void both(__global int *a, __global int *b)
{
    const size_t i = get_global_id(0);
    a[i] += 1;
    b[i] += 10;
}
"""


@usm.kernel
def mix(a, b, c):
    for i in range(a.size):
        a[i] = a[i] * 2 + 1
    for i in range(b.size):
        b[i] = b[i] + 3 * a[i % a.size]
    for i in range(c.size):
        c[i] = c[i] + b[i % b.size]


def mixed(a, b, c):
    """The same in NumPy's memory."""
    for i in range(a.size):
        a[i] = a[i] * 2 + 1
    for i in range(b.size):
        b[i] = b[i] + 3 * a[i % a.size]
    for i in range(c.size):
        c[i] = c[i] + b[i % b.size]


def a_slice(source):
    """A slice of 24 elements with at least one element, of any step."""
    step = source.choice([-3, -2, -1, 1, 2, 3])
    low, high = sorted(source.sample(range(25), 2))
    return slice(low, high, step) if step > 0 else slice(high - 1, low - 1 if low else None, step)


@pytest.mark.parametrize("seed", range(30))
def test_views_of_one_array(queue, seed):
    source = random.Random(seed)
    slices = [a_slice(source) for _ in range(3)]
    start = np.arange(24, dtype=np.int64)
    expected, found = start.copy(), start.copy()
    mixed(*[expected[each] for each in slices])
    with usm.device_context(queue):
        mix[1](*[found[each] for each in slices])
    assert found.tolist() == expected.tolist(), slices


@pytest.mark.parametrize("seed", range(10))
def test_views_of_two_arrays_in_any_order(queue, seed):
    source = random.Random(seed)
    places = source.sample([0, 0, 1], 3)
    slices = [a_slice(source) for _ in range(3)]
    starts = [np.arange(24, dtype=np.int64), np.arange(100, 124, dtype=np.int64)]
    expected, found = ([start.copy() for start in starts] for _ in range(2))
    mixed(*[expected[place][each] for place, each in zip(places, slices, strict=True)])
    with usm.device_context(queue):
        mix[1](*[found[place][each] for place, each in zip(places, slices, strict=True)])
    assert [one.tolist() for one in found] == [one.tolist() for one in expected], (places, slices)


def test_elements_of_two_sizes(queue):
    """Bytes of an array and its elements: what is written as bytes is read as elements."""
    wide = np.zeros(4, np.int32)
    narrow = wide.view(np.uint8)

    @usm.kernel
    def write(narrow, wide, sums):
        for i in range(narrow.size):
            narrow[i] = i
        for i in range(wide.size):
            sums[i] = wide[i]

    sums = np.zeros(4, np.int32)
    with usm.device_context(queue):
        write[1](narrow, wide, sums)
    assert sums.tolist() == np.arange(16, dtype=np.uint8).view(np.int32).tolist() == wide.tolist()


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_finished_kernels(backend):
    queue = usm.Queue(device_of(backend))
    both = usm.Module(SOURCE, queue=queue)["both"]
    one = np.zeros(8, np.int32)
    with usm.device_context(queue):
        both[8](one, one)
        assert one.tolist() == [11] * 8
        parts = np.zeros(12, np.int32)
        both[8](parts[:8], parts[4:])
        assert parts.tolist() == [1] * 4 + [11] * 4 + [10] * 4
        with pytest.raises(usm.KernelError, match="argument 1 shares memory .* not contiguous: pass a copy"):
            both[4](parts, parts[::2])
        assert parts.tolist() == [1] * 4 + [11] * 4 + [10] * 4


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_finished_kernels_and_numpys_view_of_a_usm_array(backend):
    queue = usm.Queue(device_of(backend))
    both = usm.Module(SOURCE, queue=queue)["both"]
    with usm.device_context(queue):
        a = usm.zeros(8, "int32", kind="shared")
        view = np.asarray(a)
        both[4](a, view[4:])
        assert memoryview(a).tolist() == [1] * 4 + [10] * 4
        with pytest.raises(usm.KernelError, match="argument 1 shares memory .* not contiguous: pass a copy"):
            both[4](a, view[::2])


def test_elements_out_of_place_are_refused():
    data = np.zeros(33, np.uint8)
    odd = data[1:].view(np.int32)
    with usm.device_context(device_of("opencl")), pytest.raises(usm.KernelError, match="share memory, .* pass a copy"):
        mix[1](odd, odd, odd)


@usm.kernel
def count_up(a):
    for i in range(a.size):
        a[i] = a[i] + 1


@pytest.mark.parametrize(("shape", "strides"), [((8,), (0,)), ((4, 3), (8, 8)), ((3, 4), (8, -8)), ((2, 2), (8, 16))])
def test_elements_that_share_memory_with_each_other(queue, shape, strides):
    """A copy with an element for each index would see none of the kernel's own writes."""

    @usm.kernel
    def each(a):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] = 2 * a[i, j] + 1

    expected, found = np.arange(16), np.arange(16)
    views = [np.lib.stride_tricks.as_strided(one[4:], shape, strides) for one in (expected, found)]
    for place in np.ndindex(*shape):
        views[0][place] = 2 * views[0][place] + 1 if len(shape) == 2 else views[0][place] + 1
    with usm.device_context(queue):
        (each if len(shape) == 2 else count_up)[1](views[1])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["shared", "host"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_usm_array_and_numpys_view_of_it(queue, kind, turned):
    """A copy of the view would be written back over what the kernel writes to the array."""

    @usm.kernel
    def both(a, v):
        for i in range(a.size):
            a[i] = 1
        for i in range(v.size):
            v[i] = v[i] + 5

    @usm.kernel(strict=True)
    def strict(a, v):
        a[usm.get_global_id(0)] = v[usm.get_global_id(0)]

    with usm.device_context(queue):
        a = usm.zeros(8, "int64", kind=kind)
        v = np.asarray(a)[6:1:-2]
        a[:] = 7
        if turned:
            both[1](v, a)
            assert memoryview(a).tolist() == [12, 12, 6, 12, 6, 12, 6, 12]
        else:
            both[1](a, v)
            assert memoryview(a).tolist() == [1, 1, 6, 1, 6, 1, 6, 1]
        with pytest.raises(usm.KernelError, match="share 40 bytes"):
            strict[3](a, v)
        with pytest.raises(usm.AccessError, match="argument 1, `v` is read-only"):
            v.flags.writeable = False
            both[1](a, v)


def test_a_copy_of_shared_memory_ends_before_the_next_array(queue):
    """The next array may be terabytes away."""

    @usm.kernel
    def three(a, b, c):
        for i in range(a.size):
            a[i] = b[i] + c[i]

    # A large block of memory lies far from small ones.
    small, large = np.arange(8.0), np.ones(10_000_000)
    for far in (large, small):
        near = small if far is large else large
        with usm.device_context(queue):
            three[1](near[:4], near[2:6], far[:4])
    assert small[:4].tolist() == [3.0, 4.0, 5.0, 6.0]
    assert large[:4].tolist() == [4.0, 5.0, 6.0, 7.0]


def test_a_checked_launch_refuses_arguments_that_share_elements():
    """It interprets copies, which would hide a race between them."""

    @usm.kernel
    def shift(a, b):
        i = usm.get_global_id(0)
        a[i] = b[i]

    data = np.arange(16)
    for a, b in ((data[:8], data[4:12]), (data[:8], data[::-1][7:15]), (data.view(np.int32)[:8], data.view(np.int16)[8:16])):
        with pytest.raises(usm.KernelError, match=r":\d+:\d+: `a` and `b` share \d+ bytes: a checked launch sees no race"):
            shift.check[8](a, b)
    shift.check[8](data[::2], data[1::2])
    shift.check[8](data[:8], data[8:])

    @usm.kernel
    def reads(a, b, c):
        i = usm.get_global_id(0)
        c[i] = a[i] + b[i]

    reads.check[8](data[:8], data[4:12], np.zeros(8))


class Resizing:
    """An argument whose memory is read by code that gives other memory to another array."""

    def __init__(self, other):
        self.other, self.own = other, np.zeros(8)

    @property
    def __array_interface__(self):
        self.other.resize(50_000_000, refcheck=False)
        self.other.resize(8, refcheck=False)
        return self.own.__array_interface__


@usm.kernel
def take(a, b):
    for i in range(a.size):
        a[i] = b[i % b.size] + 1.0


@pytest.mark.parametrize("place", [0, 1])
def test_an_array_that_is_resized_while_arguments_are_read(queue, place):
    array = np.zeros(1_000_000)
    arguments = (array, Resizing(array)) if place == 0 else (np.zeros(8), array, Resizing(array))

    @usm.kernel
    def three(a, b, c):
        for i in range(a.size):
            a[i] = b[i] + c[i]

    with usm.device_context(queue), pytest.raises(usm.KernelError, match=f"argument {place}, `.`, was resized meanwhile"):
        (take if place == 0 else three)[1](*arguments)
