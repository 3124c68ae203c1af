"""Arithmetic operators: `+`, `//`, `<<`, `~` and their like."""

import ast

from . import nodes
from .state import Scope
from .types import BITS, NAMES, STORED, bits_of, is_float, is_int, is_signed, limits
from .values import Cpx, Val, number

#: Names of the operators' nodes.
ARITHMETIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
#: The operators on known numbers.
_FOLD = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b, "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "shl": "<<", "shr": ">>", "and": "&", "or": "|", "xor": "^"}


class Operators:
    """Methods of the compiler for arithmetic operators."""

    __slots__ = ()
    scope: Scope

    def binary(self, node):
        """`a + b` and the like."""
        operator = ARITHMETIC.get(node.op.__class__)
        if operator is None:
            raise self.error(node, "`@` is not for kernels: write the sums in a loop")
        one, two = self.operands((node.left, node.right), self.numeric)
        return self.arithmetic(operator, one, two, node)

    def unary(self, node):
        """`-a`, `+a`, `~a` or `not a`."""
        if isinstance(node.op, ast.Not):
            return self.condition(node)
        value = self.numeric(node.operand)
        if value.__class__ is Cpx:
            return self.complex_unary(node.op, value, node)
        if isinstance(node.op, ast.Invert):
            if not is_int(value.ty) and value.ty != "bool":
                raise self.error(node, f"`~` of {NAMES[value.ty]}: only integers have it")
            if value.foldable and value.ty != "bool":
                return self.integer(~value.const, node)
            return Val(nodes.unary("not", STORED[value.ty], value.text, self.scope.at), value.ty, None, None, value.pure)
        if value.ty == "bool":
            value = self.cast(value, "i64")
        if isinstance(node.op, ast.UAdd):
            return value
        if value.foldable:
            return number(-value.const, "wf", self.scope.at) if value.ty == "wf" else self.integer(-value.const, node)
        return self.negative(value)

    def negative(self, value):
        """The negative of a number in its type."""
        stored = STORED[value.ty]
        if is_int(stored) and not is_signed(stored):
            return Val(nodes.binary("sub", stored, nodes.literal(stored, 0, self.scope.at), value.text, self.scope.at), value.ty, None, None, value.pure)
        return Val(nodes.unary("neg", stored, value.text, self.scope.at), value.ty, None, None, value.pure)

    def arithmetic(self, operator, one, two, node):
        """An operator on two values, in the type that NumPy 2 gives the result."""
        if Cpx in (one.__class__, two.__class__):
            return self.complex_arithmetic(operator, one, two, node)
        if one.foldable and two.foldable:
            return self.fold(operator, one, two, node)
        if one.ty == "bool" and two.ty == "bool" and operator in ("and", "or", "xor"):
            return Val(nodes.binary(operator, "bool", one.text, two.text, self.scope.at), "bool", None, None, one.pure and two.pure)
        if one.ty == "bool":
            one = self.cast(one, self.counted_as(two))
        if two.ty == "bool":
            two = self.cast(two, self.counted_as(one))
        if operator == "div" and one.ty != two.ty and "wi" in (one.ty, two.ty) and is_int(one.ty) and is_int(two.ty):
            # Integers of any type are divided as floats, so a number of Python need not fit the
            # type of the other side.
            return self.operation("div", one, two, "f64")
        ty = self.common_type(one, two, node, _SYMBOL[operator])
        if operator in ("and", "or", "xor", "shl", "shr"):
            if not is_int(ty):
                raise self.error(node, f"`{_SYMBOL[operator]}` of {NAMES[one.ty]} and {NAMES[two.ty]}: only integers have it")
            return self.bitwise(operator, one, two, ty, node)
        if operator == "div":
            if is_int(ty):
                ty = "wf" if ty == "wi" else "f64"
            return self.operation("div", one, two, ty)
        if operator in ("floordiv", "mod"):
            return self.floor_division(operator, one, two, ty, node)
        if operator == "pow":
            return self.power(one, two, ty, node)
        high = None
        if one.high is not None and two.high is not None and operator != "sub":
            high = one.high + two.high if operator == "add" else one.high * two.high
            if not is_int(ty) or high > limits(ty)[1]:
                high = None
        return self.operation(operator, one, two, ty, high)

    @staticmethod
    def counted_as(other):
        """The type of integers that a bool becomes beside another operand."""
        return "i64" if other.ty in ("bool", "wi") else other.ty if is_int(other.ty) else "u8"

    def operation(self, operator, one, two, ty, high=None):
        """The node of an operator on two values in type `ty`; `high` bounds the result."""
        return Val(nodes.binary(operator, STORED[ty], self.to(one, ty), self.to(two, ty), self.scope.at), ty, None, high, one.pure and two.pure)

    def fold(self, operator, one, two, node):
        """The result for two known numbers."""
        if operator in ("pow", "shl") and isinstance(one.const, int) and isinstance(two.const, int) and abs(one.const) > (operator == "pow") and two.const > 64:
            raise self.error(node, f"`{ast.unparse(node)}` does not fit 64 bits")
        try:
            result = _FOLD[operator](one.const, two.const)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.error(node, f"{error}") from None
        if isinstance(result, bool):
            return number(result, "bool", self.scope.at)
        if isinstance(result, int):
            return self.integer(result, node)
        if isinstance(result, float):
            return number(result, "wf", self.scope.at)
        raise self.error(node, f"the result {result} is no real number")

    def bitwise(self, operator, one, two, ty, node):
        """`&`, `|`, `^`, `<<` or `>>` of integers."""
        if operator in ("and", "or", "xor"):
            high = None
            if operator == "and":
                highs = [value.high for value in (one, two) if value.high is not None]
                high = min(highs) if highs else None
            return self.operation(operator, one, two, ty, high)
        width = BITS[STORED[ty]]
        if two.const is not None:
            if two.const < 0:
                raise self.error(node, f"a shift by {two.const}: shift the other way")
            if two.const < width:
                high = one.high >> two.const if operator == "shr" and one.high is not None else None
                return self.operation(operator, one, two, ty, high)
        # A shift by the width or more leaves zero, or the sign.
        one, two = self.reusable(one), self.reusable(two)
        fits = nodes.comparison("lt", self.to(two, "u64"), nodes.literal("u64", width, self.scope.at), self.scope.at)
        shifted = self.operation(operator, one, two, ty).text
        stored = STORED[ty]
        rest = nodes.literal(stored, 0, self.scope.at)
        if operator == "shr" and is_signed(ty):
            rest = nodes.binary("shr", stored, self.to(one, ty), nodes.literal(stored, width - 1, self.scope.at), self.scope.at)
        return Val(nodes.select(stored, fits, shifted, rest, self.scope.at), ty, None, None)

    def floor_division(self, operator, one, two, ty, node):
        """Python's `//`, towards minus infinity, and `%`, with the sign of the divisor."""
        at, stored = self.scope.at, STORED[ty]
        if is_float(ty):
            one, two = self.reusable(self.cast(one, stored)), self.reusable(self.cast(two, stored))
            rest = self.set_temporary(Val(nodes.binary("rem", stored, one.text, two.text, at), stored))
            zero = nodes.literal(stored, 0, at)
            signs = [nodes.comparison("lt", value.text, zero, at) for value in (rest, two)]
            wrong = nodes.and_then(nodes.comparison("ne", rest.text, zero, at), nodes.comparison("ne", *signs, at), at)
            if operator == "mod":
                # A zero has the sign of the divisor.
                none = nodes.select(stored, nodes.comparison("lt", two.text, zero, at), nodes.literal(stored, bits_of(-0.0, stored), at), zero, at)
                kept = nodes.select(stored, nodes.comparison("eq", rest.text, zero, at), none, rest.text, at)
                return Val(nodes.select(stored, wrong, nodes.binary("add", stored, rest.text, two.text, at), kept, at), ty)
            # As NumPy's: the steps are right for an infinite divisor, and a zero gives an infinity.
            quotient = nodes.binary("div", stored, nodes.binary("sub", stored, one.text, rest.text, at), two.text, at)
            less = nodes.select(stored, wrong, nodes.literal(stored, bits_of(1, stored), at), zero, at)
            whole = nodes.unary("round_ties_even", stored, nodes.binary("sub", stored, quotient, less, at), at)
            whole = self.set_temporary(Val(whole, stored))
            by_zero = nodes.binary("div", stored, one.text, two.text, at)
            # A zero has the sign of the quotient.
            none = nodes.binary("mul", stored, by_zero, zero, at)
            kept = nodes.select(stored, nodes.comparison("eq", whole.text, zero, at), none, whole.text, at)
            return Val(nodes.select(stored, nodes.comparison("eq", two.text, zero, at), by_zero, kept, at), ty)
        divisor = two.const
        if divisor == 0:
            raise self.error(node, "division by zero")
        plain = "div" if operator == "floordiv" else "rem"
        if not is_signed(ty) or (one.high is not None and two.high is not None):
            high = one.high
            if operator == "mod" and two.high is not None:
                high = two.high - 1 if divisor is not None else two.high
                high = max(high, 0)
            return self.operation(plain, one, two, ty, high if is_int(ty) and two.high is not None else None)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if operator == "floordiv":
                return self.operation("shr", one, self.integer(divisor.bit_length() - 1, node), ty)
            return self.operation("and", one, self.integer(divisor - 1, node), ty, divisor - 1)
        one, two = self.reusable(self.cast(one, stored)), self.reusable(self.cast(two, stored))
        rest = self.set_temporary(Val(nodes.binary("rem", stored, one.text, two.text, at), stored))
        zero = nodes.literal(stored, 0, at)
        signs = nodes.binary("xor", stored, rest.text, two.text, at)
        wrong = nodes.and_then(nodes.comparison("ne", rest.text, zero, at), nodes.comparison("lt", signs, zero, at), at)
        if operator == "mod":
            high = divisor - 1 if divisor is not None and divisor > 0 else None
            return Val(nodes.select(stored, wrong, nodes.binary("add", stored, rest.text, two.text, at), rest.text, at), ty, None, high)
        quotient = self.set_temporary(Val(nodes.binary("div", stored, one.text, two.text, at), stored))
        less = nodes.binary("sub", stored, quotient.text, nodes.literal(stored, 1, at), at)
        return Val(nodes.select(stored, wrong, less, quotient.text, at), ty)

    def power(self, one, two, ty, node):
        """`**`: of floats by `pow`, of integers by multiplications, exponent 0 to 64."""
        if is_float(ty):
            if two.const == 2:
                value = self.reusable(self.cast(one, STORED[ty]))
                return Val(nodes.binary("mul", STORED[ty], value.text, value.text, self.scope.at), ty)
            ty = "wf" if ty == "wf" else ty
            return self.function_node("pow", (one, two), ty)
        if two.const is None:
            raise self.error(node, "a power of integers with an exponent that is no literal: write `float(x) ** n`, or a loop")
        if two.const < 0:
            raise self.error(node, f"an integer to the power of {two.const}: write `float(x) ** {two.const}`")
        if two.const > 64:
            raise self.error(node, f"an integer to the power of {two.const}: 64 is the most")
        result, base, exponent = number(1, ty, self.scope.at), self.reusable(self.cast(one, STORED[ty])), two.const
        while exponent:
            if exponent & 1:
                result = base if result.const == 1 else self.set_temporary(self.operation("mul", result, base, ty))
            exponent >>= 1
            if exponent:
                base = self.set_temporary(self.operation("mul", base, base, ty))
        return Val(self.to(result, ty), ty, result.const)

    def function_node(self, function, values, ty):
        """The node of a function of numbers in type `ty`."""
        stored = STORED[ty]
        texts = [self.to(value, ty) for value in values]
        return Val(nodes.function(function, stored, texts, self.scope.at), ty, None, None, all(value.pure for value in values))
