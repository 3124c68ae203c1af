"""Arrow's C data interface against pyarrow: in and out, chunks, missing values, devices."""

import ctypes
import gc
import subprocess
import sys
import textwrap

import pytest
from conftest import require

import usm

np = require("numpy", "the oracle of elements")
pa = require("pyarrow", "producer and consumer of columns")


class Only:
    """An object with one protocol of a column."""

    def __init__(self, column, protocol):
        setattr(self, "column", column)
        self.protocol = protocol

    def __getattr__(self, name):
        if name != self.__dict__.get("protocol"):
            raise AttributeError(name)
        return getattr(self.__dict__["column"], name)


def host(column):
    return Only(column, "__arrow_c_array__")


PROTOCOLS = ("__arrow_c_array__", "__arrow_c_device_array__")
NUMBERS = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)] + ["f2", "f4", "f8"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_columns_share_their_memory_and_are_read_only(protocol):
    for name in NUMBERS:
        column = pa.array(np.arange(7).astype(name))
        for offset, length in ((0, 7), (2, 5), (6, 1), (7, 0)):
            array = usm.asarray(Only(column.slice(offset, length), protocol))
            assert (array.dtype.str[1:], array.shape, array.readonly) == (name, (length,), True)
            assert array.tolist() == list(range(7))[offset : offset + length]
            if length:
                assert array.pointer == column.buffers()[1].address + offset * array.itemsize


def test_times_and_bytes_have_their_types():
    for unit in ("s", "ms", "us", "ns"):
        for made, name in ((pa.timestamp(unit), "M8"), (pa.timestamp(unit, "Europe/Berlin"), "M8"), (pa.duration(unit), "m8")):
            array = usm.asarray(host(pa.array([1, 2], made)))
            assert array.dtype.str == f"<{name}[{unit}]"
            assert np.asarray(array).view("i8").tolist() == [1, 2]
    raw = usm.asarray(host(pa.array([b"abc", b"def"], pa.binary(3))))
    assert (raw.dtype.str, raw.tobytes()) == ("|V3", b"abcdef")


def test_lists_of_one_length_are_dimensions():
    deep = pa.list_(pa.list_(pa.int16(), 2), 3)
    column = pa.array(np.arange(24).reshape(4, 3, 2).tolist(), deep)
    for offset in range(4):
        array = usm.asarray(host(column.slice(offset)))
        assert array.shape == (4 - offset, 3, 2)
        assert array.tolist() == column.slice(offset).to_pylist()
    # A child with an offset of its own.
    inside = pa.FixedSizeListArray.from_arrays(pa.array(range(9), pa.int32()).slice(3), 2)
    assert usm.asarray(host(inside.slice(1))).tolist() == [[5, 6], [7, 8]]


def test_missing_values_are_counted_where_they_are_used():
    column = pa.array([1, None, 3, 4, None, 6])
    with pytest.raises(usm.InterfaceError, match=r"null_count: 2 entries are missing \(null\)"):
        usm.asarray(host(column))
    assert usm.asarray(host(column.slice(2, 2))).tolist() == [3, 4]
    with pytest.raises(usm.InterfaceError, match="null_count: 1 entry is missing"):
        usm.asarray(host(column.slice(2, 3)))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array(["x"]), "columns of texts"),
        (pa.array([b"x"]), "columns of bytes of any length"),
        (pa.array([True]), "booleans, which are packed bits"),
        (pa.array([[1]]), "lists of any length"),
        (pa.array([{"a": 1}]), "structures"),
        (pa.array([1.0]).dictionary_encode(), "dictionary-encoded"),
        (pa.array([None]), "columns of nulls"),
        (pa.array([1], pa.decimal128(5, 2)), "decimals"),
        (pa.array([1], pa.date32()), "days of 4 bytes"),
        (pa.array([1], pa.time64("us")), "times of day"),
    ],
    ids=str,
)
def test_columns_that_are_no_arrays_are_refused_by_name(column, words):
    with pytest.raises(usm.InterfaceError, match=words):
        usm.asarray(host(column))


def test_a_stream_of_one_chunk_shares_and_others_are_refused_or_copied():
    one = pa.chunked_array([[], [1, 2], []], pa.int64())
    stream = Only(one, "__arrow_c_stream__")
    assert usm.asarray(stream).pointer == one.chunk(1).buffers()[1].address
    two = pa.chunked_array([[1, 2], [3]])
    with pytest.raises(usm.InterfaceError, match=r"several chunks.*combine_chunks\(\)"):
        usm.asarray(Only(two, "__arrow_c_stream__"))
    # pyarrow's own object has __array__ too, which copies.
    assert usm.asarray(two).tolist() == [1, 2, 3]
    with pytest.raises(usm.InterfaceError, match="no chunk"):
        usm.asarray(Only(pa.chunked_array([], pa.int8()), "__arrow_c_stream__"))


def test_columns_with_missing_values_are_refused_by_every_way():
    """pyarrow's own objects have DLPack and `__array__` too, which would make NaN of a null."""
    for column, count in (
        (pa.array([1, None, 3]), "1 entry is"),
        (pa.chunked_array([[1, None, None]]), "2 entries are"),
        (pa.chunked_array([[1, None], [2], [None]]), "2 entries are"),
    ):
        with pytest.raises(usm.InterfaceError, match=f"null_count: {count} missing"):
            usm.asarray(column)
    # No value of those that are used is missing.
    assert usm.asarray(pa.array([None, 1, 3])[1:]).tolist() == [1, 3]


def test_missing_values_below_the_column_are_refused_too():
    """`__array__` makes NaN, NaT or a neighbour's value of them, and DLPack ignores them."""
    encoded = pa.array([10, 20, None, 30]).dictionary_encode()
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([1.0, None]))
    lists = pa.FixedSizeListArray.from_arrays(pa.array([1, None, 3, 4]), 2)
    for column in (
        encoded,
        pa.chunked_array([encoded, encoded]),
        values,
        pa.chunked_array([values, values]),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1.0, None])),
        pa.array([1, None], pa.date32()),
        lists,
        pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [2]), lists),
    ):
        with pytest.raises(usm.InterfaceError):
            usm.asarray(column)
    # Without missing ones they are copied, or shared; a slice is not counted before somebody asks.
    part = pa.array([10, None, 20, 20])[2:].dictionary_encode()
    assert usm.asarray(part).tolist() == usm.asarray(pa.chunked_array([part])).tolist() == [20, 20]
    whole = pa.array([10, 20, 20]).dictionary_encode()
    assert usm.asarray(whole).tolist() == [10, 20, 20]
    full = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4]), 2)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [2]), full)
    assert usm.asarray(tensor).tolist() == [[1, 2], [3, 4]]


def test_what_pyarrows_dlpack_refuses_goes_as_a_column():
    times = pa.array([1, 2], pa.timestamp("us"))
    array = usm.asarray(times)
    assert (array.dtype.str, array.pointer) == ("<M8[us]", times.buffers()[1].address)
    pairs = pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2))
    assert usm.asarray(pairs).tolist() == [[1, 2], [3, 4]] and usm.asarray(pairs).readonly
    # Arrow packs the bits of truth values; pyarrow's `__array__` unpacks them.
    assert usm.asarray(pa.array([True, False])).tolist() == [True, False]
    for column, words in ((pa.array(["x"]), "columns of texts"), (pa.array([[1], [2, 3]]), "lists of any length")):
        with pytest.raises(usm.InterfaceError, match=words):
            usm.asarray(column)


def test_a_count_of_missing_values_without_a_bitmap_is_refused():
    made = pa.array([1, 2, 3])
    schema, array = made.__arrow_c_array__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    fields = (ctypes.c_int64 * 2).from_address(get(array, b"arrow_array"))
    assert fields[0] == 3 and fields[1] == 0
    fields[1] = 2

    class Producer:
        def __arrow_c_array__(self, requested_schema=None):
            return schema, array

    with pytest.raises(usm.InterfaceError, match="null_count: 2 entries are missing"):
        usm.asarray(Producer())


def test_a_stream_that_fails_says_why():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise ValueError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(usm.InterfaceError, match="the disk is gone"):
        usm.asarray(Only(reader, "__arrow_c_stream__"))


def test_arrays_are_columns_of_pyarrow():
    for name in NUMBERS + ["M8[s]", "m8[ns]", "V5"]:
        array = usm.asarray(np.arange(6, dtype="i8").astype("V5" if name == "V5" else name), copy=True, device="host")
        column = pa.array(array)
        assert len(column) == 6 and column.null_count == 0
        assert column.buffers()[1].address == array.pointer
        assert usm.asarray(host(column)).dtype == array.dtype
    cube = usm.asarray(np.arange(24.0).reshape(2, 3, 4), copy=True, device="host")
    column = pa.array(cube)
    assert column.type == pa.list_(pa.list_(pa.float64(), 4), 3)
    assert column.to_pylist() == cube.tolist()
    cube[0, 0, 0] = 9
    assert column[0][0][0].as_py() == 9
    assert usm.asarray(host(column)).pointer == cube.pointer
    assert pa.array(cube[1]).to_pylist() == cube[1].tolist()
    assert pa.array(usm.zeros((0, 3), device="host")).to_pylist() == []


def test_a_column_keeps_the_memory_and_lets_it_go():
    array = usm.full(1000, 3, "u2", device="host")
    column = pa.array(array)
    del array
    gc.collect()
    assert column[999].as_py() == 3
    held = usm.stats()["host:host:0"]["sum"]["current"]
    del column
    gc.collect()
    assert usm.stats()["host:host:0"]["sum"]["current"] == held - 2000
    # A capsule that nobody takes frees what it has.
    for _ in range(3):
        usm.zeros(8, device="host").__arrow_c_array__()
        usm.zeros(8, device="host").__arrow_c_device_array__()
        usm.zeros(8, device="host").__arrow_c_schema__()


def test_arrays_that_are_no_columns_are_refused_with_a_remedy():
    grid = usm.zeros((3, 4), device="host")
    for array, words in (
        (grid.T, r"not in C order; array\.copy\(\) is"),
        (grid[:, ::2], r"not in C order; array\.copy\(\) is"),
        (usm.zeros((), device="host"), r"no dimension; array\.reshape\(1\) has one"),
        (usm.zeros(3, "c8", device="host"), "elements of type <c8"),
        (usm.zeros(3, ">f4", device="host"), "elements of type >f4"),
        (usm.zeros(3, "?", device="host"), r"elements of type \|b1"),
    ):
        for method in (array.__arrow_c_array__, array.__arrow_c_schema__, array.__arrow_c_device_array__):
            with pytest.raises(usm.AccessError, match=f"Arrow cannot say this array: .*{words}"):
                method()
    with pytest.raises(NotImplementedError, match="stream"):
        grid.__arrow_c_device_array__(stream=3)
    assert grid.__arrow_c_device_array__(None, later=None) is not None
    device = usm.zeros(3, kind="device", device="host")
    with pytest.raises(usm.AccessError, match=r"only by a copy: usm\.to_numpy\(array\)"):
        device.__arrow_c_array__()


def test_answers_that_are_no_capsules_are_refused():
    class Answers:
        def __init__(self, answer):
            self.answer = answer

        def __arrow_c_array__(self):
            return self.answer

    schema, array = pa.array([1]).__arrow_c_array__()
    for answer, words in (
        (None, "no pair of capsules"),
        ((1, 2, 3), "no pair of capsules"),
        ((1, 2), "no capsule of the name arrow_schema"),
        ((array, schema), "no capsule of the name arrow_schema"),
    ):
        with pytest.raises(usm.InterfaceError, match=words):
            usm.asarray(Answers(answer))
    pair = Answers((schema, array))
    assert usm.asarray(pair).tolist() == [1]
    with pytest.raises(usm.InterfaceError, match="release: the structure was released"):
        usm.asarray(pair)

    class Raises:
        def __arrow_c_array__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        usm.asarray(Raises())


class DeviceArray(ctypes.Structure):
    """`struct ArrowDeviceArray`, with the array as plain words."""

    _fields_ = [
        ("array", ctypes.c_int64 * 10),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


def device_structure(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DeviceArray.from_address(get(capsule, b"arrow_device_array"))


def test_device_structures_say_where_they_are():
    schema, array = usm.zeros(3, device="host").__arrow_c_device_array__()
    fields = device_structure(array)
    assert (fields.device_type, fields.device_id, fields.sync_event, list(fields.reserved)) == (1, -1, None, [0, 0, 0])
    # An event of the host is of no known sort.
    place = ctypes.c_int64(1)
    fields.sync_event = ctypes.addressof(place)

    class Pair:
        def __arrow_c_device_array__(self):
            return schema, array

    with pytest.raises(usm.InterfaceError, match="sync_event: an event of a runtime that is not supported"):
        usm.asarray(Pair())


def test_columns_of_cuda_keep_their_device_and_wait_for_events(cuda_driver):
    import os

    program = textwrap.dedent(
        """
        import ctypes, sys
        sys.path.insert(0, TESTS)
        import usm
        from test_arrow import Only, device_structure
        import cuda_driver

        driver = ctypes.CDLL(__import__("os").environ["USM_CUDA_LIBRARY"])
        made = usm.full(5, 7, "i4", kind="device", device="cuda:gpu:1")
        back = usm.asarray(Only(made, "__arrow_c_device_array__"))
        assert (back.pointer, back.kind, back.readonly) == (made.pointer, "device", True)
        assert str(back.device) == str(made.device) and usm.to_numpy(back).tolist() == [7] * 5
        context, event = ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        assert driver.cuEventCreate(ctypes.byref(event), 2) == 0

        class WithEvent:
            def __arrow_c_device_array__(self):
                schema, array = made.__arrow_c_device_array__()
                fields = device_structure(array)
                assert (fields.device_type, fields.device_id, fields.sync_event) == (2, 1, None)
                fields.sync_event = ctypes.addressof(event)
                return schema, array

        assert usm.to_numpy(usm.asarray(WithEvent())).tolist() == [7] * 5
        # The event is asked: its failure is the import's.
        cuda_driver.Driver().fail(True, 46, "cuEventSynchronize")
        try:
            usm.asarray(WithEvent())
        except usm.DeviceError as error:
            assert "code 46 of its event" in str(error)
        else:
            raise AssertionError("accepted")
        try:
            made.__arrow_c_array__()
        except usm.AccessError as error:
            assert "__arrow_c_device_array__" in str(error)
        else:
            raise AssertionError("accepted")
        """
    ).replace("TESTS", repr(os.path.dirname(__file__)))
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **cuda_driver}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_sycl_memory_goes_as_a_device_column():
    device = next((device for device in usm.devices() if device.backend == "sycl"), None)
    if device is None:
        from conftest import lacking

        lacking("sycl", "no device of the backend")
    for kind in ("device", "shared", "host"):
        made = usm.full(5, 7, "i4", kind=kind, device="sycl")
        back = usm.asarray(Only(made, "__arrow_c_device_array__"))
        assert (back.pointer, back.readonly) == (made.pointer, True)
        assert back.kind == ("device" if kind == "device" else "host")
        assert usm.to_numpy(back).tolist() == [7] * 5
    shared = usm.full(5, 7, "i4", kind="shared", device="sycl")
    # pyarrow knows no memory of SYCL, but what the host can access.
    assert pa.array(shared).to_pylist() == [7] * 5
