"""Python's expectations of every object: help, names, weak references, sizes, texts, errors."""

import copy
import gc
import importlib.metadata
import inspect
import json
import pickle
import pydoc
import subprocess
import sys
import weakref

import pytest

import usm
import usm.memory
import usm.nrt


def test_the_package_can_be_inspected():
    assert usm.__version__ == importlib.metadata.version("usm") and "__version__" in dir(usm)
    assert "Unified Shared Memory" in pydoc.render_doc(usm)
    assert {name for name, _ in inspect.getmembers(usm)} >= set(usm.__all__)


def test_the_package_can_be_inspected_without_numba():
    program = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "numpy", "dpctl", "dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
import inspect, pydoc, usm
for name in ("numba", "dask"):
    assert not hasattr(usm, name) and name not in dir(usm)
assert pydoc.render_doc(usm) and len(inspect.getmembers(usm)) > 20
for name in ("numba", "dask"):
    try:
        getattr(usm, name)
    except AttributeError as error:
        assert f"pip install {name}" in str(error)
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("queue", lambda: usm.zeros(3, queue=5)),
        ("queue", lambda: usm.asarray([1], queue=b"host")),
        ("queue", lambda: usm.memory.MemoryUSMHost(8, queue=5)),
        ("device", lambda: usm.zeros(3, device=5)),
        ("device", lambda: usm.Queue(5)),
        ("device", lambda: usm.Context(5)),
        ("device", lambda: usm.zeros(3, queue="host").to_device(5)),
        ("selector", lambda: usm.Device(5)),
        ("shape", lambda: usm.zeros("3", queue="host")),
        ("shape", lambda: usm.zeros(1.5, queue="host")),
        (r"shape\[1\]", lambda: usm.zeros((1, None), queue="host")),
        ("dtype", lambda: usm.zeros(3, 5, queue="host")),
        ("kind", lambda: usm.zeros(3, kind=5, queue="host")),
        ("kind", lambda: usm.asarray(b"1", kind=b"host")),
        ("kind", lambda: usm.zeros(3, queue="host").copy(kind=None or 7)),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_right_ones(name, call):
    with pytest.raises(TypeError, match=f"{name}: an object of type .* does not fit; .* does"):
        call()


def test_an_impossible_extent_is_a_request_error():
    for shape in (1 << 100, (1 << 100,), (2, -(1 << 70)), (1 << 62, 1 << 62)):
        with pytest.raises(ValueError, match="shape"):
            usm.empty(shape, device="host")


def test_objects_accept_weak_references():
    array = usm.zeros(3, queue="host")
    objects = [array, usm.memory.as_usm_memory(array), array.queue, array.context, usm.Device("host"), array.queue.barrier(), array.dtype]
    references = [weakref.ref(it) for it in objects]
    assert all(reference() is it for reference, it in zip(references, objects))
    values = weakref.WeakValueDictionary({"array": array})
    ended = []
    weakref.finalize(array, ended.append, 1)
    del objects, array
    gc.collect()
    assert not values and ended == [1] and [reference() for reference in references][:2] == [None, None]


def test_the_size_counts_what_the_array_owns():
    array = usm.zeros(1000, "<f8", queue="host")
    small = sys.getsizeof(array[:0])
    assert 8000 + small >= sys.getsizeof(array) >= 8000
    for part in (array[1:], array.T, array.reshape(10, 100), usm.asarray(bytearray(8000)), usm.asarray(memoryview(array))):
        assert sys.getsizeof(part) == small


def test_the_text_shows_values_kind_and_device(queue, kind):
    end = f'kind="{kind}", device="{queue.device.selector}")'

    def text(values, dtype="<i4"):
        source = usm.asarray(values, dtype=dtype, queue="host")
        array = usm.empty(source.shape, dtype, kind=kind, queue=queue)
        usm.copy(array, source)
        return array, repr(array)

    assert text([[1, 2], [3, 4]])[1] == f'usm.Array([[1, 2], [3, 4]], shape=(2, 2), dtype="<i4", {end}'
    long, shown = text(list(range(100)))
    assert shown == f'usm.Array([0, 1, 2, ..., 97, 98, 99], shape=(100,), dtype="<i4", {end}'
    assert repr(long[::-1]).startswith("usm.Array([99, 98, 97, ..., 2, 1, 0], ")
    grid = repr(long.reshape(50, 2))
    assert grid.startswith("usm.Array([[0, 1], [2, 3], [4, 5], ..., [94, 95], [96, 97], [98, 99]], shape=(50, 2), ")
    assert repr(long[5]).startswith("usm.Array(5, shape=(), ") and repr(long[:0]).startswith("usm.Array([], shape=(0,), ")
    # Few elements are shown with any number of axes. The ends of many axes would be hundreds.
    assert repr(usm.asarray(b"abcd").reshape(1, 1, 1, 1, 4)).startswith("usm.Array([[[[[97, 98, 99, 100]]]]], ")
    assert repr(usm.zeros((3,) * 5, "i1")).startswith("usm.Array(..., shape=(3, 3, 3, 3, 3), ")


def test_an_array_of_members_has_a_text(np):
    members = "[('f0', '<i4'), ('f1', '<f4')]"
    array = usm.asarray(np.array([(1, 2), (3, 0.5)], "i4,f4"))
    assert repr(array).startswith(f"usm.Array([(1, 2.0), (3, 0.5)], shape=(2,), dtype={members}, ")
    assert array.tolist() == [(1, 2.0), (3, 0.5)]
    assert repr(usm.asarray(np.array([b"ab", b"c"]))).startswith("usm.Array([b'ab', b'c'], ")
    assert repr(usm.asarray(np.array(["ab", "c"]))).startswith("usm.Array(['ab', 'c'], ")


def test_backends_lists_runtimes_and_reasons():
    rows = {row["name"]: row for row in usm.backends()}
    for row in rows.values():
        assert list(row) == ["name", "compiled", "found", "library", "error", "devices"]
        assert row["compiled"] and (row["devices"] == [] or row["error"] is None) and (row["found"] or row["error"])
    assert [device["selector"] for row in rows.values() for device in row["devices"]] == [it.selector for it in usm.devices()]
    host = rows["host"]["devices"][0]
    assert host["capabilities"] == usm.Device("host").capabilities and json.dumps(list(rows.values()))


def test_a_selector_without_a_match_names_the_reason(tmp_path):
    program = """
import usm
for text in ("cuda", "gpu"):
    try:
        usm.Device(text)
    except usm.DeviceError as error:
        assert "no device matches" in str(error) and "/nonexistent/cuda.so" in str(error), error
assert "/nonexistent/cuda.so" in {row["name"]: row["error"] for row in usm.backends()}["cuda"]
"""
    environment = {"USM_CUDA_LIBRARY": "/nonexistent/cuda.so", "USM_LEVEL_ZERO_LIBRARY": "/nonexistent/ze.so"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env={**__import__("os").environ, **environment})


def test_device_and_queue_must_name_one_device(queue):
    device = queue.device
    for given in ({"device": device}, {"device": device.selector}, {"device": device, "queue": queue}, {"device": device, "queue": None}):
        for make in (lambda **more: usm.zeros(3, **more), lambda **more: usm.asarray([1], **more), lambda **more: usm.full(2, 1, **more)):
            assert make(**given).device == device
    other = usm.Device("host" if device.backend != "host" else next(it for it in usm.devices() if it.backend != "host").selector)
    with pytest.raises(usm.RequestError, match=f"device is {other.selector} and queue is on {device.selector}"):
        usm.zeros(3, device=other, queue=queue)


def test_to_device_keeps_the_kind(queue, kind):
    start = usm.empty((2, 3), "<i4", kind=kind, device="host")
    start.fill(7)
    moved = start.to_device(queue.device)
    assert moved.device == queue.device and moved.kind == kind and moved.tolist() == [[7] * 3] * 2
    assert moved.to_device(queue.device.selector) is moved and (moved is start) == (queue.device.backend == "host")
    assert start.copy(kind="host", device=queue.device).device == queue.device
    there = usm.Context(queue.device)
    assert moved.to_device(queue.device, stream=there).context == there


def test_like_functions_copy_shape_and_type(queue, kind, np):
    like = usm.empty((2, 3), "<i2", kind=kind, queue=queue)
    for made in (usm.empty_like(like), usm.zeros_like(like), usm.full_like(like, 5)):
        assert (made.shape, made.dtype, made.kind, made.context) == ((2, 3), "<i2", kind, like.context)
    assert usm.zeros_like(like).tolist() == [[0] * 3] * 2 and usm.full_like(like, 5, "<f4").tolist() == [[5.0] * 3] * 2
    assert usm.full((2,), 2.5, queue=queue).dtype == "f8" and usm.full(2, True, queue=queue).dtype == bool
    assert usm.full((), 3, "u1", device=queue.device).item() == 3
    made = usm.zeros_like(np.ones((2, 2), "f4"), device=queue.device)
    assert made.device == queue.device and made.dtype == np.float32 and made.kind == "shared"


def test_devices_travel_as_their_selectors():
    device = usm.Device("host")
    assert pickle.loads(pickle.dumps(device)) == device == copy.deepcopy(device)
    assert copy.deepcopy({"device": device}) == {"device": device}


def test_a_queue_names_the_copy_that_crosses_contexts():
    here, there = (usm.zeros(4, "u1", queue=usm.Context(usm.Device("host")).queue) for _ in range(2))
    queue = here.queue
    for pair in [(here, there), (there, here), (here, bytearray(4))]:
        with pytest.raises(usm.errors.RequestError, match=r"context.*usm\.copy"):
            queue.copy(*pair)


def test_lists_of_members_are_types(np):
    given = [("a", "f4"), ("b", "i8", (2,))]
    array = usm.zeros(2, given, device="host")
    assert "dtype=[('a', '<f4'), ('b', '<i8', (2,))]" in repr(array)
    with pytest.raises(TypeError, match="dtype: an object of type list does not fit"):
        usm.zeros(2, [1], device="host")
    moved = {"names": ["a", "b"], "formats": ["i4", "f4"], "offsets": [8, 0], "itemsize": 16}
    with pytest.raises(usm.errors.RequestError, match="dtype: members that `descr` cannot list"):
        usm.zeros(2, np.dtype(moved), device="host")
