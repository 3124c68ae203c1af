"""The time of ``import usm``, and the modules that it loads."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from conftest import lacking


def run(code, **env):
    """Runs code in a fresh interpreter; variables set to None are removed."""
    environment = {**os.environ, **{k: v for k, v in env.items() if v is not None}}
    for name in [name for name, value in env.items() if value is None]:
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_usm_imports_no_other_package():
    out = run("""
        import sys
        import usm
        print(*sorted({name.split(".")[0] for name in sys.modules} & {"numpy", "dpctl", "dpnp", "torch", "cupy", "numba"}))
    """)
    assert out == ""


def test_a_second_interpreter_of_the_process_is_refused():
    if sys.version_info >= (3, 12):
        pytest.skip("a second interpreter: Python itself refuses it from 3.12 on")
    out = run("""
        import _xxsubinterpreters as interpreters
        import usm
        second = interpreters.create()
        try:
            interpreters.run_string(second, "import usm")
        except interpreters.RunFailedError as error:
            print("serves one only" in str(error))
        interpreters.destroy(second)
        print(usm.zeros(2, "<f4", queue=usm.Queue("host")).tolist())
    """)
    assert out == "True\n[0.0, 0.0]"


def test_working_on_the_host_and_on_sycl_does_not_import_dpctl():
    out = run("""
        import sys
        import usm
        for device in usm.devices():
            array = usm.zeros(4, "<f4", queue=usm.Queue(device))
            assert array.tolist() == [0.0] * 4
        print("dpctl" in sys.modules)
    """)
    assert out == "False"


def test_devices_are_found_without_any_environment_variable():
    if importlib.util.find_spec("dpctl") is None:
        lacking("dpctl", "not installed: no SYCL devices")
    out = run("import usm; print(*usm.devices())", OCL_ICD_FILENAMES=None, USM_DPCTL_LIBRARY=None)
    assert "sycl:opencl:cpu:0" in out
    # And dpctl itself finds them, once usm is imported.
    out = run("import usm, dpctl; print(len(dpctl.get_devices()))", OCL_ICD_FILENAMES=None, USM_DPCTL_LIBRARY=None)
    assert int(out) > 0


def test_opencl_of_the_environment_is_found_first_and_without_sycl():
    lib = pathlib.Path(sys.prefix, "lib")
    if not all((lib / name).is_file() for name in ("libOpenCL.so.1", "libintelocl.so")):
        lacking("opencl", "no loader and runtime in Python's environment")
    # Nothing else leads to the environment.
    alone = dict(OCL_ICD_FILENAMES=None, USM_OPENCL_LIBRARY=None, VIRTUAL_ENV=None, USM_DPCTL_LIBRARY="", PATH="/usr/bin:/bin")
    out = run("import usm; print(usm.Queue('opencl:cpu:0').device.selector)", **alone)
    assert out == "opencl:cpu:0"
    out = run("from usm.__main__ import main; main(['devices'])", **alone)
    assert "opencl:cpu:0" in out


def test_a_set_variable_is_kept():
    out = run("import os, usm; print(os.environ['OCL_ICD_FILENAMES'])", OCL_ICD_FILENAMES="/somewhere/else.so")
    assert out == "/somewhere/else.so"


def test_without_sycl_everything_works_on_the_host():
    out = run(
        """
        import usm
        from usm.memory import MemoryUSMShared
        print(*[device.selector for device in usm.devices()])
        memory = MemoryUSMShared(4)
        memory.copy_from_host(b"abcd")
        print(memory.tobytes(), memory.queue.device.selector)
        try:
            usm.Queue("sycl:gpu")
        except usm.DeviceError as error:
            print(error)
        """,
        USM_DPCTL_LIBRARY="/nonexistent/libDPCTLSyclInterface.so",
    )
    devices, memory, error = out.splitlines()
    assert "sycl" not in devices and devices.endswith("host:host:0")
    assert memory == f"b'abcd' {devices.split()[0]}"
    assert "sycl:gpu" in error and "libDPCTLSyclInterface" in error


def test_a_runtime_that_cannot_be_opened_names_file_and_reason():
    out = run(
        """
        import usm
        for selector in ("opencl:cpu", "level_zero:gpu", "sycl:cpu"):
            try:
                usm.Device(selector)
            except usm.DeviceError as error:
                print(error)
        """,
        USM_OPENCL_LIBRARY="/nonexistent/one.so",
        USM_LEVEL_ZERO_LIBRARY="/nonexistent/two.so",
        USM_DPCTL_LIBRARY="/nonexistent/three.so",
    )
    lines = out.splitlines()
    assert len(lines) == 3, out
    for line, name in zip(lines, ("one", "two", "three")):
        assert line.count(f"library /nonexistent/{name}.so (of USM_") == line.count(f"/nonexistent/{name}.so") == 1, line
        assert not sys.platform.startswith("linux") or "No such file" in line, line


def test_a_compiler_that_cannot_be_opened_names_file_and_variable(cuda_driver):
    out = run(
        """
        import usm
        try:
            usm.Module("extern \\"C\\" __global__ void f() {}", device="cuda:gpu:0")
        except usm.Error as error:
            print(error)
        """,
        **cuda_driver,
        USM_NVRTC_LIBRARY="/nonexistent/compiler.so",
    )
    assert out.count("library /nonexistent/compiler.so (of USM_NVRTC_LIBRARY)") == 1, out
    assert out.count("/nonexistent/compiler.so") == 1, out


def test_every_runtime_that_could_have_the_device_is_listed_with_its_reason():
    nowhere = "/nonexistent/library.so"
    out = run(
        """
        import usm
        try:
            usm.Device("gpu")
        except usm.DeviceError as error:
            print(error)
        print(*[backend["name"] for backend in usm.backends() if backend["name"] not in ("sycl", "hip")])
        """,
        USM_OPENCL_LIBRARY=nowhere,
        USM_LEVEL_ZERO_LIBRARY=nowhere,
        USM_CUDA_LIBRARY=nowhere,
    )
    error, names = out.splitlines()
    start, _, reasons = error.partition(": ")
    reasons = reasons.split("; ")
    assert start == 'no device matches "gpu"' and [reason.split(":")[0] for reason in reasons] == names.split(), out
    assert sum(nowhere in reason for reason in reasons) == 3, out
    assert reasons[-1] == "host: no such device, it has host:host:0"


def test_usm_device_names_the_default():
    out = run("import usm; print(usm.Device().selector)", USM_DEVICE="host")
    assert out == "host:host:0"
    out = run(
        """
        import usm
        try:
            usm.zeros(3)
        except usm.DeviceError as error:
            print(error)
        """,
        USM_DEVICE="host:gpu:7",
    )
    assert "host:gpu:7" in out


def test_the_process_ends_quietly_with_live_objects():
    """Arrays, memory, capsules and queues that outlive the interpreter's end do not crash it."""
    run("""
        import sys
        import usm
        keep = []
        for device in usm.devices():
            queue = usm.Queue(device)
            array = usm.zeros(1000, queue=queue)
            keep += [queue, array, array[::2], memoryview(array), array.__dlpack__(), usm.memory.MemoryUSMHost(5)]
            if device.backend == "sycl":
                keep += [queue._get_capsule(), queue.context._get_capsule(), array.__sycl_usm_array_interface__]
        sys.modules["kept"] = keep
    """)
