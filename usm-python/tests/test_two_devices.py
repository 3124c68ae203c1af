"""Two GPUs: copies with and without peer access, concurrent work, exchange.

The CUDA driver executes on the host, and each case is a process of its own; `gpu/exchange.py` does
the same on two GPUs.
"""

import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import ctypes, pickle
import usm
import cuda_driver
driver = cuda_driver.Driver()
first, second = (usm.Queue(f"cuda:gpu:{index}") for index in range(2))

def made(queue, kind="device", count=1000):
    array = usm.empty(count, "<i4", kind=kind, queue=queue)
    usm.copy(array, usm.asarray(list(range(count)), dtype="<i4", queue="host"))
    return array
"""


@pytest.fixture(params=["", "late"])
def run(request, cuda_driver):
    """With work that starts at once, and with work that starts as late as it may."""

    def run(code):
        settings = f"{cuda_driver['USM_CUDA_SETTINGS']},{request.param}".rstrip(",")
        environment = {**os.environ, **cuda_driver, "USM_CUDA_SETTINGS": settings}
        done = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run


def test_large_copies_between_devices_arrive_whole(run):
    run("""
        for count in ((4 << 20) + 3, (9 << 20) + 1, 13 << 20):
            array = usm.empty(count, "<i4", kind="device", queue=first)
            host = usm.empty(count, "<i4", queue="host")
            host[...] = 7
            host[::1000] = usm.asarray(list(range(len(host[::1000]))), dtype="<i4", queue="host")
            usm.copy(array, host)
            there = usm.empty(count, "<i4", kind="device", queue=second)
            usm.copy(there, array)
            assert there.tobytes() == host.tobytes()
    """)


def test_arrays_live_on_the_second_device(run):
    run("""
        for kind in ("device", "host", "shared"):
            array = made(second, kind)
            assert array.device.selector == "cuda:gpu:1" and array.context == second.context != first.context
            assert array[::3].tolist() == list(range(0, 1000, 3))
            back = pickle.loads(pickle.dumps(array))
            assert (back.device, back.kind, back.tolist()) == (array.device, kind, array.tolist())
            here = array.to_device("cuda:gpu:0")
            assert (here.device.selector, here.kind, here.tolist()) == ("cuda:gpu:0", kind, array.tolist())
            assert usm.full_like(array, 3).device == array.device
        with usm.Device("cuda:gpu:1"):
            assert usm.zeros(3).device.selector == "cuda:gpu:1"
            with first:
                assert usm.zeros(3).device.selector == "cuda:gpu:0"
        memory = usm.memory.MemoryUSMDevice(64, queue=second)
        memory.copy_from_device(usm.memory.MemoryUSMDevice(64, queue=first))
    """)


@pytest.mark.parametrize("peers", [False, True])
def test_copies_work_in_both_directions(run, peers):
    run(f"        peers = {peers}" + """
        if peers:
            for one, other in ((first.context, second.context), (second.context, first.context)):
                assert one.can_access_peer(other)
                one.enable_peer_access(other)
                one.enable_peer_access(other)
        for one, other in ((first, second), (second, first)):
            for kind in ("device", "host", "shared"):
                for other_kind in ("device", "host", "shared"):
                    source, target = made(one, kind), usm.zeros(1000, "<i4", kind=other_kind, queue=other)
                    usm.copy(target, source)
                    assert target.tolist() == list(range(1000))
                    target[::2] = source[500:]
                    assert target[::2].tolist() == list(range(500, 1000)) and target[1::2].tolist() == list(range(1, 1000, 2))
                    assert source.copy(queue=other, kind=other_kind).tolist() == source.tolist()
        if peers:
            first.context.disable_peer_access(second.context)
            first.context.disable_peer_access(second.context)
    """)


def test_a_device_of_another_runtime_cannot_be_a_peer(run):
    run("""
        host = usm.Context("host")
        assert not first.context.can_access_peer(host) and not host.can_access_peer(first.context)
        for one, other in ((first.context, host), (host, first.context)):
            try:
                one.enable_peer_access(other)
            except usm.DeviceError as error:
                assert "peer access" in str(error)
            else:
                raise AssertionError("enabled")
    """)


def test_a_queue_of_one_device_refuses_the_memory_of_the_other(run):
    run("""
        source, target = made(first), made(second)
        for queue in (first, second):
            for pair in ((source, target), (target, source)):
                try:
                    queue.copy(*pair)
                except usm.RequestError as error:
                    assert "context" in str(error), error
                else:
                    raise AssertionError("no queue reaches both")
    """)


def test_both_devices_work_at_once(run):
    run("""
        driver.hold(True)
        sources, targets = [made(first, "host"), made(second, "host")], [usm.empty(1000, "<i4", kind="device", queue=queue) for queue in (first, second)]
        events = [queue.copy(target, source) for queue, target, source in zip((first, second), targets, sources)]
        assert [it.done for it in events] == [False, False]
        driver.hold(False)
        # In either order: neither waits for the other.
        for event in reversed(events):
            event.wait()
        assert all(target.tolist() == list(range(1000)) for target in targets)
    """)


def test_threads_work_on_a_device_each(run):
    run("""
        import threading
        failed = []

        def work(queue):
            try:
                for step in range(20):
                    array = made(queue, count=100 + step)
                    assert array.copy(kind="shared").tolist() == list(range(100 + step)) and array.device == queue.device
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(queue,)) for queue in (first, second) * 2]
        for it in threads:
            it.start()
        for it in threads:
            it.join()
        assert not failed, failed
    """)


def test_arrays_of_the_second_device_are_exchanged(run):
    run("""
        array = made(second)

        class Foreign:
            def __init__(self):
                self.__cuda_array_interface__ = array.__cuda_array_interface__

        for taken in (usm.asarray(Foreign()), usm.from_dlpack(array)):
            assert (taken.pointer, taken.device.selector, taken.kind, taken.tolist()) == (array.pointer, "cuda:gpu:1", "device", array.tolist())
        assert array.__dlpack_device__() == (2, 1)
        address = driver.foreign(64, device=1)

        class Theirs:
            __cuda_array_interface__ = {"data": (address, False), "shape": (16,), "typestr": "<i4", "version": 3}

        assert usm.asarray(Theirs()).device.selector == "cuda:gpu:1"
        free = [usm.Device(f"cuda:gpu:{index}").free_memory for index in range(2)]
        held = usm.empty(32 << 20, "u1", kind="device", queue=second)
        assert usm.Device("cuda:gpu:1").free_memory == free[1] - (32 << 20) and usm.Device("cuda:gpu:0").free_memory == free[0]
    """)
