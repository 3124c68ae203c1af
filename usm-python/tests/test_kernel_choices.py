"""`where`, `clip`, `sign` and `square` of NumPy in kernels give what NumPy gives."""

import numpy as np
import pytest

import usm


@usm.kernel
def choose(x, y, o):
    i = usm.get_global_id(0)
    o[i] = np.where(x[i] < y[i], x[i], y[i] * 2)


@usm.kernel
def clip(x, y, o):
    i = usm.get_global_id(0)
    o[i] = np.clip(x[i], -2, y[i])


@usm.kernel
def sign(x, y, o):
    i = usm.get_global_id(0)
    o[i] = np.sign(x[i])


@usm.kernel
def square(x, y, o):
    i = usm.get_global_id(0)
    o[i] = np.square(x[i])


@usm.kernel
def clip_unsigned(x, y, o):
    i = usm.get_global_id(0)
    o[i] = np.clip(x[i], 3, y[i])


WANTED = {
    choose: lambda x, y: np.where(x < y, x, y * 2),
    clip: lambda x, y: np.clip(x, -2, y),
    sign: lambda x, y: np.sign(x),
    square: lambda x, y: np.square(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "uint64"])
def test_choices_are_numpys(dtype):
    values = [0.0, -0.0, 1.5, -1.5, 2.0, -7.0, 100.0, np.nan, np.inf, -np.inf]
    if not dtype.startswith("float"):
        values = [0, 1, 2, 3, 100, 11] + ([-1, -7, -100] if dtype[0] == "i" else [])
    x = np.array([one for one in values for _ in values]).astype(dtype)
    y = np.array(values * len(values)).astype(dtype)
    for kernel, wanted in WANTED.items():
        if kernel is clip and dtype[0] == "u":
            kernel, wanted = clip_unsigned, lambda x, y: np.clip(x, 3, y)
        found = np.zeros_like(x)
        with np.errstate(all="ignore"):
            kernel[x.size](x, y, found)
            np.testing.assert_array_equal(found, wanted(x, y), err_msg=f"{kernel} of {dtype}")
        assert kernel.check[x.size](x, y, found) is None


def test_wrong_calls_are_refused_with_their_place():
    @usm.kernel
    def two(o):
        o[0] = np.where(o[0] > 1, 2.0)

    @usm.kernel
    def truth(o):
        o[0] = np.sign(o[0] > 1)

    for kernel, said in ((two, "has 3 arguments, 2 are given"), (truth, "`sign` of a bool")):
        with pytest.raises(usm.KernelError, match=f"^{__file__}:\\d+:\\d+: .*{said}"):
            kernel[1](np.zeros(1))
