"""Known numbers, remainders, NaN and variables of loops, as Python and NumPy have them."""

import math

import numpy as np
import pytest
from conftest import device_of

import usm

TENTH = np.float32(0.1)
MOST, LEAST = np.int8(127), np.int8(-128)


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    return usm.Queue(device_of(request.param))


def results(queue, kernel, count, *arguments):
    found = usm.asarray(np.zeros(count), queue=queue, kind="shared", copy=True)
    kernel[1](found, *arguments)
    return usm.to_numpy(found).tolist()


@usm.kernel
def typed(o):
    o[0] = np.float32(0.1)
    o[1] = np.float64(1) * np.float32(0.1)
    o[2] = TENTH == 0.1
    o[3] = np.float32(0.1) == np.float64(0.1)
    o[4] = np.float32(16777216) == 16777217
    o[5] = MOST + True
    o[6] = abs(LEAST)


def test_known_numbers_are_rounded_to_their_type(queue):
    assert results(queue, typed, 7) == [float(TENTH), float(TENTH), 1, 0, 1, -128, -128]


@usm.kernel
def ones(a, o):
    i = usm.get_global_id(0)
    o[i] = np.bitwise_count(a[i]) + np.bitwise_count(-6)


@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_ones_are_counted_as_numpy_counts_them(queue, dtype):
    words = np.random.default_rng(7).integers(0, 2**64, 300, "u8") >> np.arange(300, dtype="u8") % np.uint64(64)
    words[:4] = 0, 1 << 63, 2**64 - 1, 0x8000800080808080
    a = words.view("u1").astype(bool) if dtype == "bool" else words.view(dtype)
    found = usm.zeros(a.size, "u2", queue=queue, kind="shared")
    ones[a.size, None](usm.asarray(a, queue=queue, kind="shared", copy=True), found)
    assert usm.to_numpy(found).tolist() == (np.bitwise_count(a).astype("u2") + 2).tolist()


@usm.kernel
def ones_of_a_float(o):
    o[0] = np.bitwise_count(o[0])


def test_a_float_has_no_bits_to_count(queue):
    with pytest.raises(usm.KernelError, match="of float64: only integers have bits to count"):
        results(queue, ones_of_a_float, 1)


@usm.kernel
def least(o):
    o[0] = -9223372036854775808
    o[1] = -(2**63)
    o[2] = -(1 << 63)
    o[3] = 2**63 - 1
    o[4] = ~(2**63 - 1)
    o[5] = -9223372036854775808 < 0


def test_the_least_integer_is_negative(queue):
    assert results(queue, least, 6) == [-(2.0**63)] * 3 + [2.0**63, -(2.0**63), 1]


@usm.kernel
def counted(o, n):
    i = 5
    for i in range(n):
        pass
    o[0] = i
    j = 7
    for j in range(n):
        if j == 1:
            break
    o[1] = j


@pytest.mark.parametrize("n, last", [(0, [5, 7]), (1, [0, 0]), (3, [2, 1])])
def test_a_loop_leaves_its_last_number(queue, n, last):
    assert results(queue, counted, 2, n) == last


@usm.kernel
def divided(o, x, y):
    o[0] = x // y
    o[1] = x % y


@pytest.mark.parametrize("y", [0.0, math.inf, -math.inf, math.nan, 2.0, -2.0])
@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("ty", [np.float32, np.float64])
def test_floor_division_of_floats_is_that_of_numpy(queue, x, y, ty):
    with np.errstate(all="ignore"):
        wanted = [ty(x) // ty(y), ty(x) % ty(y)]
    np.testing.assert_array_equal(results(queue, divided, 2, ty(x), ty(y)), wanted)


@usm.kernel
def limited(o, x, y):
    o[0] = np.minimum(x, y)
    o[1] = np.maximum(x, y)
    o[2] = np.fmin(x, y)
    o[3] = np.fmax(x, y)
    o[4] = np.minimum(1.0, math.nan)
    o[5] = min(x, y)
    o[6] = max(x, y)


@pytest.mark.parametrize("x, y", [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan), (1.0, 2.0)])
def test_limits_with_nan_are_those_of_numpy(queue, x, y):
    wanted = [f(x, y) for f in (np.minimum, np.maximum, np.fmin, np.fmax)] + [math.nan, np.fmin(x, y), np.fmax(x, y)]
    np.testing.assert_array_equal(results(queue, limited, 7, x, y), wanted)


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "9 ** 999999999", "1 << 99999999999"])
def test_a_huge_number_is_refused_at_once(text, tmp_path):
    module = {"usm": usm}
    path = tmp_path / "huge.py"
    path.write_text(f"@usm.kernel\ndef huge(a):\n    a[0] = {text}\n")
    exec(compile(path.read_text(), path, "exec"), module)
    with pytest.raises(usm.KernelError, match=r"huge.py:3:12: .*does not fit 64 bits"):
        module["huge"][1](np.zeros(1))


@usm.device_func
def counting(a):
    a[0] += 1
    return a[0]


@usm.kernel
def chained(o):
    o[1] = 0 < counting(o) < counting(o) < 100 < counting(o)
    o[2] = 5 < counting(o) < counting(o) < counting(o)


def test_later_operands_of_a_chain_are_evaluated_once_and_if_needed(queue):
    assert results(queue, chained, 3) == [4, 0, 0]


@usm.kernel
def beside_bool(o, n):
    o[0] = max(n > 3, n)
    o[1] = min(n, n < 3)
    o[2] = np.maximum(n > 3, n > 4)
    o[3] = (n > 3) + n


def test_a_bool_takes_the_type_of_the_other_integer(queue):
    assert results(queue, beside_bool, 4, np.uint64(2**63)) == [2.0**63, 0, 1, 2.0**63]
    assert results(queue, beside_bool, 4, np.int8(-2)) == [0, -2, 0, -2]


@usm.kernel
def bounded(o):
    m = 2
    for j in range(10, m, -1):
        m += 1
        o[0] += j
    s = 1
    for j in range(0, 12, s):
        s += 1
        o[1] += j
    for m in range(m, 7, -1):
        o[2] += m


def test_the_bounds_of_a_loop_are_those_before_it(queue):
    assert results(queue, bounded, 3) == [sum(range(3, 11)), sum(range(12)), 10 + 9 + 8]


@usm.kernel
def kept(o):
    i = usm.get_global_id(0)
    o[6] = 4
    t = (i, (i + 1, i), o[6])
    i = 100
    o[6] = 5
    o[0] = t[0]
    o[1] = t[1][0]
    (o[2], o[3]) = t[1]
    i, (a, b) = 1, (i, i + 1)
    o[4] = a
    o[5] = b
    o[7] = t[2]


def test_a_tuple_keeps_its_numbers(queue):
    assert results(queue, kept, 8) == [0, 1, 1, 0, 100, 101, 5, 4]


@usm.kernel
def sentinel(o, a):
    best = -1
    if a[0] > 3:
        best = a[0]
    o[0] = best


def test_a_variable_refuses_a_number_that_its_type_does_not_hold():
    found = np.zeros(1)
    sentinel[1](found, np.zeros(1, np.int8))
    assert found[0] == -1
    with pytest.raises(usm.KernelError, match=r":\d+:5: -1 does not fit uint8, the type of `best` elsewhere: cast one"):
        sentinel[1](found, np.zeros(1, np.uint8))


SORT = 2


@usm.device_func
def ended(x):
    if SORT == 1:
        return x
    elif SORT == 2:
        while True:
            x += 1
            if x > 5:
                return x
    elif SORT == 3:
        return 0


@usm.device_func
def endless(x):
    for n in range(x):
        if n > 2:
            return n


@usm.kernel
def asks_ended(o):
    o[0] = ended(1)


@usm.kernel
def asks_endless(o):
    for n in range(5):
        o[0] = endless(5 - n)


def test_a_function_has_a_value_on_every_path():
    found = np.zeros(1)
    asks_ended[1](found)
    assert found[0] == 6
    line = endless.__wrapped__.__code__.co_firstlineno + 1
    with pytest.raises(usm.KernelError, match=rf"\.py:{line}:1: `endless` ends without a value on a path"):
        asks_endless[1](found)


@usm.kernel
def count_rounds(o, step):
    n = 0
    for _ in range(2**62, 2**63 - 1, step):
        n += 1
        if n > 9:
            break
    o[0] = n
    n = 0
    for _ in range(-(2**62), -(2**63), -step):
        n += 1
        if n > 9:
            break
    o[1] = n
    last = 0
    for i in range(-(2**62), -(2**63), -(2**62) - 1):
        last = last + i
        if last > 0:
            break
    o[2] = last == -(2**62)


@pytest.mark.parametrize("step", [2**62, 2**61 + 2**60, 2**61])
def test_a_loop_ends_where_its_next_number_has_no_type(queue, step):
    up, down = range(2**62, 2**63 - 1, step), range(-(2**62), -(2**63), -step)
    assert results(queue, count_rounds, 3, step) == [len(up), len(down), 1]


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_an_int_argument_that_the_other_type_does_not_hold_is_refused(name):
    """As NumPy's OverflowError; a store and a comparison take any number."""

    @usm.kernel
    def sums(a, n):
        a[0] = a[0] + n
        a[1] = n ^ a[1]

    @usm.kernel
    def stores(a, n):
        a[0] = n
        if a[1] < n:
            a[1] = 1

    dtype = np.dtype(name)
    limits = np.iinfo(dtype)
    for n in {limits.min, limits.max, limits.min - 1, limits.max + 1, -1, 0, 5, 300}:
        if not -(1 << 63) <= n < 1 << 63:
            continue
        a = np.ones(2, dtype)
        stores[1](a, n)
        assert a[0] == np.int64(n).astype(dtype)
        a = np.ones(2, dtype)
        try:
            with np.errstate(over="ignore"):
                expected = [a[0] + n, n ^ a[1]]
        except OverflowError:
            with pytest.raises(usm.KernelError, match=rf":\d+:\d+: argument 1 is {n}, which does not fit {name}"):
                sums[1](a, n)
            assert a.tolist() == [1, 1]
        else:
            sums[1](a, n)
            assert a.tolist() == expected


def test_an_int_that_is_divided_need_not_fit_the_other_type():
    @usm.kernel
    def divided(a, n, o):
        o[0], o[1], o[2] = n / a[0], a[0] / -300, -3 / a[0]

    a, o = np.array([2], np.uint8), np.zeros(3)
    divided[1](a, -300, o)
    assert o.tolist() == [-300 / a[0], a[0] / -300, -3 / a[0]] == [-150.0, -2 / 300, -1.5]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_of_floor_division_and_remainder_have_signs(queue, dtype):
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 7.5, np.inf, -np.inf, np.nan]
    one, two = (np.array(each, dtype) for each in zip(*[(one, two) for one in values for two in values]))

    @usm.kernel
    def both(a, b, q, r):
        i = usm.get_global_id(0)
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]

    quotients, rests = np.zeros_like(one), np.zeros_like(one)
    with usm.device_context(queue):
        both[one.size](one, two, quotients, rests)
    with np.errstate(all="ignore"):
        for found, expected in ((quotients, one // two), (rests, one % two)):
            known = ~np.isnan(expected)
            assert found[known].tolist() == expected[known].tolist()
            assert np.isnan(found[~known]).all()
            assert np.signbit(found[known]).tolist() == np.signbit(expected[known]).tolist()


@usm.kernel
def narrow_after_a_count(x, seen):
    for place in range(300):
        seen[place] += 1
    place = x[0] & 255
    seen[300] = place


def test_a_count_is_not_of_a_narrower_type_that_its_variable_has_elsewhere(queue):
    seen = usm.zeros(301, np.int64, queue=queue)
    narrow_after_a_count[1](usm.asarray(np.array([200], np.uint8), queue=queue), seen)
    assert usm.to_numpy(seen).tolist() == [1] * 300 + [200]


@usm.kernel
def with_bits(x, wide, words, roots):
    i = usm.get_global_id(0)
    words[i] = x[i].view(np.uint32) ^ (wide[i].view(np.uint64) >> np.uint64(32))
    half = x[i] * np.float32(0.5)
    guess = (np.int32(0x5F3759DF) - (x[i].view(np.int32) >> 1)).view(np.float32)
    roots[i] = guess * (np.float32(1.5) - half * guess * guess)


def test_view_has_the_same_bits(queue):
    x = np.linspace(0.25, 900, 33, dtype=np.float32)
    wide = np.linspace(-3, 5, 33)
    words, roots = np.zeros(33, np.uint64), np.zeros(33, np.float32)
    arrays = [usm.asarray(one, queue=queue, kind="shared", copy=True) for one in (x, wide, words, roots)]
    with_bits[33](*arrays)
    expected = x.view(np.uint32) ^ (wide.view(np.uint64) >> np.uint64(32))
    assert usm.to_numpy(arrays[2]).tolist() == expected.tolist()
    assert usm.to_numpy(arrays[3]) == pytest.approx(1 / np.sqrt(x), rel=2e-3)


@usm.kernel
def other_width(x, words):
    words[0] = x[0].view(np.uint64)


@usm.kernel
def of_no_type(x, words):
    words[0] = x[0].view(words)


def test_view_keeps_the_width():
    x, words = np.zeros(1, np.float32), np.zeros(1, np.uint64)
    with pytest.raises(usm.Error, match="float32 has 32 bits, uint64 64"):
        other_width[1](x, words)
    with pytest.raises(usm.Error, match=r"such as `x.view\(np.uint32\)`"):
        of_no_type[1](x, words)
