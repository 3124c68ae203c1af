"""Random kernels beside the same functions run by Python on NumPy's numbers: integers exactly.

Complex numbers are of arrays, parts and literals.

``USM_KERNEL_RANDOM`` is the number of functions; the tests of a change take a sample.
"""

import linecache
import os
import random
import types
import warnings

import numpy as np
import pytest
from conftest import device_of

import usm

COUNT = int(os.environ.get("USM_KERNEL_RANDOM", "40"))
ITEMS = 24
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
FLOATS = ["float32", "float64"]
TYPES = ["np.int32", "np.int64"]
STRUCTURE = np.dtype([("n", np.int64), ("f", np.float32), ("at", [("m", np.int32), ("g", np.float32)])], align=True)


class Writer:
    """Writes a function of arrays: a, b, c (integers), x (floats), z (complex numbers).

    Its results are r, f and w, of the same three kinds. Elements of s and t are structures, of
    which t changes.
    """

    def __init__(self, chance):
        self.chance = chance
        self.names = []
        self.types = {}
        self.lines = []
        self.depth = 1
        self.count = 0

    def pick(self, *choices):
        return self.chance.choice(choices)

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def whole(self, depth=0):
        """An integer expression."""
        if depth > 3 or self.chance.random() < 0.25:
            return self.pick("a[i]", "b[i]", "c[j]", "s[j][\"n\"]", "t[i][\"at\"][\"m\"]", "t[\"n\"][i]", "i", "n", "3", "7", "-2", *(self.names or ["i"]))
        one, two = self.whole(depth + 1), self.whole(depth + 1)
        kind = self.chance.randrange(12)
        if kind < 5:
            return f"({one} {self.pick('+', '-', '*', '&', '|', '^')} {two})"
        if kind == 5:
            return f"({one} {self.pick('//', '%')} (abs({self.cast(two)}) % 5 + 1))"
        if kind == 6:
            return f"({one} {self.pick('//', '%')} {self.pick('3', '4', '-3', '8')})"
        if kind == 7:
            return f"({self.cast(one)} {self.pick('<<', '>>')} ({self.cast(two)} & 7))"
        if kind == 8:
            # Both of one type, which Python's value has whichever it is.
            ty = self.pick(*TYPES)
            return f"({self.cast(one, ty)} if {self.condition(depth + 1)} else {self.cast(two, ty)})"
        if kind == 9:
            ty = self.pick(*TYPES)
            return f"{self.pick('min', 'max')}({self.cast(one, ty)}, {self.cast(two, ty)})"
        if kind == 10:
            return f"(~{one})" if self.chance.random() < 0.5 else f"(-{self.cast(one)})"
        return self.cast(one)

    def complex(self, depth=0):
        """A complex expression."""
        if depth > 2 or self.chance.random() < 0.2:
            return self.pick("z[i]", "z[j]", "2j", "(1.5 - 0.5j)", "np.complex64(x[i])", "np.conj(z[j])", "z[i].conjugate()")
        one, two = self.complex(depth + 1), self.complex(depth + 1)
        kind = self.chance.randrange(8)
        if kind < 3:
            return f"({one} {self.pick('+', '-', '*')} {two})"
        if kind == 3:
            return f"({one} / (abs({two}) + 1))"
        if kind == 4:
            return f"({self.pick(f'{one}.real', f'{one}.imag', 'x[i]', 'a[i]', '3')} {self.pick('+', '-', '*')} {two})"
        if kind == 5:
            return f"np.complex128({one} if {self.condition(2)} else {two})"
        if kind == 6:
            return f"({one} / (z[i] + (9 - 2j)))"
        return f"(-{one})"

    def cast(self, text, ty=None):
        return f"{ty or self.pick(*TYPES)}({text})"

    def condition(self, depth=0):
        one, two = self.whole(depth + 1), self.whole(depth + 1)
        text = f"{one} {self.pick('<', '<=', '==', '!=', '>', '>=')} {two}"
        if self.chance.random() < 0.2:
            text = f"{one} < {two} <= {self.whole(depth + 1)}"
        if depth < 2 and self.chance.random() < 0.3:
            text = f"({text}) {self.pick('and', 'or')} ({self.condition(depth + 1)})"
        return f"not ({text})" if self.chance.random() < 0.1 else text

    def statement(self):
        kind = self.chance.randrange(8)
        if kind == 7:
            self.line(
                self.pick(
                    f't[i]["n"] {self.pick("=", "+=", "^=")} {self.cast(self.whole(), "np.int64")}',
                    f't[i]["at"]["m"] = {self.cast(self.whole(), "np.int32")}',
                    't[i]["at"] = s[j]["at"]',
                    "t[i] = s[i]",
                    f"t[i] = ({self.cast(self.whole(), 'np.int64')}, t[i]['f'], (3, 0.5))",
                    't[i]["f"] = s[i]["at"]["g"]',
                )
            )
        elif kind <= 2 or self.depth > 3:
            name = f"v{self.count}"
            self.count += 1
            self.types[name] = self.pick(*TYPES)
            self.line(f"{name} = {self.cast(self.whole(), self.types[name])}")
            self.names.append(name)
        elif kind == 3 and any(name in self.types for name in self.names):
            name = self.pick(*(name for name in self.names if name in self.types))
            self.line(f"{name} = {self.cast(f'{name} + {self.whole()}', self.types[name])}")
        elif kind == 4:
            self.line(f"r[i] {self.pick('+=', '=', '^=')} {self.cast(self.whole())}")
        elif kind == 5:
            self.line(f"if {self.condition()}:")
            self.inner()
            if self.chance.random() < 0.5:
                self.line("else:")
                self.inner()
        else:
            self.line(f"for k{self.depth} in range({self.pick('3', '5, 0, -2', '-4, 4, 3', 'i % 4')}):")
            kept = list(self.names)
            self.names.append(f"k{self.depth}")
            self.inner(self.pick("", f"if {self.condition(2)}: break", f"if {self.condition(2)}: continue"))
            self.names = kept

    def inner(self, first=""):
        kept = list(self.names)
        self.depth += 1
        if first:
            self.line(first)
        for _ in range(self.chance.randint(1, 2)):
            self.statement()
        self.line("pass")
        self.depth -= 1
        self.names = kept

    def function(self):
        self.line("i = usm.get_global_id(0)")
        self.line("j = a.size - 1 - i")
        self.line("p = t[i]")
        for _ in range(self.chance.randint(3, 7)):
            self.statement()
        self.line(f"r[i] += {self.cast(self.whole())}")
        self.line(f"f[i] = x[i] * {self.pick('2', '0.5', 'i', 'x[j]')} {self.pick('+', '-')} {self.pick('a[i]', 'x[j]', '1.5')}")
        self.line(f"f[i] {self.pick('*=', '-=', '+=')} {self.pick('abs(x[i])', 'x[j] % 0.75', 'x[i] // 0.3', 'float(b[i])')}")
        self.line(f'p["f"] = s[i]["f"] {self.pick("+", "*")} ' + self.pick("x[i]", 't[i]["at"]["g"]', "2"))
        self.line(f"u = {self.pick('0', '0j', 'z[j]')}")
        self.line("for k in range(3):")
        self.line(f"    u = u {self.pick('+', '-')} {self.complex(1)}")
        self.line(f"w[i] = u if {self.pick('u', 'z[i]')} {self.pick('==', '!=')} {self.pick('z[j]', 'x[i]', '0')} else u - 1")
        self.line(f"w[i] {self.pick('+=', '-=', '*=')} {self.complex()}")
        return "def function(a, b, c, x, n, r, f, z, w, s, t):\n" + "\n".join(self.lines) + "\n"


def by_python(text, arguments):
    """Each item's function, by Python."""
    words = types.SimpleNamespace(get_global_id=None)
    space = {"usm": words, "np": np}
    exec(text, space)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        for item in range(ITEMS):
            words.get_global_id = lambda _, item=item: np.int64(item)
            space["function"](*arguments)


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_random_kernels_equal_python(backend, monkeypatch):
    # A compiler would take most of the time.
    monkeypatch.setenv("USM_KERNEL_HOST", "builtin")
    queue = device_of(backend).selector
    seed = int(os.environ.get("USM_KERNEL_SEED", "1"))
    chance, random_numbers = random.Random(seed), np.random.default_rng(seed)
    count = COUNT if backend == "host" else max(COUNT // 8, 1)
    compared = 0
    for number in range(count):
        text = Writer(chance).function()
        file = f"<random {seed}.{number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        space = {"usm": usm, "np": np}
        exec(compile(text, file, "exec"), space)
        kernel = usm.kernel(space["function"])
        kinds = [chance.choice(INTEGERS) for _ in range(3)]
        low = [0 if kind[0] == "u" else -100 for kind in kinds]
        arrays = [random_numbers.integers(least, 100, ITEMS).astype(kind) for least, kind in zip(low, kinds)]
        arrays.append((random_numbers.random(ITEMS) * 4 - 2).astype(chance.choice(FLOATS)))
        given = [*arrays, 5, np.zeros(ITEMS, np.int64), np.zeros(ITEMS, arrays[3].dtype)]
        parts = random_numbers.random((2, ITEMS)) - 0.5
        given += [(parts[0] + 1j * parts[1]).astype(chance.choice(["c8", "c16"])), np.zeros(ITEMS, chance.choice(["c8", "c16"]))]
        structures = np.zeros((2, ITEMS), STRUCTURE)
        structures["n"], structures["f"] = random_numbers.integers(-50, 50, (2, ITEMS)), random_numbers.random((2, ITEMS))
        structures["at"]["m"] = random_numbers.integers(-9, 9, (2, ITEMS))
        step = chance.choice([1, 2])
        given += [structures[0], np.repeat(structures[1], step)[::step]]
        expected = [one.copy() if isinstance(one, np.ndarray) else one for one in given]
        try:
            by_python(text, expected)
        except (OverflowError, TypeError):
            # NumPy refuses a number of Python's that a small type has not, and some mixes of types.
            continue
        try:
            with usm.device_context(queue):
                kernel[ITEMS](*given)
        except usm.KernelError as error:
            # A literal that the other side's type has not, where Python does not come by.
            if "does not fit" in str(error) or "no integer type holds both" in str(error):
                continue
            raise AssertionError(f"{error}\n{kinds}\n{text}") from error
        assert given[5].tolist() == expected[5].tolist(), f"{kinds}\n{text}"
        np.testing.assert_allclose(given[6], expected[6], rtol=1e-5, atol=1e-5, err_msg=text)
        scale = np.abs(expected[8]).max()
        np.testing.assert_allclose(given[8], expected[8], 1e-4, 1e-5 * max(scale, 1), err_msg=text)
        assert given[10][["n", "at"]].tolist() == expected[10][["n", "at"]].tolist(), f"{kinds}\n{text}"
        np.testing.assert_allclose(given[10]["f"], expected[10]["f"], rtol=1e-5, atol=1e-5, err_msg=text)
        compared += 1
    assert compared >= max(count // 4, 1)
