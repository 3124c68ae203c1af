"""`usm.sort` and `usm.argsort`: by the digits of the elements' bits, the lowest first.

Elements move as unsigned integers of their size. A digit is taken from the *order* of such bits: an
unsigned integer that is less where the element comes first. Elements of equal order keep their
places: all NaNs are equal, and so are both zeros.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .. import _usm
from .._kernel import CLK_LOCAL_MEM_FENCE, atomic, barrier, device_func, get_global_id, get_group_id, get_local_id, kernel, local, private
from .._usm import Array, Event, empty
from ..errors import RequestError
from .operations import operation_of
from .run import CHUNK, GROUP, Run, bits_of, given_array, is_cpu, result_array
from .scan import launch_scan

#: Bits of a digit. An item of a CPU has 256 counters of its own, a group 16 for each item.
_CPU_BITS, _BITS = 8, 4
_DIGITS = 1 << _BITS
#: Copies of a group's counters, so that neighbours count side by side.
_COPIES = 32
#: The most groups: with one more, the sums of their counters take two launches.
_MOST_GROUPS = 512
#: The most chunks of a CPU.
_MOST_CHUNKS = 64


@lru_cache(32)
def order_of(kind, bits):
    """The function from an element's bits to its order."""
    sign = 1 << bits - 1
    unsigned = getattr(_usm, f"uint{bits}")
    most = (1 << bits) - 1
    infinity = {32: 0x7F800000, 64: 0x7FF0000000000000}.get(bits, 0)

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
def moves_of_chunks(order, moves_places, begins):
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
            if 0 <= target < out.size:
                out[target] = bits
            if moves_places:
                if 0 <= target < places_out.size:
                    if begins:
                        places_out[target] = k
                    else:
                        places_out[target] = places[k]

    return move_by_digit


@lru_cache(64)
def counts_of_spans(order, group):
    """Each group counts the digits of its span."""

    @kernel
    def count_digits(x, span, shift, counts):
        seen = local.array(_DIGITS * _COPIES, _usm.uint32)
        item, place = get_local_id(0), get_group_id(0)
        for k in range(item, _DIGITS * _COPIES, group):
            seen[k] = 0
        barrier(CLK_LOCAL_MEM_FENCE)
        start = place * span
        copy = item & (_COPIES - 1)
        for k in range(start + item, min(start + span, x.size), group):
            digit = int((order(x[k]) >> shift) & (_DIGITS - 1))
            atomic.add(seen, digit * _COPIES + copy, 1)
        barrier(CLK_LOCAL_MEM_FENCE)
        if item < _DIGITS:
            total = _usm.uint32(0)
            for k in range(_COPIES):
                total += seen[item * _COPIES + k]
            counts[item, place] = total

    return count_digits


@lru_cache(64)
def moves_of_spans(order, bits_type, group, each, moves_places, begins):
    """Each group moves the elements of its span, a tile of `each` elements an item at a time.

    A tile is sorted by the digit in local memory first, so that neighbours are written together.
    """
    tile = group * each
    # A gap after each 32 elements: neighbours of a stride lie in different banks.
    room = tile + tile // 32
    cells = _DIGITS * group
    cells_room = cells + cells // 32
    share = cells // group
    levels = (group.bit_length() - 1) // 2

    @kernel
    def move_by_digit(x, places, span, shift, before, out, places_out):
        given, ranked = local.array(room, bits_type), local.array(room, bits_type)
        ranks, counters = local.array(room, _usm.uint16), local.array(cells_room, _usm.uint16)
        totals, others = local.array(group, _usm.uint32), local.array(group, _usm.uint32)
        target = local.array(_DIGITS, _usm.int64)
        route = private.array(1, _usm.int64)
        item, place = get_local_id(0), get_group_id(0)
        start = place * span
        stop = min(start + span, x.size)
        if item < _DIGITS:
            target[item] = before[item, place]
        for base in range(start, stop, tile):
            count = min(stop - base, tile)
            for j in range(each):
                at = j * group + item
                if at < count and base + at < x.size:
                    given[at + at // 32] = x[base + at]
            for j in range(share):
                at = j * group + item
                counters[at + at // 32] = 0
            barrier(CLK_LOCAL_MEM_FENCE)
            # Each item ranks its own elements in order.
            for j in range(each):
                at = item * each + j
                if at < count:
                    cell = int((order(given[at + at // 32]) >> shift) & (_DIGITS - 1)) * group + item
                    rank = counters[cell + cell // 32]
                    ranks[at + at // 32] = rank
                    counters[cell + cell // 32] = rank + 1
            barrier(CLK_LOCAL_MEM_FENCE)
            # The cells, digit by digit and in each by items, become the sums of those before.
            total = _usm.uint32(0)
            for j in range(share):
                at = item * share + j
                total += counters[at + at // 32]
            totals[item] = total
            barrier(CLK_LOCAL_MEM_FENCE)
            for level in range(levels):
                step = 1 << 2 * level
                here = totals[item]
                if 0 <= item - step:
                    here += totals[item - step]
                others[item] = here
                barrier(CLK_LOCAL_MEM_FENCE)
                step *= 2
                if 0 <= item - step:
                    here += others[item - step]
                totals[item] = here
                barrier(CLK_LOCAL_MEM_FENCE)
            running = _usm.uint32(0)
            if item > 0:
                running = totals[item - 1]
            for j in range(share):
                at = item * share + j
                number = counters[at + at // 32]
                counters[at + at // 32] = running
                running += number
            barrier(CLK_LOCAL_MEM_FENCE)
            for j in range(each):
                own = item * each + j
                if own < count:
                    bits = given[own + own // 32]
                    digit = int((order(bits) >> shift) & (_DIGITS - 1))
                    cell, first = digit * group + item, digit * group
                    at = counters[cell + cell // 32] + ranks[own + own // 32]
                    if at < tile:
                        ranked[at + at // 32] = bits
                    if moves_places:
                        route[0] = target[digit] + (int(at) - counters[first + first // 32])
                        to = route[0]
                        if 0 <= to < places_out.size:
                            if begins:
                                places_out[to] = base + own
                            elif base + own < places.size:
                                places_out[to] = places[base + own]
            barrier(CLK_LOCAL_MEM_FENCE)
            for j in range(each):
                at = j * group + item
                if at < count:
                    bits = ranked[at + at // 32]
                    digit = int((order(bits) >> shift) & (_DIGITS - 1))
                    first = digit * group
                    # Read back, so that the proof of the bounds takes it for any number.
                    route[0] = target[digit] + (at - counters[first + first // 32])
                    to = route[0]
                    if 0 <= to < out.size:
                        out[to] = bits
            barrier(CLK_LOCAL_MEM_FENCE)
            if item < _DIGITS:
                end, first = count, item * group
                if item < _DIGITS - 1:
                    after = first + group
                    end = int(counters[after + after // 32])
                target[item] += end - counters[first + first // 32]
            barrier(CLK_LOCAL_MEM_FENCE)

    return move_by_digit


_SUM = operation_of("sum")


def _launch_sort(run, x, out, places_out):
    """Sorts flat bits `x` to `out`; with `places_out` it writes the elements' places too."""
    queue, n, bits_type = run.queue, x.size, x.dtype
    cpu = is_cpu(queue)
    order, x, out = order_of(x.dtype.kind, 8 * x.itemsize), bits_of(x), bits_of(out)
    moves_places = places_out is not None
    bits = _CPU_BITS if cpu else _BITS
    if cpu:
        parts = min(_MOST_CHUNKS, -(-n // CHUNK))
        span, sizes = -(-n // parts), parts
    else:
        each = 8 if x.itemsize < 8 else 4
        tile = each * GROUP
        span = -(-n // (tile * _MOST_GROUPS)) * tile
        parts = -(-n // span)
        sizes = (parts * GROUP, GROUP)
    passes = 8 * bits_type.itemsize // bits
    counts = empty((1 << bits, parts), _usm.uint32, queue=queue)
    before = empty((1 << bits, parts), _usm.int64, queue=queue)
    spare = empty(n, x.dtype, queue=queue) if passes > 1 else out
    places_type = _usm.uint32 if n < 1 << 32 else _usm.int64
    spare_places = [empty(n, places_type, queue=queue) for _ in range(2)] if moves_places and passes > 1 else []
    no_places = empty(0, _usm.uint32, queue=queue)
    source, places = x, no_places
    for number in range(passes):
        target = (out, spare)[(passes - 1 - number) % 2]
        last, begins = number == passes - 1, number == 0
        to = no_places
        if moves_places:
            to = places_out if last else spare_places[number % 2]
        shift = bits * number
        counting = counts_of_chunks(order) if cpu else counts_of_spans(order, GROUP)
        run.launch(counting, sizes, source, span, shift, counts)
        launch_scan(run, _SUM, counts.reshape(counts.size), _usm.int64, 0, True, before.reshape(before.size))
        if cpu:
            moving = moves_of_chunks(order, moves_places, begins)
        else:
            moving = moves_of_spans(order, x.dtype, GROUP, each, moves_places, begins)
        run.launch(moving, sizes, source, places, span, shift, before, target, to)
        source, places = target, to


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
    target = result if result.is_c_contiguous and result.pointer != x.pointer else empty(x.shape, x.dtype, queue=x.queue)
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
    target = result if result.is_c_contiguous else empty(x.shape, _usm.int64, queue=x.queue)
    if x.size:
        rows = x.reshape(x.size // x.shape[-1], x.shape[-1])
        targets = target.reshape(*rows.shape)
        for row in range(rows.shape[0]):
            sorted_row = empty(rows.shape[1], x.dtype, queue=x.queue)
            _launch_sort(run, rows[row], sorted_row, targets[row])
        if target is not result:
            run.finish(None, True)
            _usm.copy(result, target)
    return run.finish(result, wait)


def _dense(x, what):
    """The array with its elements in order, of at least one dimension."""
    if x.ndim == 0:
        raise RequestError(f"{what} of an array without dimensions")
    return x if x.is_c_contiguous else x.copy(queue=x.queue)
