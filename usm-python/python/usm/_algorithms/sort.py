"""`usm.sort` and `usm.argsort`: by the digits of the elements' bits, the lowest first.

Elements move as unsigned integers of their size. A digit is taken from the *order* of such bits: an
unsigned integer that is less where the element comes first. Elements of equal order keep their
places: all NaNs are equal, and so are both zeros.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .. import _usm
from .._kernel import device_func, get_global_id, ordered_kernel, private
from .._usm import Array, DType, Event, empty
from ..errors import RequestError
from .axes import axis_of, behind, given_rows
from .operations import operation_of
from .run import CHUNK, GROUP, Run, as_array, bits_of, flat, is_cpu, kind_of, local_bytes, overlap, result_array, result_kind, scratch
from .scan import launch_scan
from .sort_groups import BITS, DIGITS, MOST_GROUPS, add_up_counts, counts_of_spans, elements_of_item, moves_of_spans

#: The bits of infinity.
_INFINITY = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF0000000000000}
#: The most chunks of a CPU.
_MOST_CHUNKS = 64


@lru_cache(32)
def order_of(kind, bits, infinity=0):
    """The function from an element's bits to its order. `infinity` are the bits of that number."""
    sign = 1 << bits - 1
    unsigned = getattr(_usm, f"uint{bits}")
    most = (1 << bits) - 1

    @device_func
    def of_unsigned(x):
        return x

    @device_func
    def of_signed(x):
        return unsigned(x ^ unsigned(sign))

    @device_func
    def of_float(x):
        size = x & unsigned(sign - 1)
        order = x | unsigned(sign)
        if x != size:
            order = ~x
        if size == 0:
            order = unsigned(sign)
        if size > unsigned(infinity):
            order = unsigned(most)
        return order

    return {"f": of_float, "i": of_signed}.get(kind, of_unsigned)


@lru_cache(64)
def counts_of_chunks(order):
    """Each item counts the digits of a chunk."""

    @ordered_kernel
    def count_digits(x, chunk, shift, counts):
        place = get_global_id(0)
        own = private.array(256, _usm.uint32)
        start = place * chunk
        for k in range(start, min(start + chunk, x.size)):
            own[int((order(x[k]) >> shift) & 255)] += 1
        for digit in range(256):
            counts[digit, place] = own[digit]

    return count_digits


@lru_cache(64)
def moves_of_chunks(order, moves_keys, moves_places, begins):
    """Each item moves the elements of a chunk, and their places, to where their digits belong."""

    @ordered_kernel
    def move_by_digit(x, places, chunk, shift, before, out, places_out):
        place = get_global_id(0)
        own = private.array(256, _usm.int64)
        for digit in range(256):
            own[digit] = before[digit, place]
        start = place * chunk
        for k in range(start, min(start + chunk, x.size)):
            bits = x[k]
            digit = int((order(bits) >> shift) & 255)
            target = own[digit]
            own[digit] = target + 1
            if moves_keys:
                if 0 <= target < out.size:
                    out[target] = bits
            if moves_places:
                if 0 <= target < places_out.size:
                    if begins:
                        places_out[target] = k
                    else:
                        places_out[target] = places[k]

    return move_by_digit


_SUM = operation_of("sum")


def _launch_sort(run, x, out, places_out):
    """Sorts the flat array `x` to `out`. With `places_out`, `out` is None, and it writes the
    elements' places there."""
    n, order = x.size, order_of(kind_of(x.dtype), 8 * x.itemsize, _INFINITY.get(x.dtype.name, 0))
    cpu, bits = is_cpu(run.queue), bits_of(x)
    passes = 8 * x.itemsize // BITS
    places_type = _usm.uint32 if n < 1 << 32 else _usm.int64
    targets = [None] * passes
    # The last pass writes to the result, and those before it to spare memory in turns.
    spares = [scratch(n, bits.dtype, run.queue) for _ in range(min(passes - 1, 1 + (out is None)))]
    for number in range(passes - 1):
        behind = passes - 2 - number
        targets[number] = spares[0] if behind % 2 == 0 else bits_of(out) if out is not None else spares[1]
    targets[-1] = bits if out is None else bits_of(out)
    no_places = scratch(0, _usm.uint32, run.queue)
    places_to = [no_places] * passes
    if places_out is not None:
        spare_places = [scratch(n, places_type, run.queue) for _ in range(min(passes - 1, 2))]
        places_to = [*(spare_places[number % 2] for number in range(passes - 1)), places_out]
    launch = (_pass_of_chunks if cpu else _pass_of_groups)(run, x, order, places_out is not None, places_type)
    places = no_places
    for number in range(passes):
        launch(bits, places, number, targets[number], places_to[number], number < passes - 1 or out is not None)
        bits, places = targets[number], places_to[number]


def _pass_of_chunks(run, x, order, moves_places, places_type):
    """The launches of a pass on a CPU."""
    parts = min(_MOST_CHUNKS, -(-x.size // CHUNK))
    span = -(-x.size // parts)
    counts = empty((DIGITS, parts), _usm.uint32, queue=run.queue)
    before = empty((DIGITS, parts), _usm.int64, queue=run.queue)

    def launch(bits, places, number, target, places_out, moves_keys):
        run.launch(counts_of_chunks(order), parts, bits, span, BITS * number, counts)
        launch_scan(run, _SUM, counts.reshape(counts.size), _usm.int64, 0, True, before.reshape(before.size))
        move_kernel = moves_of_chunks(order, moves_keys, moves_places, number == 0)
        run.launch(move_kernel, parts, bits, places, span, BITS * number, before, target, places_out)

    return launch


def _pass_of_groups(run, x, order, moves_places, places_type):
    """The launches of a pass in groups."""
    places_bytes = DType(places_type).itemsize if moves_places else 0
    each = elements_of_item(x.itemsize, places_bytes, local_bytes(run.queue))
    tile, n = each * GROUP, x.size
    span = -(-n // (tile * MOST_GROUPS)) * tile
    parts = -(-n // span)
    numbers = scratch(2 * DIGITS * parts + DIGITS, places_type, run.queue)
    counts, before = (numbers[start : start + DIGITS * parts].reshape(DIGITS, parts) for start in (0, DIGITS * parts))
    totals = numbers[2 * DIGITS * parts :]
    last = {"i": (1 << 8 * x.itemsize - 1) - 1}.get(x.dtype.kind, (1 << 8 * x.itemsize) - 1)
    bits_type = bits_of(x).dtype

    def launch(bits, places, number, target, places_out, moves_keys):
        run.launch(counts_of_spans(order), (parts * GROUP, GROUP), bits, span, BITS * number, counts)
        run.launch(add_up_counts, (DIGITS * GROUP, GROUP), counts, before, totals)
        move_kernel = moves_of_spans(order, bits_type, places_type, each, last, moves_keys, moves_places, number == 0)
        run.launch(move_kernel, (parts * GROUP, GROUP), bits, places, span, BITS * number, before, totals, target, places_out)

    return launch


def sort(x: Any, *, out: Any = None, axis: int | None = -1, after: Event | Iterable[Event] = (), wait: bool = True) -> Array:
    """The elements in ascending order along an axis, the last one without ``axis=``, as
    ``numpy.sort`` with ``kind="stable"``: NaNs are last, and equal elements keep their order. With
    ``axis=None`` all elements, in one dimension. ``out`` may be the array.
    """
    x = as_array(x)
    return _sort_rows(x, x.dtype, "sort", out, axis, after, wait)


def argsort(x: Any, *, out: Any = None, axis: int | None = -1, after: Event | Iterable[Event] = (), wait: bool = True) -> Array:
    """The places that sort the elements along an axis, as ``numpy.argsort`` with ``kind="stable"``:
    int64. The axis is that of :func:`usm.sort`.
    """
    return _sort_rows(as_array(x), DType(_usm.int64), "argsort", out, axis, after, wait)


def _sort_rows(x, dtype, what, out, axis, after, wait):
    """Sorts along an axis; the results are elements, or places of int64."""
    if axis is None:
        x, axis = flat(x), -1
    if x.ndim == 0:
        raise RequestError(f"{what} of an array without dimensions")
    axes = (axis_of(axis, x.ndim),)
    result = result_array(out, x.shape, dtype, [x])
    if result.dtype != dtype:
        raise TypeError(f"out has elements of type {result.dtype.name}, {dtype.name} is needed")
    run = Run(x.queue, after)
    if not x.size:
        return run.finish(result, wait)
    rows = given_rows(x, axes)
    is_last = axes[0] == x.ndim - 1
    if not rows.is_c_contiguous:
        rows = rows.copy(queue=x.queue)
    if is_last and result.is_c_contiguous and not overlap(result, x):
        target, targets = result, result.reshape(*rows.shape)
    else:
        targets = empty(rows.shape, dtype, kind=result_kind([x]), queue=x.queue)
        target = None
    for row in range(rows.shape[0]):
        elements, places = (None, targets[row]) if what == "argsort" else (targets[row], None)
        _launch_sort(run, rows[row], elements, places)
    if target is None:
        run.finish(None, True)
        to = behind(result, axes)
        _usm.copy(to, targets.reshape(*to.shape))
    return run.finish(result, wait)
