"""The first parameter of numba-dpex's kernels: an item that the launch does not pass."""

import ast

from .inline import DeviceFunction

#: How many functions may pass the item on to each other.
_DEPTH = 16


def item_of(source):
    """The class of the first parameter, `Item` or `NdItem`, or None for an array or a number.

    An annotation says it, or that the body only calls the parameter's methods of this class. The
    body may also pass the parameter on, to functions of which the same is true.
    """
    known, possible = _classes(source, 0, 0)
    # Items of both sorts are annotated as `Item` in programs that numba-dpex runs.
    return known if known in possible or not possible else possible[0]


def _classes(source, place, depth):
    """The class that the annotation of a parameter names, and those that its uses allow."""
    arguments = source.tree.args
    parameters = arguments.posonlyargs + arguments.args
    if place >= len(parameters):
        return None, []
    name = parameters[place].arg
    return _annotated(source.function.__annotations__.get(name)), _by_use(source, name, depth)


def _annotated(annotation):
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    name = name.rpartition(".")[2]
    if name not in ("Item", "NdItem"):
        return None
    from .. import kernel_api

    known = getattr(kernel_api, name)
    return known if isinstance(annotation, str) or annotation is known else None


def _by_use(source, name, depth):
    methods, passed, explained, uses = set(), [], set(), set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name:
            uses.add(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            methods.add(node.attr)
            explained.add(node.value)
        elif isinstance(node, ast.Call):
            places = [place for place, one in enumerate(node.args) if isinstance(one, ast.Name) and one.id == name]
            passed += [(node.func, place) for place in places]
            explained.update(node.args[place] for place in places)
    if not uses or uses != explained:
        return []
    from .. import kernel_api

    methods.discard("dimensions")
    classes = [known for known in (kernel_api.Item, kernel_api.NdItem) if methods <= vars(known).keys()]
    for function, place in passed if classes else ():
        function = source.outside().get(function.id) if isinstance(function, ast.Name) else None
        if not isinstance(function, DeviceFunction) or depth == _DEPTH:
            return []
        known, possible = _classes(function.source, place, depth + 1)
        classes = [one for one in classes if one in (possible or [known])]
    return classes
