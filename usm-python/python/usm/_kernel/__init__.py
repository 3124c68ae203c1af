"""Python functions as kernels: `usm.kernel` and the functions that kernels call.

The package imports this module when one of these names is used first. A launch imports nothing:
a child that is forked while another thread imports a module waits for ever when it imports it too.
"""

from .._usm import Event, KernelFunction
from ..errors import KernelError
from .calls import DeviceFunction
from .compiler import make as compiled
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
    sub_group,
)
from .items import item_of
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
    "sub_group",
]


def kernel(function=None, /, *, strict=False, sub_group=32):
    """Makes a kernel of a function; a decorator.

    ``k[global, local](*arguments)`` runs the function for each work-item of the range and waits.
    The types are those of the arguments; a signature, given as text, is ignored. With ``strict`` a
    launch that is not proven free of races and of indices outside is refused. ``sub_group`` is the
    number of neighbours in a sub-group: a power of two up to 64, on every device.

    Raises :class:`usm.KernelError` where the function has no source to read, and for parameters
    with defaults or stars. What the body may not
    contain is refused at the first launch, with its file, line and column.
    """
    if function is None or isinstance(function, str):
        return lambda function: kernel(function, strict=strict, sub_group=sub_group)
    if sub_group not in (1, 2, 4, 8, 16, 32, 64):
        raise KernelError(f"sub-groups of {sub_group} items: a power of two up to 64 is possible")
    source = Source(function)
    source.sub_group = sub_group
    return _of_source(source, strict)


def ordered_kernel(function):
    """A kernel of this package, of which no two items race in any launch."""
    source = Source(function)
    source.is_ordered = True
    return _of_source(source, False)


def _of_source(source, strict):
    function = source.function
    source.check_parameters("a kernel")
    tree = source.tree
    parameters = [parameter.arg for parameter in tree.args.posonlyargs + tree.args.args]
    source.item = item_of(source)
    if source.item is not None:
        del parameters[0]
    has_groups = getattr(source.item, "__name__", "") == "NdItem"
    line, column = source.place(tree)

    def make(key):
        return compiled(source, key)

    return KernelFunction(function, make, parameters, function.__name__, f"{source.file}:{line}:{column}", strict, has_groups)


def device_func(function=None, /):
    """Makes a function that kernels call; a decorator.

    Its parameters may be numbers and arrays, and its body may use local memory and barriers.
    """
    if function is None:
        return device_func
    return DeviceFunction(function)


def call_kernel(function, index, /, *arguments):
    """``function[index](*arguments)``: runs a kernel over a `Range` or `NdRange` and waits."""
    if not isinstance(function, KernelFunction):
        raise KernelError(f"{function!r} is no kernel: decorate it with `@usm.kernel`")
    function[index](*arguments)


def call_kernel_async(function, index, /, *arguments, after=()):
    """Runs a kernel as `call_kernel` does, without waiting, and returns the event of its end.

    The kernel starts after the events in ``after``, which are of the same context. It is complete
    on return where an argument is plain host memory, such as a NumPy array, or where indices are
    checked as it runs.

    As in numba-dpex, a tuple of events may stand before the arguments; then the event is returned
    twice, in a tuple.
    """
    if arguments and isinstance(arguments[0], tuple) and all(isinstance(event, Event) for event in arguments[0]):
        event = call_kernel_async(function, index, *arguments[1:], after=[*after, *arguments[0]])
        return event, event
    if not isinstance(function, KernelFunction):
        raise KernelError(f"{function!r} is no kernel: decorate it with `@usm.kernel`")
    return function[index].submit(*arguments, after=list(after))
