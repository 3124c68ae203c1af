"""Axes of algorithms: an array as rows, each of which is one problem."""

from functools import lru_cache
from math import prod
from operator import index

from .. import _usm
from .._kernel import get_global_id, ordered_kernel
from .._usm import _nrt_window, empty
from ..errors import RequestError
from .run import CHUNK, are_apart, is_cpu, result_kind

#: The longest row that an item goes over alone, on a CPU and on other devices; of more rows than
#: `MANY` any row.
LONG = (2 * CHUNK, 1024)
MANY = 4096


def axis_of(axis, ndim):
    """One axis, counted from the front."""
    number = index(axis)
    if not -ndim <= number < ndim:
        raise RequestError(f"axis {number} of an array of {ndim} dimensions: {-ndim} to {ndim - 1} are possible")
    return number % ndim


def axes_of(axes, ndim):
    """The axes of a reduction in ascending order, counted from the front; None are all of them."""
    if axes is None:
        return tuple(range(ndim))
    numbers = [axis_of(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(numbers)) < len(numbers):
        raise RequestError(f"axis={tuple(axes)} names an axis twice")
    return tuple(sorted(numbers))


def without(shape, axes, keepdims):
    """The shape of a reduction's result."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def window(array, shape, strides):
    """A view of the array's memory with its elements' type."""
    dtype = array.dtype
    plain = f"<u{dtype.itemsize}" if dtype.name == "bfloat16" else dtype.str
    view = _nrt_window(array, array._address, list(shape), list(strides), plain, array.readonly)
    return view.view(dtype) if dtype.name == "bfloat16" else view


def rows_of(array, axes):
    """The array as rows of the elements along `axes`, the last of which varies fastest.

    A view of two dimensions, or None where no two strides reach all elements.
    """
    others = [axis for axis in range(array.ndim) if axis not in axes]
    row, column = (_one(array, group) for group in (others, axes))
    if row is None or column is None:
        return None
    return window(array, (row[0], column[0]), (row[1], column[1]))


def _one(array, axes):
    """Several dimensions as one: extent and stride; None where they have no common stride."""
    extent, stride = 1, array.itemsize
    for axis in reversed(axes):
        length, step = array.shape[axis], array.strides[axis]
        if length == 0:
            return 0, array.itemsize
        if length == 1:
            continue
        if extent == 1:
            stride = step
        elif step != extent * stride:
            return None
        extent *= length
    return extent, stride


def behind(array, axes):
    """A view of the array with `axes` behind the others."""
    order = [*(axis for axis in range(array.ndim) if axis not in axes), *axes]
    return window(array, [array.shape[axis] for axis in order], [array.strides[axis] for axis in order])


def given_rows(array, axes):
    """As `rows_of`, a copy where there is no view."""
    rows = rows_of(array, axes)
    if rows is not None:
        return rows
    copy = behind(array, axes).copy(queue=array.queue)
    columns = prod(array.shape[axis] for axis in axes)
    return copy.reshape(copy.size // max(columns, 1), columns)


def result_rows(result, axes, source):
    """The rows of a result, and None. Where they are no view of it, or hold elements of the rows
    `source` that other items still read, they are other memory, and :func:`put_back` takes the
    second value.
    """
    rows = rows_of(result, axes)
    if rows is not None and are_apart(rows, source):
        return rows, None
    to = behind(result, axes)
    spare = empty(to.shape, to.dtype, kind=result_kind([result]), queue=result.queue)
    columns = prod(result.shape[axis] for axis in axes)
    return spare.reshape(spare.size // max(columns, 1), columns), (to, spare)


def put_back(run, spare):
    """Copies a result that had no rows of its own."""
    if spare is not None:
        run.finish(None, True)
        _usm.copy(*spare)


def are_for_items(queue, shape):
    """Whether an item goes over a whole row."""
    rows, columns = shape
    return columns <= LONG[not is_cpu(queue)] or rows >= MANY


@lru_cache(256)
def reduction_of_rows(combine, dtype):
    """Each item combines the elements of a row."""

    @ordered_kernel
    def reduce_rows(x, out):
        row = get_global_id(0)
        total = dtype(x[row, 0])
        for k in range(1, x.shape[1]):
            total = combine(total, dtype(x[row, k]))
        out[row] = total

    return reduce_rows


@lru_cache(256)
def scan_of_rows(combine, dtype, exclusive, neutral):
    """Each item writes the running totals of a row."""

    @ordered_kernel
    def scan_rows(x, out):
        row = get_global_id(0)
        total = dtype(neutral)
        for k in range(x.shape[1]):
            value = dtype(x[row, k])
            if exclusive:
                out[row, k] = total
                total = combine(total, value)
            else:
                total = combine(total, value)
                out[row, k] = total

    return scan_rows


@lru_cache(64)
def places_of_rows(is_better):
    """Each item finds the first of the best elements of a row."""

    @ordered_kernel
    def best_of_rows(x, out):
        row = get_global_id(0)
        value, place = x[row, 0], 0
        for k in range(1, x.shape[1]):
            if is_better(x[row, k], value):
                value, place = x[row, k], k
        out[row] = place

    return best_of_rows
