"""The programs with Taichi on its processor back end, as its documentation writes them."""

import math

import taichi as ti
from host_kernels.inputs import RATE, SOFTENING, VOLATILITY


def programs(threads):
    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, log_level=ti.ERROR, offline_cache=False)
    floats, plane = ti.types.ndarray(ti.f32, 1), ti.types.ndarray(ti.f32, 2)
    whole = ti.types.ndarray(ti.i32, 1)
    root, rate, volatility, softening = 1 / math.sqrt(2), float(RATE), float(VOLATILITY), float(SOFTENING)

    @ti.kernel
    def saxpy(x: floats, y: floats):
        for i in x:
            y[i] = 2.0 * x[i] + y[i]

    @ti.kernel
    def stencil(x: plane, y: plane):
        for i, j in ti.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
            y[i, j] = (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 5.0

    @ti.kernel
    def matmul(a: plane, b: plane, c: plane):
        for i, j in c:
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    @ti.kernel
    def total_of(x: floats) -> ti.f32:
        total = 0.0
        for i in x:
            total += x[i]
        return total

    def reduce(x, out):
        out[0] = total_of(x)

    @ti.func
    def erf(x):
        # Taichi has none: Abramowitz and Stegun 7.1.26.
        t = 1.0 / (1.0 + 0.3275911 * abs(x))
        y = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
        y = 1.0 - y * ti.exp(-x * x)
        return ti.select(x < 0, -y, y)

    @ti.kernel
    def black_scholes(price: floats, strike: floats, years: floats, call: floats, put: floats):
        for i in price:
            p, s, t = price[i], strike[i], years[i]
            deviation = volatility * ti.sqrt(t)
            d1 = (ti.log(p / s) + (rate + 0.5 * volatility * volatility) * t) / deviation
            d2 = d1 - deviation
            n1, n2 = 0.5 + 0.5 * erf(d1 * root), 0.5 + 0.5 * erf(d2 * root)
            discounted = s * ti.exp(-rate * t)
            call[i] = p * n1 - discounted * n2
            put[i] = discounted * (1.0 - n2) - p * (1.0 - n1)

    @ti.kernel
    def n_body(place: plane, force: plane):
        for i in range(place.shape[0]):
            x, y, z = place[i, 0], place[i, 1], place[i, 2]
            fx, fy, fz = 0.0, 0.0, 0.0
            for j in range(place.shape[0]):
                dx, dy, dz = place[j, 0] - x, place[j, 1] - y, place[j, 2] - z
                square = dx * dx + dy * dy + dz * dz + softening
                weight = 1.0 / (square * ti.sqrt(square))
                fx += dx * weight
                fy += dy * weight
                fz += dz * weight
            force[i, 0], force[i, 1], force[i, 2] = fx, fy, fz

    @ti.kernel
    def count(x: whole, counts: whole):
        for i in x:
            counts[x[i]] += 1

    def histogram(x, counts):
        counts[:] = 0
        count(x, counts)

    @ti.kernel
    def scan(x: whole, out: whole):
        ti.loop_config(serialize=True)
        total = 0
        for i in range(x.shape[0]):
            total += x[i]
            out[i] = total

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
