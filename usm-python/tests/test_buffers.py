"""The buffer protocol (PEP 3118) in both directions, structures included.

Also dictionaries without `data`, whose memory is the producer's buffer.
"""

import array as stdlib_array
import ctypes
import gc
import hashlib

import pytest

import usm
from conftest import require

STRUCTURES = [
    [("a", "<i4"), ("b", "<f8", (2, 2))],
    [("a", "u1"), ("n", [("x", ">f4"), ("y", "<i2")])],
    [("a", "u1"), ("n", [("x", "<f4"), ("y", "<i2", (3,))], (2,)), ("s", "S3"), ("u", "U2")],
    [("flag", "?"), ("z", "<c16"), ("h", "<f2"), ("big", ">u8")],
]


@pytest.mark.parametrize("fields", STRUCTURES, ids=repr)
@pytest.mark.parametrize("align", [False, True])
def test_structures_round_trip_through_buffers(np, fields, align):
    dtype = np.dtype(fields, align=align)
    data = np.zeros((2, 3), dtype)
    data.view("u1")[:] = np.arange(data.nbytes).reshape(2, -1) % 2
    ours = usm.asarray(data)
    view = memoryview(ours)
    assert (view.itemsize, view.shape, view.strides) == (dtype.itemsize, (2, 3), data.strides)
    assert view.format.startswith("T{")
    # NumPy reads our format as the same type, and we read NumPy's.
    back = np.asarray(view)
    assert back.dtype == dtype and back.ctypes.data == data.ctypes.data and back.tobytes() == data.tobytes()
    back[1, 2] = np.zeros((), dtype)
    assert data[1, 2] == back[1, 2]
    try:
        again = usm.asarray(memoryview(data))
    except usm.InterfaceError as error:
        # NumPy's format leaves the padding of a repeated structure out: refused rather than
        # guessed.
        assert align and "cannot be told" in str(error)
        return
    assert again.pointer == data.ctypes.data and np.asarray(again).dtype.names == dtype.names
    leaves(np.asarray(again), data)


def leaves(ours, theirs):
    """Members at every level have the same values, whatever padding is called."""
    if theirs.dtype.names is None:
        assert ours.tobytes() == theirs.tobytes()
        return
    for name in theirs.dtype.names:
        leaves(ours[name], theirs[name])


def test_an_ambiguous_format_is_refused(np):
    inner = [("x", "<f4"), ("y", "<i2", (3,))]
    padded = np.zeros(2, np.dtype([("n", inner, (2,)), ("k", "<i2")], align=True))
    with pytest.raises(usm.InterfaceError, match="cannot be told"):
        usm.asarray(memoryview(padded))
    # By its dictionary the array is read exactly, and our output is complete.
    ours = usm.asarray(padded)
    assert np.asarray(memoryview(ours)).dtype == padded.dtype
    assert np.asarray(usm.asarray(memoryview(ours))).dtype == padded.dtype


@pytest.mark.parametrize("dtype", ["?", "i1", "<i2", ">i2", "i8", ">u8", "f2", ">f4", "f8", "g", "c8", "c16", "S5", "U3"])
def test_formats_are_the_ones_that_numpy_reads(np, dtype):
    data = np.zeros(3, dtype)
    ours = usm.asarray(data)
    assert np.asarray(memoryview(ours)).dtype == data.dtype
    assert usm.asarray(memoryview(data)).dtype == data.dtype.str
    if dtype in ("i1", "<i2", "i8", "f8", "?"):
        assert memoryview(ours).tolist() == data.tolist(), "formats of numbers are ones that memoryview reads"


def test_types_without_a_format_are_exported_as_bytes_only(np):
    for dtype in ("M8[ns]", "V7"):
        ours = usm.asarray(np.zeros(3, dtype))
        with pytest.raises(BufferError, match="format"):
            memoryview(ours)
        # Without a format anything is bytes.
        assert hashlib.sha256(ours).digest() == hashlib.sha256(ours.tobytes()).digest()
        assert np.asarray(ours).dtype == np.dtype(dtype), "by the dictionary"


def test_a_view_of_ctypes_keeps_its_members(np):
    class Inner(ctypes.Structure):
        _fields_ = [("x", ctypes.c_short), ("y", ctypes.c_double)]

    class Outer(ctypes.Structure):
        _fields_ = [("a", ctypes.c_byte), ("inner", Inner), ("tail", ctypes.c_int * 3)]

    data = (Outer * 2)()
    ours = usm.asarray(data)
    assert ours.itemsize == ctypes.sizeof(Outer) and ours.pointer == ctypes.addressof(data)
    back = np.asarray(memoryview(ours))
    assert [back.dtype.fields[name][1] for name in ("a", "inner", "tail")] == [
        getattr(Outer, name).offset for name in ("a", "inner", "tail")
    ]
    back["inner"]["y"][1] = 2.5
    assert data[1].inner.y == 2.5


def test_a_buffer_honours_the_flags_of_its_request():
    ours = usm.asarray([[1, 2, 3], [4, 5, 6]], dtype="<i4", queue="host")
    assert bytearray(ours) == ours.tobytes()
    stepped = ours[:, ::2]
    with pytest.raises((BufferError, TypeError), match="contiguous"):
        ctypes.c_char.from_buffer(stepped)
    assert memoryview(stepped).tolist() == [[1, 3], [4, 6]]
    fixed = usm.asarray(b"abcd")
    assert memoryview(fixed).readonly
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(fixed)


class Host:
    """Describes memory that it holds itself, without an address."""

    def __init__(self, buffer, name="__array_interface__", **fields):
        self.buffer = buffer
        setattr(self, name, {"shape": (4,), "typestr": "|u1", "version": 3, **fields})


def test_data_may_be_an_object_with_a_buffer():
    buffer = bytearray(range(16))
    ours = usm.asarray(Host(None, data=buffer, typestr="<u2", offset=4))
    assert ours.tolist() == stdlib_array.array("H", bytes(range(4, 12))).tolist() and not ours.readonly
    ours[0] = 0
    assert buffer[4:6] == b"\0\0"
    with pytest.raises(BufferError):
        buffer.append(1)
    del ours
    gc.collect()
    buffer.append(1)
    assert usm.asarray(Host(None, data=b"fixed")).readonly
    reversed_ = usm.asarray(Host(None, data=buffer, strides=(-1,), offset=3))
    assert reversed_.tolist() == [3, 2, 1, 0]
    for lie in ({"shape": (18,)}, {"offset": 14}, {"offset": -1}, {"strides": (-1,)}, {"strides": (1 << 62,)}, {"offset": (1 << 63) - 1}):
        with pytest.raises(usm.InterfaceError):
            usm.asarray(Host(None, data=buffer, **lie))
    np = require("numpy", "a buffer of its own")
    with pytest.raises(usm.InterfaceError, match="contiguous"):
        usm.asarray(Host(None, data=np.zeros(16, "u1")[::2]))


def test_without_data_the_producers_own_buffer_is_the_memory():
    class Own(bytearray):
        __array_interface__ = {"shape": (2, 2), "typestr": ">u2", "version": 3, "data": None}

    own = Own(b"\0\1\0\2\0\3\0\4")
    ours = usm.asarray(own)
    assert (ours.tolist(), ours.base is own) == ([[1, 2], [3, 4]], True)
    with pytest.raises(usm.InterfaceError, match="no buffer"):
        usm.asarray(Host(None))


@pytest.fixture
def sycl(dpctl):
    return usm.Queue(next(device for device in usm.devices() if device.backend == "sycl"))


def suai(base, syclobj, **fields):
    described = {"shape": (4,), "typestr": "|i4", "version": 1, "strides": None, "syclobj": syclobj, **fields}
    return type("Described", (base,), {"__sycl_usm_array_interface__": described})


@pytest.mark.parametrize("variant", ["queue", "context", "filter", "capsule"])
def test_a_sycl_dictionary_without_data_on_plain_host_memory(dpctl, sycl, variant):
    queue = dpctl.SyclQueue("cpu")
    syclobj = {"queue": queue, "context": queue.sycl_context, "filter": "cpu", "capsule": queue.sycl_context._get_capsule()}
    own = suai(bytearray, syclobj[variant])(16)
    ours = usm.asarray(own)
    # The context does not know the pointer: host memory, for the host.
    assert (ours.kind, ours.device.backend, ours.base is own) == ("host", "host", True)
    ours.fill(7)
    assert own == b"\7\0\0\0" * 4


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_a_sycl_dictionary_without_data_on_usm_keeps_the_kind(dpctl, sycl, kind):
    theirs = {"host": dpctl.memory.MemoryUSMHost, "shared": dpctl.memory.MemoryUSMShared}[kind]
    own = suai(theirs, dpctl.SyclQueue("cpu"))(64)
    ours = usm.asarray(own)
    assert (ours.kind, ours.pointer, ours.device.backend) == (kind, own._pointer, "sycl")
    ours.fill(5)
    assert own.tobytes()[:16] == b"\5\0\0\0" * 4
    # Offsets and strides are in elements here too, and stay inside the buffer.
    tail = suai(theirs, dpctl.SyclQueue("cpu"), offset=15, strides=(-1,))(64)
    assert usm.asarray(tail).pointer == tail._pointer + 60
    beyond = suai(theirs, dpctl.SyclQueue("cpu"), offset=13)(64)
    with pytest.raises(usm.InterfaceError, match="allocation"):
        usm.asarray(beyond)


def test_a_sycl_dictionary_without_data_and_without_a_buffer(dpctl, sycl):
    own = suai(dpctl.memory.MemoryUSMDevice, dpctl.SyclQueue("cpu"))(64)
    with pytest.raises(usm.InterfaceError, match="no buffer"):
        usm.asarray(own)


def test_a_device_kind_without_a_copy_is_refused(dpctl, sycl):
    own = suai(bytearray, "cpu")(16)
    with pytest.raises(usm.AccessError, match="copy=False"):
        usm.asarray(own, kind="device", copy=False)
    shared = suai(dpctl.memory.MemoryUSMShared, dpctl.SyclQueue("cpu"))(64)
    with pytest.raises(usm.AccessError, match="another kind"):
        usm.asarray(shared, kind="device", copy=False)
    copied = usm.asarray(own, kind="device", queue=sycl)
    assert copied.kind == "device" and copied.tolist() == [0] * 4
    assert usm.asarray(own, kind="host", copy=False).base is own


def test_structures_of_sycl_have_one_description(dpctl, sycl):
    theirs = dpctl.memory.MemoryUSMShared(64)

    def described(**fields):
        base = {**theirs.__sycl_usm_array_interface__, "shape": (4,), "typestr": "|V8"}
        return type("P", (), {"__sycl_usm_array_interface__": {**base, **fields}, "owner": theirs})()

    members = [("a", "<i4"), ("b", "<f4")]
    for fields in ({"typedescr": members}, {"descr": members}, {"typedescr": members, "descr": members}):
        ours = usm.asarray(described(**fields))
        assert ours.__sycl_usm_array_interface__["typedescr"] == members
        assert memoryview(ours).format == "T{i:a:f:b:}"
    with pytest.raises(usm.InterfaceError, match="typedescr"):
        usm.asarray(described(typedescr=members, descr=[("x", "<f8")]))


@pytest.mark.parametrize("members", ["O", [("a", "O"), ("b", "i8")], [("O", "i8"), ("n", [("x", "O")])]], ids=repr)
def test_python_objects_are_never_imported_as_bytes(np, members):
    """Imported as bytes, pointers to Python objects could be read and overwritten."""
    data = np.zeros(4, members)
    memory = usm.memory.MemoryUSMHost(data.nbytes, queue="host")
    byte = usm.DType("|u1")

    class Substitute:
        def __init__(self, buffer):
            self.__array_interface__ = {"data": buffer, "shape": (data.nbytes,), "typestr": "|u1", "version": 3}

    takers = (
        usm.asarray,
        usm.nrt.MemInfo,
        memory.copy_to_host,
        memory.copy_from_host,
        lambda it: usm.asarray(Substitute(it)),
        lambda it: usm.validate(Substitute(it)),
        lambda it: usm.copy(Substitute(it), bytes(data.nbytes)),
        lambda it: usm._usm._rebuild_array(it, (data.nbytes,), byte, "host", "host", False),
    )
    for number, take in enumerate(takers):
        for given in (data, memoryview(data)):
            with pytest.raises(usm.InterfaceError, match="object pointers"):
                raise AssertionError((number, take(given)))
    named = np.zeros(4, [("O", "i4")])
    memory.copy_from_host(named)
    memory.copy_to_host(np.zeros(data.nbytes // 4 + 1, [("O", "i4")]))
