"""Our helpers beside Numba's own, called through ctypes: `python helpers.py LIBRARY HELPERS.md
usm_nrt.h`.

Prints the comparisons, and ends with `OK`."""

import ctypes
import random
import re
import struct
import sys
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int64, c_size_t, c_ssize_t, c_uint, c_uint64

from numba import _helperlib

import containers

library, table, header = sys.argv[1:]
ours = ctypes.CDLL(library)
theirs = _helperlib.c_helpers
rng = random.Random(1)
compared = 0


def pair(name, result, *arguments):
    """Our function and Numba's, with the same signature."""
    numba = ctypes.CFUNCTYPE(result, *arguments)(theirs[name])
    own = getattr(ours, "numba_" + name)
    own.restype, own.argtypes = result, arguments
    return own, numba


def bits(value):
    """The form for comparisons: the bits, with all NaNs equal."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("d", value)
    return value


def check(name, ours, theirs, *inputs):
    global compared
    compared += 1
    assert ours == theirs, f"{name}{inputs}: {ours} here, {theirs} in Numba"


# The table has every name once, and only Numba's names.
sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", open(table).read(), re.M | re.S))
listed = {}
for section, text in sections.items():
    for row in re.findall(r"^\| (`.*?) \|", text, re.M):
        for name in re.findall(r"`(\w+)`", row):
            assert name not in listed, f"{name} is listed twice"
            listed[name] = section
assert set(listed.values()) == {"Provided", "In need of Python", "Out of scope"}, set(listed.values())
unlisted, unknown = theirs.keys() - listed.keys(), listed.keys() - theirs.keys()
assert not unlisted and not unknown, f"not in HELPERS.md: {sorted(unlisted)}; not in Numba: {sorted(unknown)}"
provided = {name for name, section in listed.items() if section == "Provided"}
declared = set(re.findall(r"\bnumba_(\w+)\(", open(header).read()))
assert provided == declared, f"provided and declared differ: {sorted(provided ^ declared)}"
done = set()

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-310, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 170.5, -170.5, 4503599627370497.5]


def numbers(count, single=False):
    def any_bits():
        return struct.unpack("d", rng.randbytes(8))[0]

    values = SPECIAL + [rng.uniform(-1, 1) for _ in range(count)] + [rng.uniform(-200, 200) for _ in range(count)]
    values += [any_bits() for _ in range(count)]
    return [c_float(value).value for value in values] if single else values


INTEGERS = [0, 1, -1, 2, -2, 7, 2**31, -(2**31), 2**63 - 1, -(2**63)] + [rng.getrandbits(64) - 2**63 for _ in range(300)]
for name in ["sdiv", "srem", "udiv", "urem"]:
    number, bias = (c_int64, 0) if name[0] == "s" else (c_uint64, 2**63)
    own, numba = pair(name, number, number, number)
    for a in INTEGERS:
        for b in rng.choices(INTEGERS, k=10) + INTEGERS[:10]:
            a_, b_ = a + bias, b + bias
            if b_ == 0 or (bias == 0 and (a, b) == (-(2**63), -1)):
                own(a_, b_)  # Numba's version would end the process.
            else:
                check(name, own(a_, b_), numba(a_, b_), a_, b_)
    assert own(5, 0) == 0
    done.add(name)

for name, number in [("fptoui", c_double), ("fptouif", c_float)]:
    own, numba = pair(name, c_uint64, number)
    for x in numbers(2000, number is c_float) + [2.0**63, -(2.0**63), 2.0**64, 1e18, -1e18]:
        check(name, own(x), numba(x), x)
    done.add(name)

for name, number in [("frexp", c_double), ("frexpf", c_float)]:
    own, numba = pair(name, number, number, POINTER(c_int))
    for x in numbers(2000, number is c_float):
        e, f = c_int(-99), c_int(-99)
        check(name, (bits(own(x, byref(e))), e.value), (bits(numba(x, byref(f))), f.value), x)
    done.add(name)
for name, number in [("ldexp", c_double), ("ldexpf", c_float)]:
    own, numba = pair(name, number, number, c_int)
    for x in numbers(2000, number is c_float):
        for e in [0, 1, -1, 2**31 - 1, -(2**31), rng.randrange(-1200, 1200)]:
            check(name, bits(own(x, e)), bits(numba(x, e)), x, e)
    done.add(name)

ours.numba_set_fnclex(None)
noop = ctypes.CFUNCTYPE(None)(lambda: None)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(theirs["set_fnclex"])(ctypes.cast(noop, ctypes.c_void_p))
done.add("set_fnclex")
BINARY = ["nextafter", "pow", "fmod", "atan2", "fixed_fmod"]
UNARY = "gamma lgamma erf erfc sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh exp expm1 log log10 log1p sqrt fabs floor ceil round trunc".split()
for stem in UNARY + BINARY:
    for suffix, number in [("", c_double), ("f", c_float)]:
        name, count = stem + suffix, 2 if stem in BINARY else 1
        own, numba = pair(name, number, *[number] * count)
        values = numbers(600 if count == 1 else 300, number is c_float)
        for x in values:
            others = [rng.choice(values) for _ in range(5)] if count == 2 else [None]
            for y in others:
                inputs = (x,) if y is None else (x, y)
                check(name, bits(own(*inputs)), bits(numba(*inputs)), *inputs)
        done.add(name)

# CPython 3.13 changed the last bits of complex powers.
ULP = 0 if sys.version_info < (3, 13) else 8
for name, number in [("cpow", c_double), ("cpowf", c_float)]:
    kind = number * 2
    own, numba = pair(name, None, POINTER(kind), POINTER(kind), POINTER(kind))
    values = numbers(200, number is c_float)
    for _ in range(20000):
        a, b, p, q = kind(*rng.choices(values, k=2)), kind(*rng.choices(values, k=2)), kind(), kind()
        own(byref(a), byref(b), byref(p))
        numba(byref(a), byref(b), byref(q))
        if name == "cpowf" and (q[0] == 0 or not abs(q[1]) < float("inf")):
            # Numba computes real + I * imaginary: the real part loses the sign of a zero, and
            # becomes NaN if the other part is not finite.
            assert bits(p[1]) == bits(q[1]) and (p[0] == q[0] or q[0] != q[0])
            continue
        for x, y in zip(p, q):
            if ULP and x == x and y == y and abs(x) != float("inf") and x != y:
                compared += 1
                assert abs(x - y) <= ULP * 2**-52 * max(abs(p[0]), abs(p[1])), (name, list(a), list(b), x, y)
            else:
                check(name, bits(x), bits(y), list(a), list(b))
    done.add(name)


class State(ctypes.Structure):
    _fields_ = [("index", c_int), ("mt", c_uint * 624), ("has_gauss", c_int), ("gauss", c_double), ("is_initialized", c_int)]


init = pair("rnd_init", None, POINTER(State), c_uint)
shuffle = pair("rnd_shuffle", None, POINTER(State))
poisson = pair("poisson_ptrs", c_int64, POINTER(State), c_double)
ours.usm_nrt_rnd_next.restype, ours.usm_nrt_rnd_next_double.restype = c_uint, c_double
for seed in [0, 1, 42, 2**32 - 1] + [rng.getrandbits(32) for _ in range(20)]:
    a, b = State(), State()
    ctypes.memset(byref(a), 0xAA, ctypes.sizeof(a)), ctypes.memset(byref(b), 0xAA, ctypes.sizeof(b))
    init[0](byref(a), seed), init[1](byref(b), seed)
    check("rnd_init", bytes(a), bytes(b), seed)
    for _ in range(3):
        shuffle[0](byref(a)), shuffle[1](byref(b))
        check("rnd_shuffle", bytes(a), bytes(b), seed)
    a.index = b.index = 624
    for _ in range(300):
        mean = rng.choice([10.0, 10.5, 33.3, 1e3, 1e6, 1e12, 1e18])
        check("poisson_ptrs", poisson[0](byref(a), mean), poisson[1](byref(b), mean), seed, mean)
    check("poisson_ptrs", bytes(a), bytes(b), seed)
    # CPython's own generator from the same state and keys.
    peer = random.Random()
    peer.setstate((3, tuple(a.mt) + (a.index,), None))
    for _ in range(1500):
        check("rnd_next", ours.usm_nrt_rnd_next(byref(a)), peer.getrandbits(32), seed)
        check("rnd_next_double", ours.usm_nrt_rnd_next_double(byref(a)), peer.random(), seed)
    key = [rng.getrandbits(32) | 1 for _ in range(rng.choice([1, 2, 10, 623, 624, 625, 2000]))]
    peer.seed(sum(word << 32 * place for place, word in enumerate(key)))
    ours.usm_nrt_rnd_init_by_array(byref(a), (c_uint * len(key))(*key), c_size_t(len(key)))
    check("rnd_init_by_array", (tuple(a.mt) + (a.index,)), peer.getstate()[1], key)
    for hostile in [-1, 625, 2**31 - 1, -(2**31)]:
        a.index = hostile
        ours.usm_nrt_rnd_next(byref(a))
        assert 0 < a.index <= 624
for mean in [float("nan"), -1.0, 9.9, float("inf"), 1e300]:
    assert poisson[0](byref(a), mean) == -1
done |= {"rnd_init", "rnd_shuffle", "poisson_ptrs"}

states = set()
for name in ["get_py_random_state", "get_np_random_state", "get_internal_random_state"]:
    getter = getattr(ours, "numba_" + name)
    getter.restype = POINTER(State)
    state = getter()
    assert ctypes.addressof(state.contents) == ctypes.addressof(getter().contents)
    assert state.contents.is_initialized == 1 and len(set(state.contents.mt)) > 600
    states.add(bytes(state.contents))
    done.add(name)
assert len(states) == 3, "three different generators"

own, numba = pair("attempt_nocopy_reshape", c_int, c_ssize_t, POINTER(c_ssize_t), POINTER(c_ssize_t), c_ssize_t, POINTER(c_ssize_t), POINTER(c_ssize_t), c_ssize_t, c_int)
reshaped = 0
for _ in range(60000):
    sizes = [1, 1, 2, 3, 4, 6] + ([0] if rng.random() < 0.05 else [])
    old = [rng.choice(sizes) for _ in range(rng.randrange(5))]
    total = 1
    for size in old:
        total *= size
    # Mostly another shape with as many elements.
    new, left = [], total
    while left > 1 and len(new) < 6:
        divisor = rng.choice([d for d in range(1, left + 1) if left % d == 0])
        new.append(divisor)
        left //= divisor
    new.append(left if rng.random() < 0.97 else left + 1)
    itemsize, fortran = rng.choice([1, 2, 8]), rng.randrange(2)
    strides, step = [0] * len(old), itemsize
    for axis in range(len(old)) if fortran else reversed(range(len(old))):
        strides[axis] = step
        step *= old[axis] * (2 if rng.random() < 0.1 else 1)
    if rng.random() < 0.1:
        strides = [rng.choice([-8, 0, 1, 3, 16]) for _ in old]
    c = lambda values: (c_ssize_t * max(len(values), 1))(*values)
    p, q = c([-77] * len(new)), c([-77] * len(new))
    arguments = lambda out: (len(old), c(old), c(strides), len(new), c(new), out, itemsize, fortran)
    mine, his = own(*arguments(p)), numba(*arguments(q))
    if fortran and total == 1:
        # Numba reads the size before the first one: its strides of a single element are arbitrary
        # memory.
        assert mine == his and (not mine or list(p)[: len(new)] == [itemsize] * len(new))
        continue
    check("attempt_nocopy_reshape", (mine, list(p) if mine else None), (his, list(q) if his else None), old, strides, new, fortran)
    reshaped += mine
assert reshaped > 5000
many = (c_ssize_t * 65)(*[1] * 65)
assert own(65, many, many, 1, many, many, 8, 0) == 0 and own(-1, many, many, 1, many, many, 8, 0) == 0
done.add("attempt_nocopy_reshape")

ours.numba_gdb_breakpoint()
done |= {"gdb_breakpoint", "fatal_error"}
done |= containers.compare(ours, theirs, check)
assert done == provided, f"provided but not compared: {sorted(provided - done)}"
print(f"{compared} results compared over {len(provided)} functions")
# The dumps wrote to C's buffer, which would otherwise be written after Python's, at exit.
ctypes.CDLL(None).fflush(None)
print("OK")
