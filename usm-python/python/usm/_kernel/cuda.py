"""numba.cuda's names in kernels, rewritten to those of this package before compilation."""

import ast
import copy

from . import names
from .source import Source

#: Hidden names of the words that rewritten texts call: no text of a user can have them.
_WORDS = {
    f"usm.{word.__name__}": word
    for word in (names.get_local_id, names.get_group_id, names.get_local_size, names.get_num_groups, names.get_global_id, names.get_global_size, names.barrier, names.mem_fence)
}
_WORDS |= {"usm.group.all": names.group.all, "usm.group.any": names.group.any, "usm.group.reduce_add": names.group.reduce_add, "usm.atomic.cas": names.atomic.cas}


class Place:
    """`threadIdx`, `blockIdx`, `blockDim` or `gridDim`: three numbers that kernels have."""

    def __init__(self, name, query):
        self.__name__ = name
        self.query = query

    def __repr__(self):
        return f"<usm.cuda.{self.__name__}, numbers of kernels>"


class CudaWord(names.Word):
    """A function of numba.cuda that becomes a call of this package's."""


class CudaSource(Source):
    """The source of a function with numba.cuda's names, whose ranges have three dimensions."""

    __slots__ = ()

    def __init__(self, function):
        super().__init__(function)
        self.tree = _Rewriter(self).visit(copy.deepcopy(self.tree))

    def outer_names(self):
        return super().outer_names() | _WORDS


class _Rewriter(ast.NodeTransformer):
    """Replaces numba.cuda's names by calls. Dimension `x` is the last one of the range."""

    def __init__(self, source):
        self.source = source
        self.outer_names = Source.outer_names(source)
        self.own_names = source.assigned_names() | {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}

    def meaning(self, node):
        """The object that a name or an attribute stands for outside of the function; or None."""
        if isinstance(node, ast.Name):
            return None if node.id in self.own_names else self.outer_names.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            return None if owner is None else getattr(owner, node.attr, None)
        return None

    @staticmethod
    def call_of(word, arguments, node):
        call = ast.Call(ast.Name(f"usm.{word}", ast.Load()), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def query(self, word, axis, node):
        return self.call_of(word, [ast.Constant(2 - axis)], node)

    def visit_FunctionDef(self, node):
        # Decorators and annotations are no code of the kernel.
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Attribute(self, node):
        owner = self.meaning(node.value)
        if owner.__class__ is Place:
            if node.attr not in "xyz" or len(node.attr) != 1:
                raise self.source.error(node, f"`{ast.unparse(node)}`: x, y and z are its numbers")
            return self.query(owner.query, "xyz".index(node.attr), node)
        return self.generic_visit(node)

    def visit_Call(self, node):
        function = self.meaning(node.func)
        name = function.__name__.rpartition(".")[2] if function.__class__ is CudaWord else None
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if name in ("grid", "gridsize"):
            count = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
            if count not in (1, 2, 3) or node.keywords:
                raise self.source.error(node, f"`cuda.{name}` has one argument: 1, 2 or 3")
            word = "get_global_id" if name == "grid" else "get_global_size"
            axes = [self.query(word, axis, node) for axis in range(count)]
            return axes[0] if count == 1 else ast.copy_location(ast.Tuple(axes, ast.Load()), node)
        if name == "syncthreads":
            return self.call_of("barrier", [], node)
        if name in ("threadfence", "threadfence_block", "threadfence_system"):
            return self.call_of("mem_fence", [], node)
        if name in ("syncthreads_and", "syncthreads_or"):
            return self.call_of("group.all" if name == "syncthreads_and" else "group.any", node.args, node)
        if name == "syncthreads_count":
            one, none = ast.Constant(1), ast.Constant(0)
            return self.call_of("group.reduce_add", [ast.IfExp(test, one, none) for test in node.args], node)
        if name == "selp" and len(node.args) == 3:
            return ast.copy_location(ast.IfExp(*node.args), node)
        if name == "compare_and_swap" and len(node.args) == 3:
            return self.call_of("atomic.cas", [node.args[0], ast.copy_location(ast.Constant(0), node), *node.args[1:]], node)
        if name is None:
            node.func = self.visit(node.func)
        return node
