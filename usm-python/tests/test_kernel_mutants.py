"""Functions that were changed at random: each becomes code, or is refused with a place.

``USM_KERNEL_MUTANTS`` is the number of functions; the tests of a change take a sample.
"""

import ast
import copy
import inspect
import linecache
import math
import os
import random
import re
import warnings

import effort
import kernel_programs
import numpy as np

import usm
from usm import kernel_api

COUNT = effort.cases("USM_KERNEL_MUTANTS", 400)
TYPES = ["float32[:]", "int32[:]", "float64[:,:]", "uint8[:]", "int64", "float32", "int64[:,:,:]", "bool[:]", "uint64[:]", "int8", "bool"]
OPERATORS = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.MatMult]
COMPARISONS = [ast.Lt, ast.LtE, ast.Eq, ast.NotEq, ast.Gt, ast.In, ast.Is]
EXPRESSIONS = [
    "0", "-1", "1.5", "True", "None", "'text'", "2**70", "a", "a[0]", "a[i, 0]", "a.shape", "a.shape[0]", "i", "x", "nothing", "usm", "math.pi",
    "usm.get_global_id(0)", "usm.get_local_id(1)", "usm.group.reduce_add(i)", "usm.atomic.add(a, 0, 1)", "usm.local.array(4, np.float32)",
    "usm.private.array((2, 2), usm.int64)", "min(i, 3)", "abs(-1)", "int(1.5)", "math.sqrt(2)", "range(3)", "(1, 2)", "a if i else x", "not i",
    "i < 3 < x", "lambda: 1", "[1]", "f'{i}'", "a[1:2]", "(y := 1)", "print()", "-(2**63)", "1 << 63", "1e400", "np.uint64(1)", "float(i)",
    "kapi.AtomicRef(a, 0).fetch_add(1)", "usm.constant.array_like(TABLE)", "len(a)", "a.size // 0", "pull(1.0, 2.0)", "first_above(a, 1)",
]  # fmt: skip
STATEMENTS = [
    "i = 1", "a[0] = i", "a = 1", "usm.barrier()", "return", "return 1", "break", "continue", "x: int = 3", "pass", "i += 1.5", "del a",
    "for i in range(3): a[i] = i", "for i in range(10, 0, -3):\n    if i: continue", "while i < 3: i += 1", "while True: break",
    "if i: usm.barrier()", "lm = usm.local.array(8, np.int32)", "i, x = x, i", "a[0], a[1] = a[1], a[0]", "try: pass\nexcept: pass",
    "with a: pass", "global a", "import os", "def g(): pass", "usm.atomic.cas(a, 0, 1, 2)", "a[a[0]] += 1", "x = a", "x = a.shape",
]  # fmt: skip


class Mutation(ast.NodeTransformer):
    """Changes the node with this number."""

    def __init__(self, chance, at):
        self.chance, self.at, self.number = chance, at, 0

    def is_due(self):
        self.number += 1
        return self.number == self.at

    def generic_visit(self, node):
        super().generic_visit(node)
        if isinstance(node, ast.expr) and self.is_due():
            return self.expression(node)
        return node

    def expression(self, node):
        chance = self.chance
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return node
        if isinstance(node, ast.BinOp) and chance.random() < 0.5:
            node.op = chance.choice(OPERATORS)()
            return node
        if isinstance(node, ast.Compare) and chance.random() < 0.5:
            node.ops = [chance.choice(COMPARISONS)() for _ in node.ops]
            return node
        if isinstance(node, ast.Call) and node.args and chance.random() < 0.5:
            node.args = node.args[1:] if chance.random() < 0.5 else node.args + node.args[:1]
            return node
        return ast.parse(chance.choice(EXPRESSIONS), mode="eval").body


def blocks(tree):
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt) and node is not tree:
                yield body


def mutant(chance, tree):
    tree = copy.deepcopy(tree)
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.4:
            body = chance.choice(list(blocks(tree)))
            place = chance.randrange(len(body))
            kind = chance.randrange(4)
            if kind == 0 and len(body) > 1:
                del body[place]
            elif kind == 1:
                body.insert(chance.randrange(len(body) + 1), copy.deepcopy(body[place]))
            elif kind == 2:
                other = chance.choice(list(blocks(tree)))
                other.insert(chance.randrange(len(other) + 1), copy.deepcopy(body[place]))
            else:
                body[place:place] = ast.parse(chance.choice(STATEMENTS)).body
            continue
        count = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
        tree = Mutation(chance, chance.randint(1, count)).visit(tree)
    return ast.fix_missing_locations(tree)


def type_of(value):
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{','.join(':' * value.ndim)}]"
    return "int64" if isinstance(value, int) else "float64"


def sources():
    """Trees of the programs, the types of their arguments, and dimensions of their ranges."""
    for _, kernel, sizes, arguments, _ in kernel_programs.programs():
        tree = ast.parse(inspect.getsource(kernel.__wrapped__))
        tree.body[0].decorator_list = []
        dimensions = len(sizes[0]) if isinstance(sizes[0], tuple) else 1
        yield tree, [type_of(one) for one in arguments], dimensions


def test_each_mutant_compiles_or_is_refused_with_a_place():
    seed = int(os.environ.get("USM_KERNEL_SEED", "1"))
    chance = random.Random(seed)
    trees = list(sources())
    made = tried = 0
    for number in range(COUNT):
        tree, types, dimensions = chance.choice(trees)
        try:
            text = ast.unparse(mutant(chance, tree))
        except ValueError:
            # Some trees are no text.
            continue
        file = f"<mutant {seed}.{number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        try:
            with warnings.catch_warnings(action="ignore"):
                code = compile(text, file, "exec")
        except (SyntaxError, ValueError):
            continue
        space = {**vars(kernel_programs), "np": np, "math": math, "usm": usm, "kapi": kernel_api}
        exec(code, space)
        function = next(node for node in ast.parse(text).body)
        parameters = len(function.args.args)
        signature = ", ".join(one if chance.random() < 0.95 else chance.choice(TYPES) for one in (types * 9)[:parameters])
        tried += 1
        try:
            usm.kernel(space[function.name]).code("opencl-c", signature, ndim=chance.choice([dimensions, dimensions, 1, 2, 3]))
            made += 1
        except usm.KernelError as error:
            # No word of the nodes' own, which is Rust's, reaches a writer of Python.
            wrong = not re.match(r"(<mutant|/).*:\d+:\d+: ", str(error)) or re.search("nodes:|`as |&mut|may have no value", str(error))
            assert not wrong, f"{error}\n{signature}\n{text}"
        except Exception as error:
            raise AssertionError(f"{signature}\n{text}") from error
        finally:
            del linecache.cache[file]
    assert made > tried // 10
