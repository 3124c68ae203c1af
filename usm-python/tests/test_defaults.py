"""Devices and queues that a `with` block makes the default of its thread."""

import pickle
import subprocess
import sys
import threading

import pytest

import usm
import usm.memory


def everything():
    """Objects that are made without naming a device, each with its context."""
    return {
        "zeros": usm.zeros(3).context,
        "full": usm.full(3, 1.0).context,
        "like bytes": usm.empty_like(b"abc").context,
        "a list": usm.asarray([1, 2]).context,
        "memory": usm.memory.MemoryUSMShared(16).queue.context,
    }


def test_a_queue_is_the_default_of_its_block(queue):
    context = usm.Context(queue.device)
    inner = usm.Queue(context, in_order=False)
    with inner as entered:
        assert entered is inner and set(everything().values()) == {context}
        assert usm.zeros(2).queue == inner and usm.Device() == usm.Queue().device == queue.device
        # An explicit device wins.
        assert usm.zeros(2, device="host").device == usm.Device("host")
        assert usm.zeros(2, queue="host").device == usm.Device("host")
        assert usm.zeros_like(usm.zeros(2, device="host")).device == usm.Device("host")
    assert context not in everything().values()


def test_the_innermost_block_decides(queue):
    device = queue.device
    with usm.Device("host") as outer, queue:
        assert usm.zeros(1).queue == queue
        with device as same, usm.device_context(outer) as host:
            assert same is device and host == outer.context.queue and usm.zeros(1).queue == host
        with device:
            assert usm.zeros(1).queue == device.context.queue
            with device, pytest.raises(KeyError):
                raise KeyError
            assert usm.zeros(1).queue == device.context.queue
        assert usm.zeros(1).queue == queue


def test_a_thread_has_a_stack_of_its_own(queue):
    before, seen = usm.Device(), []
    with queue:
        other = threading.Thread(target=lambda: seen.append(usm.Device()))
        other.start()
        other.join()
    assert seen == [before]


def test_the_end_of_a_block_waits_for_the_queue(queue):
    source, target = usm.full(1 << 20, 7, "u1", kind="device", queue=queue), usm.zeros(1 << 20, "u1", kind="device", queue=queue)
    with queue:
        event = queue.copy(target, source)
    assert event.done
    with usm.device_context(queue) as given:
        assert given == queue


def test_blocks_may_end_out_of_order():
    def block(device):
        with device:
            yield usm.zeros(1).device

    host = usm.Device("host")
    first, second = block(host), block(usm.Device())
    assert next(first) == host
    next(second)
    first.close()
    second.close()
    # An end without a beginning is nothing.
    host.__exit__(None, None, None)
    assert list(block(host)) == [host]


def test_a_pickle_of_an_absent_device_opens_on_the_default(queue):
    # The warning comes once for each device.
    absent = "host:host:" + str(["host", "opencl", "sycl"].index(queue.device.backend) + 10)
    data = pickle.dumps(usm.full(3, 2, device="host"), 0).replace(b"host:host:0", absent.encode())
    with usm.Queue(usm.Context(queue.device)) as inner, pytest.warns(RuntimeWarning, match=f"{absent} is not here"):
        assert pickle.loads(data).context == inner.context


@pytest.mark.parametrize("wrong", [5, 1.5, [], "no such device"])
def test_an_unknown_device_is_refused(wrong):
    with pytest.raises((TypeError, usm.DeviceError), match="device"):
        usm.device_context(wrong)


def test_the_host_opens_no_runtime():
    program = """
import usm
with usm.Device("host"):
    assert usm.zeros(3).device == usm.Device() == usm.Context().device
loaded = open("/proc/self/maps").read()
assert "libsycl" not in loaded and "libOpenCL" not in loaded and "intelocl" not in loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_selector_without_a_runtime_takes_that_of_the_default(queue):
    """Two runtimes list the same processor; both arrays then work in one launch."""
    selector = queue.device.selector
    if queue.device.type != "cpu":
        assert usm.Device("host").selector == "host:host:0"
        return
    with usm.Device(selector):
        assert usm.Device("cpu") == usm.Device() and usm.zeros(3, device="cpu").device == usm.zeros(3).device
        assert usm.Device("cpu:0").selector == selector and usm.Device("host").selector == "host:host:0"
