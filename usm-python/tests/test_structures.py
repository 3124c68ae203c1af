"""Arrays of structures: members as views, and values as Python's. NumPy is the oracle."""

import numpy as np
import pytest

import usm


PERSON = np.dtype([("name", "S8"), ("age", "<i2"), ("at", "<f4", (2, 3)), ("born", [("year", "<i4"), ("day", "u1")]), ("_", "V3")])


def people(queue, kind="host"):
    array = np.zeros((2, 5), PERSON)
    array["age"] = np.arange(10).reshape(2, 5)
    array["at"] = np.arange(60).reshape(2, 5, 2, 3)
    array["born"]["year"] = 1900 + array["age"]
    array["name"] = [[b"a%d" % it for it in range(5)]] * 2
    return array, usm.asarray(array, queue=queue, kind=kind, copy=True)


@pytest.mark.parametrize("name", ["name", "age", "at", "born", "_"])
def test_a_member_of_a_structure_is_a_view(queue, kind, name):
    array, ours = people(queue, kind)
    part, expected = ours[name], array[name]
    assert part.shape == expected.shape and part.dtype == expected.dtype
    assert part.tolist() == expected.tolist()
    # It selects as any other view does.
    assert ours[1][name].tolist() == array[1][name].tolist()
    assert ours[:, ::2][name][1, -1].tolist() == array[:, ::2][name][1, -1].tolist()


def test_a_member_is_written_in_place(queue, kind):
    array, ours = people(queue, kind)
    ours["age"] = 7
    ours[0]["at"][1] = 2.5
    ours["born"]["year"][1] = 2000
    array["age"], array[0]["at"][1], array["born"]["year"][1] = 7, 2.5, 2000
    assert ours.tobytes() == array.tobytes()


def test_a_member_keeps_what_its_array_is(queue):
    array, _ = people(queue)
    array.flags.writeable = False
    part = usm.asarray(array, device="host")["age"]
    assert part.readonly
    with pytest.raises(usm.AccessError):
        part[0] = 1
    assert usm.zeros((0, 3), PERSON, queue=queue)["at"].shape == (0, 3, 2, 3)


def test_a_name_that_is_none_lists_the_members(queue):
    _, ours = people(queue)
    with pytest.raises(ValueError, match=r'no member "nobody": the members are "name", "age", "at", "born", "_"'):
        ours["nobody"]
    with pytest.raises(ValueError):
        ours[""]
    with pytest.raises(TypeError):
        usm.zeros(3, queue=queue)["age"]
    with pytest.raises(ValueError):
        ours["nobody"] = 1


def test_structures_convert_to_python_as_numpys_do(queue, kind):
    array, ours = people(queue, kind)
    # NumPy gives an array for a member that is one, which compares element by element.
    assert repr(ours.tolist()) == repr(array.tolist()) and ours[:0].tolist() == []
    assert repr(ours[1, 2].tolist()) == repr(ours[1, 2].item()) == repr(array[1, 2].item())
    assert repr(ours[::-1, 1:].tolist()) == repr(array[::-1, 1:].tolist())
    texts = np.array([["ab", "c"], ["", "def"]])
    assert usm.asarray(texts, queue=queue, copy=True).tolist() == texts.tolist()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u1", ">f8", ">i4", "?", "c8"])
def test_lists_have_the_values_and_types_of_numpys(queue, dtype):
    array = (np.arange(12).reshape(3, 4) % 2 * 3).astype(dtype)
    for view in (lambda it: it, lambda it: it.T, lambda it: it[:, ::3], lambda it: it[1], lambda it: it[1, 1:2]):
        ours, theirs = view(usm.asarray(array, queue=queue, copy=True)).tolist(), view(array).tolist()
        assert ours == theirs and repr(ours) == repr(theirs)


NESTED = np.dtype([("at", [("x", "f4"), ("y", "f4")]), ("trail", "i2", 3)], align=True)


@pytest.mark.parametrize("kind", ["host", "device", "shared"])
def test_tuples_are_stored_as_in_numpy(kind):
    pair = np.dtype([("x", "i4"), ("y", "f4")])
    for dtype, key, value in [
        (pair, 0, (1, 2.5)),
        (pair, slice(0, 2), [(1, 2.5), (3, 4.5)]),
        (pair, slice(None), (1, 2.5)),
        (pair, 1, 5),
        (NESTED, 2, ((1, 2), [7, 8, 9])),
        (NESTED, slice(1, 3), [((1, 2), 3), ((4, 5), (6, 7, 8))]),
    ]:
        theirs, ours = np.zeros(3, dtype), usm.zeros(3, dtype, kind=kind, device="host")
        theirs[key] = ours[key] = value
        assert (usm.to_numpy(ours) == theirs).all(), (dtype, key, value)
    ours = usm.zeros(3, pair, kind=kind, device="host")
    ours.fill((3, 4))
    assert ours.tolist() == [(3, 4.0)] * 3 == usm.full(3, (3, 4), pair, kind=kind, device="host").tolist()
    assert usm.asarray([(1, 2.5), (3, 4.5)], pair, kind=kind, device="host").tolist() == [(1, 2.5), (3, 4.5)]
    for value in [(1, 2, 3), (1,), ("a", 1), [(1, 2), (3, 4)]]:
        with pytest.raises(ValueError):
            ours[0] = value
    assert ours.tolist() == [(3, 4.0)] * 3
