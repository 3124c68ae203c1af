"""Elements, rows by masks and lists, and the shapes of one dimension, beside NumPy's."""

import copy
import gc
import pickle
import random
import threading
import weakref

import pytest
from conftest import require

import usm

np = require("numpy", "the oracle of elements")
HOST = usm.Queue("host")


def test_an_element_is_a_view_of_its_memory(queue):
    array = usm.asarray(np.arange(12.0).reshape(3, 4), queue=queue, copy=True)
    element = array[1, 2]
    assert (element.shape, element.strides, element.ndim, element.size) == ((), (), 0, 1)
    assert (element.dtype, element.kind, element.nbytes) == (array.dtype, array.kind, 8)
    assert element.pointer == array.pointer + 6 * 8 and element.queue == array.queue
    array[1, 2] = 50
    assert element.item() == element.tolist() == float(element) == 50 and element + 1 == 51
    element.fill(7)
    assert array.tolist()[1] == [4, 5, 7, 7]
    # An element of an element is the same one.
    for same in (element[()], element[...], element[()][()]):
        assert same.pointer == element.pointer and same.item() == 7
    assert element[None].shape == (1,) and pickle.loads(pickle.dumps(element)).item() == 7


def test_an_element_keeps_the_memory(np):
    theirs = np.arange(1000.0)
    end = weakref.finalize(theirs, lambda: None)
    element = usm.asarray(theirs)[7]
    row = next(iter(usm.asarray(theirs)[8:]))
    del theirs
    gc.collect()
    assert end.alive and (element.item(), row.item()) == (7, 8)
    element = None
    gc.collect()
    assert end.alive
    row = None
    gc.collect()
    assert not end.alive


def test_an_element_of_read_only_memory_is_read_only(np):
    theirs = np.arange(4.0)
    theirs.flags.writeable = False
    for element in (usm.asarray(theirs)[1], next(iter(usm.asarray(theirs)))):
        assert element.readonly
        with pytest.raises(usm.AccessError):
            element.fill(1)
        with pytest.raises(usm.AccessError):
            element[...] = 1
    assert theirs.tolist() == [0, 1, 2, 3]


def test_no_array_is_visited_by_the_collector(np):
    array = usm.zeros((2, 3), queue=HOST)
    made = [array, array[0], array[0, 0], array.T, array.reshape(6), next(iter(array)), array[[0]]]
    made += [usm.asarray(np.zeros(3)), usm.empty(3, queue=HOST), usm.full(3, 1.0, queue=HOST), array.ravel()]
    made += [array.copy(), copy.copy(array), copy.deepcopy(array), array.view("i8"), pickle.loads(pickle.dumps(array))]
    made += [usm.asarray([1.0]), usm.asarray(np.zeros(3), copy=True), array.astype("f4"), usm.asarray(b"abc"), array[array.__array__() == 0]]
    arena = usm.plan([(0, 2, 64)]).arena(queue=HOST)
    made += [arena[key] for key in arena.keys()] + [arena.array(arena.keys()[0], 2, "f4")]
    assert not any(map(gc.is_tracked, made))


def test_many_threads_use_one_element(np):
    element = usm.zeros(3, "i8", queue=HOST)[1]
    start = threading.Barrier(8)
    strides = []

    def use():
        start.wait()
        strides.append((element.strides, element.pointer, element.item()))

    threads = [threading.Thread(target=use) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(strides)) == 1 and len(strides) == 8


def index(random, extent):
    return random.randrange(-extent - 1, extent + 1)


def outcome(run):
    """The result, or the class of the exception."""
    try:
        result = run()
    except Exception as error:
        return type(error)
    return np.asarray(result).tolist(), np.asarray(result).shape


def test_keys_select_what_numpy_selects():
    """Random arrays, strides and keys; an index outside is the same class of error."""
    random_ = random.Random(40)
    kinds, errors = ["f8", "<i2", ">f4", "c16", "?", [("x", "f4"), ("y", "i2")]], 0
    for _ in range(1500):
        shape = [random_.randrange(0, 5) for _ in range(random_.randrange(1, 4))]
        base = np.arange(int(np.prod(shape)) * 2, dtype="u1").astype(random_.choice(kinds)).reshape([2, *shape])
        theirs = base[1]
        if random_.random() < 0.4:
            theirs = theirs[..., ::-1] if random_.random() < 0.5 else theirs.T
        extent = theirs.shape[0]
        key = random_.choice(
            [
                lambda: [index(random_, extent) for _ in range(random_.randrange(0, 4))],
                lambda: np.array([random_.random() < 0.5 for _ in range(extent + (random_.random() < 0.1))], bool),
                lambda: [random_.random() < 0.5 for _ in range(extent)],
                lambda: tuple(index(random_, one) for one in theirs.shape),
                lambda: index(random_, extent),
                lambda: np.random.default_rng(random_.randrange(99)).random(theirs.shape) < 0.5,
            ]
        )()
        ours = usm.asarray(theirs, queue=HOST)
        expected = outcome(lambda: theirs[key])
        assert outcome(lambda: ours[key]) == expected, (theirs.shape, theirs.strides, theirs.dtype, key)
        errors += isinstance(expected, type)
    assert errors > 50


def test_rows_by_a_key_are_a_copy(np):
    array = usm.asarray(np.arange(12.0).reshape(4, 3), queue=HOST, copy=True)
    for key in ([1, 2], np.array([False, True, True, False])):
        rows = array[key]
        assert type(rows) is usm.Array and rows.kind == array.kind and rows.is_c_contiguous
        rows.fill(0)
        assert array.tolist()[1] == [3, 4, 5]


def test_ravel_shares_or_copies_as_numpy_does(queue):
    theirs = np.arange(24.0).reshape(2, 3, 4)
    ours = usm.asarray(theirs, queue=queue, copy=True)
    for cut in (lambda a: a, lambda a: a.T, lambda a: a[1], lambda a: a[:, 1], lambda a: a[:0], lambda a: a[0, 0, 0, ...]):
        made = cut(ours).ravel()
        assert made.tolist() == cut(theirs).ravel().tolist() and made.kind == ours.kind
        is_view = np.shares_memory(cut(theirs).ravel(), theirs) or cut(theirs).size == 0
        assert (made.pointer == cut(ours).pointer) == is_view or cut(theirs).size == 0


def test_ravel_takes_numpys_orders(queue):
    theirs = np.arange(24.0).reshape(2, 3, 4)
    ours = usm.asarray(theirs, queue=queue, copy=True)
    for cut in (lambda a: a, lambda a: a.T, lambda a: a[:, 1], lambda a: a[:, ::-1].T, lambda a: a[:0], lambda a: a[0, 0, 0, ...]):
        for order in "CFAcfa":
            assert cut(ours).ravel(order).tolist() == cut(theirs).ravel(order).tolist(), order
    turned = ours.T
    assert turned.ravel(order="F").pointer == turned.ravel(order="A").pointer == ours.pointer
    for order in ("K", "x", ""):
        with pytest.raises(usm.RequestError, match="none of C, F, A"):
            ours.ravel(order)
    with pytest.raises(TypeError, match="order"):
        ours.ravel(1)


def test_an_index_beyond_64_bits_is_out_of_bounds(np):
    array = usm.zeros((2, 3), queue=HOST)
    for key in (2**100, -(2**100), 2**64, (0, 2**100)):
        for read in (lambda: array[key], lambda: array[0][key], lambda: array.__setitem__(key, 1)):
            with pytest.raises(IndexError):
                read()
    with pytest.raises(IndexError, match="more than 64 bits is out of bounds for axis 1 of 3 elements"):
        array[0, 2**100]


def test_ctypes_is_numpys(np):
    array = usm.zeros((2, 3), "f4", queue=HOST)
    assert array.ctypes.data == array.pointer and tuple(array.ctypes.shape) == (2, 3)
    with pytest.raises(usm.AccessError, match="does not compute|cannot read"):
        usm.zeros(3, kind="device", queue=HOST).ctypes


def test_transpose_takes_the_axes_of_numpy(queue):
    theirs = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    ours = usm.asarray(theirs, queue=queue, copy=True)
    for axes in [(), (None,), (0, 2, 1), ((2, 0, 1),), (-1, 0, 1), ([1, 0, 2],)]:
        assert ours.transpose(*axes).tolist() == theirs.transpose(*axes).tolist(), axes
        assert ours.transpose(*axes).pointer == ours.pointer
    assert ours[0, 0].transpose(0).tolist() == theirs[0, 0].tolist()
    assert ours[0, 0, :0].transpose().shape == (0,)
    for axes in [(0,), (0, 1), (0, 1, 1), (0, 1, 3), (0, 1, -4), (0, 1, 2, 3), (2**80, 0, 1)]:
        with pytest.raises((ValueError, OverflowError), match="transpose: the axes|too large"):
            ours.transpose(*axes)
    with pytest.raises(TypeError):
        ours.transpose("a", 0, 1)


def test_masks_and_lists_store_in_host_memory():
    for kind in ("host", "shared"):
        theirs = np.arange(12.0).reshape(3, 4)
        ours = usm.asarray(theirs, kind=kind, copy=True)
        for array in (ours, theirs):
            array[np.asarray(array) > 8] = -1
            array[[0, 2]] = [9, 8, 7, 6]
            array[1, [True, False, True, False]] *= 2
        ours[usm.asarray([False, True, False])] = ours[0]
        theirs[[False, True, False]] = theirs[0]
        assert ours.tolist() == theirs.tolist()
        with pytest.raises(ValueError, match="broadcast|shape mismatch"):
            ours[[0, 1]] = [1, 2, 3]
        with pytest.raises(IndexError):
            ours[[7]] = 1
    theirs.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        usm.asarray(theirs)[[0]] = 1


def test_a_store_by_values_in_device_memory_says_what_to_do(queue):
    array = usm.zeros(3, queue=queue, kind="device")
    with pytest.raises(usm.AccessError, match=r"a store at an index of values is not defined; use usm\.elementwise"):
        array[[0]] = 1


def test_what_device_memory_lacks_says_what_to_do(queue):
    array = usm.zeros(3, queue=queue, kind="device")
    for index in ([0], [True, False, True]):
        with pytest.raises(usm.AccessError, match=r"usm\.to_numpy\(array\)\[index\], or a kernel"):
            array[index]
    with pytest.raises(usm.AccessError, match=r"usm\.to_numpy\(array\) copies it"):
        array.ctypes
