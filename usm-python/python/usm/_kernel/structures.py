"""Structures: elements of arrays and arguments by value, whose fields are arrays and numbers.

The nodes have no structures. A field of an array of structures is an array over the same memory.
"""

import ast

from . import nodes
from .keys import FROM_SCALAR
from .slices import WHOLE
from .state import Draft, Scope
from .types import BITS, ARITHMETIC_TYPE, SCALARS
from .values import Arr, Cpx, Rec, Slice, Static, Tup, Val, number


class Structures:
    """Methods of the compiler for structures."""

    __slots__ = ()
    draft: Draft
    scope: Scope

    def parameter_structures(self, name, argument, layout):
        """An argument that is an array of structures. Its first field is this argument."""
        extents = self.parameter_extents(name, argument, layout.head >> 16 & 0xFF)
        array = Arr(name, ("structures", argument), None, extents, "param", argument)
        array.fields, array.layout = layout.fields, layout
        if layout.head >> 8 & 1:
            # In structures.
            array.strides, array.offset = self.parameter_strides(name, argument, len(extents))
        return array

    def parameter_record(self, name, argument, fields):
        """An argument that is one structure by value."""
        values = {}
        for field, leaf in fields.items():
            path = f"{name}.{field}"
            if leaf.__class__ is dict:
                values[field] = self.parameter_record(path, argument, leaf)
                continue
            ty, parts = SCALARS[leaf.sort & 0xFF], 1 + (leaf.sort >> 10 & 1)
            if leaf.inner:
                values[field] = self.array_by_value(path, argument + leaf.place, leaf)
                continue
            names = [path] if parts == 1 else [f"{path}.real", f"{path}.imag"]
            numbers = [Val(self.parameter_value(label, ty, (FROM_SCALAR, argument + leaf.place, part)), ty) for part, label in enumerate(names)]
            values[field] = Cpx(*numbers) if parts == 2 else Val(self.to_computed(numbers[0].text, ty), ARITHMETIC_TYPE.get(ty, ty))
        return Rec(name, values)

    def array_by_value(self, name, argument, leaf):
        """A field of an argument by value that is an array."""
        is_complex = bool(leaf.sort >> 10 & 1)
        ty = SCALARS[leaf.sort & 0xFF]
        array = self.draft.array_of_argument(name, ty, argument, self.scope.at, is_complex)
        extents = [number(extent, "wi", self.scope.at) for extent in leaf.inner]
        return Arr(name, array, ty, extents, "constant", argument, is_complex=is_complex)

    def field(self, array, name, node):
        """A field of structures: an array, which has no dimensions if it is one number."""
        inner = array.fields.get(name)
        if inner is None:
            raise self.error(node, f"`{array.name}` has no field {name!r}: it has {names_of(array.fields)}")
        if array.whole is not None:
            base = self.field(array.whole, name, node)
            extra = base.extents[len(array.whole.extents) :]
            return self.part(base, array.extents + extra, array.indices + [Slice(number(0, "wi", self.scope.at), extent, WHOLE) for extent in extra])
        # By the fields themselves: a name may have a dot.
        key = array.number, id(array.fields), name
        result = self.draft.fields.get(key)
        if result is None:
            result = self.nested(array, name, inner) if inner.__class__ is dict else self.leaf(array, name, inner)
            self.draft.fields[key] = result
        return result

    def nested(self, array, name, fields):
        """Structures inside of structures."""
        result = Arr(f"{array.name}.{name}", array.number, None, array.extents, array.kind, array.argument)
        result.fields, result.layout = fields, array.layout
        result.strides, result.offset = array.strides, array.offset
        return result

    def leaf(self, array, name, leaf):
        """The array of a field that is no structure; it is a parameter if the kernel names it."""
        layout, argument, at = array.layout, array.argument + leaf.place, self.scope.at
        ty, is_complex = SCALARS[leaf.sort & 0xFF], bool(leaf.sort >> 10 & 1)
        name = f"{array.name}.{name}"
        number_of_array = self.draft.array_of_argument(name, ty, argument, at, is_complex)
        inner = [number(extent, "wi", at) for extent in leaf.inner]
        offset, strides = None, []
        step = structure = nodes.literal("u64", layout.size * 8 // BITS[ty], at)
        if array.strides is not None:
            strides = [nodes.binary("mul", "u64", stride, structure, at) for stride in array.strides]
            offset = nodes.binary("mul", "u64", array.offset, structure, at)
        else:
            for extent in reversed(array.extents):
                strides.insert(0, step)
                step = nodes.binary("mul", "u64", self.to(extent, "u64"), step, at)
        step = 1 + is_complex
        for extent in reversed(leaf.inner):
            strides.insert(len(array.extents), nodes.literal("u64", step, at))
            step *= extent
        result = Arr(name, number_of_array, ty, array.extents + inner, "param", argument, strides, offset, is_complex)
        result.home = array.number, array.name.partition(".")[0], len(array.extents)
        return result

    def read_field(self, array, name, node):
        """The value of a field of one structure, or the array of a field."""
        result = self.field(array, name, node)
        if result.fields is not None or result.extents or array.extents:
            return result
        index = self.element_place(result, [], [], node)
        return self.load_element(result, index, self.scope.place_of(node))

    def record_field(self, record, name, node):
        """The value of a field of an argument by value."""
        if name not in record.fields:
            raise self.error(node, f"`{record.name}` has no field {name!r}: it has {names_of(record.fields)}")
        return record.fields[name]

    def item_of_structures(self, array, node):
        """`particles[i]` or `particles["x"]`."""
        name = self.field_name(node.slice)
        if name is not None:
            return self.read_field(array, name, node)
        if array.whole is not None and not array.extents:
            raise self.error(node, f"`{ast.unparse(node.value)}` is one structure: it has the fields {names_of(array.fields)}")
        return self.part_of(array, node)

    def element_of_structures(self, array, values, node):
        """The structure at these indices."""
        if len(values) != len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(values)} indices are given")
        for place, value in enumerate(values):
            self.check_index(array, place, value, node)
        return self.part(array, [], [self.fix_index(value) for value in values])

    def field_name(self, node):
        """The name of a field that a subscript is; None for an index."""
        if isinstance(node, ast.Name):
            meaning = self.expr(node)
            value = meaning.value if meaning.__class__ is Static else None
        else:
            value = node.value if isinstance(node, ast.Constant) else None
        return value if isinstance(value, str) else None

    # Setting.

    def place_to_set(self, target):
        """What an assignment sets: an array, the place of its element, and whether that stays.

        For a whole structure, the structure alone.
        """
        meaning = self.expr(target.value)
        is_structure = meaning.__class__ is Arr and meaning.fields is not None
        if isinstance(target, ast.Attribute):
            if meaning.__class__ is Rec:
                raise self.error(target, f"`{meaning.name}` is passed by value, so it cannot be set: take an array of one structure")
            if not is_structure or meaning.extents:
                raise self.error(target, "only variables, elements of arrays and fields of elements can be set")
            meaning = self.field(meaning, target.attr, target)
        elif is_structure:
            name = self.field_name(target.slice)
            meaning = self.field(meaning, name, target) if name is not None else self.part_of(meaning, target)
        else:
            if meaning.__class__ is Rec:
                raise self.error(target, f"`{meaning.name}` is passed by value, so it cannot be set: take an array of one structure")
            if meaning.__class__ is not Arr:
                raise self.error(target, f"`{ast.unparse(target.value)}` is no array: its elements cannot be set")
            return meaning, *self.element_index(meaning, target)
        if meaning.extents:
            raise self.error(target, f"`{ast.unparse(target)}` is an array: set its elements")
        if meaning.fields is not None:
            return meaning, None, True
        return meaning, self.element_place(meaning, [], [], target), True

    def store_structure(self, array, value, node):
        """Sets all fields of an element: to those of another structure, or to values in order."""
        targets = self.leaves_of(array, node)
        values = self.leaves_of(value, node, array.fields) if value.__class__ in (Arr, Rec, Tup) else None
        if values is None or [path for path, _ in targets] != [path for path, _ in values]:
            raise self.error(node, f"`{array.name}` has structures of {names_of(array.fields)}: set it to a structure with these fields in order, or to a tuple of their values")
        values = [self.copy_numbers(self.as_number(meaning, node)) for _, meaning in values]
        for (_, place), meaning in zip(targets, values):
            self.store_element(place, self.element_place(place, [], [], node), meaning, node)

    def leaves_of(self, meaning, node, fields=None, path=()):
        """The names and meanings of all numbers in a structure, or in a tuple for these fields.

        With `fields`, elements are read. None for what is no structure.
        """
        leaves = []
        if meaning.__class__ is Tup:
            if len(meaning.items) != len(fields):
                return None
            items = zip(fields, meaning.items)
        elif meaning.__class__ is Rec:
            items = meaning.fields.items()
        elif meaning.fields is None or meaning.extents:
            return None
        else:
            items = ((name, self.field(meaning, name, node)) for name in meaning.fields)
        for name, item in items:
            if item.__class__ is Arr and item.extents:
                raise self.error(node, f"field `{name}` of `{item.name.rpartition('.')[0]}` is an array: set fields and their elements one by one")
            below = None if fields is None else fields.get(name)
            is_inside = item.__class__ is Rec or (item.__class__ is Arr and item.fields is not None) or (item.__class__ is Tup and below.__class__ is dict)
            if is_inside:
                more = self.leaves_of(item, node, None if fields is None else below or {}, (*path, name))
                if more is None:
                    return None
                leaves += more
                continue
            if item.__class__ is Arr and fields is not None:
                item = self.load_element(item, self.element_place(item, [], [], node), self.scope.at)
            leaves.append(((*path, name), item))
        return leaves


def names_of(fields):
    """The names of fields in a message."""
    return ", ".join(f"`{name}`" for name in fields)


