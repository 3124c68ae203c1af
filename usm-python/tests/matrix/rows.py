"""The operations: a row for each public member of each class and each public function."""

import copy
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import usm
from usm import memory, nrt

from .sources import Only


@dataclass(frozen=True)
class Write:
    """Sets every element to a value."""

    call: Callable


@dataclass(frozen=True)
class Read:
    """Gives the elements in C order, or all bytes from the first in memory to the last."""

    call: Callable
    of_span: bool = False


@dataclass(frozen=True)
class Flag:
    """Whether the memory reports that it is read-only."""

    call: Callable


@dataclass(frozen=True)
class Plain:
    """Returns an unchecked value, and changes nothing."""

    call: Callable


def attributes(names):
    return {name: [Plain(lambda it, name=name: getattr(it, name))] for name in names.split()}


def host(size, value=0):
    made = memory.MemoryUSMHost(size, queue="host")
    made.memset(value)
    return made


def put(array, value):
    array[...] = value


def submit(it, value):
    array = usm.asarray(it)
    given = usm.asarray(bytes([value]) * array.nbytes, kind="shared", queue=array.queue, copy=True)
    array.queue.copy(it, given).wait()


def elsewhere(it, dtype, value):
    """A new array of `it`'s shape, in shared memory of another context of its device."""
    array = usm.asarray(it)
    return usm.full(array.shape, value, dtype, kind="shared", queue=OTHERS.setdefault(array.device, usm.Context(array.device)))


def beside(it, dtype, value):
    """The same, in device memory of its own queue."""
    array = usm.asarray(it)
    return usm.full(array.shape, value, dtype, kind="device", queue=array.queue)


def mirrored(it):
    """A view whose first axis goes back: its copies are not of one run."""
    return usm.asarray(it)[::-1]


def taken(it):
    array = usm.asarray(it)
    made = usm.empty(array.nbytes, "|u1", queue=array.queue)
    array.queue.copy(made, it).wait()
    return made.tobytes()


def copied(it):
    made = usm.empty(usm.asarray(it).shape, "|u1", kind="host", queue="host")
    usm.copy(made, it)
    return made.tobytes()


def saved(ending):
    """The elements through a file, which is read back."""

    def read(it):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"array{ending}")
            array = usm.asarray(it)
            usm.save(path, {"array": array} if ending == ".safetensors" else array)
            loaded = usm.load(path)
            return (loaded["array"] if ending == ".safetensors" else loaded).tobytes()

    return read


def filled(method):
    """By a method of a memory object that takes from `it`; zeros behind it."""

    def read(it):
        made = host(64)
        getattr(made, method)(it)
        return made.tobytes()

    return read


def numpy_of(name):
    return lambda it: np.asarray(Only(it, **{name: getattr(it, name)}))


def tensor(it):
    """NumPy's view by DLPack, of memory that the host reads."""
    here = (1, 0)
    return np.from_dlpack(Only(it, __dlpack_device__=lambda: here, __dlpack__=lambda **more: it.__dlpack__(**{**more, "dl_device": here, "copy": False})))


def column(method):
    """The bytes by Arrow's structures, which are read-only and of memory in C order."""
    return lambda it: usm.asarray(Only(it, **{method: lambda: getattr(it, method)()})).tobytes()


def rebuilt(reduced):
    function, arguments = reduced
    return function(*arguments)


def flat(values):
    return bytes(np.array(values, "|u1").ravel())


def dunders(names):
    return " ".join(f"__{name}__" for name in names.split())


#: Other contexts, by device.
OTHERS = {}

#: Functions of the package, of any object.
FUNCTIONS = {
    "copy": [
        Write(lambda it, value: usm.copy(it, bytes([value]))),
        Read(copied),
        Write(lambda it, value: usm.copy(it, bytes([value]), wait=False).wait()),
        Write(lambda it, value: usm.copy(mirrored(it), beside(it, "|u1", value)[::-1])),
        Write(lambda it, value: usm.copy(mirrored(it), beside(it, "|u1", value)[::-1], wait=False).wait()),
        Write(lambda it, value: usm.copy(it, elsewhere(it, "|u1", value))),
        Write(lambda it, value: usm.copy(mirrored(it), elsewhere(it, "|u1", value)[::-1])),
    ],
    "asarray": [
        Write(lambda it, value: usm.asarray(it).fill(value)),
        Read(lambda it: usm.asarray(it).tobytes()),
        Read(lambda it: usm.asarray(it, copy=True).tobytes()),
        Read(lambda it: usm.asarray(it, kind="host").tobytes()),
    ],
    "from_dlpack": [Write(lambda it, value: usm.from_dlpack(it, copy=False).fill(value)), Read(lambda it: usm.from_dlpack(it).tobytes())],
    "to_numpy": [Read(lambda it: usm.to_numpy(it).tobytes())],
    "validate": [Plain(usm.validate)],
    # New memory, whatever they are like.
    "empty_like": [Plain(usm.empty_like)],
    "zeros_like": [Plain(usm.zeros_like)],
    "full_like": [Plain(lambda it: usm.full_like(it, 1).fill(2))],
    "files.save": [Read(saved(".npy")), Read(saved(".safetensors")), Read(saved(".raw"))],
    "Queue.copy": [Write(submit), Read(taken)],
    "_Memory.copy_from_host": [Read(filled("copy_from_host"))],
    "_Memory.copy_from_device": [Read(filled("copy_from_device"), of_span=True)],
    "_Memory.copy_to_host": [Write(lambda it, value: host(usm.asarray(it).nbytes, value).copy_to_host(it))],
}

BUFFER = [Write(lambda it, value: put(np.asarray(memoryview(it)), value)), Read(lambda it: memoryview(it).tobytes()), Flag(lambda it: memoryview(it).readonly)]

ARITHMETIC = dunders(
    "abs add and divmod eq floordiv ge gt invert le lshift lt matmul mod mul ne neg or pos pow radd rand rdivmod rfloordiv rlshift rmatmul rmod"
    " rmul ror rpow rrshift rshift rsub rtruediv rxor sub truediv xor"
)

MEMBERS = {
    "Array": {
        "buffer": BUFFER,
        "fill": [Write(lambda it, value: it.fill(value))],
        "__setitem__": [
            Write(lambda it, value: put(it, value)),
            Write(lambda it, value: put(it, [value])),
            Write(lambda it, value: put(it, bytes([value]))),
            Write(lambda it, value: put(it, usm.asarray(bytes([value])))),
            # Converted, where the device has code for it.
            Write(lambda it, value: put(it, beside(it, "<u2", value))),
            Write(lambda it, value: put(mirrored(it), beside(it, "<u8", value))),
            Write(lambda it, value: put(it, elsewhere(it, "<u4", value))),
        ],
        "__getitem__": [Write(lambda it, value: it[...].fill(value)), Read(lambda it: it[...].tobytes())],
        "__iter__": [Write(lambda it, value: [row.fill(value) for row in it]), Read(lambda it: b"".join(row.tobytes() for row in it))],
        "T": [Write(lambda it, value: it.T.fill(value)), Read(lambda it: it.T.T.tobytes())],
        "view": [
            Write(lambda it, value: it.view("?").view(it.dtype).fill(value)),
            Read(lambda it: it.view("i1").tobytes()),
            Flag(lambda it: it.view("i1").readonly),
        ],
        "transpose": [Write(lambda it, value: it.transpose().fill(value)), Read(lambda it: it.transpose(range(it.ndim)).tobytes())],
        "reshape": [Write(lambda it, value: it.reshape(-1).fill(value)), Read(lambda it: it.reshape(-1).tobytes())],
        "ravel": [Write(lambda it, value: it.ravel("F").fill(value)), Read(lambda it: it.ravel().tobytes())],
        "copy": [Read(lambda it: it.copy().tobytes()), Read(lambda it: it.copy(kind="device").tobytes())],
        "to_device": [
            Write(lambda it, value: it.to_device(it.device).fill(value)),
            Read(lambda it: it.to_device(it.device).tobytes()),
            Read(lambda it: it.to_device("host").tobytes()),
        ],
        "__copy__": [Read(lambda it: copy.copy(it).tobytes())],
        "__deepcopy__": [Read(lambda it: copy.deepcopy(it).tobytes())],
        "__reduce__": [Read(lambda it: rebuilt(it.__reduce__()).tobytes()), Flag(lambda it: rebuilt(it.__reduce__()).readonly)],
        "__reduce_ex__": [Read(lambda it: rebuilt(it.__reduce_ex__(5)).tobytes()), Flag(lambda it: rebuilt(it.__reduce_ex__(5)).readonly)],
        "advise": [Plain(lambda it: it.advise("reset"))],
        "tobytes": [Read(lambda it: it.tobytes())],
        "tolist": [Read(lambda it: flat(it.tolist()))],
        "readonly": [Flag(lambda it: it.readonly)],
        "__array__": [Write(lambda it, value: put(it.__array__(), value)), Read(lambda it: it.__array__().tobytes())],
        "__array_function__": [Write(lambda it, value: put(np.atleast_1d(it), value)), Read(lambda it: np.atleast_1d(it).tobytes())],
        "__array_interface__": [
            Write(lambda it, value: put(numpy_of("__array_interface__")(it), value)),
            Read(lambda it: numpy_of("__array_interface__")(it).tobytes()),
            Flag(lambda it: it.__array_interface__["data"][1]),
        ],
        "__sycl_usm_array_interface__": [Flag(lambda it: it.__sycl_usm_array_interface__["data"][1])],
        "__cuda_array_interface__": [Flag(lambda it: it.__cuda_array_interface__["data"][1])],
        "__arrow_c_array__": [Read(column("__arrow_c_array__"))],
        "__arrow_c_device_array__": [Read(column("__arrow_c_device_array__"))],
        "__arrow_c_schema__": [Plain(lambda it: it.__arrow_c_schema__())],
        "__dlpack__": [Write(lambda it, value: put(tensor(it), value)), Read(lambda it: tensor(it).tobytes())],
        **{name: [Plain(lambda it, name=name: getattr(it, name)())] for name in ("item", "wait", "prefetch", "ipc_handle", "_repr_html_", "_repr_mimebundle_", "__dlpack_device__", *dunders("int float bool len repr hash sizeof").split())},
        **{name: [Plain(lambda it, name=name: getattr(it, name))] for name in ARITHMETIC.split()},
        **attributes("base context ctypes device dtype is_c_contiguous is_f_contiguous itemsize kind nbytes ndim pointer _address queue shape size strides sycl_queue usm_type"),
        **attributes("__delitem__ __dlpack_c_exchange_api__ __c_dlpack_exchange_api__"),
        "astype": [
            Read(lambda it: it.astype(it.dtype).tobytes()),
            Write(lambda it, value: it.astype(it.dtype, copy=False).fill(value)),
            Read(lambda it: it.astype("<u4").astype("|u1").tobytes()),
        ],
        "__array_ufunc__": [
            Write(lambda it, value: np.multiply(np.ones(it.shape, np.dtype(it.dtype)), value, out=it, casting="unsafe")),
            Read(lambda it: np.positive(it).tobytes()),
        ],
        **attributes(dunders("iadd isub imul itruediv ifloordiv imod imatmul ilshift irshift iand ior ixor ipow")),
        **attributes(dunders("index complex format numpy_dtype")),
    },
    "_Memory": {
        "buffer": BUFFER,
        "memset": [Write(lambda it, value: it.memset(value))],
        "copy_from_host": [Write(lambda it, value: it.copy_from_host(bytes([value]) * it.nbytes))],
        "copy_from_device": [Write(lambda it, value: it.copy_from_device(host(it.nbytes, value)))],
        "copy_to_host": [Read(lambda it: bytes(it.copy_to_host()))],
        "tobytes": [Read(lambda it: it.tobytes())],
        "__bytes__": [Read(bytes)],
        "__array__": [Write(lambda it, value: put(it.__array__(), value)), Read(lambda it: it.__array__().tobytes())],
        "__array_function__": [Write(lambda it, value: put(np.atleast_1d(it), value)), Read(lambda it: np.atleast_1d(it).tobytes())],
        "__sycl_usm_array_interface__": [Flag(lambda it: it.__sycl_usm_array_interface__["data"][1])],
        "__reduce__": [Read(lambda it: it.__reduce__()[1][0])],
        **{name: [Plain(lambda it, name=name: getattr(it, name)())] for name in ("get_usm_type", "get_usm_type_enum", *dunders("len sizeof repr").split())},
        **attributes("nbytes size queue _queue _context _is_dpctls _pointer reference_obj sycl_context sycl_device sycl_queue"),
    },
    "MemInfo": {
        "buffer": BUFFER,
        "readonly": [Flag(lambda it: it.readonly)],
        "__array__": [Write(lambda it, value: put(it.__array__(), value)), Read(lambda it: it.__array__().tobytes())],
        "__array_function__": [Write(lambda it, value: put(np.atleast_1d(it), value)), Read(lambda it: np.atleast_1d(it).tobytes())],
        "acquire": [Plain(lambda it: (it.acquire(), it.release()))],
        "release": [Plain(lambda it: it.release())],
        "from_address": [Flag(lambda it: nrt.MemInfo.from_address(it.address).readonly)],
        "allocate": [Plain(lambda it: nrt.MemInfo.allocate(it.size))],
        **{name: [Plain(lambda it, name=name: getattr(it, name)())] for name in dunders("len repr").split()},
        **attributes("address data kind parent refcount size"),
    },
    "memoryview": {"buffer": BUFFER},
    "ndarray": {"buffer": BUFFER, "flags": [Flag(lambda it: not it.flags.writeable)]},
}

#: Members and functions that no memory reaches.
WITHOUT_MEMORY = {
    "Queue": set("_get_capsule barrier context device is_in_order number wait".split()) | {"copy"},
    "Context": set("_get_capsule device history keep_history query queue stats synchronize".split())
    | {"can_access_peer", "enable_peer_access", "disable_peer_access"},
    "Device": set(
        "_repr_html_ _repr_mimebundle_ backend capabilities context driver_version free_memory global_mem_size integrated local_mem_size max_alloc_size max_work_group_size name"
        " platform selector type vendor".split()
    ),
    "Event": {"done", "times", "wait"},
    "Module": set(),
    "Kernel": {"local_mem_size", "max_work_group_size", "name"},
    "KernelFunction": {"check", "code", "local_mem_size", "max_work_group_size", "proof"},
    "KernelLaunch": {"submit"},
    "Local": {"_dtype", "_usm_local_shape", "dtype", "shape"},
    "NdRange": {"_global_range", "_local_range", "global_range", "local_range"},
    "DType": set("str name kind itemsize descr dtype byteorder isnative char num type base shape subdtype names fields hasobject".split()),
    "MemoryUSMHost": set(),
    "MemoryUSMDevice": set(),
    "MemoryUSMShared": set(),
    "Plan": set("certificate feasible ids lower_bound names offsets optimal order order_bound order_optimal order_optimality peak to_dict verify _repr_svg_ _repr_mimebundle_ arena show to_svg to_html at at_every dims range_plan recompute_curve sizes spilled memories ordering_edges proof".split()),
    "RecomputeCurve": set("bound graph points to_svg _repr_svg_ _repr_mimebundle_".split()),
    # The arrays of its block are arrays as any others.
    "Pool": set("context stats trim".split()),
    # Its arrays are arrays of its own memory.
    "Arena": set("array keys nbytes queue".split()),
    "usm": set("backends devices empty full history launch open_ipc plan reset_peak set_threads snapshot stats trim zeros".split()),
    "track": {"live", "peak", "allocations"},
    "device_context": set(),
    "Snapshot": {"blocks", "dump", "trace", "_repr_svg_", "_repr_mimebundle_"},
    # Its constructors are conversions.
    "usm.memory": {"as_usm_memory"},
    "usm.nrt": set("drain get_allocation_stats get_include get_library leaks track".split()),
}


def rows(it):
    """`(name, row)` of everything that can be done to an object."""
    # dpctl's classes have the same names.
    of_others = type(it).__module__.startswith("dpctl")
    members = {} if of_others else next((MEMBERS[c.__name__] for c in type(it).__mro__ if c.__name__ in MEMBERS), {})
    for table, prefix in ((FUNCTIONS, ""), (members, f"{type(it).__name__}.")):
        for name, found in table.items():
            yield from ((f"{prefix}{name}/{number}", row) for number, row in enumerate(found))
