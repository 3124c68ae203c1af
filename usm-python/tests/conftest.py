"""What the tests need of others. Absent: skipped with the reason; with ``CI=true`` that is a failure."""

import importlib
import os

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
    device = next((device for device in usm.devices() if device.backend == request.param), None)
    if device is None:
        pytest.skip(f"no device of the {request.param} backend")
    return usm.Queue(device)


@pytest.fixture(params=["host", "device", "shared"])
def kind(request):
    return request.param
