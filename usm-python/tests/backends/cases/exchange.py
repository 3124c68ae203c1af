"""The exchange of arrays with other libraries, on each backend.

Exchange with particular libraries has files of its own.
"""

import array as plain
import gc

import numpy as np
import pytest

import usm

from ..fixture import KINDS

DICTIONARIES = ["__array_interface__", "__sycl_usm_array_interface__", "__cuda_array_interface__"]
# Types of DLPack for memory that has one by its kind; everything else but SYCL's is the host's, or
# copied there.
TYPES = {"cuda": {"device": 2, "host": 3, "shared": 13}, "hip": {"device": 10, "host": 11, "shared": 10}}


class _Wrapped:
    def __init__(self, name, fields, owner):
        self.owner = owner
        setattr(self, name, fields)


def _own(b, kind):
    """The dictionaries that an array of this kind has."""
    names = [] if kind == "device" else ["__array_interface__"]
    return names + {"sycl": ["__sycl_usm_array_interface__"], "cuda": ["__cuda_array_interface__"]}.get(b.kind, [])


def an_array_has_the_dictionaries_of_its_memory(b):
    for kind in KINDS:
        array = usm.zeros((2, 3), "<i4", kind=kind, queue=b.device)
        assert [name for name in DICTIONARIES if hasattr(array, name)] == _own(b, kind)
        for name in set(DICTIONARIES) - set(_own(b, kind)):
            with pytest.raises(AttributeError):
                getattr(array, name)


def a_dictionary_of_usm_imports_as_the_same_array(b):
    views = [lambda a: a, lambda a: a[1:, ::-1], lambda a: a.T, lambda a: a[::2, 1::3], lambda a: a[1, 2], lambda a: a[:0]]
    for kind in KINDS:
        for name in _own(b, kind):
            for view in views:
                array = view(b.array(np.arange(24, dtype="<f4").reshape(4, 6), kind))
                again = usm.asarray(_Wrapped(name, getattr(array, name), array))
                assert (again.shape, again.dtype, again.tolist()) == (array.shape, array.dtype, array.tolist())
                if not array.size:
                    continue
                assert again.pointer == array.pointer and again.readonly is False
                # Memory of the host's dictionary is host memory for every reader.
                assert again.kind == ("host" if name == "__array_interface__" and b.kind != "host" else again.kind)
                assert name == "__array_interface__" or (again.kind, again.device) == (kind, b.device)
                again[...] = 9
                assert set(np.array(array.tolist()).ravel()) == {9.0}
                assert usm.validate(_Wrapped(name, getattr(array, name), array)) == array.nbytes


def a_dictionary_keeps_its_producer_alive(b):
    for kind in KINDS:
        for name in _own(b, kind):
            context = b.context()
            array = usm.zeros(100, "|u1", kind=kind, queue=context)
            again = usm.asarray(_Wrapped(name, getattr(array, name), array))
            del array
            gc.collect()
            assert context.stats()["sum"]["live"] == 1
            again.fill(3)
            assert again.tobytes() == bytes([3] * 100)
            del again
            gc.collect()
            context.synchronize()
            for _ in range(3):
                usm.zeros(1, queue=context)
            assert context.stats()["sum"]["current"] == 0


def a_false_dictionary_is_refused(b):
    for kind in KINDS:
        for name in _own(b, kind):
            array = usm.zeros(64, "|u1", kind=kind, queue=b.device)
            good = getattr(array, name)
            for lie in ({"shape": (-1,)}, {"shape": (1 << 62, 1 << 62)}, {"typestr": "|O"}, {"typestr": "<f3"}, {"shape": None}, {"data": (0, False)}):
                with pytest.raises(usm.InterfaceError):
                    usm.asarray(_Wrapped(name, {**good, **lie}, array))
            if name != "__array_interface__":
                # Here the runtime knows the bounds.
                for lie in ({"shape": (1 << 40,)}, {"data": (8192, False)}, {"shape": (2,), "strides": (1 << 40,)}):
                    with pytest.raises(usm.InterfaceError):
                        usm.asarray(_Wrapped(name, {**good, **lie}, array))


def dlpack_names_the_device_and_round_trips(b):
    for kind in KINDS:
        array = b.array(np.arange(12, dtype="<i4").reshape(3, 4), kind)
        host = (1, 0)
        expected = (TYPES[b.kind][kind], b.device.selector.endswith("1")) if b.kind in TYPES else (14, 0) if b.kind == "sycl" else host
        assert array.__dlpack_device__() == expected
        if kind == "device" and expected == host:
            # No device of DLPack's stands for this memory, so only a requested copy leaves it.
            for refused in (lambda: array.__dlpack__(), lambda: array.__dlpack__(copy=False), lambda: usm.from_dlpack(array), lambda: np.from_dlpack(array)):
                with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
                    refused()
            again = usm.from_dlpack(array[:, ::-1], copy=True)
            assert again.device.backend == "host"
        else:
            again = usm.from_dlpack(array[:, ::-1])
            assert again.pointer == array[:, ::-1].pointer
        assert again.tolist() == array[:, ::-1].tolist()
        here = usm.from_dlpack(array, dl_device=host)
        assert here.device.backend == "host" and here.tolist() == array.tolist()
        if kind == "device":
            with pytest.raises(BufferError):
                array.__dlpack__(dl_device=host, copy=False)
        for wrong in ((2, 55), (77, 0), (14, 99)):
            with pytest.raises((usm.Error, BufferError, ValueError)):
                array.__dlpack__(dl_device=wrong)


def numpy_shares_memory_that_the_host_can_access(b):
    for kind in ("host", "shared"):
        array = b.array(np.arange(12, dtype="<f8").reshape(3, 4), kind)
        for seen in (np.asarray(array), np.asarray(memoryview(array)), np.asarray(array.T).T, np.from_dlpack(usm.asarray(np.asarray(array)))):
            assert seen.ctypes.data == array.pointer and seen.tolist() == array.tolist()
            if seen.flags.writeable:
                seen[1] += 1
                assert array.tolist() == seen.tolist()
    device = b.array(np.arange(4), "device")
    for refused in (lambda: memoryview(device), lambda: np.frombuffer(device)):
        with pytest.raises(BufferError):
            refused()
    assert usm.to_numpy(device).tolist() == [0, 1, 2, 3]


def host_objects_are_copied_to_memory_of_each_kind(b):
    producers = [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (np.arange(6).reshape(2, 3)[:, ::-1], [[2, 1, 0], [5, 4, 3]]),
        (bytearray(b"ab"), [97, 98]),
        (plain.array("i", [5, -6]), [5, -6]),
        (memoryview(b"xyz")[::2], [120, 122]),
        (2.5, 2.5),
        (usm.asarray([True, False], queue="host"), [True, False]),
    ]
    for kind in KINDS:
        for producer, expected in producers:
            array = usm.asarray(producer, kind=kind, queue=b.device)
            assert (array.kind, array.device, array.tolist()) == (kind, b.device, expected)
            with pytest.raises((usm.Error, ValueError)):
                usm.asarray([1, 2], kind=kind, queue=b.device, copy=False)


def asarray_copies_only_when_it_must(b):
    for kind in KINDS:
        array = usm.zeros(8, kind=kind, queue=b.device)
        for same in (usm.asarray(array), usm.asarray(array, kind=kind), usm.asarray(array, queue=array.queue), usm.asarray(array, copy=False)):
            assert same.pointer == array.pointer
        assert usm.asarray(array, copy=True).pointer != array.pointer
        other = KINDS[KINDS.index(kind) - 1]
        assert usm.asarray(array, kind=other).kind == other
        with pytest.raises((usm.Error, ValueError)):
            usm.asarray(array, kind=other, copy=False)


def memory_shows_only_the_dictionary_of_sycl(b):
    from ..fixture import MEMORY

    for kind in KINDS:
        memory = MEMORY[kind](16, queue=b.device)
        assert hasattr(memory, "__sycl_usm_array_interface__") == (b.kind == "sycl")
        again = usm.memory.as_usm_memory(usm.asarray(memory)) if b.kind == "sycl" else memory
        assert again._pointer == memory._pointer
        if b.kind != "sycl":
            assert memory.sycl_queue.device == memory.sycl_device == b.device
            with pytest.raises(usm.DeviceError, match="SyclQueueRef"):
                memory.queue._get_capsule()
            with pytest.raises(usm.DeviceError, match="SyclContextRef"):
                memory.queue.context._get_capsule()
