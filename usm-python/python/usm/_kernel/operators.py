"""Arithmetic operators: `+`, `//`, `<<`, `~` and their like."""

import ast

from . import nodes
from .state import Scope
from .types import BITS, NAMES, IR_TYPE, bits_of, is_float, is_int, is_signed, limits
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
        left, right = self.operands((node.left, node.right), self.numeric)
        return self.arithmetic(operator, left, right, node)

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
            if value.is_foldable and value.ty != "bool":
                return self.integer(~value.const, node)
            return Val(nodes.unary("not", IR_TYPE[value.ty], value.text, self.scope.at), value.ty, None, None, value.is_pure)
        if value.ty == "bool":
            value = self.cast(value, "i64")
        if isinstance(node.op, ast.UAdd):
            return value
        if value.is_foldable:
            return number(-value.const, "wf", self.scope.at) if value.ty == "wf" else self.integer(-value.const, node)
        return self.negative(value)

    def negative(self, value):
        """The negative of a number in its type."""
        at = self.scope.at
        stored_type = IR_TYPE[value.ty]
        if is_int(stored_type) and not is_signed(stored_type):
            return Val(nodes.binary("sub", stored_type, nodes.literal(stored_type, 0, at), value.text, at), value.ty, None, None, value.is_pure)
        return Val(nodes.unary("neg", stored_type, value.text, at), value.ty, None, None, value.is_pure)

    def arithmetic(self, operator, left, right, node):
        """An operator on two values, in the type that NumPy 2 gives the result."""
        if Cpx in (left.__class__, right.__class__):
            return self.complex_arithmetic(operator, left, right, node)
        if left.is_foldable and right.is_foldable:
            return self.fold(operator, left, right, node)
        if left.ty == "bool" and right.ty == "bool" and operator in ("and", "or", "xor"):
            return Val(nodes.binary(operator, "bool", left.text, right.text, self.scope.at), "bool", None, None, left.is_pure and right.is_pure)
        if left.ty == "bool":
            left = self.cast(left, self.counted_as(right))
        if right.ty == "bool":
            right = self.cast(right, self.counted_as(left))
        if operator == "div" and left.ty != right.ty and "wi" in (left.ty, right.ty) and is_int(left.ty) and is_int(right.ty):
            # Integers of any type are divided as floats, so a number of Python need not fit the
            # type of the other side.
            return self.operation("div", left, right, "f64")
        ty = self.common_type(left, right, node, _SYMBOL[operator])
        if operator in ("and", "or", "xor", "shl", "shr"):
            if not is_int(ty):
                raise self.error(node, f"`{_SYMBOL[operator]}` of {NAMES[left.ty]} and {NAMES[right.ty]}: only integers have it")
            return self.bitwise(operator, left, right, ty, node)
        if operator == "div":
            if is_int(ty):
                ty = "wf" if ty == "wi" else "f64"
            return self.operation("div", left, right, ty)
        if operator in ("floordiv", "mod"):
            return self.floor_division(operator, left, right, ty, node)
        if operator == "pow":
            return self.power(left, right, ty, node)
        high = None
        if left.high is not None and right.high is not None and operator != "sub":
            high = left.high + right.high if operator == "add" else left.high * right.high
            if not is_int(ty) or high > limits(ty)[1]:
                high = None
        return self.operation(operator, left, right, ty, high)

    @staticmethod
    def counted_as(other):
        """The type of integers that a bool becomes beside another operand."""
        return "i64" if other.ty in ("bool", "wi") else other.ty if is_int(other.ty) else "u8"

    def operation(self, operator, left, right, ty, high=None):
        """The node of an operator on two values in type `ty`; `high` bounds the result."""
        return Val(nodes.binary(operator, IR_TYPE[ty], self.to(left, ty), self.to(right, ty), self.scope.at), ty, None, high, left.is_pure and right.is_pure)

    def fold(self, operator, left, right, node):
        """The result for two known numbers."""
        if operator in ("pow", "shl") and isinstance(left.const, int) and isinstance(right.const, int) and abs(left.const) > (operator == "pow") and right.const > 64:
            raise self.error(node, f"`{ast.unparse(node)}` does not fit 64 bits")
        try:
            result = _FOLD[operator](left.const, right.const)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.error(node, f"{error}") from None
        if isinstance(result, bool):
            return number(result, "bool", self.scope.at)
        if isinstance(result, int):
            return self.integer(result, node)
        if isinstance(result, float):
            return number(result, "wf", self.scope.at)
        raise self.error(node, f"the result {result} is no real number")

    def bitwise(self, operator, left, right, ty, node):
        """`&`, `|`, `^`, `<<` or `>>` of integers."""
        at = self.scope.at
        if operator in ("and", "or", "xor"):
            high = None
            if operator == "and":
                highs = [value.high for value in (left, right) if value.high is not None]
                high = min(highs) if highs else None
            return self.operation(operator, left, right, ty, high)
        width = BITS[IR_TYPE[ty]]
        if right.const is not None:
            if right.const < 0:
                raise self.error(node, f"a shift by {right.const}: shift the other way")
            if right.const < width:
                high = left.high >> right.const if operator == "shr" and left.high is not None else None
                return self.operation(operator, left, right, ty, high)
        # A shift by the width or more leaves zero, or the sign.
        left, right = self.as_reusable(left), self.as_reusable(right)
        fits = nodes.comparison("lt", self.to(right, "u64"), nodes.literal("u64", width, at), at)
        result = self.operation(operator, left, right, ty).text
        stored_type = IR_TYPE[ty]
        rest = nodes.literal(stored_type, 0, at)
        if operator == "shr" and is_signed(ty):
            rest = nodes.binary("shr", stored_type, self.to(left, ty), nodes.literal(stored_type, width - 1, at), at)
        return Val(nodes.select(stored_type, fits, result, rest, at), ty, None, None)

    def floor_division(self, operator, left, right, ty, node):
        """Python's `//`, towards minus infinity, and `%`, with the sign of the divisor."""
        if is_float(ty):
            return self.floor_division_of_floats(operator, left, right, ty)
        divisor = right.const
        if divisor == 0:
            raise self.error(node, "division by zero")
        plain = "div" if operator == "floordiv" else "rem"
        if not is_signed(ty) or (left.high is not None and right.high is not None):
            high = left.high
            if operator == "mod" and right.high is not None:
                high = right.high - 1 if divisor is not None else right.high
                high = max(high, 0)
            return self.operation(plain, left, right, ty, high if is_int(ty) and right.high is not None else None)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if operator == "floordiv":
                return self.operation("shr", left, self.integer(divisor.bit_length() - 1, node), ty)
            return self.operation("and", left, self.integer(divisor - 1, node), ty, divisor - 1)
        write = nodes.Formula(IR_TYPE[ty], self.scope.at)
        left, right = (self.as_reusable(self.cast(value, write.ty)).text for value in (left, right))
        rest = self.set_temporary(Val(write.binary("rem", left, right), write.ty)).text
        zero = write.literal(0)
        signs = write.binary("xor", rest, right)
        is_too_high = write.and_then(write.comparison("ne", rest, zero), write.comparison("lt", signs, zero))
        if operator == "mod":
            high = divisor - 1 if divisor is not None and divisor > 0 else None
            return Val(write.select(is_too_high, write.binary("add", rest, right), rest), ty, None, high)
        quotient = self.set_temporary(Val(write.binary("div", left, right), write.ty)).text
        return Val(write.select(is_too_high, write.binary("sub", quotient, write.literal(1)), quotient), ty)

    def floor_division_of_floats(self, operator, left, right, ty):
        """`//` or `%` of floats, by NumPy's steps."""
        write = nodes.Formula(IR_TYPE[ty], self.scope.at)
        left, right = (self.as_reusable(self.cast(value, write.ty)).text for value in (left, right))
        rest = self.set_temporary(Val(write.binary("rem", left, right), write.ty)).text
        zero = write.literal(0)
        signs = [write.comparison("lt", operand, zero) for operand in (rest, right)]
        is_too_high = write.and_then(write.comparison("ne", rest, zero), write.comparison("ne", *signs))
        if operator == "mod":
            # A zero has the sign of the divisor.
            signed_zero = write.select(write.comparison("lt", right, zero), write.literal(bits_of(-0.0, write.ty)), zero)
            result = write.select(write.comparison("eq", rest, zero), signed_zero, rest)
            return Val(write.select(is_too_high, write.binary("add", rest, right), result), ty)
        # The steps are right for an infinite divisor, and a zero gives an infinity.
        quotient = write.binary("div", write.binary("sub", left, rest), right)
        excess = write.select(is_too_high, write.literal(bits_of(1, write.ty)), zero)
        whole = write.unary("round_ties_even", write.binary("sub", quotient, excess))
        whole = self.set_temporary(Val(whole, write.ty)).text
        by_zero = write.binary("div", left, right)
        # A zero has the sign of the quotient.
        signed_zero = write.binary("mul", by_zero, zero)
        result = write.select(write.comparison("eq", whole, zero), signed_zero, whole)
        return Val(write.select(write.comparison("eq", right, zero), by_zero, result), ty)

    def power(self, left, right, ty, node):
        """`**`: of floats by `pow`, of integers by multiplications, exponent 0 to 64."""
        if is_float(ty):
            if right.const == 2:
                value = self.as_reusable(self.cast(left, IR_TYPE[ty]))
                return Val(nodes.binary("mul", IR_TYPE[ty], value.text, value.text, self.scope.at), ty)
            ty = "wf" if ty == "wf" else ty
            return self.function_node("pow", (left, right), ty)
        if right.const is None:
            raise self.error(node, "a power of integers with an exponent that is no literal: write `float(x) ** n`, or a loop")
        if right.const < 0:
            raise self.error(node, f"an integer to the power of {right.const}: write `float(x) ** {right.const}`")
        if right.const > 64:
            raise self.error(node, f"an integer to the power of {right.const}: 64 is the most")
        result, base, exponent = number(1, ty, self.scope.at), self.as_reusable(self.cast(left, IR_TYPE[ty])), right.const
        while exponent:
            if exponent & 1:
                result = base if result.const == 1 else self.set_temporary(self.operation("mul", result, base, ty))
            exponent >>= 1
            if exponent:
                base = self.set_temporary(self.operation("mul", base, base, ty))
        return Val(self.to(result, ty), ty, result.const)

    def function_node(self, function, values, ty):
        """The node of a function of numbers in type `ty`."""
        stored_type = IR_TYPE[ty]
        texts = [self.to(value, ty) for value in values]
        return Val(nodes.function(function, stored_type, texts, self.scope.at), ty, None, None, all(value.is_pure for value in values))
