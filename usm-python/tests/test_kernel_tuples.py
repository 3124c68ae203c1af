"""Tuples in kernels: as arguments, at an index of the item, in choices, and in `match`."""

import linecache
import re

import numpy as np
import pytest

import usm
from usm import cuda

PAIRS = ((1, 2), (3, 4), (5, 6))
POINT = np.dtype([("a", "f8"), ("v", "f4", (3,)), ("z", "c8", (2, 2)), ("n", "i4")], align=True)


def compiled(text, **names):
    """The function `k` of a text."""
    file = f"<tuples {text}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"usm": usm, "np": np, "PAIRS": PAIRS, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["k"]


#: Bodies that set `o[i]` from `t`, and the tuples that they take.
BODIES = {
    "o[i] = t[0] * 10 + t[1] + i": (3, 4),
    "x, (y, z) = t; o[i] = x[i] + y[i] * z": (np.arange(7.0), (np.full(7, 3.0), 2.5)),
    "o[i] = t[0][i] - len(t)": (np.arange(7.0),),
    "o[i] = len(t)": (),
    "o[i] = t[i % 3]": (1, 2.5, np.float32(3)),
    "s = 0.0\n    for x in t: s += x\n    o[i] = s": (True, 2, 4.5),
    "for j in range(len(t)): o[i] += t[j] * (j + 1)": (1, 2, 3, 4),
    "z, n = t; o[i] = (z * z).real + n": (2 + 1j, 3),
    "o[i] = t[1].n + t[1].v[i % 3] + t[1].z[i % 2, 1].imag": (0, np.array([(1, [2, 3, 4], [[1j, 2j], [3j, 4j]], 5)], POINT)[0]),
    "o[i] = t[0]['a'][i] + t[0][i].n": (np.array([(k, [0] * 3, np.zeros((2, 2)), 2 * k) for k in range(7)], POINT),),
    "t = (t[1], t[0] + i); o[i] = t[0] * 100 + t[1]": (3, 4),
    "a, b = PAIRS[i % 3]; o[i] = a * 10 + b + t[0]": (1,),
    "o[i] = PAIRS[i % 3][1] * PAIRS[2][i % 2] + t[0]": (1,),
    "u = (i, t[0]) if i % 2 else t; o[i] = u[0] * 10 + u[1]": (3, 4),
    "u = (t[1], t[0]) if t[0] > 2 else (0, 0)\n    o[i] = u[0] * 10 + u[1]": (3, 4),
    "match i:\n        case 0: o[i] = 100\n        case n if n > 4: o[i] = n * 10\n        case (1 | 2) as m if m == 2: o[i] = -2\n        case _: o[i] = n + t[0]": (7,),
    "match i % 2, i:\n        case 0, n if n > 3: o[i] = n * 10\n        case 1, n if n < 2: o[i] = -n\n        case _, n: o[i] = n + t[0]": (7,),
    "for j in range(9):\n        match j:\n            case k if k == i: break\n            case k if k % 2: continue\n        o[i] += k + t[0]": (1,),
}


def python(body, t):
    """What plain Python computes."""
    text = f"def k(o, t, i):\n    {body}\n"
    function, o = compiled(text), np.zeros(7)
    for i in range(7):
        function(o, t, i)
    return o


@pytest.mark.parametrize("device", ["host", None])
@pytest.mark.parametrize("body", BODIES)
def test_tuples_compute_as_in_python(body, device):
    # NumPy's structures have no attributes.
    wanted = python(re.sub(r"\.([anvz])\b", r'["\1"]', body), BODIES[body])
    k = usm.kernel(compiled(f"def k(o, t):\n    i = usm.get_global_id(0)\n    {body}\n"))
    o = np.zeros(7)
    with usm.Device(device or usm.empty(1).device):
        k[7](o, BODIES[body])
        k.check[7](np.zeros(7), BODIES[body])
    np.testing.assert_allclose(o, wanted)


def test_items_of_tuples_are_written_and_may_share_memory():
    k = usm.kernel(compiled("def k(t):\n    i = usm.get_global_id(0)\n    t[1][i] = t[0][6 - i] + 1\n"))
    one, two = np.arange(7.0), np.zeros(7)
    k[7]((one, two))
    assert two.tolist() == [7, 6, 5, 4, 3, 2, 1]
    device = usm.zeros(7)
    k[7]((usm.asarray(one), device))
    assert device.tolist() == two.tolist()
    assert "share" in k.proof[7]((one, one))
    assert k.proof[7]((one, two)) == "proven"


deep = 1.0
for _ in range(20):
    deep = (deep,)
fixed = np.zeros(7)
fixed.flags.writeable = False
#: Bodies with the tuples that they take, and what is wrong.
FAULTS = [
    ("o[i] = t[2]", (1, 2), "index 2 of a tuple of 2"),
    ("o[i] = t[i]", (1, 2), r"index 2 in dimension 0 of `t` is outside; it has 2 elements"),
    ("o[i] = t[i]", ((1, 2), 3), "`t` is no number|a tuple is no number"),
    ("o[i] = t[0]", ("x",), r"argument 1, `t\[0\]`: an object of type str is no argument"),
    ("o[i] = t[0]", (1, (2, object())), r"argument 1, `t\[1\]\[1\]`: an object of type object"),
    ("o[i] = 1", deep, r"`t(\[0\]){16}`: more than 16 tuples within each other"),
    ("t[1][i] = 1", (1, fixed), r"argument 1, `t\[1\]` is read-only, and the kernel writes it"),
    ("o[i] = t[0][i]", (np.zeros(5),), r"index 5 in dimension 0 of `t\[0\]` is outside"),
    ("o[i] = t[0]", (2**64,), r"argument 1, `t\[0\]`: 18446744073709551616 does not fit int64"),
    ("a, b = t; o[i] = a", (1, 2, 3), "2 names for 3 values"),
    ("a, b = t[0]; o[i] = a", (np.zeros(2),), r"`t\[0\]` is an array, and only tuples are taken apart"),
    ("o[i] = t + 1", (1, 2), "a tuple is no number"),
    ("u = (1, 2) if i else t; o[i] = u[0]", (1, 2, 3), "as many real numbers on both sides"),
    ("t[0].v[1] = 1", (np.zeros(1, POINT)[0],), r"`t\[0\].v` is constant: it cannot be set"),
    ("o[i] = t[0].v[i]", (np.zeros(1, POINT)[0],), r"index 3 in dimension 0 of `t\[0\].v` is outside; its shape is \[3\]"),
    ("o[i] = t[0].b", (np.zeros(1, POINT)[0],), r"`t\[0\]` has no field 'b': it has `a`, `v`, `z`, `n`"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0] + " " + fault[2])
def test_faults_name_the_item(fault):
    body, t, message = fault
    k = usm.kernel(compiled(f"def k(o, t):\n    i = usm.get_global_id(0)\n    {body}\n"))
    with pytest.raises((usm.KernelError, usm.AccessError), match=message):
        k[7](np.zeros(7), t)


def doubled(x):
    return 2 * x


def test_numba_functions_are_called():
    numba = pytest.importorskip("numba")
    twice = numba.njit(doubled)

    @cuda.jit
    def next_of(x):
        return x + 1

    @cuda.jit
    def k(o, t):
        i = cuda.grid(1)
        o[i] = next_of(t[0][i]) + twice(t[1])

    o = np.zeros(3)
    k[1, 3](o, (cuda.to_device(np.arange(3.0)), 5))
    assert o.tolist() == [11, 12, 13]


@usm.device_func
def bump(a, i, by):
    a[i] += by
    return a[i]


@usm.device_func
def first_after(t, a, i):
    a[i] += 100
    return t[1] * 1000 + a[i] + t[0].real


#: Bodies that set `o[i]` with values that a later part of the same statement changes.
ORDERS = [
    "x = i; y = n; x, y = t = (y, x); o[i] = x * 10000 + y * 100 + t[0] * 10 + t[1]",
    "x = i; y = n; (y, x) = (x, y) = (x, y); o[i] = x * 10 + y",
    "p = (i, n); p = q = (p[1], p[0]); o[i] = p[0] * 1000 + p[1] * 100 + q[0] * 10 + q[1]",
    "z = complex(a[i], 2.0); z = w = z.conjugate(); o[i] = z.imag * 10 + w.imag",
    "z = complex(a[i], 2.0); z = w = complex(z.imag, z.real); o[i] = z.real * 10 + w.real",
    "x, y = a[i], bump(a, i, 3); o[i] = x * 10 + y",
    "t = (a[i], bump(a, i, 3), a[i]); o[i] = t[0] * 100 + t[1] * 10 + t[2]",
    "t = (a[i], (a[i] + 1, bump(a, i, 3))); o[i] = t[0] * 100 + t[1][0] * 10 + t[1][1]",
    "x, y = (a[i], bump(a, i, 3)) if i else (bump(a, i, 1), a[i]); o[i] = x * 10 + y",
    "p = q = (a[i], bump(a, i, 3)); o[i] = p[0] * 10 + q[1]",
    "z, y = complex(a[i], 1.0), bump(a, i, 3); o[i] = z.real * 10 + y",
    "o[i] = first_after((complex(a[i], 0.0), a[i]), a, i)",
    "s = 1\n    for v in (s, s + 1, s * 2): s = s * 10 + v\n    o[i] = s",
    "x = i\n    for x in (x, x + 1, x + i): o[i] = o[i] * 10 + x",
    "for v in (a[i], a[i] + 1): a[i] = v * 2\n    o[i] = a[i]",
    "m = n\n    for p, q in ((i, m), (m, 7)):\n        m = p * 10 + q\n    o[i] = m",
    "z = complex(a[i], 1.0)\n    for w in (z, z * 2): z = z * w\n    o[i] = z.real",
]


@pytest.mark.parametrize("body", ORDERS)
def test_parts_are_evaluated_once_and_from_left_to_right(body):
    function = compiled(f"def k(o, a, n):\n    i = usm.get_global_id(0)\n    {body}\n", bump=bump, first_after=first_after)
    o, a = np.zeros(7), np.arange(7.0)
    with usm.Device("host"):
        usm.kernel(function)[7](o, a, 5)
    plain = compiled(f"def k(o, a, n, i):\n    {body}\n", bump=bump, first_after=first_after)
    expected, b = np.zeros(7), np.arange(7.0)
    for i in range(7):
        plain(expected, b, 5, i)
    assert o.tolist() == expected.tolist()
    assert a.tolist() == b.tolist()
