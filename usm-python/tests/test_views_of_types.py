"""`Array.view(dtype)`: the same bytes as elements of another type, by NumPy's rules."""

import random

import numpy as np
import pytest

import usm

TYPES = ["?", "i1", "u1", "<i2", ">i2", "<u4", "<f4", "<f8", "<c8", "<c16", "<M8[s]", "V3", "S5"]
MEMBERS = [("a", "<i2"), ("b", "<f4")]


def cut(chosen, array):
    """A random view of an array, of as many dimensions."""
    for axis in range(array.ndim):
        step = chosen.choice([1, 1, 1, 2, -1])
        part = slice(None, None, step) if chosen.random() < 0.5 else slice(chosen.randrange(3), chosen.randrange(6), step)
        array = array[(slice(None),) * axis + (part,)]
    return array.T if chosen.random() < 0.2 else array


def test_it_follows_numpy_in_result_and_refusal(queue):
    chosen, given, refused = random.Random(7), 0, 0
    for _ in range(3000):
        shape = [chosen.choice([0, 1, 2, 3, 6]) for _ in range(chosen.randrange(4))]
        values = np.frombuffer(chosen.randbytes(16 * int(np.prod(shape))), "u1")
        first = np.dtype(chosen.choice(TYPES[:10]))
        theirs = values[: int(np.prod(shape)) * first.itemsize].view(first).reshape(shape)
        ours = usm.empty(shape, first, kind="shared", queue=queue)
        usm.copy(ours, theirs)
        ours = cut(chosen, ours)
        theirs = np.asarray(ours)
        wanted = np.dtype(chosen.choice([*TYPES, MEMBERS]))
        try:
            expected = theirs.view(wanted)
        except ValueError:
            # NumPy asks for the stride of an axis of one element too.
            if not (theirs.ndim and theirs.shape[-1] == 1):
                refused += 1
                with pytest.raises(usm.RequestError, match="view of"):
                    ours.view(wanted)
            continue
        given += 1
        found = ours.view(wanted)
        assert found.shape == expected.shape and found.dtype == wanted
        assert found.tobytes() == expected.tobytes()
        if found.size:
            assert found.pointer == ours.pointer == expected.ctypes.data
    assert given > 500 and refused > 500


def test_what_is_wrong_is_named_with_its_numbers(queue):
    a = usm.zeros((2, 6), "<f4", queue=queue)
    refusals = [
        (a[0, 0], "<f8", "an array of 0 dimensions keeps the size"),
        (a[:, ::2], "<i2", "the last axis has gaps"),
        (a.T, "<i2", "the last axis has gaps"),
        (a[:, :3], "<f8", "the 12 bytes of the last axis are no whole number of 8 bytes"),
        (a, "V3", "3 bytes do not divide 4"),
    ]
    for array, dtype, words in refusals:
        with pytest.raises(usm.RequestError, match=words):
            array.view(dtype)
    with pytest.raises(usm.RequestError, match="Python objects"):
        a.view("O")
    with pytest.raises(TypeError, match="dtype"):
        a.view((3, 4))
    with pytest.raises(usm.RequestError, match="astype converts values, view reads the same bytes"):
        usm.asarray(a, "<i4")


def test_it_shares_memory_of_every_kind_with_what_is_underway(queue):
    for kind in ("host", "shared", "device"):
        a = usm.zeros(1 << 16, "<u4", kind=kind, queue=queue)
        a.fill(0x01020304)
        b = a.view("<u2")
        assert usm.to_numpy(b[:2]).tolist() == [0x0304, 0x0102] and b.kind == kind and b.size == 1 << 17
        b[1::2].fill(0)
        assert usm.to_numpy(a[-2:]).tolist() == [0x0304, 0x0304]
        # A part owns no memory, and keeps it.
        del a
        assert usm.to_numpy(b[-2:]).tolist() == [0x0304, 0] and b.__sizeof__() < 1000


def test_read_only_memory_stays_read_only():
    a = usm.asarray(b"\x01\x00\x02\x00").view("<u2")
    assert a.readonly and a.tolist() == [1, 2] and a.view("u1").readonly
    with pytest.raises(usm.AccessError):
        a.fill(3)


def test_members_become_bytes_and_back(queue):
    a = usm.zeros(3, MEMBERS, queue=queue)
    np.asarray(a)["b"] = [1, 2, 3]
    plain = a.view("u1")
    assert plain.shape == (18,) and plain.dtype == "u1"
    assert np.asarray(plain.view(MEMBERS))["b"].tolist() == [1, 2, 3]
    assert plain.view(MEMBERS).dtype == np.dtype(MEMBERS)
