"""`usm.elementwise`: an expression, given as text, for each element of arrays."""

import ast
import sys
import threading
from collections.abc import Iterable
from typing import Any

from .._kernel import Range, kernel
from .._kernel.compiler import Compiler
from .._kernel.keys import ARRAY, SCALAR
from .._kernel.source import Source
from .._kernel.types import COMPLEX, NAMES, SCALARS, IR_TYPE, of_dtype
from .._usm import Array, DType, Event
from ..errors import RequestError
from .run import Run, as_array, check_elements, common_queue, place_of_work, result_array
from .text import Text, define

#: The most dimensions of a range of work-items.
_MOST_DIMENSIONS = 3
#: The most calls whose launches an expression keeps.
_MOST_PLANS = 64
#: Python's own numbers, which take the type of the arrays.
_PLAIN = (bool, int, float, complex)


class Elementwise:
    """An expression over the elements of arrays: ``f(*arguments, out=None)``.

    Arguments are those of :attr:`names`, in this order or by keyword: arrays, which are broadcast
    as NumPy does it, and numbers.
    """

    def __init__(self, text: str, names: str | Iterable[str] | None = None) -> None:
        self._text = Text(text, "elementwise")
        free_names = self._text.names
        if names is None:
            names = free_names
        elif isinstance(names, str):
            names = names.replace(",", " ").split()
        self.names: tuple[str, ...] = tuple(names)
        for name in free_names:
            if name not in self.names:
                raise self._text.error(f"unknown name `{name}`: {', '.join(self.names) or 'none'} are named")
        for name in self.names:
            if not name.isidentifier() or name in ("", "None", "True", "False") or self.names.count(name) != 1:
                raise self._text.error(f"{name!r} is no name of a parameter, or stands twice")
        if not self.names:
            raise self._text.error("it names no array")
        self._kernels = {}
        self._types = {}
        self._plans = {}
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The expression."""
        return self._text.text

    def __repr__(self) -> str:
        return f"usm.elementwise({self.text!r})"

    def __call__(
        self, *arguments: Any, out: Any = None, after: Event | Iterable[Event] = (), wait: bool = True, **keywords: Any
    ) -> Array:
        plan = None
        if not keywords and len(arguments) == len(self.names):
            # Usual calls repeat: the last ones over whole arrays of one shape are known.
            kinds = tuple([(argument.dtype, argument.shape, argument.is_c_contiguous) if argument.__class__ is Array else argument.__class__ for argument in arguments])
            plan = self._plans.get(kinds)
        if plan is not None:
            launch, dtype, shape = plan
            operands = [argument for argument in arguments if argument.__class__ is Array]
            result = result_array(out, shape, dtype, operands, common_queue(operands))
            if result.is_c_contiguous:
                run = Run(result.queue, after)
                work = place_of_work(out, result, operands)
                flat = [argument.reshape(argument.size) if argument.__class__ is Array else argument for argument in (work, *arguments)]
                run.submit(launch, *flat)
                return run.finish(result, wait, work)
        values = self._arguments(arguments, keywords)
        arrays = [argument.__class__ is Array for argument in values]
        operands = [argument for argument in values if argument.__class__ is Array]
        if not operands:
            raise TypeError(f"{self!r} of numbers alone: an array is needed")
        shape = broadcast_shape([array.shape for array in operands], self)
        dtype = self._result_type(values, arrays)
        result = result_array(out, shape, dtype, operands, common_queue(operands))
        run = Run(result.queue, after)
        work = place_of_work(out, result, operands)
        if result.size:
            launch = self._launch(run, work, values, arrays)
            # Another number of NumPy has the class of an array.
            is_usual = not keywords and all(argument.__class__ in (Array, *_PLAIN) for argument in arguments)
            if launch is not None and is_usual:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                self._plans[kinds] = launch, dtype, shape
        return run.finish(result, wait, work)

    def _arguments(self, arguments, keywords):
        """The arguments in the order of the names, arrays as `usm.Array`."""
        if len(arguments) > len(self.names):
            raise TypeError(f"{self!r} has {len(self.names)} arguments ({', '.join(self.names)}), {len(arguments)} are given")
        entries = dict(zip(self.names, arguments))
        for name, value in keywords.items():
            if name not in self.names:
                raise TypeError(f"{self!r} has no argument {name!r}: {', '.join(self.names)} are its arguments")
            if name in entries:
                raise TypeError(f"{self!r} has two values of the argument {name!r}")
            entries[name] = value
        absent_names = [name for name in self.names if name not in entries]
        if absent_names:
            raise TypeError(f"{self!r} lacks the argument{'s' * (len(absent_names) > 1)} {', '.join(absent_names)}")
        values = []
        for name in self.names:
            value = entries[name]
            is_number = isinstance(value, _PLAIN) or (hasattr(value, "dtype") and getattr(value, "shape", None) == () and not isinstance(value, Array))
            values.append(value if is_number else as_array(value, name, takes_complex=True))
        return values

    def _result_type(self, values, arrays):
        """The type of the expression for these arguments, by the rules of NumPy 2."""
        names = tuple(value.dtype.name if is_array else type_of_number(value) for value, is_array in zip(values, arrays))
        # Python's numbers take the arrays' type, NumPy's have their own.
        key = names, tuple(type(value) in _PLAIN for value in values)
        dtype = self._types.get(key)
        if dtype is None:
            _, source, variable = self._kernel(tuple(arrays), 1)
            words = [1, ARRAY << 24 | 1 << 16 | type_key("c128")]
            for value, is_array in zip(values, arrays):
                element = type_key(of_dtype(value.dtype) if is_array else names[len(words) - 2])
                words.append(ARRAY << 24 | 1 << 16 | element if is_array else SCALAR << 24 | element)
            compiler = Compiler(source, words)
            compiler.make()
            ty = type_of_variable(compiler, variable)
            numbers = [SCALARS[word & 0xFF] for value, word in zip(values, words[2:]) if type(value) not in _PLAIN]
            half = half_of(numbers) if ty == "f32" and not self._text.casts else None
            dtype = self._types[key] = DType(NAMES[half or ty])
        return dtype

    def _kernel(self, arrays, dimensions, broadcast=None):
        """The kernel for arguments of which these are arrays, its source, and its result's name.

        `broadcast` has the dimensions of each array that are indexed by 0; None for flat arrays.
        """
        key = arrays, dimensions, broadcast
        with self._lock:
            entry = self._kernels.get(key)
            if entry is None:
                entry = self._kernels[key] = self._make(arrays, dimensions, broadcast)
        return entry

    def _make(self, arrays, dimensions, broadcast):
        out, result, module, place = (free_name(name, self.names) for name in ("out", "result", "usm", "i"))
        ids = [place] if dimensions == 1 else [free_name(f"i{dimension}", self.names) for dimension in range(dimensions)]
        texts, number = {}, 0
        for name, is_array in zip(self.names, arrays):
            if is_array:
                zeros = broadcast[number] if broadcast else (False,) * dimensions
                texts[name] = f"{name}[{', '.join('0' if zero else index for index, zero in zip(ids, zeros))}]"
                number += 1
        expression = ast.unparse(_Elements(texts).visit(ast.parse(self.text, mode="eval")))
        lines = [f"def elementwise({', '.join((out, *self.names))}):"]
        lines += [f"    {index} = {module}.get_global_id({dimension})" for dimension, index in enumerate(ids)]
        lines += [f"    {result} = {expression}", f"    {out}[{', '.join(ids)}] = {result}"]
        function = define("elementwise", self.text, lines)
        function.__globals__[module] = sys.modules[__package__.partition(".")[0]]
        return kernel(function), Source(function), result

    def _launch(self, run, result, values, arrays):
        """Launches for any shapes. Returns the launch, if it was one over flat arrays."""
        operands = [value for value, is_array in zip(values, arrays) if is_array]
        flat = all(array.is_c_contiguous and array.shape == result.shape for array in [*operands, result])
        if flat:
            kernel, _, _ = self._kernel(tuple(arrays), 1)
            parts = [value.reshape(value.size) if is_array else value for value, is_array in zip(values, arrays)]
            launch = kernel[result.size]
            run.submit(launch, result.reshape(result.size), *parts)
            return launch
        if result.ndim > _MOST_DIMENSIONS:
            for place in range(result.shape[0]):
                inner = [row_of(value, place, result.ndim) if is_array else value for value, is_array in zip(values, arrays)]
                self._launch(run, result[place], inner, arrays)
            return None
        dimensions = max(result.ndim, 1)
        target = result if result.ndim else result.reshape(1)
        views = [widened(value, dimensions) if is_array else value for value, is_array in zip(values, arrays)]
        broadcast = tuple(
            tuple(extent == 1 != whole for extent, whole in zip(value.shape, target.shape)) for value, is_array in zip(views, arrays) if is_array
        )
        kernel, _, _ = self._kernel(tuple(arrays), dimensions, broadcast)
        run.launch(kernel, Range(*target.shape), target, *views)
        return None


class _Elements(ast.NodeTransformer):
    """Replaces names by elements of arrays."""

    def __init__(self, texts):
        self.texts = texts

    def visit_Name(self, node):
        text = self.texts.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body

    def visit_Call(self, node):
        # The function's name is no element, but a method is one of a number.
        if isinstance(node.func, ast.Attribute):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        return node


def free_name(name, names):
    """A name that none of the others is."""
    while name in names:
        name += "_"
    return name


def type_of_number(value):
    """The type of a number's elements in kernels; Python's own have 64 bits a part."""
    if isinstance(value, bool):
        return "bool"
    if type(value) is complex:
        return "c128"
    if type(value) is int or type(value) is float:
        return "i64" if type(value) is int else "f64"
    dtype = DType(getattr(value, "dtype", type(value)))
    check_elements(dtype, "a number", takes_complex=True)
    return of_dtype(dtype)


def type_key(ty):
    """The number of a type in the key of a kernel."""
    return SCALARS.index(COMPLEX.get(ty, ty)) | (ty in COMPLEX) << 10


def type_of_variable(compiler, name):
    """The type of elements that hold a variable of a kernel."""
    if f".{name}" not in compiler.facts.packs:
        return IR_TYPE[compiler.facts.types[f".{name}"]]
    part = IR_TYPE[compiler.facts.types[f".{name}.0"]]
    return next(ty for ty, part_type in COMPLEX.items() if part_type == part)


def half_of(types):
    """The type of 16 bits that NumPy gives a sum of these types; None where it has more bits.

    Kernels compute in float32 then.
    """
    halves = {ty for ty in types if ty in ("f16", "bf16")}
    if len(halves) != 1 or not {*types} - halves <= {"bool", "i8", "u8"}:
        return None
    return halves.pop()


def broadcast_shape(shapes, what):
    """The shape that arrays of these shapes have together, by NumPy's rule."""
    shape = ()
    for other in shapes:
        longer = max(len(shape), len(other))
        padded_shape, padded_other = (1,) * (longer - len(shape)) + shape, (1,) * (longer - len(other)) + other
        for left, right in zip(padded_shape, padded_other):
            if left != right and 1 not in (left, right):
                raise RequestError(f"{what!r}: arrays of the shapes {', '.join(map(str, shapes))} cannot be broadcast together")
        shape = tuple(right if left == 1 else left for left, right in zip(padded_shape, padded_other))
    return shape


def widened(array, dimensions):
    """An array with dimensions of one element in front."""
    while array.ndim < dimensions:
        array = array[None]
    return array


def row_of(array, place, dimensions):
    """The part of an array that belongs to a place of the result's first dimension."""
    if array.ndim < dimensions:
        return array
    return array[0 if array.shape[0] == 1 else place]


def elementwise(text: str, names: str | Iterable[str] | None = None) -> Elementwise:
    """A function that computes an expression for each element: ``usm.elementwise("a * x + y")``.

    The names in the text are its parameters, in the order of their first places, or in that of
    ``names``: arrays, broadcast as NumPy does it, or numbers. It returns an array of the type that
    NumPy 2 gives the expression, or writes to ``out=``; int64 with uint64 has none here: convert
    one of them. ``after=`` are events before it, and with ``wait=False`` the result is still being
    computed. The text may call functions of numbers such
    as ``sqrt``, ``where``, ``minimum`` and ``float32``. Complex numbers have ``+``, ``-``, ``*``,
    ``/``, ``** 2``, ``==``, ``!=``, ``abs``, ``conj``, ``real``, ``imag`` and ``exp``.
    """
    return Elementwise(text, names)
