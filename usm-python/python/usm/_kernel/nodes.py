"""The text of nodes: the one place that knows how usm-kernel-ir's text form is written.

Each function gives the text of one node. ``ty`` is the name of a type of elements, ``at`` the place
in the source that a message about the node names, as `place` writes it. Operands are texts of
nodes. Variables, values and arrays are named by their numbers among the kernel's own.
"""

import re

#: A block without statements.
EMPTY = "(do)"

# Declarations.


def place(file, line, column):
    """A place in the source: the number of its file, and its line and column, both from 1."""
    return f"@{file}:{line}:{column}"


def parts_of_place(at):
    """The number of the file, the line and the column of a place, as texts."""
    return at[1:].split(":")


def quoted(text):
    """A text in quotes, as names and files are written."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def kernel(name, dimensions, files, arrays, values, variables, parameters, body, at):
    """A kernel. Its lists are texts; the body is statements in groups, as `block` has them."""
    declarations = "".join((*arrays, *values, *variables))
    files, parameters = " ".join(map(quoted, files)), " ".join(parameters)
    return f"(kernel {quoted(name)} {dimensions} {at}(files {files}){declarations}(parameters {parameters}){block(*body)})"


def array_declaration(name, ty, space, at):
    """An array of a space: `read`, `write` or `atomic` memory of a launch, or one made below."""
    return f"(array {quoted(name)} {ty} {space} {at})"


def value_declaration(name, ty, at):
    """A number that the launch passes."""
    return f'(value "{name}" {ty} {at})'


def variable_declaration(name, ty, at):
    """A variable of the item."""
    return f'(variable "{name}" {ty} {at})'


def local_space(length):
    """Memory of a group; the length is a node that a launch knows."""
    return f"(local {length})"


def private_space(count):
    """Memory of an item, of this many elements."""
    return f"(private {count})"


def constant_space(count):
    """A table of this many elements."""
    return f"(constant {count})"


def extent_space(length):
    """An array whose element is its index. A load proves or checks that the index is below."""
    return f"(extent {length})"


def array_parameter(array):
    """A parameter that is an array."""
    return f"#{array}"


def value_parameter(value):
    """A parameter that is a number."""
    return f"%{value}"


# Values.


def literal(ty, bits, at):
    """A known number, by its bits as an integer."""
    return f"(lit {ty} {bits:#x} {at})"


def variable(ty, number, at):
    """What a variable holds now."""
    return f"(var {ty} ${number} {at})"


def value(ty, number, at):
    """A number that the launch passes."""
    return f"(val {ty} %{number} {at})"


def length(ty, array, at):
    """The number of elements of an array of the launch."""
    return f"(len {ty} #{array} {at})"


def query(word, ty, dimension, at):
    """An id or a size of the range: `global-id`, `local-size`, `groups` and the like."""
    return f"({word} {ty} {dimension} {at})"


def load(ty, array, index, at):
    """The element at an index."""
    return f"(load {ty} #{array} {index} {at})"


def cast(ty, operand, at):
    """The operand as a number of another type; integers wrap around."""
    return f"(cast {ty} {operand} {at})"


def same_bits(ty, operand, at):
    """The number of another type, of the same size, that has the operand's bits."""
    return f"(bits {ty} {operand} {at})"


def unary(operator, ty, operand, at):
    """`neg`, `not`, or a function of one number, which has the operand's type."""
    return f"({operator} {ty} {operand} {at})"


def binary(operator, ty, left, right, at):
    """`add`, `max`, `shl` and the like of two operands of the result's type."""
    return f"({operator} {ty} {left} {right} {at})"


def function(name, ty, operands, at):
    """A built-in function of numbers of one type, by its name among the nodes."""
    return f"({name} {ty} {' '.join(operands)} {at})"


def comparison(operator, left, right, at):
    """`eq`, `ne`, `lt`, `le`, `gt` or `ge` of two operands of one type: a bool."""
    return f"({operator} bool {left} {right} {at})"


def negation(operand, at):
    """Whether a bool is false."""
    return f"(not bool {operand} {at})"


def and_then(left, right, at):
    """Whether both are true; the right one is evaluated only if the left one is true."""
    return f"(and-then bool {left} {right} {at})"


def or_else(left, right, at):
    """Whether one is true; the right one is evaluated only if the left one is false."""
    return f"(or-else bool {left} {right} {at})"


def select(ty, condition, value, other, at):
    """One of two values, which are both evaluated."""
    return f"(select {ty} {condition} {value} {other} {at})"


class Formula:
    """Values of one type at one place, where an expression has many of them."""

    __slots__ = ("at", "ty")

    def __init__(self, ty, at):
        self.ty = ty
        self.at = at

    def literal(self, bits):
        """A known number, by its bits."""
        return literal(self.ty, bits, self.at)

    def unary(self, operator, operand):
        """An operator or a function of one number."""
        return unary(operator, self.ty, operand, self.at)

    def binary(self, operator, left, right):
        """An operator of two numbers."""
        return binary(operator, self.ty, left, right, self.at)

    def comparison(self, operator, left, right):
        """A comparison: a bool."""
        return comparison(operator, left, right, self.at)

    def and_then(self, left, right):
        """Whether both are true."""
        return and_then(left, right, self.at)

    def or_else(self, left, right):
        """Whether one is true."""
        return or_else(left, right, self.at)

    def select(self, condition, value, other):
        """One of two numbers."""
        return select(self.ty, condition, value, other, self.at)


# Statements.


def block(*groups):
    """Statements in their order, as a node. A group is a list of them."""
    return f"(do {' '.join([' '.join(group) for group in groups])})"


def statements_of(block):
    """The statements of a block, as one text."""
    return block[4:-1]


def set_variable(number, value, at):
    """Sets a variable."""
    return f"(set ${number} {value} {at})"


def store(array, index, value, at):
    """Sets the element at an index."""
    return f"(store #{array} {index} {value} {at})"


def branch(condition, then, other, at):
    """`if`: one of two blocks."""
    return f"(if {condition} {then} {other} {at})"


def while_loop(condition, body, at):
    """A block that is repeated as long as the condition is true."""
    return f"(while {condition} {body} {at})"


def for_loop(variable, start, end, step, body, at):
    """A block for each number of a range, which the variable holds."""
    return f"(for ${variable} {start} {end} {step} {body} {at})"


def leave(word, at):
    """`break`, `continue` or `return`."""
    return f"({word} {at})"


def fence(word, flags, at):
    """A `barrier` or a `fence`. The flags are bits: 1 is local memory, 2 global memory."""
    return f"({word} {_FLAGS[flags]} {at})"


_FLAGS = ("", "local", "global", "local global")


def atomic(operator, array, index, value, old, at):
    """An atomic change of an element. The variable `old`, if any, gets what was there before."""
    return f"(atomic {operator} #{array} {index} {value}{_result(old)} {at})"


def compare_exchange(array, index, expected, value, old, at):
    """Sets an element that is as expected. `old` is that of `atomic`."""
    return f"(compare-exchange #{array} {index} {expected} {value}{_result(old)} {at})"


def _result(variable):
    return "" if variable is None else f" ${variable}"


def collect(way, operator, result, value, at, sub_group=None):
    """Combines the values of a group, or of sub-groups of this many items.

    The way is `reduce`, `inclusive` or `exclusive`.
    """
    items = "collect" if sub_group is None else f"sub-group {sub_group}"
    return f"({items} {way} {operator} ${result} {value} {at})"


def broadcast(result, value, item, at):
    """The value of one item of the group."""
    return f"(broadcast ${result} {value} {item} {at})"


def shuffle(sub_group, way, result, value, lane, at):
    """The value of another lane of the sub-group: `shuffle`, `xor`, `up` or `down`."""
    return f"(sub-group {sub_group} {way} ${result} {value} {lane} {at})"


def sub_group_query(sub_group, word, result, at):
    """`size`, `id`, `local-id` or `count` of sub-groups of this many items."""
    return f"(sub-group {sub_group} {word} ${result} {at})"


# Questions about a text.


def is_variable(text):
    """Whether a node is what a variable holds."""
    return text.startswith("(var ")


def is_value(text):
    """Whether a node is a number that the launch passes."""
    return text.startswith("(val ")


def reads_variables(text):
    """Whether a node, or one in it, is what a variable holds."""
    return "(var " in text


def number_of_variable(text):
    """The number of the variable that a node is, as a text."""
    return text.split()[2][1:]


def without_places(text):
    """The text of nodes for a comparison with others."""
    return re.sub(r" @[0-9:]+", "", text)


def words_of(text):
    """The first words of all nodes in a text."""
    return set(re.findall(r"\(([a-z0-9_-]+)", text))
