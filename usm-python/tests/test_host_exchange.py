"""Memory shared on the host with NumPy, DLPack and the buffer protocol."""

import array as stdlib_array
import ctypes
import gc
import weakref

import pytest

import usm
from conftest import device_of, require

DTYPES = ["?", "i1", "u2", "<i4", ">i4", "u8", "f2", "f4", ">f8", "c8", "c16", "M8[ns]", "m8[25us]", "S5", "U3", "V7"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays_round_trip(np, dtype):
    data = np.zeros((3, 4), dtype)
    data.reshape(-1).view("u1")[:] = 1
    for view in (data, data[::-1, ::2], data.T, data[1, 2, ...], data[:0]):
        ours = usm.asarray(view)
        assert ours.dtype == data.dtype.str and ours.shape == view.shape
        back = np.asarray(ours)
        assert back.dtype == data.dtype and back.tobytes() == view.tobytes()
        if view.size:
            assert ours.pointer == view.ctypes.data == back.ctypes.data
            assert back.strides == view.strides


class Dictionary:
    """An object with the dictionary of a NumPy array, and nothing else."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def description(array):
    """The common part of two imports of one array.

    Strides count only along axes with a second element: NumPy's dictionary of a contiguous array
    has none.
    """
    steps = [step for extent, step in zip(array.shape, array.strides) if extent > 1 and array.size]
    return array.dtype, array.shape, steps, array.readonly, array.kind, array.pointer if array.size else None


def test_numpys_structure_for_c_equals_its_dictionary(np):
    """A thousand views of every type, by NumPy's structure, as tensors and by the dictionary."""
    random, older = np.random.default_rng(7), np.lib.NumpyVersion(np.__version__) < "2.1.0"
    types = [np.dtype(code).newbyteorder(order) for code in np.typecodes["All"] if code not in "OSUVMm" for order in "<>"]
    types += [np.dtype(text) for text in ("S5", "U3", "V7", "M8[ns]", "m8[25us]", "f8,i4", "(2,)i4", "f8, 3i2")]
    for round in range(1000):
        dtype = types[round % len(types)]
        view = np.zeros(random.integers(0, 5, random.integers(0, 7)), dtype)
        slices = tuple(
            slice(*random.integers(0, 3, 2), random.choice([-2, -1, 1, 2])) if random.random() < 0.3 else slice(None)
            for _ in range(view.ndim)
        )
        view = view[slices + (...,)]
        view = view.transpose(random.permutation(view.ndim))
        view.flags.writeable = random.random() < 0.5
        ours, by_dictionary = usm.asarray(view), usm.asarray(Dictionary(view))
        assert description(ours) == description(by_dictionary), (view.dtype, view.shape, view.strides)
        assert ours.base is view or not view.size
        try:
            by_numpy = np.from_dlpack(view)
        except (BufferError, RuntimeError):
            # DLPack has no such elements or strides, or an older NumPy exports no read-only array.
            if not older or view.flags.writeable:
                with pytest.raises((BufferError, RuntimeError)):
                    usm.from_dlpack(view)
        else:
            tensor = usm.from_dlpack(view)
            assert (tensor.dtype, tensor.shape, tensor.tolist()) == (by_numpy.dtype, by_numpy.shape, by_numpy.tolist())
            assert tensor.base is view or not view.size
            if view.size:
                assert tensor.pointer == view.ctypes.data
                # A capsule of an older NumPy cannot say whether it is read-only.
                assert tensor.readonly == (not view.flags.writeable) or (older and tensor.readonly)


def test_a_tensor_of_numpys_keeps_its_array_alive(np):
    array = np.arange(4.0)
    gone = weakref.ref(array)
    tensor = usm.from_dlpack(array)
    del array
    gc.collect()
    assert gone() is not None and tensor.tolist() == [0.0, 1.0, 2.0, 3.0]
    del tensor
    gc.collect()
    assert gone() is None


def test_subclasses_of_numpys_array_are_read_by_their_dictionary(np):
    class Other(np.ndarray):
        asked = 0

        @property
        def __array_interface__(self):
            Other.asked += 1
            return np.asarray(self).__array_interface__

    data = np.arange(4.0).view(Other)
    assert usm.asarray(data).tolist() == [0.0, 1.0, 2.0, 3.0] and Other.asked == 1


def test_structures_keep_their_members(np):
    dtype = np.dtype([("x", "<i2"), (("a title", "y"), ">f4", (2, 2)), ("z", [("inner", "u1"), ("deep", "f8")])])
    data = np.zeros(4, dtype)
    data["y"] = 2.5
    ours = usm.asarray(data)
    back = np.asarray(ours)
    assert back.dtype == dtype and np.array_equal(back["y"], data["y"])
    back["x"] = 7
    assert data["x"].tolist() == [7] * 4
    aligned = np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True))
    assert np.asarray(usm.asarray(aligned)).dtype.itemsize == 16


def test_temporaries_inside_a_dictionary_are_kept(np):
    """NumPy's scalars export the address of a temporary that only the dictionary keeps."""
    for value in range(100):
        ours = usm.asarray(np.float64(value))
        gc.collect(0)
        assert ours.item() == value


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(b"abcd"),
        lambda: memoryview(bytearray(b"abcdefgh"))[::2],
        lambda: stdlib_array.array("i", [1, 2, 3]),
        lambda: (ctypes.c_double * 3)(1, 2, 3),
        lambda: ((ctypes.c_int16 * 2) * 3)(),
    ],
)
def test_buffers_become_arrays(make):
    buffer = make()
    ours = usm.asarray(buffer)
    seen = memoryview(buffer)
    assert ours.shape == seen.shape and ours.strides == seen.strides and not ours.readonly
    assert ours.tobytes() == seen.tobytes()
    ours.fill(5)
    assert seen.tobytes() == ours.tobytes()


def test_a_buffer_does_not_move_while_it_is_shared():
    buffer = bytearray(8)
    ours = usm.asarray(buffer)
    with pytest.raises(BufferError):
        buffer.extend(b"more")
    del ours
    gc.collect()
    buffer.extend(b"more")
    assert usm.asarray(b"fixed").readonly


def test_ctypes_structures_have_their_padding():
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_byte), ("b", ctypes.c_double)]

    pairs = (Pair * 3)(Pair(1, 1.5), Pair(2, 2.5), Pair(3, 3.5))
    ours = usm.asarray(pairs)
    assert ours.itemsize == 16
    np = require("numpy", "reads the members")
    assert np.asarray(ours)["b"].tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_dlpack_with_numpy(np, dtype):
    data = np.arange(12).reshape(3, 4).astype(dtype)
    for view in (data, data[::-1], data[:, ::2], data.T, data[1], data[0, 0:0]):
        ours = usm.from_dlpack(view)
        assert np.array_equal(np.asarray(ours), view)
        theirs = np.from_dlpack(ours)
        assert np.array_equal(theirs, view)
        if view.size:
            assert ours.pointer == view.ctypes.data == theirs.ctypes.data
    ours = usm.from_dlpack(data)
    theirs = np.from_dlpack(ours)
    theirs[0] = 1
    assert data[0].tolist() == np.ones(4, dtype).tolist() and ours.tolist() == data.tolist()


def names(capsule):
    return repr(capsule).split('"')[1]


def test_capsules_are_renamed_and_deleted_once(np):
    ours = usm.zeros(4, queue="host")
    context = ours.context
    live = lambda: context.stats()["sum"]["live"]  # noqa: E731
    gc.collect()  # what other tests left
    before = live()
    capsule, legacy = ours.__dlpack__(max_version=(1, 3)), ours.__dlpack__()
    assert (names(capsule), names(legacy)) == ("dltensor_versioned", "dltensor")
    assert names(ours.__dlpack__(max_version=(0, 8))) == "dltensor"
    del ours
    gc.collect()
    assert live() == before

    class Producer:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return self.capsule

    taken = usm.from_dlpack(Producer(capsule))
    assert names(capsule) == "used_dltensor_versioned"
    with pytest.raises(usm.InterfaceError, match="fresh"):
        usm.from_dlpack(Producer(capsule))
    # A legacy tensor cannot say that it may be written.
    old = usm.from_dlpack(Producer(legacy))
    assert names(legacy) == "used_dltensor" and old.readonly and not taken.readonly
    del capsule, legacy
    gc.collect()
    assert live() == before
    taken.fill(3)
    assert old.tolist() == [3.0] * 4
    del taken, old
    gc.collect()
    assert live() == before - 1


def test_producers_without_versions_get_a_second_call(np):
    data = np.arange(3.0)

    class Old:
        calls = []

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, stream=None):
            self.calls.append(stream)
            return data.__dlpack__()

    assert usm.asarray(Old()).tolist() == [0.0, 1.0, 2.0]
    for result in (None, 5, "dltensor"):
        wrong = type("Wrong", (), {"__dlpack__": lambda self, **_: result})()
        with pytest.raises(usm.InterfaceError, match="capsule"):
            usm.asarray(wrong)


def test_dlpack_honours_its_arguments(queue):
    array = usm.zeros((2, 3), "<f4", queue=queue)
    device = array.__dlpack_device__()
    assert device == ((14, 0) if array.device.backend == "sycl" else (1, 0))
    assert array.__dlpack__(dl_device=(1, 0), copy=False) is not None
    assert array.__dlpack__(dl_device=device, copy=True) is not None
    for arguments in ({"dl_device": (2, 0)}, {"dl_device": (14, 99)}, {"dl_device": (77, 0)}):
        with pytest.raises(usm.Error):
            array.__dlpack__(**arguments)
    with pytest.raises(usm.InterfaceError if device[0] == 14 else usm.AccessError, match="None"):
        array.__dlpack__(stream=0)
    with pytest.raises(TypeError):
        array.__dlpack__(stream="stream")
    hidden = usm.zeros(3, kind="device", queue=queue)
    # Device memory has no host view, also where it is plain memory: the host gets a copy or an
    # error.
    with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
        hidden.__dlpack__(dl_device=(1, 0), copy=False)
    copied = usm.from_dlpack(type("P", (), {"__dlpack__": lambda _, **k: hidden.__dlpack__(dl_device=(1, 0), **k)})())
    assert copied.tolist() == [0.0] * 3 and copied.device.backend == "host"
    copied.fill(1)
    assert hidden.tolist() == [0.0] * 3
    with pytest.raises(BufferError, match="type"):
        usm.zeros(2, ">f8", queue=queue).__dlpack__()


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_device_memory_reaches_the_host_only_by_a_requested_copy(np, backend):
    hidden = usm.full((2, 3), 7, "<i4", kind="device", queue=usm.Queue(device_of(backend)))
    assert hidden.__dlpack_device__() == (1, 0)
    refused = [
        lambda: np.asarray(hidden),
        lambda: np.from_dlpack(hidden),
        lambda: np.from_dlpack(hidden, copy=False),
        lambda: np.from_dlpack(hidden, device="cpu", copy=False),
        lambda: usm.from_dlpack(hidden),
        lambda: usm.from_dlpack(hidden, copy=False),
        lambda: hidden.__dlpack__(max_version=(1, 0)),
        lambda: usm.asarray(type("P", (), {"__dlpack__": lambda _, **k: hidden.__dlpack__(**k)})()),
    ]
    for export in refused:
        with pytest.raises(usm.AccessError, match=r"usm\.to_numpy") as caught:
            export()
        assert isinstance(caught.value, BufferError)
    for copied in (np.from_dlpack(hidden, copy=True), np.from_dlpack(hidden, device="cpu"), usm.to_numpy(hidden)):
        assert copied.tolist() == [[7] * 3] * 2
        copied[:] = 8
    assert hidden.tolist() == [[7] * 3] * 2


def test_torch_shares_memory():
    torch = pytest.importorskip("torch", reason="torch is not installed: a consumer of DLPack beside NumPy")
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    ours = usm.asarray(tensor)
    assert ours.pointer == tensor.data_ptr() and ours.tolist() == tensor.tolist()
    ours[0] = 9.0
    assert tensor[0].tolist() == [9.0] * 3
    back = torch.from_dlpack(usm.zeros(3, queue="host"))
    assert back.tolist() == [0.0] * 3


def test_the_exporter_lives_as_long_as_its_consumer(np):
    class Exporter(bytearray):
        pass

    exporter = Exporter(b"abcd")
    alive = weakref.ref(exporter)
    ours = usm.asarray(exporter)
    seen = np.from_dlpack(ours)
    del exporter, ours
    gc.collect()
    assert alive() is not None and seen.tobytes() == b"abcd"
    del seen
    gc.collect()
    assert alive() is None


HOSTILE = [
    {"shape": (1 << 62,), "typestr": "<f8"},
    {"shape": (1 << 40, 1 << 40), "typestr": "|u1"},
    {"shape": (4,), "strides": ((1 << 63) - 1,)},
    {"shape": (4,), "strides": (-(1 << 63),)},
    {"shape": (-1,)},
    {"shape": (True,)},
    {"shape": (1,) * 1000},
    {"shape": "4"},
    {"typestr": "|O"},
    {"typestr": "|V-4"},
    {"typestr": "<f3"},
    {"typestr": "<i4 "},
    {"typestr": "|V99999999999999999999"},
    {"data": (0, False)},
    {"data": ((1 << 64) - 1, False), "shape": (4,)},
    {"data": (1 << 64, False)},
    {"data": None},
    {"mask": [1]},
    {"descr": [("a", "<i4")], "typestr": "|V8"},
    {"descr": [("a", "|V2147483647")] * 4, "typestr": "|V4"},
    {"descr": [("a", "|O8")], "typestr": "|V8"},
    {"descr": "[('a', '<i4')", "typestr": "|V4"},
]


@pytest.mark.parametrize("change", HOSTILE, ids=repr)
def test_hostile_dictionaries_raise(np, change):
    data = np.zeros(16, "u1")
    fields = {"shape": (8,), "typestr": "|u1", "data": (data.ctypes.data, False), "version": 3, **change}
    producer = type("Producer", (), {"__array_interface__": fields})()
    with pytest.raises(usm.InterfaceError):
        usm.asarray(producer)


def test_deep_and_cyclic_members_raise(np):
    data = np.zeros(16, "u1")
    deep = [("a", "<i4")]
    for _ in range(3000):
        deep = [("a", deep)]
    cyclic = []
    cyclic.append(("a", cyclic))
    for descr in (deep, cyclic):
        fields = {"shape": (1,), "typestr": "|V4", "descr": descr, "data": (data.ctypes.data, False), "version": 3}
        producer = type("Producer", (), {"__array_interface__": fields})()
        with pytest.raises((usm.InterfaceError, RecursionError)):
            usm.asarray(producer)
