"""Defects of dpctl 0.22.1 and dpnp 0.20.0 with `__sycl_usm_array_interface__`, as measured.

usm imports correctly or raises a typed error. Where the defect does not harm the process,
the test shows it too, so that a release without it is noticed.
"""

import gc
import subprocess
import sys
import textwrap

import pytest

import usm
import usm.memory


class Producer:
    def __init__(self, fields, owner=None):
        self.__sycl_usm_array_interface__ = {key: value for key, value in fields.items() if value is not ...}
        self.owner = owner


@pytest.fixture
def block(dpctl):
    """4 KiB of dpctl's, and a dictionary of it with changes."""
    memory = dpctl.memory.MemoryUSMShared(4096)

    def change(**changes):
        return Producer({**memory.__sycl_usm_array_interface__, **changes}, memory)

    change.memory = memory
    return change


def refused(producer, *words):
    for consume in (usm.asarray, usm.memory.as_usm_memory, usm.memory.MemoryUSMShared):
        with pytest.raises(usm.InterfaceError) as caught:
            consume(producer)
        assert any(word in str(caught.value) for word in words), caught.value


def test_d1_a_context_and_a_pointer_that_is_no_usm(dpctl):
    """dpctl's process ends with SIGABRT; ours describes the pointer."""
    code = """
        import ctypes, sys
        import dpctl, usm, usm.memory
        queue, block = dpctl.SyclQueue(), ctypes.create_string_buffer(64)
        for syclobj in (queue.sycl_context, queue.sycl_context._get_capsule()):
            for address in (0, 1, ctypes.addressof(block), (1 << 64) - 64):
                class Producer:
                    __sycl_usm_array_interface__ = {"data": (address, False), "shape": (16,), "typestr": "|u1",
                                                    "version": 1, "syclobj": syclobj, "strides": None}
                try:
                    (usm.asarray if sys.argv[1] == "usm" else dpctl.memory.as_usm_memory)(Producer())
                except (usm.InterfaceError, ValueError, RuntimeError):
                    continue
                raise SystemExit("accepted")
        print("alive")
    """

    def run(who):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(code), who], capture_output=True, text=True, timeout=120)

    ours = run("usm")
    assert (ours.returncode, ours.stdout.strip()) == (0, "alive"), ours.stderr


def test_d2_memory_objects_may_be_written(dpctl, block):
    """dpnp reads the memory's flag as read-only; documents and producer mean opposite things."""
    assert block.memory.__sycl_usm_array_interface__["data"][1] is True
    array = usm.asarray(block.memory)
    assert not array.readonly
    array.fill(5)
    assert block.memory.tobytes() == b"\5" * 4096
    # An array's flag is the documents'.
    assert usm.asarray(block(data=(block.memory._pointer, True), offset=0)).readonly


def test_d3_negative_strides_and_offset(dpctl, dpnp, np):
    theirs = dpnp.arange(24, dtype="i4").reshape(2, 3, 4)
    for index in ((slice(None), slice(None, None, -1)), (slice(None, None, -1),) * 3, (slice(1, None), slice(None), slice(None, None, -2))):
        view = theirs[index]
        ours = usm.asarray(view)
        assert ours.tolist() == dpnp.asnumpy(view).tolist()
        ours.fill(7)
        assert (dpnp.asnumpy(view) == 7).all()
        theirs = dpnp.arange(24, dtype="i4").reshape(2, 3, 4)


def test_d4_nothing_is_copied(dpctl, dpnp):
    theirs = dpnp.zeros(1 << 18, dtype="f4")
    ours = usm.asarray(theirs, copy=False)
    assert ours.pointer == theirs.__sycl_usm_array_interface__["data"][0]
    assert usm.asarray(theirs, queue=theirs.sycl_queue, copy=False).pointer == ours.pointer
    ours[3] = 2.0
    assert float(theirs[3]) == 2.0
    # The other way: dpnp's own asarray copies; these do not.
    back = dpnp.from_dlpack(ours)
    back[4] = 5.0
    assert ours[4].item() == 5.0
    memory = dpctl.memory.as_usm_memory(ours)
    assert memory._pointer == ours.pointer and memory.reference_obj is ours
    again = dpnp.ndarray(ours.shape, dtype="f4", buffer=memory)
    again[5] = 6.0
    assert ours[5].item() == 6.0


def test_d5_a_shape_larger_than_the_allocation(block):
    refused(block(shape=(1_024_000_000,), typestr="|f4"), "last byte")
    ours = usm.zeros(4096, "|u1", queue=block.memory.sycl_queue)
    fields = ours.__sycl_usm_array_interface__
    # Of our own memory every byte is known.
    refused(Producer({**fields, "shape": (4097,)}), "allocation")
    assert usm.asarray(Producer({**fields, "shape": (4096,)}, ours)).size == 4096


@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 40, 1 << 40), (1 << 32, 1 << 32), ((1 << 63) - 1,)], ids=repr)
def test_d6_sizes_that_wrap(block, shape):
    refused(block(shape=shape, typestr="|f4"), "shape", "last byte")


@pytest.mark.parametrize("stride", [1 << 61, (1 << 63) - 1, -(1 << 63), 1 << 40, -(1 << 40)])
def test_d7_strides_that_wrap(block, stride):
    refused(block(shape=(2,), strides=(stride,), typestr="|f4"), "strides", "byte", "data")


def test_d8_memory_below_the_pointer(dpctl, block):
    """dpctl accepts bytes below the pointer; usm refuses them where it knows the allocation."""
    ours = usm.zeros(4096, "|u1", queue=block.memory.sycl_queue)
    fields = ours.__sycl_usm_array_interface__
    refused(Producer({**fields, "shape": (4096,), "strides": (-1,)}), "allocation")
    assert usm.asarray(Producer({**fields, "shape": (4096,), "strides": (-1,), "offset": 4095}, ours)).shape == (4096,)
    # The runtime reports no bounds of dpctl's memory, but the memory below it has another kind.
    alone = dpctl.memory.MemoryUSMDevice(1 << 24)
    refused(Producer({**alone.__sycl_usm_array_interface__, "shape": (1 << 24,), "strides": (-1,)}, alone), "byte")


@pytest.mark.parametrize(
    "change",
    [
        {"typestr": ...},
        {"typestr": None},
        {"shape": "16"},
        {"shape": (4.0,)},
        {"shape": (True,)},
        {"strides": (4.0,), "shape": (4,)},
        {"version": True},
        {"version": 1.0},
        {"data": (1.5, False)},
    ],
    ids=repr,
)
def test_d9_fields_of_the_wrong_type(block, change):
    refused(block(**change), next(iter(change)), "strides")


def test_a_producer_may_die_before_its_array(dpctl):
    memory = dpctl.memory.MemoryUSMShared(64)
    memory.copy_from_host(bytes(range(64)))
    fields = {**memory.__sycl_usm_array_interface__, "syclobj": memory.sycl_queue.sycl_context}
    array = usm.asarray(Producer(fields, memory))
    del memory, fields
    gc.collect()
    assert array.tolist() == list(range(64))
