"""Complex numbers in kernels, beside NumPy's.

As a program it tries one backend, whose variables the process has.
"""

import cmath
import linecache
import math
import sys

import numpy as np
import pytest
from conftest import device_of, run_in

import usm

TABLE = np.array([1 + 1j, -2j, 0.5], np.complex64)
UNIT = 1j


@usm.kernel
def computed(a, b, out, factor, real):
    i = usm.get_global_id(0)
    z, w = a[i], b[i]
    out[i, 0] = z * w + factor - 2 * z.conjugate()
    out[i, 1] = z / w + 3 / w - z / real[i]
    out[i, 2] = complex(z.imag, -w.real) * UNIT + abs(w) - (-z)
    out[i, 3] = np.conj(w) if z == w else z**2 * real[i]
    out[i, 3] += 1j * i + TABLE[i % 3]
    out[i, 4] = real[i]
    if z != w:
        out[i, 4] -= np.exp(1j * real[i])


def by_numpy(a, b, out, factor, real):
    i = np.arange(len(a))
    out[:, 0] = a * b + factor - 2 * a.conj()
    out[:, 1] = a / b + 3 / b - a / real
    out[:, 2] = (a.imag - 1j * b.real) * UNIT + abs(b) + a
    out[:, 3] = np.where(a == b, b.conj(), a**2 * real) + 1j * i + TABLE[i % 3]
    out[:, 4] = real - np.where(a == b, 0, np.exp(1j * real))


def numbers(dtype, count=48):
    random = np.random.default_rng(3)
    a, b = (((random.random(count) - 0.5) + 1j * (random.random(count) - 0.5)).astype(dtype) for _ in range(2))
    b[5] = a[5]
    return a, b, (random.random(count) + 1).astype(a.real.dtype)


def check(device, dtype):
    queue = usm.Queue(device)
    a, b, real = numbers(dtype)
    wanted = np.zeros((48, 5), dtype)
    by_numpy(a, b, wanted, 2 - 3j, real)
    given = [usm.asarray(one, queue=queue, copy=True) for one in (a, b, np.zeros_like(wanted), real)]
    computed[48](*given[:3], 2 - 3j, given[3])
    tolerance = 2e-5 if dtype == np.complex64 else 1e-12
    np.testing.assert_allclose(usm.to_numpy(given[2]), wanted, tolerance, tolerance)
    assert computed.proof[48](*given[:3], 2 - 3j, given[3]) == "proven"
    computed.check[48](*given[:3], 2 - 3j, given[3])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["builtin", "cc", "opencl", "sycl"])
def test_arithmetic_is_numpys(name, dtype, monkeypatch):
    if name in ("builtin", "cc"):
        monkeypatch.setenv("USM_KERNEL_HOST", name)
    check(device_of("host" if name in ("builtin", "cc") else name), dtype)


@pytest.mark.parametrize("name", ["cuda_on_host", "level_zero"])
def test_arithmetic_on_other_targets(name, request):
    run_in(name, request, __file__)


@usm.kernel
def products(a, b, out):
    i = usm.get_global_id(0)
    out[i, 0] = a[i] * b[i]
    out[i, 1] = a[i] / b[i]
    out[i, 2] = a[i] + b[i]
    out[i, 3] = a[i] - b[i]


def test_whole_numbers_are_exact_and_great_ones_do_not_overflow():
    a, b = (np.array(one).ravel() for one in np.meshgrid(*2 * [[x + 1j * y for x in range(-3, 4) for y in range(-3, 4) if x or y]]))
    out = np.zeros((len(a), 4), complex)
    products[len(a)](a, b, out)
    assert np.array_equal(out[:, [0, 2, 3]], np.stack([a * b, a + b, a - b], 1))
    # A product and a sum may be fused.
    np.testing.assert_allclose(out[:, 1], a / b, 1e-15, 1e-15)
    great = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, 5e300j])
    products[3](great, great[::-1].copy(), out[:3])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out[:3, 1], great / great[::-1], 1e-15)
    products[1](np.array([1 + 2j]), np.zeros(1, complex), out[:1])
    assert np.isinf(out[0, 1].real) and np.isinf(out[0, 1].imag)


REALS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"]


@usm.kernel
def mixed(z, x, out, as_float):
    out[0, 0] = z[0] * x[0]
    out[0, 1] = x[0] / z[0]
    out[0, 2] = (z[0] + x[0]) * (z[0] - x[0])
    as_float[0] = (z[0] * x[0]).real


@pytest.mark.parametrize("ty", REALS)
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_types_follow_numpy(ty, dtype):
    z, x = np.array([1 / 3 - 1j / 7], dtype), np.array([1 / 3 if ty in ("f4", "f8") else 3], ty)
    out, as_float = np.zeros((1, 3), complex), np.zeros(1)
    mixed[1](z, x, out, as_float)
    np.testing.assert_allclose(out[0], [(z * x)[0], (x / z)[0], ((z + x) * (z - x))[0]], 1e-6 if (z * x).dtype == "c8" else 1e-14)
    # A product in complex64 is no number of float64's precision.
    assert (as_float.astype("f4") == as_float).all() == ((z * x).dtype == "c8" or float(np.float32((z * x).real[0])) == (z * x).real[0])


@usm.device_func
def turned(z, rounds):
    for _ in range(rounds):
        z = z * 1j
        if abs(z) > 1e3:
            return 0
    return z


@usm.kernel
def sums(a, out):
    i = usm.get_global_id(0)
    total = 0
    for k in range(a.shape[1]):
        total += a[i, k]
    row = a[i]
    for z in row:
        total -= z / 2
    pair = (total, total.conjugate())
    one, two = pair[1], pair[0]
    one, two = two, one
    while one.real > 100:
        one -= 10
    shared = usm.local.array(4, np.complex64)
    kept = usm.private.array((2, 2), a.dtype)
    kept[1, 0] = turned(one, 2) if i % 2 == 0 else turned(two, 3)
    shared[usm.get_local_id(0)] = kept[1, 0] + kept[0, 1]
    usm.barrier()
    out[i] = shared[3 - usm.get_local_id(0)]


@pytest.mark.parametrize("backend", ["host", "opencl", "sycl"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 3), (-2, -1)])
def test_variables_functions_rows_and_strides(backend, steps):
    queue = usm.Queue(device_of(backend))
    whole = (np.arange(16 * 7).reshape(16, 7) % 19 + 1j * (np.arange(16 * 7).reshape(16, 7) % 5)).astype("c8")
    view, count = whole[:: steps[0], :: steps[1]], 16 // abs(steps[0])
    total = view.sum(1) / 2
    one = total.copy()
    while (one.real > 100).any():
        one[one.real > 100] -= 10
    wanted = np.where(np.arange(count) % 2 == 0, -one, total.conj() * -1j).astype("c8")
    wanted = wanted.reshape(-1, 4)[:, ::-1].ravel()
    given, out = usm.asarray(whole, queue=queue, copy=True), usm.zeros(2 * count, "c8", queue=queue)
    sums[count, 4](given[:: steps[0], :: steps[1]], out[::2])
    np.testing.assert_allclose(usm.to_numpy(out)[::2], wanted, 1e-5)
    assert not usm.to_numpy(out)[1::2].any()
    with usm.device_context(queue):
        plain = np.zeros(count, "c8")
        sums[count, 4](view, plain[::-1])
    np.testing.assert_allclose(plain[::-1], wanted, 1e-5)


@usm.kernel
def lent(z, scratch, out, w):
    i, k = usm.get_global_id(0), usm.get_local_id(0)
    scratch[k, 1] = z[i] * w
    usm.barrier()
    w = scratch[1 - k, 1]
    out[i] = w.real + 1j * w.imag


def test_local_arguments_fields_of_structures_and_one_number():
    records = np.zeros(4, [("n", "f4"), ("z", "c8"), ("m", "f4")])
    records["z"], out = np.arange(4) + 1j, np.zeros(4, "c16")
    lent[4, 2](records["z"], usm.Local((2, 2), "complex64"), out, np.complex64(2j))
    assert np.array_equal(out, (2j * (np.arange(4) + 1j))[[1, 0, 3, 2]])
    assert lent.proof[4, 2](records["z"], usm.Local((2, 2), "complex64"), out, 2j) == "proven"
    point = usm.asarray(3 - 1j, queue="host")
    single[1](point)
    assert complex(point) == 6 - 2j


@usm.kernel
def single(z):
    z[()] = z[()] * 2


@usm.kernel
def shifted(z, k):
    i = usm.get_global_id(0)
    z[i + k] = z[i + k] * 2


@usm.kernel
def halved(z, local):
    i = usm.get_global_id(0)
    z[i // 2] = 1
    local[i // 2] = 1


@usm.kernel
def swapped(one, other):
    i = usm.get_global_id(0)
    one[i], other[i] = other[i], one[i]


def test_messages_count_numbers_not_parts():
    z = np.zeros((2, 8), complex)[0]
    outside = r"index 8 in dimension 0 of `z` is outside; its shape is \[8\]"
    for run in (shifted, shifted.check):
        with pytest.raises(usm.KernelError, match=outside):
            run[8](z, 1)
    assert "k + (global_size(0) - 1) <= z.shape[0] - 1" in shifted.proof[8](z, 1)
    with usm.device_context(device_of("opencl")), pytest.raises(usm.KernelError, match=outside):
        shifted[8](z, 1)
    assert "element 0 of `z`" in halved.proof[8](z, usm.Local(8, complex))
    with pytest.raises(usm.KernelError, match=r"element 3 of `z`"):
        racing.check[8, 8](z, usm.Local(8, complex))
    with pytest.raises(usm.KernelError, match=r"element 3 of `local`"):
        racing_locally.check[8, 8](z, usm.Local(8, complex))
    # Local memory begins as zeros.
    unwritten.check[1, 1](z)
    # Neighbours share nothing, but a number shares its parts.
    assert swapped.proof[4](z[::2], z[1::2]) == "proven"
    assert "share" in swapped_parts.proof[8](z, z.real)
    assert swapped_parts.proof[4](z[::2], z[1::2].imag) == "proven"


@usm.kernel
def swapped_parts(z, x):
    i = usm.get_global_id(0)
    z[i], x[i] = x[i], z[i].imag


@usm.kernel
def unwritten(z):
    kept = usm.local.array(3, np.complex64)
    z[0] = kept[2]


@usm.kernel
def racing(z, local):
    i = usm.get_global_id(0)
    if i > 5:
        z[3] = i


@usm.kernel
def racing_locally(z, local):
    i = usm.get_global_id(0)
    if i > 5:
        local[3] = i


def refuse(body, match):
    text = "def function(z, x):\n    i = usm.get_global_id(0)\n" + "".join(f"    {line}\n" for line in body.split("; "))
    file = f"<{body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"usm": usm, "np": np, "math": math, "cmath": cmath}
    exec(compile(text, file, "exec"), space)
    with pytest.raises(usm.KernelError, match=match):
        usm.kernel(space["function"])[1](np.zeros(1, "c8"), np.zeros(1, "f4"))


@pytest.mark.parametrize(
    "body, match",
    [
        ("x[i] = z[i]", r"a complex number does not fit `x`, whose elements are float32: store `\.real`"),
        ("x[i] = float(z[i])", r"`z\[i\]` is complex, and a real number is needed: take `\.real`"),
        ("z[i] = z[i] // 2", r"`z\[i\] // 2`: complex numbers have `\+`"),
        ("z[i] = z[i] ** 0.5", "complex numbers have"),
        ("z[i] = ~z[i]", "complex numbers have"),
        ("z[i] = z[i].angle", "a complex number has no `angle` in a kernel"),
        ("x[i] = z[i] < 1j", "complex numbers have no order"),
        ("x[i] = max(z[i], 1)", "is complex, and a real number is needed"),
        ("z[i] = np.sqrt(z[i])", "is complex, and a real number is needed"),
        ("x[z[i]] = 1", "is complex, and a real number is needed"),
        ("if z[i]:; .   pass", "is complex, and a real number is needed"),
        ("usm.atomic.add(z, 0, 1)", "an atomic operation on complex64: pass the parts"),
        ("for k in range(3):; .   x[i] = k; k = z[i]", "`k` is complex elsewhere"),
        ("t = z[i]; t = (1, 2)", "`t` is complex elsewhere"),
        ("z.real[i] = 1", r"`z\.real` is not for kernels"),
        ("z[1.5] = 1", "an index of type float"),
    ],
)
def test_wrong_uses_are_refused_with_their_place(body, match):
    refuse(body.replace(".   ", "    "), rf"^<.*>:\d+:\d+: .*{match}")


def test_other_widths_and_orders_are_refused():
    for dtype in (">c8", np.clongdouble):
        if np.dtype(dtype) != np.dtype(complex):
            with pytest.raises(usm.KernelError, match="are not for kernels|complex64 and complex128 are"):
                products[1](np.zeros(1, dtype), np.zeros(1, dtype), np.zeros((1, 4), complex))


@usm.kernel
def iterated(c, counts):
    i, j = usm.get_global_id(0), usm.get_global_id(1)
    z = count = 0
    while abs(z) < 2 and count < 50:
        z = z * z + c[i, j]
        count += 1
    counts[i, j] = count


def test_a_loop_until_a_size_is_reached():
    c = np.linspace(-2, 1, 30) + 1j * np.linspace(-1, 1, 20)[:, None]
    counts = np.zeros(c.shape, int)
    iterated[usm.Range(*c.shape)](c, counts)
    z, wanted = np.zeros_like(c), np.zeros_like(counts)
    for _ in range(50):
        small = abs(z) < 2
        z[small] = z[small] ** 2 + c[small]
        wanted += small
    assert np.array_equal(counts, wanted)
    assert iterated.proof[usm.Range(*c.shape)](c, counts) == "proven"


def test_code_of_others_gets_arrays_and_no_numbers():
    with usm.device_context(device_of("opencl")):
        module = usm.Module("__kernel void twice(__global float2 *z) { z[get_global_id(0)] *= 2; }")
        z = np.arange(4).astype("c8") + 1j
        module["twice"][4](z)
        assert np.array_equal(z, 2 * np.arange(4) + 2j)
        with pytest.raises(usm.KernelError, match="argument 0: a complex number is no value for it; pass its parts"):
            module["twice"][4](1j)


def test_code_of_a_signature():
    assert products.code("cuda-c", "complex64[:], complex64[:], complex64[:,:]").count("float *") == 3
    assert "double" in shifted.code("opencl-c", "complex128[:], int64")


@usm.kernel
def exponential(z):
    z[0] = math.exp(z[0])


@usm.kernel
def tuples(z, x):
    t = (1.0, 2.0)
    if x[0] > 0:
        t = (z[0], 1.0)
    x[0] = t[1]


def test_real_functions_and_changing_tuples_say_what_to_write():
    with pytest.raises(usm.KernelError, match=r"`math.exp\(z\[0\]\)` of a complex number: write `cmath.exp` or `np.exp`"):
        exponential[1](np.zeros(1, complex))
    with pytest.raises(usm.KernelError, match="`t` changes, so it is no tuple with a complex number: take a name for each value"):
        tuples[1](np.zeros(1, complex), np.ones(1))


if __name__ == "__main__":
    # The drivers of the tests know neither tables nor every function.
    queue = usm.Queue(next(device for device in usm.devices() if device.backend == sys.argv[1]))
    for dtype in (np.complex64, np.complex128):
        a, b, _ = numbers(dtype)
        given = [usm.asarray(one, queue=queue, copy=True) for one in (a, b, np.zeros((48, 4), dtype))]
        products[48](*given)
        np.testing.assert_allclose(usm.to_numpy(given[2]), np.stack([a * b, a / b, a + b, a - b], 1), 1e-5, 1e-6)
