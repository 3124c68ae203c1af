"""Several threads: the interpreter is given up in every wait, and handles may be shared."""

import functools
import threading
import time

import numpy as np

import usm
from usm.memory import as_usm_memory

from ..fixture import KINDS


def _all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "the threads wait for each other"


def _together(*runs):
    """Runs functions in a thread each; the first error is raised."""
    errors = []

    def guarded(run):
        try:
            run()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    _all([threading.Thread(target=guarded, args=(run,)) for run in runs])
    if errors:
        raise errors[0]


def every_wait_releases_the_interpreter(b):
    """The thread that lets the work end runs only if the wait releases the interpreter.

    Otherwise the wait fails at its limit.
    """
    context = b.context()
    queue = usm.Queue(context)

    def waits(target, event):
        yield event.wait
        yield queue.wait
        yield context.synchronize
        yield target.wait
        yield target.tolist
        yield target[::2].tolist
        yield as_usm_memory(target).copy_to_host
        yield lambda: as_usm_memory(target).copy_from_host(b"1")
        yield lambda: usm.copy(target[::-1], target)
        yield lambda: target.fill(1)
        if target.kind != "device":
            yield lambda: memoryview(target)
            yield lambda: target.__array_interface__
            yield lambda: np.asarray(target)
        # Device memory of Level Zero leaves by a copy, which waits as every export does.
        export = functools.partial(target.__dlpack__, copy=True if (b.kind, target.kind) == ("level_zero", "device") else None)
        yield export if b.kind not in ("cuda", "hip") else event.wait

    for kind in KINDS:
        source, target = (usm.zeros(1000, "<i4", kind=which, queue=context) for which in ("device", kind))
        count = len(list(waits(target, queue.barrier())))
        for place in range(count):
            with b.held() as release:
                event = queue.copy(target, source)
                wait = list(waits(target, event))[place]
                begun = threading.Event()

                def free(begun=begun, release=release):
                    begun.wait()
                    time.sleep(0.002)
                    release()

                thread = threading.Thread(target=free)
                thread.start()
                begun.set()
                wait()
                thread.join(60)
                assert event.done


def threads_share_arrays_without_a_deadlock(b):
    """Copies the opposite way between the same two arrays: each takes both, in one order."""
    for kind in KINDS:
        one, two = (usm.zeros(3 << 10, "|u1", kind=kind, queue=b.device) for _ in range(2))

        def work(first, second):
            for _ in range(10):
                first.fill(0)
                usm.copy(first, second)
                usm.copy(second[::3], first[::-3])
                usm.copy(first[::-2], first[::2])
                second[1::2].tobytes()

        _together(*(lambda pair=pair: work(*pair) for pair in [(one, two), (two, one)] * 2))
        assert not any(one.tobytes()) and not any(two.tobytes())


def two_contexts_work_in_two_threads(b):
    def work(value):
        context = b.context()
        queue = usm.Queue(context, in_order=bool(value % 2))
        array, other = (usm.zeros((64, 64), "<i4", kind="device", queue=context) for _ in range(2))
        for step in range(20):
            array.fill(value + step)
            queue.copy(other, array)
            assert set(other[::3, ::5].tobytes()) == set(np.int32(value + step).tobytes())
        del array, other
        context.synchronize()
        assert context.stats()["sum"]["live"] == 0

    _together(*(lambda value=value: work(value) for value in (1, 100, 201, 300)))


def threads_allocate_and_drop(b):
    context = b.context()

    def work(kind):
        for size in range(1, 60):
            array = usm.zeros(size * 100, "|u1", kind=kind, queue=context)
            assert context.query(array.pointer) == (kind, array.pointer, size * 100)

    _together(*(lambda kind=kind: work(kind) for kind in KINDS * 2))
    context.synchronize()
    assert (context.stats()["sum"]["live"], context.stats()["sum"]["count"]) == (0, 6 * 59)


def memory_is_dropped_on_another_thread(b):
    context = b.context()
    queue = usm.Queue(context, in_order=False)
    for kind in KINDS:
        arrays = [usm.zeros(1 << 16, "|u1", kind=kind, queue=context) for _ in range(16)]
        for target, source in zip(arrays[::2], arrays[1::2]):
            queue.copy(target, source)
        del target, source
        _together(arrays.clear)
    queue.wait()
    context.synchronize()
    assert (context.stats()["sum"]["live"], context.stats()["leaked"]) == (0, 0)


def an_event_is_waited_for_by_many_threads(b):
    queue = b.queue()
    source, target = (usm.zeros(1 << 20, "|u1", kind="device", queue=queue) for _ in range(2))
    for _ in range(10):
        event = queue.copy(target, source)
        _together(*[event.wait] * 4)
        assert event.done
