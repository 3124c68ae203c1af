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
def cuda_driver():
    """The variables of a process that uses the CUDA driver that executes on the host (`tests/cuda-driver`)."""
    library = os.environ.get("USM_CUDA_DRIVER")
    if library is None:
        reason = "USM_CUDA_DRIVER not set (cargo build -p usm-cuda-driver)"
        if CI:
            pytest.fail(reason)
        pytest.skip(reason)
    return {"USM_CUDA_LIBRARY": library, "USM_CUDA_SETTINGS": "devices=2", "PYTHONPATH": str(pathlib.Path(__file__).parent)}


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
