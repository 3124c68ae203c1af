"""Assignments of kernels: names that are bound, and elements and fields that are set."""

import ast
from types import NoneType

from . import nodes
from .operators import ARITHMETIC
from .state import Draft, Facts, Scope
from .types import NAMES, is_int
from .values import Arr, Cpx, Pack, Rec, Reference, Slice, Static, Tup, Val


class Assignments:
    """Methods of the compiler for assignments."""

    __slots__ = ()
    facts: Facts
    draft: Draft
    scope: Scope


    def assign_targets(self, node):
        """`a = b = ..`."""
        if len(node.targets) == 1:
            self.assign_target(node.targets[0], node.value, node)
            return
        value = self.expr(node.value)
        value = self.as_reusable(value) if value.__class__ is Val else self.copy_numbers(value)
        for target in node.targets:
            self.bind_target(target, value, node)

    def assign_annotated(self, node):
        """`a: int = ..`."""
        if node.value is None:
            raise self.error(node, "a variable without a value: set it")
        self.assign_target(node.target, node.value, node)

    def assign_augmented(self, node):
        """`a += b` and the like."""
        operator = ARITHMETIC.get(node.op.__class__)
        if operator is None:
            raise self.error(node, "`@=` is not for kernels: write the sums in a loop")
        target = node.target
        if isinstance(target, ast.Name):
            if self.scope.frame.names.get(target.id).__class__ is Arr:
                raise self.error(target, f"the array `{target.id}` cannot be bound anew: set its elements")
            left, right = self.operands((ast.copy_location(ast.Name(target.id, ast.Load()), target), node.value), self.numeric)
            self.bind_target(target, self.arithmetic(operator, left, right, node), node)
            return
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            raise self.error(target, "only variables and elements of arrays can be set")
        array, index, is_pure = self.place_to_set(target)
        if array.fields is not None:
            raise self.error(target, f"`{ast.unparse(target)}` is a structure, which does not compute: change its fields")
        load = self.load_element(array, index, self.scope.at)
        statements = self.scope.statements
        start = len(statements)
        right = self.numeric(node.value)
        if not array.is_complex and (len(statements) != start or not is_pure):
            rest = statements[start:]
            del statements[start:]
            if not is_pure:
                index = self.set_temporary(Val(index, "u64")).text
                load = self.load_element(array, index, self.scope.at)
            if rest:
                load = self.set_temporary(load)
            statements.extend(rest)
        self.store_element(array, index, self.arithmetic(operator, load, right, node), target)

    def assign_target(self, target, value, node):
        """Sets a target to an expression."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_target(target, self.expr(value), node)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            # Python evaluates the value first, then the array and its index.
            self.store_value(target, self.expr(value), value)
        else:
            self.bind_target(target, self.expr(value), node)

    def copy_numbers(self, meaning):
        """A meaning whose numbers no later statement changes."""
        if meaning.__class__ is Tup:
            return Tup([self.copy_numbers(item) for item in meaning.items])
        if meaning.__class__ is Cpx:
            return Cpx(*map(self.copy_numbers, meaning.parts))
        changes = meaning.__class__ is Val and (nodes.reads_variables(meaning.text) or not meaning.is_pure)
        return self.set_temporary(meaning) if changes else meaning

    # Names.

    def bind_target(self, target, meaning, node):
        """Binds a name to an expression's meaning, or stores a value in an element."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_target(target, meaning, node)
            return
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            self.store_value(target, meaning, node)
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "only variables and elements of arrays can be set")
        name, scope = target.id, self.scope
        meaning = self.complex_instead(meaning)
        before = scope.frame.names.get(name)
        if meaning.__class__ is Arr and before.__class__ is Arr and scope.depth and self.bind_part_anew(before, meaning):
            return
        if before.__class__ is Arr and (meaning.__class__ is not Arr or (scope.depth and before is not meaning)):
            raise self.error(target, f"the array `{name}` cannot be bound anew: take another name, or set its elements")
        if meaning.__class__ is Reference:
            scope.frame.names[name] = meaning
            return
        if meaning.__class__ is Static and isinstance(meaning.value, tuple) and meaning.value and all(type(item) in (bool, int, float) for item in meaning.value):
            meaning = Tup([self.as_value(Static(item), node) for item in meaning.value]) if before.__class__ is Pack else meaning
        if meaning.__class__ is Tup and meaning.items and all(item.__class__ is Val for item in meaning.items) and before.__class__ in (NoneType, Pack):
            self.bind_tuple(name, before, meaning, target)
            return
        if before.__class__ is Pack and before.is_complex and meaning.__class__ in (Val, Static):
            self.bind_number(name, self.as_value(meaning, node), target)
            return
        if before.__class__ is Pack and before.is_complex and meaning.__class__ is Cpx:
            self.bind_number(name, meaning, target)
            return
        if before is not None and (scope.depth or before.__class__ is Pack) and meaning.__class__ is Tup and any(item.__class__ is Cpx for item in meaning.items):
            raise self.error(target, f"`{name}` changes, so it is no tuple with a complex number: take a name for each value")
        if before.__class__ in (Tup, Pack) and (scope.depth or before.__class__ is Pack):
            raise self.error(target, f"`{name}` is a tuple before: take another name for a number under a condition")
        if is_no_number(meaning):
            if before is not None and (scope.depth or before.__class__ is not meaning.__class__):
                what = "an array" if meaning.__class__ is Arr else "what is no number"
                raise self.error(target, f"`{name}` is {what}: bind it once, or at the top of the function")
            self.name_array(name, meaning)
            if meaning.__class__ is Arr and meaning.whole is not None and scope.frame.source.is_set_often(name):
                meaning = self.with_own_indices(meaning)
            scope.frame.names[name] = self.copy_numbers(meaning)
            return
        self.bind_number(name, self.as_number(meaning, node), target)

    def with_own_indices(self, part):
        """A part of an array with indices of its own, so that it may be bound anew."""
        indices = [index if index.__class__ is Slice else self.as_variable(index) for index in part.indices]
        return self.part(part.whole, part.extents, indices)

    def bind_part_anew(self, before, part):
        """Sets the indices of a part of an array to those of another part, under a condition.

        False if they are not parts in the same dimensions of one array.
        """
        if before.whole is None or before.whole is not part.whole or [index.__class__ for index in before.indices] != [index.__class__ for index in part.indices]:
            return False
        pairs = []
        for old, new in zip(before.indices, part.indices):
            if old.__class__ is Slice:
                if old.extent != new.extent or (old.extent is not None and not is_same(old.length, new.length)):
                    return False
                pairs += [(old.start, new.start)] + ([(old.length, new.length)] if old.extent is None else [])
            else:
                pairs.append((old, new))
        pairs = [(old, new) for old, new in pairs if not is_same(old, new)]
        if not all(nodes.is_variable(old.text) for old, _ in pairs):
            return False
        for old, new in pairs:
            self.emit(nodes.set_variable(nodes.number_of_variable(old.text), self.to(new, old.ty), self.scope.at))
        return True

    # Elements and fields.

    def store_value(self, target, value, node):
        """Stores a value in an element or a field, or a structure in an element."""
        is_whole = value.__class__ in (Rec, Tup) or (value.__class__ is Arr and value.fields is not None)
        value = self.copy_numbers(value) if is_whole else self.as_number(value, node)
        start = len(self.scope.statements)
        array, index, _ = self.place_to_set(target)
        if array.fields is not None:
            self.store_structure(array, value, node)
            return
        value = self.as_number(value, node)
        if len(self.scope.statements) != start:
            values = [value]
            self.spill(values, start)
            value = values[0]
        self.store_element(array, index, value, target)

    def store_element(self, array, index, value, node):
        """Stores a value in an element, atomically if the kernel has atomic operations on it."""
        if array.kind == "constant":
            raise self.error(node, f"`{array.name}` is constant: it cannot be set")
        if array.is_complex:
            if array.kind == "param":
                self.draft.stored_arguments.add(array.argument)
            self.store_pair(array, index, value)
            return
        if value.__class__ is Cpx:
            raise self.error(node, f"a complex number does not fit `{array.name}`, whose elements are {NAMES[array.ty]}: store `.real`, `.imag` or `abs(..)`")
        if value.ty == "wi" and value.const is not None and is_int(array.ty):
            value = self.cast(value, array.ty)
        text, at = self.to(value, array.ty), self.scope.at
        if array.kind == "param":
            self.draft.stored_arguments.add(array.argument)
            if array.argument in self.facts.atomics:
                self.emit(nodes.atomic("exchange", array.number, index, text, None, at))
                return
        self.emit(nodes.store(array.number, index, text, at))


def is_no_number(meaning):
    """Whether a name means an array, a structure, a tuple or an object, and no number."""
    if meaning.__class__ is Static:
        return not isinstance(meaning.value, (bool, int, float)) and not hasattr(meaning.value, "item")
    return meaning.__class__ in (Arr, Tup, Rec)


def is_same(left, right):
    """Whether two values are the same expression."""
    return nodes.without_places(left.text) == nodes.without_places(right.text)
