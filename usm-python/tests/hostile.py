"""False dictionaries and tensors, and what a correct reader may accept.

The categories are those that were measured in other consumers. Each case runs in a process of its
own; see `test_hostile.py`.
"""

import ctypes
import functools
import os
import signal
import sys

import cuda_driver

MAX, MIN = (1 << 63) - 1, -(1 << 63)
SIZE = 4096


class Evil:
    """Raises, or returns another value, at each query."""

    def __init__(self, action):
        self.action = action

    def __index__(self):
        return self.action()

    __bool__ = __int__ = __float__ = __index__

    def __repr__(self):
        return "<evil>"


class Text(str):
    def __eq__(self, other):
        raise RuntimeError("compared")

    __hash__ = str.__hash__


class Entries(dict):
    def __getitem__(self, key):
        raise RuntimeError("asked")

    def get(self, key, default=None):
        raise RuntimeError("asked")


def deep(levels):
    descr = [("a", "<i4")]
    for _ in range(levels):
        descr = [("a", descr)]
    return descr


def cyclic():
    descr = []
    descr.append(("a", descr))
    return descr


def shrinking():
    shape = []
    shape.extend([Evil(lambda: shape.clear() or 4), 4])
    return shape


def changes(units):
    """Changes of a dictionary of 16 `<i4` in an allocation of SIZE bytes.

    `units`: the bytes of a step of 1.
    """
    out = SIZE // units
    yield from ({"shape": value} for value in [
        None, ..., 16, 4.0, "16", b"16", {}, set(), object(), (None,), ("4",), (4.0,), (True,), (False,), (-1,), (MIN,), (MAX,),
        (1 << 63,), (1 << 64,), (1 << 100,), (-(1 << 100),), (1 << 62,), (1 << 32, 1 << 32), (1 << 40, 1 << 40), (1 << 62, 1 << 62, 0),
        (MAX, MAX), (0, -1), (1025,), (1024, 2), (1,) * 65, (1,) * 1000, (1,) * 100_000, [16], (), (0,), (0, MAX),
        ((4,),), (Evil(lambda: 1 // 0),), (Evil(lambda: "4"),), (Evil(lambda: True),), shrinking(), (range(4),), range(4),
    ])  # fmt: skip
    yield from ({"strides": value} for value in [
        ..., 4, "4", (), (4, 4), (4.0,), (True,), (None,), (MAX,), (MIN,), (1 << 64,), (1 << 61,), (-(1 << 61),), (1 << 40,), (-(1 << 40),),
        (out,), (-out,), (-1,), (-4,), (0,), (Evil(lambda: 1 // 0),), {}, (MAX // 15,), (MIN // 15,),
    ])  # fmt: skip
    yield from ({"shape": shape, "strides": strides} for shape, strides in [
        ((1,), (MAX,)), ((1,), (MIN,)), ((0,), (MAX,)), ((0, 5), (MIN, MAX)), ((2, 2), (MAX, MAX)), ((3, 3), (MAX, MIN)),
        ((2, 2), (1 << 62, 1 << 62)), ((1 << 31, 1 << 31), (1, 1)), ((1 << 40,), (0,)), ((MAX,), (0,)), ((2,) * 64, (0,) * 64), ((2,) * 63, (1,) * 63),
    ])  # fmt: skip
    yield from ({"typestr": value} for value in [
        None, ..., 4, b"<i4", "", "<", "i", "<i", "i4", "|i4", "=i4", "!i4", "<i3", "<i0", "<i-4", "<i+4", "<i 4", "<i04", "<i4 ", " <i4", "<i4\0", "\0",
        "<i\u0664", "<i4\ud800", "<i99999999999999999999", "<f1", "<f3", "<f32", "<c4", "|O", "O", "|O8", ">O8", "|V-4", "|V0", "|V4", "|V2147483647", "|V2147483648",
        "|V99999999999999999999", "<U1073741824", "<U1", "|S4", "|S-1", "<M8", "<M8[ns]", "<M8[", "<M8[xx]", "<M8[0s]", "<M8[-1s]", "<M8[99999999999ns]", "<M4[s]",
        "i4,f4", "(2,)i4", "int32", "StringDType()", "x" * 100_000, Text("<i4"), ("<i4",), ["<i4"], "<W4", "|t1", "|t3",
    ])  # fmt: skip
    yield from ({"data": value} for value in [
        (), (1,), (1, 2, 3), (1.5, False), ("4096", False), (b"4096", False), (True, False), (False, False), (None, False), (-1, False),
        (0, False), (1, False), (4096, False), (1 << 63, False), ((1 << 64) - 1, False), ((1 << 64) - 64, False), (1 << 64, False), (1 << 100, False),
        (Evil(lambda: 1 // 0), False), "outside", "below", 4096, 4.5, "data", {}, object(),
    ])  # fmt: skip
    yield from ({"data": ("good", flag)} for flag in [None, 2, "yes", [], Evil(lambda: 1 // 0), Evil(lambda: 5)])
    yield from ({"version": value} for value in ["3", "1", 1.0, True, object(), [3], Evil(lambda: 1 // 0), 1 << 100])
    yield from ({"offset": value} for value in [1, -1, MAX, MIN, "0", 1.0, True, 1 << 64, SIZE, Evil(lambda: 1 // 0)])
    yield from ({"mask": value} for value in [[1], True, 0, object(), ()])
    yield from ({"typestr": "|V8", "descr": value} for value in [
        [("a", "<i4")], [("a", "<i4"), ("b", "<f4"), ("c", "|u1")], [("a", "|O")], [("a", "|V2147483647")] * 4, [("a", "|V2147483647")] * 3, [],
        "[('a', '<i8')]", 5, None, (), [()], [("a",)], [("a", 5)], [("a", "<i8", (-1,))], [("a", "<i8", (1 << 62,))], [("a", "<i8", "x")], [(5, "<i8")],
        [("a", "<i4"), ("a", "<i4")], [("a\0", "<i8")], [("\ud800", "<i8")], [(("t", "a"), "<i8", (1,), 5)], [("", "|V8")], [("a", ("<i4", (2,)))], [("a", "<i4", (1 << 32, 1 << 32))],
        deep(3), deep(100), deep(20_000), cyclic(), [("a", "<i4")] * 100_000, [(f"f{i}", "|V0") for i in range(1000)], [("a", Evil(lambda: 1))],
    ])  # fmt: skip


def encoded(change, good, low):
    change = dict(change)
    data = change.get("data")
    if data == "outside":
        change["data"] = (low + SIZE, False)
    elif data == "below":
        change["data"] = (low - 1, False)
    elif type(data) is tuple and data[:1] == ("good",):
        change["data"] = (good, data[1])
    return change


def verdict(consume, fields, low, bounded):
    """`ok` where the dictionary was refused by a typed error, or read correctly.

    Read correctly means: as the dictionary says, and inside its allocation.
    """
    import usm

    try:
        array = consume(fields)
    except (usm.InterfaceError, ZeroDivisionError, RecursionError):
        return "ok"
    except usm.DeviceError as error:
        return "ok" if "kind" in str(error) else f"device: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    shape = tuple(int(n.action()) if isinstance(n, Evil) else n for n in fields["shape"])
    if len(shape) != array.ndim:
        # The case empties its own list.
        shape = array.shape
    if array.shape != tuple(int(n) for n in shape):
        return f"shape {array.shape}"
    if any(type(n) is not int or n < 0 for n in shape):
        return f"accepted shape {shape}"
    itemsize = array.itemsize
    if array.nbytes == 0:
        return "ok"
    unit = itemsize if bounded == "elements" else 1
    strides = fields.get("strides")
    if strides in (None, ...):
        strides, step = [], itemsize
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
    else:
        strides = [stride * unit for stride in strides]
    if tuple(strides) != array.strides and not all(n == 1 for n in shape):
        return f"strides {array.strides}, not {strides}"
    offset = (fields.get("offset") or 0) * unit
    first = fields["data"][0] + offset
    if array.pointer != first:
        return f"pointer {array.pointer - low} from the start"
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides)]
    begin = first + sum(step for step in steps if step < 0)
    end = first + sum(step for step in steps if step > 0) + itemsize
    if bounded and itemsize and not (low <= begin and end <= low + SIZE):
        return f"accepted [{begin - low}, {end - low}) of an allocation of {SIZE} bytes"
    if not (0 <= begin and end <= 1 << 64):
        return "accepted beyond the address space"
    return "ok"


def of_class(name):
    def consume(fields):
        import usm

        fields = {key: value for key, value in fields.items() if value is not ...}
        return usm.asarray(type("Producer", (), {name: fields})())

    return consume


def array_family():
    block = ctypes.create_string_buffer(SIZE * 3)
    low = ctypes.addressof(block) + SIZE
    base = {"data": (low, False), "shape": (16,), "strides": None, "typestr": "<i4", "version": 3}
    consume = of_class("__array_interface__")
    for change in changes(1):
        # The bounds of a plain address are unknown: exactly the dictionary's range is accepted.
        yield change, lambda change=change: verdict(consume, {**base, **encoded(change, low, low)}, low, None)
    for value in (None, 5, "x", [], [("shape", (1,))], Entries(base), {Text("shape"): (1,)}, {5: 6}, {}):
        yield {"dict": value}, lambda value=value: other(value, "__array_interface__")


def other(value, name):
    import usm

    try:
        usm.asarray(type("Producer", (), {name: value})())
    except (usm.InterfaceError, RuntimeError):
        return "ok"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "ok" if isinstance(value, Entries) else "accepted"


@functools.cache
def sycl_memory():
    """SYCL memory, opened in the process of the case.

    A child of a process with an open SYCL runtime cannot use it.
    """
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(SIZE)
    low = memory._pointer
    return memory, low, {**memory.__sycl_usm_array_interface__, "shape": (16,), "typestr": "|i4", "offset": 0, "data": (low, False)}


def sycl_family():
    consume = of_class("__sycl_usm_array_interface__")

    def lie(change):
        _, low, base = sycl_memory()
        return verdict(consume, {**base, **encoded(change, low, low)}, low, "elements")

    def stranger(syclobj):
        _, _, base = sycl_memory()
        return "accepted" if refuses(consume, {**base, "syclobj": syclobj}) is None else "ok"

    for change in changes(4):
        change = {key: (1 if key == "version" and value == 3 else value) for key, value in change.items()}
        yield change, lambda change=change: lie(change)
    for syclobj in (None, ..., 5, b"cpu", "", "foo:bar", "gpu:77", "cpu:cpu", object(), [], "\ud800", "x" * 100_000):
        yield {"syclobj": syclobj}, lambda syclobj=syclobj: stranger(syclobj)


@functools.cache
def cuda_memory():
    """CUDA memory of another library on the tests' driver, and a dictionary of 16 `<i4` in it.

    As for SYCL, the process of the case opens it.
    """
    low = cuda_driver.Driver().foreign(SIZE)
    return low, {"data": (low, False), "shape": (16,), "strides": None, "typestr": "<i4", "version": 3}


def cuda_lies():
    """Each is refused by an error that names its key, or its consequence."""
    yield from ({"shape": value} for value in [(SIZE // 4 + 1,), (1 << 62,), (1 << 40, 1 << 40), (-1,), (True,)])
    yield from ({"shape": (2,), "strides": value} for value in [(SIZE,), (-4,), (SIZE - 3,), (-1,)])
    yield from ({"strides": value} for value in [(MAX,), (MIN,), (4, 4), (1 << 40,)])
    yield from ({"data": value} for value in ["outside", "below", (0, False), (4096, False), ((1 << 64) - 4, False), (1 << 64, False)])
    yield from ({"data": value} for value in [..., None, bytearray(64), (True, False), "local"])
    yield from ({"typestr": value} for value in ["|O", "<f3", ...])
    yield from ({"version": value} for value in [4, -1, ..., True])
    yield from ({"stream": value} for value in [0, -1, "1", True, 1 << 64, 1.0, object(), (1,)])
    yield from ({"mask": object()}, {"offset": 4})


def cuda_family():
    consume = of_class("__cuda_array_interface__")

    def judged(change):
        low, base = cuda_memory()
        return verdict(consume, {**base, **encoded(change, low, low)}, low, "bytes")

    def lie(change):
        low, base = cuda_memory()
        local = ctypes.create_string_buffer(64)
        changed = {"data": (ctypes.addressof(local), False)} if change.get("data") == "local" else encoded(change, low, low)
        error = refuses(consume, {**base, **changed})
        named = [*change, "data", "shape"]
        return "ok" if error and any(key in str(error) for key in named) else f"answered {error}"

    yield from ((change, lambda change=change: judged(change)) for change in changes(1))
    yield from ((change, lambda change=change: lie(change)) for change in cuda_lies())


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


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER)]


def tensor_changes():
    """Changes of a tensor of 4 x 4 `f8` in SIZE bytes, and whether each must be refused."""
    bad, good = True, False
    yield {}, good
    for ndim in (-1, MIN >> 32, 65, 1000, (1 << 31) - 1):
        yield {"ndim": ndim}, bad
    yield {"ndim": 0}, good
    yield {"ndim": 1}, good
    for ndim in (1, 2):
        yield {"ndim": ndim, "shape": None}, bad
        yield {"ndim": ndim, "strides": None}, bad
        yield {"ndim": ndim, "strides": None, "minor": 1}, good
    yield {"ndim": 0, "shape": None, "strides": None}, good
    for shape in ((-1, 4), (MIN, 4), (MAX, 4), (1 << 62, 1 << 62), (1 << 32, 1 << 32), (MAX, MAX), (0, MIN), (0, -1)):
        yield {"shape": shape}, bad
    # The size without the extents of 0 overflows: refused as NumPy does.
    yield {"shape": (0, MAX)}, bad
    for shape in ((0, 4), (1, 4)):
        yield {"shape": shape}, good
    for strides in ((MAX, 1), (MIN, 1), (MAX, MAX), (MIN, MIN), (1 << 61, 1), (-(1 << 61), 1), (1 << 60, 1 << 60), (MAX // 3, MAX // 3)):
        yield {"strides": strides}, bad
    for strides in ((0, 0), (1, 4), (4, 1), (1, 1)):
        yield {"strides": strides}, good
    yield {"shape": (1, 1), "strides": (MAX, MIN)}, good
    yield {"shape": (0, 4), "strides": (MAX, MIN)}, good
    for data in (None, (1 << 64) - 1, (1 << 64) - 8):
        yield {"data": data}, bad
    yield {"data": None, "shape": (0, 4)}, good
    for offset in ((1 << 64) - 1, 1 << 63, MAX):
        yield {"byte_offset": offset}, bad
    yield {"byte_offset": 8}, good
    for code, bits, lanes in [(99, 64, 1), (255, 64, 1), (2, 0, 1), (2, 1, 1), (2, 63, 1), (2, 255, 1), (2, 64, 0), (2, 64, 2), (2, 64, 65535), (3, 64, 1),
                              (6, 1, 1), (5, 32, 3), (0, 128, 1), (17, 4, 2), (15, 5, 1)]:  # fmt: skip
        yield {"code": code, "bits": bits, "lanes": lanes}, bad
    # Packed elements of less than a byte: a size in bytes on this side would be twice as long on
    # the other.
    for code, bits in ((0, 4), (0, 2), (1, 1), (1, 4), (17, 4), (15, 6), (16, 6)):
        yield {"code": code, "bits": bits, "lanes": 1}, bad
        yield {"code": code, "bits": bits, "lanes": 1, "flags": 4}, good
    for device in (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 15, 18, 19, 255, -1, 1 << 30):
        yield {"device_type": device}, bad
    yield {"device_id": 99}, good
    for major in (0, 2, 1 << 31):
        yield {"major": major}, bad
    yield {"minor": 99}, good
    yield {"flags": (1 << 64) - 1}, good
    yield {"flags": 1}, good
    yield {"deleter": None}, good


def dlpack_family():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    block = ctypes.create_string_buffer(SIZE)
    keep = []

    def row(values):
        array = (ctypes.c_int64 * 64)(*values)
        keep.append(array)
        return ctypes.cast(array, ctypes.POINTER(ctypes.c_int64))

    def case(change, bad, legacy):
        import gc

        import usm

        deleted = []
        managed = (Legacy if legacy else Versioned)()
        managed.deleter = DELETER(lambda this: deleted.append(this))
        if not legacy:
            managed.major, managed.minor = 1, 3
        low = ctypes.addressof(block)
        managed.tensor = Tensor(low, 1, 0, 2, 2, 64, 1, row((4, 4)), row((4, 1)), 0)
        for key, value in change.items():
            if key in ("shape", "strides"):
                value = ctypes.POINTER(ctypes.c_int64)() if value is None else row(value)
            if key == "deleter":
                value = DELETER()
            setattr(managed if hasattr(managed, key) else managed.tensor, key, value)
        name = ctypes.create_string_buffer(b"dltensor" if legacy else b"dltensor_versioned")
        capsule = new(ctypes.addressof(managed), name, None)
        producer = type("Producer", (), {"__dlpack__": lambda self, **_: capsule})()
        try:
            array = usm.asarray(producer)
        except (usm.Error, BufferError) as error:
            if not bad:
                return f"refused: {error}"
            array = None
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        if array is not None and bad:
            return "accepted"
        if "used_" not in repr(capsule):
            return "not renamed"
        if array is not None:
            if array.size and array.pointer != low + managed.tensor.byte_offset:
                return "pointer"
            if deleted and array.size:
                return "deleted too early"
            array.tobytes()
            if not array.readonly and not legacy and managed.tensor.bits >= 8:
                array.fill(1.0)
            if legacy != array.readonly and "flags" not in change:
                return f"readonly {array.readonly}"
        del array, capsule
        gc.collect()
        expected = [] if "deleter" in change else [ctypes.addressof(managed)]
        return "ok" if deleted == expected else f"deleted {len(deleted)} times"

    for change, bad in tensor_changes():
        for legacy in (False, True):
            if legacy and change.keys() & {"major", "minor", "flags"}:
                continue
            # NULL strides meant C order before version 1.2.
            forgiven = legacy and "strides" in change and change["strides"] is None and change.get("shape", 1) is not None
            yield {**change, "legacy": legacy}, lambda c=change, b=bad and not forgiven, v=legacy: case(c, b, v)


def refuses(consume, fields):
    import usm

    try:
        consume(fields)
    except (usm.Error, ValueError) as error:
        return error
    return None


def text_of(change):
    try:
        return ascii(change)[:150]
    except RecursionError:
        return ", ".join(change)


def main(family, part, parts):
    import usm

    usm.asarray(bytearray(1))
    if family == "sycl":
        # Loaded once; the runtime itself is opened by the children.
        import dpctl.memory  # noqa: F401
    cases = list({"array": array_family, "dlpack": dlpack_family, "sycl": sycl_family, "cuda": cuda_family}[family]())
    print("cases", len(cases), flush=True)
    for number, (change, run) in list(enumerate(cases))[part::parts]:
        # Nothing but the host is open, so a child of this process is as good as a fresh one.
        child = os.fork()
        if child == 0:
            # A case that hangs is killed, which is an answer too.
            signal.alarm(120)
            print(number, run(), "|", text_of(change), flush=True)
            # Ends in the usual way: a runtime that crashes while it closes counts as well.
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            print(number, f"died with status {status}", "|", text_of(change), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(map(int, sys.argv[2:4]) if len(sys.argv) > 2 else (0, 1)))
