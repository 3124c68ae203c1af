"""Fields of structures, and parts of complex numbers, as arguments: they share no element."""

import numpy as np
import pytest
from conftest import device_of

import usm

BODY = np.dtype([("x", np.float32), ("n", np.int32), ("weight", np.float64), ("half", np.float16, 4)])


@pytest.fixture(params=["host", "opencl", "sycl"])
def device(request):
    return device_of(request.param)


def bodies(count):
    made = np.zeros(count, BODY)
    made["x"], made["n"], made["weight"], made["half"] = np.arange(count), 3, 0.5, 2
    return made


@usm.kernel
def moved(x, n, weight, half):
    i = usm.get_global_id(0)
    x[i] = x[i] * 2 + n[i]
    weight[i] += x[i]
    half[i, 1] = half[i, 0] + i


def fields(array):
    return [array[name] for name in BODY.names]


def right(count):
    wanted = bodies(count)
    wanted["x"] = wanted["x"] * 2 + 3
    wanted["weight"] += wanted["x"]
    with np.errstate(over="ignore"):
        wanted["half"][:, 1] = 2 + np.arange(count)
    return wanted


def test_fields_are_changed_in_place(device):
    plain, queue = bodies(20), usm.Queue(device)
    with usm.device_context(device):
        moved[20](*fields(plain))
    assert (plain == right(20)).all()
    # One launch is long enough for several threads.
    array = usm.asarray(bodies(70000), queue=queue, copy=True)
    given = fields(array)
    assert moved.proof[70000](*given) == "proven"
    moved.check[9](*[one[:9] for one in fields(bodies(9))])
    moved[70000](*given)
    assert (usm.to_numpy(array)["x"] == right(70000)["x"]).all()
    assert (usm.to_numpy(array)["weight"] == right(70000)["weight"]).all()


@usm.kernel
def squared(re, im):
    i = usm.get_global_id(0)
    re[i], im[i] = re[i] * re[i] - im[i] * im[i], 2 * re[i] * im[i]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_parts_of_complex_numbers_are_changed_in_place(device, dtype):
    z = np.arange(12).astype(dtype) - 4j
    wanted = z * z
    with usm.device_context(device):
        squared[12](z.real, z.imag)
    assert np.array_equal(z, wanted)
    assert squared.proof[6](z.real[::2], z.imag[1::2]) == "proven"


@pytest.mark.parametrize(
    "one, other",
    [
        (slice(0, 6), slice(3, 9)),
        (slice(0, 12, 2), slice(2, 14, 2)),
        (slice(0, 12, 2), slice(3, 12, 3)),
        (slice(11, None, -2), slice(1, 12, 4)),
    ],
)
def test_parts_that_meet_are_not_proven(one, other):
    array = np.arange(14.0)
    assert "share" in squared.proof[3](array[one], array[other])


@usm.kernel
def filled(one, other):
    i = usm.get_global_id(0)
    one[i, 0] = other[i, 2] = 1


def test_what_numpy_says_is_shared_is_never_proven():
    random = np.random.default_rng(7)
    words, types, proven = np.zeros(256, np.uint8), [np.uint8, np.int16, np.float32], 0

    def part():
        size = np.dtype(dtype := types[random.integers(3)]).itemsize
        first, step = random.integers(0, 8, 2)
        strides = size * (4 * random.integers(0, 4) + step), size * random.integers(-2, 4)
        return np.ndarray((2, 3), dtype, words, 16 + size * first, strides)

    for _ in range(600):
        one, other = part(), part()
        said = filled.proof[2](one, other)
        if said in ("proven", "inspected"):
            proven += 1
            assert not np.shares_memory(one, other), (one.strides, other.strides, said)
    assert proven > 50


def test_numbers_that_reach_into_the_next_are_not_proven():
    words = np.zeros(16, np.uint8)
    wide, narrow = words[:8].view(np.uint32), words[2:10:4]
    assert "share" in squared.proof[2](wide, narrow)
    assert squared.proof[2](words[:8:4], words[1:9:4]) == "proven"


@usm.kernel
def doubled(x):
    x[usm.get_global_id(0)] *= 2


def test_elements_at_no_multiple_of_their_size_are_refused(device):
    """A GPU fails at the first of them, and is lost."""
    packed = np.zeros(64, [("a", "<i2"), ("x", "<f4"), ("b", "<i2")])
    packed["x"] = np.arange(64)
    array = usm.asarray(packed, queue=usm.Queue(device), copy=True)
    for given in (array["x"], usm.zeros(65, "u1", queue=usm.Queue(device))[1:].view("<f4")):
        with pytest.raises(usm.KernelError, match="its elements of 4 bytes begin at address 0x[0-9a-f]+, no multiple of that; pass a copy"):
            doubled[given.shape](given)
        doubled[given.shape](given.copy())
    if device.backend != "host":
        # NumPy's memory is copied to the device anyway.
        with usm.device_context(device):
            doubled[64](packed["x"])
        assert (packed["x"] == 2 * np.arange(64)).all()


def test_many_fields_are_checked_as_few():
    many = usm.asarray(bodies(1 << 20), queue="host", copy=True)
    moved.check[4](*[one[: 1 << 19] for one in fields(many)])
    with pytest.raises(usm.KernelError, match="share"):
        moved.check[4](many["x"], many["x"], many["weight"], many["half"])
