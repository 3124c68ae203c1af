"""Python functions as kernels, compared with NumPy on every device of the machine."""

import numpy as np
import pytest
from conftest import device_of
from kernel_programs import programs

import usm

CASES = {case[0]: case[1:] for case in programs()}


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    return usm.Queue(device_of(request.param))


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_numpy(queue, name):
    kernel, sizes, arguments, expected = CASES[name]
    given = [usm.asarray(one, queue=queue, kind="shared", copy=True) if isinstance(one, np.ndarray) else one for one in arguments]
    kernel[sizes](*given)
    for place, wanted in expected.items():
        found = usm.to_numpy(given[place])
        if wanted.dtype.kind == "f" or found.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", CASES)
def test_programs_pass_the_check(name):
    kernel, sizes, arguments, _ = CASES[name]
    before = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    kernel.check[sizes](*before)
    for one, kept in zip(arguments, before):
        np.testing.assert_array_equal(one, kept)


def test_a_function_may_set_a_parameter_that_is_a_number_from_outside():
    """The parameter is a variable, whatever the call passes."""
    outside, exact = -1, np.int16(7)

    @usm.device_func
    def clamp(x, y):
        if y > 2:
            x = y
        return x

    @usm.device_func
    def pair(x, y):
        if y > 2:
            x = y
        return x[0] + y

    @usm.kernel
    def k(o, n):
        o[0], o[1], o[2], o[3] = clamp(outside, n), clamp(-5, n), clamp(exact, n), clamp(True, n)

    @usm.kernel
    def wrong(o, n):
        o[0] = pair((n, n), n)

    for n, expected in ((1, [-1, -5, 7, 1]), (3, [3] * 4)):
        o = np.zeros(4, np.int64)
        k[1](o, n)
        assert o.tolist() == expected
    with pytest.raises(usm.KernelError, match=r":\d+:13: `x` is a tuple before: take another name"):
        wrong[1](o, 1)


def test_a_function_may_return_from_a_loop_after_a_condition():
    @usm.device_func
    def first(x, y):
        if x < y:
            return x - y
        for z in range(3):
            x += z
            if x > 5:
                return x * 2
        return x + y

    @usm.kernel
    def k(o, n):
        for i in range(o.size):
            o[i] = first(i, n)

    o = np.zeros(8, np.int64)
    k[1](o, 2)
    assert o.tolist() == [first.__wrapped__(i, 2) for i in range(8)]
