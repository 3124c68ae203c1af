"""Functions that kernels call. Their code is inserted at each call."""

import ast

from . import nodes
from .source import Source
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

    def inline_call(self, function, node):
        """The code of a `DeviceFunction` at the place of its call."""
        source = function.source
        if source.function in self.stack or len(self.stack) > _DEPTH:
            raise self.error(node, f"a recursion of `{function.__name__}`: kernels have none; write a loop")
        self.inlined += 1
        if self.inlined > _CALLS:
            raise self.error(node, f"more than {_CALLS} calls of functions are put in here: call them fewer times")
        tree = source.tree
        if isinstance(tree, ast.AsyncFunctionDef):
            raise source.error(tree, "an async function is not for kernels: write `def`")
        parameters = tree.args.posonlyargs + tree.args.args
        source.check_parameters("a function of kernels")
        if node.keywords or len(node.args) != len(parameters):
            given = ", ".join(parameter.arg for parameter in parameters)
            raise self.error(node, f"`{function.__name__}` has {len(parameters)} arguments ({given}), {len(node.args) + len(node.keywords)} are given")
        found = []
        for one in node.args:
            start = len(self.out)
            value = self.expr(one)
            if len(self.out) != start:
                kept = [value for value in found if value.__class__ is Val]
                self.spill(kept, start)
                kept.reverse()
                found = [kept.pop() if value.__class__ is Val else value for value in found]
            found.append(value)
        at, caller, loops = self.at, self.frame, self.loops
        frame = Frame(f"{caller.key}/{caller.file}:{node.lineno}:{node.col_offset}", source, self.file_of(source))
        changed = source.assigned_names()
        self.loops = []
        self.stack.append(source.function)
        values = [self.reusable(value) if value.__class__ is Val else value for value in found]
        self.frame = frame
        for parameter, value, given in zip(parameters, values, node.args):
            if parameter.arg in changed and value.__class__ is Static:
                # A number from outside, which becomes a variable.
                self.frame = caller
                value = self.as_number(value, given)
                self.frame = frame
            if value.__class__ in (Val, Cpx) and parameter.arg in changed:
                self.bind_number(parameter.arg, value, parameter)
            else:
                frame.names[parameter.arg] = value
        frame.result = Returns(tree.body)
        if frame.result.flagged:
            frame.result.flag = self.temporary("bool")
            self.out.append(nodes.set_variable(frame.result.flag, nodes.literal("bool", 0, at), at))
        self.block(tree.body)
        self.at = at
        count = frame.result.count
        result = Static(None)
        if count is not None:
            if not frame.result.ends(tree.body):
                raise source.error(tree, f"`{function.__name__}` ends without a value on a path: end it with `return`")
            keys = [f"{frame.key}.return{place}" for place in range(abs(count))]
            packs = [self.packs.get(key) for key in keys]
            if frame.result.flag is not None:
                # That they have values follows from the flag, which the nodes' verifier does not
                # know.
                self.known.difference_update(keys, *([f"{key}.0", f"{key}.1"] for key in keys))
            items = [self.read_variable(key, node) if pack is None else self.read_pack(pack, node) for key, pack in zip(keys, packs)]
            # Copies, because a later call may change the variables.
            items = [self.copied(item) for item in items]
            result = items[0] if count == -1 else Tup(items)
        self.frame, self.loops = caller, loops
        self.stack.pop()
        return result

    def function_block(self, body):
        """A block in which `return` leaves the function, not the kernel."""
        returns = self.frame.result
        for place, node in enumerate(body):
            if isinstance(node, ast.Return) or not has_return(node):
                self.statement(node)
                if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                    return
                continue
            rest = body[place + 1 :]
            if isinstance(node, ast.If):
                one, two = always_returns(node.body), always_returns(node.orelse)
                if not self.loops and (one or two):
                    joined = ast.If(node.test, node.body + ([] if one else rest), node.orelse + ([] if two else rest))
                    self.statement(ast.copy_location(joined, node))
                    return
                self.statement(node)
                if self.loops:
                    continue
            else:
                self.statement(node)
                if self.loops:
                    self.out.append(nodes.branch(nodes.variable("bool", returns.flag, self.at), nodes.block([nodes.leave("break", self.at)]), nodes.EMPTY, self.at))
                    continue
            if rest:
                at = self.at
                text, _ = self.nested_block(rest)
                self.out.append(nodes.branch(nodes.variable("bool", returns.flag, at), nodes.EMPTY, text, at))
            return

    def return_to_caller(self, node):
        """`return` of a function that a kernel calls."""
        returns = self.frame.result
        found = Static(None) if node.value is None else self.expr(node.value)
        if found.__class__ is Static and found.value is None:
            count = None
        else:
            items = found.items if found.__class__ is Tup else [found]
            count = len(items) if found.__class__ is Tup else -1
            items = [self.as_number(item, node) for item in items]
            for place, item in enumerate(items):
                self.bind_number(f"return{place}", item, node)
        if returns.seen and returns.count != count:
            raise self.error(node, "one `return` gives another number of values than another one")
        returns.seen, returns.count = True, count
        if returns.flag is not None:
            self.out.append(nodes.set_variable(returns.flag, nodes.literal("bool", 1, self.at), self.at))
        if self.loops:
            self.out.append(nodes.leave("break", self.at))


class Returns:
    """The returns of a function: their number of values, and the flag that says one was reached."""

    __slots__ = ("count", "flag", "flagged", "known", "seen")

    def __init__(self, body):
        self.count = None
        self.seen = False
        self.flag = None
        self.flagged = needs_flag(body, False)
        # The conditions that are known when code is made, by their place.
        self.known = {}

    def ends(self, body):
        """Whether no path leaves a block at its end, as far as that can be seen."""
        for node in body:
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return True
            if isinstance(node, ast.If):
                known = self.known.get((node.lineno, node.col_offset))
                if (known is False or self.ends(node.body)) and (known is True or self.ends(node.orelse)):
                    return True
            if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value and not has_break(node.body):
                return True
        return False


def has_return(node):
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def has_break(body):
    """Whether a block leaves the loop around it."""
    for node in body:
        if isinstance(node, ast.Break) or (isinstance(node, ast.If) and (has_break(node.body) or has_break(node.orelse))):
            return True
    return False


def always_returns(body):
    """Whether every path through a block ends with a return."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.If) and always_returns(node.body) and always_returns(node.orelse)):
            return True
    return False


def needs_flag(body, in_loop):
    """Whether a return is in a loop, or under a condition whose branches may both continue."""
    for node in body:
        if isinstance(node, (ast.For, ast.While)):
            if has_return(node):
                return True
        elif isinstance(node, ast.If) and has_return(node):
            if not always_returns(node.body) and not always_returns(node.orelse):
                return True
            if needs_flag(node.body, in_loop) or needs_flag(node.orelse, in_loop):
                return True
    return False
