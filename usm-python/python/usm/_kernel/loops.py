"""Loops of kernels: `while`, and `for` over ranges, tuples and arrays."""

import ast

from . import nodes
from .blocks import continues_loop, has_return, leaves_loop, sets
from .state import Draft, Facts, Scope
from .types import BITS, IR_TYPE, is_int, promote
from .values import Arr, Static, Tup, Val, number


class Loops:
    """Methods of the compiler for loops."""

    __slots__ = ()
    facts: Facts
    draft: Draft
    scope: Scope


    def while_loop(self, node):
        """`while`, whose condition may need statements."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` of a loop is not for kernels: use a variable")
        at = self.scope.at
        condition, statements = self.with_own_statements(lambda: self.condition(node.test))
        body = self.nested_loop(node.body)
        if not statements:
            self.emit(nodes.while_loop(condition.text, body, at))
            return
        stop = nodes.branch(condition.text, nodes.EMPTY, nodes.block([nodes.leave("break", at)]), at)
        body = nodes.block(statements, [stop, nodes.statements_of(body)])
        self.emit(nodes.while_loop(nodes.literal("bool", 1, at), body, at))

    def for_loop(self, node):
        """`for i in range(..)`, and all others by way of it."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` of a loop is not for kernels: use a variable")
        call = node.iter
        function = self.expr(call.func) if isinstance(call, ast.Call) else None
        if function.__class__ is not Static or function.value is not range:
            self.loop_over(node)
            return
        self.check_range(node)
        start, end, step = self.bounds_of(call)
        # The loop counts Python's integers, whatever the types of its bounds are.
        ty = "wi"
        facts, name = self.facts, node.target.id
        key = f"{self.scope.frame.key}.{name}"
        if step.const == 0:
            raise self.error(call, "`range` with a step of 0")
        before = facts.types.get(key)
        if before is not None and is_int(before) and BITS[IR_TYPE[before]] < 64:
            # The variable is a narrower number elsewhere, in which counts would wrap around.
            facts.types[key] = "i64"
            facts.has_changed = True
        high = highest(start, end, step)
        counts_up = step.const is not None and step.const > 0
        plain = counts_up and key not in self.scope.set_variables | facts.unset_variables and not sets(node.body, name)
        before = facts.types.get(key)
        if plain and (before is None or before == ty or promote(before, ty) == before):
            self.count_by_loop_variable(node, name, key, ty, (start, end, step), high)
            return
        # A separate variable counts: the loop's variable is set in the body or read later, when it
        # has the last number of the range, or its old value where the range is empty.
        if counts_up:
            at = self.scope.at
            counter = self.temporary(ty)
            value = Val(nodes.variable(IR_TYPE[ty], counter, at), ty, None, high)
            body = self.loop_body(node, name, value, None)
            bounds = [self.to(bound, ty) for bound in (start, end, step)]
            self.emit(nodes.for_loop(counter, *bounds, body, at))
            return
        self.count_by_steps(node, ty, (start, end, step), high)

    def check_range(self, node):
        """Refuses a loop over a `range` that is no loop of kernels."""
        call, target = node.iter, node.target
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.error(call, f"`range` has 1 to 3 arguments, {len(call.args) + len(call.keywords)} are given")
        if not isinstance(target, ast.Name):
            raise self.error(target, "the variable of a loop is a plain name")
        if self.scope.frame.names.get(target.id).__class__ is Arr:
            raise self.error(target, f"the array `{target.id}` cannot be bound anew: take another name")
        pack = self.facts.packs.get(f"{self.scope.frame.key}.{target.id}")
        if pack is not None and pack.is_complex:
            raise self.error(target, f"`{target.id}` is complex elsewhere: take another name")

    def bounds_of(self, call):
        """Start, end and step of a `range`."""
        bounds = self.operands(call.args)
        for bound, argument in zip(bounds, call.args):
            if not is_int(bound.ty):
                raise self.error(argument, f"`range` of {bound.ty if bound.ty == 'bool' else 'floating point numbers'}: only integers are counted")
        zero, one = number(0, "wi", self.scope.at), number(1, "wi", self.scope.at)
        return [(zero, *bounds, one), (*bounds, one), tuple(bounds)][len(bounds) - 1][:3]

    def count_by_loop_variable(self, node, name, key, ty, bounds, high):
        """A loop that counts with its own variable."""
        at, facts, scope = self.scope.at, self.facts, self.scope
        before = facts.types.get(key)
        if before is None:
            facts.types[key] = ty
            facts.highs[key] = high
        else:
            ty = before
            if facts.highs.get(key) is not None and (high is None or high > facts.highs[key]):
                facts.highs[key] = high
                facts.has_changed = True
        variable = self.draft.variable(key, name, at)
        scope.frame.names[name] = key
        texts = [self.to(bound, ty) for bound in bounds]
        scope.set_variables.add(key)
        body = self.nested_loop(node.body)
        scope.set_variables.discard(key)
        self.emit(nodes.for_loop(variable, *texts, body, at))

    def count_by_steps(self, node, ty, bounds, high):
        """A loop with a step that is negative, or that only the item knows."""
        (start, end, step), name, call, at = bounds, node.target.id, node.iter, self.scope.at
        counter = self.temporary(ty)
        # The bounds are those before the loop, whatever it sets.
        names = {inner.id for argument in call.args for inner in ast.walk(argument) if isinstance(inner, ast.Name)}
        is_changed = any(inner == name or sets(node.body, inner) for inner in names)
        keep = self.set_temporary if is_changed else self.as_reusable
        end, step = keep(end), keep(step)
        self.emit(nodes.set_variable(counter, self.to(start, ty), at))
        write = nodes.Formula(IR_TYPE[ty], at)
        count, last, stride = nodes.variable(write.ty, counter, at), self.to(end, ty), self.to(step, ty)
        condition = write.comparison("gt", count, last)
        next_count = write.binary("add", count, stride)
        # A number past the type's range ends the loop.
        wraps = write.comparison("gt", next_count, count)
        if step.const is None:
            zero = write.literal(0)
            goes_up, goes_down = write.comparison("gt", stride, zero), write.comparison("lt", stride, zero)
            up = write.and_then(goes_up, write.comparison("lt", count, last))
            condition = write.or_else(up, write.and_then(goes_down, condition))
            wraps = write.comparison("ne", wraps, goes_up)
        if step.const is None or end.const is None or end.const + step.const < -1 << 63:
            next_count = write.select(wraps, last, next_count)
        further = nodes.set_variable(counter, next_count, at)
        body = self.loop_body(node, name, Val(count, ty, None, high), further)
        self.emit(nodes.while_loop(condition, body, at))

    def nested_loop(self, body):
        """The text of the body of a loop."""
        self.scope.loops += 1
        text, _ = self.nested_block(body)
        self.scope.loops -= 1
        return text

    def loop_body(self, node, name, value, further):
        """The text of a loop's body, which first sets the loop's variable, then counts further."""
        scope = self.scope
        outer, names = scope.begin_block(), dict(scope.frame.names)
        scope.loops += 1
        self.assign(name, value, node.target)
        if further is not None:
            self.emit(further)
        self.block(node.body)
        scope.loops -= 1
        self.forget_parts(names)
        statements, _ = scope.end_block(outer)
        return nodes.block(statements)

    # Loops over other things than ranges.

    def loop_over(self, node):
        """A loop over a tuple, an array, or `enumerate` and `zip` of arrays."""
        call, at = node.iter, self.scope.at
        function = self.expr(call.func) if isinstance(call, ast.Call) else None
        if function.__class__ is not Static or function.value not in (enumerate, zip):
            meaning = self.expr(call)
            if meaning.__class__ is Static and isinstance(meaning.value, (tuple, list)):
                meaning = Tup([Static(item) for item in meaning.value])
            if meaning.__class__ is Tup:
                self.unroll(node, meaning.items)
                return
        place = f"{node.lineno}_{node.col_offset}"
        count, element = self.sequence(call, ast.Name(f"index of line {place}", ast.Load()), place)
        target = ast.Name(f"index of line {place}", ast.Store())
        first = ast.Assign([node.target], element)
        loop = ast.For(target, ast.Call(ast.Constant(range), [count], []), [first, *node.body], [])
        for inner in ast.walk(loop):
            if not hasattr(inner, "lineno"):
                ast.copy_location(inner, node)
        self.scope.at = at
        self.for_loop(loop)

    def sequence(self, node, index, place):
        """The length of what a loop goes over, and its element at an index, as expressions."""
        function = self.expr(node.func) if isinstance(node, ast.Call) else None
        if function.__class__ is Static and function.value is enumerate and len(node.args) == 1 and not node.keywords:
            count, element = self.sequence(node.args[0], index, place)
            return count, ast.Tuple([index, element], ast.Load())
        if function.__class__ is Static and function.value is zip and node.args and not node.keywords:
            parts = [self.sequence(argument, index, f"{place}_{position}") for position, argument in enumerate(node.args)]
            counts = [count for count, _ in parts]
            count = counts[0] if len(counts) == 1 else ast.Call(ast.Constant(min), counts, [])
            return count, ast.Tuple([element for _, element in parts], ast.Load())
        meaning = self.expr(node)
        if meaning.__class__ is Static and hasattr(meaning.value, "__array_interface__"):
            meaning = self.table_of(meaning.value, ast.unparse(node), node)
        if meaning.__class__ is not Arr or not meaning.extents:
            raise self.error(node, "a loop in a kernel goes over `range(..)`, a tuple, an array, or `enumerate` and `zip` of arrays")
        name = f"array of line {place}"
        self.scope.frame.names[name] = meaning
        array = ast.Name(name, ast.Load())
        return ast.Call(ast.Constant(len), [array], []), ast.Subscript(array, index, ast.Load())

    def unroll(self, node, items):
        """A loop over known items: its body once for each. `continue` ends a loop of one round."""
        if leaves_loop(node.body):
            raise self.error(node, "`break` in a loop over a tuple: write the loop over `range(..)`")
        at = self.scope.at
        for item in self.copy_numbers(Tup(items)).items:
            self.scope.at = at
            self.bind_target(node.target, item, node)
            if not continues_loop(node.body) and not has_return(node):
                self.block(node.body)
                continue
            one, zero = number(1, "wi", at), number(0, "wi", at)
            counter = self.temporary("wi")
            body = self.nested_loop(node.body)
            self.emit(nodes.for_loop(counter, zero.text, one.text, one.text, body, at))


def highest(start, end, step):
    """The upper bound of the numbers of a range, as `Val.high`."""
    if start.high is None or step.const is None:
        return None
    if step.const < 0:
        return start.high if end.high is not None or end.const == -1 else None
    return max(end.high if end.high is not None else (1 << 63) - 1, start.high)
