"""The ready algorithms beside NumPy, on every backend and on the CUDA driver of the tests."""

import importlib
import os
import subprocess
import sys

import effort
import ml_dtypes
import numpy as np
import pytest

import usm

SIZES = [0, 1, 2, 31, 257, 1009, 1024, 4097]
# Past one chunk of a CPU.
LARGE = [16384, 40961]
INTEGERS = ["i1", "u1", "i2", "i4", "u4", "i8", "u8"]


def values(dtype, n, seed=1):
    """Random elements of a type, with its ends; of floats also zeros, infinities and NaNs."""
    random = np.random.default_rng((seed, n))
    if dtype == "?":
        return random.random(n) < 0.5
    if dtype[0] == "f":
        x = random.normal(size=n).astype(dtype)
        if n > 20:
            x[3::17], x[4::17], x[5::17], x[6::17] = -0.0, 0.0, np.inf, -np.inf
        return x
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, n, dtype=dtype, endpoint=True)


def given(x, queue):
    """NumPy's own array on the host, a copy on a device."""
    return x if queue.device.type == "host" else usm.asarray(x, queue=queue)


def equal(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, found.shape)
    np.testing.assert_array_equal(usm.to_numpy(found), expected)


@pytest.mark.parametrize("n", SIZES)
def test_reductions_of_integers_are_those_of_numpy(queue, n):
    for dtype in ["?", *INTEGERS]:
        x = values(dtype, n)
        a = given(x, queue)
        for name in ("sum", "prod") if n == 0 else ("sum", "prod", "min", "max", "argmin", "argmax"):
            found = getattr(usm, name)(a) if name.startswith("arg") else usm.reduce(a, name)
            equal(found, np.asarray(getattr(np, name)(x)))
        if dtype == "?":
            equal(usm.reduce(a, "any"), np.asarray(np.any(x)))
            equal(usm.reduce(a, "all"), np.asarray(np.all(x)))


@pytest.mark.parametrize("n", [1, 257, *LARGE])
def test_reductions_of_floats(queue, n):
    x = np.random.default_rng(n).normal(size=n).astype("f4")
    a = given(x, queue)
    exact = x.astype("f8").sum()
    error = abs(float(usm.reduce(a)) - exact)
    assert error <= 1200 * np.finfo("f4").eps * np.abs(x).sum(dtype="f8")
    assert float(usm.reduce(a, "max")) == x.max() and int(usm.argmin(a)) == x.argmin()
    x[n // 2] = np.nan
    x[n // 3] = np.nan
    a = given(x, queue)
    assert np.isnan(float(usm.reduce(a, "max"))) and np.isnan(float(usm.reduce(a, "min")))
    assert int(usm.argmax(a)) == n // 3 == int(usm.argmin(a))


def test_an_operation_is_given_as_text(queue):
    x = np.arange(1, 1009, dtype=np.int64)
    found = usm.reduce(given(x, queue), "a * b % 1009")
    # Wilson's theorem.
    assert found.item() == 1008 and found.shape == ()
    assert usm.reduce(np.zeros(0), "a + b", identity=7).item() == 7


@pytest.mark.parametrize("n", [*SIZES, *LARGE])
def test_scans_are_those_of_numpy(queue, n):
    for dtype in ("i4",) if n > 5000 else ("?", "u8", "i4", "i1"):
        x = values(dtype, n)
        a = given(x, queue)
        for name, whole in (("sum", np.cumsum), ("max", np.maximum.accumulate)):
            expected = whole(x)
            equal(usm.scan(a, name), expected)
            before = usm.to_numpy(usm.scan(a, name, exclusive=True))
            np.testing.assert_array_equal(before[1:], expected[:-1])
    x = np.random.default_rng(n).normal(size=n)
    np.testing.assert_allclose(usm.to_numpy(usm.scan(given(x, queue))), np.cumsum(x), atol=1e-9)


def test_a_scan_may_be_in_place(queue):
    x = np.arange(10007, dtype=np.int64)
    a = usm.asarray(x, queue=queue, copy=True)
    usm.scan(a, "a + b", identity=0, out=a)
    np.testing.assert_array_equal(usm.to_numpy(a), np.cumsum(x))


@pytest.mark.parametrize("n", [*SIZES, LARGE[1]])
def test_sorting_is_that_of_numpy(queue, n):
    for dtype in ("i4", "f4") if n > 5000 else ("?", "f4", "f8", *INTEGERS):
        x = values(dtype, n)
        if dtype[0] == "f":
            x[::7], x[1::13] = np.nan, -np.nan
        a = given(x, queue)
        equal(usm.sort(a), np.sort(x, kind="stable"))
        equal(usm.argsort(a), np.argsort(x, kind="stable"))


def test_sorting_of_rows_and_in_place(queue):
    x = np.random.default_rng(2).random((3, 40))
    a = usm.asarray(x, queue=queue, copy=True)
    equal(usm.sort(a.T), np.sort(x.T))
    equal(usm.argsort(a), np.argsort(x))
    usm.sort(a, out=a)
    np.testing.assert_array_equal(usm.to_numpy(a), np.sort(x))


@pytest.mark.parametrize("n", [0, 1, 257, 5003, 20011])
def test_histograms_are_those_of_numpy(queue, n):
    x = np.random.default_rng(n).normal(size=n).astype("f4")
    if n > 9:
        x[::50] = np.nan
    for bins, limits in ((10, (-1, 1)), (300, (-2.5, 2.5)), (5000, (0, 1))):
        (counts, edges), expected = usm.histogram(given(x, queue), bins, limits), np.histogram(x, bins, limits)
        equal(counts, expected[0])
        equal(edges, expected[1])
    x = np.random.default_rng(n).integers(0, 50, n, dtype="i4")
    a = given(x, queue)
    equal(usm.histogram(a)[0], np.histogram(x)[0])
    equal(usm.bincount(a, minlength=70), np.bincount(x, minlength=70))
    equal(usm.bincount(a, length=7), np.bincount(x, minlength=7)[:7])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_numbers_of_16_bits(queue, dtype):
    for n in (1, 257, 20011):
        x = (np.random.default_rng(n).normal(size=n) * 3).astype(dtype)
        a = usm.asarray(x, queue=queue, copy=True)
        exact = x.astype("f8")
        total = usm.to_numpy(usm.reduce(a))
        assert total.dtype == dtype and abs(float(total) - exact.sum()) <= abs(exact.sum()) / 128 + n * 1e-5
        np.testing.assert_allclose(usm.to_numpy(usm.scan(a)).astype("f8"), np.cumsum(exact), rtol=1 / 128, atol=1e-2)
        counts, edges = usm.histogram(a, 7)
        expected, _ = np.histogram(x.astype("f4"), usm.to_numpy(edges).astype("f4"))
        assert edges.dtype == a.dtype and np.array_equal(usm.to_numpy(counts), expected)
        found = usm.to_numpy(usm.elementwise("a * x + y")(2.0, a, a))
        np.testing.assert_array_equal(found, (2 * x.astype("f4") + x.astype("f4")).astype(dtype))
        if n > 20:
            x[3], x[4], x[5], x[6], x[7::50], x[8::50] = 0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan
        a, wide = usm.asarray(x, queue=queue, copy=True), x.astype("f4")
        np.testing.assert_array_equal(usm.to_numpy(usm.sort(a)).astype("f4"), np.sort(wide, kind="stable"))
        np.testing.assert_array_equal(usm.to_numpy(usm.argsort(a)), np.argsort(wide, kind="stable"))
        assert usm.argmin(a).item() == wide.argmin() and usm.argmax(a).item() == wide.argmax()
        np.testing.assert_array_equal(usm.to_numpy(usm.reduce(a, "max")).astype("f4"), wide.max())


def test_types_of_expressions_of_16_bits():
    x, bits = np.ones(3, np.float16), ml_dtypes.bfloat16
    for text, others, name in (
        ("x + 1", {}, "float16"),
        ("x + y", {"y": np.ones(3, "i1")}, "float16"),
        ("x + y", {"y": np.ones(3, "i2")}, "float32"),
        ("x + y", {"y": np.ones(3, "f4")}, "float32"),
        ("x + y", {"y": np.float32(1)}, "float32"),
        ("x + y", {"y": np.ones(3, bits)}, "float32"),
        ("x + y", {"y": np.ones(3, "i4")}, "float64"),
        ("float32(x) + 1", {}, "float32"),
        ("x > 1", {}, "bool"),
    ):
        assert usm.elementwise(text)(x=x, **others).dtype.name == name, (text, others)


def test_groups_go_over_several_tiles(monkeypatch):
    """The kernels of other devices on the host, in fewer groups than tiles."""
    for name in ("reduce", "sort"):
        module = importlib.import_module(f"usm._algorithms.{name}")
        monkeypatch.setattr(module, "is_cpu", lambda queue: False)
        monkeypatch.setattr(module, "MOST_GROUPS", 4)
    for n in (3840 * 9 + 17, 2048 * 4):
        x = np.random.default_rng(n).integers(-9999, 9999, n, dtype="i4")
        equal(usm.sort(x), np.sort(x))
        equal(usm.argsort(x), np.argsort(x, kind="stable"))
        equal(usm.reduce(x), np.asarray(x.sum()))
        equal(usm.argmin(x), np.asarray(x.argmin()))


def test_indices_of_groups_follow_from_conditions():
    """Ranges too large to inspect: an index that no condition proves is checked as it runs."""
    modules = ("reduce", "scan", "histogram", "sort", "sort_groups")
    reduce, scan, histogram, sort, groups = (importlib.import_module(f"usm._algorithms.{name}") for name in modules)
    order, add, many = sort.order_of("u", 8), reduce.operation_of("sum").combine, 1 << 19
    x, totals, none = (usm.empty(n, "u1", device="host") for n in (many, 256, 0))
    counts, wide = (usm.empty(shape, "u1", device="host") for shape in ((256, many), (many, 4)))
    places, no_places, edges = (usm.empty(n, t, device="host") for n, t in ((many, "i8"), (0, "i8"), (9, "f4")))
    moves = groups.moves_of_spans(order, usm.uint8, usm.uint32, 15, 255, True, False, True)
    # The proof of its unrolled elements takes a minute without optimisation.
    slow = [(moves, (x, none, 1, 0, counts, totals, x.copy(), none))]
    quick = [
        (groups.counts_of_spans(order), (x, 1, 0, counts)),
        (groups.add_up_counts, (wide, wide.copy(), x)),
        (reduce.of_groups(add, usm.uint8, 256), (x, 1, x.copy())),
        (reduce.places_of_groups(reduce.is_less, usm.uint8, 256, True), (x, 1, no_places, x.copy(), places)),
        (scan.of_tiles(add, usm.uint8, 256, 8, False, 0), (x, x.copy(), 1, x.copy())),
        (histogram.counts_of_groups(histogram.bin_of_edges, 256), (x, 1, edges, 0.0, 1.0, places)),
    ]
    for kernel, arguments in effort.some(quick, slow):
        answer = kernel.proof[many * 256, 256](*arguments)
        assert "is inside is not proven" not in answer, answer


TEXTS = {
    "a * x + y": lambda a, x, y: a * x + y,
    "x / y": lambda x, y: x / y,
    "where(x > y, sqrt(float64(x)), -1)": lambda x, y: np.where(x > y, np.sqrt(x.astype("f8")), -1),
    "clip(x, -1, 2) - maximum(x, y)": lambda x, y: np.clip(x, -1, 2) - np.maximum(x, y),
    "(x > 0) & (y > 0)": lambda x, y: (x > 0) & (y > 0),
    "float32(x) + pi": lambda x: x.astype("f4") + np.pi,
}


@pytest.mark.parametrize("text", TEXTS)
def test_elementwise_is_numpy_with_its_types(queue, text):
    f = usm.elementwise(text)
    for types in (("f4", "f4"), ("f8", "i4"), ("i4", "i2"), ("u1", "f4")):
        for n in (0, 1, 257):
            x, y = (values(dtype, n, seed) for seed, dtype in enumerate(types))
            a = {"a": 2, "x": x, "y": y}
            with np.errstate(all="ignore"):
                expected = TEXTS[text](*(a[name] for name in f.names))
            found = f(*(a[name] if name == "a" else usm.asarray(a[name], queue=queue) for name in f.names))
            assert found.dtype == expected.dtype, (types, found.dtype)
            np.testing.assert_allclose(usm.to_numpy(found), expected, rtol=1e-6)


def test_elementwise_broadcasts_and_takes_any_strides(queue):
    t = np.arange(120.0).reshape(2, 3, 4, 5)
    u = np.arange(2.0)
    found = usm.elementwise("t + u * i")(usm.asarray(t, queue=queue).T, usm.asarray(u, queue=queue), np.float32(3))
    equal(found, t.T + u * np.float32(3))
    m = usm.asarray(np.arange(12.0).reshape(3, 4), queue=queue, copy=True)
    usm.elementwise("i + index")(m, 1, out=m)
    equal(m, np.arange(12.0).reshape(3, 4) + 1)
    column = usm.asarray(np.arange(3.0).reshape(3, 1), queue=queue)
    equal(usm.elementwise("a + b")(m, column), np.arange(12.0).reshape(3, 4) + 1 + np.arange(3.0).reshape(3, 1))
    point = usm.asarray(np.array(2.0), queue=queue)
    equal(usm.elementwise("out + result")(point, point), np.array(4.0))


def test_results_of_launches_that_are_not_waited_for(queue):
    x = np.random.default_rng(3).integers(0, 1000, 30011, dtype="i4")
    for other in (queue, usm.Queue(queue.device, in_order=False)):
        a = usm.asarray(x, queue=other, copy=True)
        usm.elementwise("a * 2")(a, out=a, wait=False)
        event = other.barrier()
        found = usm.sort(a, after=event, wait=False)
        total = usm.reduce(a, wait=False, after=[event])
        other.wait()
        equal(found, np.sort(x * 2))
        assert total.item() == 2 * int(x.sum())


def test_the_programs_of_a_text_are_cached():
    f = usm.elementwise("x * 3")
    x = np.ones(5, "f4")
    f(x)
    ((kernel, _, _),) = f._kernels.values()
    f(np.ones(9, "f4"))
    assert [one for one, _, _ in f._kernels.values()] == [kernel]


WRONG = [
    (lambda: usm.elementwise("a +"), ValueError, "invalid syntax"),
    (lambda: usm.elementwise("foo(x)"), ValueError, "unknown function `foo`"),
    (lambda: usm.elementwise("x + z", "x y"), ValueError, "unknown name `z`: x, y are named"),
    (lambda: usm.elementwise("x.size"), ValueError, "`x.size` is not for expressions"),
    (lambda: usm.elementwise("x.conj(1)"), ValueError, "a call of `x.conj`"),
    (lambda: usm.elementwise("1"), ValueError, "it names no array"),
    (lambda: usm.elementwise(5), TypeError, "is given as text"),
    (lambda: usm.elementwise("x + y")(np.ones(3)), TypeError, "lacks the argument y"),
    (lambda: usm.elementwise("x")(np.ones(3), q=1), TypeError, "no argument 'q'"),
    (lambda: usm.elementwise("x + y")(np.ones(3), np.ones(4)), ValueError, r"\(3,\), \(4,\) cannot be broadcast"),
    (lambda: usm.elementwise("x + y")(1, 2), TypeError, "an array is needed"),
    (lambda: usm.elementwise("x + 1")(np.ones(3), out=np.ones(3, "i4")), TypeError, "results of type float64 do not fit"),
    (lambda: usm.elementwise("x + 1")(np.ones(3), out=np.ones(4)), ValueError, r"\(4,\), \(3,\) is needed"),
    (lambda: usm.elementwise("x + 1")(np.ones(3, ">c8")), usm.KernelError, "elements of type >c8 are not for algorithms; .* complex128 and bfloat16 are"),
    (lambda: usm.reduce(np.zeros(0), "min"), ValueError, "min of an array without elements"),
    (lambda: usm.reduce(np.zeros(0), "a + b"), ValueError, "without elements has no result: pass identity="),
    (lambda: usm.reduce(np.zeros(3), out=np.zeros(1)), ValueError, "out has the shape"),
    (lambda: usm.reduce(np.zeros(3), "mean"), ValueError, "an operation names two numbers"),
    (lambda: usm.reduce(np.zeros(3), "a + b + c"), ValueError, "this one a, b, c"),
    (lambda: usm.reduce(np.zeros(3, ">f8")), usm.KernelError, "elements of type >f8"),
    (lambda: usm.argmin(np.zeros(0)), ValueError, "argmin of an array without elements"),
    (lambda: usm.scan(np.zeros(3), "a + b"), ValueError, "needs identity="),
    (lambda: usm.scan(np.zeros(3), out=np.zeros(4)), ValueError, "out has the shape"),
    (lambda: usm.sort(np.float64(3)), ValueError, "sort of an array without dimensions"),
    (lambda: usm.sort(np.zeros(3), out=np.zeros(3, "f4")), TypeError, "float64 is needed"),
    (lambda: usm.bincount(np.array([2, -1])), ValueError, "bincount of -1"),
    (lambda: usm.bincount(np.array([1.0])), TypeError, "integers are counted"),
    (lambda: usm.bincount(np.array([1 << 60])), ValueError, "1152921504606846977 counters"),
    (lambda: usm.histogram(np.array([np.nan])), ValueError, "is not finite"),
    (lambda: usm.histogram(np.zeros(3), 0), ValueError, "0 bins"),
    (lambda: usm.histogram(np.zeros(3), 5, (2, 1)), ValueError, "above the greatest"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_calls_are_refused(number):
    call, error, message = WRONG[number]
    with pytest.raises(error, match=message):
        call()


def test_on_the_cuda_driver(cuda_driver):
    """The kernels for devices with many items, at sizes with an edge."""
    program = (
        "import sys; import numpy as np; import usm, test_algorithms as t\n"
        "q = usm.Queue('cuda'); from usm._algorithms.run import is_cpu; assert not is_cpu(q)\n"
        "t.test_reductions_of_floats(q, 257); t.test_histograms_are_those_of_numpy(q, 257)\n"
        "t.test_an_operation_is_given_as_text(q)\n"
        "for n in map(int, sys.argv[1:]):\n"
        "    x = t.values('i4', n); a = usm.asarray(x, queue=q)\n"
        "    t.equal(usm.reduce(a), x.sum()); t.equal(usm.scan(a), np.cumsum(x))\n"
        "    assert usm.argmax(a).item() == x.argmax()\n"
        "    for dtype in ('u1', 'f4') if n < 999 else ():\n"
        "        x = t.values(dtype, n); a = usm.asarray(x, queue=q)\n"
        "        t.equal(usm.sort(a), np.sort(x)); t.equal(usm.argsort(a), np.argsort(x, kind='stable'))\n"
        "print('right')\n"
    )
    sizes = [str(n) for n in [257, 4096 * effort.cases("USM_ALGORITHMS_TILES", 1) + 3]]
    command = [sys.executable, "-c", program, *sizes]
    done = subprocess.run(command, env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize("kind", ["device", "shared"])
def test_results_lie_in_device_memory_if_an_argument_does(queue, kind):
    usual = usm.empty(1, queue=queue).kind
    wanted = "device" if kind == "device" else usual
    x = usm.asarray(np.arange(12.0).reshape(3, 4), queue=queue, kind=kind, copy=True)
    i = usm.asarray(np.arange(5), queue=queue, kind=kind, copy=True)
    twice = usm.elementwise("x + y")
    results = [
        *(usm.reduce(x), usm.reduce(x, axis=0), usm.reduce(x.T, axis=1), usm.argmin(x), usm.argmax(x, axis=1), usm.scan(x)),
        *(usm.scan(x, axis=0), usm.sort(x, axis=0), usm.argsort(x), *usm.histogram(x, bins=3), *usm.histogram(x, bins=3, range=(0, 5))),
        *(usm.bincount(i), twice(x, 1), twice(x, usm.zeros((3, 4), queue=queue)), twice(x, x)),
    ]
    assert [one.kind for one in results] == len(results) * [wanted]
    assert usm.reduce(x).item() == 66 and usm.scan(x, axis=0).tolist()[2] == [12, 15, 18, 21]
    assert usm.argsort(x, axis=0).tolist()[1] == 4 * [1] and usm.bincount(i).tolist() == 5 * [1]
    out = usm.empty((), "f8", queue=queue)
    assert usm.reduce(x, out=out) is out


@pytest.mark.parametrize("x, limits", [([2**62], None), ([0.0, 1.0], (1e16, 1e16 + 2)), ([0.0], (2.0**53 - 3, 2.0**53 + 4)), ([0.0], (-1e308, 1.7e308))])
def test_histograms_without_edges_between_bins_are_refused(x, limits):
    with pytest.raises(usm.errors.RequestError, match="have no edges of 64 bits between them"):
        usm.histogram(np.array(x), 7, limits)
