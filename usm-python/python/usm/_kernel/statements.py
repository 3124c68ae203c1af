"""Statements of kernels."""

import ast
from types import NoneType

from . import nodes
from .operators import ARITHMETIC
from .types import BITS, NAMES, STORED, is_int, promote
from .values import Arr, Cpx, Pack, Rec, Reference, Slice, Static, Tup, Val, number


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
        names = dict(self.frame.names)
        self.depth += 1
        self.block(body)
        self.depth -= 1
        self.at = at
        self.forget_parts(names)
        found, self.out = self.out, kept
        after, self.known = self.known, known
        return nodes.block(found), after

    def forget_parts(self, before):
        """Forgets names of parts of arrays that a block made: their indices are set in it only."""
        names = self.frame.names
        for name, meaning in list(names.items()):
            if meaning is not before.get(name) and contains_part(meaning):
                if before.get(name) is None:
                    del names[name]
                else:
                    names[name] = before[name]

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
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.store_expression(target, value, node)
        else:
            self.bind_target(target, self.expr(value), node)

    def copied(self, found):
        """A tuple whose numbers no later statement changes."""
        if found.__class__ is Tup:
            return Tup([self.copied(item) for item in found.items])
        if found.__class__ is Cpx:
            return Cpx(*map(self.copied, found.parts))
        changes = found.__class__ is Val and (nodes.reads_variables(found.text) or not found.pure)
        return self.set_temporary(found) if changes else found

    def bind_target(self, target, found, node):
        """Binds a name to an expression's meaning, or stores a value in an element."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self.unpack_target(target, found, node)
            return
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            self.store_value(target, found, node)
            return
        if not isinstance(target, ast.Name):
            raise self.error(target, "only variables and elements of arrays can be set")
        name = target.id
        found = self.complex_instead(found)
        known = self.frame.names.get(name)
        if found.__class__ is Arr and known.__class__ is Arr and self.depth and self.bind_part_anew(known, found):
            return
        if known.__class__ is Arr and (found.__class__ is not Arr or (self.depth and known is not found)):
            raise self.error(target, f"the array `{name}` cannot be bound anew: take another name, or set its elements")
        if found.__class__ is Reference:
            self.frame.names[name] = found
            return
        if found.__class__ is Static and isinstance(found.value, tuple) and found.value and all(type(item) in (bool, int, float) for item in found.value):
            found = Tup([self.as_value(Static(item), node) for item in found.value]) if known.__class__ is Pack else found
        if found.__class__ is Tup and found.items and all(item.__class__ is Val for item in found.items) and known.__class__ in (NoneType, Pack):
            self.bind_tuple(name, known, found, target)
            return
        if known.__class__ is Pack and known.is_complex and found.__class__ in (Val, Static):
            self.bind_number(name, self.as_value(found, node), target)
            return
        if known.__class__ is Pack and known.is_complex and found.__class__ is Cpx:
            self.bind_number(name, found, target)
            return
        if known is not None and (self.depth or known.__class__ is Pack) and found.__class__ is Tup and any(item.__class__ is Cpx for item in found.items):
            raise self.error(target, f"`{name}` changes, so it is no tuple with a complex number: take a name for each value")
        if known.__class__ in (Tup, Pack) and (self.depth or known.__class__ is Pack):
            raise self.error(target, f"`{name}` is a tuple before: take another name for a number under a condition")
        if found.__class__ in (Arr, Tup, Rec) or (found.__class__ is Static and not isinstance(found.value, (bool, int, float)) and not hasattr(found.value, "item")):
            if known is not None and (self.depth or known.__class__ is not found.__class__):
                what = "an array" if found.__class__ is Arr else "what is no number"
                raise self.error(target, f"`{name}` is {what}: bind it once, or at the top of the function")
            self.name_array(name, found)
            if found.__class__ is Arr and found.whole is not None and self.frame.source.is_set_often(name):
                found = self.with_own_indices(found)
            self.frame.names[name] = self.copied(found)
            return
        self.bind_number(name, self.as_number(found, node), target)

    def with_own_indices(self, found):
        """A part of an array with indices of its own, so that it may be bound anew."""

        def own(value):
            key = self.temporary(value.ty)
            self.out.append(nodes.set_variable(key, value.text, self.at))
            return Val(nodes.variable(STORED[value.ty], key, self.at), value.ty, None, value.high)

        return self.part(found.whole, found.extents, [one if one.__class__ is Slice else own(one) for one in found.taken])

    def bind_part_anew(self, known, found):
        """Sets the indices of a part of an array to those of another part, under a condition.

        False if they are not parts in the same dimensions of one array.
        """
        if known.whole is None or known.whole is not found.whole or [one.__class__ for one in known.taken] != [one.__class__ for one in found.taken]:
            return False
        pairs = []
        for one, two in zip(known.taken, found.taken):
            if one.__class__ is Slice:
                if one.extent != two.extent or (one.extent is not None and nodes.without_places(one.length.text) != nodes.without_places(two.length.text)):
                    return False
                pairs += [(one.start, two.start)] + ([(one.length, two.length)] if one.extent is None else [])
            else:
                pairs.append((one, two))
        pairs = [(one, two) for one, two in pairs if nodes.without_places(one.text) != nodes.without_places(two.text)]
        if not all(nodes.is_variable(one.text) for one, _ in pairs):
            return False
        for one, two in pairs:
            self.out.append(nodes.set_variable(nodes.number_of_variable(one.text), self.to(two, one.ty), self.at))
        return True

    def store_expression(self, target, value, node):
        # Python evaluates the value first, then the array and its index.
        self.store_value(target, self.expr(value), value)

    def store_value(self, target, value, node):
        """Stores a value in an element or a field, or a structure in an element."""
        is_whole = value.__class__ in (Rec, Tup) or (value.__class__ is Arr and value.fields is not None)
        value = self.copied(value) if is_whole else self.as_number(value, node)
        start = len(self.out)
        found, index, _ = self.place_to_set(target)
        if found.fields is not None:
            self.store_structure(found, value, node)
            return
        value = self.as_number(value, node)
        if len(self.out) != start:
            kept = [value]
            self.spill(kept, start)
            value = kept[0]
        self.store_element(found, index, value, target)

    def store_element(self, array, index, value, node):
        """Stores a value in an element, atomically if the kernel has atomic operations on it."""
        if array.kind == "constant":
            raise self.error(node, f"`{array.name}` is constant: it cannot be set")
        if array.is_complex:
            if array.kind == "param":
                self.stored.add(array.argument)
            self.store_pair(array, index, value)
            return
        if value.__class__ is Cpx:
            raise self.error(node, f"a complex number does not fit `{array.name}`, whose elements are {NAMES[array.ty]}: store `.real`, `.imag` or `abs(..)`")
        if value.ty == "wi" and value.const is not None and is_int(array.ty):
            value = self.cast(value, array.ty)
        text = self.to(value, array.ty)
        if array.kind == "param":
            if array.argument not in self.stored:
                self.stored.add(array.argument)
            if array.argument in self.atomics:
                self.out.append(nodes.atomic("exchange", array.number, index, text, None, self.at))
                return
        self.out.append(nodes.store(array.number, index, text, self.at))

    def augmented(self, node):
        """`a += b` and the like."""
        operator = ARITHMETIC.get(node.op.__class__)
        if operator is None:
            raise self.error(node, "`@=` is not for kernels: write the sums in a loop")
        target = node.target
        if isinstance(target, ast.Name):
            if self.frame.names.get(target.id).__class__ is Arr:
                raise self.error(target, f"the array `{target.id}` cannot be bound anew: set its elements")
            one, two = self.operands((ast.copy_location(ast.Name(target.id, ast.Load()), target), node.value), self.numeric)
            self.bind_target(target, self.arithmetic(operator, one, two, node), node)
            return
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            raise self.error(target, "only variables and elements of arrays can be set")
        found, index, pure = self.place_to_set(target)
        if found.fields is not None:
            raise self.error(target, f"`{ast.unparse(target)}` is a structure, which does not compute: change its fields")
        load = self.loaded(found, index, self.at)
        start = len(self.out)
        two = self.numeric(node.value)
        if not found.is_complex and (len(self.out) != start or not pure):
            later = self.out[start:]
            del self.out[start:]
            if not pure:
                place = self.set_temporary(Val(index, "u64"))
                index = place.text
                load = self.loaded(found, index, self.at)
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
        self.out.append(nodes.branch(condition.text, then, other, at))

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
            self.out.append(nodes.while_loop(condition.text, body, at))
            return
        stop = nodes.branch(condition.text, nodes.EMPTY, nodes.block([nodes.leave("break", at)]), at)
        self.out.append(nodes.while_loop(nodes.literal("bool", 1, at), nodes.block(first, [stop, nodes.statements_of(body)]), at))

    def for_loop(self, node):
        """`for i in range(..)`."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` of a loop is not for kernels: use a variable")
        call = node.iter
        function = self.expr(call.func) if isinstance(call, ast.Call) else None
        if function.__class__ is not Static or function.value is not range:
            self.loop_over(node)
            return
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.error(call, f"`range` has 1 to 3 arguments, {len(call.args) + len(call.keywords)} are given")
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "the variable of a loop is a plain name")
        if self.frame.names.get(node.target.id).__class__ is Arr:
            raise self.error(node.target, f"the array `{node.target.id}` cannot be bound anew: take another name")
        pack = self.packs.get(f"{self.frame.key}.{node.target.id}")
        if pack is not None and pack.is_complex:
            raise self.error(node.target, f"`{node.target.id}` is complex elsewhere: take another name")
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
            value = Val(nodes.variable(stored, counter, at), ty, None, high)
            body = self.loop_body(node, name, value, "")
            bounds = [self.to(bound, ty) for bound in (start, end, step)]
            self.out.append(nodes.for_loop(counter, *bounds, body, at))
            return
        counter = self.temporary(ty)
        # The bounds are those before the loop, whatever it sets.
        changed = {inner.id for one in call.args for inner in ast.walk(one) if isinstance(inner, ast.Name)}
        changed = {one for one in changed if one == name or sets(node.body, one)}
        keep = self.set_temporary if changed else self.reusable
        end, step = keep(end), keep(step)
        self.out.append(nodes.set_variable(counter, self.to(start, ty), at))
        text = nodes.variable(stored, counter, at)
        down = nodes.comparison("gt", text, self.to(end, ty), at)
        if step.const is None:
            zero = nodes.literal(stored, 0, at)
            up = nodes.and_then(nodes.comparison("gt", self.to(step, ty), zero, at), nodes.comparison("lt", text, self.to(end, ty), at), at)
            down = nodes.and_then(nodes.comparison("lt", self.to(step, ty), zero, at), down, at)
            down = nodes.or_else(up, down, at)
        following = nodes.binary("add", stored, text, self.to(step, ty), at)
        # A number past the type's range ends the loop.
        wraps = nodes.comparison("gt", following, text, at)
        if step.const is None:
            wraps = nodes.comparison("ne", wraps, nodes.comparison("gt", self.to(step, ty), zero, at), at)
        if step.const is None or end.const is None or end.const + step.const < -1 << 63:
            following = nodes.select(stored, wraps, self.to(end, ty), following, at)
        further = nodes.set_variable(counter, following, at)
        body = self.loop_body(node, name, Val(text, ty, None, high), further)
        self.out.append(nodes.while_loop(down, body, at))

    def loop_over(self, node):
        """A loop over a tuple, an array, or `enumerate` and `zip` of arrays."""
        call, at = node.iter, self.at
        function = self.expr(call.func) if isinstance(call, ast.Call) else None
        if function.__class__ is not Static or function.value not in (enumerate, zip):
            found = self.expr(call)
            if found.__class__ is Static and isinstance(found.value, (tuple, list)):
                found = Tup([Static(item) for item in found.value])
            if found.__class__ is Tup:
                self.unrolled(node, found.items)
                return
        place = f"{node.lineno}_{node.col_offset}"
        count, element = self.sequence(call, ast.Name(f"index of line {place}", ast.Load()), place)
        target = ast.Name(f"index of line {place}", ast.Store())
        first = ast.Assign([node.target], element)
        loop = ast.For(target, ast.Call(ast.Constant(range), [count], []), [first, *node.body], [])
        for one in ast.walk(loop):
            if not hasattr(one, "lineno"):
                ast.copy_location(one, node)
        self.at = at
        self.for_loop(loop)

    def sequence(self, node, index, place):
        """The length of what a loop goes over, and its element at an index, as expressions."""
        function = self.expr(node.func) if isinstance(node, ast.Call) else None
        if function.__class__ is Static and function.value is enumerate and len(node.args) == 1 and not node.keywords:
            count, element = self.sequence(node.args[0], index, place)
            return count, ast.Tuple([index, element], ast.Load())
        if function.__class__ is Static and function.value is zip and node.args and not node.keywords:
            parts = [self.sequence(one, index, f"{place}_{number}") for number, one in enumerate(node.args)]
            counts = [count for count, _ in parts]
            count = counts[0] if len(counts) == 1 else ast.Call(ast.Constant(min), counts, [])
            return count, ast.Tuple([element for _, element in parts], ast.Load())
        found = self.expr(node)
        if found.__class__ is Static and hasattr(found.value, "__array_interface__"):
            found = self.table_of(found.value, ast.unparse(node), node)
        if found.__class__ is not Arr or not found.extents:
            raise self.error(node, "a loop in a kernel goes over `range(..)`, a tuple, an array, or `enumerate` and `zip` of arrays")
        name = f"array of line {place}"
        self.frame.names[name] = found
        named = ast.Name(name, ast.Load())
        return ast.Call(ast.Constant(len), [named], []), ast.Subscript(named, index, ast.Load())

    def unrolled(self, node, items):
        """A loop over known items: its body once for each. `continue` ends a loop of one round."""
        if leaves_loop(node.body):
            raise self.error(node, "`break` in a loop over a tuple: write the loop over `range(..)`")
        at = self.at
        for item in items:
            self.at = at
            self.bind_target(node.target, self.copied(Tup([item])).items[0], node)
            if not continues_loop(node.body) and not has_return(node):
                self.block(node.body)
                continue
            one, zero = number(1, "wi", at), number(0, "wi", at)
            counter = self.temporary("wi")
            self.loops.append(None)
            body, _ = self.nested_block(node.body)
            self.loops.pop()
            self.out.append(nodes.for_loop(counter, zero.text, one.text, one.text, body, at))

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
        texts = [self.to(bound, ty) for bound in bounds]
        self.known.add(key)
        self.loops.append(None)
        body, _ = self.nested_block(node.body)
        self.loops.pop()
        self.known.discard(key)
        self.out.append(nodes.for_loop(variable, *texts, body, at))

    def loop_body(self, node, name, value, first):
        """The text of a loop's body, which first sets the loop's variable."""
        kept, self.out = self.out, []
        known = set(self.known)
        names = dict(self.frame.names)
        self.depth += 1
        self.loops.append(None)
        self.assign(name, value, node.target)
        if first:
            self.out.append(first)
        self.block(node.body)
        self.loops.pop()
        self.depth -= 1
        self.forget_parts(names)
        found, self.out = self.out, kept
        self.known = known
        return nodes.block(found)

    def break_or_continue(self, node):
        word = "break" if isinstance(node, ast.Break) else "continue"
        self.out.append(nodes.leave(word, self.at))

    def return_statement(self, node):
        """`return` of a kernel, or of a function that it calls."""
        if self.frame.key == "":
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                raise self.error(node, "a kernel returns nothing: write the result to an array")
            self.out.append(nodes.leave("return", self.at))
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
        condition, at = self.truth(self.value(node.test)), self.at
        number = self.new_array(f"assert {text}", "u64", nodes.extent_space(nodes.literal("u64", 1, at)))
        index = nodes.select("u64", condition, nodes.literal("u64", 0, at), nodes.literal("u64", 1, at), at)
        self.out.append(nodes.set_variable(self.temporary("u64"), nodes.load("u64", number, index, at), at))

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


def _in_loop(body, kind):
    """Whether a block has a statement of this kind that belongs to the loop around the block."""
    for node in body:
        if isinstance(node, kind):
            return True
        if isinstance(node, (ast.For, ast.While)):
            continue
        blocks = [getattr(node, "body", []), getattr(node, "orelse", []), *(case.body for case in getattr(node, "cases", []))]
        if any(_in_loop(block, kind) for block in blocks):
            return True
    return False


def leaves_loop(body):
    return _in_loop(body, ast.Break)


def continues_loop(body):
    return _in_loop(body, ast.Continue)


def has_return(node):
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


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
    ast.Assert: Statements.assertion,
    ast.Pass: lambda self, node: None,
}
