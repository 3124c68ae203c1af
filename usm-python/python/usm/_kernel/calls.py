"""Calls in kernels: which function a call means."""

import ast
import builtins
import cmath
import math

from . import names
from .inline import DeviceFunction
from .mathematics import BUILTINS, Mathematics
from .state import Facts
from .types import COMPLEX, of_dtype
from .values import Cpx, Method, Static, Val
from .work_items import QUERIES


# Functions of other packages by their names, and what a kernel has instead.
REMEDIES = {
    "sum": "add in a loop over `range(..)`; over the items of a group, `usm.group.reduce_add(value)`",
    "prod": "multiply in a loop over `range(..)`",
    "mean": "add in a loop over `range(..)`, and divide",
    "dot": "add the products in a loop over `range(..)`",
}
RANDOM = "call `usm.random.uniform(seed, i)`, or pass random numbers as an array"


def remedy_of(function):
    """What a kernel has in place of a function of Python or NumPy; None if nothing is known."""
    module = getattr(function, "__module__", None) or getattr(type(getattr(function, "__self__", None)), "__module__", "")
    if module.partition(".")[0] in ("random", "numpy") and "random" in module:
        return RANDOM
    return REMEDIES.get(getattr(function, "__name__", None)) if module.partition(".")[0] in ("builtins", "numpy") else None


def name_in_numpy(function):
    """The name of a function of elements in NumPy, SciPy or dpnp; None for any other function."""
    kind = type(function)
    if kind.__name__ == "ufunc":
        return function.__name__
    modules = {(getattr(owner, "__module__", None) or "").partition(".")[0] for owner in (function, kind)}
    if modules & {"dpnp", "dpctl"}:
        # Their objects for functions of elements have the name elsewhere.
        name = getattr(function, "name_", None) or getattr(function, "__name__", None)
        return name and name.rpartition(".")[2]
    name = getattr(function, "__name__", None)
    return name if name in ("where", "clip", "real", "imag") and "numpy" in modules else None


class Calls:
    """Methods of the compiler that every call goes through."""

    __slots__ = ()
    facts: Facts

    def call(self, node, is_statement=False):
        """The result of a call. `is_statement`: the result is not used."""
        function = self.expr(node.func)
        if function.__class__ is not Static:
            raise self.error(node, f"`{ast.unparse(node.func)}` is no function")
        function = function.value
        kind = function.__class__
        if kind is names.Word:
            return self.word(function.__name__, node, is_statement)
        if kind is not DeviceFunction and hasattr(function, "py_func"):
            function = self.device_function(function)
            kind = function.__class__
        if kind is DeviceFunction:
            return self.inline_call(function, node)
        if kind is Method and function.name == "view":
            return self.view_bits(function.reference, node)
        if kind is Method and function.reference.__class__ in (Cpx, Val):
            self.take_arguments(node, 0)
            return self.conjugate(function.reference)
        if kind is Method:
            return self.atomic_ref_method(function, node, is_statement)
        if function is builtins.print:
            return self.print_line(node)
        for keyword in node.keywords:
            raise self.error(keyword.value, "keywords are not for calls in kernels: write the values in order")
        try:
            handler = _HANDLERS.get(function)
        except TypeError:
            handler = None
        if handler is not None:
            return handler(self, node)
        name = getattr(function, "__name__", None)
        if getattr(function, "__module__", None) == "math" and name in BUILTINS:
            return self.math_function(name, node, of_math=True)
        name = name_in_numpy(function)
        if name in ("where", "clip"):
            return self.choose(node) if name == "where" else self.clip(node)
        if name in ("real", "imag"):
            return self.complex_attribute(self.take_argument(node, self.numeric), name, node)
        if name is not None:
            result = self.ufunc(name, node)
            if result is not None:
                return result
        if isinstance(function, type) or not callable(function) or kind.__name__ == "DType":
            ty = of_dtype(function)
            if ty in COMPLEX:
                return self.to_complex(node, ty)
            if ty is not None:
                return self.cast(self.take_argument(node), ty)
        text = ast.unparse(node.func)
        remedy = remedy_of(function)
        if remedy is not None:
            raise self.error(node, f"a call of `{text}` is not for kernels: {remedy}")
        if hasattr(function, "__code__"):
            raise self.error(node, f"a call of `{text}`, a function of plain Python: decorate it with `@usm.device_func`")
        raise self.error(node, f"a call of `{text}` is not for kernels: `math`, `min`, `max`, `abs`, `pow`, casts and functions of usm are")

    def device_function(self, dispatcher):
        """The function of a dispatcher of Numba or of a kernel of `usm.cuda`, for a call."""
        result = self.facts.functions.get(id(dispatcher))
        if result is None:
            function = getattr(dispatcher, "device_function", None) or DeviceFunction(dispatcher.py_func)
            result = self.facts.functions[id(dispatcher)] = function
        return result

    def word(self, name, node, is_statement):
        """A call of a function of usm that only kernels have."""
        if name in QUERIES:
            return self.id_or_size(name, node)
        space, _, function = name.partition(".")
        if name in ("barrier", "mem_fence"):
            return self.barrier(name, node)
        if space in ("local", "private") and function == "array":
            return self.declare_array(space, node)
        if name == "constant.array_like":
            return self.constant_table(node)
        if space == "atomic":
            return self.atomic(function, node, is_statement)
        if space in ("group", "sub_group"):
            return self.collective(space, function, node)
        if space == "kernel_api":
            return self.dpex_word(function, node)
        raise self.error(node, f"`usm.{name}` is not for kernels")

    def attribute_by_name(self, node):
        """`getattr(object, "name")`: the attribute itself."""
        name = self.expr(node.args[1]) if len(node.args) == 2 else None
        if name.__class__ is not Static or not isinstance(name.value, str):
            raise self.error(node, "`getattr` has an object and a text that is known when the kernel is made")
        return self.expr(ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Load()), node))

    def take_argument(self, node, ask=None):
        """The value of the only argument."""
        return self.take_arguments(node, 1, ask)[0]

    def take_arguments(self, node, count, ask=None):
        """The values of exactly `count` arguments, by `ask` as `operands` has them."""
        if len(node.args) != count or node.keywords:
            total = len(node.args) + len(node.keywords)
            raise self.error(node, f"`{ast.unparse(node.func)}` has {count} argument{'s' * (count != 1)}, {total} are given")
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self.error(argument, "`*` is not for kernels: write each argument")
        return self.operands(node.args, ask)


#: Built-in functions and functions of `math` whose result is not simply a float.
_HANDLERS = {
    builtins.min: lambda self, node: self.smallest_or_largest(node, "min"),
    builtins.max: lambda self, node: self.smallest_or_largest(node, "max"),
    builtins.abs: Mathematics.absolute,
    builtins.pow: lambda self, node: self.arithmetic("pow", *self.take_arguments(node, 2, self.numeric), node),
    builtins.int: Mathematics.to_int,
    builtins.float: Mathematics.to_float,
    builtins.bool: Mathematics.to_bool,
    builtins.complex: lambda self, node: self.to_complex(node),
    cmath.exp: lambda self, node: self.ufunc("exp", node),
    builtins.round: Mathematics.round_to_int,
    builtins.len: Mathematics.len_of,
    builtins.getattr: Calls.attribute_by_name,
    math.floor: lambda self, node: self.rounding("floor", node, True),
    math.ceil: lambda self, node: self.rounding("ceil", node, True),
    math.trunc: lambda self, node: self.rounding("trunc", node, True),
    math.fmod: Mathematics.float_remainder,
    math.log: Mathematics.logarithm,
    math.degrees: lambda self, node: self.convert_angle("degrees", node),
    math.radians: lambda self, node: self.convert_angle("radians", node),
    builtins.divmod: Mathematics.divide,
    math.isnan: lambda self, node: self.classify(node, "isnan"),
    math.isinf: lambda self, node: self.classify(node, "isinf"),
    math.isfinite: lambda self, node: self.classify(node, "isfinite"),
}
