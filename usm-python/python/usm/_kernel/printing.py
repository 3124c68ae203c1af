"""`print` in kernels: items store values in lines of arrays, which the launch reads at its end.

No target has a form of its own for it. An atomic operation gives an item the number of a line, and
values are stored in columns: integers, and floats of each type that is printed.
"""

import ast
import builtins
import math

from . import nodes
from .signature import Signature
from .source import Source
from .state import Draft, Facts, Lines, Scope
from .types import IR_TYPE, is_float
from .values import Static, Tup

#: The most lines of a launch that are kept.
LINES = 1 << 14
#: The columns of integers that each line has: the number of its `print`, and the item.
_HEADS = 2
#: Types of columns: the dtype of an array and its format in `struct`.
_COLUMNS = {"u32": ("u4", "I"), "i64": ("i8", "q"), "f32": ("f4", "f"), "f64": ("f8", "d")}


class Printing:
    """Methods of the compiler for `print`."""

    __slots__ = ()
    source: Source
    signature: Signature
    facts: Facts
    draft: Draft
    lines: Lines
    scope: Scope

    def print_line(self, node):
        """A call of `print`."""
        words = {"sep": " ", "end": "\n"}
        for keyword in node.keywords:
            text = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg not in words or not isinstance(text, str):
                raise self.error(keyword.value, "`print` has literal texts as `sep` and `end` in a kernel, and no other keywords")
            words[keyword.arg] = text
        parts, counts = [], {"i64": _HEADS}
        for place, argument in enumerate(node.args):
            if place:
                parts.append(words["sep"])
            self.print_part(argument, parts, counts)
        parts.append(words["end"])
        self.store_line(len(self.lines.prints), [part for part in parts if not isinstance(part, str)])
        self.lines.prints.append([part if isinstance(part, str) else part[1:] for part in parts])
        return Static(None)

    def print_part(self, node, parts, counts):
        """Adds what one argument prints: texts, and values with their columns."""
        if isinstance(node, ast.JoinedStr):
            for value in node.values:
                if isinstance(value, ast.Constant):
                    parts.append(value.value)
                    continue
                spec = "" if value.format_spec is None else _literal(value.format_spec)
                if spec is None:
                    raise self.error(value, "a format in a kernel is a literal text")
                self.print_value(self.expr(value.value), value, parts, counts, (value.conversion, spec))
            return
        if isinstance(node, ast.Starred):
            raise self.error(node, "`*` is not for kernels: write each value")
        self.print_value(self.expr(node), node, parts, counts, (-1, ""))

    def print_value(self, meaning, node, parts, counts, how):
        if meaning.__class__ is Static and isinstance(meaning.value, (str, type(None))):
            parts.append(self.format_known(meaning.value, how, node))
            return
        if meaning.__class__ is Tup:
            if how[1]:
                raise self.error(node, "a tuple has no format: format its values")
            for place, item in enumerate(meaning.items):
                parts.append("(" if place == 0 else ", ")
                # As in Python, a tuple shows how its values are written.
                self.print_value(item, node, parts, counts, (ord("r"), ""))
            parts.append("()" if not meaning.items else ",)" if len(meaning.items) == 1 else ")")
            return
        value = self.as_value(meaning, node)
        ty = IR_TYPE[value.ty]
        if value.const is not None:
            plain = how[1] == "" and ty == "f32"
            parts.append(self.format_known(_shortest(value.const) if plain else value.const, how, node))
            return
        # A wrong format is told before a launch.
        self.format_known(True if ty == "bool" else 0.5 if is_float(ty) else 1, how, node)
        column = ("f64" if ty == "f64" else "f32") if is_float(ty) else "i64"
        place = counts.get(column, 0)
        counts[column] = place + 1
        # Later arguments may have effects.
        parts.append((self.set_temporary(value), value.element or ty, column, place, how))

    def format_known(self, value, how, node):
        try:
            return _formatted(value, how)
        except (TypeError, ValueError) as error:
            raise self.error(node, f"this format is not for the value: {error}") from None

    def store_line(self, number, values):
        """Stores the number of a `print`, the item and the values in the next line, if any."""
        at = self.scope.at
        slot = self.temporary("u32")
        line = nodes.cast("u64", nodes.variable("u32", slot, at), at)
        item = nodes.query("global-id", "u64", 0, at)
        for dimension in range(1, self.signature.dimensions):
            item = nodes.binary("mul", "u64", item, nodes.query("global-size", "u64", dimension, at), at)
            item = nodes.binary("add", "u64", item, nodes.query("global-id", "u64", dimension, at), at)
        cells = [("i64", 0, nodes.literal("i64", number, at)), ("i64", 1, nodes.cast("i64", item, at))]
        cells += [(column, place, self.to(value, column)) for value, _, column, place, _ in values]
        counter = self.log_array("u32", 1)
        self.emit(nodes.atomic("add", counter, nodes.literal("u64", 0, at), nodes.literal("u32", 1, at), slot, at))
        stores = []
        for column, place, text in cells:
            array = self.log_array(column, place + 1)
            stores.append(nodes.store(array, nodes.binary("add", "u64", nodes.literal("u64", place * LINES, at), line, at), text, at))
        self.emit(nodes.branch(nodes.comparison("lt", line, nodes.literal("u64", LINES, at), at), nodes.block(stores), nodes.EMPTY, at))

    def log_array(self, ty, columns):
        """The number of the array for a type, which has at least so many columns."""
        entry = self.lines.arrays.get(ty)
        if entry is None:
            argument = self.signature.argument_count + len(self.lines.arrays)
            # The name says that each line has one writer.
            array = self.draft.array_of_argument(f"print {ty}", ty, argument, self.scope.at)
            self.draft.stored_arguments.add(argument)
            if ty == "u32":
                self.facts.atomics.add(argument)
            entry = self.lines.arrays[ty] = [array, 0]
        entry[1] = max(entry[1], columns)
        return entry[0]

    def log(self):
        """What a launch needs to print, or None."""
        if not self.lines.arrays:
            return None
        return Log(self.source.function.__name__, self.lines.prints, {ty: columns for ty, (_, columns) in self.lines.arrays.items()})


class Log:
    """The texts of a kernel's prints, and the arrays of a launch in which their values are."""

    def __init__(self, name, prints, columns):
        self.name = name
        self.prints = prints
        self.columns = columns

    def arrays(self):
        """The dtype and the number of elements of each array of a launch."""
        return [(_COLUMNS[ty][0], columns * (1 if ty == "u32" else LINES)) for ty, columns in self.columns.items()]

    def show(self, contents):
        """Prints the lines from the arrays' bytes, those of an item together, in their order."""
        tables = {ty: memoryview(content).cast(_COLUMNS[ty][1]) for ty, content in zip(self.columns, contents)}
        total = tables["u32"][0]
        lines = sorted(range(min(total, LINES)), key=lambda line: tables["i64"][LINES + line])
        text = [part if isinstance(part, str) else self.value(part, tables, line) for line in lines for part in self.prints[tables["i64"][line]]]
        if total > LINES:
            text.append(f"kernel {self.name}: {total - LINES} more lines are lost: a launch keeps {LINES}\n")
        builtins.print(*text, sep="", end="")

    @staticmethod
    def value(part, tables, line):
        ty, column, place, how = part
        value = tables[column][place * LINES + line]
        if ty == "bool":
            value = bool(value)
        elif ty == "u64":
            value &= (1 << 64) - 1
        elif ty in _PLACES and how[1] == "":
            value = _shortest(value, ty)
        return _formatted(value, how)


def _literal(node):
    """The text of a format that has no values in it; None for others."""
    parts = [value.value for value in node.values if isinstance(value, ast.Constant)]
    return "".join(parts) if len(parts) == len(node.values) else None


def _formatted(value, how):
    conversion, spec = how
    if conversion != -1:
        value = {"r": repr, "s": str, "a": ascii}[chr(conversion)](value)
    return format(value, spec)


#: The places of the fraction of a type, and the exponent of its least number.
_PLACES = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149)}


def _shortest(value, ty="f32"):
    """The number with the fewest digits that is rounded to this one of the type."""
    if not math.isfinite(value) or value == 0:
        return value
    places, least = _PLACES[ty]
    exponent = max(math.frexp(value)[1] - places, least)
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        if math.ldexp(round(math.ldexp(short, -exponent)), exponent) == value:
            return short
    return value
