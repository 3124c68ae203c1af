"""DLPack's rules of capsules, arguments and deleters, with a producer written by hand."""

import ctypes
import gc
import threading

import pytest

import usm
from hostile import DELETER, Legacy, Tensor, Versioned

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = ctypes.create_string_buffer(b"used_dltensor_versioned")


class Producer:
    """Counts how often its deleter runs, and on which thread."""

    def __init__(self, legacy=False, flags=0):
        self.deleted = []
        self.asked = []
        self.data = (ctypes.c_double * 6)(*range(6))
        self.dims = (ctypes.c_int64 * 4)(2, 3, 3, 1)
        self.managed = (Legacy if legacy else Versioned)()
        self.managed.deleter = DELETER(lambda this: self.deleted.append(threading.get_ident()))
        self.managed.tensor = Tensor(ctypes.addressof(self.data), 1, 0, 2, 2, 64, 1, self.at(0), self.at(2), 0)
        if not legacy:
            self.managed.major, self.managed.minor, self.managed.flags = 1, 0, flags
        self.name = ctypes.create_string_buffer(b"dltensor" if legacy else b"dltensor_versioned")
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def at(self, index):
        address = ctypes.addressof(self.dims) + 8 * index
        return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **arguments):
        self.asked.append(arguments)
        return self.capsule


@pytest.mark.parametrize("legacy", [False, True])
def test_a_capsule_is_taken_once_and_deleted_once(legacy):
    producer = Producer(legacy)
    array = usm.from_dlpack(producer)
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and array.readonly == legacy
    assert repr(producer.capsule).split('"')[1].startswith("used_dltensor")
    with pytest.raises(usm.InterfaceError, match="fresh"):
        usm.from_dlpack(producer)
    part = array[1:]
    del array
    gc.collect()
    assert producer.deleted == [], "a view still uses the memory"
    del part
    gc.collect()
    assert len(producer.deleted) == 1
    del producer.capsule
    gc.collect()
    assert len(producer.deleted) == 1


def test_capsules_that_nobody_takes_free_their_tensor(queue):
    array = usm.zeros(1000, queue=queue)
    context = array.context
    capsules = [array.__dlpack__(max_version=(1, 0)), array.__dlpack__()]
    gc.collect()  # what other tests left
    live = context.stats()["sum"]["live"]
    del array
    gc.collect()
    assert context.stats()["sum"]["live"] == live, "both keep the memory"
    capsules.pop()
    gc.collect()
    assert context.stats()["sum"]["live"] == live
    capsules.pop()
    gc.collect()
    assert context.stats()["sum"]["live"] == live - 1


def test_a_consumer_may_delete_on_a_thread_that_python_does_not_know(queue):
    array = usm.zeros(1000, kind="shared", queue=queue)
    gc.collect()  # what other tests left
    context, live = array.context, array.context.stats()["sum"]["live"]
    capsule = array.__dlpack__(max_version=(1, 3))
    address = pointer_of(capsule, b"dltensor_versioned")
    assert set_name(capsule, USED) == 0
    del array, capsule
    gc.collect()
    assert context.stats()["sum"]["live"] == live
    managed = Versioned.from_address(address)
    # A thread made in C: the deleter runs without the interpreter.
    deleter = ctypes.cast(managed.deleter, ctypes.c_void_p).value
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    create = libc.pthread_create
    create.argtypes = [ctypes.POINTER(ctypes.c_ulong), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    assert create(ctypes.byref(thread), None, deleter, address) == 0
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_join(thread, None) == 0
    gc.collect()
    assert context.stats()["sum"]["live"] == live - 1


def test_arrays_of_others_may_die_on_any_thread():
    producer = Producer()
    arrays = [usm.from_dlpack(producer)]
    worker = threading.Thread(target=arrays.clear)
    worker.start()
    worker.join()
    gc.collect()
    assert len(producer.deleted) == 1 and producer.deleted != [threading.get_ident()]


def test_the_producer_gets_the_protocols_arguments():
    producer = Producer()
    usm.from_dlpack(producer)
    # The host has no streams, so none is passed; options that were not set are not passed on.
    assert producer.asked == [{"max_version": (1, 3)}]
    producer = Producer()
    usm.from_dlpack(producer, copy=False, dl_device=(1, 0))
    assert producer.asked == [{"max_version": (1, 3), "copy": False, "dl_device": (1, 0)}]
    # A copy where none may be made is refused, and deleted.
    producer = Producer(flags=2)
    with pytest.raises(usm.AccessError, match="copy"):
        usm.from_dlpack(producer, copy=False)
    assert len(producer.deleted) == 1
    # A producer that does not know an option must not be called without it.
    old = type("Old", (), {"__dlpack__": lambda self, stream=None: producer.capsule})()
    with pytest.raises(TypeError):
        usm.from_dlpack(old, copy=True)
    with pytest.raises(usm.InterfaceError, match="__dlpack__"):
        usm.from_dlpack(5)


def test_flags_are_honoured():
    fixed = usm.from_dlpack(Producer(flags=1))
    assert fixed.readonly
    for write in (lambda: fixed.fill(1), lambda: usm.copy(fixed, fixed), lambda: fixed.__setitem__(0, 1)):
        with pytest.raises(usm.AccessError, match="read-only"):
            write()
    # Read-only memory goes out with the flag, and not at all where there is none.
    capsule = fixed.__dlpack__(max_version=(1, 0))
    assert Versioned.from_address(pointer_of(capsule, b"dltensor_versioned")).flags == 1
    with pytest.raises(BufferError, match="read-only"):
        fixed.__dlpack__()
    copied = fixed.__dlpack__(max_version=(1, 0), copy=True)
    assert Versioned.from_address(pointer_of(copied, b"dltensor_versioned")).flags == 2


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3), (1, 99), (2, 0), (99, 0)])
def test_the_capsule_has_the_requested_version(version):
    array = usm.zeros((2, 3), queue="host")
    name = repr(array.__dlpack__(max_version=version)).split('"')[1]
    assert name == ("dltensor_versioned" if version and version[0] >= 1 else "dltensor")


def test_the_host_accepts_no_stream(queue):
    array = usm.zeros(3, queue=queue)
    here = array.__dlpack_device__()
    for stream in (0, 1, 2, 5, -2, 1 << 70, True):
        # SYCL has no numbers either, but -1 for no order.
        kinds, said = (BufferError, "stream must be None") if here[0] == 1 else ((usm.InterfaceError, TypeError), "stream")
        with pytest.raises(kinds, match=said):
            array.__dlpack__(stream=stream)
        if array.kind != "device":
            with pytest.raises(BufferError, match="stream must be None"):
                array.__dlpack__(stream=stream, dl_device=(1, 0))
    for stream in (1.5, "1", object()):
        with pytest.raises(TypeError, match="stream"):
            array.__dlpack__(stream=stream)
    assert array.__dlpack__(stream=None) is not None
    for device in ((1, 1), (1, -1), (5, 0), (-1, 0), (14, 1000)):
        with pytest.raises(usm.Error):
            array.__dlpack__(dl_device=device)


def test_an_export_waits_for_work_in_flight(queue):
    source, target = usm.zeros(1 << 22, "|u1", queue=queue), usm.zeros(1 << 22, "|u1", queue=queue)
    for value in range(1, 6):
        source.fill(value)
        event = queue.copy(target, source)
        capsule = target.__dlpack__(max_version=(1, 3))
        assert event.done, "the copy is done when the capsule is there"
        del capsule
        event = queue.copy(target, source)
        assert memoryview(target)[-1] == value and event.done
        event = queue.copy(target, source)
        assert target.__array_interface__["version"] == 3 and event.done


def test_a_copy_has_its_own_memory(queue):
    array = usm.zeros(3, "<i4", queue=queue)
    copied = usm.from_dlpack(array, copy=True)
    copied.fill(1)
    assert array.tolist() == [0] * 3 and copied.pointer != array.pointer
    assert usm.from_dlpack(array, copy=False).pointer == array.pointer
    assert usm.asarray(array) is array and usm.asarray(array, copy=True) is not array


@pytest.mark.parametrize(("code", "bits"), [(0, 4), (1, 1), (1, 2), (17, 4), (15, 6)])
def test_sub_byte_elements_are_imported_only_if_padded_to_bytes(code, bits):
    """Packed, eight of four bits are four bytes; an array here would read eight."""
    packed, padded = Producer(), Producer(flags=4)
    for producer in packed, padded:
        producer.managed.tensor.code, producer.managed.tensor.bits = code, bits
    with pytest.raises(usm.InterfaceError, match=f"elements of {bits} bits are packed"):
        usm.from_dlpack(packed)
    assert len(packed.deleted) == 1
    array = usm.from_dlpack(padded)
    assert array.shape == (2, 3) and array.itemsize == 1
    again = array.__dlpack__(max_version=(1, 3))
    exported = Versioned.from_address(pointer_of(again, b"dltensor_versioned"))
    assert exported.flags & 4 and (exported.tensor.code, exported.tensor.bits) == (code, bits)
    with pytest.raises(usm.AccessError, match="without a flag"):
        array.__dlpack__()
