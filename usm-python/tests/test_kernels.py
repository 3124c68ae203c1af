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
