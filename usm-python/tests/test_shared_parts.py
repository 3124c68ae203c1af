"""Objects that contain the same part many times.

Their expanded size is counted or refused at once, without walking all parts. Each attack is a
process of its own, with a time limit.
"""

import subprocess
import sys

import pytest

HEAD = """
import numpy as np
import usm

def doubled(part, levels, pair=lambda part: [part, part]):
    for _ in range(levels):
        part = pair(part)
    return part

def outcome(call):
    try:
        made = call()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    return made if isinstance(made, str) else f"{type(made).__name__} {getattr(made, 'shape', '')}"

def alternating(part, levels):
    for _ in range(levels):
        part = ([part, part], [part, part][::-1])
    return part

class Dictionary:
    def __init__(self, **more):
        self.kept = np.zeros(8)
        self.__array_interface__ = {**self.kept.__array_interface__, "shape": (1,), **more}

class Members:
    def __init__(self, descr):
        self.kept = np.zeros(8)
        fields = {"data": self.kept.__array_interface__["data"], "version": 3, "shape": (1,)}
        self.__array_interface__ = {**fields, "typestr": "|V8", "descr": descr}
"""

HUGE = "AllocationError: the process has no memory for "
MEMBERS = "InterfaceError: descr: more than 4194304 bytes of text"
VALUES = {
    "lists": ("usm.asarray(doubled(1, 63))", HUGE),
    "lists of 64 levels": ("usm.asarray(doubled(1.5, 64))", HUGE),
    "more levels than dimensions": (
        "usm.asarray(doubled(1, 65))",
        "ValueError: sequences are nested more than 64 deep",
    ),
    "tuples": ("usm.asarray(doubled(1, 63, lambda part: (part, part)))", HUGE),
    "both": ("usm.asarray(alternating(True, 30))", HUGE),
    "with a type": ("usm.asarray(doubled(1, 63), dtype='u1')", HUGE),
    "a copy": ("usm.asarray(doubled(1, 63), copy=True, kind='host')", HUGE),
    "of no numbers": ("usm.asarray(doubled('text', 62))", HUGE),
    "a list in itself": (
        "usm.asarray((lambda part: part.extend([part, part]) or part)([]))",
        "ValueError: sequences are nested more than 64 deep",
    ),
    "of nothing": ("usm.asarray(doubled([], 40))", f"Array {(2,) * 40 + (0,)}"),
    "of nothing, of two parts each": ("usm.asarray(alternating((), 20))", f"Array {(2,) * 40 + (0,)}"),
    "of nothing, beyond all numbers": ("usm.asarray(doubled([], 63))", "RequestError: shape"),
    "of nothing, unevenly": (
        "usm.asarray([doubled([], 61), doubled([], 60) + [1]])",
        "ValueError: the sequences are nested unevenly",
    ),
    "an assignment": ("usm.zeros(4).__setitem__(slice(None), doubled(1, 63))", HUGE),
    "a fill": ("usm.full(4, doubled(1, 63))", "TypeError: fill_value: an object of type list does not fit"),
    "a shape": ("usm.zeros(doubled(1, 63))", "TypeError"),
    "an index": ("usm.zeros(4)[doubled(1, 63)]", ""),
    "a copy from": ("usm.copy(usm.zeros(4), doubled(1, 63))", ""),
    "what few places hold": ("usm.asarray(doubled(1, 10)).sum() and '1024'", "AttributeError"),
}
DICTIONARIES = {
    "descr": ("usm.asarray(Members(doubled('<u1', 63, lambda part: [('a', part), ('b', part)])))", MEMBERS),
    "descr of nothing": ("usm.asarray(Members(doubled([], 63)))", MEMBERS),
    "descr of one long name": (
        "usm.asarray(Members([('n' * 1_000_000, '<u1')] * 1_000_000))",
        MEMBERS,
    ),
    "descr of sets": (
        "usm.asarray(Members([('a', doubled(frozenset(), 63, lambda part: frozenset([part, (part,)])))]))",
        "InterfaceError: descr",
    ),
    "descr of dictionaries": (
        "usm.asarray(Members([('a', doubled({}, 63, lambda part: {'a': part, 'b': part}))]))",
        "InterfaceError: descr",
    ),
    "descr that is in itself": (
        "usm.asarray(Members((lambda part: part.append(part) or part)([])))",
        "InterfaceError: descr: nested deeper than 128 levels",
    ),
    "validated": (
        "usm._usm.validate(Members(doubled('<u1', 63, lambda part: [('a', part), ('b', part)])))",
        MEMBERS,
    ),
    "shape": ("usm.asarray(Dictionary(shape=doubled(1, 63)))", "InterfaceError: shape"),
    "strides": ("usm.asarray(Dictionary(strides=doubled(8, 63)))", "InterfaceError: strides"),
    "data": ("usm.asarray(Dictionary(data=doubled(0, 63)))", ""),
    "mask": ("usm.asarray(Dictionary(mask=doubled(0, 63)))", "InterfaceError: mask"),
    "two members": (
        "usm.asarray(Members([('a', '<u4'), ('b', '<u4')])).dtype.descr.__repr__()",
        "[('a', '<u4'), ('b', '<u4')]",
    ),
}
TYPES = {
    "members of zero bytes": (
        "usm.DType(doubled(np.dtype('V0'), 40, lambda part: np.dtype([('a', part), ('b', part)])))",
        "more than 256",
    ),
}


@pytest.mark.parametrize(("call", "expected"), (cases := {**VALUES, **DICTIONARIES, **TYPES}).values(), ids=cases)
def test_shared_parts_are_not_walked_twice(call, expected):
    done = subprocess.run(
        [sys.executable, "-c", f"{HEAD}\nprint(outcome(lambda: {call}))"],
        capture_output=True,
        text=True,
        # What is walked twice 60 times over never ends.
        timeout=150,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout
