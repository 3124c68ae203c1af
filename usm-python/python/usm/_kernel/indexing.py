"""Elements of arrays and tuples, and how indices are checked."""

import ast

from . import nodes
from .keys import MOST
from .state import Checks, Draft, Scope
from .types import ARITHMETIC_TYPE, NAMES, is_int
from .values import Arr, Rec, Slice, Static, Tup, Val, number


class Indexing:
    """Methods of the compiler for subscripts."""

    __slots__ = ()
    draft: Draft
    checks: Checks
    scope: Scope


    def subscript(self, node):
        """`array[i, j]`, a row or slice of an array, or an item of a tuple."""
        meaning = self.expr(node.value)
        if meaning.__class__ is Static:
            meaning = self.table_instead(meaning, node)
        if meaning.__class__ is Rec:
            name = self.field_name(node.slice)
            if name is None:
                raise self.error(node, f"`{meaning.name}` is one structure: it has the fields {', '.join(meaning.fields)}")
            return self.record_field(meaning, name, node)
        if meaning.__class__ is Arr and meaning.fields is not None:
            return self.item_of_structures(meaning, node)
        if meaning.__class__ is Arr:
            if self.is_part(meaning, node.slice):
                return self.part_of(meaning, node)
            index, _ = self.element_index(meaning, node)
            return self.load_element(meaning, index, self.scope.place_of(node))
        if meaning.__class__ is Tup or (meaning.__class__ is Static and isinstance(meaning.value, (tuple, list))):
            return self.item_of_tuple(meaning, node)
        if meaning.__class__ is Static:
            raise self.error(node, f"`{ast.unparse(node.value)}` cannot be indexed in a kernel: arrays and tuples can")
        raise self.error(node, f"`{ast.unparse(node.value)}` is a number, which has no elements")

    def load_element(self, array, index, at):
        """The value of an element at a known place of the array."""
        if array.is_complex:
            return self.load_pair(array, index, at)
        text = nodes.load(array.ty, array.number, index, at)
        value = Val(self.to_computed(text, array.ty), ARITHMETIC_TYPE.get(array.ty, array.ty), None, None, False)
        if array.ty in ARITHMETIC_TYPE:
            value.element = array.ty
        return value

    def table_instead(self, meaning, node):
        """An array of the module, or tuples of numbers at an index of the item, as a table."""
        value = meaning.value
        if isinstance(value, (tuple, list)):
            if isinstance(node.slice, ast.Constant) or not value or not is_table(value):
                return meaning
            if not isinstance(node.slice, ast.Tuple) and self.value(node.slice).const is not None:
                return meaning
        elif not hasattr(value, "__array_interface__"):
            return meaning
        return self.table_of(value, ast.unparse(node.value), node)

    def check_index(self, array, place, value, node):
        """Refuses an index that is wrong whatever the launch is."""
        if not is_int(value.ty):
            what = "a bool" if value.ty == "bool" else NAMES[value.ty]
            raise self.error(node, f"an index of type {what}: write `int(..)` or use `//`")
        if value.const is not None and value.const < 0:
            raise self.error(node, f"the negative index {value.const} does not count from the end in a kernel: write `{array.name}.shape[{place}] - {-value.const}`")
        extent = array.extents[place].const
        if value.const is not None and extent is not None and value.const >= extent:
            raise self.error(node, f"index {value.const} of `{array.name}`, whose dimension {place} has {extent} elements")

    def element_index(self, array, node):
        """The text of an element's place, in elements, and whether nothing can change it."""
        inner = node.slice
        indices = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        for index in indices:
            if isinstance(index, ast.Slice):
                raise self.error(index, "a slice is set element by element: index it in a loop")
        if len(indices) == 1 and not isinstance(inner, ast.Tuple):
            meaning = self.expr(inner)
            values = list(meaning.items) if meaning.__class__ is Tup else [self.as_value(meaning, inner)]
            if meaning.__class__ is Tup:
                indices = [inner] * len(values)
        else:
            values = self.operands(indices)
        return self.element_place(array, values, indices, node), all(value.is_pure for value in values)

    def element_place(self, array, values, indices, node):
        """The text of the place of an element, or of its real part.

        Its indices are `values`, and `indices` are their expressions.
        """
        if len(values) != len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(values)} indices are given")
        for place, (value, index) in enumerate(zip(values, indices)):
            self.check_index(array, place, value, index)
        if array.whole is not None:
            rest = iter(zip(values, indices))
            values, indices = [], []
            for value in array.indices:
                index = node
                if value.__class__ is Slice:
                    inner, index = next(rest)
                    value = self.in_slice(value, inner, index)
                indices.append(index)
                values.append(value)
            return self.element_place(array.whole, values, indices, node)
        if len(values) > 1 or array.strides or array.is_complex:
            values = [self.in_dimension(array, place, value, index) for place, (value, index) in enumerate(zip(values, indices))]
        at = self.scope.at
        if array.strides:
            flat = array.offset
            for value, stride in zip(values, array.strides):
                step = nodes.binary("mul", "u64", self.to(value, "u64"), stride, at)
                flat = step if flat is None else nodes.binary("add", "u64", flat, step, at)
        elif not values:
            flat = nodes.literal("u64", 0, at)
        else:
            flat = self.to(values[0], "u64")
            for value, extent in zip(values[1:], array.extents[1:]):
                flat = nodes.binary("mul", "u64", flat, self.to(extent, "u64"), at)
                flat = nodes.binary("add", "u64", flat, self.to(value, "u64"), at)
        if not array.is_complex:
            return flat
        if not array.strides:
            flat = nodes.binary("mul", "u64", flat, nodes.literal("u64", 2, at), at)
        return self.set_temporary(Val(flat, "u64")).text

    def in_dimension(self, array, place, value, node):
        """An index, loaded from the extent of its dimension, by which it is proven or checked."""
        extent = array.extents[place]
        if value.const is not None and extent.const is not None:
            return value
        key, name = (array.number, place), array.name
        if array.home is not None and place < array.home[2]:
            # An index of structures is that of all their fields.
            key, name = (array.home[0], place), array.home[1]
        number_of_extent = self.checks.extents.get(key)
        if number_of_extent is None:
            space = nodes.extent_space(self.to(extent, "u64"))
            number_of_extent = self.checks.extents[key] = self.draft.new_array(name, "u64", space, self.scope.at)
            self.checks.origins.append((number_of_extent, self.draft.arrays[array.number][4], place))
        return Val(nodes.load("u64", number_of_extent, self.to(value, "u64"), self.scope.place_of(node)), "u64", None, None, value.is_pure)

    def size_of(self, array):
        """The number of elements of an array."""
        product = number(1, "wi", self.scope.at)
        for extent in array.extents:
            product = extent if product.const == 1 else self.arithmetic("mul", product, extent, None)
        return Val(product.text, "i64", product.const, product.high if product.const is not None else MOST)


def is_table(value):
    """Whether all items are numbers, or tuples of one length that are tables."""
    if all(isinstance(item, (int, float, complex)) for item in value):
        return True
    return all(isinstance(item, (tuple, list)) and item and len(item) == len(value[0]) and is_table(item) for item in value)
