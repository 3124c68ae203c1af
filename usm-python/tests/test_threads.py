"""Waits for work release the interpreter, and memory may be dropped anywhere."""

import gc
import threading
import time

import usm


def test_other_threads_run_while_a_copy_is_waited_for(queue):
    """A counter in another thread goes on during long copies."""
    source = usm.zeros(1 << 26, "|u1", kind="device", queue=queue)
    target = usm.empty(1 << 26, "|u1", kind="device", queue=queue)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        time.sleep(0.01)
        before = ticks[0]
        start = time.perf_counter()
        while time.perf_counter() - start < 0.3:
            usm.copy(target, source)
        assert ticks[0] - before > 10
    finally:
        stop.set()
        thread.join()


def test_threads_share_arrays_without_a_deadlock(queue, kind):
    """Copies the opposite way between the same two arrays: each takes both, in one order."""
    one = usm.zeros(3 << 10, "|u1", kind=kind, queue=queue)
    two = usm.zeros(3 << 10, "|u1", kind=kind, queue=queue)
    failures = []

    def work(first, second, value):
        try:
            for _ in range(50):
                first.fill(value)
                usm.copy(first, second)
                usm.copy(second, first)
                usm.copy(first[::3], second[::-3])
                usm.copy(first[::-2], first[::2])
                first[1::2].tobytes()
                first.tobytes()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    pairs = [(one, two, 0), (two, one, 0), (one, two, 0), (two, one, 0)]
    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "the threads wait for each other"
    assert not failures
    assert not any(one.tobytes())


def test_memory_is_dropped_on_other_threads_and_by_the_collector(queue, kind):
    context = usm.Context(queue.device)

    class Cycle:
        def __init__(self):
            self.me = self
            self.array = usm.zeros(100, kind=kind, queue=context)

    def work():
        for _ in range(50):
            Cycle()
        gc.collect()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    gc.collect()
    context.synchronize()
    assert context.stats()["sum"]["current"] == 0


def test_memory_in_use_is_freed_after_its_work(queue):
    context = usm.Context(queue.device)
    busy = usm.Queue(context)
    for _ in range(4):
        source = usm.zeros(1 << 24, "|u1", kind="device", queue=busy)
        target = usm.zeros(1 << 24, "|u1", kind="device", queue=busy)
        busy.copy(target, source)
        del source, target
    del busy
    context.synchronize()
    stats = context.stats()
    assert (stats["sum"]["current"], stats["leaked"]) == (0, 0)


def test_first_use_by_many_threads_at_once():
    """Devices are listed once by whichever thread is first, without a deadlock."""
    import subprocess
    import sys

    code = """
import threading, usm
seen = []
threads = [threading.Thread(target=lambda: seen.append(tuple(usm.devices()))) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join(60) for thread in threads]
assert len(seen) == 8 and len(set(seen)) == 1, seen
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_concurrent_first_uses_of_an_import_share_one_storage():
    """An import becomes one storage at first use, and releases its producer once."""
    released = []

    class Producer:
        def __init__(self):
            self.buffer = bytearray(b"12345678")
            self.__array_interface__ = {"data": self.buffer, "shape": (8,), "typestr": "|u1", "version": 3}

        def __del__(self):
            released.append(self.buffer)

    for _ in range(50):
        lent = usm.asarray(Producer())
        parts, start = [], threading.Barrier(4)

        def use(lent=lent, parts=parts, start=start):
            start.wait()
            parts.append(lent[2:6])
            lent.wait()

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "the first uses wait for each other"
        assert lent.base is parts[0].base and len({part.pointer for part in parts}) == 1
        del lent, use, threads
        assert released == [] and parts[0].tobytes() == b"3456"
        parts.clear()
        assert len(released) == 1
        released.clear()


def test_an_unused_import_releases_its_producer_at_once():
    released = []

    class Producer:
        __array_interface__ = {"data": bytearray(4), "shape": (4,), "typestr": "|u1", "version": 3}

        def __del__(self):
            released.append(True)

    lent = usm.asarray(Producer())
    assert released == [] and (lent.kind, lent.shape, lent.readonly) == ("host", (4,), False)
    del lent
    assert released == [True]
