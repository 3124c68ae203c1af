"""Functions that kernels call. Their code is inserted at each call."""

import ast

from . import nodes
from .blocks import always_returns, has_return, leaves_loop, needs_flag
from .source import Source
from .state import Draft, Facts, Scope
from .values import Cpx, Frame, Static, Tup, Val

#: How deep functions may call each other.
_DEPTH = 16
#: Maximum number of calls whose code is put in. Functions that call each other twice double it at
#: each level.
_CALLS = 4096


class DeviceFunction:
    """A function that kernels call. Plain Python may call it too."""

    def __init__(self, function):
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.source = Source(function)

    def __call__(self, *arguments, **keywords):
        return self.__wrapped__(*arguments, **keywords)

    def __repr__(self):
        return f"<usm.device_func {self.__name__}>"


class Inline:
    """Methods of the compiler for functions of the user."""

    __slots__ = ()
    facts: Facts
    draft: Draft
    scope: Scope

    def inline_call(self, function, node):
        """The code of a `DeviceFunction` at the place of its call."""
        source = function.source
        if source.function in self.scope.callers or len(self.scope.callers) > _DEPTH:
            raise self.error(node, f"a recursion of `{function.__name__}`: kernels have none; write a loop")
        self.scope.calls += 1
        if self.scope.calls > _CALLS:
            raise self.error(node, f"more than {_CALLS} calls of functions are put in here: call them fewer times")
        tree = source.tree
        if isinstance(tree, ast.AsyncFunctionDef):
            raise source.error(tree, "an async function is not for kernels: write `def`")
        parameters = tree.args.posonlyargs + tree.args.args
        source.check_parameters("a function of kernels")
        if node.keywords or len(node.args) != len(parameters):
            names = ", ".join(parameter.arg for parameter in parameters)
            raise self.error(node, f"`{function.__name__}` has {len(parameters)} arguments ({names}), {len(node.args) + len(node.keywords)} are given")
        meanings = self.operands(node.args, self.expr)
        at, caller, loops = self.scope.at, self.scope.frame, self.scope.loops
        frame = Frame(f"{caller.key}/{caller.file}:{node.lineno}:{node.col_offset}", source, self.draft.file_of(source))
        variables = source.assigned_names()
        self.scope.loops = 0
        self.scope.callers.append(source.function)
        values = [self.as_reusable(value) if value.__class__ is Val else self.read_now(value) for value in meanings]
        self.scope.frame = frame
        for parameter, value, argument in zip(parameters, values, node.args):
            if parameter.arg in variables and value.__class__ is Static:
                # A number from outside, which becomes a variable.
                self.scope.frame = caller
                value = self.as_number(value, argument)
                self.scope.frame = frame
            if value.__class__ in (Val, Cpx) and parameter.arg in variables:
                self.bind_number(parameter.arg, value, parameter)
            else:
                frame.names[parameter.arg] = value
        frame.result = Returns(tree.body)
        if frame.result.needs_flag:
            frame.result.flag = self.temporary("bool")
            self.emit(nodes.set_variable(frame.result.flag, nodes.literal("bool", 0, at), at))
        self.block(tree.body)
        self.scope.at = at
        count = frame.result.count
        result = Static(None)
        if count is not None:
            if not frame.result.ends(tree.body):
                raise source.error(tree, f"`{function.__name__}` ends without a value on a path: end it with `return`")
            keys = [f"{frame.key}.return{place}" for place in range(abs(count))]
            packs = [self.facts.packs.get(key) for key in keys]
            if frame.result.flag is not None:
                # That they have values follows from the flag, which the nodes' verifier does not
                # know.
                self.scope.set_variables.difference_update(keys, *([f"{key}.0", f"{key}.1"] for key in keys))
            items = [self.read_variable(key, node) if pack is None else self.read_pack(pack, node) for key, pack in zip(keys, packs)]
            # Copies, because a later call may change the variables.
            items = [self.copy_numbers(item) for item in items]
            result = items[0] if count == -1 else Tup(items)
        self.scope.frame, self.scope.loops = caller, loops
        self.scope.callers.pop()
        return result

    def function_block(self, body):
        """A block in which `return` leaves the function, not the kernel."""
        returns = self.scope.frame.result
        for place, node in enumerate(body):
            if isinstance(node, ast.Return) or not has_return(node):
                self.statement(node)
                if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                    return
                continue
            rest = body[place + 1 :]
            if isinstance(node, ast.If):
                then_returns, other_returns = always_returns(node.body), always_returns(node.orelse)
                if not self.scope.loops and (then_returns or other_returns):
                    whole = ast.If(node.test, node.body + ([] if then_returns else rest), node.orelse + ([] if other_returns else rest))
                    self.statement(ast.copy_location(whole, node))
                    return
                self.statement(node)
                if self.scope.loops:
                    continue
            else:
                self.statement(node)
                if self.scope.loops:
                    at = self.scope.at
                    leave = nodes.block([nodes.leave("break", at)])
                    self.emit(nodes.branch(nodes.variable("bool", returns.flag, at), leave, nodes.EMPTY, at))
                    continue
            if rest:
                at = self.scope.at
                text, _ = self.nested_block(rest)
                self.emit(nodes.branch(nodes.variable("bool", returns.flag, at), nodes.EMPTY, text, at))
            return

    def return_to_caller(self, node):
        """`return` of a function that a kernel calls."""
        returns = self.scope.frame.result
        meaning = Static(None) if node.value is None else self.expr(node.value)
        if meaning.__class__ is Static and meaning.value is None:
            count = None
        else:
            items = meaning.items if meaning.__class__ is Tup else [meaning]
            count = len(items) if meaning.__class__ is Tup else -1
            items = [self.as_number(item, node) for item in items]
            for place, item in enumerate(items):
                self.bind_number(f"return{place}", item, node)
        if returns.is_reached and returns.count != count:
            raise self.error(node, "one `return` gives another number of values than another one")
        returns.is_reached, returns.count = True, count
        at = self.scope.at
        if returns.flag is not None:
            self.emit(nodes.set_variable(returns.flag, nodes.literal("bool", 1, at), at))
        if self.scope.loops:
            self.emit(nodes.leave("break", at))


class Returns:
    """The returns of a function: their number of values, and the flag that says one was reached."""

    __slots__ = ("conditions", "count", "flag", "is_reached", "needs_flag")

    def __init__(self, body):
        self.count = None
        self.is_reached = False
        self.flag = None
        self.needs_flag = needs_flag(body)
        # The conditions that are known when code is made, by their place.
        self.conditions = {}

    def ends(self, body):
        """Whether no path leaves a block at its end, as far as that can be seen."""
        for node in body:
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return True
            if isinstance(node, ast.If):
                condition = self.conditions.get((node.lineno, node.col_offset))
                if (condition is False or self.ends(node.body)) and (condition is True or self.ends(node.orelse)):
                    return True
            if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value and not leaves_loop(node.body):
                return True
        return False
