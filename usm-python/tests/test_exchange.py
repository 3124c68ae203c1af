"""Exchange in both directions with every real producer and consumer that is installed.

The pointers are the same, and each side sees the other's writes. torch needs 3 GB of CUDA libraries
and is tested where a GPU is (`gpu/exchange.py`). Here tvm-ffi and pyarrow speak DLPack beside
NumPy, as producers and as consumers; tvm-ffi also uses the table for C that torch has.
"""

import gc
import weakref

import pytest

import usm
from conftest import require


@pytest.fixture(scope="session")
def tvm_ffi():
    return require("tvm_ffi", "a consumer of DLPack and of its table for C")


@pytest.fixture(scope="session")
def pyarrow():
    return require("pyarrow", "a producer of DLPack and of buffers")


NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numpy(np, dtype):
    theirs = np.zeros((3, 4), dtype)
    for view in (theirs, theirs[::-1, ::2], theirs.T):
        by = {
            "dictionary": usm.asarray(type("P", (), {"__array_interface__": view.__array_interface__, "o": view})()),
            "dlpack": usm.from_dlpack(view),
            "buffer": usm.asarray(memoryview(view)),
            "asarray": usm.asarray(view),
        }
        for name, ours in by.items():
            assert (ours.pointer, ours.strides) == (view.ctypes.data, view.strides), name
            ours.fill(0)
            view[1, 1] = 1
            assert ours[1, 1].item() == 1, name
            for back in (np.asarray(ours), np.from_dlpack(ours), np.asarray(memoryview(ours))):
                assert back.ctypes.data == ours.pointer and back.dtype == view.dtype
                back[2, 1] = 1
                assert view[2, 1] == 1 and ours[2, 1].item() == 1
                back[2, 1] = 0


@pytest.mark.parametrize("dtype", NUMBERS)
def test_tvm_ffi(np, tvm_ffi, dtype):
    ours = usm.zeros((2, 3), np.dtype(dtype).str, kind="host", queue="host")
    for theirs in (tvm_ffi.from_dlpack(ours), tvm_ffi.get_global_func("testing.echo")(ours)):
        again = usm.from_dlpack(theirs)
        assert again.pointer == ours.pointer and again.shape == (2, 3) and again.dtype == ours.dtype
        again[1, 2] = 1
        assert ours[1, 2].item() == 1
        ours[1, 2] = 0
        assert again[1, 2].item() == 0


@pytest.mark.parametrize("dtype", NUMBERS)
def test_tvm_ffi_between_numpy_and_ours(np, tvm_ffi, dtype):
    """tvm-ffi's tensors between NumPy and usm: each side reads and writes the other's memory."""
    below = np.zeros((2, 3), dtype)
    ours = usm.from_dlpack(tvm_ffi.from_dlpack(below))
    assert (ours.pointer, ours.shape, ours.readonly) == (below.ctypes.data, (2, 3), False)
    ours[0, 1] = 1
    assert below[0, 1] == 1
    below[1, 2] = 1
    assert ours[1, 2].item() == 1
    mine = usm.zeros((2, 3), np.dtype(dtype).str, kind="host", queue="host")
    theirs = np.from_dlpack(tvm_ffi.from_dlpack(mine))
    assert theirs.ctypes.data == mine.pointer
    theirs[1, 0] = 1
    assert mine[1, 0].item() == 1


def test_tvm_ffi_keeps_the_memory(tvm_ffi):
    class Owner(bytearray):
        pass

    owner = Owner(b"abcd")
    alive = weakref.ref(owner)
    theirs = tvm_ffi.from_dlpack(usm.asarray(owner))
    del owner
    gc.collect()
    assert alive() is not None
    del theirs
    gc.collect()
    assert alive() is None


def test_tvm_ffi_shares_memory_of_a_device(dpctl, tvm_ffi):
    """A type of device that it knows and does not touch: SYCL's."""
    queue = usm.Queue(next(device for device in usm.devices() if device.backend == "sycl"))
    ours = usm.zeros(8, "<i4", kind="device", queue=queue)
    theirs = tvm_ffi.from_dlpack(ours)
    again = usm.from_dlpack(theirs)
    assert (again.pointer, again.kind, again.context) == (ours.pointer, "device", ours.context)
    again.fill(3)
    assert ours.tolist() == [3] * 8


@pytest.mark.parametrize("dtype", [name for name in NUMBERS if name != "?"])
def test_pyarrow(np, pyarrow, dtype):
    """Arrow's arrays are read-only, but show NumPy's writes to their memory."""
    below = np.arange(6).astype(dtype)
    theirs = pyarrow.Array.from_buffers(pyarrow.from_numpy_dtype(below.dtype), 6, [None, pyarrow.py_buffer(below)])
    ours = usm.asarray(theirs)
    assert (ours.pointer, ours.readonly, ours.dtype) == (below.ctypes.data, True, below.dtype.str)
    below[2] = 9
    assert ours.tolist() == theirs.to_pylist() == below.tolist()
    with pytest.raises(usm.AccessError):
        ours[0] = 1
    # The other way: a buffer of ours is Arrow's memory.
    mine = usm.zeros(6, below.dtype.str, queue="host")
    buffer = pyarrow.py_buffer(mine)
    assert (buffer.address, buffer.size, buffer.is_mutable) == (mine.pointer, mine.nbytes, True)
    array = pyarrow.Array.from_buffers(pyarrow.from_numpy_dtype(below.dtype), 6, [None, buffer])
    mine[3] = 4
    assert array.to_pylist()[3] == 4
    back = usm.asarray(buffer)
    assert back.pointer == mine.pointer and not back.readonly
    fixed = pyarrow.py_buffer(b"fixed")
    assert usm.asarray(fixed).readonly


@pytest.mark.parametrize("dtype", [name for name in NUMBERS if name != "?"])
def test_pyarrow_takes_dlpack(np, pyarrow, dtype):
    """Arrow consumes capsules since release 26: writable tensors of any strides, and arrays."""
    mine = usm.zeros((4, 3), np.dtype(dtype).str, kind="host", queue="host")
    for ours in (mine, mine[::2], mine.T):
        theirs = pyarrow.Tensor.from_dlpack(ours)
        assert (theirs.shape, theirs.strides, theirs.is_mutable) == (ours.shape, ours.strides, True)
        seen = theirs.to_numpy()
        assert seen.ctypes.data == ours.pointer
        seen[1, 2] = 1
        assert ours[1, 2].item() == 1
        ours.fill(0)
        assert not seen.any()
        again = usm.from_dlpack(theirs)
        assert (again.pointer, again.strides, again.readonly) == (ours.pointer, ours.strides, False)
    row = pyarrow.Array.from_dlpack(mine[1])
    mine[1, 1] = 1
    assert row.to_numpy().tolist() == [0, 1, 0]
    assert usm.from_dlpack(row).readonly and usm.asarray(row).pointer == mine[1].pointer


def test_pyarrow_keeps_the_memory_of_a_capsule(pyarrow):
    class Owner(bytearray):
        pass

    owner = Owner(b"abcd")
    alive = weakref.ref(owner)
    theirs = pyarrow.Tensor.from_dlpack(usm.asarray(owner))
    del owner
    gc.collect()
    assert alive() is not None and theirs.to_numpy().tobytes() == b"abcd"
    del theirs
    gc.collect()
    assert alive() is None


def test_pyarrow_keeps_the_memory(pyarrow):
    class Owner(bytearray):
        pass

    owner = Owner(b"abcd")
    alive = weakref.ref(owner)
    buffer = pyarrow.py_buffer(usm.asarray(owner))
    del owner
    gc.collect()
    assert alive() is not None and buffer.to_pybytes() == b"abcd"
    del buffer
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("kind", ["host", "device", "shared"])
def test_dpctl_and_dpnp(dpctl, dpnp, np, kind):
    theirs = dpnp.zeros((3, 4), dtype="f4", usm_type=kind)
    ours = usm.asarray(theirs)
    pointer = theirs.__sycl_usm_array_interface__["data"][0]
    assert (ours.pointer, ours.kind, ours.queue._get_capsule() is not None) == (pointer, kind, True)
    ours[1] = 2.0
    assert dpnp.asnumpy(theirs)[1].tolist() == [2.0] * 4
    theirs[2] = 3.0
    theirs.sycl_queue.wait()
    assert ours[2].tolist() == [3.0] * 4
    for back in (dpnp.from_dlpack(ours), usm.from_dlpack(theirs)):
        assert back.__sycl_usm_array_interface__["data"][0] == pointer
    memory = dpctl.memory.as_usm_memory(ours)
    assert (memory._pointer, memory.get_usm_type()) == (pointer, kind)
    memory.copy_from_host(np.full(12, 9, "f4").view("u1"))
    assert ours.tolist() == [[9.0] * 4] * 3 and float(theirs[0, 0]) == 9.0


def test_validate_checks_without_taking(np, dpctl):
    data = np.zeros((10, 10))
    assert usm.validate(data) == 800
    assert usm.validate(dpctl.memory.MemoryUSMShared(64)) == 64
    cuda = type("Cuda", (), {"__cuda_array_interface__": {**data.__array_interface__, "stream": 1}})()
    assert usm.validate(cuda) == 800, "no driver is asked"
    lie = type("Lie", (), {"__array_interface__": {**data.__array_interface__, "shape": (-1,)}})()
    with pytest.raises(usm.InterfaceError, match=r"shape\[0\]"):
        usm.validate(lie)
    with pytest.raises(usm.InterfaceError, match="exposes none"):
        usm.validate(5)
