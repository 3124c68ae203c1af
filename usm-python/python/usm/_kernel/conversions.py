"""Types and values: casts, the common type of two operands, literals."""

import ast
import types as pytypes

from . import nodes
from .state import Checks, Draft, Scope
from .types import BITS, COMPLEX, ARITHMETIC_TYPE, NAMES, IR_TYPE, is_float, is_int, limits, of_dtype, promote
from .values import Arr, Cpx, Rec, Static, Val, number

_GREATEST = (1 << 63) - 1


class Conversions:
    """Methods of the compiler that convert values."""

    __slots__ = ()
    draft: Draft
    checks: Checks
    scope: Scope

    def plain_number(self, value, node):
        """A number of Python's own types as a value; None for any other object."""
        kind = type(value)
        if kind is bool:
            return number(value, "bool", self.scope.at)
        if isinstance(value, int):
            # Members of enumerations too.
            return self.integer(int(value), node)
        if kind is float:
            return number(value, "wf", self.scope.at)
        return None

    def as_value(self, meaning, node):
        """The number that an expression is; arrays, tuples and other objects are refused."""
        if meaning.__class__ is Val:
            return meaning
        meaning = self.complex_instead(meaning)
        if meaning.__class__ is Cpx:
            raise self.error(node, f"`{ast.unparse(node)}` is complex, and a real number is needed: take `.real`, `.imag` or `abs(..)`")
        if meaning.__class__ is Static:
            value = meaning.value
            plain = self.plain_number(value, node)
            if plain is not None:
                return plain
            if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
                ty = of_dtype(value.dtype)
                if ty is not None:
                    return number(value.item(), ARITHMETIC_TYPE.get(ty, ty), self.scope.at)
            if type(value) is pytypes.ModuleType:
                text = f"the module `{ast.unparse(node)}`"
            else:
                text = f"`{ast.unparse(node)}`, an object of type {type(value).__name__},"
            raise self.error(node, f"{text} is no number: kernels know numbers, arrays and their elements")
        if meaning.__class__ is Rec or (meaning.__class__ is Arr and meaning.fields is not None):
            text = ast.unparse(node)
            raise self.error(node, f"`{text}` is a structure, and a number is needed: take a field, such as `{text}.{next(iter(meaning.fields))}`")
        if meaning.__class__ is Arr:
            raise self.error(
                node, f"the array `{meaning.name}` is no number: index it; rows and slices do not compute, so loop over elements"
            )
        raise self.error(node, "a tuple is no number")

    def integer(self, value, node):
        """A literal integer: int, or uint64 from 2^63 on."""
        if not -(1 << 63) <= value < 1 << 64:
            raise self.error(node, f"{value} does not fit 64 bits")
        if value > _GREATEST:
            result = number(value, "u64", self.scope.at)
            result.is_python = True
            return result
        return number(value, "wi", self.scope.at)

    def to(self, value, ty):
        """The text of a value, converted to another type."""
        at = self.scope.at
        if ty in ARITHMETIC_TYPE:
            return nodes.cast(ty, self.to(value, ARITHMETIC_TYPE[ty]), at)
        target = IR_TYPE[ty]
        source = IR_TYPE[value.ty]
        if value.const is not None:
            if is_int(target) and is_float(value.ty):
                return nodes.cast(target, value.text, at)
            return number(value.const, target, at).text
        if source == target:
            return value.text
        if target == "bool":
            return nodes.comparison("ne", value.text, nodes.literal(source, 0, at), at)
        if source == "bool" and is_float(target):
            return nodes.cast(target, nodes.cast("u8", value.text, at), at)
        return nodes.cast(target, value.text, at)

    def cast(self, value, ty):
        """A value, converted to another type; integers wrap around."""
        if ty in ARITHMETIC_TYPE:
            return Val(self.to_computed(self.to(value, ty), ty), ARITHMETIC_TYPE[ty], None, None, value.is_pure)
        if value.const is not None and not (is_int(ty) and is_float(value.ty)):
            return number(value.const, ty, self.scope.at)
        keeps = value.high is not None and is_int(ty) and value.high <= limits(ty)[1]
        return Val(self.to(value, ty), ty, None, value.high if keeps else None, value.is_pure)

    def view_bits(self, value, node):
        """`value.view(dtype)`: the number of another type with the same bits."""
        dtype = self.expr(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        ty = of_dtype(dtype.value) if dtype.__class__ is Static else None
        if ty is None or ty == "bool" or value.ty == "bool" or ty in COMPLEX:
            raise self.error(node, "`view` takes the type of a number, such as `x.view(np.uint32)`")
        source = IR_TYPE[value.ty]
        if BITS[source] != BITS[ty]:
            wide = f"{NAMES[source]} has {BITS[source]} bits, {NAMES[ty]} {BITS[ty]}"
            raise self.error(node, f"`view` keeps the bits: {wide}")
        if is_float(source) == is_float(ty):
            return self.cast(value, ty)
        word = f"u{BITS[source]}"
        if is_float(source):
            bits = Val(nodes.same_bits(word, self.to(value, source), self.scope.at), word, None, None, value.is_pure)
            return self.cast(bits, ty)
        return Val(nodes.same_bits(ty, self.to(value, word), self.scope.at), ty, None, None, value.is_pure)

    def to_computed(self, text, ty):
        """The text of a number of type `ty`, in the type that it is computed in."""
        return nodes.cast(ARITHMETIC_TYPE[ty], text, self.scope.at) if ty in ARITHMETIC_TYPE else text

    def truth(self, value):
        """The text of a value as a condition."""
        return value.text if value.ty == "bool" else self.to(value, "bool")

    def common_type(self, left, right, node, what):
        """The common type of two operands; the error has `what` between them."""
        ty = promote(left.ty, right.ty)
        if ty is None:
            raise self.error(node, f"{NAMES[left.ty]} {what} {NAMES[right.ty]}: no integer type holds both: cast one of them")
        for value in (left, right):
            if not self.fits(value, ty):
                raise self.error(node, f"{value.const} does not fit {NAMES[ty]}, the type of the other side: cast that")
            if value.ty == "wi" and is_int(ty) and ty != "wi":
                self.bound_argument(value, ty)
        return ty

    def bound_argument(self, value, ty):
        """Notes that a launch refuses an int argument outside of a type, as NumPy does."""
        argument = self.checks.integers.get(value.text)
        if argument is not None:
            low, high = limits(ty)
            key = argument, low, min(high, _GREATEST)
            self.checks.bounds.setdefault(key, (*key, NAMES[ty], self.draft.describe_place(self.scope.at)))

    @staticmethod
    def fits(value, ty):
        """Whether an integer type has a known number of Python; true for all other values."""
        if value.const is None or value.ty != "wi" or not is_int(ty) or ty == "wi":
            return True
        low, high = limits(ty)
        return low <= value.const <= high
