"""The CUDA driver that executes on the host (`tests/cuda-driver`), controlled by ctypes.

The process uses it at the same time through usm, under CUDA's names or HIP's. This module sets
faults, reads the log, and makes memory and streams as another library of the process would. Each
function of HIP there calls the same function of CUDA.
"""

import ctypes
import os

# The tests' names of functions.
WORDS = {"cuEventRecord": "record", "cuStreamWaitEvent": "wait", "cuMemcpyAsync": "copy"}
OUT_OF_MEMORY, UNAVAILABLE = 2, 46
ALLOCATIONS = ("cuMemAlloc_v2", "cuMemAllocManaged", "cuMemHostAlloc", "cuMemAllocFromPoolAsync")
# The functions that fail on a lost device.
OF_A_DEVICE = (
    *ALLOCATIONS,
    *(f"cu{name}Async" for name in ("Memcpy", "MemsetD8", "MemsetD16", "MemsetD32", "MemsetD2D32")),
    *("cuMemcpy2DAsync_v2", "cuStreamQuery", "cuStreamWaitEvent", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuLaunchKernel"),
)


class Driver:
    def __init__(self, variable="USM_CUDA_LIBRARY"):
        self.library = ctypes.CDLL(os.environ[variable])
        self.library.usm_cuda_count.restype = ctypes.c_uint64
        self.settings = os.environ.get("USM_CUDA_SETTINGS", "")
        self.faults = {}
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        assert code == 0, (name, code)

    def hold(self, on):
        """Holds all work back, or lets it start."""
        self.call("usm_cuda_settings", f"{self.settings},{'hold' if on else ''}".encode())

    def fail(self, on, code, *functions):
        for function in functions:
            self.faults[f"{function}={code}"] = on
        text = ",".join(fault for fault, on in self.faults.items() if on)
        self.call("usm_cuda_faults", text.encode())

    def refuse(self, on):
        self.fail(on, OUT_OF_MEMORY, *ALLOCATIONS)

    def lose(self, on):
        self.fail(on, UNAVAILABLE, *OF_A_DEVICE)

    def misuses(self):
        return self.library.usm_cuda_count(b"misuses")

    def live(self):
        return self.library.usm_cuda_count(b"allocations")

    def log(self):
        """The records, waits, copies and ends of events since the last call, with their streams."""
        text = ctypes.create_string_buffer(1 << 20)
        self.library.usm_cuda_calls(text, ctypes.c_size_t(len(text)))
        if not text.value:
            self.library.usm_cuda_log(1)
        lines = (line.partition(" ") for line in text.value.decode().splitlines())
        lines = (("done", about.removesuffix(" done")) if about.endswith(" done") else (WORDS.get(name), about) for name, _, about in lines)
        return [f"{word} {about}" for word, about in lines if word]

    class Current:
        """The primary context of a device, current on this thread."""

        def __init__(self, driver, device):
            self.driver, context = driver, ctypes.c_void_p()
            driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            driver.call("cuCtxPushCurrent_v2", context)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.driver.call("cuCtxPopCurrent_v2", None)

    def foreign(self, size, kind="device", device=0):
        """The address of zeroed memory, which is never freed; `size` in bytes."""
        address = ctypes.c_void_p()
        allocate = {"device": "cuMemAlloc_v2", "host": "cuMemHostAlloc", "shared": "cuMemAllocManaged"}[kind]
        flags = () if kind == "device" else (1,)
        with self.Current(self, device):
            self.call(allocate, ctypes.byref(address), ctypes.c_size_t(size), *flags)
            self.call("cuMemsetD8Async", address, ctypes.c_uint8(0), ctypes.c_size_t(size), None)
            self.call("cuCtxSynchronize")
        return address.value

    def read(self, address, size):
        """The bytes at an address of any kind."""
        found = ctypes.create_string_buffer(size)
        with self.Current(self, 0):
            self.call("cuMemcpyAsync", found, ctypes.c_void_p(address), ctypes.c_size_t(size), None)
            self.call("cuCtxSynchronize")
        return found.raw

    def stream(self, device=0):
        stream = ctypes.c_void_p()
        with self.Current(self, device):
            self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value
