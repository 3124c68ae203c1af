"""Statements of kernels."""

import ast

from .operators import ARITHMETIC
from .types import BITS, STORED, is_int, promote
from .values import Arr, Reference, Static, Tup, Val, number


class Statements:
    """Methods of the compiler."""

    def block(self, body):
        """The statements of a block."""
        if self.frame.key:
            self.function_block(body)
            return
        for node in body:
            self.statement(node)

    def statement(self, node):
        self.at = self.place_of(node)
        method = self.STATEMENTS.get(node.__class__)
        if method is None:
            raise self.error(node, self.REFUSED_STATEMENTS.get(node.__class__, f"{type(node).__name__} is not for kernels"))
        method(self, node)

    def nested_block(self, body):
        """The text of a nested block, and the names that have values at its end."""
        kept, self.out = self.out, []
        known = set(self.known)
        at = self.at
        self.depth += 1
        self.block(body)
        self.depth -= 1
        self.at = at
        found, self.out = self.out, kept
        after, self.known = self.known, known
        return f"(do {' '.join(found)})", after

    # Setting.

    def assignment(self, node):
        if len(node.targets) == 1:
            self.assign_target(node.targets[0], node.value, node)
            return
        value = self.expr(node.value)
        if value.__class__ is Val:
            value = self.reusable(value)
        for target in node.targets:
            self.bind_target(target, value, node)

    def annotated(self, node):
        if node.value is None:
            raise self.error(node, "a variable without a value: set it")
        self.assign_target(node.target, node.value, node)

    def assign_target(self, target, value, node):
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_target(target, self.expr(value), node)
        elif isinstance(target, ast.Subscript):
            self.store_expression(target, value, node)
        else:
            self.bind_target(target, self.expr(value), node)

    def unpack_target(self, target, found, node):
        """`a, b = ..`: all values are read before a name is set."""
        if found.__class__ is Static and isinstance(found.value, (tuple, list)):
            found = Tup([Static(item) for item in found.value])
        if found.__class__ is not Tup:
            raise self.error(node, "a number cannot be taken apart: a tuple can")
        if len(found.items) != len(target.elts):
            raise self.error(node, f"{len(target.elts)} names for {len(found.items)} values")
        for one, item in zip(target.elts, self.copied(found).items):
            self.bind_target(one, item, node)

    def copied(self, found):
        """A tuple whose numbers no later statement changes."""
        if found.__class__ is Tup:
            return Tup([self.copied(item) for item in found.items])
        changes = found.__class__ is Val and ("(var " in found.text or not found.pure)
        return self.set_temporary(found) if changes else found

    def bind_target(self, target, found, node):
        """Binds a name to an expression's meaning, or stores a value in an element."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_target(target, found, node)
            return
        if isinstance(target, ast.Subscript):
            self.store_value(target, self.as_value(found, node), node)
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "only variables and elements of arrays can be set")
        name = target.id
        known = self.frame.names.get(name)
        if known.__class__ is Arr:
            raise self.error(target, f"the array `{name}` cannot be bound anew: take another name, or set its elements")
        if found.__class__ is Reference:
            self.frame.names[name] = found
            return
        if known.__class__ is Tup and self.depth:
            raise self.error(target, f"`{name}` is a tuple before: take another name for a number under a condition")
        if found.__class__ is Arr or found.__class__ is Tup or (found.__class__ is Static and not isinstance(found.value, (bool, int, float)) and not hasattr(found.value, "item")):
            if self.depth or known is not None:
                what = "an array" if found.__class__ is Arr else "what is no number"
                raise self.error(target, f"`{name}` is {what}: bind it once, at the top of the function")
            self.name_array(name, found)
            self.frame.names[name] = self.copied(found)
            return
        value = self.as_value(found, node)
        self.assign(name, value, target)

    def store_expression(self, target, value, node):
        # Python evaluates the value first, then the array and its index.
        self.store_value(target, self.value(value), node)

    def store_value(self, target, value, node):
        start = len(self.out)
        found = self.expr(target.value)
        if found.__class__ is not Arr:
            raise self.error(target, f"`{ast.unparse(target.value)}` is no array: its elements cannot be set")
        index, _ = self.element_index(found, target)
        if len(self.out) != start:
            kept = [value]
            self.spill(kept, start)
            value = kept[0]
        self.store_element(found, index, value, target)

    def store_element(self, array, index, value, node):
        """Stores a value in an element, atomically if the kernel has atomic operations on it."""
        if array.kind == "constant":
            raise self.error(node, f"`{array.name}` is constant: it cannot be set")
        if value.ty == "wi" and value.const is not None and is_int(array.ty):
            value = self.cast(value, array.ty)
        text = self.to(value, array.ty)
        if array.kind == "param":
            if array.argument not in self.stored:
                self.stored.add(array.argument)
            if array.argument in self.atomics:
                self.out.append(f"(atomic exchange #{array.number} {index} {text} {self.at})")
                return
        self.out.append(f"(store #{array.number} {index} {text} {self.at})")

    def augmented(self, node):
        """`a += b` and the like."""
        operator = ARITHMETIC.get(node.op.__class__)
        if operator is None:
            raise self.error(node, "`@=` is not for kernels: write the sums in a loop")
        target = node.target
        if isinstance(target, ast.Name):
            if self.frame.names.get(target.id).__class__ is Arr:
                raise self.error(target, f"the array `{target.id}` cannot be bound anew: set its elements")
            one, two = self.operands((ast.copy_location(ast.Name(target.id, ast.Load()), target), node.value))
            self.bind_target(target, self.arithmetic(operator, one, two, node), node)
            return
        if not isinstance(target, ast.Subscript):
            raise self.error(target, "only variables and elements of arrays can be set")
        found = self.expr(target.value)
        if found.__class__ is not Arr:
            raise self.error(target, f"`{ast.unparse(target.value)}` is no array: its elements cannot be set")
        index, pure = self.element_index(found, target)
        load = Val(f"(load {found.ty} #{found.number} {index} {self.at})", found.ty, None, None, False)
        start = len(self.out)
        two = self.value(node.value)
        if len(self.out) != start or not pure:
            later = self.out[start:]
            del self.out[start:]
            if not pure:
                place = self.set_temporary(Val(index, "u64"))
                index = place.text
                load = Val(f"(load {found.ty} #{found.number} {index} {self.at})", found.ty, None, None, False)
            if later:
                load = self.set_temporary(load)
            self.out.extend(later)
        self.store_element(found, index, self.arithmetic(operator, load, two, node), target)

    # Branches and loops.

    def branch(self, node):
        """`if`."""
        condition = self.condition(node.test)
        if condition.const is not None:
            # Known when code is made. The other branch is not compiled, as for `if DEBUG:`.
            if self.frame.result is not None:
                self.frame.result.known[node.lineno, node.col_offset] = bool(condition.const)
            self.block(node.body if condition.const else node.orelse)
            return
        at = self.at
        before = set(self.known)
        then, one = self.nested_block(node.body)
        other, two = self.nested_block(node.orelse)
        one_leaves, two_leaves = leaves(node.body), leaves(node.orelse)
        if one_leaves and two_leaves:
            self.known = one | two
        elif one_leaves:
            self.known = two
        elif two_leaves:
            self.known = one
        else:
            self.known = before | (one & two)
        self.out.append(f"(if {condition.text} {then} {other} {at})")

    def while_loop(self, node):
        """`while`, whose condition may need statements."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` of a loop is not for kernels: use a variable")
        at = self.at
        condition, first = self.with_own_statements(lambda: self.condition(node.test))
        self.loops.append(None)
        body, _ = self.nested_block(node.body)
        self.loops.pop()
        if not first:
            self.out.append(f"(while {condition.text} {body} {at})")
            return
        stop = f"(if {condition.text} (do) (do (break {at})) {at})"
        self.out.append(f"(while (lit bool 0x1 {at}) (do {' '.join(first)} {stop} {body[4:-1]}) {at})")

    def for_loop(self, node):
        """`for i in range(..)`."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` of a loop is not for kernels: use a variable")
        call = node.iter
        function = self.expr(call.func) if isinstance(call, ast.Call) else None
        if function.__class__ is not Static or function.value is not range:
            raise self.error(call, "a loop in a kernel goes over `range(..)`")
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.error(call, f"`range` has 1 to 3 arguments, {len(call.args) + len(call.keywords)} are given")
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "the variable of a loop is a plain name")
        if self.frame.names.get(node.target.id).__class__ is Arr:
            raise self.error(node.target, f"the array `{node.target.id}` cannot be bound anew: take another name")
        bounds = self.operands(call.args)
        for bound, one in zip(bounds, call.args):
            if not is_int(bound.ty):
                raise self.error(one, f"`range` of {bound.ty if bound.ty == 'bool' else 'floating point numbers'}: only integers are counted")
        zero, one = number(0, "wi", self.at), number(1, "wi", self.at)
        start, end, step = [(zero, *bounds, one), (*bounds, one), tuple(bounds)][len(bounds) - 1][:3]
        # The loop counts Python's integers, whatever the types of its bounds are.
        ty = "wi"
        name = node.target.id
        key = f"{self.frame.key}.{name}"
        if step.const == 0:
            raise self.error(call, "`range` with a step of 0")
        before = self.types.get(key)
        if before is not None and is_int(before) and BITS[STORED[before]] < 64:
            # The variable is a narrower number elsewhere, in which counts would wrap around.
            self.types[key] = "i64"
            self.changed = True
        at = self.at
        high = None
        if start.high is not None and step.const is not None:
            high = end.high if end.high is not None else (1 << 63) - 1
            high = max(high, start.high)
            if step.const < 0:
                high = start.high if end.high is not None or end.const == -1 else None
        plain = step.const is not None and step.const > 0 and key not in self.known | self.unset and not sets(node.body, name)
        if plain:
            before = self.types.get(key)
            if before is not None and before != ty and promote(before, ty) != before:
                plain = False
        if plain:
            self.count_by_loop_variable(node, name, key, ty, (start, end, step), high)
            return
        # A separate variable counts: the loop's variable is set in the body or read later, when it
        # has the last number of the range, or its old value where the range is empty.
        stored = STORED[ty]
        if step.const is not None and step.const > 0:
            counter = self.temporary(ty)
            value = Val(f"(var {stored} ${counter} {at})", ty, None, high)
            body = self.loop_body(node, name, value, "")
            bounds = " ".join(self.to(bound, ty) for bound in (start, end, step))
            self.out.append(f"(for ${counter} {bounds} {body} {at})")
            return
        counter = self.temporary(ty)
        # The bounds are those before the loop, whatever it sets.
        changed = {inner.id for one in call.args for inner in ast.walk(one) if isinstance(inner, ast.Name)}
        changed = {one for one in changed if one == name or sets(node.body, one)}
        keep = self.set_temporary if changed else self.reusable
        end, step = keep(end), keep(step)
        self.out.append(f"(set ${counter} {self.to(start, ty)} {at})")
        text = f"(var {stored} ${counter} {at})"
        down = f"(gt bool {text} {self.to(end, ty)} {at})"
        if step.const is None:
            zero = f"(lit {stored} 0x0 {at})"
            up = f"(and-then bool (gt bool {self.to(step, ty)} {zero} {at}) (lt bool {text} {self.to(end, ty)} {at}) {at})"
            down = f"(and-then bool (lt bool {self.to(step, ty)} {zero} {at}) {down} {at})"
            down = f"(or-else bool {up} {down} {at})"
        following = f"(add {stored} {text} {self.to(step, ty)} {at})"
        # A number past the type's range ends the loop.
        wraps = f"(gt bool {following} {text} {at})"
        if step.const is None:
            wraps = f"(ne bool {wraps} (gt bool {self.to(step, ty)} {zero} {at}) {at})"
        if step.const is None or end.const is None or end.const + step.const < -1 << 63:
            following = f"(select {stored} {wraps} {self.to(end, ty)} {following} {at})"
        further = f"(set ${counter} {following} {at})"
        body = self.loop_body(node, name, Val(text, ty, None, high), further)
        self.out.append(f"(while {down} {body} {at})")

    def count_by_loop_variable(self, node, name, key, ty, bounds, high):
        """A loop that counts with its own variable."""
        at = self.at
        known = self.types.get(key)
        if known is None:
            self.types[key] = ty
            self.highs[key] = high
        else:
            ty = known
            if self.highs.get(key) is not None and (high is None or high > self.highs[key]):
                self.highs[key] = high
                self.changed = True
        variable = self.variable(key, name)
        self.frame.names[name] = key
        texts = " ".join(self.to(bound, ty) for bound in bounds)
        self.known.add(key)
        self.loops.append(None)
        body, _ = self.nested_block(node.body)
        self.loops.pop()
        self.known.discard(key)
        self.out.append(f"(for ${variable} {texts} {body} {at})")

    def loop_body(self, node, name, value, first):
        """The text of a loop's body, which first sets the loop's variable."""
        kept, self.out = self.out, []
        known = set(self.known)
        self.depth += 1
        self.loops.append(None)
        self.assign(name, value, node.target)
        if first:
            self.out.append(first)
        self.block(node.body)
        self.loops.pop()
        self.depth -= 1
        found, self.out = self.out, kept
        self.known = known
        return f"(do {' '.join(found)})"

    def break_or_continue(self, node):
        word = "break" if isinstance(node, ast.Break) else "continue"
        self.out.append(f"({word} {self.at})")

    def return_statement(self, node):
        """`return` of a kernel, or of a function that it calls."""
        if self.frame.key == "":
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                raise self.error(node, "a kernel returns nothing: write the result to an array")
            self.out.append(f"(return {self.at})")
            return
        self.return_to_caller(node)

    def lone_expression(self, node):
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            self.call(node.value, alone=True)
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
        ast.Assert: "`assert` is not for kernels: write a code to an array",
        ast.Import: "`import` is not for kernels: import outside",
        ast.ImportFrom: "`import` is not for kernels: import outside",
        ast.Global: "`global` is not for kernels: names of the module are constants",
        ast.Nonlocal: "`nonlocal` is not for kernels: values of the closure are constants",
        ast.Delete: "`del` is not for kernels",
        ast.Match: "`match` is not for kernels: write `if`",
    }


def leaves(body):
    """Whether a block never continues after its end."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.If) and leaves(node.body) and leaves(node.orelse):
            return True
    return False


def sets(body, name):
    """Whether a block sets a variable."""
    for node in body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store):
                return True
    return False


Statements.STATEMENTS = {
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.If: Statements.branch,
    ast.While: Statements.while_loop,
    ast.For: Statements.for_loop,
    ast.Break: Statements.break_or_continue,
    ast.Continue: Statements.break_or_continue,
    ast.Return: Statements.return_statement,
    ast.Expr: Statements.lone_expression,
    ast.Pass: lambda self, node: None,
}
