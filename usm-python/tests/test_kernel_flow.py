"""Random texts of kernels, with branches, loops and functions that return from within them, beside
plain Python, which runs the same text for one work-item after the other."""

import ast
import os
import random

import effort
import numpy as np
import pytest

import usm

SEED = int(os.environ.get("USM_FLOW_SEED", "1"))
PROGRAMS = effort.cases("USM_FLOW_PROGRAMS", 24)
ITEMS = 20
NAMES = ["p", "q", "r", "s"]
COUNTERS = ["j", "k", "h"]


class Writer:
    """Writes one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def choose(self, *items):
        return self.random.choice(items)

    def expr(self, depth, leaves):
        chance = self.random.random()
        if depth == 0 or chance < 0.3:
            return self.choose(self.choose(*leaves), self.choose(*leaves), self.choose("n", "m"), self.choose("0", "1", "2", "-1", "7"))
        operator = self.choose("+", "-", "*", "+", "-", "&", "|", "^", "//", "%", ">>")
        one = self.expr(depth - 1, leaves)
        if operator in ("//", "%"):
            return f"({one} {operator} {self.choose('2', '3', '7', '-3', '4')})"
        return f"({one} {operator} {self.choose('1', '2', '3') if operator == '>>' else self.expr(depth - 1, leaves)})"

    def condition(self, depth, leaves):
        chance = self.random.random()
        if depth and chance < 0.4:
            return f"({self.condition(depth - 1, leaves)} {self.choose('and', 'or')} {self.condition(depth - 1, leaves)})"
        if depth and chance < 0.5:
            return f"(not {self.condition(depth - 1, leaves)})"
        chain = [self.expr(1, leaves)]
        for _ in range(self.choose(1, 1, 2)):
            chain += [self.choose("<", "<=", ">", ">=", "==", "!="), self.expr(1, leaves)]
        return f"({' '.join(chain)})"

    def statement(self, leaves, names, stores):
        """A line that sets variables or elements."""
        kind = self.random.randrange(7)
        if kind == 0:
            return f"{self.choose(*names)} {self.choose('+=', '-=', '^=', '*=')} {self.expr(1, leaves)}"
        if kind == 1:
            one, two = self.random.sample(names, 2)
            return f"{one}, {two} = {self.expr(1, leaves)}, {self.expr(1, leaves)}"
        if kind == 2:
            return f"{self.choose(*names)} = {self.expr(1, leaves)} if {self.condition(1, leaves)} else {self.expr(2, leaves)}"
        if kind == 3 and stores:
            return f"{self.choose('b[i]', 'o[i]', 'l[1]', 'l[i % 4]')} {self.choose('=', '+=', '^=')} {self.expr(2, leaves)}"
        if kind == 4 and stores:
            return f"{self.choose(*names)} = {self.choose('f', 'g')}({self.expr(1, leaves)}, {self.expr(1, leaves)})"
        return f"{self.choose(*names)} = {self.expr(2, leaves)}"

    def block(self, depth, indent, leaves, names, looped, stores, result):
        """Lines; `result` writes what `return` gives."""
        lines, margin = [], "    " * indent
        inner = (depth - 1, indent + 1)
        for _ in range(self.random.randint(1, 3)):
            chance = self.random.random()
            if chance < 0.45 or (not depth and chance < 0.8):
                lines.append(margin + self.statement(leaves, names, stores))
            elif chance < 0.62 and depth:
                lines.append(f"{margin}if {self.condition(1, leaves)}:")
                lines += self.block(*inner, leaves, names, looped, stores, result)
                if self.random.random() < 0.5:
                    lines.append(f"{margin}else:")
                    lines += self.block(*inner, leaves, names, looped, stores, result)
            elif chance < 0.74 and depth:
                bounds = self.choose("3", "n % 4", "5, 0, -2", "n % 5, -1, -1", "1, 7, 3", "m, n % 3", "0, n, m * m + 1")
                lines.append(f"{margin}for {self.choose(*COUNTERS, names[0])} in range({bounds}):")
                lines += self.block(*inner, leaves, names, True, stores, result)
            elif chance < 0.8 and depth:
                self.loops += 1
                counter = f"w{self.loops}"
                lines.append(f"{margin}{counter} = 0")
                lines.append(f"{margin}while {counter} < {self.choose('3', 'n % 4')} and {self.condition(0, leaves)}:")
                lines.append(f"{margin}    {counter} += 1")
                lines += self.block(*inner, leaves, names, True, stores, result)
            elif chance < 0.92 and looped:
                lines.append(f"{margin}if {self.condition(0, leaves)}: {self.choose('break', 'continue')}")
            elif chance < 0.96:
                lines.append(f"{margin}if {self.condition(1, leaves)}: return{result()}")
            elif chance < 0.98:
                lines += [f"{margin}return{result()}"]
                break
            else:
                lines.append(margin + self.statement(leaves, names, stores))
        return lines

    def function(self, name):
        leaves = ["x", "y", "u", "v", *COUNTERS]
        start = f"    u = v = {' = '.join(COUNTERS)} = x - x"
        body = self.block(3, 1, leaves, ["x", "y", "u", "v"], False, False, lambda: " " + self.expr(1, leaves))
        return [f"def {name}(x, y):", start, *body, "    return x + 3 * y + 5 * u + 7 * v"]

    def program(self):
        leaves = [*NAMES, *COUNTERS, "a[i]", "b[i]", "a[0]", "l[2]", "l[i % 4]"]
        body = self.block(3, 1, leaves, NAMES, False, True, lambda: "")
        sums = " + ".join(f"{factor} * {name}" for factor, name in zip((3, 5, 7, 11, 13, 17, 19), NAMES + COUNTERS))
        functions = [line for name in "fg" for line in self.function(name)]
        return "\n".join(
            [
                "import usm",
                f"n, m = {self.random.randint(0, 9)}, {self.random.randint(-2, 2)}",
                *functions,
                "def k(a, b, o):",
                "    i = usm.get_global_id(0)",
                "    l = usm.private.array(4, 'int64')",
                f"    {' = '.join(NAMES + COUNTERS)} = i - i",
                *body,
                f"    o[i] += {sums}",
                "",
            ]
        )


class Plain:
    """What the text finds in `usm` when plain Python runs it."""

    item = 0

    class private:
        @staticmethod
        def array(count, dtype):
            return np.zeros(count, dtype)

    @classmethod
    def get_global_id(cls, _):
        return np.int64(cls.item)


class Wide(ast.NodeTransformer):
    """Makes literals int64, which wrap around as kernels' numbers do."""

    def visit_Constant(self, node):
        if type(node.value) is not int:
            return node
        return ast.copy_location(ast.parse(f"np.int64({node.value})", mode="eval").body, node)


def expected(text, a, b, o):
    names = {"np": np, "range": lambda *bounds: map(np.int64, range(*map(int, bounds)))}
    exec(compile(ast.fix_missing_locations(Wide().visit(ast.parse(text))), "plain", "exec"), names)
    names["usm"] = Plain
    with np.errstate(all="ignore"):
        for Plain.item in range(len(a)):
            names["k"](a, b, o)


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_texts(queue, number, tmp_path):
    writer = Writer(f"{SEED} {number}")
    text = writer.program()
    limit = writer.choose(5, 50, 1 << 31)
    a, b = (np.array([writer.random.randint(-limit, limit) for _ in range(ITEMS)]) for _ in range(2))
    results = []
    path = tmp_path / "flow.py"
    path.write_text(text)
    names = {}
    exec(compile(text, path, "exec"), names)
    names["f"], names["g"] = usm.device_func(names["f"]), usm.device_func(names["g"])

    def run(b, o):
        with usm.device_context(queue):
            usm.kernel(names["k"])[ITEMS](a, b, o)

    for way in (lambda b, o: expected(text, a, b, o), run):
        changed, out = b.copy(), np.zeros(ITEMS, np.int64)
        way(changed, out)
        results.append((changed.tolist(), out.tolist()))
    assert results[1] == results[0], text
