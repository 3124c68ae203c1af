"""Expressions of kernels."""

import ast
import types as pytypes

from .types import BITS, NAMES, STORED, is_float, is_int, is_signed, limits, promote
from .values import Arr, Reference, Static, Tup, Val, number

_ARITHMETIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
_COMPARISON = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FOLD = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b, "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_SYMBOL = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "shl": "<<", "shr": ">>", "and": "&", "or": "|", "xor": "^"}
_GREATEST = (1 << 63) - 1


class Expressions:
    """Methods of the compiler."""

    def expr(self, node):
        """A value, an array, a tuple or an object."""
        at = self.at
        self.at = self.place_of(node)
        method = self.EXPRESSIONS.get(node.__class__)
        if method is None:
            raise self.error(node, self.REFUSED.get(node.__class__, f"{type(node).__name__} is not for kernels"))
        found = method(self, node)
        self.at = at
        return found

    def value(self, node):
        """A number."""
        return self.as_value(self.expr(node), node)

    def as_value(self, found, node):
        if found.__class__ is Val:
            return found
        if found.__class__ is Static:
            value = found.value
            kind = type(value)
            if kind is bool:
                return number(value, "bool", self.at)
            if kind is int:
                return self.whole(value, node)
            if kind is float:
                return number(value, "wf", self.at)
            if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
                from .types import of_dtype

                ty = of_dtype(value.dtype)
                if ty is not None:
                    return number(value.item(), ty, self.at)
            text = f"`{ast.unparse(node)}`, an object of type {kind.__name__}," if kind is not pytypes.ModuleType else f"the module `{ast.unparse(node)}`"
            raise self.error(node, f"{text} is no number: kernels know numbers, arrays and their elements")
        if found.__class__ is Arr:
            raise self.error(node, f"the array `{found.name}` is no number: index it")
        raise self.error(node, "a tuple is no number")

    def whole(self, value, node):
        if not -(1 << 63) <= value < 1 << 64:
            raise self.error(node, f"{value} does not fit 64 bits")
        if value > _GREATEST:
            return number(value, "u64", self.at)
        return number(value, "wi", self.at)

    # Types.

    def to(self, value, ty):
        """The text of a value in another type."""
        stored = STORED[ty]
        here = STORED[value.ty]
        if value.const is not None:
            if is_int(stored) and is_float(value.ty):
                return f"(cast {stored} {value.text} {self.at})"
            return number(value.const, stored, self.at).text
        if here == stored:
            return value.text
        if stored == "bool":
            return f"(ne bool {value.text} (lit {here} 0x0 {self.at}) {self.at})"
        if here == "bool" and is_float(stored):
            return f"(cast {stored} (cast u8 {value.text} {self.at}) {self.at})"
        return f"(cast {stored} {value.text} {self.at})"

    def cast(self, value, ty):
        """A value as the type of that name, whatever it was."""
        if value.const is not None and not (is_int(ty) and is_float(value.ty)):
            if is_int(ty):
                low, high = limits(ty)
                wrapped = (int(value.const) - low) % (high - low + 1) + low
                return number(wrapped, ty, self.at)
            return Val(self.to(value, ty), ty, value.const if ty != "bool" else bool(value.const))
        keeps = value.high is not None and is_int(ty) and value.high <= limits(ty)[1]
        return Val(self.to(value, ty), ty, None, value.high if keeps else None, value.pure)

    def truth(self, value):
        """The text of a condition."""
        return value.text if value.ty == "bool" else self.to(value, "bool")

    def condition(self, node):
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, numbers=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            if inner.const is not None:
                return number(not inner.const, "bool", self.at)
            return Val(f"(not bool {inner.text} {self.at})", "bool", None, None, inner.pure)
        value = self.value(node)
        if value.const is not None:
            return number(bool(value.const), "bool", self.at)
        return Val(self.truth(value), "bool", None, None, value.pure)

    # Order.

    def operands(self, nodes):
        """Values in order: what a later one does is done after an earlier one was read."""
        found = []
        for node in nodes:
            start = len(self.out)
            value = self.value(node)
            if len(self.out) != start:
                self.spill(found, start)
            found.append(value)
        return found

    def spill(self, values, start):
        later = self.out[start:]
        del self.out[start:]
        for place, value in enumerate(values):
            if not value.pure and value.const is None:
                values[place] = self.set_temporary(value)
        self.out.extend(later)

    def aside(self, call):
        """What a call gives, and the statements that it needs first."""
        kept, self.out = self.out, []
        self.depth += 1
        known = set(self.known)
        found = call()
        self.known = known
        self.depth -= 1
        first, self.out = self.out, kept
        return found, first

    def simple(self, value):
        """A value that may be written twice."""
        if value.const is not None or (value.pure and value.text.startswith(("(var ", "(val "))):
            return value
        return self.set_temporary(value)

    # Kinds of expressions.

    def constant(self, node):
        value = node.value
        kind = value.__class__
        if kind is bool:
            return number(value, "bool", self.at)
        if kind is int:
            return self.whole(value, node)
        if kind is float:
            return number(value, "wf", self.at)
        return Static(value)

    def name(self, node):
        return self.lookup(node)

    def attribute(self, node):
        found = self.expr(node.value)
        if found.__class__ is Arr:
            if node.attr == "shape":
                return Tup(list(found.extents))
            if node.attr == "size":
                return self.size_of(found)
            if node.attr == "ndim":
                return number(len(found.extents), "wi", self.at)
            if node.attr == "dtype":
                return Static(NAMES[found.ty])
            raise self.error(node, f"`{found.name}.{node.attr}` is not for kernels: shape, size, ndim and dtype are")
        if found.__class__ is Reference:
            from .calls import Method

            return Static(Method(found, node.attr))
        if found.__class__ is Static:
            try:
                return Static(getattr(found.value, node.attr))
            except AttributeError:
                raise self.error(node, f"unknown name `{ast.unparse(node)}`") from None
        raise self.error(node, f"a number has no `{node.attr}` in a kernel")

    def size_of(self, array):
        product = number(1, "wi", self.at)
        for extent in array.extents:
            product = extent if product.const == 1 else self.arithmetic("mul", product, extent, None)
        return Val(product.text, "i64", product.const, product.high if product.const is not None else (1 << 40) - 1)

    def tuple(self, node):
        return Tup([self.expr(item) for item in node.elts])

    def subscript(self, node):
        found = self.expr(node.value)
        if found.__class__ is Arr:
            index, pure = self.index(found, node)
            return Val(f"(load {found.ty} #{found.number} {index} {self.at})", found.ty, None, None, False)
        if found.__class__ is Tup or (found.__class__ is Static and isinstance(found.value, (tuple, list))):
            items = found.items if found.__class__ is Tup else found.value
            place = self.value(node.slice)
            if type(place.const) is not int:
                raise self.error(node, "a tuple is indexed by a literal")
            if not -len(items) <= place.const < len(items):
                raise self.error(node, f"index {place.const} of a tuple of {len(items)}")
            item = items[place.const]
            return item if found.__class__ is Tup else Static(item)
        if found.__class__ is Static:
            if hasattr(found.value, "__array_interface__"):
                raise self.error(node, f"`{ast.unparse(node.value)}` is an array outside of the kernel: pass it, or make it a table by `usm.constant.array_like`")
            raise self.error(node, f"`{ast.unparse(node.value)}` cannot be indexed in a kernel: arrays and tuples can")
        raise self.error(node, f"`{ast.unparse(node.value)}` is a number, which has no elements")

    def index(self, array, node):
        """The text of the place of an element."""
        inner = node.slice
        nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        for one in nodes:
            if isinstance(one, ast.Slice):
                raise self.error(one, "a slice is not for kernels: index elements in a loop")
        if len(nodes) == 1 and not isinstance(inner, ast.Tuple):
            found = self.expr(inner)
            values = list(found.items) if found.__class__ is Tup else [self.as_value(found, inner)]
            if found.__class__ is Tup:
                nodes = [inner] * len(values)
        else:
            values = self.operands(nodes)
        return self.place_in(array, values, nodes, node), all(value.pure for value in values)

    def place_in(self, array, values, nodes, node):
        if len(values) != len(array.extents):
            raise self.error(node, f"`{array.name}` has {len(array.extents)} dimensions, {len(values)} indices are given")
        for place, (value, one) in enumerate(zip(values, nodes)):
            if not is_int(value.ty):
                what = "a bool" if value.ty == "bool" else NAMES[value.ty]
                raise self.error(one, f"an index of type {what}: write `int(..)` or use `//`")
            if value.const is not None and value.const < 0:
                raise self.error(one, f"the negative index {value.const} does not count from the end in a kernel: write `{array.name}.shape[{place}] - {-value.const}`")
            extent = array.extents[place].const
            if value.const is not None and extent is not None and value.const >= extent:
                raise self.error(one, f"index {value.const} of `{array.name}`, whose dimension {place} has {extent} elements")
        if self.way == 1:
            values = [self.noted(array, place, value, one) for place, (value, one) in enumerate(zip(values, nodes))]
        elif self.way == 2 and (len(values) > 1 or array.strides):
            values = [self.simple(value) for value in values]
        elif self.way == 3 and (len(values) > 1 or array.strides):
            for place, value in enumerate(values):
                self.bound(array, place, value)
        at = self.at
        if array.strides:
            flat = array.offset
            for value, stride in zip(values, array.strides):
                step = f"(mul u64 {self.to(value, 'u64')} (cast u64 {stride} {at}) {at})"
                flat = f"(add u64 {flat} {step} {at})"
        elif not values:
            flat = f"(lit u64 0x0 {at})"
        else:
            flat = self.to(values[0], "u64")
            for value, extent in zip(values[1:], array.extents[1:]):
                flat = f"(add u64 (mul u64 {flat} {self.to(extent, 'u64')} {at}) {self.to(value, 'u64')} {at})"
        if self.way == 2 and (len(values) > 1 or array.strides):
            inside = None
            for value, extent in zip(values, array.extents):
                one = f"(lt bool {self.to(value, 'u64')} {self.to(extent, 'u64')} {at})"
                inside = one if inside is None else f"(and-then bool {inside} {one} {at})"
            flat = f"(select u64 {inside} {flat} (lit u64 0xffffffffffffffff {at}) {at})"
        return flat

    def bound(self, array, place, value):
        """Says what the index of a dimension is: the place in an array that is as long."""
        extent = array.extents[place].const
        key = (array.number, place)
        number = self.bounds.get(key)
        if number is None:
            number = self.bounds[key] = self.new_array(array.name, "u8", "read")
            self.parameters.append(f"#{number}")
            self.sources.append((7, array.argument, place) if extent is None else (8, 0, extent))
        name = self.temporary("u8")
        self.out.append(f"(set ${name} (load u8 #{number} {self.to(value, 'u64')} {self.at}) {self.at})")

    def noted(self, array, place, value, node):
        """An index that is noted where it is outside, and counts as 0 then."""
        extent = array.extents[place]
        if value.const is not None and extent.const is not None:
            return value
        at = self.at
        line, column = self.frame.source.place(node)
        self.indices.append((f"{self.frame.source.file}:{line}:{column}", array.name, max(array.argument, 0), place))
        if array.argument < 0:
            self.indices[-1] = (*self.indices[-1][:2], 1 << 32, place)
        index, old = self.temporary("u64"), self.temporary("u64")
        self.out.append(
            f"(set ${index} {self.to(value, 'u64')} {at})"
            f"(if (ge bool (var u64 ${index} {at}) {self.to(extent, 'u64')} {at}) (do "
            f"(compare-exchange #{self.fault} (lit u64 0x0 {at}) (lit u64 0x0 {at}) (lit u64 {len(self.indices):#x} {at}) ${old} {at})"
            f"(if (eq bool (var u64 ${old} {at}) (lit u64 0x0 {at}) {at}) (do "
            f"(atomic exchange #{self.fault} (lit u64 0x1 {at}) (var u64 ${index} {at}) {at})) (do) {at})"
            f"(set ${index} (lit u64 0x0 {at}) {at})) (do) {at})"
        )
        return Val(f"(var u64 ${index} {at})", "u64")

    # Operators.

    def binary(self, node):
        operator = _ARITHMETIC.get(node.op.__class__)
        if operator is None:
            raise self.error(node, "`@` is not for kernels: write the sums in a loop")
        one, two = self.operands((node.left, node.right))
        return self.arithmetic(operator, one, two, node)

    def common(self, one, two, node, what):
        ty = promote(one.ty, two.ty)
        if ty is None:
            raise self.error(node, f"{NAMES[one.ty]} {what} {NAMES[two.ty]}: no integer type holds both: cast one of them")
        for value in (one, two):
            if value.const is not None and value.ty == "wi" and is_int(ty) and ty != "wi":
                low, high = limits(ty)
                if not low <= value.const <= high:
                    raise self.error(node, f"{value.const} does not fit {NAMES[ty]}, the type of the other side: cast that")
        return ty

    def arithmetic(self, operator, one, two, node):
        if one.const is not None and two.const is not None and (one.ty[0] == "w" or two.ty == "bool") and (two.ty[0] == "w" or two.ty == "bool"):
            return self.fold(operator, one, two, node)
        if one.ty == "bool" and two.ty == "bool" and operator in ("and", "or", "xor"):
            return Val(f"({operator} bool {one.text} {two.text} {self.at})", "bool", None, None, one.pure and two.pure)
        if one.ty == "bool":
            one = self.cast(one, "i64" if two.ty in ("bool", "wi") else STORED[two.ty] if is_int(two.ty) else "u8")
        if two.ty == "bool":
            two = self.cast(two, "i64" if one.ty == "wi" else STORED[one.ty] if is_int(one.ty) else "u8")
        ty = self.common(one, two, node, _SYMBOL[operator])
        if operator in ("and", "or", "xor", "shl", "shr"):
            if not is_int(ty):
                raise self.error(node, f"`{_SYMBOL[operator]}` of {NAMES[one.ty]} and {NAMES[two.ty]}: only integers have it")
            return self.bits(operator, one, two, ty, node)
        if operator == "div":
            if is_int(ty):
                ty = "wf" if ty == "wi" else "f64"
            return self.plain("div", one, two, ty)
        if operator in ("floordiv", "mod"):
            return self.floor(operator, one, two, ty, node)
        if operator == "pow":
            return self.power(one, two, ty, node)
        high = None
        if one.high is not None and two.high is not None and operator != "sub":
            high = one.high + two.high if operator == "add" else one.high * two.high
            if not is_int(ty) or high > limits(ty)[1]:
                high = None
        return self.plain(operator, one, two, ty, high)

    def plain(self, operator, one, two, ty, high=None):
        return Val(f"({operator} {STORED[ty]} {self.to(one, ty)} {self.to(two, ty)} {self.at})", ty, None, high, one.pure and two.pure)

    def fold(self, operator, one, two, node):
        try:
            result = _FOLD[operator](one.const, two.const)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.error(node, f"{error}") from None
        if isinstance(result, bool):
            return number(result, "bool", self.at)
        if isinstance(result, int):
            return self.whole(result, node)
        if isinstance(result, float):
            return number(result, "wf", self.at)
        raise self.error(node, f"the result {result} is no real number")

    def bits(self, operator, one, two, ty, node):
        if operator in ("and", "or", "xor"):
            high = None
            if operator == "and":
                highs = [value.high for value in (one, two) if value.high is not None]
                high = min(highs) if highs else None
            return self.plain(operator, one, two, ty, high)
        width = BITS[STORED[ty]]
        if two.const is not None:
            if two.const < 0:
                raise self.error(node, f"a shift by {two.const}: shift the other way")
            if two.const < width:
                high = one.high >> two.const if operator == "shr" and one.high is not None else None
                return self.plain(operator, one, two, ty, high)
        # Further than the type is wide nothing is left, or the sign.
        one, two = self.simple(one), self.simple(two)
        fits = f"(lt bool {self.to(two, 'u64')} (lit u64 {width:#x} {self.at}) {self.at})"
        shifted = self.plain(operator, one, two, ty).text
        stored = STORED[ty]
        rest = f"(lit {stored} 0x0 {self.at})"
        if operator == "shr" and is_signed(ty):
            rest = f"(shr {stored} {self.to(one, ty)} (lit {stored} {width - 1:#x} {self.at}) {self.at})"
        return Val(f"(select {stored} {fits} {shifted} {rest} {self.at})", ty, None, None)

    def floor(self, operator, one, two, ty, node):
        """Python's `//` and `%`: towards minus infinity, with the sign of the divisor."""
        at, stored = self.at, STORED[ty]
        if is_float(ty):
            one, two = self.simple(self.cast(one, stored)), self.simple(self.cast(two, stored))
            rest = self.set_temporary(Val(f"(rem {stored} {one.text} {two.text} {at})", stored))
            zero = f"(lit {stored} 0x0 {at})"
            wrong = (
                f"(and-then bool (ne bool {rest.text} {zero} {at}) "
                f"(ne bool (lt bool {rest.text} {zero} {at}) (lt bool {two.text} {zero} {at}) {at}) {at})"
            )
            rest = self.set_temporary(Val(f"(select {stored} {wrong} (add {stored} {rest.text} {two.text} {at}) {rest.text} {at})", stored))
            if operator == "mod":
                return Val(rest.text, ty)
            quotient = f"(div {stored} (sub {stored} {one.text} {rest.text} {at}) {two.text} {at})"
            return Val(f"(round_ties_even {stored} {quotient} {at})", ty)
        divisor = two.const
        if divisor == 0:
            raise self.error(node, "division by zero")
        plain = "div" if operator == "floordiv" else "rem"
        if not is_signed(ty) or (one.high is not None and two.high is not None):
            high = one.high
            if operator == "mod" and two.high is not None:
                high = two.high - 1 if divisor is not None else two.high
                high = max(high, 0)
            return self.plain(plain, one, two, ty, high if is_int(ty) and two.high is not None else None)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if operator == "floordiv":
                return self.plain("shr", one, self.whole(divisor.bit_length() - 1, node), ty)
            return self.plain("and", one, self.whole(divisor - 1, node), ty, divisor - 1)
        one, two = self.simple(self.cast(one, stored)), self.simple(self.cast(two, stored))
        rest = self.set_temporary(Val(f"(rem {stored} {one.text} {two.text} {at})", stored))
        zero = f"(lit {stored} 0x0 {at})"
        wrong = (
            f"(and-then bool (ne bool {rest.text} {zero} {at}) "
            f"(lt bool (xor {stored} {rest.text} {two.text} {at}) {zero} {at}) {at})"
        )
        if operator == "mod":
            high = divisor - 1 if divisor is not None and divisor > 0 else None
            return Val(f"(select {stored} {wrong} (add {stored} {rest.text} {two.text} {at}) {rest.text} {at})", ty, None, high)
        quotient = self.set_temporary(Val(f"(div {stored} {one.text} {two.text} {at})", stored))
        less = f"(sub {stored} {quotient.text} (lit {stored} 0x1 {at}) {at})"
        return Val(f"(select {stored} {wrong} {less} {quotient.text} {at})", ty)

    def power(self, one, two, ty, node):
        if is_float(ty):
            if two.const == 2:
                value = self.simple(self.cast(one, STORED[ty]))
                return Val(f"(mul {STORED[ty]} {value.text} {value.text} {self.at})", ty)
            ty = "wf" if ty == "wf" else ty
            return self.call_plain("pow", (one, two), ty)
        if two.const is None:
            raise self.error(node, "a power of integers with an exponent that is no literal: write `float(x) ** n`, or a loop")
        if two.const < 0:
            raise self.error(node, f"an integer to the power of {two.const}: write `float(x) ** {two.const}`")
        if two.const > 64:
            raise self.error(node, f"an integer to the power of {two.const}: 64 is the most")
        result, base, exponent = number(1, ty, self.at), self.simple(self.cast(one, STORED[ty])), two.const
        while exponent:
            if exponent & 1:
                result = base if result.const == 1 else self.set_temporary(self.plain("mul", result, base, ty))
            exponent >>= 1
            if exponent:
                base = self.set_temporary(self.plain("mul", base, base, ty))
        return Val(self.to(result, ty), ty, result.const)

    def call_plain(self, function, values, ty):
        stored = STORED[ty]
        text = " ".join(self.to(value, ty) for value in values)
        return Val(f"({function} {stored} {text} {self.at})", ty, None, None, all(value.pure for value in values))

    def unary(self, node):
        if isinstance(node.op, ast.Not):
            return self.condition(node)
        value = self.value(node.operand)
        if isinstance(node.op, ast.Invert):
            if not is_int(value.ty) and value.ty != "bool":
                raise self.error(node, f"`~` of {NAMES[value.ty]}: only integers have it")
            if value.const is not None and value.ty == "wi":
                return self.whole(~value.const, node)
            return Val(f"(not {STORED[value.ty]} {value.text} {self.at})", value.ty, None, None, value.pure)
        if value.ty == "bool":
            value = self.cast(value, "i64")
        if isinstance(node.op, ast.UAdd):
            return value
        if value.const is not None and value.ty[0] == "w":
            return number(-value.const, "wf", self.at) if value.ty == "wf" else self.whole(-value.const, node)
        stored = STORED[value.ty]
        if is_int(stored) and not is_signed(stored):
            return Val(f"(sub {stored} (lit {stored} 0x0 {self.at}) {value.text} {self.at})", value.ty, None, None, value.pure)
        return Val(f"(neg {stored} {value.text} {self.at})", value.ty, None, None, value.pure)

    def boolean(self, node, numbers=False):
        both = isinstance(node.op, ast.And)
        ask = self.condition if numbers else self.bool_only
        result = ask(node.values[0])
        for other in node.values[1:]:
            value, first = self.aside(lambda other=other: ask(other))
            if result.const is not None:
                if bool(result.const) == both:
                    self.out.extend(first)
                    result = value
                continue
            if not first:
                operator = "and-then" if both else "or-else"
                result = Val(f"({operator} bool {result.text} {value.text} {self.at})", "bool", None, None, result.pure and value.pure)
                continue
            name = self.temporary("bool")
            at = self.at
            self.out.append(f"(set ${name} {result.text} {at})")
            held = f"(var bool ${name} {at})"
            inner = f"(do {' '.join(first)} (set ${name} {value.text} {at}))"
            self.out.append(f"(if {held} {inner} (do) {at})" if both else f"(if {held} (do) {inner} {at})")
            result = Val(held, "bool")
        return result

    def bool_only(self, node):
        value = self.value(node)
        if value.ty != "bool":
            raise self.error(node, f"`and` and `or` of {NAMES[value.ty]} as a value: write a comparison such as `!= 0`")
        return value

    def compare(self, node):
        left = self.value(node.left)
        result = None
        for place, (operator, right) in enumerate(zip(node.ops, node.comparators)):
            name = _COMPARISON.get(operator.__class__)
            if name is None:
                raise self.error(node, "`is` and `in` are not for kernels: compare numbers")

            def ask(left=left, right=right, name=name, last=place == len(node.ops) - 1):
                start = len(self.out)
                value = self.value(right)
                kept = [left]
                if len(self.out) != start:
                    self.spill(kept, start)
                if not last:
                    value = self.simple(value)
                return self.comparison(name, kept[0], value, node), value

            if result is None:
                result, left = ask()
                continue
            (value, left), first = self.aside(ask)
            if not first:
                result = Val(f"(and-then bool {result.text} {value.text} {self.at})", "bool", None, None, result.pure and value.pure)
                continue
            held = self.temporary("bool")
            at = self.at
            self.out.append(f"(set ${held} {result.text} {at})(if (var bool ${held} {at}) (do {' '.join(first)} (set ${held} {value.text} {at})) (do) {at})")
            result = Val(f"(var bool ${held} {at})", "bool")
        return result

    def comparison(self, name, one, two, node):
        if one.const is not None and two.const is not None:
            return number(_FOLD[name](one.const, two.const), "bool", self.at)
        for value, other, turned in ((one, two, False), (two, one, True)):
            # A number that the other side's type has not is below or above all of its values.
            if value.const is not None and value.ty == "wi" and is_int(other.ty) and other.ty != "wi":
                low, high = limits(other.ty)
                if not low <= value.const <= high:
                    sample = low
                    pair = (sample, value.const) if turned else (value.const, sample)
                    return number(_FOLD[name](*pair), "bool", self.at)
        if one.ty == "bool" and two.ty == "bool":
            if name in ("eq", "ne"):
                return Val(f"({name} bool {one.text} {two.text} {self.at})", "bool", None, None, one.pure and two.pure)
            one, two = self.cast(one, "u8"), self.cast(two, "u8")
        for value, other, turned in ((one, two, False), (two, one, True)):
            # As NumPy compares Python's numbers: by what they are, and not by what the other type makes of them.
            if value.ty == "wi" and value.const is None and is_int(other.ty) and other.ty != "wi":
                if other.ty != "u64":
                    return self.compared_as(name, one, two, "i64")
                if value.high is not None:
                    return self.compared_as(name, one, two, "u64")
                value, other = self.simple(value), self.simple(other)
                pair = (other, value) if turned else (value, other)
                inside = self.compared_as(name, *pair, "u64").text
                below = _FOLD[name](0, -1) if turned else _FOLD[name](-1, 0)
                negative = f"(lt bool {value.text} (lit i64 0x0 {self.at}) {self.at})"
                if below:
                    return Val(f"(or-else bool {negative} {inside} {self.at})", "bool", None, None, False)
                return Val(f"(and-then bool (not bool {negative} {self.at}) {inside} {self.at})", "bool", None, None, False)
        ty = self.common(one, two, node, "compared with")
        if ty == "bool":
            ty = "u8"
        return self.compared_as(name, one, two, ty)

    def compared_as(self, name, one, two, ty):
        return Val(f"({name} bool {self.to(one, ty)} {self.to(two, ty)} {self.at})", "bool", None, None, one.pure and two.pure)

    def conditional(self, node):
        condition = self.condition(node.test)
        if condition.const is not None:
            return self.value(node.body if condition.const else node.orelse)
        one, first = self.aside(lambda: self.value(node.body))
        two, second = self.aside(lambda: self.value(node.orelse))
        ty = self.common(one, two, node, "or") if one.ty != two.ty else one.ty
        stored, at = STORED[ty], self.at
        high = max(one.high, two.high) if one.high is not None and two.high is not None else None
        if not first and not second:
            text = f"(select {stored} {condition.text} {self.to(one, ty)} {self.to(two, ty)} {at})"
            return Val(text, ty, None, high, condition.pure and one.pure and two.pure)
        name = self.temporary(ty)
        self.out.append(
            f"(if {condition.text} (do {' '.join(first)} (set ${name} {self.to(one, ty)} {at})) "
            f"(do {' '.join(second)} (set ${name} {self.to(two, ty)} {at})) {at})"
        )
        return Val(f"(var {stored} ${name} {at})", ty, None, high)

    REFUSED = {
        ast.ListComp: "a comprehension is not for kernels: write a loop",
        ast.SetComp: "a comprehension is not for kernels: write a loop",
        ast.DictComp: "a comprehension is not for kernels: write a loop",
        ast.GeneratorExp: "a generator is not for kernels: write a loop",
        ast.Yield: "a generator is no kernel: write to an array",
        ast.YieldFrom: "a generator is no kernel: write to an array",
        ast.Await: "`await` is not for kernels",
        ast.Lambda: "a lambda is not for kernels: write a function with `@usm.device_func`",
        ast.List: "a list is not for kernels: use `usm.private.array`",
        ast.Dict: "a dict is not for kernels: use arrays",
        ast.Set: "a set is not for kernels: use arrays",
        ast.JoinedStr: "text is not for kernels",
        ast.NamedExpr: "`:=` is not for kernels: set the variable in a line of its own",
        ast.Starred: "`*` is not for kernels: write each argument",
        ast.Slice: "a slice is not for kernels: index elements in a loop",
    }


Expressions.EXPRESSIONS = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript,
    ast.Tuple: Expressions.tuple,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.boolean,
    ast.Compare: Expressions.compare,
    ast.IfExp: Expressions.conditional,
    ast.Call: lambda self, node: self.call(node),
}
