"""`__cuda_array_interface__` and CUDA's streams.

The driver executes on the host (`tests/cuda-driver`); each case is a process of its own. False
dictionaries are in `hostile.py`. `gpu/exchange.py` tests a real GPU.
"""

import os
import subprocess
import sys
import textwrap

import pytest

import usm

PRELUDE = """
import ctypes, gc
import usm
import cuda_driver
driver = cuda_driver.Driver()
log, foreign = driver.log, driver.foreign

class Producer:
    def __init__(self, address, **fields):
        self.fields = {"data": (address, False), "shape": (8,), "typestr": "<i4", "version": 3, **fields}
        self.reads = 0
    @property
    def __cuda_array_interface__(self):
        self.reads += 1
        return {key: value for key, value in self.fields.items() if value is not ...}

def refused(run, *errors):
    try:
        run()
    except errors or (usm.InterfaceError,) as error:
        return str(error)
    raise AssertionError("accepted")
"""


@pytest.fixture
def run(cuda_driver):
    def run(code, **environment):
        environment = {**os.environ, **cuda_driver, **environment}
        program = PRELUDE + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_stream_of_another_library_is_a_queue(run):
    run("""
        class Theirs:
            def __init__(self, answer):
                self.answer = answer
            def __cuda_stream__(self):
                return self.answer

        for device in (0, 1):
            handle = driver.stream(device)
            theirs = Theirs((0, handle))
            queue = usm.Queue(theirs)
            assert queue.__cuda_stream__() == (0, handle)
            assert queue.device.selector == f"cuda:gpu:{device}"
            log()
            made = usm.full(8, 3, "i4", kind="device", queue=theirs)
            made.queue.wait()
            assert usm.to_numpy(made).tolist() == [3] * 8
            assert any(hex(handle) in line for line in log()), handle
        assert usm.Queue(Theirs((0, 0))).__cuda_stream__()[0] == 0
        assert "version 7, accepted: 0" in refused(lambda: usm.Queue(Theirs((7, 1))))
        assert "no pair" in refused(lambda: usm.Queue(Theirs(5)))
        assert "no pair" in refused(lambda: usm.Queue(Theirs((0, -1))))
        refused(lambda: usm.Queue(Theirs((0, handle)), timed=True), ValueError)
        refused(lambda: usm.Queue(Theirs), TypeError)
        assert driver.misuses() == 0
    """)


def test_memory_of_each_kind_round_trips(run):
    run("""
        assert [d.selector for d in usm.devices() if d.backend == "cuda"] == ["cuda:gpu:0", "cuda:gpu:1"]
        for kind, code in (("device", 2), ("host", 3), ("shared", 13)):
            array = usm.zeros((2, 3), "<i4", kind=kind, queue="cuda:gpu:1")
            fields = array.__cuda_array_interface__
            assert fields["data"] == (array.pointer, False) and fields["version"] == 3
            assert (fields["shape"], fields["strides"], fields["typestr"]) == ((2, 3), None, "<i4")
            assert hasattr(array, "__array_interface__") == (kind != "device")
            assert array.__dlpack_device__() == (code, 1)
            seen = usm.asarray(Producer(array.pointer, **{**fields, "shape": (3, 2), "strides": (4, 12)}))
            assert (seen.kind, seen.pointer) == (kind, array.pointer)
            # Page-locked host memory is every device's.
            assert kind == "host" or seen.device.selector == "cuda:gpu:1"
            seen[2, 1] = 7
            assert array.tolist() == [[0, 0, 0], [0, 0, 7]]
            # By DLPack too; the ids say which device.
            taken = usm.from_dlpack(array)
            assert (taken.pointer, taken.kind, taken.device.selector) == (array.pointer, kind, "cuda:gpu:1")
        empty = usm.zeros((0, 3), queue="cuda:gpu")
        assert empty.__cuda_array_interface__["data"] == (0, False)
        assert usm.asarray(Producer(0, shape=(0, 3))).shape == (0, 3)
        part = usm.zeros((4, 4), "<i2", kind="device", queue="cuda:gpu")[1:, ::-1]
        fields = part.__cuda_array_interface__
        assert fields["data"][0] == part.pointer and fields["strides"] == (8, -2)
        assert usm.asarray(Producer(0, **fields)).strides == (8, -2)
        assert not hasattr(usm.zeros(3, queue="host"), "__cuda_array_interface__")
    """)


def test_foreign_memory_is_of_the_kind_that_the_driver_reports(run):
    run("""
        for kind in ("device", "host", "shared"):
            address = foreign(64, kind, 1)
            producer = Producer(address, shape=(4, 4))
            array = usm.asarray(producer)
            assert (array.kind, array.pointer, array.base is producer) == (kind, address, True)
            assert kind == "host" or array.device.selector == "cuda:gpu:1"
            assert producer.reads == 1
            array.fill(3)
            array.queue.wait()
            assert driver.read(address, 64) == b"\\3\\0\\0\\0" * 16
        assert usm.asarray(Producer(address, data=(address, True))).readonly
        assert usm.asarray(Producer(address, version=2)).shape == (8,)
        assert usm.asarray(Producer(address, version=0, strides=None, mask=None, stream=None)).shape == (8,)
        # To the byte: the driver knows base and size.
        assert usm.asarray(Producer(address + 60, shape=(16,), strides=(-4,))).tolist()[0] == 3
        local = ctypes.create_string_buffer(64)
        assert "unknown" in refused(lambda: usm.asarray(Producer(ctypes.addressof(local))))
    """)


def test_a_producers_stream_is_waited_for_and_ours_is_named(run):
    run("""
        address = foreign(64)
        own = driver.stream()
        for stream, handle in ((1, "0x1"), (2, "0x2"), (own, hex(own))):
            usm.asarray(Producer(address)).device
            log()
            array = usm.asarray(Producer(address, stream=stream))
            assert log()[0] == f"record {handle}", "an event after the producer's work"
            array.fill(1)
            lines = log()
            # Our work waits for it, on the device or by polling.
            assert any(line.startswith("wait") and line.endswith(handle) or line == f"done {handle}" for line in lines), lines
        del array
        log()
        array = usm.asarray(Producer(address, stream=None))
        assert log() == [], "None: nothing to wait for"
        ours = usm.zeros(8, "<i4", kind="device", queue="cuda:gpu")
        other = usm.Queue("cuda:gpu")
        driver.hold(True)
        event = other.copy(ours, array)
        log()
        stream = ours.__cuda_array_interface__["stream"]
        lines = log()
        # The stream that is named waits for the copy on the other queue, and nothing was waited for
        # by the host.
        assert lines[0].startswith(f"wait {stream:#x} ") and not any(line.startswith("done") for line in lines), lines
        driver.hold(False)
    """)


def test_dlpack_streams(run):
    run("""
        ours = usm.zeros(8, "<i4", kind="device", queue="cuda:gpu")
        source = usm.zeros(8, "<i4", kind="device", queue="cuda:gpu")
        own = driver.stream()
        driver.hold(True)
        for stream, handle in ((None, "0x1"), (1, "0x1"), (2, "0x2"), (own, hex(own))):
            usm.Queue("cuda:gpu").copy(ours, source)
            log()
            capsule = ours.__dlpack__(stream=stream, max_version=(1, 3))
            assert any(line.startswith(f"wait {handle} ") for line in log())
        usm.Queue("cuda:gpu").copy(ours, source)
        log()
        ours.__dlpack__(stream=-1)
        assert log() == []
        driver.hold(False)
        for wrong in (0, "1", True, 1.0, -2):
            refused(lambda: ours.__dlpack__(stream=wrong), usm.InterfaceError, TypeError)
        # Memory that the host may read is handed out when it is done: NumPy looks at no stream.
        for kind in ("host", "shared"):
            reachable = usm.zeros(8, "<i4", kind=kind, queue="cuda:gpu")
            event = usm.Queue("cuda:gpu").copy(reachable, source)
            reachable.__dlpack__(stream=1, max_version=(1, 3))
            assert event.done
        # As a consumer: the producer gets our stream, and our other queues wait for that.
        class Theirs:
            def __dlpack_device__(self):
                return ours.__dlpack_device__()
            def __dlpack__(self, *, stream, max_version):
                self.stream = stream
                return ours.__dlpack__(stream=stream, max_version=max_version)
        theirs = Theirs()
        log()
        taken = usm.from_dlpack(theirs)
        assert f"record {theirs.stream:#x}" in log() and taken.pointer == ours.pointer
        # Old producers know no versions; the stream stays.
        class Old(Theirs):
            def __dlpack__(self, *, stream):
                self.stream = stream
                return ours.__dlpack__(stream=stream)
        old = Old()
        assert usm.from_dlpack(old).readonly and old.stream == theirs.stream
        # Device memory reaches the host as a copy only.
        refused(lambda: ours.__dlpack__(dl_device=(1, 0), copy=False), BufferError)
        host = usm.from_dlpack(ours, dl_device=(1, 0))
        assert host.device.backend == "host" and host.tolist() == [0] * 8
        refused(lambda: usm.from_dlpack(ours, dl_device=(2, 1)), usm.AccessError)
        # The table for C names the stream that the array's work is ordered before.
        import tvm_ffi
        log()
        back = tvm_ffi.get_global_func("testing.echo")(ours)
        assert type(back) is usm.Array and back.pointer == ours.pointer and back.device.selector == "cuda:gpu:0"
    """)


def test_owners_live_until_the_work_is_done(run):
    run("""
        import weakref
        address = foreign(64)
        producer = Producer(address)
        alive = weakref.ref(producer)
        array = usm.asarray(producer)
        ours = usm.zeros(8, "<i4", kind="device", queue="cuda:gpu")
        driver.hold(True)
        event = usm.Queue("cuda:gpu").copy(ours, array)
        del producer, array
        gc.collect()
        assert alive() is not None, "the copy still reads it"
        driver.hold(False)
        event.wait()
        usm.zeros(1, kind="device", queue="cuda:gpu")
        usm.Context("cuda:gpu").synchronize()
        ours.queue.context.synchronize()
        for _ in range(4):
            usm.zeros(1, kind="device", queue="cuda:gpu")
        gc.collect()
        assert alive() is None
    """)


def test_without_a_driver_the_error_names_it():
    class Producer:
        __cuda_array_interface__ = {"data": (4096, False), "shape": (2,), "typestr": "<f4", "version": 3}

    if any(device.backend == "cuda" for device in usm.devices()):
        pytest.skip("a CUDA driver is here")
    with pytest.raises(usm.DeviceError, match="libcuda"):
        usm.asarray(Producer())
    Producer.__cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "version": 3}
    with pytest.raises(usm.InterfaceError, match="data"):
        usm.asarray(Producer())
    with pytest.raises(usm.DeviceError, match="cuda"):
        usm.Queue("cuda:gpu")


def test_a_driver_without_the_functions_is_named(compiler, tmp_path):
    source, library = tmp_path / "empty.c", tmp_path / "libcuda.so.1"
    source.write_text("int cuInit(unsigned flags) { return 0; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    code = """
        import usm
        class Producer:
            __cuda_array_interface__ = {"data": (4096, False), "shape": (2,), "typestr": "<f4", "version": 3}
        try:
            usm.asarray(Producer())
        except usm.DeviceError as error:
            print(error)
    """
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert "cuDeviceGetCount" in done.stdout, done.stdout + done.stderr
