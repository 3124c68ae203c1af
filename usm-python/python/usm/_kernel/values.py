"""The meaning of an expression while a kernel's nodes are made."""

from . import nodes
from .types import IR_TYPE, bits_of, convert, is_int


class Val:
    """A value: the text of its nodes, its type, and the number where it is known.

    ``high``: the value is an integer from 0 to ``high``; None where that is not known. ``is_pure``:
    no later statement changes the value. ``is_python``: the value is a number of Python itself,
    although only uint64 holds it. ``element``: the type of the element that was read, if it has no
    arithmetic.
    """

    __slots__ = ("const", "element", "high", "is_pure", "is_python", "text", "ty")

    def __init__(self, text, ty, const=None, high=None, is_pure=True):
        self.text = text
        self.ty = ty
        self.const = const
        self.high = high
        self.is_pure = is_pure
        self.is_python = False
        self.element = None

    @property
    def is_foldable(self):
        """Whether the value is a known number of Python, which has no limits."""
        return self.const is not None and (self.ty[0] == "w" or self.ty == "bool" or self.is_python)


def number(value, ty, at):
    """The value of a known number."""
    stored_type, value = IR_TYPE[ty], convert(value, ty)
    high = value if is_int(ty) and value >= 0 else None
    return Val(nodes.literal(stored_type, bits_of(value, stored_type), at), ty, value, high)


class Cpx:
    """A complex number: its parts, which have one type. No later statement changes them."""

    __slots__ = ("im", "re")
    is_pure, const = True, None

    def __init__(self, re, im):
        self.re = re
        self.im = im

    @property
    def parts(self):
        return self.re, self.im


class Arr:
    """An array with elements of type ``ty``, or of complex numbers with parts of that type.

    An array of structures has ``fields`` and a ``layout``, and no type. A field of it has as its
    ``home`` their number, their name and the number of their dimensions.

    ``extents`` are values, in elements. ``strides``, in elements or in parts, are None for a dense
    array. A part of an array has its ``whole``, and in ``indices`` for each dimension of it an
    index or a `Slice`.
    """

    __slots__ = (
        "argument",
        "extents",
        "fields",
        "home",
        "indices",
        "is_complex",
        "kind",
        "layout",
        "name",
        "number",
        "offset",
        "strides",
        "ty",
        "whole",
    )

    def __init__(self, name, number, ty, extents, kind, argument=-1, strides=None, offset=None, is_complex=False):
        self.name = name
        self.number = number
        self.ty = ty
        self.extents = extents
        self.kind = kind
        self.argument = argument
        self.strides = strides
        self.offset = offset
        self.is_complex = is_complex
        self.whole = None
        self.indices = None
        self.fields = self.home = self.layout = None


class Rec:
    """A structure that is passed by value: the meanings of its fields."""

    __slots__ = ("fields", "name")

    def __init__(self, name, fields):
        self.name = name
        self.fields = fields


class Slice:
    """Some neighbours in a dimension: the first one, their number, and how indices are refused.

    ``extent`` is the number of an extent, or None where only the item knows the length.
    """

    __slots__ = ("extent", "length", "start")

    def __init__(self, start, length, extent):
        self.start = start
        self.length = length
        self.extent = extent


class Pack:
    """A variable that is a tuple of this many numbers, each a variable, or a complex number."""

    __slots__ = ("count", "is_complex", "key")

    def __init__(self, key, count, is_complex=False):
        self.key = key
        self.count = count
        self.is_complex = is_complex


class Tup:
    """A tuple of values, arrays or objects."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class Static:
    """A Python object that is known when the nodes are made."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Reference:
    """An element for atomic operations: its array and its indices."""

    __slots__ = ("array", "node", "places")

    def __init__(self, array, places, node):
        self.array = array
        self.places = places
        self.node = node


class Method:
    """A method of a reference, such as `fetch_add`, before it is called."""

    __slots__ = ("name", "reference")

    def __init__(self, reference, name):
        self.reference = reference
        self.name = name


class Frame:
    """The names of one function; each call of a function has its own frame."""

    __slots__ = ("file", "key", "names", "outer_names", "result", "source")

    def __init__(self, key, source, file):
        self.key = key
        self.source = source
        self.file = file
        self.names = {}
        self.outer_names = None
        self.result = None
