"""``usm.Array``: NumPy is the oracle."""

import gc
import pickle
import random
import subprocess
import sys
import weakref
import zlib

import pytest

import usm
from backends.views import views_of_one_shape

NUMBERS = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
KINDS = ["host", "device", "shared"]


def build(np, queue, kind, data):
    """A usm array with the content of a NumPy array."""
    array = usm.empty(data.shape, data.dtype.str, kind=kind, queue=queue)
    usm.copy(array, np.ascontiguousarray(data).reshape(data.shape))
    return array


def same(np, array, expected):
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype.str
    assert np.array_equal(np.array(array.tolist(), dtype=expected.dtype).reshape(expected.shape), expected)
    assert array.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_number_round_trips(np, queue, kind, dtype):
    data = np.arange(24).reshape(2, 3, 4).astype(dtype)
    array = build(np, queue, kind, data)
    same(np, array, data)
    assert (array.kind, array.ndim, array.size) == (kind, 3, 24)
    assert (array.itemsize, array.nbytes) == (data.itemsize, data.nbytes)
    assert np.array_equal(usm.to_numpy(array), data)


def random_key(rng, shape):
    """An index of integers, slices, an ellipsis and new axes."""
    key = []
    for extent in shape[: rng.randint(0, len(shape))]:
        choice = rng.random()
        if choice < 0.3 and extent:
            key.append(rng.randrange(-extent, extent))
        else:
            bound = lambda: rng.choice([None, rng.randint(-extent - 2, extent + 2)])  # noqa: E731
            step = rng.choice([None, 1, 2, 3, -1, -2, -5])
            key.append(slice(bound(), bound(), step))
    if rng.random() < 0.3:
        key.insert(rng.randint(0, len(key)), None)
    if rng.random() < 0.3:
        key.insert(rng.randint(0, len(key)), Ellipsis)
    return tuple(key)


@pytest.mark.parametrize("seed", range(40))
def test_indexing_agrees_with_numpy(np, queue, kind, seed):
    rng = random.Random(seed)
    shape = tuple(rng.randint(0, 5) for _ in range(rng.randint(0, 4)))
    data = np.arange(np.prod(shape, dtype=int), dtype="<i4").reshape(shape)
    array = build(np, queue, kind, data)
    for _ in range(20):
        view, expected = array, data
        for _ in range(rng.randint(1, 3)):
            key = random_key(rng, expected.shape)
            try:
                # NumPy gives a copy for an index of integers only, and a view when there is an
                # ellipsis.
                expected = expected[key if Ellipsis in key else (*key, Ellipsis)]
            except IndexError:
                # An ellipsis in front moved an integer to another axis.
                with pytest.raises(IndexError):
                    view[key]
                continue
            view = view[key]
        same(np, view, expected)
        if expected.size:
            assert view.is_c_contiguous == expected.flags.c_contiguous
            assert view.is_f_contiguous == expected.flags.f_contiguous
            # The same place in memory, and the same step along each axis that has a next element.
            assert view.pointer - array.pointer == expected.ctypes.data - data.ctypes.data
            steps = zip(view.strides, expected.strides, expected.shape)
            assert all(ours == theirs for ours, theirs, extent in steps if extent > 1)


@pytest.mark.parametrize("seed", range(20))
def test_assignment_agrees_with_numpy(np, queue, kind, seed):
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 3)))
    data = np.arange(np.prod(shape, dtype=int), dtype="<i4").reshape(shape)
    array = build(np, queue, kind, data)
    for _ in range(10):
        key = random_key(rng, shape)
        target = np.asarray(data[key])
        value = rng.choice([5, "array", "row"])
        if value == "array":
            value = np.arange(100, 100 + target.size, dtype="<i4").reshape(target.shape)
        elif value == "row":
            value = np.arange(target.shape[-1] if target.ndim else 1, dtype="<i4")
            value = value if target.ndim else value[0]
        data[key] = value
        array[key] = value
        same(np, array, data)


def test_copies_between_overlapping_views_read_all_before_they_write(np, queue, kind):
    data = np.arange(10, dtype="<i8")
    array = build(np, queue, kind, data)
    array[2:] = array[:-2]
    data[2:] = data[:-2].copy()
    same(np, array, data)
    array[:] = array[::-1]
    data[:] = data[::-1].copy()
    same(np, array, data)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("other", KINDS)
def test_copies_between_any_two_views_agree_with_numpy(np, queue, kind, other, seed):
    rng = random.Random(seed)
    dtype = rng.choice(["|u1", "<i2", "<f8", "<c16"])
    data = np.arange(9**4).astype(dtype).reshape(9, 9, 9, 9)
    source_data = data[::-1] * 3
    array, source = build(np, queue, kind, data), build(np, queue, other, source_data)
    elsewhere = build(np, usm.Queue(usm.Context(queue.device)), other, source_data)
    for _ in range(6):
        to, from_ = views_of_one_shape(rng)
        flip = rng.random() < 0.3
        turned = lambda view: view.T if flip else view  # noqa: E731
        # Copies from another array, from another context, from the host, and from the same array,
        # where the two views may overlap.
        turned(data[to])[...] = turned(source_data[from_])
        usm.copy(turned(array[to]), turned(source[from_]))
        same(np, array, data)
        data[to] = source_data[::-1][from_]
        usm.copy(array[to], elsewhere[::-1][from_])
        same(np, array, data)
        data[to] = source_data[:, ::-1][from_]
        array[to] = source_data[:, ::-1][from_]
        same(np, array, data)
        data[to] = data[from_].copy()
        array[to] = array[from_]
        same(np, array, data)
        data[to] = 3
        array[to] = 3
        same(np, array, data)
    assert source.tobytes() == elsewhere.tobytes() == source_data.tobytes()


@pytest.mark.parametrize("other", KINDS)
def test_large_views_are_copied_in_every_way(np, queue, kind, other):
    """Few long runs, rows, columns, and one row for all, each by another call of the runtime."""
    data = np.arange(300 * 1000, dtype="<i4").reshape(300, 1000)
    source_data = data * 7
    for take in (
        lambda array: array[3::90, 100:900],
        lambda array: array[:, 100:900],
        lambda array: array[::-1, 5:],
        lambda array: array[:, 7:9],
        lambda array: array[::3, ::-4],
        lambda array: array[4:8],
    ):
        array, source = build(np, queue, kind, data), build(np, queue, other, source_data)
        expected = data.copy()
        take(expected)[...] = take(source_data)
        usm.copy(take(array), take(source))
        assert array.tobytes() == expected.tobytes()
        take(expected)[...] = take(source_data)[1:2]
        usm.copy(take(array), take(source)[1:2])
        assert array.tobytes() == expected.tobytes()


def test_destinations_whose_elements_share_bytes_are_written_in_order(np):
    def strided(data, shape, strides):
        return np.lib.stride_tricks.as_strided(data, shape, strides)

    # The last element of C order stays.
    data = np.zeros(8, "<i4")
    usm.copy(usm.asarray(strided(data, (3, 2), (4, 4))), np.arange(6, dtype="<i4").reshape(3, 2))
    assert data.tolist() == [0, 2, 4, 5, 0, 0, 0, 0]
    usm.copy(usm.asarray(strided(data, (3,), (0,))), np.arange(7, 10, dtype="<i4"))
    assert data.tolist() == [9, 2, 4, 5, 0, 0, 0, 0]
    # Axes that step over each other without touching are no exception.
    expected, data = np.zeros(8, "<i4"), np.zeros(8, "<i4")
    values = np.arange(1, 7, dtype="<i4").reshape(2, 3)
    strided(expected, (2, 3), (12, 8))[...] = values
    usm.copy(usm.asarray(strided(data, (2, 3), (12, 8))), values)
    assert data.tolist() == expected.tolist()


def test_views_share_memory_and_keep_it_alive(queue, kind):
    array = usm.zeros((4, 4), "<i4", kind=kind, queue=queue)
    row = array[1]
    row.fill(7)
    assert array.tolist()[1] == [7] * 4
    del array
    gc.collect()
    assert row.tolist() == [7] * 4


def test_memory_is_freed_with_its_last_view(queue, kind):
    context = usm.Context(queue.device)
    before = context.stats()["sum"]
    array = usm.zeros(1 << 16, kind=kind, queue=context)
    view = array[::2]
    live = context.stats()["sum"]
    assert live["current"] - before["current"] == array.nbytes
    del array
    assert context.stats()["sum"]["live"] == live["live"]
    del view
    gc.collect()
    context.synchronize()
    assert context.stats()["sum"]["current"] == before["current"]


def test_memory_without_a_copy_is_of_the_named_queue(np, queue):
    own = np.arange(6.0)
    array = usm.asarray(own, queue=queue)
    assert array.queue == queue
    other = usm.Queue(queue.device)
    same = usm.asarray(array, queue=other)
    shares = same.queue.context == array.queue.context
    assert same.queue == other and (same.__array_interface__["data"] == array.__array_interface__["data"]) == shares
    assert usm.asarray(array, device=queue.device).queue == queue
    usm.scan(array, out=usm.zeros(6, queue=queue))
    array.fill(2.0)
    assert usm.to_numpy(same).tolist() == [2.0] * 6 or not shares


def test_reshape_keeps_the_memory_or_names_the_reason(queue):
    array = usm.asarray([[1, 2, 3], [4, 5, 6]], queue=queue)
    assert array.reshape(3, 2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert array.reshape((-1,)).pointer == array.pointer
    assert array.reshape(-1, 2).shape == (3, 2)
    for shape in [(4, 2), (-1, -1), (-2, 3), (-1, 4), (1 << 40, 1 << 40)]:
        with pytest.raises(usm.RequestError, match="cannot reshape"):
            array.reshape(shape)
    with pytest.raises(usm.RequestError, match="copy it first"):
        array.T.reshape(6)


@pytest.mark.parametrize("seed", range(200))
def test_reshape_of_strided_views_agrees_with_numpy(np, seed):
    """NumPy reshapes in place where no copy is needed, and says so where one is."""
    chance = random.Random(seed)
    shape = [chance.choice([1, 2, 3, 4, 6]) for _ in range(chance.randrange(1, 5))]
    data = np.arange(np.prod(shape), dtype="<i4").reshape(shape)
    key = tuple(slice(None, None, chance.choice([1, 1, 2, -1])) for _ in shape)
    theirs, ours = data[key], usm.asarray(data)[key]
    if chance.random() < 0.4:
        theirs, ours = theirs.T, ours.T
    targets = [theirs.shape, (*theirs.shape, 1), (1, *theirs.shape), (theirs.size,)]
    rest, parts = theirs.size, []
    while rest > 1:
        parts.append(chance.choice([n for n in range(2, rest + 1) if rest % n == 0]))
        rest //= parts[-1]
    chance.shuffle(parts)
    for target in [*targets, tuple(parts), tuple(parts[:1] + [1] + parts[1:])]:
        view = theirs.view()
        try:
            view.shape = target
        except AttributeError:
            with pytest.raises(usm.RequestError, match="copy it first"):
                ours.reshape(target)
            continue
        again = ours.reshape(target)
        assert again.tolist() == view.tolist() and again.pointer == view.ctypes.data, (target, ours.strides)


def test_an_array_has_its_own_shape_with_any_strides(np):
    for view in (np.zeros((4, 6))[:, ::2], np.zeros((4, 6)).T, np.broadcast_to(np.zeros(3), (5, 3)), np.zeros((0, 4)).T, np.zeros((4, 1, 6))[::-1]):
        ours = usm.asarray(view)
        assert ours.reshape(ours.shape).shape == ours.reshape(*ours.shape[:-1], -1 if ours.size else ours.shape[-1]).shape == view.shape


def test_elements_cannot_be_deleted(queue):
    array = usm.zeros(3, queue=queue)
    with pytest.raises(TypeError, match="^array elements cannot be deleted$"):
        del array[0]
    assert array.tolist() == [0.0] * 3


def test_numpys_scalars_are_numbers(np):
    values = [np.float32(1.5), np.int8(2), np.uint16(3), np.bool_(True), np.complex64(1 + 2j), np.float16(0.5), np.float64(2), True, 3, 2.5, 1j]
    for one in values:
        for other in values:
            for given in ([one], [one, other], [[one, other], [other, one]]):
                expected = np.asarray(given)
                ours = usm.asarray(given, device="host")
                assert ours.dtype == expected.dtype and ours.tolist() == expected.tolist(), given
    for value, inside in ([np.datetime64("2020")], "datetime64"), ([[1, None]], "NoneType"), ([np.zeros(2)] * 2, "ndarray"):
        with pytest.raises(usm.InterfaceError, match=f"type {inside} in a list or tuple is no number, no list and no tuple$"):
            usm.asarray(value)
    with pytest.raises(usm.InterfaceError, match="type set is no number, no list or tuple of numbers, and exposes none of"):
        usm.asarray({1})
    assert usm.asarray([np.complex64(1 + 2j)], dtype="<c16", device="host").tolist() == [1 + 2j]


def test_a_range_is_a_list(np):
    for given in (range(5), range(7, -3, -2), range(2**31, 2**31 + 2), range(0)):
        expected, ours = np.asarray(given if len(given) else []), usm.asarray(given, device="host")
        assert ours.dtype == expected.dtype and ours.tolist() == list(given)
    assert usm.asarray(range(3), dtype="f2", device="host").tolist() == [0, 1, 2]
    ours[:] = range(0)
    array = usm.zeros((2, 3), "<i4", device="host")
    array[1] = range(4, 7)
    assert array.tolist() == [[0, 0, 0], [4, 5, 6]]
    with pytest.raises(usm.RequestError):
        array[0] = range(4)


def test_a_scalar_of_numpys_is_stored_where_it_fits(np, queue, kind):
    array = usm.zeros(2, "<f8", kind=kind, queue=queue)
    for value in (np.float32(2.5), np.int16(3), np.bool_(True), np.float64(4)):
        array[0] = value
        assert array.tolist() == [float(value), 0.0]
    numbers = usm.zeros(2, "|i1", kind=kind, queue=queue)
    numbers[:] = np.int64(100)
    assert numbers.tolist() == [100, 100]
    for target, value, error in ((numbers, np.int64(200), OverflowError), (numbers, np.float32(2), TypeError), (array, np.complex64(1j), TypeError)):
        before = target.tolist()
        with pytest.raises(error):
            target[0] = value
        assert target.tolist() == before


def test_scalars_and_their_ranges(queue):
    array = usm.zeros((), "<i2", queue=queue)
    array[()] = -3
    assert array.item() == int(array) == -3 and float(array) == -3.0 and bool(array)
    for value in [40000, -40000, 1 << 70]:
        with pytest.raises(OverflowError):
            array.fill(value)
    with pytest.raises((TypeError, AttributeError)):
        array.fill(1.5)
    assert array.item() == -3
    with pytest.raises(ValueError):
        usm.zeros(2, queue=queue).item()
    half = usm.asarray([1.5, -2.0], dtype="<f2", queue=queue)
    assert half.tolist() == [1.5, -2.0]
    swapped = usm.asarray([1, 258], dtype=">i2", queue=queue)
    assert swapped.tolist() == [1, 258] and swapped.tobytes() == b"\0\1\1\2"


def test_a_boolean_index_is_refused(queue):
    """It is a mask to NumPy, and to Python the number 1."""
    array = usm.asarray([1, 2, 3], queue=queue)
    for key in (True, False, (True,), (..., False)):
        with pytest.raises(TypeError):
            array[key]
        with pytest.raises(TypeError):
            array[key] = 5
    assert array.tolist() == [1, 2, 3]


def test_bad_indices_are_index_errors(queue):
    array = usm.zeros((2, 3), queue=queue)
    for key in [2, -3, (0, 3), (0, 0, 0), (Ellipsis, Ellipsis), (None,) * 63]:
        with pytest.raises(IndexError):
            array[key]
    for key in ["a", 1.0]:
        with pytest.raises(TypeError):
            array[key]
    assert [row.tolist() for row in array] == [[0.0] * 3] * 2
    assert len(array) == 2
    with pytest.raises(TypeError):
        len(array[0, 0])


def test_nested_lists_become_arrays(queue):
    assert usm.asarray([True, False], queue=queue).dtype == "|b1"
    assert usm.asarray([1, True], queue=queue).dtype == "<i8"
    assert usm.asarray([1, 2.5], queue=queue).tolist() == [1.0, 2.5]
    assert usm.asarray([[1j], [2]], queue=queue).tolist() == [[1j], [2 + 0j]]
    assert usm.asarray([], queue=queue).shape == (0,)
    assert usm.asarray(3, queue=queue).shape == ()
    for uneven in [[1, [2]], [[1], 2], [[1, 2], [3]], [[], [1]]]:
        with pytest.raises(ValueError):
            usm.asarray(uneven, queue=queue)
    deep = 1
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ValueError):
        usm.asarray(deep, queue=queue)
    with pytest.raises(usm.InterfaceError, match="str"):
        usm.asarray("text", queue=queue)


def test_types_are_never_converted_implicitly(np, queue):
    array = usm.zeros(3, "<f4", queue=queue)
    with pytest.raises(usm.RequestError, match="does not convert"):
        usm.copy(array, np.zeros(3, "<f8"))
    with pytest.raises(usm.RequestError, match="does not convert"):
        usm.asarray(array, dtype="<f8")
    with pytest.raises(usm.RequestError, match="broadcast"):
        usm.copy(array, np.zeros(4, "<f4"))
    for dtype in ["|O", "<i3", "", "?!", "<q8"]:
        with pytest.raises(usm.Error):
            usm.zeros(3, dtype, queue=queue)


@pytest.mark.parametrize("spelling", ["float32", "<f4", "=f4", "np", "np.dtype"])
def test_dtypes_have_many_names(np, queue, spelling):
    dtype = {"np": np.float32, "np.dtype": np.dtype("f4")}.get(spelling, spelling)
    assert usm.zeros(2, dtype, queue=queue).dtype == "<f4"
    assert [usm.zeros(1, dtype, queue=queue).dtype for dtype in (bool, int, float, complex)] == [
        "|b1",
        "<i8",
        "<f8",
        "<c16",
    ]


def test_sizes_that_do_not_fit_are_refused(queue, kind):
    with pytest.raises(usm.AllocationError):
        usm.empty(1 << 50, "|u1", kind=kind, queue=queue)
    for shape in [(-1,), (1 << 62, 4), (1 << 40, 1 << 40), (1 << 62, 4, 0)]:
        with pytest.raises(usm.RequestError, match="shape"):
            usm.empty(shape, "<f8", kind=kind, queue=queue)
    with pytest.raises(usm.RequestError):
        usm.empty(3, kind="managed", queue=queue)
    empty = usm.zeros((0, 3), kind=kind, queue=queue)
    assert (empty.size, empty.nbytes, empty.tolist()) == (0, 0, [])


def test_the_buffer_protocol_follows_the_kind(np, queue, kind):
    array = build(np, queue, kind, np.arange(12, dtype="<i4").reshape(3, 4))
    if kind == "device":
        for use in (memoryview, np.frombuffer):
            with pytest.raises(BufferError, match="device memory"):
                use(array)
        assert not hasattr(array, "__array_interface__")
        return
    view = memoryview(array)
    assert (view.shape, view.strides, view.format, view.readonly) == ((3, 4), (16, 4), "i", False)
    view[1, 2] = 99
    assert array[1, 2].item() == 99
    assert memoryview(array[:, ::-1]).tolist() == [row[::-1] for row in array.tolist()]
    with pytest.raises(BufferError, match="contiguous"):
        zlib.crc32(array[:, ::2])
    assert zlib.crc32(array) == zlib.crc32(array.tobytes())
    seen = np.asarray(array)
    assert seen.ctypes.data == array.pointer
    del array, view
    gc.collect()
    assert seen[1, 2] == 99


def test_a_transposed_array_keeps_its_order(np, queue):
    data = np.arange(6, dtype="<f4").reshape(2, 3)
    array = build(np, queue, "shared", data)
    same(np, array.T, data.T)
    assert memoryview(array.T).f_contiguous
    assert np.asarray(array.T).flags.f_contiguous


def test_read_only_memory_stays_read_only(np, queue):
    data = np.arange(4.0)
    data.flags.writeable = False
    array = usm.asarray(data)
    assert array.readonly and array[1:].readonly and array.T.readonly
    for write in (
        lambda: array.fill(1),
        lambda: array.__setitem__(0, 1.0),
        lambda: usm.copy(array, np.zeros(4)),
        lambda: memoryview(array).__setitem__(0, 1.0),
    ):
        with pytest.raises((usm.AccessError, TypeError)):
            write()
    assert memoryview(array).readonly
    assert not np.asarray(array).flags.writeable
    assert array.__array_interface__["data"][1] is True
    with pytest.raises(BufferError):
        array.__dlpack__()
    assert not np.from_dlpack(array).flags.writeable
    assert not array.copy().readonly
    assert data.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_copy_reaches_every_kind_and_device(np, queue, kind):
    data = np.arange(1000, dtype="<f8")
    source = build(np, queue, kind, data)
    for device in usm.devices():
        for other in KINDS:
            made = source.copy(kind=other, queue=device)
            assert (made.kind, made.device) == (other, device)
            same(np, made, data)
            target = usm.zeros(1000, kind=other, queue=device)
            usm.copy(target[::2], source[500:])
            assert target.tolist()[::2] == data[500:].tolist() and not any(target.tolist()[1::2])


def test_asarray_copies_only_when_it_must(np, queue):
    array = usm.zeros(3, kind="shared", queue=queue)
    assert usm.asarray(array).pointer == array.pointer
    assert usm.asarray(array, copy=False).pointer == array.pointer
    assert usm.asarray(array, kind="shared", copy=False).pointer == array.pointer
    assert usm.asarray(array, copy=True).pointer != array.pointer
    assert usm.asarray(array, kind="device").kind == "device"
    with pytest.raises(BufferError, match="another kind"):
        usm.asarray(array, kind="host", copy=False)
    with pytest.raises(BufferError, match="no memory"):
        usm.asarray([1, 2], copy=False)
    other = usm.Context(queue.device)
    with pytest.raises(BufferError, match="another context"):
        usm.asarray(array, queue=other, copy=False)
    assert usm.asarray(array, queue=other).context == other


def test_events_of_asynchronous_copies_report_completion(np, queue, kind):
    data = np.arange(1 << 18, dtype="<i4")
    source = build(np, queue, kind, data)
    target = usm.zeros(1 << 18, "<i4", kind=kind, queue=queue)
    event = queue.copy(target, source)
    event.wait()
    assert event.done
    same(np, target, data)
    # A view of the host waits by itself.
    queue.copy(target, usm.zeros(1 << 18, "<i4", kind=kind, queue=queue))
    assert not any(target[:100].tolist())
    queue.barrier().wait()
    queue.wait()
    with pytest.raises(usm.RequestError):
        queue.copy(target[::2], source[::2])
    with pytest.raises(usm.RequestError):
        queue.copy(target, source[1:])
    with pytest.raises(usm.RequestError):
        usm.Queue(usm.Context(queue.device)).copy(target, source)


def test_imported_owners_are_released(np):
    class Producer:
        def __init__(self):
            self.memory = np.arange(4)

        @property
        def __array_interface__(self):
            return self.memory.__array_interface__

    producer = Producer()
    alive = weakref.ref(producer)
    array = usm.asarray(producer)
    assert array.base is producer
    view = array[1:]
    del producer, array
    gc.collect()
    assert alive() is not None
    assert view.tolist() == [1, 2, 3]
    del view
    gc.collect()
    assert alive() is None


def test_memory_pickles():
    memory = usm.memory.MemoryUSMHost(16)
    memory.copy_from_host(bytes(range(16)))
    assert pickle.loads(pickle.dumps(memory)).tobytes() == bytes(range(16))
    with pytest.raises(TypeError):
        pickle.dumps(memory.queue)


def test_statistics_and_history(queue):
    context = usm.Context(queue.device)
    context.keep_history(10)
    array = usm.zeros(100, "|u1", kind="shared", queue=context)
    stats = context.stats()
    assert stats["usm_shared"] == {"current": 100, "peak": 100, "total": 100, "live": 1, "count": 1}
    assert stats["sum"]["current"] == 100 and stats["leaked"] == 0
    assert context.query(array.pointer + 99) == ("shared", array.pointer, 100)
    assert context.query(0)[0] == "unknown"
    pointer = array.pointer
    del array
    context.synchronize()
    lines = [record["text"] for record in context.history() if record["address"] == pointer]
    assert lines == [
        "GPU_Debug: Allocate 100 bytes of usm_shared allocation type (current=100; max=100)",
        "GPU_Debug: Free 100 bytes of usm_shared allocation type (current=0; max=100)",
    ]
    assert usm.stats()[queue.device.selector]["sum"]["count"] >= 0
    assert isinstance(usm.history(keep=2), dict)


def test_a_shape_is_required_where_nothing_can_be_imported():
    """In its own process, because the class of sequences is looked up once."""
    code = """
import sys, usm
sys.modules["collections.abc"] = None
class Shape:
    def __index__(self):
        raise KeyError("asked")
for make in (usm.empty, usm.zeros, lambda shape: usm.asarray(b"ab").reshape(shape)):
    try:
        make(Shape())
    except Exception as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.split()), done.stderr) == (0, 3, ""), done


def test_numpys_functions_accept_arrays(np):
    """They leave the answer to objects with their own functions."""
    array = usm.asarray(np.arange(6.0).reshape(2, 3))

    class Other:
        def __array_function__(self, func, types, args, kwargs):
            return func.__name__

    class Subclass(np.ndarray):
        pass

    plain = np.arange(6.0).reshape(2, 3)
    for call in (np.sum, np.transpose, np.ravel, np.mean, np.shape, np.array_str, lambda it: np.concatenate([it, plain]), lambda it: np.dot(it, plain.T)):
        assert np.array_equal(call(array), call(plain))
    assert np.concatenate([array, plain.view(Subclass)]).shape == (4, 3)
    assert np.concatenate([array, Other()]) == "concatenate" and np.dot(Other(), array) == "dot"
    with pytest.raises(TypeError):
        np.zeros(3, like=array)


def test_numpy_is_refused_device_memory_with_a_remedy(np, queue):
    array = usm.zeros(3, "<i4", kind="device", queue=queue)
    for view in (array, array[1:], usm.memory.as_usm_memory(array)):
        for convert in (np.asarray, np.array, lambda it: it.__array__(), lambda it: np.add(it, 1)):
            with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
                convert(view)
        # NumPy takes the errors of these for an answer.
        for compare in (np.array_equal, np.array_equiv):
            for one, two in ((view, np.zeros(3)), (np.zeros(3), view), (view, view), (usm.zeros(3, kind="host", queue="host"), view)):
                with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
                    compare(one, two)
            with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
                compare(a1=np.zeros(3), a2=view)
    shared = usm.asarray([1, 2], dtype="<i4", queue=queue)
    assert np.array_equal(shared, [1, 2]) and not np.array_equal(shared, [1, 3])
    assert np.shape(array) == (3,) and np.size(array) == 3 and np.ndim(array) == 1
    assert shared.__array__().tolist() == [1, 2] and shared.__array__("f8").dtype == np.float64
    copied = shared.__array__(copy=True)
    copied[0] = 9
    assert shared.tolist() == [1, 2]
