"""The configurations: the runtime of each, and the needs of its process."""

import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass


class Missing(Exception):
    """The missing part of this machine, in words."""


# A file that is not there: a runtime that a configuration is not about stays closed.
NOTHING = "/nonexistent/runtime.so"
SYCL, OPENCL, LEVEL_ZERO = "USM_DPCTL_LIBRARY", "USM_OPENCL_LIBRARY", "USM_LEVEL_ZERO_LIBRARY"
CUDA, HIP = "USM_CUDA_LIBRARY", "USM_HIP_LIBRARY"


def only(*variables):
    return {variable: NOTHING for variable in (SYCL, OPENCL, LEVEL_ZERO, CUDA, HIP) if variable not in variables}


def host(_):
    return only()


def opencl(_):
    return only(OPENCL)


def sycl(_):
    return only(SYCL)


def level_zero(_):
    """The driver that executes on the host (`tests/level-zero-driver`), behind the real loader."""

    def file(variable, hint, name=""):
        if variable not in os.environ:
            raise Missing(f"{variable} not set ({hint})")
        path = pathlib.Path(os.environ[variable], name)
        if not path.exists():
            raise Missing(f"{path} not found ({hint})")
        return path

    loader = file("USM_DEBIAN_LIBRARIES", "cargo xtask setup", "libze_loader.so.1")
    driver = file("USM_LEVEL_ZERO_DRIVER", "cargo build -p usm-level-zero-driver")
    # The loader opens its layers by name.
    return {
        **only(LEVEL_ZERO),
        LEVEL_ZERO: str(loader),
        "ZE_ENABLE_ALT_DRIVERS": str(driver),
        "LD_LIBRARY_PATH": str(loader.parent),
    }


def level_zero_strict(tools):
    """The same driver, where work starts late and runs in any allowed order.

    There are two devices, and the loader's validation layer is on.
    """
    late = {"USM_ZE_LAZY": "1", "USM_ZE_REORDER": "1", "USM_ZE_DEVICES": "2"}
    layer = {"ZE_ENABLE_VALIDATION_LAYER": "1", "ZE_ENABLE_PARAMETER_VALIDATION": "1"}
    return {**level_zero(tools), **late, **layer}


def cuda_on_host(tools):
    """The driver that executes on the host (`tests/cuda-driver`), in the place of NVIDIA's."""
    return {**only(CUDA), **tools("cuda_driver")}


def cuda_on_host_late(tools):
    """Work starts when its state is queried, the newest ready operation first."""
    return {**cuda_on_host(tools), "USM_CUDA_SETTINGS": "devices=2,late"}


def hip_on_host(tools):
    """The same driver under HIP's names, with HIP's signatures and numbers; not an AMD GPU."""
    return {**tools("cuda_driver"), **only(HIP), HIP: tools("cuda_driver")[CUDA]}


def hip_on_host_late(tools):
    return {**hip_on_host(tools), "USM_CUDA_SETTINGS": "devices=2,late"}


def level_zero_machine(_):
    return only(LEVEL_ZERO)


def cuda_machine(_):
    return only(CUDA)


def hip_machine(_):
    return only(HIP)


@dataclass(frozen=True)
class Configuration:
    name: str
    # The value of `usm.Device.backend`.
    backend: str
    # The variables of its process; `tools` gives fixtures of pytest by name.
    environment: Callable
    # Whether CI fails without it; the runtimes of real GPUs are there by luck.
    required: bool = True


CONFIGURATIONS = {
    configuration.name: configuration
    for configuration in [
        Configuration("host", "host", host),
        Configuration("opencl", "opencl", opencl),
        Configuration("sycl", "sycl", sycl),
        Configuration("level_zero", "level_zero", level_zero),
        Configuration("level_zero_strict", "level_zero", level_zero_strict),
        Configuration("cuda_on_host", "cuda", cuda_on_host),
        Configuration("cuda_on_host_late", "cuda", cuda_on_host_late),
        Configuration("hip_on_host", "hip", hip_on_host),
        Configuration("hip_on_host_late", "hip", hip_on_host_late),
        Configuration("level_zero_machine", "level_zero", level_zero_machine, required=False),
        Configuration("cuda_machine", "cuda", cuda_machine, required=False),
        Configuration("hip_machine", "hip", hip_machine, required=False),
    ]
}
