"""The syntax tree of a function, with the file and line of each node."""

import __future__

import ast
import copy
import dis
import inspect
import itertools
import linecache
import os
import re
import time

from ..errors import KernelError
from .matches import Branches

# The most levels of a syntax tree. The nodes of a kernel may have 96; Python's tree needs more,
# because constants fold, and names and arguments have levels of their own.
DEPTH = 160


class Source:
    """A function's syntax tree, and the meaning of names from outside it."""

    __slots__ = ("file", "function", "is_ordered", "item", "line", "names", "sub_group", "tree", "wide")

    def __init__(self, function):
        code = getattr(function, "__code__", None)
        if code is None or getattr(function, "__globals__", None) is None:
            raise KernelError(f"{function!r} is no function of Python with a source: decorate a `def`")
        self.function = function
        # A name with bytes of no character, which are no text of the nodes.
        self.file = code.co_filename.encode(errors="backslashreplace").decode()
        self.tree, self.line, self.wide = _tree(function, code)
        self.names = None
        self.item = None
        self.sub_group = 32
        #: Whether the author knows that no two items race in any launch.
        self.is_ordered = False
        if any(isinstance(node, getattr(ast, "Match", ())) for node in ast.walk(self.tree)):
            self.tree = Branches(self.error).visit(self.tree)
        self.check_depth()

    def check_depth(self):
        """Refuses a tree that is too deep for the compiler, which is recursive."""
        deepest, culprit, rest = 0, None, [(self.tree, 0)]
        while rest:
            node, depth = rest.pop()
            # An operator with many operands becomes as many nested nodes, a comparison as many
            # nested conditions with a block each.
            depth += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 2 * len(node.ops) - 1 if isinstance(node, ast.Compare) else 1
            if depth > DEPTH and hasattr(node, "lineno"):
                culprit = min(culprit or node, node, key=lambda node: (node.lineno, node.col_offset))
            deepest = max(deepest, depth)
            rest.extend((child, depth) for child in ast.iter_child_nodes(node))
        if culprit is not None:
            raise self.error(culprit, f"nested {deepest} levels deep, {DEPTH} are allowed")

    def check_parameters(self, what):
        """Refuses parameters that are no plain names."""
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(self.tree, f"parameters of {what} are plain names, without `*`, `**` and defaults")

    def outer_names(self):
        """Names of the closure, the module and the built-ins, as they are when code is made."""
        import builtins

        names = dict(vars(builtins))
        names.update(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or ()):
            try:
                names[name] = cell.cell_contents
            except ValueError:
                names.pop(name, None)
        return names

    def assigned_names(self):
        """The names that the function sets."""
        if self.names is None:
            self.names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return self.names

    def is_set_often(self, name):
        """Whether the function sets a name at several places."""
        places = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        return len(list(itertools.islice(places, 2))) == 2

    def place(self, node):
        """Line and column of a node, both from 1."""
        column = node.col_offset
        if self.wide is not None:
            # Python counts bytes of UTF-8, editors count characters.
            column = len(self.wide[node.lineno - 1][:column].decode(errors="ignore"))
        return node.lineno + self.line, column + 1

    def error(self, node, message):
        """A `KernelError` whose message begins with the place of a node."""
        line, column = self.place(node)
        return KernelError(f"{self.file}:{line}:{column}: {message}")


def with_lines(message):
    """A message, and below it the lines of source that it names."""
    lines = {}
    for file, line in re.findall(r"(?:^|\s)(\S[^\n]*?):(\d+):\d+", message):
        text = linecache.getline(file, int(line)).strip()
        if text:
            lines.setdefault(f"{line}: {text}")
    return "\n    ".join([message, *lines])


def _tree(function, code):
    first = code.co_firstlineno
    # A module that was changed and loaded again has new lines.
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines or first > len(lines):
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise KernelError(
                f"{code.co_filename}:{first}:1: kernel {function.__name__} has no source to read: define it in a file, "
                "a notebook's cell, or register the text with `linecache`"
            ) from None
        block = lines
    else:
        block = _block(lines[first - 1 :])
    text = "".join(block)
    tree = _parse(text)
    if tree is None:
        block = inspect.getblock(lines[first - 1 :])
        tree = _parse("".join(block))
    definition = tree and next((node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if definition is None or definition.name != function.__name__:
        raise KernelError(f"{code.co_filename}:{first}:1: {function.__name__!r} is no `def` of its own: lambdas are no kernels")
    if _is_recent(code.co_filename) and not _is_source_of(definition, code):
        raise KernelError(
            f"{code.co_filename}:{first}:1: kernel {function.__name__}: the file was changed after Python read it: load it again"
        )
    extra_lines = _is_indented(text)
    wide = None if text.isascii() else [b""] * extra_lines + [line.encode() for line in "".join(block).split("\n")]
    return definition, first - 1 - extra_lines, wide


# A minute before the first kernel: files that are older were not changed after their import.
_START = time.time() - 60
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _is_recent(file):
    """Whether a file may have been changed since its import. Notebooks have no files."""
    try:
        return os.stat(file).st_mtime >= _START
    except (OSError, ValueError):
        return False


def _is_source_of(tree, code):
    """Whether a definition is that of the code: a file may be changed after it was imported."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars}
    if any("__" in name for name in names) or any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        # A class changes such names, and test runners change such statements.
        return True
    plain = copy.copy(tree)
    plain.decorator_list = []
    # Names of the closure are those of a function around it.
    first = "None" if code.co_name in code.co_freevars else f"global {code.co_name}"
    outer = ast.parse(f"def around():\n    {first}\n    {' = '.join((*code.co_freevars, 'None'))}").body[0]
    outer.body.append(plain)
    try:
        result = compile(ast.Module([outer], []), code.co_filename, "exec", code.co_flags & _FUTURE, True)
        for name in ("around", code.co_name):
            result = next(constant for constant in result.co_consts if inspect.iscode(constant) and constant.co_name == name)
    except (SyntaxError, ValueError, StopIteration, RecursionError, MemoryError):
        # The compiler of kernels says what it refuses.
        return True

    return _content(result) == _content(code)


# Calls and the names that they call: these instructions also depend on the module's imports.
_CALLS = {
    dis.opmap.get(name)
    for name in ("CACHE", "CALL", "EXTENDED_ARG", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_METHOD", "NOP", "PRECALL", "PUSH_NULL")
}
_JUMPS = {*dis.hasjrel, *dis.hasjabs}


def _content(code):
    """What two compilations of one text have in common."""
    steps = zip(code.co_code[::2], code.co_code[1::2])
    steps = [(step, 0 if step in _JUMPS else argument) for step, argument in steps if step not in _CALLS]
    constants = [_content(constant) if inspect.iscode(constant) else (type(constant), repr(constant)) for constant in code.co_consts]
    return steps, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _parse(text):
    """The tree of a definition. Its comments and texts may have less indentation than the rest."""
    try:
        tree = ast.parse(f"if True:\n{text}" if _is_indented(text) else text)
    except SyntaxError:
        return None
    return tree.body[0] if _is_indented(text) else tree


def _is_indented(text):
    return text[:1] in (" ", "\t")


def _block(lines):
    """The lines of the definition that begins at the first line, by indentation."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    inside = False
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or text[0] == "#":
            continue
        spaces = len(line) - len(line.lstrip())
        if inside and spaces <= indent and text[0] not in ")]}":
            return lines[:number]
        if spaces <= indent and text.startswith(("def ", "async ", "class ")):
            inside = True
    return lines
