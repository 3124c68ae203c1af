"""``usm.load`` and ``usm.save``: files of others, files of ours, and broken ones."""

import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

import usm

np = pytest.importorskip("numpy")


def queues():
    found = [usm.Queue("host")]
    for selector in ("sycl:cpu", "opencl:cpu"):
        try:
            found.append(usm.Queue(selector))
        except usm.DeviceError:
            pass
    return found


def safetensors(header, data=b"", count=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if count is None else count) + text + data


def about(shape, ends, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": ends}


def written(tmp_path, content, name="a.safetensors"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_what_is_saved_is_loaded_on_every_device(tmp_path):
    arrays = {
        "matrix": np.arange(12, dtype="f4").reshape(3, 4),
        "turned": np.arange(6, dtype="i2").reshape(2, 3).T,
        "none": np.zeros((0, 3)),
        "one": np.array(2.5),
        "truth": np.array([True, False, True]),
        "brain": usm.full((5,), 1.5, "bfloat16"),
        "few bits": usm.zeros(3, "float8_e5m2"),
        "größe": np.arange(3, dtype="c8"),
    }
    right = {name: usm.asarray(array).tobytes() for name, array in arrays.items()}
    path = tmp_path / "a.safetensors"
    usm.save(path, arrays, metadata={"made by": "a test"})
    for device in [None, *queues()]:
        loaded = usm.load(path, device=device)
        assert loaded.metadata == {"made by": "a test"} and set(loaded) == set(arrays) and len(loaded) == 8
        assert {name: array.tobytes() for name, array in loaded.items()} == right
        for name, array in loaded.items():
            assert array.shape == usm.asarray(arrays[name]).shape and array.dtype == usm.asarray(arrays[name]).dtype
            assert (array.kind, array.readonly) == (("host", True) if device is None else ("device", False))
            assert device is None or array.queue == device
        # Lazily, and once.
        assert loaded["one"] is loaded["one"]
        with pytest.raises(KeyError):
            loaded["nothing"]
    # An array keeps the file's pages, also when the file is gone.
    array = usm.load(path)["matrix"]
    path.unlink()
    assert array.tobytes() == right["matrix"] and not list(tmp_path.iterdir())
    assert np.asarray(array).base is not None
    with pytest.raises((usm.AccessError, ValueError)):
        array[0, 0] = 1


def test_files_of_numpy_are_read_and_files_of_ours_are_read_by_numpy(tmp_path):
    structure = np.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], dtype=[("a", ">i4"), ("b", "<f8"), ("c", "S2")])
    cases = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)), np.zeros((0, 2)), np.array(7), structure]
    for at, case in enumerate(cases):
        theirs, ours = tmp_path / f"{at}.npy", tmp_path / f"{at}.ours.npy"
        np.save(theirs, case)
        usm.save(ours, case)
        again = np.load(ours)
        assert again.dtype == case.dtype and np.array_equal(again, case)
        for queue in [None, *queues()]:
            loaded = usm.load(theirs, device=queue)
            assert loaded.shape == case.shape and loaded.dtype == case.dtype
            assert np.array_equal(np.asarray(loaded.copy(kind="host", device="host")), case)
    for save in (np.savez, np.savez_compressed, lambda path, **arrays: usm.save(path, arrays)):
        save(tmp_path / "z.npz", a=cases[0], b=cases[1])
        for queue in [None, *queues()]:
            loaded = usm.load(tmp_path / "z.npz", device=queue)
            assert {name: array.tolist() for name, array in loaded.items()} == {"a": cases[0].tolist(), "b": cases[1].tolist()}
        assert np.array_equal(np.load(tmp_path / "z.npz")["b"], cases[1])
    usm.save(tmp_path / "raw.bin", np.arange(5, dtype="<u2"))
    assert usm.load(tmp_path / "raw.bin").tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
    assert usm.load(written(tmp_path, b"", "empty")).shape == (0,)


def test_large_files_go_through_several_blocks_and_threads(tmp_path):
    path = tmp_path / "large.npy"
    values = np.random.default_rng(1).integers(0, 1 << 60, (5 << 20) + 3)
    np.save(path, values)
    for queue in queues():
        for threads in (1, 3):
            loaded = usm.load(path, device=queue, threads=threads)
            assert np.array_equal(np.asarray(loaded.copy(kind="host", device="host")), values)


GOOD = {"a": about([2], [0, 8])}
WRONG = {
    "nothing": (b"", "0 bytes"),
    "seven bytes": (b"\1\0\0\0\0\0\0", "7 bytes"),
    "a header of 2^63 bytes": (safetensors(b"{}", count=1 << 63), str(1 << 63)),
    "a header of 1 GB": (safetensors(b"{}", count=10**9), "1000000000"),
    "a header beyond the file": (safetensors(b"{}", count=3), "3 bytes"),
    "a header with spaces before": (safetensors(b" {}"), "brace"),
    "no JSON": (safetensors(b"{nothing}"), "no JSON"),
    "a list": (safetensors(b"[]"), "brace"),
    "no UTF-8": (safetensors(b'{"\xff":1}'), "no JSON"),
    "deep JSON": (safetensors(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "no JSON"),
    "NaN": (safetensors(b'{"a":NaN}'), "NaN"),
    "a key twice": (safetensors(b'{"a":1,"a":2}'), "'a' is there twice"),
    "a key of a tensor twice": (safetensors(b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)), "'dtype'"),
    "metadata that is none": (safetensors({"__metadata__": {"a": 1}}), "__metadata__"),
    "a tensor that is none": (safetensors({"a": 1}), "tensor 'a'"),
    "one member more": (safetensors({"a": {**about([2], [0, 8]), "b": 1}}, bytes(8)), "tensor 'a'"),
    "an unknown type": (safetensors({"a": about([2], [0, 8], "F128")}, bytes(8)), "'F128'"),
    "a type of half a byte": (safetensors({"a": about([2], [0, 1], "F4")}, bytes(1)), "'F4'"),
    "a negative extent": (safetensors({"a": about([-2], [0, 8])}, bytes(8)), "[-2]"),
    "an extent that is no number": (safetensors({"a": about([2.0], [0, 8])}, bytes(8)), "[2.0]"),
    "a truth value": (safetensors({"a": about([True], [0, 4])}, bytes(4)), "[True]"),
    "an extent of 2^63": (safetensors({"a": about([1 << 63], [0, 8])}, bytes(8)), str(1 << 63)),
    "a product of 2^66": (safetensors({"a": about([1 << 62, 4], [0, 8])}, bytes(8)), str(1 << 66)),
    "a range of 2^63": (safetensors({"a": about([2], [0, 1 << 63])}, bytes(8)), str(1 << 63)),
    "a range beyond the file": (safetensors({"a": about([3], [0, 12])}, bytes(8)), "[0, 12]"),
    "a range that goes back": (safetensors({"a": about([2], [8, 0])}, bytes(8)), "[8, 0]"),
    "too few bytes": (safetensors({"a": about([2], [0, 4])}, bytes(4)), "4 bytes"),
    "an overlap": (safetensors({"a": about([2], [0, 8]), "b": about([2], [4, 12])}, bytes(12)), "overlaps"),
    "the same bytes twice": (safetensors({"a": about([2], [0, 8]), "b": about([2], [0, 8])}, bytes(8)), "overlaps"),
    "a gap": (safetensors({"a": about([2], [0, 8]), "b": about([2], [12, 20])}, bytes(20)), "gap"),
    "a gap at the start": (safetensors({"a": about([2], [4, 12])}, bytes(12)), "gap"),
    "bytes that are left": (safetensors(GOOD, bytes(9)), "1 bytes after"),
}


@pytest.mark.parametrize("case", WRONG)
def test_broken_safetensors_are_refused_before_data_is_read(tmp_path, case):
    content, part = WRONG[case]
    path = written(tmp_path, content)
    with pytest.raises(usm.InterfaceError) as error:
        usm.load(path)
    assert str(path) in str(error.value) and part in str(error.value), error.value
    assert len(str(error.value)) < 1000
    # The same bytes without the fault.
    assert usm.load(written(tmp_path, safetensors(GOOD, bytes(8))))["a"].tolist() == [0, 0]


def npy(header, data=b"", version=1, count=None):
    text = header.encode() if isinstance(header, str) else header
    wide = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(wide, len(text) if count is None else count) + text + data


HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}"
WRONG_NPY = {
    "objects": (npy(HEADER.format("'|O'", False, "(1,)"), b"cos\nsystem\n(S'exit'\ntR."), "objects"),
    "a structure with objects": (npy(HEADER.format("[('a', '<i4'), ('b', '|O')]", False, "(1,)"), bytes(12)), "objects"),
    "objects deep inside": (npy(HEADER.format("[('a', [('b', '|O')])]", False, "(1,)"), bytes(8)), "objects"),
    "code": (npy("__import__('os').abort()"), "header"),
    "code in a shape": (npy(HEADER.format("'<f4'", False, "(print(1),)")), "header"),
    "a shape beyond the file": (npy(HEADER.format("'<f4'", False, "(3,)"), bytes(8)), "12"),
    "a huge shape": (npy(HEADER.format("'<f4'", False, f"({1 << 62}, 64)"), bytes(8)), str(1 << 70)),
    "a negative extent": (npy(HEADER.format("'<f4'", False, "(-1,)"), bytes(8)), "-1"),
    "no tuple": (npy(HEADER.format("'<f4'", False, "[2]"), bytes(8)), "[2]"),
    "a key more": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'a': 1}", bytes(8)), "exactly"),
    "an order that is none": (npy(HEADER.format("'<f4'", 0, "(2,)"), bytes(8)), "fortran_order"),
    "an unknown type": (npy(HEADER.format("'<q9'", False, "(2,)"), bytes(18)), "q9"),
    "a header beyond the file": (npy("{}", count=60000), "60000"),
    "a header of 1 GB": (npy("{}", version=2, count=10**9), "1000000000"),
    "version 9": (npy("{}", version=9), "version 9"),
    "only the magic": (b"\x93NUMPY", "6 bytes"),
    "no npy at all": (b"hello", "npy"),
    "deep": (npy("(" * 100_000, version=2), "header"),
}


@pytest.mark.parametrize("case", WRONG_NPY)
def test_broken_npy_files_are_refused_and_run_nothing(tmp_path, case):
    content, part = WRONG_NPY[case]
    path = written(tmp_path, content, "a.npy")
    with pytest.raises(usm.InterfaceError) as error:
        usm.load(path)
    assert str(path) in str(error.value) and part in str(error.value), error.value


def test_broken_npz_files_are_refused(tmp_path):
    good = io.BytesIO()
    np.savez(good, a=np.arange(3))
    content = good.getvalue()
    for cut in (10, len(content) // 2, len(content) - 10):
        with pytest.raises(usm.InterfaceError):
            usm.load(written(tmp_path, content[:cut], "a.npz"))
    for name, data, part in [("a.npy", b"hello world", "npy"), ("a.npy", WRONG_NPY["objects"][0], "objects")]:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as out:
            out.writestr(name, data)
        with pytest.raises(usm.InterfaceError, match=part):
            usm.load(written(tmp_path, packed.getvalue(), "a.npz"))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as out:
        for name in ("a", "a.npy"):
            out.writestr(name, npy(HEADER.format("'<f4'", False, "(2,)"), bytes(8)))
    with pytest.raises(usm.InterfaceError, match="twice"):
        usm.load(written(tmp_path, twice.getvalue(), "a.npz"))
    # A compressed member that states fewer bytes than it has.
    small = io.BytesIO()
    np.savez_compressed(small, a=np.zeros(100_000))
    false = bytearray(small.getvalue())
    at = false.rindex(b"PK\x01\x02")
    false[at + 24 : at + 28] = struct.pack("<I", 100)
    with pytest.raises(usm.InterfaceError, match="a.npy"):
        usm.load(written(tmp_path, bytes(false), "a.npz"))["a"]
    # Compressed bytes that are none.
    spoilt = bytearray(small.getvalue())
    spoilt[60:80] = bytes(range(200, 220))
    with pytest.raises(usm.InterfaceError, match="a.npy"):
        usm.load(written(tmp_path, bytes(spoilt), "a.npz"))["a"]


def test_threads_read_compressed_members_of_one_file(tmp_path):
    names = [f"n{number}" for number in range(40)]
    np.savez_compressed(tmp_path / "many.npz", **{name: np.full(50_000, number) for number, name in enumerate(names)})
    arrays = usm.load(tmp_path / "many.npz")
    with ThreadPoolExecutor(4) as pool:
        for number, array in enumerate(pool.map(arrays.__getitem__, names)):
            assert array.tolist() == [number] * 50_000


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        usm.load(tmp_path / "nothing.safetensors")
    with pytest.raises((usm.RequestError, IsADirectoryError)):
        usm.load(tmp_path)
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(usm.RequestError, match="regular"):
        usm.load(tmp_path / "pipe.safetensors")
    with pytest.raises(usm.RequestError, match="regular"):
        usm.load("/dev/zero")
    path = written(tmp_path, safetensors(GOOD, bytes(8)))
    for threads in (0, -1, 1.5, True, "4", 10**6):
        with pytest.raises(usm.RequestError, match="threads"):
            usm.load(path, threads=threads)
    for device in ("nothing", 3.5):
        with pytest.raises((usm.Error, TypeError)):
            usm.load(path, device=device)


def test_a_file_that_is_cut_meanwhile_is_refused(tmp_path):
    path = written(tmp_path, safetensors({"a": about([1 << 20], [0, 4 << 20])}, bytes(4 << 20)))
    host, there = usm.load(path), usm.load(path, device=queues()[-1])
    os.truncate(path, 1000)
    for loaded in (host, there):
        with pytest.raises(usm.InterfaceError, match="when it was opened"):
            loaded["a"]


def test_what_cannot_be_saved_leaves_the_old_file_and_no_other(tmp_path):
    path = written(tmp_path, b"old")
    for arrays, more in [
        (np.arange(3), {}),
        ({"a": np.zeros(2, "M8[s]")}, {}),
        ({1: np.arange(3)}, {}),
        ({"__metadata__": np.arange(3)}, {}),
        ({"a": np.arange(3)}, {"metadata": {"a": 1}}),
        ({"a": np.zeros(2, [("b", "f4")])}, {}),
    ]:
        with pytest.raises((usm.Error, TypeError, ValueError)):
            usm.save(path, arrays, **more)
        assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path], arrays
    with pytest.raises(usm.RequestError):
        usm.save(tmp_path / "a.npy", {"a": np.arange(3)})
    with pytest.raises(usm.RequestError):
        usm.save(tmp_path / "a.npy", usm.full((2,), 1, "bfloat16"))
    with pytest.raises(OSError):
        usm.save(tmp_path / "no folder" / "a.npy", np.arange(3))


def test_a_save_replaces_only_a_regular_file_and_keeps_its_mode_and_links(tmp_path):
    path, link, pipe = tmp_path / "a.npy", tmp_path / "link.npy", tmp_path / "pipe.npy"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    usm.save(link, np.arange(3))
    assert link.is_symlink() and np.load(path).tolist() == [0, 1, 2] and path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    for target in (pipe, tmp_path, "/dev/null"):
        with pytest.raises(usm.RequestError, match="regular"):
            usm.save(target, np.arange(3))
    assert pipe.is_fifo() and not pathlib.Path("/dev/null").is_file()
    dangling = tmp_path / "dangling.npy"
    dangling.symlink_to(tmp_path / "there.npy")
    usm.save(dangling, np.arange(2))
    assert np.load(tmp_path / "there.npy").tolist() == [0, 1]


def test_loading_leaves_no_file_open_and_no_memory(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(1 << 16))
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(20):
        for device in [None, *queues()]:
            usm.load(path, device=device)
        with pytest.raises(usm.InterfaceError):
            usm.load(written(tmp_path, b"hello", "b.npy"))
    assert sys.platform != "linux" or len(os.listdir("/proc/self/fd")) <= before + 2


def test_structures_keep_their_padding(tmp_path):
    inner = np.dtype([("x", "i1"), ("y", "<f4")], align=True)
    dtype = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", inner, (2,))], align=True)
    data = np.zeros(3, dtype)
    data["b"] = [1, 2, 3]
    np.save(tmp_path / "a.npy", data)
    np.savez(tmp_path / "a.npz", a=data)
    for loaded in (usm.load(tmp_path / "a.npy"), usm.load(tmp_path / "a.npz")["a"]):
        assert loaded.dtype == dtype
        np.testing.assert_array_equal(np.asarray(loaded), data)


def test_the_import_brings_no_modules_of_files():
    program = "import sys, usm\nassert not {'json', 'zipfile', 'mmap', 'usm._files'} & set(sys.modules)\nassert 'load' in dir(usm) and usm.load and usm.save\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_threads_load_at_the_same_time(tmp_path):
    path = tmp_path / "a.safetensors"
    usm.save(path, {str(at): np.full(1000, at) for at in range(8)})
    loaded, found = usm.load(path, device=queues()[-1]), []

    def read():
        found.append(sum(array.tolist()[-1] for array in loaded.values()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [28] * 4
