"""Our containers beside Numba's: the same operations give the same statuses, positions, orders,
bytes and callbacks."""

import ctypes
import random
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ssize_t, c_void_p

EQUAL = CFUNCTYPE(c_int, c_void_p, c_void_p)
COUNT = CFUNCTYPE(None, c_void_p)

SIGNATURES = {
    "dict_new_sized": (c_int, POINTER(c_void_p), c_ssize_t, c_ssize_t, c_ssize_t),
    "dict_set_method_table": (None, c_void_p, c_void_p),
    "dict_free": (None, c_void_p),
    "dict_length": (c_ssize_t, c_void_p),
    "dict_lookup": (c_ssize_t, c_void_p, c_char_p, c_ssize_t, c_void_p),
    "dict_insert": (c_int, c_void_p, c_char_p, c_ssize_t, c_char_p, c_void_p),
    "dict_insert_ez": (c_int, c_void_p, c_char_p, c_ssize_t, c_char_p),
    "dict_delitem": (c_int, c_void_p, c_ssize_t, c_ssize_t),
    "dict_popitem": (c_int, c_void_p, c_void_p, c_void_p),
    "dict_iter_sizeof": (c_size_t,),
    "dict_iter": (None, c_void_p, c_void_p),
    "dict_iter_next": (c_int, c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
    "dict_dump": (None, c_void_p),
    "set_new": (c_int, POINTER(c_void_p), c_ssize_t, c_ssize_t),
    "set_new_sized": (c_int, POINTER(c_void_p), c_ssize_t, c_ssize_t),
    "set_set_method_table": (None, c_void_p, c_void_p),
    "set_free": (None, c_void_p),
    "set_length": (c_ssize_t, c_void_p),
    "set_add": (c_int, c_void_p, c_char_p, c_ssize_t),
    "set_contains": (c_ssize_t, c_void_p, c_char_p, c_ssize_t),
    "set_discard": (c_int, c_void_p, c_char_p, c_ssize_t),
    "set_iter_sizeof": (c_size_t,),
    "set_iter": (None, c_void_p, c_void_p),
    "set_iter_next": (c_int, c_void_p, POINTER(c_void_p)),
    "set_dump": (None, c_void_p),
    "list_new": (c_int, POINTER(c_void_p), c_ssize_t, c_ssize_t),
    "list_set_method_table": (None, c_void_p, c_void_p),
    "list_free": (None, c_void_p),
    "list_base_ptr": (c_void_p, c_void_p),
    "list_size_address": (c_ssize_t, c_void_p),
    "list_length": (c_ssize_t, c_void_p),
    "list_allocated": (c_ssize_t, c_void_p),
    "list_is_mutable": (c_int, c_void_p),
    "list_set_is_mutable": (None, c_void_p, c_int),
    "list_setitem": (c_int, c_void_p, c_ssize_t, c_char_p),
    "list_getitem": (c_int, c_void_p, c_ssize_t, c_void_p),
    "list_append": (c_int, c_void_p, c_char_p),
    "list_delitem": (c_int, c_void_p, c_ssize_t),
    "list_delete_slice": (c_int, c_void_p, c_ssize_t, c_ssize_t, c_ssize_t),
    "list_iter_sizeof": (c_size_t,),
    "list_iter": (None, c_void_p, c_void_p),
    "list_iter_next": (c_int, c_void_p, POINTER(c_void_p)),
}
#: Lookups and comparisons that fail.
MISSING, FAILED = -1, -3


class Methods(Structure):
    """For all three: a set has no callbacks for values, a list begins with the third."""

    _fields_ = [("key_equal", c_void_p), ("key_incref", c_void_p), ("key_decref", c_void_p), ("value_incref", c_void_p), ("value_decref", c_void_p)]


class Log:
    """Callbacks that record their arguments. Keys are equal when their first two bytes are; a key
    that begins with 0xEE fails every comparison."""

    def __init__(self, key_size, value_size):
        self.events = []

        def equal(stored, given):
            stored, given = ctypes.string_at(stored, key_size), ctypes.string_at(given, key_size)
            self.events.append(("equal", stored, given))
            return -7 if given[:1] == b"\xee" else 3 * (stored[:2] == given[:2])

        def count(name, size):
            return COUNT(lambda element: self.events.append((name, ctypes.string_at(element, size))))

        self.functions = [
            EQUAL(equal),
            count("incref key", key_size),
            count("decref key", key_size),
            count("incref value", value_size),
            count("decref value", value_size),
        ]

    def table(self, chosen, first=0):
        addresses = [ctypes.cast(f, c_void_p).value if yes else None for f, yes in zip(self.functions, chosen)]
        return Methods(*addresses[first:], *[None] * first)


class Side:
    """One of the two implementations, with a container, its log and an iterator."""

    def __init__(self, functions):
        self.__dict__.update(functions)
        self.handle = c_void_p()
        self.log = None

    def drain(self):
        events, self.log.events = self.log.events, []
        return events


class Both:
    def __init__(self, ours, theirs, check, done):
        sides = []
        for get in (lambda name: ctypes.cast(getattr(ours, "numba_" + name), c_void_p).value, lambda name: theirs[name]):
            sides.append({name: CFUNCTYPE(*signature)(get(name)) for name, signature in SIGNATURES.items()})
        self.functions, self.check, self.done = sides, check, done

    def start(self, key_size, value_size):
        self.sides = [Side(functions) for functions in self.functions]
        for side in self.sides:
            side.log = Log(key_size, value_size)

    def both(self, name, *arguments, out=()):
        """Calls both. `out` is the size of the output buffer, or two sizes."""
        sizes = [out] if isinstance(out, int) else list(out)
        results = []
        for side in self.sides:
            buffers = [ctypes.create_string_buffer(b"\xa5" * (size + 8), size + 8) for size in sizes]
            status = getattr(side, name)(side.handle, *arguments, *(ctypes.cast(b, c_void_p) for b in buffers))
            results.append((status, [b.raw for b in buffers], side.drain()))
        self.done.add(name)
        self.check(name, *results, *arguments)
        return results[0]

    def make(self, name, *arguments):
        statuses = [getattr(side, name)(byref(side.handle), *arguments) for side in self.sides]
        self.done.add(name)
        self.check(name, *statuses, *arguments)
        return statuses[0] == 0

    def methods(self, name, chosen, first=0):
        for side in self.sides:
            getattr(side, name)(side.handle, byref(side.log.table(chosen, first)))
        self.done.add(name)

    def begin(self, kind):
        """A new iterator in memory that is not aligned."""
        size = [getattr(side, f"{kind}_iter_sizeof")() for side in self.sides]
        self.done |= {f"{kind}_iter_sizeof", f"{kind}_iter"}
        self.check(f"{kind}_iter_sizeof", *size)
        for side in self.sides:
            side.buffer = ctypes.create_string_buffer(size[0] + 16)
            start = ctypes.addressof(side.buffer)
            # Numba's own requires alignment.
            side.iterator = c_void_p(start + -start % 8 + (side is self.sides[0]))
            getattr(side, f"{kind}_iter")(side.iterator, side.handle)

    def next(self, kind, *sizes):
        results = []
        for side in self.sides:
            pointers = [c_void_p() for _ in sizes]
            status = getattr(side, f"{kind}_iter_next")(side.iterator, *map(byref, pointers))
            results.append((status, [ctypes.string_at(p, size) for p, size in zip(pointers, sizes)] if status == 0 else None))
        self.done.add(f"{kind}_iter_next")
        self.check(f"{kind}_iter_next", *results)
        return results[0][0]

    def walk(self, kind, *sizes):
        self.begin(kind)
        while self.next(kind, *sizes) == 0:
            pass

    def free(self, kind):
        for side in self.sides:
            getattr(side, f"{kind}_free")(side.handle)
        self.done.add(f"{kind}_free")
        self.check(f"{kind}_free", *(side.drain() for side in self.sides))


#: How keys are hashed: well, badly, and into one slot; some negative.
HASHES = [lambda key: key * 0x9E3779B97F4A7C15 % 2**63, lambda key: key, lambda key: key << 16, lambda key: key % 3, lambda key: 7, lambda key: -2 - key]


def dictionaries(box, rng):
    key_size, value_size = rng.choice([2, 3, 4, 8, 12, 16, 40]), rng.choice([0, 1, 4, 8, 16, 24, 100])
    chosen = [rng.random() < 0.7 for _ in range(5)]
    hashed, keys = rng.choice(HASHES), rng.choice([3, 20, 300, 5000])
    box.start(key_size, value_size)
    assert box.make("dict_new_sized", rng.choice([0, -1, 1, 5, 6, 10, 11, 100, 1000]), key_size, value_size)
    box.methods("dict_set_method_table", chosen)
    fails = chosen[0] and rng.random() < 0.3

    def key():
        number = rng.randrange(keys)
        bytes_ = number.to_bytes(2, "little") + b"k" * (key_size - 2)
        if fails and rng.random() < 0.1:
            bytes_ = b"\xee" + bytes_[1:]
        elif number % 256 == 0xEE:
            bytes_ = b"\xed" + bytes_[1:]
        # Equal keys with different bytes, if a callback treats them as equal.
        if chosen[0] and key_size > 2 and rng.random() < 0.2:
            bytes_ = bytes_[:-1] + b"x"
        return bytes_, hashed(int.from_bytes(bytes_[:2], "little"))

    box.begin("dict")
    for _ in range(rng.choice([30, 300, 1500])):
        action, (k, h), v = rng.random(), key(), rng.randbytes(value_size)
        if action < 0.35:
            box.both("dict_insert", k, h, v, out=value_size)
        elif action < 0.45:
            box.both("dict_insert_ez", k, h, v)
        elif action < 0.65:
            box.both("dict_lookup", k, h, out=value_size)
        elif action < 0.8:
            position, *_ = box.both("dict_lookup", k, h, out=value_size)
            if position >= 0:
                box.both("dict_delitem", h, position)
        elif action < 0.9:
            box.both("dict_popitem", out=(key_size, value_size))
        elif action < 0.96:
            # Numba compares the address of the table, which may be reused, so only its certain
            # results are compared.
            if box.sides[0].dict_length(box.sides[0].handle) and rng.random() < 0.5:
                box.begin("dict")
                box.next("dict", key_size, value_size)
        elif action < 0.98:
            box.walk("dict", key_size, value_size)
        else:
            box.both("dict_length")
    box.walk("dict", key_size, value_size)
    box.free("dict")


def mutations(box, rng):
    """Changes that an iteration detects."""
    box.start(8, 8)
    assert box.make("dict_new_sized", 0, 8, 8)
    for number in range(4):
        box.both("dict_insert_ez", number.to_bytes(8, "little"), number, b"12345678")
    k = lambda number: number.to_bytes(8, "little")
    box.begin("dict")
    assert box.next("dict", 8, 8) == 0
    box.both("dict_insert", k(1), 1, b"replaced", out=8)
    assert box.next("dict", 8, 8) == 0, "an exchanged value is no change"
    box.both("dict_insert", k(9), 9, b"replaced", out=8)
    assert box.next("dict", 8, 8) == -2
    box.begin("dict")
    box.both("dict_delitem", 2, 2)
    assert box.next("dict", 8, 8) == -2
    box.begin("dict")
    box.both("dict_popitem", out=(8, 8))
    assert box.next("dict", 8, 8) == -2
    box.begin("dict")
    # As many elements as before, in a table that has moved.
    box.both("dict_popitem", out=(8, 8))
    box.both("dict_insert", k(20), 20, b"replaced", out=8)
    assert box.next("dict", 8, 8) == -2
    box.free("dict")


def sets(box, rng):
    key_size = rng.choice([2, 4, 8, 16, 40])
    chosen = [rng.random() < 0.7 for _ in range(3)] + [False, False]
    hashed, keys = rng.choice(HASHES), rng.choice([3, 20, 300])
    box.start(key_size, 0)
    if rng.random() < 0.5:
        assert box.make("set_new", key_size, rng.choice([8, 64, 256, 1024]))
    else:
        assert box.make("set_new_sized", key_size, rng.choice([0, 5, 6, 100, 1000]))
    box.methods("set_set_method_table", chosen)
    for _ in range(rng.choice([30, 300, 1000])):
        number = rng.randrange(keys)
        k, h, action = number.to_bytes(2, "little").replace(b"\xee", b"\xed") + b"k" * (key_size - 2), hashed(number), rng.random()
        if action < 0.45:
            box.both("set_add", k, h)
        elif action < 0.65:
            box.both("set_contains", k, h)
        elif action < 0.9:
            box.both("set_discard", k, h)
        elif action < 0.97:
            box.both("set_length")
        else:
            box.walk("set", key_size)
    if chosen[0] and box.both("set_length")[0]:
        box.both("set_add", b"\xee\xee" + b"k" * (key_size - 2), hashed(0))
    box.walk("set", key_size)
    box.free("set")


def lists(box, rng):
    item_size = rng.choice([1, 2, 3, 4, 8, 16, 24, 100])
    chosen = [False] * 3 + [rng.random() < 0.6, rng.random() < 0.6]
    box.start(0, item_size)
    assert box.make("list_new", item_size, rng.choice([0, 1, 2, 10, 1000]))
    box.methods("list_set_method_table", chosen, 3)
    for _ in range(rng.choice([30, 300, 2000])):
        size, *_ = box.both("list_length")
        index = rng.choice([-1, 0, size - 1, size, rng.randrange(size + 1), 2**63 - 1, -(2**63)])
        item, action = rng.randbytes(item_size), rng.random()
        if action < 0.5:
            box.both("list_append", item)
        elif action < 0.6:
            box.both("list_setitem", index, item)
        elif action < 0.7:
            box.both("list_getitem", index, out=item_size)
        elif action < 0.8:
            box.both("list_delitem", index)
        elif action < 0.84:
            step = rng.choice([1, 1, 2, 3, 7, 2**30, -1, -2, -3, -(2**30)])
            ends = (rng.randrange(size + 1), rng.randrange(size + 1))
            if step < 0:
                # Clipped like Numba's.
                ends = (min(ends[0], size - 1), rng.choice([ends[1], -1]))
            box.both("list_delete_slice", *ends, step)
        elif action < 0.87:
            mutable = rng.randrange(2)
            box.both("list_set_is_mutable", mutable)
            box.both("list_is_mutable")
            if not mutable:
                for name, arguments in [("append", [item]), ("setitem", [9**9, item]), ("delitem", [-5]), ("delete_slice", [0, 1, 1])]:
                    box.both(f"list_{name}", *arguments)
                box.both("list_set_is_mutable", 1)
        elif action < 0.9:
            box.walk("list", item_size)
        else:
            box.both("list_allocated")
        contents = []
        for side in box.sides:
            size = ctypes.c_ssize_t.from_address(side.list_size_address(side.handle)).value
            base = side.list_base_ptr(side.handle)
            contents.append((size, ctypes.string_at(base, size * item_size) if size else b""))
        box.check("list_base_ptr", *contents)
    box.done |= {"list_base_ptr", "list_size_address"}
    box.begin("list")
    box.both("list_append", b"z" * item_size)
    assert box.next("list", item_size) == -3
    box.walk("list", item_size)
    box.free("list")


def hostile(box):
    """Calls that are undefined in Numba: ours alone, with the header's statuses."""
    box.start(8, 8)
    ours = box.sides[0]
    out = ours.handle
    for sizes in [(2**62, 8, 8), (2**63 - 1, 8, 8), (10, -1, 8), (10, 8, -1), (10, 2**62, 2**62), (0, 2**63 - 1, 0), (2**59, 1, 1)]:
        assert ours.dict_new_sized(byref(out), *sizes) == -1, sizes
    for sizes in [(2**62, 8), (-1, 8), (2**63 - 1, 2**63 - 1), (8, 2**62)]:
        assert ours.set_new(byref(out), *sizes) == -1 and ours.set_new_sized(byref(out), *sizes) == -1, sizes
    for sizes in [(8, -1), (-1, 8), (2**62, 4), (2**40, 2**40), (1, 2**62)]:
        assert ours.list_new(byref(out), *sizes) == -2, sizes
    assert ours.dict_new_sized(None, 0, 8, 8) == -1 and ours.set_new(None, 8, 8) == -1 and ours.list_new(None, 8, 0) == -2

    # Null containers.
    key = b"12345678"
    assert (ours.dict_length(None), ours.dict_lookup(None, key, 1, None), ours.dict_insert_ez(None, key, 1, key)) == (0, -1, -1)
    assert ours.dict_delitem(None, 1, 0) == ours.dict_popitem(None, None, None) == -4
    assert (ours.set_length(None), ours.set_contains(None, key, 1), ours.set_add(None, key, 1), ours.set_discard(None, key, 1)) == (0, 0, -1, 0)
    assert (ours.list_length(None), ours.list_append(None, key), ours.list_getitem(None, 0, None), ours.list_delitem(None, 0)) == (0, -2, -1, -1)
    for kind, arguments in [("dict", 2), ("set", 1), ("list", 1)]:
        getattr(ours, f"{kind}_free")(None)
        room = ctypes.create_string_buffer(64)
        getattr(ours, f"{kind}_iter")(ctypes.cast(room, c_void_p), None)
        assert getattr(ours, f"{kind}_iter_next")(ctypes.cast(room, c_void_p), *[None] * arguments) in (-3, -4)

    # Unknown positions, hashes of -1, and a hash that is not the element's.
    assert ours.dict_new_sized(byref(out), 0, 8, 8) == 0
    for number in range(300):
        assert ours.dict_insert_ez(out, number.to_bytes(8, "little"), -1, key) == 0
    for number in range(300):
        assert ours.dict_lookup(out, number.to_bytes(8, "little"), -1, None) == number
    for position in [-1, 300, 2**62, -(2**63)]:
        assert ours.dict_delitem(out, -1, position) == -2
    assert (ours.dict_delitem(out, 12345, 7), ours.dict_delitem(out, -1, 7), ours.dict_length(out)) == (0, -2, 299)
    ours.dict_free(out)

    # Failing comparisons.
    assert ours.set_new(byref(out), 8, 8) == 0
    ours.set_set_method_table(out, byref(ours.log.table([True] * 3)))
    assert ours.set_add(out, key, 1) == 0
    bad = b"\xee2345678"
    assert (ours.set_contains(out, bad, 1), ours.set_discard(out, bad, 1), ours.set_length(out)) == (FAILED, -5, 1)
    ours.set_free(out)

    # Slices beyond the list, and missing items.
    assert ours.list_new(byref(out), 0, 0) == 0
    for _ in range(1000):
        assert ours.list_append(out, b"") == 0
    assert ours.list_length(out) == 1000
    for slice_ in [(0, 1001, 1), (-1, 5, 1), (1000, 0, -1), (5, -2, -1), (0, 10, 0), (10, 0, 0), (-(2**63), 2**63 - 1, 1), (2**63 - 1, -(2**63), -1)]:
        assert ours.list_delete_slice(out, *slice_) == -1, slice_
    assert ours.list_delete_slice(out, 0, 1000, 2**63 - 1) == 0 and ours.list_length(out) == 999
    assert ours.list_delete_slice(out, 998, -1, -(2**63)) == 0 and ours.list_length(out) == 998
    ours.list_free(out)

    # A callback may read, but not change.
    answers = []
    held = [
        EQUAL(lambda *_: answers.append(ours.dict_insert_ez(out, b"abcdefgh", 99, key)) or 1),
        COUNT(lambda _: answers.extend([ours.dict_popitem(out, None, None), ours.dict_delitem(out, 1, 0), ours.dict_length(out)])),
    ]
    table = Methods(*(ctypes.cast(f, c_void_p).value for f in held), None, None, None)
    assert ours.dict_new_sized(byref(out), 0, 8, 8) == 0
    ours.dict_set_method_table(out, byref(table))
    assert ours.dict_insert_ez(out, key, 1, key) == 0 and answers == [-2, -2, 1]
    answers.clear()
    assert ours.dict_insert_ez(out, key, 1, key) == 1 and answers == [-2]
    # A lookup changes nothing, so its callback may change the table. If that moves the table, the
    # lookup fails.
    table.key_incref = None
    ours.dict_set_method_table(out, byref(table))
    held.append(EQUAL(lambda *_: [ours.dict_set_method_table(out, None)] + [ours.dict_insert_ez(out, n.to_bytes(8, "little"), n, key) for n in range(50)] and 1))
    table.key_equal = ctypes.cast(held[-1], c_void_p).value
    ours.dict_set_method_table(out, byref(table))
    assert ours.dict_lookup(out, key, 1, None) == FAILED
    ours.dict_free(out)


def dumps(box):
    """To the eye: they print and end."""
    box.start(4, 8)
    assert box.make("dict_new_sized", 0, 4, 8)
    box.both("dict_insert_ez", b"key1", 1, b"value  1")
    box.both("dict_dump")
    box.free("dict")
    box.start(4, 0)
    assert box.make("set_new", 4, 8)
    box.both("set_add", b"key1", 1)
    box.both("set_dump")
    box.free("set")


def compare(ours, theirs, check):
    """All of the above; the names that were compared."""
    rng = random.Random(2)
    done = set()
    box = Both(ours, theirs, check, done)
    for _ in range(60):
        dictionaries(box, rng)
        sets(box, rng)
        lists(box, rng)
    mutations(box, rng)
    hostile(box)
    dumps(box)
    return done
