"""Complex numbers: pairs of real values, and what operators and functions make of them."""

import ast

from . import nodes
from .state import Facts, Scope
from .types import COMPLEX, NAMES, IR_TYPE, is_float, of_dtype, promote
from .values import Cpx, Pack, Static, Tup, Val, number

_HAVE = "complex numbers have `+`, `-`, `*`, `/`, `** 2`, `==`, `!=`, `abs`, `.real`, `.imag` and `.conjugate()`"


class Complexes:
    """Methods of the compiler for complex numbers."""

    __slots__ = ()
    facts: Facts
    scope: Scope

    def numeric(self, node):
        """The value of an expression that is a real or a complex number."""
        return self.as_number(self.expr(node), node)

    def as_number(self, meaning, node):
        """The real or complex number that an expression is."""
        meaning = self.complex_instead(meaning)
        return meaning if meaning.__class__ is Cpx else self.as_value(meaning, node)

    def complex_instead(self, meaning):
        """A complex number from outside of the kernel, or a literal, as a pair; else unchanged."""
        if meaning.__class__ is not Static:
            return meaning
        value = meaning.value
        if type(value) is complex:
            ty = "wf"
        elif isinstance(value, type) or not hasattr(value, "dtype") or getattr(value, "shape", None) != ():
            return meaning
        else:
            ty = COMPLEX.get(of_dtype(value.dtype))
            if ty is None:
                return meaning
            value = complex(value)
        return Cpx(number(value.real, ty, self.scope.at), number(value.imag, ty, self.scope.at))

    def pair(self, re, im):
        """A complex number whose parts no later statement changes."""
        return Cpx(*(part if part.is_pure else self.set_temporary(part) for part in (re, im)))

    def as_complex(self, value, ty=None):
        """A number as a complex one, with parts of type `ty`, or of its own type as a float."""
        if value.__class__ is Cpx:
            re, im = value.re, value.im
        else:
            re, im = value, number(0, "wi", self.scope.at)
        ty = ty or (re.ty if is_float(re.ty) else promote(re.ty, "wf"))
        return self.pair(self.cast(re, ty), self.cast(im, ty))

    def load_pair(self, array, index, at):
        """The complex number at a place of an array."""
        places = (index, nodes.binary("add", "u64", index, nodes.literal("u64", 1, at), at))
        return Cpx(*(self.set_temporary(Val(nodes.load(array.ty, array.number, place, at), array.ty)) for place in places))

    def store_pair(self, array, index, value):
        """Stores a number in an element of an array of complex numbers."""
        value, at = self.as_complex(value, array.ty), self.scope.at
        for place, part in ((index, value.re), (nodes.binary("add", "u64", index, nodes.literal("u64", 1, at), at), value.im)):
            self.emit(nodes.store(array.number, place, self.to(part, array.ty), at))

    # Variables.

    def bind_number(self, name, value, node):
        """Sets a variable to a number. All its values are complex if one is."""
        key = f"{self.scope.frame.key}.{name}"
        pack = self.facts.packs.get(key)
        if value.__class__ is not Cpx and (pack is None or not pack.is_complex):
            self.assign(name, value, node)
            return
        if pack is not None and not pack.is_complex:
            raise self.error(node, f"`{name}` is a tuple elsewhere: take another name for a complex number")
        if pack is None:
            pack = self.facts.packs[key] = Pack(key, 2, True)
            # Real values of other places become complex.
            self.facts.has_changed = self.facts.has_changed or key in self.facts.types
        re, im = self.copy_numbers(self.as_complex(value)).parts
        self.assign(f"{name}.0", re, node)
        self.assign(f"{name}.1", im, node)
        self.scope.frame.names[name] = pack

    def read_pack(self, pack, node):
        """The value of a variable that is a tuple or a complex number."""
        items = [self.read_variable(f"{pack.key}.{place}", node) for place in range(pack.count)]
        return Cpx(*items) if pack.is_complex else Tup(items)

    # Operators.

    def complex_arithmetic(self, operator, left, right, node):
        """An operator on two numbers, of which one is complex or both are."""
        if operator == "pow" and right.__class__ is Val and type(right.const) is int and right.const == 2:
            operator, right = "mul", left
        if operator not in ("add", "sub", "mul", "div"):
            raise self.error(node, f"`{ast.unparse(node)}`: {_HAVE}")
        ty = self.part_type(left, right)
        left, right = (self.as_reusable_parts(value, ty) for value in (left, right))
        do = lambda operator, a, b: self.arithmetic(operator, a, b, node)
        if left.__class__ is Val:
            if operator == "mul":
                return self.pair(do("mul", left, right.re), do("mul", left, right.im))
            left = Cpx(left, number(0, ty, self.scope.at))
        if right.__class__ is Val:
            if operator in ("add", "sub"):
                return self.pair(do(operator, left.re, right), left.im)
            if operator == "div":
                right = self.as_reusable(do("div", number(1.0, ty, self.scope.at), right))
            return self.pair(do("mul", left.re, right), do("mul", left.im, right))
        if operator in ("add", "sub"):
            return self.pair(do(operator, left.re, right.re), do(operator, left.im, right.im))
        if operator == "div":
            return self.quotient(left, right, ty, do)
        re = do("sub", do("mul", left.re, right.re), do("mul", left.im, right.im))
        return self.pair(re, do("add", do("mul", left.re, right.im), do("mul", left.im, right.re)))

    def quotient(self, left, right, ty, do):
        """A quotient by NumPy's steps.

        The divisor's larger part is taken out, so that no square overflows.
        """
        at, zero = self.scope.at, number(0, ty, self.scope.at)
        size = [self.function_node("abs", (part,), ty) for part in right.parts]
        wide = self.as_reusable(self.compare_as("ge", *size, ty))
        stored_type = IR_TYPE[ty]
        choose = lambda a, b: self.set_temporary(Val(nodes.select(stored_type, wide.text, self.to(a, ty), self.to(b, ty), at), ty))
        large, small = choose(right.re, right.im), choose(right.im, right.re)
        first, second = choose(left.re, left.im), choose(left.im, left.re)
        is_zero = self.compare_as("eq", large, zero, ty)
        ratio = do("div", small, large)
        ratio = self.set_temporary(Val(nodes.select(stored_type, is_zero.text, self.to(zero, ty), self.to(ratio, ty), at), ty))
        scale = self.set_temporary(do("div", number(1.0, ty, at), do("add", large, do("mul", small, ratio))))
        re = do("mul", do("add", first, do("mul", second, ratio)), scale)
        im = self.set_temporary(do("mul", do("sub", second, do("mul", first, ratio)), scale))
        return self.pair(re, choose(im, self.negative(im)))

    def part_type(self, left, right):
        """The type of the parts of a result: that of NumPy 2."""
        types = [value.re.ty if value.__class__ is Cpx else value.ty for value in (left, right)]
        return promote(*types)

    def as_reusable_parts(self, value, ty):
        """A number, converted to parts of this type, whose texts may be used twice."""
        if value.__class__ is Cpx:
            return Cpx(*(self.as_reusable(self.cast(part, ty)) for part in value.parts))
        return self.as_reusable(self.cast(value, ty))

    def complex_unary(self, operator, value, node):
        """`-z` or `+z`."""
        if isinstance(operator, ast.Invert):
            raise self.error(node, f"`{ast.unparse(node)}`: {_HAVE}")
        return value if isinstance(operator, ast.UAdd) else self.pair(*map(self.negative, value.parts))

    def complex_comparison(self, name, left, right, node):
        """`==` or `!=` of numbers, of which one is complex."""
        if name not in ("eq", "ne"):
            raise self.error(node, "complex numbers have no order: compare `.real`, `.imag` or `abs(..)`")
        ty = self.part_type(left, right)
        left, right = self.as_complex(left, ty), self.as_complex(right, ty)
        parts = [self.compare_as(name, a, b, ty).text for a, b in zip(left.parts, right.parts)]
        return Val(nodes.binary("and" if name == "eq" else "or", "bool", *parts, self.scope.at), "bool")

    def complex_conditional(self, condition, branches):
        """`z if c else w`: the values of both, and the statements that each needs first."""
        ty = self.part_type(*(value for value, _ in branches))
        parts, at = [self.temporary(ty) for _ in range(2)], self.scope.at
        texts = []
        for value, first in branches:
            re, im = value.parts if value.__class__ is Cpx else (value, number(0, "wi", at))
            sets = [nodes.set_variable(place, self.to(part, ty), at) for place, part in zip(parts, (re, im))]
            texts.append(nodes.block(first, sets))
        self.emit(nodes.branch(condition.text, *texts, at))
        return Cpx(*(Val(nodes.variable(IR_TYPE[ty], place, at), ty) for place in parts))

    # Functions.

    def complex_attribute(self, value, name, node):
        """`.real`, `.imag` or `.conjugate` of a complex or a real number."""
        if name in ("real", "imag"):
            if value.__class__ is Cpx:
                return value.re if name == "real" else value.im
            return value if name == "real" else number(0, value.ty, self.scope.at)
        raise self.error(node, f"a complex number has no `{name}` in a kernel: {_HAVE}")

    def conjugate(self, value):
        """The conjugate of a number."""
        return self.pair(value.re, self.negative(value.im)) if value.__class__ is Cpx else value

    def complex_exponential(self, value):
        """`exp` of a complex number."""
        re, im = self.as_reusable_parts(value, value.re.ty).parts
        size = self.as_reusable(self.function_node("exp", (re,), re.ty))
        return self.pair(*(self.arithmetic("mul", size, self.function_node(name, (im,), im.ty), None) for name in ("cos", "sin")))

    def complex_size(self, value):
        """`abs` of a complex number."""
        return self.function_node("hypot", value.parts, value.re.ty)

    def to_complex(self, node, ty="c128"):
        """`complex(re, im)`, `complex(z)` and casts to a complex type."""
        values = self.take_arguments(node, 2 if len(node.args) == 2 else 1, self.numeric)
        if len(values) == 2:
            values = [self.pair(*(self.cast(self.as_value(value, node), COMPLEX[ty]) for value in values))]
        return self.as_complex(values[0], COMPLEX[ty])


def name_of(array):
    """The name of the type of an array's elements."""
    return NAMES[{part: ty for ty, part in COMPLEX.items()}[array.ty] if array.is_complex else array.ty]
