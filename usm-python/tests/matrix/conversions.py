"""Conversions: each takes a state and returns the next, or raises a typed error."""

import functools
import pickle
from dataclasses import replace

import numpy as np

import usm
from usm import memory, nrt

from .sources import Only
from .state import State

CLASSES = {"host": memory.MemoryUSMHost, "device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared}


def view(select):
    return lambda state: state.converted(select(usm.asarray(state.object)), select(np.array(state.index)).ravel().tolist())


def span(state):
    return list(range(min(state.index), max(state.index) + 1))


def given(state):
    """The object itself where `usm.memory` takes it, else an array over it."""
    return state.object if hasattr(state.object, "__sycl_usm_array_interface__") else usm.asarray(state.object)


def to_memory(state):
    taken = given(state)
    ours = isinstance(taken, (usm.Array, memory._Memory))
    # The flag of a foreign dictionary that is given directly is not looked at, as dpctl has it.
    writable = state.writable if ours or state.writable else None
    return state.converted(memory.as_usm_memory(taken), span(state), writable=writable)


def to_memory_by_class(state):
    taken = usm.asarray(state.object)
    return state.converted(CLASSES[taken.kind](taken), span(state))


def to_tensor(state):
    exporter = state.object if hasattr(state.object, "__dlpack__") else usm.asarray(state.object)
    return state.converted(usm.from_dlpack(exporter, copy=False))


def to_old_tensor(state):
    """Without a flag read-only arrays are not exported, and imports are read-only."""
    of = usm.asarray(state.object)
    holder = Only(of, __dlpack__=lambda max_version=None, **more: of.__dlpack__(**more), __dlpack_device__=of.__dlpack_device__)
    if of.kind == "device" and of.__dlpack_device__()[0] == 1:
        # Memory that the host does not reach, on a device that DLPack takes for the host.
        made = usm.from_dlpack(holder, copy=True)
        return State(made, list(range(made.size)), state.bytes(), shared=False, writable=False)
    if state.writable is False:
        capsule = of.__dlpack__()
        raise AssertionError(f"{capsule} has no flag, and the memory is read-only")
    return state.converted(usm.from_dlpack(holder), writable=False)


def dictionary(name):
    def convert(state):
        of = state.object if hasattr(state.object, name) else usm.asarray(state.object)
        return state.converted(Only(of, **{name: getattr(of, name)}))

    return convert


def copied(make):
    def convert(state):
        content = state.bytes()
        return state.copied(make(usm.asarray(state.object)), content)

    return convert


def copied_memory(state):
    made = memory.as_usm_memory(usm.asarray(state.object))
    content = bytes(state.content[at] for at in span(state))
    return state.copied(type(made)(made, copy=True), content)


@functools.cache
def slicer():
    import numba

    return numba.njit(lambda a: a[1:])


def through_numba(state):
    return state.converted(slicer()(usm.asarray(state.object)), state.index[1:])


def by_address(state):
    block = nrt.MemInfo(state.object)
    return state.converted(nrt.MemInfo.from_address(block.address), span(state))


def pickled(state):
    """In one piece: a copy, read-only as it was."""
    array = usm.asarray(state.object)
    made = pickle.loads(pickle.dumps(array, 4))
    return replace(state.copied(made, state.bytes()), writable=not array.readonly)


def pickled_apart(state):
    """With the buffer beside it, which is the memory itself where a host array is made of it."""
    array, buffers = usm.asarray(state.object), []
    made = pickle.loads(pickle.dumps(array, 5, buffer_callback=buffers.append), buffers=buffers)
    if made.pointer == array.pointer:
        return state.converted(made)
    return replace(state.copied(made, state.bytes()), writable=not array.readonly)


CONVERSIONS = {
    "array": lambda state: state.converted(usm.asarray(state.object)),
    "slice": view(lambda it: it[4:-4]),
    "reversed": view(lambda it: it[::-1]),
    "every second": view(lambda it: it[::2]),
    "of another type and back": view(lambda it: it.view("i1").view(it.dtype)),
    "reshaped": view(lambda it: it.reshape(-1, 1)),
    "transposed": view(lambda it: it.T),
    "memory": to_memory,
    "memory by its class": to_memory_by_class,
    "block": lambda state: state.converted(nrt.MemInfo(state.object), span(state)),
    "block by address": by_address,
    "tensor": to_tensor,
    "tensor without flags": to_old_tensor,
    "buffer": lambda state: state.converted(memoryview(state.object)),
    "dictionary": dictionary("__array_interface__"),
    "dictionary of SYCL's": dictionary("__sycl_usm_array_interface__"),
    "dictionary of CUDA's": dictionary("__cuda_array_interface__"),
    "numpy": lambda state: state.converted(np.asarray(usm.asarray(state.object))),
    "numba": through_numba,
    "copy": copied(lambda array: usm.asarray(array, copy=True)),
    "copy on the host": copied(lambda array: array.copy(kind="host")),
    "copy on the device": copied(lambda array: array.copy(kind="device")),
    "copied memory": copied_memory,
    "pickled": pickled,
    "pickled apart": pickled_apart,
}
