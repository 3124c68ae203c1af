"""Devices, contexts, queues and events."""

import math

import numpy as np
import pytest

import usm


def a_device_describes_itself(b):
    device = b.device
    assert device in usm.devices() and device.backend == b.kind
    assert device.selector.startswith(b.kind) and device.name and device.type in ("cpu", "gpu", "accelerator", "host")
    assert isinstance(device.vendor, str) and isinstance(device.integrated, bool)
    assert bool(device.platform) == bool(device.driver_version) == (device.backend != "host")
    assert 0 < device.max_alloc_size <= device.global_mem_size
    assert device.max_work_group_size > 0 and device.local_mem_size >= 0
    assert device.selector in repr(device)


def a_selector_finds_its_device_again(b):
    for device in usm.devices():
        again = usm.Device(device.selector)
        assert again == device and hash(again) == hash(device) and again.selector == device.selector
    selectors = [device.selector for device in usm.devices()]
    assert len(set(selectors)) == len(selectors) and usm.devices() == usm.devices()


def the_device_of_the_environment_is_the_default(b):
    assert usm.Device() == b.device
    assert usm.zeros(1).device == usm.Queue().device == usm.Context().device == b.device


def a_selector_without_a_device_is_an_error_that_lists_the_devices(b):
    for wrong in (f"{b.kind}:gpu:77", "nothing", "", "::", f"{b.kind}:nothing", "\0", "x" * 1000):
        with pytest.raises(usm.DeviceError) as error:
            usm.Device(wrong)
        assert "device" in str(error.value)
    with pytest.raises(usm.DeviceError, match="no device matches .*77.*: no such device, it has "):
        usm.Queue(f"{b.kind}:gpu:77")
    for wrong in (7, 1.5, b"host", object(), [b.device]):
        with pytest.raises(TypeError):
            usm.Device(wrong)


def capabilities_are_bits_for_each_kind(b):
    found = b.device.capabilities
    assert set(found) == {"host", "device", "shared", "cross_device_shared", "system"}
    assert all(0 <= bits < 16 for bits in found.values())
    # A device reaches its own memory, and each kind that this suite allocates.
    assert all(found[kind] & 1 for kind in ("host", "device", "shared"))


def a_device_has_one_default_context(b):
    context = b.device.context
    assert context == b.device.context and hash(context) == hash(b.device.context)
    assert context.device == b.device and context.queue.context == context
    assert b.device.selector in repr(context)
    own = b.context()
    assert own != context and own != b.context() and own.device == b.device


def objects_equal_only_objects_of_their_class(b):
    for one in (b.device, b.context()):
        assert one != b.device.selector and one != 1 and one is not None and one != object()


def a_queue_knows_its_context_and_order(b):
    context = b.context()
    for in_order, words in ((True, "in order"), (False, "out of order")):
        queue = usm.Queue(context, in_order=in_order)
        assert queue.is_in_order is in_order and words in repr(queue)
        assert queue.context == context and queue.device == b.device
    assert usm.Queue(b.device.selector).device == usm.Queue(b.device).device == b.device
    assert context.queue.is_in_order and context.queue.context == context


def a_queue_is_made_from_a_device_context_queue_or_selector(b):
    for wrong in (7, 1.5, object(), [1]):
        with pytest.raises((TypeError, usm.Error)):
            usm.Queue(wrong)
        with pytest.raises((TypeError, usm.Error)):
            usm.zeros(1, queue=wrong)
    for like in (b.device, b.device.selector, b.device.context, b.queue()):
        assert usm.zeros(1, queue=like).device == b.device


def an_event_is_done_after_its_wait(b):
    for in_order in (True, False):
        queue = b.queue(in_order=in_order)
        source, target = b.array(np.arange(1000), queue=queue), usm.zeros(1000, "<i8", kind="device", queue=queue)
        event = queue.copy(target, source)
        event.wait()
        assert event.done is True and "done" in repr(event)
        event.wait(timeout=0)
        event.wait(1e6)
        assert target.tolist() == list(range(1000))


def waiting_for_no_time_ends_at_once(b):
    queue = b.queue()
    source, target = (usm.zeros(1 << 22, "|u1", kind="device", queue=queue) for _ in range(2))
    for wait in (lambda: event.wait(timeout=0.0), lambda: queue.wait(0.0)):
        for _ in range(8):
            event = queue.copy(target, source)
        try:
            wait()
            assert event.done
        except usm.WaitTimeout as error:
            assert isinstance(error, TimeoutError) and "0 ms" in str(error)
        queue.wait(timeout=60)
        assert event.done
    event.wait()
    assert event.done


def a_time_limit_is_a_number_of_seconds(b):
    queue = b.queue()
    event = queue.barrier()
    for wrong in (-1.0, -1e-9, math.nan, math.inf, -math.inf, 1e300):
        for wait in (event.wait, queue.wait, b.context().synchronize):
            with pytest.raises(ValueError, match="seconds"):
                wait(wrong)
    for wrong in ("1", None, object()):
        for wait in (event.wait, queue.wait):
            with pytest.raises(TypeError):
                wait(wrong)
    event.wait()
    queue.wait(1)


def a_queue_in_order_runs_in_order(b):
    queue = b.queue()
    arrays = [usm.zeros(100_000, "<i4", kind=kind, queue=queue) for kind in ("device", "host", "shared", "device")]
    arrays[0].fill(7)
    for source, target in zip(arrays, arrays[1:]):
        last = queue.copy(target, source)
    last.wait()
    assert all(array[::10_000].tolist() == [7] * 10 for array in arrays)


def work_on_one_array_is_ordered_on_any_queue(b):
    """Read after write and write after read, out of order and across queues, without waits."""
    context = b.context()
    for queues in ([b.queue(context, in_order=False)] * 3, [b.queue(context) for _ in range(3)]):
        one = b.array(np.arange(50_000, dtype="<i4"), queue=context)
        two, three = (usm.zeros(50_000, "<i4", kind="device", queue=context) for _ in range(2))
        for _ in range(10):
            queues[0].copy(two, one)
            queues[1].copy(three, two)
            queues[2].copy(two, b.array(np.zeros(50_000, "<i4"), queue=context))
            event = queues[0].copy(one, three)
        event.wait()
        assert one[::5_000].tolist() == three[::5_000].tolist() == list(range(0, 50_000, 5_000))
        assert not any(two[::5_000].tolist())


def a_barrier_comes_after_everything(b):
    for in_order in (True, False):
        queue = b.queue(in_order=in_order)
        pairs = [[usm.zeros(50_000, "|u1", kind="device", queue=queue) for _ in range(2)] for _ in range(6)]
        events = [queue.copy(*pair) for pair in pairs]
        queue.barrier().wait()
        assert all(event.done for event in events)
        assert queue.barrier().wait() is None


def waiting_for_a_queue_or_a_context_waits_for_its_work(b):
    context = b.context()
    queues = [b.queue(context), b.queue(context, in_order=False)]
    for wait in (lambda: [queue.wait() for queue in queues], context.synchronize, lambda: context.synchronize(timeout=20)):
        pairs = [[usm.zeros(50_000, "|u1", kind="device", queue=context) for _ in range(2)] for _ in range(4)]
        events = [queues[index % 2].copy(*pair) for index, pair in enumerate(pairs)]
        wait()
        assert all(event.done for event in events)


def an_event_outlives_what_it_came_from(b):
    context = b.context()
    queue = b.queue(context)
    event = queue.copy(*(usm.zeros(100_000, "|u1", kind="device", queue=context) for _ in range(2)))
    del queue, context
    event.wait()
    assert event.done


def many_queues_and_events_can_exist(b):
    context = b.context()
    source, target = (usm.zeros(8, "|u1", kind="device", queue=context) for _ in range(2))
    events = [b.queue(context, in_order=bool(n % 2)).copy(target, source) for n in range(100)]
    for event in events:
        event.wait()
    assert context.stats()["sum"]["live"] == 2


def a_queue_copies_contiguous_memory_of_one_size(b):
    queue = b.queue()
    array, other = (usm.zeros((4, 4), "<i4", kind="device", queue=queue) for _ in range(2))
    for target, source, reason in ((array, other[1:], "bytes"), (array[:, 0], other[:, 0], "contiguous"), (array.T, other, "contiguous")):
        with pytest.raises(usm.RequestError, match=reason):
            queue.copy(target, source)
    with pytest.raises(usm.RequestError, match="[Oo]verlap"):
        queue.copy(array[1:], array[:-1])
    with pytest.raises(usm.InterfaceError):
        queue.copy(array, 5)
    queue.copy(array[2:], array[:2]).wait()
    queue.copy(array[:0], other[:0]).wait()
