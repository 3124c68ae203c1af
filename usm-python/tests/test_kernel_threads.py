"""Kernels on the host use several threads where work-items cannot race."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import usm

CASE = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
import test_kernel_threads as case
import usm
with usm.device_context("host"):
    print(*(getattr(case, name)() for name in sys.argv[1:]))
"""


@usm.kernel
def rounds(a, out):
    i = usm.get_global_id(0)
    s = a[i]
    for _ in range(200):
        s = s * np.float32(0.5) + np.float32(1.0)
    out[i] = s


@usm.kernel
def planes(a, out):
    i, j, k = usm.get_global_id(0), usm.get_global_id(1), usm.get_global_id(2)
    out[i, j, k] += a[i, j, k] * 3 + i * 10000 + j * 100 + k


@usm.kernel
def mirrored(a, out):
    tile = usm.local.array(32, np.int64)
    i, l = usm.get_global_id(0), usm.get_local_id(0)
    tile[l] = a[i]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    for _ in range(300):
        tile[l] += 1
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    out[i] = tile[31 - l]


@usm.kernel
def gathered(a, place, out):
    i = usm.get_global_id(0)
    s = a[place[i]]
    for _ in range(100):
        s = s * 3 % 1000003
    out[i] = s


@usm.kernel
def counted(a, counts):
    usm.atomic.add(counts, a[usm.get_global_id(0)] % 7, 1)


@usm.kernel
def summed(a, out):
    out[0] += a[usm.get_global_id(0)]


def tasks():
    return len(os.listdir("/proc/self/task"))


def shares():
    """The pool starts at the first launch that threads may share; its results are those of one."""
    a = np.arange(1 << 18, dtype=np.float32)
    out, alone = np.zeros_like(a), np.zeros_like(a)
    before = tasks()
    usm.set_threads(1)
    rounds[a.size](a, alone)
    usm.set_threads(4)
    # Short; not proven; atomic.
    rounds[16](a, out)
    same = np.zeros(1, np.float32)
    summed[a.size](a, same)
    counted[a.size](np.arange(a.size), np.zeros(7, np.int64))
    assert tasks() == before
    out[:] = 0
    rounds[a.size](a, out)
    assert (out == alone).all()
    return tasks() - before


def forked():
    a = np.arange(1 << 16, dtype=np.float32)
    out = np.zeros_like(a)
    rounds[a.size](a, out)
    child = os.fork()
    if child == 0:
        fine = False
        try:
            other = np.zeros_like(a)
            rounds[a.size](a, other)
            fine = bool((other == out).all())
        finally:
            os._exit(0 if fine else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked_in_a_handler():
    """A signal's handler forks in the middle of a divided launch: the child's launch fails."""
    import signal

    children = []

    def handler(*_):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
        children.append(child)

    signal.signal(signal.SIGALRM, handler)
    a = np.arange(1 << 21, dtype=np.float32)
    out, other = np.zeros_like(a), np.zeros_like(a)
    rounds[64](a, out)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    started = time.monotonic()
    failed = False
    while not children and time.monotonic() - started < 20:
        try:
            rounds[a.size](a, out)
        except usm.DeviceError as error:
            failed = "forked" in str(error)
    assert failed <= (children == [0])
    rounds[a.size](a, out)
    usm.set_threads(1)
    rounds[a.size](a, other)
    fine = bool((out == other).all())
    if children == [0]:
        os._exit(0 if fine else 1)
    assert fine and len(children) == 1
    return os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])


def answer(*names, **variables):
    text = CASE.format(folder=os.path.dirname(os.path.abspath(__file__)))
    variables = {**os.environ, "USM_NUM_THREADS": "4", **variables}
    child = subprocess.run([sys.executable, "-c", text, *names], env=variables, capture_output=True, text=True, timeout=120)
    return child.stdout.strip() or child.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("way", ["cc", "builtin"])
def test_threads_share_a_launch_and_forks_end(way, request):
    if way == "cc":
        request.getfixturevalue("compiler")
    assert answer("shares", "forked", "forked_in_a_handler", USM_KERNEL_HOST=way) == "4 0 0"


@pytest.mark.parametrize("value", ["0", "-2", "many", "5000"])
def test_a_number_of_threads_that_means_nothing_is_refused(value):
    assert "USM_NUM_THREADS has no such value: a number of threads from 1 to 4096 is needed" in answer(
        "forked", USM_NUM_THREADS=value
    )


def test_set_threads_refuses_what_is_no_number_of_threads():
    for value in (0, -1, 5000, 2**80):
        with pytest.raises(usm.RequestError, match="threads"):
            usm.set_threads(value)
    with pytest.raises(TypeError, match="threads"):
        usm.set_threads("2")


@pytest.fixture
def four():
    usm.set_threads(4)
    with usm.device_context("host"):
        yield
    usm.set_threads(2)


def test_launches_on_threads_are_those_of_one(four):
    generator = np.random.default_rng(7)
    for shape in [(1, 1, 1), (3, 5, 7), (1, 257, 131), (67, 1, 513), (31, 64, 65), (1009, 3, 17)]:
        a, out = generator.integers(-9, 9, shape), np.zeros(shape, np.int64)
        planes[usm.Range(*shape)](a, out)
        planes[usm.Range(*shape)](a, out)
        i, j, k = np.indices(shape)
        assert (out == 2 * (a * 3 + i * 10000 + j * 100 + k)).all(), shape
    a = np.arange(1 << 15)
    out = np.zeros_like(a)
    mirrored[a.size, 32](a, out)
    assert (out == a.reshape(-1, 32)[:, ::-1].ravel() + 300).all()
    place = generator.permutation(a.size)
    gathered[a.size](a, place, out)
    wanted = a[place]
    for _ in range(100):
        wanted = wanted * 3 % 1000003
    assert (out == wanted).all()
    counts = np.zeros(7, np.int64)
    for _ in range(20):
        counted[a.size](a, counts)
    assert (counts == 20 * np.bincount(a % 7)).all()


def test_an_index_outside_is_found_on_any_thread(four):
    a, out = np.arange(1 << 16), np.zeros(1 << 16, np.int64)
    for wrong in (0, 40_000, a.size - 1):
        place = np.arange(a.size)
        place[wrong] = a.size + 5
        with pytest.raises(usm.KernelError, match="65541"):
            gathered[a.size](a, place, out)
