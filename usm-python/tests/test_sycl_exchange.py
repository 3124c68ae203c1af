"""Memory shared with dpctl and dpnp on a real SYCL device.

Pointers are the same, owners are kept alive, and each side sees the other's writes.
"""

import ctypes
import gc
import pathlib
import subprocess
import sys
import textwrap
import weakref

import pytest

import usm
import usm.memory

KINDS = {"host": "MemoryUSMHost", "device": "MemoryUSMDevice", "shared": "MemoryUSMShared"}
NUMBERS = ["b1", "i1", "u1", "i2", "i4", "i8", "u8", "f4", "f8", "c8", "c16"]


@pytest.fixture
def sycl(dpctl):
    return usm.Queue(next(device for device in usm.devices() if device.backend == "sycl"))


@pytest.fixture
def memory_of(dpctl):
    """dpctl's class for a kind."""
    return lambda kind: getattr(dpctl.memory, KINDS[kind])


class Wrapped:
    """Exposes a dictionary, and the owner of the memory beside it."""

    def __init__(self, memory, **changes):
        self.memory = memory
        self.changes = changes

    @property
    def __sycl_usm_array_interface__(self):
        interface = {**self.memory.__sycl_usm_array_interface__, **self.changes}
        return {key: value for key, value in interface.items() if value is not Ellipsis}


# Both ways with dpctl.memory


def test_our_array_becomes_memory_of_dpctls(dpctl, sycl, memory_of, kind):
    array = usm.zeros((4, 8), "|u1", kind=kind, queue=sycl)
    for theirs in (dpctl.memory.as_usm_memory(array), memory_of(kind)(array)):
        assert type(theirs) is memory_of(kind)
        assert theirs._pointer == array.pointer and theirs.nbytes == array.nbytes
        assert theirs.reference_obj is array
        theirs.copy_from_host(bytes(range(32)))
        assert array.tobytes() == bytes(range(32))
        array.fill(9)
        assert bytes(theirs.copy_to_host()) == bytes([9] * 32)
    for other in set(KINDS) - {kind}:
        with pytest.raises(ValueError):
            memory_of(other)(array)


def test_our_memory_becomes_memory_of_dpctls(dpctl, sycl, memory_of, kind):
    ours = getattr(usm.memory, KINDS[kind])(64, queue=sycl)
    theirs = dpctl.memory.as_usm_memory(ours)
    assert type(theirs) is memory_of(kind)
    assert theirs._pointer == ours._pointer
    # The owner of the block, also where ours is an object of dpctl's class too.
    assert theirs.reference_obj is (ours.reference_obj or ours)
    ours.copy_from_host(bytes(range(64)))
    live = usm.stats()[str(sycl.device.selector)][f"usm_{kind}"]["current"]
    del ours
    gc.collect()
    assert usm.stats()[str(sycl.device.selector)][f"usm_{kind}"]["current"] == live
    assert theirs.tobytes() == bytes(range(64))
    del theirs
    gc.collect()
    assert usm.stats()[str(sycl.device.selector)][f"usm_{kind}"]["current"] == live - 64


def test_memory_of_dpctls_becomes_our_array(dpctl, memory_of, kind):
    theirs = memory_of(kind)(32)
    array = usm.asarray(theirs)
    assert (array.pointer, array.kind, array.dtype, array.shape) == (theirs._pointer, kind, "|u1", (32,))
    assert array.base is theirs
    # dpctl.memory exports (pointer, True) and means that it may be written.
    assert not array.readonly
    array.fill(7)
    assert theirs.tobytes() == bytes([7] * 32)
    theirs.copy_from_host(bytes(range(32)))
    assert array.tolist() == list(range(32))


def test_memory_of_dpctls_becomes_our_memory(dpctl, memory_of, kind):
    theirs = memory_of(kind)(32)
    ours = usm.memory.as_usm_memory(theirs)
    assert type(ours).__name__ == KINDS[kind] and type(ours).__module__ == "usm.memory"
    assert ours._pointer == theirs._pointer and ours.reference_obj is theirs
    assert ours.sycl_queue is theirs.sycl_queue
    ours.copy_from_host(b"x" * 32)
    assert theirs.tobytes() == b"x" * 32


def test_the_owner_lives_as_long_as_the_memory_is_used(dpctl, sycl, memory_of, kind):
    class Mortal(memory_of(kind)):
        pass

    theirs = Mortal(32)
    theirs.copy_from_host(bytes(range(32)))
    alive = weakref.ref(theirs)
    view = usm.asarray(theirs)[::2]
    del theirs
    gc.collect()
    assert alive() is not None
    assert view.tolist() == list(range(0, 32, 2))
    del view
    gc.collect()
    assert alive() is None

    context = usm.Context(sycl.device)
    array = usm.zeros(32, "|u1", kind=kind, queue=context)
    taken = dpctl.memory.as_usm_memory(array)
    del array
    gc.collect()
    assert context.stats()["sum"]["live"] == 1
    assert taken.tobytes() == bytes(32)
    del taken
    gc.collect()
    context.synchronize()
    assert context.stats()["sum"]["live"] == 0


# Both ways with dpnp


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_dpnp_array_becomes_ours(dpctl, dpnp, np, kind, dtype):
    data = np.arange(24).reshape(2, 3, 4).astype(dtype)
    theirs = dpnp.asarray(data, usm_type=kind)
    array = usm.asarray(theirs)
    assert array.pointer == theirs.get_array()._pointer and array.kind == kind
    assert array.dtype == data.dtype.str and not array.readonly
    assert np.array_equal(usm.to_numpy(array), data)
    array[0, 1] = data[1, 2]
    data[0, 1] = data[1, 2]
    assert np.array_equal(dpnp.asnumpy(theirs), data)
    theirs[1] = 1
    data[1] = 1
    assert np.array_equal(usm.to_numpy(array), data)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_our_array_becomes_dpnps(dpctl, dpnp, np, sycl, kind, dtype):
    data = np.arange(24).reshape(2, 3, 4).astype(dtype)
    array = usm.asarray(data, kind=kind, queue=sycl)
    from dpnp import tensor

    ways = {
        "asarray": lambda: dpnp.ndarray(array.shape, dtype, buffer=dpctl.memory.as_usm_memory(array)),
        "tensor": lambda: dpnp.from_dlpack(tensor.asarray(array)),
        "dlpack": lambda: dpnp.from_dlpack(array),
    }
    for name, way in ways.items():
        theirs = way()
        assert theirs.get_array()._pointer == array.pointer, name
        assert theirs.usm_type == kind and theirs.shape == array.shape and theirs.dtype == data.dtype, name
        assert np.array_equal(dpnp.asnumpy(theirs), data), name
        theirs[0] = 1
        data[0] = 1
        assert np.array_equal(usm.to_numpy(array), data), name


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1],
        lambda a: a[:, ::-1],
        lambda a: a[::-1, ::-1, ::-1],
        lambda a: a[:, 1:, ::2],
        lambda a: a[0].T,
        lambda a: a[1, 2, 3],
        lambda a: a[:, 3:],
        lambda a: a[1:, :, 1::3],
    ],
)
def test_views_keep_their_strides_both_ways(dpctl, dpnp, np, sycl, view):
    data = np.arange(24, dtype="i4").reshape(2, 3, 4)
    theirs = view(dpnp.asarray(data))
    array = usm.asarray(theirs)
    assert np.array_equal(usm.to_numpy(array), view(data))
    ours = view(usm.asarray(data, queue=sycl))
    back = usm.asarray(Wrapped(ours))
    assert back.tolist() == ours.tolist()
    if ours.size:
        assert (back.pointer, back.strides) == (ours.pointer, ours.strides)


def test_broadcast_and_complex_parts(dpctl, dpnp, np):
    data = np.arange(4, dtype="c8") * (1 + 2j)
    theirs = dpnp.asarray(data)
    assert np.array_equal(usm.to_numpy(usm.asarray(theirs.imag)), data.imag)
    assert np.array_equal(usm.to_numpy(usm.asarray(theirs.real[1:])), data.real[1:])
    wide = dpnp.broadcast_to(theirs, (3, 4))
    assert usm.asarray(wide).tolist() == [data.tolist()] * 3


def test_a_read_only_dpnp_array_stays_read_only(dpctl, dpnp):
    theirs = dpnp.arange(5)
    theirs.flags.writable = False
    array = usm.asarray(theirs)
    assert array.readonly
    with pytest.raises(usm.AccessError):
        array.fill(1)
    assert usm.asarray(Wrapped(array)).readonly


# The variants of syclobj


def syclobjs(queue, dpctl):
    class Provider:
        def __init__(self, value):
            self.value = value

        def _get_capsule(self):
            return self.value._get_capsule()

    return {
        "queue": queue,
        "context": queue.sycl_context,
        "filter": "opencl:cpu:0",
        "short filter": "cpu",
        "queue capsule": queue._get_capsule(),
        "context capsule": queue.sycl_context._get_capsule(),
        "queue provider": Provider(queue),
        "context provider": Provider(queue.sycl_context),
        "our queue": usm.Queue(queue),
        "our context": usm.Queue(queue).context,
    }


def test_every_variant_of_syclobj_is_read(dpctl, memory_of, kind):
    queue = dpctl.SyclQueue("cpu")
    theirs = memory_of(kind)(16, queue=queue)
    theirs.copy_from_host(bytes(range(16)))
    for name, syclobj in syclobjs(queue, dpctl).items():
        producer = Wrapped(theirs, syclobj=syclobj)
        array = usm.asarray(producer)
        assert (array.pointer, array.kind) == (theirs._pointer, kind), name
        assert array.base is producer, name
        assert array.tolist() == list(range(16)), name


def test_dpctl_reads_every_variant_over_memory_of_ours(dpctl, sycl, kind):
    """The nine documented variants, of dpctl's own queue and of ours."""
    array = usm.zeros(16, "|u1", kind=kind, queue=sycl)
    queue = dpctl.SyclQueue(sycl._get_capsule())
    ours = {
        "our queue": sycl,
        "our context": sycl.context,
        "our queue's capsule": sycl._get_capsule(),
        "our context's capsule": sycl.context._get_capsule(),
    }
    for name, syclobj in {**syclobjs(queue, dpctl), **ours}.items():
        producer = Wrapped(array, syclobj=syclobj)
        theirs = dpctl.memory.as_usm_memory(producer)
        assert theirs._pointer == array.pointer and theirs.get_usm_type() == kind, name
        theirs.copy_from_host(bytes(range(16)))
        assert array.tolist() == list(range(16)), name
        array.fill(0)
        assert theirs.tobytes() == bytes(16), name
        assert theirs.reference_obj is producer and theirs.sycl_context == queue.sycl_context, name


def test_capsules_are_used_once_and_may_outlive_their_use(dpctl):
    queue = dpctl.SyclQueue()
    theirs = dpctl.memory.MemoryUSMShared(16, queue=queue)
    for make in (queue._get_capsule, queue.sycl_context._get_capsule):
        capsule = make()
        name = repr(capsule)
        producer = Wrapped(theirs, syclobj=capsule)
        assert usm.asarray(producer).pointer == theirs._pointer
        assert repr(capsule) != name and "used_Sycl" in repr(capsule)
        with pytest.raises(usm.InterfaceError, match="serves once"):
            usm.asarray(producer)
        # The capsule still deletes its own object.
        del capsule, producer
        gc.collect()


def test_our_capsules_are_taken_by_dpctl(dpctl, sycl):
    theirs = dpctl.SyclQueue(sycl._get_capsule())
    assert theirs.is_in_order
    assert theirs.sycl_context == dpctl.SyclContext(sycl.context._get_capsule())
    unused = sycl._get_capsule(), sycl.context._get_capsule()
    del unused
    gc.collect()
    memory = dpctl.memory.MemoryUSMShared(8, queue=theirs)
    assert usm.asarray(memory).context == sycl.context


def test_a_syclobj_of_another_class_is_refused(dpctl):
    theirs = dpctl.memory.MemoryUSMShared(16)

    class Text(str):
        pass

    class Raises:
        def _get_capsule(self):
            raise KeyError("inside")

    class Wrong:
        def _get_capsule(self):
            return 5

    for syclobj in [None, 5, b"cpu", Text("cpu"), object(), ..., Wrong(), "", "foo:bar", "gpu:77", "cpu:cpu"]:
        with pytest.raises(usm.InterfaceError):
            usm.asarray(Wrapped(theirs, syclobj=syclobj))
    with pytest.raises(KeyError, match="inside"):
        usm.asarray(Wrapped(theirs, syclobj=Raises()))


def test_an_out_of_order_queue_of_dpctls_is_one_of_ours(dpctl):
    theirs = dpctl.SyclQueue(property="in_order")
    assert usm.Queue(theirs).is_in_order
    theirs = dpctl.SyclQueue()
    queue = usm.Queue(theirs)
    assert queue.is_in_order == theirs.is_in_order
    source, target = usm.asarray(range_bytes(64), queue=queue), usm.zeros(64, "|u1", queue=queue)
    queue.copy(target, source).wait()
    assert target.tobytes() == bytes(range(64))


def range_bytes(count):
    return bytearray(range(count))


# False claims are refused: the defects that were measured in other consumers, and the categories of
# hostile input


def test_shapes_beyond_the_allocation_are_refused(dpctl, memory_of, kind):
    theirs = memory_of(kind)(4096)
    lies = [
        {"shape": (1_024_000_000,), "typestr": "|f4"},
        {"shape": (1 << 62,), "typestr": "|f4"},
        {"shape": (1 << 40, 1 << 40), "typestr": "|f4"},
        {"shape": (1 << 32, 1 << 32), "typestr": "|u1"},
        {"shape": ((1 << 63) - 1,), "typestr": "|f4"},
        {"shape": (4,), "strides": (1 << 61,), "typestr": "|f4"},
        {"shape": (1024,), "strides": (-(1 << 40),), "typestr": "|f4"},
        {"shape": (2,), "strides": (-(1 << 63),)},
        {"shape": (4096,), "offset": 1 << 40},
        {"shape": (4096,), "offset": (1 << 63) - 1},
        {"shape": (4096,), "offset": -1},
        {"data": (0, False)},
        {"data": (1, False)},
        {"data": ((1 << 64) - 1, False)},
        {"data": (theirs._pointer + (1 << 40), False)},
    ]
    for lie in lies:
        with pytest.raises(usm.InterfaceError):
            usm.asarray(Wrapped(theirs, **lie))


def test_our_own_memory_is_checked_to_the_byte(sycl):
    array = usm.zeros(100, "|u1", queue=sycl)
    good = [
        {"shape": (100,)},
        {"shape": (50,), "strides": (2,)},
        {"shape": (50,), "strides": (2,), "offset": 1},
        {"shape": (100,), "strides": (-1,), "offset": 99},
        {"shape": (10,), "typestr": "|u2", "offset": 40},
        {"shape": (0,), "offset": 1 << 30},
    ]
    for layout in good:
        assert usm.asarray(Wrapped(array, **layout)).shape == layout["shape"]
    bad = [
        {"shape": (101,)},
        {"shape": (51,), "strides": (2,), "offset": 1},
        {"shape": (100,), "strides": (-1,), "offset": 98},
        {"shape": (2,), "strides": (-1,)},
        {"shape": (11,), "typestr": "|u2", "offset": 40},
    ]
    for layout in bad:
        with pytest.raises(usm.InterfaceError, match="allocation"):
            usm.asarray(Wrapped(array, **layout))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 0},
        {"version": 2},
        {"version": "1"},
        {"version": True},
        {"version": ...},
        {"data": ()},
        {"data": (1,)},
        {"data": 4096},
        {"data": (1.5, False)},
        {"data": ("4096", False)},
        {"data": (True, False)},
        {"data": (-1, False)},
        {"data": (1 << 64, False)},
        {"data": (4096, "yes")},
        {"data": ...},
        {"shape": None},
        {"shape": ...},
        {"shape": 16},
        {"shape": "16"},
        {"shape": (4.0,)},
        {"shape": (True,)},
        {"shape": (-16,)},
        {"shape": (1 << 70,)},
        {"shape": (1,) * 65},
        {"strides": (1, 1)},
        {"strides": ...},
        {"strides": (4.0,)},
        {"strides": "1"},
        {"offset": "0"},
        {"offset": 1.0},
        {"typestr": ...},
        {"typestr": None},
        {"typestr": "invalid"},
        {"typestr": "|O"},
        {"typestr": "O"},
        {"typestr": "|O8"},
        {"typestr": 4},
        {"typestr": "|V2147483648"},
        {"mask": [True]},
        {"syclobj": ...},
    ],
    ids=repr,
)
def test_malformed_dictionaries_are_refused_by_name(dpctl, change):
    theirs = dpctl.memory.MemoryUSMShared(16)
    if change in ({"strides": ...},):
        # An absent key here, not Ellipsis: strides are optional.
        assert usm.asarray(Wrapped(theirs, **change)).shape == (16,)
        return
    with pytest.raises(usm.InterfaceError) as caught:
        usm.asarray(Wrapped(theirs, **change))
    assert next(iter(change)) in str(caught.value)
    with pytest.raises(ValueError):
        usm.memory.MemoryUSMShared(Wrapped(theirs, **change))


def test_a_dictionary_is_read_once_and_hostile_objects_only_raise(dpctl):
    theirs = dpctl.memory.MemoryUSMShared(16)

    class Counted(Wrapped):
        reads = 0

        @property
        def __sycl_usm_array_interface__(self):
            self.reads += 1
            return super().__sycl_usm_array_interface__

    counted = Counted(theirs)
    usm.asarray(counted)
    assert counted.reads == 1

    class Index:
        def __init__(self, action):
            self.action = action

        def __index__(self):
            return self.action()

    shape = [Index(lambda: shape.clear() or 16)]
    assert usm.asarray(Wrapped(theirs, shape=shape)).shape == (16,)
    with pytest.raises(ZeroDivisionError):
        usm.asarray(Wrapped(theirs, shape=(Index(lambda: 1 // 0),)))
    for dictionary in (5, "text", [("shape", (1,))]):
        producer = type("Producer", (), {"__sycl_usm_array_interface__": dictionary})()
        with pytest.raises(usm.InterfaceError, match="not a dictionary"):
            usm.asarray(producer)


@pytest.mark.parametrize("pointer", [0, 1, 4096, (1 << 47) - 64, (1 << 64) - 64])
def test_an_address_outside_of_usm_does_not_crash(dpctl, pointer):
    """Another consumer aborts here, so this runs in its own process."""
    code = f"""
        import dpctl, usm, usm.memory
        queue = dpctl.SyclQueue()
        for syclobj in (queue, queue.sycl_context, queue.sycl_context._get_capsule(), "cpu"):
            class Producer:
                __sycl_usm_array_interface__ = dict(
                    data=({pointer}, False), shape=(8,), strides=None, typestr="|u1", version=1, syclobj=syclobj
                )
            for consumer in (usm.asarray, usm.memory.as_usm_memory, usm.memory.MemoryUSMShared):
                try:
                    consumer(Producer())
                except usm.InterfaceError as error:
                    assert "data" in str(error) or "serves once" in str(error), error
                else:
                    raise SystemExit("accepted")
        local = bytearray(64)
        import ctypes
        address = ctypes.addressof(ctypes.c_char.from_buffer(local))
        try:
            class Local:
                __sycl_usm_array_interface__ = dict(
                    data=(address, False), shape=(8,), typestr="|u1", version=1, syclobj=queue.sycl_context
                )
            usm.asarray(Local())
        except usm.InterfaceError:
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr


def test_freed_memory_is_refused(dpctl):
    theirs = dpctl.memory.MemoryUSMShared(1 << 24)
    stale = theirs.__sycl_usm_array_interface__
    producer = type("Producer", (), {"__sycl_usm_array_interface__": stale})()
    assert usm.asarray(producer).pointer == theirs._pointer
    del theirs
    gc.collect()
    with pytest.raises(usm.InterfaceError, match="unknown"):
        usm.asarray(producer)


def test_memory_of_another_context_is_refused(dpctl):
    """Two native contexts of one device do not know each other's pointers."""
    library = ctypes.CDLL(str(pathlib.Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so"))
    create = library.DPCTLContext_Create
    create.restype, create.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    device = dpctl.SyclDevice("cpu")
    other = create(device.addressof_ref(), None, 0)
    name = ctypes.create_string_buffer(b"SyclContextRef")

    theirs = dpctl.memory.MemoryUSMShared(64, queue=dpctl.SyclQueue("cpu"))
    with pytest.raises(usm.InterfaceError, match="unknown"):
        usm.asarray(Wrapped(theirs, syclobj=new_capsule(other, name, None)))

    elsewhere = usm.zeros(64, "|u1", queue=new_capsule(other, name, None))
    assert elsewhere.context != usm.asarray(theirs).context
    array = usm.asarray(theirs)
    # Across contexts a copy goes by way of the host, and a queue of one does not take memory of the
    # other.
    usm.copy(array, elsewhere)
    with pytest.raises(usm.RequestError, match="context"):
        elsewhere.queue.copy(elsewhere, array)


def test_empty_arrays_are_exchanged_both_ways(dpctl, dpnp, sycl):
    theirs = dpnp.zeros((0, 3), dtype="f4")
    array = usm.asarray(theirs)
    assert (array.shape, array.size, array.tolist()) == ((0, 3), 0, [])
    ours = usm.zeros((0, 3), "<f4", queue=sycl)
    assert ours.__sycl_usm_array_interface__["data"][0] != 0
    assert usm.asarray(Wrapped(ours)).shape == (0, 3)
    null = Wrapped(ours, data=(0, False))
    assert usm.asarray(null).shape == (0, 3)


def test_our_dictionaries_follow_the_documents(sycl, dpctl):
    array = usm.zeros((2, 3, 4), "<i4", queue=sycl)
    whole = array.__sycl_usm_array_interface__
    assert whole["version"] == 1 and whole["data"] == (array.pointer, False)
    assert (whole["strides"], whole["offset"], whole["typestr"]) == (None, 0, "|i4")
    assert type(whole["syclobj"]) is dpctl.SyclQueue
    part = array[:, ::-1].__sycl_usm_array_interface__
    assert part["data"] == (array.pointer, False)
    assert (part["shape"], part["strides"], part["offset"]) == ((2, 3, 4), (12, -4, 1), 8)
    assert array[::-1, ::-1, ::-1].__sycl_usm_array_interface__["offset"] == 23
    host = usm.zeros(3, queue="host")
    assert not hasattr(host, "__sycl_usm_array_interface__")


def test_structures_pass_with_their_members(np, sycl):
    dtype = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("pad", "V3")])
    data = np.zeros(3, dtype)
    data["b"] = 1.5
    array = usm.asarray(data, kind="shared", queue=sycl)
    back = usm.asarray(Wrapped(array))
    assert back.dtype == dtype and back.dtype.str == "|V23"
    assert np.asarray(back).dtype == dtype
    assert np.array_equal(np.asarray(back), data)


def test_every_queue_keeps_its_identity(dpctl):
    """There may be any number, and objects dropped by the program are dropped here too."""
    import gc

    def alive():
        return sum(type(it) is dpctl.SyclQueue for it in gc.get_objects())

    before = alive()
    queues = [dpctl.SyclQueue("opencl:cpu") for _ in range(100)]
    first = [usm.Queue(queue) for queue in queues]
    assert [usm.Queue(queue) for queue in queues] == first and len(set(first)) == 100
    del queues, first
    for _ in range(300):
        usm.Queue(dpctl.SyclQueue("opencl:cpu"))
    assert alive() - before < 250
