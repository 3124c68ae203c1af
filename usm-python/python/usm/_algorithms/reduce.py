"""`usm.reduce`, `usm.argmin` and `usm.argmax`: one number of many."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .. import _usm
from .._kernel import CLK_LOCAL_MEM_FENCE, barrier, device_func, get_global_id, get_group_id, get_local_id, local, ordered_kernel, private
from .._usm import Array, DType, Event, empty
from ..errors import RequestError
from .axes import are_for_items, axes_of, axis_of, given_rows, places_of_rows, put_back, reduction_of_rows, result_rows, without
from .operations import operation_of
from .run import CHUNK, GROUP, MOST_GROUPS, Run, as_array, flat, is_cpu, result_array, result_kind, scratch, work_type

#: Numbers that an item of a CPU adds up side by side, so that its vectors hold them.
LANES = 16
#: Elements that an item of a group loads at a time.
EACH = 8


@lru_cache(256)
def of_groups(combine, dtype, group):
    """Each group combines the elements of its span, then its items' numbers by a tree."""
    levels = group.bit_length() - 1

    @ordered_kernel
    def reduce_groups(x, span, out):
        shared, mine = local.array(group, dtype), private.array(EACH, dtype)
        item, place = get_local_id(0), get_group_id(0)
        start = place * span
        stop = min(start + span, x.size)
        count = stop - start
        if item < count and start + item < x.size:
            total = dtype(x[start + item])
            for k in range(start + item + group, stop, EACH * group):
                # All loads before the first number is needed.
                for j in range(EACH):
                    if k + j * group < stop and k + j * group < x.size:
                        mine[j] = dtype(x[k + j * group])
                for j in range(EACH):
                    if k + j * group < stop:
                        total = combine(total, mine[j])
            shared[item] = total
        barrier(CLK_LOCAL_MEM_FENCE)
        for level in range(levels):
            half = group >> level + 1
            if item < half and item + half < count and item + half < group:
                shared[item] = combine(shared[item], shared[item + half])
            barrier(CLK_LOCAL_MEM_FENCE)
        if item == 0:
            out[place] = shared[0]

    return reduce_groups


def span_of(n):
    """Elements of a group, whose items load `EACH` at a time."""
    tile = EACH * GROUP
    return -(-n // (tile * MOST_GROUPS)) * tile


@lru_cache(256)
def of_chunks(combine, dtype, chunk):
    """Each item combines the elements of a whole chunk, several side by side."""

    @ordered_kernel
    def reduce_chunks(x, out):
        place = get_global_id(0)
        lanes = private.array(LANES, dtype)
        for j in range(LANES):
            lanes[j] = dtype(x[place * chunk + j])
        for row in range(1, chunk // LANES):
            for j in range(LANES):
                lanes[j] = combine(lanes[j], dtype(x[place * chunk + row * LANES + j]))
        total = lanes[0]
        for j in range(1, LANES):
            total = combine(total, lanes[j])
        out[place] = total

    return reduce_chunks


@lru_cache(256)
def of_rest(combine, dtype):
    """One item combines the elements from a place on."""

    @ordered_kernel
    def reduce_rest(x, start, out, place):
        if get_global_id(0) == 0:
            total = dtype(x[start])
            for k in range(start + 1, x.size):
                total = combine(total, dtype(x[k]))
            out[place] = total

    return reduce_rest


def launch_reduction(run, operation, x, dtype, out):
    """Launches a reduction of a flat array, which has elements, to `out[0]`, or to a new array.

    Returns the array of the result.
    """
    combine, result_dtype, dtype = operation.combine, dtype, work_type(dtype)
    kind = result_kind([x])
    if out is None and result_dtype != dtype:
        out = empty(1, result_dtype, kind=kind, queue=run.queue)
    if not is_cpu(run.queue):
        reduce_groups, span = of_groups(combine, dtype, GROUP), span_of(x.size)
        groups = -(-x.size // span)
        if groups > 1:
            partial = scratch(groups, dtype, run.queue)
            run.launch(reduce_groups, (groups * GROUP, GROUP), x, span, partial)
            x = partial
        out = empty(1, dtype, kind=kind, queue=run.queue) if out is None else out
        run.launch(reduce_groups, (GROUP, GROUP), x, span, out)
        return out
    out = empty(1, dtype, kind=kind, queue=run.queue) if out is None else out
    while x.size >= 2 * CHUNK:
        chunks, rest = divmod(x.size, CHUNK)
        partial = empty(chunks + (rest > 0), dtype, queue=run.queue)
        run.launch(of_chunks(combine, dtype, CHUNK), chunks, x, partial)
        if rest:
            run.launch(of_rest(combine, dtype), 1, x, chunks * CHUNK, partial, chunks)
        x = partial
    run.launch(of_rest(combine, dtype), 1, x, 0, out, 0)
    return out


def reduce(
    x: Any,
    operation: str = "sum",
    *,
    dtype: Any = None,
    out: Any = None,
    identity: complex | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array:
    """One number of all elements: ``usm.reduce(x, "sum")``, an array without dimensions.

    With ``axis=0`` or ``axis=(0, -1)`` one of the elements along an axis, or several; ``keepdims``
    leaves these axes with length 1.

    The operation is ``"sum"``, ``"prod"``, ``"min"``, ``"max"``, ``"any"``, ``"all"``, or an
    expression of two names such as ``"a * b % 7"``, whose order and grouping may not matter. Sums
    and products have NumPy's types, and ``dtype=`` another one; complex numbers have sums, products
    and expressions. A NaN makes the least and the greatest number NaN. Results of integers are
    equal everywhere; those of floats add in groups: the error is below that of ``n / 2**18 + 64``
    roundings on a GPU, and of ``1100`` for each 16,384-fold of the size on a CPU. Along some axes
    of an array with others, the elements of a row are added in order where a row has at most 32,768
    of them on a CPU and 1,024 on other devices, or where there are 4,096 rows.

    Raises :class:`usm.RequestError` for the least or greatest of no elements, and for an axis that
    the array does not have or that is named twice.
    """
    operation = operation_of(operation)
    x = as_array(x, takes_complex=operation.takes_complex)
    dtype = operation.result_type(x.dtype) if dtype is None else DType(dtype)
    axes = axes_of(axis, x.ndim)
    shape = without(x.shape, axes, keepdims)
    run = Run(x.queue, after)
    if x.size == 0:
        result = result_array(out, shape, dtype, [x])
        if result.size == 0:
            return result
        empty_value = operation.identity_of(dtype) if identity is None else identity
        if empty_value is None:
            raise RequestError(f"{operation.name} of an array without elements has no result: pass identity=")
        result.fill(empty_value)
        return result
    if len(axes) < x.ndim:
        result = result_array(out, shape, dtype, [x])
        _reduce_rows(run, operation, given_rows(x, axes), dtype, result)
        return run.finish(result, wait)
    if shape:
        result = result_array(out, shape, dtype, [x])
        launch_reduction(run, operation, flat(x), dtype, result.reshape(1))
        return run.finish(result, wait)
    if out is not None:
        out = result_array(out, (), dtype, [x])
    result = launch_reduction(run, operation, flat(x), dtype, None if out is None else out.reshape(1))
    return run.finish(result.reshape(()) if out is None else out, wait)


def _reduce_rows(run, operation, rows, dtype, result):
    """Reduces each row of an array of two dimensions."""
    out, spare = result_rows(result, (), rows)
    out = out[:, 0]
    if are_for_items(run.queue, rows.shape):
        run.launch(reduction_of_rows(operation.combine, work_type(dtype)), rows.shape[0], rows, out)
    else:
        for row in range(rows.shape[0]):
            launch_reduction(run, operation, rows[row], dtype, out[row : row + 1])
    put_back(run, spare)


# The place of the least or greatest element.


@device_func
def is_less(a, b):
    return a < b or (a != a and b == b)


@device_func
def is_greater(a, b):
    return a > b or (a != a and b == b)


@lru_cache(256)
def places_of_groups(is_better, dtype, group, begins):
    """Each group finds the best element of its turns, and of equal ones the first.

    If it `begins`, an element's place is its index; otherwise `places` has it.
    """
    levels = group.bit_length() - 1

    @ordered_kernel
    def best_of_groups(x, span, places, values, out):
        best, where = local.array(group, dtype), local.array(group, _usm.int64)
        mine = private.array(EACH, dtype)
        item, place = get_local_id(0), get_group_id(0)
        start = place * span
        stop = min(start + span, x.size)
        count, first = stop - start, start + item
        if item < count and first < x.size:
            value, index = x[first], first
            if begins:
                for k in range(first + group, stop, EACH * group):
                    for j in range(EACH):
                        if k + j * group < stop and k + j * group < x.size:
                            mine[j] = x[k + j * group]
                    for j in range(EACH):
                        if k + j * group < stop and is_better(mine[j], value):
                            value, index = mine[j], k + j * group
            else:
                if first < places.size:
                    index = places[first]
                for k in range(first + group, min(stop, places.size), group):
                    if k < x.size:
                        other, at = x[k], places[k]
                        if is_better(other, value) or (at < index and not is_better(value, other)):
                            value, index = other, at
            best[item], where[item] = value, index
        barrier(CLK_LOCAL_MEM_FENCE)
        for level in range(levels):
            half = group >> level + 1
            if item < half and item + half < count and item + half < group:
                better = is_better(best[item + half], best[item])
                if better or (where[item + half] < where[item] and not is_better(best[item], best[item + half])):
                    best[item], where[item] = best[item + half], where[item + half]
            barrier(CLK_LOCAL_MEM_FENCE)
        if item == 0:
            if place < values.size:
                values[place] = best[0]
            out[place] = where[0]

    return best_of_groups


@lru_cache(256)
def places_of_chunks(is_better, chunk):
    """Each item finds the first of the best elements of a chunk."""

    @ordered_kernel
    def best_of_chunks(x, places, values, out):
        place = get_global_id(0)
        start = place * chunk
        stop = min(start + chunk, x.size)
        value, index = x[start], start
        for k in range(start + 1, stop):
            if is_better(x[k], value):
                value, index = x[k], k
        if place < values.size:
            values[place] = value
        if 0 <= index < places.size:
            index = places[index]
        out[place] = index

    return best_of_chunks


def _place_of_best(x, is_better, name, out, axis, keepdims, after, wait):
    x = as_array(x)
    axes = axes_of(None if axis is None else axis_of(axis, x.ndim), x.ndim)
    if x.size == 0 and (axis is None or x.shape[axes[0]] == 0):
        raise RequestError(f"{name} of an array without elements has no result")
    result = result_array(out, without(x.shape, axes, keepdims), _usm.int64, [x])
    run = Run(x.queue, after)
    if axis is None or x.ndim == 1:
        _launch_place(run, is_better, flat(x), result.reshape(1))
    elif x.size:
        rows = given_rows(x, axes)
        out_rows, spare = result_rows(result, (), rows)
        out_rows = out_rows[:, 0]
        if are_for_items(run.queue, rows.shape):
            run.launch(places_of_rows(is_better), rows.shape[0], rows, out_rows)
        else:
            for row in range(rows.shape[0]):
                _launch_place(run, is_better, rows[row], out_rows[row : row + 1])
        put_back(run, spare)
    return run.finish(result, wait)


def _launch_place(run, is_better, x, result):
    """Launches the search in a flat array, which has elements, to `result[0]`."""
    queue = run.queue
    dtype, places, cpu, begins = work_type(x.dtype), None, is_cpu(queue), True
    while True:
        span = CHUNK if cpu else span_of(x.size)
        count = -(-x.size // span)
        last = count == 1
        if begins or not last:
            rows = 0 if last else count
            values, positions = scratch(rows, dtype, queue), scratch(rows, _usm.int64, queue)
        if begins:
            places = positions[:0]
        if last:
            values, positions = values[:0], result
        if cpu:
            run.launch(places_of_chunks(is_better, CHUNK), count, x, places, values, positions)
        else:
            best_of_groups = places_of_groups(is_better, dtype, GROUP, begins)
            run.launch(best_of_groups, (count * GROUP, GROUP), x, span, places, values, positions)
        if last:
            return
        x, places, begins = values, positions, False


def argmin(
    x: Any,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array:
    """The place of the least element, of equal ones the first; a NaN is less. As NumPy's: without
    ``axis`` the place among all elements in order, with it the places along the axis.
    """
    return _place_of_best(x, is_less, "argmin", out, axis, keepdims, after, wait)


def argmax(
    x: Any,
    *,
    out: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array:
    """The place of the greatest element, as :func:`usm.argmin`; a NaN is greater."""
    return _place_of_best(x, is_greater, "argmax", out, axis, keepdims, after, wait)
