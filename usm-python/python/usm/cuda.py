"""numba.cuda's names over kernels of this package: ``from usm import cuda``.

Programs run on any device of usm, and on the host too: on that of :func:`select_device`, else on
the default one. ``x`` is the fastest dimension, as in CUDA, so ``cuda.grid(2)`` is ``(x, y)``.
Launches return when they are submitted; :func:`synchronize` and ``copy_to_host`` wait. Those with
NumPy arrays are complete on return.
"""

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property

from . import _usm
from ._kernel.cuda import CudaSource, CudaWord, Place
from ._kernel.compiler import make as compiled
from ._kernel.inline import DeviceFunction
from ._kernel.names import ATOMICS, Words, atomic as _atomic, constant as const, local as _local, private as _private
from .errors import KernelError

__all__ = [
    "DeviceNDArray",
    "Reduce",
    "Stream",
    "as_cuda_array",
    "atomic",
    "blockDim",
    "blockIdx",
    "close",
    "const",
    "current_context",
    "default_stream",
    "device_array",
    "device_array_like",
    "get_current_device",
    "gpus",
    "grid",
    "gridDim",
    "gridsize",
    "is_available",
    "is_cuda_array",
    "jit",
    "list_devices",
    "local",
    "pinned",
    "pinned_array",
    "reduce",
    "select_device",
    "selp",
    "shared",
    "stream",
    "synchronize",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "to_device",
]

# In kernels.

threadIdx = Place("threadIdx", "get_local_id")
blockIdx = Place("blockIdx", "get_group_id")
blockDim = Place("blockDim", "get_local_size")
gridDim = Place("gridDim", "get_num_groups")
grid = CudaWord("cuda.grid", "``grid(n)``: the item's index in the range, or its `n` indices, x first.")
gridsize = CudaWord("cuda.gridsize", "``gridsize(n)``: the sizes of the range in items, x first.")
syncthreads = CudaWord("cuda.syncthreads", "``syncthreads()``: waits for all items of the group.")
syncthreads_and = CudaWord("cuda.syncthreads_and", "``syncthreads_and(p)``: whether it is true for all items of the group.")
syncthreads_or = CudaWord("cuda.syncthreads_or", "``syncthreads_or(p)``: whether it is true for an item of the group.")
syncthreads_count = CudaWord("cuda.syncthreads_count", "``syncthreads_count(p)``: for how many items of the group it is true.")
threadfence = CudaWord("cuda.threadfence", "``threadfence()``: orders the item's own accesses.")
threadfence_block = CudaWord("cuda.threadfence_block", "As `threadfence`.")
threadfence_system = CudaWord("cuda.threadfence_system", "As `threadfence`.")
selp = CudaWord("cuda.selp", "``selp(c, a, b)``: `a` if `c` is true, else `b`.")


class _Atomic(Words):
    """`usm.atomic`, and `compare_and_swap`."""

    def __init__(self):
        self.__name__, self.__doc__ = "cuda.atomic", _atomic.__doc__
        for name in (*ATOMICS, "cas"):
            setattr(self, name, getattr(_atomic, name))
        self.compare_and_swap = CudaWord("cuda.compare_and_swap", "``compare_and_swap(array, old, value)``: on the first element.")


class _Arrays:
    """Memory of a group or of an item: ``array(shape, dtype)``."""

    def __init__(self, words):
        self.array = words.array


atomic = _Atomic()
shared = _Arrays(_local)
local = _Arrays(_private)


# Kernels.


class Dispatcher:
    """A kernel: ``k[blocks, threads](*arguments)``; sizes are numbers or tuples, x first."""

    def __init__(self, function):
        source = CudaSource(function)
        source.check_parameters("a kernel")
        tree = source.tree
        parameters = [parameter.arg for parameter in tree.args.posonlyargs + tree.args.args]
        line, column = source.place(tree)
        place = f"{source.file}:{line}:{column}"
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.kernel = _usm.KernelFunction(function, lambda key: compiled(source, key), parameters, function.__name__, place, False, False)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if not 2 <= len(index) <= 4:
            raise KernelError(f"{self.__name__}[..] has 2 to 4 parts: blocks, threads, stream and bytes of shared memory")
        if len(index) == 4 and index[3]:
            raise KernelError(f"{index[3]} bytes of shared memory by the launch: give `cuda.shared.array` its shape, or pass `usm.Local(shape, dtype)`")
        blocks, threads = (_three(sizes, what) for sizes, what in zip(index, ("blocks", "threads")))
        sizes = tuple(block * thread for block, thread in zip(blocks, threads))
        return self._launch(sizes[::-1], threads[::-1])

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        """A launch over `ntasks` items, whose groups the device chooses, or of `tpb` items."""
        if tpb:
            return self[-(-ntasks // tpb), tpb, stream, sharedmem]
        return self._launch((1, 1, ntasks), None)

    def _launch(self, sizes, groups):
        def launch(*arguments):
            with _queue():
                _remember(self.kernel[sizes, groups].submit(*_plain(arguments)))

        return launch

    def __call__(self, *arguments):
        return self.kernel(*arguments)

    @cached_property
    def device_function(self):
        """The function as one that kernels call."""
        return _jit(self.py_func, True)

    def __repr__(self):
        return f"<usm.cuda kernel {self.__name__}>"


def _plain(arguments):
    """Arguments, also in tuples, with the arrays of those of this module."""
    return tuple(one.array if isinstance(one, DeviceNDArray) else _plain(one) if isinstance(one, tuple) else one for one in arguments)


def _three(sizes, what):
    """Three sizes of a launch, x first."""
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(sizes) <= 3:
        raise KernelError(f"{what} of {len(sizes)} dimensions: 1, 2 or 3 are possible")
    try:
        return (*(one.__index__() for one in sizes), 1, 1)[:3]
    except AttributeError:
        raise KernelError(f"{what} {sizes}: whole numbers are needed") from None


#: Options of numba.cuda that change no result.
_IGNORED = frozenset("inline debug opt lineinfo cache fastmath max_registers launch_bounds lto boundscheck forceinline ptx".split())


def jit(signature=None, device=False, **options):
    """Makes a kernel of a function, or with ``device=True`` a function that kernels call.

    A signature is ignored: types are those of the arguments.
    """
    for name in options:
        if name not in _IGNORED:
            raise KernelError(f"`cuda.jit` has no option {name!r} here")
    if signature is not None and callable(signature) and hasattr(signature, "__code__"):
        return _jit(signature, device)
    return lambda function: _jit(function, device)


def _jit(function, device):
    if not device:
        return Dispatcher(function)
    made = DeviceFunction(function)
    made.source = CudaSource(function)
    made.py_func = function
    return made


class Reduce:
    """A reduction by a function of two numbers: ``@cuda.reduce``, then ``f(array, init=0)``."""

    def __init__(self, function):
        from ._algorithms.operations import Operation

        self.function = function
        self._operation = Operation(function.__name__, _jit(function, True), None)

    def __call__(self, arr, size=None, res=None, init=0, stream=0):
        from ._algorithms.reduce import launch_reduction
        from ._algorithms.run import Run, as_array, flat

        given = as_array(arr.array if isinstance(arr, DeviceNDArray) else arr, "arr")
        given = flat(given)[:size] if size is not None else flat(given)
        value = init
        if given.size:
            out = _usm.empty(1, given.dtype, queue=given.queue)
            run = Run(given.queue, ())
            launch_reduction(run, self._operation, given, given.dtype, out)
            value = self.function(init, run.finish(out, True)[0].item())
        if res is None:
            return value
        res[0] = value
        return None


reduce = Reduce


# Memory.


class DeviceNDArray:
    """An array of a device; ``array`` is its `usm.Array`."""

    def __init__(self, array):
        self.array = array

    @property
    def dtype(self):
        """The type of the elements, as NumPy's."""
        import numpy

        return numpy.dtype(self.array.dtype.str)

    @property
    def T(self):
        """The array with its dimensions in reverse."""
        return DeviceNDArray(self.array.T)

    def copy_to_host(self, ary=None, stream=0):
        """The elements in a NumPy array, `ary` or a new one. Waits."""
        if ary is None:
            import numpy

            ary = numpy.empty(self.array.shape, self.dtype)
        _usm.copy(ary, self.array)
        return ary

    def copy_to_device(self, ary, stream=0):
        """Copies all elements of an array here."""
        _usm.copy(self.array, ary.array if isinstance(ary, DeviceNDArray) else ary)

    def reshape(self, *shape):
        """The same elements in another shape."""
        return DeviceNDArray(self.array.reshape(*shape))

    def ravel(self):
        """The elements in one dimension."""
        return DeviceNDArray(self.array.reshape(self.array.size))

    def is_c_contiguous(self):
        """Whether the elements lie side by side in order."""
        return self.array.is_c_contiguous

    def __getitem__(self, index):
        found = self.array[index]
        return found.item() if found.ndim == 0 else DeviceNDArray(found)

    def __setitem__(self, index, value):
        self.array[index] = value.array if isinstance(value, DeviceNDArray) else value

    def __len__(self):
        return len(self.array)

    def __getattr__(self, name):
        if name in ("shape", "strides", "ndim", "size", "nbytes", "__cuda_array_interface__", "__sycl_usm_array_interface__"):
            return getattr(self.array, name)
        if name == "alloc_size":
            return self.array.nbytes
        raise AttributeError(f"'DeviceNDArray' has no attribute {name!r}: its `array` is a usm.Array")

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __repr__(self):
        return f"<usm.cuda.DeviceNDArray {self.array!r}>"


def to_device(obj, stream=0, copy=True, to=None):
    """A copy of an array on the device, or in `to`."""
    if to is not None:
        to.copy_to_device(obj)
        return to
    array = _usm.asarray(obj.array if isinstance(obj, DeviceNDArray) else obj, queue=_queue(), copy=bool(copy) or None)
    return DeviceNDArray(array)


def device_array(shape, dtype="float64", strides=None, order="C", stream=0):
    """A new array on the device."""
    if strides is not None or order != "C":
        raise KernelError("arrays with strides or of order 'F' are not made here: make a transposed one by `.T`")
    return DeviceNDArray(_usm.empty(shape, _dtype(dtype), queue=_queue()))


def device_array_like(ary, stream=0):
    """A new array on the device, of the shape and the type of another one."""
    return device_array(ary.shape, ary.dtype)


def pinned_array(shape, dtype="float64", strides=None, order="C"):
    """A NumPy array in memory of the host that the device reaches."""
    if strides is not None or order != "C":
        raise KernelError("arrays with strides or of order 'F' are not made here")
    return _usm.to_numpy(_usm.empty(shape, _dtype(dtype), kind="host", queue=_queue()))


@contextmanager
def pinned(*arrays):
    """Does nothing: copies of NumPy arrays go through pinned memory by themselves."""
    yield


def as_cuda_array(obj, sync=True):
    """An array of another library, without a copy."""
    return DeviceNDArray(_usm.asarray(obj, copy=False))


def is_cuda_array(obj):
    """Whether an object exposes memory of CUDA."""
    return hasattr(obj, "__cuda_array_interface__")


def _dtype(dtype):
    return str(dtype) if type(dtype).__module__.startswith("numba.") else dtype


# Devices and order.

_chosen = threading.local()


def _queue():
    """The queue of `select_device`, else that of the default device."""
    queue = getattr(_chosen, "queue", None)
    return _usm.empty(0, "uint8").queue if queue is None else queue


def _remember(event):
    """Keeps the event of a launch for `synchronize`."""
    pending = _chosen.__dict__.setdefault("pending", [])
    if len(pending) >= 64:
        pending[:] = [one for one in pending if not one.done]
    pending.append(event)


def synchronize():
    """Waits for all work of this thread's launches, and of the device's queue."""
    for event in _chosen.__dict__.pop("pending", ()):
        event.wait(_LONG)
    _queue().wait(_LONG)


#: A day, in seconds: programs of numba.cuda wait without a limit.
_LONG = 86400.0


def list_devices():
    """The GPUs; where there is none, all devices."""
    devices = list(_usm.devices())
    return [device for device in devices if device.type == "gpu"] or devices


class _Gpus(Sequence):
    """The devices, each a context in which it is the current one."""

    def __len__(self):
        return len(list_devices())

    def __getitem__(self, number):
        return _Selected(number)

    @property
    def current(self):
        """The current device."""
        return get_current_device()


class _Selected:
    def __init__(self, number):
        self._number = number

    def __enter__(self):
        self._before = getattr(_chosen, "queue", None)
        return select_device(self._number)

    def __exit__(self, *_):
        _chosen.queue = self._before


gpus = _Gpus()


def select_device(device_id):
    """Makes a device of :func:`list_devices`, by its number, the current one of this thread."""
    devices = list_devices()
    if not 0 <= device_id < len(devices):
        raise KernelError(f"device {device_id}: there are {len(devices)}")
    _chosen.queue = _usm.Queue(devices[device_id])
    return devices[device_id]


def get_current_device():
    """The current device, a `usm.Device`."""
    return _queue().device


class _Context:
    """The current device's context."""

    device = property(lambda self: get_current_device())

    def synchronize(self):
        """Waits for all work."""
        synchronize()

    def get_memory_info(self):
        """Free and total bytes of the device."""
        device = get_current_device()
        return device.free_memory, device.global_mem_size

    def reset(self):
        """Does nothing."""


def current_context():
    """The current device's context."""
    return _Context()


def is_available():
    """Whether there is a device: the host is always one."""
    return True


def close():
    """Forgets the chosen device."""
    _chosen.__dict__.clear()


class Stream:
    """An order of work. All streams of a thread are one queue, so none overtakes another."""

    def synchronize(self):
        """Waits for all work of the thread."""
        synchronize()

    @contextmanager
    def auto_synchronize(self):
        """Waits at the end of the block."""
        yield self
        self.synchronize()


def stream():
    """A stream."""
    return Stream()


def default_stream():
    """The default stream."""
    return Stream()


# What takes the place of names that are not here, as the pages' table says.
_REMEDIES = {
    "usm.sub_group": "laneid syncwarp warpsize shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync all_sync any_sync eq_sync ballot_sync match_any_sync match_all_sync",
    "two launches": "cg",
    "usm.random.uniform(seed, i)": "random",
    "usm.elementwise(text)": "vectorize guvectorize",
    "np.bitwise_count(x)": "popc",
    "shifts and masks, or math": "clz brev ffs fma cbrt fp16 libdevice",
    "usm.Event.times() of a timed queue": "event event_elapsed_time profile_start profile_stop profiling",
    "usm.empty(.., kind=\"shared\")": "mapped mapped_array mapped_array_like managed_array",
    "usm.Module for finished code": "declare_device compile_ptx compile_ptx_for_current_device",
    "usm.open_ipc": "open_ipc_array",
}


def __getattr__(name):
    for remedy, names in _REMEDIES.items():
        if name in names.split():
            raise AttributeError(f"usm.cuda has no {name}: use {remedy}", name=name)
    raise AttributeError(f"module 'usm.cuda' has no attribute {name!r}", name=name)
