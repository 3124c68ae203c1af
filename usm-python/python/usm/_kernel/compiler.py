"""Compiles a function, for the types of its arguments, to the text of usm-kernel-ir's nodes."""

import ast

from .assignments import Assignments
from .atomics import Atomics
from .calls import Calls
from .comparisons import Comparisons
from .complexes import Complexes
from .conversions import Conversions
from .dpex import Dpex
from .expressions import Expressions
from .indexing import Indexing
from .inline import Inline
from .loops import Loops
from .mathematics import Mathematics
from .memory import Memory
from .operators import Operators
from .order import Order
from .parameters import Parameters
from .printing import Printing
from .signature import Signature
from .slices import Slices
from .source import Source
from .state import Checks, Draft, Facts, Lines, Scope
from .statements import Statements
from .structures import Structures
from .tuples import Tuples
from .values import Frame
from .variables import Variables
from .work_items import WorkItems

#: The most rounds. A further round is needed when the type of a variable became wider.
_ROUNDS = 40


class Compiler(
    Parameters,
    Variables,
    Statements,
    Assignments,
    Loops,
    Expressions,
    Operators,
    Comparisons,
    Complexes,
    Indexing,
    Slices,
    Conversions,
    Order,
    Structures,
    Tuples,
    Calls,
    Mathematics,
    WorkItems,
    Memory,
    Atomics,
    Dpex,
    Inline,
    Printing,
):
    """Makes the nodes of one kernel for one key.

    Each round walks the whole function. It starts with the facts that the round before found, until
    none changes. The classes above are its methods by topic, and say which of these parts of its
    state they use: the `source`, the `signature` of the launch, the `facts`, and of one round the
    `draft`, the `checks`, the `lines` and the `scope`.
    """

    __slots__ = ("checks", "draft", "facts", "lines", "scope", "signature", "source")

    def __init__(self, source, key):
        self.source = source
        self.signature = Signature(key)
        self.facts = Facts()

    def make(self):
        """The text of the nodes, the sources of their parameters, tables and facts for a launch.

        The facts are extents, bounds, the log and pairs. An extent is the number of its array in
        the nodes, and an argument and its dimension. A bound is an argument, the limits of its
        values, and the type and the place that need them.
        Arguments of a log follow those of the kernel. Pairs are arrays of complex numbers. The last
        one is whether no two items race.
        """
        for _ in range(_ROUNDS):
            self.facts.has_changed = False
            text = self.round()
            if not self.facts.has_changed:
                draft, checks = self.draft, self.checks
                sources = draft.sources_of_launch(self.facts)
                return text, sources, draft.tables, checks.origins, list(checks.bounds.values()), self.log(), draft.pairs, self.source.is_ordered
        raise self.source.error(self.source.tree, "the types of its variables do not converge; write casts")

    def round(self):
        """The text of the nodes with the facts that are known now."""
        tree = self.source.tree
        if isinstance(tree, ast.AsyncFunctionDef):
            raise self.source.error(tree, "an async function is no kernel: write `def`")
        self.draft, self.checks, self.lines = Draft(), Checks(), Lines()
        self.scope = Scope(Frame("", self.source, self.draft.file_of(self.source)))
        place = self.scope.at = self.scope.place_of(tree)
        self.bind_parameters(tree)
        self.block(tree.body)
        return self.draft.text(self.source.function.__name__, self.signature, self.facts, self.scope.statements, place)

    def error(self, node, message):
        """The error of a node of the function that is read."""
        return self.scope.frame.source.error(node, message)

    def emit(self, statement):
        """Adds a statement to the block that is written."""
        self.scope.statements.append(statement)


def make(source: Source, key):
    """The result of `Compiler.make` for a function and a key."""
    try:
        return Compiler(source, key).make()
    except RecursionError:
        raise source.error(source.tree, "expressions or statements lie too deeply in each other") from None


__all__ = ["Compiler", "make"]
