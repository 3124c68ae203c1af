"""Strides that no element takes: the same by every way in, whatever the producer says of them."""

import ctypes
import math
import random

import pytest

import effort
import usm
from conftest import require
from test_dlpack_rules import new_capsule
from hostile import DELETER, Legacy, Tensor, Versioned

ODD = (0, 1, -1, 3, 7, 64, -64, 1 << 40, -(1 << 40), (1 << 62) + 1, -(1 << 63))


# A consumer deletes a tensor last of all, after the object that it took it from.
KEPT = []


class Dictionary:
    def __init__(self, name, owner, **fields):
        self.owner, self.fields = owner, {"version": 3, **fields}
        setattr(self, name, self.fields)


class Exported:
    """A tensor with the given strides, in elements."""

    def __init__(self, owner, address, shape, strides, legacy):
        self.owner, count = owner, len(shape)
        self.dims = (ctypes.c_int64 * (2 * count + 1))(*shape, *strides)
        self.managed = (Legacy if legacy else Versioned)()
        self.managed.deleter = DELETER(lambda this: None)
        at = [ctypes.cast(ctypes.addressof(self.dims) + 8 * index, ctypes.POINTER(ctypes.c_int64)) for index in (0, count)]
        self.managed.tensor = Tensor(address, 1, 0, count, 2, 32, 1, *at, 0)
        if not legacy:
            self.managed.major, self.managed.minor = 1, 3
        self.name = ctypes.create_string_buffer(b"dltensor" if legacy else b"dltensor_versioned")
        KEPT.append((self.dims, self.managed, self.name))

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


class Numpy:
    """NumPy's own export, where the array itself is read by its structure."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)


def contiguous(shape):
    """C's strides, as NumPy gives them to new arrays."""
    return tuple(4 * math.prod(max(extent, 1) for extent in shape[axis + 1 :]) for axis in range(len(shape)))


def views(source, numpy):
    """A random view of float32, and whether it is in C's order."""
    shape = [source.choice((0, 1, 1, 1, 2, 3, 5)) for _ in range(source.randrange(1, 6))]
    base = numpy.zeros([extent + source.choice((0, 0, 2)) for extent in shape], "f4", order=source.choice("CF"))
    cut = tuple(slice(0, extent) if source.random() < 0.7 else slice(extent - 1 if extent else 0, None, -1) for extent in shape)
    view = base[cut][tuple(slice(0, extent) for extent in shape)]
    return view.transpose(source.sample(range(len(shape)), len(shape)))


def test_every_way_in_gives_the_same_strides():
    numpy = require("numpy", "arrays with any strides")
    source, found = random.Random(363), set()
    for _ in range(effort.cases("USM_STRIDE_CASES", 400)):
        view = views(source, numpy)
        shape, said = view.shape, view.strides
        unused = [view.size == 0 or extent == 1 for extent in shape]

        def odd():
            """The view's strides, with any numbers in the place of those that no element takes."""
            return tuple(source.choice(ODD) if free else stride for free, stride in zip(unused, said, strict=True))

        strided = numpy.lib.stride_tricks.as_strided(view, shape, [stride if abs(stride) < 1 << 61 else 0 for stride in odd()])
        data = (view.ctypes.data, False)
        elements = [tuple(stride // 4 for stride in said), tuple(source.choice(ODD) if free else stride // 4 for free, stride in zip(unused, said, strict=True))]
        ways = {
            "structure": view,
            "odd structure": strided,
            "dictionary": Dictionary("__array_interface__", view, shape=shape, typestr="<f4", data=data, strides=said),
            "odd dictionary": Dictionary("__array_interface__", view, shape=shape, typestr="<f4", data=data, strides=odd()),
            "buffer": memoryview(view),
            "numpy's tensor": Numpy(view),
            **{f"tensor {index} {legacy}": Exported(view, data[0], shape, elements[index], legacy) for index in (0, 1) for legacy in (False, True)},
        }  # fmt: skip
        if view.flags.c_contiguous:
            ways["dictionary without strides"] = Dictionary("__array_interface__", view, shape=shape, typestr="<f4", data=data)
        arrays = {way: usm.asarray(producer) for way, producer in ways.items()}
        strides = {array.strides for array in arrays.values()}
        assert len(strides) == 1, {way: array.strides for way, array in arrays.items()}
        (here,) = strides
        assert all(free or stride == there for free, stride, there in zip(unused, here, said, strict=True))
        if view.flags.c_contiguous:
            assert here == contiguous(shape)
        elif view.flags.f_contiguous:
            assert here == contiguous(shape[::-1])[::-1]
        found.add((view.flags.c_contiguous, view.flags.f_contiguous, view.size == 0))
        # Out again: consumers that compare strides take a contiguous array for one.
        for array in arrays.values():
            assert (array.size == 0 or array.pointer == view.ctypes.data) and numpy.asarray(array).shape == shape
            assert array.size == 0 or numpy.from_dlpack(array).strides == here
    assert len(found) >= 5


def exported(array):
    """The strides that a consumer of DLPack sees, in elements."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = Versioned.from_address(pointer(array.__dlpack__(max_version=(1, 3)), b"dltensor_versioned")).tensor
    return [tensor.strides[axis] for axis in range(tensor.ndim)]


def test_views_go_out_with_strides_in_the_normal_form():
    array = usm.zeros((3, 5), "f4", queue="host")
    for view, strides in (
        (array[None], [15, 5, 1]),
        (array[:, None], [5, 5, 1]),
        (array[:1], [5, 1]),
        (array[:, :1], [5, 1]),
        (array[:, :1].T, [15, 5]),
        (array[:1, ::2], [6, 2]),
        (array[:0], [5, 1]),
        (array[0:0, None], [5, 5, 1]),
        (array[:, 0:0][2], [1]),
        (array[2:][:, 0:0], [1, 1]),
    ):
        assert exported(view) == strides, view.shape


def test_views_of_nothing_stay_in_their_memory():
    for shape in ((0,), (3, 0), (0, 3), (5, 0, 7), (1, 0, 1)):
        array = usm.zeros(shape, "f8", queue="host")
        keys = [..., slice(None), slice(1, None), slice(None, None, -1), None]
        keys += [index for index in (0, -1, 2) if -shape[0] <= index < shape[0]]
        for key in keys:
            view = array[key]
            assert view.pointer == array.pointer and view.size == 0
            assert view.copy().tolist() == view.tolist() and view.tobytes() == b""
            view[...] = 1.0
            assert bytes(memoryview(view)) == b""
            assert usm.to_numpy(view).shape == view.shape


@pytest.mark.parametrize("shape", [(1, 77), (77, 1), (1, 1, 5), (1,), (2, 1, 3)])
def test_a_contiguous_tensor_is_contiguous_by_dlpack(shape):
    data = (ctypes.c_float * 77)()
    for strides in ((0,) * len(shape), (99,) * len(shape)):
        steps = [step if extent == 1 else full // 4 for step, extent, full in zip(strides, shape, contiguous(shape), strict=True)]
        array = usm.asarray(Exported(data, ctypes.addressof(data), shape, steps, False))
        assert array.strides == contiguous(shape) and exported(array) == [stride // 4 for stride in contiguous(shape)]
