"""Statements of kernels: blocks, branches, returns, and what is refused."""

import ast

from . import nodes
from .assignments import Assignments
from .blocks import leaves
from .loops import Loops
from .state import Draft, Scope
from .values import Arr, Tup


class Statements:
    """Methods of the compiler that every statement goes through."""

    __slots__ = ()
    draft: Draft
    scope: Scope


    def block(self, body):
        """The statements of a block."""
        if self.scope.frame.key:
            self.function_block(body)
            return
        for node in body:
            self.statement(node)

    def statement(self, node):
        """One statement, by the class of its node."""
        self.scope.at = self.scope.place_of(node)
        method = self.STATEMENTS.get(node.__class__)
        if method is None:
            raise self.error(node, self.REFUSED_STATEMENTS.get(node.__class__, f"{type(node).__name__} is not for kernels"))
        method(self, node)

    def nested_block(self, body):
        """The text of a nested block, and the variables that have values at its end."""
        scope = self.scope
        outer, at, names = scope.begin_block(), scope.at, dict(scope.frame.names)
        self.block(body)
        scope.at = at
        self.forget_parts(names)
        statements, set_variables = scope.end_block(outer)
        return nodes.block(statements), set_variables

    def forget_parts(self, before):
        """Forgets names of parts of arrays that a block made: their indices are set in it only."""
        names = self.scope.frame.names
        for name, meaning in list(names.items()):
            if meaning is not before.get(name) and contains_part(meaning):
                if before.get(name) is None:
                    del names[name]
                else:
                    names[name] = before[name]

    def branch(self, node):
        """`if`."""
        condition, scope = self.condition(node.test), self.scope
        if condition.const is not None:
            # Known when code is made. The other branch is not compiled, as for `if DEBUG:`.
            if scope.frame.result is not None:
                scope.frame.result.conditions[node.lineno, node.col_offset] = bool(condition.const)
            self.block(node.body if condition.const else node.orelse)
            return
        at = scope.at
        before = set(scope.set_variables)
        then, set_by_then = self.nested_block(node.body)
        other, set_by_other = self.nested_block(node.orelse)
        then_leaves, other_leaves = leaves(node.body), leaves(node.orelse)
        if then_leaves and other_leaves:
            scope.set_variables = set_by_then | set_by_other
        elif then_leaves:
            scope.set_variables = set_by_other
        elif other_leaves:
            scope.set_variables = set_by_then
        else:
            scope.set_variables = before | (set_by_then & set_by_other)
        self.emit(nodes.branch(condition.text, then, other, at))

    def break_or_continue(self, node):
        """`break` or `continue`."""
        self.emit(nodes.leave("break" if isinstance(node, ast.Break) else "continue", self.scope.at))

    def return_statement(self, node):
        """`return` of a kernel, or of a function that it calls."""
        if self.scope.frame.key == "":
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                raise self.error(node, "a kernel returns nothing: write the result to an array")
            self.emit(nodes.leave("return", self.scope.at))
            return
        self.return_to_caller(node)

    def assertion(self, node):
        """`assert c, "text"`: an index, 1 where `c` is false, of an extent of one element."""
        text = ast.unparse(node.test)
        if node.msg is not None:
            if not isinstance(node.msg, ast.Constant) or not isinstance(node.msg.value, str):
                raise self.error(node.msg, "the message of an `assert` is a literal text in a kernel: it is made before a launch")
            text = f"{text}: {node.msg.value}"
        if not __debug__:
            return
        condition, at = self.truth(self.value(node.test)), self.scope.at
        extent = nodes.extent_space(nodes.literal("u64", 1, at))
        array = self.draft.new_array(f"assert {text}", "u64", extent, at)
        index = nodes.select("u64", condition, nodes.literal("u64", 0, at), nodes.literal("u64", 1, at), at)
        self.emit(nodes.set_variable(self.temporary("u64"), nodes.load("u64", array, index, at), at))

    def lone_expression(self, node):
        """An expression whose value is not used, such as a call or a docstring."""
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            self.call(node.value, is_statement=True)
            return
        self.expr(node.value)

    REFUSED_STATEMENTS = {
        ast.Try: "`try` is not for kernels: they raise nothing",
        ast.With: "`with` is not for kernels",
        ast.AsyncWith: "`with` is not for kernels",
        ast.AsyncFor: "`async` is not for kernels",
        ast.FunctionDef: "a function in a kernel: define it outside, with `@usm.device_func`",
        ast.AsyncFunctionDef: "`async` is not for kernels",
        ast.ClassDef: "a class is not for kernels",
        ast.Raise: "`raise` is not for kernels: write a code to an array",
        ast.Import: "`import` is not for kernels: import outside",
        ast.ImportFrom: "`import` is not for kernels: import outside",
        ast.Global: "`global` is not for kernels: names of the module are constants",
        ast.Nonlocal: "`nonlocal` is not for kernels: values of the closure are constants",
        ast.Delete: "`del` is not for kernels",
    }


def contains_part(meaning):
    """Whether a meaning of a name is, or has, a part of an array."""
    if meaning.__class__ is Tup:
        return any(contains_part(item) for item in meaning.items)
    return meaning.__class__ is Arr and meaning.whole is not None


Statements.STATEMENTS = {
    ast.Assign: Assignments.assign_targets,
    ast.AnnAssign: Assignments.assign_annotated,
    ast.AugAssign: Assignments.assign_augmented,
    ast.If: Statements.branch,
    ast.While: Loops.while_loop,
    ast.For: Loops.for_loop,
    ast.Break: Statements.break_or_continue,
    ast.Continue: Statements.break_or_continue,
    ast.Return: Statements.return_statement,
    ast.Expr: Statements.lone_expression,
    ast.Assert: Statements.assertion,
    ast.Pass: lambda self, node: None,
}
