"""HIP from Python: when its library is opened, DLPack's ROCm types, streams, dictionaries.

The driver executes on the host under HIP's names (`tests/cuda-driver`); each case is a process of
its own. Nothing of it has run on an AMD GPU.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from backends.configurations import HIP, hip_on_host

PRELUDE = """
import gc, os
import usm
import cuda_driver

def opened():
    with open("/proc/self/maps") as maps:
        return os.path.basename(os.environ["USM_HIP_LIBRARY"]) in maps.read()

def refused(run, *errors):
    try:
        run()
    except errors as error:
        return str(error)
    raise AssertionError("accepted")

class Dictionary:
    def __init__(self, address, **fields):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (8,), "typestr": "<i4", "version": 2, **fields}
"""


@pytest.fixture
def run(request):
    def run(code, **environment):
        variables = {**os.environ, **hip_on_host(request.getfixturevalue), **environment}
        variables.pop("USM_DEVICE", None)
        program = PRELUDE + textwrap.dedent(code)
        done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return run


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux which files are mapped")
def test_hip_is_opened_only_when_named(run):
    run("""
        class Nowhere:
            __cuda_array_interface__ = {"data": (4096, False), "shape": (2,), "typestr": "<f4", "version": 3}
        array = usm.zeros(3)
        assert array.device.selector == usm.Device().selector == usm.Device("host").selector == "host:host:0"
        for selector in ("gpu", "gpu:0", "cuda:gpu:0", "sycl:gpu", "nothing"):
            assert "hip" not in refused(lambda: usm.Device(selector), usm.DeviceError)
        refused(lambda: usm.asarray(Nowhere()), usm.DeviceError)
        usm.stats(), usm.asarray([1]).context.device
        assert not opened()
        assert usm.Device("hip:gpu:1").selector == "hip:gpu:1" and opened()
        # The default does not change, and a word for any device does not select it.
        assert usm.Device().selector == "host:host:0"
        assert refused(lambda: usm.Device("gpu"), usm.DeviceError).endswith("; hip:gpu:0 is used only where it is named")
        assert "hip:gpu:0 is" not in refused(lambda: usm.Device("cpu"), usm.DeviceError)
        assert usm.zeros(3, queue="hip").device.context.device.selector == "hip:gpu:0"
    """)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux which files are mapped")
def test_the_device_list_has_hips_devices_before_the_host(run):
    run("""
        assert not opened()
        assert [device.selector for device in usm.devices()] == ["hip:gpu:0", "hip:gpu:1", "host:host:0"]
        device = usm.Device("hip:gpu:1")
        assert (device.backend, device.platform, device.vendor) == ("hip", "AMD HIP", "Advanced Micro Devices, Inc.")
        assert device in usm.devices() and opened()
        assert usm.Device().selector == "host:host:0"
    """)


def test_the_environment_can_name_hip(run):
    run("""
        os.environ["USM_DEVICE"] = "hip:gpu:1"
        assert usm.zeros(3, kind="shared").device.selector == "hip:gpu:1"
    """)


def test_without_hip_the_error_names_file_and_reason(run):
    code = """
        class Tensor:
            def __dlpack_device__(self):
                return 10, 0
            def __dlpack__(self, *, stream=None, max_version=None):
                raise AssertionError("there is no stream to give")
        for asked in (lambda: usm.Device("hip:gpu:0"), lambda: usm.Queue("hip"), lambda: usm.from_dlpack(Tensor()), lambda: usm.asarray(Tensor())):
            message = refused(asked, usm.DeviceError)
            assert "hip" in message.lower() and message.count("/nonexistent/runtime.so") == 1, message
        assert [device.selector for device in usm.devices()] == ["host:host:0"]
        assert "hip" not in refused(lambda: usm.Device("gpu"), usm.DeviceError)
    """
    run(code, **{HIP: "/nonexistent/runtime.so"})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for what is loaded")
def test_the_library_that_the_process_has_loaded_is_used(run, compiler, tmp_path):
    """Packages include HIP under names of their own; a second copy would not know their memory."""
    def built(name, code):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "source.c").write_text(code)
        command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, folder / "source.c"]
        subprocess.run(command, check=True)
        return folder / name

    # The message names the missing one.
    system = built("libamdhip64.so", "int nothing;")
    theirs = built("libamdhip64.so.6", "int hipInit(unsigned flags) { return 0; }")
    code = '''
        import ctypes
        if os.environ["LOADED"]:
            ctypes.CDLL(os.environ["LOADED"])
        message = refused(lambda: usm.Device("hip"), usm.DeviceError)
        assert message.endswith(os.environ["MISSING"]), message
    '''
    run(code, **{HIP: "", "LD_LIBRARY_PATH": str(system.parent), "LOADED": "", "MISSING": "hipInit"})
    run(code, **{HIP: "", "LD_LIBRARY_PATH": str(system.parent), "LOADED": str(theirs), "MISSING": "hipGetDeviceCount"})
    # A file that is named is the only one that counts.
    run(code, **{HIP: str(system), "LD_LIBRARY_PATH": str(system.parent), "LOADED": str(theirs), "MISSING": "hipInit"})


def test_memory_has_dlpacks_types_of_rocm_and_no_dictionary_of_cuda(run):
    run("""
        for kind, code in (("device", 10), ("host", 11), ("shared", 10)):
            array = usm.zeros((2, 3), "<i4", kind=kind, queue="hip:gpu:1")
            assert array.__dlpack_device__() == (code, 1)
            assert not hasattr(array, "__cuda_array_interface__")
            assert "__dlpack__" in refused(lambda: array.__cuda_array_interface__, AttributeError)
            taken = usm.from_dlpack(array)
            assert (taken.pointer, taken.kind, taken.device.selector) == (array.pointer, kind, "hip:gpu:1")
            assert usm.asarray(taken).pointer == array.pointer
            taken[1, 2] = 7
            assert array.tolist() == [[0, 0, 0], [0, 0, 7]]
            # The host gets its own kinds of memory without a copy, and a copy of the rest.
            host = usm.from_dlpack(array, dl_device=(1, 0))
            assert (host.pointer == array.pointer) == (kind != "device") and host.tolist() == array.tolist()
            refused(lambda: usm.from_dlpack(array, dl_device=(2, 1)), usm.AccessError, usm.DeviceError)
    """)


def test_numbers_of_streams_are_those_of_rocm(run):
    run("""
        driver = cuda_driver.Driver("USM_HIP_LIBRARY")
        ours, source = (usm.zeros(8, "<i4", kind="device", queue="hip:gpu") for _ in range(2))
        own = driver.stream()
        driver.hold(True)
        for stream, handle in ((None, "0x0"), (0, "0x0"), (own, hex(own))):
            usm.Queue("hip:gpu").copy(ours, source)
            driver.log()
            capsule = ours.__dlpack__(stream=stream, max_version=(1, 3))
            lines = driver.log()
            assert any(line.startswith(f"wait {handle} ") for line in lines), (stream, lines)
        driver.log()
        usm.Queue("hip:gpu").copy(ours, source)
        driver.log()
        ours.__dlpack__(stream=-1)
        assert driver.log() == []
        driver.hold(False)
        # Numbers of CUDA's default streams, which the standard forbids here.
        for wrong in (1, 2, "0", True, 1.0, -2):
            refused(lambda: ours.__dlpack__(stream=wrong), usm.InterfaceError, TypeError)
        # Page-locked memory is handed out when it is done.
        reachable = usm.zeros(8, "<i4", kind="host", queue="hip:gpu")
        event = usm.Queue("hip:gpu").copy(reachable, source)
        reachable.__dlpack__(stream=0, max_version=(1, 3))
        assert event.done
        class Theirs:
            def __dlpack_device__(self):
                return ours.__dlpack_device__()
            def __dlpack__(self, *, stream, max_version):
                self.stream = stream
                return ours.__dlpack__(stream=stream, max_version=max_version)
        theirs = Theirs()
        driver.log()
        taken = usm.from_dlpack(theirs)
        assert theirs.stream not in (0, 1, 2) and f"record {theirs.stream:#x}" in driver.log()
        assert taken.pointer == ours.pointer
        import tvm_ffi
        back = tvm_ffi.get_global_func("testing.echo")(ours)
        assert type(back) is usm.Array and back.pointer == ours.pointer and back.device.selector == "hip:gpu:0"
    """)


def test_dlpack_is_preferred_where_an_object_has_both_protocols(run):
    """torch's tensors on ROCm have CUDA's dictionary too. Here only the tensor names HIP."""
    run("""
        driver = cuda_driver.Driver("USM_HIP_LIBRARY")
        class Tensor(Dictionary):
            def __dlpack_device__(self):
                return 10, 1
            def __dlpack__(self, *, stream, max_version):
                return usm.zeros(8, "<i4", kind="device", queue="hip:gpu:1").__dlpack__(stream=stream, max_version=max_version)
        address = driver.foreign(32, "device", 1)
        taken = usm.asarray(Tensor(address))
        assert (taken.device.selector, taken.kind, taken.tolist()) == ("hip:gpu:1", "device", [0] * 8)
        assert taken.pointer != address
    """)


def test_a_dictionary_is_enough_once_hip_is_open(run):
    """As AMD's own bindings have it."""
    run("""
        driver = cuda_driver.Driver("USM_HIP_LIBRARY")
        address = driver.foreign(32, "device", 1)
        assert "CUDA device 0" in refused(lambda: usm.asarray(Dictionary(address)), usm.DeviceError)
        usm.Device("hip")
        own = driver.stream(1)
        for stream, handle in ((None, None), (1, "0x0"), (2, "0x2"), (own, hex(own))):
            driver.log()
            taken = usm.asarray(Dictionary(address, version=3, stream=stream))
            lines = driver.log()
            assert (taken.device.selector, taken.kind, taken.pointer) == ("hip:gpu:1", "device", address)
            assert lines[:1] == ([f"record {handle}"] if stream else []), (stream, lines)
            taken.fill(5)
            assert taken.tolist() == [5] * 8
        # Page-locked memory belongs to every device; the stream determines the device whose work is
        # meant.
        locked = driver.foreign(32, "host", 0)
        assert usm.asarray(Dictionary(locked, version=3, stream=own)).device.selector == "hip:gpu:1"
        # Its device is unknown: both messages.
        message = refused(lambda: usm.asarray(Dictionary(4096)), usm.InterfaceError)
        assert "CUDA device 0: " in message and message.endswith("is unknown memory in the hip context, not USM of one kind"), message
    """)
