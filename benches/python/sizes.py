"""Kernels at round and at prime sizes beside hand-written CUDA through CuPy; rows of JSON.

Elapsed microseconds of a launch with its wait, medians in turns. On a machine with an NVIDIA GPU:
``PYTHONPATH=FOLDER_OF_THE_PACKAGE python3 sizes.py``.
"""

import sys

import numpy as np

import usm
from copies import compare

CUDA = r"""
extern "C" __global__ void saxpy(float s, const float *x, float *y, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = s * x[i] + y[i];
}
extern "C" __global__ void stencil(const float *a, float *b, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (0 < y && y < h - 1 && 0 < x && x < w - 1)
        b[(size_t)y * w + x] = 0.2f * (a[(size_t)y * w + x] + a[(size_t)(y - 1) * w + x] + a[(size_t)(y + 1) * w + x]
                               + a[(size_t)y * w + x - 1] + a[(size_t)y * w + x + 1]);
}
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int k, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0;
    for (int l = 0; l < k; l++) s += a[(size_t)i * k + l] * b[(size_t)l * n + j];
    c[(size_t)i * n + j] = s;
}
extern "C" __global__ void columns(const float *a, float *b, int h, int w) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= w) return;
    float s = 0;
    for (int i = 0; i < h; i++) s += a[(size_t)i * w + j];
    b[j] = s;
}
extern "C" __global__ void transpose(const float *a, float *b, int h, int w) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) tile[threadIdx.y][threadIdx.x] = a[(size_t)y * w + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < h && y < w) b[(size_t)y * h + x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void tiled(const float *a, const float *b, float *c, int m, int k, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, j = blockIdx.x * 16 + x, i = blockIdx.y * 16 + y;
    float s = 0;
    for (int t = 0; t < k; t += 16) {
        left[y][x] = i < m && t + x < k ? a[(size_t)i * k + t + x] : 0;
        right[y][x] = t + y < k && j < n ? b[(size_t)(t + y) * n + j] : 0;
        __syncthreads();
        for (int l = 0; l < 16; l++) s += left[y][l] * right[l][x];
        __syncthreads();
    }
    if (i < m && j < n) c[(size_t)i * n + j] = s;
}
extern "C" __global__ void forces(const float *p, float *f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = p[3 * i], y = p[3 * i + 1], z = p[3 * i + 2], fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < n; j++) {
        float dx = p[3 * j] - x, dy = p[3 * j + 1] - y, dz = p[3 * j + 2] - z;
        float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), s = r * r * r;
        fx += dx * s, fy += dy * s, fz += dz * s;
    }
    f[3 * i] = fx, f[3 * i + 1] = fy, f[3 * i + 2] = fz;
}
"""


@usm.kernel
def saxpy(s, x, y):
    i = usm.get_global_id(0)
    y[i] = s * x[i] + y[i]


@usm.kernel
def stencil(a, b):
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    h, w = a.shape
    if 0 < y < h - 1 and 0 < x < w - 1:
        b[y, x] = np.float32(0.2) * (a[y, x] + a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])


@usm.kernel
def matmul(a, b, c):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@usm.kernel
def columns(a, b):
    j = usm.get_global_id(0)
    s = np.float32(0)
    for i in range(a.shape[0]):
        s += a[i, j]
    b[j] = s


@usm.kernel
def transpose(a, b):
    tile = usm.local.array((16, 17), "float32")
    y, x = usm.get_global_id(0), usm.get_global_id(1)
    j, i = usm.get_local_id(0), usm.get_local_id(1)
    h, w = a.shape
    if y < h and x < w:
        tile[j, i] = a[y, x]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    y, x = usm.get_group_id(1) * 16 + j, usm.get_group_id(0) * 16 + i
    if y < w and x < h:
        b[y, x] = tile[i, j]


@usm.kernel
def tiled(a, b, c):
    left, right = usm.local.array((16, 16), "float32"), usm.local.array((16, 16), "float32")
    y, x = usm.get_local_id(0), usm.get_local_id(1)
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    (m, k), n = a.shape, b.shape[1]
    s = np.float32(0)
    for t in range(0, k, 16):
        left[y, x] = a[i, t + x] if i < m and t + x < k else np.float32(0)
        right[y, x] = b[t + y, j] if t + y < k and j < n else np.float32(0)
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        for l in range(16):
            s += left[y, l] * right[l, x]
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    if i < m and j < n:
        c[i, j] = s


@usm.kernel
def forces(p, f):
    i = usm.get_global_id(0)
    x, y, z = p[i, 0], p[i, 1], p[i, 2]
    fx = fy = fz = np.float32(0)
    for j in range(p.shape[0]):
        dx, dy, dz = p[j, 0] - x, p[j, 1] - y, p[j, 2] - z
        r = np.float32(1) / np.sqrt(dx * dx + dy * dy + dz * dz + np.float32(0.01))
        s = r * r * r
        fx, fy, fz = fx + dx * s, fy + dy * s, fz + dz * s
    f[i, 0], f[i, 1], f[i, 2] = fx, fy, fz


def main():
    import cupy as cp

    module, queue, chance = cp.RawModule(code=CUDA), usm.Queue("cuda:gpu"), np.random.default_rng(1)
    wait = cp.cuda.get_current_stream().synchronize

    def arrays(*shapes):
        values = [chance.random(shape, dtype="f4") for shape in shapes]
        return [usm.asarray(value, queue=queue, kind="device", copy=True) for value in values], [cp.asarray(value) for value in values]

    def measure(name, size, ours, theirs, results):
        """Compares the results of one launch each, then the times."""
        ours(), theirs()
        one, other = usm.to_numpy(results[0]), cp.asnumpy(results[1])
        if not np.allclose(one, other, rtol=1e-4, atol=1e-3):
            sys.exit(f"{name}, {size}: the results differ by up to {np.abs(one - other).max()}")
        compare(f"kernel: {name}, {size}, cuda", "hand-written CUDA through CuPy", ours, theirs)

    def launch(name, grid, block, *values):
        function = module.get_function(name)

        def call():
            function(grid, block, values)
            wait()

        return call

    def blocks(extent, size):
        return -(-extent // size)

    for n in (1 << 20, 1_048_573, 1 << 24, 16_777_259):
        (x, y), (px, py) = arrays(n, n)
        theirs = launch("saxpy", (blocks(n, 256),), (256,), np.float32(0.5), px, py, np.int64(n))
        measure("saxpy", n, lambda: saxpy[n](np.float32(0.5), x, y), theirs, (y, py))
    for h, w in ((4096, 4096), (4093, 4099)):
        (a, b), (pa, pb) = arrays((h, w), (h, w))
        b[...] = 0
        pb[...] = 0
        theirs = launch("stencil", (blocks(w, 32), blocks(h, 8)), (32, 8), pa, pb, np.int32(h), np.int32(w))
        measure("stencil of 5 points", f"{h} x {w}", lambda: stencil[(h, w), None](a, b), theirs, (b, pb))
        (a, b), (pa, pb) = arrays((h, w), w)
        theirs = launch("columns", (blocks(w, 256),), (256,), pa, pb, np.int32(h), np.int32(w))
        measure("sums of columns", f"{h} x {w}", lambda: columns[w](a, b), theirs, (b, pb))
    for m, k, n in ((1024, 1024, 1024), (1021, 1019, 1031)):
        (a, b, c), (pa, pb, pc) = arrays((m, k), (k, n), (m, n))
        theirs = launch("matmul", (blocks(n, 32), blocks(m, 8)), (32, 8), pa, pb, pc, np.int32(m), np.int32(k), np.int32(n))
        measure("matmul", f"{m} x {k} x {n}", lambda: matmul[(m, n), None](a, b, c), theirs, (c, pc))
        theirs = launch("tiled", (blocks(n, 16), blocks(m, 16)), (16, 16), pa, pb, pc, np.int32(m), np.int32(k), np.int32(n))
        whole = (16 * blocks(m, 16), 16 * blocks(n, 16))
        measure("matmul in tiles", f"{m} x {k} x {n}", lambda: tiled[whole, (16, 16)](a, b, c), theirs, (c, pc))
    for h, w in ((4096, 4096), (4093, 4099)):
        (a, b), (pa, pb) = arrays((h, w), (w, h))
        theirs = launch("transpose", (blocks(w, 16), blocks(h, 16)), (16, 16), pa, pb, np.int32(h), np.int32(w))
        whole = (16 * blocks(h, 16), 16 * blocks(w, 16))
        measure("transpose", f"{h} x {w}", lambda: transpose[whole, (16, 16)](a, b), theirs, (b, pb))
    for n in (16384, 16381):
        (p, f), (pp, pf) = arrays((n, 3), (n, 3))
        theirs = launch("forces", (blocks(n, 256),), (256,), pp, pf, np.int32(n))
        measure("n-body", n, lambda: forces[n](p, f), theirs, (f, pf))


if __name__ == "__main__":
    main()
