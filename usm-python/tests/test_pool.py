"""`usm.Pool`: arrays from larger segments, which later arrays reuse."""

import asyncio
import gc
import os
import pickle
import random
import subprocess
import sys
import threading

import pytest

import usm
from conftest import device_of


@pytest.fixture
def device(queue):
    return queue.device


def test_arrays_of_a_block_come_from_the_pool_and_reuse_its_memory(device):
    with device, usm.Pool(device) as pool:
        first = usm.empty(1000, "u1")
        address = first.pointer
        assert pool.stats()["live"] == 1000
        del first
        assert pool.stats()["live"] == 0
        second = usm.zeros(1000, "u1")
        assert second.tolist() == [0] * 1000
        assert pool.stats()["reserved"] >= 1000 and pool.stats()["peak_live"] >= 1000
        assert address == second.pointer
        copied = second.copy()
        assert pool.stats()["live"] == 2000 and copied.tolist() == [0] * 1000
        converted = second.astype("u2")
        assert pool.stats()["live"] == 4000 and converted.tolist() == [0] * 1000
        del converted
    outside = usm.empty(10, "u1", device=device)
    assert pool.stats()["live"] == 2000 and outside.nbytes == 10


def test_arrays_outlive_block_and_pool(device):
    with usm.Pool(device) as pool:
        array = usm.full(100, 7, "i4", device=device)
    context = pool.context
    del pool
    gc.collect()
    assert array.tolist() == [7] * 100
    before = context.stats()["sum"]["current"]
    del array
    gc.collect()
    assert context.stats()["sum"]["current"] == before - 400


def test_kinds_and_limits():
    with usm.Pool("host", kind="device", limit=1 << 20) as pool:
        shared = usm.empty(100, "u1", device="host")
        assert pool.stats()["live"] == 0 and shared.kind == "shared"
        block = usm.empty(1 << 20, "u1", kind="device", device="host")
        with pytest.raises(usm.AllocationError, match="a pool of device memory with limit 1048576"):
            usm.empty(1, "u1", kind="device", device="host")
        assert pool.stats()["reserved"] == 1 << 20
        del block
        assert pool.trim() == 1 << 20 and pool.stats()["reserved"] == 0
    with usm.Pool("host", limit=0), pytest.raises(usm.AllocationError):
        usm.empty(1, device="host")


@pytest.mark.parametrize("bad", [{"limit": -1}, {"limit": 2**64}])
def test_numbers_out_of_range_are_refused(bad):
    with pytest.raises(usm.RequestError, match="limit"):
        usm.Pool("host", **bad)
    with pytest.raises(TypeError, match="limit"):
        usm.Pool("host", limit="a")
    with pytest.raises(usm.RequestError, match="bytes"):
        usm.Pool("host").trim(-1)


def test_the_innermost_pool_of_the_context_counts():
    with usm.Pool("host") as outer, usm.Pool("host") as inner:
        array = usm.empty(8, "u1", device="host")
        assert (outer.stats()["live"], inner.stats()["live"]) == (0, 8)
        with outer:
            other = usm.empty(16, "u1", device="host")
        assert outer.stats()["live"] == 16
    assert array.nbytes + other.nbytes == 24


def test_threads_and_tasks_have_their_own_blocks():
    seen = []
    with usm.Pool("host") as pool:

        def other_thread():
            seen.append(usm.empty(8, "u1", device="host"))

        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
        assert pool.stats()["live"] == 0

        async def tasks():
            with usm.Pool("host") as own:
                kept = usm.empty(32, "u1", device="host")
                await asyncio.sleep(0)
                assert own.stats()["live"] == 32
                return kept

        async def both():
            return await asyncio.gather(tasks(), tasks())

        assert len(asyncio.run(both())) == 2
        assert pool.stats()["live"] == 0


def test_memory_objects_come_from_the_pool():
    with usm.device_context("host"), usm.Pool("host") as pool:
        memory = usm.memory.MemoryUSMShared(100)
        assert pool.stats()["live"] == 100
        del memory
        gc.collect()
        assert pool.stats()["live"] == 0


def test_statistics_and_queries_show_arrays_and_not_segments():
    with usm.Pool("host") as pool:
        context = pool.context
        before = context.stats()
        array = usm.empty(1000, "u1", device="host")
        now = context.stats()
        assert now["sum"]["current"] - before["sum"]["current"] == 1000
        assert now["reserved"] - before["reserved"] == pool.stats()["reserved"] >= 1000
        assert context.query(array.pointer + 999)[0] == "shared"
        assert context.query(array.pointer + 999)[2] == 1000
        assert context.query(array.pointer + 1000)[0] == "unknown"
        address = array.pointer
        del array
        assert context.query(address)[0] == "unknown"


def test_a_snapshot_shows_segments_that_their_blocks_tile(tmp_path):
    with usm.Pool("host"):
        arrays = [usm.empty(1000, "u1", device="host") for _ in range(3)]
        del arrays[1]
        taken = usm.snapshot()
    taken.dump(tmp_path / "memory.pickle")
    content = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    places = {array.pointer for array in arrays}
    segments = [s for s in content["segments"] if places & {b["address"] for b in s["blocks"]}]
    assert len(segments) == 1
    (segment,) = segments
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    states = {block["address"]: block["state"] for block in segment["blocks"]}
    assert all(states[place] == "active_allocated" for place in places)
    assert "inactive" in states.values()
    # What the arrays asked for, and not what the pool rounded it to.
    assert {block["address"]: block["bytes"] for block in taken.blocks if block["address"] in places} == dict.fromkeys(places, 1000)
    requested = {block["address"]: block["requested_size"] for block in segment["blocks"]}
    assert all(requested[place] == 1000 for place in places)
    assert segment["requested_size"] == sum(requested.values()) == 2000 < segment["allocated_size"]


def test_a_snapshot_shows_freed_blocks_that_work_still_uses(tmp_path):
    queue = usm.Queue(device_of("opencl"))
    size, states = 32 << 20, []
    with usm.Pool(queue.device):
        source, target = (usm.empty(size, "u1", queue=queue, kind="device") for _ in range(2))
        address = target.pointer
        for _ in range(60):
            queue.copy(target, source)
        del target
        usm.snapshot().dump(tmp_path / "memory.pickle")
    content = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    for segment in content["segments"]:
        states += [(it["state"], it["size"]) for it in segment["blocks"] if it["address"] == address]
    assert states == [("active_pending_free", size)]
    queue.wait()
    del source


def test_the_history_has_no_segments_of_the_size_of_pooled_blocks(tmp_path):
    context = usm.Device("host").context
    context.keep_history(100)
    plain = usm.empty(1000, "u1", device="host")
    with usm.Pool("host") as pool:
        arrays = [usm.empty(1000, "u1", device="host") for _ in range(2)]
        addresses = {array.pointer for array in arrays}
        del arrays
        assert pool.trim() > 0  # also once the segment is gone
    usm.snapshot().dump(tmp_path / "memory.pickle")
    context.keep_history(0)
    content = pickle.loads((tmp_path / "memory.pickle").read_bytes())

    def actions(addresses):
        return sorted(it["action"] for trace in content["device_traces"] for it in trace if it["addr"] in addresses)

    assert actions(addresses) == ["alloc"] * 2 + ["free_completed"] * 2 + ["free_requested"] * 2
    assert actions({plain.pointer}) == ["alloc", "segment_alloc"]


def test_random_arrays_keep_their_values(device):
    chosen = random.Random(3)
    arrays = []
    with usm.Pool(device) as pool:
        for _ in range(300):
            if chosen.random() < 0.55 or not arrays:
                size, value = chosen.randrange(1, 5000), chosen.randrange(200)
                arrays.append((usm.full(size, value, "u1", device=device), size, value))
            else:
                array, size, value = arrays.pop(chosen.randrange(len(arrays)))
                assert array.tolist() == [value] * size
                del array
        assert pool.stats()["live"] == sum(size for _, size, _ in arrays)


CACHE = """
import gc, os, sys
import usm
queue, kind = usm.Queue(sys.argv[1]), sys.argv[2]
context = queue.context
kept = os.environ.get("USM_DEVICE_CACHE") != "0"
size = 5 << 20
first = usm.full(size, 7, "u1", queue=queue, kind=kind)
address = first.pointer
before = context.stats()
assert (before["reserved"] >= size) == kept and before["sum"]["current"] == size
del first
assert context.stats()["sum"]["current"] == 0
assert (context.stats()["reserved"] >= size) == kept
# The same memory, whose old bytes nobody sees in zeros.
second = usm.zeros(size, "u1", queue=queue, kind=kind)
if kept:
    assert second.pointer == address and context.query(address)[2] == size
assert not any(second.tobytes())
usm.trim()
assert not any(second.tobytes()), "trim takes no memory of a live array"
del second
gc.collect()
assert (usm.trim() >= size) == kept and context.stats()["reserved"] == 0
# Small shared blocks have pages of their own.
small = usm.zeros(10, "u1", queue=queue, kind=kind)
assert (context.stats()["reserved"] > 0) == (kept and kind == "device")
# A block of a pool comes before it.
with usm.Pool(queue.device) as pool:
    inside = usm.empty(10, "u1", queue=queue, kind=kind)
    assert pool.stats()["live"] == 10
    assert inside.tobytes() is not None
print("fine")
"""


@pytest.mark.parametrize("kind", ["device", "shared"])
@pytest.mark.parametrize("setting", ["1", "0"])
def test_memory_of_a_gpu_is_kept_for_later_arrays(setting, kind, cuda_driver):
    environment = {**os.environ, **cuda_driver, "USM_DEVICE_CACHE": setting}
    command = [sys.executable, "-c", CACHE, "cuda:gpu:0", kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("fine\n", "")


ESCAPES = """
import contextlib, ctypes, sys
import usm
import cuda_driver
driver = cuda_driver.Driver()
driver.library.usm_cuda_log(1)
queue = usm.Queue("cuda:gpu:0")
text = ctypes.create_string_buffer(1 << 20)

def frees(use):
    array = usm.full(1 << 20, 7, "u1", queue=queue, kind="device")
    kept = use(array)
    driver.library.usm_cuda_calls(text, ctypes.c_size_t(len(text)))
    del array, kept
    driver.library.usm_cuda_calls(text, ctypes.c_size_t(len(text)))
    return text.value.count(b"cuMemFree_v2")

def window(array):
    return array[5:]

with usm.Pool(queue.context) if sys.argv[1] == "pool" else contextlib.nullcontext():
    frees(window)
    # The driver's free waits for the work of others, which usm does not know.
    for use, waits in (
        (window, False),
        (lambda array: array.tolist(), False),
        (lambda array: array.pointer, True),
        (lambda array: array.__dlpack__(stream=-1), True),
        (lambda array: array.__dlpack__(stream=2), True),
        (lambda array: array.__cuda_array_interface__, True),
        (lambda array: array[5:].__dlpack__(stream=1), True),
    ):
        assert (frees(use) > 0) == waits, waits
    # Another library reads the array late, on its own stream.
    size, stream = 1 << 20, driver.stream()
    for kind in "device", "shared":
        target = driver.foreign(size)
        array = usm.full(size, 7, "u1", queue=queue, kind=kind)
        address = array.pointer
        queue.wait()
        with driver.Current(driver, 0):
            driver.call("cuMemcpyAsync", *map(ctypes.c_void_p, (target, address)), ctypes.c_size_t(size), ctypes.c_void_p(stream))
        del array
        later = usm.full(size, 9, "u1", queue=queue, kind=kind)
        assert later.pointer == address and set(later.tobytes()) == {9}
        with driver.Current(driver, 0):
            driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
        assert set(driver.read(target, size)) == {7}, kind
        del later
assert driver.misuses() == 0
print("fine")
"""


@pytest.mark.parametrize("source", ["cache", "pool"])
def test_later_arrays_get_the_memory_of_others_after_all_work_of_the_device(source, cuda_driver):
    environment = {**os.environ, **cuda_driver, "USM_CUDA_SETTINGS": "devices=1,late,frees-wait"}
    command = [sys.executable, "-c", ESCAPES, source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("fine\n", "")


FULL = """
import usm
import cuda_driver
driver = cuda_driver.Driver()
context = usm.Context("cuda:gpu:0")
queue = context.queue
array = usm.empty(20 << 20, "u1", queue=queue, kind="device")
del array
# A pool that a context of the user's own holds goes with all others.
assert context.stats()["reserved"] >= 20 << 20 and usm.trim() >= 20 << 20 and context.stats()["reserved"] == 0
# What one pool holds idle serves another one.
other = usm.Queue("cuda:gpu:0")
free = (1 << 30) - (64 << 20)
first = usm.empty(free // 2, "u1", queue=queue, kind="device")
del first
second = usm.empty(free // 4 * 3, "u1", queue=other, kind="device")
assert second.nbytes == free // 4 * 3
try:
    usm.empty(free, "u1", queue=other, kind="device")
except usm.AllocationError as error:
    assert str(free) in str(error), error
else:
    raise AssertionError("more than there is")
# A pool of the program's own gets it too, where another library has the rest, so that only the
# driver knows of the shortage.
del second
usm.trim()
driver.foreign(400 << 20)
first = usm.empty(300 << 20, "u1", queue=queue, kind="device")
del first
with usm.Pool("cuda:gpu:0"):
    third = usm.empty(500 << 20, "u1", queue=other, kind="device")
assert third.nbytes == 500 << 20
print("fine")
"""


def test_memory_that_a_cache_holds_idle_serves_all(cuda_driver):
    environment = {**os.environ, **cuda_driver, "USM_CUDA_SETTINGS": f"devices=1,memory={1 << 30}"}
    done = subprocess.run([sys.executable, "-c", FULL], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("fine\n", "")
