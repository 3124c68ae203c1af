"""The table of forms in `docs/python/kernels.md` is true of Python."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import usm

P = np.dtype([("x", "f4"), ("n", "u4")])
TABLE = np.array([1, 2, 3], "f4")
ROWS = np.array([[1, 2], [3, 4]], "f4")


def arrays():
    """The arguments that kernels of forms take, by their names."""
    return {
        "a": np.ones((4, 4), "f4"),
        "n": np.arange(4, dtype="u4"),
        "m": np.arange(-2, 2),
        "flags": np.zeros(4, bool),
        "h": np.ones(4, "f2"),
        "ps": np.zeros(4, P),
        "z": np.ones(4, "c8"),
        "one": np.zeros(1, P)[0],
        "pair": (1, 2.0),
        **{f"p{k}": k for k in range(9)},
    }


#: The body of each form; `i` is the item.
FORMS = {
    "a row as a value": "row = a[i]; row[0] = len(row)",
    "two indices": "a[i][1] = a[0][2]",
    "a slice of a row": "part = a[i, 1:3]; part[0] = part[1]",
    "structures as elements": "q = ps[i]; q.x += 1",
    "a structure by value": "n[i] = one.n",
    "arrays of structures in local and private memory": "own = usm.private.array(2, P); own[0].x = 1",
    "tuples as values": "t = (a[i, 0], 1); a[i, 1] = t[0]",
    "a tuple as an argument of a kernel": "n[i] = pair[0]",
    "float16 and bfloat16 elements": "h[i] = h[i] * 2",
    "complex elements": "z[i] = z[i].conjugate()",
    "printing": "print(f'{i} {a[i, 0]:.2f}')",
    "assertions": "assert a[i, 0] > 0, 'positive'",
    "local and private arrays anywhere": "for k in range(i):\n        t = usm.private.array(4, np.float32); t[k] = 1; a[i, k] = t[k]",
    "arrays of the module": "a[i, 0] = TABLE[i % 3]",
    "constant arrays of rows": "a[i, 0] = ROWS[1, i % 2]",
    "match": "match i % 3:\n        case 0: n[i] = 1\n        case 1 | 2: n[i] = 5",
    "a choice as a value": "a[i, 0] = a[i, 1] if i > 2 else 0.0",
    "destructuring and swap": "x, y = a[i, 0], 1.0; x, y = y, x; a[i, 0], a[i, 1] = x, y",
    "signed numbers as indices": "k = i - 1\n    if k >= 0: n[k + 1] = 2",
    "a signed index without a cast": "k = np.int64(1); n[i] = m[k]",
    "more than 8 parameters": "n[i] = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8",
    "arrays of bool": "flags[i] = not flags[i]",
    "erf, erfc, gamma": "a[i, 0] = math.erf(a[i, 0]) + math.erfc(a[i, 1]) + math.gamma(a[i, 2])",
    "powers": "a[i, 0] = a[i, 1] ** 1.5 + a[i, 2] ** 3; n[i] = n[i] ** 2",
    "clamp": "a[i, 0] = np.clip(a[i, 1], 0, 1)",
    "the remainder of the sign of the divisor": "m[i] = m[i] % 3",
    "ones among the bits of an integer": "n[i] = np.bitwise_count(n[i])",
    "zeros and rotations of bits": "n[i] = int(n[i]).bit_length()",
    "division rounded up": "m[i] = -(-m[i] // 3)",
    "saturating arithmetic": "n[i] = n[i].saturating_sub(7)",
    "the bits of a float": "n[i] = a[i, 0].view(np.uint32)",
    "constants of mathematics": "a[i, 0] = math.pi",
    "random numbers by counter": "n[i] = usm.random.philox(7, i)[0]",
    "`np.where`, `np.sign`, `np.square`, `np.hypot`": "a[i, 0] = np.where(i > 2, np.sign(a[i, 1]), np.square(np.hypot(a[i, 2], 1)))",
}


def rows():
    """The rows of the table: form, Python, Rust."""
    page = (Path(__file__).parents[2] / "docs/python/kernels.md").read_text()
    table = page.split("| form | Python | Rust |\n|---|---|---|\n")[1].split("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def test_every_form_has_a_row():
    assert set(FORMS) <= {form for form, _, _ in rows()}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_row_is_true(row, tmp_path, capsys):
    form, python, _ = row
    if form not in FORMS:
        assert not python
        return
    every = arrays()
    words = set(re.findall(r"(?<![\w.'])\w+", FORMS[form]))
    names = [name for name in every if name in words]
    path = tmp_path / "form.py"
    path.write_text(f"def form({', '.join(names)}):\n    i = usm.get_global_id(0)\n    {FORMS[form]}\n")
    scope = {"usm": usm, "np": np, "math": math, "P": P, "TABLE": TABLE, "ROWS": ROWS}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    try:
        usm.kernel(scope["form"])[4](*[every[name] for name in names])
        found = ""
    except usm.Error as error:
        found = str(error)
    assert bool(found) == python.startswith("no"), f"{form}: {found or 'it works'}, and the table says {python!r}"
