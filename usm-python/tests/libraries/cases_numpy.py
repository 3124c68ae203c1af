"""Exchanges with NumPy and with Python's own library."""

import asyncio
import collections
import concurrent.futures
import copy
import ctypes
import dataclasses
import functools
import io
import json
import mmap
import pickle
import shelve
import struct
import tempfile
from array import array as standard_array
from pathlib import Path

import numpy as np

import usm
from exchange import array, exchange, shares


@exchange("Python", "usm.asarray(array.array)")
def _():
    theirs = standard_array("d", [1, 2])
    ours = usm.asarray(theirs)
    ours[0] = 5
    assert theirs[0] == 5


@exchange("Python", "memoryview(a)")
def _():
    ours = array()
    view = memoryview(ours)
    view[1] = 7.0
    assert ours.tolist() == [0, 7, 2, 3] and view.format == "f"


@exchange("Python", "struct.unpack_from, pack_into")
def _():
    ours = array()
    struct.pack_into("f", ours, 4, 8.0)
    assert struct.unpack_from("4f", ours) == (0, 8, 2, 3)


@exchange("Python", "ctypes: (c_float * 4).from_buffer(a)")
def _():
    ours = array()
    (ctypes.c_float * 4).from_buffer(ours)[2] = 6.0
    assert ours[2] == 6


@exchange("Python", "usm.asarray(mmap), file.readinto(a)")
def _():
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(16)))
        file.flush()
        with mmap.mmap(file.fileno(), 16) as mapped:
            ours = usm.asarray(mapped)
            assert ours.tolist() == list(range(16))
            del ours
    target = usm.zeros(4, "u1", device="host")
    assert io.BytesIO(b"\1\2\3\4").readinto(target) == 4 and target.tolist() == [1, 2, 3, 4]


@exchange("Python", "pickle, shelve")
def _():
    ours = array()
    with tempfile.TemporaryDirectory() as folder, shelve.open(str(Path(folder, "file"))) as shelf:
        shelf["a"] = ours
        assert shelf["a"].tolist() == ours.tolist() == pickle.loads(pickle.dumps(ours)).tolist()


@exchange("Python", "copy.copy, copy.deepcopy")
def _():
    ours = array()
    for made in (copy.copy(ours), copy.deepcopy({"a": ours})["a"]):
        made[0] = 5
        assert ours[0] == 0


@exchange("Python", "threads that read one array")
def _():
    ours = array(range(1000), "i8")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda at: int(ours[at]), range(1000))) == 499500


@exchange("Python", "a field of a dataclass, functools.singledispatch")
def _():
    @dataclasses.dataclass(eq=False)
    class Layer:
        weight: usm.Array

    @functools.singledispatch
    def name(value):
        return "other"

    @name.register
    def _(value: usm.Array):
        return "array"

    assert name(dataclasses.replace(Layer(array())).weight) == "array"


@exchange("Python", "json.dumps(a.tolist())")
def _():
    assert json.loads(json.dumps(array().tolist())) == [0, 1, 2, 3]


@exchange("Python", "await of an event")
def _():
    queue = usm.Queue("host")
    target = usm.zeros(4, "f4", queue=queue)

    async def run():
        await queue.copy(target, array())

    asyncio.run(run())
    assert target.tolist() == [0, 1, 2, 3]


@exchange("Python", 'f"{a[0]:.2f}", max(a), range(a[i])')
def _():
    assert (f"{array()[1]:.2f}", max(array()), list(range(array((1, 2), "i4")[1]))) == ("1.00", 3, [0, 1])


@exchange("Python", "class Named(usm.Array)", "0104", "not an acceptable base type")
def _():
    type("Named", (usm.Array,), {})


@exchange("NumPy", "np.asarray(a), usm.asarray(ndarray)")
def _():
    ours, theirs = array(), np.arange(4.0)
    assert shares(ours, np.asarray(ours)) and shares(usm.asarray(theirs), theirs)


@exchange("NumPy", "from_dlpack both ways")
def _():
    ours, theirs = array(), np.arange(4.0)
    assert shares(ours, np.from_dlpack(ours)) and shares(usm.from_dlpack(theirs), theirs)


@exchange("NumPy", "a + 1, a * ndarray, ndarray - a")
def _():
    ours = array()
    assert (ours + 1).tolist() == [1, 2, 3, 4] and (ours * np.arange(4)).tolist() == [0, 1, 4, 9]
    assert (np.ones(4) - ours).tolist() == [1, 0, -1, -2]


@exchange("NumPy", "np.add(a, 1, out=a), a += 1")
def _():
    ours = array()
    np.add(ours, 1, out=ours)
    ours += 1
    assert ours.tolist() == [2, 3, 4, 5]


@exchange("NumPy", "np.sum, np.mean, np.take, np.where, np.concatenate")
def _():
    ours = array()
    assert (np.sum(ours), np.mean(ours), np.take(ours, 2)) == (6, 1.5, 2)
    assert np.where(ours > 1, ours, 0).tolist() == [0, 0, 2, 3]
    assert np.concatenate([ours, ours]).shape == (8,)


@exchange("NumPy", "a.sum()", "0085", "has no attribute 'sum'")
def _():
    array().sum()


@exchange("NumPy", "a[mask], a[[0, 2]]")
def _():
    ours = array()
    assert ours[ours > 1].tolist() == [2, 3] and ours[[0, 2]].tolist() == [0, 2]


@exchange("NumPy", 'a.astype("i4"), a[:] = f8 array')
def _():
    ours = array()
    ours[:] = np.arange(4.0) * 2
    assert ours.astype("i4").tolist() == [0, 2, 4, 6]


@exchange("NumPy", "np.save(a), np.load into usm, np.memmap")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a.npy"))
        np.save(path, array())
        assert usm.asarray(np.load(path)).tolist() == [0, 1, 2, 3]
        assert usm.asarray(np.load(path, mmap_mode="r+")).tolist() == [0, 1, 2, 3]


@exchange("NumPy", "np.linalg, np.fft")
def _():
    ours = array((2, 0, 0, 2), "f8", (2, 2))
    assert np.linalg.solve(ours, [2, 4]).tolist() == [1, 2]
    assert np.fft.fft(array()).shape == (4,)


@exchange("NumPy", "Generator.random(out=np.asarray(a))")
def _():
    ours = array(dtype="f8")
    np.random.default_rng(1).random(out=np.asarray(ours))
    assert 0 < ours[0] < 1


@exchange("NumPy", "np.testing.assert_allclose(a, ..)")
def _():
    np.testing.assert_allclose(array(), [0, 1, 2, 3])


@exchange("NumPy", "np.result_type(a, ..), np.dtype(a.dtype)")
def _():
    assert np.result_type(array(), np.float64) == "f8" and np.dtype(array().dtype) == "f4"


@exchange("NumPy", "records: a['x'], tolist")
def _():
    theirs = np.array([(1.0, 2), (3.0, 4)], [("x", "f4"), ("y", "i2")])
    ours = usm.asarray(theirs)
    assert ours["x"].tolist() == [1, 3] and ours.tolist() == theirs.tolist()


@exchange("NumPy", "collections: a deque and a dict of arrays")
def _():
    held = collections.deque(array() for _ in range(3))
    named = {id(one): one for one in held}
    assert [one[1] for one in named.values()] == [1, 1, 1]
