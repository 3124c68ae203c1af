"""DLPack 1.3's table for C, `__dlpack_c_exchange_api__`: by ctypes, and by a real consumer."""

import ctypes
import gc

import pytest

import usm
from conftest import require


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", Version),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]

P = ctypes.POINTER
SET_ERROR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("prev_api", ctypes.c_void_p),
        ("allocate", ctypes.PYFUNCTYPE(ctypes.c_int, P(Tensor), P(P(Managed)), ctypes.c_void_p, SET_ERROR)),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, P(P(Managed)))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, P(Managed), P(ctypes.c_void_p))),
        ("borrow", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, P(Tensor))),
        ("work_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, P(ctypes.c_void_p))),
    ]


@pytest.fixture
def table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = usm.Array.__dlpack_c_exchange_api__
    return Table.from_address(pointer(capsule, b"dlpack_exchange_api"))


USED = ctypes.create_string_buffer(b"used_dltensor_versioned")


def pointer_of(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, b"dltensor_versioned")


def taken(address):
    """The object behind a new reference of C's."""
    taken = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(taken))
    return taken


def values(pointer, count):
    return tuple(pointer[index] for index in range(count))


def test_the_table_is_the_one_of_dlpack_1_3(table):
    assert (table.version.major, table.version.minor, table.prev_api) == (1, 3, None)
    assert ctypes.sizeof(Table) == 56 and ctypes.sizeof(Managed) == 80
    # On the type, and the same for ever: consumers keep it for each type.
    assert usm.Array.__dlpack_c_exchange_api__ is usm.Array.__dlpack_c_exchange_api__
    assert usm.zeros(1, queue="host").__dlpack_c_exchange_api__ is usm.Array.__dlpack_c_exchange_api__
    # The name before 1.3, which some consumers still look for.
    assert usm.Array.__c_dlpack_exchange_api__ is usm.Array.__dlpack_c_exchange_api__


def test_an_array_becomes_an_owned_tensor_and_an_array_again(table, queue, kind):
    array = usm.zeros((2, 3, 4), "<i2", kind=kind, queue=queue)[:, ::-1, 1:]
    gc.collect()  # what other tests left
    live = array.context.stats()["sum"]["live"]
    managed = P(Managed)()
    if (array.__dlpack_device__()[0], kind) == (1, "device"):
        # Memory that the host does not reach, on a device that DLPack takes for the host.
        for call, target in ((table.from_object, managed), (table.borrow, Tensor())):
            with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
                call(array, ctypes.byref(target))
        return
    assert table.from_object(array, ctypes.byref(managed)) == 0
    tensor = managed.contents.tensor
    assert (managed.contents.version.major, managed.contents.flags) == (1, 0)
    assert (tensor.device_type, tensor.device_id) == array.__dlpack_device__()
    assert tensor.data + tensor.byte_offset == array.pointer
    assert values(tensor.shape, tensor.ndim) == (2, 3, 3)
    assert values(tensor.strides, tensor.ndim) == tuple(stride // 2 for stride in array.strides)
    assert (tensor.code, tensor.bits, tensor.lanes) == (0, 16, 1)
    pointer, context = array.pointer, array.context
    del array
    gc.collect()
    assert context.stats()["sum"]["live"] == live, "the tensor keeps the memory"
    made = ctypes.c_void_p()
    assert table.to_object(managed, ctypes.byref(made)) == 0
    again = taken(made.value)
    assert type(again) is usm.Array and (again.pointer, again.shape) == (pointer, (2, 3, 3))
    again.fill(7)
    assert again.tolist() == [[[7] * 3] * 3] * 2
    del again
    gc.collect()
    assert context.stats()["sum"]["live"] == live - 1


def test_a_tensor_is_borrowed_without_a_new_reference(table):
    array = usm.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], queue="host").T
    tensor, again = Tensor(), Tensor()
    for target in (tensor, again):
        assert table.borrow(array, ctypes.byref(target)) == 0
    assert (tensor.data, values(tensor.shape, 2), values(tensor.strides, 2)) == (array.pointer, (3, 2), (1, 3))
    assert ctypes.addressof(tensor.shape.contents) == ctypes.addressof(again.shape.contents)
    assert ctypes.cast(tensor.data, P(ctypes.c_double))[4] == 5.0
    point = usm.asarray([3.0], queue="host")[0]
    assert table.borrow(point, ctypes.byref(tensor)) == 0 and tensor.ndim == 0


def test_what_dlpack_cannot_express_is_an_exception(table):
    managed, tensor = P(Managed)(), Tensor()
    wrong = usm.zeros(2, ">f8", queue="host")
    for call, target in ((table.from_object, managed), (table.borrow, tensor)):
        with pytest.raises(BufferError, match="f8"):
            call(wrong, ctypes.byref(target))
        with pytest.raises(TypeError, match="usm.Array"):
            call([1, 2], ctypes.byref(target))


def readonly_arrays():
    """Arrays that may not be written, by every way there is to one."""
    numpy = require("numpy", "read-only arrays")
    fixed = numpy.arange(6.0).reshape(2, 3)
    fixed.flags.writeable = False

    class Dictionary:
        __array_interface__ = {"data": (fixed.ctypes.data, True), "shape": (2, 3), "typestr": "<f8", "version": 3}
        kept = fixed

    class Old:
        """DLPack without a version, which has no flag."""

        kept = usm.zeros((2, 3), queue="host")

        def __dlpack__(self, **_):
            return self.kept.__dlpack__()

    yield "bytes", usm.asarray(bytes(48))
    yield "buffer", usm.asarray(memoryview(bytearray(48)).toreadonly())
    yield "numpy", usm.asarray(fixed)
    yield "dictionary", usm.asarray(Dictionary())
    yield "dlpack", usm.from_dlpack(fixed)
    yield "old dlpack", usm.from_dlpack(Old())
    yield "empty", usm.asarray(fixed[:0])


def test_read_only_memory_is_refused_and_goes_by_the_flag_instead(table):
    """Consumers of the table look at no flag; those of `__dlpack__` do."""
    for name, array in readonly_arrays():
        before = array.tobytes()
        for view in (array, array[:1], array[None], array.T, array[...]):
            assert view.readonly, name
            for call, target in ((table.from_object, P(Managed)()), (table.borrow, Tensor())):
                with pytest.raises(BufferError, match="read-only"):
                    call(view, ctypes.byref(target))
                assert not bytes(target).strip(b"\0"), "nothing is handed out"
            capsule = view.__dlpack__(max_version=(1, 3))
            assert Managed.from_address(pointer_of(capsule)).flags == 1
            assert usm.from_dlpack(view).readonly
            copy = P(Managed)()
            assert table.from_object(view.copy(), ctypes.byref(copy)) == 0, "a copy may be written"
            copy.contents.deleter(copy)
        assert array.tobytes() == before


def test_a_tensor_with_the_flag_comes_back_read_only(table):
    fixed, made = usm.asarray(b"fixed"), ctypes.c_void_p()
    capsule = fixed.__dlpack__(max_version=(1, 3))
    managed = ctypes.cast(pointer_of(capsule), P(Managed))
    assert ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), USED) == 0
    assert table.to_object(managed, ctypes.byref(made)) == 0
    again = taken(made.value)
    assert again.readonly and bytes(again) == b"fixed"
    with pytest.raises(BufferError, match="read-only"):
        table.from_object(again, ctypes.byref(managed))


def hostile():
    """Changes that make a good tensor one that must be refused."""
    return [
        ("version.major", 2),
        ("tensor.ndim", -1),
        ("tensor.ndim", 65),
        ("tensor.shape", None),
        ("tensor.strides", None),
        ("tensor.data", None),
        ("tensor.device_type", 0),
        ("tensor.device_type", 9),
        ("tensor.code", 99),
        ("tensor.bits", 0),
        ("tensor.lanes", 0),
        ("tensor.lanes", 4),
        ("tensor.byte_offset", (1 << 64) - 1),
    ]


@pytest.mark.parametrize("change", hostile(), ids=repr)
def test_a_tensor_that_is_refused_is_deleted_once(table, change):
    data = (ctypes.c_double * 6)()
    shape, strides = (ctypes.c_int64 * 2)(2, 3), (ctypes.c_int64 * 2)(3, 1)
    deleted = []
    managed = Managed()
    managed.version.major, managed.version.minor = 1, 3
    managed.deleter = DELETER(lambda this: deleted.append(ctypes.addressof(this.contents)))
    managed.tensor = Tensor(
        ctypes.addressof(data), 1, 0, 2, 2, 64, 1, ctypes.cast(shape, P(ctypes.c_int64)),
        ctypes.cast(strides, P(ctypes.c_int64)), 0,
    )  # fmt: skip
    place, value = change
    *path, name = place.split(".")
    target = managed
    for part in path:
        target = getattr(target, part)
    if value is None and name != "data":
        value = ctypes.POINTER(ctypes.c_int64)()
    setattr(target, name, value)
    made = ctypes.c_void_p()
    with pytest.raises(usm.Error):
        table.to_object(ctypes.byref(managed), ctypes.byref(made))
    assert deleted == [ctypes.addressof(managed)] and not made.value


def test_streams_are_named_for_devices_that_are_there(table):
    stream = ctypes.c_void_p(5)
    assert table.work_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None
    for device in (2, 4, 77):
        with pytest.raises((usm.DeviceError, usm.InterfaceError)):
            table.work_stream(device, 99, ctypes.byref(stream))


def test_an_array_is_allocated_like_a_prototype(table):
    shape = (ctypes.c_int64 * 3)(2, 0, 4)
    errors = []
    set_error = SET_ERROR(lambda context, kind, message: errors.append((context, kind, message)))
    prototype = Tensor(None, 1, 0, 3, 0, 32, 1, ctypes.cast(shape, P(ctypes.c_int64)), None, 0)
    for extent in (0, 3):
        shape[1] = extent
        managed = P(Managed)()
        assert table.allocate(ctypes.byref(prototype), ctypes.byref(managed), 42, set_error) == 0
        made = ctypes.c_void_p()
        assert table.to_object(managed, ctypes.byref(made)) == 0
        array = taken(made.value)
        assert (array.shape, array.dtype, array.kind, array.readonly) == ((2, extent, 4), "<i4", "host", False)
        array.fill(3)
        assert array.size == 0 or array.tolist()[1][2] == [3] * 4
    assert not errors
    shape[1] = 1 << 62
    assert table.allocate(ctypes.byref(prototype), ctypes.byref(managed), 42, set_error) == -1
    shape[1] = 1
    prototype.device_type = 9
    assert table.allocate(ctypes.byref(prototype), ctypes.byref(managed), 42, set_error) == -1
    assert [(context, kind) for context, kind, _ in errors] == [(42, b"BufferError")] * 2
    assert b"9" in errors[1][2]


def test_tvm_ffi_uses_the_table_both_ways():
    """tvm-ffi reads arrays by the table and returns arrays of the same type, as torch does."""
    tvm_ffi = require("tvm_ffi", "a consumer of the exchange table")
    array = usm.zeros((3, 4), "<f4", queue="host")
    echo = tvm_ffi.get_global_func("testing.echo")
    back = echo(array)
    # Made by the table's `to_object`: no code of the consumer's knows the name of the type.
    assert type(back) is usm.Array and back is not array
    assert (back.pointer, back.shape, back.dtype) == (array.pointer, (3, 4), "<f4")
    back[1] = 5.0
    assert array.tolist()[1] == [5.0] * 4
    gc.collect()  # what other tests left
    context, live = array.context, array.context.stats()["sum"]["live"]
    del array
    gc.collect()
    assert back.tolist()[1] == [5.0] * 4 and context.stats()["sum"]["live"] == live
    del back
    gc.collect()
    assert context.stats()["sum"]["live"] == live - 1


def test_tvm_ffi_does_not_write_read_only_memory():
    """It asks `__dlpack__` after the table's refusal, and without a version."""
    tvm_ffi = require("tvm_ffi", "a consumer of the exchange table")
    for name, array in readonly_arrays():
        for take in (tvm_ffi.from_dlpack, tvm_ffi.get_global_func("testing.echo")):
            with pytest.raises(BufferError, match="read-only"):
                take(array)
            assert take(array.copy()).shape == array.shape, name
