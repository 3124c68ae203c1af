"""Random numbers by counter, for kernels and for plain Python.

:func:`philox` has no state: a number follows from the seed and the number's place, so work-items
need nothing of each other, and a result is the same on every device. The same seed and place give
the same numbers: let no two draws share a place.
"""

from collections.abc import Callable as _Callable
from math import cos as _cos, log as _log, pi as _pi, sqrt as _sqrt
from typing import Any as _Any

from ._kernel import device_func as _device_func
from ._usm import float32 as _float32, float64 as _float64, uint32 as _uint32, uint64 as _uint64

__all__ = ["normal", "philox", "philox4x32", "uniform", "uniform64"]

_MASK = 0xFFFFFFFF


@_device_func
def _rounds(k0, k1, c0, c1, c2, c3):  # type: ignore[no-untyped-def]
    """The ten rounds of Philox4x32; all numbers are of 64 bits and below 2**32."""
    for _ in range(10):
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & _MASK, (first >> 32) ^ c3 ^ k1, first & _MASK
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0, c1, c2, c3


@_device_func
def _philox4x32(k0, k1, c0, c1, c2, c3):  # type: ignore[no-untyped-def]
    r0, r1, r2, r3 = _rounds(_uint64(k0) & _MASK, _uint64(k1) & _MASK, _uint64(c0) & _MASK, _uint64(c1) & _MASK, _uint64(c2) & _MASK, _uint64(c3) & _MASK)
    return _uint32(r0), _uint32(r1), _uint32(r2), _uint32(r3)


@_device_func
def _philox(seed, i):  # type: ignore[no-untyped-def]
    key, place = _uint64(seed), _uint64(i)
    return _philox4x32(key & _MASK, key >> 32, place & _MASK, place >> 32, 0, 0)


@_device_func
def _uniform(seed, i):  # type: ignore[no-untyped-def]
    r0, _, _, _ = _philox(seed, i)
    return _float32(r0 >> 8) * _float32(2.0**-24)


@_device_func
def _uniform64(seed, i):  # type: ignore[no-untyped-def]
    r0, r1, _, _ = _philox(seed, i)
    return (_float64(r0 >> 5) * 67108864.0 + _float64(r1 >> 6)) * 2.0**-53


@_device_func
def _normal(seed, i):  # type: ignore[no-untyped-def]
    r0, r1, _, _ = _philox(seed, i)
    # The first number is above 0, so that its logarithm is finite.
    u = (_float32(r0 >> 8) + _float32(1.0)) * _float32(2.0**-24)
    v = _float32(r1 >> 8) * _float32(2.0**-24)
    return _sqrt(_float32(-2.0) * _log(u)) * _cos(_float32(2.0 * _pi) * v)


def _known(in_kernels: _Any, outside: _Callable[..., _Any]) -> _Any:
    """A function that kernels and plain Python call, each by its own text."""
    in_kernels.__wrapped__ = outside
    in_kernels.__name__ = outside.__name__
    in_kernels.__doc__ = outside.__doc__
    return in_kernels


def _plain_philox4x32(k0: int, k1: int, c0: int, c1: int, c2: int, c3: int) -> tuple[int, int, int, int]:
    found: tuple[int, int, int, int] = _rounds(*(int(number) & _MASK for number in (k0, k1, c0, c1, c2, c3)))
    return found


def philox4x32(k0: int, k1: int, c0: int, c1: int, c2: int, c3: int) -> tuple[int, int, int, int]:
    """``philox4x32(k0, k1, c0, c1, c2, c3)``: Philox4x32-10 of a key and a counter of 32-bit
    numbers: four numbers, those of Random123.
    """
    return _plain_philox4x32(k0, k1, c0, c1, c2, c3)


def philox(seed: int, i: int) -> tuple[int, int, int, int]:
    """``philox(seed, i)``: the four random numbers of 32 bits of a seed and a place.

    It is Philox4x32-10: its key is the seed and its counter the place, both of 64 bits, the lower
    half first. Equal on every device, in Rust and here.

    >>> [hex(number) for number in usm.random.philox(0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    return _plain_philox4x32(int(seed), int(seed) >> 32, int(i), int(i) >> 32, 0, 0)


def uniform(seed: int, i: int) -> float:
    """``uniform(seed, i)``: a float32 from 0 up to 1, without 1: the upper 24 bits of the first
    number of :func:`philox`. Equal on every device.
    """
    return (_plain_philox4x32(int(seed), int(seed) >> 32, int(i), int(i) >> 32, 0, 0)[0] >> 8) * 2.0**-24


def uniform64(seed: int, i: int) -> float:
    """``uniform64(seed, i)``: a float64 from 0 up to 1, without 1, of 53 bits. Equal
    on every device.
    """
    r0, r1, _, _ = _plain_philox4x32(int(seed), int(seed) >> 32, int(i), int(i) >> 32, 0, 0)
    return ((r0 >> 5) * 67108864.0 + (r1 >> 6)) * 2.0**-53


def normal(seed: int, i: int) -> float:
    """``normal(seed, i)``: a float32 of the standard normal distribution, by Box and Muller from
    two numbers of :func:`philox`. Its last bits are those of the device's logarithm and cosine.
    """
    r0, r1, _, _ = _plain_philox4x32(int(seed), int(seed) >> 32, int(i), int(i) >> 32, 0, 0)
    return _sqrt(-2.0 * _log(((r0 >> 8) + 1) * 2.0**-24)) * _cos(2.0 * _pi * (r1 >> 8) * 2.0**-24)


philox4x32 = _known(_philox4x32, philox4x32)
philox = _known(_philox, philox)
uniform = _known(_uniform, uniform)
uniform64 = _known(_uniform64, uniform64)
normal = _known(_normal, normal)
