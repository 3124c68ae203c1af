"""Compiles a function, for the types of its arguments, to the text of usm-kernel-ir's nodes."""

import ast

from . import nodes
from .atomics import Atomics
from .calls import Calls
from .comparisons import Comparisons
from .complexes import Complexes
from .conversions import Conversions
from .dpex import Dpex
from .expressions import Expressions
from .indexing import Indexing
from .inline import Inline
from .keys import ARRAY, FROM_ARRAY, FROM_EXTENT, FROM_OFFSET, FROM_SCALAR, FROM_STRIDE, MOST, RECORD, SCALAR
from .mathematics import Mathematics
from .memory import Memory
from .operators import Operators
from .order import Order
from .printing import Printing
from .source import Source
from .statements import Statements
from .structures import Layout, Structures, count_of, sorts_of
from .tuples import Tuples
from .types import COMPUTED, NAMES, SCALARS, STORED, promote
from .values import Arr, Cpx, Frame, Pack, Static, Tup, Val
from .work_items import WorkItems

#: The most rounds. A further round is needed when the type of a variable became wider.
_ROUNDS = 40


class Compiler(
    Statements,
    Expressions,
    Operators,
    Comparisons,
    Complexes,
    Indexing,
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

    Each round walks the whole function. It starts with the types that the round before found, until
    none changes.
    """

    def __init__(self, source, key):
        self.source = source
        head = key[0]
        self.dimensions, self.shares = head & 0xFF, bool(head >> 16)
        self.sorts = sorts_of(key[1:])
        self.argument_count = count_of(self.sorts)
        # The facts that a round finds for the next one.
        self.types = {}
        self.highs = {}
        self.unset = set()
        self.atomics = set()
        self.packs = {}
        # Functions of dispatchers, by the number of the dispatcher.
        self.functions = {}

    def make(self):
        """The text of the nodes, the sources of their parameters, tables and facts for a launch.

        The facts are extents, bounds, the log and pairs. An extent is the number of its array in
        the nodes, and an argument and its dimension. A bound is an argument, the limits of its
        values, and the type and the place that need them.
        Arguments of a log follow those of the kernel. Pairs are arrays of complex numbers. The last
        one is whether no two items race.
        """
        for _ in range(_ROUNDS):
            self.changed = False
            text = self.round()
            if not self.changed:
                return text, self.sources, self.tables, self.extent_origins, list(self.bounded.values()), self.log(), self.pairs, self.source.ordered
        raise self.source.error(self.source.tree, "the types of its variables do not converge; write casts")

    # One round.

    def round(self):
        """The text of the nodes with the types that are known now."""
        self.files = []
        self.numbers = {}
        self.arrays = []
        self.values = []
        self.variables = []
        self.parameters = []
        self.sources = []
        self.tables = []
        self.pairs = []
        self.logs = {}
        self.prints = []
        self.stored = set()
        self.extents = {}
        self.extent_origins = []
        self.fields = {}
        self.slices = {}
        self.constants = {}
        self.weak = {}
        self.bounded = {}
        self.depth = 0
        self.loops = []
        self.stack = [self.source.function]
        self.inlined = 0
        self.known = set()
        self.out = []
        tree = self.source.tree
        if isinstance(tree, ast.AsyncFunctionDef):
            raise self.source.error(tree, "an async function is no kernel: write `def`")
        self.frame = Frame("", self.source, self.file_of(self.source))
        self.at = self.place_of(tree)
        place = self.at
        self.bind_parameters(tree)
        self.block(tree.body)
        zeros = [nodes.set_variable(self.numbers[key], self.zero(self.types[key], place), place) for key in sorted(self.unset) if key in self.numbers]
        arrays = [self.array_text(array) for array in self.arrays]
        values = [nodes.value_declaration(*value) for value in self.values]
        variables = [nodes.variable_declaration(name, STORED[self.types[key]], at) for key, name, at in self.variables]
        files = [source.file for source in self.files]
        sources = []
        for sort, argument, dimension in self.sources:
            sources.append((sort, argument, int(argument in self.stored or argument in self.atomics) if sort == FROM_ARRAY else dimension))
        self.sources = sources
        name = self.source.function.__name__
        return nodes.kernel(name, self.dimensions, files, arrays, values, variables, self.parameters, (zeros, self.out), place)

    @staticmethod
    def zero(ty, at):
        return nodes.literal(STORED[ty], 0, at)

    def array_text(self, array):
        name, ty, space, at, argument = array
        if space == "param":
            if argument in self.atomics:
                space = "atomic"
            else:
                space = "write" if argument in self.stored or self.shares else "read"
        return nodes.array_declaration(name, ty, space, at)

    def file_of(self, source):
        for number, known in enumerate(self.files):
            if known.file == source.file:
                return number
        self.files.append(source)
        return len(self.files) - 1

    def place_of(self, node):
        line, column = self.frame.source.place(node)
        return nodes.place(self.frame.file, line, column)

    def located(self, place):
        """A place of the nodes as users know it."""
        file, line, column = nodes.parts_of_place(place)
        return f"{self.files[int(file)].file}:{line}:{column}"

    def error(self, node, message):
        return self.frame.source.error(node, message)

    # Parameters.

    def bind_parameters(self, tree):
        """Gives the parameters their meaning, by the kinds and types in the key."""
        parameters = tree.args.posonlyargs + tree.args.args
        if self.source.item is not None:
            self.frame.names[parameters[0].arg] = Static(self.source.item)
            parameters = parameters[1:]
        number = 0
        for parameter, sort in zip(parameters, self.sorts):
            self.at = self.place_of(parameter)
            value = self.parameter(parameter.arg, number, sort)
            if value.__class__ in (Val, Cpx):
                self.bind_parameter(parameter.arg, value, parameter)
            else:
                self.frame.names[parameter.arg] = value
            number += count_of(sort)

    def parameter(self, name, number, sort):
        """The meaning of a parameter whose first argument in a launch has this number."""
        if sort.__class__ is list:
            items = []
            for place, item in enumerate(sort):
                items.append(self.parameter(f"{name}[{place}]", number, item))
                number += count_of(item)
            return Tup(items)
        if sort.__class__ is Layout:
            by_value = sort.head >> 24 == RECORD
            return self.parameter_record(name, number, sort.fields) if by_value else self.parameter_structures(name, number, sort)
        ty = SCALARS[sort & 0xFF]
        dimensions, is_complex = sort >> 16 & 0xFF, bool(sort >> 10 & 1)
        if sort >> 24 == SCALAR and is_complex:
            weak = {"f64": "wf"}.get(ty, ty)
            return Cpx(*(Val(self.parameter_value(f"{name}.{part}", ty, (FROM_SCALAR, number, place)), weak) for place, part in enumerate(("real", "imag"))))
        if sort >> 24 == SCALAR:
            weak = {"i64": "wi", "f64": "wf"}.get(ty, ty)
            value = self.parameter_value(name, ty, (FROM_SCALAR, number, 0))
            value = Val(self.computed(value, ty), COMPUTED.get(weak, weak))
            if weak == "wi":
                self.weak[value.text] = number
            return value
        if sort >> 24 == ARRAY:
            return self.parameter_array(name, number, ty, dimensions, bool(sort >> 8 & 1), is_complex)
        return self.parameter_local(name, number, ty, dimensions, is_complex)

    def bind_parameter(self, name, value, node):
        """Gives the name of a number its value: a variable's, if the kernel sets it."""
        if name in self.source.assigned_names():
            self.bind_number(name, value, node)
        else:
            self.frame.names[name] = value

    def parameter_value(self, name, ty, source):
        self.values.append((name, ty, self.at))
        self.parameters.append(nodes.value_parameter(len(self.values) - 1))
        self.sources.append(source)
        return nodes.value(ty, len(self.values) - 1, self.at)

    def parameter_array(self, name, number, ty, dimensions, strided, is_complex):
        array = self.new_array(name, ty, "param", number, is_complex)
        self.parameters.append(nodes.array_parameter(array))
        self.sources.append((FROM_ARRAY, number, 0))
        at = self.at
        if dimensions == 1 and not strided and not is_complex:
            extents = [Val(nodes.cast("i64", nodes.length("u64", array, at), at), "i64", None, MOST)]
            return Arr(name, array, ty, extents, "param", number)
        extents = []
        for dimension in range(dimensions):
            text = self.parameter_value(f"{name}.shape[{dimension}]", "u64", (FROM_EXTENT, number, dimension))
            extents.append(Val(nodes.cast("i64", text, at), "i64", None, MOST))
        if not strided:
            return Arr(name, array, ty, extents, "param", number, is_complex=is_complex)
        strides = [self.parameter_value(f"{name}.strides[{d}]", "i64", (FROM_STRIDE, number, d)) for d in range(dimensions)]
        strides = [nodes.cast("u64", stride, at) for stride in strides]
        offset = self.parameter_value(f"{name}.offset", "u64", (FROM_OFFSET, number, 0))
        return Arr(name, array, ty, extents, "param", number, strides, offset, is_complex)

    def parameter_local(self, name, number, ty, dimensions, is_complex):
        extents = []
        length = None
        for dimension in range(dimensions):
            text = self.parameter_value(f"{name}.shape[{dimension}]", "u64", (FROM_EXTENT, number, dimension))
            extents.append(Val(nodes.cast("i64", text, self.at), "i64", None, MOST))
            length = text if length is None else nodes.binary("mul", "u64", length, text, self.at)
        length = length or nodes.literal("u64", 1, self.at)
        if is_complex:
            length = nodes.binary("mul", "u64", length, nodes.literal("u64", 2, self.at), self.at)
        array = self.new_array(name, ty, nodes.local_space(length), is_complex=is_complex)
        return Arr(name, array, ty, extents, "local", number, is_complex=is_complex)

    def new_array(self, name, ty, space, argument=-1, is_complex=False):
        if is_complex:
            self.pairs.append(len(self.arrays))
        self.arrays.append((name, ty, space, self.at, argument))
        return len(self.arrays) - 1

    # Variables.

    def variable(self, key, name):
        """The number of the variable of a key."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.variables)
            self.variables.append((key, name, self.at))
        return number

    def temporary(self, ty):
        """The number of a new variable."""
        key = f"{self.frame.key}#{len(self.variables)}"
        self.types[key] = ty
        return self.variable(key, "t")

    def set_temporary(self, value):
        """A value, kept in a temporary variable unless it is a known number."""
        if value.const is not None:
            return value
        ty = value.ty
        number = self.temporary(ty)
        self.out.append(nodes.set_variable(number, value.text, self.at))
        return Val(nodes.variable(STORED[ty], number, self.at), ty, None, value.high)

    def assign(self, name, value, node):
        """Sets a variable. Its type is the promotion of the types of all its values."""
        key = f"{self.frame.key}.{name}"
        before = self.types.get(key)
        ty = value.ty
        if before is None:
            self.types[key] = ty
            self.highs[key] = value.high
        else:
            if before != ty:
                ty = promote(before, ty)
                if ty is None:
                    raise self.error(
                        node, f"`{name}` is {NAMES[before]} elsewhere and {NAMES[value.ty]} here: cast one of them"
                    )
                if ty != before:
                    self.types[key] = ty
                    self.changed = True
            high = self.highs[key]
            if high is not None and (value.high is None or value.high > high):
                # A bound that grew twice is given up, so that the rounds end.
                self.highs[key] = value.high if value.high is not None and f"{key}+" not in self.highs else None
                self.highs[f"{key}+"] = None
                self.changed = True
        if not self.fits(value, ty):
            raise self.error(node, f"{value.const} does not fit {NAMES[ty]}, the type of `{name}` elsewhere: cast one of them")
        number = self.variable(key, name)
        self.out.append(nodes.set_variable(number, self.to(value, ty), self.at))
        self.known.add(key)
        self.frame.names[name] = key

    def read_variable(self, key, node):
        """The value of a variable; one that may be unset begins as zero."""
        name = key.rpartition(".")[2]
        ty = self.types[key]
        if key not in self.known and key not in self.unset:
            self.unset.add(key)
            self.changed = True
        return Val(nodes.variable(STORED[ty], self.variable(key, name), self.at), ty, None, self.highs.get(key))

    # Names.

    def lookup(self, node):
        """The meaning of a name: a variable, a parameter, or an object from outside the kernel."""
        name = node.id
        frame = self.frame
        found = frame.names.get(name)
        if found.__class__ is Pack:
            return self.read_pack(found, node)
        if found is not None:
            return self.read_variable(found, node) if found.__class__ is str else found
        if frame.outside is None:
            frame.outside = frame.source.outside()
        if name in frame.source.assigned_names():
            key = f"{frame.key}.{name}"
            if key in self.packs:
                frame.names[name] = self.packs[key]
                return self.lookup(node)
            if key in self.types:
                # Set by a later line of an enclosing loop.
                frame.names[name] = key
                return self.read_variable(key, node)
            raise self.error(node, f"`{name}` has no value here: set it before")
        if name in frame.outside:
            return Static(frame.outside[name])
        raise self.error(node, f"unknown name `{name}`: parameters, variables, and names of the module can be used")


def make(source: Source, key):
    """The result of `Compiler.make` for a function and a key."""
    try:
        return Compiler(source, key).make()
    except RecursionError:
        raise source.error(source.tree, "expressions or statements lie too deeply in each other") from None


__all__ = ["Compiler", "make"]
