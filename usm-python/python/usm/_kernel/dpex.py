"""Functions and methods of kernels as numba-dpex spells them."""

from importlib import import_module

from . import nodes
from .keys import MOST
from .signature import Signature
from .source import Source
from .state import Scope
from .values import Static, Val

_QUERIES = {
    "id": "global-id", "global_id": "global-id", "local_id": "local-id", "group_id": "group-id",
    "range": "global-size", "global_range": "global-size", "local_range": "local-size", "group_range": "groups",
}  # fmt: skip
#: The size that belongs to an id.
_SIZES = {"global-id": "global-size", "local-id": "local-size", "group-id": "groups"}


class Dpex:
    """Methods of the compiler for `usm.kernel_api`."""

    __slots__ = ()
    source: Source
    signature: Signature
    scope: Scope

    def dpex_word(self, name, node):
        """A call of a name of `usm.kernel_api`, such as `Item.get_id`."""
        kind, _, method = name.partition(".")
        if name == "AtomicRef":
            return self.atomic_ref(node)
        if name == "PrivateArray":
            return self.private_array(node)
        if name in ("group_barrier", "atomic_fence"):
            self.emit(nodes.fence("barrier" if name == "group_barrier" else "fence", 3, self.scope.at))
            return Static(None)
        if kind == "AtomicRef":
            raise self.error(node, f"`{method}` of what is no AtomicRef")
        if method == "get_group":
            return Static(import_module("usm.kernel_api").Group)
        word = method.removeprefix("get_")
        linear = "linear_" in word
        word = word.replace("linear_", "")
        query = _QUERIES[word]
        if not linear:
            return self.id_or_size_node(query, method, node)
        if node.args or node.keywords:
            raise self.error(node, f"`{method}` has no arguments")
        return self.linear(query)

    def is_of_range(self, value):
        """Whether an object is the item or its group, which have the range's dimensions."""
        if value is self.source.item is not None:
            return True
        return getattr(value, "__name__", "") == "Group" and value is import_module("usm.kernel_api").Group

    def linear(self, query):
        """A linear id or a linear size; the last dimension is the fastest."""
        size, at = _SIZES.get(query, query), self.scope.at
        text = nodes.query(query, "u64", 0, at)
        for dimension in range(1, self.signature.dimensions):
            text = nodes.binary("mul", "u64", text, nodes.query(size, "u64", dimension, at), at)
            if size != query:
                text = nodes.binary("add", "u64", text, nodes.query(query, "u64", dimension, at), at)
        return Val(nodes.cast("i64", text, at), "i64", None, MOST)
