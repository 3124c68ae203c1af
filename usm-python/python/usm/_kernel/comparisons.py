"""Comparisons, conditions, `and`, `or`, `not` and `a if c else b`."""

import ast
import operator as python_operator

from . import nodes
from .state import Scope
from .types import NAMES, IR_TYPE, is_float, is_int, limits
from .values import Cpx, Tup, Val, number

_COMPARISON = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FOLD = {name: getattr(python_operator, name) for name in _COMPARISON.values()}


class Comparisons:
    """Methods of the compiler for comparisons and conditions."""

    __slots__ = ()
    scope: Scope

    def condition(self, node):
        """The truth of an expression, as a bool."""
        at = self.scope.at
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, numbers=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            if inner.const is not None:
                return number(not inner.const, "bool", at)
            return Val(nodes.negation(inner.text, at), "bool", None, None, inner.is_pure)
        value = self.value(node)
        if value.const is not None:
            return number(bool(value.const), "bool", at)
        return Val(self.truth(value), "bool", None, None, value.is_pure)

    def boolean(self, node, numbers=False):
        """`and` or `or`. With `numbers` the operands may be numbers, whose truth counts."""
        both = isinstance(node.op, ast.And)
        ask = self.condition if numbers else self.bool_only
        result = ask(node.values[0])
        for other in node.values[1:]:
            value, first = self.with_own_statements(lambda other=other: ask(other))
            if result.const is not None:
                if bool(result.const) == both:
                    self.scope.statements.extend(first)
                    result = value
                continue
            if not first:
                join = nodes.and_then if both else nodes.or_else
                result = Val(join(result.text, value.text, self.scope.at), "bool", None, None, result.is_pure and value.is_pure)
                continue
            name = self.temporary("bool")
            at = self.scope.at
            self.emit(nodes.set_variable(name, result.text, at))
            current = nodes.variable("bool", name, at)
            inner = nodes.block(first, [nodes.set_variable(name, value.text, at)])
            self.emit(nodes.branch(current, inner, nodes.EMPTY, at) if both else nodes.branch(current, nodes.EMPTY, inner, at))
            result = Val(current, "bool")
        return result

    def bool_only(self, node):
        """An operand of `and` or `or` whose value is used: a bool."""
        value = self.value(node)
        if value.ty != "bool":
            raise self.error(node, f"`and` and `or` of {NAMES[value.ty]} as a value: write a comparison such as `!= 0`")
        return value

    def compare(self, node):
        """A chain of comparisons: each operand is evaluated once, and only if it is needed."""
        return self.compare_from(self.numeric(node.left), 0, node)

    def compare_from(self, left, place, node):
        """The rest of a chain from an operator on; `left` is the value before it."""
        name = _COMPARISON.get(node.ops[place].__class__)
        if name is None:
            raise self.error(node, "`is` and `in` are not for kernels: compare numbers")
        start = len(self.scope.statements)
        right = self.numeric(node.comparators[place])
        values = [left]
        if len(self.scope.statements) != start:
            self.spill(values, start)
        if place == len(node.ops) - 1:
            return self.comparison(name, values[0], right, node)
        if right.__class__ is not Cpx:
            right = self.as_reusable(right)
        result = self.comparison(name, values[0], right, node)
        # What a later operand needs is evaluated, and has values, under this result only.
        rest, first = self.with_own_statements(lambda: self.compare_from(right, place + 1, node))
        if result.const is not None:
            if result.const:
                self.scope.statements.extend(first)
            return rest if result.const else result
        if not first:
            return Val(nodes.and_then(result.text, rest.text, self.scope.at), "bool", None, None, result.is_pure and rest.is_pure)
        variable, at = self.temporary("bool"), self.scope.at
        value = nodes.variable("bool", variable, at)
        further = nodes.block(first, [nodes.set_variable(variable, rest.text, at)])
        self.emit(nodes.set_variable(variable, result.text, at) + nodes.branch(value, further, nodes.EMPTY, at))
        return Val(value, "bool")

    def comparison(self, name, left, right, node):
        """One comparison of two values."""
        at = self.scope.at
        if Cpx in (left.__class__, right.__class__):
            return self.complex_comparison(name, left, right, node)
        if left.const is not None and right.const is not None:
            if not (left.is_foldable and right.is_foldable) and (is_float(left.ty) or is_float(right.ty)):
                ty = self.common_type(left, right, node, "compared with")
                left, right = number(left.const, ty, at), number(right.const, ty, at)
            return number(_FOLD[name](left.const, right.const), "bool", at)
        for value, other, is_swapped in ((left, right, False), (right, left, True)):
            # A number outside of the other operand's type is below or above all of its values.
            if value.const is not None and value.ty == "wi" and is_int(other.ty) and other.ty != "wi":
                low, high = limits(other.ty)
                if not low <= value.const <= high:
                    sample = low
                    pair = (sample, value.const) if is_swapped else (value.const, sample)
                    return number(_FOLD[name](*pair), "bool", at)
        if left.ty == "bool" and right.ty == "bool":
            if name in ("eq", "ne"):
                return Val(nodes.comparison(name, left.text, right.text, at), "bool", None, None, left.is_pure and right.is_pure)
            left, right = self.cast(left, "u8"), self.cast(right, "u8")
        for value, other, is_swapped in ((left, right, False), (right, left, True)):
            # NumPy compares Python's numbers by their value, without converting them to the type
            # of the other operand.
            if value.ty == "wi" and value.const is None and is_int(other.ty) and other.ty != "wi":
                if other.ty != "u64":
                    return self.compare_as(name, left, right, "i64")
                if value.high is not None:
                    return self.compare_as(name, left, right, "u64")
                value, other = self.as_reusable(value), self.as_reusable(other)
                pair = (other, value) if is_swapped else (value, other)
                inside = self.compare_as(name, *pair, "u64").text
                below = _FOLD[name](0, -1) if is_swapped else _FOLD[name](-1, 0)
                negative = nodes.comparison("lt", value.text, nodes.literal("i64", 0, at), at)
                if below:
                    return Val(nodes.or_else(negative, inside, at), "bool", None, None, False)
                return Val(nodes.and_then(nodes.negation(negative, at), inside, at), "bool", None, None, False)
        ty = self.common_type(left, right, node, "compared with")
        if ty == "bool":
            ty = "u8"
        return self.compare_as(name, left, right, ty)

    def compare_as(self, name, left, right, ty):
        """The comparison of two values in one type."""
        return Val(nodes.comparison(name, self.to(left, ty), self.to(right, ty), self.scope.at), "bool", None, None, left.is_pure and right.is_pure)

    def conditional(self, node):
        """`a if c else b`: only one of the two is evaluated."""
        condition = self.condition(node.test)
        if condition.const is not None:
            return self.number_or_tuple(node.body if condition.const else node.orelse)
        left, first = self.with_own_statements(lambda: self.number_or_tuple(node.body))
        right, second = self.with_own_statements(lambda: self.number_or_tuple(node.orelse))
        if Tup in (left.__class__, right.__class__):
            return self.choice_of_tuples(condition, ((left, first), (right, second)), node)
        if Cpx in (left.__class__, right.__class__):
            return self.complex_conditional(condition, ((left, first), (right, second)))
        ty = self.common_type(left, right, node, "or") if left.ty != right.ty else left.ty
        stored_type, at = IR_TYPE[ty], self.scope.at
        high = max(left.high, right.high) if left.high is not None and right.high is not None else None
        if not first and not second:
            text = nodes.select(stored_type, condition.text, self.to(left, ty), self.to(right, ty), at)
            return Val(text, ty, None, high, condition.is_pure and left.is_pure and right.is_pure)
        name = self.temporary(ty)
        then = nodes.block(first, [nodes.set_variable(name, self.to(left, ty), at)])
        other = nodes.block(second, [nodes.set_variable(name, self.to(right, ty), at)])
        self.emit(nodes.branch(condition.text, then, other, at))
        return Val(nodes.variable(stored_type, name, at), ty, None, high)
