"""Forms of the language: each function gives in a kernel what plain Python gives for it."""

import linecache
import math
import sys

import numpy as np
import pytest
from conftest import device_of

import usm

WEIGHTS = np.array([1.5, -2.0, 4.0], np.float32)
ROWS = np.arange(6, dtype=np.int32).reshape(2, 3)
STEPS = (3, 1, 4, 1, 5)
ITEMS = 24


@pytest.fixture(params=["host", "opencl"])
def queue(request):
    return usm.Queue(device_of(request.param))


def rows(i, a):
    x = a[i]
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * a[i][j]
    y = a[:, 1]
    return total + y[i] + len(y)


def slices(i, a):
    row = a[i, 1:4]
    rest = a[i][2:]
    flat = a[i % 4]
    part = flat[i % 3 : i % 3 + 2]
    total = row[0] + row[2] * 2 + rest[0] + rest[len(rest) - 1]
    for j in range(len(part)):
        total += part[j]
    box = a[i // 2 * 2 : i // 2 * 2 + 2, :-1]
    return total + box[1, 2] + box[1][0] + a[..., 3][i] + box.shape[1]


def parts_in_loops(i, a):
    best = 0.0
    for j in range(a.shape[0]):
        x = a[j]
        if x[0] > best:
            best = x[0] + x[1]
    x = a[i]
    if i % 2:
        x = a[i - 1]
    return best + x[2]


def tuples(i, a):
    t = (a[i, 0], i)
    if i % 3 == 0:
        t = (a[i, 1], i + 1)
    one, two = a[i, 2], a[i, 3]
    if one > two:
        one, two = two, one
    for k in range(3):
        pair = (one, k)
        one = pair[0] + pair[1]
    # Intel's compiler 2026.2 dies of two numbers that loops exchange.
    both = (0, 1)
    for k in range(i):
        both = (both[0] + k, both[0])
    return t[0] + t[1] + one - two + both[0] % 1000


def tables(i, a):
    total = 0.0
    for k in range(len(WEIGHTS)):
        total += WEIGHTS[k] * a[i, k]
    return total + ROWS[i % 2, 1] + ROWS[1][i % 3] + STEPS[i % 5]


def functions(i, a):
    x = a[i, 0] / 8
    total = math.erf(x) + math.erfc(x) * 2 + math.gamma(abs(x) + 0.5) + math.lgamma(abs(x) + 0.5)
    total += np.hypot(x, 2.0) + math.log(abs(x) + 2, 10) + math.degrees(x) + np.deg2rad(x)
    q, r = divmod(i, 5)
    total += q * r + np.add(i, 1) + np.floor_divide(i, 3) + np.remainder(-i, 4) + np.reciprocal(x + 10)
    total += np.logical_and(i > 3, i < 9) + np.left_shift(i, 2) + np.bitwise_xor(i, 5) + np.negative(i)
    return total + np.greater(x, 0.5) + np.isnan(x) + np.power(x, 3) + np.fmod(x, 0.25)




def loops(i, a):
    total = 0.0
    for step in (1, 2, 5):
        if step == 2 and i % 2:
            continue
        total = total * step + a[i, 0]
    for x in a[i]:
        total += x
    for k, x in enumerate(a[i]):
        if k == 3:
            break
        total += k * x
    for x, y in zip(a[i], a[0]):
        total += x * y
    for row in a:
        total += row[1]
    return total


FORMS = [rows, slices, parts_in_loops, tuples, tables, loops, functions]


def kernel_of(function):
    body = usm.device_func(function)

    @usm.kernel
    def of_body(a, out):
        i = usm.get_global_id(0)
        out[i] = body(i, a)

    return of_body


def numbers(dtype):
    return (np.arange(ITEMS * 5) * 7919 % 31 - 9).reshape(ITEMS, 5).astype(dtype)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_a_form_means_what_it_means_in_python(queue, form, dtype):
    compare(queue, form, dtype)


def compare(queue, form, dtype):
    a = numbers(dtype)
    out = usm.zeros(ITEMS, np.float64, queue=queue)
    kernel_of(form)[ITEMS, None](usm.asarray(a, queue=queue), out)
    np.testing.assert_allclose(usm.to_numpy(out), [form(i, a) for i in range(ITEMS)], rtol=1e-12, atol=1e-12)


@usm.kernel
def memory_anywhere(a, out):
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    total = 0
    for k in range(3):
        own = usm.private.array(4, np.int64)
        own[k] += i
        own[3] += k
        total += own[0] + own[1] + own[2] + own[3]
    if a.shape[0] > 1:
        shared = usm.local.array(8, np.int64)
        shared[l] = i
        usm.barrier()
        total += shared[7 - l]
    out[i] = total


def test_arrays_are_declared_anywhere(queue):
    out = usm.zeros(16, np.int64, queue=queue)
    memory_anywhere[16, 8](usm.zeros((2, 2), np.float32, queue=queue), out)
    i = np.arange(16)
    np.testing.assert_array_equal(usm.to_numpy(out), 3 * i + 3 + (i // 8 * 8 + 7 - i % 8))


@usm.kernel
def outside_of_a_row(a, out, k):
    x = a[usm.get_global_id(0)]
    out[usm.get_global_id(0)] = x[k]


@usm.kernel
def outside_of_a_slice(a, out, k):
    i = usm.get_global_id(0)
    x = a[0, i : i + 2]
    out[i] = x[k - 3]


@usm.kernel
def outside_of_a_length(a, out, k):
    i = usm.get_global_id(0)
    x = a[0, 0 : i]
    out[i] = x[i] if k > 0 else x[k]


@pytest.mark.parametrize("kernel", [outside_of_a_row, outside_of_a_slice, outside_of_a_length])
def test_an_index_outside_of_a_part_is_refused(queue, kernel):
    a, out = usm.zeros((3, 5), np.float32, queue=queue), usm.zeros(3, np.float32, queue=queue)
    for k in (5, -1):
        with pytest.raises(usm.KernelError, match="of `a` is outside"):
            kernel[3, None](a, out, k)


@usm.device_func
def places(i):
    return i // 5, i % 5


@usm.kernel
def by_a_tuple(a, out):
    i = usm.get_global_id(0)
    where = places(i)
    out[places(i)] = a[places(i)] + a[where]
    out[where] += 1


def test_a_function_gives_all_indices(queue):
    a, out = usm.asarray(numbers(np.int32), queue=queue), usm.zeros((ITEMS, 5), np.int32, queue=queue)
    by_a_tuple[a.size, None](a, out)
    np.testing.assert_array_equal(usm.to_numpy(out), 2 * numbers(np.int32) + 1)


def test_rows_are_written(queue):
    @usm.kernel
    def fills(a):
        x = a[usm.get_global_id(0)]
        for j in range(len(x)):
            x[j] = j
        x[1] += 5

    a = usm.zeros((4, 3), np.int32, queue=queue)
    fills[4, None](a)
    np.testing.assert_array_equal(usm.to_numpy(a), [[0, 6, 2]] * 4)


#: For Pythons that have the statement.
MATCHES = """
def matches(i, a):
    match i % 7:
        case 0 | 1:
            x = 10
        case 2:
            x = i
        case other:
            x = other * 100
    match i % 2, i % 3:
        case 0, 0:
            return x + 1.0
        case 1, y:
            return x - y * 1.0
        case _ if x > 100:
            return x + 0.5
        case _:
            return x * 1.0
"""


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 has no `match`")
def test_numbers_are_matched(queue):
    linecache.cache["matches.py"] = (len(MATCHES), None, MATCHES.splitlines(True), "matches.py")
    names = {}
    exec(compile(MATCHES, "matches.py", "exec"), names)
    compare(queue, names["matches"], np.float64)


@usm.kernel
def error_function(x, out):
    i = usm.get_global_id(0)
    out[i] = math.erf(x[i])


@pytest.mark.parametrize("dtype, most", [(np.float32, 2), (np.float64, 4)])
def test_the_error_function_is_near(queue, dtype, most):
    rest = [np.inf, -np.inf, 0.0, 1e-30, 3.9999, 4.0001, 5.8, 9.0, 1e30]
    x = np.concatenate([np.linspace(-4.5, 4.5, 20011), np.geomspace(1e-20, 1, 999), rest]).astype(dtype)
    out = usm.zeros(x.size, dtype, queue=queue)
    error_function[x.size, None](usm.asarray(x, queue=queue), out)
    known = np.array([math.erf(float(one)) for one in x])
    units = np.abs(usm.to_numpy(out) - known) / np.spacing(np.abs(known).astype(dtype))
    assert units.max() <= most, (x[units.argmax()], units.max())
    error_function[1, None](usm.asarray(np.full(1, np.nan, dtype), queue=queue), out)
    assert np.isnan(usm.to_numpy(out)[0])
