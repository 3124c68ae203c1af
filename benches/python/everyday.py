"""Everyday operations on host arrays beside NumPy's; rows of JSON.

Medians of pairs taken in turns, of the caller's CPU time in microseconds. Names of functions choose
rows: ``PYTHONPATH=FOLDER_OF_THE_PACKAGE python3 everyday.py elements``.
"""

import copy
import pickle
import sys

import numpy as np

import usm
from pairs import compare

#: An odd number of elements for bulk work.
MANY = (1 << 20) + 3
HOST = usm.Queue("host")


def ours(array):
    return usm.asarray(array, queue=HOST)


def beside(case, work, array, count=200, rounds=51):
    """The row of one function, given NumPy's array and ours of the same memory."""
    a = ours(array)
    compare(case, "NumPy", lambda: work(a), lambda: work(array), count, rounds)


def creation():
    for size in (1, 1000):
        compare(f"empty, {size} f8", "NumPy", lambda: usm.empty(size, "f8", queue=HOST), lambda: np.empty(size, "f8"), 200)
        compare(f"zeros, {size} f8", "NumPy", lambda: usm.zeros(size, "f8", queue=HOST), lambda: np.zeros(size, "f8"), 200)
        compare(f"full, {size} f8", "NumPy", lambda: usm.full(size, 7.0, queue=HOST), lambda: np.full(size, 7.0), 200)
    compare(f"full, {MANY} f8", "NumPy", lambda: usm.full(MANY, 7.0, queue=HOST), lambda: np.full(MANY, 7.0), 1)
    compare("full, 1000 times 1000 f4", "NumPy", lambda: usm.full((1000, 1000), 7.0, "f4", queue=HOST), lambda: np.full((1000, 1000), 7.0, "f4"), 1)
    a, b = np.zeros((10, 10)), usm.zeros((10, 10), queue=HOST)
    compare("empty_like, 10 times 10 f8", "NumPy", lambda: usm.empty_like(b), lambda: np.empty_like(a), 200)
    values = list(map(float, range(1000)))
    compare("asarray of a list of 1,000 floats", "NumPy", lambda: usm.asarray(values, queue=HOST), lambda: np.asarray(values), 20)
    compare("asarray of an array of NumPy", "NumPy", lambda: usm.asarray(a, queue=HOST), lambda: np.from_dlpack(a), 200)


def attributes():
    array = np.zeros((30, 40), "f4")
    for name in ("shape", "strides", "dtype", "nbytes", "ndim", "size", "T"):
        beside(f"a.{name}", lambda a, name=name: getattr(a, name), array)
    a = ours(array)
    compare("a.dtype == np.float32", "NumPy", lambda: a.dtype == np.float32, lambda: array.dtype == np.float32, 200)
    beside("len(a)", len, array)
    beside("repr(a), 30 elements", repr, np.arange(30.0), 20)


def elements():
    cube = np.arange(1000.0).reshape(10, 10, 10)
    beside("a[i]", lambda a: a[5], np.arange(1000.0))
    beside("a[i, j, k]", lambda a: a[1, 2, 3], cube)
    beside("float(a[i])", lambda a: float(a[5]), np.arange(1000.0))
    beside("a.item(), one element", lambda a: a.item(), np.arange(1.0))
    beside("a[i] = 1.0", lambda a: a.__setitem__(5, 1.0), np.arange(1000.0))
    beside("a[i, j, k] = 1.0", lambda a: a.__setitem__((1, 2, 3), 1.0), cube)
    beside("a[i] + 1", lambda a: a[5] + 1, np.arange(1000.0))
    beside("f'{a[i]:.2f}'", lambda a: f"{a[5]:.2f}", np.arange(1000.0))


def slices():
    square = np.zeros((100, 100))
    beside("a[2:50]", lambda a: a[2:50], square)
    beside("a[2:50, ::2]", lambda a: a[2:50, ::2], square)
    beside("a[..., None]", lambda a: a[..., None], square)
    beside("a.reshape(50, 200)", lambda a: a.reshape(50, 200), square)
    beside("a.T", lambda a: a.T, square)
    beside("a[2:50] = 1.0", lambda a: a.__setitem__(slice(2, 50), 1.0), square)
    beside("a[1:] = a[:-1]", lambda a: a.__setitem__(slice(1, None), a[:-1]), square)
    beside("a[a_list of 5]", lambda a: a[[0, 5, 7, 9, 11]], square)
    mask = np.zeros(100, bool)
    mask[::3] = True
    beside("a[mask]", lambda a: a[mask], square)


def iteration():
    beside("for row in a, 1,000 rows", lambda a: [None for _ in a], np.zeros((1000, 3)), 1)
    beside("for x in a, 10,000 elements", lambda a: [None for _ in a], np.zeros(10_000), 1)
    beside("list(a), 10,000 elements", list, np.zeros(10_000), 1)
    beside("a.tolist(), 10,000 f8", lambda a: a.tolist(), np.zeros(10_000), 5)
    beside("a.tolist(), 100 times 100 i4", lambda a: a.tolist(), np.zeros((100, 100), "i4"), 5)
    beside("a.tolist(), every second of 10,000 f4", lambda a: a[::2].tolist(), np.zeros(10_000, "f4"), 5)
    rows = np.zeros(1000, [("x", "f4"), ("y", "i2"), ("name", "S8")])
    beside("a.tolist(), 1,000 rows of a structure", lambda a: a.tolist(), rows, 1)
    beside("a['x'] of a structure", lambda a: a["x"], rows)
    beside("a[i]['x'] of a structure", lambda a: a[7]["x"], rows)


def bulk():
    array = np.random.default_rng(1).random(MANY)
    beside(f"a.tobytes(), {MANY} f8", lambda a: a.tobytes(), array, 1)
    beside(f"copy.copy(a), {MANY} f8", copy.copy, array, 1)
    beside(f"a.fill(1.0), {MANY} f8", lambda a: a.fill(1.0), array.copy(), 1)
    beside(f"a[:] = 2.0, {MANY} f8", lambda a: a.__setitem__(slice(None), 2.0), array.copy(), 1)
    beside(f"a.astype('f4'), {MANY} f8", lambda a: a.astype("f4"), array, 1)
    beside(f"a.tolist(), {MANY} f8", lambda a: a.tolist(), array, 1, 11)
    beside(f"np.add(a, 1, out=a), {MANY} f8", lambda a: np.add(a, 1, out=a), array.copy(), 1)
    beside(f"a += 1, {MANY} f8", lambda a: a.__iadd__(1), array.copy(), 1)
    beside(f"np.sum(a), {MANY} f8", np.sum, array, 1)
    beside(f"np.from_dlpack(a), {MANY} f8", np.from_dlpack, array)


def travel():
    small, large = np.zeros((10, 10)), np.random.default_rng(1).random(MANY)
    beside("pickle and back, 10 times 10", lambda a: pickle.loads(pickle.dumps(a, 5)), small, 50)
    beside(f"pickle and back, {MANY} f8", lambda a: pickle.loads(pickle.dumps(a, 5)), large, 1, 21)

    def out_of_band(a):
        buffers = []
        text = pickle.dumps(a, 5, buffer_callback=buffers.append)
        return pickle.loads(text, buffers=buffers)

    beside(f"pickle and back out of band, {MANY} f8", out_of_band, large, 20)
    beside("copy.deepcopy(a), 10 times 10", copy.deepcopy, small, 50)


def life():
    count = 100_000
    compare("100,000 arrays alive, each", "NumPy", lambda: [usm.empty(3, "f8", queue=HOST) for _ in range(count)], lambda: [np.empty(3, "f8") for _ in range(count)], 1, 5)


if __name__ == "__main__":
    groups = (creation, attributes, elements, slices, iteration, bulk, travel, life)
    for group in groups:
        if len(sys.argv) < 2 or group.__name__ in sys.argv[1:]:
            group()
