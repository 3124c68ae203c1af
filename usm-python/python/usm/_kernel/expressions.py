"""Expressions of kernels, by the class of their node."""

import ast

from .comparisons import Comparisons
from .complexes import name_of
from .indexing import Indexing
from .operators import Operators
from .signature import Signature
from .state import Scope
from .values import Arr, Cpx, Method, Rec, Reference, Static, Tup, Val, number


class Expressions:
    """Methods of the compiler that every expression goes through."""

    __slots__ = ()
    signature: Signature
    scope: Scope

    def expr(self, node):
        """The meaning of an expression: a value, an array, a tuple or an object."""
        at = self.scope.at
        self.scope.at = self.scope.place_of(node)
        method = self.EXPRESSIONS.get(node.__class__)
        if method is None:
            raise self.error(node, self.REFUSED.get(node.__class__, f"{type(node).__name__} is not for kernels"))
        meaning = method(self, node)
        self.scope.at = at
        return meaning

    def value(self, node):
        """The value of an expression that must be a number."""
        return self.as_value(self.expr(node), node)

    def constant(self, node):
        """A literal."""
        plain = self.plain_number(node.value, node)
        return Static(node.value) if plain is None else plain

    def name(self, node):
        """A variable, a parameter, or a name from outside of the kernel."""
        return self.lookup(node)

    def attribute(self, node):
        """`array.shape`, `math.pi` and the like."""
        meaning = self.expr(node.value)
        if meaning.__class__ is Rec:
            return self.record_field(meaning, node.attr, node)
        if meaning.__class__ is Arr and meaning.fields is not None and not meaning.extents:
            return self.read_field(meaning, node.attr, node)
        if meaning.__class__ is Arr:
            if node.attr == "shape":
                return Tup(list(meaning.extents))
            if node.attr == "size":
                return self.size_of(meaning)
            if node.attr == "ndim":
                return number(len(meaning.extents), "wi", self.scope.at)
            if meaning.fields is not None:
                text = f'`{ast.unparse(node)}` of an array of structures: write `{meaning.name}[i].{node.attr}` or `{meaning.name}["{node.attr}"]`'
                raise self.error(node, text if node.attr in meaning.fields else f"an array of structures has no `{node.attr}`: shape, size, ndim and fields")
            if node.attr == "dtype":
                return Static(name_of(meaning))
            raise self.error(node, f"`{meaning.name}.{node.attr}` is not for kernels: shape, size, ndim and dtype are")
        if meaning.__class__ in (Cpx, Val) and node.attr in ("conjugate", "conj"):
            return Static(Method(meaning, node.attr))
        if meaning.__class__ is Val and node.attr == "view":
            return Static(Method(meaning, node.attr))
        if meaning.__class__ is Cpx or (meaning.__class__ is Val and node.attr in ("real", "imag")):
            return self.complex_attribute(meaning, node.attr, node)
        if meaning.__class__ is Reference:
            return Static(Method(meaning, node.attr))
        if meaning.__class__ is Static:
            if node.attr == "dimensions" and self.is_of_range(meaning.value):
                return number(self.signature.dimensions, "wi", self.scope.at)
            if meaning.value.__class__ is str and node.attr == "type":
                # Of `array.dtype`.
                return meaning
            try:
                return Static(getattr(meaning.value, node.attr))
            except AttributeError as missing:
                remedy = str(missing).partition(f"'{node.attr}'")[2]
                raise self.error(node, f"unknown name `{ast.unparse(node)}`{remedy}") from None
        raise self.error(node, f"a number has no `{node.attr}` in a kernel")

    def tuple(self, node):
        """A tuple of expressions."""
        return Tup(self.operands(node.elts, self.expr))

    REFUSED = {
        ast.ListComp: "a comprehension is not for kernels: write a loop",
        ast.SetComp: "a comprehension is not for kernels: write a loop",
        ast.DictComp: "a comprehension is not for kernels: write a loop",
        ast.GeneratorExp: "a generator is not for kernels: write a loop",
        ast.Yield: "a generator is no kernel: write to an array",
        ast.YieldFrom: "a generator is no kernel: write to an array",
        ast.Await: "`await` is not for kernels",
        ast.Lambda: "a lambda is not for kernels: write a function with `@usm.device_func`",
        ast.List: "a list is not for kernels: use `usm.private.array`",
        ast.Dict: "a dict is not for kernels: use arrays",
        ast.Set: "a set is not for kernels: use arrays",
        ast.JoinedStr: "text is not for kernels",
        ast.NamedExpr: "`:=` is not for kernels: set the variable in a line of its own",
        ast.Starred: "`*` is not for kernels: write each argument",
        ast.Slice: "a slice is not for kernels: index elements in a loop",
    }


Expressions.EXPRESSIONS = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Tuple: Expressions.tuple,
    ast.Subscript: Indexing.subscript,
    ast.BinOp: Operators.binary,
    ast.UnaryOp: Operators.unary,
    ast.BoolOp: Comparisons.boolean,
    ast.Compare: Comparisons.compare,
    ast.IfExp: Comparisons.conditional,
    ast.Call: lambda self, node: self.call(node),
}
