"""Copies and pickles of arrays, in one process and to another."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import warnings

import pytest

import usm


def made(queue, kind, values=(1, 2, 3, 4, 5, 6)):
    source = usm.asarray(list(values), dtype="<i4", queue="host")
    array = usm.empty(len(values), "<i4", kind=kind, queue=queue)
    usm.copy(array, source)
    return array.reshape(2, 3)


def ways():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield lambda it, protocol=protocol: pickle.loads(pickle.dumps(it, protocol))

    def apart(it):
        buffers = []
        data = pickle.dumps(it, 5, buffer_callback=buffers.append)
        return pickle.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])

    yield apart


@pytest.mark.parametrize("way", list(ways()))
def test_a_pickle_keeps_values_kind_and_device(queue, kind, way):
    array = made(queue, kind)
    for view in (array, array[:, ::-1], array[1:], array.T, array[0, 1], array[:0]):
        back = way(view)
        assert (back.tolist(), back.shape, back.dtype, back.kind, back.device) == (view.tolist(), view.shape, view.dtype, kind, queue.device)
        back.fill(7)
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_views_pickle_only_their_elements_and_large_arrays_out_of_band():
    array = usm.zeros(1 << 20, "|u1", kind="host", device="host")
    assert len(pickle.dumps(array[5:15])) < 1000
    buffers = []
    data = pickle.dumps(array, 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and buffers[0].raw().nbytes == 1 << 20
    back = pickle.loads(data, buffers=buffers)
    # Neither way is a copy on the host.
    back.fill(3)
    assert back.pointer == array.pointer and array[7].item() == 3


def test_pickles_keep_read_only(queue):
    array = usm.asarray(b"fixed")
    for way in ways():
        back = way(array)
        assert back.readonly and back.tobytes() == b"fixed"
        with pytest.raises(usm.AccessError):
            back.fill(1)
    for copied in (copy.copy(array), copy.deepcopy(array)):
        copied.fill(65)
        assert copied.tobytes() == b"AAAAA" and array.tobytes() == b"fixed"


def test_copies_have_memory_of_their_own(queue, kind):
    array = made(queue, kind)
    for copied in (copy.copy(array), copy.deepcopy(array), copy.deepcopy({"a": [array, array]})["a"][1]):
        assert (copied.kind, copied.context, copied.tolist()) == (kind, array.context, array.tolist())
        copied.fill(0)
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]
    twice = copy.deepcopy([array, array])
    assert twice[0] is twice[1]


def test_pickles_keep_members(np):
    array = usm.asarray(np.ones(3, "i4,f8"))
    back = pickle.loads(pickle.dumps(array))
    assert back.dtype == array.dtype and (np.asarray(back) == np.asarray(array)).all()


def test_an_absent_device_is_replaced_with_one_warning(monkeypatch):
    monkeypatch.setenv("USM_DEVICE", "host")
    data = pickle.dumps(usm.full(3, 2, kind="shared", device="host"), 2).replace(b"host:host:0", b"host:host:9")
    with pytest.warns(RuntimeWarning, match="host:host:9 is not here, so it is on host:host:0"):
        back = pickle.loads(data)
    assert back.tolist() == [2, 2, 2] and back.device == usm.Device("host") and back.kind == "shared"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(data).tolist() == [2, 2, 2]


def test_an_altered_pickle_is_refused():
    rebuild, state = usm.zeros((2, 3), "<i4", kind="host", device="host").__reduce_ex__(4)
    assert rebuild(*state).tolist() == [[0] * 3] * 2
    altered = [
        (0, bytes(23)), (0, b""), (0, 5), (0, "text"), (1, (2, 4)), (1, (-2, -3)), (1, (1 << 62, 1 << 62)), (1, 5), (1, ("2", 3)), (1, (1,) * 70),
        (2, "<i4"), (2, usm.DType("<i8")), (2, None), (3, "unified"), (3, 5), (4, "no:such:thing:at:all"), (4, 5), (5, "yes"), (5, None),
    ]  # fmt: skip
    for place, value in altered:
        changed = [*state]
        changed[place] = value
        with pytest.raises(usm.InterfaceError, match="pickle of an array"):
            rebuild(*changed)
    data = pickle.dumps(usm.zeros(100, device="host"))
    for end in range(1, len(data), 7):
        with pytest.raises((pickle.UnpicklingError, EOFError, usm.Error, AttributeError, IndexError, ValueError, TypeError)):
            pickle.loads(data[:end])


def test_no_part_of_a_pickle_is_trusted(np):
    made = [usm.DType("<f4"), usm.asarray(np.ones(3, "i4,f8")).dtype, usm.memory.MemoryUSMHost(8, queue=usm.Queue("host")), usm.zeros((2, 3), "<i4", kind="host", device="host")]
    wrong = [5, "|O", "", "<f3", "no:such", "\ud800", "[('a', 5)]", (1 << 70,), object(), 1.5]
    for one in made:
        rebuild, state = one.__reduce_ex__(2)
        assert rebuild(*state).__class__ is one.__class__
        for place in range(len(state)):
            for value in wrong:
                with pytest.raises(usm.InterfaceError, match="^pickle of a"):
                    rebuild(*state[:place], value, *state[place + 1 :])


def test_an_altered_byte_of_a_pickle_is_no_request(np):
    """Pickle itself refuses many; what comes through is refused as a false pickle."""
    made = [usm.zeros((2, 3), "<i4", kind="host", device="host"), usm.asarray(np.ones(3, "i4,f8")), usm.memory.MemoryUSMHost(8, queue=usm.Queue("host"))]
    refused = 0
    for data in map(pickle.dumps, made):
        for place in range(len(data)):
            for bits in (1, 0x15, 0x80):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        pickle.loads(data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :])
                except usm.Error as error:
                    refused += 1
                    assert isinstance(error, (usm.InterfaceError, usm.DeviceError)), (place, bits, error)
                except Exception:  # noqa: BLE001
                    continue
    assert refused > 100


def child(array):
    array.fill(array.item() + 1) if array.size == 1 else None
    return array[::-1]


def test_arrays_are_sent_to_another_process_and_back(queue, kind):
    array = made(queue, kind, [1, 2, 3, 4, 5, 6])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.map(child, [array])[0]
    assert (back.tolist(), back.kind, back.device) == ([[4, 5, 6], [1, 2, 3]], kind, queue.device)


def test_pickles_do_not_need_numpy():
    program = """
import pickle, sys, usm
a = usm.full((2, 2), 1.5, device="host")
assert pickle.loads(pickle.dumps(a)).tolist() == [[1.5] * 2] * 2 and "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
