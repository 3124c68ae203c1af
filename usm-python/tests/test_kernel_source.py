"""Where the text of a kernel comes from: changed modules, odd indentation, odd names of files."""

import importlib
import linecache

import numpy as np
import pytest

import usm


def test_a_module_that_was_loaded_again_has_its_new_kernels(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    path = tmp_path / "changing_kernels.py"
    found = np.zeros(1)
    for value in (1, 2222):
        path.write_text(f"import usm\n\n@usm.kernel\ndef k(a):\n    a[0] = {value}\n")
        if value == 1:
            module = importlib.import_module("changing_kernels")
        else:
            module = importlib.reload(module)
        module.k[1](found)
        assert found[0] == value


def test_texts_and_comments_may_have_less_indentation():
    @usm.kernel
    def text(a):
        """A text
whose second line begins at the left."""
        a[0] = 1

    @usm.kernel
    def comment(a):
# A comment at the left.
        a[0] = 2
        a[0] = nothing

    found = np.zeros(1)
    text[1](found)
    assert found[0] == 1
    line = comment.__wrapped__.__code__.co_firstlineno + 4
    with pytest.raises(usm.KernelError, match=rf"\.py:{line}:16: unknown name `nothing`"):
        comment[1](found)


def test_a_file_name_may_have_bytes_of_no_character():
    name, text = "/a\udcff.py", "@usm.kernel\ndef k(a):\n    a[0] = b\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    module = {"usm": usm}
    exec(compile(text, name, "exec"), module)
    with pytest.raises(usm.KernelError, match=r"udcff\.py:3:12: unknown name `b`"):
        module["k"][1](np.zeros(1))


@usm.kernel
def with_local(o, part):
    part[0, 0] = 3
    o[0] = part[0, 0]


@usm.kernel
def with_huge(o):
    part = usm.local.array((65536, 65536, 65536, 65536), usm.float32)
    o[0] = part[0, 0, 0, 0]


def test_extents_of_local_memory():
    found = np.zeros(1)
    with_local[usm.NdRange(1, 1)](found, usm.Local((np.int64(2), 2), usm.float32))
    assert found[0] == 3
    for shape in [(2**32, 2**32), 2**64, (2**62, 4)]:
        with pytest.raises(usm.KernelError, match="elements: no device has them"):
            usm.Local(shape, usm.float32)
    with pytest.raises(usm.KernelError, match="an extent of 1.5"):
        usm.Local(1.5, usm.float32)
    with pytest.raises(usm.KernelError, match=r"\.py:\d+:12: 18446744073709551616 elements of local memory"):
        with_huge[1](found)


def test_columns_are_counted_in_characters():
    @usm.kernel
    def wide(a):
        größe = "ß"; a[0] = nothing  # fmt: skip

    with pytest.raises(usm.KernelError, match=r"\.py:\d+:29: unknown name `nothing`"):
        wide[1](np.zeros(1))
