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
    line, column = source.place(tree)

    def make(key):
        from .compiler import make

        return make(source, key)

    return KernelFunction(function, make, parameters, function.__name__, f"{source.file}:{line}:{column}", strict)


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
