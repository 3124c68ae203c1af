"""Elements of arrays and tuples, and how indices are checked."""

import ast

from . import nodes
from .keys import MOST
from .types import COMPUTED, NAMES, is_int
from .values import Arr, Pack, Rec, Slice, Static, Tup, Val, number


class Indexing:
    """Methods of the compiler for subscripts."""

    def subscript(self, node):
        """`array[i, j]`, a row or slice of an array, or an item of a tuple."""
        found = self.expr(node.value)
        if found.__class__ is Static:
            found = self.table_instead(found, node)
        if found.__class__ is Rec:
            name = self.field_name(node.slice)
            if name is None:
                raise self.error(node, f"`{found.name}` is one structure: it has the fields {', '.join(found.fields)}")
            return self.record_field(found, name, node)
        if found.__class__ is Arr and found.fields is not None:
            return self.item_of_structures(found, node)
        if found.__class__ is Arr:
            if self.is_part(found, node.slice):
                return self.part_of(found, node)
            index, pure = self.element_index(found, node)
            return self.loaded(found, index, self.place_of(node))
        if found.__class__ is Tup or (found.__class__ is Static and isinstance(found.value, (tuple, list))):
            return self.item_of_tuple(found, node)
        if found.__class__ is Static:
            raise self.error(node, f"`{ast.unparse(node.value)}` cannot be indexed in a kernel: arrays and tuples can")
        raise self.error(node, f"`{ast.unparse(node.value)}` is a number, which has no elements")

    def loaded(self, array, index, at):
        """The value of an element at a known place of the array."""
        if array.is_complex:
            return self.load_pair(array, index, at)
        text = nodes.load(array.ty, array.number, index, at)
        found = Val(self.computed(text, array.ty), COMPUTED.get(array.ty, array.ty), None, None, False)
        if array.ty in COMPUTED:
            found.element = array.ty
        return found

    def table_instead(self, found, node):
        """An array of the module, or tuples of numbers at an index of the item, as a table."""
        value = found.value
        if isinstance(value, (tuple, list)):
            if isinstance(node.slice, ast.Constant) or not value or not is_table(value):
                return found
            if not isinstance(node.slice, ast.Tuple) and self.value(node.slice).const is not None:
                return found
        elif not hasattr(value, "__array_interface__"):
            return found
        return self.table_of(value, ast.unparse(node.value), node)

    def is_part(self, array, inner):
        """Whether a subscript leaves dimensions, so that it is no element."""
        indices = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if any(isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value is Ellipsis) for one in indices):
            return True
        if len(indices) >= len(array.extents):
            return False
        # One name may be a tuple of all indices.
        return not (len(indices) == 1 and isinstance(inner, ast.Name) and self.frame.names.get(inner.id).__class__ in (Pack, Tup))

    def part_of(self, array, node):
        """`a[i]` or `a[i, 2:5]`: a row or slice, whose indices are those of now.

        The element, if one value turns out to be all indices.
        """
        inner = node.slice
        indices = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        first = None
        if not isinstance(inner, (ast.Tuple, ast.Slice)) and not (isinstance(inner, ast.Constant) and inner.value is Ellipsis):
            first = self.expr(inner)
            if first.__class__ is Tup:
                # All indices, as the result of a function.
                values = [self.as_value(item, inner) for item in first.items]
                if array.fields is not None:
                    return self.element_of_structures(array, values, inner)
                index = self.element_place(array, values, [inner] * len(values), node)
                return self.loaded(array, index, self.place_of(node))
        dots = [place for place, one in enumerate(indices) if isinstance(one, ast.Constant) and one.value is Ellipsis]
        full = lambda: ast.copy_location(ast.Slice(), node)
        if len(dots) > 1:
            raise self.error(node, "one `...` is enough")
        if dots:
            indices[dots[0] : dots[0] + 1] = [full() for _ in range(len(array.extents) - len(indices) + 1)]
        if len(indices) > len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(indices)} indices are given")
        indices += [full() for _ in range(len(array.extents) - len(indices))]
        if all(isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None for one in indices):
            return array
        taken, extents = [], []
        for place, one in enumerate(indices):
            if isinstance(one, ast.Slice):
                found = self.slice_of(array, place, one)
                extents.append(found.length)
            else:
                found = self.value(one) if first is None else self.as_value(first, one)
                self.check_index(array, place, found, one)
                found = self.fixed(found)
            taken.append(found)
        return self.part(array, extents, taken)

    @staticmethod
    def part(array, extents, taken):
        """A part with these extents, of which `taken` says where it lies in each dimension."""
        part = Arr(array.name, array.number, array.ty, extents, array.kind, array.argument, is_complex=array.is_complex)
        part.whole, part.taken, part.fields = array, taken, array.fields
        return part

    def slice_of(self, array, place, node):
        """`start:end` of a dimension. It is not cut to the array: an index outside is refused."""
        if node.step is not None and self.value(node.step).const != 1:
            raise self.error(node.step, "a slice with steps: multiply the index")
        extent = array.extents[place]
        ends = []
        for one, default in ((node.lower, number(0, "wi", self.at)), (node.upper, extent)):
            value = default
            if one is not None:
                value = self.value(one)
                if not is_int(value.ty):
                    raise self.error(one, f"a slice with a bound of type {NAMES[value.ty]}: write `int(..)`")
                if value.const is not None and value.const < 0:
                    value = self.arithmetic("add", extent, value, one)
            ends.append(value)
        start, end = ends
        if node.lower is None and node.upper is None:
            return Slice(start, extent, -1)
        same = None if node.lower is None or node.upper is None else difference(node.upper, node.lower)
        if start.const == 0:
            length = end
        elif same is not None and (start.const is None or end.const is None):
            length = self.value(ast.copy_location(ast.fix_missing_locations(same), node))
        else:
            length = self.arithmetic("sub", end, start, node)
        if start.const is not None and end.const is not None and not 0 <= start.const <= end.const:
            raise self.error(node, f"a slice from {start.const} to {end.const}")
        length = self.cast(length, "i64")
        if start.const is None and not nodes.is_value(start.text):
            start = self.set_temporary(start)
        if not of_launch(length.text):
            return Slice(start, self.set_temporary(length), None)
        text = self.to(length, "u64")
        if length.high is None:
            text = nodes.cast("u64", nodes.binary("max", "i64", length.text, nodes.literal("i64", 0, self.at), self.at), self.at)
        key = array.number, nodes.without_places(text)
        known = self.slices.get(key)
        if known is None:
            known = self.slices[key] = self.new_array(array.name, "u64", nodes.extent_space(text))
        return Slice(start, length, known)

    def fixed(self, index):
        """An index that no later statement changes."""
        return index if nodes.is_value(index.text) else self.set_temporary(index)

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
        for one in indices:
            if isinstance(one, ast.Slice):
                raise self.error(one, "a slice is set element by element: index it in a loop")
        if len(indices) == 1 and not isinstance(inner, ast.Tuple):
            found = self.expr(inner)
            values = list(found.items) if found.__class__ is Tup else [self.as_value(found, inner)]
            if found.__class__ is Tup:
                indices = [inner] * len(values)
        else:
            values = self.operands(indices)
        return self.element_place(array, values, indices, node), all(value.pure for value in values)

    def in_slice(self, part, value, node):
        """The index in the whole dimension of an index of a slice."""
        if part.extent == -1:
            return value
        if part.extent is not None:
            if value.const is None or part.length.const is None:
                value = Val(nodes.load("u64", part.extent, self.to(value, "u64"), self.place_of(node)), "u64", None, None, value.pure)
            start = self.cast(part.start, "u64")
            return value if part.start.const == 0 else Val(nodes.binary("add", "u64", self.to(start, "u64"), self.to(value, "u64"), self.at), "u64", None, None, value.pure)
        # No dimension has an element at the greatest index.
        value, at = self.reusable(self.cast(value, "i64")), self.at
        length = nodes.cast("u64", nodes.binary("max", "i64", part.length.text, nodes.literal("i64", 0, at), at), at)
        inside = nodes.comparison("lt", self.to(value, "u64"), length, at)
        moved = nodes.binary("add", "u64", self.to(part.start, "u64"), self.to(value, "u64"), at)
        return Val(nodes.select("u64", inside, moved, nodes.literal("u64", (1 << 64) - 1, at), at), "u64", None, None, value.pure)

    def element_place(self, array, values, indices, node):
        """The text of the place of an element, or of its real part; its indices are `values`."""
        if len(values) != len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(values)} indices are given")
        for place, (value, one) in enumerate(zip(values, indices)):
            self.check_index(array, place, value, one)
        if array.whole is not None:
            given = iter(zip(values, indices))
            values, indices = [], []
            for taken in array.taken:
                if taken.__class__ is Slice:
                    value, one = next(given)
                    taken = self.in_slice(taken, value, one)
                    indices.append(one)
                else:
                    indices.append(node)
                values.append(taken)
            return self.element_place(array.whole, values, indices, node)
        if len(values) > 1 or array.strides or array.is_complex:
            values = [self.in_dimension(array, place, value, one) for place, (value, one) in enumerate(zip(values, indices))]
        at = self.at
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
        number = self.extents.get(key)
        if number is None:
            number = self.extents[key] = self.new_array(name, "u64", nodes.extent_space(self.to(extent, "u64")))
            self.extent_origins.append((number, self.arrays[array.number][4], place))
        return Val(nodes.load("u64", number, self.to(value, "u64"), self.place_of(node)), "u64", None, None, value.pure)

    def size_of(self, array):
        """The number of elements of an array."""
        product = number(1, "wi", self.at)
        for extent in array.extents:
            product = extent if product.const == 1 else self.arithmetic("mul", product, extent, None)
        return Val(product.text, "i64", product.const, product.high if product.const is not None else MOST)


#: The heads of nodes that the length of an extent may have.
_OF_LAUNCH = {"lit", "val", "cast", "add", "sub", "mul", "div", "rem", "min", "max", "shl", "shr", "global-size", "local-size", "groups"}


def of_launch(text):
    """Whether a launch knows a value before any item runs."""
    return nodes.words_of(text) <= _OF_LAUNCH


def difference(end, start):
    """The difference of two expressions of names, without what both contain.

    None for other expressions, and for one without a part that is added.
    """
    terms = {}
    if not (_add_terms(end, (), 1, terms) and _add_terms(start, (), -1, terms)):
        return None
    found = None
    for atoms, factor in sorted(terms.items(), key=lambda term: term[1] < 0):
        if factor == 0:
            continue
        product = ast.Constant(abs(factor)) if abs(factor) != 1 or not atoms else None
        for atom in atoms:
            atom = ast.parse(atom, mode="eval").body
            product = atom if product is None else ast.BinOp(product, ast.Mult(), atom)
        if found is None and factor < 0:
            return None
        found = product if found is None else ast.BinOp(found, ast.Sub() if factor < 0 else ast.Add(), product)
    return ast.Constant(0) if found is None else found


def _add_terms(node, atoms, factor, terms):
    """Adds an expression times a product to sums of products; False if it is too long."""
    if len(terms) > 16 or len(atoms) > 4:
        return False
    if isinstance(node, ast.Constant) and type(node.value) is int:
        terms[atoms] = terms.get(atoms, 0) + factor * node.value
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        below = -factor if isinstance(node.op, ast.Sub) else factor
        return _add_terms(node.left, atoms, factor, terms) and _add_terms(node.right, atoms, below, terms)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        inner = {}
        return _add_terms(node.left, (), 1, inner) and all(
            _add_terms(node.right, tuple(sorted(atoms + more)), factor * by, terms) for more, by in inner.items()
        )
    if any(not isinstance(one, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)) for one in ast.walk(node)):
        return False
    atoms = tuple(sorted((*atoms, ast.unparse(node))))
    terms[atoms] = terms.get(atoms, 0) + factor
    return True


def is_table(value):
    """Whether all items are numbers, or tuples of one length that are tables."""
    if all(isinstance(item, (int, float, complex)) for item in value):
        return True
    return all(isinstance(item, (tuple, list)) and item and len(item) == len(value[0]) and is_table(item) for item in value)
