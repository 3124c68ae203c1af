"""Kernels of `@usm.kernel`: launches beside those of dpctl and CuPy, and code for the host beside
loops of C; rows of JSON.

Microseconds of the caller's CPU time, medians of batches taken in turns. `USM_KERNEL_HOST` says
which code of the host is measured, else both are, each in a process of its own.
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import usm
from pairs import compare

N, GROUP, SIDE = 1 << 16, 256, 256
LOOPS = r"""
void reverse(float *a) {
    for (long b = 0; b < 65536; b += 256) {
        float t[256];
        for (long i = 0; i < 256; i++) t[i] = a[b + i];
        for (long i = 0; i < 256; i++) a[b + i] = t[255 - i];
    }
}
void saxpy(float s, const float *restrict x, float *restrict y) {
    for (long i = 0; i < 65536; i++) y[i] = s * x[i] + y[i];
}
void histogram(const int *restrict x, int *restrict h) {
    for (long i = 0; i < 65536; i++) h[x[i]]++;
}
void matmul(const float *restrict a, const float *restrict b, float *restrict c) {
    for (long i = 0; i < 256; i++) {
        for (long j = 0; j < 256; j++) c[i * 256 + j] = 0;
        for (long k = 0; k < 256; k++)
            for (long j = 0; j < 256; j++) c[i * 256 + j] += a[i * 256 + k] * b[k * 256 + j];
    }
}
"""


@usm.kernel
def reverse(a):
    lm = usm.local.array(256, "float32")
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    lm[l] = a[i]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    a[i] = lm[255 - l]


@usm.kernel
def saxpy(s, x, y):
    i = usm.get_global_id(0)
    y[i] = s * x[i] + y[i]


@usm.kernel
def histogram(x, h):
    counts = usm.local.array(256, "int32")
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    counts[l] = 0
    usm.barrier()
    usm.atomic.add(counts, x[i], 1)
    usm.barrier()
    usm.atomic.add(h, l, counts[l])


@usm.kernel
def matmul(a, b, c):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@usm.kernel
def tiled(a, b, c):
    ta, tb = usm.local.array((16, 16), "float32"), usm.local.array((16, 16), "float32")
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    y, x = usm.get_local_id(0), usm.get_local_id(1)
    s = np.float32(0)
    for t in range(a.shape[1] // 16):
        ta[y, x] = a[i, t * 16 + x]
        tb[y, x] = b[t * 16 + y, j]
        usm.barrier()
        for k in range(16):
            s += ta[y, k] * tb[k, x]
        usm.barrier()
    c[i, j] = s


@usm.kernel
def scale(a, x):
    i = usm.get_global_id(0)
    x[i] = a * x[i]


def launches():
    try:
        import dpctl
        import dpctl.memory
        import dpctl.program

        there = dpctl.SyclQueue("opencl:cpu", property="in_order")
    except Exception as error:
        print(f"skipped: launches: {type(error).__name__}: {error}", file=sys.stderr)
        return
    source = "__kernel void scale(double a, __global float *x) { size_t i = get_global_id(0); x[i] = (float)a * x[i]; }"
    kernel = dpctl.program.create_program_from_source(there, source).get_sycl_kernel("scale")
    arguments, sizes = [ctypes.c_double(1.0), dpctl.memory.MemoryUSMShared(256, queue=there)], [64]
    source = """__kernel void reverse(__global float *a) { __local float lm[256];
        size_t i = get_global_id(0), l = get_local_id(0); lm[l] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); a[i] = lm[255 - l]; }"""
    grouped = dpctl.program.create_program_from_source(there, source).get_sycl_kernel("reverse")
    memory = dpctl.memory.MemoryUSMShared(1024, queue=there)
    for backend in ("host", "opencl", "sycl"):
        device = next((device for device in usm.devices() if device.backend == backend), None)
        if device is None:
            print(f"skipped: launches on {backend}: no device", file=sys.stderr)
            continue
        queue = usm.Queue(device)
        x, y = (usm.asarray(np.ones(n, "f4"), queue=queue, kind="shared", copy=True) for n in (64, GROUP))
        compare(
            f"Python: launch and wait, {backend}",
            "dpctl's submit and wait",
            lambda x=x: scale[64](1.0, x),
            lambda: there.submit(kernel, arguments, sizes).wait(),
            200,
        )
        compare(
            f"Python: launch with local memory and wait, {backend}",
            "dpctl's submit and wait",
            lambda y=y: reverse[GROUP, GROUP](y),
            lambda: there.submit(grouped, [memory], [GROUP], [GROUP]).wait(),
            200,
        )


def launches_on_cuda():
    """The launch and its wait, and the launch alone, beside CuPy's `RawKernel`."""
    try:
        import cupy

        queue = usm.Queue("cuda:gpu:0")
    except Exception as error:
        print(f"skipped: launches on CUDA: {type(error).__name__}: {error}", file=sys.stderr)
        return
    source = """extern "C" __global__ void scale(double a, float *x) {
        unsigned long i = (unsigned long)blockIdx.x * blockDim.x + threadIdx.x; x[i] = (float)a * x[i]; }"""
    theirs, stream = cupy.RawKernel(source, "scale"), cupy.cuda.Stream(non_blocking=True)
    x, y = usm.asarray(np.ones(64, "f4"), queue=queue, kind="device", copy=True), cupy.ones(64, "f4")
    peer = "CuPy's RawKernel"

    def waited():
        theirs((1,), (64,), (1.0, y))
        stream.synchronize()

    with stream:
        compare("Python: launch and wait, cuda", f"{peer} and synchronize", lambda: scale[64](1.0, x), waited, 200)
        # Ours also makes an event, which CuPy does only on request.
        launch = usm.call_kernel_async
        compare("Python: launch, cuda", peer, lambda: launch(scale, usm.Range(64), 1.0, x), lambda: theirs((1,), (64,), (1.0, y)), 200)
        queue.wait()


def host(way):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "loops.c").write_text(LOOPS)
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([shutil.which("cc"), *flags, "-o", folder / "loops.so", folder / "loops.c"], check=True)
    loops = ctypes.CDLL(folder / "loops.so")
    chance = np.random.default_rng(1)
    x, y = chance.random(N, dtype="f4"), np.ones(N, "f4")
    bins, counts = chance.integers(0, 256, N).astype("i4"), np.zeros(256, "i4")
    a, b, c = chance.random((SIDE, SIDE), dtype="f4"), chance.random((SIDE, SIDE), dtype="f4"), np.zeros((SIDE, SIDE), "f4")
    given = [x, y, bins, counts, a, b, c]
    queue = usm.Queue("host")
    ux, uy, ubins, ucounts, ua, ub, uc = [usm.asarray(array, queue=queue, kind="shared", copy=True) for array in given]
    px, py, pbins, pcounts, pa, pb, pc = [array.ctypes.data_as(ctypes.c_void_p) for array in given]
    for case, ours, theirs, count in [
        ("reverse", lambda: reverse[N, GROUP](ux), lambda: loops.reverse(px), 20),
        ("saxpy", lambda: saxpy[N](0.5, ux, uy), lambda: loops.saxpy(ctypes.c_float(0.5), px, py), 20),
        ("histogram", lambda: histogram[N, GROUP](ubins, ucounts), lambda: loops.histogram(pbins, pcounts), 10),
        ("matmul 256", lambda: matmul[(SIDE, SIDE), None](ua, ub, uc), lambda: loops.matmul(pa, pb, pc), 1),
        ("matmul 256 in tiles", lambda: tiled[(SIDE, SIDE), (16, 16)](ua, ub, uc), lambda: loops.matmul(pa, pb, pc), 1),
    ]:
        compare(f"Python: {case}, {way}", "loop of C, AVX of the machine", ours, theirs, count)


if __name__ == "__main__":
    chosen = os.environ.get("USM_KERNEL_HOST")
    if chosen:
        host(chosen)
    else:
        launches()
        launches_on_cuda()
        for way in ("builtin", "cc") if shutil.which("cc") else ():
            subprocess.run([sys.executable, __file__], env={**os.environ, "USM_KERNEL_HOST": way}, check=True)
