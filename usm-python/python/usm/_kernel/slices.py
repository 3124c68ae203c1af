"""Rows and slices of arrays: parts, whose indices are those of now."""

import ast

from . import nodes
from .state import Checks, Draft, Scope
from .types import NAMES, is_int
from .values import Arr, Pack, Slice, Tup, Val, number

#: The extent of a `Slice` that is a whole dimension: its index is that of the dimension.
WHOLE = -1


class Slices:
    """Methods of the compiler for parts of arrays."""

    __slots__ = ()
    draft: Draft
    checks: Checks
    scope: Scope


    def is_part(self, array, inner):
        """Whether a subscript leaves dimensions, so that it is no element."""
        indices = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if any(isinstance(index, ast.Slice) or is_ellipsis(index) for index in indices):
            return True
        if len(indices) >= len(array.extents):
            return False
        # One name may be a tuple of all indices.
        return not (len(indices) == 1 and isinstance(inner, ast.Name) and self.scope.frame.names.get(inner.id).__class__ in (Pack, Tup))

    def part_of(self, array, node):
        """`a[i]` or `a[i, 2:5]`: a row or slice of an array.

        The element, if one value turns out to be all indices.
        """
        inner = node.slice
        first = None
        if not isinstance(inner, (ast.Tuple, ast.Slice)) and not is_ellipsis(inner):
            first = self.expr(inner)
            if first.__class__ is Tup:
                # All indices, as the result of a function.
                values = [self.as_value(item, inner) for item in first.items]
                if array.fields is not None:
                    return self.element_of_structures(array, values, inner)
                index = self.element_place(array, values, [inner] * len(values), node)
                return self.load_element(array, index, self.scope.place_of(node))
        expressions = self.all_indices(array, node)
        if all(isinstance(expression, ast.Slice) and expression.lower is expression.upper is expression.step is None for expression in expressions):
            return array
        indices, extents = [], []
        for place, expression in enumerate(expressions):
            if isinstance(expression, ast.Slice):
                index = self.slice_of(array, place, expression)
                extents.append(index.length)
            else:
                index = self.value(expression) if first is None else self.as_value(first, expression)
                self.check_index(array, place, index, expression)
                index = self.fix_index(index)
            indices.append(index)
        return self.part(array, extents, indices)

    def all_indices(self, array, node):
        """The expressions of a subscript, one for each dimension of the array."""
        inner, full = node.slice, lambda: ast.copy_location(ast.Slice(), node)
        indices = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        dots = [place for place, index in enumerate(indices) if is_ellipsis(index)]
        if len(dots) > 1:
            raise self.error(node, "one `...` is enough")
        if dots:
            indices[dots[0] : dots[0] + 1] = [full() for _ in range(len(array.extents) - len(indices) + 1)]
        if len(indices) > len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(indices)} indices are given")
        return indices + [full() for _ in range(len(array.extents) - len(indices))]

    @staticmethod
    def part(array, extents, indices):
        """A part with these extents, and an index or a `Slice` in each dimension of the array."""
        part = Arr(array.name, array.number, array.ty, extents, array.kind, array.argument, is_complex=array.is_complex)
        part.whole, part.indices, part.fields = array, indices, array.fields
        return part

    def slice_of(self, array, place, node):
        """`start:end` of a dimension. It is not cut to the array: an index outside is refused."""
        if node.step is not None and self.value(node.step).const != 1:
            raise self.error(node.step, "a slice with steps: multiply the index")
        extent = array.extents[place]
        start = self.bound_of(node.lower, number(0, "wi", self.scope.at), extent)
        end = self.bound_of(node.upper, extent, extent)
        if node.lower is None and node.upper is None:
            return Slice(start, extent, WHOLE)
        length = self.length_of(node, start, end)
        if start.const is not None and end.const is not None and not 0 <= start.const <= end.const:
            raise self.error(node, f"a slice from {start.const} to {end.const}")
        length = self.cast(length, "i64")
        start = self.fix_index(start)
        if not nodes.words_of(length.text) <= _OF_LAUNCH:
            return Slice(start, self.set_temporary(length), None)
        text = self.to(length, "u64") if length.high is not None else self.at_least_zero(length)
        key = array.number, nodes.without_places(text)
        number_of_extent = self.checks.slices.get(key)
        if number_of_extent is None:
            number_of_extent = self.draft.new_array(array.name, "u64", nodes.extent_space(text), self.scope.at)
            self.checks.slices[key] = number_of_extent
        return Slice(start, length, number_of_extent)

    def bound_of(self, expression, default, extent):
        """A bound of a slice in a dimension of this extent."""
        if expression is None:
            return default
        value = self.value(expression)
        if not is_int(value.ty):
            raise self.error(expression, f"a slice with a bound of type {NAMES[value.ty]}: write `int(..)`")
        if value.const is not None and value.const < 0:
            return self.arithmetic("add", extent, value, expression)
        return value

    def length_of(self, node, start, end):
        """The length of a slice, without what both of its bounds contain."""
        same = None if node.lower is None or node.upper is None else difference(node.upper, node.lower)
        if start.const == 0:
            return end
        if same is not None and (start.const is None or end.const is None):
            return self.value(ast.copy_location(ast.fix_missing_locations(same), node))
        return self.arithmetic("sub", end, start, node)

    def at_least_zero(self, length):
        """The text of a length that may be negative, which is none then."""
        at = self.scope.at
        return nodes.cast("u64", nodes.binary("max", "i64", length.text, nodes.literal("i64", 0, at), at), at)

    def fix_index(self, index):
        """An index that no later statement changes."""
        return index if nodes.is_value(index.text) else self.set_temporary(index)

    def in_slice(self, part, value, node):
        """The index in the whole dimension of an index of a slice."""
        if part.extent == WHOLE:
            return value
        at = self.scope.at
        if part.extent is not None:
            if value.const is None or part.length.const is None:
                value = Val(nodes.load("u64", part.extent, self.to(value, "u64"), self.scope.place_of(node)), "u64", None, None, value.is_pure)
            if part.start.const == 0:
                return value
            start = self.cast(part.start, "u64")
            return Val(nodes.binary("add", "u64", self.to(start, "u64"), self.to(value, "u64"), at), "u64", None, None, value.is_pure)
        # No dimension has an element at the greatest index.
        value = self.as_reusable(self.cast(value, "i64"))
        is_inside = nodes.comparison("lt", self.to(value, "u64"), self.at_least_zero(part.length), at)
        index = nodes.binary("add", "u64", self.to(part.start, "u64"), self.to(value, "u64"), at)
        no_index = nodes.literal("u64", (1 << 64) - 1, at)
        return Val(nodes.select("u64", is_inside, index, no_index, at), "u64", None, None, value.is_pure)


#: The words of nodes that the length of an extent may have: a launch knows it before items run.
_OF_LAUNCH = {"lit", "val", "cast", "add", "sub", "mul", "div", "rem", "min", "max", "shl", "shr", "global-size", "local-size", "groups"}


def is_ellipsis(node):
    """Whether an expression is `...`."""
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def difference(end, start):
    """The difference of two expressions of names, without what both contain.

    None for other expressions, and for one without a part that is added.
    """
    terms = {}
    if not (_add_terms(end, (), 1, terms) and _add_terms(start, (), -1, terms)):
        return None
    total = None
    for atoms, factor in sorted(terms.items(), key=lambda term: term[1] < 0):
        if factor == 0:
            continue
        product = ast.Constant(abs(factor)) if abs(factor) != 1 or not atoms else None
        for atom in atoms:
            atom = ast.parse(atom, mode="eval").body
            product = atom if product is None else ast.BinOp(product, ast.Mult(), atom)
        if total is None and factor < 0:
            return None
        total = product if total is None else ast.BinOp(total, ast.Sub() if factor < 0 else ast.Add(), product)
    return ast.Constant(0) if total is None else total


def _add_terms(node, atoms, factor, terms):
    """Adds an expression times a product to sums of products; False if it is too long."""
    if len(terms) > 16 or len(atoms) > 4:
        return False
    if isinstance(node, ast.Constant) and type(node.value) is int:
        terms[atoms] = terms.get(atoms, 0) + factor * node.value
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        sign = -factor if isinstance(node.op, ast.Sub) else factor
        return _add_terms(node.left, atoms, factor, terms) and _add_terms(node.right, atoms, sign, terms)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left = {}
        return _add_terms(node.left, (), 1, left) and all(
            _add_terms(node.right, tuple(sorted(atoms + more)), factor * by, terms) for more, by in left.items()
        )
    if any(not isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)) for inner in ast.walk(node)):
        return False
    atoms = tuple(sorted((*atoms, ast.unparse(node))))
    terms[atoms] = terms.get(atoms, 0) + factor
    return True
