"""The order of evaluation, which is Python's: operands are evaluated from left to right.

An expression may need statements of its own, which go to the scope's `statements` first. The values
of earlier operands are then read into temporary variables before these statements.
"""

from . import nodes
from .state import Scope
from .values import Cpx, Tup, Val


class Order:
    """Methods of the compiler that keep Python's order of evaluation."""

    __slots__ = ()
    scope: Scope

    def operands(self, expressions, ask=None):
        """Values from left to right: an earlier one is read before a later one has effects.

        `ask` is `self.numeric` where complex numbers are allowed, `self.expr` where all is.
        """
        values = []
        for node in expressions:
            start = len(self.scope.statements)
            value = (ask or self.value)(node)
            if len(self.scope.statements) != start:
                self.spill(values, start)
            values.append(value)
        return values

    def spill(self, values, start):
        """Reads values into temporary variables, before the statements from `start` on."""
        rest = self.scope.statements[start:]
        del self.scope.statements[start:]
        values[:] = map(self.read_now, values)
        self.scope.statements.extend(rest)

    def read_now(self, meaning):
        """A meaning whose numbers no store changes: temporary variables have what it loads."""
        if meaning.__class__ is Tup:
            return Tup([self.read_now(item) for item in meaning.items])
        if meaning.__class__ is Cpx:
            return Cpx(*map(self.read_now, meaning.parts))
        is_loaded = meaning.__class__ is Val and not meaning.is_pure and meaning.const is None
        return self.set_temporary(meaning) if is_loaded else meaning

    def with_own_statements(self, call):
        """The result of a call of the compiler, and the statements that it needs first."""
        outer = self.scope.begin_block()
        result = call()
        statements, _ = self.scope.end_block(outer)
        return result, statements

    def as_reusable(self, value):
        """A value whose text may be used twice, in a temporary variable if needed."""
        if value.const is not None or (value.is_pure and (nodes.is_variable(value.text) or nodes.is_value(value.text))):
            return value
        return self.set_temporary(value)
