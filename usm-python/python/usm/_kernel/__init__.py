"""Python functions as kernels: what `usm.kernel` and its words are. Loaded when one of them is asked for."""

from .._usm import KernelFunction
from ..errors import KernelError
from .calls import DeviceFunction
from .names import (
    CLK_GLOBAL_MEM_FENCE,
    CLK_LOCAL_MEM_FENCE,
    DEFAULT_LOCAL_SIZE,
    atomic,
    barrier,
    constant,
    get_global_id,
    get_global_size,
    get_group_id,
    get_local_id,
    get_local_size,
    get_num_groups,
    group,
    local,
    mem_fence,
    private,
)
from .ranges import Local, NdRange, Range
from .source import Source

__all__ = [
    "CLK_GLOBAL_MEM_FENCE",
    "CLK_LOCAL_MEM_FENCE",
    "DEFAULT_LOCAL_SIZE",
    "Local",
    "NdRange",
    "Range",
    "atomic",
    "barrier",
    "call_kernel",
    "call_kernel_async",
    "constant",
    "device_func",
    "get_global_id",
    "get_global_size",
    "get_group_id",
    "get_local_id",
    "get_local_size",
    "get_num_groups",
    "group",
    "kernel",
    "local",
    "mem_fence",
    "private",
]


def kernel(function=None, /, *, strict=False):
    """Makes a kernel of a function; a decorator, also with a signature's text, which is not looked at.

    ``k[global, local](*arguments)`` runs it for each work-item of the range and waits. Types come from the arguments.
    With ``strict`` a launch of which something is not proven is refused.
    """
    if function is None or isinstance(function, str):
        return lambda function: kernel(function, strict=strict)
    source = Source(function)
    tree = source.tree
    parameters = [parameter.arg for parameter in tree.args.posonlyargs + tree.args.args]
    source.item = _item(function, parameters)
    if source.item is not None:
        del parameters[0]
    line, column = source.place(tree)

    def make(key):
        from .compiler import make

        return make(source, key)

    return KernelFunction(function, make, parameters, function.__name__, f"{source.file}:{line}:{column}", strict)


def _item(function, parameters):
    """The class of the item that numba-dpex's kernels have as their first parameter."""
    annotation = function.__annotations__.get(parameters[0]) if parameters else None
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    name = name.rpartition(".")[2]
    if name not in ("Item", "NdItem"):
        return None
    from .. import kernel_api

    known = getattr(kernel_api, name)
    return known if isinstance(annotation, str) or annotation is known else None


def device_func(function=None, /):
    """Makes a function that kernels call: with numbers and arrays, local memory and barriers too."""
    if function is None:
        return device_func
    return DeviceFunction(function)


def call_kernel(function, index, /, *arguments):
    """``function[index](*arguments)``: runs a kernel over a `Range` or `NdRange` and waits."""
    if not isinstance(function, KernelFunction):
        raise KernelError(f"{function!r} is no kernel: decorate it with `@usm.kernel`")
    function[index](*arguments)


def call_kernel_async(function, index, /, *arguments, after=()):
    """As `call_kernel`, but it does not wait: the event says when the kernel is done.

    ``after``: events that it starts behind, of the same context. Where the process's own memory takes part, as that of
    NumPy's arrays, or indices are checked as the kernel runs, it is done when this returns.
    """
    if not isinstance(function, KernelFunction):
        raise KernelError(f"{function!r} is no kernel: decorate it with `@usm.kernel`")
    return function[index].submit(*arguments, after=list(after))
