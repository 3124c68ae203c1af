"""Ids and sizes of the range, barriers, and operations of a group."""

from . import nodes
from .keys import MOST
from .names import SHUFFLES
from .signature import Signature
from .source import Source
from .state import Scope
from .types import IR_TYPE, is_int
from .values import Static, Val

#: The node of each function that asks for an id or a size.
QUERIES = {
    "get_global_id": "global-id", "get_local_id": "local-id", "get_group_id": "group-id",
    "get_global_size": "global-size", "get_local_size": "local-size", "get_num_groups": "groups",
}  # fmt: skip


class WorkItems:
    """Methods of the compiler for ids, sizes, barriers and collectives."""

    __slots__ = ()
    source: Source
    signature: Signature
    scope: Scope

    def id_or_size(self, name, node):
        """A call such as `usm.get_global_id(0)`."""
        return self.id_or_size_node(QUERIES[name], name, node)

    def id_or_size_node(self, query, name, node):
        """The value of a query of one dimension, which is a literal."""
        dimension = self.take_argument(node).const
        if type(dimension) is not int:
            raise self.error(node, f"`{name}` has a literal as its dimension")
        if not 0 <= dimension < 3:
            raise self.error(node, f"dimension {dimension}: a range has at most three, 0 to 2")
        dimensions, at = self.signature.dimensions, self.scope.at
        if dimension >= dimensions:
            raise self.error(node, f"dimension {dimension} of a range with {dimensions}: launch it over more, by `k[(n, m), None]` or `k[usm.Range(n, m)]`, or ask for less")
        return Val(nodes.cast("i64", nodes.query(query, "u64", dimension, at), at), "i64", None, MOST)

    def barrier(self, name, node):
        """`usm.barrier` or `usm.mem_fence`."""
        if len(node.args) > 1 or node.keywords:
            raise self.error(node, f"`{name}` has one argument: its flags")
        flags = self.value(node.args[0]).const if node.args else 3
        if type(flags) is not int or not 0 <= flags <= 3:
            raise self.error(node, f"the flags of `{name}` are CLK_LOCAL_MEM_FENCE, CLK_GLOBAL_MEM_FENCE, or both by `|`")
        self.emit(nodes.fence("barrier" if name == "barrier" else "fence", flags, self.scope.at))
        return Static(None)

    def collective(self, space, function, node):
        """A function of `usm.group` or `usm.sub_group`."""
        at, of_sub_group = self.scope.at, space == "sub_group"
        size = self.source.sub_group if of_sub_group else None
        if of_sub_group and function in ("size", "id", "local_id", "count"):
            self.take_arguments(node, 0)
            result = self.temporary("u64")
            self.emit(nodes.sub_group_query(size, function.replace("_", "-"), result, at))
            return Val(nodes.cast("i64", nodes.variable("u64", result, at), at), "i64", None, MOST)
        if of_sub_group and function in SHUFFLES:
            value, lane = self.take_arguments(node, 2)
            if not is_int(lane.ty):
                raise self.error(node, f"the lane of `{function}` is an integer")
            result = self.temporary(value.ty)
            self.emit(nodes.shuffle(size, SHUFFLES[function], result, value.text, self.to(lane, "u64"), at))
            return Val(nodes.variable(IR_TYPE[value.ty], result, at), value.ty)
        if function == "broadcast":
            value, item = self.take_arguments(node, 2)
            if not is_int(item.ty):
                raise self.error(node, "the item of `broadcast` is an integer: a linear local id")
            result = self.temporary(value.ty)
            self.emit(nodes.broadcast(result, value.text, self.to(item, "u64"), at))
            return Val(nodes.variable(IR_TYPE[value.ty], result, at), value.ty)
        if function in ("any", "all"):
            if len(node.args) != 1:
                raise self.error(node, f"`usm.{space}.{function}` has 1 argument")
            value = self.condition(node.args[0])
            how, by = "reduce", "or" if function == "any" else "and"
        else:
            how, _, by = function.partition("_")
            value = self.take_argument(node)
            if value.ty == "bool":
                value = self.cast(value, "i64")
        result = self.temporary(value.ty)
        self.emit(nodes.collect(how, by, result, value.text, at, size))
        return Val(nodes.variable(IR_TYPE[value.ty], result, at), value.ty)
