"""Kernels on drivers that execute on the host, cached code, and many threads at once."""

import gc
import os
import pathlib
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
from backends.configurations import CONFIGURATIONS, Missing
from conftest import device_of, lacking
from kernel_programs import programs

import usm
import usm._kernel as front_end

CASE = pathlib.Path(__file__).with_name("kernel_device_case.py")
NAMES = [case[0] for case in programs()]


def environment(name, request):
    try:
        return CONFIGURATIONS[name].environment(request.getfixturevalue)
    except Missing as reason:
        lacking(name, reason)


def start(backend, *names, **variables):
    # Fixtures that say a folder do not know of this one's.
    folders = {"PYTHONPATH": os.pathsep.join([str(CASE.parent), os.environ.get("PYTHONPATH", "")])}
    variables = {**os.environ, **variables, **folders}
    return subprocess.Popen([sys.executable, CASE, backend, *names], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def agreed(child):
    out, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors[-3000:]
    return int(out)


@pytest.mark.parametrize("name", ["cuda_on_host", "cuda_on_host_late", "level_zero", "level_zero_strict"])
def test_programs_agree_with_numpy(name, request):
    assert agreed(start(CONFIGURATIONS[name].backend, **environment(name, request))) == len(NAMES)


@pytest.mark.parametrize("name", ["opencl", "sycl", "cuda_on_host"])
def test_a_runtimes_code_is_cached(name, request, tmp_path):
    device_of("opencl")
    backend, few = CONFIGURATIONS[name].backend, NAMES[:4]
    variables = {**environment(name, request), "USM_KERNEL_CACHE": str(tmp_path / "kept")}
    if name == "sycl":
        # OpenCL's functions read the code of its contexts.
        variables["USM_OPENCL_LIBRARY"] = os.environ.get("USM_OPENCL_LIBRARY", "")
    for child in [start(backend, *few, **variables) for _ in range(2)]:
        assert agreed(child) == len(few)

    def files():
        return {file: file.stat().st_mtime_ns for file in (tmp_path / "kept").iterdir()}

    kept = files()
    assert len(kept) >= 3 and {file.suffix for file in kept} == {".bin"}
    assert agreed(start(backend, *few, **variables)) == len(few)
    assert files() == kept
    # Truncated or altered files are made again.
    for number, file in enumerate(sorted(kept)):
        whole = file.read_bytes()
        file.write_bytes([whole[: len(whole) // 2], b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])][number % 4])
    wholes = {file: file.stat().st_size for file in kept}
    assert agreed(start(backend, *few, **variables)) == len(few)
    assert all(file.stat().st_size > size or number % 4 == 3 for number, (file, size) in enumerate(sorted(wholes.items())))
    # A link to a device that never ends is replaced.
    first = min(kept)
    first.unlink()
    first.symlink_to("/dev/zero")
    assert agreed(start(backend, *few, **variables)) == len(few)
    assert not first.is_symlink()


def test_sycl_builds_without_opencl(request, tmp_path):
    device_of("sycl")
    variables = {**environment("sycl", request), "USM_KERNEL_CACHE": str(tmp_path / "kept")}
    assert agreed(start("sycl", NAMES[0], **variables)) == 1
    assert not list(tmp_path.glob("kept/*"))


OPENCL_WITHOUT_PLATFORMS = """
#include <stdlib.h>
int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) { if (count) *count = 0; return 0; }
#define NO(name) void name(void) { abort(); }
NO(clGetPlatformInfo) NO(clGetExtensionFunctionAddressForPlatform) NO(clGetDeviceIDs) NO(clGetDeviceInfo)
NO(clCreateContext) NO(clRetainContext) NO(clReleaseContext) NO(clGetContextInfo)
NO(clCreateCommandQueue) NO(clRetainCommandQueue) NO(clReleaseCommandQueue) NO(clGetCommandQueueInfo)
NO(clFlush) NO(clEnqueueMarkerWithWaitList) NO(clGetEventInfo) NO(clGetEventProfilingInfo) NO(clWaitForEvents)
NO(clRetainEvent) NO(clReleaseEvent) NO(clCreateBuffer) NO(clRetainMemObject) NO(clReleaseMemObject)
NO(clGetMemObjectInfo) NO(clEnqueueWriteBuffer) NO(clEnqueueReadBuffer) NO(clEnqueueFillBuffer) NO(clEnqueueCopyBuffer)
"""


def test_another_opencl_gets_no_objects_of_sycl(compiler, request, tmp_path):
    """Its functions end the process if they are called."""
    device_of("sycl")
    (tmp_path / "other.c").write_text(OPENCL_WITHOUT_PLATFORMS)
    other = tmp_path / "libother.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", other, tmp_path / "other.c"], check=True)
    variables = {**environment("sycl", request), "USM_OPENCL_LIBRARY": str(other), "USM_KERNEL_CACHE": "off"}
    assert agreed(start("sycl", NAMES[0], **variables)) == 1


def test_concurrent_first_launches_compile_once(monkeypatch):
    made = []
    make = front_end.compiled
    monkeypatch.setattr(front_end, "compiled", lambda source, key: (made.append(tuple(key)), make(source, key))[1])

    @usm.kernel
    def add(a, n):
        i = usm.get_global_id(0)
        a[i] += n

    arrays = [np.zeros(8, "int32") for _ in range(8)]
    together = threading.Barrier(8)

    def launch(array):
        together.wait()
        with usm.device_context("host"):
            add[8](array, 3)

    threads = [threading.Thread(target=launch, args=(array,)) for array in arrays]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all((array == 3).all() for array in arrays)
    assert len(made) == len(set(made)) >= 1


@pytest.mark.parametrize("backend", ["host", "opencl"])
def test_many_launches_leak_no_memory(backend):
    @usm.kernel
    def add(a, x, n):
        i = usm.get_global_id(0)
        a[i] += x[i] * n

    queue = usm.Queue(device_of(backend))
    a, x = (usm.asarray(np.ones(64, "float32"), queue=queue, kind="shared", copy=True) for _ in range(2))

    def resident():
        gc.collect()
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def launches(count):
        launch = add[64]
        for _ in range(count):
            launch(a, x, 0.0)

    launches(2_000)
    before = resident()
    launches(20_000)
    assert resident() - before < 1 << 20
    assert (usm.to_numpy(a) == 1).all()
