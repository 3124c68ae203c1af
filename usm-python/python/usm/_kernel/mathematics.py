"""Functions of numbers: Python's own, those of `math`, and NumPy's of the same names."""

import ast
import math

from . import nodes
from .._usm import _builtins
from .state import Scope
from .types import BITS, NAMES, IR_TYPE, bits_of, is_float, is_int, is_signed, promote
from .values import Arr, Cpx, Static, Tup, Val, number

#: Functions of `math`, NumPy and SciPy, each with the name of its node, the number of arguments,
#: and whether it counts bits of an integer.
BUILTINS = _builtins()
#: Functions of NumPy that are operators.
_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "floor_divide": "floordiv",
    "remainder": "mod", "mod": "mod", "power": "pow", "left_shift": "shl", "right_shift": "shr", "bitwise_left_shift": "shl",
    "bitwise_right_shift": "shr", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
_COMPARISONS = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
_DEGREES = {"deg2rad": math.pi / 180, "radians": math.pi / 180, "rad2deg": 180 / math.pi, "degrees": 180 / math.pi}


class Mathematics:
    """Methods of the compiler for functions of numbers."""

    __slots__ = ()
    scope: Scope

    def math_function(self, name, node, of_math=False):
        """A built-in function by its name in Python, also `exp` of a complex number."""
        name, count, counts = BUILTINS[name]
        if counts:
            return self.count_bits(name, node)
        values = self.take_arguments(node, count, self.numeric if name == "exp" else None)
        if values[0].__class__ is Cpx and of_math:
            raise self.error(node, f"`{ast.unparse(node)}` of a complex number: write `cmath.exp` or `np.exp`, or take `.real` or `abs(..)`")
        if values[0].__class__ is Cpx:
            return self.complex_exponential(values[0])
        ty = None
        for value in values:
            if value.ty == "bool" or is_int(value.ty):
                value = Val("", "wf" if value.ty == "wi" else "f64")
            ty = value.ty if ty is None else promote(ty, value.ty)
        values = [self.cast(value, "u8") if value.ty == "bool" else value for value in values]
        return self.function_node(name, values, ty)

    def count_bits(self, name, node):
        """A number of bits as NumPy counts them: those of the absolute value, as uint8."""
        value = self.absolute(node)
        if not is_int(value.ty) and value.ty != "bool":
            raise self.error(node, f"`{ast.unparse(node)}` of {NAMES[value.ty]}: only integers have bits to count")
        bits = BITS[IR_TYPE[value.ty]]
        # The absolute value of the least integer wraps, and is right without a sign.
        value = self.cast(self.cast(value, f"u{bits}"), "u64" if bits == 64 else "u32")
        return self.cast(self.function_node(name, (value,), value.ty), "u8")

    def ufunc(self, name, node):
        """A function of NumPy; None for one that kernels do not have."""
        if name in ("conjugate", "conj"):
            return self.conjugate(self.take_argument(node, self.numeric))
        if name in BUILTINS:
            return self.math_function(name, node)
        if name in ("floor", "ceil", "trunc"):
            return self.rounding(name, node, False)
        if name in ("minimum", "maximum", "fmin", "fmax"):
            values = self.take_arguments(node, 2)
            if name[0] == "f":
                return self.smaller_or_larger(name[1:], *values, node)
            return self.propagate_nan(name[:3], *values, node)
        if name == "absolute":
            return self.absolute(node)
        if name in _OPERATORS:
            return self.arithmetic(_OPERATORS[name], *self.take_arguments(node, 2, self.numeric), node)
        if name in _COMPARISONS:
            return self.comparison(_COMPARISONS[name], *self.take_arguments(node, 2, self.numeric), node)
        if name in _DEGREES:
            return self.convert_angle(name, node)
        if name == "fmod":
            return self.float_remainder(node)
        if name in ("isnan", "isinf", "isfinite"):
            return self.classify(node, name)
        if name in ("negative", "positive", "invert", "bitwise_not", "bitwise_invert"):
            operator = {"negative": ast.USub, "positive": ast.UAdd}.get(name, ast.Invert)
            self.take_arguments(node, 1, self.numeric)
            return self.unary(ast.copy_location(ast.UnaryOp(operator(), node.args[0]), node))
        if name == "reciprocal":
            value = self.take_argument(node)
            value = value if is_float(value.ty) else self.cast(value, "f64")
            return self.arithmetic("div", number(1, "wi", self.scope.at), value, node)
        if name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
            values = [self.cast(value, "bool") for value in self.take_arguments(node, 1 if name == "logical_not" else 2)]
            if name == "logical_not":
                return Val(nodes.negation(values[0].text, self.scope.at), "bool", None, None, values[0].is_pure)
            return self.operation(name.removeprefix("logical_"), *values, "bool")
        if name == "square":
            value = self.take_argument(node, self.numeric)
            value = value if value.__class__ is Cpx else self.as_reusable(value)
            return self.arithmetic("mul", value, value, node)
        if name == "sign":
            return self.sign(node)
        return None

    def convert_angle(self, name, node):
        """Degrees as radians, or radians as degrees, in the type of a float."""
        value = self.take_argument(node)
        value = value if is_float(value.ty) else self.cast(value, "f64")
        return self.arithmetic("mul", value, number(_DEGREES[name], "wf", self.scope.at), node)

    def logarithm(self, node):
        """`math.log` of one number, or to a base."""
        if len(node.args) != 2:
            return self.math_function("log", node)
        self.take_arguments(node, 2)
        left, right = (self.expr(ast.copy_location(ast.Call(node.func, [argument], []), node)) for argument in node.args)
        return self.arithmetic("div", left, right, node)

    def divide(self, node):
        """`divmod`: quotient and remainder."""
        left, right = (self.as_reusable(value) for value in self.take_arguments(node, 2))
        return Tup([self.arithmetic(operator, left, right, node) for operator in ("floordiv", "mod")])

    def sign(self, node):
        """`sign` of NumPy, in the type of the argument: -1, 0 or 1, and NaN of a NaN."""
        value = self.take_argument(node)
        if value.ty == "bool":
            raise self.error(node, "`sign` of a bool: NumPy has none")
        if value.const is not None:
            value = self.cast(value, "i64" if is_int(value.ty) else "f64")
        ty, write = value.ty, nodes.Formula(IR_TYPE[value.ty], self.scope.at)
        value = self.as_reusable(value).text
        zero, one = (write.literal(bits_of(bit, write.ty)) for bit in (0, 1))
        result = zero
        if is_float(ty):
            # A NaN is neither above nor below zero.
            result = write.select(write.comparison("eq", value, value), zero, value)
        if is_float(ty) or is_signed(ty):
            result = write.select(write.comparison("lt", value, zero), write.unary("neg", one), result)
        return Val(write.select(write.comparison("lt", zero, value), one, result), ty)

    def choose(self, node):
        """`where` of NumPy: the second number where the first is true, else the third."""
        if len(node.args) != 3 or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.error(node, f"`{ast.unparse(node.func)}` has 3 arguments, {len(node.args)} are given")
        return self.expr(ast.copy_location(ast.IfExp(*node.args), node))

    def clip(self, node):
        """`clip` of NumPy: at least the second number and at most the third. A NaN stays one."""
        value, low, high = self.take_arguments(node, 3)
        return self.propagate_nan("min", self.propagate_nan("max", value, low, node), high, node)

    def rounding(self, name, node, to_integer):
        """`floor`, `ceil` or `trunc`. With `to_integer` the result is an integer, as by `math`."""
        value = self.take_argument(node)
        if not is_float(value.ty):
            return value
        result = self.function_node(name, (value,), value.ty)
        return self.cast(result, "i64") if to_integer else result

    def round_to_int(self, node):
        """`round`: to the nearest integer, ties to even."""
        value = self.take_argument(node)
        if not is_float(value.ty):
            return value
        return self.cast(self.function_node("round_ties_even", (value,), value.ty), "i64")

    def absolute(self, node):
        """`abs`, in the type of the argument."""
        value = self.take_argument(node, self.numeric)
        if value.__class__ is Cpx:
            return self.complex_size(value)
        if is_float(value.ty):
            return self.function_node("abs", (value,), value.ty)
        if not is_signed(value.ty) or value.ty == "bool":
            return value
        if value.const is not None:
            return self.integer(abs(value.const), node) if value.ty == "wi" else number(abs(value.const), value.ty, self.scope.at)
        value, stored_type = self.as_reusable(value), IR_TYPE[value.ty]
        negative = nodes.unary("neg", stored_type, value.text, self.scope.at)
        return Val(nodes.binary("max", stored_type, value.text, negative, self.scope.at), value.ty)

    def smallest_or_largest(self, node, operator):
        """`min` or `max` of two or more numbers."""
        if len(node.args) < 2 or node.keywords:
            raise self.error(node, f"`{operator}` of a kernel has two or more numbers")
        values = self.operands(node.args)
        result = values[0]
        for value in values[1:]:
            result = self.smaller_or_larger(operator, result, value, node)
        return result

    def smaller_or_larger(self, operator, left, right, node):
        """`min` or `max` of two numbers."""
        if left.ty == "bool":
            left = self.cast(left, self.counted_as(right))
        if right.ty == "bool":
            right = self.cast(right, self.counted_as(left))
        ty = self.common_type(left, right, node, "and")
        if left.const is not None and right.const is not None and ty[0] == "w":
            return left if (left.const <= right.const) == (operator == "min") else right
        high = None
        if operator == "max" and left.high is not None and right.high is not None:
            high = max(left.high, right.high)
        elif operator == "min" and left.high is not None and right.high is not None:
            high = min(left.high, right.high)
        return self.operation(operator, left, right, ty, high)

    def propagate_nan(self, operator, left, right, node):
        """`minimum` or `maximum` of NumPy, which is NaN if a number is."""
        at = self.scope.at
        left, right = self.as_reusable(left), self.as_reusable(right)
        result = self.smaller_or_larger(operator, left, right, node)
        if not is_float(result.ty) or result.const is not None:
            return result
        text, stored_type = result.text, IR_TYPE[result.ty]
        for value in (left, right):
            if is_float(value.ty) and (value.const is None or value.const != value.const):
                is_number = nodes.comparison("eq", value.text, value.text, at)
                text = nodes.select(stored_type, is_number, text, self.to(value, result.ty), at)
        return Val(text, result.ty)

    def float_remainder(self, node):
        """`math.fmod`: the remainder with the sign of the first number."""
        left, right = [self.cast(value, "f64") if not is_float(value.ty) else value for value in self.take_arguments(node, 2)]
        return self.operation("rem", left, right, promote(left.ty, right.ty))

    def len_of(self, node):
        """`len` of an array or of a tuple."""
        if len(node.args) != 1:
            raise self.error(node, "`len` has 1 argument")
        meaning = self.expr(node.args[0])
        if meaning.__class__ is Arr and meaning.extents:
            return meaning.extents[0]
        if meaning.__class__ is Tup:
            return number(len(meaning.items), "wi", self.scope.at)
        if meaning.__class__ is Static and (isinstance(meaning.value, (tuple, list)) or (hasattr(meaning.value, "__array_interface__") and meaning.value.shape)):
            return number(len(meaning.value), "wi", self.scope.at)
        raise self.error(node, "`len` of what is no array")

    def to_int(self, node):
        return self.cast(self.take_argument(node), "i64")

    def to_float(self, node):
        return self.cast(self.take_argument(node), "f64")

    def to_bool(self, node):
        return self.cast(self.take_argument(node), "bool")

    def classify(self, node, name):
        """`isnan`, `isinf` or `isfinite`."""
        value = self.take_argument(node)
        if not is_float(value.ty):
            return number(name == "isfinite", "bool", self.scope.at)
        value, stored_type, at = self.as_reusable(value), IR_TYPE[value.ty], self.scope.at
        if name == "isnan":
            return Val(nodes.comparison("ne", value.text, value.text, at), "bool")
        size = nodes.unary("abs", stored_type, value.text, at)
        infinite = nodes.literal(stored_type, bits_of(math.inf, stored_type), at)
        return Val(nodes.comparison("eq" if name == "isinf" else "lt", size, infinite, at), "bool")
