"""What NumPy's users expect of an array: types, functions, operators, masks, conversion.

NumPy judges: the same expression over its own array gives the same values and types.
"""

import asyncio
import operator
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from conftest import lacking

import usm

BINARY = "add sub mul truediv floordiv mod pow lt le eq ne gt ge and_ or_ xor lshift rshift".split()


def both(np, values, dtype, kind="host"):
    """An array of ours and one of NumPy's with the same values."""
    plain = np.array(values, dtype)
    return usm.asarray(plain, kind=kind, device="host", copy=True), plain


def same(np, ours, theirs):
    assert type(ours) is type(theirs) and np.array_equal(ours, theirs) and ours.dtype == theirs.dtype


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_operators_compute_as_numpys(np, kind):
    ours, plain = both(np, [[1, 2, 3], [4, 5, 6]], "i4", kind)
    other, other_plain = both(np, [3, 2, 1], "i4", kind)
    for name in BINARY:
        function = getattr(operator, name)
        for one, two in [(ours, other), (ours, 2), (other, ours), (ours, other_plain), (other_plain, ours), (ours, other[0])]:
            numbers = [{id(ours): plain, id(other): other_plain}.get(id(it), it) for it in (one, two)]
            numbers = [it.item() if isinstance(it, usm.Array) else it for it in numbers]
            same(np, function(one, two), function(*numbers))
    same(np, 7 - ours, 7 - plain)
    same(np, ours @ other, plain @ other_plain)
    same(np, divmod(ours, 2)[1], divmod(plain, 2)[1])
    for name in ("neg", "pos", "invert", "abs"):
        same(np, getattr(operator, name)(ours), getattr(operator, name)(plain))
    assert {ours: 1}[ours] == 1 and len({ours, other}) == 2


def test_operators_in_place_write_into_the_array(np):
    ours, plain = both(np, [[8, 9, 10], [11, 12, 13]], "i4")
    kept, address = ours, ours.pointer
    for name in "iadd isub imul ifloordiv imod ior iand ixor ilshift irshift ipow".split():
        ours, plain = getattr(operator, name)(ours, 2), getattr(operator, name)(plain, 2)
        assert ours is kept and ours.pointer == address and ours.tolist() == plain.tolist(), name
    ours += usm.asarray([1, 2, 3], dtype="i4", device="host")
    assert (ours.tolist(), ours.dtype) == ((plain + np.array([1, 2, 3], "i4")).tolist(), "i4")
    # NumPy's rule: a float does not fit an integer's memory.
    with pytest.raises(TypeError, match="same_kind"):
        ours += 0.5
    view = np.arange(3)
    view.flags.writeable = False
    frozen = usm.asarray(view)
    with pytest.raises(ValueError, match="read-only"):
        frozen += 1
    assert view.tolist() == [0, 1, 2]


def test_elements_compute_and_format_as_numbers(queue):
    for kind in ("host", "shared", "device"):
        array = usm.asarray([[1.25, 2.5]], dtype="f4", kind=kind, queue=queue)
        assert (array[0, 0] + 1, 1 - array[0, 0], -array[0, 1], array[0, 0] * array[0, 1]) == (2.25, -0.25, -2.5, 3.125)
        assert type(array[0, 0] + 1) is float and divmod(array[0, 1], 2) == (1.0, 0.5) and abs(-array[0, 0]) == 1.25
        assert (f"{array[0, 0]:.1f}", f"{array[0, 1]}", f"{array[0]}") == ("1.2", "2.5", str(array[0]))
        assert array[0, 0] < array[0, 1] and array[0, 0] == 1.25 and max(array[0]) == 2.5 and sum(array[0]) == 3.75
        with pytest.raises(TypeError, match="tolist"):
            f"{array:.2f}"
    numbers = usm.asarray([3, 4], queue=queue)
    assert "abcde"[numbers[0]] == "d" and complex(numbers[1]) == 4 + 0j and hex(numbers[0]) == "0x3"
    for wrong in (numbers, usm.asarray([1.0], queue=queue)[0]):
        with pytest.raises(TypeError):
            operator.index(wrong)


def test_device_memory_says_what_to_call(np, queue):
    array = usm.zeros(3, kind="device", queue=queue)
    for compute in (
        lambda: array + 1,
        lambda: 1 + array,
        lambda: array == array,
        lambda: -array,
        lambda: operator.iadd(array, 1),
        lambda: np.add(array, 1),
        lambda: np.add(1.0, 2.0, out=array),
        lambda: array[[0, 1]],
    ):
        with pytest.raises(usm.AccessError, match=r"usm\.to_numpy"):
            compute()
    assert array.tolist() == [0, 0, 0]


def test_functions_of_numpy_take_and_fill_arrays(np):
    ours, plain = both(np, [1.0, 4.0, 9.0], "f8")
    out = usm.zeros(3, device="host")
    assert np.sqrt(ours, out=out) is out and out.tolist() == [1, 2, 3]
    assert np.add(ours, 1, out=ours) is ours and ours.tolist() == (plain + 1).tolist()
    whole, part = usm.zeros(3, device="host"), usm.zeros(3, device="host")
    answer = np.modf(np.array([1.5, 2.25, 3.0]), out=(part, whole))
    assert answer[0] is part and answer[1] is whole and (part.tolist(), whole.tolist()) == ([0.5, 0.25, 0], [1, 2, 3])
    same(np, np.add.reduce(ours), np.add.reduce(plain + 1))
    same(np, np.multiply.outer(ours, ours), np.multiply.outer(plain + 1, plain + 1))
    np.add.at(ours, [0, 0], 1)
    assert ours[0] == plain[0] + 3
    mask = usm.asarray([True, False, True], device="host")
    assert np.negative(plain, out=plain.copy(), where=mask).tolist() == [-1, 4, -9]
    assert np.sin(ours, dtype="f4").dtype == "f4"


def test_another_class_with_functions_of_its_own_is_asked(np):
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return ufunc.__name__, [type(it).__name__ for it in inputs]

        def __radd__(self, other):
            return "theirs"

    class Silent:
        __array_ufunc__ = None

        def __rmul__(self, other):
            return "asked"

    array = usm.zeros(2, device="host")
    assert np.add(array, Other()) == ("add", ["Array", "Other"])
    assert array + Other() == "theirs" and array * Silent() == "asked"


def test_types_are_what_numpy_asks_for(np):
    for name in "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split():
        for spelling in (name, np.dtype(name).newbyteorder(">").str):
            theirs, ours = np.dtype(spelling), usm.DType(spelling)
            for attribute in "byteorder isnative kind char num itemsize str name type shape subdtype names fields hasobject".split():
                assert getattr(ours, attribute) == getattr(theirs, attribute), (spelling, attribute)
            assert ours.base is ours and ours.__numpy_dtype__ == theirs and np.dtype(ours) == theirs
        array = usm.zeros(2, name, device="host")
        assert np.dtype(array.dtype) == name and array.__numpy_dtype__ == np.dtype(name)
        assert np.result_type(array, np.float32) == np.result_type(np.zeros(2, name), np.float32)
    record = usm.DType([("a", "i4"), ("b", "f8")])
    assert record.names == ("a", "b") and record.fields["b"] == np.dtype(record).fields["b"]
    assert usm.DType("int") == int and usm.DType("uint") == np.uint64 and usm.DType("int") == np.int64
    # Compared twice: by attributes at first, then by what is remembered.
    for _ in range(3):
        for name in ("float32", "int64", "bool_"):
            assert usm.DType(name) == getattr(np, name) and usm.DType(name) != np.int8 and usm.DType(name) == np.dtype(getattr(np, name))


def test_masks_and_lists_read_copies(np):
    for kind in ("host", "shared"):
        ours, plain = both(np, range(12), "i4", kind)
        ours, plain = ours.reshape(3, 4), plain.reshape(3, 4)
        mask = plain % 3 == 0
        for key in ([0, 2], [[0], [1]], mask, usm.asarray(mask), (slice(None), [1, -1]), (np.array([0, 1]), np.array([2, 3])), ([True, False, True],), np.zeros(3, bool)):
            theirs = plain[tuple(np.asarray(it) if isinstance(it, usm.Array) else it for it in key) if isinstance(key, tuple) else np.asarray(key)]
            found = ours[key]
            assert type(found) is usm.Array and found.kind == kind and found.shape == theirs.shape and found.tolist() == theirs.tolist()
        found = ours[[0]]
        found[:] = 0
        assert ours.tolist() == plain.tolist()
        with pytest.raises(IndexError):
            ours[[3]]


def test_stores_convert_within_their_kind(np, queue):
    for kind in ("host", "device"):
        array = usm.zeros((2, 2), "f4", kind=kind, queue=queue)
        array[:] = np.array([[1.5, 2], [3, 4]])
        array[0] = usm.asarray([5, 6], dtype="i2", queue=queue)
        assert array.tolist() == [[5, 6], [3, 4]]
        whole = usm.zeros(2, "i4", kind=kind, queue=queue)
        with pytest.raises(usm.RequestError, match=r"<f8 do not convert to <i4 .*astype"):
            whole[:] = np.array([1.5, 2])
        whole[:] = np.array([7, 8], "i8")
        assert whole.tolist() == [7, 8]


def test_astype_copies_and_converts(np, queue):
    for kind in ("host", "shared", "device"):
        array = usm.asarray([1.75, -2.5, 3], dtype="f8", kind=kind, queue=queue)
        for name in ("i4", "f4", "c16", ">i2", "bool"):
            found = array.astype(name)
            assert (found.kind, found.dtype, found.tolist()) == (kind, name, np.array([1.75, -2.5, 3]).astype(name).tolist())
        assert array.astype("f8").pointer != array.pointer and array.astype("f8", copy=False) is array
        with pytest.raises(TypeError, match="same_kind"):
            array.astype("i4", casting="same_kind")


class Answers:
    """An object whose only protocol is `__array__`."""

    def __init__(self, answer):
        self.answer = answer

    def __array__(self, dtype=None, copy=None):
        return self.answer()


def test_objects_with_only_an_array_method(np):
    plain = np.arange(3.0)
    shared = usm.asarray(Answers(lambda: plain))
    plain[0] = 7
    assert shared.tolist() == [7, 1, 2] and usm.asarray(Answers(lambda: plain), copy=False).pointer == plain.ctypes.data
    # Another memory at each call is no memory to share: a copy, or an error where none is wanted.
    fresh = Answers(lambda: np.arange(3.0))
    assert usm.asarray(fresh, device="host").tolist() == [0, 1, 2]
    with pytest.raises(usm.AccessError, match="no memory that could be shared"):
        usm.asarray(fresh, copy=False)
    # A dataset of a file is read at each answer.
    answers = []
    dataset = Answers(lambda: answers.append(1) or np.arange(3.0))
    for options in ({}, {"device": "host"}, {"copy": True}, {"dtype": "f8"}):
        answers.clear()
        assert usm.asarray(dataset, **options).tolist() == [0, 1, 2] and len(answers) == 2, options
    with pytest.raises(usm.InterfaceError, match="__array__ returned an object of type list"):
        usm.asarray(Answers(lambda: [1]))
    with pytest.raises(KeyError):
        usm.asarray(Answers(lambda: {}["missing"]))
    with pytest.raises(usm.Error):
        usm.asarray(Answers(lambda: np.array([object()])))
    frozen = np.arange(2)
    frozen.flags.writeable = False
    assert usm.asarray(Answers(lambda: frozen)).readonly


def test_tables_of_pandas_share_their_memory(np):
    pandas = pytest.importorskip("pandas", reason="no pandas (not in the set-up)")
    series = pandas.Series([1.0, 2.0])
    assert usm.asarray(series).tolist() == [1, 2] and usm.asarray(series).pointer == np.asarray(series).ctypes.data


def test_names_of_other_libraries_have_a_remedy():
    for name, remedy in {"array": "asarray", "ones": "full", "arange": "range", "dtype": "DType", "sum": "reduce", "Stream": "Queue"}.items():
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': use usm\.{remedy}|no attribute '{name}': use .*{remedy}"):
            getattr(usm, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        usm.nothing
    assert {"adapt", "errors"} <= set(dir(usm)) and all(hasattr(usm, name) for name in dir(usm))


def test_errors_name_the_place_and_the_value(tmp_path):
    with pytest.raises(TypeError, match=r"shape\[1\]: an object of type float"):
        usm.zeros((2, 3.5), device="host")
    with pytest.raises(OverflowError, match="value 300 does not fit"):
        usm.full(3, 300, "u1", device="host")
    with pytest.raises(FileNotFoundError) as raised:
        usm.plan(tmp_path / "nothing.onnx")
    assert pathlib.Path(raised.value.filename) == tmp_path / "nothing.onnx"


def test_an_event_is_awaited(queue):
    async def work():
        array = usm.zeros(1000, queue=queue)
        first = await queue.copy(array, usm.asarray([1.0] * 1000, queue=queue))
        await queue.barrier()
        return first, array.tolist() == [1.0] * 1000

    assert asyncio.run(work()) == (None, True)
    with pytest.raises(RuntimeError, match="no running event loop"):
        queue.barrier().__await__()


def test_a_stream_of_cuda_is_told_by_queues_of_cuda_only(queue):
    if queue.context.device.selector.startswith(("cuda", "hip")):
        number, handle = queue.__cuda_stream__()
        assert number == 0 and handle > 0
    else:
        with pytest.raises(AttributeError, match="no CUDA stream"):
            queue.__cuda_stream__()


def test_methods_of_numpys_arrays_say_what_to_call(np):
    array = usm.asarray([[3, 1], [2, 4]], dtype="f4", device="host")
    names = [name for name, it in vars(usm.Array).items() if (it.__doc__ or "").startswith("Not here: use ")]
    assert {"sum", "prod", "min", "max", "mean", "std", "argmax", "sort", "all", "cumsum", "numpy", "get"} <= set(names)
    for name in names:
        with pytest.raises(AttributeError, match=f"^'usm.Array' object has no attribute '{name}': use [a-z]"):
            getattr(array, name)
        assert not hasattr(array, name) and name not in dir(array)
    assert "shape" in dir(array) and "__array_interface__" in dir(array)
    with pytest.raises(AttributeError, match=r'use usm.reduce\(array, "sum"\)'):
        usm.zeros(3, kind="device", device="host").sum()
    # What they say works, and NumPy's functions find no method.
    assert usm.reduce(array, "sum").item() == np.sum(array) == 10 and usm.reduce(array, "any").item() is True
    assert usm.reduce(array) / array.size == np.mean(array) == 2.5 and np.squeeze(array).shape == (2, 2)
    assert usm.sort(array).tolist() == np.sort(array).tolist() and usm.argmax(array).item() == np.argmax(array) == 3


def test_without_numpy_operators_name_it():
    code = """
import sys
import textwrap
sys.modules["numpy"] = None
import usm
array = usm.zeros(3, device="host")
for compute in (lambda: array + 1, lambda: -array):
    try:
        compute()
    except TypeError as error:
        print("NumPy, which is not installed" in str(error))
print(array[0] + 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True", "1.0"], done.stderr


def test_the_oldest_numpy_is_served_too():
    folder = os.environ.get("USM_NUMPY_1")
    if folder is None or not pathlib.Path(folder).is_dir():
        lacking("numpy_1", "USM_NUMPY_1 names no folder with NumPy 1.26")
    program = """
        import numpy as np, usm
        assert np.__version__.startswith("1."), np.__version__
        a = usm.asarray(np.arange(6, dtype="f8").reshape(2, 3))
        assert a.__array__().tolist() == a.tolist() and a.__array__("f4").dtype == "f4"
        assert np.asarray(a).ctypes.data == a.__array__(copy=False).ctypes.data
        b = usm.zeros(3, "bfloat16", kind="host")
        assert b.__array__().shape == (3,)
        a += 1
        assert np.add(a, 1).tolist() == [[2, 3, 4], [5, 6, 7]] and (a * 2).dtype == "f8"
        assert np.result_type(a, np.float32) == "f8" and np.dtype(a.dtype) == "f8"
        assert np.sum(a) == 21
    """
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
