"""Python functions as kernels: `usm.kernel` and the functions that kernels call.

The package imports this module when one of these names is used first.
"""

import ast

from .._usm import Event, KernelFunction
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
    sub_group,
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
    "sub_group",
]


def kernel(function=None, /, *, strict=False, sub_group=32):
    """Makes a kernel of a function; a decorator.

    ``k[global, local](*arguments)`` runs the function for each work-item of the range and waits.
    The types are those of the arguments; a signature, given as text, is ignored. With ``strict`` a
    launch that is not proven free of races and of indices outside is refused. ``sub_group`` is the
    number of neighbours in a sub-group: a power of two up to 64, on every device.

    Raises :class:`usm.KernelError` where the function has no source to read. What the body may not
    contain is refused at the first launch, with its file, line and column.
    """
    if function is None or isinstance(function, str):
        return lambda function: kernel(function, strict=strict, sub_group=sub_group)
    if sub_group not in (1, 2, 4, 8, 16, 32, 64):
        raise KernelError(f"sub-groups of {sub_group} items: a power of two up to 64 is possible")
    source = Source(function)
    source.sub_group = sub_group
    tree = source.tree
    parameters = [parameter.arg for parameter in tree.args.posonlyargs + tree.args.args]
    source.item = _item(function, parameters, tree)
    if source.item is not None:
        del parameters[0]
    line, column = source.place(tree)

    def make(key):
        from .compiler import make

        return make(source, key)

    return KernelFunction(function, make, parameters, function.__name__, f"{source.file}:{line}:{column}", strict)


def _item(function, parameters, tree):
    """The class of the first parameter of numba-dpex's kernels, or None.

    An annotation says it, or that the body only calls the parameter's methods of this class.
    """
    if not parameters:
        return None
    if parameters[0] not in function.__annotations__:
        return _item_by_use(parameters[0], tree)
    annotation = function.__annotations__[parameters[0]]
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    name = name.rpartition(".")[2]
    if name not in ("Item", "NdItem"):
        return None
    from .. import kernel_api

    known = getattr(kernel_api, name)
    if not isinstance(annotation, str) and annotation is not known:
        return None
    # Items of both sorts are annotated as `Item` in programs that numba-dpex runs.
    return _item_by_use(parameters[0], tree) or known


def _item_by_use(name, tree):
    called = {node.func.value: node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    called |= {node.value: "get_id" for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "dimensions"}
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    methods = {called.get(node) for node in uses}
    if not methods or None in methods:
        return None
    from .. import kernel_api

    return next((known for known in (kernel_api.Item, kernel_api.NdItem) if methods <= vars(known).keys()), None)


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
    if arguments and isinstance(arguments[0], tuple) and all(isinstance(one, Event) for one in arguments[0]):
        event = call_kernel_async(function, index, *arguments[1:], after=[*after, *arguments[0]])
        return event, event
    if not isinstance(function, KernelFunction):
        raise KernelError(f"{function!r} is no kernel: decorate it with `@usm.kernel`")
    return function[index].submit(*arguments, after=list(after))
