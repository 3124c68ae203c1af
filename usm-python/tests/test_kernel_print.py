"""`print` in kernels: on every device, and in checked launches."""

import re

import numpy as np
import pytest
from conftest import device_of

import usm
from usm._kernel.printing import LINES


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    return usm.Queue(device_of(request.param))


def array(queue, values, dtype):
    return usm.asarray(np.array(values, dtype), queue=queue, copy=True)


LABEL = "item"


@usm.device_func
def half(x):
    print("half of", x, sep=": ")
    return x / 2


@usm.kernel
def everything(a, b, c, factor):
    i = usm.get_global_id(0)
    print(LABEL, i, a[i], a[i] > 1, b[i], factor, 7, np.float32(0.1), None, (i, "x", None, c[i]), (i,))
    for k in range(i):
        print(f"{k} {c[i]:>8.3f} {i!r:>3}", end=";\n")
    c[i] = half(c[i])


def model(a, b, c, factor):
    lines = []
    for i in range(len(a)):
        lines.append(f"item {i} {a[i]} {a[i] > 1} {b[i]} {factor} 7 0.1 None ({i}, 'x', None, {c[i]}) ({i},)\n")
        lines += [f"{k} {c[i]:>8.3f} {i!r:>3};\n" for k in range(i)]
        lines.append(f"half of: {c[i]}\n")
    return "".join(lines)


def test_items_print_what_python_would_print(queue, capsys):
    a, b = np.array([0.1, 3.4e38, -np.inf, 1e-45], np.float32), np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    c = np.array([0.1, -1e300, np.nan, 2.5])
    expected = model([float(str(x)) for x in a], b, c, 0.25)
    for launch in (everything.check, everything):
        arguments = array(queue, a, np.float32), array(queue, b, np.uint64), array(queue, c, np.float64)
        launch[4](*arguments, 0.25)
        found = capsys.readouterr().out
        assert found == expected
    np.testing.assert_array_equal(np.frombuffer(arguments[2].tobytes()), c / 2)


def test_arrays_of_the_process_and_groups(capsys):
    @usm.kernel
    def tiles(a):
        i, j = usm.get_global_id(0), usm.get_global_id(1)
        usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
        print(i, j, a[i, j])

    tiles[(2, 4), (1, 2)](np.arange(8).reshape(2, 4))
    assert capsys.readouterr().out == "".join(f"{i} {j} {4 * i + j}\n" for i in range(2) for j in range(4))


def test_a_launch_that_prints_is_complete_and_proven(queue, capsys):
    @usm.kernel(strict=True)
    def doubled(a):
        i = usm.get_global_id(0)
        if i == 3:
            print("three")
        a[i] *= 2

    a = array(queue, range(100), np.int32)
    assert doubled.proof[100](a) == "proven"
    assert doubled[100].submit(a).done
    assert capsys.readouterr().out == "three\n"


def test_what_an_item_printed_before_a_fault_is_shown(queue, capsys):
    @usm.kernel
    def outside(a):
        i = usm.get_global_id(0)
        print("before", i)
        a[i + 1] = 1
        print("after", i)

    with pytest.raises(usm.KernelError, match="index 4"):
        outside[4](array(queue, range(4), np.int32))
    found = capsys.readouterr().out
    assert "before 3" in found.splitlines()


def test_lost_lines_are_counted(queue, capsys):
    @usm.kernel
    def many(a):
        print(a[usm.get_global_id(0)])

    count = 1_000_000
    many[count](array(queue, np.arange(count), np.int32))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == LINES + 1
    numbers = [int(line) for line in lines[:-1]]
    assert numbers == sorted(set(numbers))
    assert lines[-1] == f"kernel many: {count - LINES} more lines are lost: a launch keeps {LINES}"


def refusals():
    @usm.kernel
    def an_end(a, x):
        print(a[0], end=x)

    @usm.kernel
    def a_file(a, x):
        print(a[0], file=None)

    @usm.kernel
    def an_array(a, x):
        print(a)

    @usm.kernel
    def a_format(a, x):
        print(f"{a[0]:{x}}")

    @usm.kernel
    def a_star(a, x):
        print(*a)

    @usm.kernel
    def a_wrong_format(a, x):
        print(f"{a[0]:x}")

    @usm.kernel
    def a_tuple(a, x):
        print(f"{(a[0], x):>10}")

    return {
        an_end: "`print` has literal texts as `sep` and `end`",
        a_file: "`print` has literal texts as `sep` and `end`",
        an_array: "the array `a` is no number",
        a_format: "a format in a kernel is a literal text",
        a_star: "`*` is not for kernels",
        a_wrong_format: "this format is not for the value",
        a_tuple: "a tuple has no format",
    }


def test_refusals_name_what_is_wrong():
    for kernel, message in refusals().items():
        with pytest.raises(usm.KernelError, match=re.escape(message)):
            kernel[1](np.zeros(3), 5)


def test_results_stay_when_nobody_reads_what_is_printed(monkeypatch):
    @usm.kernel
    def counted(a):
        a[usm.get_global_id(0)] += 1
        print("one")

    class Closed:
        def write(self, _):
            raise BrokenPipeError

    a = np.zeros(4)
    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(BrokenPipeError):
        counted[4](a)
    assert a.tolist() == [1.0] * 4


def test_the_lines_take_nothing_from_a_pool(capsys):
    @usm.kernel
    def lines(a):
        print(a[usm.get_global_id(0)])

    with usm.Pool("host", limit=1 << 12) as pool:
        a = usm.zeros(4, "i4", device="host")
        lines[4](a)
        assert pool.stats()["peak_live"] == 16
    assert capsys.readouterr().out == "0\n" * 4


@usm.kernel
def halves(h):
    print(h[0], h[1], (h[2],), f"{h[0]:.4f}")


def test_float16_has_its_own_digits(capfd):
    for dtype in ("float16", usm.bfloat16):
        halves[1](usm.asarray([0.1, 65504, -3.0], dtype=dtype, queue="host"))
    assert capfd.readouterr().out == "0.1 65500.0 (-3.0,) 0.1000\n0.1 65500.0 (-3.0,) 0.1001\n"
