"""Functions of `math` that the nodes lack, as functions of kernels."""

import math

from .inline import DeviceFunction


def erf(x):
    # Kummer's series, whose terms are all positive. From 6 on the result is 1 in 64 bits.
    y = min(abs(x), 6.0)
    term = y
    total = y
    n = 1
    while term > total * 1e-17:
        term *= 2 * y * y / (2 * n + 1)
        total += term
        n += 1
    found = min(total * 1.1283791670955126 * math.exp(-y * y), 1.0)
    return x if x != x else found if x >= 0 else -found


ERF = DeviceFunction(erf)
