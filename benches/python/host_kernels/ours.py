"""The programs with `usm`: kernels, and the ready reduce, histogram and scan."""

import math

import numpy as np
from host_kernels.inputs import BINS, RATE, SOFTENING, VOLATILITY

import usm

HALF, ROOT = np.float32(0.5), np.float32(1 / math.sqrt(2))


@usm.kernel
def saxpy(x, y):
    i = usm.get_global_id(0)
    y[i] = np.float32(2) * x[i] + y[i]


@usm.kernel
def stencil(x, y):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    if i > 0 and j > 0 and i < x.shape[0] - 1 and j < x.shape[1] - 1:
        y[i, j] = (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / np.float32(5)


@usm.kernel
def matmul(a, b, c):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@usm.kernel
def black_scholes(price, strike, years, call, put):
    i = usm.get_global_id(0)
    p, s, t = price[i], strike[i], years[i]
    deviation = VOLATILITY * math.sqrt(t)
    d1 = (math.log(p / s) + (RATE + HALF * VOLATILITY * VOLATILITY) * t) / deviation
    d2 = d1 - deviation
    n1, n2 = HALF + HALF * math.erf(d1 * ROOT), HALF + HALF * math.erf(d2 * ROOT)
    discounted = s * math.exp(-RATE * t)
    call[i] = p * n1 - discounted * n2
    put[i] = discounted * (np.float32(1) - n2) - p * (np.float32(1) - n1)


@usm.kernel
def n_body(place, force):
    i = usm.get_global_id(0)
    x, y, z = place[i, 0], place[i, 1], place[i, 2]
    fx, fy, fz = np.float32(0), np.float32(0), np.float32(0)
    for j in range(place.shape[0]):
        dx, dy, dz = place[j, 0] - x, place[j, 1] - y, place[j, 2] - z
        square = dx * dx + dy * dy + dz * dz + SOFTENING
        weight = np.float32(1) / (square * math.sqrt(square))
        fx, fy, fz = fx + dx * weight, fy + dy * weight, fz + dz * weight
    force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz


def programs(threads):
    usm.set_threads(threads)
    return {
        "saxpy": lambda x, y: saxpy[x.size](x, y),
        "stencil": lambda x, y: stencil[x.shape, None](x, y),
        "matmul": lambda a, b, c: matmul[c.shape, None](a, b, c),
        "reduce": lambda x, out: usm.reduce(x, "sum", out=out.reshape(())),
        "black-scholes": lambda *it: black_scholes[it[0].size](*it),
        "n-body": lambda place, force: n_body[len(place)](place, force),
        "histogram": lambda x, counts: usm.bincount(x, minlength=BINS, out=counts),
        "scan": lambda x, out: usm.scan(x, "sum", out=out),
    }
