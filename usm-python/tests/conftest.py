"""Fixtures, and the tests' requirements of other packages.

A missing part skips the test with the reason, by `lacking` alone. With ``CI=true``, or where
``USM_REQUIRE`` names it, it is a failure.
"""

import gc
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import usm
from backends.configurations import CONFIGURATIONS, Missing

CI = os.environ.get("CI") in ("1", "true")
REQUIRED = os.environ.get("USM_REQUIRE", "").split(",")


def pytest_collection_finish():
    """Thousands of tests live as long as the session; no collection of garbage looks at them."""
    gc.collect()
    gc.freeze()


def lacking(what, reason, module=False):
    """Skips the test, or all of the module, because `what` is missing."""
    if CI or what in REQUIRED:
        pytest.fail(f"required: {what}: {reason}")
    pytest.skip(f"{what}: {reason}", allow_module_level=module)


def require(module, why):
    """Imports a module, or skips whatever asked for it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        lacking(module, f"not installed ({error}): {why}", module=True)


def device_of(backend):
    """The first device of a backend."""
    device = next((device for device in usm.devices() if device.backend == backend), None)
    if device is None:
        lacking(backend, "no device of the backend")
    return device


@pytest.fixture(scope="session")
def cuda_driver():
    """Variables of a process that uses the CUDA driver on the host (`tests/cuda-driver`)."""
    library = os.environ.get("USM_CUDA_DRIVER")
    if library is None:
        lacking("cuda_on_host", "USM_CUDA_DRIVER not set (cargo build -p usm-cuda-driver)")
    path = os.pathsep.join(filter(None, [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    return {"USM_CUDA_LIBRARY": library, "USM_CUDA_SETTINGS": "devices=2", "PYTHONPATH": path}


def run_in(name, request, file, **more):
    """Runs `python FILE BACKEND` in a process of this configuration; it must end well."""
    try:
        variables = CONFIGURATIONS[name].environment(request.getfixturevalue)
    except Missing as reason:
        lacking(name, reason)
    # Fixtures that say a folder do not know of this one's.
    folders = os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, **variables, **more, "PYTHONPATH": folders}
    command = [sys.executable, str(file), CONFIGURATIONS[name].backend]
    child = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr[-3000:]


@pytest.fixture(scope="session")
def np():
    return require("numpy", "the oracle of host arrays")


@pytest.fixture(scope="session")
def dpctl():
    module = require("dpctl", "no SYCL devices")
    importlib.import_module("dpctl.memory")
    if not module.get_devices():
        lacking("sycl", "dpctl finds no device although usm is imported")
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


@pytest.fixture
def compiler():
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        lacking("cc", "no C compiler")
    return found


@pytest.fixture(params=["host", "device", "shared"])
def kind(request):
    return request.param


@pytest.fixture
def nrt_library():
    """The wheel's C library; a package without it fails in CI only."""
    try:
        return usm.nrt.get_library()
    except usm.DeviceError as error:
        lacking("usm_nrt", error)
