"""Launches whose order of work-items no condition decides: they are inspected."""

import numpy as np
import pytest

import usm


@usm.kernel
def rows(x, y):
    row, here = usm.get_group_id(0), usm.get_local_id(0)
    for column in range(here, y.shape[1], usm.get_local_size(0)):
        y[row, column] = x[row, column] * 2


@usm.kernel
def flat(y, n):
    i = usm.get_global_id(0)
    row = i // n
    column = i % n
    y[row * n + column] = column


@usm.kernel
def pairs(y, n):
    k = usm.get_global_id(0)
    i = k // n
    j = k % n
    if i < j:
        y[i * n + j] = 1
        y[j * n + i] = 2


@usm.kernel
def torus(x, y, n, shift):
    i = usm.get_global_id(0)
    y[(i + shift) % n] = x[i]


@usm.kernel
def marked(mask, y, n):
    i = usm.get_global_id(0)
    if mask[i] > 0:
        row = i // n
        y[row * n + i % n] = 1


@usm.kernel
def scattered(places, y):
    y[places[usm.get_global_id(0)]] = 1


@usm.kernel
def halves(y):
    y[usm.get_global_id(0) // 2] = 1


def test_forms_of_real_programs_are_inspected():
    x, y = np.ones((5, 33), np.float32), np.zeros((5, 33), np.float32)
    assert rows.proof[5 * 32, 32](x, y) in ("inspected", "proven")
    rows[5 * 32, 32](x, y)
    assert (y == 2).all()
    square = np.zeros(49, np.int64)
    for kernel, arguments in ((flat, ()), (pairs, ()), (marked, (np.arange(49) % 3,))):
        assert kernel.proof[49](*arguments, square, 7) in ("inspected", "proven"), kernel
    assert torus.proof[49](np.arange(49), square, 49, 5) == "inspected"
    torus[49](np.arange(49), square, 49, 5)
    assert (square == np.roll(np.arange(49), 5)).all()


def test_a_race_is_shown_with_both_items():
    y = np.zeros(100, np.int64)
    said = halves.proof[10](y)
    assert "a race: work-item [0] writes element 0 of `y` at " in said, said
    assert "work-item [1] writes it at " in said, said
    said = torus.proof[50](np.arange(50), y, 49, 5)
    assert "work-item [0] writes element 5 of `y`" in said and "work-item [49]" in said, said


def test_a_strict_kernel_takes_what_is_inspected_and_refuses_races():
    strict = usm.kernel(strict=True)(torus.__wrapped__)
    x, y = np.arange(20), np.zeros(20, np.int64)
    strict[20](x, y, 20, 3)
    assert (y == np.roll(x, 3)).all()
    with pytest.raises(usm.KernelError, match="two work-items touch one element, a race: work-item"):
        strict[20](x, y, 10, 3)


def test_what_is_missing_is_named():
    said = scattered.proof[4](np.arange(4), np.zeros(4))
    assert "is checked as it runs" in said or "may touch one element" in said, said
    said = halves.proof[10](np.zeros(4))
    assert "; proven if " in said, said


def test_verdicts_are_of_their_numbers():
    x, y = np.arange(16), np.zeros(64, np.int64)
    for _ in range(2):
        for n in range(1, 30):
            said = torus.proof[16](x, y, n, 1)
            assert (said == "inspected") == (n >= 16), (n, said)


def test_a_kept_proof_is_of_its_launch():
    @usm.kernel
    def shifted(x, y, by, factor):
        i = usm.get_global_id(0)
        y[i] = x[i + by] * factor

    x, y = np.arange(9.0), np.zeros(8)
    for _ in range(2):
        for factor in (2.0, 3.0):
            shifted[8](x, y, 1, factor)
            assert (y == x[1:] * factor).all()
        for arguments in ((x, y, 2, 2.0), (x[:8], y, 1, 2.0), (x, y[:7], 0, 2.0)):
            with pytest.raises(usm.KernelError, match="is outside"):
                shifted[8](*arguments)
        with pytest.raises(usm.KernelError, match="is outside"):
            shifted[9](x, y, 0, 2.0)
    # More launches than are kept.
    for by in range(20):
        shifted[8](np.arange(28.0), y, by, 1.0)
        assert y[0] == by
