"""Counting loops whose bounds have 32 bits, and whose bounds have more, on every target.

CUDA C has a loop for each.
"""

import sys

import pytest
from conftest import device_of, run_in

import usm

#: The largest bound of the loop for 32 bits.
LIMIT = 0x3FFFFFFF
#: Start, end and step.
LOOPS = [
    (0, 5, 1),
    (-3, 4, 2),
    (4, -3, 1),
    (LIMIT - 3, LIMIT, 1),
    (LIMIT - 3, LIMIT + 3, 1),
    (-LIMIT - 3, -LIMIT + 3, 1),
    (2**31 - 3, 2**31 + 3, 2),
    (2**40, 2**40 + 7, 3),
    (-(2**40), -(2**40) + 7, 3),
    (0, LIMIT, LIMIT),
    (0, LIMIT, LIMIT - 1),
    (0, 2 * LIMIT, LIMIT + 1),
    (-(2**62), 2**62, 2**61),
]


def sums(step):
    """A kernel whose loop has a fixed step: only then its direction is known."""

    @usm.kernel
    def sums_of_numbers(start, end, out):
        rounds = sum = 0
        for i in range(start, end, step):
            if i == start + step:
                continue
            rounds += 1
            sum += i
            if rounds == 100:
                break
        out[0], out[1] = rounds, sum

    return sums_of_numbers


@usm.kernel
def sums_of_rows(bounds, out):
    rounds = 0
    for i in range(bounds[0], bounds[1]):
        rounds += i
    out[0] = rounds


def by_python(start, end, step):
    kept = [i for i in range(start, end, step) if i != start + step][:100]
    return [len(kept), sum(kept)]


def check(device):
    queue = usm.Queue(device)
    out = usm.zeros(2, "i8", queue=queue)
    for start, end, step in LOOPS:
        sums(step)[1](start, end, out)
        assert out.tolist() == by_python(start, end, step), (start, end, step)


@pytest.mark.parametrize("name", ["builtin", "cc", "opencl", "sycl"])
def test_loops_have_the_rounds_of_python(name, monkeypatch):
    if name in ("builtin", "cc"):
        monkeypatch.setenv("USM_KERNEL_HOST", name)
    check(device_of("host" if name in ("builtin", "cc") else name).selector)


@pytest.mark.parametrize("name", ["cuda_on_host", "level_zero"])
def test_loops_on_other_targets(name, request):
    run_in(name, request, __file__)


def test_cuda_c_has_both_loops_where_bounds_are_known_at_launch():
    signature = "int64, int64, int64[:]"
    for step in (1, 2):
        assert "for (int " in sums(step).code("cuda-c", signature)
        assert "for (int " not in sums(step).code("opencl-c", signature)
    assert "for (int " not in sums_of_rows.code("cuda-c", "int64[:], int64[:]"), "memory is read once"


if __name__ == "__main__":
    check(sys.argv[1])
