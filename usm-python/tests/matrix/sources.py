"""Sources of memory: read-only by each protocol, of each kind and context, with pending work."""

import array
import ctypes
import importlib
import mmap
import os
import tempfile

import numpy as np

import usm
from usm import memory

from .state import CONTENT, Source

SIZE = len(CONTENT)


class Only:
    """An object with only these attributes of another one."""

    def __init__(self, of, **attributes):
        self.of = of
        for name, value in attributes.items():
            setattr(self, name, value)


def numpy(writable):
    made = np.frombuffer(bytearray(CONTENT), "|u1") if writable else np.frombuffer(CONTENT, "|u1")
    return made



def file():
    with tempfile.TemporaryFile() as opened:
        opened.write(CONTENT)
        opened.flush()
        return mmap.mmap(opened.fileno(), SIZE, access=mmap.ACCESS_READ)


def mapped():
    with tempfile.NamedTemporaryFile(delete=False) as opened:
        opened.write(CONTENT)
    made = np.memmap(opened.name, "|u1", mode="r")
    os.unlink(opened.name)
    return made


def loaded():
    with tempfile.NamedTemporaryFile(delete=False, suffix=".npy") as opened:
        np.save(opened, np.frombuffer(CONTENT, "|u1"))
    made = usm.load(opened.name)
    os.unlink(opened.name)
    return made


def dictionary(writable):
    kept = numpy(True)
    return Source(Only(kept, __array_interface__={**kept.__array_interface__, "data": (kept.ctypes.data, not writable)}), writable, kept.tobytes)


def of_buffer(writable):
    kept = bytearray(CONTENT)
    data = memoryview(kept) if writable else memoryview(kept).toreadonly()
    interface = {"data": data, "shape": (SIZE,), "typestr": "|u1", "version": 3}
    return Source(Only(kept, __array_interface__=interface), writable, lambda: bytes(kept))


class Tensor:
    """NumPy's DLPack without versions, which has no flag, so the array is read-only."""

    def __init__(self, kept, versioned=True):
        self.kept, self.versioned = kept, versioned

    def __dlpack_device__(self):
        return self.kept.__dlpack_device__()

    def __dlpack__(self, *, max_version=None, **more):
        return self.kept.__dlpack__(max_version=max_version if self.versioned else None, **more)


def tensor(writable, versioned=True):
    kept = numpy(writable)
    return Source(Tensor(kept, versioned), writable and versioned, kept.tobytes)


def old_tensor():
    kept = numpy(True)
    return Source(Tensor(kept, False), False, kept.tobytes)


def plain(make, writable):
    def source():
        kept = make()
        return Source(kept, writable, lambda: bytes(kept), kept)

    return source


def windowed():
    """Part of an array that may be written, as compiled code gives it out when it may not."""
    base = usm.asarray(bytearray(CONTENT))
    made = usm._usm._nrt_window(base, base.pointer, (SIZE,), (1,), "|u1", True)
    return Source(made, False, base.tobytes, base)


HOST = {
    "bytes": plain(lambda: CONTENT, False),
    "bytearray": plain(lambda: bytearray(CONTENT), True),
    "view of a bytearray, read-only": plain(lambda: memoryview(bytearray(CONTENT)).toreadonly(), False),
    "array.array": plain(lambda: array.array("B", CONTENT), True),
    "ctypes": plain(lambda: (ctypes.c_ubyte * SIZE)(*CONTENT), True),
    "file mapped to be read": plain(file, False),
    "numpy.memmap to be read": plain(mapped, False),
    "usm.load": plain(loaded, False),
    "numpy": plain(lambda: numpy(True), True),
    "numpy, read-only": plain(lambda: numpy(False), False),
    "dictionary": lambda: dictionary(True),
    "dictionary, read-only": lambda: dictionary(False),
    "dictionary of a buffer": lambda: of_buffer(True),
    "dictionary of a read-only buffer": lambda: of_buffer(False),
    "tensor": lambda: tensor(True),
    "tensor, read-only": lambda: tensor(False),
    "tensor without flags": old_tensor,
    "window, read-only": windowed,
    "block of bytes": lambda: Source(usm.nrt.MemInfo(CONTENT), False, lambda: CONTENT),
}


def ours(kind, place):
    """An array of ours."""

    def source():
        made = usm.empty(SIZE, "|u1", kind=kind, queue=place())
        usm.copy(made, CONTENT)
        return Source(made, True, made.tobytes, made)

    return source


def restricted(kind, place):
    """The same, read-only by DLPack's flag."""

    def source():
        made = ours(kind, place)()
        view = usm._usm._nrt_window(made.object, made.object.pointer, (SIZE,), (1,), "|u1", True)
        return Source(view, False, made.look, made)

    return source


def block(kind, place):
    """A memory object."""

    def source():
        classes = {"host": memory.MemoryUSMHost, "device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared}
        made = classes[kind](SIZE, queue=place())
        made.copy_from_host(CONTENT)
        return Source(made, True, made.tobytes, made)

    return source


def pending(kind, place):
    """A copy into the memory is pending, on an out-of-order queue."""

    def source():
        queue = usm.Queue(place(), in_order=False)
        made, given = (usm.empty(SIZE, "|u1", kind=kind, queue=queue) for _ in range(2))
        usm.copy(given, CONTENT)
        queue.copy(made, given)
        return Source(made, True, made.tobytes, (made, given, queue))

    return source


def sycl(writable, with_offset):
    """A dictionary of SYCL.

    Without an offset it looks like that of dpctl's memory, whose flag means the opposite.
    """

    def source():
        made = ours("shared", lambda: "sycl")()
        interface = {**made.object.__sycl_usm_array_interface__, "data": (made.object.pointer, not writable)}
        if not with_offset:
            del interface["offset"]
        readonly = not writable and (with_offset or interface["syclobj"].__class__.__name__ != "SyclQueue")
        return Source(Only(made, __sycl_usm_array_interface__=interface), not readonly, made.look, made)

    return source


def dpctl_memory(kind):
    def source():
        import dpctl.memory

        made = getattr(dpctl.memory, f"MemoryUSM{kind.title()}")(SIZE)
        made.copy_from_host(CONTENT)
        return Source(made, True, lambda: bytes(made.copy_to_host()), made)

    return source


def cuda(writable):
    def source():
        made = ours("device", lambda: "cuda")()
        interface = {**made.object.__cuda_array_interface__, "data": (made.object.pointer, not writable), "stream": None}
        return Source(Only(made, __cuda_array_interface__=interface), writable, made.look, made)

    return source


def sources(backend):
    """By name, for the process of one runtime."""
    made = dict(HOST) if backend == "host" else {}
    contexts = {"": lambda: usm.Device(backend).context, ", other context": lambda: OTHER.setdefault(backend, usm.Context(usm.Device(backend)))}
    for where, place in contexts.items():
        for kind in ("host", "device", "shared"):
            made[f"{kind}{where}"] = ours(kind, place)
            made[f"{kind}{where}, read-only"] = restricted(kind, place)
            made[f"{kind}{where}, memory"] = block(kind, place)
            made[f"{kind}{where}, pending"] = pending(kind, place)
    if backend == "sycl":
        # Dictionaries of ours then name its queues.
        importlib.import_module("dpctl")
        for writable in (True, False):
            for with_offset in (True, False):
                made[f"dictionary of SYCL's, {writable=}, {with_offset=}"] = sycl(writable, with_offset)
        for kind in ("host", "device", "shared"):
            made[f"dpctl, {kind}"] = dpctl_memory(kind)
    if backend == "cuda":
        made |= {f"dictionary of CUDA's, {writable=}": cuda(writable) for writable in (True, False)}
    return made


OTHER = {}
