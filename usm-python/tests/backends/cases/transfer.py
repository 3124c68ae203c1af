"""Copies and fills between views of any kind, with NumPy as the oracle."""

import random

import numpy as np
import pytest
from effort import EFFORT

import usm

from ..fixture import KINDS, Skip
from ..views import views_of_one_shape

NUMBERS = ["|b1", "|i1", "<u2", "<i4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16"]
PAIRS = [(to, from_) for to in KINDS for from_ in KINDS]


def _same(array, expected):
    assert (array.shape, array.dtype) == (expected.shape, expected.dtype.str)
    assert array.tobytes() == expected.tobytes()


def every_number_round_trips(b):
    for kind in KINDS:
        for dtype in NUMBERS:
            data = np.arange(24).reshape(2, 3, 4).astype(dtype)
            array = b.array(data, kind)
            _same(array, data)
            assert np.array_equal(usm.to_numpy(array), data)
            assert array.tolist() == data.tolist() and array[1, 2, 3].item() == data[1, 2, 3].item()


def values_fill_arrays_and_views(b):
    for kind in KINDS:
        for dtype, value in (("|u1", 7), ("<i2", -2), ("<i4", 1 << 30), ("<f8", 2.5), ("<c16", 1 - 2j), ("|b1", True)):
            data = np.zeros((5, 6), dtype)
            array = b.array(data, kind)
            for key in (np.s_[:], np.s_[1:3], np.s_[:, ::2], np.s_[::-2, 3], np.s_[2, 3], np.s_[5:], np.s_[..., None]):
                array[key] = value
                data[key] = value
                _same(array, data)
                array[key].fill(0)
                data[key] = 0
                _same(array, data)
        with pytest.raises((usm.RequestError, OverflowError, ValueError)):
            usm.zeros(3, "|u1", kind=kind, queue=b.device).fill(256)


def views_equal_numpys_views(b):
    data = np.arange(2 * 3 * 4, dtype="<i4").reshape(2, 3, 4)
    keys = [np.s_[1], np.s_[:, ::-1], np.s_[::-1, ::-1, ::-1], np.s_[:, 1:, ::2], np.s_[0, ...], np.s_[..., 3], np.s_[None, 1, :, None]]
    keys += [np.s_[:, 3:], np.s_[1:, :, 1::3], np.s_[-1, -3:-1, ::-2], np.s_[5:], np.s_[:, :0]]
    for kind in KINDS:
        array = b.array(data, kind)
        for key in keys:
            for view, expected in ((array[key], data[key]), (array[key].T, data[key].T)):
                _same(view, expected)
                if expected.size:
                    assert view.pointer - array.pointer == expected.ctypes.data - data.ctypes.data
                    assert view.is_c_contiguous == expected.flags.c_contiguous
        assert array.reshape(4, -1).shape == (4, 6) and array.reshape((24,)).tolist() == data.ravel().tolist()
        assert [row.tolist() for row in array] == data.tolist() and len(array) == 2
        for wrong in (np.s_[2], np.s_[0, 0, 0, 0], np.s_["a"], np.s_[1.5], np.s_[..., ...], np.s_[::0]):
            with pytest.raises((IndexError, TypeError, ValueError)):
                array[wrong]


def copies_between_any_two_views_agree_with_numpy(b):
    """Strides that are negative or zero, every pair of kinds, and other contexts."""
    for seed, (to_kind, from_kind) in enumerate(PAIRS):
        rng = random.Random(seed)
        data = np.arange(9**4).astype(rng.choice(["|u1", "<i2", "<f8", "<c16"])).reshape(9, 9, 9, 9)
        other = data[::-1] * 3
        array, source = b.array(data, to_kind), b.array(other, from_kind)
        elsewhere = b.array(other, from_kind, queue=b.context())
        for _ in range(6):
            to, from_ = views_of_one_shape(rng)
            turn = (lambda view: view.T) if rng.random() < 0.3 and data[from_].shape == data[to].shape else (lambda view: view)
            usm.copy(turn(array[to]), turn((rng.choice([source, elsewhere]))[from_]))
            turn(data[to])[...] = turn(other[from_])
            _same(array, data)


def large_views_are_copied_in_every_way(b):
    """Copies by runs, by rows, by the host and by code of the device.

    Many times, so that reused objects are tested. A driver that interprets such code takes a
    microsecond for each element.
    """
    rows, columns = (600, 400) if EFFORT > 1 else (150, 100)
    data = np.arange(rows * columns, dtype="<i4").reshape(rows, columns)
    ways = [np.s_[:, ::2], np.s_[:, : columns // 2], np.s_[::-1, 1::2], np.s_[:: rows // 10], np.s_[:, 7:8], np.s_[::-3, ::-3]]
    ways.append(np.s_[1:, 1:-1])
    for to_kind, from_kind in PAIRS:
        source = b.array(data, from_kind)
        for way in ways:
            for turned in (False, True):
                expected = data[way].T if turned else data[way]
                view = source[way].T if turned else source[way]
                dense = usm.zeros(expected.shape, "<i4", kind=to_kind, queue=b.device)
                usm.copy(dense, view)
                _same(dense, expected)
                into = usm.zeros(data.shape, "<i4", kind=to_kind, queue=b.device)
                usm.copy(into[way].T if turned else into[way], dense)
                checked = np.zeros_like(data)
                checked[way] = data[way]
                _same(into, checked)


def a_source_is_repeated_along_axes_of_stride_zero(b):
    for to_kind, from_kind in PAIRS:
        row = b.array(np.arange(5, dtype="<f4"), from_kind)
        array = usm.zeros((300, 4, 5), "<f4", kind=to_kind, queue=b.device)
        array[:] = row
        _same(array, np.broadcast_to(np.arange(5, dtype="<f4"), (300, 4, 5)))
        array[...] = row[2]
        assert set(array.tobytes()) == set(np.float32(2).tobytes())
        with pytest.raises(usm.RequestError):
            array[:] = row[:4]


def views_that_overlap_are_copied_as_if_read_before(b):
    for kind in KINDS:
        for size in (10, 10_000):
            data = np.arange(size, dtype="<i8")
            array = b.array(data, kind)
            for to, from_ in ((np.s_[2:], np.s_[:-2]), (np.s_[:], np.s_[::-1]), (np.s_[::2], np.s_[: size // 2]), (np.s_[:-1], np.s_[1:])):
                array[to] = array[from_]
                data[to] = data[from_].copy()
                _same(array, data)
        square = np.arange(64 * 64, dtype="<i4").reshape(64, 64)
        array = b.array(square, kind)
        array[:] = array.T
        _same(array, np.ascontiguousarray(square.T))


def bytes_between_the_elements_stay_unchanged(b):
    for to_kind, from_kind in PAIRS:
        for size in (30, 30_000):
            target, source = b.array(np.full(size, 7, "<i2"), to_kind), b.array(np.arange(size).astype("<i2"), from_kind)
            usm.copy(target[1::3], source[::-3])
            expected = np.full(size, 7, "<i2")
            expected[1::3] = np.arange(size).astype("<i2")[::-3]
            _same(target, expected)


def a_copy_waits_for_the_work_on_both_sides(b):
    """Out of order and without a wait: the strided copy reads the pending write's values."""
    queue = b.queue(in_order=False)
    for to_kind, from_kind in PAIRS:
        first = b.array(np.arange(1 << 16, dtype="<i4").reshape(256, 256), "device", queue)
        second = usm.zeros((256, 256), "<i4", kind=from_kind, queue=queue)
        third = usm.zeros((256, 128), "<i4", kind=to_kind, queue=queue)
        queue.copy(second, first)
        third[:] = second[:, ::2]
        queue.copy(second, usm.zeros((256, 256), "<i4", kind="device", queue=queue))
        _same(third, np.arange(1 << 16, dtype="<i4").reshape(256, 256)[:, ::2])


def copies_across_contexts_go_through_the_host(b):
    one, two = b.context(), b.context()
    for to_kind, from_kind in PAIRS:
        source = b.array(np.arange(30).reshape(5, 6), from_kind, one)
        target = usm.zeros((5, 6), "<i8", kind=to_kind, queue=two)
        usm.copy(target[:, ::-1], source)
        assert target.tolist() == np.arange(30).reshape(5, 6)[:, ::-1].tolist()
        with pytest.raises(usm.RequestError, match="context"):
            target.queue.copy(target, source)
        moved = source.copy(kind=to_kind, queue=two)
        assert (moved.context, moved.kind, moved.tolist()) == (two, to_kind, source.tolist())
        here = usm.asarray(source, queue="host")
        assert here.device.backend == "host" and here.tolist() == source.tolist()


def elements_are_never_converted_implicitly(b):
    for kind in KINDS:
        array = usm.zeros(4, "<i4", kind=kind, queue=b.device)
        for wrong in (usm.zeros(4, "<f4", queue=b.device), usm.zeros(4, "<i8", queue=b.device), np.zeros(4, "<u4")):
            with pytest.raises(usm.RequestError, match="convert"):
                usm.copy(array, wrong)
        with pytest.raises(usm.RequestError):
            usm.copy(array, usm.zeros(5, "<i4", queue=b.device))


def empty_arrays_are_copied_and_filled(b):
    for to_kind, from_kind in PAIRS:
        target, source = (usm.zeros((0, 3), "<i4", kind=kind, queue=b.device) for kind in (to_kind, from_kind))
        usm.copy(target, source)
        target.fill(1)
        assert target.tolist() == [] and target.tobytes() == b"" and target.T.shape == (3, 0)


def read_only_memory_is_never_written(b):
    ours = usm.asarray(bytes(8))
    assert ours.readonly
    source = usm.zeros(8, "|u1", kind="device", queue=b.device)
    for write in (lambda: ours.fill(1), lambda: usm.copy(ours, source), lambda: b.queue().copy(ours, source), lambda: usm.copy(ours[::2], source[::2])):
        with pytest.raises(usm.AccessError, match="read-only"):
            write()
    usm.copy(source, ours)


def a_timed_queue_measures_copies(b):
    try:
        queue = usm.Queue(b.device, timed=True)
    except usm.DeviceError as error:
        assert "timing of events" in str(error)
        raise Skip(f"{b.device}: no times of events") from error
    source, target = (usm.zeros(1 << 16, kind="device", queue=queue) for _ in range(2))
    events = [queue.copy(target, source) for _ in range(3)]
    times = [event.times() for event in events]
    assert all(began <= ended for began, ended in times)
    # CUDA's times have the precision of a float.
    assert all(one[1] <= two[0] + 5000 for one, two in zip(times, times[1:]))
    with pytest.raises(usm.DeviceError, match=r"not timed.*; make the queue by usm.Queue\(device, timed=True\)"):
        usm.Queue(b.device).copy(target, source).times()
