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
    annotation, possible = _classes(source, 0, 0)
    # Items of both sorts are annotated as `Item` in programs that numba-dpex runs.
    return annotation if annotation in possible or not possible else possible[0]


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

    kind = getattr(kernel_api, name)
    return kind if isinstance(annotation, str) or annotation is kind else None


def _by_use(source, name, depth):
    methods, calls, explained_uses, uses = set(), [], set(), set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name:
            uses.add(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            methods.add(node.attr)
            explained_uses.add(node.value)
        elif isinstance(node, ast.Call):
            places = [place for place, element in enumerate(node.args) if isinstance(element, ast.Name) and element.id == name]
            calls += [(node.func, place) for place in places]
            explained_uses.update(node.args[place] for place in places)
    if not uses or uses != explained_uses:
        return []
    from .. import kernel_api

    methods.discard("dimensions")
    classes = [kind for kind in (kernel_api.Item, kernel_api.NdItem) if methods <= vars(kind).keys()]
    for function, place in calls if classes else ():
        function = source.outer_names().get(function.id) if isinstance(function, ast.Name) else None
        if not isinstance(function, DeviceFunction) or depth == _DEPTH:
            return []
        kind, possible = _classes(function.source, place, depth + 1)
        classes = [element for element in classes if element in (possible or [kind])]
    return classes
