"""Elements of arrays and tuples, and how indices are checked."""

import ast

from .keys import MOST
from .types import NAMES, is_int
from .values import Arr, Static, Tup, Val, number


class Indexing:
    """Methods of the compiler for subscripts."""

    def subscript(self, node):
        """`array[i, j]`, or an item of a tuple."""
        found = self.expr(node.value)
        if found.__class__ is Arr:
            index, pure = self.element_index(found, node)
            return Val(f"(load {found.ty} #{found.number} {index} {self.place_of(node)})", found.ty, None, None, False)
        if found.__class__ is Tup or (found.__class__ is Static and isinstance(found.value, (tuple, list))):
            items = found.items if found.__class__ is Tup else found.value
            place = self.value(node.slice)
            if type(place.const) is not int:
                raise self.error(node, "a tuple is indexed by a literal")
            if not -len(items) <= place.const < len(items):
                raise self.error(node, f"index {place.const} of a tuple of {len(items)}")
            item = items[place.const]
            return item if found.__class__ is Tup else Static(item)
        if found.__class__ is Static:
            if hasattr(found.value, "__array_interface__"):
                raise self.error(node, f"`{ast.unparse(node.value)}` is an array outside of the kernel: pass it, or make it a table by `usm.constant.array_like`")
            raise self.error(node, f"`{ast.unparse(node.value)}` cannot be indexed in a kernel: arrays and tuples can")
        raise self.error(node, f"`{ast.unparse(node.value)}` is a number, which has no elements")

    def element_index(self, array, node):
        """The text of an element's place, in elements, and whether nothing can change it."""
        inner = node.slice
        nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        for one in nodes:
            if isinstance(one, ast.Slice):
                raise self.error(one, "a slice is not for kernels: index elements in a loop")
        if len(nodes) == 1 and not isinstance(inner, ast.Tuple):
            found = self.expr(inner)
            values = list(found.items) if found.__class__ is Tup else [self.as_value(found, inner)]
            if found.__class__ is Tup:
                nodes = [inner] * len(values)
        else:
            values = self.operands(nodes)
        return self.element_place(array, values, nodes, node), all(value.pure for value in values)

    def element_place(self, array, values, nodes, node):
        """The text of the place of an element, whose indices are `values`."""
        if len(values) != len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(values)} indices are given")
        for place, (value, one) in enumerate(zip(values, nodes)):
            if not is_int(value.ty):
                what = "a bool" if value.ty == "bool" else NAMES[value.ty]
                raise self.error(one, f"an index of type {what}: write `int(..)` or use `//`")
            if value.const is not None and value.const < 0:
                raise self.error(one, f"the negative index {value.const} does not count from the end in a kernel: write `{array.name}.shape[{place}] - {-value.const}`")
            extent = array.extents[place].const
            if value.const is not None and extent is not None and value.const >= extent:
                raise self.error(one, f"index {value.const} of `{array.name}`, whose dimension {place} has {extent} elements")
        if len(values) > 1 or array.strides:
            values = [self.in_dimension(array, place, value, one) for place, (value, one) in enumerate(zip(values, nodes))]
        at = self.at
        if array.strides:
            flat = array.offset
            for value, stride in zip(values, array.strides):
                step = f"(mul u64 {self.to(value, 'u64')} (cast u64 {stride} {at}) {at})"
                flat = f"(add u64 {flat} {step} {at})"
        elif not values:
            flat = f"(lit u64 0x0 {at})"
        else:
            flat = self.to(values[0], "u64")
            for value, extent in zip(values[1:], array.extents[1:]):
                flat = f"(add u64 (mul u64 {flat} {self.to(extent, 'u64')} {at}) {self.to(value, 'u64')} {at})"
        return flat

    def in_dimension(self, array, place, value, node):
        """An index, loaded from the extent of its dimension, by which it is proven or checked."""
        extent = array.extents[place]
        if value.const is not None and extent.const is not None:
            return value
        number = self.extents.get((array.number, place))
        if number is None:
            number = self.new_array(array.name, "u64", f"(extent {self.to(extent, 'u64')})")
            self.extents[array.number, place] = number
        return Val(f"(load u64 #{number} {self.to(value, 'u64')} {self.place_of(node)})", "u64", None, None, value.pure)

    def size_of(self, array):
        """The number of elements of an array."""
        product = number(1, "wi", self.at)
        for extent in array.extents:
            product = extent if product.const == 1 else self.arithmetic("mul", product, extent, None)
        return Val(product.text, "i64", product.const, product.high if product.const is not None else MOST)
