"""Local, private and constant memory that a kernel declares."""

import ast
import math

from . import nodes
from .keys import FROM_TABLE, MOST
from .state import Draft, Scope
from .types import COMPLEX, of_dtype
from .values import Arr, Static, Tup, number


class Memory:
    """Methods of the compiler for arrays that a kernel declares."""

    __slots__ = ()
    draft: Draft
    scope: Scope

    def declare_array(self, space, node):
        """`usm.local.array` or `usm.private.array`."""
        arguments = dict(zip(("shape", "dtype"), node.args))
        for keyword in node.keywords:
            if keyword.arg not in ("shape", "dtype") or keyword.arg in arguments:
                raise self.error(keyword.value, f"`usm.{space}.array` has the arguments shape and dtype")
            arguments[keyword.arg] = keyword.value
        if len(arguments) != 2 or len(node.args) > 2:
            raise self.error(node, f"`usm.{space}.array` has the arguments shape and dtype")
        extents = self.extents_of(arguments["shape"])
        dtype = self.expr(arguments["dtype"])
        ty = of_dtype(dtype.value) if dtype.__class__ is Static else None
        if ty is None:
            raise self.error(arguments["dtype"], f"`{ast.unparse(arguments['dtype'])}` is no type of kernels: usm.float32 and others are")
        is_complex, ty = ty in COMPLEX, COMPLEX.get(ty, ty)
        count = math.prod(extent.const for extent in extents) << is_complex
        if count > MOST:
            raise self.error(node, f"{count >> is_complex} elements of {space} memory: no device has them")
        if space == "private" and count > 4096:
            raise self.error(node, f"{count >> is_complex} elements of private memory: {4096 >> is_complex} are allowed")
        text = nodes.private_space(count) if space == "private" else nodes.local_space(nodes.literal("u64", count, self.scope.at))
        array = Arr(space, self.draft.new_array(space, ty, text, self.scope.at, is_complex=is_complex), ty, extents, space, is_complex=is_complex)
        if space == "private" and self.scope.loops:
            # Each round has new zeros.
            self.fill_zeros(array)
        return array

    def name_array(self, name, meaning):
        """Names an array that the kernel declares after its variable, in messages."""
        if meaning.__class__ is Arr and meaning.kind in ("local", "private") and meaning.name == meaning.kind:
            meaning.name = name
            self.draft.arrays[meaning.number] = (name, *self.draft.arrays[meaning.number][1:])

    def private_array(self, node):
        """`kapi.PrivateArray`, which can begin with zeros."""
        zeros = None
        if len(node.args) > 2:
            zeros = node.args[2]
        for keyword in node.keywords:
            if keyword.arg == "fill_zeros":
                zeros = keyword.value
        keywords = [keyword for keyword in node.keywords if keyword.arg != "fill_zeros"]
        plain = ast.copy_location(ast.Call(node.func, node.args[:2], keywords), node)
        array = self.declare_array("private", plain)
        if zeros is not None and self.value(zeros).const and not self.scope.loops:
            self.fill_zeros(array)
        return array

    def fill_zeros(self, array):
        """Sets all elements of a private array to zero."""
        count, at = math.prod(extent.const for extent in array.extents) << array.is_complex, self.scope.at
        place = self.temporary("u64")
        bounds = [nodes.literal("u64", bound, at) for bound in (0, count, 1)]
        store = nodes.store(array.number, nodes.variable("u64", place, at), nodes.literal(array.ty, 0, at), at)
        self.emit(nodes.for_loop(place, *bounds, nodes.block([store]), at))

    def extents_of(self, node):
        """The extents of a declared array, in elements: known numbers from 1 to 2^31 - 1."""
        meaning = self.expr(node)
        if meaning.__class__ is Static and isinstance(meaning.value, (tuple, list)):
            items = [self.as_value(Static(item), node) for item in meaning.value]
        else:
            items = [self.as_value(item, node) for item in meaning.items] if meaning.__class__ is Tup else [self.as_value(meaning, node)]
        for item in items:
            if type(item.const) is not int:
                raise self.error(node, "the shape of an array in a kernel is literals or constants of the module; pass `usm.Local(shape, dtype)` for one that is known at the launch")
            if not 0 < item.const < 1 << 31:
                raise self.error(node, f"an extent of {item.const}: 1 to {(1 << 31) - 1} are possible")
        return items

    def constant_table(self, node):
        """`usm.constant.array_like`: at most 65536 bytes, read when the kernel is made."""
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, "`usm.constant.array_like` has 1 argument")
        meaning = self.expr(node.args[0])
        if meaning.__class__ is not Static:
            raise self.error(node, "a table of constant memory is an array outside of the kernel, or a tuple")
        return self.table_of(meaning.value, ast.unparse(node.args[0]), node)

    def table_of(self, value, name, node):
        """An array outside of the kernel as a table of its values of now."""
        table = self.draft.constants.get(id(value))
        if table is not None:
            return table
        from .._usm import asarray

        try:
            elements = asarray(value, copy=True, kind="host", device="host")
            ty, shape, data = of_dtype(elements.dtype), elements.shape, bytes(elements)
        except Exception as error:
            raise self.error(node, f"`{name}` is no array of numbers: {error}") from None
        if ty is None:
            raise self.error(node, f"elements of type {elements.dtype} are not for kernels")
        if len(data) > 65536:
            raise self.error(node, f"`{name}` outside of the kernel has {len(data)} bytes: 65536 of constant memory are allowed, so pass it as an argument")
        if not data:
            raise self.error(node, f"`{name}` outside of the kernel has no elements")
        extents = [number(extent, "wi", self.scope.at) for extent in shape]
        is_complex, ty = ty in COMPLEX, COMPLEX.get(ty, ty)
        space = nodes.constant_space(math.prod(shape) << is_complex)
        array = self.draft.new_array(name if name.isidentifier() else "constant", ty, space, self.scope.at, is_complex=is_complex)
        self.draft.parameters.append(nodes.array_parameter(array))
        self.draft.sources.append((FROM_TABLE, len(self.draft.tables), 0))
        self.draft.tables.append(data)
        table = self.draft.constants[id(value)] = Arr("constant", array, ty, extents, "constant", is_complex=is_complex)
        return table
