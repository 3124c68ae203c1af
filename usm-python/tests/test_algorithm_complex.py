"""Algorithms over complex numbers beside NumPy, on every backend."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from backends.configurations import CONFIGURATIONS, Missing
from conftest import lacking

import usm
from test_algorithms import equal, given

SIZES = [0, 1, 2, 257, 4097, 40961]


def check(queue, sizes, dtypes=("c8", "c16")):
    for dtype in dtypes:
        for n in sizes:
            random = np.random.default_rng(n)
            # Whole numbers, whose sums are exact.
            x = (random.integers(-9, 10, n) + 1j * random.integers(-9, 10, n)).astype(dtype)
            a = given(x, queue)
            equal(usm.reduce(a), np.asarray(x.sum()))
            equal(usm.scan(a), np.cumsum(x))
            equal(usm.scan(a, exclusive=True), np.cumsum(x) - x)
            # Powers of i, whose products are exact.
            turns = random.integers(0, 4, n)
            units = np.array([1, 1j, -1, -1j], dtype)[turns]
            b = given(units, queue)
            expected = np.array([1, 1j, -1, -1j], dtype)[np.cumsum(turns) % 4]
            equal(usm.scan(b, "prod"), expected)
            equal(usm.reduce(b, "prod"), np.asarray(expected[-1] if n else 1, dtype))


def test_complex_numbers(queue):
    check(queue, SIZES)
    x = (np.arange(35) + 1j * np.arange(35)[::-1]).reshape(5, 7)
    for axis in (0, 1):
        equal(usm.reduce(given(x, queue), axis=axis), x.sum(axis=axis))
        equal(usm.scan(given(x, queue), axis=axis), np.cumsum(x, axis=axis))
    equal(usm.reduce(given(x.imag, queue), dtype="c16"), np.asarray(x.imag.sum(dtype="c16")))


def test_complex_numbers_have_no_order():
    x = np.ones(3, "c8")
    for call in (
        lambda: usm.reduce(x, "min"), lambda: usm.scan(x, "max"), lambda: usm.sort(x), lambda: usm.argsort(x),
        lambda: usm.argmin(x), lambda: usm.argmax(x), lambda: usm.histogram(x), lambda: usm.bincount(x),
    ):
        with pytest.raises(usm.KernelError, match="elements of type <c8 are not for algorithms"):
            call()
    with pytest.raises(TypeError, match="results of type complex64 do not fit"):
        usm.reduce(x, out=np.zeros((), "f4"))


#: Texts of complex arrays `z` and `w`, a complex number `a`, and real arrays `x` and `k`.
TEXTS = {
    "a * z + w": lambda a, z, w: a * z + w,
    "a * x + k": lambda a, x, k: a * x + k,
    "a * z + x": lambda a, z, x: a * z + x,
    "z / w - k * z": lambda z, w, k: z / w - k * z,
    "x / z + 1j": lambda x, z: x / z + 1j,
    "conj(z) * w + x.conj()": lambda z, w, x: np.conj(z) * w + x,
    "abs(z) + real(w) - z.imag": lambda z, w: abs(z) + w.real - z.imag,
    "imag(x) + abs(-z)": lambda x, z: x * 0 + abs(z),
    "square(z) - z ** 2 + (+w)": lambda z, w: z * 0 + w,
    "where(z == w, 2, z.conjugate())": lambda z, w: np.where(z == w, np.array(2, z.dtype), z.conj()),
    "z if abs(z) > 1 else x": lambda z, x: np.where(abs(z) > 1, z, x),
    "z != w": lambda z, w: z != w,
    "exp(1j * x) + exp(z)": lambda x, z: np.exp(1j * x) + np.exp(z),
    "complex(x, k) * k": lambda x, k: (x.astype("f8") + 1j * k) * k,
    "complex64(x) + complex128(z)": lambda x, z: x.astype("c8") + z.astype("c16"),
}


def check_elementwise(queue, text, sizes=(0, 1, 257)):
    f = usm.elementwise(text)
    # Types of z, w, x and k: in the third, x is float32 and k too small to widen complex64.
    for types in (("c8", "c8", "f4", "i4"), ("c16", "c8", "f8", "i8"), ("c8", "c8", "f4", "i2"), ("c8", "c16", "f2", "?")):
        for a in (2 - 0.5j, np.complex64(1j), np.float32(3)):
            for n in sizes:
                random = np.random.default_rng((n, 5))
                parts = [(random.integers(-5, 6, n) / 2, random.integers(1, 6, n)) for _ in types]
                z, w, x, k = ((re + 1j * im if one[0] == "c" else re).astype(one) for one, (re, im) in zip(types, parts))
                w[: n // 4] = z[: n // 4]
                named = {"a": a, "z": z, "w": w, "x": x, "k": k}
                expected = TEXTS[text](*(named[name] for name in f.names))
                found = f(*(a if name == "a" else given(named[name], queue) for name in f.names))
                assert found.dtype == expected.dtype, (types, a, found.dtype, expected.dtype)
                near = 1e-5 if expected.dtype in ("c8", "f4") else 1e-6 if "c8" in types else 1e-12
                np.testing.assert_allclose(usm.to_numpy(found), expected, near, near)
            if "a" not in f.names:
                break


@pytest.mark.parametrize("text", TEXTS)
def test_elementwise(queue, text):
    check_elementwise(queue, text)


@pytest.mark.parametrize("way", ["builtin", "cc"])
def test_elementwise_by_both_compilers(way, request, monkeypatch):
    if way == "cc":
        request.getfixturevalue("compiler")
    monkeypatch.setenv("USM_KERNEL_HOST", way)
    for text in list(TEXTS)[:8]:
        check_elementwise(usm.Queue("host"), text, (257,))


def test_elementwise_broadcasts_strides_and_outputs(queue):
    z = (np.arange(120) - 1j * np.arange(120)[::-1]).reshape(2, 3, 4, 5)
    u = np.array([1j, 2])
    found = usm.elementwise("z * u + conj(z)")(usm.asarray(z, queue=queue).T, usm.asarray(u, queue=queue))
    equal(found, z.T * u + z.T.conj())
    m = usm.asarray(z[0, 0].astype("c8"), queue=queue, copy=True)
    usm.elementwise("1j * z + z")(m[:, ::2], out=m[:, ::2])
    wanted = z[0, 0].astype("c8")
    wanted[:, ::2] *= 1 + 1j
    equal(m, wanted)
    x = usm.asarray(np.arange(4.0), queue=queue)
    out = usm.empty(4, "c8", queue=queue)
    assert usm.elementwise("x - 1")(x, out=out) is out
    equal(out, (np.arange(4.0) - 1).astype("c8"))
    with pytest.raises(TypeError, match="results of type complex128 do not fit"):
        usm.elementwise("x * 1j")(x, out=x)


REFUSED = {
    "z ** 3": r"`z\[i\] \*\* 3`: complex numbers have",
    "pow(z, z)": r"`pow\(z\[i\], z\[i\]\)`: complex numbers have",
    "z // 2": r"`z\[i\] // 2`: complex numbers have",
    "~z": "complex numbers have",
    "z < z": "complex numbers have no order",
    "maximum(z, 1)": "complex numbers have no order",
    "sqrt(z)": r"`z\[i\]` is complex, and a real number is needed",
    "log(z)": "is complex, and a real number is needed",
    "float(z)": "is complex, and a real number is needed",
    "isnan(z)": "is complex, and a real number is needed",
    "1 if z else 2": "is complex, and a real number is needed",
    "not z": "is complex, and a real number is needed",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_complex_numbers_do_not_have_is_refused(text):
    with pytest.raises(usm.KernelError, match=REFUSED[text]):
        usm.elementwise(text)(np.ones(3, "c8"))


@pytest.mark.parametrize("name", ["cuda_on_host", "level_zero"])
def test_on_the_drivers_of_the_tests(name, request):
    try:
        found = CONFIGURATIONS[name]
        variables = found.environment(request.getfixturevalue)
    except Missing as reason:
        lacking(name, reason)
    program = f"""import usm, test_algorithm_complex as t
queue = usm.Queue(next(device for device in usm.devices() if device.backend == {found.backend!r}))
t.check(queue, (1, 257), ("c8",))
# These drivers know neither `hypot` nor `exp`.
for text in (text for text in t.TEXTS if "abs" not in text and "exp" not in text):
    t.check_elementwise(queue, text, (33,))
print("right")"""
    folder = str(pathlib.Path(__file__).parent)
    variables = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr[-3000:]
