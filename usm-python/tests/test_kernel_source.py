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


@pytest.mark.parametrize("name", ["div_i32", "i32_f32", "fence", "atomic_add_f32", "compare_exchange_i32", "inside", "shared", "record", "failed"])
def test_a_kernel_may_have_the_name_of_a_function_in_the_devices_code(name, tmp_path, queue):
    text = f"""
def {name}(a, b):
    part = usm.local.array(4, "int32")
    i = usm.get_global_id(0)
    part[i] = a[i]
    usm.barrier(usm.CLK_LOCAL_MEM_FENCE)
    usm.mem_fence(usm.CLK_GLOBAL_MEM_FENCE)
    a[i] = part[3 - i] // (a[i] + 2) + int(b[0] * 0)
    usm.atomic.add(b, 0, 1.0)
    usm.atomic.cas(a, part[i] + 4, 0, 1)
"""
    path = tmp_path / "named.py"
    path.write_text(text)
    module = {"usm": usm}
    exec(compile(text, path, "exec"), module)
    kernel = usm.kernel(module[name])
    a, b = np.array([0, 1, 2, 3, 0, 0, 0, 0], np.int32), np.zeros(1, np.float32)
    with usm.device_context(queue):
        kernel[4, 4](a, b)
    assert (a.tolist(), b.tolist()) == ([1, 0, 0, 0, 1, 1, 1, 1], [4.0])
    # No device is needed for the other names of CUDA C.
    for target in ("opencl-c", "cuda-c"):
        assert kernel.code(target, "int32[:], float32[:]").count(f"usm_{name}(") == 1
    assert "usm_shared" not in kernel.code("cuda-c", "int32[:], float32[:]").replace("usm_shared(", "")


@pytest.mark.parametrize("dimensions", [65, 255, 257, 301])
def test_a_signature_with_too_many_dimensions_is_refused(dimensions):
    @usm.kernel
    def k(a):
        a[0] = 1

    colons = ",".join(":" * dimensions)
    with pytest.raises(usm.KernelError, match=rf"an array of {dimensions} dimensions in the signature: 64 are the most"):
        k.code("ir", f"int64[{colons}]")


@pytest.mark.parametrize("later", ["a[0] = 2", "a[0] = b[0]", "a[1] = 1", "a[0] = 1 + len(a)", "a[0] = -1", "b[0] = 1", "a[0] = 1\n    a[1] = 1"])
def test_a_file_that_was_changed_after_its_import_is_refused(later, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    name = f"later_kernels_{abs(hash(later))}"
    path, text = tmp_path / f"{name}.py", "def k(a, b):\n    {}\n"
    path.write_text(text.format("a[0] = 1"))
    module = importlib.import_module(name)
    usm.kernel(module.k)
    path.write_text(text.format(later))
    with pytest.raises(usm.KernelError, match=rf"{name}.py:1:1: kernel k: the file was changed after Python read it"):
        usm.kernel(module.k)
    with pytest.raises(usm.KernelError, match="the file was changed"):
        usm.device_func(module.k)
    path.write_text("# A comment.\n" + text.format("a[0] = 1"))
    usm.kernel(importlib.reload(module).k)


def test_odd_functions_are_their_own_source():
    one, two = 1, 2.5

    class Holder:
        @staticmethod
        @usm.kernel
        def k(a):
            """A text."""
            if one:
                for i in range(3):
                    a[i] = two + one if a[i] < 0x10 else -0.0
            else:
                pass

    def plain(a): a[0] = one; a[1] = two  # noqa: E702

    found = np.zeros(3)
    Holder.k[1](found)
    assert found.tolist() == [3.5] * 3
    usm.kernel(plain)[1](found)
    assert found.tolist() == [1, 2.5, 3.5]


def test_check_and_proof_use_the_code_of_launches(monkeypatch):
    import usm._kernel

    keys, compiled = [], usm._kernel.compiled

    def counted(source, key):
        keys.append(key)
        return compiled(source, key)

    monkeypatch.setattr(usm._kernel, "compiled", counted)

    @usm.kernel
    def twice(a):
        i = usm.get_global_id(0)
        a[i] = 2 * a[i]

    a = usm.full(4, 1, "i4", device="host")
    for _ in range(2):
        twice.check[4](a)
        assert twice.proof[4](a) == "proven"
        twice[4](a)
    assert a.tolist() == [4] * 4 and len(keys) == 1
