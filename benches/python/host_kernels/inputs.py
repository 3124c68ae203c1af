"""The programs of all libraries: their inputs, and what NumPy computes from them.

Sizes are odd, so that no library gains by a multiple of its block.
"""

import math

import numpy as np

N, OPTIONS, BODIES, SIDE, SCANNED = (1 << 24) + 43, (1 << 22) + 3, 2053, 509, (1 << 22) + 11
ROWS, COLUMNS, BINS = 2047, 2049, 256
NAMES = ("saxpy", "stencil", "matmul", "reduce", "black-scholes", "n-body", "histogram", "scan")
RATE, VOLATILITY, SOFTENING = np.float32(0.1), np.float32(0.2), np.float32(1e-3)


def inputs(name):
    """The arguments of a program, the results last."""
    random = np.random.default_rng(7)

    def floats(*shape):
        return random.random(shape, dtype=np.float32)

    match name:
        case "saxpy":
            return floats(N), floats(N)
        case "stencil":
            return floats(ROWS, COLUMNS), np.zeros((ROWS, COLUMNS), np.float32)
        case "matmul":
            return floats(SIDE, SIDE), floats(SIDE, SIDE), np.zeros((SIDE, SIDE), np.float32)
        case "reduce":
            return (floats(N), np.zeros(1, np.float32))
        case "black-scholes":
            options = (10 + 40 * floats(OPTIONS), 10 + 40 * floats(OPTIONS), 1 + floats(OPTIONS))
            return *options, np.zeros(OPTIONS, np.float32), np.zeros(OPTIONS, np.float32)
        case "n-body":
            return floats(BODIES, 3), np.zeros((BODIES, 3), np.float32)
        case "histogram":
            return random.integers(0, BINS, N, dtype=np.int32), np.zeros(BINS, np.int32)
        case "scan":
            return random.integers(-9, 9, SCANNED, dtype=np.int32), np.zeros(SCANNED, np.int32)


def is_right(name, before, after):
    """Whether the results follow from the arguments, by NumPy."""
    match name:
        case "saxpy":
            return np.allclose(after[1], 2 * before[0] + before[1])
        case "stencil":
            x = before[0]
            inner = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
            return np.allclose(after[1][1:-1, 1:-1], inner / 5, rtol=1e-4)
        case "matmul":
            return np.allclose(after[2], before[0] @ before[1], rtol=1e-3)
        case "reduce":
            return math.isclose(after[1][0], before[0].sum(dtype=np.float64), rel_tol=1e-3)
        case "black-scholes":
            price, strike, years = (it.astype(np.float64) for it in before[:3])
            deviation = VOLATILITY * np.sqrt(years)
            d1 = (np.log(price / strike) + (RATE + VOLATILITY * VOLATILITY / 2) * years) / deviation
            normal = np.vectorize(lambda x: 0.5 + 0.5 * math.erf(x / math.sqrt(2)))
            some = slice(0, 1000)
            call = price[some] * normal(d1[some]) - strike[some] * np.exp(-RATE * years[some]) * normal((d1 - deviation)[some])
            return np.allclose(after[3][some], call, rtol=1e-3, atol=1e-3)
        case "n-body":
            away = before[0][None, :, :].astype(np.float64) - before[0][:10, None, :]
            weight = ((away**2).sum(axis=2) + SOFTENING) ** -1.5
            return np.allclose(after[1][:10], (away * weight[:, :, None]).sum(axis=1), rtol=1e-2, atol=1)
        case "histogram":
            return np.array_equal(after[1], np.bincount(before[0], minlength=BINS))
        case "scan":
            return np.array_equal(after[1], np.cumsum(before[0], dtype=np.int32))
