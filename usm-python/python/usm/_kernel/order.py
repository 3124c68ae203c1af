"""The order of evaluation, which is Python's: operands are evaluated from left to right.

An expression may need statements of its own, which go to `self.out` first. The values of earlier
operands are then read into temporary variables before these statements.
"""

from . import nodes


class Order:
    """Methods of the compiler that keep Python's order of evaluation."""

    def operands(self, expressions, ask=None):
        """Values from left to right: an earlier one is read before a later one has effects.

        `ask` is `self.numeric` where complex numbers are allowed.
        """
        found = []
        for node in expressions:
            start = len(self.out)
            value = (ask or self.value)(node)
            if len(self.out) != start:
                self.spill(found, start)
            found.append(value)
        return found

    def spill(self, values, start):
        """Reads values into temporary variables, before the statements from `start` on."""
        later = self.out[start:]
        del self.out[start:]
        for place, value in enumerate(values):
            if not value.pure and value.const is None:
                values[place] = self.set_temporary(value)
        self.out.extend(later)

    def with_own_statements(self, call):
        """The result of a call of the compiler, and the statements that it needs first."""
        kept, self.out = self.out, []
        self.depth += 1
        known = set(self.known)
        found = call()
        self.known = known
        self.depth -= 1
        first, self.out = self.out, kept
        return found, first

    def reusable(self, value):
        """A value whose text may be used twice, in a temporary variable if needed."""
        if value.const is not None or (value.pure and (nodes.is_variable(value.text) or nodes.is_value(value.text))):
            return value
        return self.set_temporary(value)
