"""What the compiler of kernels knows: between rounds, and in one round.

Each class has the attributes of one purpose. Methods of the compiler say by annotations which of
them they use.
"""

from . import nodes
from .keys import FROM_ARRAY
from .types import IR_TYPE


class Facts:
    """What the rounds found so far. A round begins with the facts of the one before it.

    ``types`` has the type of each variable by its key, and ``highs`` the upper bound of its values,
    as `Val.high`. ``unset_variables`` has the keys of variables that are read where they may have
    no value. ``packs`` has the variables that are tuples or complex numbers. ``atomics`` has the
    arguments with atomic operations. ``functions`` has the functions of dispatchers, by the
    dispatcher's id. ``has_changed``: a fact was added in this round, so a further one is needed.
    """

    __slots__ = ("atomics", "functions", "has_changed", "highs", "packs", "types", "unset_variables")

    def __init__(self):
        self.types = {}
        self.highs = {}
        self.unset_variables = set()
        self.packs = {}
        self.atomics = set()
        self.functions = {}
        self.has_changed = False


class Draft:
    """The declarations that one round has written.

    ``files`` has the source of each file. ``arrays``, ``values`` and ``variables`` are declarations
    by their numbers, ``numbers`` the numbers of variables by their keys. ``parameters`` are those
    of the nodes, and ``sources`` says where a launch finds each. ``tables`` has the bytes of
    constant memory, ``pairs`` the arrays of complex numbers. ``stored_arguments`` are the arrays of
    a launch that the kernel sets. ``fields`` has the arrays of fields that the kernel names,
    ``constants`` the tables by the ids of their objects.
    """

    __slots__ = (
        "arrays",
        "constants",
        "fields",
        "files",
        "numbers",
        "pairs",
        "parameters",
        "sources",
        "stored_arguments",
        "tables",
        "values",
        "variables",
    )

    def __init__(self):
        self.files = []
        self.arrays = []
        self.values = []
        self.variables = []
        self.numbers = {}
        self.parameters = []
        self.sources = []
        self.tables = []
        self.pairs = []
        self.stored_arguments = set()
        self.fields = {}
        self.constants = {}

    def file_of(self, source):
        """The number of a source's file."""
        for number, other in enumerate(self.files):
            if other.file == source.file:
                return number
        self.files.append(source)
        return len(self.files) - 1

    def describe_place(self, at):
        """A place of the nodes as users know it."""
        file, line, column = nodes.parts_of_place(at)
        return f"{self.files[int(file)].file}:{line}:{column}"

    def variable(self, key, name, at):
        """The number of the variable of a key."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.variables)
            self.variables.append((key, name, at))
        return number

    def new_array(self, name, ty, space, at, argument=-1, is_complex=False):
        """The number of a new array. The space of one from a launch is "param"."""
        if is_complex:
            self.pairs.append(len(self.arrays))
        self.arrays.append((name, ty, space, at, argument))
        return len(self.arrays) - 1

    def array_of_argument(self, name, ty, argument, at, is_complex=False):
        """The number of a new array that a launch passes as this argument."""
        array = self.new_array(name, ty, "param", at, argument, is_complex)
        self.parameters.append(nodes.array_parameter(array))
        self.sources.append((FROM_ARRAY, argument, 0))
        return array

    def value_of_source(self, name, ty, source, at):
        """A new number that a launch takes from a source."""
        number = len(self.values)
        self.values.append((name, ty, at))
        self.parameters.append(nodes.value_parameter(number))
        self.sources.append(source)
        return nodes.value(ty, number, at)

    def text(self, name, signature, facts, statements, at):
        """The text of the whole kernel. Variables that may be unset begin as zero."""
        types = facts.types
        zeros = []
        for key in sorted(facts.unset_variables):
            if key in self.numbers:
                zeros.append(nodes.set_variable(self.numbers[key], nodes.literal(IR_TYPE[types[key]], 0, at), at))
        arrays = []
        for array, ty, space, place, argument in self.arrays:
            if space == "param":
                space = "write" if argument in self.stored_arguments or signature.shares else "read"
                space = "atomic" if argument in facts.atomics else space
            arrays.append(nodes.array_declaration(array, ty, space, place))
        values = [nodes.value_declaration(*value) for value in self.values]
        variables = [nodes.variable_declaration(variable, IR_TYPE[types[key]], place) for key, variable, place in self.variables]
        files = [source.file for source in self.files]
        return nodes.kernel(name, signature.dimensions, files, arrays, values, variables, self.parameters, (zeros, statements), at)

    def sources_of_launch(self, facts):
        """The sources of the parameters; those of arrays say whether the kernel changes them."""
        arguments = self.stored_arguments | facts.atomics
        return [(sort, argument, int(argument in arguments) if sort == FROM_ARRAY else number) for sort, argument, number in self.sources]


class Checks:
    """What a launch checks before its items run.

    ``extents`` has the array that proves the indices of a dimension, by an array and the dimension,
    and ``origins`` the argument and the dimension behind each. ``slices`` has those of slices, by
    an array and the text of a length. ``integers`` has the arguments that are Python's integers, by
    the texts of their values, and ``bounds`` the limits that a launch holds them to.
    """

    __slots__ = ("bounds", "extents", "integers", "origins", "slices")

    def __init__(self):
        self.extents = {}
        self.origins = []
        self.slices = {}
        self.integers = {}
        self.bounds = {}


class Lines:
    """What the kernel prints: ``prints`` has the parts of each `print` in the kernel.

    ``arrays`` has the number of the array with the values of a type, and its number of columns.
    """

    __slots__ = ("arrays", "prints")

    def __init__(self):
        self.arrays = {}
        self.prints = []


class Scope:
    """Where a round is: the function, its blocks, and the statements that are being written.

    ``frame`` has the names of the function. ``at`` is the place of the node that is read.
    ``statements`` are those of the innermost block so far. ``set_variables`` has the keys of
    variables that have a value on every path to here. ``depth`` counts the blocks around, ``loops``
    the loops of the function. ``callers`` are the functions that are being put in, each called by
    the one before it, and ``calls`` counts all that were.
    """

    __slots__ = ("at", "callers", "calls", "depth", "frame", "loops", "set_variables", "statements")

    def __init__(self, frame):
        self.frame = frame
        self.at = None
        self.statements = []
        self.set_variables = set()
        self.depth = 0
        self.loops = 0
        self.callers = [frame.source.function]
        self.calls = 0

    def place_of(self, node):
        """The place of a node of the function's tree."""
        return nodes.place(self.frame.file, *self.frame.source.place(node))

    def begin_block(self):
        """Begins a nested block. `end_block` takes the result."""
        outer = self.statements, set(self.set_variables)
        self.statements = []
        self.depth += 1
        return outer

    def end_block(self, outer):
        """Ends a nested block: its statements, and the variables that have values at its end."""
        statements, set_variables = self.statements, self.set_variables
        self.statements, self.set_variables = outer
        self.depth -= 1
        return statements, set_variables
