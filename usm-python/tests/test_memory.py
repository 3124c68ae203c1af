"""``usm.memory`` on every backend; dpctl's own tests cover SYCL further."""

import os
import pathlib
import re

import pytest

import usm
from conftest import device_of
from usm.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, USMAllocationError, as_usm_memory

CLASSES = {"host": MemoryUSMHost, "device": MemoryUSMDevice, "shared": MemoryUSMShared}


@pytest.fixture
def make(queue, kind):
    return lambda *args, **kwargs: CLASSES[kind](*args, queue=queue, **kwargs)


def test_memory_has_a_size_an_address_and_a_kind(make, kind, queue):
    memory = make(1000, alignment=4096)
    assert (memory.nbytes, memory.size, len(memory)) == (1000, 1000, 1000)
    assert memory._pointer % 4096 == 0
    assert memory.get_usm_type() == kind
    assert memory.get_usm_type_enum() == {"device": 1, "shared": 2, "host": 3}[kind]
    # An object of both classes names the object of ours that owns the block.
    assert memory.reference_obj is None or memory._is_dpctls
    assert kind in repr(memory) and memory.__sizeof__() > 1000
    assert memory.queue.device == queue.device


def test_bytes_are_copied_in_and_out(make, kind):
    memory = make(16)
    memory.memset()
    assert memory.tobytes() == bytes(memory) == bytes(16)
    memory.memset(7)
    memory.copy_from_host(b"abc")
    assert memory.tobytes() == b"abc" + bytes([7] * 13)
    room = bytearray(20)
    assert memory.copy_to_host(room) is room
    assert room == b"abc" + bytes([7] * 13) + bytes(4)
    assert memory.copy_to_host() == bytearray(room[:16])
    if kind == "device":
        with pytest.raises((BufferError, TypeError)):
            memoryview(memory)
    else:
        memoryview(memory)[0] = ord("X")
        assert memory.tobytes()[:1] == b"X"


def test_sizes_that_do_not_fit_are_refused(make):
    memory = make(16)
    for call in (
        lambda: memory.copy_from_host(bytes(17)),
        lambda: memory.copy_to_host(bytearray(15)),
        lambda: memory.copy_from_device(make(17)),
    ):
        with pytest.raises(ValueError, match="bytes"):
            call()
    with pytest.raises((BufferError, TypeError)):
        memory.copy_to_host(b"fixed bytes that are read-only")
    with pytest.raises(OverflowError):
        memory.memset(256)


def test_an_impossible_request_is_refused(make):
    for nbytes in (0, -1, -(1 << 70)):
        with pytest.raises(ValueError, match="positive"):
            make(nbytes)
    for nbytes in (1 << 46, 1 << 62, 1 << 70, 1 << 200):
        with pytest.raises(USMAllocationError):
            make(nbytes)
    with pytest.raises(usm.RequestError, match="alignment 3"):
        make(16, alignment=3)
    # No error has a number of bytes that nobody asked for.
    for shift in (20, 30, 40, 46, 62, 63):
        try:
            memory = make(100, alignment=1 << shift)
        except (usm.RequestError, usm.AllocationError) as error:
            assert set(re.findall(r"\d+", str(error).replace(",", ""))) <= {"100", str(1 << shift)}, error
        else:
            assert memory._pointer % (1 << shift) == 0
    # Also for memory that keeps its place.
    for wrong in (3, -1, -64, -(1 << 70), 1 << 70):
        for source in (16, make(16)):
            with pytest.raises(usm.RequestError, match="alignment"):
                make(source, alignment=wrong)
            with pytest.raises(usm.RequestError, match="alignment"):
                make(source, alignment=wrong, copy=True)
    for wrong in ("16", 1.5, None, object(), [16]):
        with pytest.raises(ValueError):
            make(wrong)


def test_kinds_are_copied_only_on_request(queue, kind):
    memory = CLASSES[kind](8, queue=queue)
    memory.copy_from_host(b"01234567")
    for other, constructor in CLASSES.items():
        copied = constructor(memory, copy=True)
        assert copied.get_usm_type() == other and bytes(copied) == b"01234567"
        assert copied._pointer != memory._pointer
        if other == kind:
            shared = constructor(memory)
            assert shared._pointer == memory._pointer and (shared.reference_obj is None or shared._is_dpctls)
        else:
            with pytest.raises(ValueError, match="copy=True"):
                constructor(memory)
    assert isinstance(as_usm_memory(memory), CLASSES[kind])


def test_an_array_becomes_a_memory_object(queue, kind):
    array = usm.zeros((4, 4), "<i2", kind=kind, queue=queue)
    part = as_usm_memory(array[1:3])
    assert part._pointer == array.pointer + 8 and part.nbytes == 16
    part.memset(1)
    assert array.tolist() == [[0] * 4, [257] * 4, [257] * 4, [0] * 4]
    assert usm.asarray(part).tobytes() == bytes([1] * 16)


def test_subclasses_keep_their_class():
    class Mine(MemoryUSMShared):
        def hello(self):
            return self.nbytes

    assert Mine(5).hello() == 5 and isinstance(Mine(5), MemoryUSMShared)


def test_the_host_has_no_dictionary_of_sycl():
    memory = MemoryUSMShared(8, queue="host")
    assert not hasattr(memory, "__sycl_usm_array_interface__")
    assert memory.sycl_queue.device.selector == "host:host:0"
    with pytest.raises(TypeError):
        memory.get_usm_type(syclobj=...)
    assert memory.get_usm_type(syclobj=memory.queue) == "shared"
    with pytest.raises(usm.DeviceError):
        memory.queue._get_capsule()


def test_memory_over_a_read_only_array_is_read_only(queue):
    key = b"key"
    memory = as_usm_memory(usm.asarray(key))
    writes = [
        lambda: memory.memset(65),
        lambda: memory.copy_from_host(b"abc"),
        lambda: memory.copy_from_device(memory),
        lambda: usm.copy(memory, b"abc"),
        lambda: usm.asarray(memory).fill(65),
        lambda: memory.queue.copy(memory, memory),
        lambda: usm.copy(usm.nrt.MemInfo(memory), b"abc"),
        lambda: type(memory)(memory).memset(65),
    ]
    for write in writes:
        with pytest.raises(usm.AccessError, match="read-only"):
            write()
    assert memoryview(memory).readonly and key == b"key"
    copied = type(memory)(memory, copy=True)
    copied.memset(65)
    assert bytes(copied) == b"AAA" and key == b"key"


def test_the_dictionary_of_read_only_memory_is_read_only(dpctl, np):
    values = np.arange(4, dtype="|u1")
    values.setflags(write=False)
    array = usm.asarray(values, queue=usm.Queue(device_of("sycl")), kind="shared")
    memory = as_usm_memory(array)
    assert memory.__sycl_usm_array_interface__["data"][1] is False

    class Producer:
        __sycl_usm_array_interface__ = {**array.__sycl_usm_array_interface__, "data": (array.pointer, True)}

    for restricted in (as_usm_memory(usm.asarray(Producer())), usm.asarray(as_usm_memory(usm.asarray(Producer())))):
        assert restricted.__sycl_usm_array_interface__["data"][1] is True
        with pytest.raises(usm.AccessError, match="read-only"):
            usm.copy(usm.asarray(restricted), bytes(4))
    # As in dpctl and the README: the flag of a directly passed dictionary is ignored.
    as_usm_memory(Producer()).memset(1)


def test_blocks_in_a_loop_do_not_grow(queue):
    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def batch(size):
        before = resident()
        for _ in range(10_000):
            usm.empty(size, "u1", kind="device", queue=queue)
        return resident() - before

    for size in (16, 100, 4096):
        # The first batch fills the pools of the runtime.
        assert sum([batch(size) for _ in range(4)][1:]) < 1 << 20, size
