"""Unified Shared Memory: arrays that SYCL, CUDA, NumPy and others share without a copy."""

import os as _os
import sys as _sys
from typing import TYPE_CHECKING


def _register_opencl_runtime() -> None:
    """Makes Intel's OpenCL CPU runtime known to the OpenCL loader.

    ``pip install intel-opencl-rt`` does not do so, and the loader then finds no device. The loader
    reads the variable when it first lists devices, so the variable must be set before. A variable
    that is set already stays as it is.
    """
    if "OCL_ICD_FILENAMES" in _os.environ:
        return
    library = _os.path.join(_sys.prefix, "lib", "libintelocl.so")
    if _os.path.isfile(library):
        _os.environ["OCL_ICD_FILENAMES"] = library


_register_opencl_runtime()

from ._usm import (  # noqa: E402
    Arena,
    Array,
    Context,
    DType,
    Device,
    Event,
    Kernel,
    KernelFunction,
    KernelLaunch,
    Module,
    Plan,
    Pool,
    Queue,
    RecomputeCurve,
    Snapshot,
    asarray,
    backends,
    bfloat16,
    bool_,
    complex128,
    complex64,
    copy,
    device_context,
    devices,
    empty,
    empty_like,
    float16,
    float32,
    float64,
    from_dlpack,
    full,
    full_like,
    history,
    launch,
    int16,
    int32,
    int64,
    int8,
    open_ipc,
    plan,
    reset_peak,
    set_threads,
    snapshot,
    stats,
    to_numpy,
    track,
    trim,
    uint16,
    uint32,
    uint64,
    uint8,
    validate,
    zeros,
    zeros_like,
)
from ._usm import __version__ as __version__  # noqa: E402
from . import memory, nrt  # noqa: E402

# Before any thread asks for the devices: a child forked during the import would wait for its lock.
from . import device_list as _device_list  # noqa: E402, F401
from .errors import (  # noqa: E402
    AccessError,
    AllocationError,
    DeviceError,
    Error,
    InterfaceError,
    KernelError,
    RequestError,
    WaitTimeout,
)

__all__ = [
    "AccessError",
    "AllocationError",
    "Arena",
    "Array",
    "Context",
    "DType",
    "Device",
    "DeviceError",
    "Error",
    "Event",
    "InterfaceError",
    "Kernel",
    "KernelError",
    "KernelFunction",
    "KernelLaunch",
    "Module",
    "Plan",
    "Pool",
    "Queue",
    "RecomputeCurve",
    "RequestError",
    "Snapshot",
    "WaitTimeout",
    "asarray",
    "backends",
    "bfloat16",
    "bool_",
    "complex128",
    "complex64",
    "copy",
    "device_context",
    "devices",
    "empty",
    "empty_like",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "history",
    "int16",
    "int32",
    "int64",
    "int8",
    "launch",
    "memory",
    "nrt",
    "open_ipc",
    "plan",
    "reset_peak",
    "set_threads",
    "snapshot",
    "stats",
    "to_numpy",
    "track",
    "trim",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "validate",
    "zeros",
    "zeros_like",
]


if TYPE_CHECKING:
    from ._files import load as load, save as save
    from . import adapt as adapt, cuda as cuda, dask as dask, kernel_api as kernel_api, numba as numba, random as random
    from ._algorithms import (
        argmax as argmax,
        argmin as argmin,
        argsort as argsort,
        bincount as bincount,
        elementwise as elementwise,
        histogram as histogram,
        reduce as reduce,
        scan as scan,
        sort as sort,
    )
    from ._kernel import (
        CLK_GLOBAL_MEM_FENCE as CLK_GLOBAL_MEM_FENCE,
        CLK_LOCAL_MEM_FENCE as CLK_LOCAL_MEM_FENCE,
        DEFAULT_LOCAL_SIZE as DEFAULT_LOCAL_SIZE,
        Local as Local,
        NdRange as NdRange,
        Range as Range,
        atomic as atomic,
        barrier as barrier,
        call_kernel as call_kernel,
        call_kernel_async as call_kernel_async,
        constant as constant,
        device_func as device_func,
        get_global_id as get_global_id,
        get_global_size as get_global_size,
        get_group_id as get_group_id,
        get_local_id as get_local_id,
        get_local_size as get_local_size,
        get_num_groups as get_num_groups,
        group as group,
        kernel as kernel,
        local as local,
        mem_fence as mem_fence,
        private as private,
        sub_group as sub_group,
    )

# The first use of one of these names imports the compiler of kernels. `import usm` does not.
_KERNEL_NAMES = frozenset(
    "CLK_GLOBAL_MEM_FENCE CLK_LOCAL_MEM_FENCE DEFAULT_LOCAL_SIZE Local NdRange Range atomic barrier call_kernel call_kernel_async constant "
    "device_func get_global_id get_global_size get_group_id get_local_id get_local_size get_num_groups group kernel local "
    "mem_fence private sub_group".split()
)

# The ready algorithms, which are kernels too.
_ALGORITHMS = frozenset("argmax argmin argsort bincount elementwise histogram reduce scan sort".split())
# Submodules that need no other package. The first use of one imports it.
_SUBMODULES = ("adapt", "cuda", "kernel_api", "random")


# A type checker would take this function as a promise that every name exists.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _SUBMODULES:
            import importlib

            return importlib.import_module(f".{name}", __name__)
        if name in ("load", "save"):
            # With them come the modules of JSON, zip files and threads.
            from . import _files

            value = globals()[name] = getattr(_files, name)
            return value
        if name in _ALGORITHMS:
            from . import _algorithms

            value = globals()[name] = getattr(_algorithms, name)
            return value
        if name in _KERNEL_NAMES:
            from . import _kernel

            value = globals()[name] = getattr(_kernel, name)
            return value
        return _optional(name)


# Submodules that need another package: its module, and its name for `pip install`. The first use of
# a submodule imports it.
_OPTIONAL = {"dask": ("distributed", "dask[distributed]"), "numba": ("numba", "numba")}


def _optional(name: str) -> object:
    """The submodule `name`. Raises `AttributeError` if its package is not installed."""
    if name in _OPTIONAL:
        import importlib

        try:
            return importlib.import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            raise AttributeError(f"usm.{name} needs the package {error.name}: pip install {_OPTIONAL[name][1]}") from error
    remedy = f": use {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy}")


# Names that users of other libraries try first, and what to call.
_OTHER_NAMES = {
    "array": "usm.asarray(values, copy=True)",
    "ascontiguousarray": "array.copy()",
    "ones": "usm.full(shape, 1.0)",
    "ones_like": "usm.full_like(array, 1)",
    "arange": "usm.asarray(range(stop))",
    "from_numpy": "usm.asarray(array)",
    "asnumpy": "usm.to_numpy(array)",
    "ndarray": "usm.Array",
    "dtype": "usm.DType",
    "sum": 'usm.reduce(array, "sum")',
    "prod": 'usm.reduce(array, "prod")',
    "min": 'usm.reduce(array, "min")',
    "max": 'usm.reduce(array, "max")',
    "cumsum": "usm.scan(array)",
    "linspace": "usm.asarray(numpy.linspace(start, stop))",
    "concatenate": "slices of one array: usm.empty(..), then array[low:high] = part",
    "stack": "rows of one array: usm.empty(..), then array[i] = part",
    "leaks": "usm.snapshot(), which lists live blocks",
    "synchronize": "queue.wait() or usm.Context.synchronize()",
    "Stream": "usm.Queue",
    "sqrt": 'usm.elementwise("sqrt(x)")(array), or numpy.sqrt(array) on the host',
    "exp": 'usm.elementwise("exp(x)")(array), or numpy.exp(array) on the host',
    "where": 'usm.elementwise("where(m, x, y)")(m, x, y), or numpy.where on the host',
    "clip": 'usm.elementwise("min(max(x, low), high)")(x, low, high)',
    "mean": "usm.reduce(array) / array.size",
    "dot": "numpy.dot of host memory, elsewhere the library of the device",
    "matmul": "numpy.matmul of host memory, elsewhere the library of the device",
    "transpose": "array.transpose(axes)",
    "eye": "usm.asarray(numpy.eye(n))",
    "take": "array[indices], or a kernel",
    "unique": "usm.sort(array) and a kernel, or numpy.unique on the host",
    "jit": "usm.kernel",
    "device": "usm.Device",
    "MemoryPool": "usm.Pool(device)",
    "get_default_memory_pool": "usm.Pool(device), a `with` block",
    "RawKernel": "usm.Module(source)[name] with the language of the device",
    "ElementwiseKernel": "usm.elementwise(expression)",
    "ReductionKernel": "usm.reduce(array, operation)",
}


def _is_there(package: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def __dir__() -> list[str]:
    found = (name for name, (package, _) in _OPTIONAL.items() if _is_there(package))
    return sorted([*__all__, *_ALGORITHMS, *_KERNEL_NAMES, *_SUBMODULES, "errors", "load", "save", "__version__", *found])
