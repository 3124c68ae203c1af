"""Expressions that are given as text, and the functions that they may call."""

import ast
import cmath
import linecache
import math

from .. import _usm
from .._kernel import device_func
from ..errors import RequestError


@device_func
def minimum(a, b):
    """The smaller number; a NaN if one is."""
    return a if (a < b or a != a) else b


@device_func
def maximum(a, b):
    """The larger number; a NaN if one is."""
    return a if (a > b or a != a) else b


@device_func
def where(condition, a, b):
    """The first number where the condition is true, else the second."""
    return a if condition else b


@device_func
def clip(x, low, high):
    """At least `low`, and at most `high`; a NaN stays one."""
    return minimum(maximum(x, low), high)


@device_func
def square(x):
    """The product of a number with itself."""
    return x * x


@device_func
def real(z):
    """The real part of a number."""
    return z.real


@device_func
def imag(z):
    """The imaginary part of a number; 0 of a real one."""
    return z.imag


@device_func
def conj(z):
    """The number with the other sign of the imaginary part."""
    return z.conjugate()


_TYPES = {name: getattr(_usm, name) for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()}
_MATH = (
    "sqrt log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp2 expm1 log2 log10 log1p cbrt fabs "
    "atan2 hypot copysign floor ceil trunc fmod erf isnan isinf isfinite"
).split()
#: What a text may call, besides the names of types.
FUNCTIONS = {name: getattr(math, name) for name in _MATH if hasattr(math, name)}
FUNCTIONS |= {function.__name__: function for function in (abs, min, max, pow, round, int, float, bool, complex)}
FUNCTIONS |= {function.__name__: function for function in (minimum, maximum, where, clip, square, real, imag, conj)}
#: Of real and of complex numbers.
FUNCTIONS |= {"exp": cmath.exp, "conjugate": conj}
FUNCTIONS |= _TYPES
#: Numbers that a text may name.
CONSTANTS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}

#: What a text may read of a number, and what it may call of one.
_PARTS = ("real", "imag")
_METHODS = ("conj", "conjugate")

_REFUSED = (ast.Attribute, ast.Subscript, ast.Lambda, ast.NamedExpr, ast.Starred, ast.keyword, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr, ast.Await, ast.Yield)


class Text:
    """An expression of plain names, checked: its tree, and its names in the order of places."""

    def __init__(self, text, what):
        if not isinstance(text, str):
            raise TypeError(f"{what} is given as text such as 'a * x + y', not as {type(text).__name__}")
        self.text = text.strip()
        self.what = what
        try:
            self.tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or str(error)
            raise RequestError(f"{what} {text!r}: {reason}: one expression of Python is needed") from None
        self.names = []
        #: Whether it names a type of floats.
        self.casts = False
        functions = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self._check_call(node)
                functions.add(node.func)
                self.casts |= isinstance(node.func, ast.Name) and node.func.id in ("float", "float32", "float64", "complex", "complex64", "complex128")
        names = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node not in functions]
        for node in sorted(names, key=lambda node: (node.lineno, node.col_offset)):
            if node.id not in CONSTANTS and node.id not in self.names:
                if node.id in FUNCTIONS:
                    raise self.error(f"`{node.id}` is a function: call it, or take another name")
                self.names.append(node.id)
        for node in ast.walk(self.tree):
            if isinstance(node, _REFUSED) and not (isinstance(node, ast.Attribute) and (node in functions or node.attr in _PARTS)):
                raise self.error(f"`{ast.unparse(node)}` is not for expressions: names, numbers, operators and calls are")

    def error(self, message):
        return RequestError(f"{self.what} {self.text!r}: {message}")

    def _check_call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args and not node.keywords:
            return
        if not isinstance(node.func, ast.Name):
            raise self.error(f"a call of `{ast.unparse(node.func)}`: write the name of the function alone")
        if node.func.id not in FUNCTIONS:
            raise self.error(f"unknown function `{node.func.id}`: {', '.join(sorted(FUNCTIONS))} are known")

    def function(self, names):
        """A function of kernels of these parameters, whose result is the expression."""
        return device_func(define(self.what, self.text, [f"def expression({', '.join(names)}):", f"    return {ast.unparse(self.tree)}"]))


def define(what, text, lines):
    """The function that the lines define. Its source can be read, as kernels need."""
    file = f"<usm.{what} {text!r}>"
    lines = [f"{line}\n" for line in lines]
    names = {**FUNCTIONS, **CONSTANTS}
    names_before = set(names)
    source = "".join(lines)
    file += f" {len(linecache.cache)}" if linecache.cache.get(file, (0, None, lines))[2] != lines else ""
    linecache.cache[file] = (len(source), None, lines, file)
    exec(compile(source, file, "exec"), names)
    return next(value for name, value in names.items() if name not in names_before and name != "__builtins__")
