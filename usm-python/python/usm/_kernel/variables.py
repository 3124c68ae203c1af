"""Variables and temporary variables of kernels, and what a name means."""

from . import nodes
from .state import Draft, Facts, Scope
from .types import NAMES, IR_TYPE, promote
from .values import Pack, Static, Val


class Variables:
    """Methods of the compiler for variables and names."""

    __slots__ = ()
    facts: Facts
    draft: Draft
    scope: Scope


    def temporary(self, ty):
        """The number of a new variable."""
        key = f"{self.scope.frame.key}#{len(self.draft.variables)}"
        self.facts.types[key] = ty
        return self.draft.variable(key, "t", self.scope.at)

    def set_temporary(self, value):
        """A value, kept in a temporary variable unless it is a known number."""
        return value if value.const is not None else self.as_variable(value)

    def as_variable(self, value):
        """A value in a temporary variable."""
        ty, at = value.ty, self.scope.at
        number = self.temporary(ty)
        self.emit(nodes.set_variable(number, value.text, at))
        return Val(nodes.variable(IR_TYPE[ty], number, at), ty, None, value.high)

    def assign(self, name, value, node):
        """Sets a variable. Its type is the promotion of the types of all its values."""
        facts, scope = self.facts, self.scope
        key = f"{scope.frame.key}.{name}"
        before = facts.types.get(key)
        ty = value.ty
        if before is None:
            facts.types[key] = ty
            facts.highs[key] = value.high
        else:
            if before != ty:
                ty = promote(before, ty)
                if ty is None:
                    raise self.error(
                        node, f"`{name}` is {NAMES[before]} elsewhere and {NAMES[value.ty]} here: cast one of them"
                    )
                if ty != before:
                    facts.types[key] = ty
                    facts.has_changed = True
            high = facts.highs[key]
            if high is not None and (value.high is None or value.high > high):
                # A bound that grew twice is given up, so that the rounds end.
                facts.highs[key] = value.high if value.high is not None and f"{key}+" not in facts.highs else None
                facts.highs[f"{key}+"] = None
                facts.has_changed = True
        if not self.fits(value, ty):
            raise self.error(node, f"{value.const} does not fit {NAMES[ty]}, the type of `{name}` elsewhere: cast one of them")
        number = self.draft.variable(key, name, scope.at)
        self.emit(nodes.set_variable(number, self.to(value, ty), scope.at))
        scope.set_variables.add(key)
        scope.frame.names[name] = key

    def read_variable(self, key, node):
        """The value of a variable; one that may be unset begins as zero."""
        facts, at = self.facts, self.scope.at
        ty = facts.types[key]
        if key not in self.scope.set_variables and key not in facts.unset_variables:
            facts.unset_variables.add(key)
            facts.has_changed = True
        number = self.draft.variable(key, key.rpartition(".")[2], at)
        return Val(nodes.variable(IR_TYPE[ty], number, at), ty, None, facts.highs.get(key))

    # Names.

    def lookup(self, node):
        """The meaning of a name: a variable, a parameter, or an object from outside the kernel."""
        name = node.id
        frame = self.scope.frame
        meaning = frame.names.get(name)
        if meaning.__class__ is Pack:
            return self.read_pack(meaning, node)
        if meaning is not None:
            return self.read_variable(meaning, node) if meaning.__class__ is str else meaning
        if frame.outer_names is None:
            frame.outer_names = frame.source.outer_names()
        if name in frame.source.assigned_names():
            key = f"{frame.key}.{name}"
            if key in self.facts.packs:
                frame.names[name] = self.facts.packs[key]
                return self.lookup(node)
            if key in self.facts.types:
                # Set by a later line of an enclosing loop.
                frame.names[name] = key
                return self.read_variable(key, node)
            raise self.error(node, f"`{name}` has no value here: set it before")
        if name in frame.outer_names:
            return Static(frame.outer_names[name])
        raise self.error(node, f"unknown name `{name}`: parameters, variables, and names of the module can be used")
