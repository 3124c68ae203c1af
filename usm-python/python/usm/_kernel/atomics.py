"""Atomic operations on elements, by `usm.atomic` and by numba-dpex's `AtomicRef`."""

import ast

from . import names, nodes
from .complexes import name_of
from .state import Facts, Scope
from .types import BITS, NAMES, is_float
from .values import Arr, Reference, Static, Tup, Val, number


class Atomics:
    """Methods of the compiler for atomic operations."""

    __slots__ = ()
    facts: Facts
    scope: Scope

    def atomic(self, function, node, is_statement):
        """A call of `usm.atomic`. `is_statement`: the old value is not used."""
        count = 4 if function == "cas" and len(node.args) == 4 else 3
        if len(node.args) != count or node.keywords:
            raise self.error(node, f"`usm.atomic.{function}` has the arguments array, index, {'expected, ' * (function == 'cas')}value")
        array = self.expr(node.args[0])
        if array.__class__ is Arr and array.fields is not None:
            raise self.error(node, f"atomic operations are for numbers: pass a field, such as `{array.name}[\"{next(iter(array.fields))}\"]`")
        if array.__class__ is not Arr or array.kind not in ("param", "local"):
            raise self.error(node, "atomic operations are for arguments and local arrays")
        index = self.expr(node.args[1])
        places = list(index.items) if index.__class__ is Tup else [self.as_value(index, node.args[1])]
        start = len(self.scope.statements)
        operand = self.expr(node.args[2])
        if count == 4:
            values = [self.as_value(operand, node.args[2]), self.value(node.args[3])]
        elif function == "cas":
            if operand.__class__ is not Tup or len(operand.items) != 2:
                raise self.error(node, "`usm.atomic.cas` has the arguments array, index, expected, value")
            values = [self.as_value(item, node.args[2]) for item in operand.items]
        else:
            values = [self.as_value(operand, node.args[2])]
        if len(self.scope.statements) != start:
            self.spill(places, start)
        return self.atomic_on(array, Reference(array, places, node.args[1]), function, values, node, is_statement)

    def atomic_on(self, array, reference, function, values, node, is_statement, only_check=False):
        """The operation itself. With `only_check` the array is checked and nothing is emitted."""
        if array.kind not in ("param", "local"):
            raise self.error(node, "atomic operations are for arguments and local arrays")
        if array.is_complex:
            raise self.error(node, f"an atomic operation on {name_of(array)}: pass the parts, such as NumPy's `x.real`")
        if BITS[array.ty] not in (32, 64) or array.ty == "bool":
            raise self.error(node, f"an atomic operation on {NAMES[array.ty]}: integers and floats of 32 and 64 bits have them")
        if function in ("and_", "or_", "xor") and is_float(array.ty):
            raise self.error(node, f"`usm.atomic.{function}` on {NAMES[array.ty]}: only integers have it")
        fraction = None if is_float(array.ty) else next((value for value in values if is_float(value.ty)), None)
        if fraction is not None:
            operand = fraction.const if fraction.const is not None else f"a {NAMES[fraction.ty]}"
            raise self.error(node, f"an atomic operation with {operand} on `{array.name}`, which has elements of type {NAMES[array.ty]}: cast it, as by `int(..)`")
        if array.kind == "param" and array.argument not in self.facts.atomics:
            self.facts.atomics.add(array.argument)
            self.facts.has_changed = True
        if only_check:
            return Static(None)
        place = self.element_place(array, reference.places, [reference.node] * len(reference.places), node)
        texts = [self.to(value, array.ty) for value in values]
        old = None if is_statement else self.temporary(array.ty)
        if function == "cas":
            self.emit(nodes.compare_exchange(array.number, place, *texts, old, self.scope.at))
        else:
            self.emit(nodes.atomic(names.ATOMICS[function], array.number, place, *texts, old, self.scope.at))
        return Static(None) if is_statement else Val(nodes.variable(array.ty, old, self.scope.at), array.ty)

    def atomic_ref(self, node):
        """`kapi.AtomicRef(array, index)`."""
        arguments = self.named_arguments(node, ("ref", "index", "memory_order", "memory_scope", "address_space"), 2)
        array = self.expr(arguments["ref"])
        if array.__class__ is not Arr or array.fields is not None:
            raise self.error(arguments["ref"], "`AtomicRef` of what is no array")
        if "address_space" in arguments:
            space = self.expr(arguments["address_space"])
            space = getattr(space, "const", None) if space.__class__ is Val else getattr(space, "value", None)
            numbers = {"param": (1, 4), "local": (3, 4)}.get(array.kind, ())
            if space is not None and space not in numbers:
                where = {"param": "global", "local": "local"}.get(array.kind, "private or constant")
                raise self.error(arguments["address_space"], f"`{array.name}` is {where} memory: leave the address space out")
        index = self.expr(arguments["index"])
        places = list(index.items) if index.__class__ is Tup else [self.as_value(index, arguments["index"])]
        return Reference(array, [self.set_temporary(place) for place in places], arguments["index"])

    def named_arguments(self, node, names, count):
        """The nodes of arguments, given in order or by keyword, by their names."""
        arguments = dict(zip(names, node.args))
        arguments |= {keyword.arg: keyword.value for keyword in node.keywords}
        if not set(names[:count]) <= arguments.keys() <= set(names) or len(arguments) != len(node.args) + len(node.keywords):
            raise self.error(node, f"`{ast.unparse(node.func)}` has the arguments {', '.join(names[:-1])} and {names[-1]}")
        return arguments

    def atomic_ref_method(self, method, node, is_statement):
        """A call of a method of an `AtomicRef`."""
        reference, name = method.reference, method.name
        array = reference.array
        if name == "load":
            self.take_arguments(node, 0)
            self.atomic_on(array, reference, "add", [number(0, "wi", self.scope.at)], node, True, only_check=True)
            place = self.element_place(array, reference.places, [node] * len(reference.places), node)
            return self.set_temporary(self.load_element(array, place, self.scope.at))
        if name == "compare_exchange":
            return self.compare_exchange(reference, node)
        function = names.FETCH_METHODS.get(name, "exch" if name in ("exchange", "store") else None)
        if function is None:
            raise self.error(node, f"an AtomicRef has no `{name}`")
        values = self.take_arguments(node, 1)
        return self.atomic_on(array, reference, function, values, node, is_statement or name == "store")

    def compare_exchange(self, reference, node):
        """`AtomicRef.compare_exchange`: whether the element was as expected."""
        arguments = self.named_arguments(node, ("expected_ref", "desired", "expected_idx"), 2)
        expected = self.expr(arguments["expected_ref"])
        if expected.__class__ is not Arr or expected.fields is not None:
            raise self.error(arguments["expected_ref"], "what is expected is an array, which gets the value that was found")
        replacement = self.set_temporary(self.value(arguments["desired"]))
        where = self.as_reusable(self.value(arguments["expected_idx"])) if "expected_idx" in arguments else number(0, "wi", self.scope.at)
        place = self.element_place(expected, [where], [node], node)
        array, at = reference.array, self.scope.at
        comparand = self.set_temporary(self.cast(self.as_value(self.load_element(expected, place, at), node), array.ty))
        old = self.atomic_on(array, reference, "cas", [comparand, replacement], node, False)
        is_same = self.set_temporary(Val(nodes.comparison("eq", old.text, comparand.text, at), "bool"))
        _, statements = self.with_own_statements(lambda: self.store_element(expected, place, old, node))
        self.emit(nodes.branch(is_same.text, nodes.EMPTY, nodes.block(statements), at))
        return is_same
