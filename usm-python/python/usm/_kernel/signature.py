"""What a key says of a launch: its dimensions, and the sorts of its arguments."""

from .keys import RECORD, RECORDS, TUPLE


class Signature:
    """A launch that code is made for.

    ``dimensions`` are those of its range. ``shares``: two of its arrays overlap, so that each may
    change when another one is set. ``sorts`` are those of its arguments, and ``argument_count`` is
    the number of its arguments, in which an item of a tuple and a field count as one.
    """

    __slots__ = ("argument_count", "dimensions", "shares", "sorts")

    def __init__(self, key):
        head = key[0]
        self.dimensions = head & 0xFF
        self.shares = bool(head >> 16)
        self.sorts = sorts_of(key[1:])
        self.argument_count = count_of(self.sorts)


class Layout:
    """A structure in a key: the word of its kind, its bytes, and its fields in their order.

    Fields are a `Leaf` each, or the fields of a structure inside.
    """

    __slots__ = ("count", "fields", "head", "size")

    def __init__(self, head, size, count):
        self.head = head
        self.size = size
        self.count = count
        self.fields = {}


class Leaf:
    """A field that is a number or an array of numbers: its place among the fields, and its type."""

    __slots__ = ("inner", "place", "sort")

    def __init__(self, place, sort, inner):
        self.place = place
        self.sort = sort
        self.inner = inner


def sorts_of(words):
    """The sorts of arguments in the words of a key: a number, a `Layout`, or a list for a tuple."""
    words = iter(words)
    return [sort_of(word, words) for word in words]


def sort_of(word, words):
    """The sort that begins with a word and goes on with further words."""
    kind = word >> 24
    if kind == TUPLE:
        return [sort_of(next(words), words) for _ in range(next(words))]
    if kind not in (RECORDS, RECORD):
        return word
    layout = Layout(word, next(words), next(words))
    for place in range(layout.count):
        sort, length = next(words), next(words)
        name = b"".join(next(words).to_bytes(4, "little") for _ in range(-(-length // 4)))[:length].decode()
        fields = layout.fields
        *outer, last = name.split("\n")
        for structure in outer:
            fields = fields.setdefault(structure, {})
        fields[last] = Leaf(place, sort, [next(words) for _ in range(sort >> 16)])
    return layout


def count_of(sort):
    """The number of arguments that a launch has for a sort."""
    if sort.__class__ is list:
        return sum(map(count_of, sort))
    return sort.count if sort.__class__ is Layout else 1
