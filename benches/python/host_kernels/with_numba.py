"""The programs with Numba's `prange`, as its documentation writes them."""

import math

import numba
import numpy as np
from host_kernels.inputs import BINS, RATE, SOFTENING, VOLATILITY
from numba import njit, prange

HALF, ONE, TWO, FIVE, ROOT = np.float32(0.5), np.float32(1), np.float32(2), np.float32(5), np.float32(1 / math.sqrt(2))


@njit(parallel=True)
def saxpy(x, y):
    for i in prange(x.size):
        y[i] = TWO * x[i] + y[i]


@njit(parallel=True)
def stencil(x, y):
    for i in prange(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / FIVE


@njit(parallel=True)
def matmul(a, b, c):
    for i in prange(c.shape[0]):
        c[i, :] = 0
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@njit(parallel=True)
def reduce(x, out):
    total = np.float32(0)
    for i in prange(x.size):
        total += x[i]
    out[0] = total


@njit(parallel=True)
def black_scholes(price, strike, years, call, put):
    for i in prange(price.size):
        p, s, t = price[i], strike[i], years[i]
        deviation = VOLATILITY * math.sqrt(t)
        d1 = (math.log(p / s) + (RATE + HALF * VOLATILITY * VOLATILITY) * t) / deviation
        d2 = d1 - deviation
        n1, n2 = HALF + HALF * math.erf(d1 * ROOT), HALF + HALF * math.erf(d2 * ROOT)
        discounted = s * math.exp(-RATE * t)
        call[i] = p * n1 - discounted * n2
        put[i] = discounted * (ONE - n2) - p * (ONE - n1)


@njit(parallel=True)
def n_body(place, force):
    for i in prange(place.shape[0]):
        x, y, z = place[i, 0], place[i, 1], place[i, 2]
        fx, fy, fz = np.float32(0), np.float32(0), np.float32(0)
        for j in range(place.shape[0]):
            dx, dy, dz = place[j, 0] - x, place[j, 1] - y, place[j, 2] - z
            square = dx * dx + dy * dy + dz * dz + SOFTENING
            weight = ONE / (square * math.sqrt(square))
            fx += dx * weight
            fy += dy * weight
            fz += dz * weight
        force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz


@njit(parallel=True)
def histogram(x, counts):
    parts = numba.get_num_threads()
    own = np.zeros((parts, BINS), np.int32)
    for part in prange(parts):
        for i in range(x.size * part // parts, x.size * (part + 1) // parts):
            own[part, x[i]] += 1
    for bin in range(BINS):
        counts[bin] = own[:, bin].sum()


@njit(parallel=True)
def scan(x, out):
    parts = numba.get_num_threads()
    starts = np.zeros(parts + 1, np.int32)
    for part in prange(parts):
        total = np.int32(0)
        for i in range(x.size * part // parts, x.size * (part + 1) // parts):
            total += x[i]
            out[i] = total
        starts[part + 1] = total
    for part in range(1, parts):
        starts[part + 1] += starts[part]
    for part in prange(1, parts):
        for i in range(x.size * part // parts, x.size * (part + 1) // parts):
            out[i] += starts[part]


def programs(threads):
    numba.set_num_threads(threads)
    return {
        "saxpy": saxpy,
        "stencil": stencil,
        "matmul": matmul,
        "reduce": reduce,
        "black-scholes": black_scholes,
        "n-body": n_body,
        "histogram": histogram,
        "scan": scan,
    }
