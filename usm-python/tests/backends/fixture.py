"""The argument of a case: a device of one backend, and control over that backend's driver."""

import contextlib
import ctypes
import gc
import os

import cuda_driver
import numpy as np

import usm
from usm.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared

from .configurations import CONFIGURATIONS

KINDS = ("host", "device", "shared")
MEMORY = {"host": MemoryUSMHost, "device": MemoryUSMDevice, "shared": MemoryUSMShared}
# `ZE_RESULT_NOT_READY` and `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY`.
NOT_READY, OUT_OF_MEMORY = 1, 0x70000003


class Skip(Exception):
    """Why a case cannot run on this backend."""


class Backend:
    def __init__(self, name):
        self.name, self.kind = name, CONFIGURATIONS[name].backend
        try:
            self.device = usm.Device(self.kind)
        except usm.DeviceError as error:
            reason = str(error)
            # The others are closed on purpose.
            raise Skip(reason if self.kind == "sycl" else reason.partition("; no SYCL")[0]) from None
        self.driver = Driver.of(name)
        self.start = self.driver.misuses() if self.driver else 0

    def context(self):
        """A new, separate context."""
        return usm.Context(self.device)

    def queue(self, context=None, in_order=True):
        return usm.Queue(context or self.device, in_order=in_order)

    def array(self, data, kind="device", queue=None):
        """An array with the elements of a NumPy array, or of an argument for one."""
        data = np.asarray(data)
        array = usm.empty(data.shape, data.dtype.str, kind=kind, queue=queue or self.device.context)
        usm.copy(array, np.ascontiguousarray(data).reshape(data.shape))
        return array

    @contextlib.contextmanager
    def held(self):
        """Delays the end of all submitted work until the block ends or the result is called."""
        driver = self.need_driver("no way to hold work back")
        driver.hold(True)
        try:
            yield lambda: driver.hold(False)
        finally:
            driver.hold(False)

    @contextlib.contextmanager
    def out_of_memory(self):
        driver = self.need_driver("no way to run out of memory at will")
        driver.refuse(True)
        try:
            yield
        finally:
            driver.refuse(False)

    def need_driver(self, reason):
        if self.driver is None:
            raise Skip(f"{self.name}: {reason}")
        return self.driver

    def check_nothing_is_left(self):
        """Faults that the driver itself has counted after a case."""
        gc.collect()
        if self.driver:
            assert self.driver.misuses() == self.start, "the driver was misused: see standard error"


class Driver:
    """A driver that executes on the host, whose behaviour the tests control."""

    @staticmethod
    def of(name):
        if name.startswith("level_zero") and "ZE_ENABLE_ALT_DRIVERS" in os.environ:
            return LevelZero(os.environ["ZE_ENABLE_ALT_DRIVERS"])
        if name.startswith("hip_on_host"):
            return cuda_driver.Driver("USM_HIP_LIBRARY")
        return cuda_driver.Driver() if name.startswith("cuda_on_host") else None


class LevelZero(Driver):
    def __init__(self, path):
        # Open already; this is one more reference to it.
        library = ctypes.CDLL(path)
        self.faults, self.count = library.usm_ze_faults, library.usm_ze_count
        self.faults.argtypes = self.count.argtypes = [ctypes.c_char_p]
        self.count.restype = ctypes.c_uint64
        self.active = {}

    def set(self, on, *faults):
        for fault in faults:
            self.active[fault] = on
        text = ",".join(fault for fault, on in self.active.items() if on)
        assert self.faults(text.encode()) == 0, text

    def hold(self, on):
        self.set(on, f"zeEventQueryStatus={NOT_READY}")

    def refuse(self, on):
        self.set(on, *(f"zeMemAlloc{kind}={OUT_OF_MEMORY}" for kind in ("Host", "Device", "Shared")))

    def lose(self, on):
        self.set(on, "device-lost")

    def misuses(self):
        return self.count(b"misuses")

    def live(self):
        return self.count(b"allocations")
