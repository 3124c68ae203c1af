"""`usm.scan`: all running totals of an array."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .._kernel import CLK_LOCAL_MEM_FENCE, barrier, get_global_id, get_group_id, get_local_id, local, ordered_kernel
from .._usm import Array, DType, Event, empty
from ..errors import RequestError
from .axes import are_for_items, axis_of, given_rows, put_back, result_rows, scan_of_rows
from .operations import operation_of
from .reduce import of_chunks, of_groups
from .run import CHUNK, GROUP, MOST_GROUPS, Run, as_array, flat, is_cpu, place_of_work, result_array, scratch, work_type

#: Bytes of local memory for the elements that a group scans at a time.
_TILE_BYTES = 16384


@lru_cache(256)
def of_items(combine, dtype, chunk, exclusive):
    """Each item writes the totals of a chunk; the total before it is known."""

    @ordered_kernel
    def scan_chunks(x, before, start, out):
        place = get_global_id(0)
        total = before[place]
        first = start + place * chunk
        for k in range(first, min(first + chunk, x.size)):
            value = dtype(x[k])
            if exclusive:
                out[k] = total
                total = combine(total, value)
            else:
                total = combine(total, value)
                out[k] = total

    return scan_chunks


@lru_cache(256)
def of_tiles(combine, dtype, group, each, exclusive, neutral):
    """Each group writes the totals of its span, a tile of `each` elements an item at a time."""
    tile = group * each
    # A gap after each 32 elements: neighbours of a stride lie in different banks.
    room = tile + tile // 32
    # Two steps in each.
    levels = (group.bit_length() - 1) // 2

    @ordered_kernel
    def scan_tiles(x, before, span, out):
        shared = local.array(room, dtype)
        totals, others = local.array(group, dtype), local.array(group, dtype)
        item, place = get_local_id(0), get_group_id(0)
        n = x.size
        start = place * span
        stop = min(start + span, n)
        carry = before[place] if place < before.size else dtype(neutral)
        for base in range(start, stop, tile):
            for j in range(each):
                at = j * group + item
                value = dtype(neutral)
                if base + at < n:
                    value = dtype(x[base + at])
                shared[at + at // 32] = value
            barrier(CLK_LOCAL_MEM_FENCE)
            own = item * each
            total = shared[own + own // 32]
            for j in range(1, each):
                at = own + j
                total = combine(total, shared[at + at // 32])
            totals[item] = total
            barrier(CLK_LOCAL_MEM_FENCE)
            # Running totals of the items, from one array to the other and back.
            for level in range(levels):
                step = 1 << 2 * level
                subtotal = totals[item]
                if 0 < step <= item:
                    subtotal = combine(totals[item - step], subtotal)
                others[item] = subtotal
                barrier(CLK_LOCAL_MEM_FENCE)
                double = 2 << 2 * level
                if 0 < double <= item:
                    subtotal = combine(others[item - double], subtotal)
                totals[item] = subtotal
                barrier(CLK_LOCAL_MEM_FENCE)
            prefix = carry
            if item > 0:
                prefix = combine(carry, totals[item - 1])
            for j in range(each):
                at = own + j
                value = shared[at + at // 32]
                if exclusive:
                    shared[at + at // 32] = prefix
                    prefix = combine(prefix, value)
                else:
                    prefix = combine(prefix, value)
                    shared[at + at // 32] = prefix
            carry = combine(carry, totals[group - 1])
            barrier(CLK_LOCAL_MEM_FENCE)
            for j in range(each):
                at = j * group + item
                if base + at < n:
                    out[base + at] = shared[at + at // 32]
            barrier(CLK_LOCAL_MEM_FENCE)

    return scan_tiles


def launch_scan(run, operation, x, dtype, neutral, exclusive, out):
    """Launches a scan of a flat array, which has elements, to a flat `out`."""
    combine, n, queue = operation.combine, x.size, run.queue
    dtype = work_type(dtype)
    if is_cpu(queue):
        chunks, rest = divmod(n, CHUNK)
        first = empty(1, dtype, queue=queue)
        first.fill(neutral)
        scan_chunks = of_items(combine, dtype, CHUNK, exclusive)
        if n < 2 * CHUNK:
            # One chunk after the other would be as long.
            run.launch(of_items(combine, dtype, 2 * CHUNK, exclusive), 1, x, first, 0, out)
            return
        totals = empty(chunks + 1, dtype, queue=queue)
        run.launch(of_chunks(combine, dtype, CHUNK), chunks, x, totals)
        before = empty(chunks + 1, dtype, queue=queue)
        launch_scan(run, operation, totals, dtype, neutral, True, before)
        run.launch(scan_chunks, chunks, x, before, 0, out)
        if rest:
            run.launch(scan_chunks, 1, x, before[chunks:], chunks * CHUNK, out)
        return
    each = max(4, _TILE_BYTES // GROUP // DType(dtype).itemsize)
    each = min(each, 16)
    tile = each * GROUP
    scan_tiles = of_tiles(combine, dtype, GROUP, each, exclusive, neutral)
    tiles = -(-n // tile)
    groups = min(MOST_GROUPS, tiles) if tiles > 4 else 1
    span = -(-tiles // groups) * tile
    groups = -(-n // span)
    numbers = scratch(2 * groups if groups > 1 else 0, dtype, queue)
    before = numbers[: numbers.size // 2]
    if groups > 1:
        totals = numbers[groups:]
        run.launch(of_groups(combine, dtype, GROUP), (groups * GROUP, GROUP), x, span, totals)
        launch_scan(run, operation, totals, dtype, neutral, True, before)
    run.launch(scan_tiles, (groups * GROUP, GROUP), x, before, span, out)


def scan(
    x: Any,
    operation: str = "sum",
    *,
    exclusive: bool = False,
    identity: complex | None = None,
    dtype: Any = None,
    out: Any = None,
    axis: int | None = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array:
    """All running totals of the elements in order: ``usm.scan(x)`` is NumPy's ``cumsum``.

    The operations are those of :func:`usm.reduce`; an expression needs ``identity=``, the number
    that changes no other one. With ``exclusive`` an element is the total of those before it, and
    the first one the identity. The result has one dimension, and with ``axis``, along which the
    totals then run, the array's shape. ``out`` may be the array itself.
    """
    operation = operation_of(operation)
    x = as_array(x, takes_complex=operation.takes_complex)
    dtype = operation.result_type(x.dtype) if dtype is None else DType(dtype)
    neutral = operation.neutral(dtype) if identity is None else identity
    if neutral is None:
        raise RequestError(f"a scan by {operation.name} needs identity=, the number that changes no other one")
    run = Run(x.queue, after)
    if axis is not None:
        axes = (axis_of(axis, x.ndim),)
        result = result_array(out, x.shape, dtype, [x])
        if x.size:
            _scan_rows(run, operation, given_rows(x, axes), axes, dtype, neutral, bool(exclusive), result)
        return run.finish(result, wait)
    result = result_array(out, (x.size,), dtype, [x])
    source = flat(x)
    work = place_of_work(out, result, (source,))
    if x.size:
        launch_scan(run, operation, source, dtype, neutral, bool(exclusive), work)
    return run.finish(result, wait, work)


def _scan_rows(run, operation, rows, axes, dtype, neutral, exclusive, result):
    """Scans each row of an array of two dimensions."""
    out, spare = result_rows(result, axes, rows)
    if are_for_items(run.queue, rows.shape):
        scan_rows = scan_of_rows(operation.combine, work_type(dtype), exclusive, neutral)
        run.launch(scan_rows, rows.shape[0], rows, out)
    else:
        for row in range(rows.shape[0]):
            launch_scan(run, operation, rows[row], dtype, neutral, exclusive, out[row])
    put_back(run, spare)
