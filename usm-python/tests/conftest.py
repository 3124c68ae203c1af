"""What the tests need of others. Absent: skipped with the reason; with ``CI=true`` that is a failure."""

import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import usm

CI = os.environ.get("CI") in ("1", "true")


def require(module, why):
    """Imports a module, or skips whatever asked for it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if CI:
            pytest.fail(f"{module} is needed under CI: {error}")
        pytest.skip(f"{module} is not installed: {why}", allow_module_level=True)


def device_of(backend):
    """The first device of a backend."""
    device = next((device for device in usm.devices() if device.backend == backend), None)
    if device is None:
        if CI:
            pytest.fail(f"no device of the {backend} backend, which CI needs")
        pytest.skip(f"no device of the {backend} backend")
    return device


@pytest.fixture(scope="session")
def cuda_driver(tmp_path_factory):
    """The folder of a `libcuda.so.1` without a GPU."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        if CI:
            pytest.fail("a C compiler is needed under CI")
        pytest.skip("no C compiler: the CUDA driver of the tests cannot be built")
    here, folder = pathlib.Path(__file__).parent, tmp_path_factory.mktemp("cuda")
    library, rest = folder / "libcuda.so.1", folder / "rest.c"
    written = (here / "cuda" / "driver.c").read_text()
    # Functions that the backend binds and these cases never call: a driver must have them all.
    table = (here.parents[1] / "usm-core" / "src" / "backend" / "cuda" / "loader.rs").read_text()
    names = set(re.findall(r'"(cu[A-Z]\w+)"', table)) - set(re.findall(r"\b(cu[A-Z]\w+)\(", written))
    rest.write_text("".join(f"int {name}(void) {{ return 801; }} /* not supported */\n" for name in sorted(names)))
    sources = [here / "cuda" / "driver.c", rest]
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-o", library, *sources], check=True)
    return folder


@pytest.fixture(scope="session")
def np():
    return require("numpy", "the oracle of host arrays")


@pytest.fixture(scope="session")
def dpctl():
    module = require("dpctl", "no SYCL devices")
    importlib.import_module("dpctl.memory")
    if not module.get_devices():
        if CI:
            pytest.fail("dpctl finds no device although usm is imported")
        pytest.skip("dpctl finds no device")
    return module


@pytest.fixture(scope="session")
def dpnp():
    return require("dpnp", "no SYCL arrays")


@pytest.fixture(params=["host", "opencl", "sycl"])
def queue(request):
    """A queue of each backend that is here."""
    if request.param == "sycl":
        request.getfixturevalue("dpctl")
    return usm.Queue(device_of(request.param))


@pytest.fixture(params=["host", "device", "shared"])
def kind(request):
    return request.param


@pytest.fixture
def nrt_library():
    """The wheel's C library; one made without it has none, which only CI may not accept."""
    try:
        usm.nrt.get_library()
    except usm.DeviceError as error:
        if CI:
            pytest.fail(str(error))
        pytest.skip(str(error))
