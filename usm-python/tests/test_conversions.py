"""`astype` and stores of other types by code of the device, compared with NumPy's."""

import itertools
import os
import subprocess
import sys
import textwrap

import pytest
from effort import cases

import usm

NAMES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
VIEWS = (lambda a: a, lambda a: a.T, lambda a: a[::-1, 1::2], lambda a: a[2, None, ::-3])


def numbers(np, name, target, seed):
    """Numbers whose conversion NumPy defines: floats inside of an integer's range."""
    random = np.random.default_rng(seed)
    if name in ("?", *NAMES[1:9]):
        low, high = (0, 1) if name == "?" else (np.iinfo(name).min, np.iinfo(name).max)
        return random.integers(low, high, (7, 9), "u1" if name == "?" else name, endpoint=True).astype(name)
    real = random.random((7, 9)) * (100 if target[0] == "u" else 200) - (0 if target[0] == "u" else 100)
    values = real + 1j * random.random((7, 9)) if name[0] == "c" else real
    values[3] = 0
    if target[0] in "fc":
        values[0, :3] = np.nan, np.inf, -np.inf
    return values.astype(name)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_astype_equals_numpys(np, queue):
    pairs = list(itertools.product(NAMES, NAMES))
    for at in range(min(cases("USM_CONVERSIONS", 12), len(pairs))):
        here, there = pairs[at * 31 % len(pairs)]
        given = numbers(np, here, there, at)
        kind = ("device", "shared", "host")[at % 3]
        array = usm.asarray(given, kind=kind, queue=queue)
        for number, view in enumerate(VIEWS):
            found = view(array).astype(there)
            assert (found.kind, found.dtype, found.is_c_contiguous) == (kind, there, True)
            wanted = view(given).astype(there)
            assert np.array_equal(usm.to_numpy(found), wanted, equal_nan=there[0] in "fc"), (here, there, number)


def test_warnings_and_refusals_are_numpys(np, queue):
    array = usm.asarray([1 + 2j, 3], dtype="c16", kind="device", queue=queue)
    with pytest.warns(np.exceptions.ComplexWarning):
        assert array.astype("f4").tolist() == [1, 3]
    assert array.astype("?").tolist() == [True, True]
    with pytest.raises(TypeError, match="same_kind"):
        array.astype("f8", casting="same_kind")
    # What no kernel knows is NumPy's: halves, the other byte order, text.
    assert array.astype("c8").astype(">c8").astype("c16").tolist() == [1 + 2j, 3]
    real = usm.asarray([0.5, 2], dtype="f4", kind="device", queue=queue)
    assert real.astype("f2").astype("f4").tolist() == [0.5, 2]
    assert usm.zeros((0, 3), "f4", kind="device", queue=queue).astype("i2").shape == (0, 3)
    assert usm.full((), 2.75, "f4", kind="device", queue=queue).astype("i2").tolist() == 2


def test_stores_convert_on_the_device(np, queue):
    source = usm.asarray(np.arange(-6, 6, dtype="i2").reshape(3, 4), kind="device", queue=queue)
    target = usm.zeros((2, 3, 8), "f8", kind="device", queue=queue)
    target[:, ::-1, ::2] = source
    wanted = np.zeros((2, 3, 8))
    wanted[:, ::-1, ::2] = np.arange(-6, 6).reshape(3, 4)
    assert np.array_equal(usm.to_numpy(target), wanted)
    with pytest.raises(usm.RequestError, match="astype"):
        source[0] = target[0, 0, :4]


PRELUDE = """
import numpy as np
import usm
import cuda_driver
driver = cuda_driver.Driver()
queue = usm.Queue("cuda:gpu:0")
"""


@pytest.fixture
def run(cuda_driver):
    def run(code):
        program = PRELUDE + textwrap.dedent(code)
        environment = {**os.environ, **cuda_driver}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr

    return run


@pytest.mark.parametrize("part", range(2))
def test_the_devices_numbers_are_numpys(run, part):
    run(f"""
        import itertools, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import warnings
        warnings.simplefilter("ignore")
        from test_conversions import NAMES, VIEWS, numbers
        pairs = list(itertools.product(NAMES, NAMES))
        for at in range({part}, {cases("USM_CONVERSIONS", 12)}, 2):
            here, there = pairs[at * 31 % len(pairs)]
            given = numbers(np, here, there, at)
            array = usm.asarray(given, kind=("device", "shared")[at % 2], queue=queue)
            for view in VIEWS:
                found = usm.to_numpy(view(array).astype(there))
                assert np.array_equal(found, view(given).astype(there), equal_nan=there[0] in "fc"), (here, there)
    """)


def test_the_device_converts(run):
    """A launch that the driver refuses fails the conversion; the host's needs none."""
    run("""
        given = np.arange(-30, 30, dtype="i4").reshape(3, 4, 5)
        for kind in ("device", "shared"):
            array = usm.asarray(given, kind=kind, queue=queue)
            assert (usm.to_numpy(array.T.astype("c8")) == given.T).all()
            driver.fail(True, 719, "cuLaunchKernel")
            try:
                array.astype("f4")
                raise SystemExit("converted without a launch")
            except usm.DeviceError:
                driver.fail(False, 719, "cuLaunchKernel")
        host = usm.asarray(given, kind="host", queue=queue)
        driver.fail(True, 719, "cuLaunchKernel")
        assert (usm.to_numpy(host.astype("f4")) == given).all()
        assert driver.misuses() == 0
    """)


def test_two_contexts_copy_without_the_process(run):
    """Copies between devices: only the driver moves the bytes, in any layout."""
    run("""
        other = usm.Queue("cuda:gpu:1")
        given = np.arange(6000.0).reshape(60, 100)
        source = usm.asarray(given, kind="device", queue=queue)
        target = usm.zeros((60, 100), "f8", kind="device", queue=other)
        before = usm.to_numpy(target)
        # Memory of the process would be pinned or staged by copies of its own.
        driver.log()
        usm.copy(target, source)
        copies = [line for line in driver.log() if line.startswith("copy")]
        assert len(copies) == 1, copies
        assert (usm.to_numpy(target) == given).all()
        usm.copy(target[::2, ::3], source[1::2, ::3])
        wanted = given.copy()
        wanted[::2, ::3] = given[1::2, ::3]
        assert (usm.to_numpy(target) == wanted).all()
        assert (usm.to_numpy(source.T.to_device("cuda:gpu:1")) == given.T).all()
        assert driver.misuses() == 0
    """)
