"""`usm.sort` and `usm.argsort`: by the digits of the elements' bits, the lowest first.

Elements move as unsigned integers of their size. A digit is taken from the *order* of such bits: an
unsigned integer that is less where the element comes first. Elements of equal order keep their
places: all NaNs are equal, and so are both zeros.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .. import _usm
from .._kernel import device_func, get_global_id, kernel, private
from .._usm import Array, DType, Event, empty
from ..errors import RequestError
from .operations import operation_of
from .run import CHUNK, GROUP, Run, bits_of, given_array, is_cpu, kind_of, local_bytes, overlap, result_array, scratch
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

    @kernel
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

    @kernel
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
        moving = moves_of_chunks(order, moves_keys, moves_places, number == 0)
        run.launch(moving, parts, bits, places, span, BITS * number, before, target, places_out)

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
        moving = moves_of_spans(order, bits_type, places_type, each, last, moves_keys, moves_places, number == 0)
        run.launch(moving, (parts * GROUP, GROUP), bits, places, span, BITS * number, before, totals, target, places_out)

    return launch


def sort(x: Any, *, out: Any = None, after: Event | Iterable[Event] = (), wait: bool = True) -> Array:
    """The elements in ascending order along the last dimension, as ``numpy.sort`` with
    ``kind="stable"``: NaNs are last, and equal elements keep their order. ``out`` may be the array.
    """
    x = given_array(x)
    x = _dense(x, "sort")
    result = result_array(out, x.shape, x.dtype, x.queue)
    if result.dtype != x.dtype:
        raise TypeError(f"out has elements of type {result.dtype.name}, {x.dtype.name} is needed")
    run = Run(x.queue, after)
    target = result if result.is_c_contiguous and not overlap(result, x) else empty(x.shape, x.dtype, queue=x.queue)
    if x.size:
        rows = x.reshape(x.size // x.shape[-1], x.shape[-1])
        targets = target.reshape(*rows.shape)
        for row in range(rows.shape[0]):
            _launch_sort(run, rows[row], targets[row], None)
        if target is not result:
            run.finish(None, True)
            _usm.copy(result, target)
    return run.finish(result, wait)


def argsort(x: Any, *, out: Any = None, after: Event | Iterable[Event] = (), wait: bool = True) -> Array:
    """The places that sort the elements along the last dimension, as ``numpy.argsort`` with
    ``kind="stable"``: int64.
    """
    x = _dense(given_array(x), "argsort")
    result = result_array(out, x.shape, _usm.int64, x.queue)
    if result.dtype.str[1:] != "i8":
        raise TypeError(f"out has elements of type {result.dtype.name}, int64 is needed")
    run = Run(x.queue, after)
    target = result if result.is_c_contiguous and not overlap(result, x) else empty(x.shape, _usm.int64, queue=x.queue)
    if x.size:
        rows = x.reshape(x.size // x.shape[-1], x.shape[-1])
        targets = target.reshape(*rows.shape)
        for row in range(rows.shape[0]):
            _launch_sort(run, rows[row], None, targets[row])
        if target is not result:
            run.finish(None, True)
            _usm.copy(result, target)
    return run.finish(result, wait)


def _dense(x, what):
    """The array with its elements in order, of at least one dimension."""
    if x.ndim == 0:
        raise RequestError(f"{what} of an array without dimensions")
    return x if x.is_c_contiguous else x.copy(queue=x.queue)
