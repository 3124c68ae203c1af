"""Tuples: their items, their names, and the choice between two."""

import ast

from . import nodes
from .state import Draft, Facts, Scope
from .types import IR_TYPE
from .values import Arr, Pack, Static, Tup, Val, number


class Tuples:
    """Methods of the compiler for tuples."""

    __slots__ = ()
    facts: Facts
    draft: Draft
    scope: Scope

    # Taking apart and binding.

    def unpack_target(self, target, meaning, node):
        """`a, b = ..`: all values are read before a name is set."""
        if meaning.__class__ is Static and isinstance(meaning.value, (tuple, list)):
            meaning = Tup([Static(item) for item in meaning.value])
        if meaning.__class__ is Arr and meaning.fields is None and len(meaning.extents) == 1 and meaning.extents[0].const == len(target.elts):
            meaning = self.elements_of(meaning, node)
        if meaning.__class__ is Arr:
            raise self.error(node, f"`{meaning.name}` is an array, and only tuples are taken apart: write an index for each element")
        if meaning.__class__ is not Tup:
            raise self.error(node, "a number cannot be taken apart: a tuple can")
        if len(meaning.items) != len(target.elts):
            raise self.error(node, f"{len(target.elts)} names for {len(meaning.items)} values")
        for element, item in zip(target.elts, self.copy_numbers(meaning).items):
            self.bind_target(element, item, node)

    def elements_of(self, array, node):
        """The elements of an array of one dimension whose length is known, as a tuple."""
        items = []
        for place in range(array.extents[0].const):
            index = self.element_place(array, [number(place, "wi", self.scope.at)], [node], node)
            items.append(self.load_element(array, index, self.scope.at))
        return Tup(items)

    def bind_tuple(self, name, before, meaning, node):
        """Sets a variable that is a tuple: all its numbers, after they are read."""
        key = f"{self.scope.frame.key}.{name}"
        if key in self.facts.packs and self.facts.packs[key].is_complex:
            raise self.error(node, f"`{name}` is complex elsewhere: take another name for a tuple")
        if before is not None and before.count != len(meaning.items):
            raise self.error(node, f"`{name}` is a tuple of {before.count} numbers elsewhere, and of {len(meaning.items)} here")
        for place, item in enumerate(self.copy_numbers(meaning).items):
            self.assign(f"{name}.{place}", item, node)
        self.scope.frame.names[name] = self.facts.packs[key] = Pack(key, len(meaning.items))

    # Items.

    def item_of_tuple(self, meaning, node):
        """The item at an index: any item at one that is known here, else a number."""
        items = meaning.items if meaning.__class__ is Tup else [Static(item) for item in meaning.value]
        place = self.value(node.slice)
        if type(place.const) is not int:
            return self.number_of_tuple(items, place, node)
        if not -len(items) <= place.const < len(items):
            raise self.error(node, f"index {place.const} of a tuple of {len(items)}")
        return items[place.const]

    def number_of_tuple(self, items, place, node):
        """The number at an index of the item, by an array of the item's own."""
        numbers = [self.as_value(item, node) for item in items]
        if not numbers:
            raise self.error(node, "an index of a tuple without items")
        first = numbers[0]
        for other in numbers[1:]:
            first = Val(first.text, self.common_type(first, other, node, "beside"))
        ty, at, name = IR_TYPE[first.ty], self.scope.at, ast.unparse(node.value)
        array = Arr(name, self.draft.new_array(name, ty, nodes.private_space(len(numbers)), at), ty, [number(len(numbers), "wi", at)], "private")
        for index, value in enumerate(numbers):
            self.emit(nodes.store(array.number, nodes.literal("u64", index, at), self.to(value, ty), at))
        return self.load_element(array, self.element_place(array, [place], [node.slice], node), at)

    def number_or_tuple(self, node):
        """The meaning of an expression that is a number, or a tuple with numbers as its values."""
        meaning = self.expr(node)
        if meaning.__class__ is Static and isinstance(meaning.value, tuple):
            meaning = Tup([Static(item) for item in meaning.value])
        if meaning.__class__ is not Tup:
            return self.as_number(meaning, node)
        return Tup([self.as_value(item, node) if item.__class__ is Static else item for item in meaning.items])

    def choice_of_tuples(self, condition, branches, node):
        """`a if c else b` of two tuples of numbers. A branch is a tuple and its own statements."""
        (left, first), (right, second) = branches
        items = [meaning.items if meaning.__class__ is Tup else () for meaning in (left, right)]
        if len(items[0]) != len(items[1]) or any(item.__class__ is not Val for item in (*items[0], *items[1])):
            raise self.error(node, "a choice of tuples is one of as many real numbers on both sides: write an `if`")
        types = [self.common_type(*pair, node, "or") for pair in zip(*items)]
        names = [self.temporary(ty) for ty in types]
        texts = []
        for statements, values in ((first, items[0]), (second, items[1])):
            sets = [nodes.set_variable(name, self.to(value, ty), self.scope.at) for name, value, ty in zip(names, values, types)]
            texts.append(nodes.block([*statements, *sets]))
        self.emit(nodes.branch(condition.text, texts[0], texts[1], self.scope.at))
        return Tup([Val(nodes.variable(IR_TYPE[ty], name, self.scope.at), ty) for name, ty in zip(names, types)])
