"""The exceptions of usm. Each is an :class:`Error` and also the built-in exception that callers would expect."""

__all__ = [
    "AccessError",
    "AllocationError",
    "DeviceError",
    "Error",
    "InterfaceError",
    "KernelError",
    "RequestError",
    "WaitTimeout",
]


class Error(Exception):
    """Base of every exception that usm raises on purpose."""


class AllocationError(Error, MemoryError):
    """Memory could not be had: the message names the limit and the bytes asked."""


class RequestError(Error, ValueError):
    """An argument that cannot be served: a size, a range, a kind, memory of another context."""


class InterfaceError(Error, ValueError):
    """A dictionary, buffer or capsule that is malformed or lies; the message names the key and the reason."""


class AccessError(Error, BufferError):
    """Access that the memory's kind does not allow: a host view of device memory, a write to a read-only array."""


class DeviceError(Error, RuntimeError):
    """No such device, a runtime library that is missing, or a call that the runtime refused."""


class WaitTimeout(Error, TimeoutError):
    """A wait gave up at its limit; the work may still run."""


class KernelError(Error, RuntimeError):
    """A kernel that is refused, or a launch of one: the message begins with ``file:line:column:`` and says what to write."""
