"""Elements of 16 bits: every float16 and bfloat16, and every tie between two of them.

As a program it tries one backend, whose variables the process has.
"""

import sys

import ml_dtypes
import numpy as np
import pytest
from conftest import device_of, run_in

import usm

TYPES = [np.float16, ml_dtypes.bfloat16]


@usm.kernel
def widen(halves, floats):
    i = usm.get_global_id(0)
    floats[i] = halves[i]


@usm.kernel
def narrow(floats, halves):
    i = usm.get_global_id(0)
    halves[i] = floats[i]


def floats_of(dtype):
    """All numbers of a type, the middle of each two with its neighbours, great and small ones."""
    every = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float32)
    order = np.sort(every[np.isfinite(every)]).astype(np.float64)
    middle = ((order[1:] + order[:-1]) / 2).astype(np.float32)
    above, below = (np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf))
    ends = np.array([65519.996, 65520, 3.3961775e38, 3.4028235e38, 1e-45, 2.0**-25, np.nan, np.inf], np.float32)
    return np.concatenate([every, middle, above, below, ends, -ends])


def check(device, dtype):
    queue = usm.Queue(device)
    halves = np.arange(65536, dtype=np.uint16).view(dtype)
    wanted = halves.astype(np.float32)
    out = usm.asarray(np.zeros(65536, np.float32), queue=queue, copy=True)
    widen[65536](usm.asarray(halves, queue=queue, copy=True), out)
    found = usm.to_numpy(out)
    numbers = ~np.isnan(wanted)
    assert np.array_equal(np.isnan(found), ~numbers)
    assert np.array_equal(found.view(np.uint32)[numbers], wanted.view(np.uint32)[numbers])
    floats = floats_of(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = floats.astype(dtype)
    out = usm.asarray(np.zeros(len(floats), dtype), queue=queue, copy=True)
    narrow[len(floats)](usm.asarray(floats, queue=queue, copy=True), out)
    found = usm.to_numpy(out)
    numbers = ~np.isnan(floats)
    assert np.isnan(found[~numbers].astype(np.float32)).all()
    assert np.array_equal(found.view(np.uint16)[numbers], wanted.view(np.uint16)[numbers])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
def test_every_number_and_every_tie(backend, dtype):
    check(device_of(backend), dtype)


@pytest.mark.parametrize("name", ["built in", "cuda_on_host", "level_zero"])
def test_every_number_on_other_targets(name, request):
    run_in("host" if name == "built in" else name, request, __file__, USM_KERNEL_HOST="builtin")


@usm.kernel
def mixed(halves, brains, floats, factor):
    i = usm.get_global_id(0)
    kept = usm.private.array(2, np.float16)
    shared = usm.local.array(4, usm.bfloat16)
    kept[0] = 1 / 3
    kept[1] += halves[i]
    shared[usm.get_local_id(0)] = np.float16(halves[i] * 3)
    usm.barrier()
    brains[i] = shared[3 - usm.get_local_id(0)] + factor
    halves[i] += kept[0]
    floats[i] = kept[0] + kept[1] + TABLE[i % 2]


TABLE = np.array([0.1, -2], np.float16)


@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
def test_arithmetic_is_that_of_float32(backend):
    queue, f32 = usm.Queue(device_of(backend)), np.float32
    halves = np.linspace(-3, 3, 8).astype(np.float16)
    arrays = [usm.asarray(one, queue=queue, copy=True) for one in (halves, np.zeros(8, ml_dtypes.bfloat16), np.zeros(8, f32))]
    mixed[8, 4](*arrays, np.float16(0.1))
    third = f32(np.float16(1 / 3))
    shared = (halves.astype(f32) * 3).astype(np.float16).astype(ml_dtypes.bfloat16).astype(f32).reshape(2, 4)[:, ::-1].ravel()
    brains = (shared + f32(np.float16(0.1))).astype(ml_dtypes.bfloat16)
    floats = third + halves.astype(f32) + np.tile(TABLE, 4).astype(f32)
    wanted = [(halves.astype(f32) + third).astype(np.float16), brains, floats]
    for found, right in zip(arrays, wanted):
        assert np.array_equal(usm.to_numpy(found), right)
    assert arrays[0].dtype == "float16" and arrays[1].dtype == "bfloat16"


@usm.kernel
def counted(halves):
    usm.atomic.add(halves, 0, 1)


def test_atomic_operations_are_refused():
    with pytest.raises(usm.KernelError, match="an atomic operation on float16: integers and floats of 32 and 64 bits"):
        counted[1](np.zeros(1, np.float16))


def test_code_is_generated_for_them():
    for target in ("opencl-c", "cuda-c"):
        assert "own_to_f16" in narrow.code(target, "float32[:], float16[:]")
        assert "own_from_bf16" in widen.code(target, "bfloat16[:], float32[:]")


if __name__ == "__main__":
    for one in TYPES:
        check(next(device for device in usm.devices() if device.backend == sys.argv[1]), one)
