"""Types of values in kernels: NumPy 2's promotion, in which Python's own numbers are weak."""

import struct

#: Types of elements, in the order of their numbers in usm-kernel-ir.
SCALARS = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "f16", "bf16")
BITS = {name: 8 if name == "bool" else int(name.lstrip("biuf")) for name in SCALARS}
NAMES = {
    "bool": "bool",
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    **{f"{sign}{bits}": f"{word}{bits}" for sign, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "wi": "int",
    "wf": "float",
    "c64": "complex64",
    "c128": "complex128",
}
_TYPESTR = {
    "b1": "bool",
    **{f"{kind}{size}": f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)},
    "f2": "f16",
    "f4": "f32",
    "f8": "f64",
    "c8": "c64",
    "c16": "c128",
}
#: Types of elements without arithmetic in the nodes. A load converts them to the type on the right,
#: and a store converts back.
ARITHMETIC_TYPE = {"f16": "f32", "bf16": "f32"}
#: Complex types, each with the type of its two parts. A complex value is a pair of values.
COMPLEX = {"c64": "f32", "c128": "f64"}
#: The type of a value in the nodes. A number of Python (`wi`, `wf`) takes the type of the other
#: operand; alone it has 64 bits.
IR_TYPE = {name: name for name in SCALARS} | {"wi": "i64", "wf": "f64"}


def is_int(ty):
    return ty == "wi" or ty[0] in "iu"


def is_float(ty):
    return ty == "wf" or ty[0] == "f"


def is_signed(ty):
    return ty == "wi" or ty[0] == "i"


def limits(ty):
    """The least and the greatest value of an integer type."""
    bits = BITS[IR_TYPE[ty]]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(ty) else (0, (1 << bits) - 1)


def promote(left, right):
    """The type that NumPy 2 gives a sum.

    None for int64 with uint64: no integer type holds both.
    """
    if left == right:
        return left
    if left[0] == "w" or right[0] == "w":
        weak, other = (left, right) if left[0] == "w" else (right, left)
        if other[0] == "w":
            return "wf"
        if other == "bool":
            return IR_TYPE[weak]
        return other if weak == "wi" or is_float(other) else "f64"
    if left == "bool" or right == "bool":
        return right if left == "bool" else left
    if is_float(left) or is_float(right):
        if is_float(left) and is_float(right):
            return "f64"
        narrow, whole = (left, right) if is_float(left) else (right, left)
        return narrow if BITS[whole] < 32 else "f64"
    if is_signed(left) == is_signed(right):
        return left if BITS[left] > BITS[right] else right
    signed, unsigned = (left, right) if is_signed(left) else (right, left)
    if BITS[signed] > BITS[unsigned]:
        return signed
    return None if BITS[unsigned] == 64 else f"i{2 * BITS[unsigned]}"


def bits_of(value, ty):
    """The bits of a number in a type, as an integer."""
    if ty == "f32":
        try:
            data = struct.pack("<f", value)
        except OverflowError:
            data = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
        return struct.unpack("<I", data)[0]
    if ty == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if ty == "bool":
        return int(bool(value))
    low, high = limits(ty)
    return ((int(value) - low) % (high - low + 1) + low) & 0xFFFFFFFFFFFFFFFF


def convert(value, ty):
    """The number that a type holds when it is given `value`."""
    if ty == "wi":
        return value
    bits = bits_of(value, IR_TYPE[ty])
    if ty == "bool":
        return bool(bits)
    if is_int(ty):
        return bits - (1 << 64) if is_signed(ty) and bits >> 63 else bits
    return struct.unpack("<f", struct.pack("<I", bits))[0] if ty == "f32" else float(value)


def of_dtype(value):
    """The type of a dtype of any library; None if kernels have no such type."""
    from .._usm import DType

    if type(value).__module__.startswith("numba."):
        value = str(value)
    try:
        text = str(DType(value))
    except (TypeError, ValueError):
        return None
    if text == "bfloat16":
        return "bf16"
    if text[:1] not in "<|=":
        return None
    return _TYPESTR.get(text[1:])
