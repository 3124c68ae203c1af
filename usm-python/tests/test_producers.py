"""Producers with several protocols: the one that states most is asked first, and what a protocol
cannot state is refused.

torch and CuPy are not installed here. These producers answer as they do; `gpu/exchange.py` asks the
real ones.
"""

import os
import subprocess
import sys
import textwrap

import pytest

import usm
from conftest import require

PRELUDE = """
import ctypes, gc, itertools, random
import usm
import cuda_driver
import effort
from hostile import DELETER, Legacy, Tensor, Versioned

driver = cuda_driver.Driver()
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# DLPack's code and bits, and the text of the dictionary; None: torch has none.
TYPES = {
    "bool": (6, 8, "|b1"), "int8": (0, 8, "|i1"), "uint16": (1, 16, "<u2"), "int64": (0, 64, "<i8"),
    "float16": (2, 16, "<f2"), "float32": (2, 32, "<f4"), "float64": (2, 64, "<f8"),
    "complex64": (5, 64, "<c8"), "complex128": (5, 128, "<c16"), "bfloat16": (4, 16, "<V2"),
    "float8_e4m3fn": (10, 8, None), "float8_e5m2": (12, 8, None), "float8_e4m3": (8, 8, "<V1"),
}
KINDS = {"device": 2, "host": 3, "shared": 13}
# A consumer deletes a tensor last of all, after the object that it took it from.
KEPT = []


def current():
    device = ctypes.c_int()
    driver.call("cuCtxGetDevice", ctypes.byref(device))
    return device.value


class Array:
    # One dimension of 4 elements.

    def __init__(self, dtype="float32", kind="device", device=0, conj=False, neg=False, legacy=False, grad=False):
        self.code, self.bits, self.text = TYPES[dtype]
        self.dtype, self.kind, self.device, self.conj, self.neg, self.legacy, self.grad = dtype, kind, device, conj, neg, legacy, grad
        self.address = driver.foreign(4 * self.bits // 8, kind, device)
        self.asked = []

    def __dlpack_device__(self):
        return (KINDS[self.kind], self.device)

    def exported(self, max_version):
        versioned = max_version is not None and not self.legacy
        dims, managed = (ctypes.c_int64 * 2)(4, 1), (Versioned if versioned else Legacy)()
        managed.deleter = DELETER(lambda this: None)
        at = [ctypes.cast(ctypes.addressof(dims) + 8 * index, ctypes.POINTER(ctypes.c_int64)) for index in (0, 1)]
        managed.tensor = Tensor(self.address, KINDS[self.kind], self.device, 1, self.code, self.bits, 1, *at, 0)
        if versioned:
            managed.major, managed.minor = 1, 0
        name = ctypes.create_string_buffer(b"dltensor_versioned" if versioned else b"dltensor")
        KEPT.append((dims, managed, name))
        return new_capsule(ctypes.addressof(managed), name, None)

    @property
    def __cuda_array_interface__(self):
        self.asked.append("dictionary")
        return {"shape": (4,), "typestr": self.text, "data": (self.address, False), "version": 3, "strides": None, **self.stream()}


class Torch(Array):
    # Refuses gradients, conjugation, other devices, and a stream of the host; says nothing of a
    # pending negation.

    def is_neg(self):
        return self.neg

    def stream(self):
        return {}

    @property
    def __cuda_array_interface__(self):
        if self.grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        if self.kind == "host":
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type")
        if self.text is None:
            raise KeyError(self.dtype)
        return super().__cuda_array_interface__

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        if self.grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.conj:
            raise BufferError("Can't export tensors with the conjugate bit set")
        if self.kind != "host" and current() != self.device:
            raise BufferError("Can't export tensors on a different CUDA device index.")
        if self.kind == "host":
            assert stream in (None, -1), "stream should be None on cpu."
        self.asked.append(("dlpack", stream))
        return self.exported(max_version)


class CuPy(Array):
    # Orders its work on the current device.

    def stream(self):
        return {"stream": 1}

    def __dlpack__(self, stream=None, max_version=None, **_):
        assert stream is None or type(stream) is int and stream != 0
        assert self.kind == "host" or current() == self.device
        self.asked.append(("dlpack", stream))
        return self.exported(max_version)


def refused(run, *errors):
    try:
        run()
    except errors as error:
        return str(error)
    raise AssertionError("accepted")
"""


@pytest.fixture
def run(cuda_driver):
    def run(code, **environment):
        environment = {**os.environ, **cuda_driver, **environment}
        program = PRELUDE + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    return run


def test_every_type_of_torch_and_cupy_arrives_as_it_is(run):
    run("""
        for producer, dtype, kind, device, legacy in itertools.product((Torch, CuPy), TYPES, KINDS, (0, 1), (False, True)):
            theirs = producer(dtype, kind, device, legacy=legacy)
            ours = usm.asarray(theirs)
            assert ours.dtype == usm.DType(dtype), (producer, dtype, ours.dtype)
            assert (ours.pointer, ours.kind, ours.base is theirs) == (theirs.address, kind, True)
            assert kind == "host" or ours.device.selector == f"cuda:gpu:{device}"
            (word, stream), *rest = theirs.asked
            # A structure without a version says nothing of read-only; the dictionary does.
            has_dictionary = producer is CuPy or (kind != "host" and TYPES[dtype][2])
            assert word == "dlpack" and rest == ["dictionary"] * bool(legacy and has_dictionary)
            assert ours.readonly == (legacy and not has_dictionary)
            # Memory of the host has no stream.
            assert (stream in (None, -1)) == (kind == "host")
    """)


def test_what_dlpack_refuses_for_its_content_is_not_taken_from_the_dictionary(run):
    run("""
        for dtype in TYPES:
            message = refused(lambda: usm.asarray(Torch(dtype, conj=True)), BufferError)
            assert "conjugate" in message, message
            assert "gradient" in refused(lambda: usm.asarray(Torch(dtype, grad=True)), BufferError)
            assert "resolve_neg" in refused(lambda: usm.asarray(Torch(dtype, neg=True)), usm.AccessError)
            assert "resolve_neg" in refused(lambda: usm.from_dlpack(Torch(dtype, neg=True)), usm.AccessError)
    """)


def test_the_dictionary_serves_what_dlpack_has_no_type_for(run):
    run("""
        class Records(CuPy):
            error, more = BufferError, {"typestr": "|V8", "descr": [("a", "<i4"), ("b", "<f4")]}
            def __dlpack__(self, **_):
                raise self.error("no such type")
            @property
            def __cuda_array_interface__(self):
                return {**super().__cuda_array_interface__, "shape": (2,), **self.more}
        ERRORS = (BufferError, TypeError, ValueError, RuntimeError, NotImplementedError, AttributeError, KeyError)
        BEYOND = [{}, {"typestr": "<M8[ns]"}, {"typestr": "|S4"}, {"typestr": ">f4"}, {"typestr": "|V8", "descr": None}, {"typestr": "<U1"}]
        WITHIN = [{"typestr": text} for _, _, text in TYPES.values() if text]
        for error in ERRORS:
            for more in BEYOND:
                theirs = type("R", (Records,), {"error": error, "more": more or Records.more})()
                assert usm.asarray(theirs).pointer == theirs.address, more
            # A refusal of numbers stays, and is the producer's own.
            for more in WITHIN:
                theirs = type("R", (Records,), {"error": error, "more": {"shape": (1,), **more}})()
                assert "no such type" in refused(lambda: usm.asarray(theirs), error)
        for error in (KeyboardInterrupt, SystemExit, MemoryError, RecursionError):
            refused(lambda: usm.asarray(type("R", (Records,), {"error": error})()), error)
        # The dictionary's own failure does not hide the first one.
        class Broken(Records):
            __cuda_array_interface__ = property(lambda self: {}[self])
        assert "no such type" in refused(lambda: usm.asarray(Broken()), BufferError)
        # Alone, the dictionary has no name for bfloat16.
        class Alone(Array):
            def stream(self):
                return {}
        for text in ("<V2", "<V1", ">V2", "<f1"):
            alone = Alone("float32")
            alone.text = text
            assert "typestr" in refused(lambda: usm.asarray(alone), usm.InterfaceError)
    """)


def test_strides_below_0_of_cupy_come_from_its_dictionary(run):
    """CuPy's DLPack divides them as numbers without a sign."""
    run("""
    class Backwards(CuPy):
        @property
        def __cuda_array_interface__(self):
            stated = {"data": (self.address + 12, False), "strides": (-4,)}
            return {**super().__cuda_array_interface__, **stated}

        def exported(self, max_version):
            capsule = super().exported(max_version)
            dims, managed, _ = KEPT[-1]
            dims[1] = (2**64 - 4) // 4
            managed.tensor.data = self.address + 12
            return capsule

    theirs = Backwards()
    ours = usm.asarray(theirs)
    assert (ours.strides, ours.pointer) == ((-4,), theirs.address + 12)
    # The same numbers from a producer whose dictionary goes forwards are refused.
    class Broken(Backwards):
        @property
        def __cuda_array_interface__(self):
            return CuPy.__cuda_array_interface__.fget(self)

    assert "strides" in refused(lambda: usm.asarray(Broken()), usm.errors.InterfaceError)
    """)


def test_random_producers_are_taken_whole_or_refused(run):
    """Every combination of what a tensor can be: its memory arrives with the right type, or not."""
    run("""
        source, taken = random.Random(36), 0
        for _ in range(effort.cases("USM_PRODUCER_CASES", 400)):
            choose = source.choice
            producer = choose((Torch, CuPy))
            dtype, conj, neg, grad = choose(list(TYPES)), choose((False, False, True)), choose((False, False, True)), choose((False, False, False, True))
            if producer is CuPy:
                conj = neg = grad = False
            theirs = producer(dtype, choose(list(KINDS)), choose((0, 1)), conj, neg, choose((False, True)), grad)
            read = choose((usm.asarray, usm.from_dlpack))
            try:
                ours = read(theirs)
            except BufferError:
                assert conj or neg or grad
                continue
            assert not (conj or neg or grad), "numbers that are not those of the tensor"
            assert (ours.dtype, ours.pointer, ours.kind) == (usm.DType(dtype), theirs.address, theirs.kind)
            taken += 1
        assert taken > 50
    """)


def test_work_on_page_locked_memory_follows_the_default_stream(run):
    """A producer that is told no stream orders its work there."""
    run("""
        theirs = Torch("float32", "host")
        driver.log()
        ours = usm.asarray(theirs)
        assert driver.log()[0] == "record 0x1"
    """)


def test_a_tensor_may_be_of_the_host_although_its_memory_is_page_locked(run):
    """As torch's are, by the tensor and by the device that it says."""
    run("""
        class Pinned(Torch):
            kinds = (3, 1)
            def __dlpack_device__(self):
                return (self.kinds[0], 0)
            def exported(self, max_version):
                capsule = super().exported(max_version)
                KEPT[-1][1].tensor.device_type = self.kinds[1]
                return capsule
        for kinds in ((3, 1), (3, 3), (1, 1), (1, 3)):
            for dtype in TYPES:
                theirs = type("Pinned", (Pinned,), {"kinds": kinds})(dtype, "host")
                for read in (usm.asarray, usm.from_dlpack):
                    ours = read(theirs)
                    assert (ours.pointer, ours.kind, ours.dtype) == (theirs.address, "host", usm.DType(dtype))
    """)


def test_a_signal_in_an_ambiguous_dictionary_goes_on():
    class Index:
        def __init__(self, error):
            self.error = error

        def __index__(self):
            raise self.error

    for error in (KeyboardInterrupt, MemoryError, ZeroDivisionError):

        class Producer:
            __array_interface__ = {"shape": (Index(error()),), "typestr": "<V2", "data": (4096, False), "version": 3}

            def __dlpack__(self, **_):
                raise AssertionError("asked")

        with pytest.raises(error):
            usm.asarray(Producer())


def test_a_class_of_numpy_arrays_keeps_types_that_the_text_cannot_name():
    numpy, ml_dtypes = require("numpy", "an array with its type"), require("ml_dtypes", "types of 8 bits")

    class Named(numpy.ndarray):
        pass

    class Bare:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.kept = array

    class Both(Bare):
        def __dlpack__(self, **arguments):
            return usm.asarray(self.kept).__dlpack__(**arguments)

    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e8m0fnu"):
        array = numpy.arange(4).astype(getattr(ml_dtypes, name))
        for named in (array, array.view(Named)):
            assert usm.asarray(named).dtype == usm.DType(name) and usm.validate(named) == array.nbytes
        assert usm.asarray(Both(array)).dtype == usm.DType(name)
        for read in (usm.asarray, usm.validate):
            with pytest.raises(usm.InterfaceError, match="typestr.*ambiguous"):
                read(Bare(array))
    # Bytes without a meaning have no byte order, and stay bytes.
    raw = numpy.zeros(3, "V2")
    assert usm.asarray(Bare(raw)).dtype == "|V2"
