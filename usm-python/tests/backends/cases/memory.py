"""Kinds of memory and their access, pointer queries, and `usm.memory`."""

import ctypes
import pickle

import numpy as np
import pytest

import usm
from usm.memory import USMAllocationError, as_usm_memory

from ..fixture import KINDS, MEMORY


def only_host_and_shared_memory_have_a_host_view(b):
    for kind in KINDS:
        array, memory = usm.zeros(16, "|u1", kind=kind, queue=b.device), MEMORY[kind](16, queue=b.device)
        assert (array.kind, memory.get_usm_type()) == (kind, kind)
        for target in (array, memory):
            if kind == "device":
                with pytest.raises(usm.AccessError, match="device memory"):
                    memoryview(target)
                assert issubclass(usm.AccessError, BufferError) and not hasattr(target, "__array_interface__")
                continue
            memoryview(target).cast("B")[3] = 9
            assert target.tobytes()[3] == 9


def a_host_view_waits_for_the_work_that_writes_it(b):
    queue = b.queue(in_order=False)
    for kind in ("host", "shared"):
        source = b.array(np.full(1 << 20, 5, "|u1"), queue=queue)
        target = usm.zeros(1 << 20, "|u1", kind=kind, queue=queue)
        event = queue.copy(target, source)
        seen = np.asarray(memoryview(target))
        assert event.done and (seen == 5).all()


def every_byte_of_a_block_is_known_and_no_other(b):
    context = b.context()
    for kind in KINDS:
        memory = MEMORY[kind](1000, queue=context)
        known = (kind, memory._pointer, 1000)
        for offset in (0, 1, 500, 999):
            assert context.query(memory._pointer + offset) == known
        assert context.query(memory._pointer + 1000) == ("unknown", 0, 0)
        assert context.query(memory._pointer - 1) == ("unknown", 0, 0)


def a_freed_pointer_is_unknown(b):
    context = b.context()
    for kind in KINDS:
        # So large that no runtime keeps it.
        array = usm.empty(1 << 25, "|u1", kind=kind, queue=context)
        pointer = array.pointer
        assert context.query(pointer)[0] == kind
        part = array[5:]
        del array
        assert context.query(pointer)[0] == kind, "a view keeps it"
        del part
        context.synchronize()
        assert context.query(pointer) == ("unknown", 0, 0)


def pointers_outside_of_all_blocks_are_unknown(b):
    context = b.context()
    local = ctypes.create_string_buffer(64)
    for pointer in (0, 1, 4096, ctypes.addressof(local), id(local), (1 << 47) - 8, (1 << 64) - 1):
        assert context.query(pointer) == ("unknown", 0, 0), hex(pointer)
    for wrong in (-1, 1 << 64, 1.5, "0", None):
        with pytest.raises((usm.RequestError, TypeError), match="pointer"):
            context.query(wrong)


def pointers_of_another_context_are_unknown(b):
    one, two = b.context(), b.context()
    array = usm.zeros(1000, "|u1", kind="device", queue=one)
    assert one != two and one.query(array.pointer) == ("device", array.pointer, 1000)
    # SYCL, CUDA and HIP have one native context for a device, which knows the memory of all of
    # ours; the ledger does not.
    expected = "device" if b.kind in ("sycl", "cuda", "hip") else "unknown"
    assert two.query(array.pointer)[0] == expected


def memory_has_the_requested_alignment(b):
    for kind in KINDS:
        for alignment in (1, 2, 64, 4096, 65536):
            assert MEMORY[kind](100, alignment=alignment, queue=b.device)._pointer % alignment == 0
            assert usm.empty(100, "|u1", kind=kind, queue=b.device, alignment=alignment).pointer % alignment == 0
        for wrong in (3, 48):
            with pytest.raises(usm.RequestError, match=str(wrong)):
                usm.empty(100, "|u1", kind=kind, queue=b.device, alignment=wrong)
        with pytest.raises(usm.Error):
            usm.empty(100, "|u1", kind=kind, queue=b.device, alignment=1 << 63)
        with pytest.raises(usm.RequestError, match="alignment 3"):
            MEMORY[kind](16, alignment=3, queue=b.device)
        with pytest.raises(usm.RequestError, match="alignment: -1"):
            usm.empty(100, "|u1", kind=kind, queue=b.device, alignment=-1)


def an_impossible_request_is_refused_with_its_size(b):
    for kind in KINDS:
        for size in (b.device.max_alloc_size + 1, 1 << 46, 1 << 62):
            with pytest.raises(usm.AllocationError) as error:
                usm.empty(size, "|u1", kind=kind, queue=b.device)
            assert isinstance(error.value, MemoryError) and str(size) in str(error.value)
            with pytest.raises(USMAllocationError):
                MEMORY[kind](size, queue=b.device)
        for shape in ((1 << 62, 1 << 62), (1 << 40, 1 << 40), (1 << 100,), (-1,)):
            with pytest.raises((ValueError, OverflowError)):
                usm.empty(shape, "|u1", kind=kind, queue=b.device)
        for size in (0, -1):
            with pytest.raises(ValueError, match="positive"):
                MEMORY[kind](size, queue=b.device)
        assert usm.empty(0, kind=kind, queue=b.device).tolist() == []
    for wrong in ("unified", "", "Device", "buffer"):
        with pytest.raises(usm.RequestError, match="host, device, shared"):
            usm.empty(1, kind=wrong, queue=b.device)


def the_context_works_on_after_memory_ran_out(b):
    context = b.context()
    for kind in KINDS:
        with b.out_of_memory():
            with pytest.raises(usm.AllocationError, match="100|memory"):
                usm.empty(100, "|u1", kind=kind, queue=context)
            with pytest.raises(USMAllocationError):
                MEMORY[kind](100, queue=context)
        assert context.stats()["sum"]["live"] == 0
        assert usm.zeros(100, "|u1", kind=kind, queue=context).tobytes() == bytes(100)


def bytes_are_copied_to_memory_and_back(b):
    for kind in KINDS:
        memory = MEMORY[kind](16, queue=b.device)
        assert (memory.nbytes, memory.size, len(memory)) == (16, 16, 16) and memory.__sizeof__() > 16
        memory.memset()
        assert bytes(memory) == memory.tobytes() == bytes(16)
        memory.memset(7)
        memory.copy_from_host(b"abc")
        assert memory.tobytes() == b"abc" + bytes([7] * 13)
        room = bytearray(20)
        assert memory.copy_to_host(room) is room and room == b"abc" + bytes([7] * 13) + bytes(4)
        assert memory.copy_to_host() == room[:16] and kind in repr(memory)
        for wrong in (lambda: memory.copy_from_host(bytes(17)), lambda: memory.copy_to_host(bytearray(15))):
            with pytest.raises(usm.RequestError, match="bytes"):
                wrong()
        with pytest.raises(OverflowError):
            memory.memset(256)


def memory_of_any_kind_is_copied_to_any_other(b):
    for kind in KINDS:
        memory = MEMORY[kind](64, queue=b.device)
        memory.copy_from_host(bytes(range(64)))
        for other in KINDS:
            target = MEMORY[other](100, queue=b.device)
            target.memset(9)
            target.copy_from_device(memory)
            assert target.tobytes() == bytes(range(64)) + bytes([9] * 36)
            copied = MEMORY[other](memory, copy=True)
            assert copied.get_usm_type() == other and bytes(copied) == bytes(range(64))
            assert copied._pointer != memory._pointer
            if other == kind:
                assert MEMORY[other](memory)._pointer == memory._pointer
            else:
                with pytest.raises(ValueError, match="copy=True"):
                    MEMORY[other](memory)
            with pytest.raises(usm.RequestError, match="bytes"):
                memory.copy_from_device(target)


def an_array_and_a_memory_object_share_one_block(b):
    for kind in KINDS:
        array = usm.zeros((4, 4), "<i2", kind=kind, queue=b.device)
        part = as_usm_memory(array[1:3])
        assert type(part) is MEMORY[kind] and (part._pointer, part.nbytes) == (array.pointer + 8, 16)
        assert part.queue.device == b.device and part.reference_obj is None
        part.memset(1)
        assert array.tolist() == [[0] * 4, [257] * 4, [257] * 4, [0] * 4]
        del array
        assert bytes(part) == bytes([1] * 16)


def memory_has_a_kind_for_a_queue_and_for_a_context(b):
    numbers = {"device": 1, "shared": 2, "host": 3}
    for kind in KINDS:
        memory = MEMORY[kind](64, queue=b.device)
        assert memory.get_usm_type_enum() == numbers[kind]
        for like in (memory.queue, memory.queue.context):
            assert memory.get_usm_type(like) == kind and memory.get_usm_type_enum(like) == numbers[kind]
        with pytest.raises(TypeError, match="neither a queue nor a context"):
            memory.get_usm_type(5)


def memory_is_pickled_through_the_host(b):
    for kind in KINDS:
        memory = MEMORY[kind](16, queue=b.device)
        memory.copy_from_host(bytes(range(16)))
        again = pickle.loads(pickle.dumps(memory))
        assert type(again) is MEMORY[kind] and bytes(again) == bytes(range(16))
        assert again._pointer != memory._pointer and again.queue.device == b.device


def statistics_and_records_are_equal_on_every_backend(b):
    """Numbers and records of one program, whatever the backend."""
    context = b.context()
    context.keep_history(8)
    arrays = {kind: usm.zeros(1000 * (1 + place), "|u1", kind=kind, queue=context) for place, kind in enumerate(KINDS)}
    view = arrays["shared"][10:]
    found = context.stats()
    for place, kind in enumerate(KINDS):
        size = 1000 * (1 + place)
        assert found[f"usm_{kind}"] == {"current": size, "peak": size, "total": size, "live": 1, "count": 1}
    assert found["sum"] == {"current": 6000, "peak": 6000, "total": 6000, "live": 3, "count": 3}
    assert found["cl_mem"]["count"] == found["leaked"] == 0
    arrays.clear()
    context.synchronize()
    assert context.stats()["sum"] == {"current": 3000, "peak": 6000, "total": 6000, "live": 1, "count": 3}
    del view
    context.synchronize()
    assert context.stats()["sum"]["current"] == 0
    records = [(record["operation"], record["type"], record["bytes"]) for record in context.history()]
    sizes = {f"usm_{kind}": 1000 * (1 + place) for place, kind in enumerate(KINDS)}
    assert records[:3] == [("allocate", type, size) for type, size in sizes.items()]
    assert sorted(records[3:]) == sorted(("free", type, size) for type, size in sizes.items())


def copies_of_views_leave_no_memory_behind(b):
    """Temporary memory of a copy is freed with it."""
    context = b.context()
    array = usm.zeros((512, 512), "<i4", kind="device", queue=context)
    other = usm.zeros((512, 512), "<i4", kind="device", queue=context)
    before = context.stats()["sum"]["live"]
    usm.copy(array[:, ::3], other[:, ::3])
    usm.copy(array[::-1, ::2], array[:, ::2])
    context.synchronize()
    assert other[::3, ::5].tolist() == array[::3, ::5].tolist()
    context.synchronize()
    assert context.stats()["sum"]["live"] == before == 2
    assert context.stats()["usm_host"]["count"] == context.stats()["leaked"] == 0, "it is memory of the process"


def statistics_are_listed_by_selector(b):
    array = usm.zeros(1000, queue=b.device)
    assert usm.stats()[b.device.selector]["sum"]["live"] >= 1
    assert isinstance(usm.history(), dict) and array.nbytes == 8000
