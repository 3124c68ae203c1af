"""The operations of reductions and scans."""

from functools import lru_cache

from .. import _usm
from .._kernel import device_func
from .._usm import DType
from .run import kind_of
from .text import Text, maximum, minimum

#: The names of operations.
NAMES = ("sum", "prod", "min", "max", "any", "all")


@device_func
def add(a, b):
    return a + b


@device_func
def multiply(a, b):
    return a * b


@device_func
def either(a, b):
    return a or b


@device_func
def both(a, b):
    return a and b


class Operation:
    """Combines two numbers to one; which come first does not matter."""

    def __init__(self, name, combine, identity):
        self.name = name
        self.combine = combine
        self.identity = identity

    @property
    def takes_complex(self):
        """Whether it combines complex numbers, which have no order."""
        return self.name not in ("min", "max", "any", "all")

    def result_type(self, dtype):
        """The type of a result of elements of this type, as in NumPy."""
        if self.name in ("any", "all"):
            return _usm.bool_
        if self.name in ("sum", "prod") and dtype.kind in "biu" and dtype.itemsize < 8:
            return _usm.uint64 if dtype.kind == "u" else _usm.int64
        return DType(dtype)

    def identity_of(self, dtype):
        """The number that changes none of this type; None if there is none or it is unknown."""
        if self.name in ("min", "max"):
            return None
        return self.identity

    def neutral(self, dtype):
        """As `identity_of`, with the ends of the type for `min` and `max`."""
        if self.name not in ("min", "max"):
            return self.identity
        if kind_of(dtype) == "f":
            return float("inf") if self.name == "min" else float("-inf")
        bits = 8 * dtype.itemsize
        if dtype.kind == "b":
            return self.name == "min"
        low, high = (0, (1 << bits) - 1) if dtype.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return high if self.name == "min" else low


_KNOWN = {
    "sum": Operation("sum", add, 0),
    "prod": Operation("prod", multiply, 1),
    "min": Operation("min", minimum, None),
    "max": Operation("max", maximum, None),
    "any": Operation("any", either, False),
    "all": Operation("all", both, True),
}


def operation_of(text):
    """The operation of a name, or of an expression of two names."""
    return _KNOWN.get(text) or _of_text(text)


@lru_cache(256)
def _of_text(text):
    expression = Text(text, "operation")
    if len(expression.names) != 2:
        names = ", ".join(expression.names) or "none"
        raise expression.error(f"an operation names two numbers, this one {names}; {', '.join(NAMES)} are operations too")
    return Operation(repr(expression.text), expression.function(expression.names), None)
