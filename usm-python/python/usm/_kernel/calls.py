"""Calls in kernels."""

import ast
import builtins
import math
from importlib import import_module

from . import names
from .types import BITS, NAMES, STORED, is_float, is_int, is_signed, limits, literal, of_dtype, promote
from .values import Arr, Frame, Reference, Static, Tup, Val, number

#: Functions of `math` and NumPy that the nodes have under another name or the same.
_MATH = {
    "sqrt": "sqrt", "exp": "exp", "log": "ln", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos",
    "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "exp2": "exp2", "expm1": "exp_m1", "log2": "log2", "log10": "log10", "log1p": "ln_1p", "cbrt": "cbrt", "fabs": "abs",
    "pow": "pow", "atan2": "atan2", "hypot": "hypot", "copysign": "copysign", "fma": "mul_add",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "rint": "round_ties_even", "power": "pow",
}  # fmt: skip
_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_TWO = {"pow", "atan2", "hypot", "copysign"}
_QUERIES = {
    "get_global_id": "global-id", "get_local_id": "local-id", "get_group_id": "group-id",
    "get_global_size": "global-size", "get_local_size": "local-size", "get_num_groups": "groups",
}  # fmt: skip
#: Ids and sizes that no device exceeds.
_MOST_ITEMS = (1 << 40) - 1
_DEPTH = 16


class Method:
    """A function of an element for atomic operations."""

    __slots__ = ("name", "reference")

    def __init__(self, reference, name):
        self.reference = reference
        self.name = name


class DeviceFunction:
    """A function that kernels call; plain Python may call it too."""

    def __init__(self, function):
        from .source import Source

        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.source = Source(function)

    def __call__(self, *arguments, **keywords):
        return self.__wrapped__(*arguments, **keywords)

    def __repr__(self):
        return f"<usm.device_func {self.__name__}>"


class Calls:
    """Methods of the compiler."""

    def call(self, node, alone=False):
        function = self.expr(node.func)
        if function.__class__ is not Static:
            raise self.error(node, f"`{ast.unparse(node.func)}` is no function")
        function = function.value
        kind = function.__class__
        if kind is names.Word:
            return self.word(function.__name__, node, alone)
        if kind is DeviceFunction:
            return self.inline(function, node)
        if kind is Method:
            return self.referred(function, node, alone)
        for keyword in node.keywords:
            raise self.error(keyword.value, "keywords are not for calls in kernels: write the values in order")
        try:
            handler = _HANDLERS.get(function)
        except TypeError:
            handler = None
        if handler is not None:
            return handler(self, node)
        name = getattr(function, "__name__", None)
        if getattr(function, "__module__", None) == "math" and name in _MATH:
            return self.mathematics(_MATH[name], node)
        if kind.__name__ == "ufunc":
            if name in _MATH:
                return self.mathematics(_MATH[name], node)
            if name in _ROUND:
                return self.rounding(_ROUND[name], node, False)
            if name in ("minimum", "maximum", "fmin", "fmax"):
                return self.least(node, "min" if "min" in name else "max")
            if name == "absolute":
                return self.absolute(node)
        if isinstance(function, type) or not callable(function) or kind.__name__ == "DType":
            ty = of_dtype(function)
            if ty is not None:
                return self.cast(self.only(node), ty)
        text = ast.unparse(node.func)
        if hasattr(function, "__code__"):
            raise self.error(node, f"a call of `{text}`, a function of plain Python: decorate it with `@usm.device_func`")
        raise self.error(node, f"a call of `{text}` is not for kernels: `math`, `min`, `max`, `abs`, casts and functions of usm are")

    def only(self, node):
        return self.several(node, 1)[0]

    def several(self, node, count):
        if len(node.args) != count or node.keywords:
            given = len(node.args) + len(node.keywords)
            raise self.error(node, f"`{ast.unparse(node.func)}` has {count} argument{'s' * (count != 1)}, {given} are given")
        for one in node.args:
            if isinstance(one, ast.Starred):
                raise self.error(one, "`*` is not for kernels: write each argument")
        return self.operands(node.args)

    # Functions of numbers.

    def mathematics(self, name, node):
        values = self.several(node, 3 if name == "mul_add" else 2 if name in _TWO else 1)
        ty = None
        for value in values:
            if value.ty == "bool" or is_int(value.ty):
                value = Val("", "wf" if value.ty == "wi" else "f64")
            ty = value.ty if ty is None else promote(ty, value.ty)
        values = [self.cast(value, "u8") if value.ty == "bool" else value for value in values]
        return self.call_plain(name, values, ty)

    def rounding(self, name, node, whole):
        value = self.only(node)
        if not is_float(value.ty):
            return value
        found = self.call_plain(name, (value,), value.ty)
        return self.cast(found, "i64") if whole else found

    def nearest(self, node):
        value = self.only(node)
        if not is_float(value.ty):
            return value
        return self.cast(self.call_plain("round_ties_even", (value,), value.ty), "i64")

    def absolute(self, node):
        value = self.only(node)
        if is_float(value.ty):
            return self.call_plain("abs", (value,), value.ty)
        if not is_signed(value.ty) or value.ty == "bool":
            return value
        if value.const is not None:
            return number(abs(value.const), value.ty, self.at)
        value, stored = self.simple(value), STORED[value.ty]
        return Val(f"(max {stored} {value.text} (neg {stored} {value.text} {self.at}) {self.at})", value.ty)

    def least(self, node, operator):
        if len(node.args) < 2 or node.keywords:
            raise self.error(node, f"`{operator}` of a kernel has two or more numbers")
        values = self.operands(node.args)
        found = values[0]
        for value in values[1:]:
            found = self.lesser(operator, found, value, node)
        return found

    def lesser(self, operator, one, two, node):
        if one.ty == "bool":
            one = self.cast(one, "i64")
        if two.ty == "bool":
            two = self.cast(two, "i64")
        ty = self.common(one, two, node, "and")
        if one.const is not None and two.const is not None and ty[0] == "w":
            return one if (one.const <= two.const) == (operator == "min") else two
        high = None
        if operator == "max" and one.high is not None and two.high is not None:
            high = max(one.high, two.high)
        elif operator == "min" and one.high is not None and two.high is not None:
            high = min(one.high, two.high)
        return self.plain(operator, one, two, ty, high)

    def length(self, node):
        if len(node.args) != 1:
            raise self.error(node, "`len` has 1 argument")
        found = self.expr(node.args[0])
        if found.__class__ is Arr and found.extents:
            return found.extents[0]
        if found.__class__ is Tup:
            return number(len(found.items), "wi", self.at)
        if found.__class__ is Static and isinstance(found.value, (tuple, list)):
            return number(len(found.value), "wi", self.at)
        raise self.error(node, "`len` of what is no array")

    def to_int(self, node):
        return self.cast(self.only(node), "i64")

    def to_float(self, node):
        return self.cast(self.only(node), "f64")

    def to_bool(self, node):
        return self.cast(self.only(node), "bool")

    def classify(self, node, name):
        value = self.only(node)
        if not is_float(value.ty):
            return number(name == "isfinite", "bool", self.at)
        value, stored, at = self.simple(value), STORED[value.ty], self.at
        if name == "isnan":
            return Val(f"(ne bool {value.text} {value.text} {at})", "bool")
        size = f"(abs {stored} {value.text} {at})"
        infinite = f"(lit {stored} {literal(math.inf, stored):#x} {at})"
        return Val(f"({'eq' if name == 'isinf' else 'lt'} bool {size} {infinite} {at})", "bool")

    # Functions of usm.

    def word(self, name, node, alone):
        if name in _QUERIES:
            return self.query(name, node)
        space, _, function = name.partition(".")
        if name in ("barrier", "mem_fence"):
            return self.barrier(name, node)
        if space in ("local", "private") and function == "array":
            return self.array_of(space, node)
        if name == "constant.array_like":
            return self.table(node)
        if space == "atomic":
            return self.atomic(function, node, alone)
        if space == "group":
            return self.collect(function, node)
        if space == "kernel_api":
            return self.spelled(function, node, alone)
        raise self.error(node, f"`usm.{name}` is not for kernels")

    # As numba-dpex spells it.

    def spelled(self, name, node, alone):
        kind, _, method = name.partition(".")
        if name == "AtomicRef":
            return self.reference(node)
        if name == "PrivateArray":
            return self.private_array(node)
        if name in ("group_barrier", "atomic_fence"):
            self.out.append(f"({'barrier' if name == 'group_barrier' else 'fence'} local global {self.at})")
            return Static(None)
        if kind == "AtomicRef":
            raise self.error(node, f"`{method}` of what is no AtomicRef")
        if method == "get_group":
            return Static(import_module("usm.kernel_api").Group)
        word = method.removeprefix("get_")
        linear = "linear_" in word
        word = word.replace("linear_", "")
        query = {
            "id": "global-id", "global_id": "global-id", "local_id": "local-id", "group_id": "group-id",
            "range": "global-size", "global_range": "global-size", "local_range": "local-size", "group_range": "groups",
        }[word]  # fmt: skip
        if not linear:
            return self.query_of(query, method, node)
        if node.args or node.keywords:
            raise self.error(node, f"`{method}` has no arguments")
        size = {"global-id": "global-size", "local-id": "local-size", "group-id": "groups"}.get(query, query)
        at = self.at
        text = f"({query} u64 0 {at})"
        for dimension in range(1, self.dimensions):
            text = f"(mul u64 {text} ({size} u64 {dimension} {at}) {at})"
            if size != query:
                text = f"(add u64 {text} ({query} u64 {dimension} {at}) {at})"
        return Val(f"(cast i64 {text} {at})", "i64", None, _MOST_ITEMS)

    def reference(self, node):
        given = list(node.args) + [keyword.value for keyword in node.keywords if keyword.arg == "index"]
        if len(given) < 2:
            raise self.error(node, "`AtomicRef` has the arguments array and index")
        array = self.expr(given[0])
        if array.__class__ is not Arr:
            raise self.error(given[0], "`AtomicRef` of what is no array")
        index = self.expr(given[1])
        places = list(index.items) if index.__class__ is Tup else [self.as_value(index, given[1])]
        return Reference(array, [self.set_temporary(place) for place in places], given[1])

    def private_array(self, node):
        zeros = None
        if len(node.args) > 2:
            zeros = node.args[2]
        for keyword in node.keywords:
            if keyword.arg == "fill_zeros":
                zeros = keyword.value
        kept = [keyword for keyword in node.keywords if keyword.arg != "fill_zeros"]
        plain = ast.copy_location(ast.Call(node.func, node.args[:2], kept), node)
        array = self.array_of("private", plain)
        if zeros is not None and self.value(zeros).const:
            count, at = math.prod(extent.const for extent in array.extents), self.at
            place = self.temporary("u64")
            self.out.append(
                f"(for ${place} (lit u64 0x0 {at}) (lit u64 {count:#x} {at}) (lit u64 0x1 {at}) "
                f"(do (store #{array.number} (var u64 ${place} {at}) (lit {array.ty} 0x0 {at}) {at})) {at})"
            )
        return array

    def referred(self, method, node, alone):
        reference, name = method.reference, method.name
        array = reference.array
        if name == "load":
            self.several(node, 0)
            self.atomic_on(array, reference, "add", [number(0, "wi", self.at)], node, True, only_check=True)
            place = self.place_in(array, reference.places, [node] * len(reference.places), node)
            return self.set_temporary(Val(f"(load {array.ty} #{array.number} {place} {self.at})", array.ty, None, None, False))
        if name == "compare_exchange":
            return self.compared(reference, node)
        function = names.FETCHED.get(name, "exch" if name in ("exchange", "store") else None)
        if function is None:
            raise self.error(node, f"an AtomicRef has no `{name}`")
        values = self.several(node, 1)
        return self.atomic_on(array, reference, function, values, node, alone or name == "store")

    def compared(self, reference, node):
        if not 2 <= len(node.args) <= 3 or node.keywords:
            raise self.error(node, "`compare_exchange` has the arguments expected, desired and expected_idx")
        expected = self.expr(node.args[0])
        if expected.__class__ is not Arr:
            raise self.error(node.args[0], "what is expected is an array, which gets the value that was found")
        desired = self.set_temporary(self.value(node.args[1]))
        where = self.simple(self.value(node.args[2])) if len(node.args) == 3 else number(0, "wi", self.at)
        place = self.place_in(expected, [where], [node], node)
        array, at = reference.array, self.at
        wanted = self.set_temporary(self.cast(Val(f"(load {expected.ty} #{expected.number} {place} {at})", expected.ty, None, None, False), array.ty))
        old = self.atomic_on(array, reference, "cas", [wanted, desired], node, False)
        same = self.set_temporary(Val(f"(eq bool {old.text} {wanted.text} {at})", "bool"))
        kept, self.out = self.out, []
        self.put_element(expected, place, old, node)
        first, self.out = self.out, kept
        self.out.append(f"(if {same.text} (do) (do {' '.join(first)}) {at})")
        return same

    def query(self, name, node):
        return self.query_of(_QUERIES[name], name, node)

    def query_of(self, query, name, node):
        dimension = self.only(node).const
        if type(dimension) is not int:
            raise self.error(node, f"`{name}` has a literal as its dimension")
        if not 0 <= dimension < self.dimensions:
            raise self.error(node, f"dimension {dimension} of a range with {self.dimensions}: launch it over more, or ask for less")
        return Val(f"(cast i64 ({query} u64 {dimension} {self.at}) {self.at})", "i64", None, _MOST_ITEMS)

    def barrier(self, name, node):
        if len(node.args) > 1 or node.keywords:
            raise self.error(node, f"`{name}` has one argument: its flags")
        flags = self.value(node.args[0]).const if node.args else 3
        if type(flags) is not int or not 0 <= flags <= 3:
            raise self.error(node, f"the flags of `{name}` are CLK_LOCAL_MEM_FENCE, CLK_GLOBAL_MEM_FENCE, or both by `|`")
        words = " ".join(word for bit, word in ((1, "local"), (2, "global")) if flags & bit)
        self.out.append(f"({'barrier' if name == 'barrier' else 'fence'} {words} {self.at})")
        return Static(None)

    def array_of(self, space, node):
        given = dict(zip(("shape", "dtype"), node.args))
        for keyword in node.keywords:
            if keyword.arg not in ("shape", "dtype") or keyword.arg in given:
                raise self.error(keyword.value, f"`usm.{space}.array` has the arguments shape and dtype")
            given[keyword.arg] = keyword.value
        if len(given) != 2 or len(node.args) > 2:
            raise self.error(node, f"`usm.{space}.array` has the arguments shape and dtype")
        if space == "local" and self.depth:
            raise self.error(node, "local memory under a condition or in a loop: declare it at the top of the function")
        if self.depth and self.loops and space == "private":
            raise self.error(node, "private memory in a loop: declare it at the top of the function")
        extents = self.extents_of(given["shape"])
        dtype = self.expr(given["dtype"])
        ty = of_dtype(dtype.value) if dtype.__class__ is Static else None
        if ty is None:
            raise self.error(given["dtype"], f"`{ast.unparse(given['dtype'])}` is no type of kernels: usm.float32 and others are")
        count = math.prod(extent.const for extent in extents)
        if space == "private" and count > 4096:
            raise self.error(node, f"{count} elements of private memory: 4096 are allowed")
        text = f"(private {count})" if space == "private" else f"(local (lit u64 {count:#x} {self.at}))"
        return Arr(space, self.new_array(space, ty, text), ty, extents, space)

    def extents_of(self, node):
        found = self.expr(node)
        if found.__class__ is Static and isinstance(found.value, (tuple, list)):
            items = [self.as_value(Static(item), node) for item in found.value]
        else:
            items = [self.as_value(item, node) for item in found.items] if found.__class__ is Tup else [self.as_value(found, node)]
        for item in items:
            if type(item.const) is not int:
                raise self.error(node, "the shape of an array in a kernel is literals or constants of the module; pass `usm.Local(shape, dtype)` for one that is known at the launch")
            if not 0 < item.const < 1 << 31:
                raise self.error(node, f"an extent of {item.const}: 1 to {(1 << 31) - 1} are possible")
        return items

    def table(self, node):
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "`usm.constant.array_like` has 1 argument")
        found = self.expr(node.args[0])
        if found.__class__ is not Static:
            raise self.error(node, "a table of constant memory is an array outside of the kernel, or a tuple")
        from .._usm import asarray

        try:
            made = asarray(found.value, copy=True, kind="host", device="host")
            ty, shape, data = of_dtype(made.dtype), made.shape, bytes(made)
        except Exception as error:
            raise self.error(node, f"`{ast.unparse(node.args[0])}` is no array of numbers: {error}") from None
        if ty is None:
            raise self.error(node, f"elements of type {made.dtype} are not for kernels")
        if len(data) > 65536:
            raise self.error(node, f"{len(data)} bytes of constant memory: 65536 are allowed")
        extents = [number(extent, "wi", self.at) for extent in shape]
        array = self.new_array("constant", ty, f"(constant {math.prod(shape)})")
        self.parameters.append(f"#{array}")
        self.sources.append((5, len(self.tables), 0))
        self.tables.append(data)
        return Arr("constant", array, ty, extents, "constant")

    def atomic(self, function, node, alone):
        count = 4 if function == "cas" and len(node.args) == 4 else 3
        if len(node.args) != count or node.keywords:
            raise self.error(node, f"`usm.atomic.{function}` has the arguments array, index, {'expected, ' * (function == 'cas')}value")
        array = self.expr(node.args[0])
        if array.__class__ is not Arr or array.kind not in ("param", "local"):
            raise self.error(node, "atomic operations are for arguments and local arrays")
        index = self.expr(node.args[1])
        places = list(index.items) if index.__class__ is Tup else [self.as_value(index, node.args[1])]
        start = len(self.out)
        wanted = self.expr(node.args[2])
        if count == 4:
            values = [self.as_value(wanted, node.args[2]), self.value(node.args[3])]
        elif function == "cas":
            if wanted.__class__ is not Tup or len(wanted.items) != 2:
                raise self.error(node, "`usm.atomic.cas` has the arguments array, index, expected, value")
            values = [self.as_value(item, node.args[2]) for item in wanted.items]
        else:
            values = [self.as_value(wanted, node.args[2])]
        if len(self.out) != start:
            self.spill(places, start)
        return self.atomic_on(array, Reference(array, places, node.args[1]), function, values, node, alone)

    def atomic_on(self, array, reference, function, values, node, alone, only_check=False):
        if array.kind not in ("param", "local"):
            raise self.error(node, "atomic operations are for arguments and local arrays")
        if BITS[array.ty] not in (32, 64) or array.ty == "bool":
            raise self.error(node, f"an atomic operation on {NAMES[array.ty]}: integers and floats of 32 and 64 bits have them")
        if function in ("and_", "or_", "xor") and is_float(array.ty):
            raise self.error(node, f"`usm.atomic.{function}` on {NAMES[array.ty]}: only integers have it")
        if array.kind == "param" and array.argument not in self.atomics:
            self.atomics.add(array.argument)
            self.changed = True
        if only_check:
            return Static(None)
        place = self.place_in(array, reference.places, [reference.node] * len(reference.places), node)
        texts = " ".join(self.to(value, array.ty) for value in values)
        old, target = None, ""
        if not alone:
            old = self.temporary(array.ty)
            target = f" ${old}"
        head = "compare-exchange" if function == "cas" else f"atomic {names.ATOMICS[function]}"
        self.out.append(f"({head} #{array.number} {place} {texts}{target} {self.at})")
        return Static(None) if alone else Val(f"(var {array.ty} ${old} {self.at})", array.ty)

    def collect(self, function, node):
        at = self.at
        if function == "broadcast":
            value, item = self.several(node, 2)
            if not is_int(item.ty):
                raise self.error(node, "the item of `broadcast` is an integer: a linear local id")
            found = self.temporary(value.ty)
            self.out.append(f"(broadcast ${found} {value.text} {self.to(item, 'u64')} {at})")
            return Val(f"(var {STORED[value.ty]} ${found} {at})", value.ty)
        if function in ("any", "all"):
            if len(node.args) != 1:
                raise self.error(node, f"`usm.group.{function}` has 1 argument")
            value = self.condition(node.args[0])
            how, by = "reduce", "or" if function == "any" else "and"
        else:
            how, _, by = function.partition("_")
            value = self.only(node)
            if value.ty == "bool":
                value = self.cast(value, "i64")
        found = self.temporary(value.ty)
        self.out.append(f"(collect {how} {by} ${found} {value.text} {at})")
        return Val(f"(var {STORED[value.ty]} ${found} {at})", value.ty)

    # Functions of the user's.

    def inline(self, function, node):
        source = function.source
        if source.function in self.stack or len(self.stack) > _DEPTH:
            raise self.error(node, f"a recursion of `{function.__name__}`: kernels have none; write a loop")
        tree = source.tree
        if isinstance(tree, ast.AsyncFunctionDef):
            raise source.error(tree, "an async function is not for kernels: write `def`")
        parameters = tree.args.posonlyargs + tree.args.args
        if tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults:
            raise source.error(tree, "parameters of a function of kernels are plain names, without `*`, `**` and defaults")
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
        from .compiler import assigned_names

        frame = Frame(f"{caller.key}/{caller.file}:{node.lineno}:{node.col_offset}", source, self.file_of(source))
        changed = assigned_names(source)
        self.loops = []
        self.stack.append(source.function)
        values = [self.simple(value) if value.__class__ is Val else value for value in found]
        self.frame = frame
        for parameter, value in zip(parameters, values):
            if value.__class__ is Val and parameter.arg in changed:
                self.assign(parameter.arg, value, parameter)
            else:
                frame.names[parameter.arg] = value
        frame.result = Returns(tree.body)
        if frame.result.flagged:
            frame.result.flag = self.temporary("bool")
            self.out.append(f"(set ${frame.result.flag} (lit bool 0x0 {at}) {at})")
        self.block(tree.body)
        self.at = at
        count = frame.result.count
        result = Static(None)
        if count is not None:
            items = [self.read_variable(f"{frame.key}.return{place}", node) for place in range(abs(count))]
            # What is read later is what is there now.
            items = [self.set_temporary(item) for item in items]
            result = items[0] if count == -1 else Tup(items)
        self.frame, self.loops = caller, loops
        self.stack.pop()
        return result

    def block_of_function(self, body):
        """A block in which `return` leaves the function and not the kernel."""
        returns = self.frame.result
        for place, node in enumerate(body):
            if isinstance(node, ast.Return) or not has_return(node):
                self.statement(node)
                if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                    return
                continue
            rest = body[place + 1 :]
            if isinstance(node, ast.If):
                one, two = always(node.body), always(node.orelse)
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
                    self.out.append(f"(if (var bool ${returns.flag} {self.at}) (do (break {self.at})) (do) {self.at})")
                    continue
            if rest:
                at = self.at
                text, _ = self.inside(rest)
                self.out.append(f"(if (var bool ${returns.flag} {at}) (do) {text} {at})")
            return

    def give_back(self, node):
        """`return` of a function that a kernel calls."""
        returns = self.frame.result
        found = Static(None) if node.value is None else self.expr(node.value)
        if found.__class__ is Static and found.value is None:
            count = None
        else:
            items = found.items if found.__class__ is Tup else [found]
            count = len(items) if found.__class__ is Tup else -1
            items = [self.as_value(item, node) for item in items]
            for place, item in enumerate(items):
                self.assign(f"return{place}", item, node)
        if returns.seen and returns.count != count:
            raise self.error(node, "one `return` gives another number of values than another one")
        returns.seen, returns.count = True, count
        if returns.flag is not None:
            self.out.append(f"(set ${returns.flag} (lit bool 0x1 {self.at}) {self.at})")
        if self.loops:
            self.out.append(f"(break {self.at})")


class Returns:
    """The returns of a function: how many values, and whether a flag says that one was reached."""

    __slots__ = ("count", "flag", "flagged", "seen")

    def __init__(self, body):
        self.count = None
        self.seen = False
        self.flag = None
        self.flagged = hidden(body, False)


def has_return(node):
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def always(body):
    """Whether a block ends by a return on every way."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.If) and always(node.body) and always(node.orelse)):
            return True
    return False


def hidden(body, in_loop):
    """Whether a return stands in a loop, or under a condition whose branches both may go on."""
    for node in body:
        if isinstance(node, (ast.For, ast.While)):
            if has_return(node):
                return True
        elif isinstance(node, ast.If) and has_return(node):
            if not always(node.body) and not always(node.orelse):
                return True
            if hidden(node.body, in_loop) or hidden(node.orelse, in_loop):
                return True
    return False


_HANDLERS = {
    builtins.min: lambda self, node: self.least(node, "min"),
    builtins.max: lambda self, node: self.least(node, "max"),
    builtins.abs: Calls.absolute,
    builtins.int: Calls.to_int,
    builtins.float: Calls.to_float,
    builtins.bool: Calls.to_bool,
    builtins.round: Calls.nearest,
    builtins.len: Calls.length,
    math.floor: lambda self, node: self.rounding("floor", node, True),
    math.ceil: lambda self, node: self.rounding("ceil", node, True),
    math.trunc: lambda self, node: self.rounding("trunc", node, True),
    math.isnan: lambda self, node: self.classify(node, "isnan"),
    math.isinf: lambda self, node: self.classify(node, "isinf"),
    math.isfinite: lambda self, node: self.classify(node, "isfinite"),
}
__all__ = ["Calls", "DeviceFunction", "limits"]
