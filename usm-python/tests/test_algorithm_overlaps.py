"""Results of ready algorithms in memory that their arguments share, beside NumPy."""

import numpy as np
import pytest

import usm

N = 1009


def numbers(queue, kind="f4"):
    """The same numbers as an array of usm and of NumPy."""
    x = np.random.default_rng(3).integers(0, 100, (2, N)).astype(kind)
    return usm.asarray(x.copy(), queue=queue), x


VIEWS = {
    "itself": (lambda a: a, lambda a: a),
    "one behind": (lambda a: a[:, 1:], lambda a: a[:, :-1]),
    "one before": (lambda a: a[:, :-1], lambda a: a[:, 1:]),
    "backwards": (lambda a: a, lambda a: a[:, ::-1]),
    "a row of all": (lambda a: a, lambda a: a[:1]),
    "columns between": (lambda a: a[:, 0:1008:2], lambda a: a[:, 1::2]),
}


@pytest.mark.parametrize("views", VIEWS)
def test_expressions_read_all_before_they_write(queue, views):
    to, of = VIEWS[views]
    f = usm.elementwise("3 * x + y")
    for _ in range(2):  # The second call knows the kernel.
        a, x = numbers(queue)
        y = np.arange(to(x).size, dtype="f4").reshape(to(x).shape)
        expected = x.copy()
        to(expected)[...] = 3 * of(x) + y
        result = f(of(a), usm.asarray(y, queue=queue), out=to(a))
        assert result.shape == to(a).shape
        np.testing.assert_array_equal(usm.to_numpy(a), expected)


def test_flat_expressions_read_all_before_they_write(queue):
    a, x = numbers(queue)
    a, x = a.reshape(2 * N), x.reshape(2 * N)
    f = usm.elementwise("(x + y) / 2")
    for _ in range(3):
        f(a[:-1], a[1:], out=a[1:], wait=False)
        x[1:] = (x[:-1] + x[1:]) / 2
        np.testing.assert_array_equal(usm.to_numpy(a), x)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("step", [1, -1])
def test_scans_read_all_before_they_write(queue, step, exclusive):
    a, x = numbers(queue, "i8")
    a, x = a.reshape(2 * N), x.reshape(2 * N)
    ours, theirs = (a[:-1], a[1:]) if step == 1 else (a[::-1], a)
    source = x[:-1] if step == 1 else x[::-1]
    sums = np.cumsum(source)
    if exclusive:
        sums = np.concatenate([[0], sums[:-1]])
    usm.scan(ours, exclusive=exclusive, out=theirs)
    np.testing.assert_array_equal(usm.to_numpy(theirs), sums)


def test_counts_read_all_before_they_write(queue):
    a, x = numbers(queue, "i8")
    a, x = a.reshape(2 * N), x.reshape(2 * N).copy()
    usm.bincount(a, length=100, out=a[7:107])
    np.testing.assert_array_equal(usm.to_numpy(a[7:107]), np.bincount(x, minlength=100))
    a, x = numbers(queue, "i8")
    a, x = a.reshape(2 * N), x.reshape(2 * N).copy()
    usm.histogram(a, bins=10, out=a[3:13])
    np.testing.assert_array_equal(usm.to_numpy(a[3:13]), np.histogram(x, 10)[0])


def test_reductions_read_all_before_they_write(queue):
    for name, theirs in (("sum", np.sum), ("max", np.max)):
        for axis in (0, 1):
            a, x = numbers(queue, "i8")
            out = a[0] if axis == 0 else a[1, 3:5]
            usm.reduce(a, name, axis=axis, out=out)
            np.testing.assert_array_equal(usm.to_numpy(out), theirs(x, axis=axis))
