"""`usm.DType`: equal to everything that means the same, with and without NumPy."""

import copy
import pickle
import subprocess
import sys

import pytest

import usm
from conftest import require

MEMBERS = [("a", "<i4"), ("b", "<f8", (2,)), ("", "|V4"), ("c", "|u1")]


def test_a_type_equals_what_means_the_same(np):
    dtype = usm.zeros(3, "<f4", queue="host").dtype
    for same in (np.float32, np.dtype("f4"), "float32", "<f4", "f4", usm.DType("f4"), usm.DType(np.float32)):
        assert dtype == same and same == dtype and not dtype != same, same
    for other in (np.float64, np.dtype(">f4"), "<f8", ">f4", "no type", None, 4, 4.0, object(), [], usm.DType("<i4"), np.zeros(1)):
        assert dtype != other and not dtype == other, other
    assert usm.DType(float) == "f8" and usm.DType(bool) == np.bool_ and usm.DType(int) == np.int64 and usm.DType(complex) == "c16"
    assert (dtype.str, dtype.name, dtype.kind, dtype.itemsize, str(dtype)) == ("<f4", "float32", "f", 4, "<f4")
    assert repr(dtype) == 'usm.DType("<f4")'
    for name in "? b B h H i I l L q Q e f d F D int uint intc uintc long ulong longlong intp half single double cdouble".split():
        assert usm.DType(name) == np.dtype(name), name


def test_equal_types_have_equal_hashes_and_numpy_dtypes(np):
    words = ["<f4", ">f4", "<i8", "|u1", "|b1", "<c16", "<M8[ns]", "|S3", "<U2"]
    types = {usm.DType(word) for word in words}
    assert len(types) == len(words) and types == {usm.DType(np.dtype(word)) for word in words}
    for word in words:
        assert np.dtype(usm.DType(word)) == np.dtype(word) and np.empty(1, usm.DType(word)).dtype == word


def test_a_structure_keeps_its_members(np):
    packed = np.lib.format.descr_to_dtype(MEMBERS)
    given = np.zeros(3, packed)
    given["c"] = 7
    dtype = usm.asarray(given).dtype
    assert dtype == packed and np.dtype(dtype) == packed and dtype.descr == MEMBERS and dtype.str == "|V25"
    assert dtype != np.dtype("V25") and hash(dtype) == hash(usm.DType(packed)) and dtype == usm.DType(packed)
    made = usm.empty(3, packed, queue="host")
    usm.copy(made, usm.asarray(given))
    assert made.dtype == packed and (np.asarray(made)["c"] == 7).all()
    assert usm.empty_like(made).dtype == packed
    for way in (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        assert way(dtype) == dtype and way(usm.DType("<f4")) == "<f4"


def test_values_that_are_not_types_are_refused():
    for wrong in (5, 2.5, None, object(), b"<f4", ("<f4",), {}):
        with pytest.raises(TypeError, match="dtype: an object of type .* fit"):
            usm.DType(wrong)
    for text in ("", "<f3", "no", "|O"):
        with pytest.raises(usm.RequestError):
            usm.DType(text)


def test_a_dtype_does_not_import_numpy():
    program = """
import sys, usm
a = usm.zeros(3, "float32", queue="host")
assert a.dtype == "<f4" and a.dtype == "float32" and a.dtype != float and a.dtype != object() and hash(a.dtype) == hash(usm.DType("f4"))
class float32: pass
float32.__module__ = "numpy"
assert a.dtype != float32
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_structures_are_copied_only_to_structures_of_the_same_members(np):
    """Every pair of types of eight bytes: numbers mean values, raw bytes (`|V8`) do not."""
    members = [
        [("a", "<i4"), ("b", "<f4")],
        [("b", "<f4"), ("a", "<i4")],
        [("a", "<f4"), ("b", "<i4")],
        [("a", ">i4"), ("b", "<f4")],
        [("a", [("a", "<i4"), ("b", "<f4")])],
        [("a", "<i8")],
        [("a", "<i4", (2,))],
        [("a", "<i4"), ("", "|V4")],
    ]
    for one in [*members, "|V8"]:
        for two in [*members, "|V8"]:
            target, source = (usm.zeros(2, it if isinstance(it, str) else usm._usm._rebuild_dtype("|V8", repr(it)), queue="host") for it in (one, two))
            if one == two or "|V8" in (one, two):
                usm.copy(target, source)
                target[...] = source
                continue
            for write in (lambda: usm.copy(target, source), lambda: target.__setitem__(..., source)):
                with pytest.raises(usm.RequestError, match="does not convert"):
                    write()
            with pytest.raises(usm.RequestError, match="was asked for"):
                usm.asarray(source, dtype=target.dtype)


def test_members_are_equal_however_they_are_spelled():
    one, two = (usm._usm._rebuild_dtype("|V8", text) for text in ("[('a', '<i4'), ('b', '<f4')]", '[("a","<i4"),["b",\'<f4\']]'))
    assert one == two and hash(one) == hash(two)


def test_the_package_has_a_name_for_each_type(np):
    numbers = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    for name in numbers:
        dtype = getattr(usm, name)
        assert dtype == name == np.dtype(name) == getattr(np, name) and dtype.name == np.dtype(name).name
        assert usm.zeros(1, dtype, device="host").dtype == dtype and hash(dtype) == hash(usm.DType(name))
    assert usm.bfloat16 not in [getattr(usm, name) for name in numbers] and usm.bfloat16 != usm.DType("<V2")


def test_bfloat16_without_numpy():
    program = """
import copy, pickle, sys, usm
assert usm.bfloat16 == "bfloat16" and usm.DType("bfloat16") == usm.bfloat16 and usm.bfloat16.itemsize == 2
made = usm.asarray([1.5, -2, 3e38], dtype=usm.bfloat16, device="host")
assert made.tolist()[:2] == [1.5, -2] and made.tobytes()[:4] == bytes([0xC0, 0x3F, 0, 0xC0])
for back in (pickle.loads(pickle.dumps(made)), copy.copy(made), usm.from_dlpack(made), made[::-1][::-1], made.copy(kind="device")):
    assert back.dtype == "bfloat16" and back.tolist() == made.tolist()
assert 'dtype="bfloat16"' in repr(made) and repr(made.dtype) == 'usm.DType("bfloat16")' and str(made.dtype) == "bfloat16"
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_types_of_ml_dtypes_keep_their_name(np):
    ml_dtypes = require("ml_dtypes", "types beyond NumPy's")
    for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        element = getattr(ml_dtypes, name)
        given = np.arange(6).astype(element).reshape(2, 3)
        array = usm.asarray(given)
        assert array.dtype == element == usm.DType(name) and array.dtype == given.dtype and array.pointer == given.ctypes.data
        for back in (usm.to_numpy(array), np.asarray(array), usm.to_numpy(array.copy(kind="device"))):
            assert back.dtype == given.dtype and (back == given).all()
        assert np.dtype(array.dtype) == given.dtype
        with pytest.raises(AttributeError, match=f"no type string means {name}"):
            array.__array_interface__
        assert usm.zeros(2, element, device="host").dtype == name
    # Half a byte has no type here, and is not taken for bytes.
    with pytest.raises(usm.InterfaceError, match="typestr.*ambiguous"):
        usm.asarray(np.ones(3, ml_dtypes.int4))


FLOATS = ("e3m4", "e4m3", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")


@pytest.mark.parametrize("name", [f"float8_{name}" for name in FLOATS])
def test_every_byte_of_a_float_has_its_value(np, name):
    ml_dtypes = require("ml_dtypes", "types beyond NumPy's")
    given = np.arange(256, dtype="u1").view(getattr(ml_dtypes, name))
    ours = usm.asarray(given)
    for here, there in zip(ours.tolist(), given.astype("f8").tolist(), strict=True):
        assert (here, np.signbit(here)) == (there, np.signbit(there)) or (here != here and there != there)
    assert ours[3].item() == float(given[3])


def test_types_of_ml_dtypes_are_read_without_it():
    program = '''
import sys
sys.modules["ml_dtypes"] = None
import usm
names = "bfloat16", "complex32", "bcomplex32", *("float8_" + name for name in sys.argv[1:])
import_numpy = lambda: __import__("numpy")
for step in (lambda: None, import_numpy):
    step()
    for name in names:
        array = usm.zeros(3, name, device="host")
        zero = 2.0 ** -127 if name == "float8_e8m0fnu" else 0.0
        assert array.tolist() == [zero] * 3 and array[0].item() == zero and repr(array).startswith("usm.Array([")
        if "numpy" not in sys.modules:
            continue
        for conversion in (usm.to_numpy, __import__("numpy").asarray, lambda it: it.dtype.dtype):
            try:
                conversion(array)
            except ImportError as error:
                assert "pip install ml_dtypes" in str(error) and name in str(error), error
            else:
                raise AssertionError(conversion)
'''
    subprocess.run([sys.executable, "-c", program, *FLOATS], check=True, timeout=60)


def test_numbers_of_16_bits_are_rounded_once():
    nearest = {"float16": (11, 2.0**-24, 65504.0), "bfloat16": (8, 2.0**-133, float.fromhex("0x1.fep127"))}
    tiny = 2.0**-45
    for name, (digits, least, most) in nearest.items():
        def stored(value):
            return [made.tolist()[0] for made in (usm.full(1, value, name, device="host"), usm.asarray([value], dtype=name, device="host"))]

        step = 2.0 ** (1 - digits)
        for sign in (1, -1):
            for scale in (1.0, 2.0**-7, 2.0**5):
                for even in (0, 2, 6):
                    # In a tie the even neighbour is taken.
                    low, tie, high = (sign * scale * (1 + (even + part) * step) for part in (0, 0.5, 1))
                    assert stored(tie) == [low] * 2
                    assert stored(tie + sign * scale * tiny) == [high] * 2, (name, tie)
                    assert stored(tie - sign * scale * tiny) == [low] * 2
                    assert stored(high + (high - tie) - sign * scale * tiny) == [high] * 2
            # The ends of the range.
            assert stored(sign * least * 0.5) == [0.0] * 2 and stored(sign * least * (0.5 + tiny)) == [sign * least] * 2
            assert stored(sign * least * 1.5) == [sign * 2 * least] * 2
            assert stored(sign * most) == [sign * most] * 2
            edge = most + most * step / (2 - step) / 2
            assert stored(sign * edge * (1 - tiny)) == [sign * most] * 2 and stored(sign * edge) == [sign * float("inf")] * 2
            assert stored(sign * 1e308) == [sign * float("inf")] * 2 == stored(sign * float("inf"))
        assert str(stored(-0.0)[0]) == str(stored(-1e-300)[0]) == "-0.0" and all(value != value for value in stored(float("nan")))
