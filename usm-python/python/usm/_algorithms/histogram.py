"""`usm.histogram` and `usm.bincount`: how many elements each bin has."""

from collections.abc import Iterable
from functools import lru_cache
from operator import index
from typing import Any

from .. import _usm
from .._kernel import CLK_LOCAL_MEM_FENCE, atomic, barrier, device_func, get_global_id, get_group_id, get_local_id, local, ordered_kernel
from .._usm import Array, Event, asarray, empty, zeros
from ..errors import RequestError
from .reduce import reduce
from .run import GROUP, MOST_GROUPS, Run, as_array, flat, is_cpu, kind_of, place_of_work, result_array, result_kind

#: The most bins that a group counts in its local memory.
_LOCAL_BINS = 4096
#: The most chunks of a CPU, each with counters of its own: threads take 16 at a time.
_MOST_CHUNKS = 128


@device_func
def bin_of_number(x, edges, low, scale):
    """The number itself."""
    return int(x)


@device_func
def bin_of_edges(x, edges, low, scale):
    """The bin of a number by the edges of equal bins; -1 outside and for NaN."""
    last = edges.size - 1
    place = -1
    if x >= edges[0] and x <= edges[last]:
        place = min(max(int((x - low) * scale), 0), last - 1)
        # The product is rounded: the edges decide.
        if x < edges[place] and place > 0:
            place -= 1
        if place < last - 1 and x >= edges[place + 1]:
            place += 1
    return place


@lru_cache(8)
def counts_of_chunks(bin_of):
    """Each item counts a chunk, in its own row of counters."""

    @ordered_kernel
    def count_chunk(x, edges, low, scale, chunk, counts):
        place = get_global_id(0)
        start = place * chunk
        for k in range(start, min(start + chunk, x.size)):
            bin_place = bin_of(x[k], edges, low, scale)
            if 0 <= bin_place < counts.shape[1]:
                counts[place, bin_place] += 1

    return count_chunk


@ordered_kernel
def add_rows(rows, counts):
    """The sums of columns."""
    place = get_global_id(0)
    total = 0
    for row in range(rows.shape[0]):
        total += rows[row, place]
    counts[place] = total


@lru_cache(64)
def counts_of_groups(bin_of, room):
    """Each group counts its span in local memory first; without room, in global memory."""

    @ordered_kernel
    def count_turns(x, span, edges, low, scale, counts):
        own = local.array(max(room, 1), _usm.uint32)
        item, bins = get_local_id(0), counts.size
        if room:
            for k in range(item, room, GROUP):
                own[k] = 0
            barrier(CLK_LOCAL_MEM_FENCE)
        start = get_group_id(0) * span
        for k in range(start + item, min(start + span, x.size), GROUP):
            bin_place = bin_of(x[k], edges, low, scale)
            if 0 <= bin_place < bins:
                if room:
                    if bin_place < room:
                        atomic.add(own, bin_place, 1)
                else:
                    atomic.add(counts, bin_place, 1)
        if room:
            barrier(CLK_LOCAL_MEM_FENCE)
            for k in range(item, min(room, bins), GROUP):
                if own[k] > 0:
                    atomic.add(counts, k, own[k])

    return count_turns


def _launch_counts(run, x, bin_of, edges, low, scale, bins, out):
    """Counts a flat array, which has elements, in `bins` counters of int64."""
    queue, n = run.queue, x.size
    if is_cpu(queue):
        chunks = max(1, min(_MOST_CHUNKS, -(-n // max(bins, 4096))))
        rows = zeros((chunks, bins), _usm.int64, queue=queue)
        run.launch(counts_of_chunks(bin_of), chunks, x, edges, low, scale, -(-n // chunks), rows)
        run.launch(add_rows, bins, rows, out)
        return
    room = next((size for size in (256, 1024, _LOCAL_BINS) if bins <= size), 0)
    span = -(-n // (4 * GROUP * MOST_GROUPS)) * 4 * GROUP
    out.fill(0)
    run.launch(counts_of_groups(bin_of, room), (-(-n // span) * GROUP, GROUP), x, span, edges, low, scale, out)


def histogram(
    x: Any,
    bins: int = 10,
    range: tuple[float, float] | None = None,
    *,
    out: Any = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> tuple[Array, Array]:
    """How many elements each of ``bins`` equal bins has, and the ``bins + 1`` edges: int64 and
    floats, as ``numpy.histogram``.

    ``range`` is the least and the greatest number; without it those of the elements, which the
    host then waits for. The last bin has its upper edge, and elements outside and NaNs are not
    counted.
    """
    x = as_array(x)
    if not hasattr(bins, "__index__"):
        raise TypeError(f"bins is a {type(bins).__name__}, a number of equal bins is needed; edges of your own are not supported")
    bins = index(bins)
    if not 1 <= bins < 1 << 31:
        raise RequestError(f"{bins} bins: 1 to {(1 << 31) - 1} are possible")
    low, high = _limits(x, range)
    step = (high - low) / bins
    if not low < low + step or not high - step < high or step == float("inf"):
        raise RequestError(f"{bins} bins from {low} to {high} have no edges of 64 bits between them: state another range")
    edges = [low + place * step for place in _places(bins)]
    edges.append(high)
    queue = x.queue
    result = result_array(out, (bins,), _usm.int64, [x])
    # Edges of NumPy have the type of the elements, if that is one of floats.
    edge_array = asarray(edges, dtype=x.dtype if kind_of(x.dtype) == "f" else _usm.float64, kind=result_kind([x]), queue=queue)
    run = Run(queue, after)
    work = place_of_work(out, result, (x,))
    if x.size:
        is_there = is_cpu(queue) or edge_array.kind == "device"
        of_device = edge_array if is_there else asarray(edges, dtype=edge_array.dtype, kind="device", queue=queue)
        _launch_counts(run, flat(x), bin_of_edges, of_device, low, bins / (high - low), bins, work)
    else:
        result.fill(0)
    return run.finish(result, wait, work), edge_array


_places = range


def _limit(x, operation):
    """The least or the greatest element, as a Python number.

    It goes through device memory: a page of shared memory that the host reads leaves the device.
    """
    return reduce(x, operation, out=empty((), x.dtype, kind="device", queue=x.queue)).item()


def _limits(x, limits):
    """The least and the greatest number of a histogram, as floats."""
    if limits is None:
        if x.size == 0:
            return 0.0, 1.0
        low, high = (float(_limit(x, name)) for name in ("min", "max"))
    else:
        low, high = map(float, limits)
        if low > high:
            raise RequestError(f"range {limits}: the least number is above the greatest")
    if not abs(low) < float("inf") or not abs(high) < float("inf"):
        raise RequestError(f"the range {low} to {high} is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def bincount(
    x: Any,
    *,
    minlength: int | None = None,
    length: int | None = None,
    out: Any = None,
    after: Event | Iterable[Event] = (),
    wait: bool = True,
) -> Array:
    """How often each number from 0 on is in an array of integers: int64, as ``numpy.bincount``.

    The result has ``length`` elements, and elements outside are not counted. Without it, it has at
    least ``minlength``, and one for the greatest element, which the host waits for; then an element
    below 0 is an error.
    """
    x = as_array(x)
    if x.dtype.kind not in "iub":
        raise TypeError(f"bincount of elements of type {x.dtype.name}: integers are counted")
    if length is None:
        length = max(index(minlength or 0), 0)
        if x.size:
            if x.dtype.kind == "i" and (least := _limit(x, "min")) < 0:
                raise RequestError(f"bincount of {least}: numbers from 0 on are counted")
            length = max(length, int(_limit(x, "max")) + 1)
    length = index(length)
    if not 0 <= length < 1 << 40:
        raise RequestError(f"bincount with {length} counters: 0 to {(1 << 40) - 1} are possible")
    queue = x.queue
    result = result_array(out, (length,), _usm.int64, [x])
    run = Run(queue, after)
    work = place_of_work(out, result, (x,))
    if x.size and length:
        none = empty(1, _usm.float64, queue=queue)
        _launch_counts(run, flat(x), bin_of_number, none, 0.0, 0.0, length, work)
    elif length:
        result.fill(0)
    return run.finish(result, wait, work)
