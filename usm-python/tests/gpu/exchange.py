"""Exchange with CuPy, torch and NumPy on a machine with an NVIDIA GPU, in both directions.

The pointers are the same, each side sees the other's writes, and streams order the work.
"""

import gc
import multiprocessing
import sys
import traceback
import weakref

import numpy as np

import usm

try:
    import cupy
except ImportError as error:
    cupy = None
    print("skipped: CuPy:", error)
try:
    import torch
except ImportError as error:
    torch = None
    print("skipped: torch:", error)
try:
    if not hasattr(np, "row_stack"):
        # numba-cuda 0.30 still uses this name, which NumPy 2.5 no longer has.
        np.row_stack = np.vstack
    from numba import cuda as numba_cuda
except ImportError as error:
    numba_cuda = None
    print("skipped: numba-cuda:", error)
try:
    import jax
except ImportError as error:
    jax = None
    print("skipped: jax:", error)

CASES = []
# A second GPU, for the cases that copy between two.
second_gpu = next((device for device in usm.devices() if device.selector == "cuda:gpu:1"), None)


def case(*needs):
    def add(run):
        CASES.append((run, [name for name in needs if globals()[name] is None]))
        return run

    return add


def refused(run, *errors):
    try:
        run()
    except errors or usm.InterfaceError as error:
        return str(error)
    raise AssertionError("accepted")


def slow(stream, array, value):
    """Fills a CuPy array with zeros for a while and then with the value, on a stream."""
    with stream:
        for _ in range(50):
            array.fill(0)
        array.fill(value)


@case()
def devices_are_found():
    cuda = [device for device in usm.devices() if device.backend == "cuda"]
    assert cuda, "no CUDA device"
    print("   ", *(f"{device.selector} {device.name}" for device in cuda))
    for kind in ("host", "device", "shared"):
        array = usm.zeros((3, 4), "<f4", kind=kind, queue="cuda:gpu:0")
        array[1] = 2.0
        assert array.tolist()[1] == [2.0] * 4 and usm.Context("cuda:gpu:0").query(array.pointer)[0] == kind
        assert hasattr(array, "__array_interface__") == (kind != "device")


@case("cupy")
def cupy_to_usm():
    for dtype in ("?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
        theirs = cupy.zeros((4, 6), dtype)
        for view in (theirs, theirs[1:, ::-1], theirs.T, theirs[::2, 1::3], theirs[:0], theirs[2, 3]):
            ours = usm.asarray(view)
            assert (ours.shape, ours.kind, ours.dtype) == (view.shape, "device", np.dtype(dtype).str)
            if view.size == 0:
                continue
            assert ours.pointer == view.data.ptr and ours.strides == view.strides and ours.base is view
            ours.fill(1)
            assert (view.get() == 1).all()
            view[...] = 0
            assert not np.array(ours.tolist()).any()
    assert ours.device.selector == f"cuda:gpu:{theirs.device.id}"


@case("cupy")
def usm_to_cupy_by_the_dictionary():
    for kind in ("device", "shared", "host"):
        ours = usm.zeros((4, 6), "<f4", kind=kind, queue="cuda:gpu:0")
        for view in (ours, ours[1:, ::-1], ours.T):
            theirs = cupy.asarray(view)
            assert theirs.data.ptr == view.pointer and theirs.strides == view.strides, kind
            theirs[...] = 3
            cupy.cuda.get_current_stream().synchronize()
            assert view.tolist() == np.full(view.shape, 3.0).tolist()
            view.fill(4)
            assert (cupy.asnumpy(theirs) == 4).all()
    empty = cupy.asarray(usm.zeros((0, 3), "<f4", kind="device", queue="cuda:gpu:0"))
    assert empty.shape == (0, 3)


@case("cupy")
def dlpack_with_cupy():
    theirs = cupy.arange(24, dtype="i4").reshape(4, 6)
    for view in (theirs, theirs[1:, ::2], theirs.T):
        ours = usm.from_dlpack(view)
        assert ours.pointer == view.data.ptr and ours.tolist() == view.get().tolist()
        ours[0] = 9
        assert (view[0].get() == 9).all()
    ours = usm.zeros((4, 6), "<i4", kind="device", queue="cuda:gpu:0")
    back = cupy.from_dlpack(ours)
    assert back.data.ptr == ours.pointer
    back[2] = 5
    cupy.cuda.get_current_stream().synchronize()
    assert ours[2].tolist() == [5] * 6


@case("cupy")
def cupys_stream_is_waited_for():
    stream = cupy.cuda.Stream(non_blocking=True)
    theirs = cupy.zeros(1 << 22, "i4")
    for value in range(1, 21):
        slow(stream, theirs, value)
        with stream:
            ours = usm.asarray(theirs) if value % 2 else usm.from_dlpack(theirs)
        assert ours[:: 1 << 18].tolist() == [value] * 16, value
        # On the device: a copy of ours, on another queue, comes after it too.
        slow(stream, theirs, value + 100)
        with stream:
            ours = usm.asarray(theirs)
        copy = usm.zeros(1 << 22, "<i4", kind="device", queue="cuda:gpu:0")
        usm.Queue("cuda:gpu:0").copy(copy, ours)
        assert copy[:: 1 << 18].tolist() == [value + 100] * 16, value


@case("cupy")
def our_work_is_waited_for_by_cupy():
    source = usm.zeros(1 << 24, "<i4", kind="device", queue="cuda:gpu:0")
    ours = usm.zeros(1 << 24, "<i4", kind="device", queue="cuda:gpu:0")
    queue = usm.Queue("cuda:gpu:0")
    for value in range(1, 21):
        source.fill(value)
        stream = cupy.cuda.Stream(non_blocking=True)
        queue.copy(ours, source)
        with stream:
            theirs = cupy.asarray(ours) if value % 2 else cupy.from_dlpack(ours)
            last = int(theirs[-1])
        assert last == value


@case("cupy")
def false_dictionaries_are_refused():
    theirs = cupy.zeros(64, "f4")
    good = theirs.__cuda_array_interface__
    own = usm.zeros(64, "<f4", kind="device", queue="cuda:gpu:0")
    host = np.zeros(64, "f4")

    class Lie:
        def __init__(self, **changes):
            self.__cuda_array_interface__ = {**good, **changes}

    lies = [
        {"shape": (1 << 40,)},
        {"data": (host.ctypes.data, False)},
        {"data": (4096, False)},
        {"data": (own.pointer, False), "shape": (65,)},
        {"data": (own.pointer, False), "shape": (64,), "strides": (-4,)},
        {"shape": (2,), "strides": (1 << 62,)},
        {"mask": theirs},
        {"stream": 0},
        {"version": 4},
    ]
    for lie in lies:
        refused(lambda: usm.asarray(Lie(**lie)))
    assert usm.asarray(Lie(data=(theirs.data.ptr, True))).readonly
    assert usm.asarray(Lie(version=2)).pointer == theirs.data.ptr


@case("cupy")
def owners_live_until_the_work_is_done():
    theirs = cupy.ones(1 << 22, "i4")
    alive = weakref.ref(theirs)
    ours = usm.asarray(theirs)
    copy = usm.zeros(1 << 22, "<i4", kind="device", queue="cuda:gpu:0")
    usm.Queue("cuda:gpu:0").copy(copy, ours)
    del theirs, ours
    gc.collect()
    assert copy[-1].item() == 1
    copy.queue.context.synchronize()
    for _ in range(4):
        usm.zeros(1, kind="device", queue="cuda:gpu:0")
    gc.collect()
    assert alive() is None
    mine = usm.zeros(1 << 20, "<i4", kind="device", queue="cuda:gpu:0")
    context, live = mine.context, mine.context.stats()["sum"]["live"]
    seen = cupy.asarray(mine)
    del mine
    gc.collect()
    assert context.stats()["sum"]["live"] == live and int(seen.sum()) == 0
    del seen
    gc.collect()
    assert context.stats()["sum"]["live"] == live - 1


@case("torch")
def torch_on_the_gpu():
    theirs = torch.arange(24, dtype=torch.float32, device="cuda").reshape(4, 6)
    for view in (theirs, theirs[1:, ::2], theirs.T):
        for ours in (usm.asarray(view), usm.from_dlpack(view)):
            assert ours.pointer == view.data_ptr() and ours.kind == "device"
            assert ours.tolist() == view.tolist()
            ours[0] = -1.0
            assert (view[0] == -1).all().item()
            view[0] = 7.0
            torch.cuda.synchronize()
            assert ours[0].tolist() == [7.0] * view.shape[1]
    for kind in ("device", "shared"):
        ours = usm.zeros((4, 6), "<f4", kind=kind, queue="cuda:gpu:0")
        seen = torch.as_tensor(ours, device="cuda")
        assert seen.data_ptr() == ours.pointer, kind
        seen[1] = 2.0
        torch.cuda.synchronize()
        assert ours[1].tolist() == [2.0] * 6
    ours = usm.zeros((4, 6), "<f4", kind="device", queue="cuda:gpu:0")
    seen = torch.from_dlpack(ours)
    assert seen.data_ptr() == ours.pointer and seen.is_cuda
    seen[2] = 3.0
    torch.cuda.synchronize()
    assert ours[2].tolist() == [3.0] * 6


@case("numba_cuda")
def numbas_kernels_work_in_place():
    """A kernel of numba-cuda takes our arrays as they are, and we take its arrays."""

    @numba_cuda.jit
    def add(array, value):
        at = numba_cuda.grid(1)
        if at < array.size:
            array[at] += value

    for kind in ("device", "shared", "host"):
        ours = usm.full(1000, 2.0, "<f4", kind=kind, queue="cuda:gpu:0")
        for view, stride in ((ours, 1), (ours[100:], 1), (ours[::3], 3)):
            seen = numba_cuda.as_cuda_array(view)
            assert seen.device_ctypes_pointer.value == view.pointer, kind
            assert seen.strides == (4 * stride,) and seen.shape == view.shape
            add[8, 128](view, 1.0)
            numba_cuda.synchronize()
        expected = np.full(1000, 3.0, "<f4")
        expected[100:] += 1
        expected[::3] += 1
        assert ours.tolist() == expected.tolist(), kind
    theirs = numba_cuda.to_device(np.arange(24, dtype="i4").reshape(4, 6))
    ours = usm.asarray(theirs)
    assert ours.pointer == theirs.device_ctypes_pointer.value and ours.kind == "device"
    assert ours.tolist() == theirs.copy_to_host().tolist()
    ours[1] = 9
    assert (theirs.copy_to_host()[1] == 9).all()
    kept = weakref.ref(theirs)
    del theirs
    gc.collect()
    assert kept() is not None and ours.tolist()[1] == [9] * 6


@case("jax")
def jax_reads_our_memory_and_we_its():
    ours = usm.empty((4, 6), "<f4", kind="device", queue="cuda:gpu:0")
    usm.copy(ours, usm.asarray(np.arange(24, dtype="<f4").reshape(4, 6)))
    seen = jax.numpy.from_dlpack(ours)
    assert seen.unsafe_buffer_pointer() == ours.pointer
    assert np.asarray(seen + 1).tolist() == (np.arange(24, dtype="f4").reshape(4, 6) + 1).tolist()
    theirs = jax.numpy.arange(6, dtype="int32") * 2
    theirs.block_until_ready()
    back = usm.from_dlpack(theirs)
    assert back.pointer == theirs.unsafe_buffer_pointer() and back.tolist() == [0, 2, 4, 6, 8, 10]


@case("second_gpu")
def two_devices_copy_both_ways():
    first, second = usm.Context("cuda:gpu:0"), usm.Context("cuda:gpu:1")
    for peers in (False, True):
        if peers:
            for one, other in ((first, second), (second, first)):
                if one.can_access_peer(other):
                    one.enable_peer_access(other)
        for one, other in ((first, second), (second, first)):
            for kind in ("device", "host", "shared"):
                source = usm.full(1 << 20, 7, "<i4", kind=kind, queue=one)
                target = usm.zeros(1 << 20, "<i4", kind="device", queue=other)
                usm.copy(target, source)
                assert target.device != source.device and set(target[:: 1 << 15].tolist()) == {7}
    arrays = [usm.zeros(1 << 22, "<i4", kind="device", queue=context) for context in (first, second)]
    sources = [usm.full(1 << 22, 3, "<i4", kind="device", queue=context) for context in (first, second)]
    events = [usm.Queue(context).copy(target, source) for context, target, source in zip((first, second), arrays, sources)]
    for event in reversed(events):
        event.wait()
    assert all(array[:: 1 << 18].tolist() == [3] * 16 for array in arrays)


@case("second_gpu", "cupy")
def cupy_on_the_second_device():
    with cupy.cuda.Device(1):
        theirs = cupy.arange(24, dtype="f4").reshape(4, 6)
    # Work on the second device's own stream is waited for, whichever device is current.
    for value in range(1, 11):
        with cupy.cuda.Device(1):
            for _ in range(50):
                theirs.fill(0)
            theirs.fill(value)
        assert usm.asarray(theirs).tolist() == [[value] * 6] * 4
    with cupy.cuda.Device(1):
        for ours in (usm.asarray(theirs), usm.from_dlpack(theirs)):
            assert (ours.pointer, ours.device.selector, ours.tolist()) == (theirs.data.ptr, "cuda:gpu:1", theirs.tolist())
        seen = cupy.asarray(usm.full((4, 6), 2, "<f4", kind="device", queue="cuda:gpu:1"))
        assert seen.device.id == 1 and (seen == 2).all()


@case("second_gpu", "torch")
def torch_on_the_second_device():
    theirs = torch.arange(24, dtype=torch.float32, device="cuda:1").reshape(4, 6)
    # torch exports by DLPack only from its current device, which usm changes for the call.
    assert torch.cuda.current_device() == 0
    all_ours = [usm.asarray(theirs), usm.from_dlpack(theirs)]
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        all_ours += [usm.asarray(theirs), usm.from_dlpack(theirs)]
        assert torch.cuda.current_device() == 1
    for ours in all_ours:
        assert (ours.pointer, ours.device.selector, ours.tolist()) == (theirs.data_ptr(), "cuda:gpu:1", theirs.tolist())
    seen = torch.from_dlpack(usm.full((4, 6), 2, "<f4", kind="device", queue="cuda:gpu:1"))
    assert seen.device.index == 1 and (seen == 2).all().item()


@case("torch")
def torchs_types_and_states():
    names = "bool int8 uint8 int16 uint16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    names += " float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
    for name in names.split():
        theirs = torch.zeros(4, dtype=getattr(torch, name), device="cuda")
        for read in (usm.asarray, usm.from_dlpack):
            ours = read(theirs)
            assert (ours.pointer, ours.dtype, ours.readonly) == (theirs.data_ptr(), usm.DType(name), False), name
    values = torch.tensor([1 + 2j, 3 - 4j], device="cuda")
    for hidden in (values.conj(), values.conj().imag, torch.ones(2, device="cuda", requires_grad=True)):
        for read in (usm.asarray, usm.from_dlpack):
            refused(lambda read=read, hidden=hidden: read(hidden), BufferError)
    assert usm.asarray(values.conj().resolve_conj()).tolist() == [1 - 2j, 3 + 4j]
    assert usm.asarray(values.conj().imag.resolve_neg()).tolist() == [-2.0, 4.0]


@case("torch")
def torchs_page_locked_memory():
    for dtype in (torch.float32, torch.bfloat16):
        theirs = torch.arange(6, dtype=dtype).reshape(2, 3).pin_memory()
        for read in (usm.asarray, usm.from_dlpack):
            ours = read(theirs)
            assert (ours.pointer, ours.kind, ours.tolist()) == (theirs.data_ptr(), "host", theirs.tolist())
            ours[1] = 9.0
            assert (theirs[1] == 9).all().item()
            theirs[1] = 1


@case("cupy")
def cupys_types():
    try:
        import ml_dtypes
    except ImportError as error:
        print("    skipped: bfloat16:", error)
        return
    theirs = cupy.zeros(4, ml_dtypes.bfloat16)
    for read in (usm.asarray, usm.from_dlpack):
        assert (read(theirs).dtype, read(theirs).pointer) == ("bfloat16", theirs.data.ptr)


@case("torch")
def strides_of_single_axes():
    for device in ("cpu", "cuda"):
        for shape in ((1, 77), (77, 1), (1, 1, 5), (0, 3), (3, 0)):
            theirs = torch.zeros(shape, device=device)
            # Those of contiguous arrays; NumPy has zeros where there is no element.
            assert usm.asarray(theirs).strides == usm.zeros(shape, "f4", device="host").strides
            assert torch.from_dlpack(usm.asarray(theirs)).is_contiguous()


@case("torch")
def torchs_streams():
    stream = torch.cuda.Stream()
    theirs = torch.zeros(1 << 22, dtype=torch.int32, device="cuda")
    for value in range(1, 21):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(50):
                theirs.fill_(0)
            theirs.fill_(value)
            ours = usm.from_dlpack(theirs)
        assert ours[:: 1 << 18].tolist() == [value] * 16, value
    source = usm.zeros(1 << 24, "<i4", kind="device", queue="cuda:gpu:0")
    ours = usm.zeros(1 << 24, "<i4", kind="device", queue="cuda:gpu:0")
    for value in range(1, 21):
        source.fill(value)
        usm.Queue("cuda:gpu:0").copy(ours, source)
        with torch.cuda.stream(stream):
            assert torch.from_dlpack(ours)[-1].item() == value


@case("torch")
def torch_on_the_host():
    theirs = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    for view in (theirs, theirs.T, theirs[:, ::2]):
        ours = usm.asarray(view)
        assert ours.pointer == view.data_ptr() and ours.tolist() == view.tolist()
        ours[0] = 9.0
        assert (view[0] == 9).all().item()
    for dtype in ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"):
        ours = usm.zeros((2, 3), np.dtype(dtype).str, queue="host")
        back = torch.from_dlpack(ours)
        assert back.data_ptr() == ours.pointer and str(back.dtype) == f"torch.{dtype}"
        back[1, 2] = 1
        assert ours[1, 2].item() == 1
    print("    torch has the table for C:", hasattr(torch.Tensor, "__dlpack_c_exchange_api__"))


@case()
def numpy_sees_managed_and_page_locked_memory():
    for kind in ("shared", "host"):
        ours = usm.zeros((3, 4), "<f8", kind=kind, queue="cuda:gpu:0")
        for seen in (np.asarray(ours), np.asarray(memoryview(ours)), np.from_dlpack(ours)):
            assert seen.ctypes.data == ours.pointer
            seen[1] = 2.0
            assert ours[1].tolist() == [2.0] * 4
            ours.fill(0)
            assert not seen.any()
    refused(lambda: memoryview(usm.zeros(3, kind="device", queue="cuda:gpu:0")), BufferError)
    copied = usm.to_numpy(usm.zeros(3, "<i4", kind="device", queue="cuda:gpu:0"))
    assert copied.tolist() == [0] * 3


def opened(handle, value):
    """In another process: the elements behind a handle, which then all become `value`."""
    array = usm.open_ipc(handle, device="cuda:gpu:0")
    found = array.tolist(), array.strides, array.kind
    array.fill(value)
    array.wait()
    return found


@case()
def processes_share_memory_by_a_handle():
    values = np.arange(4000, dtype="<i4").reshape(4, 1000)
    array = usm.empty((4, 1000), "<i4", kind="device", queue="cuda:gpu:0")
    usm.copy(array, usm.asarray(values))
    part = array[1:3, ::2]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(opened, (part.ipc_handle(), 7)) == (values[1:3, ::2].tolist(), part.strides, "device")
        values[1:3, ::2] = 7
        assert (usm.to_numpy(array) == values).all()
        refused(lambda: usm.open_ipc(array.ipc_handle(), device="cuda:gpu:0"), usm.DeviceError)
        handle = array.ipc_handle()
        altered = handle[:40] + bytes(it ^ 0x15 for it in handle[40:104]) + handle[104:]
        refused(lambda: pool.apply(opened, (altered, 7)), usm.InterfaceError)
        refused(lambda: pool.apply(opened, (handle[:104], 7)), usm.InterfaceError)
    for kind in ("host", "shared"):
        refused(lambda kind=kind: usm.zeros(3, kind=kind, queue="cuda:gpu:0").ipc_handle(), usm.DeviceError)


def main():
    failed = skipped = 0
    for run, missing in CASES:
        if missing:
            print("skipped:", run.__name__, ":", *missing, "not here")
            skipped += 1
            continue
        try:
            run()
            print("ok     ", run.__name__, flush=True)
        except BaseException:
            failed += 1
            print("FAILED ", run.__name__, flush=True)
            traceback.print_exc()
    print(f"{len(CASES) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
