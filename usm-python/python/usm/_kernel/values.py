"""What an expression of a kernel is while its nodes are made."""

from .types import STORED, is_int, literal


class Val:
    """A value: its nodes' text, its type, and the number where it is known.

    ``high``: the value is a whole number from 0 up to it; None where that is not known. ``pure``: nothing that is done
    meanwhile changes it.
    """

    __slots__ = ("const", "high", "pure", "text", "ty")

    def __init__(self, text, ty, const=None, high=None, pure=True):
        self.text = text
        self.ty = ty
        self.const = const
        self.high = high
        self.pure = pure


def number(value, ty, at):
    """A number that is known."""
    stored = STORED[ty]
    high = value if is_int(ty) and value >= 0 else None
    return Val(f"(lit {stored} {literal(value, stored):#x} {at})", ty, value, high)


class Arr:
    """An array: elements of ``ty``, extents as values, strides in elements where it does not lie densely."""

    __slots__ = ("argument", "extents", "kind", "name", "number", "offset", "strides", "ty")

    def __init__(self, name, number, ty, extents, kind, argument=-1, strides=None, offset=None):
        self.name = name
        self.number = number
        self.ty = ty
        self.extents = extents
        self.kind = kind
        self.argument = argument
        self.strides = strides
        self.offset = offset


class Tup:
    """Several values."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class Static:
    """An object of Python's that is known when the nodes are made."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Reference:
    """An element for atomic operations: the array, and the indices."""

    __slots__ = ("array", "node", "places")

    def __init__(self, array, places, node):
        self.array = array
        self.places = places
        self.node = node


class Frame:
    """Names of one function; of each place where a function is called one."""

    __slots__ = ("file", "key", "names", "outside", "result", "source")

    def __init__(self, key, source, file):
        self.key = key
        self.source = source
        self.file = file
        self.names = {}
        self.outside = None
        self.result = None
