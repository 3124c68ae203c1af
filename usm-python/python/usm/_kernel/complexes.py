"""Complex numbers: pairs of real values, and what operators and functions make of them."""

import ast

from . import nodes
from .state import Facts, Scope
from .types import COMPLEX, NAMES, STORED, is_float, of_dtype, promote
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

    def as_number(self, found, node):
        """The real or complex number that an expression is."""
        found = self.complex_instead(found)
        return found if found.__class__ is Cpx else self.as_value(found, node)

    def complex_instead(self, found):
        """A complex number from outside of the kernel, or a literal, as a pair; else unchanged."""
        if found.__class__ is not Static:
            return found
        value = found.value
        if type(value) is complex:
            ty = "wf"
        elif isinstance(value, type) or not hasattr(value, "dtype") or getattr(value, "shape", None) != ():
            return found
        else:
            ty = COMPLEX.get(of_dtype(value.dtype))
            if ty is None:
                return found
            value = complex(value)
        return Cpx(number(value.real, ty, self.scope.at), number(value.imag, ty, self.scope.at))

    def pair(self, re, im):
        """A complex number whose parts no later statement changes."""
        return Cpx(*(part if part.pure else self.set_temporary(part) for part in (re, im)))

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
            self.facts.changed = self.facts.changed or key in self.facts.types
        re, im = self.copied(self.as_complex(value)).parts
        self.assign(f"{name}.0", re, node)
        self.assign(f"{name}.1", im, node)
        self.scope.frame.names[name] = pack

    def read_pack(self, pack, node):
        """The value of a variable that is a tuple or a complex number."""
        items = [self.read_variable(f"{pack.key}.{place}", node) for place in range(pack.count)]
        return Cpx(*items) if pack.is_complex else Tup(items)

    # Operators.

    def complex_arithmetic(self, operator, one, two, node):
        """An operator on two numbers, of which one is complex or both are."""
        if operator == "pow" and two.__class__ is Val and type(two.const) is int and two.const == 2:
            operator, two = "mul", one
        if operator not in ("add", "sub", "mul", "div"):
            raise self.error(node, f"`{ast.unparse(node)}`: {_HAVE}")
        ty = self.part_type(one, two)
        one, two = (self.reusable_parts(value, ty) for value in (one, two))
        do = lambda operator, a, b: self.arithmetic(operator, a, b, node)
        if one.__class__ is Val:
            if operator == "mul":
                return self.pair(do("mul", one, two.re), do("mul", one, two.im))
            one = Cpx(one, number(0, ty, self.scope.at))
        if two.__class__ is Val:
            if operator in ("add", "sub"):
                return self.pair(do(operator, one.re, two), one.im)
            if operator == "div":
                two = self.reusable(do("div", number(1.0, ty, self.scope.at), two))
            return self.pair(do("mul", one.re, two), do("mul", one.im, two))
        if operator in ("add", "sub"):
            return self.pair(do(operator, one.re, two.re), do(operator, one.im, two.im))
        if operator == "div":
            return self.quotient(one, two, ty, do)
        re = do("sub", do("mul", one.re, two.re), do("mul", one.im, two.im))
        return self.pair(re, do("add", do("mul", one.re, two.im), do("mul", one.im, two.re)))

    def quotient(self, one, two, ty, do):
        """A quotient by NumPy's steps.

        The divisor's larger part is taken out, so that no square overflows.
        """
        at, zero = self.scope.at, number(0, ty, self.scope.at)
        size = [self.function_node("abs", (part,), ty) for part in two.parts]
        wide = self.reusable(self.compare_as("ge", *size, ty))
        stored = STORED[ty]
        choose = lambda a, b: self.set_temporary(Val(nodes.select(stored, wide.text, self.to(a, ty), self.to(b, ty), at), ty))
        large, small = choose(two.re, two.im), choose(two.im, two.re)
        first, second = choose(one.re, one.im), choose(one.im, one.re)
        is_zero = self.compare_as("eq", large, zero, ty)
        ratio = do("div", small, large)
        ratio = self.set_temporary(Val(nodes.select(stored, is_zero.text, self.to(zero, ty), self.to(ratio, ty), at), ty))
        scale = self.set_temporary(do("div", number(1.0, ty, at), do("add", large, do("mul", small, ratio))))
        re = do("mul", do("add", first, do("mul", second, ratio)), scale)
        im = self.set_temporary(do("mul", do("sub", second, do("mul", first, ratio)), scale))
        return self.pair(re, choose(im, self.negative(im)))

    def part_type(self, one, two):
        """The type of the parts of a result: that of NumPy 2."""
        types = [value.re.ty if value.__class__ is Cpx else value.ty for value in (one, two)]
        return promote(*types)

    def reusable_parts(self, value, ty):
        """A number, converted to parts of this type, whose texts may be used twice."""
        if value.__class__ is Cpx:
            return Cpx(*(self.reusable(self.cast(part, ty)) for part in value.parts))
        return self.reusable(self.cast(value, ty))

    def complex_unary(self, operator, value, node):
        """`-z` or `+z`."""
        if isinstance(operator, ast.Invert):
            raise self.error(node, f"`{ast.unparse(node)}`: {_HAVE}")
        return value if isinstance(operator, ast.UAdd) else self.pair(*map(self.negative, value.parts))

    def complex_comparison(self, name, one, two, node):
        """`==` or `!=` of numbers, of which one is complex."""
        if name not in ("eq", "ne"):
            raise self.error(node, "complex numbers have no order: compare `.real`, `.imag` or `abs(..)`")
        ty = self.part_type(one, two)
        one, two = self.as_complex(one, ty), self.as_complex(two, ty)
        parts = [self.compare_as(name, a, b, ty).text for a, b in zip(one.parts, two.parts)]
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
        return Cpx(*(Val(nodes.variable(STORED[ty], place, at), ty) for place in parts))

    # Functions.

    def complex_attribute(self, value, name, node):
        """`.real`, `.imag` or `.conjugate` of a complex or a real number."""
        if name in ("real", "imag"):
            if value.__class__ is Cpx:
                return value.re if name == "real" else value.im
            return value if name == "real" else number(0, value.ty, self.scope.at)
        raise self.error(node, f"a complex number has no `{name}` in a kernel: {_HAVE}")

    def conjugated(self, value):
        """The conjugate of a number."""
        return self.pair(value.re, self.negative(value.im)) if value.__class__ is Cpx else value

    def complex_exponential(self, value):
        """`exp` of a complex number."""
        re, im = self.reusable_parts(value, value.re.ty).parts
        size = self.reusable(self.function_node("exp", (re,), re.ty))
        return self.pair(*(self.arithmetic("mul", size, self.function_node(name, (im,), im.ty), None) for name in ("cos", "sin")))

    def complex_size(self, value):
        """`abs` of a complex number."""
        return self.function_node("hypot", value.parts, value.re.ty)

    def to_complex(self, node, ty="c128"):
        """`complex(re, im)`, `complex(z)` and casts to a complex type."""
        values = self.given_arguments(node, 2 if len(node.args) == 2 else 1, self.numeric)
        if len(values) == 2:
            values = [self.pair(*(self.cast(self.as_value(value, node), COMPLEX[ty]) for value in values))]
        return self.as_complex(values[0], COMPLEX[ty])


def name_of(array):
    """The name of the type of an array's elements."""
    return NAMES[{part: ty for ty, part in COMPLEX.items()}[array.ty] if array.is_complex else array.ty]
