"""`usm.nrt`: blocks over memory of Python objects, statistics, leaks, and the C library."""

import array
import ctypes
import gc
import pathlib
import subprocess
import sys
import weakref

import pytest

import usm
from usm.nrt import MemInfo


@pytest.fixture(autouse=True)
def library(nrt_library):
    return nrt_library


@pytest.fixture
def balanced():
    """The blocks that a test makes are freed at its end."""
    gc.collect()
    before = usm.nrt.get_allocation_stats()
    yield
    gc.collect()
    after = usm.nrt.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


class Dictionary:
    """Exports a dictionary alone."""

    def __init__(self, owner):
        self.owner = owner

    @property
    def __array_interface__(self):
        return self.owner.__array_interface__


def exporters():
    yield "bytearray", bytearray(b"0123456789abcdef")
    yield "bytes", b"0123456789abcdef"
    yield "array", array.array("d", [1.0, 2.0])
    yield "memoryview", memoryview(bytearray(16))
    yield "usm.Array", usm.asarray([1, 2], dtype="<i8", queue="host")
    yield "usm.memory", usm.memory.MemoryUSMShared(16, queue=usm.Queue("host"))


@pytest.mark.parametrize("name", [name for name, _ in exporters()])
def test_an_exporter_round_trips_through_a_block(name, balanced):
    obj = dict(exporters())[name]
    block = MemInfo(obj)
    assert block.parent is obj
    assert (block.size, len(block), block.refcount) == (16, 16, 1)
    assert bytes(block) == bytes(memoryview(obj).cast("B"))
    assert block.data == usm.asarray(obj).pointer
    assert memoryview(block).readonly == block.readonly == memoryview(obj).readonly


def test_numpy_arrays_and_dictionaries(np, balanced):
    theirs = np.arange(6, dtype="i4").reshape(2, 3)
    for obj in (theirs, Dictionary(theirs)):
        block = MemInfo(obj)
        assert block.parent is obj and block.data == theirs.ctypes.data and block.size == 24
    memoryview(block).cast("i")[0] = 42
    assert theirs[0, 0] == 42


def test_strided_memory_is_a_block_from_its_lowest_to_its_highest_byte(np, balanced):
    theirs = np.arange(10, dtype="i2")[8:1:-3]
    block = MemInfo(theirs)
    assert block.parent is theirs
    assert (block.data, block.size) == (theirs[2:].ctypes.data, 14)


def test_dpctl_memory(dpctl, balanced):
    theirs = dpctl.memory.MemoryUSMShared(32)
    block = MemInfo(theirs)
    assert block.parent is theirs and (block.kind, block.size) == ("shared", 32)
    assert block.data == theirs._pointer


def test_the_block_keeps_the_object_until_the_last_reference(np):
    class Owner(np.ndarray):
        pass

    owner = np.zeros(4).view(Owner)
    gone = weakref.ref(owner)
    block = MemInfo(owner)
    other = MemInfo.from_address(block.address)
    assert other.refcount == block.refcount == 2 and other.parent is owner
    del owner, block
    gc.collect()
    assert gone() is not None and other.refcount == 1
    del other
    gc.collect()
    assert gone() is None


def test_a_buffer_is_held_while_the_block_lives():
    obj = bytearray(8)
    block = MemInfo(obj)
    with pytest.raises(BufferError):
        obj.extend(bytes(100))
    del block
    obj.extend(bytes(100))


def test_references_are_counted_and_only_what_was_taken_is_given_back(balanced):
    block = MemInfo.allocate(100, alignment=256)
    assert block.data % 256 == 0 and block.parent is None and not block.readonly
    block.acquire()
    block.acquire()
    assert block.refcount == 3
    block.release()
    block.release()
    with pytest.raises(usm.RequestError, match="release without acquire"):
        block.release()
    assert block.refcount == 1


def test_device_memory_is_a_block_without_a_host_view(balanced):
    array = usm.zeros(4, kind="device", queue="host")
    block = MemInfo(array)
    assert block.parent is array and block.kind == "device" and block.size == array.nbytes
    with pytest.raises(usm.AccessError):
        memoryview(block)


def entry(library, index, result, *arguments):
    """An entry of the versioned table, as C calls it: by its place."""
    get_api = ctypes.CDLL(library).usm_nrt_get_api
    get_api.restype, get_api.argtypes = ctypes.c_void_p, [ctypes.c_uint32]
    address = ctypes.c_void_p.from_address(get_api(1) + 8 + index * ctypes.sizeof(ctypes.c_void_p)).value
    return ctypes.CFUNCTYPE(result, *arguments)(address)


KINDS = {"host": 1, "device": 2, "shared": 3}


@pytest.mark.parametrize("name", KINDS)
def test_c_reads_the_kind_of_a_block(library, name, balanced):
    kind = entry(library, 13, ctypes.c_uint32, ctypes.c_void_p)
    block = MemInfo(usm.zeros(4, kind=name, queue="host"))
    assert (block.kind, kind(block.address)) == (name, KINDS[name])
    assert kind(MemInfo.allocate(8).address) == kind(None) == 0


def test_impossible_requests_are_errors():
    before = usm.nrt.get_allocation_stats()
    for size, alignment, error in [
        (1 << 62, 16, usm.AllocationError),
        (2**64 - 48, 16, usm.AllocationError),
        (16, 0, usm.RequestError),
        (16, 3, usm.RequestError),
    ]:
        with pytest.raises(error):
            MemInfo.allocate(size, alignment=alignment)
    for nothing in (object(), 3, None):
        with pytest.raises(usm.InterfaceError):
            MemInfo(nothing)
    with pytest.raises(usm.RequestError):
        MemInfo.from_address(0)
    assert usm.nrt.get_allocation_stats() == before


def test_leaks_lists_live_blocks_with_their_origins():
    untracked = MemInfo.allocate(1)
    usm.nrt.track(origins=True)
    try:
        assert usm.nrt.leaks() == []
        first = MemInfo.allocate(11)
        second = MemInfo(bytearray(22))
        first.acquire()
        found = usm.nrt.leaks()
        assert [(leak.size, leak.refcount) for leak in found] == [(11, 2), (22, 1)]
        assert [leak.address for leak in found] == [first.address, second.address]
        assert found[0].sequence < found[1].sequence
        assert "first = MemInfo.allocate(11)" in found[0].origin and __file__ in found[0].origin
        assert "second = MemInfo" in found[1].origin
        first.release()
        del first, second
        assert usm.nrt.leaks() == []
        usm.nrt.track()
        kept = MemInfo.allocate(33)
        assert [(leak.size, leak.origin) for leak in usm.nrt.leaks()] == [(33, "")]
    finally:
        usm.nrt.track(False)
    del kept, untracked


def test_a_c_block_at_a_reused_address_has_no_python_line(library):
    c = ctypes.CDLL(library)
    c.NRT_MemInfo_alloc.restype = ctypes.c_void_p
    c.NRT_MemInfo_alloc.argtypes = [ctypes.c_size_t]
    c.NRT_MemInfo_release.argtypes = [ctypes.c_void_p]

    def innocent():
        return MemInfo.allocate(72)

    usm.nrt.track(origins=True)
    try:
        held, blamed = [], 0
        for _ in range(20):
            block = innocent()
            address = block.address
            del block
            held.append(c.NRT_MemInfo_alloc(72))
            blamed += held[-1] == address
        assert blamed > 0, "no address came again"
        assert [leak.origin for leak in usm.nrt.leaks()] == [""] * 20
        for address in held:
            c.NRT_MemInfo_release(address)
        kept = []
        for index in range(5000):
            kept.append(MemInfo.allocate(8))
            if index % 100:
                kept.pop()
        assert usm._usm._nrt_origins() < 2500, "freed blocks are forgotten"
        assert all("kept.append" in leak.origin for leak in usm.nrt.leaks())
        assert len(usm.nrt.leaks()) == 50
    finally:
        usm.nrt.track(False)
    assert usm._usm._nrt_origins() == 0


def test_the_library_is_the_runtime_of_the_package(library):
    """There is one runtime: Python counts C's allocations."""
    c = ctypes.CDLL(library)
    c.NRT_MemInfo_alloc.restype = ctypes.c_void_p
    c.NRT_MemInfo_alloc.argtypes = [ctypes.c_size_t]
    c.NRT_MemInfo_release.argtypes = [ctypes.c_void_p]
    before = usm.nrt.get_allocation_stats()
    address = c.NRT_MemInfo_alloc(40)
    during = usm.nrt.get_allocation_stats()
    assert (during.alloc - before.alloc, during.mi_alloc - before.mi_alloc) == (1, 1)
    block = MemInfo.from_address(address)
    assert (block.size, block.refcount) == (40, 2)
    c.NRT_MemInfo_release(address)
    assert block.refcount == 1
    del block
    after = usm.nrt.get_allocation_stats()
    assert (after.free - before.free, after.mi_free - before.mi_free) == (1, 1)


PROGRAM = r"""
#include <usm_nrt.h>
#include <stdio.h>

int main(void) {
    const usm_nrt_api *api = usm_nrt_get_api(USM_NRT_API_VERSION);
    if (!api || api->size < sizeof(usm_nrt_api)) return 1;
    NRT_MemInfo *mi = NULL;
    if (api->allocate(100, 64, 0, NULL, NULL, &mi) != USM_NRT_OK) return 2;
    printf("%zu %zu\n", api->data_size(mi), api->refcount(mi));
    api->numba->release(mi);
    return 0;
}
"""


def test_a_program_without_python_compiles_against_what_the_package_ships(library, compiler, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    folder = str(pathlib.Path(library).parent)
    link = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lusm_nrt"]
    subprocess.run([compiler, source, "-o", program, f"-I{usm.nrt.get_include()}", *link], check=True, timeout=120)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "100 1\n")


def test_a_missing_library_is_named(tmp_path):
    missing = tmp_path / "libusm_nrt.so"
    script = "import usm\ntry:\n    usm.nrt.MemInfo(b'x')\nexcept usm.DeviceError as error:\n    print(error)\n"
    environment = {"USM_NRT_LIBRARY": str(missing)}
    done = run(script, environment)
    assert str(missing) in done


def test_a_library_of_another_version_is_refused(dpctl):
    other = pathlib.Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so"
    script = "import usm\ntry:\n    usm.nrt.get_allocation_stats()\nexcept usm.DeviceError as error:\n    print(error)\n"
    done = run(script, {"USM_NRT_LIBRARY": str(other)})
    assert "usm_nrt_get_api" in done


def run(script, environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
