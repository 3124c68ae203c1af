"""Copies of every layout, new arrays and waits beside their peers; rows of JSON.

NumPy is the peer on processors, with dpctl and dpnp on SYCL's, and CuPy on a GPU. Medians of
elapsed time in microseconds, measured in turns, each with its wait: other threads than the caller's
do part of the work. Names of functions choose rows. Without the build system, on a machine with a
GPU: ``PYTHONPATH=FOLDER_OF_THE_PACKAGE python3 copies.py``.
"""

import json
import sys
import time
import types
import warnings

import numpy as np

import usm

#: Bytes of contiguous copies; odd ones too.
SIZES = (64 << 10, (1 << 20) + 1, 16 << 20, (64 << 20) + 13, 256 << 20)


def skipped(case, error):
    print(f"skipped: {case}: {type(error).__name__}: {error}", file=sys.stderr)


def compare(case, peer, ours, theirs, rounds=None):
    """Prints a row: the medians of both, in turns."""
    times = []
    for call in (ours, theirs):
        call()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    rounds = rounds or max(5, min(51, int(0.5 / (sum(times) + 1e-9)))) | 1
    measured = ([], [])
    for _ in range(rounds):
        for call, into in zip((ours, theirs), measured):
            start = time.perf_counter()
            call()
            into.append((time.perf_counter() - start) * 1e6)
    one, other = (sorted(into)[rounds // 2] for into in measured)
    row = {"case": case, "peer": peer, "unit": "us", "ours": one, "theirs": other, "ratio": one / other}
    print(json.dumps(row), flush=True)


def bytes_text(size):
    unit, name = next((unit, name) for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")) if size >= unit)
    return f"{size // unit} {name}" + (f" + {size % unit}" if size % unit else "")


#: Views of a cube or square: the name, the source's view, the destination's view of the same shape.
def layouts(side):
    cube = max(8, round(side ** (2 / 3)))
    return (
        ("transposed", (side, side), lambda a: a.T, lambda b: b),
        ("rows reversed", (side, side), lambda a: a[::-1], lambda b: b),
        ("columns reversed", (side, side), lambda a: a[:, ::-1], lambda b: b),
        ("every second column", (side, side), lambda a: a[:, ::2], lambda b: b[:, ::2]),
        ("every third column packed", (side, side), lambda a: a[:, ::3], lambda b: b[:, : (side + 2) // 3]),
        ("window", (side, side), lambda a: a[1:-1, 1:-1], lambda b: b[: side - 2, : side - 2]),
        ("all axes turned", (cube,) * 3, lambda a: a.T, lambda b: b),
        ("all axes turned", (cube // 3 + 1, 3, cube, cube), lambda a: a.T, lambda b: b),
        ("a row repeated", (side, side), lambda a: a[:1], lambda b: b),
    )


def strided(name, queue, kind, module, peer, wait, sides=(2048,), types=("u1", "f4", "f8", "c16")):
    """Strided copies inside of one device."""
    for side in sides:
        for dtype in types:
            for layout, shape, from_, to in layouts(side):
                if dtype != "f4" and layout not in ("transposed", "every second column"):
                    continue
                ours = [usm.full(shape, 1, dtype, kind=kind, queue=queue) for _ in range(2)]
                theirs = [module.ones(shape, dtype) for _ in range(2)]
                try:
                    views = [(to(b), from_(a)) for a, b in (ours, theirs)]
                    if views[0][0].shape != views[0][1].shape and layout == "all axes turned":
                        ours[1] = usm.full(shape[::-1], 1, dtype, kind=kind, queue=queue)
                        theirs[1] = module.ones(shape[::-1], dtype)
                        views = [(to(b), from_(a)) for a, b in (ours, theirs)]
                except Exception as error:
                    skipped(layout, error)
                    continue

                def copy_theirs(to=views[1][0], from_=views[1][1]):
                    to[...] = from_
                    wait()

                case = f"copies: {name}, {layout}, {'x'.join(map(str, shape))} {dtype}"
                compare(case, peer, lambda to=views[0][0], from_=views[0][1]: usm.copy(to, from_), copy_theirs)


def to_and_from(name, queue, kind, peer, up, down, sizes=SIZES):
    """Copies between NumPy's memory and a device's: `up` and `down` make the peer's calls."""
    for size in sizes:
        data, target = np.ones(size, "u1"), np.ones(size, "u1")
        device = usm.full(size, 1, "u1", kind=kind, queue=queue)
        text = bytes_text(size)
        compare(f"copies: NumPy to {name}, {text}", peer, lambda: usm.copy(device, data), up(data))
        compare(f"copies: {name} to NumPy, {text}", peer, lambda: usm.copy(target, device), down(target))


def conversions(name, queue, module, peer, wait, side=2048):
    """`astype` of memory of the device, to new memory."""
    for here, there in (("f8", "f4"), ("i4", "f4"), ("f4", "u1"), ("f4", "c8"), ("i8", "?")):
        ours = usm.full((side, side), 1, here, kind="device", queue=queue)
        theirs = module.ones((side, side), here)
        for layout, view in (("", lambda a: a), (", transposed", lambda a: a.T)):
            ones = (view(ours), view(theirs))
            compare(
                f"copies: {here} to {there}{layout}, {name}, {side}x{side}", peer,
                lambda a=ones[0], to=there: a.astype(to), lambda a=ones[1], to=there: (a.astype(to, "C"), wait()),
            )


def processors():
    for device in usm.devices():
        if device.backend not in ("host", "opencl", "sycl") or device.type not in ("cpu", "host"):
            continue
        queue = usm.Queue(device)
        for kind in ("shared",) if device.backend == "host" else ("shared", "device"):
            name = device.backend if device.backend == "host" else f"{device.backend} {kind}"
            other = {size: np.ones(size, "u1") for size in SIZES}
            to_and_from(
                name, queue, kind, "np.copyto",
                lambda data: lambda: np.copyto(other[data.size], data),
                lambda data: lambda: np.copyto(data, other[data.size]),
            )
            del other
            strided(name, queue, kind, np, "NumPy", lambda: None)
        if device.backend != "host":
            conversions(device.backend, queue, np, "NumPy", lambda: None)


def sycl_peers():
    """The same on SYCL's processor beside dpctl's memory and dpnp's arrays."""
    try:
        import dpctl
        import dpctl.memory
        import dpnp

        there = dpctl.SyclQueue("opencl:cpu", property="in_order")
        device = next(device for device in usm.devices() if device.backend == "sycl" and device.type == "cpu")
        queue = usm.Queue(device)
    except Exception as error:
        skipped("SYCL beside dpctl and dpnp", error)
        return
    for kind in ("shared", "device"):
        memory = getattr(dpctl.memory, f"MemoryUSM{kind.title()}")

        def up(data, memory=memory):
            target = memory(data.size, queue=there)
            return lambda: target.copy_from_host(data)

        def down(data, memory=memory):
            source = memory(data.size, queue=there)
            source.memset(1)
            return lambda: source.copy_to_host(data)

        to_and_from(f"sycl {kind}", queue, kind, "dpctl", up, down)
        for size in SIZES:
            ours = [usm.full(size, 1, "u1", kind=kind, queue=queue) for _ in range(2)]
            theirs = [memory(size, queue=there) for _ in range(2)]
            text = bytes_text(size)
            compare(f"copies: sycl {kind} to itself, {text}", "dpctl", lambda ours=ours: usm.copy(*ours), lambda theirs=theirs: theirs[0].copy_from_device(theirs[1]))
    for size in SIZES:
        data, text = np.ones(size, "u1"), bytes_text(size)
        ours, theirs = usm.full(size, 1, "u1", kind="device", queue=queue), dpnp.ones(size, dtype="u1", sycl_queue=there)
        compare(f"copies: NumPy to new sycl, {text}", "dpnp", lambda: usm.asarray(data, kind="device", queue=queue), lambda: (dpnp.asarray(data, sycl_queue=there), there.wait()))
        compare(f"copies: sycl to new NumPy, {text}", "dpnp", lambda: usm.to_numpy(ours), lambda: dpnp.asnumpy(theirs))
    # dpnp warns of `T` with other than two axes.
    warnings.simplefilter("ignore", DeprecationWarning)
    module = types.SimpleNamespace(ones=lambda shape, dtype: dpnp.ones(shape, dtype=dtype, sycl_queue=there))
    strided("sycl device", queue, "device", module, "dpnp", there.wait)


def new_arrays():
    """New arrays and lists on the host."""
    values, numbers = np.random.default_rng(1).random(1_000_000).tolist(), list(range(1_000_000))
    nested = np.arange(1e6).reshape(1000, 1000).tolist()
    for case, ours, theirs in (
        ("zeros of 4 MiB", lambda: usm.zeros(1 << 20, "f4", device="host"), lambda: np.zeros(1 << 20, "f4")),
        ("zeros of 256 MiB", lambda: usm.zeros(1 << 26, "f4", device="host"), lambda: np.zeros(1 << 26, "f4")),
        ("full of 4 MiB", lambda: usm.full(1 << 20, 1.5, "f4", device="host"), lambda: np.full(1 << 20, 1.5, "f4")),
        ("full of 64 MiB", lambda: usm.full(1 << 23, 1.5, "f8", device="host"), lambda: np.full(1 << 23, 1.5)),
        ("array of a list of a million floats", lambda: usm.asarray(values, device="host"), lambda: np.asarray(values)),
        ("array of a list of a million integers", lambda: usm.asarray(numbers, device="host"), lambda: np.asarray(numbers)),
        ("array of 1,000 lists of 1,000 floats", lambda: usm.asarray(nested, device="host"), lambda: np.asarray(nested)),
    ):
        compare(f"copies: {case}, host", "NumPy", ours, theirs)


def cuda():
    try:
        import cupy as cp

        cp.zeros(1)
        queue = usm.Queue("cuda:gpu")
    except Exception as error:
        skipped("CUDA beside CuPy", error)
        return
    wait = cp.cuda.get_current_stream().synchronize

    def up(data):
        target = cp.ones(data.size, "u1")

        def call():
            target.set(data)
            wait()

        return call

    def down(data):
        source = cp.ones(data.size, "u1")
        return lambda: source.get(out=data)

    to_and_from("cuda", queue, "device", "CuPy", up, down, SIZES + (1 << 30,))
    for size in SIZES:
        ours = [usm.full(size, 1, "u1", kind="device", queue=queue) for _ in range(2)]
        theirs = [cp.ones(size, "u1") for _ in range(2)]

        def copy_theirs(theirs=theirs):
            theirs[0][...] = theirs[1]
            wait()

        compare(f"copies: cuda to cuda, {bytes_text(size)}", "CuPy", lambda ours=ours: usm.copy(*ours), copy_theirs)
        new = np.ones(size, "u1")
        compare(f"copies: cuda to new NumPy, {bytes_text(size)}", "CuPy", lambda ours=ours: usm.to_numpy(ours[0]), lambda theirs=theirs: cp.asnumpy(theirs[0]))
        compare(f"copies: NumPy to new cuda, {bytes_text(size)}", "CuPy", lambda new=new: usm.asarray(new, kind="device", queue=queue), lambda new=new: (cp.asarray(new), wait()))
    strided("cuda", queue, "device", cp, "CuPy", wait, sides=(2048, 4096))
    conversions("cuda", queue, cp, "CuPy", wait, side=4096)
    data = np.ones((4096, 4096), "f4")
    ours, theirs = usm.full((4096, 4096), 1, "f4", kind="device", queue=queue), cp.ones((4096, 4096), "f4")
    compare("copies: cuda transposed to NumPy, 4096x4096 f4", "CuPy", lambda: usm.copy(data, ours.T), lambda: np.copyto(data, cp.asnumpy(theirs.T)))


def cuda_waits():
    """Kernels of growing length, each with its wait, beside CuPy's synchronize."""
    try:
        import cupy as cp

        queue = usm.Queue("cuda:gpu")
        text = r"""extern "C" __global__ void spin(unsigned long long n) {
            unsigned long long s, t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(s));
            do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); } while (t - s < n); }"""
        theirs, ours = cp.RawKernel(text, "spin"), usm.Module(text, queue=queue)["spin"]
    except Exception as error:
        skipped("waits of CUDA", error)
        return
    wait = cp.cuda.get_current_stream().synchronize
    for microseconds in (10, 30, 75, 150, 300, 1000, 3000, 10_000, 100_000, 1_000_000):
        nanoseconds = np.uint64(microseconds * 1000)

        def launch_theirs(n=nanoseconds):
            theirs((1,), (1,), (n,))
            wait()

        case = f"copies: wait for a kernel of {microseconds} us, cuda"
        compare(case, "CuPy's synchronize", lambda n=nanoseconds: ours[1, 1](n), launch_theirs)


def processor_waits():
    """Kernels of growing length on OpenCL's and SYCL's processors, each with its wait."""
    source = """__kernel void spin(ulong n, __global float *out) {
        float x = 1; for (ulong i = 0; i < n; i++) x = x * 1.0000001f + 1e-9f; out[get_global_id(0)] = x; }"""
    try:
        import ctypes

        import dpctl
        import dpctl.memory
        import dpctl.program

        there = dpctl.SyclQueue("opencl:cpu", property="in_order")
        theirs = dpctl.program.create_program_from_source(there, source).get_sycl_kernel("spin")
        memory = dpctl.memory.MemoryUSMShared(64, queue=there)
    except Exception as error:
        skipped("waits of processors", error)
        return

    def launch_theirs(n):
        there.submit(theirs, [ctypes.c_uint64(n), memory], [1]).wait()

    start, calibration = time.perf_counter(), 10_000_000
    launch_theirs(calibration)
    start = time.perf_counter()
    launch_theirs(calibration)
    rounds = calibration / (time.perf_counter() - start) / 1e6
    for backend in ("opencl", "sycl"):
        device = next((device for device in usm.devices() if device.backend == backend and device.type == "cpu"), None)
        if device is None:
            skipped(f"waits of {backend}", LookupError("no device"))
            continue
        queue = usm.Queue(device)
        ours, out = usm.Module(source, queue=queue)["spin"], usm.empty(16, "f4", queue=queue, kind="shared")
        for microseconds in (10, 75, 300, 1000, 3000, 10_000, 100_000, 1_000_000):
            n = int(rounds * microseconds)
            case = f"copies: wait for a kernel of {microseconds} us, {backend}"
            compare(case, "dpctl's submit and wait", lambda n=n: ours[1, 1](np.uint64(n), out), lambda n=n: launch_theirs(n))


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["new_arrays", "processors", "sycl_peers", "processor_waits", "cuda", "cuda_waits"]
    for name in wanted:
        globals()[name]()
