"""Children that are forked while other threads use a part for the first time: an answer or a typed
error, and none waits for a thread that does not exist in it.

`USM_FORK_RUNS` is the number of processes whose threads list devices; each forks all the time.
"""

import os
import subprocess
import sys

import pytest
from conftest import device_of, lacking

from effort import cases

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# Forks until the threads have ended, and prints how many children there were and how they ended.
FORKS = """
import os, signal, sys, threading, time
import usm

# The interpreter's own locks of modules that are imported at first use.
usm.kernel, usm.stats, usm.snapshot, usm.backends
enough = threading.Event()

def forks(threads, child):
    for thread in threads:
        thread.start()
    children = []
    while any(thread.is_alive() for thread in threads) and len(children) < MOST:
        made = os.fork()
        if made == 0:
            signal.alarm(30)
            status = 1
            try:
                child()
                status = 0
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
            os._exit(status)
        children.append(made)
        if len(children) > 10:
            enough.set()
        time.sleep(PAUSE)
    for thread in threads:
        thread.join()
    print(len(children), sum(os.waitpid(child, 0)[1] != 0 for child in children))

def refused(call):
    try:
        return call()
    except usm.errors.DeviceError as error:
        assert "fork" in str(error), error

def on_host():
    one = usm.zeros(64, dtype="i4", device="host")
    one.fill(3)
    assert one.copy().tolist() == [3] * 64
"""

LISTS = """
PAUSE, MOST = 0.002, 40
found = []

def child():
    devices = refused(usm.devices)
    # A list is whole, or refused.
    assert devices is None or [str(one) for one in devices] == [str(one) for one in found or devices], devices
    refused(lambda: usm.Device("opencl:cpu"))
    usm.backends()
    on_host()

forks([threading.Thread(target=lambda: found.extend(usm.devices()))], child)
"""

# Every part whose statics have a lock: see tests/tests/house/statics.rs.
USES = """
PAUSE, MOST = 0.02, 60
import numpy, pickle

def kernel():
    @usm.kernel
    def doubles(a):
        i = usm.get_global_id(0)
        a[i] = a[i] + a[i]
    array = usm.asarray(numpy.arange(8.0), copy=True, device="host")
    doubles[8](array)
    assert array.tolist() == [2.0 * number for number in range(8)]

def error():
    try:
        usm.asarray({"shape": (3,), "typestr": "<f4", "data": (0, False), "version": -1})
    except (usm.errors.InterfaceError, TypeError, ValueError):
        pass

def notes():
    queue = usm.Queue("host")
    usm.zeros(16, queue=queue)
    usm.stats(), usm.snapshot

def exchange():
    assert usm.from_dlpack(numpy.arange(3)).tolist() == [0, 1, 2]

def travels():
    assert pickle.loads(pickle.dumps(usm.zeros(3, device="host"))).tolist() == [0, 0, 0]

parts = [kernel, error, notes, exchange, travels, on_host]

def child():
    for part in parts:
        part()

def uses():
    begin = time.monotonic()
    # On a busy machine, few children are made in two seconds.
    while time.monotonic() < begin + 2 or not (enough.is_set() or time.monotonic() > begin + 60):
        for part in parts:
            part()

forks([threading.Thread(target=uses), threading.Thread(target=lambda: (usm.devices(), uses()))], child)
"""


POOLS = """
PAUSE, MOST = 0.001, 3
queue = usm.Queue(sys.argv[1])
pool, on_the_host = usm.Pool(queue.device), usm.Pool("host")
with pool:
    kept = usm.empty(5000, "u1", queue=queue)
    del kept  # the thread's cache has it, and could serve the child without the driver
    kept = usm.empty(1000, "u1", queue=queue)

def child():
    with pool, on_the_host:
        for size in 5000, 1000, 1 << 20:
            try:
                usm.empty(size, "u1", queue=queue)
            except usm.errors.DeviceError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("memory of a runtime that is closed to this process")
        on_host()
        assert on_the_host.stats()["reserved"] > 0

forks([threading.Thread(target=lambda: time.sleep(1))], child)
with pool:
    assert usm.zeros(1000, "u1", queue=queue).tolist() == [0] * 1000
"""


def run(folder, script, *arguments, **variables):
    # Kernels are read from files.
    file = folder / "program.py"
    file.write_text(FORKS + script)
    done = subprocess.run(
        [sys.executable, file, *arguments],
        env={**os.environ, "USM_KERNEL_CACHE": "off", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    children, wrong = map(int, done.stdout.split())
    return children, wrong, done.stderr


def test_a_child_forked_while_another_thread_lists_devices_answers(tmp_path):
    total = 0
    for _ in range(cases("USM_FORK_RUNS", 4)):
        children, wrong, said = run(tmp_path, LISTS)
        assert wrong == 0, said
        total += children
    if total < 8:
        lacking("opencl", "no runtime whose opening takes long")


def test_a_child_forked_while_threads_use_every_part_answers(tmp_path):
    children, wrong, said = run(tmp_path, USES, USM_KERNEL_HOST="builtin")
    assert (wrong, children > 10) == (0, True), said


@pytest.mark.parametrize("backend", ["opencl", "sycl"])
def test_a_child_is_refused_by_the_pool_of_an_open_runtime(backend, tmp_path):
    children, wrong, said = run(tmp_path, POOLS, device_of(backend).selector)
    assert (wrong, children) == (0, 3), said
