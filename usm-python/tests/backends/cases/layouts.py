"""Random copies between layouts, and large ones between NumPy's memory and ours."""

import gc

import numpy as np
from effort import cases

import usm

from ..fixture import KINDS

TYPES = ("|u1", "<i2", "<f4", "<f8", "<c16", "|V3", "|V12")


def _layout(random, dtype):
    """A new NumPy array, an index of steps and reversals, and the shape of what it selects."""
    ndim = int(random.integers(1, 6))
    most = (4000, 150, 40, 12, 6)[ndim - 1]
    shape = [int(random.integers(1, most)) for _ in range(ndim)]
    steps = [int(random.choice([1, 1, 1, 2, 3, -1, -2])) for _ in range(ndim)]
    whole = [extent * abs(step) + int(random.integers(0, 3)) for extent, step in zip(shape, steps)]
    content = random.integers(0, 255, int(np.prod(whole)) * np.dtype(dtype).itemsize, dtype="u1")
    index = []
    for extent, step, size in zip(shape, steps, whole):
        end = extent * step if step > 0 else size - 1 + extent * step
        index.append(slice(None if step > 0 else size - 1, end if end >= 0 else None, step))
    return content.view(dtype).reshape(whole), tuple(index), shape


def random_layouts_are_copied_as_by_numpy(b):
    for kind in KINDS:
        random = np.random.default_rng([7, len(kind)])
        for _ in range(cases("USM_COPY_CASES", 12)):
            dtype = TYPES[random.integers(len(TYPES))]
            base, index, shape = _layout(random, dtype)
            turned = bool(random.integers(2))
            target_shape = shape[::-1] if turned else shape
            steps = [int(random.integers(1, 3)) for _ in target_shape]
            holes = tuple(slice(None, extent * step, step) for extent, step in zip(target_shape, steps))
            expected = np.zeros([extent * step for extent, step in zip(target_shape, steps)], dtype)
            # Each end is in our memory or in NumPy's.
            from_ours, to_ours = random.integers(2, size=2)
            source = (b.array(base, kind) if from_ours else base)[index]
            target = b.array(expected, kind) if to_ours else expected.copy()
            usm.copy(target[holes], source.T if turned else source)
            expected[holes] = base[index].T if turned else base[index]
            place = (dtype, base.shape, index, turned, holes, from_ours, to_ours)
            assert target.tobytes() == expected.tobytes(), place


def a_copy_without_a_wait_is_followed_by_later_work(b):
    data = np.arange(1 << 16, dtype="<i4").reshape(256, 256)
    for kind in KINDS:
        source, target = b.array(data, kind), b.array(np.zeros_like(data), kind)
        event = usm.copy(target, source.T, wait=False)
        later = usm.copy(target[::2], target[1::2], wait=False)
        later.wait()
        event.wait()
        expected = data.T.copy()
        expected[::2] = expected[1::2]
        assert target.tobytes() == expected.tobytes()
        # NumPy's array lives until the event is complete.
        event = usm.copy(target, data + 1, wait=False)
        gc.collect()
        event.wait()
        assert target.tobytes() == (data + 1).tobytes()
        back = np.zeros_like(data)
        usm.copy(back[:, ::-1], target, wait=False).wait()
        assert np.array_equal(back[:, ::-1], data + 1)
        assert usm.copy(target, source) is None


def large_arrays_go_to_every_kind_of_memory_and_back(b):
    """Beyond the size from which several threads copy through pinned blocks."""
    for kind in KINDS:
        for size in ((4 << 20) + 1, (9 << 20) - 3):
            data = np.random.default_rng(size).integers(0, 255, size, dtype="u1")
            array = b.array(data, kind)
            back = np.zeros_like(data)
            usm.copy(back, array)
            assert np.array_equal(back, data)
            usm.copy(array, back[::-1])
            assert np.array_equal(usm.to_numpy(array), data[::-1])
