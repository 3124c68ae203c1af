"""Axes of the ready algorithms beside NumPy, on every backend."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import usm
from effort import some
from test_algorithms import equal, given, values

SHAPES = [(5,), (3, 4), (7, 1), (2, 3, 5), (4, 0, 3), (2, 3, 2, 3)]
AXES = [None, 0, -1, -2, 2, (0, 1), (0, -1), (0, 1, 2), ()]


def shaped(dtype, shape):
    return values(dtype, int(np.prod(shape))).reshape(shape)


def layouts(x):
    """An array as it is, in Fortran's order, as every second element, and reversed."""
    yield x
    yield np.asfortranarray(x)
    wide = np.repeat(x, 2, axis=-1)
    wide[..., 1::2] = 0
    yield wide[..., ::2]
    yield x[..., ::-1]


def has(shape, axis):
    axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    return all(-len(shape) <= one < len(shape) for one in axes) and len({one % len(shape) for one in axes}) == len(axes)


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_along_axes_are_those_of_numpy(queue, shape):
    for dtype, names in [("i4", ("sum", "prod", "min", "max")), ("u1", ("sum", "max")), ("?", ("any", "all")), ("f8", ("min", "max"))]:
        for x in layouts(shaped(dtype, shape)) if dtype == "i4" else [shaped(dtype, shape)]:
            a = given(x, queue)
            for number, axis in enumerate(axis for axis in AXES if has(shape, axis)):
                for place, name in enumerate(names):
                    keepdims = (number + place) % 2 == 0
                    if name in ("min", "max") and x.size == 0:
                        continue
                    if axis == ():
                        # NumPy has each element as its own result, of the result's type.
                        expected = np.asarray(getattr(np, name)(x[None], axis=0))
                    else:
                        expected = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
                    equal(usm.reduce(a, name, axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_places_and_running_totals_along_an_axis(queue, shape):
    for dtype in ("i4", "f4", "u1"):
        for x in layouts(shaped(dtype, shape)) if dtype == "i4" else [shaped(dtype, shape)]:
            a = given(x, queue)
            for axis in range(-len(shape), len(shape)):
                for name in ("argmin", "argmax") if x.shape[axis] else ():
                    equal(getattr(usm, name)(a, axis=axis), np.asarray(getattr(np, name)(x, axis=axis)))
                    equal(getattr(usm, name)(a, axis=axis, keepdims=True), getattr(np, name)(x, axis=axis, keepdims=True))
                if dtype != "f4":
                    total = np.cumsum(x, axis=axis)
                    equal(usm.scan(a, axis=axis), total)
                    equal(usm.scan(a, axis=axis, exclusive=True), total - x)
                    equal(usm.scan(a, "max", axis=axis), np.maximum.accumulate(x, axis=axis))


@pytest.mark.parametrize("shape", SHAPES)
def test_sorts_along_an_axis(queue, shape):
    for dtype in ("i4", "f4", "u1"):
        for x in some([shaped(dtype, shape)], layouts(shaped(dtype, shape)) if dtype == "f4" else ()):
            a = given(x, queue)
            for axis in (None, *range(-len(shape), len(shape))):
                equal(usm.sort(a, axis=axis), np.sort(x, axis=axis, kind="stable"))
                equal(usm.argsort(a, axis=axis), np.argsort(x, axis=axis, kind="stable"))


def test_long_rows_and_many_rows(queue):
    """Rows that one item goes over, and those that have launches of their own."""
    for shape in [(3, 40_000), (2, 70_001), (5000, 9)]:
        x = shaped("i4", shape)
        for layout in (x, np.asfortranarray(x)):
            a = given(layout, queue)
            for axis in (0, 1):
                equal(usm.reduce(a, axis=axis), np.asarray(x.sum(axis=axis)))
                equal(usm.argmax(a, axis=axis), np.asarray(x.argmax(axis=axis)))
                equal(usm.scan(a, axis=axis), np.cumsum(x, axis=axis))


def test_results_in_memory_of_the_caller(queue):
    x = shaped("i4", (3, 4, 5))
    a = usm.asarray(x, queue=queue, copy=True)
    wide = usm.zeros((8, 10), "i8", queue=queue)
    out = wide[::2, ::2]
    assert usm.reduce(a, axis=0, out=out) is out
    equal(out, x.sum(axis=0))
    assert not usm.to_numpy(wide)[1::2].any()
    equal(usm.argmin(a, axis=0, out=out), x.argmin(axis=0))
    result = usm.zeros((5, 4, 3), "i8", queue=queue).T
    equal(usm.scan(a, axis=1, out=result), np.cumsum(x, axis=1))
    result = usm.zeros((5, 4, 3), "i4", queue=queue).T
    equal(usm.sort(a, axis=1, out=result), np.sort(x, axis=1))
    own = usm.asarray(x.copy(), queue=queue, copy=True)
    usm.sort(own, axis=0, out=own)
    equal(own, np.sort(x, axis=0))
    usm.scan(own, axis=2, out=own, dtype="i4")
    equal(own, np.cumsum(np.sort(x, axis=0), axis=2, dtype="i4"))


def test_results_may_share_memory_with_the_given_array(queue):
    x = shaped("i4", (6, 6))
    for name, call, expected in (
        ("reduce, row", lambda a: usm.reduce(a, axis=1, dtype="i4", out=a[1]), x.sum(axis=1, dtype="i4")),
        ("reduce, column", lambda a: usm.reduce(a, axis=0, dtype="i4", out=a[:, 1]), x.sum(axis=0, dtype="i4")),
        ("argmin", lambda a: usm.argmin(a, axis=1, out=a[1]), x.argmin(axis=1)),
        ("scan", lambda a: usm.scan(a, axis=1, dtype="i4", out=a.T), np.cumsum(x, axis=1, dtype="i4")),
        ("scan, shifted", lambda a: usm.scan(a[:-1], axis=1, dtype="i4", out=a[1:]), np.cumsum(x[:-1], axis=1, dtype="i4")),
    ):
        own = usm.asarray(x, queue=queue, copy=True)
        np.testing.assert_array_equal(usm.to_numpy(call(own)), expected, name)


def test_scans_begin_with_every_number(queue):
    x = shaped("u8", (3, 5))
    a = given(x, queue)
    equal(usm.scan(a, "min", axis=0), np.minimum.accumulate(x, axis=0))
    equal(usm.scan(a, "min", axis=1, exclusive=True)[:, 1:], np.minimum.accumulate(x, axis=1)[:, :-1])


@pytest.mark.parametrize("dtype", ["f2", "bfloat16"])
def test_axes_of_halves(queue, dtype):
    numbers = np.random.default_rng(3).integers(-8, 9, (6, 7)).astype("f4")
    x = numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    a = given(x, queue)
    for axis in (0, 1):
        for name in ("sum", "max"):
            found = usm.reduce(a, name, axis=axis).astype("f4")
            np.testing.assert_array_equal(usm.to_numpy(found), getattr(numbers, name)(axis=axis))
        np.testing.assert_array_equal(usm.to_numpy(usm.sort(a, axis=axis).astype("f4")), np.sort(numbers, axis=axis))
        np.testing.assert_array_equal(usm.to_numpy(usm.argmin(a, axis=axis)), numbers.argmin(axis=axis))


def test_wrong_axes_are_refused():
    x = np.ones((3, 4), "i4")
    for call, text in [
        (lambda: usm.reduce(x, axis=2), "axis 2 of an array of 2 dimensions: -2 to 1 are possible"),
        (lambda: usm.reduce(x, axis=(0, -2)), "names an axis twice"),
        (lambda: usm.sort(x, axis=-3), "axis -3 of an array of 2 dimensions"),
        (lambda: usm.scan(x, axis=2), "axis 2 of an array of 2 dimensions"),
        (lambda: usm.argmin(x, axis=5), "axis 5 of an array of 2 dimensions"),
        (lambda: usm.argmax(np.ones((3, 0)), axis=1), "argmax of an array without elements"),
        (lambda: usm.reduce(np.ones((3, 0)), "min", axis=1), "min of an array without elements"),
        (lambda: usm.reduce(x, axis=0, out=np.zeros(3, "i8")), r"out has the shape \(3,\), \(4,\) is needed"),
    ]:
        with pytest.raises(usm.RequestError, match=text):
            call()
    for call in (lambda: usm.reduce(x, axis=1.0), lambda: usm.argmin(x, axis=(0, 1)), lambda: usm.sort(x, axis="x")):
        with pytest.raises(TypeError):
            call()
    assert usm.argmin(np.ones((0, 3)), axis=1).shape == (0,)
    assert usm.reduce(np.ones((0, 3)), "min", axis=1).shape == (0,)


def test_on_the_cuda_driver(cuda_driver):
    """Rows on a device with many items: short ones, and one that groups go over."""
    program = (
        "import numpy as np; import usm, test_algorithms as t\n"
        "q = usm.Queue('cuda'); from usm._algorithms.axes import are_for_items\n"
        "assert are_for_items(q, (3, 40)) and not are_for_items(q, (2, 1100))\n"
        "for shape in ((3, 40), (2, 1100)):\n"
        "    x = t.values('i4', shape[0] * shape[1]).reshape(shape)\n"
        "    a = usm.asarray(x, queue=q)\n"
        "    for axis in (0, 1):\n"
        "        t.equal(usm.reduce(a, axis=axis), x.sum(axis=axis))\n"
        "        t.equal(usm.argmin(a, axis=axis), x.argmin(axis=axis))\n"
        "        t.equal(usm.scan(a, axis=axis), np.cumsum(x, axis=axis))\n"
        "x = t.values('u1', 51).reshape(17, 3); a = usm.asarray(x, queue=q)\n"
        "t.equal(usm.sort(a, axis=0), np.sort(x, axis=0))\n"
        "print('right')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr
