"""The programs with Warp on the processor, which uses one thread."""

import math

import warp as wp
from host_kernels.inputs import RATE, SOFTENING, VOLATILITY

ROOT, R, V, S = wp.constant(1 / math.sqrt(2)), wp.constant(float(RATE)), wp.constant(float(VOLATILITY)), wp.constant(float(SOFTENING))


@wp.kernel
def saxpy(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
    i = wp.tid()
    y[i] = 2.0 * x[i] + y[i]


@wp.kernel
def stencil(x: wp.array2d(dtype=wp.float32), y: wp.array2d(dtype=wp.float32)):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < x.shape[0] - 1 and j < x.shape[1] - 1:
        y[i, j] = (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 5.0


@wp.kernel
def matmul(a: wp.array2d(dtype=wp.float32), b: wp.array2d(dtype=wp.float32), c: wp.array2d(dtype=wp.float32)):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@wp.func
def erf(x: float):
    t = 1.0 / (1.0 + 0.3275911 * wp.abs(x))
    y = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return wp.sign(x) * (1.0 - y * wp.exp(-x * x))


@wp.kernel
def black_scholes(
    price: wp.array(dtype=wp.float32),
    strike: wp.array(dtype=wp.float32),
    years: wp.array(dtype=wp.float32),
    call: wp.array(dtype=wp.float32),
    put: wp.array(dtype=wp.float32),
):
    i = wp.tid()
    p = price[i]
    s = strike[i]
    t = years[i]
    deviation = V * wp.sqrt(t)
    d1 = (wp.log(p / s) + (R + 0.5 * V * V) * t) / deviation
    d2 = d1 - deviation
    n1 = 0.5 + 0.5 * erf(d1 * ROOT)
    n2 = 0.5 + 0.5 * erf(d2 * ROOT)
    discounted = s * wp.exp(-R * t)
    call[i] = p * n1 - discounted * n2
    put[i] = discounted * (1.0 - n2) - p * (1.0 - n1)


@wp.kernel
def n_body(place: wp.array2d(dtype=wp.float32), force: wp.array2d(dtype=wp.float32)):
    i = wp.tid()
    x = place[i, 0]
    y = place[i, 1]
    z = place[i, 2]
    fx = float(0.0)
    fy = float(0.0)
    fz = float(0.0)
    for j in range(place.shape[0]):
        dx = place[j, 0] - x
        dy = place[j, 1] - y
        dz = place[j, 2] - z
        square = dx * dx + dy * dy + dz * dz + S
        weight = 1.0 / (square * wp.sqrt(square))
        fx += dx * weight
        fy += dy * weight
        fz += dz * weight
    force[i, 0] = fx
    force[i, 1] = fy
    force[i, 2] = fz


@wp.kernel
def count(x: wp.array(dtype=wp.int32), counts: wp.array(dtype=wp.int32)):
    wp.atomic_add(counts, x[wp.tid()], 1)


def programs(threads):
    if threads > 1:
        return {}
    wp.config.quiet = True
    wp.init()

    def of(array):
        return wp.array(ptr=array.ctypes.data, shape=array.shape, dtype=wp.dtype_from_numpy(array.dtype), device="cpu", copy=False)

    def run(kernel, shape):
        return lambda *it: wp.launch(kernel, dim=shape(*it), inputs=[of(array) for array in it], device="cpu")

    def histogram(x, counts):
        counts[:] = 0
        wp.launch(count, dim=x.size, inputs=[of(x), of(counts)], device="cpu")

    def reduce(x, out):
        out[0] = wp.utils.array_sum(of(x))

    return {
        "saxpy": run(saxpy, lambda x, y: x.size),
        "stencil": run(stencil, lambda x, y: x.shape),
        "matmul": run(matmul, lambda a, b, c: c.shape),
        "reduce": reduce,
        "black-scholes": run(black_scholes, lambda *it: it[0].size),
        "n-body": run(n_body, lambda place, force: len(place)),
        "histogram": histogram,
        "scan": lambda x, out: wp.utils.array_scan(of(x), of(out), inclusive=True),
    }
