"""Work in flight: time limits, drops before the end, failures."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import usm
from usm.memory import as_usm_memory

from ..fixture import KINDS, Skip


def _in_flight(queue, kind="device"):
    """An event with its target and source."""
    source = usm.zeros(1000, "<i4", kind="device", queue=queue)
    source.fill(3)
    target = usm.zeros(1000, "<i4", kind=kind, queue=queue)
    return queue, target, source


def a_wait_gives_up_at_its_limit(b):
    for in_order in (True, False):
        context = b.context()
        queue, target, source = _in_flight(b.queue(context, in_order))
        with b.held() as release:
            event = queue.copy(target, source)
            assert not event.done and "pending" in repr(event)
            for wait in (event.wait, queue.wait, context.synchronize):
                for limit in (0, 0.01, 0.25):
                    with pytest.raises(usm.WaitTimeout) as error:
                        wait(timeout=limit)
                    assert isinstance(error.value, TimeoutError) and f"{round(limit * 1000)} ms" in str(error.value)
            assert not event.done, "giving up ends nothing"
            release()
            queue.wait(timeout=20)
            assert event.done and target.tolist() == [3] * 1000
            context.synchronize(timeout=20)


def an_interrupt_ends_a_wait(b):
    """Ctrl-C while work never ends: without it the case would run into its own limit."""
    context = b.context()
    queue, target, source = _in_flight(b.queue(context))
    with b.held() as release:
        event = queue.copy(target, source)
        for wait in (event.wait, queue.wait, context.synchronize):
            with pytest.raises(KeyboardInterrupt):
                threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
                wait(timeout=1e6)
        assert not event.done
        release()
        event.wait()
        assert target.tolist() == [3] * 1000


def a_wait_enters_the_queue_once(b):
    """A wait polls ten times a second, and keeps its place in the queue.

    If each poll took a new place behind later work, a wait under steady load would never end.
    """
    driver = b.need_driver("submissions are not logged")
    if not hasattr(driver, "log"):
        raise Skip(f"{b.name}: the driver does not log submissions")
    context = b.context()
    queue, target, source = _in_flight(b.queue(context))
    with b.held():
        event = queue.copy(target, source)
        for wait, places in ((queue.wait, 1), (context.synchronize, 1), (event.wait, 0)):
            driver.log()
            with pytest.raises(usm.WaitTimeout, match="450 ms"):
                wait(timeout=0.45)
            lines = driver.log()
            assert sum(line.startswith("record ") for line in lines) == places, lines


def other_threads_run_during_a_wait(b):
    context = b.context()
    queue, target, source = _in_flight(b.queue(context))
    with b.held() as release:
        event, ended = queue.copy(target, source), []
        threads = [
            threading.Thread(target=lambda wait=wait: ended.append(wait(timeout=60)))
            for wait in (event.wait, queue.wait, context.synchronize)
        ]
        for thread in threads:
            thread.start()
        # They wait by then. If one of them kept the interpreter, the work could never be released.
        time.sleep(0.05)
        release()
        for thread in threads:
            thread.join()
        assert ended == [None] * 3 and event.done


def _is_kept_for_work(context):
    """Whether two arrays that were dropped are there still, in a pool or not."""
    stats = context.stats()
    return stats["sum"]["live"] == 2 or stats["pending"] > 0


def memory_dropped_in_flight_is_freed_after_its_work(b):
    for kind in KINDS:
        context = b.context()
        queue, target, source = _in_flight(b.queue(context), kind)
        with b.held() as release:
            event = queue.copy(target, source)
            del target, source
            gc.collect()
            assert _is_kept_for_work(context), "the copy still uses them"
            with pytest.raises(usm.WaitTimeout):
                context.synchronize(timeout=0.01)
            assert _is_kept_for_work(context)
            release()
            event.wait()
            context.synchronize()
            assert (context.stats()["sum"]["live"], context.stats()["leaked"]) == (0, 0)


def everything_may_be_dropped_in_flight_in_any_order(b):
    """Arrays, queue, event and context, each of them last once."""
    for last in range(4):
        context = b.context()
        queue = usm.Queue(context, in_order=False)
        source, target = (usm.zeros(1 << 20, "|u1", kind="device", queue=context) for _ in range(2))
        kept = [context, queue, (source, target), queue.copy(target, source)]
        del context, queue, source, target
        for index in range(4):
            if index != last:
                kept[index] = None
                gc.collect()
        kept.clear()
        gc.collect()


def many_blocks_dropped_in_flight_are_all_freed(b):
    context = b.context()
    queue = usm.Queue(context, in_order=False)
    for _ in range(50):
        source, target = (usm.zeros(1 << 16, "|u1", kind="device", queue=context) for _ in range(2))
        queue.copy(target, source)
        del source, target
    queue.wait()
    context.synchronize()
    assert (context.stats()["sum"]["current"], context.stats()["leaked"]) == (0, 0)


def owners_of_lent_memory_live_until_the_work_is_done(b):
    """Memory of the process that a device of the host's own context reads."""
    import weakref

    class Producer:
        def __init__(self):
            self.buffer = bytearray(range(100))
            self.__array_interface__ = {"data": self.buffer, "shape": (100,), "typestr": "|u1", "version": 3}

    for kind in KINDS:
        producer = Producer()
        alive = weakref.ref(producer)
        view = usm.asarray(producer)[::2]
        del producer
        target = usm.zeros(50, "|u1", kind=kind, queue=b.device)
        usm.copy(target, view)
        assert alive() is not None and target.tolist() == list(range(0, 100, 2))
        del view
        gc.collect()
        assert alive() is None


def views_and_memory_keep_a_block_alive(b):
    for kind in KINDS:
        context = b.context()
        array = b.array(np.arange(10), kind, context)
        holders = [array[3:], array.T, as_usm_memory(array), array.reshape(2, 5)]
        del array
        while holders:
            gc.collect()
            assert context.stats()["sum"]["live"] == 1
            holders.pop()
        gc.collect()
        context.synchronize()
        assert context.stats()["sum"]["live"] == 0


def cycles_are_collected(b):
    context = b.context()

    class Cycle:
        def __init__(self):
            self.me, self.array = self, usm.zeros(100, kind="device", queue=context)

    for _ in range(20):
        Cycle()
    gc.collect()
    context.synchronize()
    assert context.stats()["sum"]["live"] == 0


def an_export_waits_for_work_in_flight(b):
    for kind in ("host", "shared"):
        queue, target, source = _in_flight(b.queue(in_order=False), kind)
        event = queue.copy(target, source)
        assert np.asarray(target).tolist() == [3] * 1000 and event.done


def a_lost_device_is_a_typed_error_everywhere(b):
    driver = b.need_driver("no way to lose the device")
    context = b.context()
    queue, target, source = _in_flight(usm.Queue(context))
    with b.held():
        event = queue.copy(target, source)
    driver.lose(True)
    try:
        for use in (
            event.wait,
            lambda: event.done,
            lambda: queue.barrier().wait(),
            queue.wait,
            context.synchronize,
            lambda: queue.copy(target, source),
            lambda: target.fill(1),
            lambda: target.tolist(),
            lambda: target[::2].tolist(),
            lambda: usm.copy(target[::2], source[1::2]),
            lambda: as_usm_memory(target).copy_to_host(),
            lambda: as_usm_memory(target).copy_from_host(b"123"),
            lambda: usm.zeros(100, kind="device", queue=context),
        ):
            with pytest.raises(usm.DeviceError):
                use()
        assert "failed" in repr(event) or "done" in repr(event)
    finally:
        driver.lose(False)
